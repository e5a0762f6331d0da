"""The values that published cells cover, in a table that duckanon did not make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlglot import exp

from duckanon.assess.labels.levels import candidates_of, column_levels, common_level, domain_labels, released_labels
from duckanon.assess.labels.text import WHOLE, Parsed, parse, size_of, text_range
from duckanon.encoding.dictionaries import Dictionary, dictionary
from duckanon.engine.sql.axes import present
from duckanon.engine.sql.relations import cast, col, named, number, same, subquery, table, text, union_all
from duckanon.errors import HierarchyError
from duckanon.recoding.relations import QuasiIdentifierDomain, size

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.assess.assessed_table import AssessedTable
    from duckanon.engine.base import Engine
    from duckanon.hierarchy import Levels


def cell_domains(
    original: AssessedTable, released: AssessedTable, hierarchies: Mapping[str, Any] | None
) -> list[QuasiIdentifierDomain]:
    """Return the domain of every quasi-identifier: the values that each of its cells covers.

    A label is looked for among the original values and on the levels of the hierarchy; then it is read as ``*``, an
    interval, a number or a set of values. Labels that are none of these are a HierarchyError with their number.
    """
    domains = []
    for ours, theirs in zip(released.quasi, original.quasi, strict=True):
        values = dictionary(original.engine, original.query, theirs, original.quasi[theirs])
        levels = None
        if hierarchies is not None:
            levels = column_levels(original, released, ours, theirs, values.table, hierarchies)
        column = _Column(original.engine, ours, original.types[theirs], values.table, values.size, levels)
        domains.append(column.described(released_labels(released, ours)))
    return domains


def covered(engine: Engine, name: str, type_name: str, values: Dictionary, levels: Levels | None, labels: str) -> str:
    """Create ``(cell, code)``: which values of a column its labels cover; ``labels`` is dropped."""
    covers = _Column(engine, name, type_name, values.table, values.size, levels).described(labels).covers
    assert not callable(covers)
    created = engine.fresh("covers")
    engine.create(created, covers)
    return created


@dataclass(frozen=True)
class _Column:
    """One quasi-identifier; ``cells(cell, level, leaves, lo, hi)`` and ``covers(cell, code)`` are made of it."""

    engine: Engine
    name: str
    type: str
    values: str
    size: int
    levels: Levels | None

    @property
    def leaves(self) -> int:
        return self.size if self.levels is None else self.levels.size

    @property
    def ordered(self) -> bool:
        return size(col("value"), self.type) is not None

    def described(self, labels: str) -> QuasiIdentifierDomain:
        """Look the labels up, read the rest, and return both."""
        candidates = candidates_of(self.engine, labels, self.values, self.levels)
        level = common_level(self.engine, labels, candidates)
        cells, covers = (
            self._looked_up(candidates) if self.levels is None or level is None else self._whole_level(level)
        )
        read = self._read(labels, candidates)
        spans = None
        if read is not None:
            cells = union_all([cells, read.cells, read.reaches.cells()])
            covers = union_all([covers, read.covers])
        cells, covers = (
            exp.select("*").from_(table(self._made(s, q))) for s, q in (("cells", cells), ("covers", covers))
        )
        if read is not None:
            if read.reaches.by_code:
                spans = read.reaches.spans(), covers
            # Wide intervals of many values would make a huge table, which is rarely needed.
            covers = union_all([covers.copy(), read.reaches.covers()])
        height = None if self.levels is None else self.levels.height
        self.engine.drop(labels, candidates)
        whole = read is None and self.levels is not None
        described = (self.name, self.type, self.values, height, self.leaves, cells, covers)
        return QuasiIdentifierDomain(*described, spans=spans, labels=whole)

    def _made(self, stem: str, query: exp.Query) -> str:
        name = self.engine.fresh(stem)
        self.engine.create(name, query)
        return name

    # Labels that are values or labels of the hierarchy

    def _labelled(self, level: int) -> exp.Query:
        """Return ``(cell, code)``: the label of every value on a level."""
        if self.levels is None:
            return exp.select(named(col("text"), "cell"), col("code")).from_(table(self.values))
        if level > 0:
            return exp.select(named(col(f"l{level}"), "cell"), col("code")).from_(table(self.levels.tree))
        value_label = exp.case().when(col("known", "t"), col("text", "v")).else_(text(self.levels.top))
        on = exp.EQ(this=col("code", "t"), expression=col("code", "v"))
        query = exp.select(named(value_label, "cell"), col("code", "v")).from_(table(self.values, "v"))
        return query.join(table(self.levels.tree, "t"), on=on)

    def _whole_level(self, level: int) -> tuple[exp.Query, exp.Query]:
        """Return cells and covers of one level that has all labels; it may have more than are published."""
        assert self.levels is not None
        labels_of_levels = self._made("known", domain_labels(self.levels, self.values))
        under = self._made("under", self._labelled(level))
        distinct_labels = exp.select(col("cell")).distinct().from_(table(under))
        on = exp.and_(
            exp.EQ(this=col("level", "k"), expression=number(level)), same(col("label", "k"), col("cell", "c"))
        )
        cells = (
            exp.select(col("cell", "c"), col("level", "k"), col("leaves", "k"), *_no_bounds())
            .from_(subquery(distinct_labels, "c"))
            .join(table(labels_of_levels, "k"), on=on)
        )
        made = self._made("cells", cells)
        return exp.select("*").from_(table(made)), self._covers(exp.select("*").from_(table(under)), made)

    def _looked_up(self, candidates: str) -> tuple[exp.Query, exp.Query]:
        """Return cells and covers of the labels of the hierarchy, each on the lowest level that has it."""
        chosen = exp.select(
            named(col("label"), "cell"),
            named(exp.Min(this=col("level")), "level"),
            named(exp.ArgMin(this=col("leaves"), expression=col("level")), "leaves"),
            *_no_bounds(),
        ).from_(table(candidates))
        made = self._made("cells", chosen.where(present(col("level"))).group_by(col("label")))
        parts: list[exp.Query] = []
        for level in range(1 if self.levels is None else self.levels.height + 1):
            on = exp.and_(
                same(col("cell", "u"), col("cell", "c")), exp.EQ(this=col("level", "c"), expression=number(level))
            )
            query = exp.select(col("cell", "c"), col("code", "u")).from_(table(made, "c"))
            parts.append(query.join(subquery(self._labelled(level), "u"), on=on))
        # Without a hierarchy there are no levels: 0 meant the values.
        level_of = named(cast(exp.null(), "INTEGER"), "level") if self.levels is None else col("level")
        rest = (col(c) for c in ("leaves", "lo", "hi"))
        return exp.select(col("cell"), level_of, *rest).from_(table(made)), self._covers(union_all(parts), made)

    def _covers(self, under: exp.Query, cells: str) -> exp.Query:
        """Return covers in which cells of the whole domain cover every value."""
        whole = exp.EQ(this=col("leaves", "c"), expression=number(self.leaves))
        every = exp.select(col("cell", "c"), col("code", "v")).from_(table(cells, "c"))
        every = every.join(table(self.values, "v"), on=whole)
        return exp.union(exp.select(col("cell"), col("code")).from_(subquery(under, "u")), every, distinct=True)

    # Labels that are read

    def _read(self, labels: str, candidates: str) -> _Read | None:
        """Return what the labels outside the hierarchy mean, or None if there are none."""
        left = self.engine.arrow(
            exp.select(col("label"), col("n"))
            .from_(table(candidates))
            .where(exp.Is(this=col("level"), expression=exp.null()))
        )
        if not left.num_rows:
            return None
        rows = dict(zip(left.column("label").to_pylist(), left.column("n").to_pylist(), strict=True))
        parsed = {label: parse(label, self.type) for label in rows if label is not None and label != WHOLE}
        ranges = self._made("ranges", self._range_covers(list(parsed)))
        within = {cell for (cell,) in self.engine.rows(exp.select(col("cell")).distinct().from_(table(ranges)))}
        parsed = {label: p for label, p in parsed.items() if label not in within}
        sets = self._made("sets", self._set_covers(parsed))
        complete = {cell for (cell,) in self.engine.rows(exp.select(col("cell")).distinct().from_(table(sets)))}
        spans = {label: p.span for label, p in parsed.items() if p.span is not None and label not in complete}
        reaches = _Reaches.of(self, spans)
        parts: list[exp.Query] = [exp.select(col("cell"), col("code")).from_(table(name)) for name in (sets, ranges)]
        if WHOLE in rows:
            parts.append(exp.select(named(text(WHOLE), "cell"), col("code")).from_(table(self.values)))
        listed = self._made("listed", union_all(parts))
        covered = {cell for (cell,) in self.engine.rows(exp.select(col("cell")).distinct().from_(table(listed)))}
        # Among numbers, a value that no row had is a point, such as a centroid; among texts it is an unknown word. An
        # interval without any value in it does not generalize this column.
        points = {label for label, (low, high, *_) in spans.items() if self.ordered and low == high}
        understood = covered | reaches.covering | points
        self._require_read(labels, [n for label, n in rows.items() if label not in understood])
        return _Read(self._measured(listed), exp.select("*").from_(table(listed)), reaches)

    def _require_read(self, labels: str, lost: list[int]) -> None:
        if lost:
            (total,) = self.engine.row(exp.select(exp.Count(this=exp.Star())).from_(table(labels)))
            nowhere = "" if self.levels is None else ", and on no level of its hierarchy"
            raise HierarchyError(
                f"{len(lost)} of {total} labels of {self.name!r} ({sum(lost)} rows) are not a value, interval or set "
                f"of values of the original column{nowhere}: give the hierarchies that made this table."
            )

    def _table(self, stem: str, rows: list[tuple[Any, ...]], layout: Mapping[str, str]) -> str:
        import pyarrow as pa

        arrays = {
            name: pa.array([row[i] for row in rows], getattr(pa, kind)())
            for i, (name, kind) in enumerate(layout.items())
        }
        return self._kept(stem, pa.table(arrays))

    def _kept(self, stem: str, content: pa.Table) -> str:
        incoming = self.engine.fresh("incoming")
        self.engine.register(incoming, content)
        name = self._made(stem, exp.select("*").from_(table(incoming)))
        self.engine.unregister(incoming)
        return name

    def _numbers(self) -> exp.Query:
        """Return ``(code, text, number)``; texts that are written like numbers have one, too."""
        number_of = size(col("value"), self.type)
        if number_of is None:
            number_of = exp.TryCast(this=col("text"), to=exp.DataType.build("DOUBLE"))
        return exp.select(col("code"), col("text"), named(number_of, "number")).from_(table(self.values))

    def _set_covers(self, parsed: Mapping[str, Parsed]) -> exp.Query:
        """Return ``(cell, code)`` of the sets all of whose members are values, by their texts or as numbers."""
        rows = [
            (label, member, size_of(member, self.type), len(p.members))
            for label, p in parsed.items()
            for member in p.members
        ]
        members = self._table("members", rows, _MEMBERS)
        parts: list[exp.Query] = []
        for theirs, ours in (("member", "text"), ("number", "number")):
            query = exp.select(col("cell", "m"), col("members", "m"), col("member", "m"), col("code", "v"))
            on = exp.EQ(this=col(theirs, "m"), expression=col(ours, "v"))
            parts.append(query.from_(table(members, "m")).join(subquery(self._numbers(), "v"), on=on))
        matches = self._made("found", exp.union(parts[0], parts[1], distinct=True))
        matched = exp.Count(this=exp.Distinct(expressions=[col("member")]))
        complete = exp.select(col("cell")).from_(table(matches)).group_by(col("cell"), col("members"))
        complete = complete.having(exp.EQ(this=matched, expression=col("members")))
        inside = exp.In(this=col("cell"), query=exp.Subquery(this=complete))
        return exp.select(col("cell"), col("code")).distinct().from_(table(matches)).where(inside)

    def _range_covers(self, labels: list[str]) -> exp.Query:
        """Return ``(cell, code)`` of ranges of texts, whose ends must be values."""
        ends_of = {label: text_range(label) for label in labels} if not self.ordered else {}
        rows = [(label, *ends) for label, ends in ends_of.items() if ends is not None]
        ranges = self._table("ranges", rows, _RANGES)
        query = exp.select(col("cell", "r"), col("code", "v")).from_(table(ranges, "r"))
        inside: list[exp.Expr] = [present(col("text", "v"))]
        for end, side in (("lo", exp.GTE), ("hi", exp.LTE)):
            is_value = exp.In(
                this=col(end, "r"), query=exp.Subquery(this=exp.select(col("text")).from_(table(self.values)))
            )
            beyond = side(this=col("text", "v"), expression=col(end, "r"))
            inside.append(exp.or_(exp.Is(this=col(end, "r"), expression=exp.null()), exp.and_(is_value, beyond)))
        return query.join(table(self.values, "v"), on=exp.and_(*inside))

    def _measured(self, covers: str) -> exp.Query:
        """Return ``(cell, level, leaves, lo, hi)`` of cells by the values that they cover."""
        is_whole = exp.EQ(this=col("cell", "c"), expression=text(WHOLE))
        count = exp.Count(this=col("code", "c"))
        leaves = exp.case().when(is_whole, number(self.leaves)).else_(count)
        level: exp.Expr = cast(exp.null(), "INTEGER")
        grouped = exp.select(col("cell", "c")).from_(table(covers, "c"))
        if self.levels is not None:
            on = exp.EQ(this=col("code", "t"), expression=col("code", "c"))
            grouped = grouped.join(table(self.levels.tree, "t"), on=on)
            level = exp.case().when(is_whole.copy(), number(self.levels.height))
            level = level.when(exp.EQ(this=count.copy(), expression=number(1)), number(0))
            for i in range(1, self.levels.height):
                level = level.when(_alike(col(f"l{i}", "t")), number(i))
            level = level.else_(number(self.levels.height))
        grouped = grouped.select(named(cast(level, "INTEGER"), "level"), named(leaves, "leaves"), *_no_bounds())
        return grouped.group_by(col("cell", "c"))


@dataclass(frozen=True)
class _Read:
    """Cells and covers of labels that are sets, ranges of texts or the whole domain, and the intervals of numbers."""

    cells: exp.Query
    covers: exp.Query
    reaches: _Reaches


@dataclass(frozen=True)
class _Reaches:
    """Intervals of numbers, by the places of the first and the last value in them, all values in order.

    ``intervals(cell, level, leaves, lo, hi, first, last)`` has them, ``places(place, code)`` the values. An interval
    without a value has no places, its own bounds and one leaf. ``covering`` are those with one. ``by_code`` means that
    codes follow each other as places do, so that a range of places is one of codes.
    """

    intervals: str
    places: str
    covering: set[str]
    by_code: bool

    @classmethod
    def of(cls, column: _Column, spans: Mapping[str, tuple[float, float, bool, bool]]) -> _Reaches:
        """Find the first and last value of each interval."""
        import pyarrow as pa

        numbers = exp.select(col("code"), named(cast(col("number"), "DOUBLE"), "number"))
        numbers = numbers.from_(subquery(column._numbers(), "v")).where(present(col("number")))
        values = column.engine.arrow(numbers.order_by(col("number"), col("code")))
        sizes, codes = values.column("number").to_numpy(), values.column("code").to_numpy()
        bounds = np.array([(low, high) for low, high, *_ in spans.values()], dtype=np.float64).reshape(-1, 2)
        above, below = (np.array([s[i] for s in spans.values()], dtype=bool) for i in (2, 3))
        low, high = bounds[:, 0], bounds[:, 1]
        first = np.where(above, np.searchsorted(sizes, low, "right"), np.searchsorted(sizes, low, "left"))
        after = np.where(below, np.searchsorted(sizes, high, "left"), np.searchsorted(sizes, high, "right"))
        some = after > first
        level = cls._levels(column, codes, np.where(some, first, 0), np.where(some, after - 1, 0))
        # Of an interval with values in it nothing counts that is beyond the range of the column.
        ends = (sizes[0], sizes[-1]) if len(sizes) else (-np.inf, np.inf)
        outside: dict[str, Any] = {n: np.where(some, np.clip(v, *ends), v) for n, v in (("lo", low), ("hi", high))}
        inside: dict[str, Any] = {"first": first, "last": after - 1}
        intervals = {
            "cell": pa.array(list(spans), pa.string()),
            "level": pa.nulls(len(spans), pa.int32()) if level is None else pa.array(level, pa.int32()),
            "leaves": pa.array(np.where(some, after - first, 1), pa.int64()),
            **{name: pa.array(v, pa.float64()) for name, v in outside.items()},
            **{name: pa.array(v, pa.int64(), mask=~some) for name, v in inside.items()},
        }
        places = pa.table({"place": np.arange(len(codes)), "code": codes})
        covering = {label for label, covers in zip(spans, some.tolist(), strict=True) if covers}
        by_code = bool(column.ordered and (np.diff(codes) == 1).all())
        return cls(column._kept("intervals", pa.table(intervals)), column._kept("places", places), covering, by_code)

    @staticmethod
    def _levels(column: _Column, codes: Any, first: Any, last: Any) -> Any:
        """Return the lowest level on which all values of an interval have one label; None without a hierarchy."""
        if column.levels is None:
            return None
        height = column.levels.height
        tree = column.engine.arrow(exp.select("*").from_(table(column.levels.tree)).order_by(col("code")))
        rows = np.searchsorted(tree.column("code").to_numpy(), codes)
        level = np.full(len(first), height)
        for i in range(height - 1, 0, -1):
            groups = tree.column(f"l{i}").combine_chunks().dictionary_encode(null_encoding="encode").indices.to_numpy()
            changes = np.concatenate([[0], np.cumsum(np.diff(groups[rows]) != 0)])
            level[changes[first] == changes[last]] = i
        level[first == last] = 0
        return level

    def cells(self) -> exp.Query:
        """Return ``(cell, level, leaves, lo, hi)``."""
        return exp.select(*(col(c) for c in ("cell", "level", "leaves", "lo", "hi"))).from_(table(self.intervals))

    def covers(self) -> exp.Query:
        """Return ``(cell, code)``."""
        inside = exp.Between(this=col("place", "p"), low=col("first", "i"), high=col("last", "i"))
        query = exp.select(col("cell", "i"), col("code", "p")).from_(table(self.intervals, "i"))
        return query.join(table(self.places, "p"), on=inside)

    def spans(self) -> exp.Query:
        """Return ``(cell, first, last, members)``: the codes at both ends of those with a value, and how many."""
        query = exp.select(
            col("cell", "i"),
            named(col("code", "a"), "first"),
            named(col("code", "b"), "last"),
            named(col("leaves", "i"), "members"),
        ).from_(table(self.intervals, "i"))
        for alias, end in (("a", "first"), ("b", "last")):
            on = exp.EQ(this=col("place", alias), expression=col(end, "i"))
            query = query.join(table(self.places, alias), on=on)
        return query


_RANGES = {"cell": "string", "lo": "string", "hi": "string"}
_MEMBERS = {"cell": "string", "member": "string", "number": "float64", "members": "int64"}


def _alike(label: exp.Expr) -> exp.Expr:
    """Return whether all rows of a group have one label, NULL being one, too."""
    missing = exp.case().when(exp.Is(this=label, expression=exp.null()), number(1)).else_(number(0))
    distinct = exp.Count(this=exp.Distinct(expressions=[label.copy()]))
    return exp.EQ(this=exp.Add(this=distinct, expression=exp.Max(this=missing)), expression=number(1))


def _no_bounds() -> list[exp.Expr]:
    return [named(cast(exp.null(), "DOUBLE"), name) for name in ("lo", "hi")]


__all__ = ["cell_domains", "covered"]
