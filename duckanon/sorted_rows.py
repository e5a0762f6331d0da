"""Rows in the order of a keyed hash, some at a time: sorted as arrays where they fit, else by the database."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.errors import EngineError
from duckanon.sqlgen.relations import named

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.engine.base import Engine

_KEY = "duckanon key"
_BATCH = 250_000
_COPIES = 4
"""What was fetched, the same in one piece, room to sort in, and what is on its way to the file."""


@dataclass(frozen=True)
class SortedRows:
    """The rows of a query that is ordered by one number of 64 bits, or whose order is settled already."""

    engine: Engine
    rows: exp.Select
    params: Mapping[str, Any] | None = None

    def groups(self, size: int) -> Iterator[pa.Table]:
        """Return the rows, ``size`` at a time, at least one group. Texts may come as codes of a dictionary."""
        import pyarrow as pa

        fetched = self._fetched()
        if fetched is None:
            yield from self._from_database(size)
            return
        order = _order(fetched.column(_KEY))
        rows = fetched.drop_columns([_KEY])
        for start in range(0, max(1, len(order)), size):
            yield rows.take(pa.array(order[start : start + size]))

    def _fetched(self) -> pa.Table | None:
        """Return the rows with the number that they are ordered by; None where they are too many or have none."""
        import pyarrow as pa

        order, limit = self.rows.args.get("order"), self.engine.array_limit()
        if order is None:
            return None
        (key,) = order.expressions
        query = self.rows.select(named((key.this if isinstance(key, exp.Ordered) else key).copy(), _KEY))
        query.set("order", None)
        reader = self.engine.reader(query, self.params, batch=_BATCH, private=True)
        held, size = [], 0
        while (batch := _next(reader)) is not None:
            # Texts become codes, so that each is kept once for a batch.
            columns = [c.dictionary_encode() if pa.types.is_string(c.type) else c for c in batch.columns]
            held.append(pa.table(columns, names=batch.schema.names))
            size += held[-1].nbytes
            if limit is not None and size * _COPIES > limit:
                reader.close()
                return None
        if not held:
            return reader.schema.empty_table()
        return pa.concat_tables(held).unify_dictionaries().combine_chunks()

    def _from_database(self, size: int) -> Iterator[pa.Table]:
        """Let the database sort, and take so many rows at a time, whatever comes from it at once."""
        import pyarrow as pa

        reader = self.engine.reader(self.rows, self.params, batch=size, private=True)
        held: list[Any] = []
        count = 0
        while (batch := _next(reader)) is not None:
            while count + batch.num_rows >= size:
                room = size - count
                yield pa.Table.from_batches([*held, batch.slice(0, room)]).combine_chunks()
                held, count, batch = [], 0, batch.slice(room)
            if batch.num_rows:
                held.append(batch)
                count += batch.num_rows
        if held or not count:
            yield pa.Table.from_batches(held, reader.schema).combine_chunks()


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


def _order(hashes: pa.ChunkedArray) -> Any:
    """Return the numbers of rows in the order of their hashes."""
    import numpy as np

    from duckanon.kernels.ordering import order_of

    own = np.ascontiguousarray(hashes.to_numpy())
    rows = np.empty(len(own), dtype=np.int32)
    order_of(own, np.empty_like(own), rows)
    return rows


__all__ = ["SortedRows"]
