"""Utility and risk of all candidates as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from duckanon.report.plots import COLOURS, INK, bare, escape, new_figure, picture_path, save

if TYPE_CHECKING:
    from duckanon.jobs.tuning.results import Tuning

_MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")


def draw(found: Tuning, path: str | Path) -> Path:
    """Draw the candidates, the front, and the scores of raw rows and of the most frequent class."""
    target, figure = picture_path(path), new_figure(10, 6)
    axes = figure.subplots()
    _points(axes, found)
    _front(axes, found)
    _scale(axes, found)
    axes.axhline(found.raw, color=INK, linewidth=1, linestyle="--")
    axes.axhline(found.zero_rule, color=INK, linewidth=1, linestyle=":")
    right = axes.get_xlim()[1]
    for height, words in ((found.raw, "raw rows"), (found.zero_rule, "most frequent class")):
        # At the end with most risk: the front begins at the other.
        place: Any = {"textcoords": "offset points", "ha": "right", "fontsize": 8, "color": INK}
        axes.annotate(words, (right, height), (-4, 3), **place)
    axes.set_xlabel("average risk of reidentification (1 / mean size of a class; logarithmic)")
    score = {"f1": "F1", "auroc": "AUROC"}.get(found.score, found.score)
    axes.set_ylabel(f"{score} of {escape(found.learner)}, taught by the release")
    axes.grid(color="#E6E6E6", linewidth=0.6)
    axes.set_axisbelow(True)
    bare(axes)
    best = found.best
    title = f"Predicting {escape(found.target)}: best by {escape(best['label'])}, k = {best['k']}"
    axes.set_title(title, fontsize=12, color=INK, loc="left")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8, frameon=False)
    return save(figure, target)


def _scale(axes: Any, found: Tuning) -> None:
    """Show risks as shares, over a range that does not blow up small differences."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    risks = [line["average_risk"] for line in found.tried]
    axes.set_xlim(min(risks) / 1.4, max(risks) * 1.4)
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))
    axes.xaxis.set_minor_formatter(FuncFormatter(lambda value, _: ""))


def _points(axes: Any, found: Tuning) -> None:
    axes.set_xscale("log")
    labels = list(dict.fromkeys(line["label"] for line in found.tried))
    for i, label in enumerate(labels):
        own = [line for line in found.tried if line["label"] == label]
        colour, mark = COLOURS[i % len(COLOURS)], _MARKS[(i + i // len(COLOURS)) % len(_MARKS)]
        spread = [line["deviation"] or 0.0 for line in own]
        x, y = [line["average_risk"] for line in own], [line["score"] for line in own]
        axes.errorbar(x, y, yerr=spread, fmt=mark, color=colour, markersize=5, elinewidth=0.8, label=escape(label))


def _front(axes: Any, found: Tuning) -> None:
    front = found.front
    x, y = [line["average_risk"] for line in front], [line["score"] for line in front]
    axes.step(x, y, where="post", color="#56B4E9", linewidth=6, alpha=0.35, zorder=0, label="front")
    for line in front:
        words = f"k = {line['k']}" if line["k"] is not None else ""
        place = (line["average_risk"], line["score"])
        axes.annotate(words, place, (5, 7), textcoords="offset points", fontsize=8, color=INK)
    best = found.best
    axes.plot(best["average_risk"], best["score"], "o", markersize=14, fillstyle="none", color=INK, label="best")
