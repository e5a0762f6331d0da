"""Mondrian, slow and obviously right: a table is split in two (or more) again and again while all parts stay anonymous.

After K. LeFevre, D. DeWitt, R. Ramakrishnan, Mondrian multidimensional k-anonymity, 2006 (strict and relaxed cuts at
the median of the widest dimension), and their Workload-aware anonymization, 2006 (cuts by information gain or squared
error of target columns). What goes beyond the papers:

- children of a node of a hierarchy that are too small, or break a model, are pooled instead of stopping the cut;
- where the median breaks a model of a sensitive column the other boundaries are tried, nearest to the median first;
- inside one group of a grid the single values may be told apart, as if the group were a node over them;
- NULL is a branch of its own: where it is mixed with other values the first cut sets it apart.

Rows are tuples of places: 0, 1, ... are the values of a column in their order, NULL has the last place.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import pairwise

from reference import models
from reference.mondrian_gains import GAINS, same

Region = tuple[int, int, int]


class Infeasible(Exception):
    """All rows of a region together break a model."""


@dataclass(frozen=True)
class Axis:
    """A line has ``atoms`` (cuts go between them), a tree ``nodes[level][place]`` and ``leaves[level][node]``."""

    size: int
    null: bool = False
    numbers: Sequence[float] = ()
    atoms: Sequence[int] | None = None
    inner: bool = False
    nodes: Sequence[Sequence[int]] = ()
    leaves: Sequence[Sequence[int]] = ()
    weight: float = 1.0
    top: int = 1
    """The level of a line's top label."""

    @property
    def height(self) -> int:
        return self.top if self.atoms is not None else len(self.nodes) - 1

    @property
    def last(self) -> int:
        """The last place that is not NULL."""
        return self.size - 2 if self.null else self.size - 1

    def mixed(self, lo: int, hi: int) -> bool:
        return self.null and lo <= self.last < hi

    def common(self, lo: int, hi: int) -> int:
        """The level of the lowest common ancestor."""
        return next(level for level, nodes in enumerate(self.nodes) if nodes[lo] == nodes[hi])

    def width(self, lo: int, hi: int) -> float:
        if self.mixed(lo, hi):
            return 1.0
        if self.atoms is not None:
            whole = self.numbers[self.last] - self.numbers[0]
            # Of a line that has no end, no part is wide.
            return (self.numbers[hi] - self.numbers[lo]) / whole if whole and math.isfinite(whole) else 0.0
        level = self.common(lo, hi)
        return (self.leaves[level][self.nodes[level][lo]] - 1) / (self.leaves[-1][self.nodes[-1][lo]] - 1)


@dataclass(frozen=True)
class Row:
    """``count`` equal rows (of one person, if persons are counted), with their sensitive values and targets."""

    places: tuple[int, ...]
    count: int = 1
    person: Hashable = None
    values: tuple[int, ...] = ()
    tie: int = 0
    targets: tuple[int, ...] = ()


@dataclass(frozen=True)
class Promise:
    """What every class must keep: ``holds`` of its sensitive values and the number of its members.

    No class of fewer than ``least`` rows can hold.
    """

    least: int
    column: int | None
    holds: Callable[[tuple[int, ...], int], bool]


def promise(
    name: str,
    column: int | None = None,
    table: Sequence[int] = (),
    tree: models.Tree | None = None,
    **given: Fraction | int,
) -> Promise:
    """Return a model by its name; ``table`` has the sensitive values of all rows, ``given`` exact parameters."""
    whole = tuple(table)
    order = sorted(set(whole))

    def distance(values: tuple[int, ...]) -> Fraction:
        if name == "ordered_t_closeness":
            return models.ordered_distance(values, whole, order)
        if name == "hierarchical_t_closeness":
            assert tree is not None
            return models.hierarchical_distance(values, whole, tree)
        return models.equal_distance(values, whole)

    def holds(values: tuple[int, ...], members: int) -> bool:
        if name == "k_anonymity":
            return members >= given["k"]
        if name == "maximum_reidentification_risk":
            return models.maximum_reidentification_risk(members, **given)
        if name.endswith("t_closeness"):
            return distance(values) <= given["t"]
        judge = getattr(models, name)
        if name in ("alpha_k_anonymity", "p_sensitive_k_anonymity"):
            return judge(values, members, **given)
        if name.endswith("l_diversity"):
            return judge(values, **given)
        return judge(values, whole, **given)

    needed = [math.ceil(given[p]) for p in ("k", "l", "p") if p in given]
    needed += [math.ceil(1 / Fraction(given[p])) for p in ("alpha", "threshold") if p in given]
    return Promise(max([1, *needed]), column, cache(holds))


@dataclass
class Part:
    """Some rows, the places between which every axis was cut out, and the axis that was cut last."""

    rows: list[int]
    spans: tuple[tuple[int, int], ...]
    cut: int = -1


@dataclass
class Class:
    """The numbers of its rows, and (a, b, level) for every axis."""

    rows: list[int]
    regions: tuple[Region, ...]


@dataclass
class Mondrian:
    """A table, what is promised of it, and how it is cut; ``classes`` does it."""

    axes: Sequence[Axis]
    rows: Sequence[Row]
    promises: Sequence[Promise]
    relaxed: bool = False
    choose: str = "range"
    tight: bool = False
    persons: bool = False
    cuts: Counter[str] = field(default_factory=Counter)
    """How often each kind of cut was made: tests look which ones they reach."""

    @property
    def least(self) -> int:
        return max(p.least for p in self.promises)

    def classes(self, starts: Sequence[int] | None = None) -> list[Class]:
        """Return the classes of every region in turn; ``starts`` bound the regions."""
        bounds = starts if starts is not None else [0, len(self.rows)]
        found: list[Class] = []
        for first, after in pairwise(bounds):
            whole = Part(list(range(first, after)), tuple((0, axis.size - 1) for axis in self.axes))
            if not self.good(whole.rows):
                raise Infeasible
            found += [Class(leaf.rows, self.regions(leaf)) for leaf in self.leaves(whole)]
        return found

    def leaves(self, part: Part) -> list[Part]:
        children = self.split(part)
        return [part] if children is None else [leaf for child in children for leaf in self.leaves(child)]

    # What a set of rows is.

    def size(self, rows: Iterable[int]) -> int:
        return sum(self.rows[i].count for i in rows)

    def good(self, rows: Sequence[int]) -> bool:
        """Say whether these rows may be a class."""
        total = self.size(rows)
        members = len({self.rows[i].person for i in rows}) if self.persons else total
        return total >= self.least and all(
            p.holds(() if p.column is None else self.values(rows, p.column), members) for p in self.promises
        )

    def values(self, rows: Sequence[int], column: int) -> tuple[int, ...]:
        return tuple(sorted(self.rows[i].values[column] for i in rows for _ in range(self.rows[i].count)))

    def places(self, rows: Sequence[int], j: int) -> list[int]:
        """The places that are there, ascending."""
        return sorted({self.rows[i].places[j] for i in rows})

    def regions(self, part: Part) -> tuple[Region, ...]:
        found = []
        for j, axis in enumerate(self.axes):
            here = self.places(part.rows, j)
            lo, hi = here[0], here[-1]
            a, b = part.spans[j]
            if axis.null and lo == axis.size - 1:
                found.append((lo, hi, 0))
            elif axis.mixed(lo, hi):
                found.append((lo, hi, axis.height))
            elif axis.atoms is None:
                found.append((lo, hi, axis.common(lo, hi)))
            elif axis.inner and lo == hi:
                found.append((lo, hi, 0))
            elif self.tight:
                found.append((lo, hi, -1))
            else:
                found.append((a, min(b, axis.last), -1))
        return tuple(found)

    # Which axis is cut.

    def candidates(self, part: Part) -> list[int]:
        return [j for j in range(len(self.axes)) if len(self.places(part.rows, j)) > 1]

    def by_width(self, part: Part) -> list[int]:
        def width(j: int) -> float:
            here = self.places(part.rows, j)
            return self.axes[j].width(here[0], here[-1]) * self.axes[j].weight

        return sorted(self.candidates(part), key=lambda j: (-width(j), j))

    def ordered(self, part: Part) -> list[int]:
        """The axes in the order in which they are tried (and, by gain, the order among equals)."""
        if self.choose == "distinct":
            return sorted(
                self.candidates(part),
                key=lambda j: (-len(self.places(part.rows, j)) * self.axes[j].weight, j),
            )
        if self.choose == "round_robin":
            return sorted(self.candidates(part), key=lambda j: (j - part.cut - 1) % len(self.axes))
        return self.by_width(part)

    def split(self, part: Part) -> list[Part] | None:
        """Return the parts of the first allowed cut, or None."""
        order = self.ordered(part)
        proposals = [(j, self.proposal(part, j)) for j in order]
        possible = [(j, groups) for j, groups in proposals if groups is not None]
        if self.choose in GAINS:
            possible = self.by_gain(part, possible)
        for j, groups in possible:
            if all(self.good(g.rows) for g in groups):
                self.cuts[self.kind(part, j)] += 1
                return groups
        if self.relaxed:
            return None
        for j in order:
            # Where NULL could not be set apart it is the last place of a line.
            if self.is_line_cut(part, j) or (self.axes[j].atoms is not None and self.kind(part, j) == "null"):
                for left, right in self.boundaries(part, j):
                    if self.good(left.rows) and self.good(right.rows):
                        self.cuts["other boundary"] += 1
                        return [left, right]
        return None

    # How an axis is cut.

    def is_line_cut(self, part: Part, j: int) -> bool:
        axis, here = self.axes[j], self.places(part.rows, j)
        if axis.atoms is None or axis.mixed(here[0], here[-1]):
            return False
        return axis.atoms[here[0]] != axis.atoms[here[-1]]

    def kind(self, part: Part, j: int) -> str:
        axis, here = self.axes[j], self.places(part.rows, j)
        if axis.mixed(here[0], here[-1]):
            return "null"
        if self.is_line_cut(part, j):
            return "half" if self.relaxed else "boundary"
        return "nodes" if axis.atoms is None else "values"

    def proposal(self, part: Part, j: int) -> list[Part] | None:
        """Return the groups that axis j would make, or None."""
        axis, here = self.axes[j], self.places(part.rows, j)
        lo, hi = here[0], here[-1]
        if axis.mixed(lo, hi):
            apart = self.at_null(part, j)
            return apart if all(self.good(g.rows) for g in apart) else self.with_null(part, j)
        if self.is_line_cut(part, j):
            if self.relaxed:
                return self.halves(part, j)
            found = self.boundaries(part, j)
            if not found:
                return None
            if self.choose in GAINS:
                gains = [self.gain(part, j, groups) for groups in found]
                return next(groups for groups, gain in zip(found, gains, strict=True) if same(gain, max(gains)))
            return found[0]
        children = self.children(part, j)
        return None if children is None else self.pooled(part, j, children)

    def children(self, part: Part, j: int) -> list[list[int]] | None:
        """The rows of every child, where an axis has more than two to offer: nodes of a tree, values inside an atom."""
        axis, here = self.axes[j], self.places(part.rows, j)
        if self.kind(part, j) not in ("nodes", "values") or (axis.atoms is not None and not axis.inner):
            return None
        nodes = range(axis.size) if axis.atoms is not None else axis.nodes[axis.common(here[0], here[-1]) - 1]
        groups: dict[int, list[int]] = {}
        for i in part.rows:
            groups.setdefault(nodes[self.rows[i].places[j]], []).append(i)
        return list(groups.values())

    def child(self, part: Part, j: int, rows: list[int], a: int, b: int) -> Part:
        spans = [*part.spans]
        spans[j] = (a, b)
        return Part(rows, tuple(spans), j)

    def with_null(self, part: Part, j: int) -> list[Part] | None:
        """Where NULL cannot stand alone it is the last place of a line, and one more child of a tree's top."""
        axis, here = self.axes[j], self.places(part.rows, j)
        if axis.atoms is not None:
            found = self.boundaries(part, j)
            return found[0] if found else None
        nodes = axis.nodes[axis.common(here[0], here[-1]) - 1]
        groups: dict[int, list[int]] = {}
        for i in part.rows:
            groups.setdefault(nodes[self.rows[i].places[j]], []).append(i)
        return self.pooled(part, j, list(groups.values()))

    def at_null(self, part: Part, j: int) -> list[Part]:
        """The other values, and NULL."""
        axis = self.axes[j]
        others = [i for i in part.rows if self.rows[i].places[j] <= axis.last]
        nulls = [i for i in part.rows if self.rows[i].places[j] > axis.last]
        a, b = part.spans[j]
        return [self.child(part, j, others, a, axis.last), self.child(part, j, nulls, b, b)]

    def boundaries(self, part: Part, j: int) -> list[list[Part]]:
        """Both sides of every possible cut between atoms, nearest to the half first."""
        atoms = self.axes[j].atoms
        assert atoms is not None
        present = sorted({atoms[p] for p in self.places(part.rows, j)})
        total = self.size(part.rows)
        found = []
        for atom in present[:-1]:
            left = [i for i in part.rows if atoms[self.rows[i].places[j]] <= atom]
            right = [i for i in part.rows if atoms[self.rows[i].places[j]] > atom]
            count = self.size(left)
            if count >= self.least and total - count >= self.least:
                found.append((abs(2 * count - total), count, self.cut_after(part, j, atom, left, right)))
        return [groups for _, _, groups in sorted(found, key=lambda f: f[:2])]

    def cut_after(self, part: Part, j: int, atom: int, left: list[int], right: list[int]) -> list[Part]:
        """The region is cut where the atom after this one starts, whether any row has that or not."""
        axis = self.axes[j]
        assert axis.atoms is not None
        a, b = part.spans[j]
        cut = min((p for p in range(axis.last + 1) if axis.atoms[p] > atom), default=axis.last + 1)
        return [self.child(part, j, left, a, cut - 1), self.child(part, j, right, cut, b)]

    def halves(self, part: Part, j: int) -> list[Part] | None:
        """Relaxed: half of the rows each, even where that takes rows of one atom apart."""
        axis = self.axes[j]
        assert axis.atoms is not None
        assert all(self.rows[i].count == 1 for i in part.rows)

        def key(i: int) -> tuple[object, ...]:
            row = self.rows[i]
            others = tuple(p for other, p in enumerate(row.places) if other != j)
            return row.places[j], others, row.values, row.tie

        rows = sorted(part.rows, key=key)
        half = (len(rows) + 1) // 2
        left, right = rows[:half], rows[half:]
        if min(len(left), len(right)) < self.least:
            return None
        before, after = (axis.atoms[self.rows[i].places[j]] for i in (left[-1], right[0]))
        if before != after:
            return self.cut_after(part, j, before, left, right)
        a, b = part.spans[j]
        shared = [p for p in range(axis.last + 1) if axis.atoms[p] == before]
        return [self.child(part, j, left, a, shared[-1]), self.child(part, j, right, shared[0], b)]

    def pooled(self, part: Part, j: int, children: list[list[int]]) -> list[Part] | None:
        """Those children that may not stand alone are put together, with the smallest others where that is needed."""

        def first(rows: list[int]) -> int:
            return self.places(rows, j)[0]

        fine = sorted((rows for rows in children if self.good(rows)), key=lambda rows: (self.size(rows), first(rows)))
        pool = [i for rows in children if not self.good(rows) for i in rows]
        while pool and fine and not self.good(pool):
            pool += fine.pop(0)
        kept = sorted([*fine, *([pool] if pool else [])], key=first)
        return [self.child(part, j, rows, *self.span(part, j, rows)) for rows in kept] if len(kept) > 1 else None

    def span(self, part: Part, j: int, rows: list[int]) -> tuple[int, int]:
        """Inside an atom a single value has a region of its own; a pool may lie around others, and keeps the atom."""
        here = self.places(rows, j)
        return (here[0], here[0]) if len(here) == 1 else part.spans[j]

    # Workload-aware cuts.

    def by_gain(self, part: Part, possible: list[tuple[int, list[Part]]]) -> list[tuple[int, list[Part]]]:
        gains = {j: Decimal(self.axes[j].weight) * self.gain(part, j, groups) for j, groups in possible}
        left, found = list(possible), []
        while left:
            best = max(gains[j] for j, _ in left)
            found.append(next(p for p in left if same(gains[p[0]], best)))
            left.remove(found[-1])
        return found

    def gain(self, part: Part, j: int, groups: Sequence[Part]) -> Decimal:
        """What a cut removes from the spread of the targets: exact as long as it can be.

        Children of a node count as they are, before any of them are pooled.
        """
        here = self.places(part.rows, j)
        if self.axes[j].mixed(here[0], here[-1]):
            groups = self.at_null(part, j)
        rows = self.children(part, j) or [g.rows for g in groups]
        return GAINS[self.choose](self.targets(part.rows), [self.targets(r) for r in rows])

    def targets(self, rows: Sequence[int]) -> list[list[int]]:
        count = len(self.rows[rows[0]].targets)
        return [[self.rows[i].targets[t] for i in rows for _ in range(self.rows[i].count)] for t in range(count)]
