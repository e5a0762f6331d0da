"""Probabilistic k-anonymity beside other models: information loss, disclosure under attack, utility for learners."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from duckanon.errors import ParameterError
from duckanon.report.model import Lines
from duckanon.report.plots import INK
from duckanon.studies.base import Chapter, Record, Study, Task, distinct, grid, mean, where
from duckanon.studies.figures import COLOURS, MARKERS, Figure, label, legend, line, panels
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
"""Those that are run with every choice of quasi-identifiers; the others run with the first choice alone."""
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
        tasks = []
        for trial in range(settings["trials"]):
            for name, table in settings.tables.items():
                for quasi in settings["quasi"]:
                    for method in methods:
                        if method not in COMPARED and quasi != settings["quasi"][0]:
                            # As in the paper, whose Figure 4 is of a part of the columns.
                            continue
                        levels = _levels(settings, table, method)
                        task_given = given if method in settings["attacked"] else {**given, "attacks": []}
                        for level in levels:
                            labels = {"table": name, "method": method, "quasi": quasi, "level": level, "trial": trial}
                            tasks.append(Task(labels, {**task_given, "table": dict(table)}))
        return tasks

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
            records = [_lost(release)]
            records += _attacked(parts, release, quasi, given)
            records += _learned(parts, release, quasi, given, raw=False)
        return records

    def page(self, records: list[Record], settings: Settings) -> list[Chapter]:

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
    given_hierarchies = {name: h for name, h in hierarchies(spec).items() if name in quasi}
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
        hierarchies=given_hierarchies or None,
        algorithm=algorithm,
        seed=seed,
        **promise,
    )


def _lost(release: Any) -> Record:
    """Return the loss of mutual information between columns (section 5.1)."""
    try:
        losses = [m for m in release.measure(["mutual_information_loss"]) if m.attribute is None]
    except ParameterError:
        # A single quasi-identifier shares nothing with others.
        losses = []
    return {"what": "loss", "value": losses[0].value if losses else None}


def _attacked(parts: Any, release: Any, quasi: list[str], given: Mapping[str, Any]) -> list[Record]:
    """Return how often attackers who know all quasi-identifiers guess the target (section 5.2)."""
    from duckanon.assess.attacks.attack import attack
    from duckanon.release.release import Release

    if not given["attacks"]:
        return []
    named: dict[str, Any] = {"control": parts.test, "known": quasi, "seed": given["seed"]}
    if not isinstance(release, Release) or release.plan.algorithm.name == "probabilistic":
        # Raw and permuted values are both exact: no encoding is needed.
        named |= {"quasi_identifiers": quasi, "sensitive": [given["table"]["target"]]}
        release = release.to_arrow() if isinstance(release, Release) else release
    attacked = attack(parts.train, release, attacks=given["attacks"], **named)
    lines: list[Record] = []
    for f in attacked.findings:
        if f.attribute in (None, given["table"]["target"]) and f.adversary in (None, "full"):
            figures = {"success": f.success, "base_rate": f.base_rate, "control": f.control, "rows": f.rows}
            lines.append({"what": "attack", "attack": f.attack, "about": f.attribute, "text": f.text, **figures})
    return lines


def _learned(parts: Any, release: Any, quasi: list[str], given: Mapping[str, Any], *, raw: bool) -> list[Record]:
    from duckanon.assess import utility

    named: dict[str, Any] = {"quasi_identifiers": quasi} if raw else {}
    evaluation = utility.evaluate(
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
    trained_on = "raw" if raw else "release"
    lines = [line for line in evaluation.summary().to_pylist() if line["trained_on"] == trained_on]
    return [{"what": "learner", **{n: line[n] for n in ("learner", "accuracy", "f1", "auroc")}} for line in lines]


def _learners(given: Mapping[str, Any]) -> dict[str, Any]:
    from sklearn.neural_network import MLPClassifier

    makers = learners_of(given["learners"], given["trees"])
    if "mlp" in makers:
        # Three layers of 32, as in section 5.3.
        makers["mlp"] = MLPClassifier((32, 32, 32), max_iter=100, early_stopping=True)
    return makers


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
    records = []
    for _ in range(_DRAWS):
        learner = PrivateBayes(epsilon, classes, [size for _, size in coded]).fit(cells[:train], truth[:train])
        sure = learner.confidence(cells[train:])
        records.append(scores(truth[train:], sure.argmax(axis=1), sure, None))
    means = {n: float(np.mean([s[n] for s in records])) for n in ("accuracy", "f1", "auroc")}
    return {"what": "learner", "learner": "private_bayes", **means}


_WORDS = {
    "none": "original",
    "gower": "probabilistic, Gower",
    "ahmad_dey": "probabilistic, Ahmad-Dey",
    "k_anonymity": "k-anonymity",
    "l_diversity": "l-diversity",
    "t_closeness": "t-closeness",
    "differential_privacy": "differential privacy",
}
_PERMUTED = ("gower", "ahmad_dey")


def chapters(records: list[Record]) -> list[Chapter]:
    """Return the chapters of the page."""
    parts = [_answer(records)]
    if where(records, what="loss"):
        parts.append(_loss(records))
    if where(records, what="attack"):
        parts.append(_attacks(records))
    return [*parts, _predictions(records), _compared(records)]


def _answer(records: list[Record]) -> Chapter:
    rows = []
    for method in distinct(records, "method"):
        for quasi in distinct(where(records, method=method), "quasi"):
            some = where(records, method=method, quasi=quasi)
            learned = [r for r in where(some, what="learner") if r["learner"] != "zero_rule"]
            attacked = where(some, what="attack")
            attacks = [mean([r["success"] for r in where(attacked, attack=a)]) for a in _names(records)]
            loss = mean([r["value"] for r in where(some, what="loss")])
            rows.append(
                [_WORDS[method], quasi, loss, *attacks, *(mean([r[s] for r in learned]) for s in ("accuracy", "f1"))]
            )
    header = ["method", "quasi-identifiers", "loss of mutual information", *_names(records), "accuracy", "F1"]
    about = (
        "Means over tables, levels and trials. Attacks: how often the sensitive value of a person in the table is "
        "guessed; accuracy and F1 (over classes) of learners on held-out rows, mean over learners."
    )
    return Chapter("All methods", [Lines([about]), grid(header, rows, words=2)])


def _names(records: list[Record]) -> list[str]:
    return distinct(where(records, what="attack"), "attack")


def _loss(records: list[Record]) -> Chapter:
    lines = where(records, what="loss")
    methods = [m for m in (*_PERMUTED, "k_anonymity") if where(lines, method=m)]
    kinds = distinct(lines, "quasi")
    figure, axes = panels(1, len(kinds), (3.8, 2.6), sharey=True)
    for j, quasi in enumerate(kinds):
        for place, method in enumerate(methods):
            some = where(lines, method=method, quasi=quasi)
            ks = sorted(distinct(some, "level"))
            line(axes[0][j], ks, [_or_nan(mean([r["value"] for r in where(some, level=k)])) for k in ks], place)
        label(
            axes[0][j], title=f"{quasi} quasi-identifiers", x="k", y="mean loss of mutual information" if j == 0 else ""
        )
    legend(figure, [_WORDS[m] for m in methods])
    about = "Loss of mutual information between columns by k, mean over tables (Figure 1)."
    return Chapter("Loss of mutual information", [Figure("mutual-information", about, figure)])


def _or_nan(value: float | None) -> float:
    return np.nan if value is None else value


def _attacks(records: list[Record]) -> Chapter:
    lines = where(records, what="attack")
    tables, attacks = distinct(lines, "table"), _names(records)
    parts: list[Any] = []
    for quasi in distinct(lines, "quasi"):
        figure, axes = panels(len(attacks), len(tables), (2.3, 1.9), sharey=True)
        for i, attack in enumerate(attacks):
            for j, table in enumerate(tables):
                one = axes[i][j]
                matching = where(lines, quasi=quasi, table=table, attack=attack)
                for place, method in enumerate((*_PERMUTED, "k_anonymity")):
                    some = where(matching, method=method)
                    ks = sorted(distinct(some, "level"))
                    line(one, ks, [_or_nan(mean([r["success"] for r in where(some, level=k)])) for k in ks], place)
                raw = mean([r["success"] for r in where(matching, method="none")])
                base = mean([r["base_rate"] for r in matching])
                for value, dash in ((raw, "--"), (base, ":")):
                    if value is not None:
                        one.axhline(value, color=INK, linestyle=dash, linewidth=0.9)
                label(
                    one,
                    title=str(table) if i == 0 else "",
                    y=attack if j == 0 else "",
                    x="k" if i == len(attacks) - 1 else "",
                )
                one.set_ylim(0, 1.02)
        legend(figure, [_WORDS[m] for m in (*_PERMUTED, "k_anonymity")])
        about = (
            f"How often the sensitive value is guessed, knowing the {quasi} quasi-identifiers, by k (Figure 2); "
            "dashed: from the original, dotted: without looking at single rows."
        )
        parts.append(Figure(f"attacks-{quasi}", about, figure))
    return Chapter("Attacks", [_reduced(lines), *parts])


def _reduced(lines: list[Record]) -> Any:
    rows = []
    for quasi in distinct(lines, "quasi"):
        for method in [m for m in distinct(lines, "method") if m != "none"]:
            row: list[Any] = [quasi, _WORDS[method]]
            for attack in distinct(lines, "attack"):
                before = mean([r["success"] for r in where(lines, quasi=quasi, method="none", attack=attack)])
                after = mean([r["success"] for r in where(lines, quasi=quasi, method=method, attack=attack)])
                row.append((before - after) / before if before and after is not None else None)
            rows.append(row)
    return grid(["quasi-identifiers", "risk falls by", *distinct(lines, "attack")], rows, words=2)


def _predictions(records: list[Record]) -> Chapter:
    lines = [r for r in where(records, what="learner") if r["learner"] != "zero_rule"]
    tables = distinct(lines, "table")
    series = [(m, q) for m in _PERMUTED for q in distinct(lines, "quasi") if where(lines, method=m, quasi=q)]
    figure, axes = panels(1, len(tables), (2.4, 2.3), sharey=True)
    rows = []
    for j, table in enumerate(tables):
        matching = where(lines, table=table)
        for place, (method, quasi) in enumerate(series):
            some = where(matching, method=method, quasi=quasi)
            ks = sorted(distinct(some, "level"))
            line(axes[0][j], ks, [_or_nan(mean([r["f1"] for r in where(some, level=k)])) for k in ks], place)
        raw = mean([r["f1"] for r in where(matching, method="none")])
        if raw is not None:
            axes[0][j].axhline(raw, color=INK, linestyle="--", linewidth=0.9)
        label(axes[0][j], title=str(table), x="k", y="F1" if j == 0 else "")
        rows.append([table, raw, *(mean([r["f1"] for r in where(matching, method=m, quasi=q)]) for m, q in series)])
    legend(figure, [f"{_WORDS[m]}, {q}" for m, q in series])
    about = "F1 of learners by k, mean over learners (Figure 3); dashed: trained on the original."
    header = ["table", "original", *(f"{_WORDS[m]}, {q}" for m, q in series)]
    return Chapter("Learners", [Figure("learners", about, figure), grid(header, rows)])


def _compared(records: list[Record]) -> Chapter:
    lines = [r for r in where(records, what="learner", quasi="part") if r["learner"] in ("mlp", "private_bayes")]
    methods, tables = [m for m in _WORDS if where(lines, method=m)], distinct(lines, "table")
    figure, ((axes,),) = panels(1, 1, (7.5, 3.2))
    rows = []
    for at, method in enumerate(methods):
        matching = where(lines, method=method)
        for place, table in enumerate(tables):
            y = [r["accuracy"] for r in where(matching, table=table)]
            x = at + (place - len(tables) / 2) * 0.09
            marker, colour = MARKERS[place % len(MARKERS)], COLOURS[place % len(COLOURS)]
            axes.scatter([x] * len(y), y, s=14, color=colour, marker=marker, alpha=0.8, linewidths=0)
        values = [r["accuracy"] for r in matching]
        axes.plot([at - 0.35, at + 0.35], [np.mean(values)] * 2, color=INK, linewidth=1.5)
        rows.append([_WORDS[method], float(np.mean(values)), float(np.median(values)), len(values)])
    axes.set_xticks(range(len(methods)), [_WORDS[m].replace(", ", ",\n") for m in methods], fontsize=7.5)
    label(axes, y="accuracy on held-out rows")
    legend(figure, [str(t) for t in tables], lines=False)
    about = (
        "Accuracy of a neural network, by privacy model; a mark for each table, level and trial, a line at the mean "
        "(Figure 4). Of differential privacy it is a naive Bayes learner of noisy counts, not a network."
    )
    table = grid(["method", "mean accuracy", "median", "models"], rows)
    return Chapter("Beside other privacy models", [Figure("promises", about, figure), table])
