"""Common checks of metrics."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from duckanon.engine.base import open_engine
from duckanon.metrics.base import Measure, Metric, measure, metrics
from duckanon.testing.common import make_relations, require, require_documented, require_statement

if TYPE_CHECKING:
    from duckanon.engine.sql.files import SqlFile

_ROWS = [(float(age), "f" if age < 10 else "m") for age in range(20)]
"""The tables that are measured have an age and a sex, and an illness that depends on the sex."""
_NAMES = ("age", "sex")
_PARAMS = {"k": 2}
_QUICK = {"classes", "class_cells", "cell_rows", "domain"}
_TOLERANCE = 1e-9


def check_metric(metric: type[Metric]) -> None:
    """Raise an AssertionError unless a metric does what every metric must do.

    It is measured on an untouched, a half generalized, a fully generalized, a fully suppressed and an empty table:
    values lie within its bounds, an untouched table is at best, a fully suppressed one is 1 when normalised, and a
    metric with two bounds reaches the better one.

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
    _check_statement(metric, require_statement("metrics", metric))
    measured = {state: _total(metric, rows) for state, rows in _tables().items()}
    _check_values(metric, measured)


def _check_statement(metric: type[Metric], file: SqlFile) -> None:
    name, where = metric.__name__, f"sql/metrics/{metric.name}.sql"
    if metric.rows.__func__ is Metric.rows.__func__:  # type: ignore[attr-defined]
        columns = ("attribute", "value", "worst", "best")
        fits = file.returns in [columns[:n] for n in (2, 3, 4)]
        require(fits, f"{where} must return attribute, value and perhaps worst and best.")
        require(file.params == metric.params, f"{name}.params must be what {where} takes.")
    require(set(metric.params) <= set(_PARAMS), f"{name}.params may be {', '.join(_PARAMS)}.")
    slow = set(file.reads) - _QUICK
    require(not metric.headline or not slow, f"{name} is no headline: it reads {', '.join(sorted(slow))}.")


def _check_values(metric: type[Metric], measured: dict[str, Measure | None]) -> None:
    name, (low, high) = metric.__name__, metric.bounds
    places: dict[str, float] = {}
    for state in ("untouched", "half", "generalized", "suppressed"):
        one = measured[state]
        if state == "suppressed" and metric.ignores_suppression:
            continue
        if one is None or one.value is None or one.normalised is None:
            raise AssertionError(f"{name} has no value on a table that is {state}.")
        value, places[state] = one.value, one.normalised
        within = low - _TOLERANCE <= value and (high is None or value <= high + _TOLERANCE)
        require(within, f"{name} is {value} on a table that is {state}: outside its bounds {metric.bounds}.")
    for state, place in places.items():
        require(place >= places["untouched"] - _TOLERANCE, f"{name} is better {state} than untouched.")
    if high is not None:
        best = low if metric.direction == "lower" else high
        at_best = abs(places["untouched"]) <= _TOLERANCE
        require(at_best, f"{name} is not at best on a table that is untouched, and its bounds say {best}.")
    worst = places.get("suppressed", 1.0)
    require(abs(worst - 1) <= _TOLERANCE, f"{name} is {worst} on a table that is suppressed, normalised, not 1.")
    empty = measured["empty"]
    require(empty is None or empty.value is None, f"{name} has a value on a table without rows.")


def _total(metric: type[Metric], rows: dict[str, list[tuple[Any, ...]]]) -> Measure | None:
    engine = open_engine()
    try:
        values = measure(engine, make_relations(engine, rows), [metric.name], _PARAMS)
    finally:
        engine.close()
    totals = [m for m in values if m.attribute is None]
    require(len(totals) <= 1, f"{metric.__name__} must return one value for the whole release.")
    require(all(_fits(metric, m) for m in values), f"{metric.__name__} returns a Measure that is not its own.")
    attributes = [m.attribute for m in values if m.attribute is not None]
    require(
        attributes in ([], sorted(_NAMES), ["age"], ["ill"]),
        f"{metric.__name__} must return all quasi-identifiers, those of numbers, all sensitive columns, or none.",
    )
    return totals[0] if totals else None


def _fits(metric: type[Metric], measured: Measure) -> bool:
    return measured.metric == metric.name and measured.direction == metric.direction


Cell = tuple[str, int, int, float | None, float | None]


def _cell(state: str, attribute: int, row: tuple[float, str]) -> Cell:
    """Return text, level, leaves and bounds of what is published of a row."""
    age, sex = row
    if attribute == 1:
        return ("*", 1, 2, None, None) if state == "generalized" else (sex, 0, 1, None, None)
    low = 10.0 * (age >= 10)
    return {
        "generalized": ("*", 2, 20, 0.0, 19.0),
        "half": ("[0, 10)" if age < 10 else "[10, 20)", 1, 10, low, low + 9),
    }.get(state, (str(age), 0, 1, age, age))


def _tables() -> dict[str, dict[str, list[tuple[Any, ...]]]]:
    states = ("untouched", "half", "generalized", "suppressed")
    empty: dict[str, list[tuple[Any, ...]]] = {"domain": _relations("untouched")["domain"]}
    return {**{state: _relations(state) for state in states}, "empty": empty}


def _relations(state: str) -> dict[str, list[tuple[Any, ...]]]:
    gone = state == "suppressed"
    shown = [tuple(_cell(state, j, row) for j in range(2)) for row in _ROWS]
    ids = {cells: i + 1 for i, cells in enumerate(dict.fromkeys(shown))}
    sizes = Counter(ids[cells] for cells in shown)
    numbered = [dict(zip(sorted({str(row[j]) for row in _ROWS}), range(20), strict=False)) for j in range(2)]

    def number(j: int, row: tuple[float, str]) -> float:
        return row[0] if j == 0 else float(numbered[1][row[1]])

    counts = [Counter(row[j] for row in _ROWS) for j in range(2)]
    firsts = [{row[j]: row for row in _ROWS} for j in range(2)]
    ill = Counter((ids[cells], row[1]) for cells, row in zip(shown, _ROWS, strict=True))
    pairs = [(False, *_NAMES, str(age), sex, 1) for age, sex in _ROWS]
    after = Counter((age[0], sex[0]) for age, sex in shown)
    return {
        "classes": [(i, n, gone) for i, n in sizes.items()],
        "class_cells": [(i, name, *cells[j]) for cells, i in ids.items() for j, name in enumerate(_NAMES) if not gone],
        "domain": [
            ("age", "ordered", 2, 20, 0.0, 19.0, 1.0, False),
            ("sex", "unordered", 1, 2, None, None, 1.0, False),
        ],
        "class_values": [(i, "ill", value, n) for (i, value), n in ill.items() if not gone],
        "domain_values": [("ill", "f", 0, 10), ("ill", "m", 1, 10)],
        "column_values": [
            (name, str(value), number(j, firsts[j][value]), n)
            for j, name in enumerate(_NAMES)
            for value, n in counts[j].items()
        ],
        "cell_values": [
            (name, cell, str(value), number(j, firsts[j][value]), counts[j][value])
            for j, name in enumerate(_NAMES)
            for cell, value in dict.fromkeys((cells[j][0], row[j]) for cells, row in zip(shown, _ROWS, strict=True))
        ],
        "tuples": [(t, ids[cells], 1) for t, cells in enumerate(shown)],
        "tuple_values": [
            (t, name, str(row[j]), number(j, row)) for t, row in enumerate(_ROWS) for j, name in enumerate(_NAMES)
        ],
        "pairs": pairs + [(True, *_NAMES, x, y, n) for (x, y), n in after.items() if not gone],
    }
