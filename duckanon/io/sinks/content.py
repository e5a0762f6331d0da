"""A fingerprint of rows that does not depend on their order and is the same in Parquet, in CSV and in a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.engine.sql.axes import is_null
from duckanon.engine.sql.relations import call, cast, col, named, number, subquery, text
from duckanon.errors import PrivacyViolation

if TYPE_CHECKING:
    from duckanon.engine.base import Engine


def fingerprint(engine: Engine, relation: exp.Query, columns: Sequence[str]) -> dict[str, Any]:
    """Return the number of rows and a hash of their texts that does not depend on their order.

    It is the sum of the rows' MD5, in two halves. It detects damage and lost, repeated or changed rows, but not rows
    that somebody constructed to have the same sum.
    """
    row = exp.select(named(call("concat", *(_cell_text(c) for c in columns)), "row")).from_(
        subquery(relation.copy(), "r")
    )
    halves = [
        exp.func("COALESCE", exp.Sum(this=call(function, col("row"))), number(0))
        for function in ("md5_number_lower", "md5_number_upper")
    ]
    sums = engine.row(exp.select(exp.Count(this=exp.Star()), *halves).from_(subquery(row, "t")))
    return {"rows": int(sums[0]), "content": f"{int(sums[1]):x}-{int(sums[2]):x}"}


def _cell_text(column: str) -> exp.Expr:
    """Return a cell's text after its length, so that no two rows look alike; NULL has neither."""
    value = cast(col(column), "VARCHAR")
    long = cast(call("length", value), "VARCHAR")
    missing = is_null(col(column))
    return exp.case().when(missing, text("-")).else_(call("concat", long, text(":"), value.copy()))


def require_same_rows(engine: Engine, first: exp.Query, second: exp.Query, columns: Sequence[str]) -> dict[str, Any]:
    """Raise unless two relations hold the same rows, as texts; return their fingerprint."""
    expected = fingerprint(engine, first, columns)
    if fingerprint(engine, second, columns) != expected:
        raise PrivacyViolation(
            "The gate refused the release: read again from its target, it does not hold the rows that were checked. "
            "Nothing was published."
        )
    return expected
