"""Files as rows: values are read as the files have them, whichever rows the reader samples to guess types."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from glob import glob
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from sqlglot import exp

from duckanon.engine.process import is_remote
from duckanon.engine.sql.axes import is_null, present
from duckanon.engine.sql.relations import Column, call, col, named, number, scan, subquery, text
from duckanon.errors import DataError
from duckanon.hierarchy.rules import ColumnType, limits
from duckanon.io.paths import is_there

if TYPE_CHECKING:
    from duckanon.engine.base import Engine

_SAMPLED = 40_000
"""A CSV file of so many bytes has no more rows than the database samples to guess types."""
_Options = Mapping[str, bool | str | int | exp.Expr]
LONG_LINES: dict[str, bool | str | int | exp.Expr] = {"max_line_size": 30_000_000, "buffer_size": 32_000_000}
"""The longest line of a CSV file that can be read, in bytes, and the usual size of the buffer."""
_PARTITION = re.compile(r"(?:^|/)([^/=]+)=[^/]*(?=/)")
_QUOTE = '"'
_NOT_CLOSED = (
    "A cell begins with a quotation mark that is not closed, or that is closed before its end. Close it; a quotation "
    "mark that is part of a value is doubled, and the value stands in quotation marks."
)
_INTEGERS = ("BIGINT", "HUGEINT")
_LONG = r"\s*[-+]?[0-9]{16,}\s*"
# Texts of these forms are not changed when they are read as values of the type.
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
    """Return the rows of Parquet files and their columns; types are widened only if no value changes.

    By itself, the database would read all files with the columns and types of the first.
    """
    query = exp.select("*").from_(scan("read_parquet", paths, options))
    columns = engine.columns(query)
    kinds = _kinds_of_files(engine, paths)
    if len(kinds) < 2:
        return query, columns
    # Columns in the path are read from there, even if the file has them too.
    hive = options.get("hive_partitioning", True)
    parted = {n.lower() for path in kinds for n in _PARTITION.findall(path)} if hive else set()
    files = {path: [c for c in engine.columns(_alone(path)) if c.name.lower() not in parted] for path in kinds}
    _require_same_names(files)
    if len({tuple(sorted((c.name.lower(), c.type) for c in same)) for same in files.values()}) < 2:
        return query, columns
    query = exp.select("*").from_(scan("read_parquet", paths, {**options, "union_by_name": True}))
    columns = engine.columns(query)
    wide = {c.name.lower(): c for c in columns}
    for columns_of_file in files.values():
        for column in columns_of_file:
            into = wide[column.name.lower()]
            if not holds(into.type, column.type):
                _refuse_types(column.name, files)
    return query, columns


def _alone(path: str) -> exp.Query:
    plain = "".join(f"[{c}]" if c in "*?[" else c for c in path)
    return exp.select("*").from_(scan("read_parquet", [plain], {"hive_partitioning": False}))


def _kinds_of_files(engine: Engine, paths: Sequence[str]) -> list[str]:
    """Return one file for each schema."""
    schema = exp.Table(this=call("parquet_schema", exp.Array(expressions=[text(p) for p in paths])))
    written = ("name", "type", "num_children", "converted_type", "scale", "precision", "logical_type")
    digest = call("md5", call("concat_ws", text("|"), *(call("coalesce", _as_text(c), text("-")) for c in written)))
    listed = exp.select(col("file_name"), named(call("list", digest), "kind")).from_(schema).group_by(col("file_name"))
    kinds = exp.select(call("min", col("file_name"))).from_(subquery(listed, "f")).group_by(col("kind"))
    return sorted(str(path) for (path,) in engine.rows(kinds))


def _as_text(column: str) -> exp.Expr:
    return exp.Cast(this=col(column), to=exp.DataType.build("VARCHAR"))


def _require_same_names(files: Mapping[str, Sequence[Column]]) -> None:
    every = {c.name.lower(): c.name for columns in files.values() for c in columns}
    for lowered, name in every.items():
        without = [path for path, columns in files.items() if lowered not in {c.name.lower() for c in columns}]
        if without:
            raise UnlikeFilesError(
                f"The column {name!r} is missing in {Path(without[0]).name!r}, but not in other files. Write files "
                "with the same columns, or give a query that reads them with union_by_name = true."
            )


def _refuse_types(name: str, files: Mapping[str, Sequence[Column]]) -> None:
    types = {c.type: path for path, columns in files.items() for c in columns if c.name.lower() == name.lower()}
    pairs = list(combinations(types.items(), 2))
    apart = [(a, b) for a, b in pairs if not holds(a[0], b[0]) and not holds(b[0], a[0])]
    (first, one), (second, other) = (apart or pairs)[0]
    raise UnlikeFilesError(
        f"The column {name!r} is {first} in {Path(one).name!r} and {second} in {Path(other).name!r}: read as one type, "
        "values would change. Write it with one type, or give a query that casts it."
    )


def holds(wide: str, narrow: str) -> bool:
    """Return whether every value of a type is a value of another one.

    Examples
    --------
    >>> holds("BIGINT", "INTEGER"), holds("DOUBLE", "INTEGER"), holds("DOUBLE", "BIGINT"), holds("TIMESTAMP", "DATE")
    (True, True, False, False)
    >>> holds("DECIMAL(12,2)", "DECIMAL(9,2)"), holds("DECIMAL(12,2)", "SMALLINT"), holds("BIGINT", "UBIGINT")
    (True, True, False)
    """
    if wide == narrow or narrow == '"NULL"':
        return True
    digits, wider_digits = _digits(narrow), _digits(wide)
    ends, wider = _limits(narrow), _limits(wide)
    if ends is not None and wider is not None:
        return wider[0] <= ends[0] and ends[1] <= wider[1]
    if ends is not None and wide in ("DOUBLE", "FLOAT"):
        return ends[1] <= 2 ** (53 if wide == "DOUBLE" else 24)
    if narrow == "FLOAT":
        return wide == "DOUBLE"
    if digits is None or wider_digits is None or "DECIMAL" not in wide:
        return False
    return digits[0] - digits[1] <= wider_digits[0] - wider_digits[1] and digits[1] <= wider_digits[1]


def _limits(name: str) -> tuple[int, int] | None:
    """Return the smallest and largest value of a type of integers."""
    kind = ColumnType.parse(name)
    return limits(kind) if kind.family == "integer" else None


def _digits(name: str) -> tuple[int, int] | None:
    """Return precision and scale of a decimal, or of the decimals that hold all values of a type of integers."""
    decimal = re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", name)
    if decimal is not None:
        return int(decimal[1]), int(decimal[2])
    ends = _limits(name)
    return None if ends is None else (len(str(ends[1])), 0)


def csv_rows(engine: Engine, paths: Sequence[str], read: bool) -> tuple[exp.Query, list[Column]]:
    """Return the rows of CSV files and their columns.

    Types, and whether cells are quoted, are guessed from the first rows. If another row has a value that would be
    changed (1.7 in a column of integers, a time in one of dates, a quoted cell), all rows are checked.
    """
    query, columns = _csv(engine, paths, {})
    if read:
        options, columns, inspection = _with_quotes(engine, paths, columns)
        query = _scan(paths, options)
        if inspection.odd:
            options = {**options, "sample_size": -1}
            query, columns = _csv(engine, paths, options)
            # The guess accepts texts of several forms as one type, such as times with and without an offset.
            inspection = _inspect(engine, paths, columns, options)
            if inspection.quoted and not options.get("quote"):
                raise DataError(_NOT_CLOSED)
            if inspection.odd:
                query, columns = _csv(engine, paths, {**options, "types": inspection.types()})
    return read_before_cast(query, columns), columns


def read_before_cast(query: exp.Select, columns: Sequence[Column]) -> exp.Select:
    """Return the same rows, such that casts see the values that were read.

    A cast directly over a CSV file is done by its reader, on the characters in the file: ``7.50``, which is read as
    7.5, would become the text ``7.50``, and one value would count as two. A filter in between prevents that, even one
    that all rows pass.
    """
    missing = is_null(col(columns[0].name))
    return query.where(exp.or_(missing, exp.Not(this=missing.copy()), copy=False))


def _csv(engine: Engine, paths: Sequence[str], options: _Options) -> tuple[exp.Select, list[Column]]:
    query = _scan(paths, options)
    return query, engine.columns(query)


def _scan(paths: Sequence[str], options: _Options) -> exp.Select:
    return exp.select("*").from_(scan("read_csv", paths, {**LONG_LINES, **options}))


def _is_long(paths: Sequence[str]) -> bool:
    """Return whether a file may have rows that were not sampled."""
    files = [f for path in paths for f in ([path] if is_remote(path) or is_there(path) else _matching(path))]
    return any(is_remote(f) or _packed(f) or Path(f).stat().st_size > _SAMPLED for f in files)


def _matching(pattern: str) -> list[str]:
    return [f for f in glob(pattern, recursive=True) if Path(f).is_file()]


def _packed(path: str) -> bool:
    return Path(path).suffix.lower() in (".gz", ".zst")


@dataclass(frozen=True)
class _Inspection:
    """What all rows of CSV files say about how they must be read."""

    whole: bool
    """Whether every row could be read."""
    quoted: bool
    """Whether a cell or a column name begins with a quotation mark."""
    odd: tuple[Column, ...]
    """The columns in which the guessed type would change a value."""
    integers: Set[str]
    """The names of columns that were guessed as floats, but have only integers."""

    def types(self) -> exp.Expr:
        """Return types that change no value."""
        kinds = {c.name: text("HUGEINT" if c.name in self.integers else "VARCHAR") for c in self.odd}
        return exp.Struct(expressions=[exp.PropertyEQ(this=text(name), expression=k) for name, k in kinds.items()])


def _inspect(engine: Engine, paths: Sequence[str], columns: Sequence[Column], options: _Options) -> _Inspection:
    named_so = any(c.name.startswith(_QUOTE) for c in columns)
    # All rows of a short file were sampled, but large integers may have been guessed as floats.
    guessed = [c for c in columns if c.type == "DOUBLE" or (c.type in _UNCHANGED and _is_long(paths))]
    begin = [call("starts_with", col(c.name), text(_QUOTE)) for c in columns if c.type == "VARCHAR" or c in guessed]
    if not begin:
        return _Inspection(True, named_so, (), set())
    counts = _counts(engine, _scan_as_texts(paths, guessed, options), [*begin, *map(_is_suspect, guessed)])
    if counts is None:
        # The row that cannot be read as its column's type may be anywhere.
        return _Inspection(False, named_so, tuple(c for c in guessed if c.type != "DOUBLE"), set())
    suspect = [c for c, count in zip(guessed, counts[len(begin) :], strict=True) if count]
    changed, integers = _inspect_floats(engine, paths, [c for c in suspect if c.type == "DOUBLE"], options)
    odd = tuple(c for c in suspect if c.type != "DOUBLE" or c.name in changed)
    return _Inspection(True, named_so or any(counts[: len(begin)]), odd, integers)


def _inspect_floats(
    engine: Engine, paths: Sequence[str], floats: Sequence[Column], options: _Options
) -> tuple[set[str], set[str]]:
    """Return which columns with long integers are changed by being read as floats, and which have only integers.

    Floats have 15 exact digits; a longer integer is compared with what is read back. A column of integers only is read
    as integers.
    """
    if not floats:
        return set(), set()
    changed, others = [], []
    for cell in (col(c.name) for c in floats):
        integer, back = _try(call("trim", cell), "HUGEINT"), _try(_try(cell.copy(), "DOUBLE"), "HUGEINT")
        unchanged = exp.func("COALESCE", exp.EQ(this=integer, expression=back), exp.false())
        changed.append(exp.and_(_is_long_integer(cell.copy()), exp.Not(this=unchanged)))
        whole = call("regexp_full_match", cell.copy(), text(_WHOLE))
        others.append(exp.or_(exp.Not(this=whole), _is_beyond(cell.copy(), "HUGEINT")))
    counts = _counts(engine, _scan_as_texts(paths, floats, options), [*changed, *others])
    if counts is None:
        return {c.name for c in floats}, set()
    integers = {c.name for c, count in zip(floats, counts[len(floats) :], strict=True) if not count}
    return integers | {c.name for c, count in zip(floats, counts, strict=False) if count}, integers


def _counts(engine: Engine, rows: exp.Query, tests: Sequence[exp.Expr]) -> tuple[int, ...] | None:
    """Return for how many rows each test is true; None if a row cannot be read."""
    counted = engine.attempt(exp.select(*(call("count_if", one) for one in tests)).from_(subquery(rows, "r")))
    return None if counted is None else tuple(int(count) for count in counted[0])


def _scan_as_texts(paths: Sequence[str], columns: Sequence[Column], options: _Options) -> exp.Select:
    kinds = [exp.PropertyEQ(this=text(c.name), expression=text("VARCHAR")) for c in columns]
    return _scan(paths, {**options, **({"types": exp.Struct(expressions=kinds)} if kinds else {})})


def _is_suspect(column: Column) -> exp.Expr:
    """Return whether reading a cell may change its value."""
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
    """Return a test of long texts only; the database evaluates it for no others."""
    long = exp.GT(this=call("strlen", cell.copy()), expression=number(length))
    return exp.Case(ifs=[exp.If(this=long, true=test)], default=otherwise)


def _is_beyond(cell: exp.Expr, kind: str) -> exp.Expr:
    """Return whether a text is not NULL and not an integer of a type."""
    return exp.and_(present(cell), is_null(_try(call("trim", cell.copy()), kind)))


def _try(value: exp.Expr, kind: str) -> exp.Expr:
    return exp.TryCast(this=value, to=exp.DataType.build(kind))


def _with_quotes(
    engine: Engine, paths: Sequence[str], columns: list[Column]
) -> tuple[_Options, list[Column], _Inspection]:
    """Return the options that read quoted cells as such, the columns, and the inspection of all rows.

    A DataError says that a cell begins with a quotation mark, but does not end with one.
    """
    inspection = _inspect(engine, paths, columns, {})
    if inspection.whole and not inspection.quoted and not inspection.odd:
        return {}, columns, inspection
    delimiter, quote = _dialect(engine, paths[0])
    if delimiter is None:
        return {}, columns, inspection
    options: _Options = {"delim": delimiter, "quote": _QUOTE}
    if quote == _QUOTE:
        return options, columns, inspection
    if inspection.whole and not inspection.quoted:
        return {}, columns, inspection
    if engine.attempt(exp.Describe(this=_scan(paths, options))) is not None:
        _, again = _csv(engine, paths, options)
        second = _inspect(engine, paths, again, options)
        if second.whole:
            return options, again, second
    if inspection.quoted:
        raise DataError(_NOT_CLOSED)
    return {}, columns, inspection


def _dialect(engine: Engine, path: str) -> tuple[str | None, str | None]:
    """Return the delimiter and the quotation mark that the database detects in a file."""
    first = path
    if is_remote(path) or not is_there(path):
        files = engine.attempt(exp.select("file").from_(exp.Table(this=call("glob", text(path)))))
        first = min((str(file) for (file,) in files or ()), default=path)
    given = [exp.EQ(this=exp.column(k), expression=exp.convert(v)) for k, v in LONG_LINES.items()]
    sniffed = exp.Table(this=call("sniff_csv", text(first), *given))
    dialect = engine.attempt(exp.select(col("Delimiter"), col("Quote")).from_(sniffed))
    return (str(dialect[0][0]), str(dialect[0][1])) if dialect else (None, None)


def json_rows(engine: Engine, paths: Sequence[str]) -> tuple[exp.Query, list[Column]]:
    """Return the rows of JSON files and their columns; types are chosen from all rows."""
    options = {"sample_size": -1, "maximum_sample_files": 1_000_000}
    query = exp.select("*").from_(scan("read_json", paths, options))
    return query, engine.columns(query)


__all__ = ["LONG_LINES", "UnlikeFilesError", "csv_rows", "holds", "json_rows", "parquet_rows", "read_before_cast"]
