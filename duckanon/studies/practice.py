"""How generalization and suppression affect classifiers: algorithms, values of k, learners and tables side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from duckanon.report.model import Lines
from duckanon.report.plots import INK, escape, logarithmic
from duckanon.report.text import in_words
from duckanon.studies.base import Chapter, Record, Study, Task, distinct, grid, mean, where
from duckanon.studies.figures import COLOURS, Figure, label, legend, line, panels
from duckanon.studies.releases import described, release_of, shown
from duckanon.studies.tables import ROW, divide

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.studies.config import Settings


SCORES = ("accuracy", "precision", "recall", "f1", "auroc")


class Practice(Study):
    """The study of the paper's section 5: Figure 3, and OLA by metric and suppression limit as in Figures 4 and 5."""

    name = "k-anonymity-in-practice"
    title = "How generalization and suppression affect classifiers"
    paper = (
        "D. Slijepčević, M. Henzl, L. D. Klausner, T. Dam, P. Kieseberg, M. Zeppelzauer, k-Anonymity in practice: how "
        "generalisation and suppression affect machine learning classifiers, 2021"
    )
    keys: ClassVar[Mapping[str, type]] = {
        "algorithms": list,
        "ks": list,
        "learners": list,
        "rows": int,
        "test_size": float,
        "trees": int,
        "neighbours": int,
        "seeds": int,
        "metric": str,
        "suppression_limit": float,
        "bounds": str,
        "tested": str,
        "ola_tables": list,
        "ola_metrics": list,
        "ola_limits": list,
        "ola_ks": list,
        "ola_learners": list,
        "seed": int,
    }

    def tasks(self, settings: Settings) -> list[Task]:
        names = ("learners", "rows", "test_size", "trees", "neighbours", "seeds", "bounds", "tested", "seed")
        given = {n: settings[n] for n in names}
        tasks = []
        for name, table in settings.tables.items():
            task_given = {**given, "table": dict(table)}
            tasks.append(Task({"part": "raw", "table": name, "algorithm": "none", "k": 1}, task_given))
            for algorithm in settings["algorithms"]:
                chosen = {**task_given, "metric": settings["metric"], "limit": settings["suppression_limit"]}
                labels = {"part": "algorithms", "table": name, "algorithm": algorithm}
                tasks += [Task({**labels, "k": k}, chosen) for k in settings["ks"]]
            if name not in settings["ola_tables"] and not settings.synthetic:
                continue
            for metric in settings["ola_metrics"]:
                for limit in settings["ola_limits"]:
                    close = {"part": "ola", "table": name, "algorithm": "ola", "metric": metric, "limit": limit}
                    chosen = {**task_given, "metric": metric, "limit": limit, "learners": settings["ola_learners"]}
                    tasks += [Task({**close, "k": k}, chosen) for k in settings["ola_ks"]]
        return tasks

    def run(self, task: Task) -> list[Record]:
        given = task.given
        spec = given["table"]
        table, parts = divide(spec, given["rows"], given["test_size"], given["seed"])
        if task.labels["algorithm"] == "none":
            records = _evaluate(given, parts.train, parts.train, test=parts.test, baseline=True)
            return [line for line in records if line.pop("trained_on") == "raw"]
        whole = given["tested"] == "released"
        with release_of(
            table if whole else parts.train,
            spec,
            task.labels["algorithm"],
            task.labels["k"],
            metric=given["metric"],
            suppression_limit=given["limit"],
            bounds=given["bounds"],
            seed=given["seed"],
            insensitive=[ROW],
        ) as release:
            facts = described(release, spec["target"])
            from duckanon.assess.utility.released_features import hierarchies_of, released_table

            released, made_by = released_table(release), hierarchies_of(release)
            more: dict[str, Any] = {"hierarchies": made_by}
            taught = released
            if whole:
                # As in the paper: published rows are divided as the raw ones are.
                taught, more["released_test"] = (_rows_of(released, p) for p in (parts.train, parts.test))
            records = _evaluate(given, parts.train, taught, test=parts.test, baseline=False, **more)
        wanted = "release" if whole else "raw"
        return [
            {**line, **facts} for line in records if line.pop("trained_on") == "release" and line["tested_on"] == wanted
        ]

    def page(self, records: list[Record], settings: Settings) -> list[Chapter]:

        return chapters(records, settings)


def _rows_of(released: pa.Table, part: pa.Table) -> pa.Table:
    import pyarrow.compute as pc

    return released.filter(pc.is_in(released.column(ROW), value_set=part.column(ROW).combine_chunks()))


def learners_of(names: list[str], trees: int, neighbours: int = 10) -> dict[str, Any]:
    """Return learners with the settings of the papers, by the names that the lab knows them by."""
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

    from duckanon.assess.utility.neighbours import NearestNeighbours

    makers = {
        "random_forest": RandomForestClassifier(n_estimators=trees),
        "knn": NearestNeighbours(n_neighbors=neighbours),
        "gradient_boosting": HistGradientBoostingClassifier(max_iter=100),
    }
    return {name: makers.get(name, name) for name in names}


def _evaluate(given: Mapping[str, Any], raw: pa.Table, release: Any, **more: Any) -> list[Record]:
    from duckanon.assess import utility

    spec = given["table"]
    evaluation = utility.evaluate(
        raw,
        release,
        target=spec["target"],
        learners=learners_of(given["learners"], given["trees"], given["neighbours"]),
        encoding="midpoint",
        quasi_identifiers=spec["quasi_identifiers"],
        features=spec["quasi_identifiers"],
        seeds=list(range(given["seed"], given["seed"] + given["seeds"])),
        average="macro",
        workers=1,
        **more,
    )
    columns = ("learner", "trained_on", "tested_on", *SCORES, "f1_deviation")
    return [{name: line[name] for name in columns} for line in evaluation.summary().to_pylist()]


_LIMITS = ("0 %", "3 %", "6 %", "9 %")


def chapters(records: list[Record], settings: Settings) -> list[Chapter]:
    """Return the chapters of the page."""
    raw = where(records, part="raw")
    made = where(records, part="algorithms")
    close = where(records, part="ola")
    parts = []
    if made:
        parts += [_answer(made, raw), _curves(made, raw), _fluctuation(made), _classes(made)]
        if any(r.get("levels") for r in made):
            parts.append(_levels(made))
    if close:
        parts.append(_ola(close))
    return parts


def _baseline(raw: Sequence[Record], table: Any, learner: str) -> float | None:
    baseline = where(raw, table=table, learner=learner)
    return float(baseline[0]["f1"]) if baseline else None


def _answer(made: list[Record], raw: list[Record]) -> Chapter:
    algorithms, learners = distinct(made, "algorithm"), distinct(made, "learner")
    rows = []
    for table in distinct(made, "table"):
        for learner in learners:
            means = [
                mean([r["f1"] for r in where(made, table=table, learner=learner, algorithm=a)]) for a in algorithms
            ]
            rows.append([table, learner, _baseline(raw, table, learner), *means, _baseline(raw, table, "zero_rule")])
    header = ["table", "learner", "raw", *(shown(a) for a in algorithms), "zero rule"]
    ks = distinct(made, "k")
    about = (
        f"Mean F1 (over classes, each counting the same) over {len(ks)} values of k from {min(ks)} to {max(ks)}, "
        "beside learners trained on raw rows and the most frequent class."
    )
    return Chapter("F1 by algorithm and learner", [Lines([about]), grid(header, rows, words=2)])


def _curves(made: list[Record], raw: list[Record]) -> Chapter:
    tables, learners = distinct(made, "table"), distinct(made, "learner")
    algorithms = distinct(made, "algorithm")
    figure, axes = panels(len(learners), len(tables), (2.9, 2.1), sharex=True)
    for i, learner in enumerate(learners):
        for j, table in enumerate(tables):
            one = axes[i][j]
            for place, algorithm in enumerate(algorithms):
                some = sorted(where(made, table=table, learner=learner, algorithm=algorithm), key=lambda r: int(r["k"]))
                line(one, [r["k"] for r in some], [r["f1"] for r in some], place)
            for value, dash in ((_baseline(raw, table, learner), "--"), (_baseline(raw, table, "zero_rule"), ":")):
                if value is not None:
                    one.axhline(value, color=INK, linestyle=dash, linewidth=0.9)
            label(
                one,
                title=str(table) if i == 0 else "",
                x="k" if i == len(learners) - 1 else "",
                y=learner if j == 0 else "",
            )
    legend(figure, [shown(a) for a in algorithms])
    about = "F1 by k (Figure 3 of the paper); dashed: raw rows, dotted: always the most frequent class."
    return Chapter("F1 by k", [Figure("f1-by-k", about, figure)])


def _fluctuation(made: list[Record]) -> Chapter:
    algorithms = distinct(made, "algorithm")
    rows: list[list[Any]] = []
    for table in distinct(made, "table"):
        row: list[Any] = [table]
        for algorithm in algorithms:
            steps: list[float] = []
            for learner in distinct(made, "learner"):
                some = sorted(where(made, table=table, learner=learner, algorithm=algorithm), key=lambda r: int(r["k"]))
                steps += np.abs(np.diff([r["f1"] for r in some])).tolist()
            row.append(mean(list(steps)))
        rows.append(row)
    about = (
        "Mean absolute change of F1 from one k to the next, over learners: the paper finds OLA, TDG and CB jumping and "
        "Mondrian steady (sections 5.3 to 5.5)."
    )
    return Chapter("How steady", [Lines([about]), grid(["table", *(shown(a) for a in algorithms)], rows)])


def _classes(made: list[Record]) -> Chapter:
    tables, algorithms = distinct(made, "table"), distinct(made, "algorithm")
    learner = distinct(made, "learner")[0]
    figure, axes = panels(3, len(tables), (2.9, 1.9), sharex=True)
    for j, table in enumerate(tables):
        for place, algorithm in enumerate(algorithms):
            some = sorted(where(made, table=table, learner=learner, algorithm=algorithm), key=lambda r: int(r["k"]))
            ks = [r["k"] for r in some]
            for i, what in enumerate(("classes", "homogeneity", "suppressed")):
                values = [np.nan if r.get(what) is None else float(r[what]) for r in some]
                line(axes[i][j], ks, values, place)
        logarithmic(axes[0][j].yaxis)
        label(axes[0][j], title=str(table), y="classes" if j == 0 else "")
        label(axes[1][j], y="homogeneity" if j == 0 else "")
        label(axes[2][j], x="k", y="rows suppressed" if j == 0 else "")
    legend(figure, [shown(a) for a in algorithms])
    about = (
        "Classes, the share of rows with the most frequent target of their class, and the share of rows suppressed, by "
        "k (Figures 5 to 7)."
    )
    return Chapter("Classes, homogeneity, suppression", [Figure("classes", about, figure)])


def _levels(made: list[Record]) -> Chapter:
    parts: list[Any] = []
    some = [r for r in made if r.get("levels")]
    learner = "random_forest" if where(some, learner="random_forest") else distinct(some, "learner")[0]
    for table in distinct(some, "table"):
        points = sorted(where(some, table=table, learner=learner), key=lambda r: int(r["k"]))
        names = list(points[0]["levels"])
        figure, ((axes,),) = panels(1, 1, (8, 3.0))
        bottom = np.zeros(len(points))
        places = np.arange(len(points))
        for place, name in enumerate(names):
            heights = np.array([r["levels"].get(name, 0) for r in points], dtype=np.float64)
            shade = 1.0 if place < len(COLOURS) else 0.45
            axes.bar(
                places, heights, bottom=bottom, color=COLOURS[place % len(COLOURS)], alpha=shade, label=escape(name)
            )
            bottom += heights
        axes.set_xticks(
            places[:: max(1, len(points) // 20)], [str(r["k"]) for r in points][:: max(1, len(points) // 20)]
        )
        label(axes, x="k", y="levels of OLA, one on another")
        twin = axes.twinx()
        twin.plot(places, [r["f1"] for r in points], color=INK, marker="o", markersize=3, linewidth=1.4)
        twin.tick_params(labelsize=7, colors=INK)
        twin.set_ylabel(f"F1 of {in_words(learner)}", fontsize=8, color=INK)
        legend_of_levels = axes.legend(
            fontsize=7, frameon=False, ncols=1, loc="center left", bbox_to_anchor=(1.14, 0.5)
        )
        for text in legend_of_levels.get_texts():
            text.set_color(INK)
        parts.append(Figure(f"levels-{table}", f"{table}: what OLA generalized at each k, and F1 (Figure 5).", figure))
    return Chapter("What OLA generalized", parts)


def _ola(close: list[Record]) -> Chapter:
    parts: list[Any] = []
    metrics, limits, learners = distinct(close, "metric"), distinct(close, "limit"), distinct(close, "learner")
    learners = [x for x in learners if x != "zero_rule"]
    rows = []
    for table in distinct(close, "table"):
        figure, axes = panels(len(metrics), len(learners), (3.2, 2.0), sharex=True, sharey=True)
        for i, metric in enumerate(metrics):
            for j, learner in enumerate(learners):
                for place, limit in enumerate(limits):
                    some = where(close, table=table, metric=metric, limit=limit, learner=learner)
                    some = sorted(some, key=lambda r: int(r["k"]))
                    line(axes[i][j], [r["k"] for r in some], [r["f1"] for r in some], place)
                last = i == len(metrics) - 1
                label(axes[i][j], title=learner if i == 0 else "", x="k" if last else "", y=metric if j == 0 else "")
        legend(figure, [f"{limit:.0%} may be suppressed" for limit in limits])
        about = f"{table}: F1 after OLA by metric (rows) and suppression limit (Figure 4)."
        parts.append(Figure(f"ola-{table}", about, figure))
        for metric in metrics:
            means = [mean([r["f1"] for r in where(close, table=table, metric=metric, limit=x)]) for x in limits]
            rows.append([table, metric, *means])
    header = ["table", "metric", *(f"{limit:.0%}" for limit in limits)]
    return Chapter("OLA by metric and suppression limit", [grid(header, rows, words=2), *parts])
