"""Bivariate correlation."""

from __future__ import annotations

from duckanon.metrics.base import Metric, metrics


@metrics.register("bivariate_correlation")
class BivariateCorrelation(Metric):
    """Median over pairs of attributes of the absolute change of Cramer's V.

    Between 0 and 1; lower is better. The attributes are the quasi-identifiers and the sensitive columns, numbers being
    put into intervals as for ``mutual_information_loss``. The released side is computed on published rows; V is 0 where
    nothing is published or a column is constant, so that a fully suppressed table has the median of the original V. A
    release that makes columns depend on each other that did not can be further from the original than that; normalised
    it is 1, too.

    References
    ----------
    H. Cramer, Mathematical methods of statistics, 1946; K. El Emam, L. Mosquera and R. Hoptroff, Practical
    synthetic data generation, 2020.
    """

    summary = "change of Cramer's V, median over pairs of columns"
    bounds = (0.0, 1.0)
    beyond = True
