"""The cards of assessments: what a table satisfies, what it lost, its risk, its lattice, suggested roles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from duckanon.metrics.base import metrics
from duckanon.models.base import CheckResult, models
from duckanon.report.model import (
    Bar,
    Block,
    Cell,
    Grid,
    Lines,
    Report,
    Scatter,
    Section,
    Spot,
    Tile,
    Verdict,
)
from duckanon.report.text import counted, in_words, number, sentence, share

Row = Mapping[str, Any]

PROSECUTOR, JOURNALIST, MARKETER = "prosecutor", "journalist", "marketer"
_WHO = {
    PROSECUTOR: "knows that the person is in the table",
    JOURNALIST: "does not know whether the person is in the table",
    MARKETER: "wants to link as many people as possible",
}
_ROLES = {"identifier": "bad"}


def metric_name(metric: str) -> Cell:
    """Return the name of a metric in words, explained where somebody points at it.

    Examples
    --------
    >>> metric_name("average_class_size").text, metric_name("average_class_size").about
    ('average class size', 'rows per class, suppressed rows being one class')
    """
    return Cell(in_words(metric), about=metrics.get(metric).summary if metric in metrics else "")


def model_name(model: str) -> Cell:
    """Return the name of a model, explained where somebody points at it."""
    return Cell(model, about=models.get(model).summary if model in models else "")


def checks_report(checks: Sequence[CheckResult]) -> Report:
    """Return what checks of a table found."""
    broken = [c for c in checks if not c.holds]
    rows = [
        (
            Cell(sentence(c.text), aside=c.model),
            Cell("yes", mark="good") if c.holds else Cell("NO", mark="bad"),
            number(c.classes),
            number(c.violating_classes),
            number(c.violating_rows),
        )
        for c in checks
    ]
    head = ("Requirement", "Holds", "Classes", "That break it", "Rows in those")
    verdict = Verdict("good", "All privacy requirements hold", f"{counted(len(checks), 'check')}.")
    if broken:
        few = f"{len(broken)} of {counted(len(checks), 'check')} {'does' if len(broken) == 1 else 'do'} not hold."
        verdict = Verdict("bad", "A privacy requirement is violated", few)
    elif not len(checks):
        verdict = Verdict("warn", "Nothing was checked", "")
    sections = [Section("Requirements", [Grid(head, rows, right=(2, 3, 4))])] if len(checks) else []
    return Report("Checks of a table", "Check", sections, verdict=verdict)


def measures_report(measured: Sequence[Any]) -> Report:
    """Return what a release lost, by each metric: in all, and in each column."""
    totals, single = ([m for m in measured if (m.attribute is None) is whole] for whole in (True, False))
    rows = [
        (
            metric_name(m.metric),
            number(m.value),
            _lost(m.normalised, m.metric),
            "higher" if m.direction == "higher" else "lower",
        )
        for m in totals
    ]
    sections = []
    if rows:
        about = Lines(["Lost: 0 % is the original table, 100 % a table that is fully suppressed."], aside=True)
        sections.append(
            Section("In all", [Grid(("Metric", "Value", "Lost", "Better"), rows, right=(1, 2)), about], half=True)
        )
    if single:
        names = list(dict.fromkeys(m.metric for m in single))
        values = {(m.attribute, m.metric): m for m in single}
        # As many metrics as a page has room for; the table has all.
        shown = [n for n in ("loss", "gcp", "precision") if n in names] or names[:4]
        columns = dict.fromkeys(m.attribute for m in single if m.metric in shown)
        cells: list[list[str | Cell]] = [
            [str(c), *(_lost(getattr(values.get((c, n)), "normalised", None), f"{n} of {c}") for n in shown)]
            for c in columns
        ]
        grid = Grid(("Column", *(metric_name(n) for n in shown)), cells, right=range(1, 1 + len(shown)))
        sections.append(Section("Lost in each column", [grid], half=True))
    return Report("Information loss", "Loss", sections, facts=[counted(len(totals), "metric")])


def _lost(part: float | None, what: str) -> Cell:
    return Cell(share(part), bar=None if part is None else Bar(part, f"{what}: {share(part)} lost"))


def privacy_report(rows: Sequence[Row]) -> Report:
    """Return what a table satisfies."""
    broken, asked = ([r for r in rows if r["holds"] is held] for held in (False, True))
    tiles, facts = [], []
    if rows:
        first = rows[0]
        facts = [f"{counted(first['classes'], 'class')}, of {number(first['smallest'])} to {number(first['largest'])}"]
        facts[0] += f" {first['unit']}"
        tiles = [
            Tile("k", _strongest(rows, "k_anonymity"), f"{first['unit']} in the smallest class"),
            Tile("Alone in their class", number(first["singletons"]), first["unit"]),
        ]
    verdict = None
    if broken:
        names = ", ".join(dict.fromkeys(str(r["model"]) for r in broken))
        verdict = Verdict("bad", "A privacy requirement is violated", f"Not satisfied: {names}.")
    elif asked:
        verdict = Verdict("good", "All privacy requirements hold", f"{counted(len(asked), 'requirement')}.")
    lines = []
    for row in rows:
        level = "none" if row["value"] is None else f"{row['parameter']} = {number(_whole(row['value']))}"
        mark = Cell("")
        if row["holds"] is not None:
            wanted = f"{row['parameter']} = {number(_whole(row['threshold']))}"
            mark = Cell(f"{'holds' if row['holds'] else 'BROKEN'}: {wanted}", mark="good" if row["holds"] else "bad")
        lines.append((model_name(row["model"]), row["attribute"] or "", level, *([mark] if broken or asked else [])))
    head = ("Model", "Column", "Strongest that holds", *(["Asked for"] if broken or asked else []))
    return Report(
        "What the table satisfies", "Privacy", [Section("Models", [Grid(head, lines)])], facts, "", verdict, tiles
    )


def _whole(value: float) -> float | int:
    return int(value) if value == value and abs(value) < 1e15 and value == int(value) else value


def _strongest(rows: Sequence[Row], model: str) -> str:
    return next((number(_whole(r["value"])) for r in rows if r["model"] == model and r["value"] is not None), "-")


def risk_report(found: Any) -> Report:
    """Return the risk of a table, as ``duckanon.risk`` found it."""
    at_risk = found.prosecutor.at_risk
    limit = share(found.threshold)
    title = f"{share(at_risk)} of the {found.unit} have a risk above {limit}"
    text = f"Highest risk {share(found.prosecutor.maximum)}, for somebody who knows that the person is in the table."
    verdict = Verdict("bad" if at_risk else "good", title if at_risk else f"No risk is above {limit}", text)
    rows: list[list[str | Cell]] = []
    for who in (PROSECUTOR, JOURNALIST):
        attacker = getattr(found, who)
        if attacker is not None:
            shares = [Cell(share(v), bar=Bar(v, f"{who}: {share(v)}")) for v in (attacker.maximum, attacker.average)]
            above = Cell(share(attacker.at_risk), mark="bad" if attacker.at_risk else "good")
            rows.append([Cell(who, aside=_WHO[who]), above, *shares])
    rows.append([Cell(MARKETER, aside=_WHO[MARKETER]), "", "", share(found.marketer)])
    sections = [
        Section(
            "Reidentification, by who attacks",
            [Grid(("Attacker", f"Above {limit}", "Highest", "Average"), rows, right=(1, 2, 3), wide=True)],
        )
    ]
    if found.disclosure:
        lines = [
            (
                d.attribute,
                f"{number(d.classes)} of {number(found.classes)}",
                Cell(share(d.share), bar=Bar(d.share, f"{d.attribute}: {share(d.share)}")),
            )
            for d in found.disclosure
        ]
        about = "Who is known to be in such a class has the value, whichever row is theirs."
        blocks: list[Block] = [Grid(("Column", "Classes with one value", "Rows in them"), lines, right=(1, 2))]
        sections.append(
            Section("Sensitive values that a class tells", [*blocks, Lines([about], aside=True)], half=True)
        )
    unique = [(v, meaning) for m, v, meaning in found.figures() if m.startswith("population_uniqueness")]
    if unique:
        table = [(sentence(meaning), share(value)) for value, meaning in unique]
        sections.append(Section("Unique in the population", [Grid(("", "Share"), table, right=(1,))], half=True))
    if found.composition is not None:
        lines2 = [
            (in_words(name), number(_whole(value)), meaning) for name, value, meaning in found.composition.figures()
        ]
        sections.append(Section("Together with the previous release", [Grid(("", "", ""), lines2, right=(1,))]))
    tiles = [
        Tile(found.unit.capitalize(), number(found.members), "assessed"),
        Tile("Classes", number(found.classes), f"the smallest of {counted(found.smallest, found.unit[:-1])}"),
        Tile("Alone in their class", share(found.sample_unique), f"of the {found.unit}"),
    ]
    return Report("Risk of reidentification", "Risk", sections, (), "", verdict, tiles)


LATTICE_ROWS = 20
_LATTICE_SPOTS = 400
"""So many nodes are drawn, the front and then those of least loss."""


def lattice_report(rows: Sequence[Row], chosen: Sequence[str], best: Sequence[int]) -> Report:
    """Return the nodes of a lattice; ``best`` are the places of those on the front of risk and loss."""
    anonymous = [i for i, r in enumerate(rows) if r["anonymous"]]
    metric = next((m for m in chosen if m != "height"), None)
    front = set(best)
    sections: list[Section] = []
    if metric is not None:
        seen = [i for i in anonymous if rows[i]["risk"] is not None and rows[i][metric] is not None]
        seen.sort(key=lambda i: (i not in front, rows[i][metric]))
        spots = [
            Spot(100 * rows[i]["risk"], rows[i][metric], _levels(rows[i]), i in front) for i in seen[:_LATTICE_SPOTS]
        ]
        if spots and all(s.y >= 0 for s in spots):
            about = "Filled: on the front, no other node is as good in both and better in one."
            picture = Scatter(spots, "highest risk of a published row (%)", f"{in_words(metric)}", front=True)
            sections.append(Section("Risk and loss of the anonymous nodes", [picture, Lines([about], aside=True)]))
    shown = list(best) or sorted(
        anonymous, key=lambda i: rows[i][metric] if metric and rows[i][metric] is not None else 0
    )
    title = (
        "On the front of risk and loss" if best else "Anonymous" if anonymous else "None is anonymous: least suppressed"
    )
    if not shown:
        shown = sorted(
            range(len(rows)), key=lambda i: rows[i]["suppressed"] if rows[i]["suppressed"] is not None else 0
        )
    grid: list[list[str | Cell]] = [
        [
            Cell(_levels(rows[i]), aside=str(rows[i]["node"])),
            share(rows[i]["risk"]),
            *(number(rows[i][m]) for m in chosen if m != "height"),
            share(rows[i]["suppressed_share"]),
            number(rows[i]["classes_published"]),
        ]
        for i in shown[:LATTICE_ROWS]
    ]
    named = [metric_name(m) for m in chosen if m != "height"]
    head: list[str | Cell] = ["Levels", "Risk", *named, "Suppressed", "Classes"]
    table = Grid(head, grid, right=range(1, len(head)), wide=True)
    left = len(shown) - len(grid)
    more = [Lines([f"{number(left)} more are in the table."], aside=True)] if left else []
    sections.append(Section(title, [table, *more]))
    facts = [counted(len(rows), "node"), f"{number(len(anonymous))} of them anonymous"]
    return Report("Full-domain generalizations", "Lattice", sections, facts)


def _levels(row: Row) -> str:
    """Return the levels of the columns that are generalized."""
    return ", ".join(f"{name} {level}" for name, level in row["levels"].items() if level) or "all as they are"


def suggestion_report(rows: Sequence[Row]) -> Report:
    """Return the roles that are suggested for columns."""
    lines = [
        (
            Cell(str(r["column"]), aside=str(r["type"])),
            Cell(in_words(r["role"]), mark=_ROLES.get(r["role"], ""), aside=str(r["reason"])),
            number(r["distinct"]),
            Cell(share(r["separation"]), bar=Bar(r["separation"], f"separation of {r['column']}")),
            share(r["null_share"]),
        )
        for r in rows
    ]
    head = (
        "Column",
        "Suggested role",
        Cell("Distinct", about="distinct values, a missing value being one"),
        Cell("Separation", about="share of the pairs of rows that have different values"),
        Cell("Missing", about="share of the rows without a value"),
    )
    sections = [Section("Columns", [Grid(head, lines, right=(2, 3, 4), wide=True)])]
    sets = sorted(dict.fromkeys(tuple(s) for r in rows for s in r["minimal_sets"]), key=len)
    if sets:
        texts = [(", ".join(one),) for one in sets[:12]]
        more = [Lines([f"{number(len(sets) - 12)} more."], aside=True)] if len(sets) > 12 else []
        sections.append(Section("Smallest sets of columns that single people out", [Grid(("",), texts), *more]))
    about = "Nothing here replaces a decision by somebody who knows the data."
    facts = (
        [counted(rows[0]["rows"], "row"), *(["estimated on a sample"] if rows[0]["approximate"] else [])]
        if rows
        else []
    )
    return Report("Roles of the columns", "Suggestion", sections, facts, footer=about)


__all__ = [
    "checks_report",
    "lattice_report",
    "measures_report",
    "metric_name",
    "model_name",
    "privacy_report",
    "risk_report",
    "suggestion_report",
]
