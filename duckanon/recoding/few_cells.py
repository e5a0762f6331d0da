"""The names of regions, found in memory where values and classes are few: that saves many small statements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from duckanon.engine.sql.boxes import RUN

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.encoding.dictionaries import Coded
    from duckanon.engine.base import Engine
    from duckanon.engine.sql.axes import BoxColumn

FEW_CLASSES = 100_000
"""Most classes whose regions are also kept in memory."""


@dataclass(frozen=True)
class NamedClasses:
    """The classes that are kept: ``table`` is that of ``Boxes``, and has ``q_j`` of columns whose names were found.

    ``names`` counts the different names of each such column, ``used`` has the levels of the regions of every column.
    """

    table: str
    names: dict[int, int]
    used: list[set[int]]


def name_classes(engine: Engine, columns: Sequence[BoxColumn], coded: Sequence[Coded], boxes: pa.Table) -> NamedClasses:
    """Look up what is published of classes, in the columns where that can be told without the database."""
    import numpy as np

    kept = boxes.filter(boxes.column("kept"))
    names, used = {}, []
    for j, (column, own) in enumerate(zip(columns, coded, strict=True)):
        used.append(set(np.unique(kept.column(f"v_{j}").to_numpy()).tolist()))
        found = _names(column, own, kept, j) if RUN not in used[-1] else None
        if found is not None:
            kept = kept.append_column(f"q_{j}", found)
            names[j] = len(found.drop_null().unique())
    classes = engine.fresh("classes")
    engine.later(classes, lambda: engine.register(classes, kept))
    return NamedClasses(classes, names, used)


def _names(column: BoxColumn, coded: Coded, kept: pa.Table, position: int) -> pa.Array | None:
    """Return the ``cell`` that ``regions_query`` gives to the region of each class, none of which is a run.

    None where the hierarchy is no list, where values are computed with, and where all are published in their own type.
    """
    import numpy as np
    import pyarrow as pa

    texts = coded.dictionary.texts
    if texts is None or coded.arrays is None or column.output not in ("interval", "lca"):
        return None
    a, b, v = (kept.column(f"{c}_{position}").to_numpy().astype(np.int64) for c in "abv")
    level = v.copy()
    if column.null_code is not None:
        level[(v > 0) & (a != column.null_code) & (b == column.null_code)] = column.height
    if column.type != "VARCHAR" and not level.any():
        return None
    levels, labels = coded.arrays
    codes = np.stack([levels.column(f"c{step}").to_numpy() for step in range(column.height + 1)]).astype(np.int64)
    # All names in one array: the values, the labels of level 1, of level 2 and so on, and the top.
    names = pa.concat_arrays([texts, labels.column("label").combine_chunks(), pa.array([column.top], pa.string())])
    firsts = np.concatenate([[0], np.cumsum(coded.sizes)])
    at = firsts[level] + codes[level, a]
    at[level == column.height] = len(names) - 1
    return names.take(pa.array(at))
