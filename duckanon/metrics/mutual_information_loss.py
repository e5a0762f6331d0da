"""Loss of mutual information."""

from __future__ import annotations

from duckanon.metrics.base import Metric, metrics


@metrics.register("mutual_information_loss")
class MutualInformationLoss(Metric):
    """Mutual information of two attributes before, less that after, mean over pairs.

    In bits; lower is better, 0 untouched. The attributes are the quasi-identifiers and the sensitive columns; for one
    of them it is the mean over its pairs, and the mean of these is the mean over all pairs. The released side is
    computed on the cells of published rows, and 0 where there are none. It can be negative: the rows that suppression
    leaves may be more dependent than all, and cells of boxes tell more of each other than values do; normalised it is 0
    there.

    Notes
    -----
    Numbers, dates and times of more than ten different values are put into ten intervals of equal width, from the
    smallest to the largest original value: where nearly every value occurs once, each would tell everything of every
    other, before and after. A published cell lies in the interval of the middle of what it stands for. Values without a
    size (NULL, infinities) and all other columns are taken as they are, NULL being a value; so are published labels.

    References
    ----------
    N. Senavirathne and V. Torra, Systematic evaluation of probabilistic k-anonymity for privacy preserving
    micro-data publishing and analysis, 2021.
    """

    summary = "mutual information of two columns before less that after, mean over pairs"
    bounds = (float("-inf"), None)
    best = 0.0
    beyond = True
