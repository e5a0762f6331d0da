"""The report as one HTML page: no script, nothing fetched, every text escaped, on one or two sheets of paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from duckanon.report import sections as said
from duckanon.report.drift import day, entry, risk, total, trends
from duckanon.report.markup import Markup, element, joined
from duckanon.report.phrases import EXITS, HIDDEN_PROSECUTOR, PROSECUTOR, SEEDED
from duckanon.report.pictures import bar, line, sizes
from duckanon.report.sections import Block, Bullets, Grid, Lines, Loud, Section, Summary, number, share
from duckanon.report.style import STYLE
from duckanon.report.verifying import commands

Record = Mapping[str, Any]
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""Whatever a name smuggled in, a browser would neither run nor fetch it."""


def page(summary: Summary | None, *, record: Record | None = None, history: Sequence[Mapping[str, Any]] = ()) -> str:
    """Return the report of a run as one page of HTML.

    Parameters
    ----------
    summary : mapping or None
        What ``Release.summary`` returns; None or empty for a run that failed before there was a release.
    record : mapping, optional
        The run: job, table, times, outcome, warnings, files written, memory.
    history : sequence of mapping
        The earlier runs of the job, oldest first, as flat rows of figures.
    """
    summary = summary if summary is not None else (record or {}).get("summary") or {}
    title = _title(summary, record)
    kind = "Report of a release" if summary else "Report of a run"
    return document(
        title,
        kind,
        element("div", SEEDED, class_="seeded", role="alert") if summary.get("seeded") else None,
        element("p", kind, class_="eyebrow"),
        element("h1", title, class_="name"),
        _facts(summary, record),
        _verdict(summary, record),
        _tiles(summary, record),
        _warnings(record),
        *(_release(summary, record, history) if summary else [_drift(summary, record, history)]),
        element("footer", _footer(summary)),
    )


def document(title: str, kind: str, *parts: Markup | None) -> str:
    """Return a page with a title and a body, in the style of all reports."""
    head = element(
        "head",
        Markup('<meta charset="utf-8">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup('<meta name="color-scheme" content="light dark">'),
        Markup('<meta name="referrer" content="no-referrer">'),
        element("title", f"{title}: {kind.lower()}"),
        element("style", Markup(STYLE)),
    )
    return f"<!doctype html>\n{element('html', head, element('body', element('main', *parts)), lang='en')}\n"


def _release(summary: Summary, record: Record | None, history: Sequence[Mapping[str, Any]]) -> list[Markup | None]:
    return [
        _pair(_drawn(said.promised(summary)), _risk(summary, record)),
        _proof(summary),
        _pair(_classes(summary), _lost(summary)),
        _drift(summary, record, history),
        _drawn(said.columns(summary), wide=True),
        _pair(_drawn(said.hidden(summary)), _drawn(said.not_promised(summary))),
        _pair(_drawn(said.bounds_section(summary)), _drawn(_notes(summary))),
        _verify(summary, record),
        _again(summary, record),
    ]


def _title(summary: Summary, record: Record | None) -> str:
    job, table = (record or {}).get("job"), (record or {}).get("table")
    if job:
        return f"{job}: {table}" if table and table != job else str(job)
    return str((summary.get("source") or {}).get("name") or "Release")


def _facts(summary: Summary, record: Record | None) -> Markup:
    record = record or {}
    seconds = record.get("seconds")
    facts = [
        said.source(summary) if summary.get("source") else "",
        day(record.get("started")),
        f"took {duration(seconds)}" if seconds is not None else "",
        f"recoding {record['recoding']}" if record.get("recoding") else "",
        f"run {record['run']}" if record.get("run") else "",
    ]
    return element("p", *(element("span", f) for f in facts if f), class_="facts")


def _verdict(summary: Summary, record: Record | None) -> Markup:
    record, checks = record or {}, summary.get("checks") or ()
    outcome = record.get("outcome")
    if outcome == "failed":
        code, error = record.get("exit_code"), record.get("error") or {}
        why = ": ".join(str(error[k]) for k in ("type", "message") if error.get(k))
        meaning = f"Exit code {code}: {EXITS[code]}. " if code in EXITS else f"Exit code {code}. "
        text = f"{meaning}{why} The last good export is as it was."
        return verdict_box("bad", "✕", "Failed: nothing was published", text)
    broken = [c for c in checks if not c["holds"]]
    if broken:
        return verdict_box("bad", "✕", "A promise is broken", f"{len(broken)} of {len(checks)} checks do not hold.")
    if not checks:
        return verdict_box("warn", "!", "Nothing was checked", "There is no proof in this report.")
    held = "every promise holds"
    text = f"{len(checks)} of {len(checks)} checks hold on what was published, counted again from the file."
    if outcome == "dry_run":
        return verdict_box("warn", "○", f"Dry run: {held}, nothing was written", text)
    return verdict_box("good", "✓", f"Published: {held}" if outcome == "published" else held.capitalize(), text)


def verdict_box(kind: str, sign: str, title: str, text: str) -> Markup:
    """Return what it all comes to, in a box that is good, warns or is bad."""
    inside = element("div", element("strong", title), element("span", text))
    return element("div", element("div", sign, class_="sign", aria_hidden="true"), inside, class_=f"verdict {kind}")


def _tiles(summary: Summary, record: Record | None) -> Markup | None:
    found, danger = summary.get("found") or {}, risk(summary)
    if not found:
        return None
    sizes_found, held_back = found.get("class_size") or {}, (record or {}).get("held_back")
    tiles = [
        ("Rows published", number(found.get("rows_published")), f"of {number(found.get('rows_in'))}"),
        ("Rows suppressed", share(found.get("suppressed_share")), f"{number(found.get('rows_suppressed'))} rows"),
        (f"Smallest {'group' if said.hides(summary) else 'class'}", number(sizes_found.get("min")), said.unit(summary)),
        *([] if said.hides(summary) else [("Loss", number(total(summary, "loss")), "0 is best, 1 is all")]),
        ("Highest risk", share(danger.highest if danger else None), "to be picked out"),
    ]
    if held_back:
        tiles.insert(2, ("Held back", number(held_back), "rows, until their class fills"))
    return tiled(tiles)


def tiled(tiles: Sequence[tuple[str, str, str]]) -> Markup:
    """Return figures as tiles: name, value and what else to know of each."""
    drawn = [
        element("div", element("span", name, class_="name"), element("b", value), element("span", more), class_="tile")
        for name, value, more in tiles
    ]
    return element("div", *drawn, class_="tiles")


def _warnings(record: Record | None) -> Markup | None:
    lines = [str(w) for w in (record or {}).get("warnings") or ()]
    return section_of("Warnings", element("ul", *(element("li", x) for x in lines)), kind="warn") if lines else None


def _proof(summary: Summary) -> Markup | None:
    section = said.proof(summary)
    return _drawn(section, wide=True, cells={2: lambda cell: "no" if isinstance(cell, Loud) else "yes"})


def _classes(summary: Summary) -> Markup:
    section = said.found_section(summary)
    found = (summary.get("found") or {}).get("class_size") or {}
    picture = sizes(found, _promised_k(summary), said.unit(summary), said.classes(summary)) if found else Markup("")
    blocks = [_block(b) for b in section.blocks]
    # The picture stands between what sizes are counted in and their figures.
    return section_of(section.title, blocks[0], *blocks[1:2], picture, *blocks[2:])


def _promised_k(summary: Summary) -> int | None:
    given = [
        p["parameters"].get("k")
        for p in summary.get("promise") or ()
        if p["model"] in ("k_anonymity", "probabilistic_k_anonymity")
    ]
    return max((k for k in given if isinstance(k, int)), default=None)


def _risk(summary: Summary, record: Record | None) -> Markup | None:
    found = risk(summary)
    if found is None:
        return None
    rows = []
    for name, value in (("Highest", found.highest), ("Average", found.average)):
        if value is not None:
            said_so = f"1 in {number(round(1 / value, 1))}"
            drawn = element("td", bar(value, f"{name} risk: {share(value)}"), class_="drawn")
            cells = [element("td", name), drawn, *(element("td", v, class_="num") for v in (share(value), said_so))]
            rows.append(element("tr", *cells))
    both = (record or {}).get("intersection")
    nights = None
    if both:
        nights = element(
            "p",
            f"Together with the last release: {number(both.get('persons_in_both'))} persons are in both, the smallest "
            f"group of them that the two tell apart has {number(both.get('smallest'))}, and "
            f"{number(both.get('persons_below'))} are in groups smaller than the promise.",
            class_="aside",
        )
    told = HIDDEN_PROSECUTOR if said.hides(summary) else PROSECUTOR
    return section_of("Risk", element("table", *rows), element("p", told, class_="aside"), nights)


def _lost(summary: Summary) -> Markup | None:
    section = said.lost(summary)
    if section is None or said.hides(summary):
        return _drawn(section)
    totals = _block(section.blocks[0])
    if len(section.blocks) == 1:
        return section_of(section.title, totals)
    grid = section.blocks[1]
    assert isinstance(grid, Grid)
    return section_of(section.title, _bars(grid, summary), totals)


def _bars(grid: Grid, summary: Summary) -> Markup:
    """Return the table of columns with a bar for the loss of each."""
    metric = "loss" if "loss" in grid.header else grid.header[1]
    values = {str(m["attribute"]): m["value"] for m in summary["loss"] if m["metric"] == metric}
    place = grid.header.index(metric)
    head = [
        element("th", h, class_=_kind(grid, i), colspan=2 if i == place else None) for i, h in enumerate(grid.header)
    ]
    rows = [element("tr", *head)]
    for row in grid.rows:
        name, cells = row[0], [element("td", c, class_=_kind(grid, i)) for i, c in enumerate(row)]
        drawn = bar(values.get(name), f"{metric} of {name}: {number(values.get(name))}")
        rows.append(element("tr", *cells[:place], element("td", drawn, class_="drawn"), *cells[place:]))
    aside = element("p", f"Bars: {metric} from 0 to 1.", class_="aside")
    return joined(element("div", element("table", *rows), class_="scroll"), aside)


def _drift(summary: Summary, record: Record | None, history: Sequence[Mapping[str, Any]]) -> Markup | None:
    if record is None and not history:
        return None
    runs = [*history, entry(summary, record)]
    found = trends(runs, said.unit(summary) if summary else "")
    if not found:
        if summary:
            return section_of("Over the runs", element("p", "There are no earlier runs to compare with yet."))
        return None
    first, last = day(runs[-len(found[0].points)].get("started"))[:10], day(runs[-1].get("started"))[:10]
    charts = [
        element(
            "div",
            element("span", trend.title, class_="what"),
            element(
                "div", element("b", trend.now), element("span", f"0 to {trend.most}", class_="range"), class_="top"
            ),
            line(trend.points, f"{trend.title} over {len(trend.points)} runs, now {trend.now}", trend.beside),
            element("div", element("span", first), element("span", last), class_="span"),
            class_="chart",
        )
        for trend in found
    ]
    failed = sum(r.get("outcome") == "failed" for r in runs[-len(found[0].points) :])
    key = [f"{len(found[0].points)} runs. ", element("span", class_="key"), " Rows in."]
    crosses = f" {number(failed)} failed: a red cross each." if failed else ""
    return section_of(
        "Over the runs", element("div", *charts, class_="charts"), element("p", *key, crosses, class_="aside")
    )


def _notes(summary: Summary) -> Section | None:
    """Return the notes without those that the table of columns has as well."""
    section = said.notes(summary)
    if section is None or not isinstance(section.blocks[0], Bullets):
        return section
    own = [n for n in section.blocks[0].items if not n.startswith("hierarchy of ")]
    return Section(section.title, [Bullets(own)]) if own else None


def _verify(summary: Summary, record: Record | None) -> Markup:
    parts = [joined(element("p", what), element("pre", command)) for what, command in commands(summary, record)]
    return section_of("How to verify", element("p", "In the folder of the release:", class_="aside"), *parts)


def _again(summary: Summary, record: Record | None) -> Markup:
    section = said.again(summary)
    grids = [b for b in section.blocks if isinstance(b, Grid)]
    words = [_block(b) for b in section.blocks if not isinstance(b, Grid)]
    peak = (record or {}).get("peak_memory")
    memory = element("p", f"Peak memory: {in_bytes(peak)}.") if peak else None
    if not grids:
        return section_of(section.title, *words, memory)
    seconds = summary["seconds"]
    longest = max(seconds.values()) or 1.0
    rows = [
        element("tr", *(element("th", h, class_="num" if h == "Seconds" else None) for h in ("Step", "", "Seconds")))
    ]
    for step, shown_as in grids[0].rows:
        drawn = element("td", bar(seconds.get(step, 0) / longest, f"{step}: {shown_as} seconds"), class_="drawn")
        rows.append(element("tr", element("td", step), drawn, element("td", shown_as, class_="num")))
    times = element("div", element("table", *rows), memory)
    return section_of(section.title, element("div", element("div", *words), times, class_="pair"))


def _footer(summary: Summary) -> str:
    version = summary.get("duckanon")
    return f"Made by duckanon {version}. No value of the data is on this page." if version else "Made by duckanon."


def section_of(title: str, *parts: Markup | None, kind: str | None = None) -> Markup:
    """Return a card with a heading."""
    return element("section", element("h2", title), *parts, class_=kind)


def _pair(left: Markup | None, right: Markup | None) -> Markup | None:
    if left and right:
        return element("div", left, right, class_="pair")
    return left or right


def _drawn(section: Section | None, wide: bool = False, cells: Mapping[int, Any] | None = None) -> Markup | None:
    if section is None:
        return None
    return section_of(section.title, *(_block(b, wide, cells or {}) for b in section.blocks))


def _block(block: Block, wide: bool = False, cells: Mapping[int, Any] | None = None) -> Markup:
    if isinstance(block, Lines):
        return joined(*(element("p", text) for text in block.lines))
    if isinstance(block, Bullets):
        return element("ul", *(element("li", item) for item in block.items))
    kinds = cells or {}
    rows = []
    if any(block.header):
        rows.append(element("tr", *(element("th", h, class_=_kind(block, i)) for i, h in enumerate(block.header))))
    for row in block.rows:
        drawn = [element("td", c, class_=kinds[i](c) if i in kinds else _kind(block, i)) for i, c in enumerate(row)]
        rows.append(element("tr", *drawn))
    return element("div", element("table", *rows, class_="wide" if wide else None), class_="scroll")


def _kind(grid: Grid, position: int) -> str | None:
    return "num" if position in grid.right else "name" if position == 0 else None


def duration(seconds: float) -> str:
    """Return a time as a person says it.

    Examples
    --------
    >>> duration(0.8), duration(75.2), duration(7384)
    ('0.8 s', '1 min 15 s', '2 h 3 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def in_bytes(size: float) -> str:
    """Return a size in memory as a person says it.

    Examples
    --------
    >>> in_bytes(512), in_bytes(734_003_200), in_bytes(3 * 2**30)
    ('512 bytes', '700 MiB', '3.0 GiB')
    """
    if size < 1024:
        return f"{size:.0f} bytes"
    if size < 2**30:
        return f"{size / 2**20:.0f} MiB" if size >= 2**20 else f"{size / 2**10:.0f} KiB"
    return f"{size / 2**30:.1f} GiB"
