"""Rows in the order of a keyed hash, some at a time: sorted as arrays where they fit, else by the database."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.engine.limits import workers
from duckanon.engine.sql.relations import named
from duckanon.errors import EngineError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from duckanon.engine.base import Engine

_KEY = "duckanon key"
_COPIES = 4
"""The rows, texts before they are codes, room to sort in, and what is on its way to the file."""
_BATCH = 200_000
"""Rows that are fetched at a time."""
_PILE, _MOST_PILES = 2**16, 7
"""Rows of a pile, about, and the most piles, as a power of two: beyond that, it takes no less time."""


class Room:
    """Arrays that nobody needs any more, handed out again: to touch memory for the first time takes long."""

    def __init__(self, arrays: Sequence[NDArray[Any]] = ()) -> None:
        self.free = [array.reshape(-1).view("u1") for array in arrays]

    def array(self, count: int, dtype: Any) -> NDArray[Any]:
        """Return an array of so many numbers, with anything in it."""
        import numpy as np

        size = count * np.dtype(dtype).itemsize
        for i, block in enumerate(self.free):
            if len(block) >= size:
                # What comes next begins at a line of the cache.
                self.free[i] = block[-(-size // 64) * 64 :]
                return block[:size].view(dtype)
        return np.empty(count, dtype=dtype)


@dataclass(frozen=True)
class SortedRows:
    """The rows of a query that is ordered by one number of 64 bits, or whose order is settled already.

    ``expected`` is how many rows there are at most, ``texts`` asks for the bytes of texts that they have at most.
    """

    engine: Engine
    rows: exp.Select
    params: Mapping[str, Any] | None
    expected: int
    texts: exp.Select | None = None
    room: Room = field(default_factory=lambda: Room())

    def groups(self, size: int) -> Iterator[Callable[[], pa.Table]]:
        """Return what gives the rows, ``size`` at a time, at least one group. Texts may be codes of a dictionary."""
        import pyarrow as pa

        order = self.rows.args.get("order")
        if order is None:
            yield from self._from_database(size)
            return
        (key,) = order.expressions
        query = self.rows.copy()
        query.set("order", None)
        if not self._fits(query):
            yield from self._from_database(size)
            return
        hidden = key.this if isinstance(key, exp.Ordered) else key
        keyed = query.select(named(hidden.copy(), _KEY))
        # Nothing else is asked of the database while its rows come.
        threads = self.engine.threads()
        reader = self.engine.reader(keyed, self.params, batch=_BATCH, private=True)
        fetched, bounds = _gathered(reader, self.expected, threads, self.room)
        numbers = _order(fetched.column(_KEY), bounds, threads, self.room)
        rows = fetched.drop_columns([_KEY])
        for start in range(0, max(1, len(numbers)), size):
            yield partial(rows.take, pa.array(numbers[start : start + size]))

    def _fits(self, query: exp.Select) -> bool:
        """Say whether arrays have room for the rows."""
        limit = self.engine.array_limit()
        if limit is None:
            return True
        size = self.expected * 8 * (len(query.expressions) + 2)
        if self.texts is not None and size * _COPIES <= limit:
            size += sum(int(n or 0) for n in self.engine.row(self.texts))
        return size * _COPIES <= limit

    def _from_database(self, size: int) -> Iterator[Callable[[], pa.Table]]:
        """Let the database sort, and take so many rows at a time, whatever comes from it at once."""
        import pyarrow as pa

        reader = self.engine.reader(self.rows, self.params, batch=size, private=True)
        held: list[Any] = []
        count = 0
        while (batch := _next(reader)) is not None:
            while count + batch.num_rows >= size:
                room = size - count
                yield pa.Table.from_batches([*held, batch.slice(0, room)]).combine_chunks
                held, count, batch = [], 0, batch.slice(room)
            if batch.num_rows:
                held.append(batch)
                count += batch.num_rows
        if held or not count:
            yield pa.Table.from_batches(held, reader.schema).combine_chunks


def _next(reader: pa.RecordBatchReader) -> pa.RecordBatch | None:
    import pyarrow as pa

    failed = False
    try:
        return next(reader, None)
    except pa.ArrowException:
        failed = True
    if failed:
        # Raised here, so that the original, which may quote data, is not left as its context.
        raise EngineError("DuckDB could not sort the rows (its message is withheld: it may quote data).")
    return None


def _gathered(
    reader: pa.RecordBatchReader, expected: int, threads: int, room: Room
) -> tuple[pa.Table, NDArray[np.int64]]:
    """Return all rows in one piece, with codes in place of texts; what was fetched is let go batch by batch.

    The rows of a batch are dealt by the first bits of their hashes, so that rows which lie near each other in the end
    are taken from few places. The second result says where the piles of each batch begin and end.
    """
    import numpy as np
    import pyarrow as pa

    from duckanon.kernels.ordering import deal

    columns = [_kept_as(f.type)(f.type, expected, room) for f in reader.schema]
    piles = _piles(expected)
    bounds: list[NDArray[np.int64]] = []
    waiting: deque[Future[None]] = deque()
    count = 0

    def put(at: int, batch: pa.RecordBatch, own: NDArray[np.int64]) -> None:
        numbers = np.empty(batch.num_rows, dtype=np.intp)
        deal(batch.column(_KEY).to_numpy(), numbers, own)
        own += at
        for column, values in zip(columns, batch.columns, strict=True):
            column.put(at, values, numbers)

    # While the database makes one batch, others are put where they belong.
    with workers(threads) as pool:
        while (batch := _next(reader)) is not None:
            if not batch.num_rows:
                continue
            if count + batch.num_rows > expected:
                raise EngineError("DuckDB returned more rows than it had counted.")
            bounds.append(np.zeros(piles + 1, dtype=np.int64))
            waiting.append(pool.submit(put, count, batch, bounds[-1]))
            count += batch.num_rows
            while len(waiting) > threads:
                waiting.popleft().result()
        for one in waiting:
            one.result()
    rows = pa.table([c.array(count) for c in columns], names=reader.schema.names)
    return rows, np.stack(bounds) if bounds else np.zeros((0, piles + 1), dtype=np.int64)


def _piles(rows: int) -> int:
    """Return how many piles rows are dealt into, a power of two: one of them fits into a cache."""
    return 1 << min(_MOST_PILES, (rows // _PILE).bit_length())


def _is_fixed(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_primitive(kind) and kind.bit_width % 8 == 0) or bool(pa.types.is_decimal128(kind))


def _kept_as(kind: pa.DataType) -> type[_Fixed] | type[_Chunks]:
    import pyarrow as pa

    return _Codes if pa.types.is_dictionary(kind) else _Fixed if _is_fixed(kind) else _Chunks


class _Fixed:
    """A column of values that take the same number of bytes each: there is room for all of them beforehand."""

    def __init__(self, kind: pa.DataType, expected: int, room: Room) -> None:
        self.kind, self.width = kind, kind.bit_width // 8
        self.moved = f"u{self.width}" if self.width <= 8 else f"V{self.width}"
        self.bytes = room.array(expected * self.width, "u1")
        self.missing: Any = None
        self.lock = Lock()

    def put(self, at: int, values: pa.Array, numbers: NDArray[np.intp]) -> None:
        """Put the values of a batch in the order of these numbers."""
        import numpy as np

        some = np.frombuffer(values.buffers()[1], dtype=self.moved, count=values.offset + len(values))[values.offset :]
        end = at + len(values)
        # With "clip" nothing is put aside on the way; the numbers are right.
        np.take(some, numbers, out=self.bytes.view(self.moved)[at:end], mode="clip")
        if values.null_count:
            with self.lock:
                if self.missing is None:
                    self.missing = np.zeros(len(self.bytes) // self.width, dtype=np.bool_)
            self.missing[at:end] = values.is_null().to_numpy(zero_copy_only=False)[numbers]

    def array(self, count: int) -> pa.Array:
        import pyarrow as pa

        valid = None if self.missing is None else pa.array(~self.missing[:count]).buffers()[1]
        return pa.Array.from_buffers(self.kind, count, [valid, pa.py_buffer(self.bytes)])


class _Codes(_Fixed):
    """An enumeration: every batch has all of its texts."""

    def __init__(self, kind: pa.DataType, expected: int, room: Room) -> None:
        super().__init__(kind.index_type, expected, room)
        self.texts: pa.Array | None = None

    def put(self, at: int, values: pa.Array, numbers: NDArray[np.intp]) -> None:
        super().put(at, values.indices, numbers)
        self.texts = values.dictionary

    def array(self, count: int) -> pa.Array:
        import pyarrow as pa

        texts = pa.array([], pa.string()) if self.texts is None else self.texts
        return pa.DictionaryArray.from_arrays(super().array(count), texts)


class _Chunks:
    """A column of other values, of texts as codes."""

    def __init__(self, kind: pa.DataType, expected: int, room: Room) -> None:
        self.kind = kind
        self.chunks: dict[int, pa.Array] = {}

    def put(self, at: int, values: pa.Array, numbers: NDArray[np.intp]) -> None:
        import pyarrow as pa

        coded = values.dictionary_encode() if pa.types.is_string(values.type) else values
        self.chunks[at] = coded.take(pa.array(numbers))

    def array(self, count: int) -> pa.Array:
        import pyarrow as pa

        chunks = [self.chunks[at] for at in sorted(self.chunks)]
        return pa.chunked_array(chunks, chunks[0].type if chunks else self.kind).unify_dictionaries().combine_chunks()


def _order(hashes: pa.ChunkedArray, bounds: NDArray[np.int64], threads: int, room: Room) -> NDArray[np.int32]:
    """Return the numbers of rows in the order of their hashes."""
    import numpy as np

    from duckanon.kernels.ordering import order_of

    own = np.ascontiguousarray(hashes.to_numpy())
    rows = room.array(len(own), np.int32)
    with workers(threads) as pool:
        list(pool.map(lambda part: order_of(own, bounds, rows, part, threads), range(threads)))
    return rows


__all__ = ["Room", "SortedRows"]
