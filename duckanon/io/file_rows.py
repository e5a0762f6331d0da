"""Files as rows: what is read has the values that the files have, whichever file or row a reader looked at first."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from glob import glob
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from sqlglot import exp

from duckanon.engine.permitted_paths import is_remote
from duckanon.engine.sql.relations import Column, call, col, named, number, scan, subquery, text
from duckanon.errors import DataError
from duckanon.io.paths import is_there

if TYPE_CHECKING:
    from duckanon.engine.base import Engine

_LOOKED_AT = 40_000
"""Bytes of a CSV file in which there are no more rows than those by which the database guesses types."""
_Options = Mapping[str, bool | str | int | exp.Expr]
LONG_LINES: dict[str, bool | str | int | exp.Expr] = {"max_line_size": 30_000_000, "buffer_size": 32_000_000}
"""The longest line of a CSV file that can be read, in bytes, and how much of it is read at a time, which is usual."""
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64, "HUGEINT": 128}
_PARTITION = re.compile(r"(?:^|/)([^/=]+)=[^/]*(?=/)")
_QUOTE = '"'
_NOT_CLOSED = (
    "A cell begins with a quotation mark that is not closed, or that is closed before its end. Close it; a quotation "
    "mark that is part of a value is doubled, and the value stands in quotation marks."
)
_INTEGERS = ("BIGINT", "HUGEINT")
_LONG = r"\s*[-+]?[0-9]{16,}\s*"
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

    Types, and whether cells stand in quotes, are guessed from the first rows. Where another row has a value that the
    guess would change (1.7 in a column of integers, a time in one of dates, a cell in quotes), all rows are looked at.
    """
    query, columns = _csv(engine, paths, {})
    if read:
        options, columns, found = _with_quotes(engine, paths, columns)
        query = _scan(paths, options)
        if found.odd:
            options = {**options, "sample_size": -1}
            query, columns = _csv(engine, paths, options)
            # The guess itself takes texts of several forms for one type, such as times with an offset and without.
            found = _looked(engine, paths, columns, options)
            if found.quoted and not options.get("quote"):
                raise DataError(_NOT_CLOSED)
            if found.odd:
                query, columns = _csv(engine, paths, {**options, "types": found.types()})
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


def _is_long(paths: Sequence[str]) -> bool:
    """Say whether a file may have rows by which no type was guessed."""
    files = [f for path in paths for f in ([path] if is_remote(path) or is_there(path) else _matching(path))]
    return any(is_remote(f) or _packed(f) or Path(f).stat().st_size > _LOOKED_AT for f in files)


def _matching(pattern: str) -> list[str]:
    return [f for f in glob(pattern, recursive=True) if Path(f).is_file()]


def _packed(path: str) -> bool:
    return Path(path).suffix.lower() in (".gz", ".zst")


@dataclass(frozen=True)
class _Looked:
    """What all rows of CSV files say of the way in which they are read."""

    whole: bool
    """Whether every row could be read."""
    quoted: bool
    """Whether a cell, or the name of a column, begins with a quotation mark."""
    odd: tuple[Column, ...]
    """The columns of which a value would be changed by the type that was guessed."""
    integers: Set[str]
    """The names of columns that were taken for floats and have integers alone."""

    def types(self) -> exp.Expr:
        """Return types under which no value is changed."""
        kinds = {c.name: text("HUGEINT" if c.name in self.integers else "VARCHAR") for c in self.odd}
        return exp.Struct(expressions=[exp.PropertyEQ(this=text(name), expression=k) for name, k in kinds.items()])


def _looked(engine: Engine, paths: Sequence[str], columns: Sequence[Column], options: _Options) -> _Looked:
    named_so = any(c.name.startswith(_QUOTE) for c in columns)
    # Of a short file every row was looked at when a type was guessed; but large integers may be taken for floats.
    guessed = [c for c in columns if c.type == "DOUBLE" or (c.type in _UNCHANGED and _is_long(paths))]
    begin = [call("starts_with", col(c.name), text(_QUOTE)) for c in columns if c.type == "VARCHAR" or c in guessed]
    if not begin:
        return _Looked(True, named_so, (), set())
    found = _counts(engine, _scan_as_texts(paths, guessed, options), [*begin, *map(_is_suspect, guessed)])
    if found is None:
        # A row that cannot be read as its column's type may lie behind any other.
        return _Looked(False, named_so, tuple(c for c in guessed if c.type != "DOUBLE"), set())
    suspect = [c for c, count in zip(guessed, found[len(begin) :], strict=True) if count]
    changed, integers = _looked_at_floats(engine, paths, [c for c in suspect if c.type == "DOUBLE"], options)
    odd = tuple(c for c in suspect if c.type != "DOUBLE" or c.name in changed)
    return _Looked(True, named_so or any(found[: len(begin)]), odd, integers)


def _looked_at_floats(
    engine: Engine, paths: Sequence[str], floats: Sequence[Column], options: _Options
) -> tuple[set[str], set[str]]:
    """Return, of columns with long integers that were taken for floats, those that floats change; those without others.

    Floats hold 15 digits; of a longer integer what is read back decides. Where there are integers alone, they are what
    is meant.
    """
    if not floats:
        return set(), set()
    changed, others = [], []
    for cell in (col(c.name) for c in floats):
        integer, back = _try(call("trim", cell), "HUGEINT"), _try(_try(cell.copy(), "DOUBLE"), "HUGEINT")
        kept = exp.func("COALESCE", exp.EQ(this=integer, expression=back), exp.false())
        changed.append(exp.and_(_is_long_integer(cell.copy()), exp.Not(this=kept)))
        whole = call("regexp_full_match", cell.copy(), text(_WHOLE))
        others.append(exp.or_(exp.Not(this=whole), _is_beyond(cell.copy(), "HUGEINT")))
    found = _counts(engine, _scan_as_texts(paths, floats, options), [*changed, *others])
    if found is None:
        return {c.name for c in floats}, set()
    integers = {c.name for c, count in zip(floats, found[len(floats) :], strict=True) if not count}
    return integers | {c.name for c, count in zip(floats, found, strict=False) if count}, integers


def _counts(engine: Engine, rows: exp.Query, tests: Sequence[exp.Expr]) -> tuple[int, ...] | None:
    """Return of how many rows each test holds; None where a row cannot be read."""
    found = engine.attempt(exp.select(*(call("count_if", one) for one in tests)).from_(subquery(rows, "r")))
    return None if found is None else tuple(int(count) for count in found[0])


def _scan_as_texts(paths: Sequence[str], columns: Sequence[Column], options: _Options) -> exp.Select:
    kinds = [exp.PropertyEQ(this=text(c.name), expression=text("VARCHAR")) for c in columns]
    return _scan(paths, {**options, **({"types": exp.Struct(expressions=kinds)} if kinds else {})})


def _is_suspect(column: Column) -> exp.Expr:
    """Return whether the text of a cell may mean something else than what is read of it."""
    cell = col(column.name)
    if column.type == "DOUBLE":
        return _is_long_integer(cell)
    other = exp.Not(this=call("regexp_full_match", cell, text(_UNCHANGED[column.type])))
    if column.type not in _INTEGERS:
        return other
    return _if_longer(cell.copy(), 18, exp.or_(other, _is_beyond(cell.copy(), column.type)), other.copy())


def _is_long_integer(cell: exp.Expr) -> exp.Expr:
    fraction = exp.If(this=call("contains", cell.copy(), text(".")), true=exp.false())
    integer = exp.Case(ifs=[fraction], default=call("regexp_full_match", cell.copy(), text(_LONG)))
    return _if_longer(cell, 15, integer, exp.false())


def _if_longer(cell: exp.Expr, length: int, test: exp.Expr, otherwise: exp.Expr) -> exp.Expr:
    """Return a test of long texts alone: in this way those are the only ones that it looks at."""
    long = exp.GT(this=call("strlen", cell.copy()), expression=number(length))
    return exp.Case(ifs=[exp.If(this=long, true=test)], default=otherwise)


def _is_beyond(cell: exp.Expr, kind: str) -> exp.Expr:
    """Return whether a text is there, and no integer of a type."""
    there = exp.Not(this=exp.Is(this=cell, expression=exp.null()))
    return exp.and_(there, exp.Is(this=_try(call("trim", cell.copy()), kind), expression=exp.null()))


def _try(value: exp.Expr, kind: str) -> exp.Expr:
    return exp.TryCast(this=value, to=exp.DataType.build(kind))


def _with_quotes(engine: Engine, paths: Sequence[str], columns: list[Column]) -> tuple[_Options, list[Column], _Looked]:
    """Return how cells in quotes are read as such, whatever the next guess is; the columns; and what all rows say.

    A DataError says that a cell begins with a quotation mark, and does not end with it.
    """
    found = _looked(engine, paths, columns, {})
    if found.whole and not found.quoted and not found.odd:
        return {}, columns, found
    delimiter, quote = _dialect(engine, paths[0])
    if delimiter is None:
        return {}, columns, found
    options: _Options = {"delim": delimiter, "quote": _QUOTE}
    if quote == _QUOTE:
        return options, columns, found
    if found.whole and not found.quoted:
        return {}, columns, found
    if engine.attempt(exp.Describe(this=_scan(paths, options))) is not None:
        _, again = _csv(engine, paths, options)
        looked = _looked(engine, paths, again, options)
        if looked.whole:
            return options, again, looked
    if found.quoted:
        raise DataError(_NOT_CLOSED)
    return {}, columns, found


def _dialect(engine: Engine, path: str) -> tuple[str | None, str | None]:
    """Return what the database takes for the mark between the cells of a file, and for the one around them."""
    first = path
    if is_remote(path) or not is_there(path):
        files = engine.attempt(exp.select("file").from_(exp.Table(this=call("glob", text(path)))))
        first = min((str(file) for (file,) in files or ()), default=path)
    given = [exp.EQ(this=exp.column(k), expression=exp.convert(v)) for k, v in LONG_LINES.items()]
    sniffed = exp.Table(this=call("sniff_csv", text(first), *given))
    found = engine.attempt(exp.select(col("Delimiter"), col("Quote")).from_(sniffed))
    return (str(found[0][0]), str(found[0][1])) if found else (None, None)


def json_rows(engine: Engine, paths: Sequence[str]) -> tuple[exp.Query, list[Column]]:
    """Return the rows of JSON files and their columns; all rows are looked at before types are chosen."""
    options = {"sample_size": -1, "maximum_sample_files": 1_000_000}
    query = exp.select("*").from_(scan("read_json", paths, options))
    return query, engine.columns(query)


__all__ = ["LONG_LINES", "UnlikeFilesError", "csv_rows", "holds", "json_rows", "parquet_rows", "read_before_cast"]
