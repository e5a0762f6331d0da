"""Pictures in files of their own, drawn with matplotlib: what those of comparisons and of tuning have in common."""

from __future__ import annotations

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


def escape(text: str) -> str:
    """Return a text with dollar signs escaped, which matplotlib would read as a formula."""
    return str(text).replace("$", r"\$")
