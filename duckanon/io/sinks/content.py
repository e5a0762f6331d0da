"""What rows hold, whatever their order: a fingerprint that is the same in Parquet, in CSV and in a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.engine.sql.relations import call, cast, col, named, number, subquery, text
from duckanon.errors import PrivacyViolation

if TYPE_CHECKING:
    from duckanon.engine.base import Engine


def fingerprint(engine: Engine, relation: exp.Query, columns: Sequence[str]) -> dict[str, Any]:
    """Return the number of rows and a hash of their texts that does not depend on their order.

    It is the sum of the rows' MD5, in two halves: it finds damage, and what was lost, repeated or changed on the way.
    It is no proof against somebody who makes rows to fit.
    """
    row = exp.select(named(call("concat", *(_told(c) for c in columns)), "row")).from_(subquery(relation.copy(), "r"))
    halves = [
        exp.func("COALESCE", exp.Sum(this=call(function, col("row"))), number(0))
        for function in ("md5_number_lower", "md5_number_upper")
    ]
    found = engine.row(exp.select(exp.Count(this=exp.Star()), *halves).from_(subquery(row, "t")))
    return {"rows": int(found[0]), "content": f"{int(found[1]):x}-{int(found[2]):x}"}


def _told(column: str) -> exp.Expr:
    """Return a cell's text after its length, so that no two rows look alike; NULL has neither."""
    value = cast(col(column), "VARCHAR")
    long = cast(call("length", value), "VARCHAR")
    missing = exp.Is(this=col(column), expression=exp.null())
    return exp.case().when(missing, text("-")).else_(call("concat", long, text(":"), value.copy()))


def require_same_rows(engine: Engine, first: exp.Query, second: exp.Query, columns: Sequence[str]) -> dict[str, Any]:
    """Raise unless two relations hold the same rows, as texts; return their fingerprint."""
    found = fingerprint(engine, first, columns)
    if fingerprint(engine, second, columns) != found:
        raise PrivacyViolation(
            "The gate refused the release: read again from its target, it does not hold the rows that were checked. "
            "Nothing was published."
        )
    return found
