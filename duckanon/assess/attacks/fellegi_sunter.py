"""Fellegi and Sunter's model of record linkage, estimated by EM from the counts of comparison patterns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

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
        own = np.log(np.maximum(m, FLOOR))[at, patterns].sum(axis=1) + np.log(max(share, FLOOR))
        other = np.log(np.maximum(u, FLOOR))[at, patterns].sum(axis=1) + np.log(max(1 - share, FLOOR))
        belongs = 1 / (1 + np.exp(np.clip(other - own, -700, 700)))
        before = m, u, share
        m, u = shares(counts * belongs), shares(counts * (1 - belongs))
        share = float((counts * belongs).sum() / counts.sum())
        if max(np.abs(m - before[0]).max(), np.abs(u - before[1]).max(), abs(share - before[2])) < ENOUGH:
            break
    return Model(m, u, share)
