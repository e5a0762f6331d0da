"""The second stage where rows are divided into regions: rows are coded, arrays are cut, rows get classes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from sqlglot import exp

from duckanon.algorithms.clustering.clustering import medoids
from duckanon.algorithms.partition.partition import Items, Parts, Rules, classes_of_items, judge, rows_of, undivided
from duckanon.encoding.words import shuffle_keys
from duckanon.engine.process import give_back, workers
from duckanon.engine.sql.relations import LazyTable, col, named, pack, positional, subquery, table
from duckanon.errors import DataError, InfeasibleError
from duckanon.kernels.layout import ON, PIECE, PIECE_END, WHOLE, WHOLE_END
from duckanon.recoding.coded_rows import (
    CODE,
    PERSON,
    RELEASED,
    VALUE,
    Associations,
    CodedRows,
    Cuts,
    Division,
    RowCoder,
)
from duckanon.recoding.permutation import AssociationAnalysis, secret_of
from duckanon.recoding.regions import Boxes
from duckanon.release.stages.search import Found

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from duckanon.algorithms.partition.partition import Partitioner
    from duckanon.algorithms.partition.presplit import Cutting
    from duckanon.engine.base import Engine
    from duckanon.plan.plan import Plan
    from duckanon.release.stages.encode import Encoded

    Totals = dict[str, tuple[NDArray[np.int64], tuple[NDArray[np.int64], ...]]]

_BATCH = 250_000
"""Items that are read at a time where not all fit into memory."""
_OF_PERSONS = 48
"""Bytes of an item for counting persons."""


def partition(plan: Plan, engine: Engine, encoded: Encoded) -> Found:
    """Divide the rows into regions, or into groups within which values are permuted."""
    totals = {name: (values.totals, values.ancestors) for name, values in encoded.sensitive.items()}
    dictionaries = {name: values.dictionary for name, values in encoded.sensitive.items()}
    algorithm, keys = cast("Partitioner", encoded.algorithm), shuffle_keys(plan.seed)
    coder = RowCoder(plan, engine, encoded.coded, encoded.axes, dictionaries, keys, algorithm)
    associate = AssociationAnalysis(secret_of(plan.seed)) if algorithm.permutes else None
    division = Divider(coder, totals, encoded.problem.allowed, associate).divide(encoded.rows)
    return Found(division.suppressed, division.searched, partition=division)


@dataclass
class _Classes:
    """The classes so far, and the table that has them."""

    table: str | None = None
    count: int = 0
    published: int = 0
    suppressed_rows: int = 0
    items: int = 0
    search_stats: dict[str, Any] = field(default_factory=dict)
    ends: list[int] = field(default_factory=lambda: [0])
    """How many classes there are after each part."""
    cuts: list[NDArray[Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Divider:
    """Divides the rows of a source; ``totals`` has the sensitive values of the whole table, see ``Rules``.

    ``associate`` is given the coded rows before anything is divided, by an algorithm that must know how values occur
    together.
    """

    coder: RowCoder
    totals: Totals
    allowed: int
    associate: Callable[[RowCoder, str], Associations] | None = None
    classes: _Classes = field(default_factory=_Classes)

    @property
    def plan(self) -> Plan:
        """The plan of the release."""
        return self.coder.plan

    @property
    def engine(self) -> Engine:
        """Where the rows are."""
        return self.coder.engine

    def divide(self, expected: int) -> Division:
        """Code the rows, divide them, and store the class of each."""
        engine, coder = self.engine, self.coder
        # The compiler takes a second to load: that is done while the database works.
        with engine.progress.step("code", expected), workers(min(2, self.engine.threads())) as pool:
            pool.submit(coder.algorithm.load)
            rows = coder.rows(expected)
        if rows.count != expected:
            raise DataError("The source changed while it was read: its number of rows differs between two passes.")
        if self.associate is None:
            return self._divided(rows, None)
        with engine.progress.step("associate", expected):
            seen = self.associate(coder, rows.table)
        return replace(self, coder=seen.coder)._divided(rows, seen)

    def _divided(self, rows: CodedRows, seen: Associations | None) -> Division:
        engine, coder, extras = self.engine, self.coder, rows.extras
        with engine.progress.step("search", rows.count, unit="rows"):
            grouped = coder.grouped(rows)
            source, counted, budget = grouped or rows.table, grouped is not None, self._budget(extras)
            cutting = None if rows.count <= budget else self._first_cuts(source, extras, counted, budget)
            parts = 1 if cutting is None else len(cutting.bounds)
            if cutting is not None and parts > 1:
                ids = self._in_parts(source, counted, cutting, extras)
            else:
                ids = self._at_once(source, counted, extras, rows.words)
        if not self.classes.published or self.classes.table is None:
            raise InfeasibleError("No class satisfies the promise: all rows would be suppressed.")
        boxes = self.classes.table
        words = self._words(grouped, ids) if grouped is not None else None
        members = LazyTable(engine, "members", lambda engine, name: self._members(division, name))
        tables = tuple(p.table for p in self.coder.placed)
        division = Division(
            Boxes(boxes, tables, tuple(p.grid for p in self.coder.placed), members, self._kinds()),
            rows.table,
            None if words else ids,
            words,
            tuple(c.dictionary.size for c in self.coder.coded),
            self.classes.suppressed_rows,
            {**({"parts": parts} if parts > 1 else {}), **self.classes.search_stats},
            seen,
            rows.short,
            self._cuts(cutting),
        )
        return division

    def _kinds(self) -> tuple[str, ...]:
        """Return what each axis is: a line cut on a "grid", another "line", or a "tree"."""
        kinds = ["tree" if p.axis.atoms is None else "line" if p.grid is None else "grid" for p in self.coder.placed]
        return tuple(kinds)

    def _cuts(self, cutting: Cutting | None) -> Cuts | None:
        """Return all cuts: those between parts, and those within them."""
        import numpy as np

        if not self.plan.remember:
            return None
        first = np.empty((0, 7), dtype=np.int64) if cutting is None else cutting.log(self.classes.ends)
        return Cuts(np.concatenate([first, *self.classes.cuts]), tuple(self.coder.placed))

    def _budget(self, extras: Sequence[str]) -> int:
        """Return how many items arrays may hold at once."""
        if self.coder.algorithm.budget is not None:
            return self.coder.algorithm.budget
        limit = self.engine.array_limit()
        largest = max(p.axis.size for p in self.coder.placed)
        row = self.coder.algorithm.bytes_of_item(len(self.coder.placed), 2 if largest <= 2**16 else 4)
        row += 16 * len(extras) + (_OF_PERSONS if PERSON in extras else 0)
        return sys.maxsize if limit is None else max(limit // row, 100_000)

    def _first_cuts(self, source: str, extras: Sequence[str], counted: bool, budget: int) -> Cutting:
        from duckanon.algorithms.partition.presplit import FirstCuts

        names = [c.dictionary.attribute for c in self.coder.coded]
        cuts = FirstCuts(
            self.engine,
            source,
            [f"{CODE}{j}" for j in range(len(self.coder.coded))],
            self.coder.placed,
            [names.index(name) for name in self.plan.within],
            self._rules(),
            {name: f"{VALUE}{i}" for i, name in enumerate(self.coder.values)},
            PERSON if PERSON in extras else None,
            counted,
        )
        return cuts.parts(budget)

    def _at_once(self, source: str, counted: bool, extras: Sequence[str], words: str | None) -> str:
        """Divide all items; return the table of their classes, in the order of the items.

        ``words`` is the table of all rows where codes share words.
        """
        import pyarrow as pa

        packed = words is not None and not counted
        source = words if words is not None and packed else source
        fetched = self.engine.arrow(self._read(source, extras, counted, packed))
        items = self.coder.items(fetched.column, extras, counted, packed)
        del fetched
        parts, kept, units = self._partition(items, self._whole())
        of_items = self._keep(items, parts, kept, units)
        return self._stored("ids", pa.table(of_items))

    def _in_parts(self, source: str, counted: bool, cutting: Cutting, extras: Sequence[str]) -> str:
        """Divide the items part by part, see ``_at_once``; other parts are in files meanwhile."""
        import numpy as np

        from duckanon.encoding.spill import RID, ClassFile, PartFiles

        engine = self.engine
        files = PartFiles(engine.scratch(), engine.fresh("part"))
        codes = [f"{CODE}{j}" for j in range(len(self.coder.coded))]
        for batch in engine.reader(self._read(source, extras, counted), batch=_BATCH, private=True):
            files.add(batch, cutting.parts_of([batch.column(c).to_numpy() for c in codes]))
        classes: ClassFile | None = None
        for part, bounds in enumerate(cutting.bounds):
            records = files.take(part)
            items = self.coder.items(records.__getitem__, extras, counted)
            rid = np.ascontiguousarray(records[RID])
            del records
            regions = self._whole()
            for j, (low, high) in bounds.items():
                regions[j] = max(low, regions[j, 0]), min(high, regions[j, 1])
            of_items = self._keep(items, *self._partition(items, regions))
            if classes is None:
                classes = ClassFile(engine.scratch() / engine.fresh("classes"), files.count, tuple(of_items))
            classes.put(rid, of_items)
            # Memory of a part is returned before the database needs it.
            del items, rid, of_items
            give_back()
        assert classes is not None
        name, incoming = engine.fresh("ids"), engine.fresh("incoming")
        engine.register(incoming, classes.reader())
        engine.create_file(name, exp.select("*").from_(table(incoming)))
        engine.unregister(incoming)
        classes.remove()
        return name

    def _read(self, source: str, extras: Sequence[str], counted: bool, packed: bool = False) -> exp.Select:
        """Return the codes of the items and the other columns of the search, in the order of the items."""
        codes = self.coder.words if packed else self.coder.codes
        columns = [*codes, *(col(e) for e in extras), *([col("n")] if counted else [])]
        query = exp.select(*columns).from_(table(source))
        return query if self.engine.keeps_order() else query.order_by(exp.column("rowid"))

    def _whole(self) -> NDArray[np.int32]:
        import numpy as np

        return np.array([[0, p.axis.size - 1 - p.axis.null] for p in self.coder.placed], dtype=np.int32)

    def _keep(self, items: Items, parts: Parts, kept: NDArray[np.bool_], units: NDArray[np.int64]) -> dict[str, Any]:
        """Store the classes of a part; return the class of every item, and the permuted codes, if there are any."""
        import numpy as np
        import pyarrow as pa

        classes, first = len(parts.starts) - 1, self.classes.count
        columns: dict[str, Any] = {
            "class_id": np.arange(first + 1, first + classes + 1, dtype=np.int64),
            "n": rows_of(parts, items.counts),
            "units": units,
            "kept": kept,
        }
        for j, placed in enumerate(self.coder.placed):
            code = placed.code.astype(np.int32)
            columns[f"a_{j}"] = code[parts.regions[:, j, 0]]
            columns[f"b_{j}"] = code[parts.regions[:, j, 1]]
            columns[f"v_{j}"] = np.ascontiguousarray(parts.levels[:, j])
        if "medoid" in self.plan.output.values():
            chosen = medoids([p.axis for p in self.coder.placed], items, parts)
            for j, placed in enumerate(self.coder.placed):
                columns[f"m_{j}"] = placed.code.astype(np.int32)[items.places[chosen, j]]
        stored = pa.table(columns)
        self.classes.table = self._stored("boxes", stored, self.classes.table)
        ids = classes_of_items(parts, first + 1, self.engine.threads())
        of_items: dict[str, Any] = {"class_id": ids, **self._permuted(items, parts, units, first)}
        if parts.cuts is not None:
            # Each group begins and ends where a class does.
            cuts = parts.cuts.astype(np.int64)
            cuts[:, :ON] = np.searchsorted(parts.starts, cuts[:, :ON]) + first
            self.classes.cuts.append(cuts)
        self.classes.count += classes
        self.classes.ends.append(self.classes.count)
        self.classes.published += int(kept.sum())
        self.classes.suppressed_rows += int(columns["n"][~kept].sum())
        return of_items

    def _permuted(self, items: Items, parts: Parts, units: NDArray[np.int64], label: int) -> dict[str, Any]:
        """Return the codes that rows are published with, where values are permuted within classes."""
        permuted = self.coder.algorithm.permuted(items, parts, units, label)
        if permuted is None:
            return {}
        self.classes.search_stats["redrawn"] = self.classes.search_stats.get("redrawn", 0) + permuted.redrawn
        codes = [p.code.astype("int32") for p in self.coder.placed]
        return {f"{RELEASED}{j}": own[permuted.places[:, j]] for j, own in enumerate(codes)}

    # Items to classes

    def _rules(self) -> Rules:
        algorithm, plan = self.coder.algorithm, self.plan
        return Rules(
            plan.models, self.totals, algorithm.by_rows, algorithm.choice, plan.bounds == "tight", plan.remember
        )

    def _partition(
        self, items: Items, regions: NDArray[np.int32]
    ) -> tuple[Parts, NDArray[np.bool_], NDArray[np.int64]]:
        """Divide the items; return the classes, which of them are kept, and the members of each."""
        import numpy as np

        rules = self._rules()
        axes = [p.axis for p in self.coder.placed]
        order, starts = self._regions(items)
        ordered = items if order is None else items.taken(order)
        whole = undivided(ordered, starts, rules)
        allowed, _ = judge(whole, ordered, rules)
        self._require(rows_of(whole, ordered.counts), allowed)
        before, progress = self.classes.items, self.engine.progress
        parts = self.coder.algorithm.divide(
            axes,
            ordered,
            rules,
            starts=starts,
            regions=regions,
            threads=self.engine.threads(),
            advance=lambda n: progress.advance(before + n),
        )
        self.classes.items += len(items)
        for name, value in parts.search_stats.items():
            self.classes.search_stats[name] = self.classes.search_stats.get(name, 0) + value
        if order is not None:
            parts = replace(parts, order=order[parts.order].astype(np.int32))
            if parts.cuts is not None:
                parts = replace(parts, cuts=np.concatenate([self._between(ordered, starts), parts.cuts]))
        if allowed.all() and items.entity is None and parts.judged:
            # Models were asked at every cut; the gate asks again.
            rows = rows_of(parts, items.counts)
            return parts, np.ones(len(rows), dtype=np.bool_), rows
        kept, units = judge(parts, items, rules)
        return parts, kept if parts.refused is None else kept & ~parts.refused, units

    def _regions(self, items: Items) -> tuple[NDArray[np.int64] | None, NDArray[np.int64]]:
        """Return the order that groups rows by the columns of ``within``, and where each group ends."""
        import numpy as np

        count = len(items)
        names = [c.dictionary.attribute for c in self.coder.coded]
        columns = [items.places[:, names.index(name)] for name in self.plan.within]
        if not columns:
            return None, np.array([0, count], dtype=np.int64)
        order = np.lexsort(columns[::-1])
        changes = np.zeros(count, dtype=np.bool_)
        for column in columns:
            changes[1:] |= column[order][1:] != column[order][:-1]
        return order, np.concatenate([[0], np.flatnonzero(changes), [count]]).astype(np.int64)

    def _between(self, ordered: Items, starts: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the cuts between the groups of ``within``: by one column after the other, a group for each value."""
        import numpy as np

        names = [c.dictionary.attribute for c in self.coder.coded]
        whole = np.array([0, len(starts) - 1])
        lines = []
        for axis in (names.index(name) for name in self.plan.within):
            places = ordered.places[starts[:-1], axis]
            changed = np.flatnonzero(np.diff(places)) + 1
            pieces = np.unique(np.concatenate([whole, changed]))
            over = np.searchsorted(whole, pieces[:-1], side="right") - 1
            cut = [starts[whole[over]], starts[whole[over + 1]], starts[pieces[:-1]], starts[pieces[1:]]]
            own = np.stack([*cut, *(np.full(len(over), n) for n in (axis, 0, -1))], axis=1)
            # Groups of one value are not cut.
            lines.append(own[(own[:, WHOLE] != own[:, PIECE]) | (own[:, WHOLE_END] != own[:, PIECE_END])])
            whole = pieces
        return np.concatenate(lines).astype(np.int32)

    def _require(self, rows: NDArray[np.int64], allowed: NDArray[np.bool_]) -> None:
        """Raise unless all rows, or enough groups of ``within``, satisfy the models before anything is divided."""
        lost = int(rows[~allowed].sum()) + self.classes.suppressed_rows
        if lost <= self.allowed and (allowed.any() or self.plan.within):
            return
        promise = " and ".join(m.describe(self.plan.unit) for m in self.plan.models)
        if not self.plan.within:
            raise InfeasibleError(f"The table as a whole breaks the promise ({promise}): no division can keep it.")
        raise InfeasibleError(
            f"{int((~allowed).sum())} of {len(allowed)} parts by {', '.join(self.plan.within)} ({lost} rows) break the "
            f"promise as a whole ({promise}), and {self.allowed} rows may be suppressed."
        )

    # Classes to tables

    def _stored(self, stem: str, data: pa.Table, to: str | None = None) -> str:
        """Create a table of arrays, or add them ``to`` one that is there."""
        incoming = self.engine.fresh("incoming")
        self.engine.register(incoming, data)
        every = exp.select("*").from_(table(incoming))
        if to is not None:
            self.engine.run(exp.Insert(this=table(to), expression=every))
        else:
            to = self.engine.fresh(stem)
            self.engine.create(to, every)
        self.engine.unregister(incoming)
        return to

    def _words(self, grouped: str, ids: str) -> str:
        """Create ``(w_0, ..., class_id)``: the class of every combination of codes."""
        sizes = [c.dictionary.size for c in self.coder.coded]
        words = pack([col(f"{CODE}{j}", "g") for j in range(len(sizes))], sizes)
        query = exp.select(*(named(w, f"w_{i}") for i, w in enumerate(words)), col("class_id", "i")).distinct()
        name = self.engine.fresh("words")
        self.engine.create(name, positional(query.from_(table(grouped, "g")), ids, "i"))
        self.engine.drop(grouped)
        return name

    def _members(self, division: Division, name: str) -> None:
        """Make ``members(class_id, c_0, ..., n)`` a view: it is not always read."""
        codes = [named(col(f"{CODE}{j}", "s"), f"c_{j}") for j in range(len(self.coder.coded))]
        inner = division.classed(codes)
        names = [col(f"c_{j}") for j in range(len(codes))]
        query = exp.select(col("class_id"), *names, named(exp.Count(this=exp.Star()), "n"))
        query = query.from_(subquery(inner, "m")).group_by(exp.var("ALL"))
        self.engine.create_view(name, query)


__all__ = ["Divider", "partition"]
