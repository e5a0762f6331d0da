"""Numbers of 128 bits, which ``sum`` gives and Parquet cannot hold, as decimals."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from duckanon.engine.sql.relations import Column, call, cast, col, named, subquery

if TYPE_CHECKING:
    from duckanon.engine.base import Engine
    from duckanon.io.source import Relation

_HUGE, _WIDEST = ("HUGEINT", "UHUGEINT"), "DECIMAL(38,0)"


def with_decimals(engine: Engine, relation: Relation, read: bool) -> Relation:
    """Return a relation whose numbers of 128 bits are decimals; a column with 39 digits stays, and is text to all.

    Where rows are not to be ``read`` no column is taken to have so many.
    """
    huge = [c.name for c in relation.columns if c.type.upper() in _HUGE]
    if huge and read:
        lost = [exp.and_(_known(col(name)), exp.Not(this=_known(_tried(name)))) for name in huge]
        query = exp.select(*(call("count_if", found) for found in lost)).from_(subquery(relation.query, "s"))
        huge = [name for name, count in zip(huge, engine.row(query), strict=True) if not count]
    if not huge:
        return relation
    columns = tuple(Column(c.name, _WIDEST) if c.name in huge else c for c in relation.columns)
    own = [named(cast(col(c.name), _WIDEST), c.name) if c.name in huge else col(c.name) for c in columns]
    return replace(relation, query=exp.select(*own).from_(subquery(relation.query, "s")), columns=columns)


def _tried(name: str) -> exp.Expr:
    return exp.TryCast(this=col(name), to=exp.DataType.build(_WIDEST, dialect="duckdb"))


def _known(value: exp.Expr) -> exp.Expr:
    return exp.Not(this=exp.Is(this=value, expression=exp.null()))


__all__ = ["with_decimals"]
