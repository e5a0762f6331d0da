"""A comparison as a picture: protection by row, gains and losses, and the indices of every pair."""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duckanon.report.plots import COLOURS, INK, annotate, bare, escape, logarithmic, new_figure, picture_path, save
from duckanon.report.text import in_words

if TYPE_CHECKING:
    from duckanon.assess.comparison.compare import Comparison

_COLOURS = 7
_DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 3)))
_GAIN, _LOSS, _SAME = "#0072B2", "#D55E00", "#E6E6E6"
_IN_A_ROW = 4
_UPPER = 4.8
"""The height of the upper part, in inches."""
_MOST_BARS = 24
_LEGEND = 10
_MOST_NUMBERS = 10
_LOGARITHM = "hypervolume"


def draw(comparison: Comparison, path: str | Path) -> Path:
    """Draw a comparison into a file and return its path."""
    target = picture_path(path)
    names = [line["release"] for line in comparison.bias.to_pylist()]
    bars, maps = _bars(comparison, names), _maps(comparison)
    columns = min(_IN_A_ROW, 1 + len(maps))
    lines = -(-(1 + len(maps)) // columns)
    middle = max(2.4, 1.2 + 0.27 * len(bars))
    lower = lines * (1.5 + 0.42 * max(3, len(names))) + 0.4
    figure = new_figure(13, _UPPER + middle + lower + 0.5)
    # Parts, each with its own layout: labels of one must not squeeze the others.
    parts: Any = figure.subfigures(3, 1, height_ratios=[_UPPER, middle, lower])
    top, gaining, bottom = parts
    left, right = top.subplots(1, 2, width_ratios=[1, 1.05])
    _standing(left, comparison)
    _sizes(right, comparison, names)
    _gains(gaining.subplots(1, 1), bars)
    panels = bottom.subplots(lines, columns, squeeze=False).flatten()
    _tournament(panels[0], comparison)
    for axes, lines_of_map in zip(panels[1:], maps, strict=False):
        _map(axes, lines_of_map, names)
    for axes in panels[1 + len(maps) :]:
        axes.set_visible(False)
    title = "Index of the release in the row beside that in the column: blue is better, orange worse, grey neither"
    bottom.suptitle(title, fontsize=11, color=INK)
    figure.suptitle(_title(comparison, names), fontsize=13, color=INK)
    return save(figure, target)


def _short(name: str, most: int = 16) -> str:
    """Return a name that fits beside a picture: the middle is cut out, and dollar signs are escaped.

    Examples
    --------
    >>> _short("release for k=10", 12)
    'relea…r k=10'
    """
    half = (most - 1) // 2
    cut = name if len(name) <= most else f"{name[:half]}…{name[half + len(name) - most + 1 :]}"
    return escape(cut)


def _title(comparison: Comparison, names: list[str]) -> str:
    """Return how many releases there are, and which wins, if one does."""
    winner = comparison.winner
    wins = "none is best in both risk and loss" if winner is None else f"{_short(winner)} is best in risk and loss"
    return f"{len(names)} releases: {wins}"


def _standing(axes: Any, comparison: Comparison) -> None:
    """Draw risk and loss of each release as a point with its name; those that none dominates are filled."""
    from duckanon.report.comparison import LOSS_AXIS, RISK_AXIS

    lines = [line for line in comparison.standing.to_pylist() if line["loss"] is not None]
    for line in lines:
        face = _GAIN if line["front"] else "white"
        axes.plot(100 * line["average_risk"], line["loss"], "o", markersize=9, color=_GAIN, markerfacecolor=face)
    named = [(100 * line["average_risk"], line["loss"], _short(line["release"])) for line in lines]
    axes.set_xlabel(RISK_AXIS, fontsize=10, color=INK)
    axes.set_ylabel(LOSS_AXIS, fontsize=10, color=INK)
    axes.set_title("Risk and loss (filled: no other is better)", fontsize=11, color=INK, loc="left")
    axes.set_xlim(left=0, right=max([x for x, _, _ in named], default=1) * 1.2 or 1)
    axes.set_ylim(bottom=0, top=max([y for _, y, _ in named], default=1) * 1.15 or 1)
    axes.grid(alpha=0.25)
    _bare(axes)
    annotate(axes, named)


def _bare(axes: Any) -> None:
    bare(axes)
    axes.tick_params(labelsize=9, colors=INK)


def _sizes(axes: Any, comparison: Comparison, names: list[str]) -> None:
    """Draw the share of the published rows in classes up to each size."""
    import numpy as np

    counts: dict[str, list[tuple[int, int]]] = {name: [] for name in names}
    for line in comparison.sizes.to_pylist():
        counts[line["release"]].append((line["size"], line["rows"]))
    bias = {line["release"]: line for line in comparison.bias.to_pylist()}
    largest = max(size for pairs in counts.values() for size, _ in pairs)
    for position, name in enumerate(names):
        sizes, rows = (np.array([pair[i] for pair in counts[name]], dtype=np.float64) for i in range(2))
        shares = np.cumsum(rows) / rows.sum()
        # From nothing before the smallest class up to all rows, and on to the edge of the picture.
        x = np.concatenate([sizes[:1], sizes, [largest * 1.2]])
        y = np.concatenate([[0.0], shares, [1.0]])
        label = f"{_short(name)}: smallest {bias[name]['minimum']:,.0f}, Gini {bias[name]['gini']:.2f}"
        if bias[name]["suppressed"]:
            label += f", {bias[name]['suppressed']:,} suppressed"
        axes.step(
            x,
            y,
            where="post",
            label=label if position < _LEGEND else None,
            color=COLOURS[position % _COLOURS],
            # Beyond the last colour they begin again, with other dashes.
            linestyle=_DASHES[(position + position // _COLOURS) % len(_DASHES)],
            linewidth=2,
        )
    logarithmic(axes.xaxis)
    axes.set_ylim(0, 1.02)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_xlabel("size of a row's class (rows or persons)", fontsize=10, color=INK)
    axes.set_ylabel("published rows in classes up to this size", fontsize=10, color=INK)
    axes.set_title("How many share a row's class (further right protects more)", fontsize=11, color=INK, loc="left")
    axes.grid(alpha=0.25)
    _bare(axes)
    if len(names) > _LEGEND:
        axes.plot([], [], " ", label=f"and {len(names) - _LEGEND} more")
    axes.legend(fontsize=8.5, frameon=False, loc="upper left", bbox_to_anchor=(0, -0.13), borderaxespad=0)


def _bars(comparison: Comparison, names: list[str]) -> list[tuple[str, dict[str, Any] | None]]:
    """Return a label and the gains of each pair, under a heading for each property; as many as fit."""
    lines = {(g["property"], g["release"], g["against"]): g for g in comparison.gains.to_pylist()}
    labels = list(dict.fromkeys(key[0] for key in lines))
    pairs = list(combinations(names, 2))
    if len(labels) * (1 + len(pairs)) > _MOST_BARS:
        # Each beside the one that loses least, which is the nearest to the original.
        standing = comparison.standing.to_pylist()
        least = min(standing, key=lambda line: math.inf if line["loss"] is None else line["loss"])["release"]
        pairs = [(least, other) for other in names if other != least]
    bars: list[tuple[str, dict[str, Any] | None]] = []
    for label in labels:
        bars.append((in_words(label), None))
        bars += [(f"{_short(a)} vs {_short(b)}", lines[label, a, b]) for a, b in pairs]
    if len(bars) > _MOST_BARS:
        left_out = sum(line is not None for _, line in bars[_MOST_BARS - 1 :])
        bars = [*bars[: _MOST_BARS - 1], (f"and {left_out} more", None)]
    return bars


def _gains(axes: Any, bars: list[tuple[str, dict[str, Any] | None]]) -> None:
    """Draw the share of rows that lose to the left, and of those that gain to the right."""
    for place, (_, line) in enumerate(bars):
        if line is None:
            continue
        rows = line["rows_better"] + line["rows_equal"] + line["rows_worse"]
        gain, loss = line["rows_better"] / rows, line["rows_worse"] / rows
        axes.barh(place, 2, left=-1, color=_SAME, height=0.7, alpha=0.45, zorder=1)
        axes.barh(place, gain, color=_GAIN, height=0.7, zorder=2)
        axes.barh(place, -loss, color=_LOSS, height=0.7, zorder=2)
        for share, side, mean, sign in ((gain, 1, line["mean_gain"], "+"), (loss, -1, line["mean_loss"], "−")):
            if share:
                _beside(axes, place, share, side, f"{_percent(share)}, {sign}{_compact(mean)}")
    axes.set_yticks(range(len(bars)), [label for label, _ in bars], fontsize=8.5)
    for tick, (_, line) in zip(axes.get_yticklabels(), bars, strict=True):
        tick.set_fontweight("bold" if line is None else "normal")
    # Few bars stay thin.
    axes.set_ylim(max(len(bars), 8) - 0.4, -0.6)
    axes.set_xlim(-1, 1)
    axes.set_xticks([-1, -0.5, 0, 0.5, 1], ["100%", "50%", "0", "50%", "100%"])
    axes.axvline(0, color=INK, linewidth=0.8, zorder=3)
    axes.set_xlabel("rows worse off  |  rows better off  (share of all rows, mean change)", fontsize=10, color=INK)
    title = "Who loses (orange) and who gains (blue) by the first of two"
    axes.set_title(title, fontsize=11, color=INK, loc="left")
    _bare(axes)
    axes.tick_params(axis="y", length=0)


def _tournament(axes: Any, comparison: Comparison) -> None:
    """Draw wins, draws and losses over all indices and properties."""
    lines = [line for line in comparison.tournament.to_pylist() if line["index"] is None]
    left = [0] * len(lines)
    for parts, colour in ((("wins",), _GAIN), (("draws", "incomparable"), _SAME), (("losses",), _LOSS)):
        widths = [sum(line[part] for part in parts) for line in lines]
        axes.barh(range(len(lines)), widths, left=left, color=colour, height=0.7)
        for place, (start, width) in enumerate(zip(left, widths, strict=True)):
            if width and len(lines) <= _MOST_NUMBERS:
                ink = INK if colour == _SAME else "white"
                axes.text(start + width / 2, place, str(width), ha="center", va="center", fontsize=9, color=ink)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    axes.set_yticks(range(len(lines)), [_short(line["release"], 14) for line in lines], fontsize=8.5)
    axes.invert_yaxis()
    axes.set_xticks([])
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.set_title("all indices below\nwins, draws, losses", fontsize=9.5, color=INK)


def _percent(share: float) -> str:
    return "<0.1%" if share < 0.001 else f"{share:.1%}" if share < 0.1 else f"{share:.0%}"


def _compact(value: float, digits: int = 3) -> str:
    """Return a number in a few characters.

    Examples
    --------
    >>> [_compact(v) for v in (0, 0.0239, 1, 775, 8941.4, 2.7e8, -math.inf)]
    ['0', '0.0239', '1', '775', '8.9k', '270M', '−∞']
    """
    if math.isinf(value):
        return "−∞" if value < 0 else "∞"
    size = abs(value)
    for bound, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if size >= bound:
            scaled = value / bound
            return f"{scaled:.0f}{unit}" if abs(scaled) >= 10 else f"{scaled:.1f}{unit}"
    return f"{value:.0f}" if size >= 100 else f"{value:.{digits}g}"


def _beside(axes: Any, place: int, share: float, side: int, words: str) -> None:
    """Write a label into a long bar, or beside a short one."""
    inside = share > 0.45
    at = side * (share - 0.02 if inside else share + 0.02)
    away = (side > 0) != inside
    axes.text(
        at,
        place,
        words,
        va="center",
        ha="left" if away else "right",
        fontsize=8,
        color="white" if inside else INK,
        zorder=4,
    )


def _maps(comparison: Comparison) -> list[list[dict[str, Any]]]:
    """Return the lines of each index and property."""
    maps: dict[tuple[str, str | None], list[dict[str, Any]]] = {}
    for line in comparison.indices.to_pylist():
        maps.setdefault((line["index"], line["property"]), []).append(line)
    return list(maps.values())


def _map(axes: Any, lines: list[dict[str, Any]], names: list[str]) -> None:
    """Draw an index of every pair; the colour shows which is better, the number is the index."""
    import numpy as np
    from matplotlib.colors import ListedColormap

    shades = {"worse": 0, "incomparable": 1, "equal": 1, "better": 2}
    grid = np.full((len(names), len(names)), np.nan)
    size, digits = (9, 3) if len(names) <= 4 else (7.5, 3) if len(names) <= 6 else (6, 2)
    for line in lines:
        row, column = names.index(line["release"]), names.index(line["against"])
        grid[row, column] = shades[line["verdict"]]
        colour = INK if shades[line["verdict"]] == 1 else "white"
        if len(names) <= _MOST_NUMBERS:
            axes.text(
                column, row, _compact(line["value"], digits), ha="center", va="center", fontsize=size, color=colour
            )
    axes.imshow(grid, cmap=ListedColormap([_LOSS, _SAME, _GAIN]), vmin=0, vmax=2, aspect="auto")
    labels = [_short(name, 14) for name in names]
    turned = 0 if max(len(label) for label in labels) * len(labels) <= 20 else 40
    axes.set_xticks(range(len(names)), labels, fontsize=8.5, rotation=turned, ha="right" if turned else "center")
    axes.set_yticks(range(len(names)), labels, fontsize=8.5)
    axes.set_xticks(np.arange(len(names) + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(len(names) + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=2)
    axes.tick_params(which="both", length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    of = in_words(lines[0]["property"] or "all properties")
    unit = " (log)" if lines[0]["index"] == _LOGARITHM else ""
    axes.set_title(f"{in_words(lines[0]['index'])}{unit}\n{of}", fontsize=9.5, color=INK)


__all__ = ["draw"]
