"""The roles of columns: identifier, quasi-identifier, sensitive, insensitive, entity key or unlisted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from duckanon.engine.sql.relations import Column
from duckanon.errors import RoleError, UnlistedColumnError, did_you_mean
from duckanon.io.parquet_types import lost_type


class Role(StrEnum):
    """The part a column plays."""

    IDENTIFIER = "identifier"
    QUASI_IDENTIFIER = "quasi_identifier"
    SENSITIVE = "sensitive"
    INSENSITIVE = "insensitive"
    ENTITY_KEY = "entity_key"
    UNLISTED = "unlisted"


PUBLISHED = (Role.QUASI_IDENTIFIER, Role.SENSITIVE, Role.INSENSITIVE)
_NESTED = ("STRUCT", "MAP", "UNION", "LIST", "VARIANT")


@dataclass(frozen=True)
class Attribute:
    """A column with its role."""

    name: str
    type: str
    role: Role


@dataclass(frozen=True)
class Roles:
    """The roles of all columns of a source, in the source's order.

    Examples
    --------
    >>> roles = Roles.resolve([Column("age", "INTEGER"), Column("name", "VARCHAR")], quasi_identifiers=["age"])
    >>> [a.name for a in roles.published]
    ['age']
    """

    attributes: tuple[Attribute, ...]
    entity_key: str | None = None
    quasi_order: tuple[str, ...] = ()

    @classmethod
    def resolve(
        cls,
        columns: Sequence[Column],
        *,
        quasi_identifiers: Sequence[str],
        sensitive: Sequence[str] = (),
        identifiers: Sequence[str] = (),
        insensitive: Sequence[str] = (),
        entity_key: str | None = None,
        unlisted: str = "drop",
        nested: bool = False,
    ) -> Roles:
        """Match the given names with the columns. What does not fit is a RoleError.

        ``nested`` allows quasi-identifiers of a nested type: only a release has such.
        """
        if unlisted not in ("drop", "error"):
            raise RoleError(f"unlisted must be 'drop' or 'error'. Got {unlisted!r}.")
        given: dict[Role, Sequence[str]] = {
            Role.QUASI_IDENTIFIER: column_names(quasi_identifiers, "quasi_identifiers"),
            Role.SENSITIVE: column_names(sensitive, "sensitive"),
            Role.IDENTIFIER: column_names(identifiers, "identifiers"),
            Role.INSENSITIVE: column_names(insensitive, "insensitive"),
        }
        if not given[Role.QUASI_IDENTIFIER]:
            raise RoleError("Name at least one quasi-identifier.")
        roles_of: dict[str, Role] = {}
        quasi_order: list[str] = []
        for role, wanted in given.items():
            for name in wanted:
                match = _find(name, columns)
                if match in roles_of:
                    both = f"{roles_of[match]} and {role}" if roles_of[match] != role else f"{role} twice"
                    raise RoleError(f"Column {match!r} is {both}: a column has one role.")
                roles_of[match] = role
                if role is Role.QUASI_IDENTIFIER:
                    quasi_order.append(match)
        if entity_key is not None and not isinstance(entity_key, str):
            raise RoleError(f"entity_key must be the name of a column. Got a {type(entity_key).__name__}.")
        key = _find(entity_key, columns) if entity_key is not None else None
        if key is not None and roles_of.get(key, Role.IDENTIFIER) is not Role.IDENTIFIER:
            raise RoleError(f"The entity key {key!r} is also {roles_of[key]}: it names persons and is never published.")
        attributes = []
        for column in columns:
            default = Role.ENTITY_KEY if column.name == key else Role.UNLISTED
            role = roles_of.get(column.name, default)
            if role is Role.QUASI_IDENTIFIER and _is_nested(column.type) and not nested:
                raise RoleError(
                    f"Column {column.name!r} has a nested type ({_outer(column.type)}): not a quasi-identifier."
                )
            lost = lost_type(column.type) if role in PUBLISHED and not nested else None
            if lost is not None:
                raise RoleError(
                    f"Column {column.name!r} holds values of the type {lost}, which no file would hold as they are: "
                    "cast it to another type, or do not publish it."
                )
            attributes.append(Attribute(column.name, column.type, role))
        roles = cls(tuple(attributes), key, tuple(quasi_order))
        if unlisted == "error" and roles.dropped:
            listed = ", ".join(repr(n) for n in roles.dropped)
            raise UnlistedColumnError(
                f"No role is given for {listed}: give each column one, or allow dropping unlisted columns."
            )
        return roles

    def named(self, role: Role) -> list[str]:
        """Return the names of the columns of a role."""
        return [a.name for a in self.attributes if a.role is role]

    @property
    def quasi_identifiers(self) -> list[Attribute]:
        """The quasi-identifiers in the order in which the user named them."""
        by_name = {a.name: a for a in self.attributes}
        return [by_name[n] for n in self.quasi_order]

    @property
    def published(self) -> list[Attribute]:
        """The columns of a release, in the source's order."""
        return [a for a in self.attributes if a.role in PUBLISHED]

    @property
    def dropped(self) -> list[str]:
        """The columns without a role."""
        return self.named(Role.UNLISTED)

    @property
    def hidden(self) -> list[str]:
        """The columns that are never published: identifiers, the entity key, and those without a role."""
        key = [self.entity_key] if self.entity_key is not None else []
        return list(dict.fromkeys([*self.named(Role.IDENTIFIER), *key, *self.dropped]))

    def to_dict(self) -> dict[str, object]:
        """Return names by role."""
        return {
            "quasi_identifiers": list(self.quasi_order),
            "sensitive": self.named(Role.SENSITIVE),
            "insensitive": self.named(Role.INSENSITIVE),
            "identifiers": self.named(Role.IDENTIFIER),
            "entity_key": self.entity_key,
            "dropped": self.dropped,
        }


def column_names(value: Sequence[str], argument: str) -> list[str]:
    """Return a list of column names; anything else is a RoleError that names the argument."""
    if isinstance(value, str):
        raise RoleError(f"{argument} must be a list of column names. Got the text {value!r}: write [{value!r}].")
    if not isinstance(value, Iterable):
        raise RoleError(f"{argument} must be a list of column names. Got a {type(value).__name__}.")
    names = list(value)
    for name in names:
        if not isinstance(name, str):
            raise RoleError(f"{argument} must be a list of column names. Got a {type(name).__name__} in it.")
    return names


def _find(name: str, columns: Sequence[Column]) -> str:
    names = [c.name for c in columns]
    if name in names:
        return name
    for candidate in names:
        if candidate.lower() == name.lower():
            return candidate
    # The other names are not listed: those of a CSV file without a header are cells.
    raise RoleError(f"There is no column {name!r} among the {len(names)} of the source.{did_you_mean(name, names)}")


def _is_nested(type_name: str) -> bool:
    return type_name.endswith("]") or type_name.upper().startswith(_NESTED)


def _outer(type_name: str) -> str:
    """Return the name of a nested type without what it holds: the members of an ENUM inside are data."""
    return "list" if type_name.endswith("]") else type_name.split("(", 1)[0]
