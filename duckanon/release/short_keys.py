"""Numbers that stand for the values of columns where the gate counts classes of many rows.

A number takes the place of a value only after it was counted, on the relation itself, that no two values of the column
have the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

from sqlglot import exp

from duckanon.engine.sql.relations import call, cast, col, number, subquery, table, text

if TYPE_CHECKING:
    from duckanon.engine.base import Engine

FEW_VALUES = 1_000
"""Columns of up to so many values share a word of 64 bits with others."""
_WORD = 64
_BUCKET_BITS = 13
"""Hashes that begin alike in so many bits are turned around together: the more bits, the fewer rows."""


def short_keys(engine: Engine, relation: exp.Query, columns: Sequence[str]) -> list[exp.Expr]:
    """Return expressions that tell the rows of a relation apart just as its columns do, and are compared sooner.

    The number of a value is a hash of it, NULL being a value, too. Columns of few values take only as many bits of
    their hashes as tell those values apart, and share a word. A column whose values cannot be told apart so stays as
    it is.
    """
    texts = {c.name for c in engine.columns(relation) if c.type == "VARCHAR"}
    keys: list[exp.Expr] = []
    few: list[tuple[str, str, exp.Expr, list[int]]] = []
    for name in columns:
        values = engine.fresh("values")
        count = engine.create(values, exp.select(col(name)).distinct().from_(subquery(relation.copy(), "s")))
        digest = _digest(engine, values, name, name in texts)
        if digest is not None and count <= FEW_VALUES:
            hashes = engine.rows(exp.select(digest.copy()).from_(table(values)))
            few.append((name, values, digest, [int(h) for (h,) in hashes]))
            continue
        keys.append(col(name) if digest is None else digest)
        engine.drop(values)
    keys += _packed(engine, few)
    engine.drop(*(values for _, values, _, _ in few))
    return keys


def hashed(value: exp.Expr) -> exp.Expr:
    """Return the database's hash of a value, 64 bits without a sign."""
    return call("hash", value)


def _differ(engine: Engine, values: str, digest: exp.Expr) -> bool:
    """Say whether a table of different values has as many different numbers."""
    different = call("count", exp.Distinct(expressions=[digest.copy()]))
    known, numbers = engine.row(exp.select(exp.Count(this=exp.Star()), different).from_(table(values)))
    return bool(known == numbers)


def _digest(engine: Engine, values: str, name: str, is_text: bool) -> exp.Expr | None:
    """Return a hash that all values of a table have for themselves; None where none is found.

    Long texts that look alike do collide now and then. Those are turned around before they are hashed, and with them
    the others whose hashes begin alike; that is a small part of the rows.
    """
    own = hashed(col(name))
    if _differ(engine, values, own):
        return own
    if not is_text:
        return None
    several = exp.select(exp.alias_(own.copy(), "h")).from_(table(values)).group_by(own.copy())
    several = several.having(exp.GT(this=exp.Count(this=exp.Star()), expression=number(1)))
    bucket = exp.BitwiseRightShift(this=col("h"), expression=number(_WORD - _BUCKET_BITS))
    doubtful = {int(b) for (b,) in engine.rows(exp.select(bucket).distinct().from_(subquery(several, "d")))}
    marks = text("".join("1" if b in doubtful else "0" for b in range(1 << _BUCKET_BITS)))
    place = cast(exp.BitwiseRightShift(this=own.copy(), expression=number(_WORD - _BUCKET_BITS)), "INTEGER")
    is_doubtful = exp.EQ(this=call("get_bit", cast(marks, "BIT"), place), expression=number(1))
    turned = exp.case().when(is_doubtful, hashed(call("reverse", col(name)))).else_(own)
    return turned if _differ(engine, values, turned) else None


def _packed(engine: Engine, columns: Sequence[tuple[str, str, exp.Expr, list[int]]]) -> list[exp.Expr]:
    """Return words that hold some bits of the hashes of every column, those of most values first."""
    keys: list[exp.Expr] = []
    parts: list[exp.Expr] = []
    at = 0
    for name, values, digest, hashes in sorted(columns, key=lambda c: -len(c[3])):
        window = _window(hashes, at)
        if window is None:
            keys.append(_joined(parts))
            parts, at = [], 0
            window = _window(hashes, at)
        part = None if window is None else _part(digest, *window, at)
        if window is None or part is None or not _differ(engine, values, part):
            keys.append(col(name))
            continue
        parts.append(part)
        at += window[1]
    return [*keys, _joined(parts)] if parts else keys


def _joined(parts: Sequence[exp.Expr]) -> exp.Expr:
    return reduce(lambda a, b: exp.BitwiseOr(this=a, expression=b), parts)


def _part(digest: exp.Expr, shift: int, width: int, at: int) -> exp.Expr:
    """Return a hash moved down, and of that the bits that begin at a place."""
    # Moving down and masking never overflow, so that the database does both once for each value that a column lists.
    moved = exp.paren(exp.BitwiseRightShift(this=digest, expression=number(shift))) if shift else digest
    mask = cast(number(((1 << width) - 1) << at), "UBIGINT")
    return exp.paren(exp.BitwiseAnd(this=moved, expression=mask))


def _window(hashes: Sequence[int], at: int) -> tuple[int, int] | None:
    """Return how far to move hashes down, and how many of their bits from a place on tell all of them apart."""
    for width in range(max(1, (len(hashes) - 1).bit_length()), _WORD - at + 1):
        for shift in range(_WORD - at - width + 1):
            if len({(h >> (shift + at)) & ((1 << width) - 1) for h in hashes}) == len(hashes):
                return shift, width
    return None
