"""The cards of a comparison: risk and loss as two axes, then who gains, who loses, and by which index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from duckanon.report.assessments import metric_name
from duckanon.report.model import Bar, Block, Cell, Grid, Lines, Report, Scatter, Section, Spot, Verdict
from duckanon.report.text import counted, in_words, number, share

Row = Mapping[str, Any]
Tables = Mapping[str, Sequence[Row]]

RISK_AXIS = "average risk of a published row (%)"
LOSS_AXIS = "loss (0 is best, 1 is all)"
ABOUT = (
    "Average risk: the chance to link a published row to its person, for somebody who knows who is in the table. "
    "Loss: 0 is the original table, 1 a table that is fully suppressed."
)
_MOST = 20
_MARKS = {"better": "good", "worse": "bad"}


def verdict(standing: Sequence[Row]) -> Verdict:
    """Return which release is better in risk and loss, if one is.

    Examples
    --------
    >>> base = {"highest_risk": 0.2, "dominated_by": []}
    >>> a = {**base, "release": "a", "average_risk": 0.1, "loss": 0.4}
    >>> b = {**base, "release": "b", "average_risk": 0.05, "loss": 0.6}
    >>> verdict([a, b]).title
    'No release wins: less risk costs more loss'
    >>> verdict([a, {**b, "loss": 0.3, "dominated_by": []}, {**a, "release": "c", "dominated_by": ["b"]}]).kind
    'warn'
    >>> verdict([{**a, "dominated_by": ["b"]}, {**b, "loss": 0.3}]).title
    'b has less risk and less loss than all others'
    """
    front = [row for row in standing if not row["dominated_by"]]
    if len(front) == 1 and len(standing) > 1:
        (best,) = front
        others = [row for row in standing if row is not best]
        equal = [
            words
            for key, words in (("highest_risk", "highest risk"), ("average_risk", "average risk"), ("loss", "loss"))
            if all(row[key] == best[key] for row in others)
        ]
        text = f"{_figures(best)}." + (f" Equal in all: {', '.join(equal)}." if equal else "")
        lower = [words for key, words in (("average_risk", "risk"), ("loss", "loss")) if words not in equal]
        title = f"{best['release']} has less risk and less loss than all others"
        if (equal and len(lower) < 2) or any(row["loss"] == best["loss"] for row in others):
            title = f"{best['release']} is at least as good as all others in risk and loss, and better in one"
        return Verdict("good", title, text)
    measured = [row for row in front if row["loss"] is not None]
    if len({(row["highest_risk"], row["average_risk"], row["loss"]) for row in front}) == 1:
        return Verdict("warn", "Equal in risk and loss", f"{', '.join(str(row['release']) for row in front)}.")
    safest = min(front, key=lambda row: (row["average_risk"], row["highest_risk"]))
    parts = [f"Least risk: {safest['release']} ({_figures(safest)})."]
    if measured:
        richest = min(measured, key=lambda row: row["loss"])
        parts.append(f"Least loss: {richest['release']} ({_figures(richest)}).")
    left = len(standing) - len(front)
    if left:
        parts.append(f"{left} of {len(standing)} are worse than another in risk and loss, or equal in one.")
    return Verdict("warn", "No release wins: less risk costs more loss", " ".join(parts))


def _figures(row: Row) -> str:
    return (
        f"average risk {share(row['average_risk'])}, highest {share(row['highest_risk'])}, loss {number(row['loss'])}"
    )


def comparison_report(tables: Tables) -> Report:
    """Return a comparison; ``tables`` are those of ``Comparison``, as rows."""
    standing = tables["standing"]
    return Report(
        f"{len(standing)} releases",
        "Comparison",
        comparison_sections(tables),
        facts=[str(row["release"]) for row in standing],
        verdict=verdict(standing),
    )


def comparison_sections(tables: Tables) -> list[Section]:
    """Return the sections of a comparison."""
    standing = tables["standing"]
    spots = [
        Spot(100 * row["average_risk"], row["loss"], str(row["release"]), not row["dominated_by"])
        for row in standing
        if row["loss"] is not None
    ]
    header = ("Release", "Average risk", "Highest risk", "Loss", "Suppressed", "Better in both, or in one and equal")
    lines = [
        [
            str(row["release"]),
            Cell(share(row["average_risk"])),
            share(row["highest_risk"]),
            number(row["loss"]),
            share(row["suppressed_share"]),
            ", ".join(row["dominated_by"]) or Cell("none", mark="good"),
        ]
        for row in standing
    ]
    blocks: list[Block] = [
        Scatter(spots, RISK_AXIS, LOSS_AXIS),
        Grid(header, lines, right=(1, 2, 3, 4), wide=True),
        Lines([f"{ABOUT} Filled in the picture: no other release is better."], aside=True),
    ]
    sections = [Section("Risk and loss", blocks)]
    sections.append(Section("Who gains, who loses", [_gains(tables["gains"])]))
    sections.append(Section("In pairs", _pairs(tables["indices"]), brief=False))
    sections.append(Section("How many indices each wins", [_tournament(tables["tournament"])], half=True))
    sections.append(Section("Who carries the risk", [_bias(tables["bias"])], half=True))
    names = [str(row["release"]) for row in standing]
    lost = [
        [metric_name(row["metric"]), *(number(row[name]) for name in names), row["direction"]]
        for row in tables["metrics"]
        if row["attribute"] is None
    ]
    if lost:
        grid = Grid(("Metric", *names, "Better"), lost, right=range(1, 1 + len(names)), wide=True)
        sections.append(Section("What was lost, by each metric", [grid], brief=False))
    return sections


def _first(rows: Sequence[Sequence[str | Cell]], header: Sequence[str], right: Sequence[int]) -> list[Block]:
    more: list[Block] = []
    if len(rows) > _MOST:
        more = [Lines([f"{len(rows) - _MOST} more are in the table."], aside=True)]
    return [Grid(header, rows[:_MOST], right=right, wide=True), *more]


def _gains(gains: Sequence[Row]) -> Grid:
    rows: list[list[str | Cell]] = []
    pairs: dict[tuple[str, frozenset[str]], Row] = {}
    for row in gains:
        # The other way round, who gains loses.
        pairs.setdefault((row["property"], frozenset((row["release"], row["against"]))), row)
    for row in list(pairs.values())[:_MOST]:
        total = row["rows_better"] + row["rows_equal"] + row["rows_worse"]
        cells = [
            Cell(number(row[key]), bar=Bar(row[key] / total, f"{row[key]} of {total} rows") if total else None)
            for key in ("rows_better", "rows_worse")
        ]
        pair = f"{row['release']} in place of {row['against']}"
        rows.append([pair, in_words(str(row["property"])), *cells, number(row["rows_equal"])])
    return Grid(("", "Property", "Rows better", "Rows worse", "Equal"), rows, right=(2, 3, 4), wide=True)


def _pairs(pairs: Sequence[Row]) -> list[Block]:
    rows: list[list[str | Cell]] = [
        [
            str(row["release"]),
            str(row["against"] or ""),
            in_words(str(row["index"])),
            in_words(str(row["property"] or "all")),
            number(row["value"]),
            Cell(str(row["verdict"]), mark=_MARKS.get(row["verdict"], "")),
        ]
        for row in pairs
    ]
    return _first(rows, ("Release", "Against", "Index", "Property", "Value", ""), (4,))


def _tournament(tournament: Sequence[Row]) -> Grid:
    rows = [
        [str(row["release"]), *(number(row[key]) for key in ("wins", "draws", "losses", "incomparable"))]
        for row in tournament
        if row["index"] is None
    ]
    return Grid(("Release", "Won", "Drawn", "Lost", "Incomparable"), rows, right=(1, 2, 3, 4))


def _bias(bias: Sequence[Row]) -> Grid:
    rows = [
        [str(row["release"]), share(row["risk_of_top_tenth"]), number(row["gini"]), counted(row["suppressed"], "row")]
        for row in bias
    ]
    head = (
        "Release",
        Cell("On a tenth", about="the part of all risk that is on the tenth of the rows with most"),
        Cell("Gini", about="of the sizes of classes: 0 where all are equal, towards 1 where few rows have large ones"),
        "Suppressed",
    )
    return Grid(head, rows, right=(1, 2, 3))


__all__ = ["comparison_report", "comparison_sections", "verdict"]
