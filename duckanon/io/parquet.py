"""A Parquet file whose row groups are encoded apart, by several threads, and then put one behind the other.

A writer of Parquet encodes with one thread. Here each row group becomes a file of its own in memory; its pages are
copied as they are, and the footer, which says where they lie, is put together from the footers of all.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duckanon.errors import EngineError
from duckanon.io.thrift import Change, find, list_head, list_of, rewrite

if TYPE_CHECKING:
    import pyarrow as pa

_MAGIC = b"PAR1"
# Fields of Parquet's footer (parquet.thrift).
_SCHEMA, _ROWS, _GROUPS = 2, 3, 4
_COLUMNS, _GROUP_OFFSET, _ORDINAL = 1, 5, 7
_CHUNK_OFFSET, _CHUNK = 2, 3
_DATA, _INDEX, _DICTIONARY = 9, 10, 11


def encode(table: pa.Table, options: Mapping[str, Any]) -> pa.Buffer:
    """Return a table as a Parquet file of one row group."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema, **options) as writer:
        writer.write_table(table, row_group_size=max(1, table.num_rows))
    return sink.getvalue()


class RowGroups:
    """A file that is made of encoded row groups, in the order in which they are added."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._file.write(_MAGIC)
        self._first: bytes | None = None
        self._groups: list[bytes] = []
        self._rows = 0

    def add(self, encoded: pa.Buffer, rows: int) -> None:
        """Put a row group behind the others."""
        size = int.from_bytes(bytes(encoded[-8:-4]), "little")
        footer = bytes(encoded[-8 - size : -8])
        # Pages lie behind the first mark; nothing but the footer says where.
        shift = self._file.tell() - len(_MAGIC)
        self._file.write(memoryview(encoded)[len(_MAGIC) : -8 - size])
        if self._first is None:
            self._first = footer
        elif _part(footer, _SCHEMA) != _part(self._first, _SCHEMA):
            raise EngineError("Row groups of a release have different columns.")
        self._groups.append(_moved(footer, shift, len(self._groups)))
        self._rows += rows

    def close(self) -> None:
        """Write the footer; without a row group, there is none."""
        with self._file as file:
            if self._first is None:
                return
            footer, _ = rewrite(self._first, 0, {_ROWS: lambda _: self._rows, _GROUPS: list_of(self._groups)})
            file.write(footer + len(footer).to_bytes(4, "little") + _MAGIC)


def _moved(footer: bytes, shift: int, ordinal: int) -> bytes:
    """Return the row group of a footer as it is when its pages lie farther behind."""

    def move(offset: int) -> int:
        # Where there is no such page, some writers say 0.
        return offset + shift if offset else 0

    chunk: dict[int, Change] = {_CHUNK_OFFSET: move, _CHUNK: {_DATA: move, _INDEX: move, _DICTIONARY: move}}
    changes: dict[int, Change] = {_COLUMNS: chunk, _GROUP_OFFSET: move, _ORDINAL: lambda _: ordinal}
    group, _ = rewrite(footer, list_head(footer, find(footer, _GROUPS))[2], changes)
    return group


def _part(footer: bytes, field: int) -> bytes:
    """Return the bytes from one field of a footer to the next."""
    return footer[find(footer, field) : find(footer, field + 1)]


__all__ = ["RowGroups", "encode"]
