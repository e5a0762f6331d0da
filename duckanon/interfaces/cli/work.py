"""The commands on data: run, plan, check, demo, verify, list."""

from __future__ import annotations

import shutil
import sys
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from duckanon.interfaces.cli.jobs import JobFile, OneTable
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
    names,
    source_of,
)
from duckanon.interfaces.cli.screen import Screen, count, shown_path

if TYPE_CHECKING:
    from duckanon.release.verify import VerifiedExport


class Kind(StrEnum):
    """What can be listed."""

    MODELS = "models"
    ALGORITHMS = "algorithms"
    METRICS = "metrics"
    HIERARCHIES = "hierarchies"


class Log(StrEnum):
    """How the steps of a run are told."""

    HUMAN = "human"
    JSON = "json"


class Recoding(StrEnum):
    """Whether a run keeps the recoding of the one before."""

    FRESH = "fresh"
    FROZEN = "frozen"
    REFRESH = "refresh"


DryRun = Annotated[bool, typer.Option("--dry-run", help="Do everything but write.")]


def add_to(app: typer.Typer) -> None:
    """Put the commands on the command line."""
    app.command("run")(run)
    app.command("plan")(plan)
    app.command("check")(check)
    app.command("demo")(demo)
    app.command("verify")(verify)
    app.command("list")(list_)
    app.add_typer(keys, name="keys")


keys = typer.Typer(help="Keys that sign manifests.", no_args_is_help=True)


@keys.command("new")
def new_key(
    ctx: typer.Context,
    file: Annotated[
        Path, typer.Argument(metavar="KEY", help="The private key to write; the public one is KEY.pub.")
    ] = Path("duckanon.key"),
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Make a key that signs manifests, and the public key that verifies them."""
    from duckanon.io.sinks import new_keys

    private, public = new_keys(file)
    screen = Screen.of(ctx)
    if screen.as_json:
        screen.document({"private": private, "public": public})
        return
    screen.line(f"{shown_path(private)}: the private key. Keep it where no export goes: who has it signs as you.")
    screen.line(
        f"{shown_path(public)}: the public key, for whoever verifies: duckanon verify EXPORT --key {public.name}"
    )


def run(
    ctx: typer.Context,
    job: JobFile,
    dry_run: DryRun = False,
    day: Annotated[
        datetime | None,
        typer.Option("--date", formats=["%Y-%m-%d"], help="What {date} in paths means.", show_default="today, UTC"),
    ] = None,
    recoding: Annotated[
        Recoding | None, typer.Option("--recoding", help="In place of what the job says.", show_default=False)
    ] = None,
    accept_drift: Annotated[
        bool, typer.Option("--accept-drift", help="Publish although the source changed since the last run.")
    ] = False,
    log: Annotated[
        Log | None, typer.Option("--log", help="Tell the steps on standard error.", show_default=False)
    ] = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Run a job: anonymize, prove, publish with report and manifest."""
    more: dict[str, Any] = {"day": day.date() if day else None, "recoding": str(recoding) if recoding else None}
    _run(Screen.of(ctx), job, log=log, dry_run=dry_run, accept_drift=accept_drift, **more)


def _run(
    screen: Screen, job: Path, *, log: Log | None = None, more: dict[str, Any] | None = None, **options: Any
) -> None:
    from duckanon.interfaces.cli.bars import Bars
    from duckanon.interfaces.cli.show import show_name, show_release
    from duckanon.jobs import run_job

    with Bars(screen.watched and log is None) as bars:
        listener: Any = bars if screen.watched else None
        if log is not None:
            from duckanon.jobs.monitoring import LoggedProgress, configure

            configure("json" if log is Log.JSON else "human", sys.stderr)
            listener = LoggedProgress()
        # Nobody else's work is done in this process: it need not wait for what hangs.
        result = run_job(job, progress=listener, end_process=True, **options)
    told = [
        {"table": t.name, "summary": t.summary, "written": t.written, "warnings": t.warnings} for t in result.tables
    ]
    if screen.as_json:
        only = {k: told[0][k] for k in ("summary", "written", "warnings")} if len(told) == 1 else {"tables": told}
        screen.document({**(more or {}), "run": result.run, "peak_memory": result.peak_memory, **only})
        return
    for one in result.tables:
        if len(told) > 1:
            show_name(screen, one.name)
        show_release(screen, one.summary, one.written, one.warnings)


def plan(
    ctx: typer.Context,
    job: JobFile,
    table: OneTable = None,
    sql: Annotated[
        bool, typer.Option("--sql", help="Also do a dry run, and show the statements that read rows.")
    ] = False,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Show what a job would do, step by step. Reads only the names and types of columns, unless --sql is given."""
    from duckanon.interfaces.cli.bars import Bars
    from duckanon.interfaces.cli.show import show_plan
    from duckanon.jobs import job_statements, plan_job

    screen, planned = Screen.of(ctx), plan_job(job, table)
    ran = []
    if sql:
        with Bars(screen.watched) as bars:
            ran = job_statements(job, table, bars if screen.watched else None)
    if screen.as_json:
        screen.document({**planned.to_dict(), **({"statements": [one.to_dict() for one in ran]} if sql else {})})
    else:
        show_plan(screen, planned.explain(), [one.pretty() for one in ran])


def check(
    ctx: typer.Context,
    quasi_identifiers: QuasiIdentifiers,
    k: K = None,
    file: TableFile = None,
    sensitive: Sensitive = None,
    l: L = None,  # noqa: E741 - the field's own name
    t: T = None,
    models: Models = None,
    entity_key: EntityKey = None,
    database: Database = None,
    table: Table = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Does this table keep the promise? Exit code 0 or 1."""
    source = source_of(file, database, table)
    if k is None and l is None and t is None and not models:
        raise typer.BadParameter("Name what is to hold: -k, -l, -t or --model.")
    from duckanon.api import check as check_table
    from duckanon.interfaces.cli.show import show_checks

    results = check_table(
        source,
        quasi_identifiers=names(quasi_identifiers),
        sensitive=names(sensitive),
        entity_key=entity_key,
        **given(k=k, l=l, t=t, models=models),
    )
    screen, holds = Screen.of(ctx), all(r.holds for r in results)
    unit = "rows" if entity_key is None else "persons"
    checks = [{**r.to_dict(), "unit": unit} for r in results]
    if screen.as_json:
        screen.document({"source": source.name, "unit": unit, "holds": holds, "checks": checks})
    else:
        show_checks(screen, source.name, checks, unit)
    if not holds:
        raise typer.Exit(1)


def demo(
    ctx: typer.Context,
    rows: Annotated[int, typer.Option("--rows", min=1, help="Number of hospital stays.")] = 20_000,
    folder: Annotated[Path, typer.Option("--folder", help="Where to put everything.")] = Path("demo"),
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Make a table of invented hospital stays and anonymize it."""
    from duckanon.engine.private_files import data_folder
    from duckanon.interfaces.cli.bars import Bars
    from duckanon.io.disk import replacing
    from duckanon.progress import Progress
    from duckanon.testing.hospital import write_hospital

    screen = Screen.of(ctx)
    folder.mkdir(parents=True, exist_ok=True)
    data, job = folder / "hospital.parquet", folder / "hospital.toml"
    example = data_folder("examples") / "hospital.toml"
    # Replaced when complete: another demo may be at work in the same folder.
    with replacing(data) as staged, Bars(screen.watched) as bars, Progress(bars).step("make the table"):
        write_hospital(staged, rows)
    # A job that somebody has changed since is theirs: it is run as it is.
    kept = job.exists() and job.read_bytes() != example.read_bytes()
    if not kept:
        with replacing(job) as staged:
            shutil.copyfile(example, staged)
    if not screen.as_json:
        _tell_demo(screen, data, job, rows, kept)
    # Another number of rows than last time is what was asked for.
    _run(screen, job, more={"data": data, "job": job, "job_changed": kept}, accept_drift=True)
    if screen.rich:
        _tell_next(screen, data, job)


def _tell_demo(screen: Screen, data: Path, job: Path, rows: int, kept: bool) -> None:
    made = f"{shown_path(data)}: {count(rows, 'rows')} of invented hospital stays"
    ran = f"{shown_path(job)}: the job{', with your changes' if kept else ''}"
    if not screen.rich:
        screen.line(f"data: {made}")
        screen.line(f"job: {ran}")
        return
    from rich.text import Text

    from duckanon.interfaces.cli.show import sections

    sections(screen, [("Made", Text(f"{made}\n{ran}"))])


def _tell_next(screen: Screen, data: Path, job: Path) -> None:
    from rich.text import Text

    from duckanon.interfaces.cli.show import grid, sections

    release = job.parent / "release"
    table = grid({"overflow": "fold", "style": "green"})
    for command in (
        f"duckanon plan {shown_path(job)}",
        f"duckanon verify {shown_path(release)} --job {shown_path(job)} --accept persons",
        f"duckanon check {shown_path(data)} -q sex,zip,birth_date -k 5",
        f"duckanon risk {shown_path(data)} -q sex,zip,birth_date",
        f"duckanon sql -c \"FROM '{shown_path(release / 'hospital.parquet')}' LIMIT 10\"",
    ):
        table.add_row(Text(command))
    sections(screen, [(f"Next: change k in {shown_path(job)} and run it again, or try", table)])


def verify(
    ctx: typer.Context,
    export: Annotated[
        Path,
        typer.Argument(metavar="EXPORT", help="A folder of exports, a manifest, or a data file.", show_default=False),
    ],
    database: Annotated[
        str | None,
        typer.Option(
            "--database",
            envvar="DUCKANON_DATABASE",
            help="Of a published table: its DuckDB file, or the address of its server. An address with a password "
            "belongs into the variable: other users of the machine can see what stands on a command line.",
            show_default=False,
        ),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option("--memory", help="Most memory, such as 1GB; what needs more spills.", show_default=False),
    ] = None,
    job: Annotated[
        Path | None,
        typer.Option(
            "--job", metavar="JOB.toml", help="The job that the manifest must agree with.", show_default=False
        ),
    ] = None,
    table: OneTable = None,
    key: Annotated[
        Path | None,
        typer.Option(
            "--key", metavar="PUBLIC", help="The public key that the manifest must be signed with.", show_default=False
        ),
    ] = None,
    accept: Annotated[
        list[str] | None,
        typer.Option(
            "--accept",
            metavar="REASON",
            help="A promise that cannot be checked for this reason is no failure: persons, source, population, groups. "
            "Can be given several times.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Is an export as published, and does it keep its promise? Exit code 0, 1, or 7 for what cannot be checked."""
    from duckanon.release.verify import verify_export

    screen = Screen.of(ctx)
    wanted: dict[str, Any] = {"database": database, "memory": memory, "accept": accept or ()}
    if key is not None:
        from duckanon.io.sinks import PublicKey

        wanted["key"] = PublicKey.read(key)
    if job is not None:
        from duckanon.jobs import load_job

        loaded = load_job(job)
        if loaded.signer is not None and key is None:
            raise typer.BadParameter("The job signs its manifests: give --key with the public key, too.")
        wanted["expected"] = loaded.table(table).expected(loaded.name)
    elif table is not None:
        raise typer.BadParameter("--table names a table of a job: give --job, too.")
    found = verify_export(export, **wanted)
    if screen.as_json:
        screen.document(found.to_dict())
    else:
        for one in found.exports:
            _show_verified(screen, one)
        if found.intact and key is None and job is None:
            _verdict(screen, None, _NOBODY_VOUCHES)
    if not found.ok:
        raise typer.Exit(_VERIFIED[found.state])


_VERIFIED = {"broken": 1, "not checkable": 7}
_NOBODY_VOUCHES = (
    "nobody vouches for the manifest: whoever can write to the folder could have rewritten files and manifest together "
    "(--key or --job shows whether they did)"
)
_STATES = {"holds": True, "broken": False, "not checkable": None}


def _show_verified(screen: Screen, one: VerifiedExport) -> None:
    for problem in one.problems:
        _verdict(screen, False, problem)
    if one.signed:
        _verdict(screen, True, f"{one.manifest.name}: signed with this key")
    if one.intact:
        _verdict(screen, True, f"{count(len(one.files), 'files')} as published: {', '.join(one.files)}")
    for promise in one.promises:
        told = f"{promise.text} ({promise.model}): {promise.state}"
        reason = f"; {promise.reason}" if promise.reason else ""
        hint = f" (accept it with --accept {promise.kind})" if promise.kind is not None and not promise.accepted else ""
        _verdict(screen, _STATES[promise.state], f"{told}{reason}{hint or (', accepted' if promise.accepted else '')}")


def _verdict(screen: Screen, good: bool | None, text: str) -> None:
    """Show one line: good, bad, or neither where nothing could be said."""
    if not screen.rich:
        screen.line(f"{'ok' if good else 'unknown' if good is None else 'not ok'}: {text}")
        return
    from rich.text import Text

    marks = {True: ("✓ ", "bold green"), False: ("✗ ", "bold red"), None: ("? ", "bold yellow")}
    mark, style = marks[good]
    screen.out.print(Text(mark, style=style).append(text, style="default not bold"))


def list_(
    ctx: typer.Context,
    kind: Annotated[
        Kind | None, typer.Argument(help="What to list; everything if left out.", show_default=False)
    ] = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """List models, algorithms, metrics and ready-made hierarchies."""
    from duckanon.interfaces.cli.show import show_list

    screen = Screen.of(ctx)
    found = {str(one): _listed(one) for one in ([kind] if kind is not None else Kind)}
    if screen.as_json:
        screen.document(found if kind is None else found[str(kind)])
        return
    for name, rows in found.items():
        if kind is None and not screen.rich:
            rows = [{"kind": name, **row} for row in rows]
        show_list(screen, name, rows)


def _listed(kind: Kind) -> list[dict[str, str]]:
    if kind is Kind.HIERARCHIES:
        from duckanon.interfaces.cli.hierarchies import listed

        return listed()
    if kind is Kind.METRICS:
        from duckanon.metrics.base import metrics

        rows = []
        for name in metrics:
            metric = metrics.get(name)
            low, high = metric.bounds
            bounds = f"{low:g} to {high:g}" if high is not None else f"{low:g} or more"
            better = f"{metric.direction} is better"
            rows.append({"name": name, "range": bounds, "direction": better, "summary": metric.summary})
        return rows
    from duckanon.algorithms.base import algorithms
    from duckanon.models.base import models

    if kind is Kind.MODELS:
        return [{"name": name, "summary": models.get(name).summary} for name in models]
    return [{"name": name, "summary": algorithms.get(name).summary} for name in algorithms]
