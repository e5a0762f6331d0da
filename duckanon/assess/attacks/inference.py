"""Inference: an adversary who knows all other columns guesses the sensitive value from the nearest published rows."""

from __future__ import annotations

from typing import ClassVar

from duckanon.assess.attacks.base import Attacker, Case, Finding, attackers
from duckanon.assess.attacks.guessing import guessed, needs_secret, secrets
from duckanon.assess.attacks.linkage_space import ALL


@attackers.register("inference")
class Inference(Attacker):
    """Knows all published columns of a person but one, and reads that one off the nearest published rows.

    This is the third of the criteria by which data are anonymous under the GDPR, as anonymeter measures it, and the
    fully informed adversary of Senavirathne and Torra. Distances and guesses are those of ``distance_linkage``.

    References
    ----------
    Article 29 Working Party, Opinion 05/2014 on anonymisation techniques; M. Giomi et al., A unified framework for
    quantifying privacy risk in synthetic data, 2023, section 4.3; N. Senavirathne and V. Torra, Systematic evaluation
    of probabilistic k-anonymity, section 5.2.
    """

    summary: ClassVar[str] = "guesses of one column from all others"

    def needs(self, case: Case) -> str | None:
        return needs_secret(case) if case.released.sensitive else "a sensitive column"

    def run(self, case: Case) -> list[Finding]:
        space = case.space
        findings = []
        for secret in secrets(case):
            view = space.view([j for j in range(len(space.axes)) if j != secret.column])
            hits = view.nearest(space.targets).guessed(secret, space.targets)
            controls = space.controls
            theirs = None if controls is None else view.nearest(controls).guessed(secret, controls)
            findings.append(guessed(self.name, case, ALL, secret, hits, theirs, space.targets))
        return findings
