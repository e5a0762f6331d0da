"""The gate for permuted values: within hidden groups, blocks of columns were permuted, and nothing else.

The evidence is a private table with one row for each published row: the quasi-identifiers of the source (``s_j``),
those published in their place (``r_j``), what is published beside them (``p_i``), the group, and the person where
persons are counted. Its rows are compared with those of the source and of the file, as multisets, so that what holds of
it holds of them. Nothing here knows how groups or permutations were chosen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.engine.sql.relations import call, cast, col, named, number, same, subquery, table, union_all
from duckanon.errors import PrivacyViolation
from duckanon.recoding.base import GROUP, PERSON, Evidence

if TYPE_CHECKING:
    from duckanon.engine.base import Engine

_SURE = 44.0
"""A block stays where it was in the whole table by chance with a probability below 2 to the power of -63."""
_NEAR = 1e-9
"""More than the rounding error of a share."""


def require_source(
    engine: Engine, evidence: Evidence, source: exp.Query, expressions: Sequence[exp.Expr], params: Mapping[str, Any]
) -> None:
    """Raise unless the evidence has rows of the source, each at most as often as the source.

    ``expressions`` are the quasi-identifiers, the other published columns and the person, as the source has them.
    """
    person = [col(PERSON)] if evidence.persons else []
    mine = _signed([*evidence.originals, *evidence.others, *person], table(evidence.table), 1)
    theirs = _signed(expressions, subquery(source, "s"), -1)
    more = exp.GT(this=col("d"), expression=number(0))
    problem = "the rows that were checked are not those of the source"
    _require_none(engine, [mine, theirs], len(expressions), more, problem, params)


def require_file(engine: Engine, evidence: Evidence, written: exp.Query) -> None:
    """Raise unless the evidence has exactly the rows that are published."""
    mine = _signed([*evidence.published, *evidence.others], table(evidence.table), 1)
    names = (*evidence.quasi, *evidence.extra)
    theirs = _signed([col(name) for name in names], subquery(written, "w"), -1)
    other = exp.NEQ(this=col("d"), expression=number(0))
    _require_none(engine, [mine, theirs], len(names), other, "the file does not hold the rows that were checked")


def _signed(columns: Sequence[exp.Expr], rows: exp.Expr, sign: int) -> exp.Select:
    """Return the columns as ``x_0``, ``x_1``, ..., and ``d``, which is 1 for rows of one side and -1 for the other."""
    found = [named(c.copy(), f"x_{i}") for i, c in enumerate(columns)]
    return exp.select(*found, named(number(sign), "d")).from_(rows)


def _require_none(
    engine: Engine,
    sides: Sequence[exp.Query],
    width: int,
    wrong: exp.Expr,
    problem: str,
    params: Mapping[str, Any] | None = None,
) -> None:
    """Raise where ``wrong`` holds of the difference between the two sides' counts of a row.

    NULL is a value like any other. One count is much faster than EXCEPT ALL.
    """
    left = exp.select(named(exp.Sum(this=col("d")), "d")).from_(subquery(union_all(list(sides)), "b"))
    left = left.group_by(*(col(f"x_{i}") for i in range(width)))
    (rows,) = engine.row(exp.select(exp.Count(this=exp.Star())).from_(subquery(left, "l")).where(wrong), params)
    if rows:
        raise PrivacyViolation(f"The gate refused the release: {problem}.")


def require_blocks(evidence: Evidence) -> None:
    """Raise unless every quasi-identifier is in one block, and every block has at least two, if there are two."""
    listed = [name for block in evidence.blocks for name in block]
    if sorted(listed) != sorted(evidence.quasi):
        raise PrivacyViolation("The gate refused the release: a quasi-identifier is not in exactly one block.")
    if len(evidence.quasi) > 1 and min(len(block) for block in evidence.blocks) < 2:
        raise PrivacyViolation("The gate refused the release: a block has one column alone.")


def count_groups(engine: Engine, evidence: Evidence) -> str:
    """Create ``classes(class_id, n, suppressed, rows)`` of the groups; n counts persons where there are any."""
    rows = exp.Count(this=exp.Star())
    members: exp.Expr = rows.copy()
    if evidence.persons:
        # All rows without a person count as one more person.
        without_person = exp.case().when(exp.Is(this=col(PERSON), expression=exp.null()), number(1)).else_(number(0))
        distinct = call("count", exp.Distinct(expressions=[col(PERSON)]))
        members = exp.Add(this=distinct, expression=exp.Max(this=without_person))
    query = exp.select(
        named(col(GROUP), "class_id"),
        named(cast(members, "BIGINT"), "n"),
        named(exp.false(), "suppressed"),
        named(cast(rows, "BIGINT"), "rows"),
    )
    created = engine.fresh("hidden_groups")
    engine.create(created, query.from_(table(evidence.table)).group_by(col(GROUP)))
    return created


def count_blocks(engine: Engine, evidence: Evidence, groups: str) -> str:
    """Create ``permuted_blocks(class_id, block, n, suppressed, strayed, stuck, linkage)``.

    For every block in every group: how many of its tuples only the source or only the release has there (``strayed``),
    whether it had to move and did not (``stuck``), and the most probable link of the group, for an adversary who knows
    that blocks were drawn again.

    Notes
    -----
    Of n members whose tuples can stand in M different ways, a block stays where it was with the probability 1 / M. An
    adversary who knows that it was drawn again can rule that out, so that a link has a probability of at most
    1 / (n (1 - sum of 1 / M)), the sum being over the blocks that are drawn again. That is at most 1 / k if each of B
    blocks is only drawn again where 1 / M is at most (1 - k / n) / B.
    """
    parts: list[exp.Query] = []
    for number_of, names in enumerate(evidence.blocks):
        parts.append(_block(evidence, number_of, names))
    counted = union_all(parts)
    block, unmoved = col("block", "b"), exp.EQ(this=col("moved", "b"), expression=number(0))
    ways = exp.Sub(this=_log_factorial(col("rows", "g")), expression=col("alike", "b"))
    chance = exp.func("EXP", exp.Neg(this=exp.paren(ways.copy())))
    size = cast(col("n", "g"), "DOUBLE")
    share = exp.Div(this=number(float(evidence.k)), expression=size)
    budget = exp.Div(
        this=exp.paren(exp.Sub(this=number(1.0), expression=share)), expression=number(float(len(evidence.blocks)))
    )
    several = exp.GT(this=col("kinds", "b"), expression=number(1))
    again: exp.Expr = exp.false()
    must: exp.Expr = exp.false()
    if evidence.redraws:
        again = exp.and_(several, exp.LTE(this=chance, expression=_times(budget, 1 + _NEAR)))
        must = exp.and_(several.copy(), exp.LTE(this=chance.copy(), expression=_times(budget.copy(), 1 - _NEAR)))
    all_groups = [exp.Window(this=exp.Sum(this=e), partition_by=[block.copy()]) for e in (col("moved", "b"), ways)]
    nowhere = exp.and_(
        exp.EQ(this=all_groups[0], expression=number(0)), exp.GT(this=all_groups[1], expression=number(_SURE))
    )
    left_out = exp.case().when(again, chance.copy()).else_(number(0.0))
    query = (
        exp.select(
            named(col(GROUP, "b"), "class_id"),
            block,
            col("n", "g"),
            named(exp.false(), "suppressed"),
            col("strayed", "b"),
            named(exp.or_(exp.and_(must, unmoved), nowhere), "stuck"),
            named(exp.Window(this=exp.Sum(this=left_out), partition_by=[col(GROUP, "b")]), "left_out"),
        )
        .from_(subquery(counted, "b"))
        .join(table(groups, "g"), on=exp.EQ(this=col("class_id", "g"), expression=col(GROUP, "b")))
    )
    kept = exp.paren(exp.Sub(this=number(1.0), expression=col("left_out")))
    linkage = exp.Div(this=number(1.0), expression=exp.paren(exp.Mul(this=col("n"), expression=kept)))
    columns = [col(c) for c in ("class_id", "block", "n", "suppressed", "strayed", "stuck")]
    created = engine.fresh("permuted_blocks")
    engine.create(created, exp.select(*columns, named(linkage, "linkage")).from_(subquery(query, "q")))
    return created


def highest_linkage(engine: Engine, evidence: Evidence) -> float:
    """Return the highest probability of a link between a person and a row, over all groups."""
    groups = count_groups(engine, evidence)
    blocks = count_blocks(engine, evidence, groups)
    (highest,) = engine.row(exp.select(exp.Max(this=col("linkage"))).from_(table(blocks)))
    engine.drop(groups, blocks)
    return float(highest)


def _times(value: exp.Expr, factor: float) -> exp.Expr:
    return exp.Mul(this=exp.paren(value), expression=number(factor))


def _log_factorial(count: exp.Expr) -> exp.Expr:
    return call("lgamma", cast(exp.paren(exp.Add(this=count, expression=number(1))), "DOUBLE"))


def _block(evidence: Evidence, position: int, names: Sequence[str]) -> exp.Query:
    """Return ``(group_id, block, strayed, kinds, alike, moved)`` of one block in every group."""
    sides: list[exp.Query] = []
    for side, (before, after) in (("s", (1, 0)), ("r", (0, 1))):
        tuples = [named(c, f"t_{i}") for i, c in enumerate(evidence.block(names, side))]
        counts = [named(number(before), "before"), named(number(after), "after")]
        sides.append(exp.select(col(GROUP), *tuples, *counts).from_(table(evidence.table)))
    totals = [named(exp.Sum(this=col(c)), c) for c in ("before", "after")]
    tuples_of = exp.select(col(GROUP), *(col(f"t_{i}") for i in range(len(names))), *totals)
    tuples_of = tuples_of.from_(subquery(union_all(sides), "u")).group_by(
        col(GROUP), *(col(f"t_{i}") for i in range(len(names)))
    )
    difference = exp.Abs(this=exp.Sub(this=col("before"), expression=col("after")))
    there = exp.case().when(exp.GT(this=col("before"), expression=number(0)), number(1)).else_(number(0))
    counted = exp.select(
        col(GROUP),
        named(cast(exp.Sum(this=difference), "BIGINT"), "strayed"),
        named(cast(exp.Sum(this=there), "BIGINT"), "kinds"),
        named(exp.Sum(this=_log_factorial(col("before"))), "alike"),
    )
    counted = counted.from_(subquery(tuples_of, "t")).group_by(col(GROUP))
    pairs = zip(evidence.block(names, "s"), evidence.block(names, "r"), strict=True)
    stays = exp.and_(*(same(before, after) for before, after in pairs))
    moves = exp.case().when(stays, number(0)).else_(number(1))
    moved = exp.select(col(GROUP), named(cast(exp.Sum(this=moves), "BIGINT"), "moved"))
    moved = moved.from_(table(evidence.table)).group_by(col(GROUP))
    query = exp.select(
        col(GROUP, "c"),
        named(cast(number(position), "BIGINT"), "block"),
        *(col(c, "c") for c in ("strayed", "kinds", "alike")),
        col("moved", "m"),
    )
    on = exp.EQ(this=col(GROUP, "m"), expression=col(GROUP, "c"))
    return query.from_(subquery(counted, "c")).join(subquery(moved, "m"), on=on)
