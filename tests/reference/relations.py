"""The relations with fixed columns of a table and its release, straight from their definitions, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from reference.metrics import told
from reference.tables import Table


def relations_of(table: Table, names: Sequence[str]) -> dict[str, list[tuple[Any, ...]]]:
    """The relations of a table, written down from their definitions."""
    text = {None: None}
    keys: list[Any] = list(dict.fromkeys(table.cells))
    ids = {key: i + 1 for i, key in enumerate(keys)}
    groups = [ids[c] for c in table.cells]
    found: dict[str, list[tuple[Any, ...]]] = {name: [] for name in ("class_cells", "domain", "pairs", "cell_values")}
    found["classes"] = [(ids[k], groups.count(ids[k]), k is None) for k in keys]
    found["column_values"] = []
    for j, (name, d) in enumerate(zip(names, table.domains, strict=True)):
        column = table.column(j)
        spans = [] if d.numbers is None else [x for x in d.numbers.values() if x is not None]
        limits = (min(spans), max(spans)) if spans else (None, None)
        kind = "unordered" if d.numbers is None else "ordered"
        found["domain"].append((name, kind, d.height, d.leaves, *limits, d.weight, d.labels))
        for v in set(column):
            row = (text.get(v, str(v)), table.number(j, v), column.count(v))
            found["column_values"].append((name, *row))
            found["cell_values"] += [(name, c.text, *row) for c in table.known[j] if v in c.covers]
        for key in keys:
            if key is not None:
                cell = key[j]
                inside = [] if d.numbers is None else [x for x in (d.numbers[v] for v in cell.covers) if x is not None]
                span = (min(inside), max(inside)) if inside else (None, None)
                found["class_cells"].append((ids[key], name, cell.text, cell.level, cell.leaves, *span))
    distinct = list(dict.fromkeys(table.rows))
    inside = list(zip(table.rows, groups, strict=True))
    found["tuples"] = [(distinct.index(r), g, inside.count((r, g))) for r, g in dict.fromkeys(inside)]
    found["tuple_values"] = [
        (i, name, text.get(r[j], str(r[j])), table.number(j, r[j]))
        for i, r in enumerate(distinct)
        for j, name in enumerate(names)
    ]
    for i, j in combinations(range(table.width + 1), 2):
        (before_i, after_i), (before_j, after_j) = told(table, i), told(table, j)
        for released, xs, ys in ((False, before_i, before_j), (True, after_i, after_j)):
            both = [tuple(None if v is None else str(v) for v in pair) for pair in zip(xs, ys, strict=True)]
            own = (released, *((*names, "ill")[at] for at in (i, j)))
            found["pairs"] += [(*own, *pair, both.count(pair)) for pair in set(both)]
    assert table.labels is not None
    ill = [(g, v) for g, v, c in zip(groups, table.labels, table.cells, strict=True) if c is not None]
    found["class_values"] = [(g, "ill", v, ill.count((g, v))) for g, v in set(ill)]
    return found
