"""The command ``duckanon attack``: what an adversary learns from a release, on the terminal and as a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from duckanon.interfaces.cli.options import (
    ASSESS,
    Hierarchies,
    Html,
    K,
    OfJob,
    Original,
    QuasiIdentifiersOrJob,
    Released,
    Sensitive,
    about_release,
    file_of,
    given,
    names,
)
from duckanon.interfaces.cli.screen import Screen, sections, shown_path

if TYPE_CHECKING:
    from duckanon.assess.attacks.attack import Attack

_STYLES = {"nothing": "green", "promised": "green", "little": "yellow", "unknown": "yellow", "much": "bold red"}


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("attack", rich_help_panel=ASSESS)(attack)


def attack(
    ctx: typer.Context,
    original: Original,
    release: Released,
    control: Annotated[
        str | None,
        typer.Option("--control", metavar="FILE", help="People who are not in the release, for comparison: a file."),
    ] = None,
    quasi_identifiers: QuasiIdentifiersOrJob = None,
    sensitive: Sensitive = None,
    attacks: Annotated[
        list[str] | None, typer.Option("--attack", "-a", metavar="A,B,...", help="The attacks. By default all.")
    ] = None,
    known: Annotated[
        list[str] | None,
        typer.Option(
            "--known",
            metavar="A,B,...",
            help="The columns that a partially informed adversary knows.",
            show_default="half",
        ),
    ] = None,
    entity_key: Annotated[
        str | None, typer.Option("--entity-key", help="A column of both tables that identifies persons.")
    ] = None,
    k: K = None,
    hierarchy: Hierarchies = None,
    job: OfJob = None,
    sample: Annotated[int, typer.Option("--sample", min=1, help="Attack at most this many people.")] = 5000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The seed with which they are drawn.")] = 0,
    html: Html = None,
) -> None:
    """Attack a release, and show what an adversary learns beyond chance."""
    from duckanon.assess.attacks.attack import attack as assess
    from duckanon.io.source import Source

    result = assess(
        Source.file(original),
        Source.file(release),
        control=file_of(control),
        sample=sample,
        seed=seed,
        **about_release(job, quasi_identifiers, sensitive, hierarchy, k),
        **given(attacks=names(attacks) or None, known=names(known) or None, entity_key=entity_key),
    )
    if html is not None:
        result.write_html(html, title=f"Attacks on {Path(release).name}")
    screen = Screen.of(ctx)
    if screen.as_json:
        page = None if html is None else shown_path(html)
        screen.document(
            {"original": original, "release": release, "control": control, **result.to_dict(), "page": page}
        )
    else:
        _show(screen, Path(release).name, result, html)


def _show(screen: Screen, name: str, result: Attack, html: Path | None) -> None:
    """Show what each attack reached, and the verdict."""
    from duckanon.report.attacks import KNOWS, attack_sections, percent, tried_on, what, with_interval

    about = result.to_dict()
    if not screen.rich:
        screen.line(f"{name}: {about['verdict']}")
        for f in about["findings"]:
            who = f" ({KNOWS[f['adversary']]} known)" if f["adversary"] in KNOWS else ""
            control = f", controls {percent(f['control'])}" if f["control"] is not None else ""
            figures = f"{with_interval(f['success'], f['interval'])}{control}, base rate {percent(f['base_rate'])}"
            screen.line(f"{what(f)}{who}: {figures}; {tried_on(f)}. {f['verdict']}")
        for attacker, why in about["skipped"].items():
            screen.line(f"{attacker}: not tried, {why}")
        if html is not None:
            screen.line(f"report: {shown_path(html)}")
        return
    from rich.text import Text

    from duckanon.report.terminal import drawn

    parts: list[tuple[str, Any]] = [(name, Text(about["verdict"], style=_STYLES[about["level"]]))]
    parts += [(section.title, drawn(section)) for section in attack_sections(about)]
    if html is not None:
        parts.append(("Report", Text(shown_path(html))))
    sections(screen, parts)
