"""Metrics of a run for Prometheus, as a file that node_exporter's textfile collector reads."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from duckanon.io.disk import replacing
from duckanon.jobs.monitoring.files import alone_in, os_errors
from duckanon.report.history import cautions, entry

Record = Mapping[str, Any]
Labels = tuple[str, str]
"""Job and table."""
Samples = dict[str, dict[Labels, float]]

_OF_RUN = {
    "duckanon_last_run_timestamp_seconds": "When the last run ended.",
    "duckanon_last_run_exit_code": "Exit code of the last run: 0 is good.",
    "duckanon_last_run_seconds": "How long the last run took.",
    "duckanon_last_run_warnings": "Warnings of the last run.",
    "duckanon_last_run_peak_memory_bytes": "The most memory that the process of the last run had.",
}
_OF_RELEASE = {
    "duckanon_last_success_timestamp_seconds": "When the last run that published a release ended.",
    "duckanon_rows_in": "Rows of the source.",
    "duckanon_rows_published": "Rows of the release.",
    "duckanon_rows_suppressed": "Rows left out.",
    "duckanon_rows_held_back": "Rows that wait until their class is large enough.",
    "duckanon_suppressed_ratio": "Share of the rows left out.",
    "duckanon_classes": "Equivalence classes of the release.",
    "duckanon_homogeneous_classes": "Classes with one value of a sensitive column: the most of any such column.",
    "duckanon_class_size_min": "Rows or persons in the smallest class.",
    "duckanon_class_size_median": "Rows or persons in the median class.",
    "duckanon_loss_ratio": "Loss of the release: 0 is best, 1 is all.",
}
"""Metrics of the last published release: a failed run does not change them."""


def textfile(records: Iterable[Record]) -> str:
    r"""Return the metrics of runs, of which the last for each job and table counts.

    Examples
    --------
    >>> text = textfile([{"job": "h", "table": "t", "exit_code": 3, "outcome": "failed"}])
    >>> [line for line in text.splitlines() if "exit_code" in line][-1]
    'duckanon_last_run_exit_code{job="h",table="t"} 3.0'
    """
    return _text(_updated({}, records)).decode("utf-8")


def write_textfile(path: str | Path, records: Iterable[Record]) -> None:
    """Put the metrics of runs into a file, at once and readable by everybody.

    What the file says of other jobs and tables stays, and after a run that published nothing also what it says of the
    last release: when it was, and its figures.
    """
    path = Path(path)
    with os_errors("metrics file", path), alone_in(path.absolute().parent):
        text = _text(_updated(_read(path), records))
        with replacing(path, 0o644, follow=False) as staged:
            staged.write_bytes(text)


def _updated(samples: Samples, records: Iterable[Record]) -> Samples:
    """Return samples with those of runs in place of the earlier ones of the same job and table."""
    for record in records:
        labels = _clean(record.get("job")), _clean(record.get("table"))
        for name, value in _values(record).items():
            of_name = samples.setdefault(name, {})
            # A figure that this run does not have must not stay with the value of an earlier one.
            of_name.pop(labels, None)
            if value is not None and math.isfinite(value):
                of_name[labels] = float(value)
    return samples


def _values(record: Record) -> dict[str, Any]:
    summary = record.get("summary") or {}
    of_run = (
        _seconds(record.get("ended")),
        record.get("exit_code"),
        record.get("seconds"),
        len(record.get("warnings") or ()) + len(cautions(record.get("summary") or {})),
        record.get("peak_memory"),
    )
    values: dict[str, Any] = dict(zip(_OF_RUN, of_run, strict=True))
    if record.get("outcome") != "published":
        return values
    figures = entry(summary, record)
    of_release = (
        _seconds(record.get("ended")),
        figures["rows_in"],
        figures["rows_published"],
        (summary.get("found") or {}).get("rows_suppressed"),
        *(figures[name] for name in ("held_back", "suppressed_share", "classes", "homogeneous", "class_size_min")),
        *(figures[name] for name in ("class_size_median", "loss")),
    )
    return {**values, **dict(zip(_OF_RELEASE, of_release, strict=True))}


def _clean(name: Any) -> str:
    return str(name or "").encode("utf-8", errors="replace").decode("utf-8")


def _seconds(text: Any) -> float | None:
    """Return an ISO time as seconds since 1970; one without a zone is UTC."""
    if not text:
        return None
    at = datetime.fromisoformat(str(text))
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def _text(samples: Samples) -> bytes:
    from prometheus_client import generate_latest
    from prometheus_client.core import GaugeMetricFamily
    from prometheus_client.registry import Collector

    class Families(Collector):
        # Not Gauge: with PROMETHEUS_MULTIPROC_DIR set, its values would be in files of the process.
        def collect(self) -> Iterable[GaugeMetricFamily]:
            for name, about in {**_OF_RUN, **_OF_RELEASE}.items():
                if samples.get(name):
                    family = GaugeMetricFamily(name, about, labels=("job", "table"))
                    for labels, value in sorted(samples[name].items()):
                        family.add_metric(labels, value)
                    yield family

    return generate_latest(Families())


def _read(path: Path) -> Samples:
    """Return the samples of a file, none if it is missing; a damaged line is left out."""
    from prometheus_client.parser import text_string_to_metric_families

    samples: Samples = {}
    try:
        # As bytes: reading as text would turn every kind of line end into \n.
        lines = path.read_bytes().decode("utf-8", errors="replace").split("\n")
    except FileNotFoundError:
        return samples
    for line in lines:
        if not line.startswith((*_OF_RUN, *_OF_RELEASE)):
            continue
        try:
            found = [sample for family in text_string_to_metric_families(line + "\n") for sample in family.samples]
        except ValueError:
            continue
        for sample in found:
            if sample.name in _OF_RUN or sample.name in _OF_RELEASE:
                labels = sample.labels.get("job", ""), sample.labels.get("table", "")
                samples.setdefault(sample.name, {})[labels] = float(sample.value)
    return samples
