"""Write many rows whose quasi-identifiers depend only on their class: the sort moves only the number of the class.

The database sorts the rows and returns them as a stream. For each row group, the published values of the classes are
looked up and written as codes, with a dictionary of only those texts that the row group has. Nothing is joined to the
sorted rows, because a join does not preserve order.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.engine.process import give_back, workers
from duckanon.engine.sql.relations import Column, col, table
from duckanon.errors import EngineError

if TYPE_CHECKING:
    from concurrent.futures import Future
    from pathlib import Path

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from duckanon.engine.base import Engine

MANY_ROWS = 500_000
"""Fewer rows are sorted with all their columns, which takes fewer steps."""
_ROW_GROUP = 491_520
"""More rows than usual, because each row group has a dictionary of its own."""
_SMALL_GROUP, _AMPLE = 122_880, 2**29
"""Rows of a row group if arrays may have less than so many bytes."""
# Types that mean the same to the database, Arrow and Parquet, so that it does not matter who writes them.
_PLAIN = re.compile(
    r"BOOLEAN|U?TINYINT|U?SMALLINT|U?INTEGER|U?BIGINT|FLOAT|DOUBLE|VARCHAR|DATE|TIMESTAMP|DECIMAL\(\d+,\d+\)"
)


def can_look_up(published: Sequence[Column], passed: Sequence[Column]) -> bool:
    """Return whether ``write_shuffled`` can write columns of these types: those of classes, and those of rows."""
    kinds = [c.type for c in published if not c.type.startswith("ENUM")] + [c.type for c in passed]
    return all(_PLAIN.fullmatch(kind) for kind in kinds)


def write_shuffled(
    engine: Engine,
    published: tuple[str, Sequence[str]],
    rows: exp.Select,
    params: Mapping[str, Any],
    columns: Sequence[tuple[str, str]],
    path: Path,
) -> None:
    """Write rows to a Parquet file in the order of their query.

    Parameters
    ----------
    engine : Engine
    published : tuple of str and sequence of str
        The table ``(class_id, q_0, ...)`` of the published values of classes, and which of its columns are written.
    rows : Select
        The rows in their order, ``(class_id, p_0, ...)``.
    params : mapping
        The parameters of ``rows``.
    columns : sequence of (str, str)
        The columns of the file: published name, and name in ``published`` or ``rows``.
    path : Path
    """
    import pyarrow.parquet as pq

    size, limit = _ROW_GROUP, engine.array_limit()
    if limit is not None and limit < _AMPLE:
        size = min(size, _SMALL_GROUP)
        give_back()
    classes = _Classes(engine, *published)
    done = 0
    # While one row group is encoded, the next one is fetched and looked up.
    with workers(1) as pool:
        waiting: deque[Future[pa.Table]] = deque()
        writer: pq.ParquetWriter | None = None
        try:
            for group in _groups(engine, rows, params, size):
                waiting.append(pool.submit(classes.looked_up, group, columns))
                if len(waiting) > 1:
                    writer = _append(writer, waiting.popleft().result(), path)
                    done += size
                    engine.progress.advance(done)
            while waiting:
                writer = _append(writer, waiting.popleft().result(), path)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            if writer is not None:
                writer.close()


def _append(writer: Any, rows: pa.Table, path: Path) -> Any:
    import pyarrow.parquet as pq

    if writer is None:
        writer = pq.ParquetWriter(path, rows.schema, **_options(rows.schema))
    writer.write_table(rows, row_group_size=max(1, rows.num_rows))
    return writer


def _groups(engine: Engine, rows: exp.Select, params: Mapping[str, Any], size: int) -> Iterator[pa.Table]:
    """Yield the rows, ``size`` at a time; at least one group, which may be empty."""
    import pyarrow as pa

    reader = engine.reader(rows, params, batch=size, private=True)
    held: list[pa.RecordBatch] = []
    count = 0
    while (batch := _next(reader)) is not None:
        while count + batch.num_rows >= size:
            lacking = size - count
            yield pa.Table.from_batches([*held, batch.slice(0, lacking)])
            held, count, batch = [], 0, batch.slice(lacking)
        if batch.num_rows:
            held.append(batch)
            count += batch.num_rows
    if held or not count:
        yield pa.Table.from_batches(held, reader.schema)


def _next(reader: pa.RecordBatchReader) -> pa.RecordBatch | None:
    import pyarrow as pa

    failed = False
    try:
        return next(reader, None)
    except pa.ArrowException:
        failed = True
    if failed:
        # Raised here, so that the original, which may quote data, is not left as its context.
        raise EngineError("The database could not sort the rows (its message is withheld: it may quote data).")
    return None


class _Classes:
    """The published values of classes."""

    def __init__(self, engine: Engine, published: str, names: Sequence[str]) -> None:
        import numpy as np
        import pyarrow as pa

        query = exp.select(col("class_id"), *(col(n) for n in names)).from_(table(published))
        classes = engine.arrow(query)
        ids = classes.column("class_id").to_numpy()
        # The row of each class in ``columns``.
        self.place = np.zeros(int(ids.max(initial=0)) + 1, dtype=np.int64)
        self.place[ids] = np.arange(len(ids))
        self.columns: dict[str, pa.Array] = {}
        for name in names:
            column = classes.column(name).combine_chunks()
            self.columns[name] = column.dictionary_encode() if pa.types.is_string(column.type) else column

    def looked_up(self, rows: pa.Table, columns: Sequence[tuple[str, str]]) -> pa.Table:
        """Return rows as they are published."""
        import pyarrow as pa

        places: NDArray[np.int64] = self.place[rows.column("class_id").to_numpy()]
        chosen = []
        for _, inner in columns:
            if inner in self.columns:
                chosen.append(_used(self.columns[inner].take(pa.array(places))))
            else:
                chosen.append(_used(rows.column(inner).combine_chunks()))
        return pa.table(chosen, names=[name for name, _ in columns])


def _used(column: pa.Array) -> pa.Array:
    """Return a column whose dictionary has only the texts of its rows: a file would list the others, too."""
    import numpy as np
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if not pa.types.is_dictionary(column.type):
        return column
    codes = column.indices.fill_null(0).to_numpy()
    present = codes[column.is_valid().to_numpy(zero_copy_only=False)] if column.null_count else codes
    used = np.zeros(len(column.dictionary), dtype=np.bool_)
    used[present] = True
    ranks = (np.cumsum(used) - 1).astype(np.int32)[codes] if len(used) else codes.astype(np.int32)
    mask = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    texts = column.dictionary.filter(pa.array(used)).cast(pa.string())
    # The ranks are valid and need not be checked again.
    return pa.DictionaryArray.from_arrays(pa.array(ranks, mask=mask), texts, safe=False)


def _options(schema: pa.Schema) -> dict[str, Any]:
    """Return how columns are written: no bounds of texts, and no dictionaries of floats, which hardly ever repeat."""
    import pyarrow as pa

    floats = [pa.types.is_floating(f.type) for f in schema]
    coded = [pa.types.is_dictionary(f.type) or pa.types.is_string(f.type) for f in schema]
    return {
        "compression": "snappy",
        "store_schema": False,
        "use_dictionary": [f.name for f, no in zip(schema, floats, strict=True) if not no],
        "write_statistics": [f.name for f, no in zip(schema, coded, strict=True) if not no],
        # A dictionary is written however long its texts are together.
        "dictionary_pagesize_limit": 2**30,
    }


__all__ = ["MANY_ROWS", "can_look_up", "write_shuffled"]
