"""Whether information loss metrics predict which release is more useful.

Many releases of each table, by algorithms whose hierarchies or orders are drawn at random; of each the metrics and what
learners make of it. The paper's answer is that metrics hardly help: two releases in hand, the better one by a metric is
the more useful one in little more than half of all cases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from duckanon.report.model import Lines
from duckanon.report.plots import INK
from duckanon.studies.base import Chapter, Record, Study, Task, distinct, grid, where
from duckanon.studies.figures import COLOURS, MARKERS, Figure, label, legend, panels
from duckanon.studies.metrics_analysis import (
    METRICS,
    UTILITIES,
    column,
    effect_sizes,
    fit,
    meta_metrics,
    one_against_one,
    slopes,
    transfer,
)
from duckanon.studies.tables import codes, read

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from duckanon.hierarchy import Hierarchy
    from duckanon.studies.config import Settings


ALGORITHMS = ("datafly", "datafly_shuffled", "mondrian")


class MetricsVsUtility(Study):
    """The study of the paper's chapters 3 and 4."""

    name = "metrics-vs-utility"
    title = "Do information loss metrics predict utility?"
    paper = "R. de Spoelberch, The limits of information loss metrics as measures for utility, 2020"
    keys: ClassVar[Mapping[str, type]] = {
        "algorithms": list,
        "versions": int,
        "rows": int,
        "columns": int,
        "bins": int,
        "test_size": float,
        "trees": int,
        "variance": float,
        "bounds": str,
        "repeats": int,
        "meta_test": float,
        "seed": int,
    }

    def tasks(self, settings: Settings) -> list[Task]:
        names = ("rows", "columns", "bins", "test_size", "trees", "variance", "bounds", "seed")
        given = {n: settings[n] for n in names}
        tasks = []
        for version in range(settings["versions"]):
            for name, table in settings.tables.items():
                for algorithm in settings["algorithms"]:
                    labels = {"table": name, "algorithm": algorithm, "version": version}
                    tasks.append(Task(labels, {**given, "table": dict(table)}))
        # Learners trained on raw rows, once for each table.
        raw = [
            Task({"table": n, "algorithm": "none", "version": 0}, {**given, "table": dict(t)})
            for n, t in settings.tables.items()
        ]
        return [*raw, *tasks]

    def run(self, task: Task) -> list[Record]:
        drawn = _Drawn.of(task)
        if task.labels["algorithm"] == "none":
            return [{"k": 1, **_learned(drawn, drawn.train, task.given, {})}]
        with drawn.release(task.given["bounds"]) as release:
            measured = {m.metric: m.normalised for m in release.measure(list(METRICS)) if m.attribute is None}
            suppressed = release.rows_suppressed / release.rows_in
            useful = _learned(drawn, release, task.given, drawn.hierarchies)
        return [{"k": drawn.k, "suppressed": suppressed, **measured, **useful}]

    def page(self, records: list[Record], settings: Settings) -> list[Chapter]:

        return chapters(records, settings)


class _Drawn:
    """What chance decides of one release: k, the order of values, the hierarchies."""

    def __init__(
        self, train: pa.Table, test: pa.Table, quasi: list[str], target: str, hierarchies: dict[str, Hierarchy], k: int
    ) -> None:
        self.train, self.test, self.quasi, self.target = train, test, quasi, target
        self.hierarchies, self.k = hierarchies, k
        self.algorithm: Any = "mondrian"
        self.seed = 0

    @classmethod
    def of(cls, task: Task) -> _Drawn:
        """Draw it, from the labels of the task alone."""
        import pyarrow as pa

        from duckanon.assess import utility

        given, algorithm = task.given, task.labels["algorithm"]
        spec = given["table"]
        quasi, target = list(spec["quasi_identifiers"])[: given["columns"] or None], spec["target"]
        table = read(spec, given["rows"])
        coded = {name: codes(table.column(name), given["bins"]) for name in quasi}
        rng = np.random.default_rng([given["seed"], task.seed()])
        unordered = set(spec.get("unordered", ()))
        columns: dict[str, NDArray[np.int64]] = {}
        hierarchies: dict[str, Hierarchy] = {}
        for name, (values, size) in coded.items():
            # The order of unordered values is drawn for every algorithm, that of all values for Mondrian (3.3.1).
            mixed = algorithm == "mondrian" or name in unordered
            order = rng.permutation(size) if mixed and algorithm != "none" else np.arange(size)
            columns[name] = order[values]
            tree = int(rng.integers(2**31))
            if algorithm.startswith("datafly"):
                hierarchies[name] = _tree(size, tree, ordered=algorithm == "datafly")
        made = pa.table({**columns, target: table.column(target)})
        parts = utility.split(made, target=target, test_size=given["test_size"], seed=given["seed"])
        drawn = cls(parts.train, parts.test, quasi, target, hierarchies, int(2 + rng.poisson(1.0)))
        drawn.seed = int(rng.integers(2**31))
        if hierarchies:
            from duckanon.algorithms.full_domain.datafly import Datafly

            drawn.algorithm = Datafly(stop="k")
        return drawn

    def release(self, bounds: str) -> Any:
        """Return the release."""
        from duckanon.api import anonymize

        return anonymize(
            self.train,
            quasi_identifiers=self.quasi,
            sensitive=[self.target],
            hierarchies=self.hierarchies or None,
            algorithm=self.algorithm,
            bounds="grid" if self.hierarchies else bounds,
            k=self.k,
            seed=self.seed,
        )


def _tree(size: int, seed: int, *, ordered: bool) -> Hierarchy:
    """Return a random hierarchy over all codes of a column, those that only held-out rows have among them."""
    import pyarrow as pa

    from duckanon.hierarchy import Hierarchy
    from duckanon.hierarchy.rules import random_tree

    levels = {"l0": [str(i) for i in range(size)]}
    for height, groups in enumerate(random_tree(size, seed, ordered), 1):
        members = {g: " ".join(str(i) for i in np.flatnonzero(groups == g)) for g in np.unique(groups)}
        levels[f"l{height}"] = [f"{{{members[g]}}}" for g in groups]
    return Hierarchy.from_table(pa.table(levels))


def _learned(drawn: _Drawn, release: Any, given: Mapping[str, Any], hierarchies: Mapping[str, Any]) -> dict[str, float]:
    """Return the six utilities: three learners, two scores each, tested on original rows that were held out."""
    from sklearn.ensemble import RandomForestClassifier

    from duckanon.assess import utility

    forest = RandomForestClassifier(n_estimators=given["trees"])
    scores_of_learners: dict[str, float] = {}
    texts = [_as_texts(t, drawn.quasi) for t in (drawn.train, drawn.test)]
    raw = release is drawn.train
    for learners, pca in (({"lr": "logistic_regression"}, None), ({"rf_pca": forest, "knn_pca": "knn"}, "variance")):
        scores = utility.evaluate(
            texts[0],
            texts[0] if raw else release,
            target=drawn.target,
            test=texts[1],
            learners=learners,
            encoding="value_set",
            hierarchies=hierarchies or None,
            seeds=[given["seed"]],
            pca=given[pca] if pca else None,
            baseline=raw,
            workers=1,
        )
        trained_on = "raw" if raw else "release"
        for line in scores.summary().to_pylist():
            if line["learner"] in learners and line["trained_on"] == trained_on:
                scores_of_learners |= {f"{line['learner']}_{score}": line[score] for score in ("accuracy", "auroc")}
    return scores_of_learners


def _as_texts(table: pa.Table, names: list[str]) -> pa.Table:
    """Return codes as texts: they are categories, whatever their numbers."""
    import pyarrow as pa

    for name in names:
        place = table.column_names.index(name)
        table = table.set_column(place, name, table.column(name).cast(pa.string()))
    return table


_SHORT = {
    "average_class_size_lefevre": "average class size",
    "squared_distance_error": "squared distance",
    "bivariate_correlation": "bivariate corr.",
}


def short(metric: str) -> str:
    """Return a name that fits below a panel."""
    return _SHORT.get(metric, metric.replace("_", " "))


def chapters(records: list[Record], settings: Settings) -> list[Chapter]:
    """Return the chapters of the page."""
    raw = [r for r in records if r["algorithm"] == "none"]
    made = [r for r in records if r["algorithm"] != "none"]
    if not made:
        return []
    picks = meta_metrics(made, test=settings["meta_test"], repeats=settings["repeats"], seed=settings["seed"])
    return [
        _answer(made, picks),
        _picks(made),
        _meta(made, picks),
        _effects(made),
        _scatter(made),
        _spread(made, raw),
        _trends(made),
    ]


def _answer(made: list[Record], picks: list[Record]) -> Chapter:
    rates = [r["rate"] for r in one_against_one(made)]
    transferred = [r["rate"] for r in where(picks, kind="own") if r["rate"] == r["rate"]]
    lines = [
        f"{len(made)} releases of {len(distinct(made, 'table'))} tables. Of two releases by the same algorithm the one "
        f"that a single metric prefers is the more useful one in {np.mean(rates):.1%} of all pairs (between "
        f"{min(rates):.1%} and {max(rates):.1%} by table and metric); chance reaches 50 %.",
    ]
    if transferred:
        lines.append(
            f"A learner trained on all metrics together picks right in {np.mean(transferred):.1%} of the pairs that it "
            "was not trained on."
        )
    return Chapter("The answer", [Lines(lines)])


def _picks(made: list[Record]) -> Chapter:
    rates = one_against_one(made)
    tables = distinct(rates, "table")

    def row(table: Any, what: str) -> list[Any]:
        by = {r["metric"]: r[what] for r in where(rates, table=table)}
        return [table, *(by.get(m) for m in METRICS)]

    header = ["table", *(short(m) for m in METRICS)]
    return Chapter(
        "One against one (Table 4.1)",
        [
            Lines(
                [
                    "How often the better of two releases by a metric is the more useful one: all pairs within an "
                    "algorithm, averaged over algorithms and utilities. Equal metrics or utilities count half."
                ]
            ),
            grid(header, [row(t, "rate") for t in tables]),
            Lines(
                [
                    "The same, with a pair of equal ones counted as right. Where learners predict the same class for "
                    "nearly all rows, whatever the release, these rates are high for every metric and mean nothing."
                ]
            ),
            grid(header, [row(t, "equal_is_right") for t in tables]),
        ],
    )


def _meta(made: list[Record], picks: list[Record]) -> Chapter:
    tables, algorithms = distinct(made, "table"), distinct(made, "algorithm")
    transferred = transfer(picks, "own", tables)
    parts: list[Any] = [
        Lines(
            ["A learner of all metrics, for each table, algorithm and utility; pairs of held-out releases (Table 4.2)."]
        ),
        grid(["table", "right picks"], [[t, transferred.get((t, t))] for t in tables]),
    ]
    for kind, over, number in (("algorithm", algorithms, 3), ("table", tables, 4), ("utility", list(UTILITIES), 5)):
        if len(over) < 2:
            continue
        rates = transfer(picks, kind, over)
        parts.append(
            Lines([f"Trained for the {kind} in the row, picking for the one in the column (Table 4.{number})."])
        )
        parts.append(grid([kind, *map(str, over)], [[u, *(rates.get((u, o)) for o in over)] for u in over]))
    return Chapter("The meta-metric, and whether it can be moved", parts)


def _effects(made: list[Record]) -> Chapter:
    effects = sorted(effect_sizes(made), key=lambda r: -float(r["effect"]))
    if not effects:
        return Chapter(
            "Effect sizes (Figure 4.8)", [Lines(["There are too few releases for regressions on all metrics."])]
        )
    figure, ((axes,),) = panels(1, 1, (6.5, 3.6))
    places = range(len(effects))
    middle = [r["effect"] for r in effects]
    reach = [[r["effect"] - r["low"] for r in effects], [r["high"] - r["effect"] for r in effects]]
    axes.errorbar(middle, list(places), xerr=reach, fmt="o", color=COLOURS[0], markersize=4, capsize=3, linewidth=1.2)
    axes.set_yticks(list(places), [short(r["metric"]) for r in effects], fontsize=8)
    axes.invert_yaxis()
    axes.axvline(0, color=INK, linewidth=0.8)
    label(axes, x="mean absolute coefficient of the standardised metric, 95 % interval")
    about = "Linear regressions of each utility on all metrics, one for each table, algorithm and utility."
    rows = [[short(r["metric"]), float(r["effect"]), float(r["low"]), float(r["high"]), r["n"]] for r in effects]
    table = grid(["metric", "effect", "low", "high", "regressions"], rows)
    return Chapter("Effect sizes (Figure 4.8)", [Figure("effect-sizes", about, figure), table])


def _scatter(made: list[Record]) -> Chapter:
    tables = distinct(made, "table")
    parts: list[Any] = []
    for number, some in enumerate((METRICS[:6], METRICS[6:]), 1):
        figure, axes = panels(len(some), len(UTILITIES), (2.1, 1.7))
        for i, metric in enumerate(some):
            for j, utility in enumerate(UTILITIES):
                _cloud(axes[i][j], made, tables, metric, utility)
                title = utility.replace("_", " ") if i == 0 else ""
                label(axes[i][j], title=title, x=short(metric) if j == 0 else "")
        legend(figure, [str(t) for t in tables], lines=False)
        about = (
            "Utility (up) against metric (right; 0 is best, 1 the fully suppressed table), "
            f"part {number} of 2; lines fit all releases of a table."
        )
        parts.append(Figure(f"scatter-{number}", about, figure))
    return Chapter("Metrics and utilities (Figures 4.1 and 4.2)", parts)


def _cloud(axes: Any, made: list[Record], tables: Sequence[Any], metric: str, utility: str) -> None:
    for place, table in enumerate(tables):
        some = where(made, table=table)
        x, y = column(some, metric), column(some, utility)
        colour = COLOURS[place % len(COLOURS)]
        axes.scatter(
            x, y, s=4, color=colour, alpha=0.5, marker=MARKERS[place % len(MARKERS)], rasterized=True, linewidths=0
        )
        line = fit(x, y)
        if line is not None:
            ends = np.array([np.nanmin(x), np.nanmax(x)])
            axes.plot(ends, line[0] + line[1] * ends, color=colour, linewidth=1.2, linestyle="--")


def _spread(made: list[Record], raw: list[Record]) -> Chapter:
    tables, algorithms = distinct(made, "table"), distinct(made, "algorithm")
    parts: list[Any] = []
    for name, columns, title in (
        ("metrics", METRICS, "Distribution of the metrics by algorithm (Figures 4.3 and 4.4)."),
        (
            "utilities",
            UTILITIES,
            "Distribution of the utilities by algorithm (Figure 4.5); the line is for raw rows.",
        ),
    ):
        figure, axes = panels(len(columns), len(tables), (2.4, 1.35))
        for i, what in enumerate(columns):
            for j, table in enumerate(tables):
                _histogram(axes[i][j], where(made, table=table), algorithms, what)
                raw_values = [r[what] for r in where(raw, table=table) if r.get(what) is not None]
                if raw_values:
                    axes[i][j].axvline(raw_values[0], color=INK, linewidth=1, linestyle=":")
                label(axes[i][j], title=str(table) if i == 0 else "", y=short(what) if j == 0 else "")
        legend(figure, [str(a) for a in algorithms], lines=False)
        parts.append(Figure(f"histograms-{name}", title, figure))
    return Chapter("Distributions", parts)


def _histogram(axes: Any, records: list[Record], algorithms: Sequence[Any], what: str) -> None:
    values = [column(where(records, algorithm=a), what) for a in algorithms]
    present = np.concatenate([v[~np.isnan(v)] for v in values]) if values else np.zeros(0)
    if not len(present):
        return
    low, high = float(present.min()), float(present.max())
    edges = np.linspace(low - 1e-9, high + 1e-9 if high > low else low + 1e-3, 21)
    for place, some in enumerate(values):
        axes.hist(some[~np.isnan(some)], edges, color=COLOURS[place % len(COLOURS)], alpha=0.55)
    axes.set_yticks([])


def _trends(made: list[Record]) -> Chapter:
    trends = slopes(made)
    rows = []
    for metric in METRICS:
        every = [r for r in trends if r["metric"] == metric and r["algorithm"] != "all"]
        if every:
            falling = float(np.mean([r["slope"] < 0 for r in every]))
            strength = float(np.mean([abs(r["correlation"]) for r in every]))
            rows.append([short(metric), falling, strength, len(every)])
    about = (
        "Lines of best fit by table, algorithm and utility. A metric that predicts utility has falling lines: the "
        "more is lost, the less is learned."
    )
    header = ["metric", "share of falling lines", "mean absolute correlation", "lines"]
    return Chapter("Trends (section 4.1.1)", [Lines([about]), grid(header, rows)])
