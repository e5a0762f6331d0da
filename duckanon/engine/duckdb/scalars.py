"""Scalar SQL functions implemented in Python: a macro around a function on Arrow arrays, many values at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import duckdb
from duckdb.func import ARROW, SPECIAL
from sqlglot import exp

from duckanon.engine.duckdb.sealed import sealed
from duckanon.engine.sql.relations import DIALECT, call, col, ident, number, table, text

RESULT, PROBLEM = "result", "problem"
"""The fields of what a function computes: its result, or the reason why there is none."""


@dataclass(frozen=True)
class Scalar:
    """A function of values: its name, its parameters, the type of its result, and what computes a column of them.

    ``compute`` gets the arguments as Arrow arrays, NULL included, and returns an array of structs of ``RESULT`` and
    ``PROBLEM``: an exception would reach the caller with its traceback. It must be a function of a module, and so live
    as long as the process: DuckDB has a bare pointer to it when the connection that registered it is closed.
    """

    name: str
    parameters: tuple[str, ...]
    returns: str
    compute: Callable[..., Any]

    @property
    def _computed(self) -> str:
        return f"__duckanon_{self.name}"

    def register(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """Register the Python function in a database."""
        if not is_registered(cursor, self._computed):
            answer = f"STRUCT({RESULT} {self.returns}, {PROBLEM} VARCHAR)"
            # A function with any number of untyped arguments accepts every type.
            cursor.create_function(self._computed, self.compute, None, answer, type=ARROW, null_handling=SPECIAL)

    def macro(self, catalog: str) -> str:
        """Return the statement that creates the function, which raises the reason where there is no result."""
        computed = call(self._computed, *(col(name) for name in self.parameters))
        result, problem = (exp.Dot(this=ident("answer"), expression=ident(name)) for name in (RESULT, PROBLEM))
        failed = exp.Not(this=exp.Is(this=problem, expression=exp.null()))
        value = exp.Case().when(failed, call("error", problem.copy())).else_(result)
        # A list of one and a lambda: so an expression gets a name, and is computed once.
        named = exp.Lambda(this=value, expressions=[ident("answer")])
        body = call("list_extract", call("list_transform", exp.Array(expressions=[computed]), named), number(1))
        listed = ", ".join(ident(name).sql(dialect=DIALECT) for name in self.parameters)
        name = table(self.name, schema="main", catalog=catalog).sql(dialect=DIALECT)
        head = ("CREATE OR REPLACE", "TEMP" if catalog == "temp" else "", "MACRO", name)
        return " ".join((*head, "(", listed, ") AS", sealed(body)))


def is_registered(cursor: duckdb.DuckDBPyConnection, name: str) -> bool:
    """Say whether a database knows a function."""
    known = exp.select("1").from_(exp.Table(this=call("duckdb_functions")))
    known = known.where(exp.EQ(this=col("function_name"), expression=text(name)))
    return bool(cursor.execute(sealed(known)).fetchall())
