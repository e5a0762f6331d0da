"""Singling out: a description taken from the release that fits exactly one person."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from duckanon.assess.attacks.base import Attacker, Case, Finding, attackers
from duckanon.assess.attacks.linkage_space import ALL, FULL

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from duckanon.assess.attacks.linkage_space import Projection

SUBSETS = 24
"""Sets of columns from which descriptions are made."""
WIDEST = 5
"""Most columns of a description."""
MOST = 50
"""A description that fits more controls is one of many people."""


@attackers.register("singling_out")
class SinglingOut(Attacker):
    """Describes a person by some cells of one published row, the rarest first, and looks whether that fits one only.

    Two to five columns are drawn: quasi-identifiers only, or sensitive and other columns, too. Success is the share of
    descriptions that fit exactly one row of the original. A description of weight w fits exactly one of n rows by
    chance n w (1 - w)^(n - 1) times, at most 37 %: controls estimate w. The base rate puts the columns of
    descriptions together at random.

    References
    ----------
    Article 29 Working Party, Opinion 05/2014 on anonymisation techniques; A. Cohen and K. Nissim, Towards formalizing
    the GDPR's notion of singling out, 2020; M. Giomi et al., A unified framework for quantifying privacy risk in
    synthetic data, 2023, section 4.1.
    """

    summary: ClassVar[str] = "descriptions taken from the release that fit exactly one person"

    def needs(self, case: Case) -> str | None:
        return None if len(case.published) + len(case.carried) > 1 else "two columns"

    def run(self, case: Case) -> list[Finding]:
        space = case.space
        widths = {FULL: space.quasi, ALL: len(space.axes)}
        return [
            self._tried(case, who, width)
            for who, width in widths.items()
            if width > 1 and (who == FULL or width > space.quasi)
        ]

    def _tried(self, case: Case, adversary: str, width: int) -> Finding:
        import numpy as np

        space = case.space
        everybody, controls = space.everybody, space.others
        random = np.random.default_rng([case.settings.seed, 2])
        each = -(-min(case.settings.sample, 2000) // SUBSETS)
        successes, chance, other = [], [], []
        for columns in _subsets(width, random):
            view = space.view(columns)
            rarest = np.argsort(view.sizes + random.random(len(view.sizes)), kind="stable")[:each]
            cells = view.cells[rarest]
            fits = view.fitting(cells, everybody, 2)
            successes.append(fits == 1)
            mixed = _mixed(view, len(cells), random)
            chance.append(view.fitting(mixed, everybody, 2) == 1)
            if controls is not None:
                other.append(expected(view.fitting(cells, controls, MOST), len(controls), len(everybody)))
        hits, base = np.concatenate(successes), np.concatenate(chance)
        theirs = np.concatenate(other) if other else None
        return Finding(
            attack=self.name,
            adversary=adversary,
            success=float(hits.mean()),
            base_rate=float(base.mean()),
            rows=len(hits),
            control=None if theirs is None else float(theirs.mean()),
            controls=0 if theirs is None else len(theirs),
            general=True,
            text="a description taken from the release fits exactly one person",
            remark=everybody.sample_note,
        )


def expected(fits: NDArray[np.int64], controls: int, rows: int) -> NDArray[np.float64]:
    """Return the chance that descriptions fit exactly one of so many rows, by how many of the controls they fit.

    The weight of a description is not known: it has the posterior of Jeffreys' prior and the controls, a gamma
    distribution, and n w exp(-n w) is averaged over it.

    Examples
    --------
    >>> import numpy as np
    >>> [round(float(chance), 3) for chance in expected(np.array([0, 1, 50]), 1000, 1000)]
    [0.177, 0.265, 0.0]
    """
    import numpy as np

    shape = fits + 0.5
    share = controls / (controls + rows)
    return np.asarray(rows * shape / (controls + rows) * share**shape, dtype=np.float64)


def _subsets(columns: int, random: np.random.Generator) -> list[tuple[int, ...]]:
    """Return different sets of two to five columns."""
    subsets = set()
    for _ in range(SUBSETS):
        width = int(random.integers(2, min(columns, WIDEST) + 1))
        subsets.add(tuple(sorted(random.permutation(columns)[:width].tolist())))
    return sorted(subsets)


def _mixed(view: Projection, count: int, random: np.random.Generator) -> NDArray[np.int32]:
    """Return tuples whose cells are drawn column by column, as often as they are published."""
    import numpy as np

    share = view.sizes / view.sizes.sum()
    drawn = [random.choice(len(share), size=count, p=share) for _ in view.columns]
    return np.stack([view.cells[at, j] for j, at in enumerate(drawn)], axis=1)
