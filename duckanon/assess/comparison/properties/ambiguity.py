"""What a row contributes to the ambiguity (Nergiz and Clifton 2007)."""

from __future__ import annotations

from dataclasses import dataclass

from duckanon.assess.comparison.properties.base import Property, properties


@properties.register("ambiguity")
@dataclass(frozen=True)
class Ambiguity(Property):
    """The number of combinations of leaves that the row's cells stand for; all of them for a suppressed row.

    The mean over rows is the metric ``ambiguity``.

    References
    ----------
    M. Nergiz and C. Clifton, Thoughts on k-anonymization, 2007.
    """

    summary = "combinations of leaves that the row stands for"
    direction = "lower"
    bounds = (1.0, None)
