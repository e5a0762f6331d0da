"""How generalization and suppression affect classifiers: algorithms, values of k, learners and tables side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from duckanon.studies.base import Chapter, Record, Study, Task
from duckanon.studies.releases import described, release_of
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
        found = []
        for name, table in settings.tables.items():
            own = {**given, "table": dict(table)}
            found.append(Task({"part": "raw", "table": name, "algorithm": "none", "k": 1}, own))
            for algorithm in settings["algorithms"]:
                chosen = {**own, "metric": settings["metric"], "limit": settings["suppression_limit"]}
                labels = {"part": "algorithms", "table": name, "algorithm": algorithm}
                found += [Task({**labels, "k": k}, chosen) for k in settings["ks"]]
            if name not in settings["ola_tables"] and not settings.synthetic:
                continue
            for metric in settings["ola_metrics"]:
                for limit in settings["ola_limits"]:
                    close = {"part": "ola", "table": name, "algorithm": "ola", "metric": metric, "limit": limit}
                    chosen = {**own, "metric": metric, "limit": limit, "learners": settings["ola_learners"]}
                    found += [Task({**close, "k": k}, chosen) for k in settings["ola_ks"]]
        return found

    def run(self, task: Task) -> list[Record]:
        given = task.given
        spec = given["table"]
        table, parts = divide(spec, given["rows"], given["test_size"], given["seed"])
        if task.labels["algorithm"] == "none":
            found = _evaluate(given, parts.train, parts.train, test=parts.test, baseline=True)
            return [line for line in found if line.pop("trained_on") == "raw"]
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
            from duckanon.assess.utility.released import hierarchies_of, released_table

            released, known = released_table(release), hierarchies_of(release)
            more: dict[str, Any] = {"hierarchies": known}
            taught = released
            if whole:
                # As in the paper: published rows are divided as the raw ones are.
                taught, more["released_test"] = (_rows_of(released, p) for p in (parts.train, parts.test))
            found = _evaluate(given, parts.train, taught, test=parts.test, baseline=False, **more)
        wanted = "release" if whole else "raw"
        return [
            {**line, **facts} for line in found if line.pop("trained_on") == "release" and line["tested_on"] == wanted
        ]

    def page(self, records: list[Record], settings: Settings) -> list[Chapter]:
        from duckanon.studies.practice_page import chapters

        return chapters(records, settings)


def _rows_of(released: pa.Table, part: pa.Table) -> pa.Table:
    import pyarrow.compute as pc

    return released.filter(pc.is_in(released.column(ROW), value_set=part.column(ROW).combine_chunks()))


def learners_of(names: list[str], trees: int, neighbours: int = 10) -> dict[str, Any]:
    """Return learners with the settings of the papers, by the names that the lab knows them by."""
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

    from duckanon.assess.utility.neighbours import NearestNeighbours

    own = {
        "random_forest": RandomForestClassifier(n_estimators=trees),
        "knn": NearestNeighbours(n_neighbors=neighbours),
        "gradient_boosting": HistGradientBoostingClassifier(max_iter=100),
    }
    return {name: own.get(name, name) for name in names}


def _evaluate(given: Mapping[str, Any], raw: pa.Table, release: Any, **more: Any) -> list[Record]:
    from duckanon.assess import utility

    spec = given["table"]
    found = utility.evaluate(
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
    told = ("learner", "trained_on", "tested_on", *SCORES, "f1_deviation")
    return [{name: line[name] for name in told} for line in found.summary().to_pylist()]
