"""Downcoding: predicates from published bounds that single somebody out (Cohen 2022)."""

from __future__ import annotations

from typing import Any, ClassVar

from duckanon.assess.attacks.base import Attacker, Case, Finding, attackers
from duckanon.assess.attacks.downcoding_search import singled_out

_CLASSES = 2000
_WORK = 200_000_000
_SETTINGS = {
    "tight": "Bounds are the smallest and largest values of each class (bounds='tight'): not for release.",
    "cut": "Bounds come from the cuts between classes (bounds='cut'): they can be values of persons.",
}
_POINTS = ("median", "mode", "medoid")


@attackers.register("downcoding")
class Downcoding(Attacker):
    """Describes each class by its cells, and adds that one column has just the value of a published bound.

    Success is the share of such predicates that hold for exactly one row of the original; the base rate is the same
    with any other value of the cell, taken at random among those that occur in the table. Bounds that are somebody's
    value (``bounds="tight"``) give far more than that; those of a grid or of a hierarchy do not.

    A second finding takes the published tuples as they are: points such as medians or medoids may describe one person
    alone. Its base rate is that of tuples whose columns are put together at random. At most 2,000 classes are tried,
    fewer of large tables.

    References
    ----------
    A. Cohen, Attacks on deidentification's defenses, 2022.
    """

    summary: ClassVar[str] = "predicates made of published bounds that hold for one person alone"

    def needs(self, case: Case) -> str | None:
        return None if case.published else "quasi-identifiers"

    def run(self, case: Case) -> list[Finding]:
        import numpy as np

        sight = case.sight
        lines, everybody = sight.axes[: sight.quasi], sight.everybody
        draw = np.random.default_rng(case.settings.seed)
        view = sight.view(range(sight.quasi))
        most = max(50, min(_CLASSES, _WORK // max(len(everybody), 1)))
        chosen = np.sort(draw.permutation(len(view.cells))[:most])
        cells = view.cells[chosen]
        points, weights = np.unique(everybody.points[:, : sight.quasi], axis=0, return_counts=True)
        found = singled_out(lines, cells, points, weights)
        mixed = np.stack([draw.permutation(column) for column in cells.T], axis=1)
        chance = singled_out(lines, mixed, points, weights)
        total = len(view.cells) if len(cells) < len(view.cells) else None
        findings = []
        if found.bounds:
            findings.append(
                Finding(
                    attack=self.name,
                    success=found.bounds_hit / found.bounds,
                    base_rate=found.bounds_chance / found.bounds,
                    rows=found.bounds,
                    text="share of predicates with a published bound that hold for one person alone",
                    sampled_from=None if total is None else round(found.bounds * total / len(cells)),
                    remark=" ".join(filter(None, (_said(case, "bounds"), everybody.said))),
                )
            )
        findings.append(
            Finding(
                attack=self.name,
                success=found.tuples_hit / found.tuples,
                base_rate=chance.tuples_hit / chance.tuples,
                rows=found.tuples,
                text="share of published tuples that describe one person alone",
                sampled_from=total,
                remark=" ".join(filter(None, (_said(case, "output"), everybody.said))),
            )
        )
        return findings


def _said(case: Case, what: str) -> str:
    """Return what the settings of the release say to it, where they are known and unsafe."""
    plan: Any = None if case.release is None else case.release.plan
    if plan is None or not plan.algorithm.partitions:
        return ""
    if what == "bounds":
        return _SETTINGS.get(plan.bounds, "")
    kinds = [kind for kind in dict.fromkeys(plan.publication.kinds.values()) if kind in _POINTS]
    return f"Values of persons are published (output={kinds[0]!r})." if kinds else ""
