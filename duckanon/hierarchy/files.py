"""Hierarchies in files and tables: the CSV format of ARX, and anything that provides Arrow data."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from duckanon.errors import HierarchyError
from duckanon.io.disk import replacing
from duckanon.io.paths import is_file, is_there, require_open, require_touchable

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.engine.base import Engine

_SEPARATORS = {";": "semicolon", ",": "comma", "\t": "tab", "|": "bar"}


@dataclass(frozen=True)
class CsvTable:
    """The lines of a file that have as many cells as the first, their line numbers, and those of the other lines."""

    table: pa.Table
    lines: tuple[int, ...]
    ragged: tuple[int, ...]
    flat: str | None = None
    """What is wrong with a file of one column, and what its separator may be."""


class _Records:
    """Passes lines to the CSV reader and remembers the first line of the current record.

    An empty leaf is NULL, a quoted empty leaf the empty text; the reader alone does not distinguish them.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self.number = 0
        self.start = 0
        self.first: str | None = None

    def __iter__(self) -> Iterator[str]:
        for line in self._file:
            self.number += 1
            if self.first is None:
                self.first, self.start = line, self.number
            yield line


def read_csv(path: Path, separator: str = ";") -> CsvTable:
    """Read a hierarchy file as ARX writes it: no header, leaf first, quote and escape ``"``. Nothing is checked yet."""
    import pyarrow as pa

    if not isinstance(separator, str) or len(separator) != 1 or separator in '"\r\n':
        raise HierarchyError("The 'separator' of a hierarchy file must be one character.")
    require_touchable(path)
    rows: list[list[str | None]] = []
    lines: list[int] = []
    ragged: list[int] = []
    if is_there(path) and not is_file(path):
        # A pipe could keep the reader for ever.
        raise HierarchyError(f"The hierarchy file {path.name!r} is not a regular file.")
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            records = _Records(file)
            for cells in csv.reader(records, delimiter=separator, quotechar='"', doublequote=True, strict=True):
                first, records.first = records.first or "", None
                if not cells:
                    continue
                row: list[str | None] = list(cells)
                if row[0] == "" and not first.startswith('"'):
                    row = [cell or None for cell in row]
                if rows and len(row) != len(rows[0]):
                    ragged.append(records.start)
                    continue
                rows.append(row)
                lines.append(records.start)
    except OSError as error:
        require_open(path, error)
        raise HierarchyError(f"The hierarchy file {path.name!r} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise HierarchyError(f"The hierarchy file {path.name!r} is not UTF-8.") from None
    except csv.Error:
        raise HierarchyError(
            f"The hierarchy file {path.name!r} has broken quotes in or after line {records.start}."
        ) from None
    width = len(rows[0]) if rows else 0
    columns = [pa.array([row[i] for row in rows], pa.string()) for i in range(width)]
    flat = _flat([row[0] or "" for row in rows], separator) if width == 1 else None
    return CsvTable(pa.table(columns, names=names(width)), tuple(lines), tuple(ragged), flat)


def _flat(leaves: list[str], separator: str) -> str:
    """Return a message that a file has only leaves, with the separator that most of its lines have instead."""
    problem = "It has height 0: one column, so no level to generalize to."
    for other, word in _SEPARATORS.items():
        if other != separator and 2 * sum(other in leaf for leaf in leaves) > len(leaves):
            return f"{problem} Most lines hold a {word}: is the separator {other!r} and not {separator!r}?"
    return problem


def names(width: int) -> list[str]:
    """Return the column names of a levels table."""
    return [f"l{i}" for i in range(width)]


def write_csv(levels: pa.Table, path: Path, separator: str = ";") -> None:
    """Write a levels table in the format that ``read_csv`` reads; an existing file is replaced in one step."""
    special = {separator, '"', "\r", "\n"}

    def cell(value: str | None) -> str:
        if value is None:
            return ""
        if value == "" or value[0] == "\ufeff" or special & set(value):
            return '"' + value.replace('"', '""') + '"'
        return value

    require_touchable(path)
    with replacing(path) as staged, staged.open("w", encoding="utf-8", newline="") as file:
        for batch in levels.to_batches(max_chunksize=10_000):
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                file.write(separator.join(map(cell, row)) + "\n")


def as_text(data: object, columns: list[str] | None = None) -> pa.Table:
    """Return a frame, table, stream or single column as VARCHAR columns, with values as the database writes them."""
    import pyarrow as pa

    arrow = as_arrow(data)
    if columns is not None:
        unknown = [c for c in columns if c not in arrow.column_names]
        if unknown:
            raise HierarchyError(f"The table of the hierarchy has no column {unknown[0]!r}.")
        arrow = arrow.select(columns)
    if not arrow.num_columns:
        raise HierarchyError("The table of the hierarchy has no columns.")
    arrow = arrow.rename_columns(names(arrow.num_columns))
    if all(pa.types.is_string(t) for t in arrow.schema.types):
        return arrow
    from sqlglot import exp

    from duckanon.engine.base import workspace
    from duckanon.engine.sql.relations import table

    with workspace(None) as engine:
        engine.register("incoming", arrow)
        return select_text(engine, exp.select("*").from_(table("incoming")))


def select_text(engine: Engine, query: Any) -> pa.Table:
    """Return a query's columns as VARCHAR ``l0``, ``l1``, ..."""
    import pyarrow as pa
    from sqlglot import exp

    from duckanon.engine.sql.relations import cast, col, named, subquery

    columns = engine.columns(query)
    texts = [named(cast(col(c.name, "s"), "VARCHAR"), f"l{i}") for i, c in enumerate(columns)]
    arrow = engine.arrow(exp.select(*texts).from_(subquery(query, "s")))
    return arrow.cast(pa.schema([(name, pa.string()) for name in arrow.column_names]))


def as_arrow(data: object) -> pa.Table:
    """Return data as an Arrow table; a list, array or series becomes its only column."""
    import pyarrow as pa

    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.Array | pa.ChunkedArray):
        return pa.table([data], names=["l0"])
    if type(data).__module__.split(".")[0] == "pandas":
        if hasattr(data, "columns"):
            return pa.Table.from_pandas(data, preserve_index=False)
        return pa.table([pa.Array.from_pandas(data)], names=["l0"])
    try:
        if isinstance(data, list | tuple | set | frozenset):
            return pa.table([pa.array(list(data))], names=["l0"])
        if hasattr(data, "to_frame"):
            data = data.to_frame()
        return pa.table(data)
    except (TypeError, ValueError, pa.ArrowException):
        # The text of these errors can quote a value.
        raise HierarchyError(f"A {type(data).__name__} cannot be read as the table of a hierarchy.") from None
