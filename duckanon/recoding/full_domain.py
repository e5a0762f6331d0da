"""Full-domain recoding: every value of a column stands on one level of its hierarchy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sqlglot import exp

from duckanon.encoding.dictionaries import ENUM_LIMIT, enumeration, published_type
from duckanon.engine.sql.classes import class_shares
from duckanon.engine.sql.recode import (
    Cell,
    code_labels,
    coded_rows,
    published_texts,
    released_rows,
    rows_in_classes,
    shuffled_rows,
)
from duckanon.engine.sql.relations import col, named, number, pack, subquery, table
from duckanon.errors import UnsupportedError
from duckanon.plan.publication import has_distance
from duckanon.recoding.base import Lookup, Recoder, SideBySide, originals, through
from duckanon.recoding.recoding import Recoding
from duckanon.recoding.relations.levels import FullDomainRelations

if TYPE_CHECKING:
    from duckanon.algorithms.full_domain.local import Pass
    from duckanon.encoding.dictionaries import Frequency
    from duckanon.engine.base import Engine
    from duckanon.hierarchy import Levels
    from duckanon.plan.plan import Plan


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


def is_text(plan: Plan, cell: Cell) -> bool:
    kind = next(a.type for a in plan.roles.quasi_identifiers if a.name == cell.name)
    return not cell.constant and (not cell.typed or published_type(kind) == "VARCHAR")


class OnLevels(Recoder):
    """What recoders that put values on levels have in common."""

    @property
    def shown(self) -> Sequence[tuple[str, str]]:
        return [(c.name, f"q_{j}") for j, c in enumerate(self.cells)]

    def released(self, rows: exp.Query, columns: Sequence[tuple[str, str]]) -> exp.Select:
        return released_rows(rows, self.cells, columns)


class FullDomain(OnLevels):
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
        """Raise if two classes would be published alike: counts by class would then not be those of the file."""
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
        if not is_text(self.plan, cell) or cell.size > ENUM_LIMIT:
            return cell
        return replace(cell, enum=enumeration(self.engine, published_texts(cell)))

    def rows(self, extra: Sequence[tuple[str, exp.Expr]]) -> exp.Select:
        return shuffled_rows(self.plan.relation.query, self.cells, self.relations.table("class_map"), extra)

    def beside(self, extra: Sequence[tuple[str, exp.Expr]], person: exp.Expr | None) -> SideBySide:
        passed, lookups = through(extra, person, "s"), originals(self.cells)
        rows = coded_rows(self.plan.relation.query, self.cells, True, passed)
        codes = [number(0) if c.constant else col(f"g_{j}", "i") for j, c in enumerate(self.cells)]
        words = pack(codes, [c.size for c in self.cells])
        for j, cell in enumerate(self.cells):
            if cell.shares is not None:
                query = exp.select(named(col("class_id"), "code"), named(col("q"), f"r_{j}")).from_(table(cell.shares))
                lookups.append(Lookup("class_id", query))
            else:
                lookups.append(Lookup(f"k_{j}", code_labels(cell, f"r_{j}")))
        rows = rows_in_classes(rows, words, self.relations.table("class_map"), len(self.cells), passed)
        return SideBySide(rows, tuple(lookups), marked=True)

    def recoding(self) -> Recoding:
        levels = {c.name: c.level for c in self.cells}
        more = None if self.problem.size_only else self.relations.table("class_map")
        return Recoding(levels, self.plan, self.cells, self.engine, self.problem.min_size, more)


__all__ = ["FullDomain", "OnLevels", "cells_at", "is_text"]
