"""Linkability: whether two parts of what is known of a person meet in the same published row."""

from __future__ import annotations

from typing import ClassVar

from duckanon.assess.attacks.base import Attacker, Case, Finding, attackers
from duckanon.assess.attacks.linkage_space import FULL, People, Projection

PAIRS = 2 * 10**8
"""Most pairs of a person and a published tuple that are compared."""


@attackers.register("linkability")
class Linkability(Attacker):
    """Has two lists with different columns of the same people, and ties their rows to each other by the release.

    For either list the nearest published rows are found, by every second quasi-identifier and by the others; one row
    of each is drawn, and the two belong together if they are the same. The base rate draws both at random.

    References
    ----------
    Article 29 Working Party, Opinion 05/2014 on anonymisation techniques; M. Giomi et al., A unified framework for
    quantifying privacy risk in synthetic data, 2023, section 4.2.
    """

    summary: ClassVar[str] = "two lists of the same people tied to each other by the release"

    def needs(self, case: Case) -> str | None:
        return None if len(case.published) > 1 else "two quasi-identifiers"

    def run(self, case: Case) -> list[Finding]:
        space = case.space
        view = space.view(range(space.quasi))
        most = max(min(case.settings.sample, PAIRS // len(view.cells)), 1)
        people = space.targets.first(most)
        control = None if space.controls is None else _shared(view, space.controls.first(most))
        return [
            Finding(
                attack=self.name,
                adversary=FULL,
                success=float(_shared(view, people).mean()),
                base_rate=1 / space.published,
                rows=len(people),
                sampled_from=people.sampled_from,
                control=None if control is None else float(control.mean()),
                controls=0 if control is None else len(control),
                general=True,
                text="both halves of what is known lead to the same published row",
                allowed=case.allowed,
            )
        ]


def _shared(view: Projection, people: People):  # type: ignore[no-untyped-def]
    import numpy as np

    from duckanon.kernels.linking import both_near

    shared = np.empty(len(people))
    first = np.arange(len(view.columns)) % 2 == 0
    both_near(view.places, view.cells, view.sizes, view.points(people), first, shared)
    return shared
