"""What learners make of a release, and which job teaches best: on a terminal, and as plain lines."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duckanon.assess.utility.scores import SCORES
from duckanon.interfaces.cli.screen import Screen, count, share, shown_path
from duckanon.interfaces.cli.show import headed, sections

if TYPE_CHECKING:
    from rich.console import RenderableType

    from duckanon.assess.utility.results import Evaluation
    from duckanon.assess.utility.workload import Workload
    from duckanon.jobs.tuning.results import Tuning

Row = Mapping[str, Any]
_RIGHT = {"justify": "right", "no_wrap": True}
_WHOLE = {"no_wrap": True}
_HEADS = {"f1": "F1", "auroc": "AUROC"}


def show_utility(
    screen: Screen, name: str, found: Evaluation, workload: Workload | None, html: Path | None = None
) -> None:
    """Show what learners reach, taught by raw rows and by the release, and how far off queries are."""
    rows = found.summary().to_pylist()
    order = list(dict.fromkeys(row["learner"] for row in rows))
    rows.sort(key=lambda row: order.index(row["learner"]))
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
    table = headed(("learner", _WHOLE), ("taught by", _WHOLE), ("tested on", _WHOLE), *heads, ("± F1", _RIGHT))
    last = None
    for row in rows:
        first = row["learner"] if row["learner"] != last else ""
        last = row["learner"]
        style = "dim" if row["trained_on"] == "raw" else ""
        cells = [Text(first), Text(row["trained_on"], style=style), Text(row["tested_on"], style=style)]
        deviation = row["f1_deviation"]
        shown = [f"{row[score]:.3f}" for score in SCORES] + ["" if deviation is None else f"{deviation:.3f}"]
        table.add_row(*cells, *(Text(one, style=style) for one in shown))
    encoding = next(row["encoding"] for row in rows if row["trained_on"] == "release")
    parts: list[tuple[str, RenderableType]] = [(f"{name}: predicting {found.target}, cells read by {encoding}", table)]
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


def show_tuning(screen: Screen, found: Tuning, job: Path | None, picture: Path | None) -> None:
    """Show the front of utility and risk, the best candidate, and what it is worth on rows held out."""
    best, name = found.best, _HEADS.get(found.score, found.score)
    last = found.final.score(found.score, learner=found.learner) if found.final is not None else None
    raw = found.final.score(found.score, learner=found.learner, trained_on="raw") if found.final is not None else None
    failed = len(found.lines) - len(found.tried)
    counts = f"{count(len(found.tried), 'candidates')} tried"
    counts += f", {failed} could not keep the promise or do not fit the job" if failed else ""
    counts += f", {found.left} left when time ended" if found.left else ""
    if not screen.rich:
        screen.line(f"{found.job.name}: {counts}; {found.score} of {found.learner} predicting {found.target}")
        screen.line(f"raw rows: {found.raw:.4f}; most frequent class: {found.zero_rule:.4f}")
        for line in found.front:
            screen.line(f"front: {_way(line)}: {line['score']:.4f}, average risk {share(line['average_risk'])}")
        screen.line(f"best: {_way(best)}: {best['score']:.4f}")
        if last is not None:
            screen.line(f"on rows that nothing was chosen by: {last:.4f} (raw rows {raw:.4f})")
        for what, path in (("job", job), ("picture", picture)):
            if path is not None:
                screen.line(f"{what}: {shown_path(path)}")
        return
    from rich.text import Text

    heads = (name, "±", "average risk", "highest", "suppressed")
    table = headed(("way", {"overflow": "fold"}), ("k", _RIGHT), *((head, _RIGHT) for head in heads))
    for line in reversed(found.front):
        style = "bold green" if line["key"] == best["key"] else ""
        spread = "" if line["deviation"] is None else f"{line['deviation']:.4f}"
        risks = [share(line[key]) for key in ("average_risk", "maximum_risk", "suppressed")]
        cells = [line["label"], "-" if line["k"] is None else str(line["k"]), f"{line['score']:.4f}", spread, *risks]
        table.add_row(*(Text(cell, style=style) for cell in cells))
    about = f"{counts}. On the same rows raw rows reach {found.raw:.4f}, the most frequent class {found.zero_rule:.4f}."
    parts: list[tuple[str, RenderableType]] = [
        (f"Front of utility and risk: {name} of {found.learner} predicting {found.target}", table),
        (found.job.name, Text(about)),
    ]
    if last is not None:
        told = f"{_way(best)}: {name} {last:.4f}, where raw rows reach {raw:.4f}"
        parts.append(("On rows that nothing was chosen by", Text(told, style="bold")))
    files = [shown_path(path) for path in (job, picture) if path is not None]
    if files:
        parts.append(("Written", Text("\n".join(files))))
    sections(screen, parts)


def _way(line: Row) -> str:
    return line["label"] if line["k"] is None else f"{line['label']}, k = {line['k']}"
