"""A report as one HTML page: no script, nothing fetched, every text escaped, on one or two sheets of paper."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from duckanon.report import pictures
from duckanon.report.model import Block, Drawing, Report
from duckanon.report.text import visible

if TYPE_CHECKING:
    from jinja2 import Environment


def html(report: Report) -> str:
    """Return a report as a page of HTML."""
    # Raster parts of drawings are embedded as data.
    images = any(isinstance(block, Drawing) for section in report.sections for block in section.blocks)
    return _environment().get_template("page.html").render(report=report, images=images)


def fragment(report: Report) -> str:
    """Return a report as a part of a page, with its own styles: what notebooks show of a result."""
    return _environment().get_template("fragment.html").render(report=report)


def block_html(block: Block) -> str:
    """Return a block as HTML."""
    blocks: Any = _environment().get_template("blocks.html").module
    return str(blocks.block(block))


@cache
def _environment() -> Environment:
    """Return the templates; Jinja is imported when the first page is made."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    def shown(value: Any) -> Any:
        return value if isinstance(value, Markup) else visible("" if value is None else value)

    environment = Environment(
        loader=PackageLoader("duckanon.report", "templates"),
        autoescape=True,
        finalize=shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    sheet = Markup(_static("report.css"))  # noqa: S704 - a file of this package
    environment.globals |= {"stylesheet": sheet, "pictures": pictures}
    # Drawings are made by matplotlib, which escapes every text in them.
    environment.filters["svg"] = Markup
    environment.tests |= {"kind": lambda block, name: type(block).__name__ == name}
    return environment


def _static(name: str) -> str:
    from importlib.resources import files

    return files("duckanon.report").joinpath("static", name).read_text(encoding="utf-8")
