"""The commands that assess a table and publish nothing: privacy, measure, risk, suggest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from duckanon.interfaces.cli.options import (
    ASSESS,
    Database,
    EntityKey,
    Hierarchies,
    K,
    L,
    Models,
    OfJob,
    Original,
    Population,
    QuasiIdentifiers,
    QuasiIdentifiersOrJob,
    Released,
    Sensitive,
    T,
    Table,
    TableFile,
    about_release,
    file_of,
    given,
    hierarchies,
    names,
    source_of,
)
from duckanon.interfaces.cli.screen import RIGHT, WHOLE, Row, Screen, count, figure, grid, headed, sections, share

if TYPE_CHECKING:
    from rich.console import RenderableType

    from duckanon.assess.composition import Composition
    from duckanon.assess.risk import Attacker, Risk


LARGER_IS_STRICTER = ("k", "l", "p", "minimum")
"""Parameters that are stricter the larger they are. All others are stricter the smaller they are."""
_SETS = 12


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("suggest", rich_help_panel=ASSESS)(suggest)
    app.command("privacy", rich_help_panel=ASSESS)(privacy)
    app.command("measure", rich_help_panel=ASSESS)(measure)
    app.command("risk", rich_help_panel=ASSESS)(risk)


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
) -> None:
    """Show what a table satisfies: of each model, the strictest parameter that holds."""
    source = source_of(file, database, table)
    from duckanon.assess.privacy import privacy as assess

    wanted = given(k=k, l=l, t=t, models=models, entity_key=entity_key)
    result = assess(
        source,
        quasi_identifiers=names(quasi_identifiers),
        sensitive=names(sensitive),
        **wanted,
        **given(hierarchies=hierarchies(hierarchy), population=file_of(population)),
    ).to_pylist()
    screen = Screen.of(ctx)
    if screen.as_json:
        screen.document({"source": source.name, "privacy": result})
    else:
        show_privacy(screen, source.name, result)


def show_privacy(screen: Screen, name: str, rows: Sequence[Row]) -> None:
    """Show the strictest parameter of each model that holds, and what violates the thresholds given."""
    first = rows[0] if rows else None
    sizes = ""
    if first is not None:
        spread = f"{count(first['smallest'])} to {count(first['largest'], first['unit'])}"
        sizes = f"{count(first['classes'], 'classes')}, of {spread}; {count(first['singletons'])} alone in their class"
    if not screen.rich:
        if sizes:
            screen.line(f"{name}: {sizes}")
        for row in rows:
            verdict = _verdict(row)
            screen.line(f"{_model(row)}: {row['parameter']} = {_level(row)}{f'; {verdict}' if verdict else ''}")
        return
    from rich.text import Text

    asked = any(_verdict(row) for row in rows)
    more: list[tuple[str, Mapping[str, Any]]] = [("asked for", {})] if asked else []
    table = headed(("model", WHOLE), ("column", {"overflow": "fold"}), ("best that holds", WHOLE), *more)
    for row in rows:
        cells = [Text(row["model"]), Text(row["attribute"] or ""), Text(f"{row['parameter']} = {_level(row)}")]
        table.add_row(*cells, *([_mark(row)] if asked else []))
    sections(screen, [(name, Text(sizes)), ("Satisfies", table)])


def _mark(row: Row) -> RenderableType:
    from rich.text import Text

    if row.get("holds") is None:
        return Text("")
    wanted = f" {row['parameter']} = {_number(row['threshold'])}" if row.get("threshold") is not None else ""
    if row["holds"]:
        return Text("✓", style="bold green").append(wanted, style="default not bold")
    broken = f" ({count(row['violating_rows'], row['unit'])})"
    return Text("✗", style="bold red").append(wanted + broken, style="default not bold")


def _model(row: Row) -> str:
    return row["model"] if row["attribute"] is None else f"{row['model']} of {row['attribute']}"


def _level(row: Row) -> str:
    return "none" if row["value"] is None else bound(row["parameter"], row["value"])


def bound(parameter: str, value: float) -> str:
    """Return the strictest parameter that holds, in few digits and rounded so that it still holds.

    Examples
    --------
    >>> bound("t", 0.33333), bound("l", 2.7182), bound("alpha", 0.25), bound("k", 5.0)
    ('0.334', '2.71', '0.25', '5')
    """
    if not isfinite(value) or value == 0 or value == round(value):
        return _number(value)
    # Rounding errors are removed first: 0.1 + 0.2 is 0.3.
    exact = Decimal(f"{value:.13g}")
    weaker = ROUND_FLOOR if parameter in LARGER_IS_STRICTER else ROUND_CEILING
    return _number(float(exact.quantize(Decimal(1).scaleb(exact.adjusted() - 2), rounding=weaker)))


def _number(value: float) -> str:
    """Format a parameter: whole numbers without decimals, small numbers not as zero.

    Examples
    --------
    >>> _number(5.0), _number(0.25), _number(0.0), _number(0.00012), _number(float("inf"))
    ('5', '0.25', '0', '0.00012', 'inf')
    """
    return f"{value:.3g}" if abs(value) < 1000 else figure(value)


def _verdict(row: Row) -> str:
    """Return whether a model holds with the threshold that was given, if one was."""
    if row.get("holds") is None:
        return ""
    wanted = f" {row['parameter']} = {_number(row['threshold'])}" if row.get("threshold") is not None else ""
    if row["holds"]:
        return f"holds{wanted}"
    broken = f"{count(row['violating_classes'], 'classes')}, {count(row['violating_rows'], row['unit'])}"
    return f"breaks{wanted}: {broken}"


def measure(
    ctx: typer.Context,
    original: Original,
    release: Released,
    quasi_identifiers: QuasiIdentifiersOrJob = None,
    sensitive: Sensitive = None,
    k: K = None,
    metrics: Annotated[
        list[str] | None, typer.Option("--metric", "-m", metavar="A,B,...", help="The metrics. By default all.")
    ] = None,
    hierarchy: Hierarchies = None,
    job: OfJob = None,
) -> None:
    """Measure what a release lost, by each metric that can be computed."""
    from duckanon.assess.comparison.loss import measure as assess
    from duckanon.io.source import Source

    about = about_release(job, quasi_identifiers, sensitive, hierarchy, k)
    result = assess(Source.file(original), Source.file(release), **about, **given(metrics=names(metrics) or None))
    screen, rows = Screen.of(ctx), [m.to_dict() for m in result]
    if screen.as_json:
        screen.document({"original": original, "release": release, "loss": rows})
    else:
        show_loss(screen, Path(release).name, rows)


def show_loss(screen: Screen, name: str, rows: Sequence[Row]) -> None:
    """Show the loss by each metric: of the whole table, and by column if there are only a few metrics."""
    few = len({row["metric"] for row in rows}) <= 3 and any(row["attribute"] for row in rows)
    shown = [row for row in rows if few or row["attribute"] is None]
    if not screen.rich:
        for row in shown:
            of = f" of {row['attribute']}" if row["attribute"] else ""
            lost = f" ({share(row['normalised'])} of what can be lost)" if row.get("normalised") is not None else ""
            screen.line(f"{row['metric']}{of}: {figure(row['value'])}{lost}")
        return
    from rich.text import Text

    columns: list[tuple[str, Mapping[str, Any]]] = [("metric", WHOLE)]
    columns += [("column", {"overflow": "fold"})] if few else []
    table = headed(*columns, ("value", RIGHT), ("lost", RIGHT), ("better", {"style": "dim"}))
    for row in shown:
        part = row.get("normalised")
        cells = [Text(row["metric"]), *([Text(row["attribute"] or "whole table")] if few else [])]
        table.add_row(*cells, figure(row["value"]), "-" if part is None else share(part), row["direction"])
    note = Text("lost: 0 % is the original table, 100 % a table that is fully suppressed", style="dim")
    sections(screen, [(f"Lost in {name}", table), ("Note", note)])


def risk(
    ctx: typer.Context,
    quasi_identifiers: QuasiIdentifiers,
    file: TableFile = None,
    threshold: Annotated[float, typer.Option("--threshold", help="The highest acceptable risk.")] = 0.2,
    population: Population = None,
    population_size: Annotated[
        int | None, typer.Option("--population-size", help="How many people the data are a sample of.")
    ] = None,
    sampling_fraction: Annotated[
        float | None, typer.Option("--sampling-fraction", help="The share of the people that is in the data.")
    ] = None,
    previous: Annotated[str | None, typer.Option("--previous", help="An earlier release of the same people.")] = None,
    original: Annotated[
        str | None, typer.Option("--original", help="The original table, to find persons of --previous again.")
    ] = None,
    k: Annotated[
        int | None,
        typer.Option("--k", "-k", min=1, help="The smallest acceptable group that both releases together single out."),
    ] = None,
    hierarchy: Hierarchies = None,
    entity_key: EntityKey = None,
    database: Database = None,
    table: Table = None,
) -> None:
    """Estimate the risk of reidentification for three kinds of adversaries.

    With --previous also for somebody who has an earlier release of the same people.
    """
    source = source_of(file, database, table)
    from duckanon.assess.risk import risk as assess

    result = assess(
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
        screen.document({"source": source.name, **result.to_dict()})
    else:
        show_risk(screen, source.name, result)


_KNOWS = {
    "prosecutor": "knows that the person is in the table",
    "journalist": "does not know whether",
    "marketer": "wants as many as possible",
}


def show_risk(screen: Screen, name: str, result: Risk) -> None:
    """Show the risk from the three adversaries, and how many rows are unique."""
    if not screen.rich:
        screen.line(f"table: {name}")
        for measure, value, _ in result.figures():
            screen.line(f"{measure}: {figure(value)}")
        if result.composition is not None:
            screen.line(f"note: {_TIED[result.composition.tied_by]}")
        return
    from rich.text import Text

    about = grid({"no_wrap": True, "style": "dim"}, {})
    about.add_row(result.unit, count(result.members))
    about.add_row("classes", f"{count(result.classes)}, the smallest of {count(result.smallest, result.unit)}")
    about.add_row("unique", f"{share(result.sample_unique)} of the {result.unit} are alone in their class")
    if result.population_unique is not None:
        about.add_row("", f"{share(result.population_unique)} are alone in the population")
    attackers = headed(
        ("attacker", WHOLE),
        (f"above {result.threshold:g}", RIGHT),
        ("highest", RIGHT),
        ("average", RIGHT),
        ("lowest", RIGHT),
        ("", {"style": "dim"}),
    )
    rows: list[tuple[str, Attacker | None]] = [("prosecutor", result.prosecutor), ("journalist", result.journalist)]
    for who, attacker in rows:
        if attacker is not None:
            style = "bold red" if attacker.at_risk > 0 else "bold green"
            risks = [share(r) for r in (attacker.maximum, attacker.average, attacker.minimum)]
            attackers.add_row(Text(who), Text(share(attacker.at_risk), style=style), *risks, _KNOWS[who])
    attackers.add_row("marketer", "", "", share(result.marketer), "", _KNOWS["marketer"])
    parts: list[tuple[str, RenderableType]] = [(name, about), ("Risk of reidentification", attackers)]
    if result.uniqueness is not None:
        parts.append((f"Unique in the population of {count(result.uniqueness.population_size)}", _estimates(result)))
    if result.composition is not None:
        parts.append(("Together with the previous release", _together(result.composition)))
    sections(screen, parts)


_TIED = {
    "key": "persons are followed by their key",
    "original": "rows of the original are placed in the classes of both",
    "overlap": "no person can be followed, so only what overlapping classes imply is counted, which is little "
    "(--original gives the original table)",
}


def _together(result: Composition) -> RenderableType:
    from rich.text import Text

    table = grid({"no_wrap": True, "style": "dim"}, {})
    table.add_row("persons", f"{count(result.persons_in_both)} in both; {_TIED[result.tied_by]}")
    if result.smallest is not None:
        table.add_row("smallest", f"{count(result.smallest)} in the smallest group that both tell apart")
    lost = [
        (result.persons_below, "in both"),
        (result.new_below, "only in this"),
        (result.departed_below, "only before"),
    ]
    for number, where in lost:
        style = "bold red" if number else "bold yellow" if result.tied_by == "overlap" else "bold green"
        table.add_row(f"below {result.k}", Text.assemble((count(number), style), f" persons {where}"))
    return table


def _estimates(result: Risk) -> RenderableType:
    from rich.text import Text

    estimates = result.uniqueness
    assert estimates is not None
    table = grid({"no_wrap": True, "style": "dim"}, {"justify": "right", "no_wrap": True}, {"style": "dim"})
    rule = f"the rule for a sample of {share(estimates.sampling_fraction)} takes {estimates.chosen}"
    table.add_row("estimate", Text(share(estimates.dankar), style="bold"), rule)
    for name in ("zayatz", "snb", "pitman"):
        value = getattr(estimates, name)
        table.add_row(name, "-" if value is None else share(value), "no solution" if value is None else "")
    return table


def suggest(
    ctx: typer.Context,
    file: TableFile = None,
    max_size: Annotated[
        int, typer.Option("--max-size", min=0, help="The largest set of columns to try; 0 for none.")
    ] = 3,
    threshold: Annotated[
        float, typer.Option("--threshold", help="The share from which on a set counts as identifying.")
    ] = 0.8,
    by: Annotated[
        str,
        typer.Option(
            "--by", help="What the share is of: uniqueness (of rows), distinction (of tuples) or separation (of pairs)."
        ),
    ] = "uniqueness",
    database: Database = None,
    table: Table = None,
) -> None:
    """Suggest a role for each column: which ones identify or single out people.

    No value of the table is shown.
    """
    source = source_of(file, database, table)
    from duckanon.assess.suggest import suggest as assess

    result = assess(source, max_size=max_size, threshold=threshold, by=by).to_pylist()
    screen = Screen.of(ctx)
    if screen.as_json:
        screen.document({"source": source.name, "columns": result})
    else:
        show_suggestions(screen, source.name, result, by, threshold)


_STYLES = {"identifier": "bold red", "entity_key": "bold red", "quasi_identifier": "yellow", "sensitive": "magenta"}


def show_roles(screen: Screen, rows: Sequence[Row]) -> None:
    """Show what became of each column, and why."""
    shown = {"unlisted": "left out", "identifier": "left out (identifier)"}
    roles = [(row["column"], shown.get(row["role"], row["role"].replace("_", "-")), row) for row in rows]
    if not screen.rich:
        for name, role, row in roles:
            screen.line(f"{name}: {role} ({row['reason']})")
        return
    from rich.text import Text

    table = headed(("column", {"overflow": "fold"}), ("role", WHOLE), ("why", {}))
    for name, role, row in roles:
        table.add_row(Text(name), Text(role, style=_STYLES.get(row["role"], "dim")), Text(row["reason"]))
    sections(screen, [("Roles: guesses, correct them with -q, -s and --insensitive", table)])


def show_suggestions(screen: Screen, name: str, rows: Sequence[Row], by: str, threshold: float) -> None:
    """Show a role for each column, and the smallest identifying sets of columns."""
    sets = _sets(rows)
    if not screen.rich:
        for row in rows:
            rank = f" {row['rank']}" if row["rank"] is not None else ""
            screen.line(f"{row['column']}: {row['role']}{rank} ({row['reason']})")
        for one in sets:
            screen.line(f"identifying set: {', '.join(one)}")
        return
    from rich.text import Text

    table = headed(
        ("column", {"overflow": "fold"}), ("role", WHOLE), ("distinct", RIGHT), ("apart", RIGHT), ("why", {})
    )
    for row in rows:
        role = Text(row["role"].replace("_", "-"), style=_STYLES.get(row["role"], "dim"))
        role.append(f" {row['rank']}" if row["rank"] is not None else "", style="bold")
        apart = share(round(row["separation"], 4))
        table.add_row(Text(row["column"]), role, count(row["distinct"]), apart, Text(row["reason"]))
    parts: list[tuple[str, RenderableType]] = [(name, table)]
    if sets:
        lines = [", ".join(one) for one in sets[:_SETS]]
        lines += [f"... and {len(sets) - _SETS} more"] if len(sets) > _SETS else []
        what = {
            "uniqueness": f"make {share(threshold)} of the rows unique",
            "distinction": f"have distinct values in {share(threshold)} of the rows",
            "separation": f"tell {share(threshold)} of the pairs of rows apart",
        }
        parts.append((f"Sets of columns that {what[by]}", Text("\n".join(lines))))
    if any(row["approximate"] for row in rows):
        parts.append(("Note", Text("The figures are estimates from a random sample.", style="yellow")))
    sections(screen, parts)


def _sets(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    result = dict.fromkeys(tuple(one) for row in rows for one in row["minimal_sets"])
    return sorted(result, key=len)
