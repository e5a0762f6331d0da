"""Recoding by regions: every class of a partition has a region of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sqlglot import exp

from duckanon.engine.sql.boxes import midpoint_ends
from duckanon.engine.sql.dialect import shuffle_key
from duckanon.engine.sql.relations import call, cast, col, named, number, qualified, subquery, table
from duckanon.io.shuffled_writer import MANY_ROWS, can_look_up, write_shuffled
from duckanon.recoding.base import Lookup, Recoder, SideBySide, originals, through
from duckanon.recoding.coded_rows import CODE, kept_columns
from duckanon.recoding.recoding import BoxRecoding, Recoding
from duckanon.recoding.region_labels import publish_boxes
from duckanon.recoding.relations.regions import RegionRelations

if TYPE_CHECKING:
    from duckanon.encoding.dictionaries import Frequency
    from duckanon.engine.base import Engine
    from duckanon.hierarchy import Levels
    from duckanon.plan.plan import Plan
    from duckanon.recoding.partitioned_rows import Division
    from duckanon.recoding.region_labels import RegionColumn


class Regions(Recoder):
    """Every class has a region of its own."""

    by_code = True

    def __init__(
        self, plan: Plan, engine: Engine, counted: Frequency, bound: Sequence[Levels], division: Division
    ) -> None:
        self.plan, self.engine, self.division = plan, engine, division
        self.published = publish_boxes(plan, engine, counted, bound, division.boxes)
        self.cells = self.published.cells
        functional = not getattr(plan.algorithm, "by_rows", False)
        row_map = None if functional else self._row_map
        self.relations = RegionRelations(plan, engine, counted, division.boxes, self.published, self._classed, row_map)

    @property
    def shown(self) -> Sequence[tuple[str, str]]:
        return self.published.inner

    def _classed(self, extra: Sequence[tuple[str, exp.Expr]]) -> exp.Select:
        """Return ``(class_id, p_0, ...)`` of the rows whose classes are published."""
        passed = [named(qualified(expression, "s"), f"p_{i}") for i, (_, expression) in enumerate(extra)]
        inner = self.division.classed(passed)
        query = exp.select(col("class_id", "r"), *(col(f"p_{i}", "r") for i in range(len(extra))))
        on = exp.EQ(this=col("class_id", "c"), expression=col("class_id", "r"))
        return query.from_(subquery(inner, "r")).join(table(self.published.table, "c"), on=on)

    def _row_map(self) -> exp.Query:
        """Return ``(class_id, c_0, ..., u_0, ..., place)``: the classes of rows that are coded alike and passed alike.

        Such rows may lie in several classes, and their published columns do not say in which: ``place`` numbers them.
        """
        codes = [named(col(f"{CODE}{j}", "s"), f"c_{j}") for j in range(len(self.cells))]
        passed = [named(col(name, "s"), f"u_{i}") for i, name in enumerate(kept_columns(self.plan))]
        number_of_class = exp.func("COALESCE", col("ec", "p"), col("class_id", "r"))
        alike = [col(e.alias, "r") for e in (*codes, *passed)]
        order = exp.Order(expressions=[exp.Ordered(this=number_of_class.copy(), desc=False, nulls_first=False)])
        place = exp.Window(this=exp.RowNumber(), partition_by=[c.copy() for c in alike], order=order)
        query = exp.select(named(number_of_class, "class_id"), *alike, named(place, "place"))
        query = query.from_(subquery(self.division.classed([*codes, *passed]), "r"))
        on = exp.EQ(this=col("class_id", "p"), expression=col("class_id", "r"))
        return query.join(table(self.published.table, "p"), on=on, join_type="left")

    def rows(self, extra: Sequence[tuple[str, exp.Expr]]) -> exp.Select:
        passed = [named(qualified(expression, "s"), f"p_{i}") for i, (_, expression) in enumerate(extra)]
        inner = self.division.classed(passed)
        through = [col(f"p_{i}", "r") for i in range(len(extra))]
        labels = [col(name, "c") for _, name in self.published.inner]
        key = shuffle_key(col("ec", "c"), *(p.copy() for p in through))
        on = exp.EQ(this=col("class_id", "c"), expression=col("class_id", "r"))
        query = exp.select(*labels, *through).from_(subquery(inner, "r"))
        return query.join(table(self.published.table, "c"), on=on).order_by(key)

    def released(self, rows: exp.Query, columns: Sequence[tuple[str, str]]) -> exp.Select:
        # Sorted as enumerations, but written as texts: with several threads DuckDB 2.0.0 sometimes writes an empty
        # text in place of the value of an enumeration.
        types = {c.name: c.type for c in self.engine.columns(exp.select("*").from_(table(self.published.table)))}
        texts = {name for name, kind in types.items() if kind.startswith("ENUM")}
        values = [cast(col(inner), "VARCHAR") if inner in texts else col(inner) for _, inner in columns]
        return exp.select(*(named(own, name) for own, (name, _) in zip(values, columns, strict=True))).from_(
            subquery(rows, "r")
        )

    def write(
        self,
        extra: Sequence[tuple[str, exp.Expr]],
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
        through = [named(qualified(e, "s"), f"p_{i}") for i, (_, e) in enumerate(extra)]
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

    def _sorted_classes(self, extra: Sequence[exp.Expr], short: frozenset[str]) -> exp.Select:
        """Return ``(class_id, p_0, ...)`` of the rows that are published, in the order of ``rows``.

        Columns of ``short`` are enumerations, which are sorted as the texts that they are.
        """
        inner = self.division.classed(extra, texts=not short)
        through = [col(f"p_{i}", "r") for i in range(len(extra))]
        query = exp.select(named(cast(col("class_id", "r"), "INTEGER"), "class_id"), *through)
        query = query.from_(subquery(inner, "r"))
        class_key: exp.Expr = cast(col("class_id", "r"), "BIGINT")
        if self._joins:
            on = exp.EQ(this=col("class_id", "c"), expression=col("class_id", "r"))
            query, class_key = query.join(table(self.published.table, "c"), on=on), col("ec", "c")
        sort_values = [cast(p.copy(), "VARCHAR") if p.name in short else p.copy() for p in through]
        return query.order_by(shuffle_key(class_key, *sort_values))

    def beside(self, extra: Sequence[tuple[str, exp.Expr]], person: exp.Expr | None) -> SideBySide:
        codes = [named(col(f"{CODE}{j}", "s"), f"k_{j}") for j in range(len(self.cells))]
        passed, texts = through(extra, person, "s"), []
        for i, one in enumerate(passed):
            if isinstance(one.this, exp.Column) and one.this.name in self.division.short:
                # As numbers, because a text would be hashed again in every row.
                passed[i], lookup = self._numbered_text(i, one.this)
                texts.append(lookup)
            else:
                passed[i] = self.division.as_texts(one)
        rows = self.division.classed([*codes, *passed], texts=False)
        shown = [named(col(name), name.replace("q_", "r_", 1)) for _, name in self.published.inner]
        published = exp.select(named(col("class_id"), "code"), *shown).from_(table(self.published.table))
        lookups = [*originals(self.cells), *texts, Lookup("class_id", published)]
        middle = [region for region in self.published.regions if region.column.output == "midpoint"]
        return SideBySide(rows, (*lookups, *(Lookup("class_id", self._ends(region)) for region in middle)))

    def _numbered_text(self, i: int, column: exp.Column) -> tuple[exp.Expr, Lookup]:
        """Return the number of a text that is stored as an enumeration, 0 for NULL, and the texts by their numbers."""
        code = exp.func("COALESCE", exp.Add(this=call("enum_code", column.copy()), expression=number(1)), number(0))
        texts = exp.select(named(code, "code"), named(cast(column.copy(), "VARCHAR"), f"p_{i}")).distinct()
        return named(code.copy(), f"u_{i}"), Lookup(f"u_{i}", texts.from_(table(self.division.rows, "s")))

    def _ends(self, region: RegionColumn) -> exp.Select:
        """Return ``(code, x_j, y_j)``: the ends of the regions that midpoints are of, as ticks."""
        boxes = self.division.boxes.table
        ends = [
            named(end, f"{side}_{region.position}")
            for side, end in zip("xy", midpoint_ends(region.column), strict=True)
        ]
        words = region.column.keys()
        regions = exp.select(*words, *ends).from_(table(region.regions))
        query = exp.select(named(col("class_id", "b"), "code"), *(col(e.alias, "r") for e in ends))
        on = region.column.on("r", region.position, "b")
        return query.from_(table(boxes, "b")).join(subquery(regions, "r"), on=on)

    def recoding(self) -> Recoding:
        return BoxRecoding({}, self.plan, self.cells, self.engine, names=self.published.columns)


__all__ = ["Regions"]
