"""Class linkage: the prosecutor looks up the class of a person whose quasi-identifiers are known."""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp

from duckanon.disclosure.attacks.base import Attacker, Case, Finding, attackers
from duckanon.sqlgen.relations import cast, col, conjunction, named, number, same, subquery, table


@attackers.register("linkage")
class Linkage(Attacker):
    """Recodes every row of the original as the release was, and picks a member of the class it falls into.

    Success is the mean over all rows of the original of 1 / size of the class, 0 for rows whose class is not in the
    release; the base rate is picking a released member at random.

    References
    ----------
    K. El Emam and F. Dankar, Protecting privacy using k-anonymity, 2008 (the prosecutor).
    """

    summary: ClassVar[str] = "chance to pick the right member of the class that a known person falls into"

    def needs(self, case: Case) -> str | None:
        if case.mappings is not None:
            return None
        return "a recoding on levels: a Release of such, or hierarchies with one level for each column"

    def run(self, case: Case) -> list[Finding]:
        assert case.mappings is not None
        original, engine = case.original, case.original.engine
        width = len(case.mappings)
        known = exp.select(
            *(named(cast(e.copy(), "VARCHAR"), f"t_{j}") for j, e in enumerate(original.quasi.values())),
            named(exp.Count(this=exp.Star()), "n"),
        )
        known = known.from_(subquery(original.query, "s")).group_by(exp.var("ALL"))
        labelled = exp.select(col("n", "k")).from_(subquery(known, "k"))
        for j, mapping in enumerate(case.mappings):
            labelled = labelled.select(named(col("label", f"m_{j}"), f"l_{j}"))
            labelled = labelled.join(
                subquery(mapping.copy(), f"m_{j}"),
                on=same(col(f"t_{j}", "k"), col("value", f"m_{j}")),
                join_type="left",
            )
        on = conjunction([same(col(f"l_{j}", "r"), cast(col(f"q_{j}", "c"), "VARCHAR")) for j in range(width)])
        share = exp.Div(this=cast(col("n", "r"), "DOUBLE"), expression=col("n", "c"))
        picked = exp.Coalesce(this=exp.Sum(this=share), expressions=[number(0)])
        query = exp.select(exp.Sum(this=col("n", "r")), picked).from_(subquery(labelled, "r"))
        rows, hits = engine.row(query.join(table(case.relations["classes"], "c"), on=on, join_type="left"))
        (members,) = engine.row(exp.select(exp.Sum(this=col("n"))).from_(table(case.relations["classes"])))
        return [
            Finding(
                attack=self.name,
                success=float(hits) / int(rows),
                base_rate=1 / int(members),
                rows=int(rows),
                text="mean chance to pick the right member of a known person's class",
            )
        ]
