"""The utility of a row (Iyengar 2002, as Dewri et al. 2009 use it in section 5.5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duckanon.assess.comparison.properties.base import Property, properties

if TYPE_CHECKING:
    from duckanon.assess.comparison.rows import Rows


@properties.register("iyengar_utility")
@dataclass(frozen=True)
class IyengarUtility(Property):
    """The number of quasi-identifiers minus the shares of their domains that the row's cells stand for.

    The share is the number of leaves under the cell divided by all leaves, so that not even an untouched row reaches
    the number of quasi-identifiers. A suppressed row has utility 0.

    References
    ----------
    V. Iyengar, Transforming data to satisfy privacy constraints, 2002; Dewri et al. 2009, section 5.5.
    """

    summary = "quasi-identifiers minus the shares of their domains that the cells cover; 0 if suppressed"

    def ideal(self, rows: Rows) -> float:
        return float(len(rows.release.recoding.cells))
