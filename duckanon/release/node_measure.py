"""Any metric of a node of the lattice, computed by the statement that measures a release."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from sqlglot import exp

from duckanon.encoding.counting import count_domain
from duckanon.encoding.dictionaries import dictionary, frequency
from duckanon.engine.sql.classes import counted_values
from duckanon.engine.sql.recode import Cell, coded_rows, rows_in_classes
from duckanon.engine.sql.relations import col, named, number, pack, qualified, relation, subquery, union_all
from duckanon.metrics.base import measure, metric_parameters
from duckanon.plan.roles import Role
from duckanon.recoding.full_domain import FullDomainRelations, cells_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duckanon.algorithms.full_domain.nodes import Node
    from duckanon.encoding.dictionaries import Frequency
    from duckanon.engine.base import Engine
    from duckanon.hierarchy import Levels
    from duckanon.plan.plan import Plan


@dataclass
class NodeMeasure:
    """Measures metrics on the relations that the release of a node would have; lower is better.

    Sensitive values are counted once, by the first metric that reads them.
    """

    plan: Plan
    engine: Engine
    counted: Frequency
    bound: Sequence[Levels]

    def __call__(self, metric: str, node: Node) -> float:
        """Return the value, infinite if there is none, and drop the node's tables."""
        cells = cells_at(self.plan, self.counted, self.bound, node.levels)
        relations = _NodeRelations(self, node, cells)
        try:
            found = measure(self.engine, relations, [metric], metric_parameters(self.plan.models))
        finally:
            relations.drop("frequency", "domain_values")
        (whole,) = [m for m in found if m.attribute is None]
        if whole.value is None:
            return float("inf")
        return whole.value if whole.direction == "lower" else -whole.value

    @cached_property
    def sensitive(self) -> dict[str, exp.Expr]:
        """The sensitive columns with their expressions in the source."""
        return {a.name: self.plan.expression(a) for a in self.plan.roles.published if a.role is Role.SENSITIVE}

    @cached_property
    def domain_values(self) -> str:
        """The table of the sensitive values of the source."""
        return count_domain(self.engine, self.plan.relation.query, self.sensitive)

    @cached_property
    def values(self) -> list[tuple[str, str, str]]:
        """Sensitive columns, with the tables of their counts and of their values."""
        found = []
        for name, expression in self.sensitive.items():
            own = dictionary(self.engine, self.plan.relation.query, name, expression)
            tally = frequency(self.engine, self.plan.relation.query, self.counted.coded, value=own)
            found.append((name, tally.table, own.table))
        return found


class _NodeRelations(FullDomainRelations):
    """The relations that the release of a node would have, of which no row is written."""

    def __init__(self, measure: NodeMeasure, node: Node, cells: Sequence[Cell]) -> None:
        super().__init__(measure.plan, measure.engine, measure.counted, node, cells)
        self._measure = measure

    @relation
    def class_values(self) -> exp.Query:
        """``(class_id, attribute, value, n)``: the sensitive values of the published classes."""
        classes = self.table("class_map")
        return union_all([counted_values(*one, classes, self.published) for one in self._measure.values])

    @relation
    def domain_values(self) -> str:
        """``(attribute, value, n)``: the sensitive values of the source."""
        return self._measure.domain_values

    def class_rows(self) -> exp.Query:
        through = [named(qualified(e, "s"), f"p_{i}") for i, e in enumerate(self._measure.sensitive.values())]
        codes = [number(0) if c.constant else col(f"g_{j}", "i") for j, c in enumerate(self.published)]
        coded = coded_rows(self.plan.relation.query, self.published, True, through)
        words = pack(codes, [c.size for c in self.published])
        placed = rows_in_classes(coded, words, self.table("class_map"), len(self.published), through)
        columns = [col("class_id"), *(col(t.alias) for t in through)]
        query = exp.select(*columns, named(exp.Count(this=exp.Star()), "n")).from_(subquery(placed, "r"))
        return query.where(col("kept")).group_by(*(c.copy() for c in columns))
