"""The report of attacks on a release: what each reached, on people of the release and on controls, and the verdict."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from duckanon.report.model import Bar, Bullets, Cell, Grid, Report, Section, Tile, Verdict
from duckanon.report.text import number

Figures = Mapping[str, Any]

KNOWS = {
    "part": "some quasi-identifiers",
    "full": "all quasi-identifiers",
    "all": "every other column",
}
"""What an adversary knows of a person, in words."""
SIGNS = {
    "nothing": "none",
    "promised": "as promised",
    "little": "a little",
    "unknown": "cannot tell",
    "much": "leak",
}
"""The verdict on a finding, in a word or two."""
_MARKS = {"nothing": "good", "promised": "good", "little": "warn", "unknown": "warn", "much": "bad"}
_HEAD = ("Attack", "Knows", "On the release", "On controls", "Base rate", "Gain", "Verdict")
_TITLES = {
    "secret": "Sensitive values: is the guess right?",
    "identity": "Who is who: is the person found?",
}
ABOUT = (
    "On the release: how often the attack is right about people who are in it, with the 95 % interval.",
    "On controls: how often it is right about people who are not in it. It would learn the same of anybody.",
    "Base rate: what the best single guess, or chance, would reach without reading single rows.",
    "Gain: how much more often it is right about people of the release than about controls, or than by the base rate "
    "where that is higher. Only this is caused by the release.",
    "That these attacks fail does not rule out other attacks.",
)


def render_attack(figures: Figures, format: str = "md", title: str = "Attacks on a release") -> str:  # noqa: A002
    """Return the report of attacks as Markdown ("md"), JSON ("json") or a page of HTML ("html").

    Parameters
    ----------
    found : mapping
        What ``Attack.to_dict`` returns.
    format : {"json", "md", "html"}
    title : str
        What was attacked.
    """
    from duckanon.report import rendered

    return rendered(
        format,
        lambda: json.dumps(figures, indent=2, ensure_ascii=False, allow_nan=False) + "\n",
        lambda: attack_report(figures, title),
    )


def attack_report(figures: Figures, title: str = "Attacks on a release") -> Report:
    """Return the report of attacks."""
    from duckanon._version import __version__

    kind, heading = {
        "nothing": ("good", "No leak found"),
        "promised": ("good", "No leak found"),
        "little": ("warn", "A little is learned"),
        "unknown": ("warn", "Cannot tell a leak from general knowledge"),
        "much": ("bad", "The release leaks"),
    }[figures["level"]]
    # The heading says the verdict; what follows says why.
    _, _, why = str(figures["verdict"]).partition(": ")
    if not figures["findings"]:
        kind, heading, why = "warn", "No attack could be tried", "Nothing is known of what a release reveals."
    leaks = [f for f in figures["findings"] if f["level"] == "much"]
    worst = max(figures["findings"], key=lambda f: f["gain"], default=None)
    tiles = [
        Tile(
            "Attacks tried",
            str(len({f["attack"] for f in figures["findings"]})),
            f"{len(figures['findings'])} findings",
        ),
        Tile("Leaks", number(len(leaks)), "findings beyond chance"),
        Tile("Largest gain", points(worst["gain"]) if worst else "-", f"points, {what(worst)}" if worst else ""),
        Tile("Rows", number(figures["rows"]), f"{number(figures['published'])} published"),
        Tile("Controls", number(figures["controls"]), "people not in the release"),
    ]
    return Report(
        title,
        "Report of attacks",
        attack_sections(figures),
        facts=[_counts(figures)],
        verdict=Verdict(kind, heading, why[:1].upper() + why[1:]),
        tiles=tiles,
        footer=f"Made by duckanon {__version__}. No value of the data is on this page.",
    )


def attack_sections(figures: Figures) -> list[Section]:
    """Return what each attack reached, those that were not tried, and how to read it."""
    sections = [Section(heading, [_grid(rows)], name="findings") for heading, rows in _grouped(figures)]
    sampled = [f"Samples were attacked: {'; '.join(samples(figures))}."] if samples(figures) else []
    if figures["skipped"]:
        sections.append(Section("Not tried", [Bullets(not_tried(figures))]))
    return [*sections, Section("How to read this", [Bullets([*sampled, *ABOUT])])]


def _grid(rows: Sequence[Figures]) -> Grid:
    return Grid(_HEAD, [_row(f) for f in rows], right=(2, 3, 4, 5), wide=True)


def _row(f: Figures) -> list[str | Cell]:
    return [
        Cell(what(f), aside=f"{f['text']}; {tried_on(f)}"),
        KNOWS.get(f["adversary"], "-"),
        Cell(percent(f["success"]), aside=_interval(f["interval"])),
        Cell(percent(f["control"]), aside=_interval(f["control_interval"]) if f["control"] is not None else ""),
        percent(f["base_rate"]),
        Cell(points(f["gain"]), bar=Bar(max(f["gain"], 0.0), f"gain of {what(f)}: {points(f['gain'])} points")),
        Cell(SIGNS[f["level"]], aside=f["verdict"], mark=_MARKS[f["level"]]),
    ]


def _interval(interval: Sequence[float]) -> str:
    return f"{100 * interval[0]:.1f} to {100 * interval[1]:.1f}"


def percent(value: float | None) -> str:
    """Return a share in per cent with one decimal, a small one not as zero.

    Examples
    --------
    >>> percent(0.2341), percent(0.00004), percent(0.0), percent(None)
    ('23.4 %', '< 0.1 %', '0 %', '-')
    """
    if value is None:
        return "-"
    if 0 < abs(value) < 0.0005:
        return "< 0.1 %"
    return "0 %" if value == 0 else f"{100 * value:.1f} %"


def points(gain: float) -> str:
    """Return a difference of shares in points.

    Examples
    --------
    >>> points(0.0712), points(-0.00001)
    ('7.1', '0.0')
    """
    # Of a small loss no sign is left.
    return f"{round(100 * gain, 1) + 0.0:.1f}"


def what(finding: Figures) -> str:
    """Return the attack, and the column that it was after.

    Examples
    --------
    >>> what({"attack": "linkage", "attribute": None}), what({"attack": "inference", "attribute": "ill"})
    ('linkage', 'inference of ill')
    """
    return f"{finding['attack']} of {finding['attribute']}" if finding.get("attribute") else str(finding["attack"])


def with_interval(value: float, interval: Sequence[float]) -> str:
    """Return a share with its interval.

    Examples
    --------
    >>> with_interval(0.5, [0.45, 0.55])
    '50.0 % (45.0 to 55.0)'
    """
    return f"{percent(value)} ({_interval(interval)})"


def tried_on(finding: Figures) -> str:
    """Return on how many it was tried, and whether they are a sample.

    Examples
    --------
    >>> tried_on({"rows": 5000, "sampled_from": 30162, "controls": 100})
    '5,000 of 30,162 rows, 100 controls'
    """
    rows = number(finding["rows"])
    rows += f" of {number(finding['sampled_from'])}" if finding.get("sampled_from") else ""
    return f"{rows} rows" + (f", {number(finding['controls'])} controls" if finding.get("controls") else "")


def samples(figures: Figures) -> list[str]:
    """Return of whom samples were attacked, and by which attacks.

    Examples
    --------
    >>> one = {"attack": "linkage", "rows": 50, "sampled_from": 900, "controls": 0}
    >>> samples({"findings": [one, {**one, "attack": "inference"}, {**one, "sampled_from": None}]})
    ['50 of 900 rows (linkage, inference)']
    """
    parts: dict[str, dict[str, None]] = {}
    for finding in figures["findings"]:
        if finding.get("sampled_from"):
            parts.setdefault(tried_on(finding), {})[finding["attack"]] = None
    return [f"{tried} ({', '.join(names)})" for tried, names in parts.items()]


def _grouped(figures: Figures) -> list[tuple[str, list[Figures]]]:
    """Return the findings under their headings."""
    parts: dict[str, list[Figures]] = {"secret": [], "identity": []}
    for finding in figures["findings"]:
        parts["secret" if finding.get("attribute") else "identity"].append(finding)
    return [(_TITLES[kind], rows) for kind, rows in parts.items() if rows]


def not_tried(figures: Figures) -> list[str]:
    """Return what attacks lack that were not tried, those that lack the same together.

    Examples
    --------
    >>> not_tried({"skipped": {"linkage": "needs a key", "order": "needs a column", "inference": "needs a key"}})
    ['linkage, inference: needs a key', 'order: needs a column']
    """
    parts: dict[str, list[str]] = {}
    for name, why in figures["skipped"].items():
        parts.setdefault(why, []).append(name)
    return [f"{', '.join(names)}: {why}" for why, names in parts.items()]


def _counts(figures: Figures) -> str:
    controls = f"{number(figures['controls'])} controls" if figures["controls"] else "no controls: base rates only"
    counts = f"{number(figures['rows'])} rows in the original, {number(figures['published'])} published, {controls}."
    # Why none were held out is part of the verdict.
    return f"{counts} {figures['held_out']}" if figures["controls"] and figures["held_out"] else counts
