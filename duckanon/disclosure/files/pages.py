"""Dictionary pages of Parquet files, decoded: a search for bytes would miss what is compressed.

A column chunk may begin with a page that lists its values, which its rows then name by number. Writers that are handed
a dictionary (a categorical column, an enumeration) write all of it, whether rows use a value or not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, BinaryIO

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


# Thrift's compact protocol, as much of it as headers of pages need.


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
        head = data[place]
        place += 1
        if head == 0:
            return fields, place
        kind, step = head & 0x0F, head >> 4
        if step:
            last += step
        else:
            last, place = _signed(data, place)
        fields[last], place = _value(data, place, kind)


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
    if kind in (9, 10):
        head = data[place]
        place += 1
        size, of = head >> 4, head & 0x0F
        if size == 15:
            size, place = _unsigned(data, place)
        items = []
        for _ in range(size):
            # A boolean in a list has a byte of its own.
            item, place = (data[place] == 1, place + 1) if of in (1, 2) else _value(data, place, of)
            items.append(item)
        return items, place
    if kind == 12:
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
