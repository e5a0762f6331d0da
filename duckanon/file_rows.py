"""Files as rows: what is read has the values that the files have, whichever file or row a reader looked at first."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from glob import glob
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from sqlglot import exp

from duckanon.errors import DataError
from duckanon.paths import is_remote, is_there
from duckanon.sqlgen.relations import Column, call, col, named, scan, subquery, text

if TYPE_CHECKING:
    from duckanon.engine.base import Engine

_LOOKED_AT = 40_000
"""Bytes of a CSV file in which there are no more rows than those by which the database guesses types."""
_Options = Mapping[str, bool | str | int | exp.Expr]
LONG_LINES: dict[str, bool | str | int | exp.Expr] = {"max_line_size": 30_000_000, "buffer_size": 32_000_000}
"""The longest line of a CSV file that can be read, in bytes, and how much of it is read at a time, which is usual."""
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64, "HUGEINT": 128}
_PARTITION = re.compile(r"(?:^|/)([^/=]+)=[^/]*(?=/)")
# What a value looks like that a reader does not change when it takes it for one of this type.
_WHOLE = r"\s*[-+]?(0|[1-9][0-9]*)\s*"
_DAY = r"\s*[0-9]+[^0-9][0-9]+[^0-9][0-9]+\s*"
_UNCHANGED = {
    "BIGINT": _WHOLE,
    "HUGEINT": _WHOLE,
    "DATE": _DAY,
    "TIMESTAMP": r"\s*[0-9]+[^0-9][0-9]+[^0-9][0-9]+([ T][0-9]+:[0-9]+(:[0-9]+(\.[0-9]+)?)?)?\s*",
}


class UnlikeFilesError(DataError):
    """Files that are read as one table have columns or types that do not fit together."""


def parquet_rows(engine: Engine, paths: Sequence[str], options: Mapping[str, bool]) -> tuple[exp.Query, list[Column]]:
    """Return the rows of Parquet files and their columns; types are widened only where no value changes.

    The database alone would read all files with the columns and types of the first.
    """
    query = exp.select("*").from_(scan("read_parquet", paths, options))
    columns = engine.columns(query)
    kinds = _kinds_of_files(engine, paths)
    if len(kinds) < 2:
        return query, columns
    # What stands in the path comes from there, whatever the file holds.
    hive = options.get("hive_partitioning", True)
    parted = {n.lower() for path in kinds for n in _PARTITION.findall(path)} if hive else set()
    files = {path: [c for c in engine.columns(_alone(path)) if c.name.lower() not in parted] for path in kinds}
    _require_same_names(files)
    if len({tuple(sorted((c.name.lower(), c.type) for c in own)) for own in files.values()}) < 2:
        return query, columns
    query = exp.select("*").from_(scan("read_parquet", paths, {**options, "union_by_name": True}))
    columns = engine.columns(query)
    wide = {c.name.lower(): c for c in columns}
    for own in files.values():
        for column in own:
            into = wide[column.name.lower()]
            if not holds(into.type, column.type):
                _refuse_types(column.name, files)
    return query, columns


def _alone(path: str) -> exp.Query:
    plain = "".join(f"[{c}]" if c in "*?[" else c for c in path)
    return exp.select("*").from_(scan("read_parquet", [plain], {"hive_partitioning": False}))


def _kinds_of_files(engine: Engine, paths: Sequence[str]) -> list[str]:
    """Return one file of each kind: files whose schemas are written alike are of one."""
    schema = exp.Table(this=call("parquet_schema", exp.Array(expressions=[text(p) for p in paths])))
    written = ("name", "type", "num_children", "converted_type", "scale", "precision", "logical_type")
    told = call("md5", call("concat_ws", text("|"), *(call("coalesce", _told(c), text("-")) for c in written)))
    listed = exp.select(col("file_name"), named(call("list", told), "kind")).from_(schema).group_by(col("file_name"))
    kinds = exp.select(call("min", col("file_name"))).from_(subquery(listed, "f")).group_by(col("kind"))
    return sorted(str(path) for (path,) in engine.rows(kinds))


def _told(column: str) -> exp.Expr:
    return exp.Cast(this=col(column), to=exp.DataType.build("VARCHAR"))


def _require_same_names(files: Mapping[str, Sequence[Column]]) -> None:
    every = {c.name.lower(): c.name for own in files.values() for c in own}
    for lowered, name in every.items():
        without = [path for path, own in files.items() if lowered not in {c.name.lower() for c in own}]
        if without:
            raise UnlikeFilesError(
                f"The column {name!r} is missing in {Path(without[0]).name!r} and stands in other files. Write files "
                "with the same columns, or give a query that reads them with union_by_name = true."
            )


def _refuse_types(name: str, files: Mapping[str, Sequence[Column]]) -> None:
    types = {c.type: path for path, own in files.items() for c in own if c.name.lower() == name.lower()}
    pairs = list(combinations(types.items(), 2))
    apart = [(a, b) for a, b in pairs if not holds(a[0], b[0]) and not holds(b[0], a[0])]
    (first, one), (second, other) = (apart or pairs)[0]
    raise UnlikeFilesError(
        f"The column {name!r} is {first} in {Path(one).name!r} and {second} in {Path(other).name!r}: read as one type, "
        "values would change. Write it with one type, or give a query that casts it."
    )


def holds(wide: str, narrow: str) -> bool:
    """Say whether every value of a type is a value of another one.

    Examples
    --------
    >>> holds("BIGINT", "INTEGER"), holds("DOUBLE", "INTEGER"), holds("DOUBLE", "BIGINT"), holds("TIMESTAMP", "DATE")
    (True, True, False, False)
    >>> holds("DECIMAL(12,2)", "DECIMAL(9,2)"), holds("DECIMAL(12,2)", "SMALLINT"), holds("BIGINT", "UBIGINT")
    (True, True, False)
    """
    if wide == narrow or narrow == '"NULL"':
        return True
    own, other = _digits(narrow), _digits(wide)
    bits = _bits(narrow)
    if bits is not None and wide in _BITS | {f"U{name}": 0 for name in _BITS}:
        least, most = bits
        limits = _bits(wide)
        return limits is not None and limits[0] <= least and most <= limits[1]
    if bits is not None and wide in ("DOUBLE", "FLOAT"):
        return bits[1] <= 2 ** (53 if wide == "DOUBLE" else 24)
    if narrow == "FLOAT":
        return wide == "DOUBLE"
    if own is None or other is None or "DECIMAL" not in wide:
        return False
    return own[0] - own[1] <= other[0] - other[1] and own[1] <= other[1]


def _bits(name: str) -> tuple[int, int] | None:
    """Return the smallest and largest value of a type of integers."""
    bits = _BITS.get(name.removeprefix("U"))
    if bits is None:
        return None
    return (0, 2**bits - 1) if name.startswith("U") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _digits(name: str) -> tuple[int, int] | None:
    """Return precision and scale of a decimal, or of the decimals that hold all values of a type of integers."""
    found = re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", name)
    if found is not None:
        return int(found[1]), int(found[2])
    bits = _bits(name)
    return None if bits is None else (len(str(bits[1])), 0)


def csv_rows(engine: Engine, paths: Sequence[str], read: bool) -> tuple[exp.Query, list[Column]]:
    """Return the rows of CSV files and their columns.

    Types are guessed from the first rows. Where a later row has a value that the guess would change (1.7 in a column
    of integers, a time in one of dates), all rows are looked at.
    """
    query, columns = _csv(engine, paths, {})
    if read and _is_long(paths) and _changed(engine, paths, columns):
        query, columns = _csv(engine, paths, {"sample_size": -1})
        # The guess itself takes texts of several forms for one type, such as times with an offset and without.
        odd = _changed(engine, paths, columns)
        if odd:
            query, columns = _csv(engine, paths, {"sample_size": -1, "types": _as_texts(odd)})
    return read_before_cast(query, columns), columns


def read_before_cast(query: exp.Select, columns: Sequence[Column]) -> exp.Select:
    """Return the same rows, of which casts see the values that were read.

    A cast right over a CSV file is done by its reader, on the characters in the file: ``7.50``, which is read as 7.5,
    would be the text ``7.50``, and one value would count as two. A filter between them keeps them apart, even one that
    all rows pass.
    """
    missing = exp.Is(this=col(columns[0].name), expression=exp.null())
    return query.where(exp.or_(missing, exp.Not(this=missing.copy()), copy=False))


def _csv(engine: Engine, paths: Sequence[str], options: _Options) -> tuple[exp.Select, list[Column]]:
    query = _scan(paths, options)
    return query, engine.columns(query)


def _scan(paths: Sequence[str], options: _Options) -> exp.Select:
    return exp.select("*").from_(scan("read_csv", paths, {**LONG_LINES, **options}))


def _as_texts(columns: Sequence[Column]) -> exp.Expr:
    return exp.Struct(expressions=[exp.PropertyEQ(this=text(c.name), expression=text("VARCHAR")) for c in columns])


def _is_long(paths: Sequence[str]) -> bool:
    """Say whether a file may have rows by which no type was guessed."""
    files = [f for path in paths for f in ([path] if is_remote(path) or is_there(path) else _matching(path))]
    return any(is_remote(f) or _packed(f) or Path(f).stat().st_size > _LOOKED_AT for f in files)


def _matching(pattern: str) -> list[str]:
    return [f for f in glob(pattern, recursive=True) if Path(f).is_file()]


def _packed(path: str) -> bool:
    return Path(path).suffix.lower() in (".gz", ".zst")


def _changed(engine: Engine, paths: Sequence[str], columns: Sequence[Column]) -> list[Column]:
    """Return the columns of which a value would be changed by the type that was guessed."""
    guessed = [c for c in columns if c.type in _UNCHANGED]
    if not guessed:
        return []
    odd = [exp.Not(this=call("regexp_full_match", col(c.name), text(_UNCHANGED[c.type]))) for c in guessed]
    counts = [call("count_if", one) for one in odd]
    rows = _scan(paths, {"types": _as_texts(guessed)})
    found = engine.attempt(exp.select(*counts).from_(subquery(rows, "r")))
    if found is None:
        # A row that cannot be read as its column's type may lie behind any other.
        return guessed
    return [c for c, count in zip(guessed, found[0], strict=True) if count]


def json_rows(engine: Engine, paths: Sequence[str]) -> tuple[exp.Query, list[Column]]:
    """Return the rows of JSON files and their columns; all rows are looked at before types are chosen."""
    options = {"sample_size": -1, "maximum_sample_files": 1_000_000}
    query = exp.select("*").from_(scan("read_json", paths, options))
    return query, engine.columns(query)


__all__ = ["LONG_LINES", "UnlikeFilesError", "csv_rows", "holds", "json_rows", "parquet_rows", "read_before_cast"]
