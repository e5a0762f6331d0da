"""What privacy, loss, risk, suggestions and comparisons look like: on a terminal, and as plain lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duckanon.interfaces.cli.screen import Screen, count, figure, share, shown_path
from duckanon.interfaces.cli.show import grid, headed, sections

if TYPE_CHECKING:
    from rich.console import RenderableType

    from duckanon.assess.comparison.compare import Comparison
    from duckanon.assess.composition import Composition
    from duckanon.assess.risk import Attacker, Risk

Row = Mapping[str, Any]
LARGER_IS_STRICTER = ("k", "l", "p", "minimum")
"""Parameters that promise more the larger they are; others promise more the smaller they are."""
_RIGHT = {"justify": "right", "no_wrap": True}
_WHOLE = {"no_wrap": True}
_SETS = 12
_PAIRS = 20


def show_privacy(screen: Screen, name: str, rows: Sequence[Row]) -> None:
    """Show the best parameter of every model, and what breaks the thresholds that were given."""
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
    table = headed(("model", _WHOLE), ("column", {"overflow": "fold"}), ("best that holds", _WHOLE), *more)
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
    """Return the best parameter that holds in few digits, rounded so that it still holds.

    Examples
    --------
    >>> bound("t", 0.33333), bound("l", 2.7182), bound("alpha", 0.25), bound("k", 5.0)
    ('0.334', '2.71', '0.25', '5')
    """
    if not isfinite(value) or value == 0 or value == round(value):
        return _number(value)
    # What rounding made of a number is undone first: 0.1 + 0.2 is 0.3.
    exact = Decimal(f"{value:.13g}")
    weaker = ROUND_FLOOR if parameter in LARGER_IS_STRICTER else ROUND_CEILING
    return _number(float(exact.quantize(Decimal(1).scaleb(exact.adjusted() - 2), rounding=weaker)))


def _number(value: float) -> str:
    """Return a parameter: a whole one without decimals, and neither small nor large ones as zero or in groups.

    Examples
    --------
    >>> _number(5.0), _number(0.25), _number(0.0), _number(0.00012), _number(float("inf"))
    ('5', '0.25', '0', '0.00012', 'inf')
    """
    return f"{value:.3g}" if abs(value) < 1000 else figure(value)


def _verdict(row: Row) -> str:
    """Return what a model says of the threshold that was asked for, if one was."""
    if row.get("holds") is None:
        return ""
    wanted = f" {row['parameter']} = {_number(row['threshold'])}" if row.get("threshold") is not None else ""
    if row["holds"]:
        return f"holds{wanted}"
    broken = f"{count(row['violating_classes'], 'classes')}, {count(row['violating_rows'], row['unit'])}"
    return f"breaks{wanted}: {broken}"


def show_loss(screen: Screen, name: str, rows: Sequence[Row]) -> None:
    """Show what a release lost by each metric: of the whole table, of columns where only a few metrics were wanted."""
    few = len({row["metric"] for row in rows}) <= 3 and any(row["attribute"] for row in rows)
    shown = [row for row in rows if few or row["attribute"] is None]
    if not screen.rich:
        for row in shown:
            of = f" of {row['attribute']}" if row["attribute"] else ""
            lost = f" ({share(row['normalised'])} of what can be lost)" if row.get("normalised") is not None else ""
            screen.line(f"{row['metric']}{of}: {figure(row['value'])}{lost}")
        return
    from rich.text import Text

    columns: list[tuple[str, Mapping[str, Any]]] = [("metric", _WHOLE)]
    columns += [("column", {"overflow": "fold"})] if few else []
    table = headed(*columns, ("value", _RIGHT), ("lost", _RIGHT), ("better", {"style": "dim"}))
    for row in shown:
        part = row.get("normalised")
        cells = [Text(row["metric"]), *([Text(row["attribute"] or "whole table")] if few else [])]
        table.add_row(*cells, figure(row["value"]), "-" if part is None else share(part), row["direction"])
    note = Text("lost: 0 % is the best there can be, 100 % the fully suppressed table", style="dim")
    sections(screen, [(f"Lost in {name}", table), ("Note", note)])


_KNOWS = {
    "prosecutor": "knows who is in it",
    "journalist": "does not know",
    "marketer": "links everybody",
}


def show_risk(screen: Screen, name: str, found: Risk) -> None:
    """Show how likely the three attackers are right, and who is unique."""
    if not screen.rich:
        screen.line(f"table: {name}")
        for measure, value, _ in found.figures():
            screen.line(f"{measure}: {figure(value)}")
        if found.composition is not None:
            screen.line(f"note: {_TIED[found.composition.tied_by]}")
        return
    from rich.text import Text

    about = grid({"no_wrap": True, "style": "dim"}, {})
    about.add_row(found.unit, count(found.members))
    about.add_row("classes", f"{count(found.classes)}, the smallest of {count(found.smallest, found.unit)}")
    about.add_row("unique", f"{share(found.sample_unique)} of the {found.unit} are alone in their class")
    if found.population_unique is not None:
        about.add_row("", f"{share(found.population_unique)} are alone in the population")
    attackers = headed(
        ("attacker", _WHOLE),
        (f"above {found.threshold:g}", _RIGHT),
        ("highest", _RIGHT),
        ("average", _RIGHT),
        ("lowest", _RIGHT),
        ("", {"style": "dim"}),
    )
    rows: list[tuple[str, Attacker | None]] = [("prosecutor", found.prosecutor), ("journalist", found.journalist)]
    for who, attacker in rows:
        if attacker is not None:
            style = "bold red" if attacker.at_risk > 0 else "bold green"
            risks = [share(r) for r in (attacker.maximum, attacker.average, attacker.minimum)]
            attackers.add_row(Text(who), Text(share(attacker.at_risk), style=style), *risks, _KNOWS[who])
    attackers.add_row("marketer", "", "", share(found.marketer), "", _KNOWS["marketer"])
    parts: list[tuple[str, RenderableType]] = [(name, about), ("Risk of reidentification", attackers)]
    if found.uniqueness is not None:
        parts.append((f"Unique in the population of {count(found.uniqueness.population_size)}", _estimates(found)))
    if found.composition is not None:
        parts.append(("Together with the previous release", _together(found.composition)))
    sections(screen, parts)


_TIED = {
    "key": "persons are followed by their key",
    "original": "rows of the original are placed in the classes of both",
    "overlap": "nobody is followed: only what the overlap of classes proves is counted, which is little (--original "
    "gives the people themselves)",
}


def _together(found: Composition) -> RenderableType:
    from rich.text import Text

    table = grid({"no_wrap": True, "style": "dim"}, {})
    table.add_row("persons", f"{count(found.persons_in_both)} in both; {_TIED[found.tied_by]}")
    if found.smallest is not None:
        table.add_row("smallest", f"{count(found.smallest)} in the smallest group that both tell apart")
    lost = [(found.persons_below, "in both"), (found.new_below, "only in this"), (found.departed_below, "only before")]
    for number, where in lost:
        style = "bold red" if number else "bold yellow" if found.tied_by == "overlap" else "bold green"
        table.add_row(f"below {found.k}", Text.assemble((count(number), style), f" persons {where}"))
    return table


def _estimates(found: Risk) -> RenderableType:
    from rich.text import Text

    estimates = found.uniqueness
    assert estimates is not None
    table = grid({"no_wrap": True, "style": "dim"}, {"justify": "right", "no_wrap": True}, {"style": "dim"})
    rule = f"the rule for a sample of {share(estimates.sampling_fraction)} takes {estimates.chosen}"
    table.add_row("estimate", Text(share(estimates.dankar), style="bold"), rule)
    for name in ("zayatz", "snb", "pitman"):
        value = getattr(estimates, name)
        table.add_row(name, "-" if value is None else share(value), "no solution" if value is None else "")
    return table


_STYLES = {"identifier": "bold red", "quasi_identifier": "yellow", "sensitive": "magenta"}


def show_suggestions(screen: Screen, name: str, rows: Sequence[Row], by: str, threshold: float) -> None:
    """Show a role for each column, and the smallest sets of columns that single out."""
    sets = _sets(rows)
    if not screen.rich:
        for row in rows:
            screen.line(f"{row['column']}: {row['role']} ({row['reason']})")
        for one in sets:
            screen.line(f"identifying set: {', '.join(one)}")
        return
    from rich.text import Text

    table = headed(
        ("column", {"overflow": "fold"}), ("role", _WHOLE), ("distinct", _RIGHT), ("apart", _RIGHT), ("why", {})
    )
    for row in rows:
        role = Text(row["role"].replace("_", "-"), style=_STYLES.get(row["role"], "dim"))
        apart = share(round(row["separation"], 4))
        table.add_row(Text(row["column"]), role, count(row["distinct"]), apart, Text(row["reason"]))
    parts: list[tuple[str, RenderableType]] = [(name, table)]
    if sets:
        lines = [", ".join(one) for one in sets[:_SETS]]
        lines += [f"... and {len(sets) - _SETS} more"] if len(sets) > _SETS else []
        what = {"uniqueness": "rows are alone", "distinction": "tuples differ", "separation": "pairs differ"}[by]
        parts.append((f"Sets of columns by which {share(threshold)} of the {what}", Text("\n".join(lines))))
    if any(row["approximate"] for row in rows):
        parts.append(("Note", Text("A random sample was looked at: figures are estimates.", style="yellow")))
    sections(screen, parts)


def _sets(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    found = dict.fromkeys(tuple(one) for row in rows for one in row["minimal_sets"])
    return sorted(found, key=len)


def show_comparison(screen: Screen, found: Comparison, picture: Path | None) -> None:
    """Show who wins, by how much, who pays, and what was lost."""
    ranking, tournament = found.ranking, [r for r in found.tournament.to_pylist() if r["index"] is None]
    places = {row["release"]: row for row in tournament}
    pairs, gains, bias = (t.to_pylist() for t in (found.indices, found.gains, found.bias))
    metrics = [row for row in found.metrics.to_pylist() if row["attribute"] is None]
    if not screen.rich:
        for name in ranking:
            row = places[name]
            screen.line(f"{row['place']}. {name}: {row['wins']} won, {row['draws']} drawn, {row['losses']} lost")
        for row in pairs:
            against = f" against {row['against']}" if row["against"] is not None else ""
            of = f" of {row['property']}" if row["property"] is not None else ""
            screen.line(f"{row['index']}{of}, {row['release']}{against}: {figure(row['value'])} ({row['verdict']})")
        for row in bias:
            told = f"mean {share(row['mean_risk'])}, highest {share(row['maximum_risk'])}"
            screen.line(f"risk of {row['release']}: {told}; Gini of class sizes {figure(row['gini'])}")
        for row in metrics:
            screen.line(f"{row['metric']}: {', '.join(f'{name} {figure(row[name])}' for name in places)}")
        if picture is not None:
            screen.line(f"picture: {shown_path(picture)}")
        return
    from rich.text import Text

    parts: list[tuple[str, RenderableType]] = [("Best first", _ranked(ranking, places))]
    parts += [
        ("In pairs", _pairs(pairs)),
        ("Who gains, who loses", _gains(gains)),
        ("Who carries the risk", _bias(bias)),
    ]
    loss = headed(("metric", _WHOLE), *((name, _RIGHT) for name in places), ("better", {"style": "dim"}))
    for row in metrics:
        loss.add_row(row["metric"], *(figure(row[name]) for name in places), row["direction"])
    parts.append(("What was lost", loss))
    if picture is not None:
        parts.append(("Picture", Text(shown_path(picture))))
    sections(screen, parts)


def _ranked(ranking: Sequence[str], places: Mapping[str, Row]) -> RenderableType:
    from rich.text import Text

    table = headed(
        ("place", _RIGHT),
        ("release", {"overflow": "fold"}),
        *((w, _RIGHT) for w in ("won", "drawn", "lost", "incomparable")),
    )
    for name in ranking:
        row = places[name]
        style = "bold green" if row["place"] == 1 else ""
        numbers = [str(row[key]) for key in ("wins", "draws", "losses", "incomparable")]
        table.add_row(str(row["place"]), Text(name, style=style), *numbers)
    return table


def _pairs(pairs: Sequence[Row]) -> RenderableType:
    from rich.text import Text

    styles = {"better": "green", "worse": "red"}
    table = headed(
        ("release", {}), ("against", {}), ("index", _WHOLE), ("property", _WHOLE), ("value", _RIGHT), ("", _WHOLE)
    )
    for row in pairs[:_PAIRS]:
        texts = [Text(row[key] or "") for key in ("release", "against", "index", "property")]
        table.add_row(*texts, figure(row["value"]), Text(row["verdict"], style=styles.get(row["verdict"], "dim")))
    if len(pairs) > _PAIRS:
        table.add_row(Text(f"... {len(pairs) - _PAIRS} more", style="dim"))
    return table


def _gains(gains: Sequence[Row]) -> RenderableType:
    from rich.text import Text

    counted = ("rows_better", "rows_equal", "rows_worse")
    heads = ((word, _RIGHT) for word in ("rows better", "equal", "worse"))
    table = headed(("release", {}), ("against", {}), ("property", _WHOLE), *heads)
    for row in gains[:_PAIRS]:
        texts = [Text(row[key]) for key in ("release", "against", "property")]
        table.add_row(*texts, *(count(row[key]) for key in counted))
    return table


def _bias(bias: Sequence[Row]) -> RenderableType:
    from rich.text import Text

    heads = ("mean risk", "highest", "on a tenth", "Gini", "suppressed")
    table = headed(("release", {}), *((head, _RIGHT) for head in heads))
    for row in bias:
        risks = [share(row[key]) for key in ("mean_risk", "maximum_risk", "risk_of_top_tenth")]
        table.add_row(Text(row["release"]), *risks, figure(row["gini"]), count(row["suppressed"], "rows"))
    return table
