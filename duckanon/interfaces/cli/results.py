"""Results of SQL statements: fetched as text or JSON, and shown as a box, CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from duckanon.interfaces.cli.screen import Screen, console, count

if TYPE_CHECKING:
    from rich.console import JustifyMethod as Justify


MODES = ("box", "csv", "json")
_NARROWEST = 12
_NUMBERS = {
    *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "BIGNUM", "FLOAT", "DOUBLE", "DECIMAL"),
    *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"),
}
_CONSTANTS = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}


@dataclass(frozen=True)
class Result:
    """The first rows of a statement, as texts or as JSON, and how many there are."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    total: int
    exact: bool = True
    """Whether ``total`` is the number of rows. Otherwise there are more."""
    changed: bool = False
    """Whether ``total`` counts rows that were written. Then there is nothing to show."""
    numeric: tuple[bool, ...] = ()
    """Which columns hold numbers."""

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return the rows as mappings. Columns with the same name are numbered, except the first."""
        names: list[str] = []
        for name in self.columns:
            again = sum(n == name or n.startswith(f"{name}_") for n in names)
            names.append(name if name not in names else f"{name}_{again}")
        return [dict(zip(names, row, strict=True)) for row in self.rows]


def fetch(connection: Any, statement: str, *, limit: int | None = None, as_json: bool = False) -> Result | None:
    """Run one statement and return its rows. None if it has none to return.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
    statement : str
    limit : int, optional
        How many rows to fetch at most.
    as_json : bool
        Whether the cells are what JSON can hold; else they are texts.
    """
    parsed = connection.extract_statements(statement)
    kinds = {kind.name for one in parsed for kind in one.expected_result_type}
    # A SELECT is only bound here, and runs when its rows are fetched. Other statements run now.
    relation = connection.sql(statement)
    if relation is None or "QUERY_RESULT" not in kinds:
        return None
    columns, types = tuple(relation.columns), [str(t) for t in relation.types]
    if "CHANGED_ROWS" in kinds and columns == ("Count",):
        counted = relation.fetchall()
        return Result((), (), int(counted[0][0]), changed=True) if counted else None
    if columns == ("Success",) and parsed[-1].type.name != "SELECT":
        return None
    limited = relation if limit is None else relation.limit(limit)
    rows = limited.project(", ".join(_spelt(i, as_json) for i in range(len(columns)))).fetchall()
    if as_json:
        rows = [tuple(None if text is None else from_json(text) for text in row) for row in rows]
    numeric = tuple(t.partition("(")[0] in _NUMBERS for t in types)
    return Result(columns, rows, len(rows), numeric=numeric)


def _spelt(index: int, as_json: bool) -> str:
    from sqlglot import exp

    from duckanon.engine.sql.relations import DIALECT, call, cast, number

    # By position, because two columns of a result may have the same name.
    value: exp.Expr = exp.PositionalColumn(this=number(index + 1))
    return cast(call("to_json", value) if as_json else value, "VARCHAR").sql(dialect=DIALECT)


def from_json(text: str) -> Any:
    """Parse JSON of the database, in which numbers may be infinite: those become texts.

    Examples
    --------
    >>> from_json('{"a": [1.5, NaN, -Infinity, 1e999, null]}')
    {'a': [1.5, 'nan', '-inf', '1e999', None]}
    """

    def number(digits: str) -> float | str:
        value = float(digits)
        return value if math.isfinite(value) else digits

    return json.loads(text, parse_constant=_CONSTANTS.__getitem__, parse_float=number)


def tables(connection: Any) -> list[tuple[str, str, str, bool]]:
    """Return (database, schema, name, whether the name alone finds it) of the user's tables and views."""
    from sqlglot import exp

    from duckanon.engine.sql.relations import DIALECT, call, col, text, union_all

    near = exp.In(this=col("database_name"), expressions=[call("current_database"), text("temp")])
    alone = exp.And(this=near, expression=exp.EQ(this=col("schema_name"), expression=call("current_schema")))
    queries = [
        exp.select(col("database_name"), col("schema_name"), col(name), alone.copy())
        .from_(exp.Table(this=call(function)))
        .where(exp.Not(this=col("internal")))
        for function, name in (("duckdb_tables", "table_name"), ("duckdb_views", "view_name"))
    ]
    return sorted(connection.sql(union_all(queries).sql(dialect=DIALECT)).fetchall())


def cell(text: str | None) -> str:
    r"""Return a text as one line for a terminal.

    Examples
    --------
    >>> cell(None), cell("a\nb")
    ('NULL', 'a\\nb')
    """
    if text is None:
        return "NULL"
    # Control characters in the data must not reach the terminal.
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def write(screen: Screen, result: Result, mode: str, width: int | None = None) -> None:
    """Write a result."""
    if mode == "json":
        screen.document(result.to_dicts())
    elif mode == "csv":
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(result.columns)
        for row in result.rows:
            writer.writerow(["" if text is None else text for text in row])
        screen.data(buffer.getvalue().removesuffix("\n"))
    elif result.columns == ("explain_key", "explain_value"):
        for _, drawing in result.rows:
            screen.text(str(drawing))
    else:
        _box(result, width)


def _box(result: Result, width: int | None) -> None:
    from rich import box
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    out = console(width=width)
    texts = [[cell(v) for v in row] for row in result.rows]
    heads = [cell(name) for name in result.columns]
    widths = [max(map(cell_len, (head, *(row[i] for row in texts)))) for i, head in enumerate(heads)]
    # Nothing is truncated in a file or a pipe.
    cut = out.is_terminal or width is not None
    limits, visible_columns = fit(widths, out.width) if cut else (widths, list(range(len(widths))))
    if not cut:
        out = console(width=max(80, sum(widths) + 3 * len(widths) + 1))
    gap = next((i for i, (a, b) in enumerate(pairwise(visible_columns), 1) if b != a + 1), None)
    table = Table(box=box.SQUARE, header_style="bold")
    for place, i in enumerate(visible_columns):
        if place == gap:
            table.add_column("…", no_wrap=True)
        right: Justify = "right" if result.numeric and result.numeric[i] else "left"
        table.add_column(Text(heads[i]), justify=right, no_wrap=True, width=limits[i], overflow="ellipsis")
    for row, values in zip(texts, result.rows, strict=True):
        cells = [Text(row[i], style="dim" if values[i] is None else "") for i in visible_columns]
        if gap is not None:
            cells.insert(gap, Text("…", style="dim"))
        table.add_row(*cells)
    out.print(table)
    hidden = len(widths) - len(visible_columns)
    columns = f", {len(visible_columns)} of {len(widths)} columns" if hidden else ""
    out.print(Text(_counted(result) + columns, style="dim"))


def fit(widths: Sequence[int], available: int) -> tuple[list[int], list[int]]:
    """Return the width of each column, and which columns are shown. Columns in the middle are left out first.

    Examples
    --------
    >>> fit([4, 50], 40)
    ([4, 29], [0, 1])
    >>> fit([12, 12, 12, 12], 40)[1]
    [0, 3]
    """

    def needed(limits: Sequence[int], visible_columns: Sequence[int]) -> int:
        gap = 4 if len(visible_columns) < len(widths) else 0
        return sum(limits[i] + 3 for i in visible_columns) + 1 + gap

    visible_columns = list(range(len(widths)))
    limits = list(widths)
    for cap in range(max(widths, default=0), _NARROWEST - 1, -1):
        limits = [min(w, cap) for w in widths]
        if needed(limits, visible_columns) <= available:
            return limits, visible_columns
    while len(visible_columns) > 1 and needed(limits, visible_columns) > available:
        visible_columns.pop(len(visible_columns) // 2)
    return limits, visible_columns


def _counted(result: Result) -> str:
    if not result.exact:
        return f"{count(len(result.rows))} shown of more than {count(result.total, 'rows')}"
    total = count(result.total, "rows")
    return total if len(result.rows) == result.total else f"{count(len(result.rows))} shown of {total}"
