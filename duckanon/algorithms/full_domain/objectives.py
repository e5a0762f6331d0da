"""What a search minimises: the value of a node, and what no node from there on can go below.

Each objective is one of the metrics in ``duckanon.metrics``, computed on arrays; tests compare the two. A metric that
is not here is measured in SQL, node by node.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from duckanon.algorithms.full_domain.nodes import evaluate, judge
from duckanon.errors import UnsupportedError
from duckanon.metrics.base import metrics

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from duckanon.algorithms.full_domain.lattice import Lattice
    from duckanon.algorithms.full_domain.tables import Classes

    Levels = tuple[int, ...]
    Floats = NDArray[np.float64]
    Kept = NDArray[np.bool_]

_BELOW = 1 - 1e-12
"""Sums in another order may differ in the last digits, and a bound must not exceed a value."""
_OBJECTIVES: dict[str, type[Objective]] = {}


class Objective(ABC):
    """A number to be made small.

    ``bounds`` is an array over the lattice: no anonymous node has a lower value than its entry, whatever is suppressed.
    Of a lattice that is too large for one there is ``bound`` alone.
    """

    metric: str
    static: ClassVar[bool] = False
    """Whether the bounds are known from the start, and no node teaches more."""
    terms: list[Floats] | None = None
    """What each column adds at each level to the sum that ``bound_of`` makes a bound of; None where it is no sum."""

    def __init_subclass__(cls) -> None:
        if "metric" in cls.__dict__:
            _OBJECTIVES[cls.metric] = cls

    def __init__(self, lattice: Lattice) -> None:
        self.lattice = lattice
        self.rows = lattice.problem.frequency.rows
        self.weights = np.asarray(lattice.problem.weights or [1.0] * len(lattice.shape), dtype=np.float64)
        self.bounds: Floats | None = np.zeros(lattice.shape) if lattice.tags is not None else None

    def bound(self, levels: Levels) -> float:
        """Return what no anonymous node from here on can go below."""
        return float(self.bounds[self.lattice.place(levels)]) if self.bounds is not None else 0.0

    def bound_of(self, total: float) -> float:
        """Return the bound of a node from the sum over its columns."""
        return total

    @classmethod
    def usable(cls, lattice: Lattice) -> bool:
        """Say whether the lattice has the counts that are needed."""
        return True

    @abstractmethod
    def value(self, levels: Levels, classes: Classes, kept: Kept) -> float:
        """Return the value of an anonymous node."""

    def learn(self, levels: Levels, classes: Classes) -> None:
        """Raise the bounds by what the classes of a node show of all nodes above it."""
        least = self.least(classes, levels)
        if least is not None and self.bounds is not None:
            part = self.bounds[self.lattice.above(levels)]
            np.maximum(part, least, out=part)

    def least(self, classes: Classes, levels: Levels) -> float | None:
        """Return what no node above these classes can go below; None says nothing."""
        return None

    def shown(self, value: float) -> float:
        """Return the metric's own value."""
        return value


class Additive(Objective):
    """A loss of every cell that depends on its label alone, added up for each column and put together.

    A suppressed cell loses ``gone``, which no label exceeds: so the losses without suppression are bounds, and need no
    look at the classes.
    """

    static = True
    mean: ClassVar[bool] = True
    """Whether columns are averaged by their weights, or added up."""

    def __init__(self, lattice: Lattice) -> None:
        super().__init__(lattice)
        columns = range(len(lattice.shape))
        counts, codes = lattice.tables.value_counts, lattice.tables.codes
        self.labels = [self.losses(j) for j in columns]
        self.whole = [
            np.array([float((counts[j] * per[on]).sum()) for per, on in zip(self.labels[j], codes[j], strict=True)])
            for j in columns
        ]
        self.parts = [self.column(j, self.whole[j]) for j in columns]
        shares = self.weights / self.weights.sum() if self.mean else np.ones(len(self.weights))
        self.terms = [share * self.scaled(part) for share, part in zip(shares, self.parts, strict=True)]
        if lattice.tags is not None:
            spans = zip(lattice.low, lattice.high, strict=True)
            axes = [part[low : high + 1] for part, (low, high) in zip(self.parts, spans, strict=True)]
            self.bounds = self.together(list(np.ix_(*axes))) * _BELOW

    def bound(self, levels: Levels) -> float:
        if self.bounds is not None:
            return super().bound(levels)
        points = [part[level : level + 1] for part, level in zip(self.parts, levels, strict=True)]
        return float(self.together(points)[0] * _BELOW)

    @abstractmethod
    def losses(self, column: int) -> list[Floats]:
        """Return, for every level, the loss of a cell with each code."""

    @abstractmethod
    def gone(self, column: int) -> float:
        """Return the loss of a suppressed cell."""

    def column(self, column: int, total: Floats) -> Floats:
        """Return the loss of a column from the sum over its cells."""
        return total / self.rows if self.mean else total

    def scaled(self, column: Floats) -> Floats:
        """Return the loss of a column as it is added to those of others."""
        return column

    def unscaled(self, total: Floats) -> Floats:
        """Return the loss of all columns from their sum or mean."""
        return total

    def bound_of(self, total: float) -> float:
        return float(self.unscaled(np.array(total)) * _BELOW)

    def together(self, columns: list[Floats]) -> Floats:
        """Return the losses of all columns put together; arrays on axes of their own give one over the lattice."""
        total = np.zeros(1)
        for weight, axis in zip(self.weights, columns, strict=True):
            total = total + (weight * self.scaled(axis) if self.mean else axis)
        return self.unscaled(total / self.weights.sum()) if self.mean else total

    def value(self, levels: Levels, classes: Classes, kept: Kept) -> float:
        width = len(levels)
        lost = int(classes.rows[~kept].sum())
        sums = np.array([self.whole[j][levels[j]] for j in range(width)])
        if lost:
            from duckanon.kernels.lattice import weighted_leaves

            packing = self.lattice.tables.class_packing
            tables = [self.labels[j][levels[j]] for j in range(width)]
            offsets = np.cumsum([0, *(len(t) for t in tables[:-1])]).astype(np.int64)
            places = (packing.words, packing.shifts, packing.masks, offsets)
            sums = np.zeros(width)
            weighted_leaves(classes.keys, classes.rows, kept, *places, np.concatenate(tables), sums)
            sums += [lost * self.gone(j) for j in range(width)]
        return float(self.together([self.column(j, sums[j : j + 1]) for j in range(width)])[0])


class _Leaves(Additive):
    """Losses that count the leaves under a label."""

    def losses(self, column: int) -> list[Floats]:
        return self.lattice.tables.leaves(column)

    def gone(self, column: int) -> float:
        return self.domain(column)

    def domain(self, column: int) -> float:
        """Return the leaves of a column."""
        return float(self.lattice.problem.frequency.coded[column].domain_size)


class Loss(_Leaves):
    """ARX's loss, arithmetic mean."""

    metric = "loss"

    def column(self, column: int, total: Floats) -> Floats:
        domain, n = self.domain(column), self.rows
        if domain <= 1:
            return np.zeros_like(total)
        return (total / domain - n / domain) / (n - n / domain)


class LossGeometric(Loss):
    """ARX's loss, geometric mean of one plus the columns' losses, minus one."""

    metric = "loss_geometric"

    def scaled(self, column: Floats) -> Floats:
        return np.log1p(column)

    def unscaled(self, total: Floats) -> Floats:
        return np.asarray(np.expm1(total))


class Nllm(_Leaves):
    """Lost leaves, mean over cells."""

    metric = "nllm"

    def column(self, column: int, total: Floats) -> Floats:
        domain, n = self.domain(column), self.rows
        return (total - n) / (domain - 1) / n if domain > 1 else np.zeros_like(total)


class Granularity(_Leaves):
    """Share of the domain besides the value itself, summed over cells."""

    metric = "granularity"
    mean = False

    def column(self, column: int, total: Floats) -> Floats:
        return (total - self.rows) / self.domain(column)


class IyengarLoss(_Leaves):
    """Share of the domain, summed over the cells of a row, mean over rows."""

    metric = "iyengar_loss"
    mean = False

    def column(self, column: int, total: Floats) -> Floats:
        return total / self.domain(column) / self.rows


class Precision(Additive):
    """One minus precision: level / height, mean over cells."""

    metric = "precision"

    def losses(self, column: int) -> list[Floats]:
        coded = self.lattice.problem.frequency.coded[column]
        return [np.full(size, level / max(coded.height, 1)) for level, size in enumerate(coded.sizes)]

    def gone(self, column: int) -> float:
        return 1.0

    def shown(self, value: float) -> float:
        return 1.0 - value


class Height(Additive):
    """The sum of the levels, whatever is suppressed."""

    metric = "height"
    mean = False

    def losses(self, column: int) -> list[Floats]:
        sizes = self.lattice.problem.frequency.coded[column].sizes
        return [np.full(size, float(level)) for level, size in enumerate(sizes)]

    def gone(self, column: int) -> float:
        return 0.0

    def column(self, column: int, total: Floats) -> Floats:
        return total / self.rows

    def value(self, levels: Levels, classes: Classes, kept: Kept) -> float:
        return float(sum(levels))


class Entropy(Additive):
    """Bits that tell the original value of every cell from those it can stand for."""

    metric = "entropy"
    mean = False

    def losses(self, column: int) -> list[Floats]:
        counts = self.lattice.tables.value_counts[column]
        bits = counts * np.log2(np.maximum(counts, 1))
        found = []
        for codes in self.lattice.tables.codes[column]:
            together = np.maximum(np.bincount(codes, weights=counts), 1)
            found.append(np.maximum(np.log2(together) - np.bincount(codes, weights=bits) / together, 0))
        return found

    def gone(self, column: int) -> float:
        counts = self.lattice.tables.value_counts[column]
        return float(np.log2(self.rows) - (counts * np.log2(np.maximum(counts, 1))).sum() / self.rows)

    def column(self, column: int, total: Floats) -> Floats:
        return total


class NonUniformEntropy(Entropy):
    """ARX's: bits from cells back to values, and of suppressed rows from nothing back to their cells."""

    metric = "non_uniform_entropy"

    def value(self, levels: Levels, classes: Classes, kept: Kept) -> float:
        total = sum(self.whole[j][levels[j]] for j in range(len(levels)))
        gone = ~kept
        rows = classes.rows[gone]
        lost = int(rows.sum())
        if lost:
            for j in range(len(levels)):
                counts = np.bincount(self.lattice.tables.column_codes(classes, j)[gone], weights=rows)
                total += lost * np.log2(lost) - (counts * np.log2(np.maximum(counts, 1))).sum()
        return float(total)


class Measured(Objective):
    """Any other metric, measured in SQL on the relations of each node. It bounds nothing."""

    def __init__(self, lattice: Lattice, metric: str) -> None:
        super().__init__(lattice)
        self.metric = metric
        self.sign = 1.0 if metrics.get(metric).direction == "lower" else -1.0
        if self.bounds is not None:
            self.bounds = np.full(lattice.shape, -np.inf)

    def bound(self, levels: Levels) -> float:
        return -np.inf

    def value(self, levels: Levels, classes: Classes, kept: Kept) -> float:
        problem = self.lattice.problem
        if problem.measure is None:
            raise UnsupportedError(f"The metric {self.metric!r} cannot be measured here.")
        node = evaluate(problem, levels)
        node = node if problem.size_only else judge(problem, node)
        found = problem.measure(self.metric, node)
        node.drop(problem.engine)
        return found

    def shown(self, value: float) -> float:
        return self.sign * value


def make_objective(lattice: Lattice, metric: str) -> Objective:
    """Return the objective of a metric: on arrays where there is one, else measured."""
    import duckanon.algorithms.full_domain.class_objectives  # noqa: F401 - registers them

    known = _OBJECTIVES.get(metric)
    return known(lattice) if known is not None and known.usable(lattice) else Measured(lattice, metric)
