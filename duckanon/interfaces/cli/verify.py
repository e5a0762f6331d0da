"""The commands that verify: check a table, verify an export, and make the keys that sign manifests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from duckanon.interfaces.cli.options import (
    VERIFY,
    Database,
    EntityKey,
    K,
    L,
    Models,
    OneTable,
    QuasiIdentifiers,
    Sensitive,
    T,
    Table,
    TableFile,
    given,
    names,
    source_of,
)
from duckanon.interfaces.cli.screen import Screen, count, parameters, shown_path, whole

if TYPE_CHECKING:
    from duckanon.release.verify import VerifiedExport


_VERIFIED = {"broken": 1, "not checkable": 7}
_UNSIGNED = (
    "the manifest is not signed: somebody who can write to the folder could have replaced files and manifest together "
    "(--key or --job shows whether they did)"
)
_STATES = {"holds": True, "broken": False, "not checkable": None}
keys = typer.Typer(help="Make keys for signing manifests.", no_args_is_help=True)


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("check", rich_help_panel=VERIFY)(check)
    app.command("verify", rich_help_panel=VERIFY)(verify)
    app.add_typer(keys, name="keys", rich_help_panel=VERIFY)


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
) -> None:
    """Check whether a table satisfies privacy models. Exit code 0 if it does, else 1."""
    source = source_of(file, database, table)
    if k is None and l is None and t is None and not models:
        raise typer.BadParameter("Give at least one privacy model: -k, -l, -t or --model.")
    from duckanon.api import check as check_table

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


def show_checks(screen: Screen, name: str, checks: Sequence[Mapping[str, Any]], unit: str) -> None:
    """Show whether a table satisfies the models, with counts."""
    for check in checks:
        model = f"{check['model']} ({parameters(check['parameters'])})"
        broken = f"{whole(check['violating_classes'])} of {count(check['classes'], 'classes')}"
        members = count(check["violating_rows"], unit)
        text = f"holds in all {count(check['classes'], 'classes')}"
        if not check["holds"]:
            how = "are too small" if check["model"] == "k_anonymity" else "break it"
            text = f"does not hold: {broken} {how}, with {members} in them"
        if screen.rich:
            from rich.text import Text

            mark = Text("✓ ", style="bold green") if check["holds"] else Text("✗ ", style="bold red")
            screen.out.print(mark.append(f"{name}: ", style="bold").append(f"{model} {text}.", style="not bold"))
        else:
            screen.line(f"{name}: {model} {text}")


def verify(
    ctx: typer.Context,
    export: Annotated[Path, typer.Argument(metavar="EXPORT", help="A folder of exports, a manifest, or a data file.")],
    database: Annotated[
        str | None,
        typer.Option(
            "--database",
            envvar="DUCKANON_DATABASE",
            help="Of a published table: its DuckDB file, or the address of its server. Set the variable if the "
            "address has a password: other users can see command lines.",
        ),
    ] = None,
    memory: Annotated[
        str | None, typer.Option("--memory", help="The memory limit, such as 1GB. Beyond it, temporary files are used.")
    ] = None,
    job: Annotated[
        Path | None,
        typer.Option(
            "--job", metavar="JOB.toml", help="The job whose roles, models and settings the manifest must have."
        ),
    ] = None,
    table: OneTable = None,
    key: Annotated[
        Path | None,
        typer.Option("--key", metavar="PUBLIC", help="The public key that must verify the manifest's signature."),
    ] = None,
    accept: Annotated[
        list[str] | None,
        typer.Option(
            "--accept",
            metavar="REASON",
            help="Accept that a model cannot be checked for this reason: persons, source, population or groups. "
            "Can be repeated.",
        ),
    ] = None,
) -> None:
    """Verify an export: its files are unchanged, and its privacy models hold.

    Exit code 0 if so, 1 if not, 7 if something cannot be checked.
    """
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
            raise typer.BadParameter("The job signs its manifests: give the public key with --key.")
        wanted["expected"] = loaded.table(table).expected(loaded.name)
    elif table is not None:
        raise typer.BadParameter("--table names a table of a job: it needs --job.")
    result = verify_export(export, **wanted)
    if screen.as_json:
        screen.document(result.to_dict())
    else:
        for one in result.exports:
            _show_verified(screen, one)
        if result.intact and key is None and job is None:
            _verdict(screen, None, _UNSIGNED)
    if not result.ok:
        raise typer.Exit(_VERIFIED[result.state])


def _show_verified(screen: Screen, one: VerifiedExport) -> None:
    for problem in one.problems:
        _verdict(screen, False, problem)
    if one.signed:
        _verdict(screen, True, f"{one.manifest.name}: signed with this key")
    if one.intact:
        _verdict(screen, True, f"{count(len(one.files), 'files')} as published: {', '.join(one.files)}")
    for promise in one.promises:
        verdict = f"{promise.text} ({promise.model}): {promise.state}"
        reason = f"; {promise.reason}" if promise.reason else ""
        hint = f" (accept it with --accept {promise.kind})" if promise.kind is not None and not promise.accepted else ""
        _verdict(
            screen, _STATES[promise.state], f"{verdict}{reason}{hint or (', accepted' if promise.accepted else '')}"
        )


def _verdict(screen: Screen, good: bool | None, text: str) -> None:
    """Show one line: good, bad, or neither if it could not be checked."""
    if not screen.rich:
        screen.line(f"{'ok' if good else 'unknown' if good is None else 'not ok'}: {text}")
        return
    from rich.text import Text

    marks = {True: ("✓ ", "bold green"), False: ("✗ ", "bold red"), None: ("? ", "bold yellow")}
    mark, style = marks[good]
    screen.out.print(Text(mark, style=style).append(text, style="default not bold"))


@keys.command("new")
def new_key(
    ctx: typer.Context,
    file: Annotated[
        Path, typer.Argument(metavar="KEY", help="The private key to write; the public one is KEY.pub.")
    ] = Path("duckanon.key"),
) -> None:
    """Make a private key that signs manifests, and the public key that verifies them."""
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
