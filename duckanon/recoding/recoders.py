"""From a search's result to published rows: one level for each column, or several passes with levels of their own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.encoding.dictionaries import ENUM_LIMIT, enumeration, published_type
from duckanon.engine.relation_tables import RelationTables
from duckanon.engine.sql.boxes import midpoint_ends
from duckanon.engine.sql.classes import class_shares, published_labels
from duckanon.engine.sql.recode import (
    Cell,
    code_labels,
    coded_rows,
    local_rows,
    published_texts,
    released_rows,
    rows_in_classes,
    shuffled_rows,
)
from duckanon.engine.sql.relations import call, cast, col, named, number, pack, param, qualified, subquery, table, text
from duckanon.errors import UnsupportedError
from duckanon.io.shuffled_writer import MANY_ROWS, can_look_up, write_shuffled
from duckanon.plan.publication import has_distance
from duckanon.recoding.coded_rows import CODE, kept_columns
from duckanon.recoding.evidence import Evidence
from duckanon.recoding.recoding import BoxRecoding, LocalRecoding, Recoding
from duckanon.recoding.regions import publish_boxes
from duckanon.recoding.relations.levels import FullDomainRelations, LocalRelations
from duckanon.recoding.relations.regions import RegionRelations
from duckanon.recoding.side_by_side import PERSON, Lookup, SideBySide

if TYPE_CHECKING:
    from duckanon.algorithms.full_domain.local import Pass
    from duckanon.encoding.dictionaries import Frequency
    from duckanon.engine.base import Engine
    from duckanon.hierarchy import Levels
    from duckanon.plan.plan import Plan
    from duckanon.recoding.partitioned_rows import Division
    from duckanon.recoding.regions import Axis


class Recoder(ABC):
    """Knows the classes of a release, and how a row of the source is published."""

    engine: Engine
    cells: list[Cell]
    relations: RelationTables
    by_code = False
    """Whether ``kept`` of ``rows`` are columns of the coded rows, where the source's own are gone."""

    @property
    @abstractmethod
    def shown(self) -> Sequence[tuple[str, str]]:
        """The published columns of the quasi-identifiers, each with its name among ``rows``."""

    @abstractmethod
    def rows(self, kept: Sequence[tuple[str, exp.Expr]]) -> exp.Select:
        """Return the published rows as ``(q_0, ..., p_0, ...)``, p being ``kept``, in an order of their own."""

    @abstractmethod
    def released(self, rows: exp.Query, columns: Sequence[tuple[str, str]]) -> exp.Select:
        """Return the release from ``rows``, in their order: (published name, name among rows) for each column."""

    @abstractmethod
    def recoding(self) -> Recoding:
        """Return the recoding as the owner sees it."""

    def write(
        self,
        kept: Sequence[tuple[str, exp.Expr]],
        columns: Sequence[tuple[str, str]],
        path: Path,
        params: Mapping[str, int],
        count: int,
        from_file: Callable[[exp.Select], exp.Select] | None = None,
    ) -> bool:
        """Write the release and return True where there is a faster way than a query of ``rows``; else False.

        The order is that of ``rows``. ``from_file`` puts rows into a file before they are sorted, where there is too
        little memory to join and sort them at a time.
        """
        return False

    # What the gate compares with the source: each recoder gives one of the two.

    def beside(self, kept: Sequence[tuple[str, exp.Expr]], person: exp.Expr | None) -> SideBySide | None:
        """Return all rows of the source as they were and as they are published, where cells stand for values."""
        return None

    def evidence(
        self, kept: Sequence[tuple[str, exp.Expr]], person: exp.Expr | None, keys: Mapping[str, int]
    ) -> Evidence | None:
        """Create what ties the published rows to those of the source, where values were permuted between rows.

        ``person`` is a keyed hash of the entity key, ``keys`` its parameters.
        """
        return None

    def described(self) -> dict[str, Any]:
        """Return what reports say of the permutation; nothing where none was made."""
        return {}


def _through(kept: Sequence[tuple[str, exp.Expr]], person: exp.Expr | None, alias: str) -> list[exp.Expr]:
    """Return what rows of the source have besides quasi-identifiers."""
    found = [named(qualified(expression, alias), f"p_{i}") for i, (_, expression) in enumerate(kept)]
    return [*found, *([named(qualified(person, alias), PERSON)] if person is not None else [])]


def _originals(cells: Sequence[Cell]) -> list[Lookup]:
    """Return the values of the quasi-identifiers by their codes ``k_0``, ``k_1``, ..."""
    return [
        Lookup(f"k_{j}", exp.select(col("code"), named(col("value"), f"s_{j}")).from_(table(cell.values)))
        for j, cell in enumerate(cells)
    ]


def cells_at(plan: Plan, counted: Frequency, bound: Sequence[Levels], levels: Sequence[int]) -> list[Cell]:
    """Return how each quasi-identifier is recoded at the levels of a node."""
    return [
        Cell(
            name=attribute.name,
            expression=coded.dictionary.expression,
            values=coded.dictionary.table,
            levels=coded.levels,
            labels=coded.labels,
            level=level,
            size=coded.sizes[level],
            constant=level == coded.height,
            typed=level == 0 and not coded.masked,
            top=over.top,
        )
        for attribute, coded, over, level in zip(
            plan.roles.quasi_identifiers, counted.coded, bound, levels, strict=True
        )
    ]


def _is_text(plan: Plan, cell: Cell) -> bool:
    kind = next(a.type for a in plan.roles.quasi_identifiers if a.name == cell.name)
    return not cell.constant and (not cell.typed or published_type(kind) == "VARCHAR")


class _OnLevels(Recoder):
    """What recoders share that put values on levels."""

    @property
    def shown(self) -> Sequence[tuple[str, str]]:
        return [(c.name, f"q_{j}") for j, c in enumerate(self.cells)]

    def released(self, rows: exp.Query, columns: Sequence[tuple[str, str]]) -> exp.Select:
        return released_rows(rows, self.cells, columns)


class FullDomain(_OnLevels):
    """Every value of a column on one level."""

    def __init__(
        self, plan: Plan, engine: Engine, counted: Frequency, bound: Sequence[Levels], done: Pass, path: Path
    ) -> None:
        self.plan, self.engine, self.problem = plan, engine, done.problem
        self.cells = [self._with_table(c) for c in cells_at(plan, counted, bound, done.node.levels)]
        self.relations = FullDomainRelations(plan, engine, counted, done.node, self.cells, path)
        shared = [j for j, cell in enumerate(self.cells) if cell.shares is not None]
        for j in shared:
            self._share(j, counted)
        if shared:
            self._require_apart(shared)

    def _share(self, position: int, counted: Frequency) -> None:
        """Create the distributions of a column in all classes that are kept."""
        coded, kind = counted.coded[position], self.plan.roles.quasi_identifiers[position].type
        given = {"masked": coded.masked, "ordered": has_distance(kind)}
        classes = self.relations.table("class_map")
        query = class_shares(counted.table, classes, self.cells, position, coded.domain_size, **given)
        self.engine.create(str(self.cells[position].shares), query)

    def _require_apart(self, shared: Sequence[int]) -> None:
        """Raise where two classes would look alike: what is counted of classes would not be what readers see."""
        classes = exp.select().from_(table(self.relations.table("class_map"), "c")).where(col("kept", "c"))
        for j in range(len(self.cells)):
            if j not in shared:
                classes = classes.select(col(f"g_{j}", "c"))
                continue
            on = exp.EQ(this=col("class_id", f"h_{j}"), expression=col("class_id", "c"))
            classes = classes.select(named(col("q", f"h_{j}"), f"q_{j}"))
            classes = classes.join(table(str(self.cells[j].shares), f"h_{j}"), on=on)
        count = exp.select(exp.Count(this=exp.Star()))
        every, different = (
            self.engine.row(count.copy().from_(subquery(query, "d"))) for query in (classes, classes.copy().distinct())
        )
        if every != different:
            raise UnsupportedError(
                "output='proportional' would publish two classes alike, because NULL and values that a hierarchy does "
                "not know all count as its top label. Fill one of them in, or publish labels (output='interval')."
            )

    def _with_table(self, cell: Cell) -> Cell:
        if self.plan.output.get(cell.name) == "proportional":
            return replace(cell, shares=self.engine.fresh("shares"))
        if not _is_text(self.plan, cell) or cell.size > ENUM_LIMIT:
            return cell
        return replace(cell, enum=enumeration(self.engine, published_texts(cell)))

    def rows(self, kept: Sequence[tuple[str, exp.Expr]]) -> exp.Select:
        return shuffled_rows(self.plan.relation.query, self.cells, self.relations.table("class_map"), kept)

    def beside(self, kept: Sequence[tuple[str, exp.Expr]], person: exp.Expr | None) -> SideBySide:
        through, lookups = _through(kept, person, "s"), _originals(self.cells)
        rows = coded_rows(self.plan.relation.query, self.cells, True, through)
        codes = [number(0) if c.constant else col(f"g_{j}", "i") for j, c in enumerate(self.cells)]
        words = pack(codes, [c.size for c in self.cells])
        for j, cell in enumerate(self.cells):
            if cell.shares is not None:
                query = exp.select(named(col("class_id"), "code"), named(col("q"), f"r_{j}")).from_(table(cell.shares))
                lookups.append(Lookup("class_id", query))
            else:
                lookups.append(Lookup(f"k_{j}", code_labels(cell, f"r_{j}")))
        rows = rows_in_classes(rows, words, self.relations.table("class_map"), len(self.cells), through)
        return SideBySide(rows, tuple(lookups), marked=True)

    def recoding(self) -> Recoding:
        levels = {c.name: c.level for c in self.cells}
        more = None if self.problem.size_only else self.relations.table("class_map")
        return Recoding(levels, self.plan, self.cells, self.engine, self.problem.min_size, more)


class Local(_OnLevels):
    """Several passes: what one suppresses, the next recodes at levels of its own."""

    def __init__(
        self, plan: Plan, engine: Engine, counted: Frequency, bound: Sequence[Levels], done: Sequence[Pass], path: Path
    ) -> None:
        self.plan, self.engine = plan, engine
        self.sizes = [c.dictionary.size for c in counted.coded]
        by_pass = [cells_at(plan, counted, bound, one.node.levels) for one in done]
        self.levels = [{c.name: c.level for c in cells} for cells in by_pass]
        # A column is constant, or keeps its type, only where every pass says so.
        self.cells = [
            replace(same[0], constant=all(c.constant for c in same), typed=all(c.typed for c in same))
            for same in zip(*by_pass, strict=True)
        ]
        self.relations = LocalRelations(plan, engine, counted, done, by_pass, self.cells, path)
        self.cells = [self._with_enum(j, cell) for j, cell in enumerate(self.cells)]
        published = engine.fresh("published")
        engine.create(published, published_labels(self.relations.table("label_map"), self.cells))
        self.relations.add("published", published)

    def _with_enum(self, column: int, cell: Cell) -> Cell:
        if not _is_text(self.plan, cell):
            return cell
        labels = table(self.relations.table("label_map"))
        different = call("count", exp.Distinct(expressions=[col(f"l_{column}")]))
        (size,) = self.engine.row(exp.select(different).from_(labels))
        if size > ENUM_LIMIT or not size:
            return cell
        texts = exp.select(named(col(f"l_{column}"), "label")).from_(labels.copy())
        return replace(cell, enum=enumeration(self.engine, texts))

    def rows(self, kept: Sequence[tuple[str, exp.Expr]]) -> exp.Select:
        return local_rows(
            self.plan.relation.query, self.cells, self.sizes, self.relations.tables("tuple_map", "published"), kept
        )

    def beside(self, kept: Sequence[tuple[str, exp.Expr]], person: exp.Expr | None) -> SideBySide:
        through = _through(kept, person, "s")
        rows = coded_rows(self.plan.relation.query, self.cells, False, through)
        words = pack([col(f"k_{j}", "i") for j in range(len(self.cells))], self.sizes)
        labels = [named(text(c.top) if c.constant else col(f"q_{j}"), f"r_{j}") for j, c in enumerate(self.cells)]
        published = exp.select(named(col("class_id"), "code"), *labels).from_(table(self.relations.table("published")))
        lookups = (*_originals(self.cells), Lookup("class_id", published))
        rows = rows_in_classes(rows, words, self.relations.table("tuple_map"), len(self.cells), through)
        return SideBySide(rows, lookups, marked=True)

    def recoding(self) -> Recoding:
        return LocalRecoding(self.levels[0], self.plan, self.cells, self.engine, passes=tuple(self.levels))


class Regions(Recoder):
    """Every class has a region of its own."""

    by_code = True

    def __init__(
        self, plan: Plan, engine: Engine, counted: Frequency, bound: Sequence[Levels], division: Division
    ) -> None:
        self.plan, self.engine, self.division = plan, engine, division
        self.published = publish_boxes(plan, engine, counted, bound, division.boxes)
        self.cells = self.published.cells
        engine.later(counted.table, lambda: self._count(counted.table))
        functional = not getattr(plan.algorithm, "by_rows", False)
        row_map = None if functional else self._row_map
        self.relations = RegionRelations(plan, engine, counted, division.boxes, self.published, self._classed, row_map)

    @property
    def shown(self) -> Sequence[tuple[str, str]]:
        return self.published.inner

    def _count(self, name: str) -> None:
        """Make the frequency table a view, because few ask for it."""
        codes = [named(col(f"{CODE}{j}"), f"c_{j}") for j in range(len(self.cells))]
        every = exp.select(*codes, named(exp.Count(this=exp.Star()), "n")).from_(table(self.division.rows))
        self.engine.create_view(name, every.group_by(exp.var("ALL")))

    def _classed(self, kept: Sequence[tuple[str, exp.Expr]]) -> exp.Select:
        """Return ``(class_id, p_0, ...)`` of the rows whose classes are published."""
        passed = [named(qualified(expression, "s"), f"p_{i}") for i, (_, expression) in enumerate(kept)]
        inner = self.division.classed(passed)
        query = exp.select(col("class_id", "r"), *(col(f"p_{i}", "r") for i in range(len(kept))))
        on = exp.EQ(this=col("class_id", "c"), expression=col("class_id", "r"))
        return query.from_(subquery(inner, "r")).join(table(self.published.table, "c"), on=on)

    def _row_map(self) -> exp.Query:
        """Return ``(class_id, c_0, ..., u_0, ..., place)``: the classes of rows that are coded alike and passed alike.

        Such rows may lie in several classes, and nothing of what is published tells them apart: ``place`` counts them.
        """
        codes = [named(col(f"{CODE}{j}", "s"), f"c_{j}") for j in range(len(self.cells))]
        passed = [named(col(name, "s"), f"u_{i}") for i, name in enumerate(kept_columns(self.plan))]
        own = exp.func("COALESCE", col("ec", "p"), col("class_id", "r"))
        alike = [col(e.alias, "r") for e in (*codes, *passed)]
        order = exp.Order(expressions=[exp.Ordered(this=own.copy(), desc=False, nulls_first=False)])
        place = exp.Window(this=exp.RowNumber(), partition_by=[c.copy() for c in alike], order=order)
        query = exp.select(named(own, "class_id"), *alike, named(place, "place"))
        query = query.from_(subquery(self.division.classed([*codes, *passed]), "r"))
        on = exp.EQ(this=col("class_id", "p"), expression=col("class_id", "r"))
        return query.join(table(self.published.table, "p"), on=on, join_type="left")

    def rows(self, kept: Sequence[tuple[str, exp.Expr]]) -> exp.Select:
        passed = [named(qualified(expression, "s"), f"p_{i}") for i, (_, expression) in enumerate(kept)]
        inner = self.division.classed(passed)
        through = [col(f"p_{i}", "r") for i in range(len(kept))]
        labels = [col(name, "c") for _, name in self.published.inner]
        key = call("hash", param("key0"), param("key1"), col("ec", "c"), *(p.copy() for p in through))
        on = exp.EQ(this=col("class_id", "c"), expression=col("class_id", "r"))
        query = exp.select(*labels, *through).from_(subquery(inner, "r"))
        return query.join(table(self.published.table, "c"), on=on).order_by(key)

    def released(self, rows: exp.Query, columns: Sequence[tuple[str, str]]) -> exp.Select:
        # Sorted as enumerations, written as texts: DuckDB 2.0.0 with several threads now and then writes an empty text
        # in place of an enumeration's value.
        types = {c.name: c.type for c in self.engine.columns(exp.select("*").from_(table(self.published.table)))}
        texts = {name for name, kind in types.items() if kind.startswith("ENUM")}
        found = [cast(col(inner), "VARCHAR") if inner in texts else col(inner) for _, inner in columns]
        return exp.select(*(named(own, name) for own, (name, _) in zip(found, columns, strict=True))).from_(
            subquery(rows, "r")
        )

    def write(
        self,
        kept: Sequence[tuple[str, exp.Expr]],
        columns: Sequence[tuple[str, str]],
        path: Path,
        params: Mapping[str, int],
        count: int,
        from_file: Callable[[exp.Select], exp.Select] | None = None,
    ) -> bool:
        """Write the release by looking up its texts after the sort; False where rows are few or of other types."""
        names = [inner for _, inner in self.published.inner]
        if count < MANY_ROWS or not names:
            return False
        through = [named(qualified(e, "s"), f"p_{i}") for i, (_, e) in enumerate(kept)]
        passed = self.engine.columns(self.division.classed(through))[: len(through)]
        shown = self.engine.columns(exp.select(*(col(n) for n in names)).from_(table(self.published.table)))
        if not can_look_up(shown, passed):
            return False
        short = self.division.short if from_file is None else frozenset()
        short = frozenset(e.alias for e in through if e.this.name in short)
        rows = self._sorted_classes(through, short)
        if from_file is not None and self._joins:
            rows, params = from_file(rows), {}
        write_shuffled(self.engine, (self.published.table, names), rows, params, columns, path)
        return True

    @property
    def _joins(self) -> bool:
        """Whether the class that is published has to be looked up before rows are sorted."""
        return self.published.merged or self.division.suppressed > 0

    def _sorted_classes(self, kept: Sequence[exp.Expr], short: frozenset[str]) -> exp.Select:
        """Return ``(class_id, p_0, ...)`` of the rows that are published, in the order of ``rows``.

        Columns of ``short`` are enumerations, which are sorted as the texts that they are.
        """
        inner = self.division.classed(kept, texts=not short)
        through = [col(f"p_{i}", "r") for i in range(len(kept))]
        query = exp.select(named(cast(col("class_id", "r"), "INTEGER"), "class_id"), *through)
        query = query.from_(subquery(inner, "r"))
        own: exp.Expr = cast(col("class_id", "r"), "BIGINT")
        if self._joins:
            on = exp.EQ(this=col("class_id", "c"), expression=col("class_id", "r"))
            query, own = query.join(table(self.published.table, "c"), on=on), col("ec", "c")
        told = [cast(p.copy(), "VARCHAR") if p.name in short else p.copy() for p in through]
        return query.order_by(call("hash", param("key0"), param("key1"), own, *told))

    def beside(self, kept: Sequence[tuple[str, exp.Expr]], person: exp.Expr | None) -> SideBySide:
        codes = [named(col(f"{CODE}{j}", "s"), f"k_{j}") for j in range(len(self.cells))]
        through, texts = _through(kept, person, "s"), []
        for i, one in enumerate(through):
            if isinstance(one.this, exp.Column) and one.this.name in self.division.short:
                # As numbers: a text would be hashed again in each row.
                through[i], own = self._numbered_text(i, one.this)
                texts.append(own)
            else:
                through[i] = self.division.as_texts(one)
        rows = self.division.classed([*codes, *through], texts=False)
        shown = [named(col(name), name.replace("q_", "r_", 1)) for _, name in self.published.inner]
        published = exp.select(named(col("class_id"), "code"), *shown).from_(table(self.published.table))
        lookups = [*_originals(self.cells), *texts, Lookup("class_id", published)]
        middle = [axis for axis in self.published.axes if axis.column.output == "midpoint"]
        return SideBySide(rows, (*lookups, *(Lookup("class_id", self._ends(axis)) for axis in middle)))

    def _numbered_text(self, i: int, own: exp.Column) -> tuple[exp.Expr, Lookup]:
        """Return the number of a text that is stored as an enumeration, 0 for NULL, and the texts by their numbers."""
        code = exp.func("COALESCE", exp.Add(this=call("enum_code", own.copy()), expression=number(1)), number(0))
        texts = exp.select(named(code, "code"), named(cast(own.copy(), "VARCHAR"), f"p_{i}")).distinct()
        return named(code.copy(), f"u_{i}"), Lookup(f"u_{i}", texts.from_(table(self.division.rows, "s")))

    def _ends(self, axis: Axis) -> exp.Select:
        """Return ``(code, x_j, y_j)``: the ends of the regions that midpoints are of, as ticks."""
        boxes = self.division.boxes.table
        ends = [
            named(end, f"{side}_{axis.position}") for side, end in zip("xy", midpoint_ends(axis.column), strict=True)
        ]
        words = axis.column.keys()
        regions = exp.select(*words, *ends).from_(table(axis.regions))
        query = exp.select(named(col("class_id", "b"), "code"), *(col(e.alias, "r") for e in ends))
        on = axis.column.on("r", axis.position, "b")
        return query.from_(table(boxes, "b")).join(subquery(regions, "r"), on=on)

    def recoding(self) -> Recoding:
        return BoxRecoding({}, self.plan, self.cells, self.engine, names=self.published.columns)


__all__ = ["FullDomain", "Local", "Recoder", "Regions", "cells_at"]
