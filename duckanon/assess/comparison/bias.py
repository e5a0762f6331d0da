"""The anonymization bias: how unevenly a release protects its rows, and which groups carry the risk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.engine.sql.relations import cast, col, ident, named, number, subquery, table, text, union_all

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from duckanon.release.release import Release

QUANTILES = {"q05": 0.05, "q25": 0.25, "median": 0.5, "q75": 0.75, "q95": 0.95}


def gini(values: Any, counts: Any = None) -> float:
    """Return the Gini coefficient: 0 where all values are equal, towards 1 where few have almost all.

    ``counts`` are the frequencies of the values.

    Examples
    --------
    >>> gini([3, 3, 3, 3]), gini([0, 0, 0, 4]), gini([0, 4], [3, 1])
    (0.0, 0.75, 0.75)
    """
    import numpy as np

    ordered = np.asarray(values, dtype=np.float64)
    weights = np.ones_like(ordered) if counts is None else np.asarray(counts, dtype=np.float64)
    order = np.argsort(ordered, kind="stable")
    ordered, weights = ordered[order], weights[order]
    total, rows = float((ordered * weights).sum()), float(weights.sum())
    if total == 0 or rows == 0:
        return 0.0
    # The area under the Lorenz curve, one trapezoid for each value.
    heights = np.concatenate([[0.0], np.cumsum(ordered * weights)]) / total
    area = float((weights / rows * (heights[1:] + heights[:-1]) / 2).sum())
    return max(0.0, 1 - 2 * area)


def size_counts(release: Release) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """Return the sizes of the published classes in ascending order, the rows in classes of each, and rows suppressed.

    Sizes are in the unit of the requirements.
    """
    import numpy as np

    query = (
        exp.select(col("kept"), col("units"), named(exp.Sum(this=col("n")), "rows"))
        .from_(table(release.relations.table("class_map")))
        .group_by(col("kept"), col("units"))
        .order_by(col("units"))
    )
    rows = release.engine.rows(query)
    published = [(float(size), float(n)) for is_kept, size, n in rows if is_kept]
    sizes, counts = (np.array([pair[i] for pair in published], dtype=np.float64) for i in range(2))
    return sizes, counts, sum(int(n) for is_kept, _, n in rows if not is_kept)


def bias_of(release: Release) -> dict[str, Any]:
    """Return how unevenly class sizes, and with them the risk, are spread over the published rows."""
    import numpy as np

    sizes, counts, suppressed = size_counts(release)
    rows = counts.sum()
    # Classes are small first, so risks are large first.
    shares = np.cumsum(counts) / rows
    quantiles = {name: float(sizes[np.searchsorted(shares, q - 1e-12)]) for name, q in QUANTILES.items()}
    risk = counts / sizes
    before = np.concatenate([[0.0], shares[:-1]])
    within = np.clip((0.1 - before) / np.where(counts > 0, shares - before, 1), 0, 1)
    return {
        "rows": int(rows),
        "suppressed": suppressed,
        "minimum": float(sizes[0]),
        **quantiles,
        "maximum": float(sizes[-1]),
        "mean": float((sizes * counts).sum() / rows),
        "gini": gini(sizes, counts),
        "rows_in_smallest": int(counts[0]),
        "share_in_smallest": float(counts[0] / rows),
        "mean_risk": float(risk.sum() / rows),
        "maximum_risk": float(1 / sizes[0]),
        "risk_of_top_tenth": float((risk * within).sum() / risk.sum()),
    }


def groups_of(release: Release) -> list[dict[str, Any]]:
    """Return for each published value of each quasi-identifier how much of the risk the rows with it carry.

    Only the published rows are read, so nothing is disclosed beyond the file. Sizes are in rows.
    """
    names = list(release.recoding.columns)
    keys = [col(name) for name in names]
    counted = exp.select(
        *(named(cast(key, "VARCHAR"), f"q_{j}") for j, key in enumerate(keys)),
        named(exp.Count(this=exp.Star()), "n"),
    )
    counted = counted.from_(subquery(release.query(), "r")).group_by(*(key.copy() for key in keys))
    parts: list[exp.Query] = [
        exp.select(
            named(number(j), "place"),
            named(text(name), "attribute"),
            named(col(f"q_{j}"), "cell"),
            named(cast(exp.Sum(this=col("n")), "BIGINT"), "rows"),
            named(cast(exp.Count(this=exp.Star()), "DOUBLE"), "risk"),
        )
        .from_(table("classes"))
        .group_by(col(f"q_{j}"))
        for j, name in enumerate(names)
    ]
    # Rows of one class have the risk 1/n each, so a class adds 1 to the risk of its cells.
    query = exp.select("*").from_(subquery(union_all(parts), "g"))
    query = query.order_by(col("place"), exp.Ordered(this=col("risk"), desc=True), col("cell"))
    lines = release.engine.rows(query.with_(ident("classes"), as_=counted))
    rows, risk = (float(sum(line[i] for line in lines if line[0] == 0)) for i in (3, 4))
    return [
        {
            "attribute": attribute,
            "cell": cell,
            "rows": int(n),
            "mean_risk": group_risk / n,
            "share_of_rows": n / rows,
            "share_of_risk": group_risk / risk,
            "bias": (group_risk / risk) / (n / rows),
        }
        for _, attribute, cell, n, group_risk in lines
    ]


__all__ = ["bias_of", "gini", "groups_of", "size_counts"]
