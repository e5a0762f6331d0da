"""Published texts as enumerations: short codes to sort by. They are texts again before they are written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from duckanon.engine.sql.axes import present
from duckanon.engine.sql.relations import call, named

if TYPE_CHECKING:
    from duckanon.engine.base import Engine

MANY_TEXTS = 1_000_000
"""Most texts of a column that are enumerated, where the database looks up in many of them quickly."""
ENUM_LIMIT = 50_000
"""Beyond this many texts in a column, an enumeration costs more to look up in than its short codes save in the sort."""


def enumerated(
    engine: Engine, source: exp.Table, keys: Sequence[exp.Expr], found: exp.Expr, most: int | None = None
) -> exp.Query:
    """Return ``(keys, q)`` of a table with its texts enumerated: of what is published, and nothing else.

    ``most`` is given where none of them is NULL, and there are at most so many.
    """
    if most is None or most > _limit(engine):
        different = call("count", exp.Distinct(expressions=[found]))
        (most,) = engine.row(exp.select(different).from_(source, copy=False))
    return exp.select(*keys, named(short(engine, source, found, most), "q")).from_(source, copy=False)


def short(engine: Engine, source: exp.Table, found: exp.Expr, most: int) -> exp.Expr:
    """Return a text of a table as a value of an enumeration, unless there are too many."""
    if not 0 < most <= _limit(engine):
        return found
    enum = engine.fresh("enum")
    texts = exp.select(found).distinct(copy=False).from_(source, copy=False).where(present(found), copy=False)
    engine.create_enum(enum, texts.order_by(found, copy=False))
    return exp.Cast(this=found, to=exp.DataType.build(enum, udt=True))


def _limit(engine: Engine) -> int:
    return MANY_TEXTS if engine.writes_used_texts else ENUM_LIMIT


__all__ = ["ENUM_LIMIT", "MANY_TEXTS", "enumerated", "short"]
