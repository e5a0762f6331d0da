"""The page of the study of k-anonymity in practice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from duckanon.report.model import Lines
from duckanon.studies.base import Chapter, Record, distinct, grid, mean, where
from duckanon.studies.figures import COLOURS, INK, Figure, escape, label, legend, line, logarithmic, panels
from duckanon.studies.releases import shown

if TYPE_CHECKING:
    from duckanon.studies.config import Settings

_LIMITS = ("0 %", "3 %", "6 %", "9 %")


def chapters(records: list[Record], settings: Settings) -> list[Chapter]:
    """Return what the releases say of algorithms and learners."""
    raw = where(records, part="raw")
    made = where(records, part="algorithms")
    close = where(records, part="ola")
    found = []
    if made:
        found += [_answer(made, raw), _curves(made, raw), _fluctuation(made), _classes(made)]
        if any(r.get("levels") for r in made):
            found.append(_levels(made))
    if close:
        found.append(_ola(close))
    return found


def _baseline(raw: Sequence[Record], table: Any, learner: str) -> float | None:
    known = where(raw, table=table, learner=learner)
    return float(known[0]["f1"]) if known else None


def _answer(made: list[Record], raw: list[Record]) -> Chapter:
    algorithms, learners = distinct(made, "algorithm"), distinct(made, "learner")
    rows = []
    for table in distinct(made, "table"):
        for learner in learners:
            own = [mean([r["f1"] for r in where(made, table=table, learner=learner, algorithm=a)]) for a in algorithms]
            rows.append([table, learner, _baseline(raw, table, learner), *own, _baseline(raw, table, "zero_rule")])
    header = ["table", "learner", "raw", *(shown(a) for a in algorithms), "zero rule"]
    ks = distinct(made, "k")
    about = (
        f"Mean F1 (over classes, each counting the same) over {len(ks)} values of k from {min(ks)} to {max(ks)}, "
        "beside what raw rows teach and what always saying the most frequent class reaches."
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
        own = sorted(where(some, table=table, learner=learner), key=lambda r: int(r["k"]))
        names = list(own[0]["levels"])
        figure, ((axes,),) = panels(1, 1, (8, 3.0))
        bottom = np.zeros(len(own))
        places = np.arange(len(own))
        for place, name in enumerate(names):
            heights = np.array([r["levels"].get(name, 0) for r in own], dtype=np.float64)
            shade = 1.0 if place < len(COLOURS) else 0.45
            axes.bar(
                places, heights, bottom=bottom, color=COLOURS[place % len(COLOURS)], alpha=shade, label=escape(name)
            )
            bottom += heights
        axes.set_xticks(places[:: max(1, len(own) // 20)], [str(r["k"]) for r in own][:: max(1, len(own) // 20)])
        label(axes, x="k", y="levels of OLA, one on another")
        twin = axes.twinx()
        twin.plot(places, [r["f1"] for r in own], color=INK, marker="o", markersize=3, linewidth=1.4)
        twin.tick_params(labelsize=7, colors=INK)
        twin.set_ylabel(f"F1 of {learner}", fontsize=8, color=INK)
        told = axes.legend(fontsize=7, frameon=False, ncols=1, loc="center left", bbox_to_anchor=(1.14, 0.5))
        for text in told.get_texts():
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
            own = [mean([r["f1"] for r in where(close, table=table, metric=metric, limit=x)]) for x in limits]
            rows.append([table, metric, *own])
    header = ["table", "metric", *(f"{limit:.0%}" for limit in limits)]
    return Chapter("OLA by metric and suppression limit", [grid(header, rows, words=2), *parts])
