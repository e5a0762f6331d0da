"""Probabilistic record linkage: the published rows with the most evidence of being a person's."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from duckanon.assess.attacks.base import Attacker, Case, Finding, attackers
from duckanon.assess.attacks.fellegi_sunter import Model, decoded, estimate
from duckanon.assess.attacks.guessing import linked, needs_secret
from duckanon.assess.attacks.sight import Links, People, View

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NEAR = 0.1
"""Values that differ by no more than this share of the column's range are near each other."""
WIDEST = 12
"""Most columns that are compared: the patterns are as many as 3 to the power of them."""
PAIRS = 4 * 10**8
"""Most pairs of a person and a published tuple that are compared; with more tuples, fewer people are attacked."""
TRAINED = 4 * 10**7
"""Most pairs from which the model is estimated."""


@attackers.register("probabilistic_linkage")
class ProbabilisticLinkage(Attacker):
    """Compares people with published rows column by column, and links each to the rows of the largest weight.

    A cell agrees with a value that it can stand for, is near one within a tenth of the range, or differs. How telling
    each is, is estimated by EM from all pairs, without knowing who is who (Fellegi and Sunter). What is guessed from
    the linked rows is as in ``distance_linkage``.

    References
    ----------
    I. Fellegi and A. Sunter, A theory for record linkage, 1969; N. Senavirathne and V. Torra, Systematic evaluation of
    probabilistic k-anonymity, section 5.2.
    """

    summary: ClassVar[str] = "guesses from the published rows with the most evidence of being a person's"

    def needs(self, case: Case) -> str | None:
        return needs_secret(case)

    def run(self, case: Case) -> list[Finding]:
        found = []
        for adversary, columns in case.sight.adversaries().items():
            told = sorted(columns, key=lambda j: (-len(case.sight.axes[j].places), j))[:WIDEST]
            view = case.sight.view(sorted(told))
            most = max(min(case.settings.sample, PAIRS // len(view.cells)), 1)
            linking = _Linking(view, case.sight.targets)
            found += linked(self.name, case, adversary, view, linking.links, most)
        return found


class _Linking:
    """Links people to the tuples of a view."""

    def __init__(self, view: View, people: People) -> None:
        import numpy as np

        from duckanon.kernels.linking import patterns

        columns = len(view.columns)
        counts = np.zeros(3**columns, dtype=np.int64)
        some = people.first(max(TRAINED // len(view.cells), 1))
        patterns(view.places, view.cells, view.sizes, view.points(some), NEAR, counts)
        present = np.flatnonzero(counts)
        self.model: Model = estimate(
            decoded(present, columns), counts[present].astype(np.float64), 1 / int(view.sizes.sum())
        )
        # The best pattern may be one that training has not met.
        self.weights: NDArray[np.float64] = self.model.weights(decoded(np.arange(3**columns), columns))

    def links(self, view: View, people: People) -> Links:
        """Return the tuples of the largest weight of each person."""
        import numpy as np

        from duckanon.kernels.linking import gather_heaviest, heaviest

        points = view.points(people)
        best, counts = np.empty(len(points)), np.empty(len(points), dtype=np.int64)
        heaviest(view.places, view.cells, points, NEAR, self.weights, best, counts)
        starts = np.concatenate(([0], np.cumsum(counts)))
        found = np.empty(starts[-1], dtype=np.int64)
        gather_heaviest(view.places, view.cells, points, NEAR, self.weights, best, starts, found)
        return Links(view, starts, found, best)
