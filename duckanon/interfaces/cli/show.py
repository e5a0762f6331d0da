"""What a release, a check, a plan and a list look like: on a terminal, and as plain lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duckanon.interfaces.cli.screen import Screen, count, figure, share, shown_path, whole
from duckanon.report.model import Section
from duckanon.report.release import Run, outcome
from duckanon.report.release import sections as report_sections
from duckanon.report.terminal import drawn, plain

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

Summary = Mapping[str, Any]
_WIDEST = 100
_IN_PLAIN_LINES = ("promised", "verified", "counted", "columns", "notes")
"""Sections whose figures plain lines have in a form of their own, or leave out."""


def grid(*columns: Mapping[str, Any]) -> Table:
    """Return a table without lines; each mapping holds the settings of a column."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    for column in columns:
        table.add_column(**column)
    return table


def headed(*columns: tuple[str, Mapping[str, Any]]) -> Table:
    """Return a table with a line under its header."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False)
    for name, settings in columns:
        table.add_column(name, **settings)
    return table


def parameters(given: Mapping[str, Any]) -> str:
    """Return parameters as they are written in a call."""
    return ", ".join(f"{k}={v}" for k, v in given.items())


def sections(screen: Screen, parts: Sequence[tuple[str, RenderableType]]) -> None:
    """Write headings with what stands below them."""
    from rich.padding import Padding
    from rich.text import Text

    out = screen.out
    width = min(out.width, _WIDEST)
    for title, body in parts:
        out.print(Text(title, style="bold cyan"))
        out.print(Padding(body, (0, 0, 1, 2)), width=width)


def written_files(written: Mapping[str, Any]) -> list[tuple[str, Path]]:
    """Return (what it is, path) of all files of a release."""
    if not written:
        return []
    reports = [("report", Path(p)) for p in written.get("reports", ())]
    return [("release", Path(written["release"])), *reports, ("manifest", Path(written["manifest"]))]


def show_name(screen: Screen, name: str) -> None:
    """Show which table of several comes next."""
    if not screen.rich:
        screen.line(f"table: {name}")
        return
    from rich.rule import Rule
    from rich.text import Text

    screen.out.print(Rule(Text(name, style="bold"), align="left", style="dim"), width=_WIDEST)


def show_release(screen: Screen, summary: Summary, written: Mapping[str, Any], warnings: Sequence[str] = ()) -> None:
    """Show the sections of the report in few lines, and where the files are."""
    if not screen.rich:
        _plain_release(screen, summary, written, warnings)
        return
    from rich.styled import Styled

    drawings = {
        "promised": lambda: _promise(summary),
        "verified": lambda: _checks(summary, written),
        "counted": lambda: _counts(summary),
        "columns": lambda: _columns(summary),
    }
    styles = {"notes": "yellow", "warnings": "bold yellow"}
    parts = [
        (s.title, drawings[s.name]() if s.name in drawings else Styled(drawn(s), styles.get(s.name, "")))
        for s in brief(summary, warnings)
    ]
    sections(screen, [*parts, ("Files", _files(written))])


def brief(summary: Summary, warnings: Sequence[str] = ()) -> list[Section]:
    """Return the sections of the report that a terminal shows; explanations are left to the files."""
    return [s for s in report_sections(Run(summary, {"warnings": warnings})) if s.brief]


def _promise(summary: Summary) -> RenderableType:
    from rich.text import Text

    table = grid({"no_wrap": True}, {})
    for promise in summary["promise"]:
        table.add_row(Text(f"{promise['model']} ({parameters(promise['parameters'])})"), Text(promise["text"]))
    return table


def _checks(summary: Summary, written: Mapping[str, Any]) -> RenderableType:
    from rich.text import Text

    table = grid({}, {"no_wrap": True}, {})
    where = "the written file" if written else "what would be written"
    for check in summary["checks"]:
        mark = Text("✓", style="bold green") if check["holds"] else Text("✗", style="bold red")
        what = "groups" if "permutation" in summary else "classes"
        text = f"holds in all {count(check['classes'], what)}, counted again in {where}"
        if not check["holds"]:
            text = f"broken by {check['violating_classes']:,} of {count(check['classes'], what)}"
        table.add_row(mark, Text(check["model"]), Text(text))
    return table


def _counts(summary: Summary) -> RenderableType:
    from rich.text import Text

    found, sizes = summary["found"], summary["found"]["class_size"]
    algorithm = summary["algorithm"]["name"]
    table = grid({"no_wrap": True, "style": "dim"}, {})
    table.add_row("rows", f"{found['rows_in']:,} in, {found['rows_published']:,} published")
    limit = f"by {algorithm}; at most {share(summary['suppression_limit'])} allowed"
    table.add_row("suppressed", f"{found['rows_suppressed']:,} rows, {share(found['suppressed_share'])} ({limit})")
    spread = f"{figure(sizes['min'])} to {count(sizes['max'], summary['unit'])}"
    middle = f"median {figure(sizes['median'])}, mean {figure(sizes['mean'])}"
    hides = "permutation" in summary
    table.add_row(*classes_row(summary, f"{found['classes']:,}, of {spread} ({middle})"))
    if hides:
        for name, text in permutation_rows(summary["permutation"]):
            table.add_row(name, Text(text))
    elif any(h["level"] is None for h in summary["hierarchies"]):
        table.add_row("bounds", f"{summary['bounds']} (the report says what they tell)")
    search = outcome(summary.get("search") or {})
    if search:
        table.add_row("search", Text(search))
    for measure in summary["loss"]:
        if measure["attribute"] is None:
            better = "lower is better" if measure["direction"] == "lower" else "higher is better"
            value = Text(f"{figure(measure['value'])} ").append(f"({better})", style="dim")
            table.add_row(measure["metric"].replace("_", " "), value)
    return table


def _columns(summary: Summary) -> RenderableType:
    from rich.text import Text

    roles = summary["roles"]
    losses = {m["attribute"]: m["value"] for m in summary["loss"] if m["metric"] == "loss"}
    # Regions stand on no level.
    levelled = any(h["level"] is not None for h in summary["hierarchies"])
    table = headed(
        ("column", {"overflow": "fold"}),
        *([("level", {"no_wrap": True})] if levelled else []),
        ("loss", {"justify": "right", "no_wrap": True}),
        ("how", {}),
    )

    def add(name: Text, level: RenderableType, lost: str, how: Text) -> None:
        table.add_row(name, *([level] if levelled else []), lost, how)

    kinds, within = summary.get("output") or {}, summary.get("within") or ()
    for position, block in enumerate((summary.get("permutation") or {}).get("blocks", ()), 1):
        for name in block:
            add(Text(name), "", "", Text(f"permuted within groups, in block {position}"))
    for h in summary["hierarchies"]:
        if h["level"] is None:
            how = (
                "untouched"
                if h["attribute"] in within
                else f"regions, {_written(kinds.get(h['attribute'], 'interval'))}"
            )
            lost = figure(losses.get(h["attribute"]))
            add(Text(h["attribute"]), "", lost, Text(f"{how} ({h['origin']})"))
            continue
        level = Text("■" * h["level"], style="cyan").append("□" * (h["height"] - h["level"]), style="dim")
        level.append(f" {h['level']} of {h['height']}")
        how = "untouched" if h["level"] == 0 else "fully generalized" if h["level"] == h["height"] else "generalized"
        if h["attribute"] in kinds:
            how = f"classes of that level, {_written(kinds[h['attribute']])}"
        add(Text(h["attribute"]), level, figure(losses.get(h["attribute"])), Text(f"{how} ({h['origin']})"))
    for role in ("sensitive", "insensitive"):
        for name in roles[role]:
            add(Text(name), "", "", Text(f"as it is ({role})", style="dim"))
    for name in _hidden(roles):
        add(Text(name, style="dim"), "", "", Text("not published", style="dim"))
    return table


def classes_row(summary: Summary, sizes: str) -> tuple[str, str]:
    """Return what rows are put together in, and how large that is."""
    return ("groups", f"{sizes}, not visible in the release") if "permutation" in summary else ("classes", sizes)


def permutation_rows(permutation: Summary) -> list[tuple[str, str]]:
    """Return in words what was permuted together, and what columns still tell of each other."""
    if not permutation:
        return []
    blocks = "; ".join(", ".join(block) for block in permutation["blocks"])
    rows = [("blocks", blocks)]
    if permutation.get("linkage"):
        rows.append(("linkage", f"at most 1 in {figure(round(1 / permutation['linkage'], 2))}"))
    words = {"quasi_identifiers": "of each other", "with_sensitive": "of sensitive columns"}
    for kind, found in permutation["mutual_information"].items():
        told = f"{figure(found['before'])} bits before, {figure(found['after'])} after"
        rows.append(("tell " + words.get(kind, kind), told))
    return rows


def _written(kind: str) -> str:
    """Return how a region is published, in words."""
    plural = {"interval": "intervals", "set": "sets of values", "lca": "lowest common ancestors", "struct": "structs"}
    plural["proportional"] = "shares of values"
    return f"as {plural.get(kind, kind if kind == 'bounds' else kind.replace('_', ' ') + 's')}"


def _hidden(roles: Mapping[str, Any]) -> list[str]:
    key = [roles["entity_key"]] if roles["entity_key"] else []
    return list(dict.fromkeys([*roles["identifiers"], *key, *roles["dropped"]]))


def _files(written: Mapping[str, Any]) -> RenderableType:
    from rich.text import Text

    if not written:
        return Text("none: this was a dry run", style="yellow")
    table = grid({"no_wrap": True, "style": "dim"}, {"overflow": "fold"})
    for kind, path in written_files(written):
        table.add_row(kind, Text(shown_path(path), style="bold" if kind == "release" else ""))
    return table


def _plain_release(screen: Screen, summary: Summary, written: Mapping[str, Any], warnings: Sequence[str]) -> None:
    found, sizes = summary["found"], summary["found"]["class_size"]
    for promise in summary["promise"]:
        screen.line(f"promise: {promise['text']}")
    for check in summary["checks"]:
        verdict = "holds" if check["holds"] else "broken"
        what = "groups" if "permutation" in summary else "classes"
        classes = f"{check['violating_classes']} of {check['classes']} {what} broken"
        screen.line(f"{check['model']} ({parameters(check['parameters'])}): {verdict}, {classes}")
    kept = f"{found['rows_in']} in, {found['rows_published']} published, {found['rows_suppressed']} suppressed"
    screen.line(f"rows: {kept}")
    spread = f"{figure(sizes['min'])} to {figure(sizes['max'])} {summary['unit']}, median {figure(sizes['median'])}"
    screen.line(": ".join(classes_row(summary, f"{found['classes']}, of {spread}")))
    for name, text in permutation_rows(summary.get("permutation") or {}):
        screen.line(f"{name}: {text}")
    search = outcome(summary.get("search") or {}, figure)
    if search:
        screen.line(f"search: {search}")
    for measure in summary["loss"]:
        if measure["attribute"] is None:
            screen.line(f"{measure['metric']}: {figure(measure['value'])}")
    for warning in warnings:
        screen.line(f"warning: {warning}")
    for section in brief(summary):
        for line in plain(section) if section.name not in _IN_PLAIN_LINES else ():
            screen.line(line)
    for kind, path in written_files(written):
        screen.line(f"{kind}: {shown_path(path)}")
    if not written:
        screen.line("dry run: nothing was written")


def show_plan(screen: Screen, explained: str, statements: Sequence[str]) -> None:
    """Show a plan in words, and the statements if there are any."""
    if not screen.rich:
        screen.text("\n\n".join([explained, *statements]))
        return
    from rich.syntax import Syntax
    from rich.text import Text

    table = grid({"no_wrap": True, "style": "bold cyan"}, {})
    for line in explained.splitlines():
        name, _, text = line.partition(": ")
        table.add_row(Text(name), Text(text))
    out = screen.out
    out.print(table)
    for sql in statements:
        out.print()
        out.print(Syntax(sql, "sql", theme="ansi_dark", background_color="default", word_wrap=True))


def show_checks(screen: Screen, name: str, checks: Sequence[Mapping[str, Any]], unit: str) -> None:
    """Show whether a table satisfies its models, with the numbers."""
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


def show_list(screen: Screen, kind: str, rows: Sequence[Mapping[str, str]]) -> None:
    """Show what a registry holds."""
    if not screen.rich:
        for row in rows:
            screen.line("\t".join(row.values()))
        return
    from rich.text import Text

    table = headed(*((key, {"no_wrap": key == "name"}) for key in rows[0]))
    for row in rows:
        table.add_row(*(Text(v, style="bold" if k == "name" else "") for k, v in row.items()))
    sections(screen, [(kind.capitalize(), table)])
