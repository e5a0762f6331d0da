"""The page of a study's results: one HTML file, nothing fetched, no value of the data on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duckanon._version import __version__
from duckanon.io.disk import replacing
from duckanon.report.html import html
from duckanon.report.model import Drawing, Grid, Lines, Report, Section, Verdict
from duckanon.report.text import duration
from duckanon.studies.figures import Figure, save

if TYPE_CHECKING:
    from duckanon.studies.base import Chapter, Study
    from duckanon.studies.config import Settings

_PAGE = "index.html"


def write_page(
    folder: Path, study: Study, settings: Settings, chapters: Sequence[Chapter], facts: Mapping[str, Any]
) -> Path:
    """Draw the figures into ``folder/figures``, write ``index.html``, and return its path."""
    left_out = [Section("Left out", [Lines(facts["left_out"])])] if facts["left_out"] else []
    report = Report(
        study.title,
        "Results of a study",
        [*left_out, *(_section(chapter, folder / "figures") for chapter in chapters), _settings(settings)],
        facts=_facts(settings, facts),
        verdict=_verdict(settings, facts),
        footer=f"Made by duckanon {__version__}, after: {study.paper}. No value of the data is here.",
    )
    path = folder / _PAGE
    with replacing(path) as staged:
        staged.write_text(html(report), encoding="utf-8")
    return path


def _facts(settings: Settings, facts: Mapping[str, Any]) -> list[str]:
    size = "as in the paper (--full)" if settings.full else "small version"
    where = "synthetic table" if settings.synthetic else f"tables: {', '.join(settings.tables)}"
    return [size, where, f"{facts['done']} of {facts['tasks']} tasks", f"{duration(facts['seconds'])} of one core"]


def _verdict(settings: Settings, facts: Mapping[str, Any]) -> Verdict | None:
    left = facts["tasks"] - facts["done"]
    if left:
        reasons = [f"{n} failed: {why}" for why, n in facts["failed"].items()]
        text = " ".join(reasons) or "Run the study again: it goes on where it ended."
        return Verdict("warn", f"{left} of {facts['tasks']} tasks are not in these results", text)
    if settings.synthetic:
        text = "The papers' tables are not here: figures show how the study works, not the results of the paper."
        return Verdict("warn", "On synthetic rows", text)
    return None


def _section(chapter: Chapter, folder: Path) -> Section:
    blocks = [Drawing(save(part, folder), part.caption) if isinstance(part, Figure) else part for part in chapter.parts]
    return Section(chapter.title, blocks)


def _settings(settings: Settings) -> Section:
    rows = [(k, f"{v}{' (changed)' if k in settings.changed else ''}") for k, v in settings.values.items()]
    return Section("Settings", [Grid(("Key", "Value"), rows)])
