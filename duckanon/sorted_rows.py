"""Rows in the order of a keyed hash, some at a time: sorted as arrays where they fit, else by the database."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.errors import EngineError
from duckanon.sqlgen.relations import call, col, named, subquery

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.engine.base import Engine

_KEY = "duckanon key"
_COPIES = 4
"""What was fetched, the same in one piece, room to sort in, and what is on its way to the file."""


@dataclass(frozen=True)
class SortedRows:
    """The rows of a query that is ordered by one number of 64 bits, or whose order is settled already.

    ``expected`` is how many rows there are.
    """

    engine: Engine
    rows: exp.Select
    params: Mapping[str, Any] | None
    expected: int

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
        fetched = _coded(
            self.engine.arrow(query.select(named(hidden.copy(), _KEY)), self.params), self.engine.threads()
        )
        numbers = _order(fetched.column(_KEY))
        rows = fetched.drop_columns([_KEY])
        for start in range(0, max(1, len(numbers)), size):
            yield partial(rows.take, pa.array(numbers[start : start + size]))

    def _fits(self, query: exp.Select) -> bool:
        """Say whether arrays have room for the rows."""
        limit = self.engine.array_limit()
        if limit is None:
            return True
        columns = self.engine.columns(query)
        size = self.expected * 8 * (len(columns) + 2)
        texts = [call("sum", call("strlen", col(c.name))) for c in columns if c.type == "VARCHAR"]
        if texts and size * _COPIES <= limit:
            size += sum(int(n or 0) for n in self.engine.row(exp.select(*texts).from_(subquery(query.copy(), "t"))))
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


def _coded(rows: pa.Table, threads: int) -> pa.Table:
    """Return rows in one piece, with codes in place of texts."""
    import pyarrow as pa

    def encoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
        with ThreadPoolExecutor(threads) as pool:
            chunks = list(pool.map(pa.Array.dictionary_encode, column.chunks))
        return pa.chunked_array(chunks, pa.dictionary(pa.int32(), pa.string()))

    columns = [encoded(c) if pa.types.is_string(c.type) else c for c in rows.columns]
    return pa.table(columns, names=rows.column_names).unify_dictionaries().combine_chunks()


def _order(hashes: pa.ChunkedArray) -> Any:
    """Return the numbers of rows in the order of their hashes."""
    import numpy as np

    from duckanon.kernels.ordering import order_of

    own = np.ascontiguousarray(hashes.to_numpy())
    rows = np.empty(len(own), dtype=np.int32)
    order_of(own, np.empty_like(own), rows)
    return rows


__all__ = ["SortedRows"]
