"""The page of the study of probabilistic k-anonymity."""

from __future__ import annotations

from typing import Any

import numpy as np

from duckanon.report.model import Lines
from duckanon.studies.base import Chapter, Record, distinct, grid, mean, where
from duckanon.studies.figures import COLOURS, INK, MARKERS, Figure, label, legend, line, panels

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
    """Return what was lost, learned by attackers, and kept for learners."""
    found = [_answer(records)]
    if where(records, what="loss"):
        found.append(_loss(records))
    if where(records, what="attack"):
        found.append(_attacks(records))
    return [*found, _learners(records), _compared(records)]


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
                own = where(lines, quasi=quasi, table=table, attack=attack)
                for place, method in enumerate((*_PERMUTED, "k_anonymity")):
                    some = where(own, method=method)
                    ks = sorted(distinct(some, "level"))
                    line(one, ks, [_or_nan(mean([r["success"] for r in where(some, level=k)])) for k in ks], place)
                raw = mean([r["success"] for r in where(own, method="none")])
                base = mean([r["base_rate"] for r in own])
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


def _learners(records: list[Record]) -> Chapter:
    lines = [r for r in where(records, what="learner") if r["learner"] != "zero_rule"]
    tables = distinct(lines, "table")
    series = [(m, q) for m in _PERMUTED for q in distinct(lines, "quasi") if where(lines, method=m, quasi=q)]
    figure, axes = panels(1, len(tables), (2.4, 2.3), sharey=True)
    rows = []
    for j, table in enumerate(tables):
        own = where(lines, table=table)
        for place, (method, quasi) in enumerate(series):
            some = where(own, method=method, quasi=quasi)
            ks = sorted(distinct(some, "level"))
            line(axes[0][j], ks, [_or_nan(mean([r["f1"] for r in where(some, level=k)])) for k in ks], place)
        raw = mean([r["f1"] for r in where(own, method="none")])
        if raw is not None:
            axes[0][j].axhline(raw, color=INK, linestyle="--", linewidth=0.9)
        label(axes[0][j], title=str(table), x="k", y="F1" if j == 0 else "")
        rows.append([table, raw, *(mean([r["f1"] for r in where(own, method=m, quasi=q)]) for m, q in series)])
    legend(figure, [f"{_WORDS[m]}, {q}" for m, q in series])
    about = "F1 of learners by k, mean over learners (Figure 3); dashed: taught by the original."
    header = ["table", "original", *(f"{_WORDS[m]}, {q}" for m, q in series)]
    return Chapter("Learners", [Figure("learners", about, figure), grid(header, rows)])


def _compared(records: list[Record]) -> Chapter:
    lines = [r for r in where(records, what="learner", quasi="part") if r["learner"] in ("mlp", "private_bayes")]
    methods, tables = [m for m in _WORDS if where(lines, method=m)], distinct(lines, "table")
    figure, ((axes,),) = panels(1, 1, (7.5, 3.2))
    rows = []
    for at, method in enumerate(methods):
        own = where(lines, method=method)
        for place, table in enumerate(tables):
            y = [r["accuracy"] for r in where(own, table=table)]
            x = at + (place - len(tables) / 2) * 0.09
            marker, colour = MARKERS[place % len(MARKERS)], COLOURS[place % len(COLOURS)]
            axes.scatter([x] * len(y), y, s=14, color=colour, marker=marker, alpha=0.8, linewidths=0)
        values = [r["accuracy"] for r in own]
        axes.plot([at - 0.35, at + 0.35], [np.mean(values)] * 2, color=INK, linewidth=1.5)
        rows.append([_WORDS[method], float(np.mean(values)), float(np.median(values)), len(values)])
    axes.set_xticks(range(len(methods)), [_WORDS[m].replace(", ", ",\n") for m in methods], fontsize=7.5)
    label(axes, y="accuracy on held-out rows")
    legend(figure, [str(t) for t in tables], lines=False)
    about = (
        "Accuracy of a neural network, by promise; a mark for each table, level and trial, a line at the mean "
        "(Figure 4). Of differential privacy it is a naive Bayes learner of noisy counts, not a network."
    )
    table = grid(["method", "mean accuracy", "median", "models"], rows)
    return Chapter("Beside other promises", [Figure("promises", about, figure), table])
