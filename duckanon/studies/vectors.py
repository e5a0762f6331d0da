"""Which algorithm treats whom better: property vectors of the releases of k-anonymity in practice."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from duckanon.report.model import Lines
from duckanon.report.plots import INK, logarithmic
from duckanon.studies.base import Chapter, Record, Study, Task, distinct, grid, mean, where
from duckanon.studies.figures import COLOURS, Figure, label, legend, line, panels
from duckanon.studies.releases import release_of, row_properties, shown
from duckanon.studies.tables import ROW, codes, numbered, read

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from duckanon.studies.config import Settings


PROPERTIES = {"class_size": True, "loss": False, "sensitive_share": False}
"""The properties of a row, and whether higher is better."""


class PropertyVectors(Study):
    """The comparators of the paper's sections 4 and 5 on all pairs of releases with the same k."""

    name = "property-vectors"
    title = "Which algorithm treats whom better?"
    paper = "R. Dewri, I. Ray, I. Ray, D. Whitley, On the comparison of microdata disclosure control algorithms, 2009"
    keys: ClassVar[Mapping[str, type]] = {
        "algorithms": list,
        "ks": list,
        "rows": int,
        "by": list,
        "metric": str,
        "suppression_limit": float,
        "bounds": str,
        "groups": int,
        "seed": int,
    }

    def tasks(self, settings: Settings) -> list[Task]:
        given = {n: v for n, v in settings.values.items() if n != "ks"}
        return [
            Task({"table": name, "k": k}, {**given, "table": dict(table)})
            for k in settings["ks"]
            for name, table in settings.tables.items()
        ]

    def run(self, task: Task) -> list[Record]:
        given = task.given
        spec = given["table"]
        table = numbered(read(spec, given["rows"]))
        vectors: dict[str, dict[str, NDArray[np.float64]]] = {}
        for name in given["algorithms"]:
            with release_of(
                table,
                spec,
                name,
                task.labels["k"],
                metric=given["metric"],
                suppression_limit=given["suppression_limit"],
                bounds=given["bounds"],
                seed=given["seed"],
                insensitive=[ROW],
            ) as release:
                vectors[name] = row_properties(release, spec["target"])
        rare = rarity(table, list(spec["quasi_identifiers"]), given["groups"])
        return [*_games(vectors, given["by"]), *_by_group(vectors, rare), *_bias(vectors)]

    def page(self, records: list[Record], settings: Settings) -> list[Chapter]:

        return chapters(records)


def _games(vectors: Mapping[str, Mapping[str, NDArray[np.float64]]], by: list[str]) -> list[Record]:
    """Return who is better in each pair by each comparator, and how many rows gain and lose by how much."""
    from duckanon.assess.comparison import better

    lines: list[Record] = []
    for one, other in permutations(vectors, 2):
        for what, higher in PROPERTIES.items():
            a, b = (_oriented(vectors[name][what], higher) for name in (one, other))
            gain = a - b
            labels = {"algorithm": one, "against": other, "property": what}
            won = {index: better(a, b, by=index, ideal=_ideal(a, higher)) for index in [*by, "dominance"]}
            lines.append(
                {
                    "what": "game",
                    **labels,
                    **{f"by_{index}": verdict for index, verdict in won.items()},
                    "rows_better": int((gain > 0).sum()),
                    "rows_worse": int((gain < 0).sum()),
                    "rows": len(gain),
                    "mean_gain": float(gain[gain > 0].mean()) if (gain > 0).any() else 0.0,
                    "mean_loss": float(-gain[gain < 0].mean()) if (gain < 0).any() else 0.0,
                }
            )
    return lines


def _oriented(values: NDArray[np.float64], higher: bool) -> NDArray[np.float64]:
    """Return a vector of which higher is better: of a share that should be low, what is missing to one.

    Rounded, so that equal shares stay equal in whatever order they were summed.
    """
    return np.round(values if higher else 1.0 - values, 12)


def _ideal(values: NDArray[np.float64], higher: bool) -> float:
    return float(len(values)) if higher else 1.0


def _by_group(of_releases: Mapping[str, Mapping[str, NDArray[np.float64]]], rare: NDArray[np.int64]) -> list[Record]:
    sizes = np.bincount(rare)
    return [
        {"what": "rarity", "algorithm": name, "property": what, "group": group, "mean": float(value)}
        for name, vectors in of_releases.items()
        for what in PROPERTIES
        for group, value in enumerate(np.bincount(rare, vectors[what]) / sizes)
    ]


def _bias(of_releases: Mapping[str, Mapping[str, NDArray[np.float64]]]) -> list[Record]:
    """Return how unequal the rows of each release are treated (section 2)."""
    from duckanon.assess.comparison import gini

    lines = []
    for name, vectors in of_releases.items():
        sizes = vectors["class_size"]
        risk = np.sort(1.0 / np.maximum(sizes, 1.0))[::-1]
        lines.append(
            {
                "what": "bias",
                "algorithm": name,
                "smallest": float(sizes.min()),
                "median_size": float(np.median(sizes)),
                "gini": gini(sizes),
                "in_smallest": float(np.mean(sizes == sizes.min())),
                "mean_risk": float(risk.mean()),
                "risk_of_top_tenth": float(risk[: max(1, len(risk) // 10)].sum() / risk.sum()),
                "gini_of_loss": gini(vectors["loss"]),
            }
        )
    return lines


def rarity(table: pa.Table, quasi: list[str], groups: int) -> NDArray[np.int64]:
    """Return the group of each row, from 0 for the commonest to the rarest.

    How rare a row is, is the sum of how surprising its values are (the logarithm of one over their shares), numbers in
    20 bins; groups are of the same size, rows with equal sums in the order of the table.
    """
    surprise = np.zeros(table.num_rows)
    for name in quasi:
        column_codes, size = codes(table.column(name), 20)
        surprise -= np.log2(np.bincount(column_codes, minlength=size) / len(column_codes))[column_codes]
    ranks = np.empty(table.num_rows, dtype=np.int64)
    ranks[np.argsort(surprise, kind="stable")] = np.arange(table.num_rows)
    groups_of_rows: NDArray[np.int64] = ranks * min(groups, table.num_rows) // max(table.num_rows, 1)
    return groups_of_rows


_WORDS = {"class_size": "class size / k", "loss": "loss", "sensitive_share": "share of own sensitive value"}


def chapters(records: list[Record]) -> list[Chapter]:
    """Return who is treated better by whom."""
    return [_tournament(records), _pairs(records), _rarity(records), _bias_chapter(records)]


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
        "class_size is a row's privacy, loss the share of the domains that its cells cover, sensitive_share the "
        "share of its class with its own sensitive value (lower discloses less). Dominance is the strict comparison: "
        "nowhere worse, somewhere better; 0 in all of its cells means that no release dominates another."
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


def _bias_chapter(records: list[Record]) -> Chapter:
    lines = where(records, what="bias")
    rows = []
    for table in distinct(lines, "table"):
        for algorithm in distinct(lines, "algorithm"):
            some = where(lines, table=table, algorithm=algorithm)
            risk = mean([r["mean_risk"] * r["k"] for r in some])
            sentences = [
                mean([r[name] for r in some]) for name in ("gini", "in_smallest", "risk_of_top_tenth", "gini_of_loss")
            ]
            rows.append([table, shown(algorithm), sentences[0], sentences[1], risk, sentences[2], sentences[3]])
    header = ["table", "algorithm", "Gini of class sizes", "rows in smallest", "mean risk x k", "risk on top tenth"]
    about = "The anonymization bias (section 2): how unequally rows are treated. Means over the values of k."
    return Chapter("Bias", [Lines([about]), grid([*header, "Gini of loss"], rows, words=2)])
