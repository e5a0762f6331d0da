"""The order of the rows: whether rows of the release are where they were in the original."""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp

from duckanon.assess.assessed_table import AssessedTable
from duckanon.assess.attacks.base import Attacker, Case, Finding, attackers
from duckanon.engine.sql.relations import cast, col, conjunction, named, number, same, subquery
from duckanon.hierarchy.rules import ColumnType


@attackers.register("position")
class Position(Attacker):
    """Takes the rows in the order of both tables and compares the columns that were carried over unchanged.

    Success is the share of released rows that agree with the original's row of the same number; the base rate is the
    chance that a released row and a row of the original, both drawn at random, agree. An order that was preserved
    behind suppressed rows is found only up to the first of them.
    """

    summary: ClassVar[str] = "rows that agree with the original's row of the same number"

    def needs(self, case: Case) -> str | None:
        return None if case.carried else "a column that both tables have and that is no quasi-identifier"

    def run(self, case: Case) -> list[Finding]:
        original, released = (carried_rows(case, side) for side in (case.original, case.released))
        keys = [f"p_{j}" for j in range(len(case.carried))]
        equal = conjunction([same(col(k, "o"), col(k, "r")) for k in keys])
        hit = exp.case().when(equal, number(1)).else_(number(0))
        place = exp.EQ(this=col("i", "o"), expression=col("i", "r"))
        matched = exp.select(exp.Count(this=exp.Star()), exp.Sum(this=hit)).from_(subquery(numbered(released), "r"))
        engine = case.released.engine
        rows, hits = engine.row(matched.join(subquery(numbered(original), "o"), on=place, join_type="left"))
        agreeing = exp.Mul(this=cast(col("n", "o"), "DOUBLE"), expression=col("n", "r"))
        chance = exp.select(exp.Coalesce(this=exp.Sum(this=agreeing), expressions=[number(0)]))
        chance = chance.from_(subquery(_counted(released, keys), "r"))
        (pairs,) = engine.row(chance.join(subquery(_counted(original, keys), "o"), on=equal.copy()))
        return [
            Finding(
                attack=self.name,
                success=int(hits or 0) / int(rows),
                base_rate=float(pairs) / (int(rows) * case.original.rows()),
                rows=int(rows),
                text=f"share of rows that agree with the original's row of their number on {', '.join(case.carried)}",
            )
        ]


def carried_rows(case: Case, side: AssessedTable) -> exp.Select:
    """Return ``(p_0, ...)``: the columns that were carried over, so that those of both tables can be compared."""
    projection = []
    for j, name in enumerate(case.carried):
        value: exp.Expr = side.column(name)
        kinds = {ColumnType.parse(s.type_of(name)).kind for s in (case.original, case.released)}
        if len(kinds) > 1 or "category" in kinds:
            value = cast(value, "VARCHAR")
        projection.append(named(value, f"p_{j}"))
    return exp.select(*projection).from_(subquery(side.query, "s"))


def numbered(rows: exp.Select) -> exp.Select:
    """Return the rows with their numbers, ``i``."""
    number_of_row = exp.Window(this=exp.RowNumber())
    return exp.select(named(number_of_row, "i"), "*").from_(subquery(rows.copy(), "x"))


def _counted(rows: exp.Select, keys: list[str]) -> exp.Select:
    count = named(exp.Count(this=exp.Star()), "n")
    return (
        exp.select(*(col(k) for k in keys), count).from_(subquery(rows.copy(), "x")).group_by(*(col(k) for k in keys))
    )


_WINDOW = 0.01


@attackers.register("order")
class Order(Attacker):
    """Looks for rows near their old position: suppressed rows and small changes do not hide a preserved order.

    Rows are recognized by the columns that were carried over unchanged, where no other row of either table has the
    same values in them. Success is the share of such rows whose place, as a share of the file, is within 1 % of their
    place in the original; the base rate is what a random order gives.
    """

    summary: ClassVar[str] = "rows within 1 % of their place in the original"

    def needs(self, case: Case) -> str | None:
        return None if case.carried else "a column that both tables have and that is no quasi-identifier"

    def run(self, case: Case) -> list[Finding]:
        keys = [f"p_{j}" for j in range(len(case.carried))]
        sides = {}
        for alias, side in (("o", case.original), ("r", case.released)):
            alone = exp.EQ(this=exp.Count(this=exp.Star()), expression=number(1))
            place = exp.Div(
                this=exp.paren(exp.Sub(this=cast(exp.Min(this=col("i")), "DOUBLE"), expression=number(0.5))),
                expression=number(max(side.rows(), 1)),
            )
            query = exp.select(*(col(k) for k in keys), named(place, "place"))
            query = query.from_(subquery(numbered(carried_rows(case, side)), "n")).group_by(*(col(k) for k in keys))
            sides[alias] = query.having(alone)
        far = exp.Abs(this=exp.Sub(this=col("place", "o"), expression=col("place", "r")))
        near = exp.case().when(exp.LTE(this=far, expression=number(_WINDOW)), number(1)).else_(number(0))
        matched = exp.select(exp.Count(this=exp.Star()), exp.Sum(this=near)).from_(subquery(sides["r"], "r"))
        on = conjunction([same(col(k, "o"), col(k, "r")) for k in keys])
        rows, hits = case.released.engine.row(matched.join(subquery(sides["o"], "o"), on=on))
        if not rows:
            return []
        return [
            Finding(
                attack=self.name,
                success=int(hits or 0) / int(rows),
                base_rate=2 * _WINDOW - _WINDOW**2,
                rows=int(rows),
                text="share of rows with unique values that are within 1 % of their place in the original",
            )
        ]
