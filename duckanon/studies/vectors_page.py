"""The page of the study of property vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from duckanon.report.model import Lines
from duckanon.studies.base import Chapter, Record, distinct, grid, mean, where
from duckanon.studies.figures import COLOURS, INK, Figure, label, legend, line, logarithmic, panels
from duckanon.studies.releases import shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WORDS = {"class_size": "class size / k", "loss": "loss", "sensitive_share": "share of own sensitive value"}


def chapters(records: list[Record]) -> list[Chapter]:
    """Return who is treated better by whom."""
    return [_tournament(records), _pairs(records), _rarity(records), _bias(records)]


def _tournament(records: list[Record]) -> Chapter:
    games = where(records, what="game")
    algorithms = distinct(games, "algorithm")
    indices = [name for name in games[0] if name.startswith("by_")]
    rows = []
    for property_ in distinct(games, "property"):
        for index in indices:
            row: list[Any] = [property_, index.removeprefix("by_")]
            for algorithm in algorithms:
                some = [r[index] for r in where(games, property=property_, algorithm=algorithm)]
                row.append((some.count("first") - some.count("second")) / len(some) if some else None)
            rows.append(row)
    header = ["property", "comparator", *(shown(a) for a in algorithms)]
    about = (
        "Wins minus losses as a share of all games, over tables and values of k: 1 wins against everyone, -1 loses. "
        "class_size is a row's privacy, loss the share of the domains that its cells stand for, sensitive_share the "
        "share of its class with its own sensitive value (less tells less). Dominance is the strict comparison: "
        "nowhere worse, somewhere better; 0 in all of its cells says that nobody dominates anybody."
    )
    return Chapter("Tournament", [Lines([about]), grid(header, rows, words=2)])


def _pairs(records: list[Record]) -> Chapter:
    games = where(records, what="game")
    algorithms, properties = distinct(games, "algorithm"), distinct(games, "property")
    figure, axes = panels(1, len(properties), (3.4, 3.2))
    for j, property_ in enumerate(properties):
        shares = np.full((len(algorithms), len(algorithms)), np.nan)
        for a, one in enumerate(algorithms):
            for b, other in enumerate(algorithms):
                some = where(games, property=property_, algorithm=one, against=other)
                if some:
                    shares[a, b] = sum(r["rows_better"] - r["rows_worse"] for r in some) / sum(r["rows"] for r in some)
        _map(axes[0][j], shares, [shown(a) for a in algorithms])
        label(axes[0][j], title=str(property_))
    about = (
        "Share of rows that are better off minus those worse off under the algorithm in the row than in the column, "
        "over all tables and values of k."
    )
    return Chapter("Who gains", [Figure("gains", about, figure)])


def _map(axes: Any, shares: NDArray[np.float64], names: list[str]) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    shades = LinearSegmentedColormap.from_list("gains", [COLOURS[1], "#8d8d88", COLOURS[0]])
    axes.grid(False)
    axes.imshow(shares, cmap=shades, vmin=-1, vmax=1)
    for (a, b), value in np.ndenumerate(shares):
        if value == value:
            axes.text(b, a, f"{value:+.2f}", ha="center", va="center", fontsize=7, color="white")
    axes.set_xticks(range(len(names)), names, fontsize=7, rotation=35)
    axes.set_yticks(range(len(names)), names, fontsize=7)
    axes.tick_params(length=0, colors=INK)


def _rarity(records: list[Record]) -> Chapter:
    lines = where(records, what="rarity")
    tables, algorithms = distinct(lines, "table"), distinct(lines, "algorithm")
    figure, axes = panels(len(_WORDS), len(tables), (2.9, 2.1), sharex=True)
    ks = distinct(lines, "k")
    for i, what in enumerate(_WORDS):
        for j, table in enumerate(tables):
            for place, algorithm in enumerate(algorithms):
                some = where(lines, table=table, algorithm=algorithm, property=what)
                groups = sorted(distinct(some, "group"))
                values = [mean([_scaled(r) for r in where(some, group=g)]) for g in groups]
                line(axes[i][j], [g + 1 for g in groups], [v if v is not None else np.nan for v in values], place)
            x = "from common to rare" if i == len(_WORDS) - 1 else ""
            label(axes[i][j], title=str(table) if i == 0 else "", x=x, y=_WORDS[what] if j == 0 else "")
    for one in axes[0]:
        logarithmic(one.yaxis)
    legend(figure, [shown(a) for a in algorithms])
    about = (
        "Rows in groups of the same size, from the commonest values to the rarest: their class size as a multiple of "
        f"k, their loss, and the share of their class with their own sensitive value; mean over {len(ks)} values of k."
    )
    return Chapter("Common and rare people", [Figure("rarity", about, figure)])


def _scaled(record: Record) -> float:
    value = float(record["mean"])
    return value / record["k"] if record["property"] == "class_size" else value


def _bias(records: list[Record]) -> Chapter:
    lines = where(records, what="bias")
    rows = []
    for table in distinct(lines, "table"):
        for algorithm in distinct(lines, "algorithm"):
            some = where(lines, table=table, algorithm=algorithm)
            risk = mean([r["mean_risk"] * r["k"] for r in some])
            told = [
                mean([r[name] for r in some]) for name in ("gini", "in_smallest", "risk_of_top_tenth", "gini_of_loss")
            ]
            rows.append([table, shown(algorithm), told[0], told[1], risk, told[2], told[3]])
    header = ["table", "algorithm", "Gini of class sizes", "rows in smallest", "mean risk x k", "risk on top tenth"]
    about = "The anonymization bias (section 2): how unequally rows are treated. Means over the values of k."
    return Chapter("Bias", [Lines([about]), grid([*header, "Gini of loss"], rows, words=2)])
