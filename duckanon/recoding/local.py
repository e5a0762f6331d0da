"""Recoding in several passes: what one suppresses, the next recodes at levels of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sqlglot import exp

from duckanon.encoding.dictionaries import ENUM_LIMIT, enumeration
from duckanon.engine.sql.classes import published_labels
from duckanon.engine.sql.recode import Cell, coded_rows, local_rows, rows_in_classes
from duckanon.engine.sql.relations import call, col, named, pack, table, text
from duckanon.recoding.base import Lookup, SideBySide, originals, through
from duckanon.recoding.recoding import LocalRecoding, Recoding
from duckanon.recoding.relations.levels import LocalRelations

if TYPE_CHECKING:
    from duckanon.algorithms.full_domain.local import Pass
    from duckanon.encoding.dictionaries import Frequency
    from duckanon.engine.base import Engine
    from duckanon.hierarchy import Levels
    from duckanon.plan.plan import Plan

from duckanon.recoding.full_domain import OnLevels, cells_at, is_text


class Local(OnLevels):
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
        if not is_text(self.plan, cell):
            return cell
        labels = table(self.relations.table("label_map"))
        different = call("count", exp.Distinct(expressions=[col(f"l_{column}")]))
        (size,) = self.engine.row(exp.select(different).from_(labels))
        if size > ENUM_LIMIT or not size:
            return cell
        texts = exp.select(named(col(f"l_{column}"), "label")).from_(labels.copy())
        return replace(cell, enum=enumeration(self.engine, texts))

    def rows(self, extra: Sequence[tuple[str, exp.Expr]]) -> exp.Select:
        return local_rows(
            self.plan.relation.query, self.cells, self.sizes, self.relations.tables("tuple_map", "published"), extra
        )

    def beside(self, extra: Sequence[tuple[str, exp.Expr]], person: exp.Expr | None) -> SideBySide:
        passed = through(extra, person, "s")
        rows = coded_rows(self.plan.relation.query, self.cells, False, passed)
        words = pack([col(f"k_{j}", "i") for j in range(len(self.cells))], self.sizes)
        labels = [named(text(c.top) if c.constant else col(f"q_{j}"), f"r_{j}") for j, c in enumerate(self.cells)]
        published = exp.select(named(col("class_id"), "code"), *labels).from_(table(self.relations.table("published")))
        lookups = (*originals(self.cells), Lookup("class_id", published))
        rows = rows_in_classes(rows, words, self.relations.table("tuple_map"), len(self.cells), passed)
        return SideBySide(rows, lookups, marked=True)

    def recoding(self) -> Recoding:
        return LocalRecoding(self.levels[0], self.plan, self.cells, self.engine, passes=tuple(self.levels))


__all__ = ["Local"]
