"""Options that several commands have, and how they are read."""

from __future__ import annotations

import csv
import logging
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from duckanon.interfaces.cli.screen import JSON, visible
from duckanon.plan.request import PARAMETERS

if TYPE_CHECKING:
    from duckanon.io.source import Source


MAKE, VERIFY, ASSESS, MORE = "Make releases", "Check and verify", "Assess tables and releases", "More"
"""Headings under which ``duckanon --help`` lists the commands."""
_LOGGER = "duckanon"


class _Lines(logging.StreamHandler):  # type: ignore[type-arg]
    """The log on standard error."""


class _Plain(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record), but="\n")


def _want_json(context: typer.Context, wanted: bool) -> bool:
    if wanted:
        context.meta[JSON] = True
    return wanted


def _want_log(wanted: bool) -> bool:
    logger = logging.getLogger(_LOGGER)
    if wanted and not is_verbose():
        handler = _Lines(sys.stderr)
        handler.setFormatter(_Plain("%(name)s: %(message)s"))
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG)
    return wanted


def is_verbose() -> bool:
    """Return whether -v was given."""
    return any(isinstance(h, _Lines) for h in logging.getLogger(_LOGGER).handlers)


def quiet() -> None:
    """Undo -v."""
    logger = logging.getLogger(_LOGGER)
    for handler in [h for h in logger.handlers if isinstance(h, _Lines)]:
        logger.removeHandler(handler)
    logger.setLevel(logging.NOTSET)


Json = Annotated[bool, typer.Option("--json", callback=_want_json, help="Write the result as one JSON document.")]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", callback=_want_log, help="Log each SQL statement to standard error.")
]


def names(given: Iterable[str] | None) -> list[str]:
    """Return the names in comma-separated lists. A name that has a comma is put in double quotes.

    Examples
    --------
    >>> names(["age, zip", 'sex,"a,b"'])
    ['age', 'zip', 'sex', 'a,b']
    """
    rows = csv.reader(given or (), skipinitialspace=True)
    return [name.strip() for row in rows for name in row if name.strip()]


def given(**arguments: Any) -> dict[str, Any]:
    """Return the arguments that are not None."""
    return {name: value for name, value in arguments.items() if value is not None}


def source_of(file: str | None, database: str | None, table: str | None) -> Source:
    """Return the source that the options name: a file, or a table of a DuckDB file or a PostgreSQL server."""
    if (file is None) == (database is None):
        raise typer.BadParameter("Give either FILE or --database with --table.")
    if (database is None) != (table is None):
        raise typer.BadParameter("--database and --table go together.")
    from duckanon.io.source import Source

    if file is not None or database is None:
        return Source.file(str(file))
    from duckanon.io.postgres.session import is_uri
    from duckanon.jobs.placeholders import from_environment

    place = from_environment("--database", database)
    return Source.postgres(place, table=table) if is_uri(place) else Source.database(place, table=table)


def numbers(option: str, given: Iterable[str] | None) -> dict[str, int | float] | None:
    """Parse COLUMN=NUMBER.

    Examples
    --------
    >>> numbers("--levels", ["age=2", "zip=1.5"])
    {'age': 2, 'zip': 1.5}
    """
    values: dict[str, int | float] = {}
    for one in given or ():
        column, equals, number = one.partition("=")
        try:
            values[column.strip()] = float(number) if not number.strip().lstrip("+-").isdecimal() else int(number)
        except ValueError:
            equals = ""
        if not equals or not column.strip():
            raise typer.BadParameter(f"{option} needs COLUMN=NUMBER.")
    return values or None


def hierarchies(given: Iterable[str] | None) -> dict[str, str] | None:
    """Parse COLUMN=NAME_OR_FILE."""
    values = {}
    for one in given or ():
        column, equals, name = one.partition("=")
        if not equals or not column.strip() or not name.strip():
            raise typer.BadParameter("--hierarchy needs COLUMN=NAME_OR_FILE.")
        values[column.strip()] = name.strip()
    return values or None


QuasiIdentifiers = Annotated[
    list[str],
    typer.Option(
        "--quasi-identifiers",
        "-q",
        metavar="A,B,...",
        help="The quasi-identifiers, separated by commas. Can be repeated.",
    ),
]
Sensitive = Annotated[
    list[str] | None, typer.Option("--sensitive", "-s", metavar="A,B,...", help="The sensitive columns.")
]
K = Annotated[int | None, typer.Option("-k", "--k", help=PARAMETERS["k"].about)]
L = Annotated[int | None, typer.Option("-l", "--l", help=PARAMETERS["l"].about)]
T = Annotated[float | None, typer.Option("-t", "--t", help=PARAMETERS["t"].about)]
Models = Annotated[list[str] | None, typer.Option("--model", metavar="MODEL", help=PARAMETERS["models"].about)]
TableFile = Annotated[
    str | None,
    typer.Argument(metavar="FILE", help="The table: Parquet, CSV or JSON. A glob or a folder of Parquet files, too."),
]
EntityKey = Annotated[str | None, typer.Option("--entity-key", help=PARAMETERS["entity_key"].about)]
Database = Annotated[
    str | None,
    typer.Option(
        "--database",
        metavar="DB",
        help="In place of FILE: a DuckDB file, or the address of a PostgreSQL server. Write '${NAME}' for a variable "
        "that holds it if it has a password: other users can see command lines.",
    ),
]
Table = Annotated[str | None, typer.Option("--table", help="A table or view of --database.")]
JobFile = Annotated[Path, typer.Argument(metavar="JOB.toml", help="The job file.")]
OneTable = Annotated[str | None, typer.Option("--table", help="The table, where the job has several.")]
Hierarchies = Annotated[
    list[str] | None,
    typer.Option(
        "--hierarchy",
        metavar="COLUMN=NAME",
        help="The hierarchy of a column: a ready-made one, or a file. Can be repeated.",
    ),
]
Population = Annotated[str | None, typer.Option("--population", metavar="FILE", help=PARAMETERS["population"].about)]
Original = Annotated[str, typer.Argument(metavar="ORIGINAL", help="The original table: a file.")]
Released = Annotated[str, typer.Argument(metavar="RELEASE", help="The released table: a file.")]
QuasiIdentifiersOrJob = Annotated[
    list[str] | None,
    typer.Option("--quasi-identifiers", "-q", metavar="A,B,...", help="The quasi-identifiers, without a --job."),
]
OfJob = Annotated[
    Path | None, typer.Option("--job", metavar="JOB.toml", help="Take the columns, hierarchies and k from a job.")
]
Html = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Also write a report as an HTML page.")]
Picture = Annotated[Path | None, typer.Option("--picture", metavar="FILE", help="Draw the result: PNG, SVG or PDF.")]
PICTURES = (".png", ".svg", ".pdf")


def of_job(path: Path) -> dict[str, Any]:
    """Return the columns, hierarchies and k of a job, as keyword arguments."""
    from duckanon.hierarchy import resolve
    from duckanon.jobs import load_job

    job = load_job(path)
    request = job.table().request
    engine = job.open_engine()
    try:
        given_for = request.hierarchies if isinstance(request.hierarchies, Mapping) else {}
        hierarchies = {name: resolve(rule, engine, job.folder) for name, rule in given_for.items()}
    finally:
        engine.close()
    return {
        "quasi_identifiers": request.quasi_identifiers,
        "sensitive": request.sensitive,
        "hierarchies": hierarchies,
        **given(k=request.k),
    }


def about_release(
    job: Path | None,
    quasi_identifiers: Iterable[str] | None,
    sensitive: Iterable[str] | None,
    hierarchy: Iterable[str] | None,
    k: int | None,
) -> dict[str, Any]:
    """Return columns, hierarchies and k of a release, from options and from the job that made it, in that order.

    ``hierarchies`` is None without hierarchies and job, and empty for a job without hierarchies, whose release was made
    with automatic ones.
    """
    if quasi_identifiers is None and job is None:
        raise typer.BadParameter("Give the quasi-identifiers (-q), or a job (--job) that has them.")
    about = of_job(job) if job is not None else {}
    columns = {"quasi_identifiers": names(quasi_identifiers), "sensitive": names(sensitive)}
    about |= {name: value for name, value in columns.items() if value} | given(k=k)
    # A job may also have hierarchies of sensitive columns.
    wanted = {name.lower() for name in about["quasi_identifiers"]}
    by_column = {name: h for name, h in about.get("hierarchies", {}).items() if name.lower() in wanted}
    by_column |= hierarchies(hierarchy) or {}
    return {**about, "hierarchies": by_column if by_column or job is not None else None}


def file_of(path: str | None) -> Any:
    from duckanon.io.source import Source

    return Source.file(path) if path is not None else None
