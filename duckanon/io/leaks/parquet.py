"""What one Parquet file reveals beyond its rows: dictionaries, statistics, and metadata.

Dictionary pages are decoded: a search for bytes would miss compressed values. A column chunk may begin with a page that
lists its values; the rows then refer to them by number. Writers that get a dictionary (a categorical column, an
enumeration) write all of it, even values that no row uses.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from duckanon.io.leaks.base import Leak

if TYPE_CHECKING:
    import pyarrow as pa

# Dictionary pages

_LONGEST_HEADER = 1 << 16
_LARGEST_PAGE = 1 << 28
_DICTIONARY = 2
# Today's writers use LZ4 blocks without a frame; the codec refuses those with one.
_CODECS = {"LZ4": "lz4_raw"}
_LIST, _SET, _STRUCT, _LONG_LIST = 9, 10, 12, 15
_WIDTHS = {"INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 12}


class UndecodableError(Exception):
    """A page in a format that cannot be read here."""


def dictionary_page(file: BinaryIO, chunk: Any) -> pa.Array | None:
    """Return the values of the dictionary page of a column chunk as they are stored, or None if it has none.

    Parameters
    ----------
    file : binary file
    chunk : pyarrow.parquet.ColumnChunkMetaData
    """
    import pyarrow as pa

    offset = chunk.data_page_offset
    if chunk.dictionary_page_offset is not None:
        # Without such a page, some writers set the offset to 0, and others leave it out.
        offset = min(offset, chunk.dictionary_page_offset) or offset
    file.seek(offset)
    try:
        header, length = read_struct(file.read(_LONGEST_HEADER))
    except (IndexError, ValueError):
        raise UndecodableError from None
    if header.get(1) != _DICTIONARY:
        return None
    size, stored, about = header.get(2, 0), header.get(3, 0), header.get(7, {})
    if not 0 <= size <= _LARGEST_PAGE or not 0 <= stored <= _LARGEST_PAGE:
        raise UndecodableError
    file.seek(offset + length)
    raw = file.read(stored)
    if chunk.compression != "UNCOMPRESSED":
        try:
            raw = pa.decompress(raw, size, codec=_CODECS.get(chunk.compression, chunk.compression.lower())).to_pybytes()
        except (OSError, ValueError):
            raise UndecodableError from None
    return _plain(raw, int(about.get(1, 0)), chunk.physical_type)


def _plain(raw: bytes, count: int, kind: str) -> pa.Array:
    """Return values in the plain encoding, the only encoding of dictionary pages."""
    import pyarrow as pa

    if kind != "BYTE_ARRAY":
        width = _WIDTHS.get(kind, len(raw) // count if count else 0)
        if width * count > len(raw):
            raise UndecodableError
        width = max(width, 1)
        return pa.Array.from_buffers(pa.binary(width), count, [None, pa.py_buffer(raw[: width * count])])
    from duckanon.kernels.packing import split_texts

    ends, texts = np.zeros(count + 1, dtype=np.int32), np.zeros(len(raw), dtype=np.uint8)
    if not split_texts(np.frombuffer(raw, dtype=np.uint8), ends, texts):
        raise UndecodableError
    return pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(ends), pa.py_buffer(texts)])


# Headers of pages are structs in Thrift's compact protocol.


def read_struct(data: bytes, place: int = 0) -> tuple[dict[int, Any], int]:
    """Return the fields of a struct by their numbers, and where it ends.

    Examples
    --------
    >>> read_struct(bytes([0x15, 0x04, 0x15, 0x2A, 0x00]))
    ({1: 2, 2: 21}, 5)
    """
    fields: dict[int, Any] = {}
    last = 0
    while True:
        last, kind, place = _field(data, place, last)
        if kind == 0:
            return fields, place
        fields[last], place = _value(data, place, kind)


def _field(data: bytes, place: int, last: int) -> tuple[int, int, int]:
    """Return the number of the next field, its kind (0: there is none), and where its value begins."""
    head = data[place]
    place += 1
    kind, step = head & 0x0F, head >> 4
    if head == 0 or step:
        return last + step, kind, place
    number, place = _signed(data, place)
    return number, kind, place


def _value(data: bytes, place: int, kind: int) -> tuple[Any, int]:
    if kind in (1, 2):
        return kind == 1, place
    if kind == 3:
        return data[place], place + 1
    if kind in (4, 5, 6):
        return _signed(data, place)
    if kind == 7:
        return data[place : place + 8], place + 8
    if kind == 8:
        size, place = _unsigned(data, place)
        return data[place : place + size], place + size
    if kind in (_LIST, _SET):
        size, of = data[place] >> 4, data[place] & 0x0F
        place += 1
        if size == _LONG_LIST:
            size, place = _unsigned(data, place)
        items = []
        for _ in range(size):
            # A boolean in a list has a byte of its own.
            item, place = (data[place] == 1, place + 1) if of in (1, 2) else _value(data, place, of)
            items.append(item)
        return items, place
    if kind == _STRUCT:
        return read_struct(data, place)
    raise ValueError(kind)


def _unsigned(data: bytes, place: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = data[place]
        place += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, place
        shift += 7


def _signed(data: bytes, place: int) -> tuple[int, int]:
    raw, place = _unsigned(data, place)
    return (raw >> 1) ^ -(raw & 1), place


# Metadata: keys, paths, times, names, and columns that are not in the file

_WRITER = re.compile(r"[\w.+-]+( version)?( v?\d[\w.+-]*)?( \(build [\w.+-]+\))?")
_PATH = re.compile(r"(?:[A-Za-z]:\\|\\\\|file:/|s3:/|/)[\w.~-]+[/\\][\w./\\~-]*")
_ADDRESS = re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d")
_SCHEMAS = {"ARROW:schema", "pandas", "org.apache.spark.sql.parquet.row.metadata"}
# Where Arrow's reader puts the field ids of the schema.
_READERS_OWN = {b"PARQUET:field_id"}
_PATTERNS = (
    ("paths", _PATH, "a path"),
    ("addresses", _ADDRESS, "an address of mail"),
    ("times", _TIME, "a time"),
)


def metadata_leaks(file: Any) -> Iterator[Leak]:
    """Find what the footer of a Parquet file reveals beyond schema, offsets and counts.

    Parameters
    ----------
    file : pyarrow.parquet.ParquetFile
    """
    footer = file.metadata
    published = list(file.schema_arrow.names)
    keyed = {_text(key): _text(value) for key, value in (footer.metadata or {}).items()}
    if footer.created_by and not _WRITER.fullmatch(footer.created_by):
        yield Leak("metadata", "The name of the writer is more than a program and its version.")
    for key, value in keyed.items():
        yield from _texts(key, value)
    others = [key for key in keyed if key not in _SCHEMAS]
    if others:
        yield Leak("metadata", "Keys of its own are in the footer.", len(others))
    if "pandas" in keyed:
        yield from _pandas(keyed["pandas"], published, footer.num_rows)
    if "ARROW:schema" in keyed:
        yield from _arrow(keyed["ARROW:schema"], published)
    if "org.apache.spark.sql.parquet.row.metadata" in keyed:
        yield from _spark(keyed["org.apache.spark.sql.parquet.row.metadata"], published)
    for field in file.schema_arrow:
        keys = set(field.metadata or {}) - _READERS_OWN
        if keys:
            yield Leak("metadata", "The schema has keys about a column.", len(keys), column=field.name)
    chunks = (footer.row_group(g).column(c) for g in range(footer.num_row_groups) for c in range(footer.num_columns))
    files = sum(1 for chunk in chunks if chunk.file_path)
    if files:
        yield Leak("metadata", "Parts name other files.", files)


def _text(value: bytes | str) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _texts(key: str, value: str) -> Iterator[Leak]:
    if key == "ARROW:schema":
        return
    for _, pattern, word in _PATTERNS:
        count = len(pattern.findall(value)) + len(pattern.findall(key))
        if count:
            yield Leak("metadata", f"A text in the footer has {word} in it.", count)


def _unpublished(names: list[str], published: list[str], where: str) -> Iterator[Leak]:
    columns = set(published)
    missing = [name for name in dict.fromkeys(names) if name not in columns]
    if missing:
        yield Leak("column_names", f"{where} names columns that are not in the file.", len(missing), len(names))


def _pandas(value: str, published: list[str], rows: int) -> Iterator[Leak]:
    try:
        note = json.loads(value)
        columns = [c for c in note.get("columns", []) if isinstance(c, Mapping)]
    except (ValueError, AttributeError):
        yield Leak("metadata", "The note of pandas cannot be read.")
        return
    yield Leak("metadata", "A note of pandas tells how the frame was made.")
    names = [str(c.get("field_name") or c.get("name")) for c in columns]
    yield from _unpublished(names, published, "The note of pandas")
    for index in note.get("index_columns", []):
        if isinstance(index, Mapping):
            start, stop, step = (index.get(k) for k in ("start", "stop", "step"))
            if (start, step) != (0, 1) or stop != rows:
                yield Leak("index", "The note of pandas tells numbers of rows that are not those of the file.")
            if index.get("name") is not None:
                yield Leak("column_names", "The note of pandas names the index.")
        elif str(index) in published:
            yield Leak("index", "The index of a frame is a column.", column=str(index))
    attributes = note.get("attributes") or {}
    if attributes:
        yield Leak("metadata", "The note of pandas has attributes of the frame.", len(attributes))
    for column in columns:
        about = column.get("metadata")
        if isinstance(about, Mapping) and about.get("num_categories") is not None:
            name = str(column.get("name"))
            yield Leak("metadata", "The note of pandas tells how many categories a column had.", column=name)


def _arrow(value: str, published: list[str]) -> Iterator[Leak]:
    import pyarrow as pa

    try:
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(value)))
    except (binascii.Error, pa.ArrowInvalid, OSError):
        yield Leak("metadata", "The schema of Arrow in the footer cannot be read.")
        return
    yield from _unpublished(list(schema.names), published, "The schema of Arrow")
    keys = [key for key in (schema.metadata or {}) if key != b"pandas"]
    if keys:
        yield Leak("metadata", "The schema of Arrow has keys of its own.", len(keys))


def _spark(value: str, published: list[str]) -> Iterator[Leak]:
    try:
        names = [str(f["name"]) for f in json.loads(value)["fields"]]
    except (ValueError, KeyError, TypeError):
        yield Leak("metadata", "The schema of Spark in the footer cannot be read.")
        return
    yield from _unpublished(names, published, "The schema of Spark")


# Values

ROWS_CHECKED = 1 << 18
"""Rows of a file whose order is checked."""
_PIECES = 64


def parquet_leaks(path: Path, parts: int | None = None) -> Iterator[Leak]:
    """Find what the footer and the dictionary pages reveal, in ``parts`` row groups, or in all by default."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        texts = [c.path for c in (file.schema.column(i) for i in range(file.metadata.num_columns)) if _is_text(c)]
    # Texts are read as codes, as the file stores them.
    with pq.ParquetFile(path, read_dictionary=texts) as file, path.open("rb") as raw:
        yield from metadata_leaks(file)
        footer = file.metadata
        count = footer.num_row_groups
        # The first and the last of them, and some in between.
        some = np.linspace(0, count - 1, min(count, parts or count)).round().astype(int)
        for group in np.unique(some).tolist():
            for place in range(footer.num_columns):
                chunk = footer.row_group(group).column(place)
                # One column of one row group at a time, to save memory.
                column = _read(file, group, chunk.path_in_schema, footer.schema.column(place))
                if column is None:
                    continue
                values = _leaf(column)
                yield from _dictionary(raw, chunk, values)
                yield from _statistics(chunk, values, column.null_count)


def _read(file: Any, group: int, path: str, column: Any) -> Any | None:
    """Return a column of a row group, or None if it is a list that Arrow cannot read.

    DuckDB writes NULL arrays of a fixed length in a way that only DuckDB reads.
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
    """Return runs of at most ``rows`` rows as (number of the first, table), and the number of rows of the file."""
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
    """Return the columns that Arrow can read, if it cannot read all of them (see ``_read``), else None."""
    schema, groups = file.metadata.schema, range(min(1, file.metadata.num_row_groups))
    lists = [leaf for leaf in map(schema.column, range(len(schema))) if leaf.max_repetition_level]
    odd = {leaf.path.split(".")[0] for leaf in lists for g in groups if _read(file, g, leaf.path, leaf) is None}
    return [name for name in file.schema_arrow.names if name not in odd] if odd else None


def _leaf(column: Any) -> Any:
    """Return the values of the innermost level as one array without NULLs; of texts, each may occur only once."""
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
        # Each value once is enough: they are not counted.
        counts = np.bincount(array.indices.drop_null().to_numpy(), minlength=len(array.dictionary))
        return array.dictionary.filter(pa.array(counts > 0))
    return array.drop_null()


def _dictionary(raw: Any, chunk: Any, values: Any) -> Iterator[Leak]:
    column = chunk.path_in_schema.split(".")[0]
    try:
        page = dictionary_page(raw, chunk)
    except UndecodableError:
        yield Leak("dictionary", "A dictionary page could not be decoded: its content is unknown.", column=column)
        return
    if page is None or values is None:
        return
    import pyarrow as pa
    import pyarrow.compute as pc

    # DuckDB writes an empty text for each value of an enumeration that no row has.
    is_text = page.type == pa.binary()
    listed = page.filter(pc.greater(pc.binary_length(page), 0)) if is_text else page
    unused = _unused(listed, values)
    if unused:
        yield Leak("dictionary", "A dictionary has values that no row has.", unused, len(listed), column)
    empty = len(page) - len(listed) - 1
    if empty > 0 or (empty == 0 and not _has_empty(values)):
        text = "A dictionary has empty places: they reveal how many values no row has."
        yield Leak("dictionary", text, empty + (not _has_empty(values)), len(page), column)


def _has_empty(values: Any) -> bool:
    import pyarrow.compute as pc

    return bool(pc.any(pc.equal(pc.binary_length(values), 0)).as_py())


def _unused(listed: pa.Array, values: Any) -> int:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind, listed = values.type, listed.unique()
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind):
        of_rows = values.unique().cast(pa.binary())
        return len(listed) - int(pc.sum(pc.is_in(listed, value_set=of_rows)).as_py() or 0)
    # The dictionary has one number for each value: if it has more than there are values, no row has some of them.
    return max(0, len(listed) - _distinct(values))


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _distinct(values: Any) -> int:
    """Return the number of distinct values, compared bit by bit."""
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
    """Compare the statistics of a row group with its rows."""
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
    """Return whether a stated minimum is below that of the rows, and not just truncated."""
    if isinstance(stated, str | bytes) and isinstance(actual, str | bytes):
        first, second = _bytes(stated), _bytes(actual)
        return first < second and not second.startswith(first)
    return bool(stated < actual)


def _above(stated: Any, actual: Any) -> bool:
    """Return whether a stated maximum is above that of the rows, and not just truncated and increased by one."""
    if isinstance(stated, str | bytes) and isinstance(actual, str | bytes):
        first, second = _bytes(stated), _bytes(actual)
        begins = bool(first) and second.startswith(first[:-1]) and len(first) <= len(second)
        return first > second and not (begins and first[-1] == second[len(first) - 1] + 1)
    return bool(stated > actual)
