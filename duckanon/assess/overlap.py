"""What the overlap of classes proves, where nobody can be followed from one release to the other.

If both releases are about the same people, the members of a class are spread over those classes of the other release
that can have a member with it. From the sizes alone, two classes have at least so many members in common as the others
cannot hold, and at most what is left when the others have theirs (the bounds of Fréchet, with cells that must be
empty).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlglot import exp

from duckanon.assess.composition import Composition
from duckanon.engine.sql.relations import cast, col, named, subquery
from duckanon.errors import UnsupportedError
from duckanon.hierarchy.labels import parse, text_range

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from duckanon.assess.subject import Subject

    Ints = NDArray[np.int64]

_MOST = 20_000


@dataclass(frozen=True)
class Reach:
    """What a cell can stand for: a span of numbers, a span of texts, some values, or anything."""

    numbers: tuple[float, float, bool, bool] | None = None
    texts: tuple[str | None, str | None] | None = None
    members: frozenset[str] | None = None


def reach(label: str | None, type_name: str) -> Reach:
    """Read a cell without knowing the original values; what cannot be read may be anything.

    Examples
    --------
    >>> reach("[20, 29]", "BIGINT").numbers, reach("{a, b}", "VARCHAR").members == {"a", "b"}, reach("*", "VARCHAR")
    ((20.0, 29.0, False, False), True, Reach(numbers=None, texts=None, members=None))
    """
    if label is None or label == "*":
        return Reach()
    found = parse(label, type_name)
    if found.span is not None:
        return Reach(numbers=found.span)
    between = text_range(label)
    if between is not None:
        return Reach(texts=between)
    if found.members:
        return Reach(members=frozenset(found.members))
    # A word may be a value, or the name of a group that has others in it.
    return Reach()


def may_meet(a: Reach, b: Reach) -> bool:
    """Say whether a value can be in both cells.

    Examples
    --------
    >>> ages = [reach(label, "BIGINT") for label in ("[20, 29]", "[25, 40]", "[20, 25)")]
    >>> may_meet(ages[0], ages[1]), may_meet(ages[1], ages[2]), may_meet(ages[1], reach("*", "BIGINT"))
    (True, False, True)
    """
    if a.numbers is not None and b.numbers is not None:
        low, high = max(a.numbers[0], b.numbers[0]), min(a.numbers[1], b.numbers[1])
        if low != high:
            return low < high
        return not any(
            (low == own[0] and own[2] and low != -inf) or (low == own[1] and own[3] and low != inf)
            for own in (a.numbers, b.numbers)
        )
    if a.texts is not None and b.texts is not None:
        starts = [t[0] for t in (a.texts, b.texts) if t[0] is not None]
        ends = [t[1] for t in (a.texts, b.texts) if t[1] is not None]
        return not starts or not ends or max(starts) <= min(ends)
    if a.members is not None and b.members is not None:
        return bool(a.members & b.members)
    for one, other in ((a, b), (b, a)):
        if one.members is not None and other.texts is not None:
            low_text, high_text = other.texts
            return any(
                (low_text is None or low_text <= m) and (high_text is None or m <= high_text) for m in one.members
            )
    return True


def common(meet: NDArray[np.bool_], first: Ints, second: Ints) -> tuple[Ints, Ints]:
    """Return how many members two classes have in common at least and at most, if both tables are of the same people.

    Examples
    --------
    >>> import numpy as np
    >>> meet = np.array([[True, True], [False, True]])
    >>> [m.tolist() for m in common(meet, np.array([5, 4]), np.array([3, 6]))]
    [[[3, 2], [0, 4]], [[3, 2], [0, 4]]]
    """
    least = _least(meet, first, second, meet @ second, first @ meet)
    return least, _most(meet, first, second, least, least.sum(axis=0))


def _least(meet: NDArray[np.bool_], first: Ints, second: Ints, reached: Ints, held: Ints) -> Ints:
    """Return what other classes cannot hold; ``reached`` and ``held`` are the sizes of all that a class meets."""
    least = np.maximum(first[:, None] - (reached[:, None] - second), second - (held - first[:, None]))
    return np.where(meet, np.maximum(least, 0), 0)


def _most(meet: NDArray[np.bool_], first: Ints, second: Ints, least: Ints, taken: Ints) -> Ints:
    """Return what is left when others have the least they must; ``taken`` adds that up for the second table."""
    most = np.minimum((first - least.sum(axis=1))[:, None] + least, (second - taken) + least)
    return np.where(meet, most, 0)


def by_overlap(subject: Subject, previous: Subject, k: int) -> Composition:
    """Count the groups below k that the sizes and cells of both tables prove."""
    before, first = _classes(previous)
    after, second = _classes(subject)
    if len(first) > _MOST or len(second) > _MOST:
        raise UnsupportedError(
            f"Without a key or an original the classes of both tables are compared in pairs, of which there may be "
            f"{_MOST} classes each at most. Give entity_key or original."
        )
    kinds = [subject.type_of(name) for name in subject.quasi]
    meets = [_cells_meet(before[j], after[j], kinds[j]) for j in range(len(kinds))]
    same_people = first.sum() == second.sum()
    groups = persons = 0
    smallest: int | None = None
    reached = np.zeros(len(first), dtype=np.int64)
    held = np.zeros(len(second), dtype=np.int64)
    blocks = [slice(i, i + 512) for i in range(0, len(first), 512)]
    for block in blocks:
        meet = _block(meets, before, after, block)
        reached[block], held = meet @ second, held + first[block] @ meet
    taken = np.zeros(len(second), dtype=np.int64)
    for block in blocks:
        meet = _block(meets, before, after, block)
        taken += _least(meet, first[block], second, reached[block], held).sum(axis=0)
    for block in blocks:
        meet = _block(meets, before, after, block)
        least = _least(meet, first[block], second, reached[block], held)
        most = _most(meet, first[block], second, least, taken)
        proved = (least >= 1) & (least == most) if same_people else np.zeros_like(meet)
        if proved.any():
            low = int(least[proved].min())
            smallest = low if smallest is None else min(smallest, low)
        below = (least >= 1) & (most < k) if same_people else np.zeros_like(meet)
        groups += int(below.sum())
        persons += int(least[below].sum())
    return Composition(k, "overlap", int(min(first.sum(), second.sum())), smallest, groups, persons)


def _classes(subject: Subject) -> tuple[list[Any], NDArray[np.int64]]:
    """Return the cells of each class, column by column as dictionaries, and the sizes."""
    labels = [named(cast(own.copy(), "VARCHAR"), f"q_{j}") for j, own in enumerate(subject.quasi.values())]
    query = exp.select(*labels, named(exp.Count(this=exp.Star()), "n")).from_(subquery(subject.query, "s"))
    found = subject.engine.arrow(query.group_by(*(col(f"q_{j}") for j in range(len(labels)))))
    cells = [found.column(j).combine_chunks().dictionary_encode(null_encoding="encode") for j in range(len(labels))]
    return cells, np.asarray(found.column("n").to_numpy(), dtype=np.int64)


def _cells_meet(before: Any, after: Any, kind: str) -> NDArray[np.bool_]:
    sides: list[list[tuple[str | None, Reach]]] = [
        [(label, reach(label, kind)) for label in side.dictionary.to_pylist()] for side in (before, after)
    ]
    return np.array([[a == b or may_meet(x, y) for b, y in sides[1]] for a, x in sides[0]], dtype=np.bool_)


def _block(
    meets: Sequence[NDArray[np.bool_]], before: Sequence[Any], after: Sequence[Any], block: slice
) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] | None = None
    for meet, a, b in zip(meets, before, after, strict=True):
        own = meet[np.ix_(a.indices.to_numpy()[block], b.indices.to_numpy())]
        found = own if found is None else found & own
    assert found is not None
    return found


__all__ = ["Reach", "by_overlap", "common", "may_meet", "reach"]
