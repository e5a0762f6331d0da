"""Metrics of a run for Prometheus, as a file that node_exporter's textfile collector reads."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from duckanon.jobs.monitoring.files import alone_in, os_errors, replace_text
from duckanon.report.history import entry

Record = Mapping[str, Any]
Labels = tuple[str, str]
"""Job and table."""


@dataclass(frozen=True)
class _Metric:
    """A gauge. One ``of_release`` is about the last release that was published, which a failed run leaves as it is."""

    name: str
    about: str
    value: Callable[[Record, Mapping[str, Any]], Any]
    of_release: bool = False


_METRICS = (
    _Metric("duckanon_last_run_timestamp_seconds", "When the last run ended.", lambda r, _: _seconds(r.get("ended"))),
    _Metric(
        "duckanon_last_success_timestamp_seconds",
        "When the last run that published a release ended.",
        lambda r, _: _seconds(r.get("ended")),
        of_release=True,
    ),
    _Metric("duckanon_last_run_exit_code", "Exit code of the last run: 0 is good.", lambda r, _: r.get("exit_code")),
    _Metric("duckanon_last_run_seconds", "How long the last run took.", lambda r, _: r.get("seconds")),
    _Metric("duckanon_last_run_warnings", "Warnings of the last run.", lambda r, _: len(r.get("warnings") or ())),
    _Metric(
        "duckanon_last_run_peak_memory_bytes",
        "The most memory that the process of the last run had.",
        lambda r, _: r.get("peak_memory"),
    ),
    _Metric("duckanon_rows_in", "Rows of the source.", lambda _, f: f["rows_in"], of_release=True),
    _Metric("duckanon_rows_published", "Rows of the release.", lambda _, f: f["rows_published"], of_release=True),
    _Metric("duckanon_rows_suppressed", "Rows left out.", lambda _, f: f["rows_suppressed"], of_release=True),
    _Metric("duckanon_rows_held_back", "Rows that wait for their class.", lambda _, f: f["held_back"], of_release=True),
    _Metric(
        "duckanon_suppressed_ratio", "Share of the rows left out.", lambda _, f: f["suppressed_share"], of_release=True
    ),
    _Metric("duckanon_classes", "Classes of the release.", lambda _, f: f["classes"], of_release=True),
    _Metric(
        "duckanon_class_size_min",
        "Rows or persons in the smallest class.",
        lambda _, f: f["class_size_min"],
        of_release=True,
    ),
    _Metric(
        "duckanon_class_size_median",
        "Rows or persons in the median class.",
        lambda _, f: f["class_size_median"],
        of_release=True,
    ),
    _Metric(
        "duckanon_loss_ratio", "Loss of the release: 0 is best, 1 is all.", lambda _, f: f["loss"], of_release=True
    ),
)
_SAMPLE = re.compile(
    r'(?P<name>[a-z_]+)\{job="(?P<job>(?:[^"\\\n]|\\.)*)",table="(?P<table>(?:[^"\\\n]|\\.)*)"\} (?P<value>\S+)'
)
_Samples = dict[str, dict[Labels, float]]


def textfile(records: Iterable[Record]) -> str:
    r"""Return the metrics of runs, of which the last for each job and table counts.

    Examples
    --------
    >>> text = textfile([{"job": "h", "table": "t", "exit_code": 3, "outcome": "failed"}])
    >>> [line for line in text.splitlines() if "exit_code" in line][-1]
    'duckanon_last_run_exit_code{job="h",table="t"} 3'
    """
    return _text(_samples(records))


def write_textfile(path: str | Path, records: Iterable[Record]) -> None:
    """Put the metrics of runs into a file, at once and readable by everybody.

    What the file says of other jobs and tables stays, and after a run that published nothing also what it says of the
    last release: when it was, and its figures.
    """
    path, records = Path(path), list(records)
    with os_errors("metrics file", path), alone_in(path.absolute().parent):
        merged = _read(path)
        of_release = {m.name for m in _METRICS if m.of_release}
        for name, values in _samples(records).items():
            kept = merged.setdefault(name, {})
            for record in records:
                # A figure that this run does not have must not stay with the value of an earlier one.
                if name not in of_release or _published(record):
                    kept.pop(_labels(record), None)
            kept.update(values)
        replace_text(path, _text(merged))


def _samples(records: Iterable[Record]) -> _Samples:
    found: _Samples = {m.name: {} for m in _METRICS}
    for record in records:
        summary = record.get("summary") or {}
        figures = entry(summary, record)
        figures["rows_suppressed"] = (summary.get("found") or {}).get("rows_suppressed")
        for metric in _METRICS:
            if metric.of_release and not _published(record):
                continue
            value = metric.value(record, figures)
            if value is None:
                found[metric.name].pop(_labels(record), None)
            elif math.isfinite(value):
                found[metric.name][_labels(record)] = value
    return found


def _published(record: Record) -> bool:
    return record.get("outcome") == "published"


def _labels(record: Record) -> Labels:
    return str(record.get("job") or ""), str(record.get("table") or "")


def _seconds(text: Any) -> float | None:
    """Return an ISO time as seconds since 1970; one without a zone is UTC."""
    if not text:
        return None
    at = datetime.fromisoformat(str(text))
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def _text(samples: _Samples) -> str:
    lines = []
    for metric in _METRICS:
        values = samples.get(metric.name) or {}
        if values:
            lines += [f"# HELP {metric.name} {metric.about}", f"# TYPE {metric.name} gauge"]
            lines += [
                f'{metric.name}{{job="{_escaped(job)}",table="{_escaped(table)}"}} {_figure(value)}'
                for (job, table), value in sorted(values.items())
            ]
    return "".join(f"{line}\n" for line in lines)


def _figure(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], text)


def _read(path: Path) -> _Samples:
    """Return what a file says; one that is missing or damaged says nothing."""
    known: _Samples = {m.name: {} for m in _METRICS}
    try:
        # As bytes: reading as text would turn every kind of line end into \n.
        text = path.read_bytes().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return known
    # Lines end at \n alone: a label may hold other line separators.
    for line in text.split("\n"):
        found = _SAMPLE.fullmatch(line)
        if found is not None and found["name"] in known:
            try:
                value = float(found["value"])
            except ValueError:
                continue
            if math.isfinite(value):
                known[found["name"]][_unescaped(found["job"]), _unescaped(found["table"])] = value
    return known
