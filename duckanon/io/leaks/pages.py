"""Dictionary pages of Parquet files, decoded: a search for bytes would miss compressed values.

A column chunk may begin with a page that lists its values; the rows then refer to them by number. Writers that get a
dictionary (a categorical column, an enumeration) write all of it, even values that no row uses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, BinaryIO

_LONGEST_HEADER = 1 << 16
_LARGEST_PAGE = 1 << 28
_DICTIONARY = 2
# Today's writers use LZ4 blocks without a frame; the codec refuses those with one.
_CODECS = {"LZ4": "lz4_raw"}
_LIST, _SET, _STRUCT, _LONG_LIST = 9, 10, 12, 15
_WIDTHS = {"INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 12}


class UndecodableError(Exception):
    """A page in a format that cannot be read here."""


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
    return Page(tuple(_plain(raw, int(about.get(1, 0)), chunk.physical_type)))


def _plain(raw: bytes, count: int, kind: str) -> list[bytes]:
    """Return values in the plain encoding, the only one of dictionary pages."""
    values: list[bytes] = []
    if kind == "BYTE_ARRAY":
        place = 0
        for _ in range(count):
            size = int.from_bytes(raw[place : place + 4], "little")
            values.append(raw[place + 4 : place + 4 + size])
            place += 4 + size
        if place > len(raw):
            raise UndecodableError
        return values
    width = _WIDTHS.get(kind, len(raw) // count if count else 0)
    if width * count > len(raw):
        raise UndecodableError
    return [raw[i * width : (i + 1) * width] for i in range(count)]


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
