"""Any metric of any node of the lattice, by the statement that measures a release."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp

from duckanon.encoding.counting import count_domain
from duckanon.encoding.dictionaries import dictionary, frequency
from duckanon.engine.sql.classes import counted_values
from duckanon.engine.sql.relations import union_all
from duckanon.metrics.base import measure
from duckanon.plan.roles import Role
from duckanon.recoding.recoders import cells_at
from duckanon.recoding.relations.levels import class_relations
from duckanon.recoding.relations.relations import Relations
from duckanon.release.release import metric_parameters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duckanon.algorithms.full_domain.nodes import Node
    from duckanon.encoding.dictionaries import Frequency
    from duckanon.engine.base import Engine
    from duckanon.engine.sql.recode import Cell
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
    _values: list[tuple[str, str, str]] = field(default_factory=list)
    """Sensitive columns, with the tables of their counts and of their values."""
    _domain: str | None = None

    def __call__(self, metric: str, node: Node) -> float:
        """Return the value, infinite where there is none; the node's tables are gone then."""
        cells = cells_at(self.plan, self.counted, self.bound, node.levels)
        relations = class_relations(self.engine, self.counted, node, cells, self.plan)
        self._describe_sensitive(relations, cells)
        try:
            found = measure(self.engine, relations, [metric], metric_parameters(self.plan))
        finally:
            relations.drop("frequency", "domain_values")
        (whole,) = [m for m in found if m.attribute is None]
        if whole.value is None:
            return float("inf")
        return whole.value if whole.direction == "lower" else -whole.value

    def _describe_sensitive(self, relations: Relations, cells: Sequence[Cell]) -> None:
        sensitive = [a for a in self.plan.roles.published if a.role is Role.SENSITIVE]
        if not sensitive:
            return
        original = {a.name: self.plan.expression(a) for a in sensitive}
        source = self.plan.relation.query

        def domain_values() -> str:
            if self._domain is None:
                self._domain = count_domain(self.engine, source, original)
            return self._domain

        def class_values() -> exp.Query:
            if not self._values:
                for name, expression in original.items():
                    values = dictionary(self.engine, source, name, expression)
                    tally = frequency(self.engine, source, self.counted.coded, value=values)
                    self._values.append((name, tally.table, values.table))
            return union_all([counted_values(*one, relations["class_map"], cells) for one in self._values])

        relations.recipes |= {"class_values": class_values, "domain_values": domain_values}
