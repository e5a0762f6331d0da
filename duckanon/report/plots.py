"""Pictures in files of their own, drawn with matplotlib: what those of comparisons and of tuning have in common."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from duckanon.errors import ParameterError, UnsupportedError

SUFFIXES = (".png", ".svg", ".pdf")
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#999999")
"""The colours of Okabe and Ito, safe for colour-blind readers, and a grey."""
INK = "#333333"


def picture_path(path: str | Path) -> Path:
    """Return the path of a picture; another suffix, or no matplotlib, is an error."""
    target = Path(path)
    if target.suffix.lower() not in SUFFIXES:
        raise ParameterError(f"A picture is a {', '.join(SUFFIXES)} file. Got {target.name!r}.")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise UnsupportedError("Pictures need matplotlib: pip install 'duckanon[plots]'.") from None
    return target


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure of a size in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=150, layout="constrained", facecolor="white")


def save(figure: Any, target: Path) -> Path:
    """Write a picture, and return its path; the same picture has the same bytes."""
    figure.savefig(target, metadata={"Date": None} if target.suffix.lower() == ".svg" else None)
    return target


def bare(axes: Any) -> None:
    """Take away the lines above and to the right, which only fill space."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def logarithmic(axis: Any) -> None:
    """Make an axis logarithmic, with plain numbers at few of its ticks."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.axes.set_xscale("log") if axis.axis_name == "x" else axis.axes.set_yscale("log")
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=8))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_minor_formatter(NullFormatter())


def annotate(axes: Any, named: Sequence[tuple[float, float, str]], size: float = 9) -> None:
    """Write names beside points: none touches another, a point or the edge; one without room is left out."""
    from matplotlib.transforms import Bbox

    figure = axes.figure.get_figure(root=True)
    # Only a laid out figure knows where its points are.
    figure.draw_without_rendering()
    edge, scale = axes.get_window_extent(), figure.dpi / 72
    places = [axes.transData.transform((x, y)) for x, y, _ in named]
    taken = [Bbox.from_bounds(x - 5 * scale, y - 5 * scale, 10 * scale, 10 * scale) for x, y in places]
    for i, (x, y, name) in enumerate(named):
        others = [*taken[:i], *taken[i + 1 :]]
        for right, up in ((1, 0), (1, 1), (1, -1), (-1, 0), (-1, 1), (-1, -1), (0, 1), (0, -1), (1, 2), (1, -2)):
            text = axes.annotate(
                name,
                (x, y),
                (9 * right, 13 * up),
                textcoords="offset points",
                ha={1: "left", -1: "right", 0: "center"}[right],
                va="center",
                fontsize=size,
                color=INK,
            )
            box = text.get_window_extent()
            inside = box.x0 >= edge.x0 and box.x1 <= edge.x1 and box.y0 >= edge.y0 and box.y1 <= edge.y1
            if inside and not any(box.overlaps(other) for other in others):
                taken.append(box)
                break
            text.remove()


def escape(text: str) -> str:
    """Return a text with dollar signs escaped, which matplotlib would read as a formula."""
    return str(text).replace("$", r"\$")
