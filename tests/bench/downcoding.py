"""What bounds give away: exact values that are certain in tiny tables, and people singled out in ADULT.

``python -m tests.bench.downcoding tiny`` looks at every table of six rows over a domain of 4 x 4 values with k = 2: for
each release, all tables that would have been released in the same way are what an attacker has to reckon with, and a
value is known where it is the same in all of them. ``python -m tests.bench.downcoding adult ../shared/data`` tries the
predicates of ``duckanon.attack(..., attacks=["downcoding"])``.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any

import pyarrow as pa

import duckanon
from duckanon import Hierarchy

SIDE = 4
K = 2
Point = tuple[int, int]
Cell = tuple[int, int]
Table = tuple[Point, ...]
Classes = dict[tuple[Cell, ...], list[Point]]
QUASI = ["age", "workclass", "education", "marital-status", "race", "sex", "native-country"]


def tables(rows: int, side: int = SIDE) -> list[Table]:
    """Return every table of so many rows, whatever their order."""
    domain = list(product(range(side), repeat=2))
    return list(combinations_with_replacement(domain, rows))


def regions(every: Sequence[Table], bounds: str, width: int = 2, trees: bool = False) -> Iterator[Classes]:
    """Release all tables by our own Mondrian: each is a group of rows of its own within one large table.

    ``width`` is how many values a group of the first level has, of numbers or, with ``trees``, of categories.
    """
    points = [(i, *point) for i, table in enumerate(every) for point in table]
    columns: dict[str, list[Any]] = {name: [p[j] for p in points] for j, name in enumerate(("t", "a", "b"))}
    if trees:
        columns |= {name: [f"v{v}" for v in columns[name]] for name in "ab"}
    made = {name: (_tree(width) if trees else Hierarchy.intervals(width=width)) for name in "ab"}
    with duckanon.anonymize(
        pa.table({**columns, "row": range(len(points))}),
        quasi_identifiers=["t", "a", "b"],
        insensitive=["row"],
        within=["t"],
        bounds=bounds,
        output="interval" if trees else {"a": "bounds", "b": "bounds"},
        hierarchies=made if bounds == "grid" else {},
        k=K,
    ) as release:
        shown = release.to_arrow().sort_by("row")
    found: list[Classes] = [defaultdict(list) for _ in every]
    sides = [_labelled(shown[c].to_pylist(), width) if trees else _bounded(shown, c) for c in "ab"]
    for (i, *point), *box in zip(points, *sides, strict=True):
        found[i][tuple(box)].append((point[0], point[1]))
    return iter(found)


def _bounded(shown: pa.Table, column: str) -> list[Cell]:
    # An open bound reaches to the end of the domain.
    ends = zip(*(shown[f"{column}_{side}"].to_pylist() for side in ("lo", "hi")), strict=True)
    return [(0 if lo is None else int(lo), SIDE - 1 if hi is None else int(hi)) for lo, hi in ends]


def _tree(width: int) -> Hierarchy:
    groups = [f"g{v // width}" for v in range(SIDE)]
    levels = {"l0": [f"v{v}" for v in range(SIDE)], "l1": groups, "l2": ["*"] * SIDE}
    return Hierarchy.from_table(pa.table(levels if width < SIDE else {"l0": levels["l0"], "l1": levels["l2"]}))


def _labelled(labels: Sequence[str], width: int) -> list[Cell]:
    known = {"*": (0, SIDE - 1)} | {f"v{v}": (v, v) for v in range(SIDE)}
    known |= {f"g{g}": (g * width, (g + 1) * width - 1) for g in range(SIDE // width)}
    return [known[label] for label in labels]


def full_domain(every: Sequence[Table]) -> Iterator[Classes]:
    """Release all tables on the first node of levels 0, 1, 2 that is k-anonymous, by height and then by levels."""
    nodes = sorted(product(range(3), repeat=2), key=lambda n: (sum(n), n))
    for table in every:
        for node in nodes:
            found: Classes = defaultdict(list)
            for point in table:
                found[tuple(_cell(v, level) for v, level in zip(point, node, strict=True))].append(point)
            if all(len(rows) >= K for rows in found.values()):
                yield found
                break


def _cell(value: int, level: int) -> Cell:
    width = 2**level
    low = value // width * width
    return low, low + width - 1


def certain(released: Iterable[Classes]) -> tuple[int, int]:
    """Return how many generalized cells have a value that is certain, and how many there are.

    The cells of a class are those of its members sorted by value: two people with 1 and 3, whoever has which, are known
    exactly where every table that fits has a 1 and a 3 there.
    """
    worlds: dict[Any, list[Classes]] = defaultdict(list)
    for classes in released:
        worlds[tuple(sorted((box, len(rows)) for box, rows in classes.items()))].append(classes)
    known = total = 0
    for shown, fitting in worlds.items():
        for box, size in shown:
            for j, (low, high) in enumerate(box):
                if low == high:
                    continue
                values = [sorted(row[j] for row in classes[box]) for classes in fitting]
                alike = sum(len({v[i] for v in values}) == 1 for i in range(size))
                known, total = known + alike * len(fitting), total + size * len(fitting)
    return known, total


ALGORITHMS: dict[str, Callable[[Sequence[Table]], Iterator[Classes]]] = {
    "tight": lambda every: regions(every, "tight"),
    "cut": lambda every: regions(every, "cut"),
    "full domain": full_domain,
    "grid of 2 values": lambda every: regions(every, "grid"),
    "grid of 4 values": lambda every: regions(every, "grid", 4),
    "trees with groups of 2 values": lambda every: regions(every, "grid", 2, trees=True),
    "trees with groups of 4 values": lambda every: regions(every, "grid", 4, trees=True),
}


def adult(folder: Path, bounds: str, k: int = 5) -> Any:
    """Return the finding of the predicates with a bound."""
    path = str(folder / "adult" / "data.parquet")
    with duckanon.anonymize(path, quasi_identifiers=QUASI, sensitive=["occupation"], k=k, bounds=bounds) as release:
        return duckanon.attack(path, release, attacks=["downcoding"]).findings[0]


if __name__ == "__main__":
    if sys.argv[1] == "tiny":
        every = tables(int(sys.argv[2]) if len(sys.argv) > 2 else 6)
        for name, make in ALGORITHMS.items():
            known, total = certain(make(every))
            print(
                f"{len(every)} tables, {name}: {known} of {total} generalized cells are certain ({known / total:.1%})"
            )
    else:
        for bounds in ("tight", "cut", "grid"):
            found = adult(Path(sys.argv[2]), bounds)
            print(f"ADULT, {bounds}: {found.success:.1%} single out (chance {found.base_rate:.1%}), {found.rows} tried")
