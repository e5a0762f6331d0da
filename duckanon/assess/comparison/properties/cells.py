"""What a row contributes to metrics of cells; their statements say what a cell counts."""

from __future__ import annotations

from dataclasses import dataclass

from duckanon.assess.comparison.properties.base import CellProperty, properties
from duckanon.metrics import gcp, granularity, information_loss, loss, precision


@properties.register("granularity")
@dataclass(frozen=True)
class Granularity(CellProperty):
    """Sum over quasi-identifiers of (leaves - 1) / M; a suppressed row counts as fully generalized.

    The sum over rows is the metric ``granularity``.

    References
    ----------
    V. Iyengar, Transforming data to satisfy privacy constraints, 2002.
    """

    summary = "sum over cells of the share of the domain that they could be besides their value"
    metric = granularity.Granularity


@properties.register("information_loss")
@dataclass(frozen=True)
class InformationLoss(CellProperty):
    """Width over leaves of ordered cells plus depth over height of the others, summed over quasi-identifiers.

    A suppressed row counts as fully generalized. The sum over rows is the metric ``information_loss``.

    References
    ----------
    J. Byun, A. Kamra, E. Bertino and N. Li, Efficient k-anonymization using clustering techniques, 2007.
    """

    summary = "widths of ordered cells and depths of the others, summed"
    metric = information_loss.InformationLoss


@properties.register("loss")
@dataclass(frozen=True)
class Loss(CellProperty):
    """Weighted mean over quasi-identifiers of (share - 1/M) / (1 - 1/M); 0 untouched, 1 suppressed.

    The mean over rows is the metric ``loss``.

    References
    ----------
    V. Iyengar, Transforming data to satisfy privacy constraints, 2002; ARX 3.9.2, metric "loss", arithmetic mean.
    """

    summary = "mean share of the domain that a cell stands for (0 untouched, 1 suppressed)"
    metric = loss.Loss


@properties.register("ncp")
@dataclass(frozen=True)
class Ncp(CellProperty):
    """Weighted mean over quasi-identifiers of width / range, or of leaves / M where the column has no order.

    A cell that stands for one value costs nothing, a suppressed row costs 1. The mean over rows is the metric ``gcp``.

    References
    ----------
    J. Xu, W. Wang, J. Pei, X. Wang, B. Shi and A. Fu, Utility-based anonymization using local recoding, 2006;
    G. Ghinita, P. Karras, P. Kalnis and N. Mamoulis, Fast data anonymization with low information loss, 2007.
    """

    summary = "mean width of a cell as a share of its column (0 untouched, 1 suppressed)"
    metric = gcp.Gcp


@properties.register("precision")
@dataclass(frozen=True)
class Precision(CellProperty):
    """One minus the weighted mean over quasi-identifiers of level / height; 0 for a suppressed row.

    A cell without a level (in a release that was not made along hierarchies) counts its share of leaves instead. The
    mean over rows is the metric ``precision``.

    References
    ----------
    L. Sweeney, Achieving k-anonymity privacy protection using generalization and suppression, 2002.
    """

    summary = "1 - mean of level / height (1 untouched, 0 suppressed)"
    metric = precision.Precision
