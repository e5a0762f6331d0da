"""Loss metrics straight from their definitions, row by row, on plain Python tables.

Every metric returns a dictionary: the whole release under None, attributes under their positions where the metric is
defined for them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import combinations
from statistics import mean, median

import numpy as np
from reference.tables import Cell, Table

Found = dict[int | None, float]


def _per_attribute(table: Table, share: Callable[[int, Cell | None], float]) -> list[float]:
    """Sum over rows of ``share(j, cell)``, the cell being None for a suppressed row."""
    return [sum(share(j, None if cells is None else cells[j]) for cells in table.cells) for j in range(table.width)]


def _with(parts: Sequence[float], total: float) -> Found:
    return {None: total, **dict(enumerate(parts))}


def _weighted(table: Table, parts: Sequence[float]) -> float:
    weights = [d.weight for d in table.domains]
    return sum(p * w for p, w in zip(parts, weights, strict=True)) / sum(weights)


def _losses(table: Table) -> list[float]:
    found = []
    for j, domain in enumerate(table.domains):
        m, n = domain.leaves, table.n
        total = sum(1.0 if cells is None else cells[j].leaves / m for cells in table.cells)
        found.append((total - n / m) / (n - n / m) if m > 1 else 0.0)
    return found


def loss(table: Table) -> Found:
    """Per attribute (sum of share - n/M) / (n - n/M), share = leaves under the label / M, 1 for a suppressed row."""
    parts = _losses(table)
    return _with(parts, _weighted(table, parts))


def loss_geometric(table: Table) -> Found:
    parts = _losses(table)
    weights = [d.weight for d in table.domains]
    product = math.prod((1 + p) ** w for p, w in zip(parts, weights, strict=True))
    return _with(parts, product ** (1 / sum(weights)) - 1)


def _depth(table: Table, j: int, cell: Cell | None) -> float:
    domain = table.domains[j]
    if cell is None:
        return 1.0
    if cell.level is not None and domain.height:
        return cell.level / domain.height
    return (cell.leaves - 1) / (domain.leaves - 1) if domain.leaves > 1 else 0.0


def precision(table: Table) -> Found:
    parts = [1 - s / table.n for s in _per_attribute(table, lambda j, cell: _depth(table, j, cell))]
    return _with(parts, _weighted(table, parts))


def height(table: Table) -> Found:
    parts = {}
    for j, domain in enumerate(table.domains):
        if domain.height is not None:
            levels = [cells[j].level or 0 for cells in table.published]
            parts[j] = mean(levels) if levels else float(domain.height)
    return {None: sum(parts.values()), **parts} if parts else {}


def discernibility(table: Table) -> Found:
    lost = table.n - len(table.published)
    return {None: float(sum(s**2 for s in table.sizes().values()) + table.n * lost)}


def discernibility_star(table: Table) -> Found:
    return {None: float(sum(s**2 for s in table.sizes().values()))}


def average_class_size(table: Table) -> Found:
    return {None: table.n / (len(table.sizes()) + (len(table.published) < table.n))}


def average_class_size_lefevre(table: Table) -> Found:
    return {None: len(table.published) / (len(table.sizes()) * table.k)} if table.published else {}


def entropy(table: Table) -> Found:
    """Sum over cells of the entropy of the original value among those that the cell can stand for."""

    def bits(j: int, cell: Cell | None) -> float:
        counts = [n for v, n in Counter(table.column(j)).items() if cell is None or v in cell.covers]
        return -sum(n / sum(counts) * math.log2(n / sum(counts)) for n in counts)

    parts = _per_attribute(table, bits)
    return _with(parts, sum(parts))


def non_uniform_entropy(table: Table) -> Found:
    parts = []
    for j in range(table.width):
        column = table.column(j)
        count = Counter(column)

        def recoded(value: Hashable, j: int = j) -> Cell | Hashable:
            over = {v: [c for c in table.known[j] if v in c.covers] for v in table.column(j)}
            unique = all(len(cells) < 2 for cells in over.values())
            return over[value][0] if unique and over[value] else ("itself", value)

        def rows_of(cell: Cell | Hashable, value: Hashable, count: Counter[Hashable] = count) -> int:
            return sum(count[v] for v in cell.covers) if isinstance(cell, Cell) else count[value]

        lost = [recoded(v) for v, cells in zip(column, table.cells, strict=True) if cells is None]
        total = 0.0
        for value, cells in zip(column, table.cells, strict=True):
            cell = recoded(value) if cells is None else cells[j]
            total -= math.log2(count[value] / rows_of(cell, value))
        total -= sum(math.log2(lost.count(cell) / len(lost)) for cell in lost)
        parts.append(total)
    return _with(parts, sum(parts))


def ambiguity_sum(table: Table) -> Found:
    whole = math.prod(d.leaves for d in table.domains)
    return {None: float(sum(whole if cells is None else math.prod(c.leaves for c in cells) for cells in table.cells))}


def ambiguity(table: Table) -> Found:
    return {None: ambiguity_sum(table)[None] / table.n}


def granularity(table: Table) -> Found:
    def share(j: int, cell: Cell | None) -> float:
        m = table.domains[j].leaves
        return ((m if cell is None else cell.leaves) - 1) / m

    parts = _per_attribute(table, share)
    return _with(parts, sum(parts))


def iyengar_loss(table: Table) -> Found:
    utility = row_utility(table)
    parts = _per_attribute(table, lambda j, cell: 1.0 if cell is None else cell.leaves / table.domains[j].leaves)
    return _with([p / table.n for p in parts], table.width - mean(utility))


def row_utility(table: Table) -> list[float]:
    """The number of attributes minus the loss of the row."""
    return [
        table.width - sum(1.0 if cells is None else cells[j].leaves / d.leaves for j, d in enumerate(table.domains))
        for cells in table.cells
    ]


def classification(table: Table) -> Found:
    if table.labels is None:
        return {}
    wrong = 0
    for cells in table.cells:
        wrong += cells is None
    for group in table.sizes():
        labels = [label for label, cells in zip(table.labels, table.cells, strict=True) if cells == group]
        wrong += len(labels) - max(Counter(labels).values())
    value = wrong / table.n
    return _with([value], value) if table.published else {None: value}


def squared_distance_error(table: Table) -> Found:
    total = 0.0
    for row, cells in zip(table.rows, table.cells, strict=True):
        square = 0.0
        for j, value in enumerate(row):
            covered = set(table.column(j)) if cells is None else cells[j].covers
            numbers = [x for x in (table.number(j, v) for v in covered) if x is not None]
            own = table.number(j, value)
            if own is not None:
                square += (own - mean(numbers)) ** 2
        total += math.sqrt(square)
    return {None: total}


def _squares(table: Table) -> dict[int, tuple[float, float]]:
    """SSE and SST of every column of numbers that has any, in units of its variance."""
    found = {}
    for j, domain in enumerate(table.domains):
        own = [] if domain.numbers is None else [domain.numbers[v] for v in table.column(j)]
        known = [x for x in own if x is not None]
        if not known:
            continue
        whole = mean(known)
        within = 0.0
        for x, cells in zip(own, table.cells, strict=True):
            alike = [y for y, c in zip(own, table.cells, strict=True) if c == cells and y is not None]
            if x is not None:
                within += (x - (whole if cells is None else mean(alike))) ** 2
        variance = sum((x - whole) ** 2 for x in known) / len(known)
        found[j] = (within / variance, float(len(known))) if variance else (0.0, 0.0)
    return found


def sse(table: Table) -> Found:
    parts = _squares(table)
    return {None: sum(e for e, _ in parts.values()), **{j: e for j, (e, _) in parts.items()}} if parts else {}


def sse_ratio(table: Table) -> Found:
    parts = _squares(table)
    if not parts:
        return {}
    total = sum(t for _, t in parts.values())
    shares = {j: e / t if t else 0.0 for j, (e, t) in parts.items()}
    return {None: sum(e for e, _ in parts.values()) / total if total else 0.0, **shares}


def _span(table: Table, j: int, covers: Iterable[Hashable]) -> float | None:
    numbers = table.domains[j].numbers
    assert numbers is not None
    found = [numbers[v] for v in covers if numbers[v] is not None]
    return max(found) - min(found) if found else None


def information_loss(table: Table) -> Found:
    def share(j: int, cell: Cell | None) -> float:
        if table.domains[j].numbers is None:
            return _depth(table, j, cell)
        covers = table.column(j) if cell is None else cell.covers
        return (_span(table, j, covers) or 0.0) / table.domains[j].leaves

    parts = _per_attribute(table, share)
    return _with(parts, sum(parts))


def _penalties(table: Table) -> list[float]:
    def share(j: int, cell: Cell | None) -> float:
        domain = table.domains[j]
        if domain.leaves == 1:
            return 0.0
        if cell is None:
            return 1.0
        if cell.leaves == 1:
            return 0.0
        if domain.numbers is not None and not domain.labels:
            whole, own = _span(table, j, table.column(j)), _span(table, j, cell.covers)
            if whole and own is not None:
                return own / whole
        return cell.leaves / domain.leaves

    return _per_attribute(table, share)


def ncp(table: Table) -> Found:
    parts = [p * d.weight for p, d in zip(_penalties(table), table.domains, strict=True)]
    return _with(parts, sum(parts))


def gcp(table: Table) -> Found:
    parts = [p / table.n for p in _penalties(table)]
    return _with(parts, _weighted(table, parts))


def nllm(table: Table) -> Found:
    def share(j: int, cell: Cell | None) -> float:
        m = table.domains[j].leaves
        return 0.0 if m == 1 else ((m if cell is None else cell.leaves) - 1) / (m - 1)

    parts = [p / table.n for p in _per_attribute(table, share)]
    return _with(parts, _weighted(table, parts))


def hellinger(table: Table) -> Found:
    parts = []
    for j in range(table.width):
        p = Counter(None if v is None else str(v) for v in table.column(j))
        q: Counter[Hashable] = Counter(("suppressed",) if cells is None else cells[j].text for cells in table.cells)
        square = sum((math.sqrt(p[v] / table.n) - math.sqrt(q[v] / table.n)) ** 2 for v in {*p, *q})
        parts.append(math.sqrt(square / 2))
    return _with(parts, median(parts))


def _contingency(xs: Sequence[Hashable], ys: Sequence[Hashable]) -> np.ndarray:
    left, right = list(dict.fromkeys(xs)), list(dict.fromkeys(ys))
    found = np.zeros((len(left), len(right)))
    for x, y in zip(xs, ys, strict=True):
        found[left.index(x), right.index(y)] += 1
    return found


def cramers_v(xs: Sequence[Hashable], ys: Sequence[Hashable]) -> float:
    if not xs:
        return 0.0
    observed = _contingency(xs, ys)
    if min(observed.shape) == 1:
        return 0.0
    expected = np.outer(observed.sum(axis=1), observed.sum(axis=0)) / observed.sum()
    chi = ((observed - expected) ** 2 / expected).sum()
    return math.sqrt(chi / observed.sum() / (min(observed.shape) - 1))


def mutual_information(xs: Sequence[Hashable], ys: Sequence[Hashable]) -> float:
    def bits(values: Sequence[Hashable]) -> float:
        return -sum(n / len(values) * math.log2(n / len(values)) for n in Counter(values).values())

    return bits(xs) + bits(ys) - bits(list(zip(xs, ys, strict=True))) if xs else 0.0


def told(table: Table, j: int) -> tuple[list[Hashable], list[Hashable]]:
    """What the values of an attribute count as, in all rows and in the published ones; the last are the labels.

    Of more than ten numbers it is the tenth of their range: of a cell that of the middle of what it can stand for.
    """
    if j == table.width:
        assert table.labels is not None
        kept = [label for label, cells in zip(table.labels, table.cells, strict=True) if cells is not None]
        return list(table.labels), kept
    numbers = table.domains[j].numbers
    own = {} if numbers is None else {v: numbers[v] for v in table.column(j) if numbers[v] is not None}
    if len(set(own.values())) <= 10:
        return table.column(j), [cells[j].text for cells in table.published]
    low, high = min(own.values()), max(own.values())

    def tenth(x: float) -> Hashable:
        return "tenth", min(int((x / 2 - low / 2) / (high / 2 - low / 2) * 10), 9)

    def of_cell(cell: Cell) -> Hashable:
        covered = [own[v] for v in cell.covers if v in own]
        return tenth(min(covered) / 2 + max(covered) / 2) if covered else cell.text

    return [tenth(own[v]) if v in own else v for v in table.column(j)], [of_cell(c[j]) for c in table.published]


def _pairs(table: Table) -> list[tuple[int, int]]:
    return list(combinations(range(table.width + (table.labels is not None)), 2))


def _changes(table: Table, of: Callable[..., float]) -> dict[tuple[int, int], float]:
    found = {}
    for i, j in _pairs(table):
        (before_i, after_i), (before_j, after_j) = told(table, i), told(table, j)
        found[i, j] = of(before_i, before_j) - of(after_i, after_j)
    return found


def bivariate_correlation(table: Table) -> Found:
    changes = [abs(change) for change in _changes(table, cramers_v).values()]
    return {None: median(changes)} if changes else {}


def mutual_information_loss(table: Table) -> Found:
    lost = _changes(table, mutual_information)
    if not lost:
        return {}
    parts = [mean(v for pair, v in lost.items() if j in pair) for j in range(1 + max(j for _, j in lost))]
    return _with(parts, mean(lost.values()))


def diameter(table: Table) -> Found:
    shown = {tuple(c.text for c in cells) for cells in table.published}
    pairs = combinations(shown, 2)
    return {None: float(max((sum(a != b for a, b in zip(u, v, strict=True)) for u, v in pairs), default=0))}


def kl_divergence(table: Table) -> Found:
    n = table.n
    whole = math.prod(d.leaves for d in table.domains)
    lost = n - len(table.published)
    sizes = table.sizes()
    total = 0.0
    for row, count in Counter(table.rows).items():
        over = [c for c in sizes if all(v in cell.covers for v, cell in zip(row, c, strict=True))]
        q = sum(sizes[c] / (n * math.prod(x.leaves for x in c)) for c in over) + lost / (n * whole)
        total += count / n * math.log2(count / n / q)
    return {None: total}


ALL = {
    f.__name__: f
    for f in (
        ambiguity,
        ambiguity_sum,
        average_class_size,
        average_class_size_lefevre,
        bivariate_correlation,
        classification,
        diameter,
        discernibility,
        discernibility_star,
        entropy,
        gcp,
        granularity,
        height,
        hellinger,
        information_loss,
        iyengar_loss,
        kl_divergence,
        loss,
        loss_geometric,
        mutual_information_loss,
        ncp,
        nllm,
        non_uniform_entropy,
        precision,
        squared_distance_error,
        sse,
        sse_ratio,
    )
}
