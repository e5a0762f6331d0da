"""Columns of many groups as axes. Each group has its own places, and its own unit of size.

The places of a group are a run of the axis, so groups that are divided together do not affect each other. Numbers,
dates and times are lines by their size; text, binary values and booleans are lines by their order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from duckanon.algorithms.partition.partition import PartitionAxis
from duckanon.errors import ParameterError, UnsupportedError

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]
    Floats = NDArray[np.float64]

_AS_STORED = ("arrow.json", "arrow.uuid")
_HUGE = ("hugeint", "uhugeint")


@dataclass(frozen=True)
class Values:
    """A column: ``keys`` order its values (the last one first), ``sizes`` measure them, ``missing`` are NULL.

    Without sizes a value's size is its rank.
    """

    keys: tuple[NDArray[Any], ...]
    sizes: Floats | None
    missing: NDArray[np.bool_]


def columns_of(members: pa.Array, starts: Integers) -> list[Values]:
    """Return the columns of members: the fields of structs, the positions of lists, or the members themselves.

    ``starts`` bound the groups. A member that is NULL is NULL in every column.
    """
    import pyarrow as pa

    kind = members.type
    if pa.types.is_struct(kind):
        names = [kind.field(i).name for i in range(kind.num_fields)]
        fields = zip(names, members.flatten(), strict=True)
        return [_values(field, f"the field {name!r} of a member") for name, field in fields]
    if is_list(kind):
        return _positions(members, starts)
    return [_values(members, "a member")]


def is_list(kind: pa.DataType) -> bool:
    """Return whether values of a type are lists."""
    import pyarrow as pa

    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def lengths_of(lists: pa.Array) -> Integers:
    """Return the length of every list; NULL has none."""
    import pyarrow.compute as pc

    found = pc.fill_null(pc.list_value_length(lists), 0)
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.int64)


def _positions(lists: pa.Array, starts: Integers) -> list[Values]:
    """Return one column for each position of lists that are equally long within every group.

    A group of shorter lists is NULL at the last positions, which cuts nothing.
    """
    import pyarrow as pa

    lengths = lengths_of(lists)
    known = np.asarray(lists.is_valid().to_numpy(zero_copy_only=False))
    most = np.maximum.reduceat(lengths, starts[:-1])
    if np.any(known & (lengths != np.repeat(most, np.diff(starts)))):
        raise ParameterError("members that are lists must be equally long within a group.")
    first, flat = np.cumsum(lengths) - lengths, lists.flatten()
    taken = [pa.array(first + j, mask=lengths <= j) for j in range(int(most.max(initial=0)))]
    return [_values(flat.take(at), "a value in a member") for at in taken]


def stored(column: pa.Array) -> pa.Array:
    """Return a column of an extension type as its storage type."""
    import pyarrow as pa

    if isinstance(column.type, pa.BaseExtensionType):
        if column.type.extension_name in _AS_STORED:
            return column.storage
        if getattr(column.type, "type_name", None) in _HUGE:
            # Sixteen bytes, as decimals have them.
            return column.storage.view(pa.decimal128(38, 0))
    return column


def _values(column: pa.Array, what: str) -> Values:
    import pyarrow as pa

    column = stored(column)
    kind, types = column.type, pa.types
    missing = np.asarray(column.is_null().to_numpy(zero_copy_only=False))
    if types.is_null(kind):
        return Values((), None, missing)
    if types.is_boolean(kind):
        return Values((_plain(column.cast(pa.int8())),), None, missing)
    if types.is_integer(kind):
        whole = _plain(column)
        return Values((whole,), whole.astype(np.float64), missing)
    if types.is_floating(kind):
        return _floats(_plain(column), missing)
    if types.is_decimal(kind):
        return _decimals(column, missing)
    if types.is_date(kind) or types.is_timestamp(kind) or types.is_time(kind):
        whole = _plain(column.view(pa.int32() if kind.bit_width == 32 else pa.int64()))
        # Of dates and timestamps the largest and the smallest number mean that they are infinite.
        end = np.iinfo(whole.dtype).max
        sizes = whole.astype(np.float64)
        sizes[whole == end], sizes[whole == -end] = np.inf, -np.inf
        return Values((whole,), sizes, missing)
    coded = _coded(column)
    if coded is None:
        raise UnsupportedError(
            f"{what} must be a number, a date, a time, a text or a boolean. Cast it, or leave it out."
        )
    return Values((coded,), None, missing)


def _plain(column: pa.Array) -> NDArray[Any]:
    """Return numbers as they are in memory; those of NULL are undefined."""
    return _words(column, np.dtype(column.type.to_pandas_dtype()))


def _words(column: pa.Array, kind: np.dtype[Any], each: int = 1) -> NDArray[Any]:
    """Return the memory of a column, in words for each value."""
    stored = np.frombuffer(column.buffers()[1], dtype=kind, count=(column.offset + len(column)) * each)
    return stored[column.offset * each :]


def _floats(values: NDArray[Any], missing: NDArray[np.bool_]) -> Values:
    """Order numbers as the database does: zero has no sign, NaN is one value and the largest."""
    # The memory of NULL is undefined.
    with np.errstate(invalid="ignore"):
        sizes = np.where(np.isnan(values), np.nan, values.astype(np.float64) + 0.0)
    bits = sizes.view(np.int64)
    return Values((np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits),), sizes, missing)


def _decimals(column: pa.Array, missing: NDArray[np.bool_]) -> Values:
    """Order decimals by their digits, all of them."""
    each, scale = column.type.bit_width // 64, 10.0**column.type.scale
    if each < 2:
        whole = _words(column, np.dtype(np.int64 if each else np.int32))
        return Values((whole,), whole / scale, missing)
    low, high = _words(column, np.dtype(np.uint64), 2).reshape(-1, 2).T
    near, far = low.astype(np.int64), high.astype(np.int64)
    # One by one, because the size of a number must not depend on its neighbours.
    sizes = np.where(far == near >> 63, near.astype(np.float64), far * 2.0**64 + low)
    return Values((low, far), sizes / scale, missing)


def _coded(column: pa.Array) -> Integers | None:
    """Return the rank of each text among the distinct ones, or None for other types."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind, types = column.type, pa.types
    own = kind.value_type if types.is_dictionary(kind) else kind
    if str(own).endswith("_view"):
        column, own = column.cast(pa.large_binary()), pa.large_binary()
    plain = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary, types.is_fixed_size_binary)
    if not any(test(own) for test in plain):
        return None
    coded = column if types.is_dictionary(kind) else pc.dictionary_encode(column)
    ranks = np.zeros(max(len(coded.dictionary), 1), dtype=np.int64)
    ranks[pc.sort_indices(coded.dictionary).to_numpy()] = np.arange(len(coded.dictionary))
    codes = pc.fill_null(coded.indices, 0).to_numpy(zero_copy_only=False)
    return np.asarray(ranks[codes.astype(np.int64)])


def place(values: Values, starts: Integers) -> tuple[PartitionAxis, Integers]:
    """Return the axis of a column, and the place of each value: a group has the places of its own values only.

    Before and after all of them the axis has a place that no value has: between these two lies the size 1, which is
    the size of every group. So the widths are the very numbers that a group would have alone.
    """
    missing = values.missing
    null = bool(missing.any())
    group = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    # NULL comes last in its group, so that what follows it belongs to another one.
    order = np.lexsort((*values.keys, missing, group) if null else (*values.keys, group))
    new = np.zeros(len(order), dtype=np.bool_)
    new[:1] = True
    for key in (*values.keys, group):
        ordered = key[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    if null:
        new &= ~missing[order]
    firsts = order[new]
    size = len(firsts) + 2 + null
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.cumsum(new)
    places[missing] = size - 1
    numbers = np.zeros(size)
    numbers[len(firsts) + 1] = 1.0
    if len(firsts):
        numbers[1 : len(firsts) + 1] = _shares(None if values.sizes is None else values.sizes[firsts], group[firsts])
    return PartitionAxis(size, null, numbers, np.arange(size, dtype=np.int64)), places


def _shares(sizes: Floats | None, group: Integers) -> Floats:
    """Return how far each value of a group is on the way from its first to its last one: 0 to 1."""
    heads = np.flatnonzero(np.diff(group, prepend=-1))
    counts = np.diff(heads, append=len(group))
    ranks = (np.arange(len(group)) - np.repeat(heads, counts)).astype(np.float64)
    if sizes is None:
        sizes = ranks
    elif not np.isfinite(sizes).all():
        # What has no size, infinities and NaN, is taken to lie where the last finite number does.
        finite = np.isfinite(sizes)
        low = np.minimum.reduceat(np.where(finite, sizes, np.inf), heads)
        high = np.maximum.reduceat(np.where(finite, sizes, -np.inf), heads)
        none = np.repeat(low > high, counts)
        clipped = np.clip(np.where(np.isnan(sizes), np.inf, sizes), np.repeat(low, counts), np.repeat(high, counts))
        sizes = np.where(none, ranks, clipped)
    first, last = np.repeat(sizes[heads], counts), np.repeat(sizes[heads + counts - 1], counts)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        spread = last - first
        shares = (sizes - first) / spread
    # A group without extent stays at one end, so that from the first place of all to the last it is still 0 to 1.
    flat = ~(np.isfinite(spread) & (spread > 0))
    return np.where(flat, (group == group[-1]).astype(np.float64), shares)
