"""Thrift's compact protocol, as much of it as Parquet's headers and footers need: structs are read, and rewritten."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

Change: TypeAlias = "Callable[[int], int] | bytes | Mapping[int, Change]"
"""What becomes of a field: another number, other bytes, or a struct, or list of structs, with changes of its own."""
LIST, SET, STRUCT = 9, 10, 12
_LONG_LIST = 15


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


def rewrite(data: bytes, place: int, changes: Mapping[int, Change]) -> tuple[bytes, int]:
    """Return a struct with some of its fields changed, all others as they are, and where it ended before.

    Examples
    --------
    >>> rewrite(bytes([0x15, 0x04, 0x15, 0x2A, 0x00]), 0, {2: lambda n: n + 100})[0].hex(" ")
    '15 04 15 f2 01 00'
    """
    out = bytearray()
    last = 0
    while True:
        start = place
        last, kind, place = _field(data, place, last)
        out += data[start:place]
        if kind == 0:
            return bytes(out), place
        change = changes.get(last)
        start = place
        if isinstance(change, Mapping):
            count = 1
            if kind != STRUCT:
                count, _, place = list_head(data, place)
                out += data[start:place]
            for _ in range(count):
                own, place = rewrite(data, place, change)
                out += own
            continue
        value, place = _value(data, place, kind)
        if change is None:
            out += data[start:place]
        else:
            out += change if isinstance(change, bytes) else _zigzag(change(value))


def find(data: bytes, field: int) -> int:
    """Return where the value of a field of a struct begins."""
    place = last = 0
    while True:
        last, kind, place = _field(data, place, last)
        if kind == 0:
            raise ValueError(field)
        if last == field:
            return place
        _, place = _value(data, place, kind)


def list_head(data: bytes, place: int) -> tuple[int, int, int]:
    """Return how many items a list has, of what kind, and where the first begins."""
    count, kind = data[place] >> 4, data[place] & 0x0F
    place += 1
    if count == _LONG_LIST:
        count, place = _unsigned(data, place)
    return count, kind, place


def list_of(structs: list[bytes]) -> bytes:
    """Return a list of structs.

    Examples
    --------
    >>> list_of([bytes([0x15, 0x04, 0x00])]).hex(" ")
    '1c 15 04 00'
    """
    count = len(structs)
    head = bytes([count << 4 | STRUCT]) if count < _LONG_LIST else bytes([_LONG_LIST << 4 | STRUCT]) + _varint(count)
    return head + b"".join(structs)


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
    if kind in (LIST, SET):
        size, of, place = list_head(data, place)
        items = []
        for _ in range(size):
            # A boolean in a list has a byte of its own.
            item, place = (data[place] == 1, place + 1) if of in (1, 2) else _value(data, place, of)
            items.append(item)
        return items, place
    if kind == STRUCT:
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


def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _zigzag(number: int) -> bytes:
    return _varint(number << 1 if number >= 0 else (-number << 1) - 1)


__all__ = ["Change", "find", "list_head", "list_of", "read_struct", "rewrite"]
