"""The commands about job files: init, validate, schema, history."""

from __future__ import annotations

from glob import escape
from pathlib import Path
from typing import Annotated, Any

import typer

from duckanon.interfaces.cli.options import (
    MAKE,
    Database,
    JobFile,
    OneTable,
    Table,
    TableFile,
    source_of,
)
from duckanon.interfaces.cli.screen import Screen, count, shown_path
from duckanon.plan.request import PARAMETERS

jobs = typer.Typer(help="Draft and check job files.", no_args_is_help=True)


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(jobs, name="job", rich_help_panel=MAKE)
    app.command("history", rich_help_panel=MAKE)(history)


@jobs.command("init")
def init(
    ctx: typer.Context,
    file: TableFile = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The job file to write.")] = Path("job.toml"),
    k: Annotated[int, typer.Option("-k", "--k", min=1, help=PARAMETERS["k"].about)] = 5,
    database: Database = None,
    table: Table = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Draft a job file from a table. Roles are guessed, with reasons."""
    from duckanon.errors import ConfigError
    from duckanon.io.paths import covers
    from duckanon.jobs import load_job
    from duckanon.jobs.draft import SCHEMA, draft
    from duckanon.jobs.keys import schema_text

    source = source_of(file, database, table)
    if output.exists() and not force:
        raise ConfigError(f"{output.name!r} exists already: choose another name, or add --force.")
    beside = output.with_name(SCHEMA)
    files = {"file": source.target, "database": [escape(str(source.target))]}
    for pattern in files.get(source.kind, ()):
        if covers(pattern, output) or covers(pattern, beside):
            raise ConfigError("The job file would be one of the files of the table: choose another name with --output.")
    content = draft(source, output, k=k, address=_address(database))
    output.write_text(content, encoding="utf-8")
    beside.write_text(schema_text(), encoding="utf-8")
    load_job(output)
    screen = Screen.of(ctx)
    if screen.as_json:
        screen.document({"job": output, "schema": beside})
        return
    screen.line(f"{shown_path(output)}: a draft. Check every line: the roles are guesses.")
    screen.line(f"{shown_path(beside)}: for your editor.")
    screen.line(f"Next: duckanon run {shown_path(output)} --dry-run")


def _address(database: str | None) -> str | None:
    """Return how the address of a server is written into a job file: never with a password."""
    from urllib.parse import urlsplit

    from duckanon.errors import ConfigError
    from duckanon.io.postgres.session import is_uri

    if database is None or not is_uri(database):
        return database
    try:
        secret = urlsplit(database).password is not None or "password" in urlsplit(database).query
    except ValueError:
        secret = True
    if secret:
        raise ConfigError(
            "A password is not written into a job file: put the address into a variable of the environment, and give "
            "--database '${NAME}'."
        )
    return database


@jobs.command("validate")
def validate(
    ctx: typer.Context,
    job: JobFile,
) -> None:
    """Check a job file, and whether it fits its source. Reads the schema only."""
    from duckanon.jobs import load_job, plan_job

    loaded = load_job(job)
    if loaded.signer is not None:
        loaded.signer.require_usable()
    loaded.require_folders()
    result: list[dict[str, Any]] = []
    for table in loaded.tables:
        planned = plan_job(job, table.name)
        promise = [model.describe(planned.unit) for model in planned.models]
        result.append(
            {
                "table": table.name,
                "promise": promise,
                "published": planned.published_names,
                "target": table.target.sink.name,
            }
        )
    screen = Screen.of(ctx)
    if screen.as_json:
        screen.document({"job": job, "valid": True, "tables": result})
        return
    for one in result:
        columns = count(len(one["published"]), "columns")
        screen.line(f"ok: {one['table']}: {columns} to {one['target']}; {'; '.join(one['promise'])}")


@jobs.command("schema")
def schema(
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
) -> None:
    """Write the JSON Schema of job files, with which editors check them."""
    from duckanon.jobs.keys import schema_text

    if output is None:
        typer.echo(schema_text(), nl=False)
    else:
        output.write_text(schema_text(), encoding="utf-8")


def history(
    ctx: typer.Context,
    job: JobFile,
    table: OneTable = None,
) -> None:
    """Show the past runs of a job: rows, suppression, loss and classes, and why runs failed. Needs no secret."""
    from duckanon.errors import JobError, did_you_mean
    from duckanon.jobs.nights import State, chart, chart_table, failures
    from duckanon.jobs.read import state_folders

    folders = state_folders(job)
    if table is not None and table not in folders:
        raise JobError(f"{job.name}: there is no table {table!r}.{did_you_mean(table, folders)}")
    screen, runs_of = Screen.of(ctx), {}
    wanted = list(folders) if table is None else [table]
    for name in wanted:
        if folders[name].is_dir():
            runs_of[name] = State.open(folders[name]).history()
    if screen.as_json:
        # A row for each run: a few hundred a year.
        screen.document({name: runs_of[name].to_pylist() if name in runs_of else [] for name in wanted})
        return
    for name in wanted:
        runs = runs_of.get(name)
        if runs is None or not runs.num_rows:
            screen.line(f"{name}: no run yet")
            continue
        if screen.rich:
            from rich.text import Text

            screen.out.print(Text(name, style="bold"), chart_table(runs), sep="\n")
        else:
            screen.line(f"{name}:")
            screen.text(chart(runs))
        for line in failures(runs):
            screen.line(f"failed: {line}")
