"""The report of attacks on a release: what each reached, on people of the release and on controls, and the verdict."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from duckanon.errors import ParameterError, did_you_mean
from duckanon.report.html import document, section_of, tiled, verdict_box
from duckanon.report.markdown import escape
from duckanon.report.markup import Markup, element, joined
from duckanon.report.pictures import bar
from duckanon.report.sections import number

Found = Mapping[str, Any]

KNOWS = {
    "part": "some quasi-identifiers",
    "full": "all quasi-identifiers",
    "all": "every other column",
}
"""What an adversary knows of a person, in words."""
SIGNS = {"nothing": "none", "promised": "as promised", "little": "a little", "much": "leak"}
"""What a finding comes to, in a word or two."""
_KINDS = {"nothing": "yes", "promised": "yes", "little": None, "much": "no"}
_HEAD = ("Attack", "Knows", "On the release", "On controls", "Base rate", "Gain", "Verdict")
_TITLES = {
    "secret": "Sensitive values: is the guess right?",
    "identity": "Who is who: is the person found?",
}
ABOUT = (
    "On the release: how often the attack is right about people who are in it, with the 95 % interval.",
    "On controls: how often it is right about people who are not in it. What is known of them is known of anybody.",
    "Base rate: what the best single guess, or chance, would reach without looking at single rows.",
    "Gain: how much more often it is right about people of the release than about controls, or than by the base rate "
    "where that is higher. Only this is caused by the release.",
    "An attack that fails proves nothing about attacks that nobody has thought of.",
)


def render_attack(found: Found, format: str = "md", title: str = "Attacks on a release") -> str:  # noqa: A002
    """Return the report of attacks as Markdown ("md"), JSON ("json") or a page of HTML ("html").

    Parameters
    ----------
    found : mapping
        What ``Attack.to_dict`` returns.
    format : {"json", "md", "html"}
    title : str
        What was attacked.
    """
    renderers: dict[str, Callable[[Found, str], str]] = {"json": _json, "md": _markdown, "html": _page}
    try:
        renderer = renderers[format]
    except (KeyError, TypeError):
        hint = did_you_mean(str(format), renderers)
        raise ParameterError(f"Unknown report format {format!r}.{hint} Known: {', '.join(renderers)}.") from None
    return renderer(found, title)


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


def what(finding: Found) -> str:
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
    return f"{percent(value)} ({100 * interval[0]:.1f} to {100 * interval[1]:.1f})"


def tried_on(finding: Found) -> str:
    """Return on how many it was tried, and whether they are a sample.

    Examples
    --------
    >>> tried_on({"rows": 5000, "sampled_from": 30162, "controls": 100})
    '5,000 of 30,162 rows, 100 controls'
    """
    rows = number(finding["rows"])
    rows += f" of {number(finding['sampled_from'])}" if finding.get("sampled_from") else ""
    return f"{rows} rows" + (f", {number(finding['controls'])} controls" if finding.get("controls") else "")


def samples(found: Found) -> list[str]:
    """Return of whom samples were attacked, and by which attacks.

    Examples
    --------
    >>> one = {"attack": "linkage", "rows": 50, "sampled_from": 900, "controls": 0}
    >>> samples({"findings": [one, {**one, "attack": "inference"}, {**one, "sampled_from": None}]})
    ['50 of 900 rows (linkage, inference)']
    """
    parts: dict[str, dict[str, None]] = {}
    for finding in found["findings"]:
        if finding.get("sampled_from"):
            parts.setdefault(tried_on(finding), {})[finding["attack"]] = None
    return [f"{tried} ({', '.join(names)})" for tried, names in parts.items()]


def grouped(found: Found) -> list[tuple[str, list[Found]]]:
    """Return the findings under their headings."""
    parts: dict[str, list[Found]] = {"secret": [], "identity": []}
    for finding in found["findings"]:
        parts["secret" if finding.get("attribute") else "identity"].append(finding)
    return [(_TITLES[kind], rows) for kind, rows in parts.items() if rows]


def _json(found: Found, title: str) -> str:
    return json.dumps(found, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _markdown(found: Found, title: str) -> str:
    parts = [f"# {escape(title)}", escape(found["verdict"]), escape(_counts(found))]
    parts += [escape(f"Samples were attacked: {'; '.join(samples(found))}.")] if samples(found) else []
    for heading, rows in grouped(found):
        lines = ["| " + " | ".join(_HEAD) + " |", "|" + "---|" * len(_HEAD)]
        for f in rows:
            cells = [
                what(f),
                KNOWS.get(f["adversary"], "-"),
                with_interval(f["success"], f["interval"]),
                percent(f["control"]),
                percent(f["base_rate"]),
                points(f["gain"]),
                f["verdict"],
            ]
            lines.append("| " + " | ".join(escape(c) for c in cells) + " |")
        parts += [f"## {heading}", "\n".join(lines)]
    if found["skipped"]:
        parts += ["## Not tried", "\n".join(f"- {escape(line)}" for line in not_tried(found))]
    parts += ["## How to read this", "\n".join(f"- {escape(line)}" for line in ABOUT)]
    return "\n\n".join(parts) + "\n"


def not_tried(found: Found) -> list[str]:
    """Return what attacks lack that were not tried, those that lack the same together.

    Examples
    --------
    >>> not_tried({"skipped": {"linkage": "needs a key", "order": "needs a column", "inference": "needs a key"}})
    ['linkage, inference: needs a key', 'order: needs a column']
    """
    parts: dict[str, list[str]] = {}
    for name, why in found["skipped"].items():
        parts.setdefault(why, []).append(name)
    return [f"{', '.join(names)}: {why}" for why, names in parts.items()]


def _counts(found: Found) -> str:
    controls = f"{number(found['controls'])} controls" if found["controls"] else "no controls: base rates only"
    return f"{number(found['rows'])} rows in the original, {number(found['published'])} published, {controls}."


def _page(found: Found, title: str) -> str:
    from duckanon._version import __version__

    box = {
        "nothing": ("good", "✓", "No leak found"),
        "promised": ("good", "✓", "No leak found"),
        "little": ("warn", "!", "A little is learned"),
        "much": ("bad", "✕", "The release leaks"),
    }[found["level"]]
    leaks = [f for f in found["findings"] if f["level"] == "much"]
    worst = max(found["findings"], key=lambda f: f["gain"], default=None)
    tiles = [
        ("Attacks tried", number(len({f["attack"] for f in found["findings"]})), f"{len(found['findings'])} findings"),
        ("Leaks", number(len(leaks)), "findings beyond chance"),
        ("Largest gain", points(worst["gain"]) if worst else "-", f"points, {what(worst)}" if worst else ""),
        ("Rows", number(found["rows"]), f"{number(found['published'])} published"),
        ("Controls", number(found["controls"]), "people not in the release"),
    ]
    return document(
        title,
        "Report of attacks",
        element("p", "Report of attacks", class_="eyebrow"),
        element("h1", title, class_="name"),
        element("p", _counts(found), class_="facts"),
        verdict_box(*box, found["verdict"]),
        tiled(tiles),
        *(section_of(heading, _table(rows)) for heading, rows in grouped(found)),
        _not_tried(found),
        section_of("How to read this", element("ul", *(element("li", line) for line in ABOUT))),
        element("footer", f"Made by duckanon {__version__}. No value of the data is on this page."),
    )


def _not_tried(found: Found) -> Markup | None:
    if not found["skipped"]:
        return None
    lines = [element("li", line) for line in not_tried(found)]
    return section_of("Not tried", element("ul", *lines))


def _of_controls(finding: Found) -> Markup | str:
    if finding["control"] is None:
        return percent(None)
    low, high = finding["control_interval"]
    return joined(percent(finding["control"]), element("div", f"{100 * low:.1f} to {100 * high:.1f}", class_="aside"))


def _table(rows: Sequence[Found]) -> Markup:
    right = {2, 3, 4, 5}
    head = [element("th", h, class_="num" if i in right else None) for i, h in enumerate(_HEAD)]
    drawn = [element("tr", *head)]
    for f in rows:
        low, high = f["interval"]
        success = joined(percent(f["success"]), element("div", f"{100 * low:.1f} to {100 * high:.1f}", class_="aside"))
        attack = joined(what(f), element("div", f"{f['text']}; {tried_on(f)}", class_="aside"))
        verdict = joined(element("span", SIGNS[f["level"]], class_=_KINDS[f["level"]]), element("div", f["verdict"]))
        gain = joined(points(f["gain"]), bar(max(f["gain"], 0.0), f"gain of {what(f)}: {points(f['gain'])} points"))
        cells = [
            element("td", attack, class_="name"),
            element("td", KNOWS.get(f["adversary"], "-")),
            element("td", success, class_="num"),
            element("td", _of_controls(f), class_="num"),
            element("td", percent(f["base_rate"]), class_="num"),
            element("td", gain, class_="num"),
            element("td", verdict),
        ]
        drawn.append(element("tr", *cells))
    return element("div", element("table", *drawn, class_="wide"), class_="scroll")


__all__ = [
    "ABOUT",
    "KNOWS",
    "SIGNS",
    "grouped",
    "not_tried",
    "percent",
    "points",
    "render_attack",
    "samples",
    "tried_on",
    "what",
    "with_interval",
]
