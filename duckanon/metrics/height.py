"""Height: the sum of the levels."""

from __future__ import annotations

from duckanon.metrics.base import Metric, metrics


@metrics.register("height")
class Height(Metric):
    """The level of each attribute, and their sum over attributes.

    In levels; lower is better, 0 untouched. Where cells of one attribute stand on several levels, as in boxes, it
    is their mean over published rows. Suppressed rows do not count, except that a fully suppressed table has the
    heights of the hierarchies. Attributes without a hierarchy are left out.

    References
    ----------
    P. Samarati and L. Sweeney, Protecting privacy when disclosing information, 1998 (absolute distance); ARX 3.9.2,
    metric "height".
    """

    summary = "sum over attributes of their level"
    ignores_suppression = True
