"""Objectives that look at classes as a whole: their sizes, their boxes, their labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from duckanon.algorithms.base import POPULATION
from duckanon.algorithms.full_domain.objectives import _BELOW, Objective

if TYPE_CHECKING:
    from duckanon.algorithms.full_domain.lattice import Lattice
    from duckanon.algorithms.full_domain.objectives import Floats, Kept, Levels
    from duckanon.algorithms.full_domain.tables import Classes


class Discernibility(Objective):
    """Squared sizes of kept classes, n for each suppressed row."""

    metric = "discernibility"

    def value(self, levels: Levels, classes: Classes, kept: Kept) -> float:
        sizes = classes.rows.astype(np.float64)
        return float((sizes[kept] ** 2).sum() + self.rows * sizes[~kept].sum())

    def least(self, classes: Classes, levels: Levels) -> float:
        # Merging classes makes squares larger, and a suppressed row costs no less than its class has rows.
        return float((classes.rows.astype(np.float64) ** 2).sum())


class AverageClassSize(Objective):
    """Rows divided by classes, the suppressed rows being one class."""

    metric = "average_class_size"

    def value(self, levels: Levels, classes: Classes, kept: Kept) -> float:
        return self.rows / (int(kept.sum()) + int(not kept.all()))

    def least(self, classes: Classes, levels: Levels) -> float:
        return self.rows / max(len(classes.rows), 1)


class Ambiguity(Objective):
    """How many combinations of leaves a row stands for, mean over rows."""

    metric = "ambiguity"

    def __init__(self, lattice: Lattice) -> None:
        super().__init__(lattice)
        self.leaves = [lattice.tables.leaves(j) for j in range(len(lattice.shape))]
        self.all = float(np.prod([c.domain_size for c in lattice.problem.frequency.coded], dtype=np.float64))

    def value(self, levels: Levels, classes: Classes, kept: Kept) -> float:
        covered = self._covered(levels, classes)
        rows = classes.rows
        return float(((covered * rows)[kept].sum() + rows[~kept].sum() * self.all) / self.rows)

    def least(self, classes: Classes, levels: Levels) -> float:
        return float((self._covered(levels, classes) * classes.rows).sum() / self.rows) * _BELOW

    def _covered(self, levels: Levels, classes: Classes) -> Floats:
        found = np.ones(len(classes.rows))
        for j, level in enumerate(levels):
            found *= self.leaves[j][level][self.lattice.tables.column_codes(classes, j)]
        return found


class AmbiguitySum(Ambiguity):
    """How many combinations of leaves all rows stand for."""

    metric = "ambiguity_sum"

    def value(self, levels: Levels, classes: Classes, kept: Kept) -> float:
        return super().value(levels, classes, kept) * self.rows

    def least(self, classes: Classes, levels: Levels) -> float:
        return super().least(classes, levels) * self.rows


class Classification(Objective):
    """Share of rows that are suppressed, or not of the most frequent value of their class; mean over columns."""

    metric = "classification"

    def __init__(self, lattice: Lattice) -> None:
        super().__init__(lattice)
        self.columns = _sensitive(lattice)

    @classmethod
    def usable(cls, lattice: Lattice) -> bool:
        return bool(_sensitive(lattice))

    def value(self, levels: Levels, classes: Classes, kept: Kept) -> float:
        order = self.lattice.tables.order(classes)
        minority = self._minorities(levels, classes)[kept[order]].sum()
        return float((classes.rows[~kept].sum() + minority) / self.rows)

    def least(self, classes: Classes, levels: Levels) -> float:
        # Merging classes makes minorities larger, and a suppressed row costs no less than one of a minority.
        return float(self._minorities(levels, classes).sum() / self.rows) * _BELOW

    def _minorities(self, levels: Levels, classes: Classes) -> Floats:
        """Return the rows outside the most frequent value of each class, in the order of the classes' keys."""
        tables = self.lattice.tables
        ordered = tables.ordered(classes)
        found = np.zeros(len(ordered.rows))
        for column in self.columns:
            counted = tables.groups(column, ordered, levels).histograms
            if counted is not None:
                found += ordered.rows - np.maximum.reduceat(counted.counts, counted.starts[:-1])
        return found / len(self.columns)


def _sensitive(lattice: Lattice) -> list[str]:
    return [key for key in lattice.problem.tallies if key != POPULATION]
