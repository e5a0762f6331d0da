"""What metrics are worth as predictors: slopes, effect sizes, one against one, and a learner of all metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from duckanon.studies.base import Record, distinct, where

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

METRICS = (
    "entropy",
    "classification",
    "diameter",
    "discernibility",
    "information_loss",
    "hellinger",
    "bivariate_correlation",
    "average_class_size_lefevre",
    "ambiguity",
    "granularity",
    "squared_distance_error",
)
"""All metrics of the paper's section 2.2 but precision, which has no meaning for regions (section 3.5)."""
UTILITIES = (
    "lr_accuracy",
    "lr_auroc",
    "rf_pca_accuracy",
    "rf_pca_auroc",
    "knn_pca_accuracy",
    "knn_pca_auroc",
)


def right_picks(metric: Floats, utility: Floats) -> tuple[float, float]:
    """Return how often the better of two by a metric is the more useful one, over all pairs (section 4.1.3).

    Parameters
    ----------
    metric : array
        Lower is better.
    utility : array
        Higher is better.

    Returns
    -------
    tuple of float and float
        A pair with equal metric or equal utility counts half: chance reaches 0.5. The
        second number counts a pair right unless the pick is worse, so that equal ones are right: this is how a rate
        far above one half occurs where most releases have the same utility. NaN without pairs.

    Examples
    --------
    >>> import numpy as np
    >>> right_picks(np.array([0.1, 0.2, 0.3]), np.array([0.9, 0.8, 0.8]))
    (0.8333333333333334, 1.0)
    """
    present = ~(np.isnan(metric) | np.isnan(utility))
    metric, utility = metric[present], utility[present]
    first, second = np.triu_indices(len(metric), 1)
    if not len(first):
        return float("nan"), float("nan")
    better = np.sign(metric[second] - metric[first])
    useful = np.sign(utility[first] - utility[second])
    agreed = better * useful
    return float(np.mean((agreed + 1) / 2)), float(np.mean(agreed >= 0))


def one_against_one(records: Sequence[Record]) -> list[Record]:
    """Return the rates of right picks by table and metric, meant over algorithms and utilities (Table 4.1)."""
    found = []
    for table in distinct(records, "table"):
        for metric in METRICS:
            rates = []
            for algorithm in distinct(records, "algorithm"):
                some = where(records, table=table, algorithm=algorithm)
                rates += [right_picks(column(some, metric), column(some, utility)) for utility in UTILITIES]
            halves, rights = (np.array([r[i] for r in rates]) for i in range(2))
            if not np.isnan(halves).all():
                rate, lenient = float(np.nanmean(halves)), float(np.nanmean(rights))
                found.append({"table": table, "metric": metric, "rate": rate, "equal_is_right": lenient})
    return found


def effect_sizes(records: Sequence[Record]) -> list[Record]:
    """Return by metric the mean size of its coefficient in linear regressions, with 95 % intervals (section 4.1.2).

    One regression for each table, algorithm and utility, of the utility on all metrics, which are standardised; the
    effect is the absolute coefficient, in the unit of the utility. A metric that does not vary has none.
    """
    from scipy import stats

    sizes: dict[str, list[float]] = {metric: [] for metric in METRICS}
    for table in distinct(records, "table"):
        for algorithm in distinct(records, "algorithm"):
            some = where(records, table=table, algorithm=algorithm)
            for utility in UTILITIES:
                for metric, size in _coefficients(some, utility).items():
                    sizes[metric].append(abs(size))
    effects = []
    for metric, values in sizes.items():
        if len(values) < 2:
            continue
        reach = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))
        mean = float(np.mean(values))
        effects.append({"metric": metric, "effect": mean, "low": mean - reach, "high": mean + reach, "n": len(values)})
    return effects


def _coefficients(records: Sequence[Record], utility: str) -> dict[str, float]:
    """Return the coefficients of standardised metrics; nothing where there are fewer records than unknowns."""
    wanted = column(records, utility)
    cells = {m: column(records, m) for m in METRICS}
    usable = [m for m, c in cells.items() if len(c) and not np.isnan(c).any() and c.std() > 1e-9]
    if np.isnan(wanted).any() or len(wanted) < len(usable) + 2 or not usable:
        return {}
    matrix = np.column_stack([(cells[m] - cells[m].mean()) / cells[m].std() for m in usable])
    # Directions in which metrics hardly differ are noise; what is left is shared among those alike.
    solved = np.linalg.lstsq(matrix, wanted - wanted.mean(), rcond=1e-3)[0]
    return dict(zip(usable, solved.tolist(), strict=True))


def slopes(records: Sequence[Record]) -> list[Record]:
    """Return slope and correlation of each metric and utility, by table and algorithm ("all" for all together)."""
    slope_records = []
    for table in distinct(records, "table"):
        for algorithm in ["all", *distinct(records, "algorithm")]:
            some = (
                where(records, table=table) if algorithm == "all" else where(records, table=table, algorithm=algorithm)
            )
            for metric in METRICS:
                for utility in UTILITIES:
                    line = fit(column(some, metric), column(some, utility))
                    if line is not None:
                        labels = {"table": table, "algorithm": algorithm, "metric": metric, "utility": utility}
                        slope_records.append({**labels, "intercept": line[0], "slope": line[1], "correlation": line[2]})
    return slope_records


def fit(metric: Floats, utility: Floats) -> tuple[float, float, float] | None:
    """Return intercept, slope and correlation of the line of best fit; None where the metric does not vary."""
    present = ~(np.isnan(metric) | np.isnan(utility))
    x, y = metric[present], utility[present]
    if len(x) < 3 or x.std() < 1e-12:
        return None
    slope = float(np.mean((x - x.mean()) * (y - y.mean())) / x.var())
    spread = x.std() * y.std()
    correlation = float(np.mean((x - x.mean()) * (y - y.mean())) / spread) if spread > 0 else 0.0
    return float(y.mean() - slope * x.mean()), slope, correlation


def column(records: Sequence[Record], name: str) -> Floats:
    """Return the numbers of a name, NaN where a record has none."""
    return np.array([np.nan if r.get(name) is None else float(r[name]) for r in records], dtype=np.float64)


# The meta-metric


def meta_metrics(records: Sequence[Record], *, test: float, repeats: int, seed: int) -> list[Record]:
    """Return how often the better of two by a learner of all metrics is the more useful one (sections 3.6 and 4.2).

    For each table, algorithm and utility an ensemble of regressors is trained on the metrics of all releases but a
    tenth (``test``), and picks within that tenth; then it picks among the held-out releases of other algorithms, of
    other tables, and for other utilities. A mean over ``repeats`` draws of the tenth.

    Returns
    -------
    list of dict
        ``kind`` ("own", "algorithm", "table" or "utility"), ``used`` (what the learner was trained for), ``on`` (what
        it picked for), ``table``, ``rate`` (a pair that is equal counts half) and ``pairs``.
    """
    cells = {
        (t, a): where(records, table=t, algorithm=a)
        for t in distinct(records, "table")
        for a in distinct(records, "algorithm")
    }
    metrics = [m for m in METRICS if all(not np.isnan(column(some, m)).all() for some in cells.values())]
    picks: list[Record] = []
    for repeat in range(repeats):
        held: dict[tuple[Any, Any], NDArray[np.bool_]] = {}
        for place, (key, some) in enumerate(cells.items()):
            draw = np.random.default_rng([seed, repeat, place]).permutation(len(some))
            held[key] = draw < max(2, round(test * len(some)))
        for table, algorithm in cells:
            for utility in UTILITIES:
                picks += _picks(cells, held, metrics, (table, algorithm, utility), seed + repeat)
    return picks


def _picks(cells: Any, held: Any, metrics: list[str], case: tuple[Any, Any, str], seed: int) -> list[Record]:
    table, algorithm, utility = case
    some, out = cells[table, algorithm], held[table, algorithm]
    matrix, wanted = _matrix(some, metrics), column(some, utility)
    usable = ~out & ~np.isnan(wanted)
    if usable.sum() < 5:
        return []
    taught = _ensemble(seed).fit(matrix[usable], wanted[usable])

    # All at once: each call of a forest has a high fixed cost.
    near = [key for key in cells if key[0] == table or key[1] == algorithm]
    parts = [_matrix(cells[key], metrics)[held[key]] for key in near]
    ends = np.cumsum([len(part) for part in parts])[:-1]
    predicted = dict(zip(near, np.split(taught.predict(np.vstack(parts)), ends), strict=True))

    def rate(kind: str, used: Any, on: Any, where_: tuple[Any, Any], what: str) -> Record:
        mask = held[where_]
        right, _ = right_picks(-predicted[where_], column(cells[where_], what)[mask])
        return {"kind": kind, "used": used, "on": on, "table": table, "rate": right, "pairs": int(mask.sum())}

    records = [rate("own", table, table, (table, algorithm), utility)]
    records += [rate("algorithm", algorithm, a, (t, a), utility) for t, a in cells if t == table and a != algorithm]
    records += [rate("table", table, t, (t, a), utility) for t, a in cells if a == algorithm and t != table]
    records += [rate("utility", utility, u, (table, algorithm), u) for u in UTILITIES if u != utility]
    return records


def _matrix(records: Sequence[Record], metrics: list[str]) -> Floats:
    return np.nan_to_num(np.column_stack([column(records, m) for m in metrics]))


def _ensemble(seed: int) -> Any:
    """Return the learner of all metrics: what automated search would try first, meant."""
    from sklearn.ensemble import ExtraTreesRegressor, GradientBoostingRegressor, VotingRegressor
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    line = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 3, 13)))
    trees = ExtraTreesRegressor(n_estimators=60, min_samples_leaf=2, random_state=seed)
    boosted = GradientBoostingRegressor(n_estimators=60, max_depth=2, random_state=seed)
    return VotingRegressor([("line", line), ("trees", trees), ("boosted", boosted)])


def transfer(picks: Sequence[Record], kind: str, over: Sequence[Any]) -> dict[tuple[Any, Any], float]:
    """Return the mean rate of each pair of what a learner was trained for and what it picked for."""
    transferred: dict[tuple[Any, Any], float] = {}
    for used in over:
        for on in over:
            rates = [r["rate"] for r in where(picks, kind=kind, used=used, on=on) if r["rate"] == r["rate"]]
            if rates:
                transferred[used, on] = float(np.mean(rates))
    return transferred
