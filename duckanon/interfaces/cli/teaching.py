"""The commands about tasks: utility (does a release still teach?) and tune (which job teaches best?)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from duckanon.interfaces.cli.options import Json, Verbose, given, names
from duckanon.interfaces.cli.screen import Screen
from duckanon.interfaces.cli.verbs import PICTURES

Target = Annotated[str, typer.Option("--target", help="The column to be predicted; published as it is.")]
Encoding = Annotated[
    str, typer.Option("--encoding", help="one_class, fill_parent, fill_child, proportional, value_set or midpoint.")
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="The same seed holds out the same rows.")]


def add_to(app: typer.Typer) -> None:
    """Put the commands on the command line."""
    app.command("utility")(utility)
    app.command("tune")(tune)


def utility(
    ctx: typer.Context,
    original: Annotated[
        str, typer.Argument(metavar="ORIGINAL", help="The table before anonymization: a file.", show_default=False)
    ],
    release: Annotated[
        str,
        typer.Argument(
            metavar="RELEASE",
            help="JOB.toml (recommended: rows are held out first, the job anonymizes the others), or a released file.",
            show_default=False,
        ),
    ],
    target: Target,
    learners: Annotated[
        list[str] | None,
        typer.Option(
            "--learner",
            "--learners",
            metavar="A,B,...",
            help="logistic_regression, random_forest, knn, linear_svm, decision_tree, mlp, gradient_boosting, xgboost.",
            show_default="logistic_regression, random_forest, gradient_boosting",
        ),
    ] = None,
    encoding: Encoding = "midpoint",
    test: Annotated[
        str | None,
        typer.Option("--test", metavar="FILE", help="Original rows that are in no release.", show_default=False),
    ] = None,
    test_size: Annotated[float, typer.Option("--test-size", help="The share held out where there is no --test.")] = 0.2,
    job: Annotated[
        Path | None,
        typer.Option(
            "--job", metavar="JOB.toml", help="For a released file: its columns and hierarchies.", show_default=False
        ),
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="How often learners that use chance are taught.")] = 5,
    seed: Seed = 0,
    pca: Annotated[
        float | None,
        typer.Option("--pca", help="Learn from components with this share of the variance.", show_default=False),
    ] = None,
    queries: Annotated[
        int, typer.Option("--queries", min=0, help="Ask so many random range queries, too.", show_default=False)
    ] = 0,
    average: Annotated[
        str | None, typer.Option("--average", help="Queries for the mean of this column, too.", show_default=False)
    ] = None,
    max_rows: Annotated[int, typer.Option("--max-rows", min=1, help="Of more rows a sample is taught.")] = 100_000,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a page, too.", show_default=False)
    ] = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Does the release still teach? Learners taught by it, tested on rows held out.

    Give the job rather than its release: a fifth of the rows is then held out before anything is anonymized. A release
    of all rows has the tested rows in it, and its figures are too good.
    """
    from duckanon.interfaces.cli.bars import Bars
    from duckanon.interfaces.cli.look_teaching import show_utility

    screen = Screen.of(ctx)
    options = {"encoding": encoding, "seeds": seeds, "pca": pca, "max_rows": max_rows}
    options |= given(learners=names(learners) or None)
    asked = given(average=average) | {"n": queries, "seed": seed}
    with Bars(screen.watched) as bars:
        options["progress"] = bars if screen.watched else None
        if Path(release).suffix.lower() == ".toml":
            if job is not None:
                raise typer.BadParameter("--job goes with a released file: here RELEASE is the job.")
            found, workload = _of_job(original, Path(release), target, test, test_size, seed, options, asked)
        else:
            found, workload = _of_file(original, release, target, test, job, options, asked)
    if html is not None:
        from duckanon.assess.utility.page import page

        html.write_text(page(found, workload, Path(release).name), encoding="utf-8")
    if screen.as_json:
        more = {"queries": workload.to_dict()} if workload is not None else {}
        screen.document({"original": original, "release": release, **found.to_dict(), **more, "html": html})
    else:
        show_utility(screen, Path(release).name, found, workload, html)


def tune(
    ctx: typer.Context,
    job: Annotated[Path, typer.Argument(metavar="JOB.toml", help="The job file.", show_default=False)],
    target: Target,
    learner: Annotated[str, typer.Option("--learner", help="As for duckanon utility.")] = "random_forest",
    score: Annotated[str, typer.Option("--score", help="f1, accuracy, precision, recall or auroc.")] = "f1",
    encoding: Encoding = "midpoint",
    budget: Annotated[str, typer.Option("--budget", help="No candidate is begun later: 90s, 5min, 1h.")] = "5min",
    k: Annotated[
        list[str] | None,
        typer.Option(
            "-k", "--k", metavar="A,B,...", help="Sizes of classes, none below the job's.", show_default=False
        ),
    ] = None,
    algorithms: Annotated[
        list[str] | None,
        typer.Option("--algorithm", metavar="NAME", help="mondrian, 'optimal(metric=loss)', ...", show_default=False),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the best job, beside JOB.toml.", show_default=False),
    ] = None,
    picture: Annotated[
        Path | None, typer.Option("--picture", metavar="FILE", help="Draw it: PNG, SVG or PDF.", show_default=False)
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option("--results", metavar="FILE.duckdb", help="Keep what was tried, and go on.", show_default=False),
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="How often learners that use chance are taught.")] = 3,
    seed: Seed = 0,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Which algorithm and parameters serve a task best? Writes a job, publishes nothing."""
    if picture is not None and picture.suffix.lower() not in PICTURES:
        raise typer.BadParameter(f"--picture must end in {', '.join(PICTURES)}.")
    from duckanon.interfaces.cli.bars import Bars
    from duckanon.interfaces.cli.look_teaching import show_tuning
    from duckanon.jobs.tuning.jobfile import require_beside
    from duckanon.jobs.tuning.search import tune as search

    if output is not None:
        # Said before the work, not after it.
        require_beside(job, output)
    sizes = [_whole(text) for text in names(k)] or None
    screen = Screen.of(ctx)
    with Bars(screen.watched) as bars:
        found = search(
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
            progress=bars if screen.watched else None,
        )
    written = found.write(output) if output is not None else None
    drawn = found.plot(picture) if picture is not None else None
    if screen.as_json:
        screen.document({**found.to_dict(), "written": written, "picture": drawn})
    else:
        show_tuning(screen, found, written, drawn)


def _whole(text: str) -> int:
    if not text.isdecimal():
        raise typer.BadParameter(f"-k takes whole numbers. Got {text!r}.")
    return int(text)


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
    """Hold rows out, anonymize the others by the job, teach and test."""
    from duckanon.assess.utility import queries, split, trial
    from duckanon.assess.utility.parts import Split, table_of
    from duckanon.io.source import Source
    from duckanon.jobs import load_job
    from duckanon.jobs.tuning.jobs import anonymizer

    loaded = load_job(path)
    table = loaded.table()
    key = table.roles.get("entity_key")
    if test is None:
        parts = split(Source.file(original), target=target, test_size=test_size, seed=seed, entity_key=key)
    else:
        parts = Split(table_of(Source.file(original)), table_of(Source.file(test)), target)
    answers: list[Any] = []

    def ask(release: Any) -> None:
        if asked["n"]:
            answers.append(queries(parts.train, release, **asked))

    found = trial(parts, anonymizer(loaded, table, options["progress"]), look=ask, **options)
    return found, answers[0] if answers else None


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
    from duckanon.interfaces.cli.verbs import of_job
    from duckanon.io.source import Source

    about = of_job(job) if job is not None else {}
    known = {key: about[key] for key in ("quasi_identifiers", "hierarchies") if key in about}
    source, released = Source.file(original), Source.file(release)
    held = Source.file(test) if test is not None else None
    found = evaluate(source, released, target=target, test=held, **known, **options)
    if not asked["n"]:
        return found, None
    if not known:
        raise typer.BadParameter("--queries of a released file needs --job, which names its quasi-identifiers.")
    hierarchies = {c: h for c, h in known["hierarchies"].items() if c in known["quasi_identifiers"]}
    columns = known["quasi_identifiers"]
    return found, queries(source, released, columns=columns, hierarchies=hierarchies, **asked)
