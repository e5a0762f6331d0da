"""The commands that compare: the nodes of a job's lattice, and the releases of several jobs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from duckanon.interfaces.cli.options import ASSESS, PICTURES, Picture, given, names
from duckanon.interfaces.cli.screen import (
    RIGHT,
    Bars,
    Row,
    Screen,
    count,
    figure,
    headed,
    sections,
    share,
    shown_path,
    whole,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

    from duckanon.assess.comparison.compare import Comparison
    from duckanon.release.results import Lattice


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("lattice", rich_help_panel=ASSESS)(lattice)
    app.command("compare", rich_help_panel=ASSESS)(compare)


def lattice(
    ctx: typer.Context,
    job: Annotated[Path, typer.Argument(metavar="JOB.toml", help="The job file.")],
    pareto: Annotated[bool, typer.Option("--pareto", help="Only the Pareto front of risk and loss.")] = False,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            "-m",
            metavar="A,B,...",
            help="The metrics to show. The first one orders the nodes.",
            show_default="loss",
        ),
    ] = None,
    top: Annotated[int, typer.Option("--top", min=0, help="How many nodes to show; 0 for all.")] = 20,
    most: Annotated[int, typer.Option("--most", min=1, help="Refuse a lattice with more nodes.")] = 200_000,
) -> None:
    """List the levels that a job could choose, the best first. Publishes nothing."""
    from duckanon.algorithms.full_domain.listing import require_metrics
    from duckanon.assess.lattice import nodes_of
    from duckanon.jobs import load_job

    screen, wanted = Screen.of(ctx), require_metrics(names(metrics) or ["loss"])
    loaded = load_job(job)
    with Bars(screen.watched) as bars:
        engine = loaded.open_engine(bars.listener)
        try:
            plan = loaded.table().plan(engine)
            result = nodes_of(plan, engine, wanted, most=most)
        finally:
            engine.close()
    rows = best_first(result, wanted[0], pareto)
    anonymous = sum(row["anonymous"] for row in result)
    about = {"source": plan.relation.name, "nodes": len(result), "anonymous": anonymous, "pareto": pareto}
    shown = rows[:top] if top else rows
    if screen.as_json:
        screen.document({**about, "metrics": wanted, "best": shown})
    else:
        show_nodes(screen, about, wanted, shown, len(rows))


def best_first(result: Lattice, metric: str, pareto: bool) -> list[dict[str, Any]]:
    """Return the anonymous nodes, the best by a metric first, or the Pareto front of risk and metric.

    Where no node is anonymous, all come, those that suppress least first.
    """
    from duckanon.algorithms.full_domain.listing import front
    from duckanon.metrics.base import metrics

    rows: list[dict[str, Any]] = result.to_pylist()
    sign = 1 if metrics.get(metric).direction == "lower" else -1
    scores = [sign * row[metric] if row[metric] is not None else float("inf") for row in rows]
    if pareto:
        return [rows[i] for i in front(rows, scores)]
    good = [i for i, row in enumerate(rows) if row["anonymous"]]
    if good:
        return [rows[i] for i in sorted(good, key=lambda i: (scores[i], i))]
    return [rows[i] for i in sorted(range(len(rows)), key=lambda i: (rows[i]["suppressed"], scores[i], i))]


def show_nodes(screen: Screen, about: Row, metrics: Sequence[str], rows: Sequence[Row], total: int) -> None:
    """Show the first of ``total`` nodes: loss, risk, suppression and levels."""
    text = f"{count(about['nodes'], 'nodes')}, {whole(about['anonymous'])} of them anonymous"
    if not screen.rich:
        screen.line(f"{about['source']}: {text}")
        for row in rows:
            values = [f"{name} {figure(row[name])}" for name in metrics]
            risk = f"risk {'-' if row['risk'] is None else share(row['risk'])}"
            rest = f"{count(row['suppressed'], 'rows')} suppressed, {count(row['classes_published'], 'classes')}"
            screen.line(f"{row['node']} ({_levels(row)}): {', '.join([*values, risk, rest])}")
        return
    from rich.text import Text

    parts: list[tuple[str, RenderableType]] = [(str(about["source"]), Text(text))]
    table = headed(
        *((name.replace("_", " "), RIGHT) for name in metrics),
        ("risk", RIGHT),
        ("suppressed", RIGHT),
        ("classes", RIGHT),
        ("levels", {"overflow": "fold"}),
    )
    for row in rows:
        lost = f"{whole(row['suppressed'])} ({share(row['suppressed_share'])})" if row["suppressed"] else "0"
        risk = "-" if row["risk"] is None else share(row["risk"])
        classes = whole(row["classes_published"])
        levels = Text(_levels(row), style="" if row["anonymous"] else "dim")
        table.add_row(*(figure(row[name]) for name in metrics), risk, lost, classes, levels)
    if total > len(rows):
        more = f"... {count(total - len(rows), 'nodes')} more (--top 0 shows all)"
        table.add_row(*[""] * (len(metrics) + 3), Text(more, style="dim"))
    best = f"Best first by {metrics[0].replace('_', ' ')}"
    title = best if about["anonymous"] else "None is anonymous: those that suppress least"
    if rows:
        parts.append((f"The front of risk and {metrics[0]}" if about["pareto"] else title, table))
    sections(screen, parts)


def _levels(row: Row) -> str:
    """Return the levels of the columns that are generalized.

    Examples
    --------
    >>> _levels({"levels": {"age": 3, "sex": 0, "zip": 1}}), _levels({"levels": {"age": 0}})
    ('age=3, zip=1', 'all as they are')
    """
    return ", ".join(f"{name}={level}" for name, level in row["levels"].items() if level) or "all as they are"


def compare(
    ctx: typer.Context,
    jobs: Annotated[list[Path], typer.Argument(metavar="JOB.toml", help="Two or more jobs.")],
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by",
            metavar="A,B,...",
            help="Indices that compare two releases, such as coverage or spread.",
            show_default="coverage",
        ),
    ] = None,
    properties: Annotated[
        list[str] | None,
        typer.Option(
            "--property",
            "-p",
            metavar="A,B,...",
            help="The properties of rows that are compared.",
            show_default="class_size",
        ),
    ] = None,
    row_id: Annotated[
        str | None, typer.Option("--row-id", help="A column of the sources that identifies rows.")
    ] = None,
    picture: Picture = None,
) -> None:
    """Compare the releases of several jobs, row by row. Publishes nothing."""
    if len(jobs) < 2:
        raise typer.BadParameter("Give at least two jobs.")
    if picture is not None and picture.suffix.lower() not in PICTURES:
        # Before the work, not after it.
        raise typer.BadParameter(f"--picture must end in {', '.join(PICTURES)}.")
    from duckanon.assess.comparison.compare import compare as assess

    screen = Screen.of(ctx)
    with ExitStack() as stack:
        releases = {}
        for name, job in zip(_labels(jobs), jobs, strict=True):
            with Bars(screen.watched) as bars:
                releases[name] = stack.enter_context(_made(job, bars.listener))
        chosen = given(by=names(by) or None, properties=names(properties) or None, row_id=row_id)
        result = assess(releases, **chosen)
    drawn = result.plot(picture) if picture is not None else None
    if screen.as_json:
        screen.document({**result.to_dict(), "picture": drawn})
    else:
        show_comparison(screen, result, drawn)


def _made(path: Path, progress: Any) -> Any:
    """Make the release of a job, without publishing it."""
    from duckanon.jobs import load_job
    from duckanon.release import pipeline

    job = load_job(path)
    engine = job.open_engine(progress)
    try:
        return pipeline.run(job.table().plan(engine), engine)
    except BaseException:
        engine.close()
        raise


def _labels(jobs: list[Path]) -> list[str]:
    """Return distinct names of jobs: the names of their files, or the paths if names are equal.

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


def show_comparison(screen: Screen, result: Comparison, picture: Path | None) -> None:
    """Show risk and loss, whose rows gain and lose, the indices of pairs, and what was lost."""
    from duckanon.report.comparison import comparison_sections, verdict

    tables = result.to_dict()
    about = verdict(tables["standing"])
    if not screen.rich:
        screen.line(f"{about.title}. {about.text}")
        for row in tables["standing"]:
            worse = f"; worse than {', '.join(row['dominated_by'])}" if row["dominated_by"] else ""
            risks = f"average risk {share(row['average_risk'])}, highest {share(row['highest_risk'])}"
            screen.line(f"{row['release']}: {risks}, loss {figure(row['loss'])}{worse}")
        for row in tables["indices"]:
            against = f" against {row['against']}" if row["against"] is not None else ""
            of = f" of {row['property']}" if row["property"] is not None else ""
            screen.line(f"{row['index']}{of}, {row['release']}{against}: {figure(row['value'])} ({row['verdict']})")
        for row in tables["bias"]:
            screen.line(f"risk of {row['release']}: Gini of class sizes {figure(row['gini'])}")
        for row in tables["metrics"]:
            if row["attribute"] is None:
                values = (f"{one['release']} {figure(row[one['release']])}" for one in tables["standing"])
                screen.line(f"{row['metric']}: {', '.join(values)}")
        if picture is not None:
            screen.line(f"picture: {shown_path(picture)}")
        return
    from rich.text import Text

    from duckanon.report.terminal import drawn

    styles = {"good": "bold green", "warn": "bold yellow"}
    words = Text.assemble((f"{about.title}. ", styles[about.kind]), about.text)
    parts: list[tuple[str, RenderableType]] = [(f"{len(tables['standing'])} releases", words)]
    parts += [(section.title, drawn(section)) for section in comparison_sections(tables)]
    if picture is not None:
        parts.append(("Picture", Text(shown_path(picture))))
    sections(screen, parts)
