"""The history of a job: one flat row for each run, warnings where a run differs from earlier ones, and a chart."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from duckanon.report.history import homogeneous
from duckanon.report.text import minute

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.table import Table

COLUMNS = {
    "run": "string",
    "started": "string",
    "seconds": "float64",
    "outcome": "string",
    "exit_code": "int64",
    "error": "string",
    "reason": "string",
    "rows_in": "int64",
    "rows_published": "int64",
    "rows_suppressed": "int64",
    "suppressed_share": "float64",
    "held_back": "int64",
    "classes": "int64",
    "homogeneous": "int64",
    "class_size_min": "int64",
    "class_size_median": "float64",
    "class_size_mean": "float64",
    "class_size_max": "int64",
    "loss": "float64",
    "ncp": "float64",
    "peak_memory": "int64",
    "recoding": "string",
    "duckanon": "string",
    "engine": "string",
}
"""The columns of the history with their Arrow types.

``rows_suppressed`` counts all rows that are not published; ``held_back`` those of them that wait until their class is
large enough, or until others change with them. ``homogeneous`` counts classes with one value of a sensitive column, the
most of any such column. ``error`` is the type of an error and ``reason`` its message: those of duckanon have no value
of the data, and others are withheld.
"""


def flat(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of a run as one row; what a run does not have is None."""
    summary: Mapping[str, Any] = record.get("summary") or {}
    found: Mapping[str, Any] = summary.get("found") or {}
    sizes: Mapping[str, Any] = found.get("class_size") or {}
    error: Mapping[str, Any] = record.get("error") or {}
    engine: Mapping[str, Any] = summary.get("engine") or {}
    row = {
        **{name: record.get(name) for name in ("run", "started", "seconds", "outcome", "exit_code")},
        "error": error.get("type"),
        "reason": error.get("message"),
        **{name: found.get(name) for name in ("rows_in", "rows_published", "rows_suppressed", "suppressed_share")},
        "held_back": record.get("held_back"),
        "classes": found.get("classes"),
        "homogeneous": homogeneous(summary),
        **{f"class_size_{name}": sizes.get(name) for name in ("min", "median", "mean", "max")},
        "loss": _loss(summary, "loss"),
        # The mean of all cells: their sum grows with the rows.
        "ncp": _loss(summary, "gcp"),
        "peak_memory": record.get("peak_memory"),
        "recoding": record.get("recoding"),
        "duckanon": summary.get("duckanon"),
        "engine": f"{engine['name']} {engine['version']}" if engine else None,
    }
    return {name: _plain(row[name], kind) for name, kind in COLUMNS.items()}


def _loss(summary: Mapping[str, Any], metric: str) -> Any:
    measured = summary.get("loss") or []
    return next((m["value"] for m in measured if m["metric"] == metric and m.get("attribute") is None), None)


def _plain(value: Any, kind: str) -> Any:
    if value is None:
        return None
    if kind == "string":
        return str(value)
    number = float(value)
    if not math.isfinite(number):
        return None
    return int(value) if kind == "int64" else number


def read_history(path: Path) -> pa.Table:
    """Return the rows of a history file; an incomplete last line is skipped."""
    import pyarrow as pa

    rows: list[dict[str, Any]] = []
    if path.exists():
        for line in path.read_bytes().split(b"\n")[:-1]:
            try:
                row = json.loads(line)
            except ValueError:
                continue
            if isinstance(row, dict):
                rows.append(row)
    schema = pa.schema([(name, getattr(pa, kind)()) for name, kind in COLUMNS.items()])
    return pa.Table.from_pylist([{name: row.get(name) for name in COLUMNS} for row in rows], schema=schema)


# Drift


@dataclass(frozen=True)
class Figure:
    """A number that is compared from run to run; a change below ``least`` never makes a warning.

    The change of a share or a loss is a difference (0.02 is two points), that of a count is relative.
    """

    name: str
    words: str
    share: bool = False

    @property
    def least(self) -> float:
        """The smallest change that makes a warning, in points or relative."""
        return 0.02 if self.share else 0.1

    def shown(self, value: float | None) -> str:
        """Return the figure as a reader sees it."""
        if value is None:
            return "-"
        if self.share:
            return f"{value:.4f}"
        return f"{value:,.0f}" if float(value).is_integer() or abs(value) >= 1000 else f"{value:,.1f}"


FIGURES = (
    Figure("rows_in", "rows of the source"),
    Figure("rows_published", "rows published"),
    Figure("suppressed_share", "share not published", share=True),
    Figure("held_back", "rows held back"),
    Figure("classes", "classes"),
    Figure("homogeneous", "classes with one sensitive value"),
    Figure("class_size_min", "smallest class"),
    Figure("class_size_median", "median class"),
    Figure("class_size_mean", "mean class"),
    Figure("loss", "loss", share=True),
    Figure("ncp", "NCP", share=True),
)
"""What ``drift`` compares and ``chart`` draws."""


def drift(
    history: pa.Table, record: Mapping[str, Any], *, runs: int = 14, least: int = 5, far: float = 4.0
) -> list[str]:
    """Return warnings where a run differs from the published runs before it.

    A figure has moved far if it is further from the median of the last ``runs`` published runs than ``far`` times
    their usual distance from it, the median absolute deviation times 1.4826 (a standard deviation, were they normal),
    and by more than a tenth of the median (two points for shares and losses). Up to half of the runs may be outliers
    without effect on median and MAD. With fewer than ``least`` runs there is no warning.

    Parameters
    ----------
    history : pyarrow.Table
        ``State.history()``, without the run itself.
    record : mapping
        The record of the run, as it is given to ``State.append``.
    """
    before = _published(history)[-runs:]
    now = flat(record)
    warnings = []
    for figure in FIGURES:
        earlier = [float(row[figure.name]) for row in before if row[figure.name] is not None]
        value = now[figure.name]
        if value is None or len(earlier) < least:
            continue
        middle = median(earlier)
        spread = 1.4826 * median(abs(x - middle) for x in earlier)
        change = abs(value - middle)
        floor = figure.least if figure.share else max(figure.least * abs(middle), 1.0)
        if change > floor and change > far * spread:
            way = "more" if value > middle else "less"
            usual = f"the median of the last {len(earlier)} published runs is {figure.shown(middle)}"
            warnings.append(f"{figure.words}: {figure.shown(value)}, far {way} than usual ({usual}).")
    return warnings


def _published(history: pa.Table) -> list[dict[str, Any]]:
    # One row for each run of a job: a few hundred a year.
    rows: list[dict[str, Any]] = history.to_pylist()
    return [row for row in rows if row["outcome"] == "published"]


# The chart

_BARS = "▁▂▃▄▅▆▇█"
_GAP = "·"


def spark(values: Sequence[float | None]) -> str:
    """Return a line of bars, from the smallest to the largest value; a dot where there is none.

    Examples
    --------
    >>> spark([1, 2, None, 3])
    '▁▅·█'
    >>> spark([7, 7])
    '▄▄'
    """
    present = [v for v in values if v is not None]
    low, high = (min(present), max(present)) if present else (0.0, 0.0)
    bars = []
    for value in values:
        if value is None:
            bars.append(_GAP)
        elif high == low:
            bars.append(_BARS[3])
        else:
            # Rounded half up, so that the middle of the range is in the upper half.
            bars.append(_BARS[min(int((value - low) / (high - low) * (len(_BARS) - 1) + 0.5), len(_BARS) - 1)])
    return "".join(bars)


def _charted(history: pa.Table, width: int) -> tuple[str, list[tuple[str, str, str, str, str]]]:
    """Return a title, and (words, line, smallest, largest, last) of each figure that any run has."""
    rows: list[dict[str, Any]] = history.to_pylist()
    shown = [row for row in rows if row["outcome"] != "dry_run"][-width:]
    failed = sum(row["outcome"] != "published" for row in shown)
    title = "no runs yet"
    if shown:
        runs = "1 run" if len(shown) == 1 else f"{len(shown)} runs"
        title = f"{runs} from {_day(shown[0])} to {_day(shown[-1])}, {failed} failed"
    lines = []
    for figure in FIGURES:
        values = [row[figure.name] if row["outcome"] == "published" else None for row in shown]
        present = [v for v in values if v is not None]
        if present:
            ends = (figure.shown(min(present)), figure.shown(max(present)), figure.shown(present[-1]))
            lines.append((figure.words, spark(values), *ends))
    return title, lines


def failures(history: pa.Table, most: int = 5) -> list[str]:
    """Return why the last runs failed, newest first: when, the exit code and the reason.

    Examples
    --------
    >>> from pathlib import Path
    >>> failures(read_history(Path("no-runs.jsonl")))
    []
    """
    from duckanon.report.phrases import EXITS

    rows = [row for row in history.to_pylist() if row["outcome"] == "failed"]
    lines = []
    for row in reversed(rows[-most:]):
        meaning = EXITS.get(row["exit_code"], "unknown")
        why = ": ".join(str(row[k]) for k in ("error", "reason") if row[k])
        lines.append(f"{minute(row['started'])}: exit code {row['exit_code']}, {meaning}. {why}".rstrip())
    return lines


def _day(row: Mapping[str, Any]) -> str:
    return str(row["started"] or "?")[:10]


_HEADS = ("", "oldest to newest", "least", "most", "last")


def chart(history: pa.Table, width: int = 30) -> str:
    """Return the history as plain text: a line of bars for each figure, one bar for each run, a dot for a failed one.

    The newest ``width`` runs are shown.
    """
    title, lines = _charted(history, width)
    if not lines:
        return title
    table = [_HEADS, *lines]
    widths = [max(len(row[i]) for row in table) for i in range(len(_HEADS))]
    shown = [
        "  ".join(
            [row[0].ljust(widths[0]), row[1].ljust(widths[1]), *(row[i].rjust(widths[i]) for i in range(2, len(row)))]
        ).rstrip()
        for row in table
    ]
    return "\n".join([title, *shown])


def chart_table(history: pa.Table, width: int = 30) -> Table:
    """Return the history as a table for rich, see ``chart``."""
    from rich import box
    from rich.table import Table

    title, lines = _charted(history, width)
    rich_table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for i, head in enumerate(_HEADS):
        rich_table.add_column(head, justify="right" if i > 1 else "left", no_wrap=True)
    for line in lines:
        rich_table.add_row(*line)
    return rich_table


__all__ = ["COLUMNS", "FIGURES", "Figure", "chart", "chart_table", "drift", "failures", "flat", "read_history", "spark"]
