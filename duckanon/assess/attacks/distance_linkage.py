"""Distance-based record linkage: the published rows nearest to a person are taken for the person's."""

from __future__ import annotations

from typing import ClassVar

from duckanon.assess.attacks.base import Attacker, Case, Finding, attackers
from duckanon.assess.attacks.guessing import linked, needs_secret
from duckanon.assess.attacks.linkage_space import Projection


@attackers.register("distance_linkage")
class DistanceLinkage(Attacker):
    """Finds the nearest published rows by Gower's distance, and guesses the sensitive value that most of them have.

    A cell is as far from a value as the nearest value that it covers. All rows that are equally near have a
    vote, and numbers are guessed by their median. Where a ``key`` identifies persons, one of those rows is picked at
    random.

    References
    ----------
    N. Senavirathne and V. Torra, Systematic evaluation of probabilistic k-anonymity, section 5.2; J. Gower, A general
    coefficient of similarity and some of its properties, 1971.
    """

    summary: ClassVar[str] = "guesses from the published rows nearest to a person"

    def needs(self, case: Case) -> str | None:
        return needs_secret(case)

    def run(self, case: Case) -> list[Finding]:
        findings = []
        for adversary, columns in case.space.adversaries().items():
            view, most = case.space.view(columns), case.settings.sample
            findings += linked(self.name, case, adversary, view, Projection.nearest, most)
        return findings
