"""Roles of columns."""

from __future__ import annotations

import pytest

from duckanon.engine.sql.relations import Column
from duckanon.errors import RoleError
from duckanon.plan.roles import Role, Roles

COLUMNS = [Column(n, "VARCHAR") for n in ("id", "age", "Zip", "illness", "cost", "note")]


def resolve(**roles: object) -> Roles:
    return Roles.resolve(COLUMNS, **({"quasi_identifiers": ["age"]} | roles))


def test_roles_and_what_is_published() -> None:
    roles = resolve(
        quasi_identifiers=["Zip", "age"],
        sensitive=["illness"],
        insensitive=["cost"],
        identifiers=["id"],
        entity_key="id",
    )
    assert [a.name for a in roles.quasi_identifiers] == ["Zip", "age"]
    assert [a.name for a in roles.published] == ["age", "Zip", "illness", "cost"]
    assert roles.dropped == ["note"]
    assert roles.named(Role.IDENTIFIER) == ["id"]
    assert roles.to_dict() == {
        "quasi_identifiers": ["Zip", "age"],
        "sensitive": ["illness"],
        "insensitive": ["cost"],
        "identifiers": ["id"],
        "entity_key": "id",
        "dropped": ["note"],
    }


def test_the_entity_key_is_never_published() -> None:
    roles = resolve(entity_key="id")
    assert roles.named(Role.ENTITY_KEY) == ["id"]
    assert "id" not in [a.name for a in roles.published]


def test_case_is_ignored_where_nothing_fits_exactly() -> None:
    assert [a.name for a in resolve(quasi_identifiers=["zip", "AGE"]).quasi_identifiers] == ["Zip", "age"]


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ({"quasi_identifiers": []}, "at least one quasi-identifier"),
        ({"quasi_identifiers": "age"}, r"write \['age'\]"),
        ({"quasi_identifiers": [1]}, "Got a int in it"),
        ({"quasi_identifiers": ["agee"]}, r"no column 'agee'.*Did you mean 'age'\?"),
        ({"sensitive": ["ilness"]}, "Did you mean 'illness'"),
        ({"sensitive": ["age"]}, "'age' is quasi_identifier and sensitive"),
        ({"quasi_identifiers": ["age", "AGE"]}, "'age' is quasi_identifier twice"),
        ({"identifiers": ["id"], "insensitive": ["id"]}, "'id' is identifier and insensitive"),
        ({"entity_key": "age"}, "entity key 'age' is also quasi_identifier"),
        ({"entity_key": "illness", "sensitive": ["illness"]}, "entity key 'illness' is also sensitive"),
        ({"entity_key": "nobody"}, "no column 'nobody'"),
        ({"unlisted": "keep"}, "unlisted must be 'drop' or 'error'"),
        ({"unlisted": "error"}, "No role is given for 'id', 'Zip', 'illness', 'cost', 'note'"),
    ],
)
def test_names_that_do_not_fit_the_columns_are_refused(roles: dict[str, object], message: str) -> None:
    with pytest.raises(RoleError, match=message):
        resolve(**roles)


@pytest.mark.parametrize(
    "kind", ["INTEGER[]", "INTEGER[3]", "STRUCT(a INTEGER)", "MAP(INTEGER, VARCHAR)", "UNION(a INTEGER)"]
)
def test_nested_quasi_identifiers_are_refused_by_name(kind: str) -> None:
    with pytest.raises(RoleError, match="Column 'x' has a nested type"):
        Roles.resolve([Column("x", kind)], quasi_identifiers=["x"])
    columns = [Column("x", kind), Column("q", "DATE")]
    if kind.startswith("UNION"):
        with pytest.raises(RoleError, match="Column 'x' holds values of the type UNION"):
            Roles.resolve(columns, quasi_identifiers=["q"], sensitive=["x"])
    else:
        assert Roles.resolve(columns, quasi_identifiers=["q"], sensitive=["x"])
    assert Roles.resolve(columns, quasi_identifiers=["q"], identifiers=["x"])


@pytest.mark.parametrize(
    "kind", ["UNION(a INTEGER)", "UNION(a INTEGER)[]", "STRUCT(a INTEGER, b VARIANT)", "TUPLE(INTEGER)", "GEOMETRY"]
)
@pytest.mark.parametrize("role", ["sensitive", "insensitive"])
def test_values_that_no_file_holds_are_refused_by_name(kind: str, role: str) -> None:
    with pytest.raises(RoleError, match=r"Column 'x' holds values of the type (UNION|VARIANT|TUPLE|GEOMETRY)"):
        Roles.resolve([Column("x", kind), Column("q", "DATE")], quasi_identifiers=["q"], **{role: ["x"]})


def test_unlisted_error_is_content_where_all_are_named() -> None:
    roles = resolve(unlisted="error", identifiers=["id", "note"], sensitive=["illness"], insensitive=["cost", "Zip"])
    assert roles.dropped == []
