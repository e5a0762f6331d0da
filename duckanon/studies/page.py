"""The page of a study's results: one HTML file, nothing fetched, no value of the data on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duckanon._version import __version__
from duckanon.io.disk import replacing
from duckanon.report.html import duration
from duckanon.report.markup import Markup, element, joined
from duckanon.report.sections import Bullets, Lines
from duckanon.report.style import STYLE
from duckanon.studies import figures
from duckanon.studies.figures import Drawing

if TYPE_CHECKING:
    from duckanon.studies.base import Chapter, Part, Study
    from duckanon.studies.config import Settings

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_PAGE = "index.html"


def write_page(
    folder: Path, study: Study, settings: Settings, chapters: Sequence[Chapter], facts: Mapping[str, Any]
) -> Path:
    """Draw the figures into ``folder/figures``, write ``index.html``, and return its path."""
    body = element(
        "main",
        element("p", "Results of a study", class_="eyebrow"),
        element("h1", study.title),
        _facts(settings, facts),
        _verdict(settings, facts),
        *(element("p", text) for text in facts["left_out"]),
        *(_chapter(chapter, folder / "figures") for chapter in chapters),
        _settings(settings),
        element("footer", f"Made by duckanon {__version__}, after: {study.paper}. No value of the data is here."),
    )
    head = element(
        "head",
        Markup('<meta charset="utf-8">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup('<meta name="color-scheme" content="light dark">'),
        element("title", study.title),
        element("style", Markup(STYLE + figures.STYLE)),
    )
    path = folder / _PAGE
    with replacing(path) as staged:
        text = f"<!doctype html>\n{element('html', head, element('body', body), lang='en')}\n"
        staged.write_text(text, encoding="utf-8")
    return path


def _facts(settings: Settings, facts: Mapping[str, Any]) -> Markup:
    size = "as in the paper (--full)" if settings.full else "small version"
    where = "synthetic table" if settings.synthetic else f"tables: {', '.join(settings.tables)}"
    told = [size, where, f"{facts['done']} of {facts['tasks']} tasks", f"{duration(facts['seconds'])} of one core"]
    return element("p", *(element("span", t) for t in told), class_="facts")


def _verdict(settings: Settings, facts: Mapping[str, Any]) -> Markup | None:
    failed, left = facts["failed"], facts["tasks"] - facts["done"]
    if not left and not settings.synthetic:
        return None
    if left:
        title = f"{left} of {facts['tasks']} tasks are not in these results"
        reasons = [f"{n} failed: {why}" for why, n in failed.items()]
        text = " ".join(reasons) or "Run the study again: it goes on where it ended."
    else:
        title = "On synthetic rows"
        text = "The papers' tables are not here: figures say how the study works, not what the paper found."
    inside = element("div", element("strong", title), element("span", text))
    return element("div", element("div", "!", class_="sign", aria_hidden="true"), inside, class_="verdict warn")


def _chapter(chapter: Chapter, folder: Path) -> Markup:
    return element("section", element("h2", chapter.title), *(_part(part, folder) for part in chapter.parts))


def _part(part: Part, folder: Path) -> Markup:
    if isinstance(part, Drawing):
        drawn = figures.save(part, folder)
        return element("figure", drawn, element("figcaption", part.caption))
    if isinstance(part, Lines):
        return joined(*(element("p", text) for text in part.lines))
    if isinstance(part, Bullets):
        return element("ul", *(element("li", item) for item in part.items))
    head = element("tr", *(element("th", h, class_=_kind(part, i)) for i, h in enumerate(part.header)))
    rows = [element("tr", *(element("td", c, class_=_kind(part, i)) for i, c in enumerate(r))) for r in part.rows]
    return element("div", element("table", head, *rows), class_="scroll")


def _kind(grid: Any, place: int) -> str | None:
    return "num" if place in grid.right else None


def _settings(settings: Settings) -> Markup:
    rows = [
        element("tr", element("td", name), element("td", f"{value}{' (changed)' if name in settings.changed else ''}"))
        for name, value in settings.values.items()
    ]
    head = element("tr", element("th", "Key"), element("th", "Value"))
    return element("section", element("h2", "Settings"), element("div", element("table", head, *rows), class_="scroll"))
