"""Diameter: how far released rows lie apart."""

from __future__ import annotations

from collections.abc import Mapping
from math import comb
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.engine.sql.files import load
from duckanon.engine.sql.relations import call, col, named, number, subquery, table
from duckanon.metrics.base import Metric, MetricValue, metrics

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from duckanon.engine.base import Engine
    from duckanon.engine.sql.relations import RelationTables

_STEPS = 8


@metrics.register("diameter")
class Diameter(Metric):
    """Largest Hamming distance between two released rows: in how many attributes they differ.

    In attributes; higher is better, 0 where all rows are alike, as on a fully suppressed table. Suppressed rows are
    left out, so that suppressing rows never makes the value better. It is normalised by the number of attributes.

    Notes
    -----
    The statement finds the class that differs most from a given one. From there the search goes on with the class that
    was found, until as many attributes differ as have more than one published cell. Nearly always that takes a few
    steps; where it does not, the pairs that agree in a number of attributes are counted by inclusion and exclusion.

    References
    ----------
    A. Meyerson and R. Williams, On the complexity of optimal k-anonymity, 2004.
    """

    summary = "attributes in which the two most different rows differ"
    direction = "higher"
    ignores_suppression = True

    @classmethod
    def rows(cls, engine: Engine, relations: RelationTables, params: Mapping[str, Any]) -> list[MetricValue]:
        """Return the diameter, which is 0 on the fully suppressed table and at best the number of attributes."""
        suppressed, published, width = cls._counts(engine, relations)
        value: float | None = 0.0
        if not suppressed and not published:
            value = None
        elif published > 1:
            value = cls._search(engine, relations)
        return [MetricValue(None, value, 0.0, width)]

    @classmethod
    def _counts(cls, engine: Engine, relations: RelationTables) -> tuple[int, int, float]:
        """Return how many classes are suppressed, how many published, and the number of attributes."""
        flag = exp.case().when(col("suppressed"), number(1)).else_(number(0))
        some = exp.func("COALESCE", exp.Sum(this=flag), number(0))
        gone, both = engine.row(exp.select(some, exp.Count(this=exp.Star())).from_(table(relations.table("classes"))))
        (width,) = engine.row(exp.select(exp.Count(this=exp.Star())).from_(table(relations.table("domain"))))
        return int(gone), int(both) - int(gone), float(width)

    @classmethod
    def _search(cls, engine: Engine, relations: RelationTables) -> float:
        cells = exp.select(col("attribute"), col("cell")).distinct().from_(table(relations.table("class_cells")))
        counts = exp.select(named(exp.Count(this=exp.Star()), "n")).from_(subquery(cells, "d")).group_by("attribute")
        several = exp.GT(this=col("n"), expression=number(1))
        (bound,) = engine.row(exp.select(exp.Count(this=exp.Star())).from_(subquery(counts, "c")).where(several))
        file = load("metrics/diameter")
        statement = file.bind(relations.tables(*file.reads))
        (seed,) = engine.row(exp.select(exp.Min(this=col("class_id"))).from_(table(relations.table("class_cells"))))
        largest = 0
        tried: set[int] = set()
        while largest < bound and seed not in tried and len(tried) < _STEPS:
            tried.add(seed)
            ((seed, distance),) = engine.rows(statement, {"class_id": seed})
            largest = max(largest, int(distance))
        return float(largest if largest == bound else farthest(_codes(engine, relations)))


def _codes(engine: Engine, relations: RelationTables) -> NDArray[np.int64]:
    """Return the published cells as numbers: a row for each attribute, a column for each class."""
    order = exp.Order(expressions=[exp.Ordered(this=col("cell"), desc=False, nulls_first=False)])
    rank = exp.Window(this=call("dense_rank"), partition_by=[col("attribute")], order=order)
    cells = exp.select(col("class_id"), col("attribute"), named(rank, "code")).from_(
        table(relations.table("class_cells"))
    )
    cells_in_order = engine.arrow(
        exp.select(col("code")).from_(subquery(cells, "c")).order_by(col("attribute"), col("class_id"))
    )
    codes: NDArray[np.int64] = cells_in_order.column("code").to_numpy().astype("int64")
    (width,) = engine.row(exp.select(exp.Count(this=exp.Star())).from_(table(relations.table("domain"))))
    return codes.reshape(int(width), -1)


def farthest(codes: NDArray[np.int64]) -> int:
    """Return the largest Hamming distance between two columns of an array.

    The pairs that agree in given rows are the squares of the sizes of the groups which those rows make; summed over all
    choices of as many rows, inclusion and exclusion gives the pairs that agree in exactly so many.

    Examples
    --------
    >>> import numpy as np
    >>> farthest(np.array([[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]))
    2
    """
    import numpy as np

    width, size = codes.shape
    agreeing = [0] * (width + 1)

    def visit(groups: NDArray[np.int64], count: int, chosen: int, start: int) -> None:
        if count == size:
            # Every class is alone, and stays so whatever else is asked for.
            for more in range(width - start + 1):
                agreeing[chosen + more] += size * comb(width - start, more)
            return
        sizes = np.bincount(groups, minlength=count).astype(np.int64)
        agreeing[chosen] += int((sizes * sizes).sum())
        for j in range(start, width):
            keys = groups * (int(codes[j].max()) + 1) + codes[j]
            pairs, inverse = np.unique(keys, return_inverse=True)
            visit(inverse.reshape(-1), len(pairs), chosen + 1, j + 1)

    visit(np.zeros(size, dtype=np.int64), 1, 0, 0)
    for alike in range(width + 1):
        if sum((-1) ** (i - alike) * comb(i, alike) * agreeing[i] for i in range(alike, width + 1)):
            return int(width - alike)
    return 0
