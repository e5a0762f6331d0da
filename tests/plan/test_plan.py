"""Everything is resolved before data is touched."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import duckanon
from duckanon.algorithms import Datafly
from duckanon.errors import ConfigError, ParameterError, RoleError
from duckanon.models import KAnonymity
from duckanon.plan.plan import Plan, Requirements, resolve_algorithm

TABLE = pa.table({"age": [30, 31], "zip": ["1", "2"], "ill": ["Canary", "b"], "name": ["x", "y"], "id": [1, 2]})
GOOD = {"quasi_identifiers": ["age", "zip"], "k": 2}


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"k": 0}, ParameterError, "The 'k' parameter of KAnonymity must be an int >= 1. Got 0."),
        ({"k": -1}, ParameterError, "Got -1"),
        ({"k": 2.5}, ParameterError, "Got 2.5"),
        ({"k": True}, ParameterError, "must be an int"),
        ({"k": "5"}, ParameterError, "Got str"),
        ({"k": None}, ParameterError, "No privacy model is given"),
        ({"suppression_limit": 1.01}, ParameterError, "fraction between 0 and 1. Got 1.01"),
        ({"suppression_limit": 5}, ParameterError, "fraction"),
        ({"suppression_limit": -0.1}, ParameterError, "fraction"),
        ({"suppression_limit": float("nan")}, ParameterError, "fraction"),
        ({"suppression_limit": True}, ParameterError, "fraction"),
        ({"suppression_limit": "0.1"}, ParameterError, "Got str"),
        ({"algorithm": "dataflly"}, ParameterError, "Did you mean 'datafly'"),
        ({"algorithm": 3}, ParameterError, "name or an Algorithm"),
        ({"on_unknown": "drop"}, ParameterError, "on_unknown must be"),
        ({"seed": "x"}, ParameterError, "seed must be an int"),
        ({"seed": True}, ParameterError, "seed must be an int"),
        ({"models": ["k_anonymity"], "k": None}, ParameterError, "needs k: write it as k_anonymity"),
        ({"models": ["k_anonimity"]}, ParameterError, "Did you mean 'k_anonymity'"),
        ({"models": [object()]}, ParameterError, "Got a object"),
        ({"quasi_identifiers": ["agee"]}, RoleError, "Did you mean 'age'"),
        ({"hierarchies": {"ill": {"rule": "suppress"}}}, RoleError, "'ill', which is no quasi-identifier"),
        ({"unlisted": "error"}, RoleError, "No role is given for 'ill', 'name', 'id'"),
    ],
)
def test_a_wrong_parameter_is_refused_by_name(changes: dict, error: type[ConfigError], message: str) -> None:
    for verb in (Plan.of, duckanon.anonymize):
        with pytest.raises(error, match=message):
            verb(TABLE, **(GOOD | changes))


def test_names_of_models_and_algorithms_are_resolved() -> None:
    assert Requirements.of(k=3, models=[KAnonymity(4)]).models == (KAnonymity(3), KAnonymity(4))
    assert resolve_algorithm("datafly") == Datafly()
    assert resolve_algorithm(Datafly(stop="k")) == Datafly(stop="k")


def test_the_plan_says_what_will_happen() -> None:
    plan = Plan.of(
        TABLE,
        **GOOD,
        sensitive=["ill"],
        identifiers=["name"],
        entity_key="id",
        hierarchies={"AGE": {"rule": "suppress"}},
    )
    found = plan.to_dict()
    assert json.loads(json.dumps(found)) == found
    assert found["published"] == ["age", "zip", "ill"]
    assert found["unit"] == "persons"
    assert found["promise"][0]["text"].endswith("at least 2 persons")
    assert found["roles"]["entity_key"] == "id"
    assert found["hierarchies"]["age"].startswith("given")
    text = plan.explain()
    assert text.splitlines()[1].startswith(
        "requirement: every combination of quasi-identifiers is shared by at least 2"
    )
    assert "never published: name, id" in text
    assert "SELECT" not in text
    assert "Canary" not in text


def test_a_line_break_in_a_name_begins_no_line_of_the_explanation() -> None:
    name = "new\nline"
    lines = Plan.of(pa.table({name: [1, 2, None]}), quasi_identifiers=[name], k=1).explain().splitlines()
    assert "published: new\\nline" in lines
    assert not any(line.startswith("line") for line in lines)


def test_steps_say_what_is_counted_and_searched() -> None:
    steps = dict(Plan.of(TABLE, **GOOD, sensitive=["ill"], l=2, algorithm="optimal").steps())
    assert steps["encode"].endswith("count the rows of each combination, also with each value of ill")
    assert steps["search"].startswith("optimal: ")
    assert "k_anonymity and l_diversity" in steps["gate"]
    given = dict(Plan.of(TABLE, **GOOD, levels={"age": 1}).steps())
    assert given["search"] == "apply the levels that are given"


def test_several_models_ask_for_the_largest_class() -> None:
    table = pa.table({"q": ["a"] * 3 + ["b"] * 3})
    with duckanon.anonymize(table, quasi_identifiers=["q"], k=2, models=[KAnonymity(4)]) as release:
        assert set(release.to_arrow().column("q").to_pylist()) == {"*"}
        assert [c.parameters["k"] for c in release.checks] == [2, 4]
