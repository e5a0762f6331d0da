"""What learners make of a release, and which job teaches best: on a terminal, and as plain lines."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duckanon.cli.screen import Screen, count, share, shown_path
from duckanon.cli.show import headed, sections
from duckanon.utility.scores import SCORES

if TYPE_CHECKING:
    from rich.console import RenderableType

    from duckanon.utility.results import Evaluation
    from duckanon.utility.workload import Workload

Row = Mapping[str, Any]
_RIGHT = {"justify": "right", "no_wrap": True}
_WHOLE = {"no_wrap": True}
_HEADS = {"f1": "F1", "auroc": "AUROC"}


def show_utility(
    screen: Screen, name: str, found: Evaluation, workload: Workload | None, html: Path | None = None
) -> None:
    """Show what learners reach, taught by raw rows and by the release, and how far off queries are."""
    rows = found.summary().to_pylist()
    kept = found.kept()
    if not screen.rich:
        tested = "rows tested (in-sample)" if found.in_sample else "held-out rows"
        screen.line(f"{name}: predicting {found.target}, {count(found.test_rows)} {tested}")
        for row in rows:
            figures = ", ".join(f"{score} {_figure(row, score)}" for score in SCORES)
            screen.line(f"{row['learner']}, taught by {_taught(row)}, tested on {row['tested_on']}: {figures}")
        for learner, part in kept.items():
            if part is not None:
                screen.line(
                    f"{learner} keeps {share(max(part, 0.0))} of what raw rows teach beyond the zero rule (AUROC)"
                )
        for row in workload.summary().to_pylist() if workload is not None else ():
            screen.line(f"{row['kind']} queries: median error {share(row['median'])}, mean {share(row['mean'])}")
        for note in found.notes:
            screen.line(f"note: {note}")
        if html is not None:
            screen.line(f"page: {shown_path(html)}")
        return
    from rich.text import Text

    heads = ((_HEADS.get(score, score), _RIGHT) for score in SCORES)
    table = headed(("learner", _WHOLE), ("taught by", _WHOLE), ("tested on", _WHOLE), *heads)
    last = None
    for row in rows:
        first = row["learner"] if row["learner"] != last else ""
        last = row["learner"]
        style = "dim" if row["trained_on"] == "raw" else ""
        cells = [Text(first, style="bold"), Text(_taught(row), style=style), Text(row["tested_on"], style=style)]
        table.add_row(*cells, *(Text(_figure(row, score), style=style) for score in SCORES))
    parts: list[tuple[str, RenderableType]] = [(f"{name}: predicting {found.target}", table)]
    lines = [f"{learner}: {'-' if part is None else share(max(part, 0.0))}" for learner, part in kept.items()]
    parts.append(("Kept of what raw rows teach beyond the zero rule (AUROC)", Text("\n".join(lines))))
    if workload is not None:
        parts.append(("Range queries", _answers(workload)))
    if found.notes:
        style = "bold yellow" if found.in_sample else "yellow"
        parts.append(("Notes", Text("\n".join(found.notes), style=style)))
    if html is not None:
        parts.append(("Page", Text(shown_path(html))))
    sections(screen, parts)


def _taught(row: Row) -> str:
    return "raw rows" if row["trained_on"] == "raw" else f"release ({row['encoding']})"


def _figure(row: Row, score: str) -> str:
    deviation = row[f"{score}_deviation"]
    return f"{row[score]:.3f}" + ("" if deviation is None else f" ±{deviation:.3f}")


def _answers(workload: Workload) -> RenderableType:
    heads = ((head, _RIGHT) for head in ("queries", "median error", "mean", "nine of ten below"))
    table = headed(("kind", _WHOLE), *heads)
    for row in workload.summary().to_pylist():
        errors = (share(row[name]) for name in ("median", "mean", "q90"))
        table.add_row(row["kind"], count(row["queries"]), *errors)
    return table
