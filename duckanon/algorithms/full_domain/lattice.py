"""The lattice of full-domain generalizations: which nodes are anonymous, by visiting or by inference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from duckanon.algorithms.full_domain.publishable import publishable
from duckanon.algorithms.full_domain.search import ANONYMOUS, BROKEN, MOST_NODES, UNKNOWN
from duckanon.algorithms.full_domain.tables import Classes, Tables
from duckanon.errors import UnsupportedError
from duckanon.models.base import Groups

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from duckanon.algorithms.base import Problem
    from duckanon.models.base import Model

    Levels = tuple[int, ...]


@dataclass(frozen=True)
class Visit:
    """What was found at a node. ``outlier_rows`` is a lower bound where the size of classes alone broke the promise."""

    levels: Levels
    classes: int
    smallest: int
    outlier_rows: int
    anonymous: bool
    by_size: bool
    final: bool
    """Whether no node below is anonymous, by the sizes of classes or by the models' bounds on parts of classes."""


class _Nodes:
    """Levels of nodes, in an array that grows."""

    def __init__(self, width: int) -> None:
        self._levels = np.zeros((64, width), dtype=np.int16)
        self._used = 0

    def add(self, levels: Levels) -> None:
        if self._used == len(self._levels):
            self._levels = np.concatenate([self._levels, np.zeros_like(self._levels)])
        self._levels[self._used] = levels
        self._used += 1

    @property
    def levels(self) -> NDArray[np.int16]:
        """One row for each node."""
        return self._levels[: self._used]


@dataclass
class Lattice:
    """The nodes between two levels of each quasi-identifier.

    What may be inferred from a node that was visited depends on the models. Too many rows in small classes stay too
    many with less generalization, whatever the models are. More than that is inferred where it is sound: where every
    model is absorbing, or where nothing may be suppressed and every model is monotone.

    Of a lattice that is not too large, ``tags`` says of every node what is known; of others that is looked up among
    the nodes visited.
    """

    problem: Problem
    tables: Tables
    low: Levels
    high: Levels
    visits: dict[Levels, Visit] = field(default_factory=dict)
    most_nodes: int = MOST_NODES
    """The most nodes for which ``tags`` are stored."""

    def __post_init__(self) -> None:
        self.shape = tuple(b - a + 1 for a, b in zip(self.low, self.high, strict=True))
        self.size = prod(self.shape)
        self.strides = tuple(prod(self.shape[j + 1 :]) for j in range(len(self.shape)))
        self.tags: NDArray[np.uint8] | None = None
        if self.size <= self.most_nodes:
            self.tags = np.zeros(self.shape, dtype=np.uint8)
        self.sound = self.problem.inherited
        self._reach = {ANONYMOUS: _Nodes(len(self.shape)), BROKEN: _Nodes(len(self.shape))}
        self._persists = False
        self._last: tuple[Levels, Classes, NDArray[np.bool_]] | None = None

    def require_tags(self) -> NDArray[np.uint8]:
        """Return the array of the states of nodes; raise if the lattice is too large for one."""
        if self.tags is None:
            raise UnsupportedError(
                f"The lattice has {self.size:,} nodes, more than the {self.most_nodes:,} that this algorithm can look "
                "through: narrow it by minimum and maximum levels, or use the algorithm best_effort."
            )
        return self.tags

    def place(self, levels: Levels) -> Levels:
        """Return the index of a node in arrays over the lattice."""
        return tuple(a - b for a, b in zip(levels, self.low, strict=True))

    def levels(self, place: Sequence[int]) -> Levels:
        """Return the levels at an index."""
        return tuple(int(a) + b for a, b in zip(place, self.low, strict=True))

    def unravel(self, place: int) -> Levels:
        """Return the levels at an index of a flat array over the lattice."""
        return tuple(place // s % n + low for s, n, low in zip(self.strides, self.shape, self.low, strict=True))

    def above(self, levels: Levels) -> tuple[slice, ...]:
        """Return the part of an array over the lattice that generalizes a node, itself included."""
        return tuple(slice(p, None) for p in self.place(levels))

    def below(self, levels: Levels) -> tuple[slice, ...]:
        """Return the part of an array over the lattice that a node generalizes, itself included."""
        return tuple(slice(None, p + 1) for p in self.place(levels))

    def parents(self, levels: Levels) -> Iterator[Levels]:
        """Yield the nodes one step above."""
        for j, level in enumerate(levels):
            if level < self.high[j]:
                yield (*levels[:j], level + 1, *levels[j + 1 :])

    def children(self, levels: Levels) -> Iterator[Levels]:
        """Yield the nodes one step below."""
        for j, level in enumerate(levels):
            if level > self.low[j]:
                yield (*levels[:j], level - 1, *levels[j + 1 :])

    def nodes(self) -> Iterator[Levels]:
        """Yield all nodes, in the order of their levels."""
        return product(*(range(a, b + 1) for a, b in zip(self.low, self.high, strict=True)))

    def known(self, levels: Levels) -> int:
        """Return the state of a node."""
        if self.tags is not None:
            return int(self.tags[self.place(levels)])
        if levels in self.visits:
            return ANONYMOUS if self.visits[levels].anonymous else BROKEN
        at = np.array(levels, dtype=np.int16)
        if (self._reach[ANONYMOUS].levels <= at).all(axis=1).any():
            return ANONYMOUS
        if (self._reach[BROKEN].levels >= at).all(axis=1).any():
            return BROKEN
        return UNKNOWN

    def visit(self, levels: Levels) -> Visit:
        """Evaluate a node if it was not visited yet, and infer the states of others."""
        found = self.visits.get(levels)
        if found is None:
            found = self._evaluate(levels)
            self.visits[levels] = found
            verdict = ANONYMOUS if found.anonymous else BROKEN
            reaches = self.sound or found.final
            if reaches:
                self._reach[verdict].add(levels)
            if self.tags is not None:
                self.tags[self.place(levels)] = verdict
                if reaches:
                    self.tags[self.above(levels) if found.anonymous else self.below(levels)] = verdict
            self.problem.engine.progress.advance(len(self.visits))
        return found

    def kept(self, levels: Levels) -> tuple[Classes, NDArray[np.bool_]]:
        """Return the classes of an anonymous node, and which of them are published."""
        if self._last is None or self._last[0] != levels:
            self._last = (levels, *self._judge(levels, self.tables.classes(levels)))
        return self._last[1:]

    def _evaluate(self, levels: Levels) -> Visit:
        problem = self.problem
        classes = self.tables.classes(levels)
        kept = (classes.sizes >= problem.min_size) & (classes.rows >= problem.min_rows)
        outliers = int(classes.rows[~kept].sum())
        # No search chooses a node of which everything is suppressed, even if that is allowed.
        rows = problem.frequency.rows
        by_size = final = outliers > problem.allowed or outliers == rows
        if not by_size:
            if not problem.size_only:
                classes, kept = self._judge(levels, classes)
                outliers = int(classes.rows[~kept].sum())
                final = outliers > problem.allowed and self._persists
            self._last = (levels, classes, kept)
        smallest = int(classes.sizes.min(initial=np.iinfo(np.int64).max)) if len(classes.sizes) else 0
        anonymous = outliers <= problem.allowed and outliers < rows
        return Visit(levels, len(classes.sizes), smallest, outliers, anonymous, by_size, final)

    def _judge(self, levels: Levels, found: Classes) -> tuple[Classes, NDArray[np.bool_]]:
        """Return the classes, and which of them may be published by every model."""
        problem = self.problem
        if problem.size_only:
            return found, found.sizes >= problem.min_size
        classes = self.tables.ordered(found)
        plain = Groups(classes.sizes, classes.rows)
        counted = {key: self.tables.groups(key, classes, levels) for key in problem.tallies}
        self._persists = False

        def persists(model: Model, groups: Groups, kept: NDArray[np.bool_]) -> None:
            if not self.sound and int(classes.rows[~kept].sum()) > problem.allowed:
                least = float((model.persisting(groups) * classes.rows).sum())
                self._persists |= least > problem.allowed + 1e-6

        every = np.asarray(classes.rows >= problem.min_rows)
        kept = publishable(problem.models, lambda m: counted.get(problem.key_of(m), plain), every, persists)
        return classes, kept
