"""What is known of a release: the relations that models, metrics, risk and comparison read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from duckanon.algorithms.nodes import Node, by_class
from duckanon.sqlgen.recode import Cell, class_cells, class_table
from duckanon.sqlgen.relations import cast, col, named, number, table, text, union_all

if TYPE_CHECKING:
    from duckanon.encode import Frequency
    from duckanon.engine.base import Engine


def class_relations(
    engine: Engine, counted: Frequency, node: Node, cells: Sequence[Cell], min_size: int
) -> dict[str, str]:
    """Create the tables that describe the classes: the seam that models, metrics and the recoding read."""
    names = {key: engine.fresh(key) for key in ("class_map", "classes", "class_cells", "domain")}
    engine.create(names["class_map"], class_table(by_class(node.table, len(cells), counted.entity), cells, min_size))
    suppressed = named(exp.Not(this=col("kept")), "suppressed")
    engine.create(names["classes"], exp.select(col("class_id"), col("n"), suppressed).from_(table(names["class_map"])))
    engine.create(names["class_cells"], class_cells(names["class_map"], cells))
    rows = [
        exp.select(
            named(text(c.dictionary.attribute), "attribute"),
            named(text("full_domain"), "kind"),
            named(number(c.height), "height"),
            named(number(c.domain_size), "leaves"),
            named(cast(exp.null(), "DOUBLE"), "lo"),
            named(cast(exp.null(), "DOUBLE"), "hi"),
            named(cast(number(1), "DOUBLE"), "weight"),
        )
        for c in counted.coded
    ]
    engine.create(names["domain"], union_all(rows))
    engine.drop(node.table)
    names["frequency"] = counted.table
    return names
