"""The commands that make releases: run, plan and demo, and what a release and a plan look like."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from duckanon.interfaces.cli import signals
from duckanon.interfaces.cli.options import MAKE, JobFile, OneTable
from duckanon.interfaces.cli.screen import (
    WIDEST,
    Bars,
    Screen,
    count,
    figure,
    grid,
    headed,
    parameters,
    sections,
    share,
    shown_path,
)
from duckanon.interfaces.cli.start import modules_kept

if TYPE_CHECKING:
    from rich.console import RenderableType

    from duckanon.report.model import Section


Summary = Mapping[str, Any]
_IN_PLAIN_LINES = ("warnings", "promised", "verified", "counted", "columns", "notes")
"""Sections that plain lines show in another form, or not at all."""


class Log(StrEnum):
    """The form of the log."""

    HUMAN = "human"
    JSON = "json"


class Recoding(StrEnum):
    """Whether a run reuses the recoding of the previous one."""

    FRESH = "fresh"
    FROZEN = "frozen"
    REFRESH = "refresh"


DryRun = Annotated[bool, typer.Option("--dry-run", help="Do everything but publish.")]


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("demo", rich_help_panel=MAKE)(demo)
    app.command("run", rich_help_panel=MAKE)(run)
    app.command("plan", rich_help_panel=MAKE)(plan)


def run(
    ctx: typer.Context,
    job: JobFile,
    dry_run: DryRun = False,
    day: Annotated[
        datetime | None,
        typer.Option(
            "--date", formats=["%Y-%m-%d"], help="The date that stands for {date} in paths.", show_default="today, UTC"
        ),
    ] = None,
    recoding: Annotated[
        Recoding | None,
        typer.Option(
            "--recoding", help="Whether the recoding of the last run is reused, in place of what the job says."
        ),
    ] = None,
    accept_drift: Annotated[
        bool, typer.Option("--accept-drift", help="Publish even if the source changed more than the job allows.")
    ] = False,
    log: Annotated[Log | None, typer.Option("--log", help="Log the steps to standard error.")] = None,
) -> None:
    """Run a job: anonymize, verify, and publish with reports and a manifest."""
    more: dict[str, Any] = {"day": day.date() if day else None, "recoding": str(recoding) if recoding else None}
    _run(Screen.of(ctx), job, log=log, dry_run=dry_run, accept_drift=accept_drift, **more)


def _run(
    screen: Screen, job: Path, *, log: Log | None = None, more: dict[str, Any] | None = None, **options: Any
) -> None:
    with modules_kept():
        from duckanon.jobs import run_job

    with Bars(screen.watched and log is None) as bars, ExitStack() as at_the_end:
        listener: Any = bars.listener
        if log is not None:
            from duckanon.jobs.monitoring import LoggedProgress, configure

            at_the_end.callback(configure("json" if log is Log.JSON else "human", sys.stderr))
            listener = LoggedProgress()
        # The process does nothing else, so it may be ended where something hangs.
        result = run_job(job, progress=listener, end_process=True, **options)
    signals.all_closed()
    results = [
        {"table": t.name, "summary": t.summary, "written": t.written, "warnings": t.warnings} for t in result.tables
    ]
    if screen.as_json:
        only = (
            {k: results[0][k] for k in ("summary", "written", "warnings")} if len(results) == 1 else {"tables": results}
        )
        screen.document({**(more or {}), "run": result.run, "peak_memory": result.peak_memory, **only})
        return
    for one in result.tables:
        if len(results) > 1:
            show_name(screen, one.name)
        show_release(screen, one.summary, one.written, one.warnings)


def plan(
    ctx: typer.Context,
    job: JobFile,
    table: OneTable = None,
    sql: Annotated[
        bool, typer.Option("--sql", help="Also do a dry run, and show the statements that read rows.")
    ] = False,
) -> None:
    """Show what a job would do, step by step.

    Only the names and types of columns are read, unless --sql is given.
    """
    from duckanon.jobs import job_statements, plan_job

    screen, planned = Screen.of(ctx), plan_job(job, table)
    ran = []
    if sql:
        with Bars(screen.watched) as bars:
            ran = job_statements(job, table, bars.listener)
    if screen.as_json:
        screen.document({**planned.to_dict(), **({"statements": [one.to_dict() for one in ran]} if sql else {})})
    else:
        show_plan(screen, planned.explain(), [one.pretty() for one in ran])


def demo(
    ctx: typer.Context,
    rows: Annotated[int, typer.Option("--rows", min=1, help="How many hospital stays to make.")] = 20_000,
    folder: Annotated[Path, typer.Option("--folder", help="The folder for the data, the job and the release.")] = Path(
        "demo"
    ),
) -> None:
    """Make a table of invented hospital stays and anonymize it."""
    from duckanon.engine.process import data_folder
    from duckanon.io.disk import replacing
    from duckanon.progress import Progress
    from duckanon.testing.hospital import write_hospital

    screen = Screen.of(ctx)
    folder.mkdir(parents=True, exist_ok=True)
    data, job = folder / "hospital.parquet", folder / "hospital.toml"
    example = data_folder("examples") / "hospital.toml"
    # Replaced when complete: another demo may be at work in the same folder.
    with replacing(data) as staged, Bars(screen.watched) as bars, Progress(bars).step("make the table"):
        write_hospital(staged, rows)
    # A job that was edited since is run as it is.
    changed = job.exists() and job.read_bytes() != example.read_bytes()
    if not changed:
        with replacing(job) as staged:
            shutil.copyfile(example, staged)
    if not screen.as_json:
        _show_demo(screen, data, job, rows, changed)
    # The number of rows may differ from the last time.
    _run(screen, job, more={"data": data, "job": job, "job_changed": changed}, accept_drift=True)
    if screen.rich:
        _show_next(screen, data, job)


def _show_demo(screen: Screen, data: Path, job: Path, rows: int, changed: bool) -> None:
    made = f"{shown_path(data)}: {count(rows, 'rows')} of invented hospital stays"
    ran = f"{shown_path(job)}: the job{', with your changes' if changed else ''}"
    if not screen.rich:
        screen.line(f"data: {made}")
        screen.line(f"job: {ran}")
        return
    from rich.text import Text

    sections(screen, [("Made", Text(f"{made}\n{ran}"))])


def _show_next(screen: Screen, data: Path, job: Path) -> None:
    from rich.text import Text

    release = job.parent / "release"
    table = grid({"overflow": "fold", "style": "green"})
    for command in (
        f"duckanon plan {shown_path(job)}",
        f"duckanon verify {shown_path(release)} --job {shown_path(job)} --accept persons",
        f"duckanon check {shown_path(data)} -q sex,zip,birth_date -k 5",
        f"duckanon risk {shown_path(data)} -q sex,zip,birth_date",
        f"duckanon sql -c \"FROM '{shown_path(release / 'hospital.parquet')}' LIMIT 10\"",
    ):
        table.add_row(Text(command))
    sections(screen, [(f"Next: change k in {shown_path(job)} and run it again, or try", table)])


def written_files(written: Mapping[str, Any]) -> list[tuple[str, Path]]:
    """Return (kind, path) of all files of a release."""
    if not written:
        return []
    reports = [("report", Path(p)) for p in written.get("reports", ())]
    return [("release", Path(written["release"])), *reports, ("manifest", Path(written["manifest"]))]


def show_name(screen: Screen, name: str) -> None:
    """Show the name of the table that comes next."""
    if not screen.rich:
        screen.line(f"table: {name}")
        return
    from rich.rule import Rule
    from rich.text import Text

    screen.out.print(Rule(Text(name, style="bold"), align="left", style="dim"), width=WIDEST)


def show_release(screen: Screen, summary: Summary, written: Mapping[str, Any], warnings: Sequence[str] = ()) -> None:
    """Show a summary of the report, and where the files are."""
    if not screen.rich:
        _plain_release(screen, summary, written, warnings)
        return
    from rich.styled import Styled

    from duckanon.report.terminal import drawn

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
    """Return the sections of the report that a terminal shows. Explanations are in the files only."""
    from duckanon.report.release import Run, sections

    return [s for s in sections(Run(summary, {"warnings": warnings})) if s.brief]


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

    from duckanon.report.release import outcome

    counts, sizes = summary["found"], summary["found"]["class_size"]
    algorithm = summary["algorithm"]["name"]
    table = grid({"no_wrap": True, "style": "dim"}, {})
    table.add_row("rows", f"{counts['rows_in']:,} in, {counts['rows_published']:,} published")
    limit = f"by {algorithm}; at most {share(summary['suppression_limit'])} allowed"
    table.add_row("suppressed", f"{counts['rows_suppressed']:,} rows, {share(counts['suppressed_share'])} ({limit})")
    spread = f"{figure(sizes['min'])} to {count(sizes['max'], summary['unit'])}"
    middle = f"median {figure(sizes['median'])}, mean {figure(sizes['mean'])}"
    hides = "permutation" in summary
    table.add_row(*classes_row(summary, f"{counts['classes']:,}, of {spread} ({middle})"))
    for one in summary.get("homogeneity") or ():
        tell = f"{one['homogeneous']:,} {'class has' if one['homogeneous'] == 1 else 'classes have'} one value of it"
        table.add_row(one["attribute"], tell)
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
    # Regions have no level.
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
    """Return the row about classes, or about groups where values were permuted."""
    return ("groups", f"{sizes}, not visible in the release") if "permutation" in summary else ("classes", sizes)


def permutation_rows(permutation: Summary) -> list[tuple[str, str]]:
    """Return rows about which columns were permuted together, and what they still reveal about each other."""
    if not permutation:
        return []
    blocks = "; ".join(", ".join(block) for block in permutation["blocks"])
    rows = [("blocks", blocks)]
    if permutation.get("linkage"):
        rows.append(("linkage", f"at most 1 in {figure(round(1 / permutation['linkage'], 2))}"))
    words = {"quasi_identifiers": "of each other", "with_sensitive": "of sensitive columns"}
    for kind, counts in permutation["mutual_information"].items():
        results = f"{figure(counts['before'])} bits before, {figure(counts['after'])} after"
        rows.append(("tell " + words.get(kind, kind), results))
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
    from duckanon.report.history import cautions
    from duckanon.report.release import outcome
    from duckanon.report.terminal import plain

    counts, sizes = summary["found"], summary["found"]["class_size"]
    for promise in summary["promise"]:
        screen.line(f"promise: {promise['text']}")
    for check in summary["checks"]:
        verdict = "holds" if check["holds"] else "broken"
        what = "groups" if "permutation" in summary else "classes"
        classes = f"{check['violating_classes']} of {check['classes']} {what} broken"
        screen.line(f"{check['model']} ({parameters(check['parameters'])}): {verdict}, {classes}")
    line = f"{counts['rows_in']} in, {counts['rows_published']} published, {counts['rows_suppressed']} suppressed"
    screen.line(f"rows: {line}")
    spread = f"{figure(sizes['min'])} to {figure(sizes['max'])} {summary['unit']}, median {figure(sizes['median'])}"
    screen.line(": ".join(classes_row(summary, f"{counts['classes']}, of {spread}")))
    for name, text in permutation_rows(summary.get("permutation") or {}):
        screen.line(f"{name}: {text}")
    search = outcome(summary.get("search") or {}, figure)
    if search:
        screen.line(f"search: {search}")
    for measure in summary["loss"]:
        if measure["attribute"] is None:
            screen.line(f"{measure['metric']}: {figure(measure['value'])}")
    for warning in (*cautions(summary), *warnings):
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
