"""Common checks of metrics."""

from __future__ import annotations

from typing import Any

from duckanon.metrics.base import Measure, Metric, measure, metrics
from duckanon.plan import open_engine
from duckanon.testing.common import make_relations, require, require_documented, require_statement

_SIZES = {"age": 10, "sex": 2}
"""The attributes of the tables that are measured, with the leaves of their domains; rows are all combinations."""
_ROWS = 20
_TOLERANCE = 1e-9


def check_metric(metric: type[Metric]) -> None:
    """Raise an AssertionError unless a metric keeps the rules of the house.

    It is measured on an untouched, a half generalized, a fully generalized, a fully suppressed and an empty table:
    values lie within its bounds, an untouched table is at best, a metric with two bounds reaches both.

    Parameters
    ----------
    metric : subclass of Metric

    Examples
    --------
    >>> from duckanon.metrics import metrics
    >>> check_metric(metrics.get("loss"))
    """
    name = metric.__name__
    require(issubclass(metric, Metric), f"{name} must derive from duckanon.metrics.Metric.")
    require(metrics.get(metric.name) is metric, f"{name} is not the metric registered as {metric.name!r}.")
    require_documented(metric)
    require(metric.direction in ("lower", "higher"), f"{name}.direction must be 'lower' or 'higher'.")
    low, high = metric.bounds
    require(high is None or low < high, f"{name}.bounds must be (lower, upper), upper None where there is none.")
    file = require_statement("metrics", metric.name)
    require(file.returns == ("attribute", "value"), f"sql/metrics/{metric.name}.sql must return attribute, value.")
    found = {state: _total(metric, rows) for state, rows in _tables().items()}
    _check_values(metric, found)


def _check_values(metric: type[Metric], found: dict[str, float | None]) -> None:
    name = metric.__name__
    low, high = metric.bounds
    sign = 1 if metric.direction == "lower" else -1
    for state in ("untouched", "half", "generalized", "suppressed"):
        value = found[state]
        require(value is not None, f"{name} has no value on a table that is {state}.")
        within = value is not None and low - _TOLERANCE <= value and (high is None or value <= high + _TOLERANCE)
        require(within, f"{name} is {value} on a table that is {state}: outside its bounds {metric.bounds}.")
        untouched = found["untouched"]
        if value is not None and untouched is not None:
            require(sign * value >= sign * untouched - _TOLERANCE, f"{name} is better {state} than untouched.")
    if high is not None:
        best, worst = (low, high) if metric.direction == "lower" else (high, low)
        for state, bound in (("untouched", best), ("generalized", worst), ("suppressed", worst)):
            value = found[state]
            require(
                value is not None and abs(value - bound) <= _TOLERANCE,
                f"{name} is {value} on a table that is {state}, and its bounds say {bound}.",
            )


def _total(metric: type[Metric], rows: dict[str, list[tuple[Any, ...]]]) -> float | None:
    engine = open_engine()
    try:
        values = measure(engine, make_relations(engine, rows), [metric.name])
    finally:
        engine.close()
    totals = [m for m in values if m.attribute is None]
    require(len(totals) == 1, f"{metric.__name__} must return one value for the whole release.")
    require(all(_fits(metric, m) for m in values), f"{metric.__name__} returns a Measure that is not its own.")
    attributes = [m.attribute for m in values if m.attribute is not None]
    require(attributes in ([], sorted(_SIZES)), f"{metric.__name__} must return all attributes, or none.")
    return totals[0].value


def _fits(metric: type[Metric], found: Measure) -> bool:
    return found.metric == metric.name and found.direction == metric.direction


def _tables() -> dict[str, dict[str, list[tuple[Any, ...]]]]:
    height = {"age": 2, "sex": 1}
    domain = [(a, "full_domain", height[a], size, None, None, 1.0) for a, size in _SIZES.items()]
    every = range(1, _ROWS + 1)

    def cells(ids: range, level: dict[str, int], leaves: dict[str, int]) -> list[tuple[Any, ...]]:
        return [(i, a, level[a], leaves[a], None, None) for i in ids for a in _SIZES]

    zero, one = dict.fromkeys(_SIZES, 0), dict.fromkeys(_SIZES, 1)
    half, whole = range(1, 5), range(1, 2)
    return {
        "untouched": {
            "classes": [(i, 1, False) for i in every],
            "class_cells": cells(every, zero, one),
            "domain": domain,
        },
        "half": {
            "classes": [(i, _ROWS // 4, False) for i in half],
            "class_cells": cells(half, {"age": 1, "sex": 0}, {"age": 5, "sex": 1}),
            "domain": domain,
        },
        "generalized": {
            "classes": [(1, _ROWS, False)],
            "class_cells": cells(whole, height, _SIZES),
            "domain": domain,
        },
        "suppressed": {"classes": [(i, 1, True) for i in every], "class_cells": [], "domain": domain},
        "empty": {"classes": [], "class_cells": [], "domain": domain},
    }
