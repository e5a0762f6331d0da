"""The command ``anonymize``: one release from one table, without a job file."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from duckanon.interfaces.cli import options as shared
from duckanon.interfaces.cli.assess import show_roles
from duckanon.interfaces.cli.options import MAKE, Database, Table, TableFile, names, numbers, source_of
from duckanon.interfaces.cli.run import DryRun, show_release
from duckanon.interfaces.cli.screen import Bars, Screen, shown_path
from duckanon.plan.request import PARAMETERS, Parameter

if TYPE_CHECKING:
    from duckanon.io.sinks import Sink
    from duckanon.io.source import Source

_SAME_AS_ELSEWHERE: dict[str, Any] = {
    "sensitive": shared.Sensitive,
    "entity_key": shared.EntityKey,
    "hierarchies": Annotated[
        list[str] | None,
        typer.Option(
            "--hierarchy",
            metavar="COLUMN=NAME",
            help="The hierarchy of a column: a ready-made one, a file, or auto for the ready-made one that fits. "
            "'--hierarchy auto' does that for all columns. Can be repeated.",
        ),
    ],
    "k": shared.K,
    "l": shared.L,
    "t": shared.T,
    "models": shared.Models,
    "population": shared.Population,
}
"""Options that other commands have under the same name."""
_PANELS = {
    **dict.fromkeys(
        ("quasi_identifiers", "sensitive", "identifiers", "insensitive", "within", "unlisted", "entity_key"), "Columns"
    ),
    **dict.fromkeys(("k", "l", "t", "models", "population", "suppression_limit"), "Privacy"),
}
_NAMES = {"output": ("--form",), "quasi_identifiers": ("--quasi-identifiers", "-q")}


def _kind(parameter: Parameter) -> tuple[Any, str | None]:
    """Return the type of an option, and what stands for its value in the help."""
    if parameter.kind == "texts":
        return list[str] | None, "A,B,..."
    if parameter.kind == "mapping":
        return list[str] | None, "COLUMN=NUMBER"
    if parameter.kind == "text or mapping":
        return list[str] | None, "FORM or COLUMN=FORM"
    if parameter.kind == "boolean":
        return bool | None, None
    plain: dict[str, Any] = {"integer": int, "number": float}
    return plain.get(parameter.kind, str) | None, "|".join(parameter.choices) or None


def _option(parameter: Parameter) -> Any:
    """Return the annotation of the option of a parameter, under its heading in the help."""
    kind, option = get_args(_bare(parameter))
    option = copy(option)
    option.rich_help_panel = _PANELS.get(parameter.name, "Recoding")
    return Annotated[kind, option]


def _bare(parameter: Parameter) -> Any:
    if parameter.name in _SAME_AS_ELSEWHERE:
        return _SAME_AS_ELSEWHERE[parameter.name]
    kind, metavar = _kind(parameter)
    about = parameter.about
    if parameter.kind == "text or mapping":
        about += f" One of {', '.join(parameter.choices)}; COLUMN=FORM for one column. Can be repeated."
    elif parameter.kind == "mapping":
        about += " Can be repeated."
    flags = _NAMES.get(parameter.name, ("--" + parameter.name.replace("_", "-"),))
    return Annotated[kind, typer.Option(*flags, metavar=metavar, help=about, show_default=False)]


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    signature = inspect.signature(anonymize, eval_str=True)
    own = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    asked = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_option(parameter))
        for name, parameter in PARAMETERS.items()
        if name != "data"
    ]
    anonymize.__signature__ = signature.replace(parameters=[*own, *asked])  # type: ignore[attr-defined]
    app.command("anonymize", rich_help_panel=MAKE)(anonymize)


def anonymize(
    ctx: typer.Context,
    file: TableFile = None,
    *,
    target: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="OUT", help="The release: a .parquet or .csv file.")
    ] = None,
    suggest: Annotated[
        bool, typer.Option("--suggest", help="Guess the roles that are not given, and show the reasons.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing release.")] = False,
    dry_run: DryRun = False,
    database: Database = None,
    table: Table = None,
    **options: Any,
) -> None:
    """Anonymize a table: make a release, verify it, and publish it with reports and a manifest.

    duckanon anonymize people.parquet -q age,zip -s disease -k 5 -o out.parquet

    Columns without a role are left out of the release.
    """
    source, screen = source_of(file, database, table), Screen.of(ctx)
    sink = None if dry_run and target is None else _sink(target, source, force)
    request = _request(options)
    roles: list[dict[str, Any]] = []
    if suggest:
        roles = _suggested(source, request)
        if not screen.as_json:
            show_roles(screen, roles)
    if not request.get("quasi_identifiers") and not request.get("within"):
        raise typer.BadParameter("Name the quasi-identifiers with -q, or let --suggest guess them.")
    summary, written = _made(screen, source, request, None if dry_run else sink)
    if screen.as_json:
        screen.document({**({"roles": roles} if suggest else {}), "summary": summary, "written": written})
    else:
        show_release(screen, summary, written)


def _made(
    screen: Screen, source: Source, request: Mapping[str, Any], sink: Sink | None
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Make the release, and publish it where there is a sink; return its summary and what was written."""
    from contextlib import ExitStack

    from duckanon.api import anonymize as make
    from duckanon.io.sinks import made_folder, os_errors

    with ExitStack() as stack:
        bars = stack.enter_context(Bars(screen.watched))
        stage = None
        if sink is not None:
            stack.enter_context(os_errors(sink.paths[0]))
            stage = sink.stage
            if stage is not None:
                stack.enter_context(made_folder(stage))
            sink.require_writable()
        release = stack.enter_context(make(source, progress=bars.listener, stage=stage, **request))
        written: Mapping[str, Any] = {}
        if sink is not None:
            with release.engine.progress.step("write", release.rows_published):
                reports = {kind: release.report(kind) for kind in ("json", "md", "html")}
                written = sink.publish(release, reports=reports, run={})
        return release.summary(), written


def _sink(target: Path | None, source: Source, force: bool) -> Sink:
    """Return the sink of a path; it must not exist unless it may be replaced, nor be among the files of the source."""
    from glob import escape

    from duckanon.errors import ConfigError
    from duckanon.io.sinks import CsvFile, ParquetFile, require_apart

    if target is None:
        raise typer.BadParameter("Name the release with -o, or try it with --dry-run.")
    if target.suffix.lower() not in (".parquet", ".csv"):
        raise ConfigError(f"The release must end in .parquet or .csv. Got {target.name!r}.")
    sink: Sink = CsvFile(target) if target.suffix.lower() == ".csv" else ParquetFile(target)
    if source.kind in ("file", "database"):
        require_apart(sink, source.target if source.kind == "file" else [escape(str(source.target))])
    if sink.exists() and not force:
        raise ConfigError(f"{shown_path(target)!r} exists already: choose another name, or add --force.")
    return sink


def _request(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that were given, as ``anonymize`` takes them."""
    request: dict[str, Any] = {}
    for name, parameter in PARAMETERS.items():
        value = options.get(name)
        if value is None or value == []:
            continue
        if name == "hierarchies":
            value = _hierarchies(value)
        elif name == "population":
            value = shared.file_of(value)
        elif parameter.kind == "texts":
            value = names(value)
        elif parameter.kind == "mapping":
            value = numbers("--" + name.replace("_", "-"), value)
        elif parameter.kind == "text or mapping":
            value = _forms(value)
        request[name] = value
    return {"quasi_identifiers": [], **request}


def _hierarchies(given: Sequence[str]) -> Any:
    """Return the hierarchy of each column; ``auto`` alone stands for the ready-made ones that fit, whatever column."""
    from duckanon.hierarchy import AUTO

    return AUTO if list(given) == [AUTO] else shared.hierarchies(given)


def _forms(given: Sequence[str]) -> str | dict[str, str]:
    """Return one form for all columns, or a form for each that is named."""
    if len(given) == 1 and "=" not in given[0]:
        return given[0]
    pairs = [one.partition("=") for one in given]
    if not all(column.strip() and equals and form.strip() for column, equals, form in pairs):
        raise typer.BadParameter("--form needs one FORM, or COLUMN=FORM for each column.")
    return {column.strip(): form.strip() for column, _, form in pairs}


def _suggested(source: Source, request: dict[str, Any]) -> list[dict[str, Any]]:
    """Fill in the roles that were not given, and return the columns with what became of each."""
    from duckanon.assess.suggest import propose

    lists = ("quasi_identifiers", "sensitive", "identifiers", "insensitive", "within")
    given = {name: request[name] for name in lists if name in request}
    roles, rows = propose(source, given=given, entity_key=request.get("entity_key"))
    request.update(roles)
    return rows


__all__ = ["add_to", "anonymize"]
