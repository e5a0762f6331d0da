"""Rows of SQL statements, written as text or JSON by the database itself.

Python has no infinite dates, no intervals of months, and no time zones without a further library: what the database
can hold, only the database can spell.
"""

from __future__ import annotations

import json
import math
from typing import Any

from duckanon.interfaces.cli.results import Result

_NUMBERS = {
    *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "BIGNUM", "FLOAT", "DOUBLE", "DECIMAL"),
    *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"),
}
_CONSTANTS = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}


def fetch(connection: Any, statement: str, *, limit: int | None = None, as_json: bool = False) -> Result | None:
    """Run one statement; None if it gives no rows.

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
    # Other statements than SELECT are done now; a SELECT is bound, and runs when its rows are fetched.
    relation = connection.sql(statement)
    if relation is None or "QUERY_RESULT" not in kinds:
        return None
    columns, types = tuple(relation.columns), [str(t) for t in relation.types]
    if "CHANGED_ROWS" in kinds and columns == ("Count",):
        counted = relation.fetchall()
        return Result((), (), int(counted[0][0]), changed=True) if counted else None
    if columns == ("Success",) and parsed[-1].type.name != "SELECT":
        return None
    found = relation if limit is None else relation.limit(limit)
    rows = found.project(", ".join(_spelt(i, as_json) for i in range(len(columns)))).fetchall()
    if as_json:
        rows = [tuple(None if text is None else from_json(text) for text in row) for row in rows]
    numeric = tuple(t.partition("(")[0] in _NUMBERS for t in types)
    return Result(columns, rows, len(rows), numeric=numeric)


def _spelt(index: int, as_json: bool) -> str:
    from sqlglot import exp

    from duckanon.engine.sql.relations import DIALECT, call, cast, number

    # By its place: two columns of a result may have the same name.
    value: exp.Expr = exp.PositionalColumn(this=number(index + 1))
    return cast(call("to_json", value) if as_json else value, "VARCHAR").sql(dialect=DIALECT)


def from_json(text: str) -> Any:
    """Return the value of the database's JSON, in which numbers may be infinite: those become texts.

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
