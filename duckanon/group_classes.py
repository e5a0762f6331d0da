"""Classes within groups in SQL: ``SELECT ward, mondrian_classes(list({'age': age}), 5) FROM stays GROUP BY ward``.

DuckDB hands over many groups at once. They are divided together, the group being one more axis which is cut first, so
that a small group costs next to nothing besides its rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from duckanon.algorithms.partition import Axis, Items, Rules, partition
from duckanon.engine.functions import reason_of
from duckanon.engine.scalars import PROBLEM, RESULT, Scalar
from duckanon.errors import ParameterError
from duckanon.group_axes import columns_of, is_list, lengths_of, place, stored
from duckanon.models import KAnonymity

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

_TOGETHER = 20_000
"""Most rows that are divided together: as many as one thread takes at once."""
_AHEAD = 2.0
"""The weight of the group: more than any other axis can have."""


def answer(*columns: Any) -> Any:
    """Answer many calls: a struct of the classes and of the reason why there are none."""
    import pyarrow as pa

    count = len(columns[0])
    try:
        found, reason = classes_of(*(_whole(column) for column in columns)), None
    except Exception as error:
        # Its text may quote a cell.
        reason = reason_of(error)
        found = pa.nulls(count, pa.list_(pa.int32()))
    return pa.StructArray.from_arrays([found, pa.array([reason] * count, pa.string())], [RESULT, PROBLEM])


MONDRIAN_CLASSES = Scalar("mondrian_classes", ("members", "k"), "INTEGER[]", answer)


def _whole(column: Any) -> pa.Array:
    import pyarrow as pa

    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def classes_of(groups: pa.Array, ks: pa.Array) -> pa.Array:
    """Return for each list of members the numbers of their classes, NULL where the list has fewer than k.

    Examples
    --------
    >>> import pyarrow as pa
    >>> classes_of(pa.array([[1, 8, 2, 9], [1], [], None]), pa.array([2] * 4)).to_pylist()
    [[1, 2, 1, 2], [None], [], None]
    """
    import pyarrow as pa

    ks = stored(ks)
    _require_k(ks)
    if not len(groups) or pa.types.is_null(groups.type):
        return pa.nulls(len(groups), pa.list_(pa.int32()))
    if not is_list(groups.type):
        raise ParameterError("mondrian_classes: members must be a list, such as list({'age': age, 'zip': zip}).")
    coded = ks.dictionary_encode()
    distinct = [int(k) for k in coded.dictionary.to_pylist()]
    if len(distinct) == 1:
        return _divided(groups, distinct[0])
    own = coded.indices.to_numpy()
    order = np.argsort(own, kind="stable")
    parts = [_divided(groups.take(pa.array(np.flatnonzero(own == i))), k) for i, k in enumerate(distinct)]
    return pa.concat_arrays(parts).take(pa.array(np.argsort(order)))


def _require_k(ks: pa.Array) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind, types = ks.type, pa.types
    # HUGEINT comes as a decimal without a fraction.
    if not (types.is_integer(kind) or types.is_null(kind) or (types.is_decimal(kind) and kind.scale == 0)):
        got = "a number" if types.is_floating(kind) or types.is_decimal(kind) else "another type"
        got = "a text" if types.is_string(kind) or types.is_large_string(kind) else got
        got = "a boolean" if types.is_boolean(kind) else got
        raise ParameterError(f"mondrian_classes: k must be an integer. Got {got}.")
    if ks.null_count or pc.any(pc.less(ks, 1)).as_py():
        raise ParameterError("mondrian_classes: k must be a positive integer.")


def _divided(groups: pa.Array, k: int) -> pa.Array:
    """Return the classes of groups that are all asked for the same k."""
    import pyarrow as pa

    members, lengths = groups.flatten(), lengths_of(groups)
    ends = np.cumsum(lengths)
    bounds = np.concatenate([[0], ends])
    numbers = np.zeros(len(members), dtype=np.int32)
    for first, last in _runs(ends):
        here, enough = lengths[first:last], lengths[first:last] >= k
        if not enough.any():
            continue
        at = np.arange(bounds[first], bounds[last])
        part = members.slice(bounds[first], len(at))
        if not enough.all():
            at, part = at[np.repeat(enough, here)], part.filter(pa.array(np.repeat(enough, here)))
        numbers[at] = _numbers(part, np.concatenate([[0], np.cumsum(here[enough])]), k)
    found = pa.array(numbers, mask=numbers == 0)
    return pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), found, mask=groups.is_null())


def _runs(ends: Integers) -> Iterator[tuple[int, int]]:
    """Yield runs of groups that are divided together; one that is large is alone."""
    first, done = 0, 0
    while first < len(ends):
        last = max(int(np.searchsorted(ends, done + _TOGETHER, side="right")), first + 1)
        yield first, last
        first, done = last, int(ends[last - 1])


def _numbers(members: pa.Array, starts: Integers, k: int) -> Integers:
    """Return the number of each member's class among those of its group; no group has fewer members than k."""
    groups, count = len(starts) - 1, len(members)
    owner = np.repeat(np.arange(groups), np.diff(starts))
    placed = [place(values, starts) for values in columns_of(members, starts)]
    alone = np.arange(groups, dtype=np.int64)
    tree = (alone, np.zeros(groups, dtype=np.int64))
    leaves = (np.ones(groups, dtype=np.int64), np.array([groups], dtype=np.int64))
    group = Axis(groups, False, np.zeros(groups), nodes=tree, leaves=leaves, weight=_AHEAD)
    places = np.empty((count, len(placed) + 1), dtype=np.uint32)
    for j, own in enumerate((owner, *(p for _, p in placed))):
        places[:, j] = own
    parts = partition([group, *(axis for axis, _ in placed)], Items(places), Rules((KAnonymity(k),)))
    # Classes come group after group.
    numbered = np.arange(len(parts.starts) - 1)
    of = owner[parts.order[parts.starts[:-1]]]
    numbered -= np.searchsorted(of, of)
    found = np.empty(count, dtype=np.int64)
    found[parts.order] = np.repeat(numbered + 1, np.diff(parts.starts))
    return found
