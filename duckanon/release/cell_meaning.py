"""What published cells stand for, read from the cells themselves and from the hierarchies of their columns.

Nothing here knows how rows were recoded. A cell is an interval, a set, a label of a hierarchy or a value; what it
stands for is a range of values, or of places in an order of the values, and where it is no range, a list of them. What
is published of a class as a whole, a mean or a share of each value, is compared with the values of its rows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, InvalidOperation, localcontext
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.engine.sql.axes import NUMBERS, choose, equal, is_null, present
from duckanon.engine.sql.relations import (
    call,
    cast,
    col,
    data_type,
    epoch_microseconds,
    epoch_seconds,
    in_utc,
    is_finite,
    named,
    number,
    same,
    subquery,
    table,
    text,
    union_all,
)
from duckanon.hierarchy.rules import ColumnType

if TYPE_CHECKING:
    from duckanon.engine.base import Engine


BY_CLASS = ("midpoint", "mean", "median", "geometric_mean", "mode", "medoid", "proportional")
"""Outputs that depend on a whole class: one row cannot show whether they are right."""
_BETWEEN = re.compile(r"\[(.+), (.+)([\])])", re.DOTALL)
_SIDE = re.compile(r"(<=|<|>=) (.+)", re.DOTALL)
_YEAR = r"(\d{4,}|-\d{3,})"
_PART = r"(\"(?:[^\"]|\"\")*\"|[^,{}\"]+)"
_TEXTS = re.compile(rf"\[{_PART}, {_PART}\]")
_TEXT_SIDE = re.compile(rf"(<=|>=) {_PART}")
_DAY = re.compile(_YEAR + r"-(\d\d)-(\d\d)")
_CALENDAR = re.compile(_YEAR + r"(?:-(\d\d)|-Q([1-4])|-W(\d\d)|(s))?")
_MEMBER = re.compile(r'"((?:[^"]|"")*)"|([^,{}"]+)')
_CONTEXT = Context(prec=400)
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True)
class Shown:
    """A quasi-identifier, and how it is published.

    ``labelled_values`` gives the query ``(place, value, text, known, l1, ...)`` of its values with their labels,
    ``place`` being their order; ``height`` counts the levels, of which ``top`` is the last label. With ``by_tree``,
    labels mean what the hierarchy says, even if they look like intervals.
    """

    name: str
    type: str
    kind: str
    labelled_values: Callable[[], exp.Query]
    height: int
    top: str
    by_tree: bool

    @property
    def family(self) -> str:
        """The family of its type; "other" where nothing can be computed with values."""
        kind = ColumnType.parse(self.type)
        return "time" if kind.name == "TIME" else "other" if kind.kind == "category" else kind.family


@dataclass(frozen=True)
class Meaning:
    """What cells stand for: those from ``lo`` to ``hi``, and NULL where ``nul`` is true.

    ``cells`` is a table ``(cell, [cell_b,] lo, hi, nul, below, odd)``; where ``below``, ``hi`` itself is left out. What
    is between them is the value itself (``at`` is an expression of the column ``value``), or its place in
    ``places(value, at)``. ``odd`` cells stand for the values that ``covers(cell, value)`` lists.
    """

    cells: str
    at: exp.Expr | None
    places: str | None = None
    covers: str | None = None

    @property
    def tables(self) -> list[str]:
        """The private tables."""
        return [t for t in (self.cells, self.places, self.covers) if t is not None]


def meaning(engine: Engine, shown: Shown, raw: str, cells: exp.Query) -> Meaning:
    """Return what the distinct ``cells(cell, [cell_b])`` of a column of the type ``raw`` stand for."""
    types = [c.type for c in engine.columns(cells)]
    if shown.kind == "bounds":
        return _typed(engine, shown, cells, col("cell"), col("cell_b"), True)
    if shown.kind == "struct":
        ends = [call("struct_extract", col("cell"), text(end)) for end in ("lo", "hi")]
        return _typed(engine, shown, cells, ends[0], ends[1], True)
    if types[0] == raw and raw != "VARCHAR":
        return _typed(engine, shown, cells, col("cell"), col("cell"), False)
    return _Reader(engine, shown).read(cells)


def _typed(engine: Engine, shown: Shown, cells: exp.Query, low: exp.Expr, high: exp.Expr, open_ended: bool) -> Meaning:
    """Read cells that are bounds of the column's own type, or values."""
    name, nothing = engine.fresh("cells"), exp.and_(is_null(low.copy()), is_null(high.copy()))
    ends = [low, high]
    if open_ended:
        least, most = extremes(shown.type)
        ends = [exp.func("COALESCE", e, cast(text(x), shown.type)) for e, x in zip(ends, (least, most), strict=True)]
    query = exp.select("*", named(ends[0], "lo"), named(ends[1], "hi"), named(nothing, "nul"))
    query = query.select(named(exp.false(), "below"))
    engine.create(name, query.select(named(exp.false(), "odd")).from_(subquery(cells, "c")))
    return Meaning(name, col("value"))


def extremes(type_name: str) -> tuple[str, str]:
    """Return texts of the smallest and the largest value of a type with distances.

    Examples
    --------
    >>> extremes("UTINYINT"), extremes("DECIMAL(4,1)"), extremes("DOUBLE")
    (('0', '255'), ('-999.9', '999.9'), ('-inf', 'nan'))
    """
    kind = ColumnType.parse(type_name)
    if kind.family in ("integer", "decimal"):
        least, most = _limits(kind)
        return f"{least:f}", f"{most:f}"
    if kind.family == "float":
        return "-inf", "nan"
    return ("00:00:00", "24:00:00") if kind.name == "TIME" else ("-infinity", "infinity")


def _limits(kind: ColumnType) -> tuple[Decimal, Decimal]:
    if kind.family == "integer":
        bits = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "INT": 32, "BIGINT": 64}[kind.name.removeprefix("U")]
        if kind.name.startswith("U"):
            return Decimal(0), Decimal(2**bits - 1)
        return Decimal(-(2 ** (bits - 1))), Decimal(2 ** (bits - 1) - 1)
    found = _DIGITS.findall(kind.name)
    with localcontext(_CONTEXT):
        most = (Decimal(10) ** int(found[0] if found else 18) - 1).scaleb(-kind.scale)
        return -most, most


# Intervals


@dataclass(frozen=True)
class _Span:
    """The ends of an interval as texts; ``below`` says that the upper one does not belong to it."""

    low: str | None
    high: str | None
    below: bool = False


def _span(label: str, family: str) -> _Span | None:
    """Return the ends of an interval; None for a label that is none.

    Examples
    --------
    >>> _span("[15, 20)", "integer"), _span("<= 7", "integer"), _span("nan", "float")
    (_Span(low='15', high='20', below=True), _Span(low=None, high='7', below=False), None)
    >>> _span("1980-Q1", "date")
    _Span(low='1980-01-01', high='1980-04-01', below=True)
    """
    both = _BETWEEN.fullmatch(label)
    if both is not None:
        return _Span(both[1], both[2], both[3] == ")")
    side = _SIDE.fullmatch(label)
    if side is not None:
        return _Span(side[2], None) if side[1] == ">=" else _Span(None, side[2], side[1] == "<")
    if family == "timestamp" and (day := _DAY.fullmatch(label)) is not None:
        return _days(int(day[1]), lambda year: date(year, int(day[2]), int(day[3])), lambda d: d + timedelta(days=1))
    return _calendar(label) if family in ("date", "timestamp") else None


def _calendar(label: str) -> _Span | None:
    found = _CALENDAR.fullmatch(label)
    if found is None:
        return None
    year, month, quarter, week, decade = found.groups()
    if week:
        return _days(int(year), lambda y: date.fromisocalendar(y, int(week), 1), lambda d: d + timedelta(days=7))
    at = int(month) if month else 3 * int(quarter) - 2 if quarter else 1
    months = 1 if month else 3 if quarter else 120 if decade else 12
    after = at - 1 + months
    return _days(int(year), lambda y: date(y, at, 1), lambda d: date(d.year + after // 12, after % 12 + 1, 1))


def _days(year: int, first: Callable[[int], date], after: Callable[[date], date]) -> _Span | None:
    """Return the days from the first one of a period to that after its last one, in any year.

    Python's dates have the years 1 to 9999, and the calendar is the same again after 400 of them, weekdays included.

    Examples
    --------
    >>> _days(-43, lambda year: date(year, 12, 31), lambda day: day + timedelta(days=1))
    _Span(low='0044-12-31 (BC)', high='0043-01-01 (BC)', below=True)
    """
    moved = (year - 2000) // 400 * 400
    try:
        start = first(year - moved)
        ends = [_dated(day.year + moved, day) for day in (start, after(start))]
    except ValueError:
        return None
    return _Span(ends[0], ends[1], True)


def _dated(year: int, day: date) -> str:
    """Return a day of a year as the database writes it: the year before the first is 1 BC."""
    return f"{year:04d}-{day:%m-%d}" if year > 0 else f"{1 - year:04d}-{day:%m-%d} (BC)"


def _exact(span: _Span, kind: ColumnType) -> tuple[str, str] | None:
    """Return the smallest and the largest number of a type that lie in an interval, as texts.

    Examples
    --------
    >>> _exact(_Span("15", "20", True), ColumnType.parse("INTEGER"))
    ('15', '19')
    >>> _exact(_Span("0.25", None), ColumnType.parse("DECIMAL(3,1)"))
    ('0.3', '99.9')
    """
    with localcontext(_CONTEXT):
        least, most = _limits(kind)
        unit = Decimal(1).scaleb(-kind.scale)
        try:
            low = least if span.low is None else Decimal(span.low)
            high = most if span.high is None else Decimal(span.high)
        except InvalidOperation:
            return None
        if not low.is_finite() or not high.is_finite():
            return None
        first = (low / unit).to_integral_value(ROUND_CEILING)
        last = (high / unit).to_integral_value(ROUND_CEILING) - 1
        if not span.below or span.high is None:
            last = (high / unit).to_integral_value(ROUND_FLOOR)
        first, last = max(first * unit, least), min(last * unit, most)
        # Nothing of the type lies in it.
        return (f"{first:f}", f"{last:f}") if first <= last else (f"{most:f}", f"{least:f}")


def _double(span: _Span) -> tuple[float, float] | None:
    try:
        low = -math.inf if span.low is None else float(span.low)
        high = math.nan if span.high is None else float(span.high)
    except ValueError:
        return None
    return low, math.nextafter(high, -math.inf) if span.below else high


_SPANS = {"cell": "string", "low": "string", "high": "string", "below": "bool_"}
_DOUBLES = {"cell": "string", "lo": "float64", "hi": "float64"}


@dataclass(frozen=True)
class _Reader:
    """Reads cells that are texts."""

    engine: Engine
    shown: Shown

    def read(self, cells: exp.Query) -> Meaning:
        """Return what the texts of a column stand for."""
        engine, family = self.engine, self.shown.family
        labels = engine.arrow(exp.select(named(cast(col("cell"), "VARCHAR"), "cell")).from_(subquery(cells, "c")))
        every = labels.column("cell").to_pylist()
        if family == "other":
            return self._by_place(every)
        return self._by_value(every)

    def _is_whole(self, label: str) -> bool:
        """Say whether a label stands for every value. In a set it stands for values that the hierarchy lacks."""
        return label == self.shown.top or self.shown.top in members_of(label)

    def _labels(self, labels: Sequence[str | None]) -> str:
        rows: list[tuple[Any, ...]] = [(label,) for label in labels]
        return self._table(rows, {"cell": "string"})

    # Values with distances

    def _by_value(self, labels: list[str | None]) -> Meaning:
        engine, known = self.engine, [label for label in labels if label is not None]
        inside = [label for label in known if not self._is_whole(label)]
        created, covers = engine.fresh("cells"), None
        first: Sequence[str] = inside
        looked = None
        parts: list[exp.Query] = []
        if self.shown.by_tree and inside:
            looked = self._listed(inside)
            found = self._ranges(looked)
            parts.append(exp.select("*").from_(table(found)))
            first = self._missing(inside, found)
        if first:
            spans = self._spans(first)
            parts.append(exp.select("*").from_(table(spans)))
            left = self._missing(first, spans)
            if left and not self.shown.by_tree:
                looked = self._listed(left)
                parts.append(exp.select("*").from_(table(self._ranges(looked))))
        parts += self._others(labels)
        engine.create(created, union_all(parts))
        if looked is not None:
            (several,) = engine.row(exp.select(call("count_if", col("odd"))).from_(table(created)))
            covers = looked if several else None
        at: exp.Expr = col("value")
        if self.shown.type in ("FLOAT", "REAL"):
            at = cast(cast(at, "VARCHAR"), "DOUBLE")
        return Meaning(created, at, covers=covers)

    @property
    def _kind(self) -> str:
        return "DOUBLE" if self.shown.family == "float" else self.shown.type

    def _row(
        self, cell: exp.Expr, low: exp.Expr, high: exp.Expr, nul: exp.Expr, odd: exp.Expr, below: exp.Expr | None = None
    ) -> exp.Select:
        ends = [named(cast(low, self._kind), "lo"), named(cast(high, self._kind), "hi")]
        return exp.select(named(cast(cell, "VARCHAR"), "cell"), *ends, named(nul, "nul")).select(
            named(exp.false() if below is None else below, "below"), named(odd, "odd")
        )

    def _others(self, labels: Sequence[str | None]) -> list[exp.Query]:
        """Return the top label, which stands for every value, and NULL, which stands for itself."""
        least, most = (text(e) for e in extremes(self.shown.type))
        parts: list[exp.Query] = []
        whole = [label for label in labels if label is not None and self._is_whole(label)]
        if whole:
            row = self._row(col("cell"), least, most, exp.true(), exp.false())
            parts.append(row.from_(table(self._labels(whole))))
        if None in labels or not parts:
            parts.append(self._row(exp.null(), most.copy(), least.copy(), exp.true(), exp.false()))
        return parts

    def _spans(self, labels: Sequence[str]) -> str:
        """Create the cells of intervals, and of values by themselves."""
        family, kind = self.shown.family, ColumnType.parse(self.shown.type)
        rows: list[tuple[Any, ...]] = []
        for label in labels:
            span = _span(label, family) or _Span(label, label)
            if family == "float":
                ends = (math.nan, math.nan) if label == "nan" else _double(span)
                rows += [(label, *ends)] if ends is not None else []
            elif family in ("integer", "decimal"):
                exact = _exact(span, kind)
                rows += [(label, *exact, False)] if exact is not None else []
            else:
                rows.append((label, span.low, span.high, span.below))
        created = self.engine.fresh("spans")
        if family == "float":
            query = self._row(col("cell"), col("lo"), col("hi"), exp.false(), exp.false())
            self.engine.create(created, query.from_(table(self._table(rows, _DOUBLES))))
            return created
        least, most = extremes(self.shown.type)
        low, high = (self._end(c, x) for c, x in (("low", least), ("high", most)))
        read = exp.select(col("cell"), named(low, "lo"), named(high, "hi"), col("below"))
        read = read.from_(table(self._table(rows, _SPANS)))
        below: exp.Expr = col("below")
        if family in ("date", "timestamp"):
            below = exp.and_(below, is_finite(in_utc(col("hi"), self._kind)))
        both = exp.and_(present(col("lo")), present(col("hi")))
        query = self._row(col("cell"), col("lo"), col("hi"), exp.false(), exp.false(), below)
        self.engine.create(created, query.from_(subquery(read, "r")).where(both))
        return created

    def _end(self, name: str, extreme: str) -> exp.Expr:
        own = exp.TryCast(this=col(name), to=data_type(self._kind))
        return choose((is_null(col(name)), cast(text(extreme), self._kind)), otherwise=own)

    def _missing(self, labels: Sequence[str], found: str) -> list[str]:
        have = {cell for (cell,) in self.engine.rows(exp.select(col("cell")).from_(table(found)))}
        return [label for label in labels if label not in have]

    def _ranges(self, listed: str) -> str:
        """Create the cells of listed values: a range where no other value lies between them."""
        ranked = exp.select(col("value"), named(_rank(col("value")), "rank")).distinct()
        ranked = exp.select("*").from_(subquery(ranked.from_(subquery(self.shown.labelled_values(), "k")), "k"))
        on = same(col("value", "l"), col("value", "k"))
        every = exp.select(col("cell", "l"), col("value", "l"), col("rank", "k")).from_(table(listed, "l"))
        every = every.join(subquery(ranked, "k"), on=on)
        own = choose((present(col("value")), col("rank")))
        reach = exp.Sub(this=exp.Max(this=own), expression=exp.Min(this=own.copy()))
        apart = exp.NEQ(this=exp.Add(this=reach, expression=number(1)), expression=exp.Count(this=col("value")))
        value: exp.Expr = col("value")
        if self.shown.type in ("FLOAT", "REAL"):
            value = cast(cast(value, "VARCHAR"), "DOUBLE")
        grouped = exp.select(
            col("cell"),
            named(exp.Min(this=value), "lo"),
            named(exp.Max(this=value.copy()), "hi"),
            named(call("bool_or", is_null(col("value"))), "nul"),
            named(exp.func("COALESCE", apart, exp.false()), "odd"),
        )
        grouped = grouped.from_(subquery(every, "e")).group_by(col("cell"))
        least, most = (text(e) for e in extremes(self.shown.type))
        # Only NULL lies under it.
        low = exp.func("COALESCE", col("lo"), cast(most, self._kind))
        high = exp.func("COALESCE", col("hi"), cast(least, self._kind))
        created = self.engine.fresh("ranges")
        query = self._row(col("cell"), low, high, col("nul"), col("odd"))
        self.engine.create(created, query.from_(subquery(grouped, "g")))
        return created

    # Values in an order

    def _by_place(self, labels: list[str | None]) -> Meaning:
        engine = self.engine
        inside = [label for label in labels if label is None or not self._is_whole(label)]
        ranges = {label: ends for label in inside if label is not None and (ends := text_ends(label)) is not None}
        listed = self._listed(inside)
        have = {cell for (cell,) in engine.rows(exp.select(col("cell")).distinct().from_(table(listed)))}
        ranges = {label: ends for label, ends in ranges.items() if label not in have}
        if ranges:
            self._list_ranges(listed, ranges)
        # Values under one label are neighbours in the hierarchy, those of a range in the order of the values.
        steps = [col(f"l{i}") for i in range(self.shown.height, 0, -1)]
        places = engine.fresh("places")
        self._order(places, [col("place")] if ranges else [*steps, col("place")])
        cells = self._reaches(listed, places, labels)
        odd = self._odd(cells)
        if odd and not ranges:
            engine.drop(cells)
            self._order(places, [col("place")])
            cells = self._reaches(listed, places, labels)
            odd = self._odd(cells)
        return Meaning(cells, None, places, listed if odd else None)

    def _odd(self, cells: str) -> bool:
        (several,) = self.engine.row(exp.select(call("count_if", col("odd"))).from_(table(cells)))
        return bool(several)

    def _order(self, name: str, by: Sequence[exp.Expr]) -> None:
        order = exp.Order(expressions=[exp.Ordered(this=e, desc=False, nulls_first=False) for e in by])
        rank = cast(exp.Window(this=exp.RowNumber(), order=order), "INTEGER")
        self.engine.create(
            name, exp.select(col("value"), named(rank, "at")).from_(subquery(self.shown.labelled_values(), "k"))
        )

    def _reaches(self, listed: str, places: str, labels: Sequence[str | None]) -> str:
        on = same(col("value", "p"), col("value", "l"))
        grouped = exp.select(
            col("cell", "l"),
            named(exp.Min(this=col("at", "p")), "lo"),
            named(exp.Max(this=col("at", "p")), "hi"),
            named(exp.Count(this=exp.Star()), "n"),
        )
        grouped = grouped.from_(table(listed, "l")).join(table(places, "p"), on=on).group_by(col("cell", "l"))
        reach = exp.Add(this=exp.Sub(this=col("hi"), expression=col("lo")), expression=number(1))
        apart = exp.NEQ(this=reach, expression=col("n"))
        query = exp.select(col("cell"), col("lo"), col("hi"), named(exp.false(), "nul"))
        query = query.select(named(exp.false(), "below"), named(apart, "odd"))
        every: list[exp.Query] = [query.from_(subquery(grouped, "g"))]
        top = [label for label in labels if label is not None and self._is_whole(label)]
        if top:
            whole = [col("cell"), named(number(0), "lo"), named(number(2**31 - 1), "hi")]
            row = exp.select(*whole, named(exp.true(), "nul"), named(exp.false(), "below"), named(exp.false(), "odd"))
            every.append(row.from_(table(self._labels(top))))
        created = self.engine.fresh("cells")
        self.engine.create(created, union_all(every))
        return created

    def _list_ranges(self, listed: str, ranges: dict[str, tuple[str | None, str | None]]) -> None:
        """Add the values of ranges of texts, both ends of which must be values."""
        layout = {"cell": "string", "low": "string", "high": "string"}
        rows = [(label, *ends) for label, ends in ranges.items()]
        query = exp.select(col("cell", "r"), col("value", "k")).from_(table(self._table(rows, layout), "r"))
        known = subquery(self.shown.labelled_values(), "k")
        inside: list[exp.Expr] = [present(col("text", "k"))]
        for end, side, alias in (("low", exp.GTE, "a"), ("high", exp.LTE, "b")):
            query = query.join(
                subquery(self.shown.labelled_values(), alias),
                on=equal(col("text", alias), col(end, "r")),
                join_type="left",
            )
            beyond = side(this=col("place", "k"), expression=col("place", alias))
            inside.append(exp.or_(is_null(col(end, "r")), beyond))
        query = query.join(known, on=exp.and_(*inside))
        self.engine.run(exp.Insert(this=table(listed), expression=query))

    # Hierarchies and sets

    def _listed(self, labels: Sequence[str | None]) -> str:
        """Create ``(cell, value)``: the values that a label is, covers or lists."""
        own = self._labels(labels)
        parts: list[exp.Query] = []
        for name in ("text", *(f"l{i}" for i in range(1, self.shown.height + 1))):
            on = same(col(name, "k"), col("cell", "o"))
            query = exp.select(col("cell", "o"), col("value", "k")).from_(subquery(self.shown.labelled_values(), "k"))
            parts.append(query.join(table(own, "o"), on=on))
        sets = {label: members for label in labels if label is not None and (members := members_of(label))}
        if sets:
            parts.append(self._sets(sets))
        created = self.engine.fresh("listed")
        self.engine.create(
            created, exp.select(col("cell"), col("value")).distinct().from_(subquery(union_all(parts), "u"))
        )
        return created

    def _sets(self, sets: dict[str, tuple[str, ...]]) -> exp.Query:
        """Return ``(cell, value)`` of sets, all members of which are values."""
        rows = [(label, member, len(members)) for label, members in sets.items() for member in members]
        members = self._table(rows, {"cell": "string", "member": "string", "size": "int64"})
        found = exp.select(col("cell", "m"), col("size", "m"), col("value", "k")).from_(table(members, "m"))
        found = found.join(subquery(self.shown.labelled_values(), "k"), on=equal(col("text", "k"), col("member", "m")))
        size = exp.Window(this=exp.Count(this=exp.Star()), partition_by=[col("cell")])
        counted = exp.select(col("cell"), col("value"), col("size"), named(size, "n")).from_(subquery(found, "f"))
        return exp.select(col("cell"), col("value")).from_(subquery(counted, "c")).where(equal(col("n"), col("size")))

    def _table(self, rows: Sequence[tuple[Any, ...]], layout: dict[str, str]) -> str:
        import pyarrow as pa

        arrays = {
            name: pa.array([row[i] for row in rows], getattr(pa, kind)())
            for i, (name, kind) in enumerate(layout.items())
        }
        incoming, created = self.engine.fresh("incoming"), self.engine.fresh("read")
        self.engine.register(incoming, pa.table(arrays))
        self.engine.create(created, exp.select("*").from_(table(incoming)))
        self.engine.unregister(incoming)
        return created


def members_of(label: str) -> tuple[str, ...]:
    """Return the members of a set as duckanon writes it; nothing for another label.

    Examples
    --------
    >>> members_of('{a, "b, c", d e}'), members_of("a")
    (('a', 'b, c', 'd e'), ())
    """
    if len(label) < 3 or label[0] != "{" or label[-1] != "}":
        return ()
    found, place, end = [], 1, len(label) - 1
    while place <= end:
        match = _MEMBER.match(label, place, end)
        if match is None:
            return ()
        found.append(match[1].replace('""', '"') if match[1] is not None else match[2])
        place = match.end()
        if place == end:
            return tuple(dict.fromkeys(found))
        if not label.startswith(", ", place):
            return ()
        place += 2
    return ()


def _rank(value: exp.Expr) -> exp.Expr:
    order = exp.Order(expressions=[exp.Ordered(this=value, desc=False, nulls_first=False)])
    return cast(exp.Window(this=call("dense_rank"), order=order), "BIGINT")


def text_ends(label: str) -> tuple[str | None, str | None] | None:
    """Return the ends of a range of values in whatever order, None where it is open; None if the label is no range.

    Examples
    --------
    >>> text_ends("[low, high]"), text_ends("<= mid"), text_ends("mid")
    (('low', 'high'), (None, 'mid'), None)
    """
    between = _TEXTS.fullmatch(label)
    if between is not None:
        low, high = (unquoted(part) for part in between.groups())
        return low, high
    side = _TEXT_SIDE.fullmatch(label)
    if side is not None:
        own = unquoted(side.group(2))
        return (own, None) if side.group(1) == ">=" else (None, own)
    return None


def unquoted(member: str) -> str:
    """Return a value of a list or range as it is; one with commas, braces or quotes is written in double quotes."""
    own = member.strip()
    return own[1:-1].replace('""', '"') if own.startswith('"') else own


# What is published of a class as a whole

_NEAR = 1e-9
"""More than the rounding error of a mean, relatively."""


def class_is_right(shown: Shown, published: str, ends: bool) -> exp.Expr:
    """Return whether the cell of a class, of the type ``published``, follows from its values.

    ``ends`` says that the ends of its region are known, as ``low_end`` and ``high_end``.
    """
    value, cell = col("value"), col("cell")
    missing = call("bool_or", is_null(value.copy()))
    if shown.kind in ("median", "mode", "medoid"):
        own: exp.Expr = value.copy()
        if published == "VARCHAR":
            own = cast(own, "VARCHAR")
        # A value that its hierarchy does not know is published as the top label, or not at all.
        hidden = is_null(cell.copy())
        if published == "VARCHAR":
            hidden = exp.or_(hidden, equal(cell.copy(), text(shown.top)))
        unknown = exp.and_(hidden, exp.Not(this=exp.func("COALESCE", col("known"), exp.true())))
        return call("bool_or", exp.or_(same(own, cell.copy()), exp.paren(unknown)))
    finite: exp.Expr = value.copy()
    if shown.family in ("float", "date", "timestamp"):
        finite = choose((is_finite(in_utc(value.copy(), shown.type)), value.copy()))
    numbers = shown.family in ("integer", "decimal", "float")
    least, most = exp.Min(this=finite), exp.Max(this=finite.copy())
    low: exp.Expr = cast(least, "DOUBLE") if numbers else least
    high: exp.Expr = cast(most, "DOUBLE") if numbers else most
    if shown.kind == "midpoint" and ends:
        return _is_middle(shown, missing)
    given: exp.Expr = cast(cell.copy(), "DOUBLE") if numbers else cell.copy()
    inside: exp.Expr = exp.Between(this=given, low=low, high=high)
    if numbers:
        slack = exp.Mul(
            this=exp.paren(exp.Add(this=exp.Abs(this=low.copy()), expression=exp.Abs(this=high.copy()))),
            expression=number(_NEAR),
        )
        under, over = exp.Sub(this=low.copy(), expression=slack), exp.Add(this=high.copy(), expression=slack.copy())
        inside = exp.Between(this=given.copy(), low=under, high=over)
    inside = choose((is_null(exp.Min(this=finite.copy())), is_null(cell.copy())), otherwise=inside)
    return choose((missing, is_null(cell.copy())), otherwise=inside)


def shares_are_right(shown: Shown, labelled: exp.Query, name: str) -> exp.Select:
    """Return whether each class has exactly the shares of its values, by their labels or texts."""
    plain = exp.and_(present(col("value")), exp.func("COALESCE", col("known"), exp.false()))
    label = choose((plain, col(name)), otherwise=text(shown.top))
    counts = exp.select(col("cell_key"), col("cell"), named(label, "k"), named(exp.Sum(this=col("n")), "n"))
    counts = counts.from_(subquery(labelled, "y")).group_by(col("cell_key"), col("cell"), label.copy())
    total = exp.Window(this=exp.Sum(this=col("n")), partition_by=[col("cell_key")])
    kinds = exp.Window(this=exp.Count(this=exp.Star()), partition_by=[col("cell_key")])
    share = exp.Div(this=cast(col("n"), "DOUBLE"), expression=cast(total, "DOUBLE"))
    # A list of one share, or none.
    given = call("list_extract", call("map_extract", col("cell"), col("k")), number(1))
    near = exp.LT(this=exp.Abs(this=exp.Sub(this=given, expression=share)), expression=number(_NEAR))
    several = equal(call("cardinality", col("cell")), kinds)
    return exp.select(named(exp.and_(near, several), "ok")).from_(subquery(counts, "q"))


def _tick(value: exp.Expr, shown: Shown) -> exp.Expr:
    """Return a value as a number: days, microseconds, or itself; NULL where it is not finite."""
    if shown.family in NUMBERS:
        plain = cast(value, "DOUBLE")
        return choose((is_finite(plain.copy()), plain))
    if shown.family == "date":
        return cast(exp.Div(this=epoch_seconds(value), expression=number(86400)), "BIGINT")
    return cast(epoch_microseconds(in_utc(value, shown.type)), "BIGINT")


def _is_middle(shown: Shown, missing: exp.Expr) -> exp.Expr:
    """Return whether all values of a class lie between two ends, and its cell halfway between them."""
    cell = col("cell") if shown.family in NUMBERS else _tick(col("cell"), shown)
    own = _tick(col("value"), shown)
    low, high = col("low_end"), col("high_end")
    outside = exp.or_(exp.LT(this=own, expression=low), exp.GT(this=own.copy(), expression=high))
    inside = exp.Not(this=exp.func("COALESCE", call("bool_or", outside), exp.false()))
    if shown.family in NUMBERS:
        halves = [exp.Div(this=exp.paren(end.copy()), expression=number(2)) for end in (low, high)]
        apart = exp.Abs(this=exp.Sub(this=cell, expression=exp.paren(exp.Add(this=halves[0], expression=halves[1]))))
        wide = exp.Add(this=exp.Abs(this=low.copy()), expression=exp.Abs(this=high.copy()))
        middle: exp.Expr = exp.LTE(this=apart, expression=exp.Mul(this=exp.paren(wide), expression=number(_NEAR)))
        alone = call("bool_and", equal(cast(col("value"), "DOUBLE"), col("cell")))
    else:
        total = exp.Add(this=cast(low.copy(), "HUGEINT"), expression=cast(high.copy(), "HUGEINT"))
        middle = equal(cell, exp.IntDiv(this=exp.paren(total), expression=number(2)))
        alone = call("bool_and", equal(col("value"), col("cell")))
    true = exp.or_(exp.func("COALESCE", alone, exp.false()), exp.paren(exp.and_(inside, middle)))
    return choose((missing, is_null(col("cell"))), otherwise=exp.paren(true))


__all__ = [
    "BY_CLASS",
    "Meaning",
    "Shown",
    "class_is_right",
    "extremes",
    "meaning",
    "members_of",
    "shares_are_right",
    "text_ends",
    "unquoted",
]
