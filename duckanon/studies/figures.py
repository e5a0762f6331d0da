"""Figures of a study: drawn once, kept as PNG and SVG, and embedded in the page for light and dark screens."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from duckanon.errors import UnsupportedError
from duckanon.report import plots
from duckanon.report.plots import INK, escape
from duckanon.report.text import in_words

RULE = "#dddbd5"
# The colours of Okabe and Ito, safe for colour-blind readers; the style sheet has lighter
# ones for dark screens.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a6f5d")
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1)), (0, (8, 2)), (0, (1, 3)))
_NARROWEST = 6.0
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_HEAD = re.compile(r"^.*?(?=<svg)", re.DOTALL)
_METADATA = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)
_SIZE = re.compile(r'(<svg[^>]*?) width="([^"]*)"', re.DOTALL)
_HEIGHT = re.compile(r'(<svg[^>]*?) height="[^"]*"', re.DOTALL)
_SHEET = re.compile(r'<g id="patch_1">.*?</g>', re.DOTALL)
_LOOSE = re.compile(r"<style type=\"text/css\">.*?</style>", re.DOTALL)


@dataclass(frozen=True)
class Figure:
    """A figure with the name of its files and a sentence about it."""

    name: str
    caption: str
    figure: Any


def require_matplotlib() -> None:
    """Raise, before any work is done, where figures cannot be drawn."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise UnsupportedError("Studies draw figures with matplotlib: pip install 'duckanon[plots]'.") from None


def panels(
    rows: int, columns: int, size: tuple[float, float] = (3.2, 2.5), **shared: Any
) -> tuple[Any, list[list[Any]]]:
    """Return a figure and its panels, row by row; ``size`` is that of a panel."""
    from matplotlib.figure import Figure

    # The legend below the panels needs a minimum width.
    figure = Figure(figsize=(max(size[0] * columns, _NARROWEST), size[1] * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **shared)
    for line in axes:
        for one in line:
            bare(one)
    return figure, axes.tolist()


def bare(axes: Any) -> None:
    """Take away what only fills space."""
    axes.set_facecolor("none")
    plots.bare(axes)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(INK)
    axes.tick_params(which="both", labelsize=7, colors=INK)
    axes.grid(color=RULE, linewidth=0.5)
    axes.set_axisbelow(True)


def label(axes: Any, title: str = "", x: str = "", y: str = "") -> None:
    """Write a title and the names of the axes; names of code are written in words."""
    if title:
        axes.set_title(escape(in_words(title)), fontsize=8.5, color=INK)
    if x:
        axes.set_xlabel(escape(in_words(x)), fontsize=8, color=INK)
    if y:
        axes.set_ylabel(escape(in_words(y)), fontsize=8, color=INK)


def legend(figure: Any, names: Sequence[str], lines: bool = True) -> None:
    """Write which colour (and dash) is which name, below all panels."""
    from matplotlib.lines import Line2D

    keys = [
        Line2D([], [], color=COLOURS[i % len(COLOURS)], linestyle=DASHES[i % len(DASHES)] if lines else "", marker=m)
        for i, m in zip(range(len(names)), MARKERS * 3, strict=False)
    ]
    for key in keys:
        key.set_markersize(4)
    texts = [escape(in_words(n)) for n in names]
    columns = min(len(texts), 6)
    drawn_legend = figure.legend(keys, texts, loc="outside lower center", ncols=columns, fontsize=8, frameon=False)
    for text in drawn_legend.get_texts():
        text.set_color(INK)


def line(axes: Any, x: Sequence[float], y: Sequence[float], place: int, **more: Any) -> None:
    """Draw the curve of the name in that place of the legend."""
    style = {"color": COLOURS[place % len(COLOURS)], "linestyle": DASHES[place % len(DASHES)], "linewidth": 1.4}
    marker = MARKERS[place % len(MARKERS)] if len(x) < 20 else None
    axes.plot(x, y, marker=marker, markersize=3, **(style | more))


def save(drawing: Figure, folder: Path) -> str:
    """Write a figure as PNG and SVG, and return it for the page."""
    import matplotlib as mpl

    folder.mkdir(parents=True, exist_ok=True)
    settings: Any = {"svg.fonttype": "none", "svg.hashsalt": drawing.name, "font.family": "sans-serif"}
    with mpl.rc_context(settings):
        # Many panels are laid out once, not for each file.
        drawing.figure.draw_without_rendering()
        drawing.figure.set_layout_engine("none")
        drawing.figure.savefig(folder / f"{drawing.name}.png", dpi=150, facecolor="white")
        metadata = {"Date": None, "Creator": None}
        drawn = io.StringIO()
        drawing.figure.savefig(drawn, format="svg", facecolor="white", metadata=metadata)
    svg = drawn.getvalue()
    (folder / f"{drawing.name}.svg").write_text(svg, encoding="utf-8")
    return _inline(svg)


def _inline(svg: str) -> str:
    """Return a drawing as part of a page: scaled with it, in colours that change with the screen."""
    inline = _SHEET.sub("", _METADATA.sub("", _LOOSE.sub("", _HEAD.sub("", svg))), count=1)
    inline = _HEIGHT.sub(r"\1", _SIZE.sub(r'\1 style="max-width: \2"', inline))
    inline = inline.replace(INK, "var(--ink)").replace(RULE, "var(--rule)")
    for place, colour in enumerate(COLOURS):
        inline = inline.replace(colour, f"var(--c{place})")
    return inline
