"""Non-uniform entropy as ARX computes it."""

from __future__ import annotations

from duckanon.metrics.base import Metric, metrics


@metrics.register("non_uniform_entropy")
class NonUniformEntropy(Metric):
    """Minus the sum over rows and attributes of log2(c(x) / c(g(x))), plus what suppression costs beyond that.

    In bits; lower is better, 0 untouched. c counts rows of the original table, of the value x and of all values
    that are recoded as g(x) like it. For suppressed rows comes minus log2(c_S(g(x)) / s) on top, c_S counting the s
    suppressed rows only. Where a column's values are recoded in several ways (boxes), a suppressed
    row has no cell, and the value itself takes the place of g(x). A fully suppressed table has n times the sum of its
    columns' entropies.

    References
    ----------
    A. de Waal and L. Willenborg, Information loss through global recoding and local suppression, 1999; ARX 3.9.2.
    """

    summary = "bits lost by recoding, with the frequencies of the values"
