"""The risk of a person who is known to be in the data, the prosecutor's (El Emam and Dankar 2008)."""

from __future__ import annotations

from dataclasses import dataclass

from duckanon.assess.comparison.properties.base import Property, properties


@properties.register("reidentification_risk")
@dataclass(frozen=True)
class ReidentificationRisk(Property):
    """One divided by the size of the row's class, in rows or in persons where the release counts those.

    A suppressed row has risk 0: it is not in the published file.

    References
    ----------
    K. El Emam and F. Dankar, Protecting privacy using k-anonymity, 2008.
    """

    summary = "1 / size of the row's class; 0 if suppressed"
    direction = "lower"
    bounds = (0.0, 1.0)
    unit = "members"
