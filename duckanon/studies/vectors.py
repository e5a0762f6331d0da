"""Which algorithm treats whom better: property vectors of the releases of k-anonymity in practice."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from duckanon.report.sections import Lines
from duckanon.studies.base import Chapter, Record, Study, Task, distinct, grid, mean, where
from duckanon.studies.figures import COLOURS, Drawing, label, legend, line, panels
from duckanon.studies.releases import release_of, shown
from duckanon.studies.tables import codes, read

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from duckanon.studies.config import Settings

_BIAS = ("minimum", "median", "mean", "gini", "share_in_smallest", "mean_risk", "maximum_risk", "risk_of_top_tenth")
_BY_RARITY = ("class_size", "loss")


class PropertyVectors(Study):
    """The comparators of the paper's sections 4 and 5 on all pairs of releases with the same k."""

    name = "property-vectors"
    title = "Which algorithm treats whom better?"
    paper = "R. Dewri, I. Ray, I. Ray, D. Whitley, On the comparison of microdata disclosure control algorithms, 2009"
    keys: ClassVar[Mapping[str, type]] = {
        "algorithms": list,
        "ks": list,
        "rows": int,
        "properties": list,
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
        from duckanon.comparison.columns import vectors
        from duckanon.comparison.compare import compare

        given = task.given
        spec = given["table"]
        table = read(spec, given["rows"])
        with ExitStack() as stack:
            releases = {
                name: stack.enter_context(
                    release_of(
                        table,
                        spec,
                        name,
                        task.labels["k"],
                        metric=given["metric"],
                        suppression_limit=given["suppression_limit"],
                        bounds=given["bounds"],
                        seed=given["seed"],
                    )
                )
                for name in given["algorithms"]
            }
            found = compare(releases, by=given["by"], properties=given["properties"], metrics=["loss"])
            rare = _groups(table, list(spec["quasi_identifiers"]), given["groups"])
            by_rarity: list[Record] = []
            for name, release in releases.items():
                measured = vectors(release, list(_BY_RARITY))
                for what in _BY_RARITY:
                    values = measured.column(what).to_numpy()
                    sums = np.bincount(rare, values) / np.bincount(rare)
                    by_rarity += [
                        {"what": "rarity", "algorithm": name, "property": what, "group": g, "mean": float(m)}
                        for g, m in enumerate(sums)
                    ]
        # No table here has a published value in it: of the groups of ``compare`` only the extremes are kept.
        lines = [{"what": "tournament", **_algorithm(r)} for r in found.tournament.to_pylist()]
        lines += [{"what": "gains", **_algorithm(r)} for r in found.gains.to_pylist()]
        lines += [{"what": "dominance", **_algorithm(r)} for r in found.dominance.to_pylist()]
        for r in found.bias.to_pylist():
            lines.append({"what": "bias", "algorithm": r["release"], **{n: r[n] for n in _BIAS}})
        lines += _extremes(found.groups)
        return [*lines, *by_rarity]

    def page(self, records: list[Record], settings: Settings) -> list[Chapter]:
        return [_tournament(records), _pairs(records), _rarity(records), _bias(records), _carriers(records)]


def _algorithm(record: Mapping[str, Any]) -> Record:
    return {("algorithm" if name == "release" else name): value for name, value in record.items()}


def _groups(table: pa.Table, quasi: list[str], groups: int) -> NDArray[np.int64]:
    """Return the group of each row, from 0 for the commonest to the rarest.

    How rare a row is, is the sum of how surprising its values are (the logarithm of one over their shares), numbers in
    20 bins; groups are of the same size, rows with equal sums in the order of the table.
    """
    surprise = np.zeros(table.num_rows)
    for name in quasi:
        own, size = codes(table.column(name), 20)
        surprise -= np.log2(np.bincount(own, minlength=size) / len(own))[own]
    ranks = np.empty(table.num_rows, dtype=np.int64)
    ranks[np.argsort(surprise, kind="stable")] = np.arange(table.num_rows)
    return ranks * min(groups, table.num_rows) // max(table.num_rows, 1)


def _extremes(groups: pa.Table) -> list[Record]:
    """Return by release and column the largest bias of a published value, and how many rows have it; not the value."""
    found: dict[tuple[str, str], Record] = {}
    for r in groups.to_pylist():
        key = (r["release"], r["attribute"])
        if r["bias"] is not None and r["bias"] > found.get(key, {"bias": -1.0})["bias"]:
            told = {"bias": r["bias"], "share_of_rows": r["share_of_rows"], "share_of_risk": r["share_of_risk"]}
            found[key] = {"what": "carriers", "algorithm": r["release"], "attribute": r["attribute"], **told}
    return list(found.values())


def _tournament(records: list[Record]) -> Chapter:
    lines = [r for r in where(records, what="tournament") if r.get("index") is not None]
    algorithms = distinct(lines, "algorithm")
    rows = []
    for property_ in distinct(lines, "property"):
        for index in distinct(where(lines, property=property_), "index"):
            row: list[Any] = [property_, index]
            for algorithm in algorithms:
                some = where(lines, property=property_, index=index, algorithm=algorithm)
                wins, losses = sum(r["wins"] for r in some), sum(r["losses"] for r in some)
                games = sum(r["wins"] + r["losses"] + r["draws"] + r["incomparable"] for r in some)
                row.append((wins - losses) / games if games else None)
            rows.append(row)
    header = ["property", "index", *(shown(a) for a in algorithms)]
    about = (
        "Wins minus losses as a share of all games, over tables and values of k: 1 wins against everyone, -1 "
        "loses. class_size is a row's privacy, loss what its values lost, sensitive_share the share of its class with "
        "its own sensitive value. One and the same algorithm is rarely best for both."
    )
    return Chapter("Tournament", [Lines([about]), grid(header, rows, words=2)])


def _pairs(records: list[Record]) -> Chapter:
    lines = where(records, what="gains")
    algorithms = distinct(lines, "algorithm")
    properties = distinct(lines, "property")
    figure, axes = panels(1, len(properties), (3.4, 3.2))
    for j, property_ in enumerate(properties):
        shares = np.full((len(algorithms), len(algorithms)), np.nan)
        for a, one in enumerate(algorithms):
            for b, other in enumerate(algorithms):
                some = where(lines, property=property_, algorithm=one, against=other)
                if some:
                    rows = sum(r["rows_better"] + r["rows_equal"] + r["rows_worse"] for r in some)
                    shares[a, b] = sum(r["rows_better"] - r["rows_worse"] for r in some) / rows
        _map(axes[0][j], shares, [shown(a) for a in algorithms])
        label(axes[0][j], title=str(property_))
    about = (
        "Share of rows that are better off minus those worse off under the algorithm in the row than in the column, "
        "over all tables and values of k."
    )
    return Chapter("Who gains", [Drawing("gains", about, figure)])


def _map(axes: Any, shares: NDArray[np.float64], names: list[str]) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    from duckanon.studies.figures import INK

    shades = LinearSegmentedColormap.from_list("gains", [COLOURS[1], "#b9b9b4", COLOURS[0]])
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
    figure, axes = panels(len(_BY_RARITY), len(tables), (2.9, 2.2), sharex=True)
    ks = distinct(lines, "k")
    for i, what in enumerate(_BY_RARITY):
        for j, table in enumerate(tables):
            for place, algorithm in enumerate(algorithms):
                some = where(lines, table=table, algorithm=algorithm, property=what)
                groups = sorted(distinct(some, "group"))
                values = [mean([_scaled(r) for r in where(some, group=g)]) for g in groups]
                line(axes[i][j], [g + 1 for g in groups], [v if v is not None else np.nan for v in values], place)
            last = i == len(_BY_RARITY) - 1
            y = ("class size / k" if what == "class_size" else what) if j == 0 else ""
            label(axes[i][j], title=str(table) if i == 0 else "", x="from common to rare" if last else "", y=y)
    for one in axes[0]:
        one.set_yscale("log")
    legend(figure, [shown(a) for a in algorithms])
    about = (
        f"Rows in groups of the same size, from the commonest values to the rarest: their class size as a multiple of "
        f"k and their loss, mean over {len(ks)} values of k."
    )
    return Chapter("Common and rare people", [Drawing("rarity", about, figure)])


def _scaled(record: Record) -> float:
    value = float(record["mean"])
    return value / record["k"] if record["property"] == "class_size" else value


def _bias(records: list[Record]) -> Chapter:
    lines = where(records, what="bias")
    rows = []
    for table in distinct(lines, "table"):
        for algorithm in distinct(lines, "algorithm"):
            some = where(lines, table=table, algorithm=algorithm)
            rows.append([table, shown(algorithm), *(mean([r[n] for r in some]) for n in ("gini", "share_in_smallest"))])
            rows[-1] += [mean([r["mean_risk"] * r["k"] for r in some]), mean([r["risk_of_top_tenth"] for r in some])]
    header = [
        "table",
        "algorithm",
        "Gini of class sizes",
        "rows in smallest classes",
        "mean risk x k",
        "risk on top tenth",
    ]
    about = "The anonymization bias (section 2): how unequal classes are. Means over the values of k."
    return Chapter("Bias", [Lines([about]), grid(header, rows, words=2)])


def _carriers(records: list[Record]) -> Chapter:
    lines = where(records, what="carriers")
    rows = []
    for table in distinct(lines, "table"):
        for algorithm in distinct(lines, "algorithm"):
            some = where(lines, table=table, algorithm=algorithm)
            by = {a: mean([r["bias"] for r in where(some, attribute=a)]) or 0.0 for a in distinct(some, "attribute")}
            if by:
                worst = max(by, key=lambda a: by[a])
                rows.append([table, shown(algorithm), worst, by[worst]])
    about = (
        "The published value whose rows carry most risk for their number: its column, and the quotient of its share of "
        "all risk and of all rows. The value itself is not kept."
    )
    return Chapter(
        "Who carries the risk", [Lines([about]), grid(["table", "algorithm", "column", "bias"], rows, words=3)]
    )
