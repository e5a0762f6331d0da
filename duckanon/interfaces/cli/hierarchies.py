"""The commands on hierarchies (build, validate, show), and list: models, algorithms, metrics and hierarchies."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from duckanon.interfaces.cli.options import MORE
from duckanon.interfaces.cli.screen import Screen, count, grid, headed, sections, shown_path

if TYPE_CHECKING:
    from duckanon.hierarchy import Hierarchy, Validation


class Kind(StrEnum):
    """What can be listed."""

    MODELS = "models"
    ALGORITHMS = "algorithms"
    METRICS = "metrics"
    HIERARCHIES = "hierarchies"


Column = Annotated[str | None, typer.Option("--column", "-c", help="The column with the values.")]
Data = Annotated[str | None, typer.Option("--data", help="A table whose values the hierarchy must all have: a file.")]
_PROPERTIES = {
    "total": "every value of the data has a row",
    "functional": "each leaf has one row, and no cell is empty",
    "nested": "equal labels have equal parents, and there are no loops",
    "rooted": "the last level has one label",
}
_COUNTS = ("leaves", "height", "duplicates", "gaps", "ragged", "not_nested", "loops", "tops", "missing")


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, help="Build, validate and show generalization hierarchies.")
    group.command("build")(build)
    group.command("validate")(validate)
    group.command("show")(show)
    app.add_typer(group, name="hierarchy", rich_help_panel=MORE)
    app.command("list", rich_help_panel=MORE)(list_)


def build(
    ctx: typer.Context,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The table: a file.")],
    column: Annotated[str, typer.Option("--column", "-c", help="The column with the values.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The CSV file to write.")],
    rule: Annotated[
        str | None,
        typer.Option(
            "--rule", help="The rule: intervals, quantiles, mask, prefix, dates, age, order, random or suppress."
        ),
    ] = None,
    rule_file: Annotated[Path | None, typer.Option("--rule-file", help="A TOML file with the rule.")] = None,
    width: Annotated[str | None, typer.Option("--width", help="The width of level 1, for intervals.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="A key of the rule, such as --set factors=[2,2]. Can be repeated."
        ),
    ] = None,
) -> None:
    """Build a hierarchy from the values of a column by a rule, and write it as CSV in the format of ARX."""
    if (rule is None) == (rule_file is None):
        raise typer.BadParameter("Give either --rule or --rule-file.")
    from duckanon.engine.base import open_engine
    from duckanon.hierarchy import Hierarchy, resolve

    if rule_file is not None:
        if width is not None or settings:
            raise typer.BadParameter("--width and --set go with --rule.")
        engine = open_engine()
        try:
            recipe = resolve(rule_file, engine)
        finally:
            engine.close()
    else:
        keys: dict[str, Any] = {"rule": rule, **dict(_setting(s) for s in settings or ())}
        recipe = Hierarchy.from_rule({**keys, "width": width} if width is not None else keys, Path.cwd())
    built = recipe.materialise(_values(source, column))
    built.to_csv(output)
    screen, result = Screen.of(ctx), built.describe()
    if screen.as_json:
        screen.document({"file": output, **result})
        return
    _show_levels(screen, shown_path(output), built, 5 if screen.rich else 0)


def _setting(text: str) -> tuple[str, Any]:
    """Parse KEY=VALUE. A value that is not TOML is a text."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise typer.BadParameter(f"--set needs KEY=VALUE. Got {text!r}.")
    try:
        return key.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key.strip(), value


def _values(source: str, column: str) -> Any:
    """Return the distinct values of a column."""
    from sqlglot import exp

    from duckanon.engine.base import open_engine
    from duckanon.engine.sql.relations import col, subquery
    from duckanon.errors import RoleError, did_you_mean
    from duckanon.io.source import Source

    engine = open_engine()
    try:
        relation = Source.file(source).open(engine)
        lowered = {n.lower(): n for n in relation.names}
        name = column if column in relation.names else lowered.get(column.lower())
        if name is None:
            raise RoleError(f"{relation.name!r} has no column {column!r}.{did_you_mean(column, relation.names)}")
        query = exp.select(col(name)).from_(subquery(relation.query, "s"))
        return engine.arrow(query).column(0)
    finally:
        engine.close()


def validate(
    ctx: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME_OR_FILE", help="The hierarchy: a CSV file, a rule in a TOML file, or a ready-made one."
        ),
    ],
    data: Data = None,
    column: Column = None,
) -> None:
    """Check that a hierarchy is total, functional, nested and rooted. Exit code 0 if it can be used, else 1."""
    if (data is None) != (column is None):
        raise typer.BadParameter("--data and --column go together.")
    from duckanon.hierarchy import validate as inspect

    values = _values(data, column) if data is not None and column is not None else None
    result = inspect(name, values.drop_null() if values is not None else None)
    screen = Screen.of(ctx)
    if screen.as_json:
        about = {"file": name, "kind": "table" if result.rule is None else "rule", "rule": result.rule}
        # Most properties are about the rows of a table. A rule has none.
        asked = [*_PROPERTIES, *_COUNTS] if result.rule is None else ["total", "height", "missing"]
        properties = {key: getattr(result, key) for key in asked}
        screen.document(
            {**about, "usable": result.ok, **properties, "problems": result.problems, "notes": result.notes}
        )
    elif result.rule is not None:
        _show_rule_validation(screen, name, result)
    else:
        _show_validation(screen, name, result)
    if not result.ok:
        raise typer.Exit(1)


def _counted(result: Validation) -> dict[str, str]:
    """Return the counts for each property, in words."""
    repeated = f"{result.duplicates:,} repeated {'leaf' if result.duplicates == 1 else 'leaves'}"
    functional = f"{repeated}, {count(result.gaps, 'empty cells')}, {count(result.ragged, 'ragged lines')}"
    on_loops = f", {result.loops:,} on a loop" if result.loops else ""
    return {
        "total": "no data given" if result.missing is None else f"{count(result.missing, 'values')} without a row",
        "functional": functional,
        "nested": f"{count(result.not_nested, 'labels')} with several parents{on_loops}",
        "rooted": f"{count(result.tops, 'labels')} on the last level",
    }


def _show_rule_validation(screen: Screen, name: str, result: Validation) -> None:
    verdict = "can be used" if result.ok else "cannot be used"
    height = "" if result.height is None else f", height {result.height}"
    head = f"{Path(name).name}: a rule{f' ({result.rule})' if result.rule != 'unknown' else ''}{height}, {verdict}"
    known = None if result.missing is None else f"{_word(result.total)} ({_counted(result)['total']})"
    if not screen.rich:
        screen.line(head)
        if known is not None:
            screen.line(f"total: {known}")
        for problem in result.problems:
            screen.line(f"problem: {problem}")
        return
    from rich.text import Text

    screen.out.print(Text(head, style="bold green" if result.ok else "bold red"))
    if known is not None:
        screen.out.print(Text(f"total: {known}"))
    for problem in result.problems:
        screen.out.print(Text(problem, style="red"))


def _show_validation(screen: Screen, name: str, result: Validation) -> None:
    counted = _counted(result)
    verdict = "can be used" if result.ok else "cannot be used"
    head = f"{Path(name).name}: {count(result.leaves, 'leaves')}, height {result.height}, {verdict}"
    if not screen.rich:
        screen.line(head)
        for prop in _PROPERTIES:
            screen.line(f"{prop}: {_word(getattr(result, prop))} ({counted[prop]})")
        for problem in result.problems:
            screen.line(f"problem: {problem}")
        for note in result.notes:
            screen.line(f"note: {note}")
        return
    from rich.text import Text

    out = screen.out
    out.print(Text(head, style="bold green" if result.ok else "bold red"))
    table = grid({}, {"no_wrap": True}, {}, {"style": "dim"})
    for prop, meaning in _PROPERTIES.items():
        holds = getattr(result, prop)
        # If the last level has several labels, one more level is added, so this is not an error.
        bad = Text("•", style="yellow") if prop == "rooted" else Text("✗", style="bold red")
        mark = Text("-", style="dim") if holds is None else Text("✓", style="bold green") if holds else bad
        table.add_row(mark, prop, meaning, counted[prop])
    out.print(table)
    for problem in result.problems:
        out.print(Text(problem, style="red"))
    for note in result.notes:
        out.print(Text(note, style="yellow"))


def _word(holds: bool | None) -> str:
    return "not checked" if holds is None else "yes" if holds else "no"


def show(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME_OR_FILE", help="A ready-made hierarchy, or a file.")],
    limit: Annotated[int, typer.Option("--limit", "-n", min=0, help="How many lines to show.")] = 10,
) -> None:
    """Show the levels of a hierarchy: how many labels each has, and the first lines."""
    from duckanon.engine.base import open_engine
    from duckanon.hierarchy import resolve
    from duckanon.hierarchy.chain import chain, height, in_words

    engine = open_engine()
    try:
        hierarchy = resolve(name, engine)
        links = chain(hierarchy, engine)
    finally:
        engine.close()
    screen = Screen.of(ctx)
    if screen.as_json:
        lines = hierarchy.preview(limit) if hierarchy.levels is not None else []
        more = {"height": height(links), "steps": in_words(links), "lines": lines}
        screen.document({"name": name, **hierarchy.describe(), **more})
        return
    _show_levels(screen, name, hierarchy, limit, links)


def _show_levels(
    screen: Screen, name: str, hierarchy: Hierarchy, limit: int, links: list[Hierarchy] | None = None
) -> None:
    from duckanon.hierarchy.chain import height as whole
    from duckanon.hierarchy.chain import in_words

    result = {**hierarchy.describe(), "height": whole(links or [hierarchy])}
    steps = in_words(links or [])
    height = "decided by the data" if result["height"] is None else str(result["height"])
    if result["labels"] is None:
        rule = ", ".join(f"{k} = {json.dumps(v)}" for k, v in result["rule"].items() if v is not None)
        labels, lines = f"a rule: {rule}", []
    else:
        labels = " -> ".join(f"{n:,}" for n in result["labels"])
        lines = hierarchy.preview(limit)
    if not screen.rich:
        screen.line(f"{name}: height {height}; {'labels ' if result['labels'] else ''}{labels}")
        for line in lines:
            screen.line(";".join("" if cell is None else cell for cell in line))
        for step in steps:
            screen.line(step)
        return
    from rich.text import Text

    head = grid({"style": "dim", "no_wrap": True}, {"overflow": "fold"})
    head.add_row("hierarchy", Text(name, style="bold"))
    head.add_row("origin", Text(result["origin"]))
    head.add_row("height", height)
    if result["labels"] is None:
        head.add_row("rule", Text(labels.removeprefix("a rule: ")))
    for step in steps:
        level, _, meaning = step.partition(": ")
        head.add_row(level, Text(meaning))
    screen.out.print(head)
    if result["labels"] is None:
        return
    table = headed(*((f"level {i}", {"overflow": "fold"}) for i in range(len(result["labels"]))))
    table.add_row(*(Text(count(n, "labels"), style="cyan") for n in result["labels"]), end_section=True)
    for line in lines:
        table.add_row(*(Text("NULL", style="dim") if cell is None else Text(cell) for cell in line))
    more = result["labels"][0] - len(lines)
    screen.out.print()
    screen.out.print(table)
    if more > 0:
        screen.out.print(Text(f"... and {more:,} more", style="dim"))


def listed() -> list[dict[str, str]]:
    """Return the ready-made hierarchies: name, form and summary."""
    from duckanon.hierarchy import shipped

    rows = []
    for name, path in shipped().items():
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".toml":
            summary = text.splitlines()[0].removeprefix("#").strip() if text.startswith("#") else ""
            rows.append({"name": name, "form": "rule", "summary": summary})
        else:
            lines = text.splitlines()
            height = lines[0].count(";") if lines else 0
            rows.append({"name": name, "form": "table", "summary": f"{count(len(lines), 'leaves')}, height {height}"})
    return rows


def list_(
    ctx: typer.Context,
    kind: Annotated[
        Kind | None,
        typer.Argument(metavar="KIND", help="models, algorithms, metrics or hierarchies. By default all of them."),
    ] = None,
) -> None:
    """List models, algorithms, metrics and ready-made hierarchies."""
    screen = Screen.of(ctx)
    result = {str(one): _listed(one) for one in ([kind] if kind is not None else Kind)}
    if screen.as_json:
        screen.document(result if kind is None else result[str(kind)])
        return
    for name, rows in result.items():
        if kind is None and not screen.rich:
            rows = [{"kind": name, **row} for row in rows]
        show_list(screen, name, rows)


def _listed(kind: Kind) -> list[dict[str, str]]:
    if kind is Kind.HIERARCHIES:
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


def show_list(screen: Screen, kind: str, rows: Sequence[Mapping[str, str]]) -> None:
    """Show the names in a registry."""
    if not screen.rich:
        for row in rows:
            screen.line("\t".join(row.values()))
        return
    from rich.text import Text

    table = headed(*((key, {"no_wrap": key == "name"}) for key in rows[0]))
    for row in rows:
        table.add_row(*(Text(v, style="bold" if k == "name" else "") for k, v in row.items()))
    sections(screen, [(kind.capitalize(), table)])
