"""The size of the class that a row lies in (Dewri et al. 2009, section 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp

from duckanon.comparison.properties.base import Property, properties
from duckanon.sqlgen.files import load

if TYPE_CHECKING:
    from duckanon.comparison.indices import Vector
    from duckanon.release import Release


@properties.register("class_size")
class ClassSize(Property):
    """The number of rows in each row's class, smallest first; the suppressed rows together are one class.

    A release keeps no row ids, so the vector is sorted: two of them compare the distributions of class sizes, not what
    became of one and the same row.

    References
    ----------
    R. Dewri, I. Ray, I. Ray and D. Whitley, On the comparison of microdata disclosure control algorithms, 2009.
    """

    summary: ClassVar[str] = "rows in the row's class, sorted; suppressed rows are one class"

    def vector(self, release: Release) -> Vector:
        import numpy as np

        statement: exp.Query = load("risk/size_counts").bind({"classes": release.relations["classes"]})
        rows = release.engine.rows(statement)
        sizes = [int(size) for size, _, suppressed in rows if not suppressed]
        counts = [int(size) * int(classes) for size, classes, suppressed in rows if not suppressed]
        lost = sum(int(size) * int(classes) for size, classes, suppressed in rows if suppressed)
        if lost:
            sizes.append(lost)
            counts.append(lost)
        return np.sort(np.repeat(np.asarray(sizes, dtype=np.float64), counts))
