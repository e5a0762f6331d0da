"""How regions are published: where their bounds come from, and in what form each quasi-identifier is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from duckanon.encoding.dictionaries import published_type
from duckanon.errors import ParameterError, RoleError, did_you_mean
from duckanon.hierarchy.rules import ColumnType
from duckanon.plan.request import PARAMETERS
from duckanon.plan.roles import Attribute, column_names

BOUNDS = PARAMETERS["bounds"].choices
"""Where published bounds come from: the hierarchy, the cuts between classes, or the values of the class itself."""

KINDS = PARAMETERS["output"].choices
"""What is written of a region of values, or of the values of its class."""

MEASURED = ("bounds", "struct", "midpoint", "mean", "median", "geometric_mean")
"""The kinds that need values with distances; the last needs numbers."""


@dataclass(frozen=True)
class Publication:
    """What is published of the regions of a partition.

    ``kinds`` has every quasi-identifier, ``within`` those that are published as they are: no class has two values of
    them.
    """

    bounds: str = "grid"
    kinds: dict[str, str] = field(default_factory=dict)
    within: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        quasi_identifiers: Sequence[Attribute],
        *,
        bounds: str = "grid",
        output: str | Mapping[str, str] = "interval",
        within: Sequence[str] = (),
    ) -> Publication:
        """Match the names with the quasi-identifiers. What does not fit is a ParameterError.

        Examples
        --------
        >>> from duckanon.plan.roles import Role
        >>> age = Attribute("age", "INTEGER", Role.QUASI_IDENTIFIER)
        >>> city = Attribute("city", "VARCHAR", Role.QUASI_IDENTIFIER)
        >>> Publication.of([age, city], output="midpoint").kinds
        {'age': 'midpoint', 'city': 'interval'}
        """
        _one_of("bounds", bounds, BOUNDS)
        names = [a.name for a in quasi_identifiers]
        lowered = {name.lower(): name for name in names}
        unchanged = tuple(dict.fromkeys(lowered[name.lower()] for name in within))
        given = named_kinds(output, names)
        kinds = {}
        for attribute in quasi_identifiers:
            kind = given.get(attribute.name, "interval")
            _require_fit(attribute, kind, unchanged)
            if isinstance(output, str) and attribute.name not in unchanged:
                kind = output if _fits(attribute.type, output) else "interval"
            kinds[attribute.name] = kind
        return cls(bounds, kinds, unchanged)

    @property
    def given(self) -> list[str]:
        """The settings that differ from the default, as they were written. Only a partition supports them."""
        changed = [f"bounds={self.bounds!r}"] if self.bounds != "grid" else []
        kinds = list(dict.fromkeys(kind for kind in self.kinds.values() if kind != "interval"))
        changed += [f"output={kind!r}" for kind in kinds]
        return [*changed, *(["within"] if self.within else [])]

    def columns_of(self, name: str) -> tuple[str, ...]:
        """Return the names under which a quasi-identifier is published.

        Examples
        --------
        >>> Publication(kinds={"age": "bounds"}).columns_of("age")
        ('age_lo', 'age_hi')
        """
        return (f"{name}_lo", f"{name}_hi") if self.kinds.get(name) == "bounds" else (name,)

    def require_free(self, published: Iterable[Attribute]) -> None:
        """Raise where two published columns would have one name."""
        taken: dict[str, str] = {}
        for attribute in published:
            for column in self.columns_of(attribute.name):
                other = taken.setdefault(column.lower(), attribute.name)
                if other != attribute.name:
                    wide = attribute.name if self.kinds.get(attribute.name) == "bounds" else other
                    raise ParameterError(
                        f"output='bounds' would publish {column!r} twice: the bounds of {wide!r} and another column. "
                        "Rename that column, or use output='struct'."
                    )

    def to_dict(self) -> dict[str, object]:
        """Return the settings as plain values."""
        kinds = {name: kind for name, kind in self.kinds.items() if kind != "interval"}
        settings: dict[str, object] = {"bounds": self.bounds}
        return {
            **settings,
            **({"output": kinds} if kinds else {}),
            **({"within": list(self.within)} if self.within else {}),
        }


def has_distance(type_name: str) -> bool:
    """Say whether values of a type are published as numbers, dates or times, between which there are others.

    Examples
    --------
    >>> [has_distance(t) for t in ("INTEGER", "DECIMAL(9,2)", "DATE", "TIME", "VARCHAR", "BOOLEAN", "HUGEINT")]
    [True, True, True, True, False, False, False]
    """
    if published_type(type_name) != type_name:
        return False
    kind = ColumnType.parse(type_name)
    return kind.kind != "category" or kind.name == "TIME"


def extended(
    quasi_identifiers: Sequence[str], within: Sequence[str], others: Mapping[str, Sequence[str]] | None = None
) -> list[str]:
    """Return the quasi-identifiers with those columns of ``within`` that are not among them.

    ``others`` are the columns of other roles, by role: none of ``within`` may be among them.

    Examples
    --------
    >>> extended(["age", "zip"], ["ZIP", "ward"])
    ['age', 'zip', 'ward']
    """
    names = column_names(quasi_identifiers, "quasi_identifiers")
    listed_names = {name.lower() for name in names}
    listed = {role: c for role, c in (others or {}).items() if isinstance(c, Sequence) and not isinstance(c, str)}
    roles = {n.lower(): role for role, columns in listed.items() for n in columns if isinstance(n, str)}
    for name in column_names(within, "within"):
        if name.lower() in roles:
            raise RoleError(
                f"within names {name!r}, which is given as {roles[name.lower()]}, too: a column of within is a "
                "quasi-identifier, and a column has one role."
            )
        if name.lower() not in listed_names:
            listed_names.add(name.lower())
            names.append(name)
    return names


def _one_of(name: str, value: object, allowed: Sequence[str]) -> None:
    if not isinstance(value, str):
        raise ParameterError(f"{name} must be one of {', '.join(allowed)}. Got a {type(value).__name__}.")
    if value not in allowed:
        raise ParameterError(
            f"{name} must be one of {', '.join(allowed)}. Got {value!r}.{did_you_mean(value, allowed)}"
        )


def named_kinds(output: object, columns: Sequence[str]) -> dict[str, str]:
    """Return the kinds that are given by column, or none if one kind is given for all. Unknown names are an error.

    Examples
    --------
    >>> named_kinds({"AGE": "bounds"}, ["age", "zip"]), named_kinds("bounds", ["age", "zip"])
    ({'age': 'bounds'}, {})
    """
    if not isinstance(output, Mapping):
        _one_of("output", output, KINDS)
        return {}
    lowered = {c.lower(): c for c in columns}
    chosen = {}
    for name, kind in output.items():
        match = lowered.get(str(name).lower())
        if match is None:
            raise ParameterError(
                f"output names {name!r}, which is no quasi-identifier.{did_you_mean(str(name), columns)}"
            )
        _one_of(f"output of {match!r}", kind, KINDS)
        chosen[match] = kind
    return chosen


def _fits(type_name: str, kind: str) -> bool:
    if kind not in MEASURED:
        return True
    if not has_distance(type_name):
        return False
    return kind != "geometric_mean" or ColumnType.parse(type_name).family in ("integer", "decimal", "float")


def _require_fit(attribute: Attribute, kind: str, within: Sequence[str]) -> None:
    if not _fits(attribute.type, kind):
        wanted = "numbers above 0" if kind == "geometric_mean" else "numbers, dates or times"
        raise ParameterError(
            f"output={kind!r} needs {wanted}, and {attribute.name!r} is {attribute.type.split('(')[0]}."
        )
    if kind != "interval" and attribute.name in within:
        raise ParameterError(f"{attribute.name!r} is in within, so it is published as it is: it has no other output.")


__all__ = ["BOUNDS", "KINDS", "MEASURED", "Publication", "extended", "has_distance", "named_kinds"]
