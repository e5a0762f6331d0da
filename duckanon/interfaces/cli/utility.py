"""The commands about learning: utility (how useful is a release?) and tune (which job is the most useful?)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from duckanon.interfaces.cli.options import (
    ASSESS,
    PICTURES,
    Html,
    Original,
    Picture,
    given,
    names,
    of_job,
)
from duckanon.interfaces.cli.screen import RIGHT, WHOLE, Bars, Row, Screen, count, headed, sections, share, shown_path

if TYPE_CHECKING:
    from rich.console import RenderableType

    from duckanon.assess.utility.results import Evaluation
    from duckanon.assess.utility.workload import Workload
    from duckanon.jobs.tuning.results import Tuning


_HEADS = {"f1": "F1", "auroc": "AUROC"}
Target = Annotated[str, typer.Option("--target", help="The column to predict. It must be published unchanged.")]
Encoding = Annotated[
    str,
    typer.Option(
        "--encoding",
        help="How cells become numbers: one_class, fill_parent, fill_child, proportional, value_set or midpoint.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="The seed: with the same one, the same rows are held out.")]


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("utility", rich_help_panel=ASSESS)(utility)
    app.command("tune", rich_help_panel=ASSESS)(tune)


def utility(
    ctx: typer.Context,
    original: Original,
    release: Annotated[
        str,
        typer.Argument(
            metavar="RELEASE",
            help="A job (recommended: it anonymizes the rows that are not held out), or a released file.",
        ),
    ],
    target: Target,
    learners: Annotated[
        list[str] | None,
        typer.Option(
            "--learner",
            "--learners",
            metavar="A,B,...",
            help="The learners: logistic_regression, random_forest, knn, linear_svm, decision_tree, mlp, "
            "gradient_boosting, xgboost.",
            show_default="logistic_regression, random_forest, gradient_boosting",
        ),
    ] = None,
    encoding: Encoding = "midpoint",
    test: Annotated[
        str | None,
        typer.Option("--test", metavar="FILE", help="Original rows that are not in the release, as test rows."),
    ] = None,
    test_size: Annotated[float, typer.Option("--test-size", help="The share of rows held out, without --test.")] = 0.2,
    job: Annotated[
        Path | None,
        typer.Option(
            "--job",
            metavar="JOB.toml",
            help="For a released file: the job that made it, for its columns and hierarchies.",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="How often randomized learners are trained.")] = 5,
    seed: Seed = 0,
    pca: Annotated[
        float | None, typer.Option("--pca", help="Train on principal components with this share of the variance.")
    ] = None,
    queries: Annotated[int, typer.Option("--queries", min=0, help="Also compare this many random range queries.")] = 0,
    average: Annotated[str | None, typer.Option("--average", help="Also query the mean of this column.")] = None,
    max_rows: Annotated[
        int, typer.Option("--max-rows", min=1, help="Train on a sample of this size if there are more rows.")
    ] = 100_000,
    html: Html = None,
) -> None:
    """Test how well learners trained on a release predict rows held out.

    Give the job rather than its release: a fifth of the rows is then held
    out before anything is anonymized. A release of all rows contains the
    test rows, so its figures are too good.
    """
    screen = Screen.of(ctx)
    options = {"encoding": encoding, "seeds": seeds, "pca": pca, "max_rows": max_rows}
    options |= given(learners=names(learners) or None)
    asked = given(average=average) | {"n": queries, "seed": seed}
    with Bars(screen.watched) as bars:
        options["progress"] = bars.listener
        if Path(release).suffix.lower() == ".toml":
            if job is not None:
                raise typer.BadParameter("--job goes with a released file: here RELEASE is the job.")
            result, workload = _of_job(original, Path(release), target, test, test_size, seed, options, asked)
        else:
            result, workload = _of_file(original, release, target, test, job, options, asked)
    if html is not None:
        from duckanon.assess.utility.page import page

        html.write_text(page(result, workload, Path(release).name), encoding="utf-8")
    if screen.as_json:
        more = {"queries": workload.to_dict()} if workload is not None else {}
        screen.document({"original": original, "release": release, **result.to_dict(), **more, "html": html})
    else:
        show_utility(screen, Path(release).name, result, workload, html)


def _of_job(
    original: str,
    path: Path,
    target: str,
    test: str | None,
    test_size: float,
    seed: int,
    options: dict[str, Any],
    asked: dict[str, Any],
) -> tuple[Any, Any]:
    """Hold rows out, anonymize the others by the job, train and test."""
    from duckanon.assess.utility import queries, split, trial
    from duckanon.assess.utility.held_out import Split, table_of
    from duckanon.io.source import Source
    from duckanon.jobs import load_job
    from duckanon.jobs.run import anonymizer

    loaded = load_job(path)
    table = loaded.table()
    key = table.request.entity_key
    if test is None:
        parts = split(Source.file(original), target=target, test_size=test_size, seed=seed, entity_key=key)
    else:
        parts = Split(table_of(Source.file(original)), table_of(Source.file(test)), target)
    answers: list[Any] = []

    def ask(release: Any) -> None:
        if asked["n"]:
            answers.append(queries(parts.train, release, **asked))

    result = trial(parts, anonymizer(loaded, table, options["progress"]), look=ask, **options)
    return result, answers[0] if answers else None


def _of_file(
    original: str,
    release: str,
    target: str,
    test: str | None,
    job: Path | None,
    options: dict[str, Any],
    asked: dict[str, Any],
) -> tuple[Any, Any]:
    from duckanon.assess.utility import evaluate, queries
    from duckanon.io.source import Source

    about = of_job(job) if job is not None else {}
    described = {key: about[key] for key in ("quasi_identifiers", "hierarchies") if key in about}
    source, released = Source.file(original), Source.file(release)
    held = Source.file(test) if test is not None else None
    result = evaluate(source, released, target=target, test=held, **described, **options)
    if not asked["n"]:
        return result, None
    if not described:
        raise typer.BadParameter("--queries of a released file needs --job, which names its quasi-identifiers.")
    hierarchies = {c: h for c, h in described["hierarchies"].items() if c in described["quasi_identifiers"]}
    columns = described["quasi_identifiers"]
    return result, queries(source, released, columns=columns, hierarchies=hierarchies, **asked)


def show_utility(
    screen: Screen, name: str, result: Evaluation, workload: Workload | None, html: Path | None = None
) -> None:
    """Show the scores of learners trained on raw rows and on the release, and the errors of queries."""
    from duckanon.assess.utility.scores import SCORES

    rows = result.summary().to_pylist()
    order = list(dict.fromkeys(row["learner"] for row in rows))
    rows.sort(key=lambda row: order.index(row["learner"]))
    kept = result.kept()
    if not screen.rich:
        tested = "rows tested (in-sample)" if result.in_sample else "held-out rows"
        screen.line(f"{name}: predicting {result.target}, {count(result.test_rows)} {tested}")
        for row in rows:
            figures = ", ".join(f"{score} {_figure(row, score)}" for score in SCORES)
            screen.line(f"{row['learner']}, trained on {_taught(row)}, tested on {row['tested_on']}: {figures}")
        for learner, part in kept.items():
            if part is not None:
                screen.line(
                    f"{learner} keeps {share(max(part, 0.0))} of its gain from raw rows over the zero rule (AUROC)"
                )
        for row in workload.summary().to_pylist() if workload is not None else ():
            screen.line(f"{row['kind']} queries: median error {share(row['median'])}, mean {share(row['mean'])}")
        for note in result.notes:
            screen.line(f"note: {note}")
        if html is not None:
            screen.line(f"page: {shown_path(html)}")
        return
    from rich.text import Text

    heads = ((_HEADS.get(score, score), RIGHT) for score in SCORES)
    table = headed(("learner", WHOLE), ("trained on", WHOLE), ("tested on", WHOLE), *heads, ("± F1", RIGHT))
    last = None
    for row in rows:
        first = row["learner"] if row["learner"] != last else ""
        last = row["learner"]
        style = "dim" if row["trained_on"] == "raw" else ""
        cells = [Text(first), Text(row["trained_on"], style=style), Text(row["tested_on"], style=style)]
        deviation = row["f1_deviation"]
        shown = [f"{row[score]:.3f}" for score in SCORES] + ["" if deviation is None else f"{deviation:.3f}"]
        table.add_row(*cells, *(Text(one, style=style) for one in shown))
    encoding = next(row["encoding"] for row in rows if row["trained_on"] == "release")
    parts: list[tuple[str, RenderableType]] = [(f"{name}: predicting {result.target}, cells read by {encoding}", table)]
    lines = [f"{learner}: {'-' if part is None else share(max(part, 0.0))}" for learner, part in kept.items()]
    parts.append(("Kept of the gain from raw rows over the zero rule (AUROC)", Text("\n".join(lines))))
    if workload is not None:
        parts.append(("Range queries", _answers(workload)))
    if result.notes:
        style = "bold yellow" if result.in_sample else "yellow"
        parts.append(("Notes", Text("\n".join(result.notes), style=style)))
    if html is not None:
        parts.append(("Page", Text(shown_path(html))))
    sections(screen, parts)


def _taught(row: Row) -> str:
    return "raw rows" if row["trained_on"] == "raw" else f"release ({row['encoding']})"


def _figure(row: Row, score: str) -> str:
    deviation = row[f"{score}_deviation"]
    return f"{row[score]:.3f}" + ("" if deviation is None else f" ±{deviation:.3f}")


def _answers(workload: Workload) -> RenderableType:
    heads = ((head, RIGHT) for head in ("queries", "median error", "mean", "nine of ten below"))
    table = headed(("kind", WHOLE), *heads)
    for row in workload.summary().to_pylist():
        errors = (share(row[name]) for name in ("median", "mean", "q90"))
        table.add_row(row["kind"], count(row["queries"]), *errors)
    return table


def tune(
    ctx: typer.Context,
    job: Annotated[Path, typer.Argument(metavar="JOB.toml", help="The job file.")],
    target: Target,
    learner: Annotated[str, typer.Option("--learner", help="The learner, as for duckanon utility.")] = "random_forest",
    score: Annotated[str, typer.Option("--score", help="The score: f1, accuracy, precision, recall or auroc.")] = "f1",
    encoding: Encoding = "midpoint",
    budget: Annotated[
        str, typer.Option("--budget", help="Start no candidate after this time, such as 90s, 5min or 1h.")
    ] = "5min",
    k: Annotated[
        list[str] | None,
        typer.Option("-k", "--k", metavar="A,B,...", help="Values of k to try, none below that of the job."),
    ] = None,
    algorithms: Annotated[
        list[str] | None,
        typer.Option(
            "--algorithm",
            metavar="NAME",
            help="An algorithm to try, such as mondrian or 'optimal(metric=loss)'. Can be repeated.",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the best job to this file, in the folder of JOB.toml.")
    ] = None,
    picture: Picture = None,
    results: Annotated[
        Path | None,
        typer.Option(
            "--results",
            metavar="FILE.duckdb",
            help="Keep the results of each candidate, so that a later run continues.",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="How often randomized learners are trained.")] = 3,
    seed: Seed = 0,
) -> None:
    """Find the algorithm and parameters of a job that serve a learning task best. Publishes nothing."""
    if picture is not None and picture.suffix.lower() not in PICTURES:
        raise typer.BadParameter(f"--picture must end in {', '.join(PICTURES)}.")
    from duckanon.jobs.tuning.results import require_beside
    from duckanon.jobs.tuning.search import tune as search

    if output is not None:
        # Before the work, not after it.
        require_beside(job, output)
    sizes = [_whole(text) for text in names(k)] or None
    screen = Screen.of(ctx)
    with Bars(screen.watched) as bars:
        result = search(
            job,
            target=target,
            learner=learner,
            score=score,
            encoding=encoding,
            budget=budget,
            k=sizes,
            algorithms=algorithms or None,
            seeds=seeds,
            seed=seed,
            results=results,
            progress=bars.listener,
        )
    written = result.write(output) if output is not None else None
    drawn = result.plot(picture) if picture is not None else None
    if screen.as_json:
        screen.document({**result.to_dict(), "written": written, "picture": drawn})
    else:
        show_tuning(screen, result, written, drawn)


def _whole(text: str) -> int:
    if not text.isdecimal():
        raise typer.BadParameter(f"-k takes whole numbers. Got {text!r}.")
    return int(text)


def show_tuning(screen: Screen, result: Tuning, job: Path | None, picture: Path | None) -> None:
    """Show the front of utility and risk, the best candidate, and what it is worth on rows held out."""
    best, name = result.best, _HEADS.get(result.score, result.score)
    last = result.final.score(result.score, learner=result.learner) if result.final is not None else None
    raw = (
        result.final.score(result.score, learner=result.learner, trained_on="raw") if result.final is not None else None
    )
    failed = len(result.lines) - len(result.tried)
    counts = f"{count(len(result.tried), 'candidates')} tried"
    counts += f", {failed} could not satisfy the models or do not fit the job" if failed else ""
    counts += f", {result.left} left when time ended" if result.left else ""
    if not screen.rich:
        screen.line(f"{result.job.name}: {counts}; {result.score} of {result.learner} predicting {result.target}")
        screen.line(f"raw rows: {result.raw:.4f}; most frequent class: {result.zero_rule:.4f}")
        for line in result.front:
            screen.line(f"front: {_way(line)}: {line['score']:.4f}, average risk {share(line['average_risk'])}")
        screen.line(f"best: {_way(best)}: {best['score']:.4f}")
        if last is not None:
            screen.line(f"on rows held out from the search: {last:.4f} (raw rows {raw:.4f})")
        for what, path in (("job", job), ("picture", picture)):
            if path is not None:
                screen.line(f"{what}: {shown_path(path)}")
        return
    from rich.text import Text

    heads = (name, "±", "average risk", "highest", "suppressed")
    table = headed(("way", {"overflow": "fold"}), ("k", RIGHT), *((head, RIGHT) for head in heads))
    for line in reversed(result.front):
        style = "bold green" if line["key"] == best["key"] else ""
        spread = "" if line["deviation"] is None else f"{line['deviation']:.4f}"
        risks = [share(line[key]) for key in ("average_risk", "maximum_risk", "suppressed")]
        cells = [line["label"], "-" if line["k"] is None else str(line["k"]), f"{line['score']:.4f}", spread, *risks]
        table.add_row(*(Text(cell, style=style) for cell in cells))
    about = (
        f"{counts}. On the same rows raw rows reach {result.raw:.4f}, the most frequent class {result.zero_rule:.4f}."
    )
    parts: list[tuple[str, RenderableType]] = [
        (f"Front of utility and risk: {name} of {result.learner} predicting {result.target}", table),
        (result.job.name, Text(about)),
    ]
    if last is not None:
        verdict = f"{_way(best)}: {name} {last:.4f}, where raw rows reach {raw:.4f}"
        parts.append(("On rows held out from the search", Text(verdict, style="bold")))
    files = [shown_path(path) for path in (job, picture) if path is not None]
    if files:
        parts.append(("Written", Text("\n".join(files))))
    sections(screen, parts)


def _way(line: Row) -> str:
    return line["label"] if line["k"] is None else f"{line['label']}, k = {line['k']}"
