"""Reports as JSON, as one page of Markdown, and as one page of HTML with pictures."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from duckanon.errors import ParameterError, did_you_mean
from duckanon.report.html import fragment, html
from duckanon.report.markdown import escape, markdown
from duckanon.report.model import Report
from duckanon.report.release import Run, Summary, outcome, report

_ORDER = (
    "duckanon",
    "engine",
    "source",
    "roles",
    "unit",
    "promise",
    "algorithm",
    "suppression_limit",
    "steering",
    "hierarchies",
    "found",
    "homogeneity",
    "search",
    "checks",
    "loss",
    "cells",
    "class_sizes",
    "permutation",
    "bounds",
    "output",
    "within",
    "seeded",
    "notes",
    "seconds",
)


def render(summary: Summary, format: str = "md") -> str:  # noqa: A002 - the field's word
    """Return the report of a release.

    Parameters
    ----------
    summary : mapping
        What ``Release.summary`` returns.
    format : {"json", "md", "html"}

    Examples
    --------
    >>> print(render({"seeded": False, "duckanon": "0.1.0"}, "json"), end="")
    {
      "duckanon": "0.1.0",
      "seeded": false
    }
    """
    return rendered(format, lambda: _json(summary), lambda: report(Run(summary)))


def page(summary: Summary | None, *, record: Summary | None = None, history: Sequence[Summary] = ()) -> str:
    """Return the report of a run as one page of HTML; see ``Run`` for the parameters."""
    summary = summary if summary is not None else (record or {}).get("summary") or {}
    return html(report(Run(summary, record, history)))


def card(summary: Summary) -> str:
    """Return the cards that a notebook shows of a release: the verdict, the figures, what was lost and done."""
    whole = report(Run(summary))
    shown = [one for one in whole.sections if one.name in _IN_NOTEBOOKS]
    return fragment(replace(whole, kind="Release", sections=shown, footer=""))


def formats() -> tuple[str, ...]:
    """Return the names of the formats."""
    return tuple(_FORMATS)


def rendered(format: str, json_of: Callable[[], str], report_of: Callable[[], Report]) -> str:  # noqa: A002
    """Return a report in a format: its figures as JSON, or the report drawn."""
    if format == "json":
        return json_of()
    try:
        draw = _FORMATS[format]
    except (KeyError, TypeError):
        hint = did_you_mean(str(format), _FORMATS)
        raise ParameterError(f"Unknown report format {format!r}.{hint} Known: {', '.join(_FORMATS)}.") from None
    return draw(report_of())


def _json(summary: Summary) -> str:
    keys = [k for k in _ORDER if k in summary] + sorted(k for k in summary if k not in _ORDER)
    return json.dumps({k: _plain(summary[k]) for k in keys}, indent=2, ensure_ascii=False, default=str) + "\n"


def _plain(value: Any) -> Any:
    """Return a value that JSON can hold: infinities and NaN have no form there."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


_IN_NOTEBOOKS = ("warnings", "promised", "lost", "columns")

_FORMATS: dict[str, Callable[[Report], str]] = {"json": str, "md": markdown, "html": html}

__all__ = ["Summary", "card", "escape", "formats", "outcome", "page", "render", "rendered"]
