"""The values that cells of one column cover: atoms that no published cell divides, and nodes over them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from duckanon.assess.labels.text import WHOLE, Span, half_open, outermost, parse, spans, text_range

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Indices = NDArray[np.int64]
    Numbers = NDArray[np.float64]

MISSING = "missing"
"""How features of NULL are called."""


@dataclass(frozen=True, eq=False)
class Node:
    """A label of a hierarchy above the atoms, with the atoms under it."""

    label: str | None
    level: int
    atoms: Indices


@dataclass(eq=False)
class Domain(ABC):
    """The atoms of a column, and how cells and values find theirs.

    Attributes
    ----------
    name : str
        The column.
    type : str
        The database's name of its type, where it is known: it decides how bounds in labels are read.
    atoms : list of str
        Their labels. ``missing`` is the position of the one for NULL, if there is one.
    weights : array
        The share of a cell that is assumed to be in each of its atoms: widths of intervals, numbers of leaves.
    nodes : list of Node
        Labels of a hierarchy over the atoms, from the lowest level to the highest.
    numeric : bool
        Whether values have distances.
    """

    name: str
    type: str
    atoms: list[str]
    weights: Numbers
    nodes: list[Node] = field(default_factory=list)
    numeric: bool = False
    missing: int | None = None

    @property
    def has_tree(self) -> bool:
        """Whether there is a hierarchy over the atoms."""
        return bool(self.nodes)

    def members(self, label: str | None) -> Indices:
        """Return the atoms that a cell covers, in ascending order; none where the cell is unknown."""
        if label is None:
            return np.array([] if self.missing is None else [self.missing], dtype=np.int64)
        if label == WHOLE or (label.startswith("{") and WHOLE in parse(label, "VARCHAR").members):
            return np.arange(len(self.atoms))
        return np.unique(self._members(label))

    def learn(self, labels: Sequence[str]) -> None:
        """Look labels up that were not seen before; only rules need to."""
        return

    def alias(self, label: str) -> str:
        """Return the published label that a label is encoded as: itself, unless a rule puts it under one."""
        return label

    @abstractmethod
    def _members(self, label: str) -> Indices:
        """Return the atoms of a label that is neither NULL nor ``*``."""

    @abstractmethod
    def at(self, numbers: Numbers) -> Indices:
        """Return the atom of each number: the one that has it, else the nearest; that of NULL for NaN, -1 for none."""

    @abstractmethod
    def ends(self, label: str) -> tuple[float, float] | None:
        """Return the bounds of a cell of a numeric column, infinite where they are open."""

    def _filled(self, atoms: Indices, numbers: Numbers) -> Indices:
        blank = -1 if self.missing is None else self.missing
        return np.where(np.isnan(numbers), blank, atoms)


@dataclass(eq=False)
class Line(Domain):
    """Numbers or dates without a list of leaves: the atoms are the intervals between the bounds of published cells.

    Two values that no published cell distinguishes share an atom. ``lows`` and ``highs`` are half-open intervals in
    ascending order; with ``whole`` values are whole numbers.
    """

    lows: Numbers = field(default_factory=lambda: np.empty(0))
    highs: Numbers = field(default_factory=lambda: np.empty(0))
    whole: bool = False

    def _members(self, label: str) -> Indices:
        spans_of_label = spans(label, self.type)
        if spans_of_label is None:
            return np.empty(0, dtype=np.int64)
        parts = []
        for span in spans_of_label:
            low, high = half_open(span, self.whole)
            first = int(np.searchsorted(self.highs, low, side="right"))
            last = int(np.searchsorted(self.lows, high, side="left"))
            if last <= first and span[0] == span[1]:
                parts.append(self.at(np.array([span[0]])))
            parts.append(np.arange(first, last))
        return np.concatenate(parts)

    def at(self, numbers: Numbers) -> Indices:
        if not len(self.lows):
            return self._filled(np.full(len(numbers), -1), numbers)
        atoms = np.clip(np.searchsorted(self.lows, numbers, side="right") - 1, 0, len(self.lows) - 1)
        following = np.minimum(atoms + 1, len(self.lows) - 1)
        with np.errstate(invalid="ignore"):
            nearer = (numbers >= self.highs[atoms]) & (self.lows[following] - numbers < numbers - self.highs[atoms])
        return self._filled(np.where(nearer, following, atoms), numbers)

    def ends(self, label: str) -> tuple[float, float] | None:
        return outermost(spans(label, self.type))


@dataclass(eq=False)
class Leaves(Domain):
    """Listed values: the leaves of a hierarchy, or the words that cells consist of.

    ``place`` gives each leaf its atom, which is the leaf itself unless there were too many; ``sizes`` are the leaves as
    numbers in ascending order, with ``owners``, their atoms, where all of them are numbers or dates. ``other`` is the
    atom of words that are not among the frequent ones.
    """

    place: dict[str, int] = field(default_factory=dict)
    labels: dict[str, Indices] = field(default_factory=dict)
    sizes: Numbers | None = None
    owners: Indices = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    other: int | None = None

    def _members(self, label: str) -> Indices:
        if label in self.place:
            return np.array([self.place[label]])
        if label in self.labels:
            return self.labels[label]
        parsed = parse(label, self.type if self.sizes is not None else "VARCHAR")
        run = text_range(label) if self.sizes is None else None
        if run is not None and all(end is None or end in self.place for end in run):
            inside = [at for leaf, at in self.place.items() if (run[0] or "") <= leaf and (run[1] or leaf) >= leaf]
            return np.array(inside, dtype=np.int64)
        named = [self.place.get(member, self.other) for member in parsed.members]
        if named and (None not in named or self.sizes is None):
            return np.array([at for at in named if at is not None], dtype=np.int64)
        spans_of_label = spans(label, self.type) if self.sizes is not None else None
        if spans_of_label is None:
            return np.array([] if self.other is None else [self.other], dtype=np.int64)
        return np.concatenate([self._inside(span) for span in spans_of_label])

    def _inside(self, span: Span) -> Indices:
        assert self.sizes is not None
        low, high, above, below = span
        if low == high:
            return self.at(np.array([low]))
        first = np.searchsorted(self.sizes, low, side="right" if above else "left")
        last = np.searchsorted(self.sizes, high, side="left" if below else "right")
        return self.owners[first:last]

    def at(self, numbers: Numbers) -> Indices:
        if self.sizes is None or not len(self.sizes):
            return self._filled(np.full(len(numbers), -1), numbers)
        right = np.clip(np.searchsorted(self.sizes, numbers), 0, len(self.sizes) - 1)
        left = np.maximum(right - 1, 0)
        with np.errstate(invalid="ignore"):
            nearer = np.abs(numbers - self.sizes[left]) < np.abs(self.sizes[right] - numbers)
        return self._filled(self.owners[np.where(nearer, left, right)], numbers)

    def ends(self, label: str) -> tuple[float, float] | None:
        if self.sizes is None:
            return None
        ends = outermost(spans(label, self.type))
        if ends is not None:
            return ends
        inside = np.isin(self.owners, self.members(label))
        return (float(self.sizes[inside].min()), float(self.sizes[inside].max())) if inside.any() else None
