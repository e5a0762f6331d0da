"""Order: whether a row of the release stands about where it stood in the original."""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp

from duckanon.assess.attacks.base import Attacker, Case, Finding, attackers
from duckanon.assess.attacks.position import carried_rows, numbered
from duckanon.engine.sql.relations import cast, col, conjunction, named, number, same, subquery

_WINDOW = 0.01


@attackers.register("order")
class Order(Attacker):
    """Looks for rows about where they stood: suppressed rows and small changes do not hide an order that was kept.

    Rows are recognized by the columns that were carried over unchanged, where no other row of either table has the
    same values in them. Success is the share of such rows whose place, as a share of the file, is within 1 % of their
    place in the original; the base rate is what a random order gives.
    """

    summary: ClassVar[str] = "rows that stand within 1 % of their place in the original"

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
                text="share of rows alone with their values that stand within 1 % of their place in the original",
            )
        ]
