"""The commands that look and publish nothing: privacy, measure, risk, suggest, lattice, compare."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from duckanon.interfaces.cli.options import (
    Database,
    EntityKey,
    Json,
    K,
    L,
    Models,
    QuasiIdentifiers,
    Sensitive,
    T,
    Table,
    TableFile,
    Verbose,
    given,
    hierarchies,
    names,
    source_of,
)
from duckanon.interfaces.cli.screen import Screen

Hierarchies = Annotated[
    list[str] | None,
    typer.Option(
        "--hierarchy", metavar="COLUMN=NAME_OR_FILE", help="How a column was generalized.", show_default=False
    ),
]
Population = Annotated[
    str | None,
    typer.Option("--population", metavar="FILE", help="The people from whom the data were drawn.", show_default=False),
]
PICTURES = (".png", ".svg", ".pdf")


def add_to(app: typer.Typer) -> None:
    """Put the commands on the command line."""
    app.command("privacy")(privacy)
    app.command("measure")(measure)
    app.command("risk")(risk)
    app.command("suggest")(suggest)
    app.command("lattice")(lattice)
    app.command("compare")(compare)


def privacy(
    ctx: typer.Context,
    quasi_identifiers: QuasiIdentifiers,
    file: TableFile = None,
    sensitive: Sensitive = None,
    k: K = None,
    l: L = None,  # noqa: E741 - the field's own name
    t: T = None,
    models: Models = None,
    hierarchy: Hierarchies = None,
    population: Population = None,
    entity_key: EntityKey = None,
    database: Database = None,
    table: Table = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """What does this table satisfy? The best parameter of every model."""
    source = source_of(file, database, table)
    from duckanon.assess.privacy import privacy as look
    from duckanon.interfaces.cli.look import show_privacy

    wanted = given(k=k, l=l, t=t, models=models, entity_key=entity_key)
    found = look(
        source,
        quasi_identifiers=names(quasi_identifiers),
        sensitive=names(sensitive),
        **wanted,
        **given(hierarchies=hierarchies(hierarchy), population=file_of(population)),
    ).to_pylist()
    screen = Screen.of(ctx)
    if screen.as_json:
        screen.document({"source": source.name, "privacy": found})
    else:
        show_privacy(screen, source.name, found)


def measure(
    ctx: typer.Context,
    original: Annotated[
        str, typer.Argument(metavar="ORIGINAL", help="The table that was anonymized: a file.", show_default=False)
    ],
    release: Annotated[
        str, typer.Argument(metavar="RELEASE", help="The table that was made from it: a file.", show_default=False)
    ],
    quasi_identifiers: Annotated[
        list[str] | None,
        typer.Option("--quasi-identifiers", "-q", metavar="A,B,...", help="Columns.", show_default=False),
    ] = None,
    sensitive: Sensitive = None,
    k: K = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option("--metric", "-m", metavar="A,B,...", help="Metrics; all without.", show_default=False),
    ] = None,
    hierarchy: Hierarchies = None,
    job: Annotated[
        Path | None,
        typer.Option("--job", metavar="JOB.toml", help="Take columns, hierarchies and k of a job.", show_default=False),
    ] = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """What did this release lose? By every metric that can be computed."""
    if quasi_identifiers is None and job is None:
        raise typer.BadParameter("Give the quasi-identifiers (-q), or a job (--job) that has them.")
    from duckanon.assess.comparison.loss import measure as look
    from duckanon.interfaces.cli.look import show_loss
    from duckanon.io.source import Source

    about = of_job(job) if job is not None else {}
    own = {"quasi_identifiers": names(quasi_identifiers), "sensitive": names(sensitive), "metrics": names(metrics)}
    about |= {key: value for key, value in own.items() if value} | given(k=k)
    # A job may have hierarchies of sensitive columns, too; where it has none, the release was made by automatic ones.
    wanted = {name.lower() for name in about["quasi_identifiers"]}
    known = {name: h for name, h in about.pop("hierarchies", {}).items() if name.lower() in wanted}
    known |= hierarchies(hierarchy) or {}
    made = known if known or job is not None else None
    found = look(Source.file(original), Source.file(release), hierarchies=made, **about)
    screen, rows = Screen.of(ctx), [m.to_dict() for m in found]
    if screen.as_json:
        screen.document({"original": original, "release": release, "loss": rows})
    else:
        show_loss(screen, Path(release).name, rows)


def risk(
    ctx: typer.Context,
    quasi_identifiers: QuasiIdentifiers,
    file: TableFile = None,
    threshold: Annotated[float, typer.Option("--threshold", help="A higher risk is too high.")] = 0.2,
    population: Population = None,
    population_size: Annotated[
        int | None,
        typer.Option("--population-size", help="The data are a sample of so many people.", show_default=False),
    ] = None,
    sampling_fraction: Annotated[
        float | None,
        typer.Option("--sampling-fraction", help="The data are this share of the people.", show_default=False),
    ] = None,
    previous: Annotated[
        str | None,
        typer.Option("--previous", help="An earlier release of the same people.", show_default=False),
    ] = None,
    original: Annotated[
        str | None,
        typer.Option("--original", help="The people themselves, to follow them to --previous.", show_default=False),
    ] = None,
    k: Annotated[
        int | None,
        typer.Option("--k", "-k", min=1, help="The least persons of a group that both tell apart.", show_default=False),
    ] = None,
    hierarchy: Hierarchies = None,
    entity_key: EntityKey = None,
    database: Database = None,
    table: Table = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """How likely is reidentification? By three kinds of attackers, and together with a previous release."""
    source = source_of(file, database, table)
    from duckanon.assess.risk import risk as look
    from duckanon.interfaces.cli.look import show_risk

    found = look(
        source,
        quasi_identifiers=names(quasi_identifiers),
        threshold=threshold,
        population=file_of(population),
        population_size=population_size,
        sampling_fraction=sampling_fraction,
        entity_key=entity_key,
        previous=file_of(previous),
        original=file_of(original),
        hierarchies=hierarchies(hierarchy),
        k=k,
    )
    screen = Screen.of(ctx)
    if screen.as_json:
        screen.document({"source": source.name, **found.to_dict()})
    else:
        show_risk(screen, source.name, found)


def suggest(
    ctx: typer.Context,
    file: TableFile = None,
    max_size: Annotated[int, typer.Option("--max-size", min=0, help="Columns in an identifying set; 0: none.")] = 3,
    threshold: Annotated[float, typer.Option("--threshold", help="A set singles out from this share on.")] = 0.8,
    by: Annotated[str, typer.Option("--by", help="The share: uniqueness, distinction, separation.")] = "uniqueness",
    database: Database = None,
    table: Table = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Which columns name or single out people? A first look, no values."""
    source = source_of(file, database, table)
    from duckanon.assess.suggest import suggest as look
    from duckanon.interfaces.cli.look import show_suggestions

    found = look(source, max_size=max_size, threshold=threshold, by=by).to_pylist()
    screen = Screen.of(ctx)
    if screen.as_json:
        screen.document({"source": source.name, "columns": found})
    else:
        show_suggestions(screen, source.name, found, by, threshold)


def lattice(
    ctx: typer.Context,
    job: Annotated[Path, typer.Argument(metavar="JOB.toml", help="The job file.", show_default=False)],
    pareto: Annotated[bool, typer.Option("--pareto", help="The front of risk and loss only.")] = False,
    metrics: Annotated[
        list[str] | None,
        typer.Option("--metric", "-m", metavar="A,B,...", help="Metrics; the first decides.", show_default="loss"),
    ] = None,
    top: Annotated[int, typer.Option("--top", min=0, help="How many nodes are shown; 0: all.")] = 20,
    most: Annotated[int, typer.Option("--most", min=1, help="A lattice with more nodes is refused.")] = 200_000,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Which levels could a job choose? The best first; publishes nothing."""
    from duckanon.algorithms.full_domain.listing import require_metrics
    from duckanon.assess.lattice import nodes_of
    from duckanon.interfaces.cli.bars import Bars
    from duckanon.interfaces.cli.look_nodes import best_first, show_nodes
    from duckanon.jobs import load_job

    screen, wanted = Screen.of(ctx), require_metrics(names(metrics) or ["loss"])
    loaded = load_job(job)
    with Bars(screen.watched) as bars:
        engine = loaded.open_engine(bars if screen.watched else None)
        try:
            plan = loaded.table().plan(engine)
            found = nodes_of(plan, engine, wanted, most=most)
        finally:
            engine.close()
    rows = best_first(found, wanted[0], pareto)
    anonymous = sum(found.column("anonymous").to_pylist())
    about = {"source": plan.relation.name, "nodes": found.num_rows, "anonymous": anonymous, "pareto": pareto}
    shown = rows[:top] if top else rows
    if screen.as_json:
        screen.document({**about, "metrics": wanted, "best": shown})
    else:
        show_nodes(screen, about, wanted, shown, len(rows))


def compare(
    ctx: typer.Context,
    jobs: Annotated[list[Path], typer.Argument(metavar="JOB.toml", help="Two or more jobs.", show_default=False)],
    by: Annotated[
        list[str] | None,
        typer.Option("--by", metavar="A,B,...", help="Indices, such as coverage, spread.", show_default="coverage"),
    ] = None,
    properties: Annotated[
        list[str] | None,
        typer.Option(
            "--property", "-p", metavar="A,B,...", help="What is compared of each row.", show_default="class_size"
        ),
    ] = None,
    row_id: Annotated[
        str | None, typer.Option("--row-id", help="A unique column of the sources.", show_default=False)
    ] = None,
    picture: Annotated[
        Path | None, typer.Option("--picture", metavar="FILE", help="Draw it: PNG, SVG or PDF.", show_default=False)
    ] = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Which job makes the better release? Publishes nothing."""
    if len(jobs) < 2:
        raise typer.BadParameter("Comparing takes two jobs or more.")
    if picture is not None and picture.suffix.lower() not in PICTURES:
        # Said before the work, not after it.
        raise typer.BadParameter(f"--picture must end in {', '.join(PICTURES)}.")
    from duckanon.assess.comparison.compare import compare as look
    from duckanon.interfaces.cli.bars import Bars
    from duckanon.interfaces.cli.look import show_comparison

    screen = Screen.of(ctx)
    with ExitStack() as stack:
        releases = {}
        for name, job in zip(_labels(jobs), jobs, strict=True):
            with Bars(screen.watched) as bars:
                releases[name] = stack.enter_context(_made(job, bars if screen.watched else None))
        chosen = given(by=names(by) or None, properties=names(properties) or None, row_id=row_id)
        found = look(releases, **chosen)
    drawn = found.plot(picture) if picture is not None else None
    if screen.as_json:
        screen.document({**found.to_dict(), "picture": drawn})
    else:
        show_comparison(screen, found, drawn)


def _made(path: Path, progress: Any) -> Any:
    """Make the release of a job, and leave its target alone."""
    from duckanon.jobs import load_job
    from duckanon.release import pipeline

    job = load_job(path)
    engine = job.open_engine(progress)
    try:
        return pipeline.run(job.table().plan(engine), engine)
    except BaseException:
        engine.close()
        raise


def of_job(path: Path) -> dict[str, Any]:
    """Return what a job says of its release: columns, hierarchies and k."""
    from duckanon.hierarchy import resolve
    from duckanon.jobs import load_job

    job = load_job(path)
    table = job.table()
    engine = job.open_engine()
    try:
        found = {name: resolve(spec, engine, job.folder) for name, spec in table.hierarchies.items()}
    finally:
        engine.close()
    return {
        "quasi_identifiers": table.roles["quasi_identifiers"],
        "sensitive": table.roles.get("sensitive", ()),
        "hierarchies": found,
        **given(k=table.privacy.get("k")),
    }


def _labels(jobs: list[Path]) -> list[str]:
    """Return names that tell the jobs apart: those of the files, or their paths where files are called alike.

    Examples
    --------
    >>> _labels([Path("a.toml"), Path("x/b.toml")]), _labels([Path("x/a.toml"), Path("y/a.toml")])
    (['a', 'b'], ['x/a', 'y/a'])
    """
    short = [job.stem for job in jobs]
    if len(set(short)) == len(jobs):
        return short
    long = [str(job.with_suffix("")) for job in jobs]
    return long if len(set(long)) == len(jobs) else [f"{name}_{i}" for i, name in enumerate(long, 1)]


def file_of(path: str | None) -> Any:
    from duckanon.io.source import Source

    return Source.file(path) if path is not None else None
