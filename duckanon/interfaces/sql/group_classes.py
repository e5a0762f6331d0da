"""Classes within groups in SQL: ``SELECT ward, mondrian_classes(list({'age': age}), 5) FROM stays GROUP BY ward``.

DuckDB passes many groups at once. Mondrian divides them together: the group is one more axis, which is cut first, so a
small group costs little more than its rows. Clusters are made group by group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from duckanon.algorithms.clustering.clusters import Cloud, mdav, tdg
from duckanon.algorithms.clustering.spaces import on_lines
from duckanon.algorithms.partition.partition import Items, PartitionAxis, Rules, partition
from duckanon.engine.duckdb.functions import reason_of
from duckanon.engine.duckdb.scalars import PROBLEM, RESULT, Scalar
from duckanon.errors import ParameterError
from duckanon.interfaces.sql.group_axes import columns_of, is_list, lengths_of, place, stored
from duckanon.models import KAnonymity

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]
    Numbers = Callable[[pa.Array, Integers, int], Integers]

_TOGETHER = 20_000
"""The most rows that are divided together: as many as one thread takes at once."""
_AHEAD = 2.0
"""The weight of the group: more than any other axis can have."""


def answer(name: str, numbers: Numbers, columns: Sequence[Any]) -> Any:
    """Answer many calls: a struct of the classes, and the reason if there are none."""
    import pyarrow as pa

    count = len(columns[0])
    try:
        members, ks = (_whole(column) for column in columns)
        found, reason = classes_of(members, ks, numbers), None
    except ParameterError as error:
        reason = f"{name}: {error}"
    except Exception as error:
        # Its text may quote a cell.
        reason = reason_of(error)
    if reason is not None:
        found = pa.nulls(count, pa.list_(pa.int32()))
    return pa.StructArray.from_arrays([found, pa.array([reason] * count, pa.string())], [RESULT, PROBLEM])


def _mondrian(*columns: Any) -> Any:
    return answer("mondrian_classes", divided, columns)


def _mdav(*columns: Any) -> Any:
    return answer("mdav_classes", clustered_by_mdav, columns)


def _tdg(*columns: Any) -> Any:
    return answer("tdg_classes", clustered_by_tdg, columns)


CLASSES = tuple(
    Scalar(name, ("members", "k"), "INTEGER[]", compute)
    for name, compute in (("mondrian_classes", _mondrian), ("mdav_classes", _mdav), ("tdg_classes", _tdg))
)


def _whole(column: Any) -> pa.Array:
    import pyarrow as pa

    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def classes_of(groups: pa.Array, ks: pa.Array, numbers: Numbers) -> pa.Array:
    """Return for each list of members the numbers of their classes, NULL where the list has fewer than k.

    Examples
    --------
    >>> import pyarrow as pa
    >>> classes_of(pa.array([[1, 8, 2, 9], [1], [], None]), pa.array([2] * 4), divided).to_pylist()
    [[1, 2, 1, 2], [None], [], None]
    """
    import pyarrow as pa

    ks = stored(ks)
    _require_k(ks)
    if not len(groups) or pa.types.is_null(groups.type):
        return pa.nulls(len(groups), pa.list_(pa.int32()))
    if not is_list(groups.type):
        raise ParameterError("members must be a list, such as list({'age': age, 'zip': zip}).")
    coded = ks.dictionary_encode()
    distinct = [int(k) for k in coded.dictionary.to_pylist()]
    if len(distinct) == 1:
        return _classed(groups, distinct[0], numbers)
    own = coded.indices.to_numpy()
    order = np.argsort(own, kind="stable")
    parts = [_classed(groups.take(pa.array(np.flatnonzero(own == i))), k, numbers) for i, k in enumerate(distinct)]
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
        raise ParameterError(f"k must be an integer. Got {got}.")
    if ks.null_count or pc.any(pc.less(ks, 1)).as_py():
        raise ParameterError("k must be a positive integer.")


def _classed(groups: pa.Array, k: int, number: Numbers) -> pa.Array:
    """Return the classes of groups that all have the same k."""
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
        numbers[at] = number(part, np.concatenate([[0], np.cumsum(here[enough])]), k)
    found = pa.array(numbers, mask=numbers == 0)
    return pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), found, mask=groups.is_null())


def _runs(ends: Integers) -> Iterator[tuple[int, int]]:
    """Yield runs of groups that are divided together. A large group is a run by itself."""
    first, done = 0, 0
    while first < len(ends):
        last = max(int(np.searchsorted(ends, done + _TOGETHER, side="right")), first + 1)
        yield first, last
        first, done = last, int(ends[last - 1])


def divided(members: pa.Array, starts: Integers, k: int) -> Integers:
    """Return the number of each member's class among those of its group; no group has fewer members than k."""
    groups, count = len(starts) - 1, len(members)
    owner = np.repeat(np.arange(groups), np.diff(starts))
    placed = [place(values, starts) for values in columns_of(members, starts)]
    alone = np.arange(groups, dtype=np.int64)
    tree = (alone, np.zeros(groups, dtype=np.int64))
    leaves = (np.ones(groups, dtype=np.int64), np.array([groups], dtype=np.int64))
    group = PartitionAxis(groups, False, np.zeros(groups), nodes=tree, leaves=leaves, weight=_AHEAD)
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


def clustered_by_mdav(members: pa.Array, starts: Integers, k: int) -> Integers:
    """Return the number of each member's class by MDAV, distances being in standard deviations of the group."""
    return _clustered(members, starts, True, lambda cloud: mdav(cloud, k, _ignore))


def clustered_by_tdg(members: pa.Array, starts: Integers, k: int) -> Integers:
    """Return the number of each member's class by top-down greedy division, distances being shares of the range."""
    return _clustered(members, starts, False, lambda cloud: tdg(cloud, k, 0, False, 1, _ignore))


def _ignore(rows: int) -> None:
    pass


def _clustered(
    members: pa.Array, starts: Integers, standardised: bool, cluster: Callable[[Cloud], Integers]
) -> Integers:
    placed = [place(values, starts) for values in columns_of(members, starts)]
    shares = np.stack([axis.numbers[own] for axis, own in placed], axis=1)
    missing = np.stack([(own == axis.size - 1) & axis.null for axis, own in placed], axis=1)
    found = np.empty(len(members), dtype=np.int64)
    for start, end in pairwise(starts.tolist()):
        space, points = on_lines(shares[start:end], missing[start:end], standardised)
        order = np.lexsort([points[:, j] for j in reversed(range(points.shape[1]))])
        points = points[order]
        labels = cluster(Cloud(space, points, np.ones(len(points), dtype=np.int64)))
        # Classes are numbered in the order of their first members, by value.
        _, seen, inverse = np.unique(labels, return_index=True, return_inverse=True)
        ranks = np.empty(len(seen), dtype=np.int64)
        ranks[np.argsort(seen)] = np.arange(1, len(seen) + 1)
        found[start + order] = ranks[inverse]
    return found
