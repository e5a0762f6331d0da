"""Rules: ways to make the labels of every value of a column inside the database.

Here are the calendar, masks and prefixes of texts, and trees over sorted values; intervals are in ``intervals``.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Context, Decimal, InvalidOperation
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from sqlglot import exp

from duckanon.engine.sql.axes import present
from duckanon.engine.sql.relations import (
    TableName,
    call,
    cast,
    col,
    is_finite,
    named,
    number,
    quoted_member,
    subquery,
    table,
    text,
    union_all,
)
from duckanon.errors import HierarchyError, did_you_mean

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from duckanon.engine.base import Engine
    from duckanon.hierarchy.table import Hierarchy


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


LEVELS = ("day", "week", "month", "quarter", "year", "decade")
_DEFAULT = ("day", "month", "quarter", "year", "decade")


def day_of(value: exp.Expr, kind: ColumnType) -> exp.Expr:
    """Return the calendar day of a value, in UTC if it has a zone, whatever the zone of the session is."""
    if kind.zoned:
        value = call("timezone", text("UTC"), value)
    return cast(value, "DATE") if kind.family == "timestamp" else value


def _day(field: Field, rule: str) -> exp.Expr:
    if field.type.family not in {"date", "timestamp"}:
        raise field.refuse(rule, "a date or a timestamp")
    return day_of(col("value"), field.type)


def _padded(value: exp.Expr, digits: int) -> exp.Expr:
    return call("format", text(f"{{:0{digits}d}}"), cast(value, "BIGINT"))


def _finite(label: exp.Expr, day: exp.Expr) -> exp.Expr:
    """Infinite dates have no year: they keep a label of their own, which is no person's date."""
    return exp.Case().when(is_finite(day), label).else_(cast(day.copy(), "VARCHAR"))


def _label(level: str, day: exp.Expr) -> exp.Expr:
    year = call("year", day)
    if level == "day":
        parts = [_padded(call(part, day.copy()), 2) for part in ("month", "day")]
        return call("concat", _padded(year, 4), text("-"), parts[0], text("-"), parts[1])
    if level == "week":
        # A week belongs to the year of its Thursday. The functions of the database compute the first day of the year,
        # which fails for the earliest dates.
        since = cast(exp.paren(exp.Sub(this=call("isodow", day), expression=number(4))), "INTEGER")
        thursday = exp.paren(exp.Sub(this=day.copy(), expression=since))
        passed = exp.paren(exp.Sub(this=call("dayofyear", thursday), expression=number(1)))
        week = exp.Add(this=exp.IntDiv(this=passed, expression=number(7)), expression=number(1))
        return call("concat", _padded(call("year", thursday.copy()), 4), text("-W"), _padded(exp.paren(week), 2))
    if level == "month":
        return call("concat", _padded(year, 4), text("-"), _padded(call("month", day.copy()), 2))
    if level == "quarter":
        return call("concat", _padded(year, 4), text("-Q"), cast(call("quarter", day.copy()), "VARCHAR"))
    if level == "year":
        return _padded(year, 4)
    decade = exp.Mul(this=floor_div(cast(year, "BIGINT"), 10), expression=number(10))
    return call("concat", _padded(exp.paren(decade), 4), text("s"))


@dataclass(frozen=True)
class Dates(Rule):
    """Calendar levels that nest: day, month, quarter, year, decade; or day, week."""

    name: ClassVar[str] = "dates"
    levels: tuple[str, ...]

    @classmethod
    def make(cls, levels: object) -> Dates:
        """Check the parameters and return the rule."""
        if levels is None:
            return cls(_DEFAULT)
        names = sequence("dates", "levels", levels)
        for level in names:
            if level not in LEVELS:
                hint = did_you_mean(str(level), LEVELS)
                raise HierarchyError(f"Unknown level {level!r} of dates.{hint} Known: {', '.join(LEVELS)}.")
        positions = [LEVELS.index(level) for level in names]
        if any(a >= b for a, b in pairwise(positions)):
            raise HierarchyError("The 'levels' of dates must go from fine to coarse, each once.")
        if "week" in names and names[-1] != "week":
            after = names[names.index("week") + 1]
            raise HierarchyError(
                f"The levels of dates do not nest: a week can lie in two of {after!r}. "
                "'week' can only be the last level, after 'day' or alone."
            )
        return cls(tuple(names))

    def parameters(self) -> dict[str, Any]:
        return {"levels": list(self.levels)}

    def label(self, field: Field) -> Labelling:
        day = _day(field, self.name)
        # A DATE is a day already: that level would repeat the values.
        levels = [level for level in self.levels if level != "day" or field.type.family == "timestamp"]
        labels = [_finite(_label(level, col("key")), col("key")) for level in levels]
        return Labelling(field.keyed(field.present(key=day), labels), len(labels))


@dataclass(frozen=True)
class Age(Rule):
    """Birth date to age in completed years on a given day, then bands."""

    name: ClassVar[str] = "age"
    reference: date
    bands: tuple[int, ...]

    @classmethod
    def make(cls, reference_date: object, bands: object) -> Age:
        """Check the parameters and return the rule."""
        if isinstance(reference_date, str):
            try:
                reference_date = date.fromisoformat(reference_date)
            except ValueError:
                reference_date = None
        if isinstance(reference_date, datetime):
            reference_date = reference_date.date()
        if not isinstance(reference_date, date):
            raise HierarchyError("The 'reference_date' parameter of age must be a date such as 2024-05-17.")
        widths = [whole("age", "bands", b) for b in sequence("age", "bands", bands)]
        if any(b % a or a == b for a, b in pairwise(widths)):
            raise HierarchyError("Each number of 'bands' of age must be a multiple of the one before it.")
        return cls(reference_date, tuple(widths))

    def parameters(self) -> dict[str, Any]:
        return {"reference_date": self.reference.isoformat(), "bands": list(self.bands)}

    def depth(self) -> int:
        return len(self.bands) + 1

    def label(self, field: Field) -> Labelling:
        day = _day(field, self.name)
        birth = col("key")
        # In years without a 29 February, people born on that day become a year older on 1 March.
        position = exp.Add(
            this=exp.Mul(this=call("month", birth), expression=number(100)), expression=call("day", birth.copy())
        )
        today = self.reference.month * 100 + self.reference.day
        pending = exp.Case().when(exp.GT(this=position, expression=number(today)), number(1)).else_(number(0))
        years = exp.Sub(this=number(self.reference.year), expression=call("year", birth.copy()))
        age = exp.Sub(this=years, expression=pending)
        levels = [self._label(width) for width in (0, *self.bands)]
        return Labelling(field.keyed(field.present(key=day), levels, age=cast(age, "BIGINT")), len(levels))

    @staticmethod
    def _label(width: int) -> exp.Expr:
        age = col("age")
        if width == 0:
            label: exp.Expr = cast(age, "VARCHAR")
        else:
            low = exp.paren(exp.Mul(this=floor_div(age, width), expression=number(width)))
            high = exp.Add(this=low.copy(), expression=number(width))
            label = call("concat", text("["), cast(low, "VARCHAR"), text(", "), cast(high, "VARCHAR"), text(")"))
        unborn = exp.LT(this=age.copy(), expression=number(0))
        return _finite(exp.Case().when(unborn, text("< 0")).else_(label), col("key"))


_LONGEST = 32
"""Longest text that is masked character by character without a given number of levels."""
FURTHEST = 8
"""Most hierarchies in a chain of ``then``; more are a loop of names."""
_followed: ContextVar[int] = ContextVar("followed", default=0)


@dataclass(frozen=True)
class Suppress(Rule):
    """Nothing between the value and the top."""

    name: ClassVar[str] = "suppress"

    def parameters(self) -> dict[str, Any]:
        return {}

    def depth(self) -> int:
        return 0

    def label(self, field: Field) -> Labelling:
        return Labelling(field.present(), 0)


@dataclass(frozen=True)
class Mask(Rule):
    """One character more at each level, from the right or the left, or the given positions."""

    name: ClassVar[str] = "mask"
    side: str = "right"
    positions: tuple[frozenset[int], ...] | None = None
    character: str = "*"
    levels: int | None = None

    @classmethod
    def make(cls, side: object, positions: object, character: object, levels: object) -> Mask:
        """Check the parameters and return the rule."""
        if side not in {"right", "left"}:
            raise HierarchyError("The 'side' parameter of mask must be 'right' or 'left'.")
        if not isinstance(character, str) or len(character) != 1:
            raise HierarchyError("The 'character' parameter of mask must be one character.")
        count = None if levels is None else whole("mask", "levels", levels)
        if positions is None:
            return cls(str(side), None, character, count)
        if count is not None:
            raise HierarchyError("A mask takes either 'positions' or 'levels', not both.")
        sets = [
            frozenset(whole("mask", "positions", p) for p in sequence("mask", "positions", level))
            for level in sequence("mask", "positions", positions)
        ]
        if any(not a < b for a, b in pairwise(sets)):
            raise HierarchyError(
                "The levels of mask do not nest: each level of 'positions' must hold all positions of the one before "
                "and at least one more."
            )
        return cls(str(side), tuple(sets), character)

    def parameters(self) -> dict[str, Any]:
        if self.positions is not None:
            return {"positions": [sorted(level) for level in self.positions], "character": self.character}
        parameters: dict[str, Any] = {"side": self.side, "character": self.character}
        return parameters if self.levels is None else {**parameters, "levels": self.levels}

    def depth(self) -> int | None:
        return self.levels if self.positions is None else len(self.positions)

    def label(self, field: Field) -> Labelling:
        if self.positions is not None:
            labels = [self._positions(level) for level in self.positions]
        else:
            depth = self.levels if self.levels is not None else self._depth(field)
            labels = [self._side(masked) for masked in range(1, depth + 1)]
        source = field.present(text=col("text"), size=call("length", col("text")))
        return Labelling(exp.select(col("code"), *numbered(labels)).from_(subquery(source, "v")), len(labels))

    def _depth(self, field: Field) -> int:
        """Return one level less than the longest text has characters: the top masks the last one."""
        longest = exp.Max(this=call("length", col("text")))
        (size,) = field.engine.row(exp.select(longest).from_(table(field.values)))
        if size is not None and size > _LONGEST:
            raise HierarchyError(
                f"The longest value of {field.attribute!r} has {size} characters: give the 'levels' of the mask."
            )
        return max(0, (size or 0) - 1)

    def _stars(self, count: exp.Expr) -> exp.Expr:
        return call("repeat", text(self.character), count)

    def _side(self, masked: int) -> exp.Expr:
        size, shown = col("size"), exp.Sub(this=col("size"), expression=number(masked))
        if self.side == "right":
            label = call("concat", call("left", col("text"), shown), self._stars(number(masked)))
        else:
            label = call("concat", self._stars(number(masked)), call("right", col("text"), shown))
        short = exp.LTE(this=size, expression=number(masked))
        return exp.Case().when(short, self._stars(call("greatest", size.copy(), number(1)))).else_(label)

    def _positions(self, masked: frozenset[int]) -> exp.Expr:
        parts: list[exp.Expr] = []
        at, last = 1, max(masked)
        while at <= last:
            stop, inside = at, at in masked
            while stop < last and (stop + 1 in masked) == inside:
                stop += 1
            if inside:
                reach = exp.Sub(this=call("least", col("size"), number(stop)), expression=number(at - 1))
                parts.append(self._stars(call("greatest", reach, number(0))))
            else:
                parts.append(call("substr", col("text"), number(at), number(stop - at + 1)))
            at = stop + 1
        parts.append(call("substr", col("text"), number(last + 1)))
        return _filled(call("concat", *parts), self.character)


def _filled(label: exp.Expr, character: str) -> exp.Expr:
    """Give the empty text a visible label that stays the same on every further level."""
    return call("coalesce", call("nullif", label, text("")), text(character))


@dataclass(frozen=True)
class Prefix(Rule):
    """The first characters of a code, fewer at each level, and then perhaps another hierarchy of the last prefix."""

    name: ClassVar[str] = "prefix"
    lengths: tuple[int, ...]
    then: Hierarchy | Mapping[str, Any] | str | Path | None = None
    base: Path | None = None

    @classmethod
    def make(cls, lengths: object, then: object, base: Path | None) -> Prefix:
        """Check the parameters and return the rule."""
        from duckanon.hierarchy.table import Hierarchy

        sizes = [whole("prefix", "lengths", n) for n in sequence("prefix", "lengths", lengths)]
        if any(a <= b for a, b in pairwise(sizes)):
            raise HierarchyError("The 'lengths' of prefix must become smaller, each once.")
        if then is not None and not isinstance(then, Hierarchy | Mapping | str | Path):
            raise HierarchyError("The 'then' parameter of prefix must be a hierarchy, its name, a path or a rule.")
        if isinstance(then, Mapping):
            then = Hierarchy.from_rule(then, base=base)
        return cls(tuple(sizes), then, base)

    def parameters(self) -> dict[str, Any]:
        from duckanon.hierarchy.table import Hierarchy

        parameters: dict[str, Any] = {"lengths": list(self.lengths)}
        if isinstance(self.then, Hierarchy):
            parameters["then"] = self.then.to_rule()
        elif self.then is not None:
            parameters["then"] = str(self.then)
        return parameters

    def depth(self) -> int | None:
        return len(self.lengths) if self.then is None else None

    def label(self, field: Field) -> Labelling:
        prefixes = self._prefixes()
        if self.then is None:
            query = exp.select(col("code"), *numbered(prefixes)).from_(subquery(field.present(text=col("text")), "v"))
            return Labelling(query, len(prefixes))
        return self._continued(field, prefixes)

    def _prefixes(self, alias: str | None = None) -> list[exp.Expr]:
        return [_filled(call("left", col("text", alias), number(size)), "*") for size in self.lengths]

    def _continued(self, field: Field, prefixes: list[exp.Expr]) -> Labelling:
        from duckanon.hierarchy.store import resolve
        from duckanon.hierarchy.table import bind

        engine = field.engine
        follow = resolve(self.then, engine, self.base)
        roots = engine.fresh("prefixes")
        last = prefixes[-1].copy()
        grouped = exp.select(named(last, "value"), named(exp.Sum(this=col("n")), "n")).from_(table(field.values))
        grouped = grouped.where(present(col("value"))).group_by(number(1))
        rank = exp.Window(this=exp.RowNumber(), order=exp.Order(expressions=[exp.Ordered(this=col("value"))]))
        engine.create(
            roots,
            exp.select(named(rank, "code"), col("value"), named(col("value"), "text"), col("n")).from_(
                subquery(grouped, "g")
            ),
        )
        if _followed.get() >= FURTHEST:
            raise HierarchyError(f"The hierarchy of {field.attribute!r} has a loop: its 'then' comes back to itself.")
        step = _followed.set(_followed.get() + 1)
        try:
            above = bind(follow, engine, roots, field.attribute, "VARCHAR", "top")
        finally:
            _followed.reset(step)
        levels = [*self._prefixes("v"), *(col(f"l{i}", "t") for i in range(1, above.height + 1))]
        source = field.present(text=col("text"), root=prefixes[-1].copy())
        query = (
            exp.select(col("code", "v"), col("known", "t"), *numbered(levels))
            .from_(subquery(source, "v"))
            .join(table(roots, "r"), on=exp.EQ(this=col("root", "v"), expression=col("value", "r")))
            .join(table(above.tree, "t"), on=exp.EQ(this=col("code", "r"), expression=col("code", "t")))
        )
        return Labelling(query, len(levels), top=above.top, total=False, scratch=(roots, above.tree, above.leaves))


_LISTED = 16
"""Up to this many values, the label of a group lists them. Larger groups of neighbours are named by both ends."""


def random_tree(size: int, seed: int, ordered: bool = True, max_children: int | None = None) -> list[NDArray[np.int64]]:
    """Return a random tree over ``0 .. size - 1`` with all leaves at one depth.

    The full set is split into a random ordered partition, its parts again, until a part is a single value; there the
    tree is cut: the elements of all parts of the level above become leaves.

    Parameters
    ----------
    size : int
    seed : int
    ordered : bool
        Whether parts hold neighbours only; otherwise the values are shuffled first.
    max_children : int, optional
        Most parts of one split; by default any number up to the size of the set. Their number is drawn uniformly from
        2 .. ``max_children``, the cut points uniformly without replacement.

    Returns
    -------
    list of numpy.ndarray
        For each level between the values and the root, finest first, the number of each value's group.

    References
    ----------
    "Information loss metrics versus utility", section 3.3.2 and Figure 3.3.

    Examples
    --------
    >>> [level.tolist() for level in random_tree(6, seed=5, max_children=2)]
    [[0, 0, 0, 0, 1, 1]]
    """
    import numpy as np

    rng = np.random.Generator(np.random.PCG64(seed))
    place = np.arange(size) if ordered else rng.permutation(size)
    bounds = np.array([0, size], dtype=np.int64)
    levels: list[NDArray[np.int64]] = []
    while size > 1:
        pieces = [bounds[:1]]
        for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            length = high - low
            most = length if max_children is None else min(length, max_children)
            cuts = rng.choice(length - 1, size=int(rng.integers(2, most + 1)) - 1, replace=False)
            pieces += [np.sort(cuts) + low + 1, np.array([high], dtype=np.int64)]
        bounds = np.concatenate(pieces)
        if np.diff(bounds).min() == 1:
            break
        groups = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
        levels.insert(0, groups[place])
    return levels


@dataclass(frozen=True)
class Order(Rule):
    """Neighbours joined by a fixed fan-out until one group is left."""

    name: ClassVar[str] = "order"
    fanout: int

    @classmethod
    def make(cls, fanout: object) -> Order:
        """Check the parameters and return the rule."""
        return cls(whole("order", "fanout", fanout, least=2))

    def parameters(self) -> dict[str, Any]:
        return {"fanout": self.fanout}

    def label(self, field: Field) -> Labelling:
        groups, size = _placed(field)
        spans = []
        span = self.fanout
        while span < size:
            spans.append(span)
            span *= self.fanout
        numbers = [exp.IntDiv(this=col("place"), expression=number(span)) for span in spans]
        return _labelled(field, groups, None, numbers, neighbours=True)


@dataclass(frozen=True)
class Random(Rule):
    """A random tree over the column's distinct values, see ``random_tree``."""

    name: ClassVar[str] = "random"
    note: ClassVar[str] = " (random, for experiments)"
    seed: int
    ordered: bool = True
    max_children: int | None = None

    @classmethod
    def make(cls, seed: object, ordered: object, max_children: object) -> Random:
        """Check the parameters and return the rule."""
        if not isinstance(ordered, bool):
            raise HierarchyError("The 'ordered' parameter of random must be true or false.")
        most = None if max_children is None else whole("random", "max_children", max_children, least=2)
        return cls(whole("random", "seed", seed, least=0), ordered, most)

    def parameters(self) -> dict[str, Any]:
        parameters: dict[str, Any] = {"seed": self.seed, "ordered": self.ordered}
        return parameters if self.max_children is None else {**parameters, "max_children": self.max_children}

    def label(self, field: Field) -> Labelling:
        import numpy as np
        import pyarrow as pa

        groups, size = _placed(field)
        levels = random_tree(size, self.seed, self.ordered, self.max_children)
        if not levels:
            return _labelled(field, groups, None, [], neighbours=True)
        names = [f"g{i}" for i in range(1, len(levels) + 1)]
        tree, incoming = field.engine.fresh("random"), field.engine.fresh("incoming")
        field.engine.register(incoming, pa.table([np.arange(size), *levels], names=["at", *names]))
        field.engine.create(tree, exp.select("*").from_(table(incoming)))
        field.engine.unregister(incoming)
        return _labelled(field, groups, tree, [col(name, "r") for name in names], neighbours=self.ordered)


def _placed(field: Field) -> tuple[str, int]:
    """Create ``(code, text, place)`` of all values that are not NULL, ``place`` from 0 in the order of the values."""
    name = field.engine.fresh("placed")
    rank = exp.Window(this=exp.RowNumber(), order=exp.Order(expressions=[exp.Ordered(this=col("code"))]))
    place = exp.Sub(this=rank, expression=number(1))
    field.engine.create(name, field.present(text=col("text"), place=place))
    (size,) = field.engine.row(exp.select(exp.Count(this=exp.Star())).from_(table(name)))
    return name, int(size)


def _labelled(
    field: Field, placed: str, tree: str | None, numbers: Sequence[exp.Expr], *, neighbours: bool
) -> Labelling:
    """Return the labelling by groups, whose numbers come from ``place`` or from a joined tree."""
    source = exp.select(col("code", "p"), col("text", "p"), col("place", "p")).from_(table(placed, "p"))
    if tree is not None:
        source = source.join(table(tree, "r"), on=exp.EQ(this=col("at", "r"), expression=col("place", "p")))
    source = source.select(*(named(e, f"g{i}") for i, e in enumerate(numbers, 1)))
    grouped = field.engine.fresh("grouped")
    field.engine.create(grouped, source)
    scratch = [placed, grouped, *([tree] if tree is not None else [])]
    query = exp.select(col("code", "v")).from_(table(grouped, "v"))
    for level in range(1, len(numbers) + 1):
        group, alias, names = f"g{level}", f"t{level}", field.engine.fresh("names")
        field.engine.create(names, _names(grouped, group, neighbours))
        scratch.append(names)
        on = exp.EQ(this=col("g", alias), expression=col(group, "v"))
        query = query.select(named(col("label", alias), f"l{level}")).join(table(names, alias), on=on)
    return Labelling(query, len(numbers), scratch=tuple(scratch))


def _names(grouped: str, group: str, neighbours: bool) -> exp.Query:
    """Return ``(g, label)``: what groups hold, as ``{a, b}``, or as ``[a, z]`` where many neighbours do."""
    few = exp.LTE(this=exp.Count(this=exp.Star()), expression=number(_LISTED))
    parts: list[tuple[exp.Expr, exp.Expr | None]] = [(_listed(), few if neighbours else None)]
    parts += [(_ends(), exp.Not(this=exp.paren(few.copy())))] if neighbours else []
    named_groups: list[exp.Query] = []
    for label, having in parts:
        query = exp.select(named(col(group), "g"), named(label, "label")).from_(table(grouped)).group_by(col(group))
        named_groups.append(query if having is None else query.having(having))
    return union_all(named_groups)


def _listed() -> exp.Expr:
    order = exp.Order(this=text(", "), expressions=[col("place")])
    return call("concat", text("{"), call("string_agg", quoted_member(col("text")), order), text("}"))


def _ends() -> exp.Expr:
    first, last = (quoted_member(pick(this=col("text"), expression=col("place"))) for pick in (exp.ArgMin, exp.ArgMax))
    return call("concat", text("["), first, text(", "), last, text("]"))
