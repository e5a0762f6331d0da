"""Kullback-Leibler divergence."""

from __future__ import annotations

from typing import ClassVar

from duckanon.metrics.base import Metric, metrics


@metrics.register("kl_divergence")
class KlDivergence(Metric):
    """Sum over distinct original tuples of p log2(p / q), q being the tuple's probability in the release.

    In bits; lower is better, 0 untouched. p = n/N. A row of a class is any combination of leaves under its cells
    with the same probability, a suppressed row any of the whole domain: q is the sum over the classes that hold the
    tuple of n_c / (N times the product of leaves), plus the suppressed rows' even share. A fully suppressed table
    has all of its mass spread evenly. Regions that overlap can mislead more than that; normalised it is 1 from there
    on.

    References
    ----------
    S. Kullback and R. Leibler, On information and sufficiency, 1951; D. Kifer and J. Gehrke, Injecting utility into
    anonymized datasets, 2006.
    """

    summary: ClassVar[str] = "divergence of the original tuples from those that the release makes likely"
    direction: ClassVar[str] = "lower"
    bounds: ClassVar[tuple[float, float | None]] = (0.0, None)
    beyond: ClassVar[bool] = True
