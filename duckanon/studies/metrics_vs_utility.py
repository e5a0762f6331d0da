"""Whether information loss metrics say which release is more useful.

Many releases of each table, by algorithms whose hierarchies or orders are drawn at random; of each the metrics and what
learners make of it. The paper's answer is that metrics hardly help: two releases in hand, the better one by a metric is
the more useful one in little more than half of all cases.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from duckanon.studies.base import Chapter, Record, Study, Task
from duckanon.studies.tables import codes, read

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from duckanon.hierarchy import Hierarchy
    from duckanon.studies.config import Settings

ALGORITHMS = ("datafly", "datafly_shuffled", "mondrian")
METRICS = (
    "entropy",
    "classification",
    "diameter",
    "discernibility",
    "information_loss",
    "hellinger",
    "bivariate_correlation",
    "average_class_size_lefevre",
    "ambiguity",
    "granularity",
    "squared_distance_error",
)
"""All metrics of the paper's section 2.2 but precision, which has no meaning for regions (section 3.5)."""
UTILITIES = (
    "lr_accuracy",
    "lr_auroc",
    "rf_pca_accuracy",
    "rf_pca_auroc",
    "knn_pca_accuracy",
    "knn_pca_auroc",
)


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
        found = []
        for version in range(settings["versions"]):
            for name, table in settings.tables.items():
                for algorithm in settings["algorithms"]:
                    labels = {"table": name, "algorithm": algorithm, "version": version}
                    found.append(Task(labels, {**given, "table": dict(table)}))
        # What the raw rows teach, once for each table.
        raw = [
            Task({"table": n, "algorithm": "none", "version": 0}, {**given, "table": dict(t)})
            for n, t in settings.tables.items()
        ]
        return [*raw, *found]

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
        from duckanon.studies.metrics_page import chapters

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
        found = cls(parts.train, parts.test, quasi, target, hierarchies, int(2 + rng.poisson(1.0)))
        found.seed = int(rng.integers(2**31))
        if hierarchies:
            from duckanon.algorithms.full_domain.datafly import Datafly

            found.algorithm = Datafly(stop="k")
        return found

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
    from duckanon.hierarchy.order import random_tree

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
    found: dict[str, float] = {}
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
        told = "raw" if raw else "release"
        for line in scores.summary().to_pylist():
            if line["learner"] in learners and line["trained_on"] == told:
                found |= {f"{line['learner']}_{score}": line[score] for score in ("accuracy", "auroc")}
    return found


def _as_texts(table: pa.Table, names: list[str]) -> pa.Table:
    """Return codes as texts: they are categories, whatever their numbers."""
    import pyarrow as pa

    for name in names:
        place = table.column_names.index(name)
        table = table.set_column(place, name, table.column(name).cast(pa.string()))
    return table
