"""The report of a release: each section declared once, for HTML, Markdown and the terminal alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from duckanon.report.assessments import metric_name
from duckanon.report.history import cautions, entry, risk, total, trends
from duckanon.report.model import (
    Bar,
    Block,
    Bullets,
    Cell,
    Command,
    Grid,
    Histogram,
    Lines,
    Report,
    Section,
    Sizes,
    Tile,
    Trends,
    Verdict,
)
from duckanon.report.phrases import (
    AGAIN,
    AGAIN_DRAWN,
    BETTER,
    BOUNDS,
    EXITS,
    GROUPS,
    HIDDEN_MEANING,
    HIDDEN_NOT_PROMISED,
    HIDDEN_PROOF,
    HIDDEN_PROSECUTOR,
    NEXT,
    NOT_PROMISED,
    OUTPUT,
    PROOF,
    PROSECUTOR,
    SEEDED,
    SIZES,
    TIGHT_SET,
)
from duckanon.report.text import duration, in_bytes, minute, number, parameters, sentence, share
from duckanon.report.verifying import commands

Summary = Mapping[str, Any]


@dataclass(frozen=True)
class Run:
    """What a report of a release is made from.

    Attributes
    ----------
    summary : mapping
        What ``Release.summary`` returns; empty for a run that failed before there was a release.
    record : mapping, optional
        The run: job, table, times, outcome, warnings, files written, memory.
    history : sequence of mapping
        The earlier runs of the job, oldest first, as flat rows of figures.
    """

    summary: Summary
    record: Mapping[str, Any] | None = None
    history: Sequence[Mapping[str, Any]] = field(default=())

    @property
    def hides(self) -> bool:
        """Whether values were permuted within groups that the release does not show."""
        return "permutation" in self.summary

    @property
    def group(self) -> str:
        """What rows are put together in."""
        return "group" if self.hides else "class"

    @property
    def groups(self) -> str:
        """What rows are put together in, as the head of a column."""
        return "Groups" if self.hides else "Classes"

    @property
    def unit(self) -> str:
        """What classes are counted in: rows or persons."""
        return str(self.summary.get("unit", "rows"))

    def of(self, key: str) -> Any:
        """Return a part of the summary, or an empty mapping."""
        return self.summary.get(key) or {}

    def recorded(self, key: str) -> Any:
        """Return what the record has under a key, or None."""
        return (self.record or {}).get(key)


_STANDS_OUT = 0.4
"""The share of the loss from which on the column that carries it is named."""

Declared = Callable[[Run], Section | None]
SECTIONS: list[Declared] = []
"""The sections of a report of a release, in order; one without content returns None."""


def section(declared: Declared) -> Declared:
    """Add a section to every form of the report."""
    SECTIONS.append(declared)
    return declared


def sections(run: Run) -> list[Section]:
    """Return the sections of a report of a release, in order."""
    return [made for made in (declared(run) for declared in SECTIONS) if made is not None]


def report(run: Run) -> Report:
    """Return the report of a release, or of a run that failed."""
    kind = "Report of a release" if run.summary else "Report of a run"
    version = run.summary.get("duckanon")
    return Report(
        _title(run),
        kind,
        _sections(run),
        facts=_facts(run),
        stamp=SEEDED if run.summary.get("seeded") else "",
        verdict=_verdict(run),
        tiles=_tiles(run),
        footer=f"Made by duckanon {version}. No value of the data is on this page." if version else "Made by duckanon.",
    )


def _sections(run: Run) -> list[Section]:
    following = next_step(run)
    if run.summary:
        return [*([following] if following else []), *sections(run)]
    return [made for made in (following, warnings(run), over_the_runs(run)) if made]


def next_step(run: Run) -> Section | None:
    """Return what to do after a run that failed."""
    step = NEXT.get(run.recorded("exit_code") or 0) if run.recorded("outcome") == "failed" else None
    if step is None:
        return None
    history = "duckanon history lists earlier failures and their reasons."
    return Section("What to do next", [Lines([step]), Lines([history], aside=True)], name="next", warns=True)


def _title(run: Run) -> str:
    job, table = run.recorded("job"), run.recorded("table")
    if job:
        return f"{job}: {table}" if table and table != job else str(job)
    return str(run.of("source").get("name") or "Release")


def _facts(run: Run) -> list[str]:
    seconds, source = run.recorded("seconds"), run.of("source")
    facts = [
        f"Source: {source.get('kind', '')} {source.get('name', '')}".rstrip() if source else "",
        minute(run.recorded("started")),
        f"took {duration(seconds)}" if seconds is not None else "",
        f"recoding {run.recorded('recoding')}" if run.recorded("recoding") else "",
        f"run {run.recorded('run')}" if run.recorded("run") else "",
    ]
    return [fact for fact in facts if fact]


def _verdict(run: Run) -> Verdict:
    checks, outcome = run.summary.get("checks") or (), run.recorded("outcome")
    if outcome == "failed":
        code, error = run.recorded("exit_code"), run.recorded("error") or {}
        why = ": ".join(str(error[k]) for k in ("type", "message") if error.get(k))
        meaning = f"Exit code {code}: {EXITS[code]}. " if code in EXITS else f"Exit code {code}. "
        text = f"{meaning}{why} The last good export is as it was."
        return Verdict("bad", "Failed: nothing was published", text)
    broken = [c for c in checks if not c["holds"]]
    if broken:
        text = f"{len(broken)} of {len(checks)} checks do not hold."
        return Verdict("bad", "A privacy requirement is violated", text)
    if not checks:
        return Verdict("warn", "Nothing was checked", "Nothing in this report was verified.")
    held = "all privacy requirements hold"
    text = f"{len(checks)} of {len(checks)} checks hold on what was published, counted again from the file."
    if outcome == "dry_run":
        return Verdict("warn", f"Dry run: {held}, nothing was written", text, "○")
    return Verdict("good", f"Published: {held}" if outcome == "published" else held.capitalize(), text)


def _tiles(run: Run) -> list[Tile]:
    counts, danger, held_back = run.of("found"), risk(run.summary), run.recorded("held_back")
    if not counts:
        return []
    sizes = counts.get("class_size") or {}
    tiles = [
        Tile("Rows published", number(counts.get("rows_published")), f"of {number(counts.get('rows_in'))}"),
        Tile("Rows suppressed", share(counts.get("suppressed_share")), f"{number(counts.get('rows_suppressed'))} rows"),
        Tile(f"Smallest {run.group}", number(sizes.get("min")), run.unit),
        *([] if run.hides else [Tile("Loss", number(total(run.summary, "loss")), "0 is best, 1 is all")]),
        Tile("Highest risk", share(danger.highest if danger else None), "of reidentification"),
    ]
    if held_back:
        tiles.insert(2, Tile("Held back", number(held_back), "rows, until their class fills"))
    return tiles


@section
def warnings(run: Run) -> Section | None:
    """Return what the requirements do not cover, and the warnings of the run."""
    lines = [*cautions(run.summary), *(str(w) for w in run.recorded("warnings") or ())]
    return Section("Warnings", [Bullets(lines)], name="warnings", warns=True) if lines else None


@section
def promised(run: Run) -> Section:
    """Return the privacy requirements in words."""
    promises = [f"{sentence(p['text'])} ({p['model']})" for p in run.summary.get("promise", ())]
    limit = f"Suppression limit: {share(run.summary.get('suppression_limit'))} of the rows."
    items = [*promises, limit, "A column without a role is not published."]
    return Section("What is promised", [Bullets(items)], name="promised", half=True)


@section
def linkage_risk(run: Run) -> Section | None:
    """Return the risk of reidentification."""
    danger = risk(run.summary)
    if danger is None:
        return None
    rows = [
        (
            name,
            Cell(share(value), bar=Bar(value, f"{name} risk: {share(value)}")),
            f"1 in {number(round(1 / value, 1))}",
        )
        for name, value in (("Highest", danger.highest), ("Average", danger.average))
        if value is not None
    ]
    blocks: list[Block] = [
        Grid(("", "", ""), rows, right=(1, 2)),
        Lines([HIDDEN_PROSECUTOR if run.hides else PROSECUTOR], aside=True),
    ]
    both = run.recorded("intersection")
    if both:
        text = (
            f"Together with the last release: {number(both.get('persons_in_both'))} persons are in both, the smallest "
            f"group of them that the two releases distinguish has {number(both.get('smallest'))}, and "
            f"{number(both.get('persons_below'))} are in groups smaller than required."
        )
        blocks.append(Lines([text], aside=True))
    return Section("Risk", blocks, half=True, brief=False)


@section
def verified(run: Run) -> Section:
    """Return what the gate found for each model."""
    rows = [
        (
            str(c["model"]),
            parameters(c["parameters"]),
            Cell("yes", mark="good") if c["holds"] else Cell("NO", mark="bad"),
            number(c["classes"]),
            number(c["violating_classes"]),
            number(c["violating_rows"]),
        )
        for c in run.summary.get("checks", ())
    ]
    header = ("Model", "Parameters", "Holds", f"{run.groups} checked", f"{run.groups} that break it", "Rows in those")
    lines = [PROOF, HIDDEN_PROOF] if run.hides else [PROOF]
    return Section("Verification", [Lines(lines), Grid(header, rows, right=(3, 4, 5), wide=True)], name="verified")


@section
def counted(run: Run) -> Section:
    """Return the numbers of rows and classes, and the sizes of classes."""
    counts = run.of("found")
    rows_in, published = counts.get("rows_in"), counts.get("rows_published")
    rows = [
        ("Rows in", number(rows_in), ""),
        ("Rows published", number(published), share(published / rows_in if rows_in else None)),
        ("Rows suppressed", number(counts.get("rows_suppressed")), share(counts.get("suppressed_share"))),
        ("Groups, not visible in the release" if run.hides else "Classes published", number(counts.get("classes")), ""),
    ]
    for one in run.summary.get("homogeneity") or ():
        part = share(one["homogeneous"] / one["classes"] if one["classes"] else None)
        rows.append((f"Classes with one value of {one['attribute']}", number(one["homogeneous"]), part))
    blocks: list[Block] = [Grid(("", "Number", "Share"), rows, right=(1, 2))]
    sizes = counts.get("class_size") or {}
    if sizes:
        blocks.append(Lines([f"{run.unit.capitalize()} in a {run.group}:"]))
        quantiles = [float(sizes[k]) for k in ("min", "q25", "median", "q75", "max") if sizes.get(k) is not None]
        blocks += [Sizes(quantiles, _promised_k(run), run.unit, run.groups)] if len(quantiles) == 5 else []
        bars = [(_range(b), b["classes"]) for b in run.summary.get("class_sizes") or ()]
        if len(bars) > 1:
            blocks.append(Histogram(bars, f"{run.unit} in a {run.group}", run.groups.lower()))
        header = [SIZES.get(k, str(k).capitalize()) for k in sizes]
        blocks.append(Grid(header, [[number(v) for v in sizes.values()]], right=range(len(sizes))))
    return Section("What was found", blocks, name="counted", half=True)


def _range(sizes: Mapping[str, int]) -> str:
    """Return a range of sizes.

    Examples
    --------
    >>> _range({"from": 5, "to": 9}), _range({"from": 5, "to": 5})
    ('5–9', '5')
    """
    first, last = number(sizes["from"]), number(sizes["to"])
    return first if first == last else f"{first}–{last}"


def _promised_k(run: Run) -> int | None:
    given = [
        p["parameters"].get("k")
        for p in run.summary.get("promise") or ()
        if p["model"] in ("k_anonymity", "probabilistic_k_anonymity")
    ]
    return max((k for k in given if isinstance(k, int)), default=None)


@section
def before_and_after(run: Run) -> Section | None:
    """Return what is left of each column: how many values it had, and how many a published cell stands for."""
    known = run.summary.get("cells") or ()
    if not known:
        return None
    rows = [
        (
            str(c["attribute"]),
            number(c["values"]),
            Cell(number(c["median"]), bar=Bar(_part(c), f"{c['attribute']}: {number(c['median'])} of the values")),
            share(c["exact"]),
        )
        for c in known
    ]
    header = (
        "Column",
        Cell("Values before", about="different values in the hierarchy of the column, or in the table without one"),
        Cell("A cell stands for", about="how many of these values half of the published cells stand for, at most"),
        Cell("Exact", about="share of the published rows whose cell stands for one value"),
    )
    about = "Only counts: which values a column had or has is not in a report."
    grid = Grid(header, rows, right=(1, 2, 3))
    return Section("Before and after", [grid, Lines([about], aside=True)], name="before", half=True, brief=False)


def _part(cells: Mapping[str, Any]) -> float:
    """Return the share of a column's values for which a cell stands, as the loss counts them."""
    return (cells["median"] - 1) / (cells["values"] - 1) if cells["values"] > 1 else 0.0


@section
def lost(run: Run) -> Section | None:
    """Return what the release lost: in all, and in each column."""
    if run.hides:
        return _association(run.summary["permutation"])
    measures = run.summary.get("loss") or ()
    if not measures:
        return None
    totals = [
        (metric_name(str(m["metric"])), number(m["value"]), BETTER.get(m["direction"], ""))
        for m in measures
        if m["attribute"] is None
    ]
    blocks: list[Block] = [Grid(("Metric", "Value", ""), totals, right=(1,))]
    single = [m for m in measures if m["attribute"] is not None]
    if single:
        metrics = list(dict.fromkeys(str(m["metric"]) for m in single))
        drawn = "loss" if "loss" in metrics else metrics[0]
        values = {(m["attribute"], m["metric"]): m["value"] for m in single}
        directions = {str(m["metric"]): str(m["direction"]) for m in single}

        def cell(attribute: str, metric: str) -> str | Cell:
            value = values.get((attribute, metric))
            shown = number(value)
            return Cell(shown, bar=Bar(value, f"{metric} of {attribute}: {shown}")) if metric == drawn else shown

        # The worst column comes first, so that the reader sees what to work on.
        attributes = sorted(
            dict.fromkeys(m["attribute"] for m in single),
            key=lambda a: -_worst(values.get((a, drawn)), directions.get(drawn, "lower")),
        )
        cells = [(str(a), *(cell(a, m) for m in metrics)) for a in attributes]
        blocks += [Lines([advice]) for advice in _advice(run, attributes, values, drawn)]
        head: list[str | Cell] = ["Column", *(metric_name(m) for m in metrics)]
        blocks.append(Grid(head, cells, right=range(1, len(metrics) + 1), wide=len(metrics) > 3))
    return Section("What was lost", blocks, name="lost", brief=False)


def _worst(value: Any, direction: str) -> float:
    """Return a value by which the worst comes last; one that is missing is the best."""
    if not isinstance(value, int | float) or not math.isfinite(value):
        return -math.inf
    return float(value) if direction == "lower" else -float(value)


def _advice(run: Run, attributes: Sequence[str], values: Mapping[Any, Any], metric: str) -> list[str]:
    """Return which column carries most of the loss, and what can be done; nothing where none stands out."""
    if metric != "loss" or len(attributes) < 2:
        return []
    lost = {a: values.get((a, metric)) or 0.0 for a in attributes}
    worst, total = attributes[0], sum(lost.values())
    part = lost[worst] / total if total else 0.0
    if part < max(_STANDS_OUT, 1.2 / len(attributes)):
        return []
    origin = next((str(h["origin"]) for h in run.summary.get("hierarchies", ()) if h["attribute"] == worst), "")
    finer = "give it a hierarchy" if origin.startswith("made") else "give it a hierarchy with finer steps"
    most = "most of the loss" if part > 0.5 else f"{share(part)} of the loss"
    return [f"{worst} carries {most}: {finer}, or make it insensitive if nobody could recognize a person by it."]


def _association(permutation: Summary) -> Section:
    """Return the association between columns before values were permuted, and after."""
    words = {
        "quasi_identifiers": "Two quasi-identifiers",
        "with_sensitive": "A quasi-identifier and a sensitive column",
    }
    rows = []
    for kind, bits in (permutation.get("mutual_information") or {}).items():
        remaining = bits["after"] / bits["before"] if bits["before"] else None
        figures = [number(bits[key]) for key in ("before", "after")]
        rows.append((words.get(kind, str(kind)), number(bits["pairs"]), *figures, share(remaining)))
    blocks: list[Block] = [Lines([HIDDEN_MEANING])]
    if rows:
        blocks.append(Lines(["Association of columns (mutual information in bits, mean over pairs):"]))
        blocks.append(Grid(("", "Pairs", "Before", "After", "Kept"), rows, right=(1, 2, 3, 4)))
    linkage = permutation.get("linkage")
    if linkage:
        odds = f"{share(linkage)}, 1 in {number(round(1 / linkage, 2))}"
        text = f"The most probable link of a person to a row is {odds}, for an adversary who knows all "
        blocks.append(Lines([f"{text}quasi-identifiers and how the release was made."]))
    return Section("What was lost", blocks, half=True, brief=False)


@section
def over_the_runs(run: Run) -> Section | None:
    """Return the figures of a job over its runs."""
    if run.record is None and not run.history:
        return None
    title, runs = "Over the runs", [*run.history, entry(run.summary, run.record)]
    drawn = trends(runs, run.unit if run.summary else "")
    if not drawn:
        lines = Lines(["There are no earlier runs to compare with yet."])
        return Section(title, [lines], brief=False) if run.summary else None
    shown = runs[-len(drawn[0].points) :]
    failed = sum(r.get("outcome") == "failed" for r in shown)
    crosses = f" {number(failed)} failed: a red cross each." if failed else ""
    first, last = (minute(r.get("started"))[:10] for r in (shown[0], shown[-1]))
    text = f"{len(shown)} runs. Dashed: rows in.{crosses}"
    return Section(title, [Trends(drawn, first, last), Lines([text], aside=True)], brief=False)


@section
def columns(run: Run) -> Section:
    """Return what was done to each column that is published."""
    header = ("Column", "Role", "Hierarchy", "Level", "What was done")
    grid = Grid(header, published_columns(run.summary), right=(3,), wide=True)
    made = [str(h["attribute"]) for h in run.summary.get("hierarchies", ()) if "neighbours" in str(h["origin"])]
    read = [Lines([f"{', '.join(made)}: {GROUPS}"], aside=True)] if made and not run.hides else []
    return Section("What was done to each column", [grid, *read], name="columns")


def published_columns(summary: Summary) -> list[tuple[str, str, str, str, str]]:
    """Return name, role, hierarchy, level and what was done of each column that is published."""
    roles = summary.get("roles") or {}
    hierarchies = {h["attribute"]: h for h in summary.get("hierarchies", ())}
    rows = [_recoded(name, hierarchies.get(name), summary) for name in roles.get("quasi_identifiers", ())]
    for role in ("sensitive", "insensitive"):
        rows += [(str(name), role, "", "", "published as it is") for name in roles.get(role, ())]
    return rows


def _recoded(name: str, hierarchy: Summary | None, summary: Summary) -> tuple[str, str, str, str, str]:
    role = "quasi-identifier"
    if "permutation" in summary:
        block = next((b for b in summary["permutation"].get("blocks", ()) if name in b), [name])
        others = ", ".join(str(n) for n in block if n != name)
        done = "published as it is" if name in (summary.get("within") or ()) else "permuted within groups"
        return (str(name), role, "", "", f"{done}, together with {others}" if others else done)
    if hierarchy is None:
        return (str(name), role, "", "", "recoded")
    level, height, origin = hierarchy["level"], hierarchy["height"], str(hierarchy["origin"])
    kind = (summary.get("output") or {}).get(name, "interval")
    if level is None:
        # Regions have no level; a column whose values are never mixed is published as it is.
        done = "published as it is" if name in (summary.get("within") or ()) else f"in regions, as {kind}"
        return (str(name), role, origin, "", done)
    done = "published as it is" if level == 0 else "nothing left of it" if level == height else "generalized"
    if kind != "interval":
        done = f"as {kind}, in classes of that level"
    return (str(name), role, origin, f"{level} of {height}", done)


@section
def hidden(run: Run) -> Section:
    """Return what is never published: identifiers, the key, dropped columns, suppressed rows."""
    roles = run.of("roles")
    key = roles.get("entity_key")
    parts = [
        ("Identifiers", roles.get("identifiers", ())),
        ("The key that identifies persons", [key] if key else []),
        ("Columns without a role", roles.get("dropped", ())),
    ]
    lines = [f"{title}: {', '.join(names)}" for title, names in parts if names]
    lines.append("The order of the rows in the source: rows are shuffled with a secret key that is not stored.")
    lines.append("The suppressed rows: they are left out, not shown as a class of their own.")
    return Section("What is never published", [Bullets(lines)], half=True, brief=False)


@section
def bounds(run: Run) -> Section | None:
    """Return what the published bounds disclose about single rows."""
    kind = run.summary.get("bounds")
    if kind is None:
        return None
    lines = [f"Setting: {kind}. {BOUNDS.get(kind, '')}".rstrip()]
    drawn = [str(h["attribute"]) for h in run.summary.get("hierarchies", ()) if "from the data" in h["origin"]]
    if drawn:
        lines.append(f"The cut points of these columns come from the data, all rows together: {', '.join(drawn)}.")
    lines += _outputs(run.of("output"), kind)
    return Section("Bounds", [Lines(lines)], half=True, brief=False)


def _outputs(kinds: Mapping[str, str], bounds: str) -> list[str]:
    """Return what each way of writing regions discloses, with the columns that are written so."""
    lines = []
    for kind in dict.fromkeys(kinds.values()):
        names = ", ".join(name for name, written in kinds.items() if written == kind)
        meaning = TIGHT_SET if (kind, bounds) == ("set", "tight") else OUTPUT.get(kind, "")
        lines.append(f"Written as {kind}: {names}. {meaning}".rstrip())
    return lines


@section
def notes(run: Run) -> Section | None:
    """Return what else a reader should know; where hierarchies come from is in the table of columns."""
    lines = [str(n) for n in run.summary.get("notes", ()) if not str(n).startswith("hierarchy of ")]
    if run.unit == "persons":
        lines.append(
            "k counts persons, not rows: all rows of a person in a group count once, and a person with many of its "
            "rows is linked to one of them more easily."
            if run.hides
            else "k counts persons, not rows: all rows of a person in a class count once."
        )
    return Section("Notes", [Bullets(lines)], name="notes", half=True) if lines else None


@section
def not_promised(run: Run) -> Section:
    """Return what is not promised."""
    # Where groups are hidden, there are no classes.
    others = [line for line in NOT_PROMISED if not run.hides or "members of a class" not in line]
    items = [*HIDDEN_NOT_PROMISED, *others] if run.hides else others
    return Section("What is not promised", [Bullets(items)], half=True, brief=False)


@section
def verification(run: Run) -> Section:
    """Return how a recipient can check the release."""
    blocks: list[Block] = [Lines(["In the folder of the release:"], aside=True)]
    for what, command in commands(run.summary, run.record):
        blocks += [Lines([what]), Command(command)]
    return Section("How to verify", blocks, brief=False)


@section
def again(run: Run) -> Section:
    """Return versions, algorithm and times."""
    engine, algorithm = run.of("engine"), run.of("algorithm")
    search, peak = outcome(run.of("search")), run.recorded("peak_memory")
    versions = f"duckanon {run.summary.get('duckanon', '')}, {engine.get('name', '')} {engine.get('version', '')}"
    lines = [
        f"Versions: {versions.strip(' ,')}.",
        f"Algorithm: {algorithm.get('name', '')}; parameters: {parameters(algorithm.get('parameters') or {})}.",
        *([f"Search: {search}."] if search else []),
        *(f"{str(name).replace('_', ' ').capitalize()}: {_given(v)}." for name, v in run.of("steering").items()),
        AGAIN_DRAWN if run.hides and not run.summary.get("seeded") else AGAIN,
        *([f"Peak memory: {in_bytes(peak)}."] if peak else []),
    ]
    blocks: list[Block] = [Lines(lines)]
    seconds = run.of("seconds")
    if seconds:
        longest = max(seconds.values()) or 1.0
        times = [
            (str(step), Cell(f"{s:.2f}", bar=Bar(s / longest, f"{step}: {s:.2f} seconds")))
            for step, s in seconds.items()
        ]
        blocks.append(Grid(("Step", "Seconds"), times, right=(1,)))
    return Section("How to get it again", blocks, brief=False)


def _given(value: Any) -> str:
    return parameters(value) if isinstance(value, Mapping) else str(value).lower()


def outcome(search: Summary, number: Callable[[Any], str] = number) -> str:
    """Return how a search went, in words.

    Examples
    --------
    >>> outcome({"nodes": 4320, "visited": 31})
    '31 of 4,320 nodes visited'
    >>> outcome({"nodes": 9, "visited": 3, "metric": "loss", "value": 0.5, "bound": 0.4, "gap": 0.1, "optimal": False})
    '3 of 9 nodes visited; loss 0.5, at most 0.1 from the best there may be'
    >>> outcome({"blocks": 8})
    '8 blocks of rows near each other, each clustered separately'
    """
    if "nodes" not in search:
        made = [f"{number(search['parts'])} parts, cut by the database"] if "parts" in search else []
        if search.get("redrawn"):
            made.append(f"blocks drawn again because nothing had moved: {number(search['redrawn'])}")
        if "blocks" in search:
            made.append(f"{number(search['blocks'])} blocks of rows near each other, each clustered separately")
        return "; ".join(made)
    text = "first pass: " if "pass" in search else ""
    text += f"{number(search['visited'])} of {number(search['nodes'])} nodes visited"
    if "metric" not in search:
        return text
    reached = f"{search['metric']} {number(search['value'])}"
    if search.get("optimal"):
        return f"{text}; {reached}, and no node is better"
    gap = search.get("gap")
    if gap is None or not math.isfinite(gap):
        return f"{text}; {reached}, at an unknown distance from the best"
    return f"{text}; {reached}, at most {number(gap)} from the best there may be"
