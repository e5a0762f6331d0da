"""What one Parquet file tells beyond its rows: dictionaries, statistics, metadata."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from duckanon.io.leaks.base import Leak
from duckanon.io.leaks.metadata import metadata_leaks
from duckanon.io.leaks.pages import UndecodableError, dictionary_page

ROWS_CHECKED = 1 << 18
"""Rows of a file whose order is looked at."""
_PIECES = 64


def parquet_leaks(path: Path, parts: int | None = None) -> Iterator[Leak]:
    """Find what the footer and the dictionary pages tell; ``parts`` row groups are looked at, all by default."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        texts = [c.path for c in (file.schema.column(i) for i in range(file.metadata.num_columns)) if _is_text(c)]
    # Texts are read as the codes that the file has.
    with pq.ParquetFile(path, read_dictionary=texts) as file, path.open("rb") as raw:
        yield from metadata_leaks(file)
        footer = file.metadata
        count = footer.num_row_groups
        # The first and the last of them, and some between.
        some = np.linspace(0, count - 1, min(count, parts or count)).round().astype(int)
        for group in np.unique(some).tolist():
            for place in range(footer.num_columns):
                chunk = footer.row_group(group).column(place)
                # One column of one part at a time: that is what is in memory.
                column = _read(file, group, chunk.path_in_schema, footer.schema.column(place))
                if column is None:
                    continue
                values = _leaf(column)
                yield from _dictionary(raw, chunk, values)
                yield from _statistics(chunk, values, column.null_count)


def _read(file: Any, group: int, path: str, column: Any) -> Any | None:
    """Return a column of a row group; None where it is a list that Arrow cannot read.

    DuckDB writes arrays of a fixed length that are NULL in a way that only DuckDB reads.
    """
    import pyarrow as pa

    try:
        return file.read_row_group(group, columns=[path]).column(0)
    except pa.ArrowInvalid:
        if not column.max_repetition_level:
            raise
    return None


def _is_text(column: Any) -> bool:
    return bool(column.physical_type == "BYTE_ARRAY" and column.max_repetition_level == 0)


def parquet_pieces(path: Path, rows: int = ROWS_CHECKED) -> tuple[list[tuple[int, Any]], int]:
    """Return runs of rows of a file as (number of the first, table), ``rows`` at most, and how many rows it has."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        footer = file.metadata
        columns = _readable(file)
        sizes = [footer.row_group(g).num_rows for g in range(footer.num_row_groups)]
        first = np.concatenate([[0], np.cumsum(sizes)]).astype(int)
        if footer.num_rows <= rows:
            return [(0, file.read(columns=columns))], footer.num_rows
        chosen = np.unique(np.linspace(0, len(sizes) - 1, min(len(sizes), _PIECES)).round().astype(int))
        most = max(1, rows // len(chosen))
        pieces = []
        for group in chosen:
            batch = next(file.iter_batches(batch_size=most, row_groups=[int(group)], columns=columns))
            pieces.append((int(first[group]), pa.Table.from_batches([batch])))
        return pieces, footer.num_rows


def _readable(file: Any) -> list[str] | None:
    """Return the columns that Arrow can read where it cannot read all of them (see ``_read``), else None."""
    schema, groups = file.metadata.schema, range(min(1, file.metadata.num_row_groups))
    lists = [leaf for leaf in map(schema.column, range(len(schema))) if leaf.max_repetition_level]
    odd = {leaf.path.split(".")[0] for leaf in lists for g in groups if _read(file, g, leaf.path, leaf) is None}
    return [name for name in file.schema_arrow.names if name not in odd] if odd else None


def _leaf(column: Any) -> Any:
    """Return the values of the innermost level as one array without missing ones; texts may come once each."""
    import pyarrow as pa

    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    while pa.types.is_nested(array.type):
        if pa.types.is_struct(array.type) or pa.types.is_map(array.type):
            return None
        array = array.flatten()
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        # Every value once is enough: nobody counts them here.
        counts = np.bincount(array.indices.drop_null().to_numpy(), minlength=len(array.dictionary))
        return array.dictionary.filter(pa.array(counts > 0))
    return array.drop_null()


def _dictionary(raw: Any, chunk: Any, values: Any) -> Iterator[Leak]:
    column = chunk.path_in_schema.split(".")[0]
    try:
        page = dictionary_page(raw, chunk)
    except UndecodableError:
        yield Leak("dictionary", "A dictionary page could not be decoded: what is in it is not known.", column=column)
        return
    if page is None or values is None:
        return
    # DuckDB writes an empty text in place of each value of an enumeration that no row has.
    listed = set(page.values) - {b""}
    unused = _unused(listed, values)
    if unused:
        yield Leak("dictionary", "A dictionary has values that no row has.", unused, len(listed), column)
    empty = page.values.count(b"") - 1
    if empty > 0 or (empty == 0 and not _has_empty(values)):
        text = "A dictionary has empty places: they tell how many values no row has."
        yield Leak("dictionary", text, empty + (not _has_empty(values)), len(page.values), column)


def _has_empty(values: Any) -> bool:
    import pyarrow.compute as pc

    return bool(pc.any(pc.equal(pc.binary_length(values), 0)).as_py())


def _unused(listed: set[bytes], values: Any) -> int:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind):
        of_rows = values.unique().cast(pa.large_binary())
        used = pc.is_in(pa.array(list(listed), pa.large_binary()), value_set=of_rows)
        return len(listed) - int(pc.sum(used).as_py() or 0)
    # What is stored is one number for each value. If there are more of them than values, some are no row's.
    return max(0, len(listed) - _distinct(values))


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _distinct(values: Any) -> int:
    """Return how many values differ bit by bit."""
    import pyarrow as pa

    if not pa.types.is_primitive(values.type) or pa.types.is_boolean(values.type):
        return len(values.unique())
    width = values.type.bit_width // 8
    data = np.frombuffer(values.buffers()[1], dtype=np.uint8)
    cells = data[values.offset * width : (values.offset + len(values)) * width]
    if width > 8:
        return len(np.unique(cells.reshape(-1, width), axis=0))
    return len(pa.array(cells.view(f"u{width}")).unique())


def _statistics(chunk: Any, values: Any, missing: int) -> Iterator[Leak]:
    """Compare the statistics of a part with its rows."""
    import pyarrow.compute as pc

    stats = chunk.statistics
    if stats is None or values is None:
        return
    column = chunk.path_in_schema.split(".")[0]
    wrong = 0
    if stats.has_min_max and len(values):
        try:
            ends = pc.min_max(values).as_py()
            wrong += _below(stats.min, ends["min"]) + _above(stats.max, ends["max"])
        except (TypeError, NotImplementedError, ValueError, OverflowError):
            pass
    elif stats.has_min_max:
        wrong += 1
    if wrong:
        yield Leak("statistics", "The smallest or largest value in the footer is no row's.", wrong, 2, column)
    counted = stats.has_null_count and stats.null_count is not None and "." not in chunk.path_in_schema
    if counted and stats.null_count != missing:
        yield Leak("statistics", "The footer counts other missing values than the rows have.", column=column)


def _below(stated: Any, actual: Any) -> bool:
    """Say whether a smallest value is below that of the rows, and not just its beginning."""
    if isinstance(stated, str | bytes) and isinstance(actual, str | bytes):
        first, second = _bytes(stated), _bytes(actual)
        return first < second and not second.startswith(first)
    return bool(stated < actual)


def _above(stated: Any, actual: Any) -> bool:
    """Say whether a largest value is above that of the rows, and not just its beginning, counted up by one."""
    if isinstance(stated, str | bytes) and isinstance(actual, str | bytes):
        first, second = _bytes(stated), _bytes(actual)
        begins = bool(first) and second.startswith(first[:-1]) and len(first) <= len(second)
        return first > second and not (begins and first[-1] == second[len(first) - 1] + 1)
    return bool(stated > actual)
