"""Figures that follow from a summary, and how they went over the runs of a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from duckanon.report.model import Point, Trend
from duckanon.report.text import minute, number, share

Summary = Mapping[str, Any]

_SHOWN = 60
"""So many runs are drawn, the latest."""


@dataclass(frozen=True)
class Risk:
    """The risk of a person known to be in the data, by an adversary who knows all of the quasi-identifiers.

    El Emam and Dankar 2008 call this adversary the prosecutor. The highest risk is 1 / the smallest class, the average
    is classes / members.
    """

    highest: float
    average: float | None


def total(summary: Summary, metric: str) -> float | None:
    """Return a metric over all columns, or None."""
    for measured in summary.get("loss") or ():
        if measured["metric"] == metric and measured["attribute"] is None:
            value = measured["value"]
            return None if value is None else float(value)
    return None


def risk(summary: Summary) -> Risk | None:
    """Return the risk that follows from the sizes of the classes; None without classes.

    Examples
    --------
    >>> risk({"found": {"class_size": {"min": 5, "mean": 8}}})
    Risk(highest=0.2, average=0.125)
    """
    sizes = (summary.get("found") or {}).get("class_size") or {}
    linked = (summary.get("permutation") or {}).get("linkage")
    if linked:
        return Risk(linked, None)
    smallest, mean = sizes.get("min"), sizes.get("mean")
    if not smallest:
        return None
    return Risk(1 / smallest, 1 / mean if mean else None)


def homogeneous(summary: Summary) -> int | None:
    """Return the most classes that have one value of the same sensitive column; None where none were counted.

    Examples
    --------
    >>> homogeneous({"homogeneity": [{"attribute": "ill", "classes": 9, "homogeneous": 2}]})
    2
    """
    return max((int(one["homogeneous"]) for one in summary.get("homogeneity") or ()), default=None)


def cautions(summary: Summary) -> list[str]:
    """Return warnings of what the requirements do not cover: classes that tell a sensitive value of all their members.

    Examples
    --------
    >>> cautions({"homogeneity": [{"attribute": "ill", "classes": 2, "homogeneous": 2}]})[0].partition(". ")[0]
    "2 of 2 classes have one value of 'ill': it is the value of everyone in them"
    """
    lines = []
    for one in summary.get("homogeneity") or ():
        count, classes = one["homogeneous"], one["classes"]
        if not count:
            continue
        words = f"{number(count)} of {number(classes)} {'class' if classes == 1 else 'classes'}"
        if count == 1:
            told = f"has one value of {one['attribute']!r}: it is the value of everyone in it"
        else:
            told = f"have one value of {one['attribute']!r}: it is the value of everyone in them"
        lines.append(f"{words} {told}. l=2 or more, or a small t, prevents that.")
    return lines


def entry(summary: Summary, record: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return a run as one line of a job's history.

    Parameters
    ----------
    summary : mapping
        What was released; empty for a failed run.
    record : mapping, optional
        The run that did it.
    """
    record, counts = record or {}, summary.get("found") or {}
    sizes = counts.get("class_size") or {}
    return {
        **{key: record.get(key) for key in ("run", "started", "outcome", "exit_code")},
        **{key: counts.get(key) for key in ("rows_in", "rows_published", "suppressed_share")},
        "held_back": record.get("held_back"),
        "classes": counts.get("classes"),
        "homogeneous": homogeneous(summary),
        **{f"class_size_{key}": sizes.get(key) for key in ("min", "median", "mean")},
        "loss": total(summary, "loss"),
        "ncp": total(summary, "gcp"),
        **{key: record.get(key) for key in ("seconds", "peak_memory")},
    }


def trends(runs: Sequence[Mapping[str, Any]], unit: str) -> list[Trend]:
    """Return the figures of a job over its runs, oldest first; those that no two runs have are left out."""
    runs = list(runs)[-_SHOWN:]
    wanted = [
        ("Rows published", "rows_published", number, "", "rows_in"),
        ("Rows suppressed", "suppressed_share", share, "", None),
        ("Loss", "loss", number, "", None),
        ("Smallest class", "class_size_min", number, f" {unit}".rstrip(), None),
        ("Median class", "class_size_median", number, f" {unit}".rstrip(), None),
    ]
    drawn = []
    for title, key, say, counted, beside in wanted:
        values = [r.get(key) for r in runs if r.get(key) is not None]
        if len(values) < 2:
            continue
        points = [Point(r.get(key), _label(r, say(r.get(key))), r.get("outcome") == "failed") for r in runs]
        pale = [Point(r.get(beside), "") for r in runs] if beside else []
        most = max(p.value for p in (*points, *pale) if p.value is not None)
        drawn.append(Trend(title, say(values[-1]) + counted, say(most), points, pale))
    return drawn


def _label(run: Mapping[str, Any], value: str) -> str:
    when = minute(run.get("started"))
    text = "failed" if run.get("outcome") == "failed" else value
    return f"{when}: {text}" if when else text
