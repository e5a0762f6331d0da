"""The command that compiles kernels ahead of their first use."""

from __future__ import annotations

from typing import Annotated

import typer

from duckanon.interfaces.cli.screen import Bars, Screen, count, shown_path


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("warmup")(warmup)


def warmup(
    ctx: typer.Context,
    everything: Annotated[bool, typer.Option("--all", help="Also for clustering, permutation and attacks.")] = False,
) -> None:
    """Compile kernels now, for example while an image is built: RUN duckanon warmup.

    They are stored in the user's cache. Where DUCKANON_KERNELS names a folder they are copied there as well, and other
    users for whom it is set read them, if nobody but its owner can write to it.
    """
    from duckanon.jobs.warmup import warm_up

    screen = Screen.of(ctx)
    with Bars(screen.watched, delay=0.2) as bars:
        folder, stored, new = warm_up(everything, bars.listener)
    if screen.as_json:
        screen.document({"folder": str(folder), "kernels": stored, "compiled": new})
    else:
        screen.line(f"{count(stored, 'kernels')} in {shown_path(folder)}, {new} of them compiled now")


__all__ = ["add_to"]
