"""What the metadata of a Parquet file reveal: keys, paths, times, names, and columns that are not in the file."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from duckanon.io.leaks.base import Leak

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
