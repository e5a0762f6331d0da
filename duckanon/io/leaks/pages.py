"""Dictionary pages of Parquet files, decoded: a search for bytes would miss what is compressed.

A column chunk may begin with a page that lists its values, which its rows then name by number. Writers that are handed
a dictionary (a categorical column, an enumeration) write all of it, whether rows use a value or not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, BinaryIO

from duckanon.io.thrift import read_struct

_LONGEST_HEADER = 1 << 16
_LARGEST_PAGE = 1 << 28
_DICTIONARY = 2
# Blocks of LZ4 without a frame are what writers write today; those with one are refused by the codec.
_CODECS = {"LZ4": "lz4_raw"}
_WIDTHS = {"INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 12}


class UndecodableError(Exception):
    """A page in a form that is not read here; what is in it stays unknown."""


@dataclass(frozen=True)
class Page:
    """A dictionary page: its values as they are stored."""

    values: tuple[bytes, ...]


def dictionary_page(file: BinaryIO, chunk: Any) -> Page | None:
    """Return the dictionary page of a column chunk, None where it has none.

    Parameters
    ----------
    file : binary file
    chunk : pyarrow.parquet.ColumnChunkMetaData
    """
    import pyarrow as pa

    offset = chunk.data_page_offset
    if chunk.dictionary_page_offset is not None:
        # Some writers leave the offset at 0 where there is no such page, and others do not say it at all.
        offset = min(offset, chunk.dictionary_page_offset) or offset
    file.seek(offset)
    try:
        header, length = read_struct(file.read(_LONGEST_HEADER))
    except (IndexError, ValueError):
        raise UndecodableError from None
    if header.get(1) != _DICTIONARY:
        return None
    size, stored, own = header.get(2, 0), header.get(3, 0), header.get(7, {})
    if not 0 <= size <= _LARGEST_PAGE or not 0 <= stored <= _LARGEST_PAGE:
        raise UndecodableError
    file.seek(offset + length)
    raw = file.read(stored)
    if chunk.compression != "UNCOMPRESSED":
        try:
            raw = pa.decompress(raw, size, codec=_CODECS.get(chunk.compression, chunk.compression.lower())).to_pybytes()
        except (OSError, ValueError):
            raise UndecodableError from None
    return Page(tuple(_plain(raw, int(own.get(1, 0)), chunk.physical_type)))


def _plain(raw: bytes, count: int, kind: str) -> list[bytes]:
    """Return values in the plain encoding, the only one of dictionary pages."""
    found: list[bytes] = []
    if kind == "BYTE_ARRAY":
        place = 0
        for _ in range(count):
            size = int.from_bytes(raw[place : place + 4], "little")
            found.append(raw[place + 4 : place + 4 + size])
            place += 4 + size
        if place > len(raw):
            raise UndecodableError
        return found
    width = _WIDTHS.get(kind, len(raw) // count if count else 0)
    if width * count > len(raw):
        raise UndecodableError
    return [raw[i * width : (i + 1) * width] for i in range(count)]
