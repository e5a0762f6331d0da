"""Probabilistic k-anonymity beside other promises: what is lost, what attackers learn, what learners keep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from duckanon.errors import ParameterError
from duckanon.studies.base import Chapter, Record, Study, Task
from duckanon.studies.practice import learners_of
from duckanon.studies.tables import codes, hierarchies, quasi_identifiers, read

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.studies.config import Settings

PRIVATE = "differential_privacy"
LEVELS = {
    "none": None,
    "gower": "ks",
    "ahmad_dey": "ks",
    "k_anonymity": "ks",
    "l_diversity": "ls",
    "t_closeness": "ts",
    PRIVATE: "epsilons",
}
"""The methods, and which setting has their levels."""
COMPARED = ("none", "gower", "ahmad_dey")
"""Those that are looked at with every choice of quasi-identifiers; the others stand beside them with the first."""
_DRAWS = 10
"""How often the noise of differential privacy is drawn: it cannot be repeated, so that the mean must be steady."""


class Probabilistic(Study):
    """The study of the paper's section 5: Figures 1 to 4."""

    name = "probabilistic-k-anonymity"
    title = "Probabilistic k-anonymity: loss, attacks, learners"
    paper = (
        "N. Senavirathne, V. Torra, Systematic evaluation of probabilistic k-anonymity for privacy preserving "
        "micro-data publishing and analysis, 2021"
    )
    keys: ClassVar[Mapping[str, type]] = {
        "methods": list,
        "quasi": list,
        "ks": list,
        "ls": list,
        "ts": list,
        "epsilons": list,
        "learners": list,
        "attacks": list,
        "attacked": list,
        "base_k": int,
        "trials": int,
        "rows": int,
        "test_size": float,
        "trees": int,
        "seed": int,
    }

    def tasks(self, settings: Settings) -> list[Task]:
        given = {n: settings[n] for n in ("learners", "attacks", "base_k", "rows", "test_size", "trees", "seed")}
        left_out = {PRIVATE} if self.left_out(settings) else set()
        methods = [m for m in ("none", *settings["methods"]) if m not in left_out]
        found = []
        for trial in range(settings["trials"]):
            for name, table in settings.tables.items():
                for quasi in settings["quasi"]:
                    for method in methods:
                        if method not in COMPARED and quasi != settings["quasi"][0]:
                            # As in the paper, whose Figure 4 is of a part of the columns.
                            continue
                        levels = _levels(settings, table, method)
                        own = given if method in settings["attacked"] else {**given, "attacks": []}
                        for level in levels:
                            labels = {"table": name, "method": method, "quasi": quasi, "level": level, "trial": trial}
                            found.append(Task(labels, {**own, "table": dict(table)}))
        return found

    def left_out(self, settings: Settings) -> list[str]:
        from duckanon.studies.private_bayes import NEEDED, has_opendp

        if PRIVATE not in settings["methods"] or has_opendp():
            return []
        return [f"Without differential privacy. {NEEDED} The study then goes on with it."]

    def run(self, task: Task) -> list[Record]:
        from duckanon.assess import utility

        given, method = task.given, task.labels["method"]
        spec = given["table"]
        table = read(spec, given["rows"])
        seed = given["seed"] + task.labels["trial"]
        parts = utility.split(table, target=spec["target"], test_size=given["test_size"], seed=seed)
        if method == PRIVATE:
            return [_private(table, parts, spec, task.labels["level"])]
        quasi = quasi_identifiers(spec, task.labels["quasi"])
        if method == "none":
            learned = _learned(parts, parts.train, quasi, given, raw=True)
            return [*_attacked(parts, parts.train, quasi, given), *learned]
        with _release(parts.train, spec, quasi, method, task.labels["level"], given["base_k"], seed) as release:
            found = [_lost(release)]
            found += _attacked(parts, release, quasi, given)
            found += _learned(parts, release, quasi, given, raw=False)
        return found

    def page(self, records: list[Record], settings: Settings) -> list[Chapter]:
        from duckanon.studies.probabilistic_page import chapters

        return chapters(records)


def _levels(settings: Settings, table: Mapping[str, Any], method: str) -> list[Any]:
    """Return the levels of a method; a target with few values cannot be as diverse as one with many."""
    name = LEVELS[method]
    if name is None:
        return [0]
    return [level for level in settings[name] if level in table.get(name, settings[name])]


def _release(
    train: pa.Table, spec: Mapping[str, Any], quasi: list[str], method: str, level: Any, base: int, seed: int
) -> Any:
    from duckanon.algorithms.base import algorithms
    from duckanon.api import anonymize

    rest = [c for c in train.column_names if c not in quasi and c != spec["target"]]
    known = {name: h for name, h in hierarchies(spec).items() if name in quasi}
    promise: dict[str, Any] = {"k": level}
    algorithm: Any = "mondrian"
    if method in ("gower", "ahmad_dey"):
        algorithm = algorithms.get("probabilistic")(dissimilarity=method)  # type: ignore[call-arg]
    elif method == "l_diversity":
        promise = {"k": base, "l": level}
    elif method == "t_closeness":
        promise = {"k": base, "t": level}
    return anonymize(
        train,
        quasi_identifiers=quasi,
        sensitive=[spec["target"]],
        insensitive=rest,
        hierarchies=known or None,
        algorithm=algorithm,
        seed=seed,
        **promise,
    )


def _lost(release: Any) -> Record:
    """Return the loss of mutual information between columns (section 5.1)."""
    try:
        found = [m for m in release.measure(["mutual_information_loss"]) if m.attribute is None]
    except ParameterError:
        # A single quasi-identifier shares nothing with others.
        found = []
    return {"what": "loss", "value": found[0].value if found else None}


def _attacked(parts: Any, release: Any, quasi: list[str], given: Mapping[str, Any]) -> list[Record]:
    """Return how often attackers who know all quasi-identifiers guess the target (section 5.2)."""
    from duckanon.assess.attacks.attack import attack
    from duckanon.release.release import Release

    if not given["attacks"]:
        return []
    named: dict[str, Any] = {"control": parts.test, "known": quasi, "seed": given["seed"]}
    if not isinstance(release, Release) or release.plan.algorithm.name == "probabilistic":
        # Raw and permuted values alike are what they say: there is nothing that a release knows better.
        named |= {"quasi_identifiers": quasi, "sensitive": [given["table"]["target"]]}
        release = release.to_arrow() if isinstance(release, Release) else release
    found = attack(parts.train, release, attacks=given["attacks"], **named)
    lines: list[Record] = []
    for f in found.findings:
        if f.attribute in (None, given["table"]["target"]) and f.adversary in (None, "full"):
            told = {"success": f.success, "base_rate": f.base_rate, "control": f.control, "rows": f.rows}
            lines.append({"what": "attack", "attack": f.attack, "about": f.attribute, "text": f.text, **told})
    return lines


def _learned(parts: Any, release: Any, quasi: list[str], given: Mapping[str, Any], *, raw: bool) -> list[Record]:
    from duckanon.assess import utility

    named: dict[str, Any] = {"quasi_identifiers": quasi} if raw else {}
    found = utility.evaluate(
        parts.train,
        release,
        target=given["table"]["target"],
        test=parts.test,
        learners=_learners(given),
        encoding="midpoint",
        seeds=[given["seed"]],
        average="macro",
        baseline=raw,
        workers=1,
        **named,
    )
    told = "raw" if raw else "release"
    lines = [line for line in found.summary().to_pylist() if line["trained_on"] == told]
    return [{"what": "learner", **{n: line[n] for n in ("learner", "accuracy", "f1", "auroc")}} for line in lines]


def _learners(given: Mapping[str, Any]) -> dict[str, Any]:
    from sklearn.neural_network import MLPClassifier

    found = learners_of(given["learners"], given["trees"])
    if "mlp" in found:
        # Three layers of 32, as in section 5.3.
        found["mlp"] = MLPClassifier((32, 32, 32), max_iter=100, early_stopping=True)
    return found


def _private(table: pa.Table, parts: Any, spec: Mapping[str, Any], epsilon: float) -> Record:
    """Return the mean scores of a differentially private learner; it has no quasi-identifiers."""
    import pyarrow as pa

    from duckanon.assess.utility.scores import scores
    from duckanon.studies.private_bayes import PrivateBayes

    names = list(spec["quasi_identifiers"])
    both = pa.concat_tables([parts.train, parts.test])
    coded = [codes(both.column(name), 10) for name in names]
    truth, classes = codes(both.column(spec["target"]), both.num_rows)
    cells, train = np.column_stack([c for c, _ in coded]), parts.train.num_rows
    found = []
    for _ in range(_DRAWS):
        learner = PrivateBayes(epsilon, classes, [size for _, size in coded]).fit(cells[:train], truth[:train])
        sure = learner.confidence(cells[train:])
        found.append(scores(truth[train:], sure.argmax(axis=1), sure, None))
    means = {n: float(np.mean([s[n] for s in found])) for n in ("accuracy", "f1", "auroc")}
    return {"what": "learner", "learner": "private_bayes", **means}
