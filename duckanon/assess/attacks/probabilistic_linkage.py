"""Probabilistic record linkage: the published rows with the most evidence of being a person's.

Evidence is weighed by Fellegi and Sunter's model, estimated by EM from the counts of comparison patterns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from duckanon.assess.attacks.base import Attacker, Case, Finding, attackers
from duckanon.assess.attacks.guessing import linked, needs_secret
from duckanon.assess.attacks.linkage_space import Links, People, Projection

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


START = (0.9, 0.08, 0.02)
"""What EM begins with: how a value and the cell of the same person compare (agree, near, differ)."""
ROUNDS = 50
ENOUGH = 1e-6
"""EM ends when no probability moves by more."""
FLOOR = 1e-12


@dataclass(frozen=True)
class Model:
    """How columns compare in pairs that belong together (``m``) and in others (``u``), by column and level.

    ``share`` is the share of pairs that belong together.
    """

    m: Floats
    u: Floats
    share: float

    def weights(self, patterns: NDArray[np.int64]) -> Floats:
        """Return the weight of evidence of patterns, one row each with the level of every column: log2 of m/u."""
        import numpy as np

        ratio = np.log2(np.maximum(self.m, FLOOR) / np.maximum(self.u, FLOOR))
        return np.asarray(ratio[np.arange(patterns.shape[1]), patterns].sum(axis=1), dtype=np.float64)


def decoded(codes: NDArray[np.int64], columns: int) -> NDArray[np.int64]:
    """Return the level of each column in patterns that are written as numbers to base 3, the first column last.

    Examples
    --------
    >>> import numpy as np
    >>> decoded(np.array([5]), 3)
    array([[2, 1, 0]])
    """
    import numpy as np

    return np.stack([codes // 3**j % 3 for j in range(columns)], axis=1)


def estimate(patterns: NDArray[np.int64], counts: Floats, share: float) -> Model:
    """Estimate the model from distinct patterns and how many pairs have each.

    Pairs that do not belong together are nearly all there are: their probabilities begin as those of all pairs. The
    share of pairs that belong together begins as given.

    References
    ----------
    I. Fellegi and A. Sunter, A theory for record linkage, 1969; W. Winkler, Using the EM algorithm for weight
    computation in the Fellegi-Sunter model of record linkage, 1988.

    Examples
    --------
    >>> import numpy as np
    >>> patterns = np.array([[0, 0], [0, 2], [2, 0], [2, 2]])
    >>> model = estimate(patterns, np.array([100.0, 300.0, 300.0, 9300.0]), 0.01)
    >>> bool(model.m[0, 0] > 0.5 > model.u[0, 0])
    True
    """
    import numpy as np

    columns = patterns.shape[1]
    levels = [patterns == level for level in range(3)]

    def shares(weight: Floats) -> Floats:
        total = max(float(weight.sum()), FLOOR)
        return np.stack([(weight[:, None] * level).sum(axis=0) / total for level in levels], axis=1)

    m, u = np.tile(np.array(START), (columns, 1)), shares(counts)
    at = np.arange(columns)
    for _ in range(ROUNDS):
        # Logarithms: many columns would underflow.
        likelihoods = np.log(np.maximum(m, FLOOR))[at, patterns].sum(axis=1) + np.log(max(share, FLOOR))
        other = np.log(np.maximum(u, FLOOR))[at, patterns].sum(axis=1) + np.log(max(1 - share, FLOOR))
        belongs = 1 / (1 + np.exp(np.clip(other - likelihoods, -700, 700)))
        before = m, u, share
        m, u = shares(counts * belongs), shares(counts * (1 - belongs))
        share = float((counts * belongs).sum() / counts.sum())
        if max(np.abs(m - before[0]).max(), np.abs(u - before[1]).max(), abs(share - before[2])) < ENOUGH:
            break
    return Model(m, u, share)


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

    A cell agrees with a value that it covers, is near one within a tenth of the range, or differs. How telling
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
        findings = []
        for adversary, columns in case.space.adversaries().items():
            widest = sorted(columns, key=lambda j: (-len(case.space.axes[j].places), j))[:WIDEST]
            view = case.space.view(sorted(widest))
            most = max(min(case.settings.sample, PAIRS // len(view.cells)), 1)
            linking = _Linking(view, case.space.targets)
            findings += linked(self.name, case, adversary, view, linking.links, most)
        return findings


class _Linking:
    """Links people to the tuples of a view."""

    def __init__(self, view: Projection, people: People) -> None:
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

    def links(self, view: Projection, people: People) -> Links:
        """Return the tuples of the largest weight of each person."""
        import numpy as np

        from duckanon.kernels.linking import gather_heaviest, heaviest

        points = view.points(people)
        best, counts = np.empty(len(points)), np.empty(len(points), dtype=np.int64)
        heaviest(view.places, view.cells, points, NEAR, self.weights, best, counts)
        starts = np.concatenate(([0], np.cumsum(counts)))
        linked_tuples = np.empty(starts[-1], dtype=np.int64)
        gather_heaviest(view.places, view.cells, points, NEAR, self.weights, best, starts, linked_tuples)
        return Links(view, starts, linked_tuples, best)
