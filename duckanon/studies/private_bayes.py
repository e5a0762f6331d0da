"""A differentially private learner to compare with: naive Bayes of noisy counts, by OpenDP."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from duckanon.errors import UnsupportedError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Codes = NDArray[np.int64]


NEEDED = "The differentially private learner needs OpenDP: pip install 'duckanon[dp]'."


def require_opendp() -> Any:
    """Return OpenDP, or raise an error that says how to install it."""
    try:
        import opendp.prelude as dp
    except ImportError:
        raise UnsupportedError(NEEDED) from None
    return dp


def has_opendp() -> bool:
    """Return whether OpenDP is installed."""
    return find_spec("opendp") is not None


class PrivateBayes:
    """Naive Bayes whose counts are drawn by OpenDP's Laplace mechanism: epsilon-differentially private rows.

    Every row is in one count of the classes and in one count of each column beside its class: of all counts together a
    row changes as many as there are columns, plus one, by one each. That is the sensitivity, and the noise is scaled so
    that OpenDP's own accounting gives at most epsilon. The set of codes is assumed to be public.

    Parameters
    ----------
    epsilon : float
    classes : int
        How many values the target has.
    sizes : list of int
        How many codes each column has.

    Notes
    -----
    The noise comes from the operating system and cannot be repeated: results differ a little from run to run.
    """

    def __init__(self, epsilon: float, classes: int, sizes: list[int]) -> None:
        self.epsilon, self.classes, self.sizes = epsilon, classes, sizes

    def fit(self, cells: Codes, target: Codes) -> PrivateBayes:
        """Count, with noise."""
        tables = [np.bincount(target, minlength=self.classes)]
        for j, size in enumerate(self.sizes):
            tables.append(np.bincount(target * size + cells[:, j], minlength=self.classes * size))
        noisy = self._noisy(np.concatenate(tables))
        # What no count can be does no harm to privacy when it is taken away.
        parts = np.split(np.maximum(noisy, 0.0), np.cumsum([len(t) for t in tables])[:-1])
        self.prior = np.log((parts[0] + 1.0) / (parts[0].sum() + self.classes))
        self.shares = []
        for size, part in zip(self.sizes, parts[1:], strict=True):
            counts = part.reshape(self.classes, size) + 1.0
            self.shares.append(np.log(counts / counts.sum(axis=1, keepdims=True)))
        return self

    def _noisy(self, counts: Codes) -> NDArray[np.float64]:
        dp = require_opendp()
        dp.enable_features("contrib")
        changed = len(self.sizes) + 1
        domain, distance = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
        measure = dp.m.make_laplace(domain, distance, scale=changed / self.epsilon)
        spent = float(measure.map(changed))
        if spent > self.epsilon * (1 + 1e-9):
            raise UnsupportedError(f"OpenDP accounts for an epsilon of {spent:.4f} instead of {self.epsilon}.")
        return np.asarray(measure(counts.tolist()), dtype=np.float64)

    def confidence(self, cells: Codes) -> NDArray[np.float64]:
        """Return how probable each class of each row is."""
        logs = np.tile(self.prior, (len(cells), 1))
        for j, shares in enumerate(self.shares):
            logs += shares[:, cells[:, j]].T
        odds = np.exp(logs - logs.max(axis=1, keepdims=True))
        probabilities: NDArray[np.float64] = odds / odds.sum(axis=1, keepdims=True)
        return probabilities
