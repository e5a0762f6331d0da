"""What learners and queries make of a release, as one page of HTML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from duckanon._version import __version__
from duckanon.assess.utility.learners import ZERO_RULE
from duckanon.assess.utility.scores import SCORES
from duckanon.report.markup import Markup, element
from duckanon.report.style import STYLE

if TYPE_CHECKING:
    from duckanon.assess.utility.results import Evaluation
    from duckanon.assess.utility.workload import Workload

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""Whatever a name smuggled in, a browser would neither run nor fetch it."""


def page(found: Evaluation, workload: Workload | None = None, title: str = "Release") -> str:
    """Return the page: figures of learners, what is kept of them, answers of queries, and what to know.

    Examples
    --------
    >>> import duckanon, pyarrow as pa
    >>> people = pa.table({"age": list(range(100)), "ill": ["no"] * 50 + ["yes"] * 50})
    >>> found = duckanon.utility.evaluate(people, people, target="ill", learners=["knn"], seeds=1)
    >>> "in-sample" in page(found), page(found).startswith("<!doctype html>")
    (True, True)
    """
    heading = f"{title}: does the release still teach?"
    body = element(
        "main",
        element("p", "Utility of a release", class_="eyebrow"),
        element("h1", title, class_="name"),
        _facts(found),
        _verdict(found),
        _section(f"Predicting {found.target}", _scores(found)),
        _section("Kept", _kept(found)),
        _section("Range queries", _answers(workload)) if workload is not None else None,
        _section("Notes", element("ul", *(element("li", note) for note in found.notes))) if found.notes else None,
        element("footer", f"duckanon {__version__}. Means over seeds, with standard deviations."),
    )
    head = element(
        "head",
        Markup('<meta charset="utf-8">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        element("title", heading),
        element("style", Markup(STYLE)),
    )
    return f"<!doctype html>\n{element('html', head, element('body', body), lang='en')}\n"


def _facts(found: Evaluation) -> Markup:
    facts = [
        f"target {found.target}, {found.classes} classes",
        f"{found.train_rows} training rows, {found.release_rows} released",
        f"{found.test_rows} held-out rows" if not found.in_sample else f"{found.test_rows} rows tested",
        f"{len(found.features)} features",
    ]
    return element("p", *(element("span", fact) for fact in facts), class_="facts")


def _verdict(found: Evaluation) -> Markup:
    if found.in_sample:
        sign, kind, title = "!", "warn", "In-sample: figures of the release are too good"
        told = "Rows that were tested had been in the release. Give the job instead: the split is then made first."
    else:
        known = {learner: share for learner, share in found.kept().items() if share is not None}
        best = max(known, key=lambda learner: known[learner]) if known else None
        sign, kind = ("✓", "good") if best is not None and known[best] >= 0.5 else ("!", "warn")
        title = "The release still teaches" if kind == "good" else "The release teaches little"
        told = "Raw rows teach nothing here, or were not tried."
        if best is not None:
            told = f"{best} keeps {known[best]:.0%} of what raw rows teach it beyond the zero rule (AUROC)."
    inside = element("div", element("strong", title), element("span", told))
    return element("div", element("div", sign, class_="sign", aria_hidden="true"), inside, class_=f"verdict {kind}")


def _section(title: str, *parts: Markup) -> Markup:
    return element("section", element("h2", title), *parts)


def _grid(head: Sequence[str], lines: Sequence[Sequence[object]], texts: int) -> Markup:
    """Return a table whose first columns are texts and the others numbers."""
    top = element("tr", *(element("th", h, class_="num" if i >= texts else None) for i, h in enumerate(head)))
    rows = [
        element("tr", *(element("td", cell, class_="num" if i >= texts else None) for i, cell in enumerate(line)))
        for line in lines
    ]
    return element("div", element("table", element("thead", top), element("tbody", *rows)), class_="scroll")


def _scores(found: Evaluation) -> Markup:
    names = {"f1": "F1", "auroc": "AUROC"}
    rows = found.summary().to_pylist()
    order = list(dict.fromkeys(row["learner"] for row in rows))
    lines = [
        [line["learner"], line["encoding"], line["trained_on"], line["tested_on"], *(_figure(line, s) for s in SCORES)]
        for line in sorted(rows, key=lambda row: order.index(row["learner"]))
    ]
    head = ["learner", "encoding", "taught by", "tested on", *(names.get(s, s) for s in SCORES)]
    told = "Precision, recall and F1 are those of the positive class." if found.average == "binary" else ""
    several = "Precision, recall and F1 are means over the classes, each counting the same."
    note = f"{told or several} {ZERO_RULE} always says the most frequent class."
    return element("div", _grid(head, lines, 4), element("p", note, class_="aside"))


def _figure(line: dict[str, Any], score: str) -> str:
    deviation = line[f"{score}_deviation"]
    return f"{line[score]:.3f}" + ("" if deviation is None else f" ± {deviation:.3f}")


def _kept(found: Evaluation) -> Markup:
    by = {score: found.kept(score) for score in ("accuracy", "f1", "auroc")}
    lines = [[name, *(_share(by[score][name]) for score in by)] for name in by["auroc"]]
    note = "The share of what raw rows teach beyond the zero rule that the release teaches, too, tested on raw rows."
    return element("div", _grid(["learner", "accuracy", "F1", "AUROC"], lines, 1), element("p", note, class_="aside"))


def _share(share: float | None) -> str:
    return "–" if share is None else f"{share:.0%}"


def _answers(workload: Workload) -> Markup:
    lines = [
        [line["kind"], line["queries"], *(f"{line[name]:.1%}" for name in ("median", "mean", "q90"))]
        for line in workload.summary().to_pylist()
    ]
    note = f"Relative errors of random range queries that ask for {workload.selectivity:.0%} of the values."
    return element(
        "div",
        _grid(["kind", "queries", "median error", "mean", "nine of ten below"], lines, 1),
        element("p", note, class_="aside"),
    )
