"""Class linkage: the prosecutor finds the class of a person whose quasi-identifiers are known."""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp

from duckanon.assess.assessed_table import AssessedTable
from duckanon.assess.attacks.base import Attacker, Case, Finding, attackers
from duckanon.assess.attacks.linkage_space import People
from duckanon.engine.sql.relations import cast, col, conjunction, named, number, same, subquery, table


@attackers.register("linkage")
class Linkage(Attacker):
    """Finds the published rows that a known person may be behind, and picks one of them.

    Success is the mean over all rows of the original of 1 / number of those rows, 0 where there are none; the base
    rate is picking a released row at random. Where the release was recoded on levels, every row is recoded as it was,
    and falls into one class. Else the rows are those whose cells all cover the person's values; they are as
    many as the class has, or more where regions overlap, and of a sample of people. Whether one of them is the
    person's own, only a ``key`` can show; without one, the figure is an upper bound. Controls have no row of their own:
    there is nothing to find of them.

    References
    ----------
    K. El Emam and F. Dankar, Protecting privacy using k-anonymity, 2008 (the prosecutor).
    """

    summary: ClassVar[str] = "chance to pick the right one of the rows that a known person may be behind"

    def needs(self, case: Case) -> str | None:
        hidden = case.release is not None and case.release.plan.algorithm.name == "probabilistic"
        return (
            "a key: values are permuted, and whose row one is cannot be seen"
            if hidden and not case.settings.key
            else None
        )

    def run(self, case: Case) -> list[Finding]:
        if case.mappings is None or case.settings.key is not None:
            return [self._covered(case)]
        rows, success = self._recoded(case, case.original)
        (members,) = case.original.engine.row(
            exp.select(exp.Sum(this=col("n"))).from_(table(case.relations["classes"]))
        )
        return [
            Finding(
                attack=self.name,
                adversary="full",
                success=success,
                base_rate=1 / int(members),
                rows=rows,
                text="the member picked from a known person's class is the right one",
                allowed=case.allowed,
            )
        ]

    def _recoded(self, case: Case, people: AssessedTable) -> tuple[int, float]:
        """Return the number of people and the mean chance, each recoded as the release was."""
        assert case.mappings is not None
        width = len(case.mappings)
        persons = exp.select(
            *(named(cast(e.copy(), "VARCHAR"), f"t_{j}") for j, e in enumerate(people.quasi.values())),
            named(exp.Count(this=exp.Star()), "n"),
        )
        persons = persons.from_(subquery(people.query, "s")).group_by(exp.var("ALL"))
        labelled = exp.select(col("n", "k")).from_(subquery(persons, "k"))
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
        rows, hits = people.engine.row(query.join(table(case.relations["classes"], "c"), on=on, join_type="left"))
        return int(rows), float(hits) / int(rows)

    def _covered(self, case: Case) -> Finding:
        import numpy as np

        space = case.space
        view = space.view(range(space.quasi))

        def chance(people: People) -> float:
            links = view.nearest(people)
            right = 1 / links.rows if people.own is None else links.identified(people.own)
            return float(np.where(links.far == 0, right, 0.0).mean())

        has_key = space.targets.own is not None
        return Finding(
            attack=self.name,
            adversary="full",
            success=chance(space.targets),
            base_rate=1 / space.published,
            rows=len(space.targets),
            sampled_from=space.targets.sampled_from,
            text="the row picked from those whose cells cover a known person's values is the right one",
            allowed=case.allowed,
            remark="" if has_key else "At most: whether a row that fits is the person's own, only a key can show.",
        )
