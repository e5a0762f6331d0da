"""Rules: ways to make the labels of every value of a column inside the database."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, InvalidOperation
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from sqlglot import exp

from duckanon.engine.sql.axes import present
from duckanon.engine.sql.relations import TableName, col, named, number, subquery, table
from duckanon.errors import HierarchyError

if TYPE_CHECKING:
    from duckanon.engine.base import Engine

Kind = Literal["number", "date", "category"]
Family = Literal["integer", "decimal", "float", "date", "timestamp", "text", "other"]

_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "INT", "BIGINT", "HUGEINT"}
_INTEGERS |= {f"U{name}" for name in _INTEGERS}
_FLOATS = {"FLOAT", "REAL", "DOUBLE"}
_EVERY_DIGIT = Context(prec=1000, Emin=-99_999, Emax=99_999)
"""Bounds have as many digits as their columns, and the usual 28 would round them."""
_ZONED = {"TIMESTAMPTZ", "TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS"}


@dataclass(frozen=True)
class ColumnType:
    """A column's type: its name without the members of an ENUM, which are data, and the family that rules look at."""

    name: str
    family: Family
    scale: int = 0
    zoned: bool = False

    @classmethod
    @lru_cache(maxsize=256)
    def parse(cls, type_name: str) -> ColumnType:
        """Return the type that the database calls ``type_name``.

        Examples
        --------
        >>> ColumnType.parse("DECIMAL(18,3)")
        ColumnType(name='DECIMAL(18,3)', family='decimal', scale=3, zoned=False)
        >>> ColumnType.parse("ENUM('secret')").name
        'ENUM'
        """
        full = type_name.strip().upper()
        base = re.split(r"[(\[]", full, maxsplit=1)[0].strip()
        if full.endswith("]"):
            return cls("list", "other")
        if base in {"DECIMAL", "NUMERIC"}:
            digits = re.findall(r"\d+", full)
            return cls(full, "decimal", scale=int(digits[1]) if len(digits) > 1 else 3)
        if base in _INTEGERS:
            return cls(base, "integer")
        if base in _FLOATS:
            return cls(base, "float")
        if base == "DATE":
            return cls(base, "date")
        if base.startswith(("TIMESTAMP", "DATETIME")):
            return cls(base, "timestamp", zoned=base in _ZONED)
        return cls(base, "text" if base == "VARCHAR" else "other")

    @property
    def kind(self) -> Kind:
        """Whether distances between values are those of numbers or dates, or mean nothing."""
        if self.family in {"integer", "decimal", "float"}:
            return "number"
        return "date" if self.family in {"date", "timestamp"} else "category"


def limits(kind: ColumnType) -> tuple[int, int]:
    """Return the smallest and largest value of a type of integers or decimals, in units of its last decimal place.

    Examples
    --------
    >>> limits(ColumnType.parse("UTINYINT")), limits(ColumnType.parse("DECIMAL(4,2)"))
    ((0, 255), (-9999, 9999))
    """
    if kind.family == "decimal":
        digits = int(re.findall(r"\d+", kind.name)[0]) if "(" in kind.name else 18
        return 1 - 10**digits, 10**digits - 1
    name = kind.name.removeprefix("U")
    bits = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "INT": 32, "BIGINT": 64, "HUGEINT": 128}[name]
    return (0, 2**bits - 1) if kind.name.startswith("U") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


@dataclass(frozen=True)
class Field:
    """A column as rules see it: the table of its distinct values ``values(code, value, text, n)``."""

    engine: Engine
    values: str
    attribute: str
    type: ColumnType

    def present(self, **columns: exp.Expr) -> exp.Select:
        """Return ``code`` and the given expressions of all values that are not NULL."""
        return (
            exp.select(col("code"), *(named(e, name) for name, e in columns.items()))
            .from_(table(self.values))
            .where(present(col("value")))
        )

    def keyed(self, keys: exp.Query, levels: Sequence[exp.Expr], **columns: exp.Expr) -> exp.Select:
        """Return labels that depend on a coarser key than the value only, made once for each key.

        ``keys`` has ``code`` and ``key``. ``levels`` read ``key`` and the ``columns`` that are made of it.
        """
        distinct = exp.select(col("key")).distinct().from_(subquery(keys, "k"))
        if columns:
            more = (named(column, name) for name, column in columns.items())
            distinct = exp.select(col("key"), *more).from_(subquery(distinct, "k"))
        labels = exp.select(col("key"), *numbered(levels)).from_(subquery(distinct, "d"))
        on = exp.EQ(this=col("key", "v"), expression=col("key", "t"))
        return (
            exp.select(col("code", "v"), *(col(f"l{i}", "t") for i in range(1, len(levels) + 1)))
            .from_(subquery(keys.copy(), "v"))
            .join(subquery(labels, "t"), on=on)
        )

    def refuse(self, rule: str, needs: str) -> HierarchyError:
        """Return the error for a rule that does not fit the column's type."""
        return HierarchyError(
            f"The rule {rule!r} does not fit {self.attribute!r}: it needs {needs}, and the column is {self.type.name}."
        )


@dataclass(frozen=True)
class Labelling:
    """A query ``(code, [known,] l1, ..., l_depth)`` that labels values.

    Without ``top`` the levels stop below the top. ``known`` is a column only if the labelling is not ``total``.
    ``nulls`` says that the query has a row for NULL, too. ``scratch`` are tables to drop when it has been used.
    """

    query: exp.Query
    depth: int
    top: str | None = None
    total: bool = True
    nulls: bool = False
    scratch: tuple[TableName, ...] = ()


class Rule(ABC):
    """A recipe for labels. Frozen; made and checked without data, applied when it meets a column."""

    name: ClassVar[str]
    note: ClassVar[str] = ""

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """Return the parameters as they stand in a rule file, JSON types only."""

    @abstractmethod
    def label(self, field: Field) -> Labelling:
        """Return the labels of a column's values."""

    def depth(self) -> int | None:
        """Return the number of levels below the top, or None if it depends on the data."""
        return None


def numbered(levels: Sequence[exp.Expr]) -> list[exp.Expr]:
    """Return the expressions named ``l1``, ``l2``, ..."""
    return [named(e, f"l{i}") for i, e in enumerate(levels, 1)]


def whole(rule: str, parameter: str, value: object, least: int = 1) -> int:
    """Return an integer parameter that is at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise HierarchyError(f"The {parameter!r} parameter of {rule} must be an integer >= {least}.")
    return value


def exact(rule: str, parameter: str, value: object) -> Decimal:
    """Return a number parameter as an exact decimal: 0.1 is one tenth."""
    if not isinstance(value, bool) and isinstance(value, int | float | str | Decimal):
        try:
            result = Decimal(repr(value) if isinstance(value, float) else value)
        except InvalidOperation:
            result = Decimal("NaN")
        if result.is_finite():
            return _EVERY_DIGIT.normalize(result) if result else Decimal(0)
    raise HierarchyError(f"The {parameter!r} parameter of {rule} must be a finite number.")


def sequence(rule: str, parameter: str, value: object) -> list[Any]:
    """Return a parameter that must be a list and not empty."""
    if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__iter__"):
        raise HierarchyError(f"The {parameter!r} parameter of {rule} must be a list.")
    result = list(value)
    if not result:
        raise HierarchyError(f"The {parameter!r} parameter of {rule} must not be empty.")
    return result


def plain(value: Decimal) -> int | float | str:
    """Return a number for a rule file: an integer or float where that is exact, else text."""
    if value == value.to_integral_value():
        return int(value)
    return float(value) if Decimal(repr(float(value))) == value else str(value)


def written(value: Decimal) -> str:
    """Return a number as labels show it.

    Examples
    --------
    >>> written(Decimal("20.50")), written(Decimal("1E+2")), written(Decimal("1E+40"))
    ('20.5', '100', '1e40')
    """
    value = _EVERY_DIGIT.normalize(value)
    exponent = int(value.as_tuple().exponent)
    if not -30 <= exponent <= 20:
        return f"{value.scaleb(-exponent, _EVERY_DIGIT):f}e{exponent}"
    return f"{value:f}" if value else "0"


def floor_div(value: exp.Expr, by: int) -> exp.Expr:
    """Return the integer quotient rounded down, for ``by`` > 0; the database's own rounds towards zero."""
    if by == 1:
        return value
    rest = exp.Mod(this=exp.paren(value.copy()), expression=number(by))
    rest = exp.Mod(this=exp.paren(exp.Add(this=exp.paren(rest), expression=number(by))), expression=number(by))
    difference = exp.paren(exp.Sub(this=exp.paren(value), expression=exp.paren(rest)))
    return exp.paren(exp.IntDiv(this=difference, expression=number(by)))
