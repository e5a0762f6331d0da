"""The command ``study``: reruns the experiments of a paper, and writes the results to a folder."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from duckanon.interfaces.cli.options import MORE, names
from duckanon.interfaces.cli.screen import Bars, Screen, count, shown_path

if TYPE_CHECKING:
    from duckanon.progress import Event
    from duckanon.studies import Outcome

_EVERY = 30.0
"""Seconds between two lines of progress that are not on a terminal."""


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("study", rich_help_panel=MORE)(study)


def study(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The study, or 'list' to list them.")],
    config: Annotated[
        Path | None, typer.Option("--config", help="A TOML file with settings and tables of your own.")
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="With the full settings of the paper: takes hours instead of minutes.")
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data", help="The folder with the tables of the papers.", show_default="DUCKANON_DATA, else synthetic"
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The folder for the results.", show_default="study-NAME")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="LABEL=A,B,...", help="Only tasks with these labels.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", "-w", min=1, help="How many processes to use.", show_default="all cores")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what is done and what is left.")] = False,
) -> None:
    """Rerun the experiments of a paper. A run that was stopped is continued."""
    screen = Screen.of(ctx)
    if name == "list":
        _list(screen)
        return
    from duckanon.engine.process import cores
    from duckanon.studies import run_study

    with Bars(screen.watched) as bars:
        result = run_study(
            name,
            config=config,
            full=full,
            data=data,
            out=out,
            only=_only(only),
            workers=workers or cores(),
            dry_run=dry_run,
            progress=bars.listener or _ProgressLines(screen),
        )
    if screen.as_json:
        screen.document(result.to_dict())
    else:
        _show(screen, result)
    if result.failed and not dry_run:
        raise typer.Exit(1)


class _ProgressLines:
    """Progress as a line from time to time, for logs."""

    def __init__(self, screen: Screen) -> None:
        self._silent = screen.as_json
        self._last = time.monotonic()

    def __call__(self, event: Event) -> None:
        now = time.monotonic()
        if self._silent or event.finished or now - self._last < _EVERY:
            return
        self._last = now
        sys.stderr.write(f"{event.done:.0f} of {event.total or 0:.0f} tasks, {event.elapsed:.0f} s\n")
        sys.stderr.flush()


def _list(screen: Screen) -> None:
    from duckanon.studies import get_study
    from duckanon.studies import names as every

    result: list[dict[str, Any]] = [
        {"name": s.name, "title": s.title, "paper": s.paper} for s in (get_study(n) for n in every())
    ]
    if screen.as_json:
        screen.document({"studies": result})
        return
    for one in result:
        screen.line(one["name"])
        screen.line(f"    {one['title']}")
        screen.line(f"    {one['paper']}")


def _only(given: list[str] | None) -> dict[str, list[str]]:
    result: dict[str, list[str]] = {}
    for one in given or ():
        label, equals, values = one.partition("=")
        if not equals or not names([values]):
            raise typer.BadParameter("--only needs LABEL=VALUE,VALUE,...")
        result.setdefault(label.strip(), []).extend(names([values]))
    return result


def _show(screen: Screen, result: Outcome) -> None:
    from duckanon.report.text import duration

    ran = f", {count(result.ran)} of them now" if result.ran else ""
    screen.line(f"{result.study}: {result.done} of {count(result.tasks, 'tasks')} done{ran}")
    for what in result.left_out:
        screen.line(what)
    if result.left:
        screen.line(f"left: about {duration(result.left)} of one core")
    for why in result.errors:
        screen.line(f"failed: {why}")
    if result.page is not None:
        screen.line(f"page: {shown_path(result.page)}")
        screen.line(f"results: {shown_path(result.folder / 'results.duckdb')}")
