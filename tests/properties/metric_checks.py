"""Metrics of a table and its release, compared with their definitions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from reference import metrics as plain
from reference.tables import Table

from duckanon.metrics import Measure, metrics

# Their statements give something else than the value on the fully suppressed table, and their docstrings say so.
NORMALISED_BY_ONE_CLASS = {"discernibility_star", "average_class_size_lefevre"}


def assert_equal(found: Sequence[Measure], table: Table, names: Sequence[str]) -> None:
    """All values, and those that are normalised, are what the definitions say."""
    measured = {(m.metric, m.attribute): m for m in found}
    for key, one in measured.items():
        assert one.normalised is None or -1e-9 <= one.normalised <= 1 + 1e-9, (key, one)
    for metric, reference in plain.ALL.items():
        expected, worst = reference(table), reference(table.suppressed())
        shown = {key for key in measured if key[0] == metric and measured[key].value is not None}
        wanted = {(metric, name_of(metric, j, names)) for j in expected}
        assert shown == wanted, metric
        for j, value in expected.items():
            key = (metric, name_of(metric, j, names))
            assert math.isclose(measured[key].value, value, rel_tol=1e-9, abs_tol=1e-9), (key, measured[key], value)
            if metric not in NORMALISED_BY_ONE_CLASS and j in worst:
                _assert_normalised(measured[key], value, worst[j], table, j)


def name_of(metric: str, j: int | None, names: Sequence[str]) -> str | None:
    return None if j is None else "ill" if metric == "classification" or j == len(names) else names[j]


def _assert_normalised(found: Measure, value: float, worst: float, table: Table, j: int | None) -> None:
    metric = metrics.get(found.metric)
    low, high = metric.bounds
    best = metric.best if metric.best is not None else low if metric.direction == "lower" else high
    shares = [1 / d.leaves for d in table.domains]
    own = {
        "diameter": table.width,
        "ambiguity_sum": table.n,
        "discernibility": table.n,
        "iyengar_loss": sum(shares) if j is None else [*shares, 0.0][j],
    }
    best = float(own.get(found.metric, best))
    if math.isclose(best, worst, abs_tol=1e-9):
        return
    expected = (value - best) / (worst - best)
    # What no other metric reaches: worse than a suppressed table, or better than an untouched one.
    assert metric.beyond or -1e-9 <= expected <= 1 + 1e-9, found
    expected = min(max(expected, 0.0), 1.0)
    assert math.isclose(found.normalised, expected, rel_tol=1e-7, abs_tol=1e-7), found
