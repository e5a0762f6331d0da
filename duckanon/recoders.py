"""From a search's result to published rows: one level for each column, or several passes with levels of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sqlglot import exp

from duckanon.class_facts import class_relations, local_relations
from duckanon.encode import published_type
from duckanon.facts import Relations
from duckanon.recoding import LocalRecoding, Recoding
from duckanon.sqlgen.classes import published_labels
from duckanon.sqlgen.recode import Cell, local_rows, published_texts, shuffled_rows
from duckanon.sqlgen.relations import col, table

if TYPE_CHECKING:
    from duckanon.algorithms.local import Pass
    from duckanon.encode import Frequency
    from duckanon.engine.base import Engine
    from duckanon.hierarchy import Levels
    from duckanon.plan import Plan

# Beyond this many texts in a column, an enumeration costs more to look up in than its short codes save in the sort.
_ENUM_LIMIT = 50_000


class Recoder(Protocol):
    """Knows the classes of a release, and how a row of the source is published."""

    engine: Engine
    cells: list[Cell]
    relations: Relations

    def rows(self, kept: Sequence[tuple[str, exp.Expr]]) -> exp.Select:
        """Return the published rows as ``(q_0, ..., p_0, ...)``, p being ``kept``, in an order of their own."""

    def recoding(self) -> Recoding:
        """Return the recoding as the owner sees it."""


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


class FullDomain:
    """Every value of a column on one level."""

    def __init__(
        self, plan: Plan, engine: Engine, counted: Frequency, bound: Sequence[Levels], done: Pass, path: Path
    ) -> None:
        self.plan, self.engine, self.problem = plan, engine, done.problem
        self.cells = [self._with_enum(c) for c in cells_at(plan, counted, bound, done.node.levels)]
        self.relations = class_relations(engine, counted, done.node, self.cells, plan, path)

    def _with_enum(self, cell: Cell) -> Cell:
        if not _is_text(self.plan, cell) or cell.size > _ENUM_LIMIT:
            return cell
        found = replace(cell, enum=self.engine.fresh("enum"))
        self.engine.create_enum(str(found.enum), published_texts(found))
        return found

    def rows(self, kept: Sequence[tuple[str, exp.Expr]]) -> exp.Select:
        return shuffled_rows(self.plan.relation.query, self.cells, self.relations["class_map"], kept)

    def recoding(self) -> Recoding:
        levels = {c.name: c.level for c in self.cells}
        more = None if self.problem.size_only else self.relations
        return Recoding(levels, self.plan, self.cells, self.engine, self.problem.min_size, more)


class Local:
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
        self.relations = local_relations(engine, counted, done, by_pass, self.cells, plan, path)
        self.cells = [self._with_enum(j, cell) for j, cell in enumerate(self.cells)]
        published = engine.fresh("published")
        engine.create(published, published_labels(self.relations["label_map"], self.cells))
        self.relations["published"] = published

    def _with_enum(self, column: int, cell: Cell) -> Cell:
        if not _is_text(self.plan, cell):
            return cell
        texts = exp.select(col(f"l_{column}")).distinct().from_(table(self.relations["label_map"]))
        texts = texts.where(exp.Not(this=exp.Is(this=col(f"l_{column}"), expression=exp.null())))
        (size,) = self.engine.row(exp.select(exp.Count(this=exp.Star())).from_(texts.copy().subquery("t")))
        if size > _ENUM_LIMIT or not size:
            return cell
        found = replace(cell, enum=self.engine.fresh("enum"))
        self.engine.create_enum(str(found.enum), texts.order_by(col(f"l_{column}")))
        return found

    def rows(self, kept: Sequence[tuple[str, exp.Expr]]) -> exp.Select:
        return local_rows(self.plan.relation.query, self.cells, self.sizes, self.relations, kept)

    def recoding(self) -> Recoding:
        return LocalRecoding(self.levels[0], self.plan, self.cells, self.engine, passes=tuple(self.levels))


__all__ = ["FullDomain", "Local", "Recoder", "cells_at"]
