"""Labels whose way up leads round in a circle."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any


def on_loops(columns: Sequence[Any]) -> int:
    """Return how many labels, taken over all levels, have a way up that leads back to them.

    A label repeated on the next level fills up a short branch and is no way. A top ``*`` ends every way, although it
    may also be a value of the data.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    if pc.unique(columns[-1]).to_pylist() == ["*"]:
        columns = columns[:-1]
    ways = []
    for child, parent in pairwise(columns):
        below, above = child.dictionary_encode(), parent.dictionary_encode()
        known = pc.and_(child.is_valid(), parent.is_valid())
        first, second = (e.indices.filter(known).to_numpy().astype(np.int64) for e in (below, above))
        pairs = np.unique(first * max(len(above.dictionary), 1) + second)
        low, high = np.divmod(pairs, max(len(above.dictionary), 1))
        steps = pa.table({"child": below.dictionary.take(low), "parent": above.dictionary.take(high)})
        ways.append(steps.filter(pc.not_equal(steps["child"], steps["parent"])))
    if not ways:
        return 0
    found = pa.concat_tables(ways)
    # What nothing leads to is on no loop: that spares all leaves of an ordinary hierarchy.
    found = found.filter(pc.is_in(found["child"], value_set=found["parent"].combine_chunks()))
    up: dict[str, set[str]] = {}
    for below, above in zip(found["child"].to_pylist(), found["parent"].to_pylist(), strict=True):
        up.setdefault(below, set()).add(above)
    return _in_components(up)


def _in_components(up: dict[str, set[str]]) -> int:
    """Return how many nodes of a graph lie on a loop: all of a strong component with more than one node (Tarjan)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    waiting: list[str] = []
    open_: set[str] = set()
    count = 0
    for root in up:
        if root in order:
            continue
        path = [(root, iter(up[root]))]
        order[root] = lowest[root] = len(order)
        waiting.append(root)
        open_.add(root)
        while path:
            node, further = path[-1]
            step = next((n for n in further if n not in order or n in open_), None)
            if step is None:
                path.pop()
                if path:
                    lowest[path[-1][0]] = min(lowest[path[-1][0]], lowest[node])
                if lowest[node] == order[node]:
                    size = 0
                    while node in open_:
                        open_.discard(waiting.pop())
                        size += 1
                    count += size if size > 1 else 0
            elif step in order:
                lowest[node] = min(lowest[node], order[step])
            else:
                order[step] = lowest[step] = len(order)
                waiting.append(step)
                open_.add(step)
                path.append((step, iter(up.get(step, ()))))
    return count
