"""Utility of a release for learners and queries, as one page of HTML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from duckanon._version import __version__
from duckanon.assess.utility.learners import ZERO_RULE
from duckanon.assess.utility.scores import SCORES
from duckanon.report.html import html
from duckanon.report.model import Bar, Bullets, Cell, Grid, Lines, Report, Section, Verdict
from duckanon.report.text import in_words

if TYPE_CHECKING:
    from duckanon.assess.utility.results import Evaluation
    from duckanon.assess.utility.workload import Workload

_MOST = 0.5
"""A learner that keeps this share of its gain keeps most of its quality."""


def page(evaluation: Evaluation, workload: Workload | None = None, title: str = "Release") -> str:
    """Return the page: scores of learners, the share that is kept, errors of queries, and notes.

    Examples
    --------
    >>> import duckanon, pyarrow as pa
    >>> people = pa.table({"age": list(range(100)), "ill": ["no"] * 50 + ["yes"] * 50})
    >>> found = duckanon.utility.evaluate(people, people, target="ill", learners=["knn"], seeds=1)
    >>> "in-sample" in page(found), page(found).startswith("<!doctype html>")
    (True, True)
    """
    return html(report(evaluation, workload, title))


def report(evaluation: Evaluation, workload: Workload | None = None, title: str = "Release") -> Report:
    """Return the report of an evaluation."""
    sections = [_scores(evaluation), _kept(evaluation)]
    if workload is not None:
        sections.append(_answers(workload))
    if evaluation.notes:
        sections.append(Section("Notes", [Bullets(evaluation.notes)]))
    return Report(
        title,
        "Utility of a release",
        sections,
        facts=_facts(evaluation),
        verdict=_verdict(evaluation),
        footer=f"duckanon {__version__}. Means over seeds, with standard deviations.",
    )


def _facts(evaluation: Evaluation) -> list[str]:
    return [
        f"target {evaluation.target}, {evaluation.classes} classes",
        f"{evaluation.train_rows} training rows, {evaluation.release_rows} released",
        f"{evaluation.test_rows} held-out rows" if not evaluation.in_sample else f"{evaluation.test_rows} rows tested",
        f"{len(evaluation.features)} features",
    ]


def _verdict(evaluation: Evaluation) -> Verdict:
    if evaluation.in_sample:
        return Verdict(
            "warn",
            "In-sample: figures of the release are too good",
            "Rows that were tested had been in the release. Give the job instead: the split is then made first.",
        )
    shares = {learner: share for learner, share in evaluation.kept().items() if share is not None}
    if not shares:
        return Verdict(
            "warn", "Learners keep little", "Raw rows are no better than the zero rule here, or were not tried."
        )
    # All of them: a single learner, the best or the worst, would mislead.
    each = ", ".join(f"{in_words(learner)} {shares[learner]:.0%}" for learner in sorted(shares, key=shares.__getitem__))
    text = f"Kept of the gain from raw rows over the zero rule (AUROC): {each}."
    most = [share >= _MOST for share in shares.values()]
    if all(most):
        return Verdict("good", "Learners keep most of their quality", text)
    if any(most):
        return Verdict("warn", "Some learners keep most of their quality, others little", text)
    return Verdict("warn", "Learners keep little", text)


def _section(title: str, head: Sequence[str], rows: Sequence[Sequence[str | Cell]], texts: int, note: str) -> Section:
    """Return a table whose first columns are texts and the others numbers, and a sentence about it."""
    return Section(title, [Grid(head, rows, right=range(texts, len(head))), Lines([note], aside=True)])


def _scores(evaluation: Evaluation) -> Section:
    names = {"f1": "F1", "auroc": "AUROC"}
    rows = evaluation.summary().to_pylist()
    order = list(dict.fromkeys(row["learner"] for row in rows))
    lines = [
        [
            in_words(line["learner"]),
            in_words(line["encoding"]),
            line["trained_on"],
            line["tested_on"],
            *(_figure(line, s) for s in SCORES),
        ]
        for line in sorted(rows, key=lambda row: order.index(row["learner"]))
    ]
    head = ["learner", "encoding", "trained on", "tested on", *(names.get(s, s) for s in SCORES)]
    binary = "Precision, recall and F1 are those of the positive class." if evaluation.average == "binary" else ""
    several = "Precision, recall and F1 are means over the classes, each counting the same."
    note = f"{binary or several} The {in_words(ZERO_RULE)} always predicts the most frequent class."
    return _section(f"Predicting {evaluation.target}", head, lines, 4, note)


def _figure(line: dict[str, Any], score: str) -> str:
    deviation = line[f"{score}_deviation"]
    return f"{line[score]:.3f}" + ("" if deviation is None else f" ± {deviation:.3f}")


def _kept(evaluation: Evaluation) -> Section:
    by = {score: evaluation.kept(score) for score in ("accuracy", "f1", "auroc")}
    lines = [[in_words(name), *(_share(by[score][name], f"{score} of {name}") for score in by)] for name in by["auroc"]]
    note = "Gain over the zero rule by training on the release, as a share of that by training on raw rows."
    return _section("Kept", ["learner", "accuracy", "F1", "AUROC"], lines, 1, note)


def _share(share: float | None, what: str) -> str | Cell:
    return "–" if share is None else Cell(f"{share:.0%}", bar=Bar(max(share, 0.0), f"{what}: {share:.0%} kept"))


def _answers(workload: Workload) -> Section:
    lines = [
        [line["kind"], str(line["queries"]), *(f"{line[name]:.1%}" for name in ("median", "mean", "q90"))]
        for line in workload.summary().to_pylist()
    ]
    note = f"Relative errors of random range queries that cover {workload.selectivity:.0%} of the values."
    return _section("Range queries", ["kind", "queries", "median error", "mean", "nine of ten below"], lines, 1, note)
