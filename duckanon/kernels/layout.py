"""What Mondrian's kernels pass to each other, as bundles, see ``kernels.bundle``."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RANGE, DISTINCT_VALUES, ROUND_ROBIN, GAIN, SQUARES = range(5)
"""How the axis of a cut is chosen."""
SIZE, CALLBACK, DISTINCT, ENTROPY, RECURSIVE, ALPHA, EQUAL, ORDERED, HIERARCHICAL, BASIC_BETA, ENHANCED_BETA, DELTA = (
    range(12)
)
"""The kinds of rules."""
TREE, INNER, NULL, TOP, SPAN, START, FIRST, LEVELS, WORD, SHIFT, MASK = range(11)
"""The rows of ``Axes.table``."""
COUNTS, SEEN, GROUP, HEADS, BOUNDS, MEMBER = range(6)
"""The rows of ``Scratch.buffer``: all counts are zero between uses."""
LOW, HIGH, AFTER, STATE, LEVEL = range(5)
"""The rows of ``Scratch.marks``: the smallest and largest place on each axis, the key after which a line is cut,
how much is known of it, and the level by whose keys it was cut last."""
BOUNDED, EXACT, TRIED = range(3)
"""The places of an axis lie between the two; the two occur; and it was tried in vain."""
HISTOGRAM, OTHER, ENTRIES, FALLING = range(4)
"""The rows of ``Scratch.values``: both histograms are zero between uses."""
WHOLE, WHOLE_END, PIECE, PIECE_END, ON, BY, AT = range(7)
"""The columns of a log of cuts, which has a line for each group that a cut makes: the items of the partition that was
cut, those of the group, the axis, the level by whose keys rows were told apart (-1: by NULL), and of a cut in two the
first place on its right side, else -1."""


class Axes(NamedTuple):
    """All axes; see ``PartitionAxis``.

    ``table[:, j]`` describes axis j: whether it is a tree, whether values of one atom can be told apart, the place of
    NULL (-1: none), the level of the top label, its number of places, where its numbers begin in ``keys`` and
    ``firsts``, how many levels of keys it has, after which those come that tell NULL apart, and in which word of a row
    its places stand, from which bit on, and under which mask. Level v of its keys
    (0: the places themselves; 1: the atoms of a line) begins at START + v * SPAN; ``widths`` at the same places has, of
    a line, the number of each place, scaled to 0..1, and of a tree the width of the node over it. ``firsts[FIRST + a]``
    is the first place of atom a; one more entry closes the list.
    """

    table: NDArray[np.int64]
    keys: NDArray[np.int32]
    widths: NDArray[np.float64]
    firsts: NDArray[np.int32]
    weights: NDArray[np.float64]


class Data(NamedTuple):
    """The items. One buffer, seen as words, as 32-bit numbers and as floats, and a second one for rows on their way.

    Places have as few bits as hold them, side by side: ``Axes`` says where. Words are in one line, row after row; where
    a row's number, count, codes, tie and targets stand in it, ``SplitConfig`` says.
    """

    words: NDArray[np.uint64]
    spare: NDArray[np.uint64]
    numbers: NDArray[np.int32]
    floats: NDArray[np.float64]


class SplitConfig(NamedTuple):
    """What does not change while rows are split."""

    least: int
    """The least rows of a class."""
    persons: bool
    choose: int
    tight: bool
    order: int
    """The column of ``Data.numbers`` with the number of the item."""
    many: int
    """The column with its rows, -1 where every item is one."""
    extra: int
    """The first column of the codes of sensitive columns, after which the person's number comes."""
    extras: int
    """How many sensitive columns there are."""
    tie: int
    """The column of ``Data.words`` that tells equal rows apart, -1: their numbers do."""
    target: int
    """The first column of ``Data.floats`` with a target."""
    slots: NDArray[np.int64]
    """Where the classes of each target begin among all; least squares has three sums for each target."""
    deal: int
    """The address of the hook for relaxed cuts, 0 for strict ones."""
    gain: int
    """The address of the hook that looks at targets, 0 where there are none."""


class Rules(NamedTuple):
    """Models as rules, see ``kernels.rules``.

    Rule r has a kind and a column, ``table[:, r]``, and two numbers, ``numbers[:, r]``. Column c has its values from
    ``columns[0, c]`` on and ``columns[1, c]`` levels below the top of its hierarchy. ``shares`` has for each value its
    frequency in the whole table, the running sum of those, and the running sum of that sum, which begins with 0 and
    so is longer by one for each column. ``over`` and ``masses`` have the node over each value on every level, and its
    frequency. ``callback`` is the address of what answers for the rules of kind CALLBACK; ``judge`` is that of
    the hook that asks the rules, 0 where the number of rows decides.
    """

    table: NDArray[np.int64]
    numbers: NDArray[np.float64]
    columns: NDArray[np.int64]
    shares: NDArray[np.float64]
    over: NDArray[np.int64]
    masses: NDArray[np.float64]
    callback: int
    judge: int


class Scratch(NamedTuple):
    """Room to work in, one for each thread."""

    marks: NDArray[np.int64]
    scores: NDArray[np.float64]
    gained: NDArray[np.float64]
    buffer: NDArray[np.int64]
    regions: NDArray[np.int32]
    values: NDArray[np.int64]
    mass: NDArray[np.float64]
    people: NDArray[np.int32]
    sums: NDArray[np.float64]
    spans: NDArray[np.int64]
    """Of each group of a cut, the places that its rows are known to lie between, on the axis of the cut."""
    bits: NDArray[np.uint64]
    """A bit for each key, all zero between uses."""
    own: NDArray[np.int32]
    """The region of the partition that is cut, on each axis."""


class Found(NamedTuple):
    """The classes of a partition, in the order of their rows, and the log of cuts, empty where nobody asked for it."""

    ends: NDArray[np.int64]
    regions: NDArray[np.int32]
    levels: NDArray[np.int32]
    log: NDArray[np.int32]
