"""What a report says: sections of lines, lists and tables in plain words, for Markdown and HTML to draw.

Nothing here is escaped: whoever draws does that, for every text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from duckanon.report.phrases import (
    AGAIN,
    AGAIN_DRAWN,
    BETTER,
    BOUNDS,
    HIDDEN_MEANING,
    HIDDEN_NOT_PROMISED,
    HIDDEN_PROOF,
    NOT_PROMISED,
    OUTPUT,
    PROOF,
    SIZES,
    TIGHT_SET,
)

Summary = Mapping[str, Any]


class Loud(str):
    """A text that must not be overlooked."""

    __slots__ = ()


@dataclass(frozen=True)
class Lines:
    """Sentences, one after another."""

    lines: Sequence[str]


@dataclass(frozen=True)
class Bullets:
    """A list."""

    items: Sequence[str]


@dataclass(frozen=True)
class Grid:
    """A table; ``right`` are the positions of columns with figures."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Sequence[int] = ()


Block = Lines | Bullets | Grid


@dataclass(frozen=True)
class Section:
    """A heading and what stands below it."""

    title: str
    blocks: Sequence[Block]


def sections(summary: Summary) -> list[Section]:
    """Return everything that a report of a release says, in order."""
    found = [
        promised(summary),
        proof(summary),
        found_section(summary),
        lost(summary),
        columns(summary),
        hidden(summary),
        bounds_section(summary),
        notes(summary),
        not_promised(summary),
        again(summary),
    ]
    return [section for section in found if section is not None]


def number(value: Any) -> str:
    """Return a figure with as many digits as a reader can use.

    Examples
    --------
    >>> number(20000), number(0.123456), number(1234.5), number(None)
    ('20,000', '0.1235', '1,234', '-')
    """
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def share(value: Any) -> str:
    """Return a share in per cent.

    Examples
    --------
    >>> share(0.025), share(None)
    ('2.50%', '-')
    """
    return "-" if value is None else f"{value:.2%}"


def parameters(given: Summary) -> str:
    """Return parameters in words."""
    return ", ".join(f"{k} = {v}" for k, v in given.items()) or "none"


def sentence(text: str) -> str:
    """Return a text with a capital and a full stop."""
    text = text[:1].upper() + text[1:]
    return text if text.endswith(".") else text + "."


def source(summary: Summary) -> str:
    """Return where the rows came from."""
    given = summary.get("source") or {}
    return f"Source: {given.get('kind', '')} {given.get('name', '')}".rstrip()


def promised(summary: Summary) -> Section:
    """Return the promises in words."""
    promises = [f"{sentence(p['text'])} ({p['model']})" for p in summary.get("promise", ())]
    limit = f"Suppression limit: {share(summary.get('suppression_limit'))} of the rows."
    return Section("What is promised", [Bullets([*promises, limit, "A column without a role is not published."])])


def proof(summary: Summary) -> Section:
    """Return what the gate found for each model."""
    rows = [
        (
            str(c["model"]),
            parameters(c["parameters"]),
            "yes" if c["holds"] else Loud("NO"),
            number(c["classes"]),
            number(c["violating_classes"]),
            number(c["violating_rows"]),
        )
        for c in summary.get("checks", ())
    ]
    what = classes(summary)
    header = ("Model", "Parameters", "Holds", f"{what} checked", f"{what} that break it", "Rows in those")
    lines = [PROOF, HIDDEN_PROOF] if hides(summary) else [PROOF]
    return Section("The proof", [Lines(lines), Grid(header, rows, right=(3, 4, 5))])


def hides(summary: Summary) -> bool:
    """Say whether values were permuted within groups that the release does not show."""
    return "permutation" in summary


def classes(summary: Summary) -> str:
    """Return what rows are put together in."""
    return "Groups" if hides(summary) else "Classes"


def found_section(summary: Summary) -> Section:
    """Return how many rows and classes there are, and how large the classes."""
    found = summary.get("found") or {}
    rows_in, published = found.get("rows_in"), found.get("rows_published")
    kept = published / rows_in if rows_in else None
    rows = [
        ("Rows in", number(rows_in), ""),
        ("Rows published", number(published), share(kept)),
        ("Rows suppressed", number(found.get("rows_suppressed")), share(found.get("suppressed_share"))),
        (
            "Groups, not visible in the release" if hides(summary) else "Classes published",
            number(found.get("classes")),
            "",
        ),
    ]
    blocks: list[Block] = [Grid(("", "Number", "Share"), rows, right=(1, 2))]
    sizes = found.get("class_size") or {}
    if sizes:
        header = [SIZES.get(k, str(k).capitalize()) for k in sizes]
        blocks.append(Lines([f"{unit(summary).capitalize()} in a {'group' if hides(summary) else 'class'}:"]))
        blocks.append(Grid(header, [[number(v) for v in sizes.values()]], right=range(len(sizes))))
    return Section("What was found", blocks)


def unit(summary: Summary) -> str:
    """Return what classes are counted in: rows or persons."""
    return str(summary.get("unit", "rows"))


def lost(summary: Summary) -> Section | None:
    """Return what the release lost: in all, and in each column."""
    if hides(summary):
        return _told_apart(summary["permutation"])
    measures = summary.get("loss") or ()
    if not measures:
        return None
    totals = [m for m in measures if m["attribute"] is None]
    rows = [(str(m["metric"]), number(m["value"]), BETTER.get(m["direction"], "")) for m in totals]
    blocks: list[Block] = [Grid(("Metric", "Value", ""), rows, right=(1,))]
    single = [m for m in measures if m["attribute"] is not None]
    if single:
        metrics = list(dict.fromkeys(m["metric"] for m in single))
        values = {(m["attribute"], m["metric"]): m["value"] for m in single}
        attributes = list(dict.fromkeys(m["attribute"] for m in single))
        cells = [(str(a), *(number(values.get((a, m))) for m in metrics)) for a in attributes]
        header = ("Column", *(str(m) for m in metrics))
        blocks.append(Grid(header, cells, right=range(1, len(header))))
    return Section("What was lost", blocks)


def _told_apart(permutation: Summary) -> Section:
    """Return what columns tell of each other before values were permuted, and after."""
    words = {
        "quasi_identifiers": "Two quasi-identifiers",
        "with_sensitive": "A quasi-identifier and a sensitive column",
    }
    rows = []
    for kind, found in (permutation.get("mutual_information") or {}).items():
        kept = found["after"] / found["before"] if found["before"] else None
        figures = [number(found[key]) for key in ("before", "after")]
        rows.append((words.get(kind, str(kind)), number(found["pairs"]), *figures, share(kept)))
    blocks: list[Block] = [Lines([HIDDEN_MEANING])]
    if rows:
        blocks.append(Lines(["What columns tell of each other (mutual information in bits, mean over pairs):"]))
        blocks.append(Grid(("", "Pairs", "Before", "After", "Kept"), rows, right=(1, 2, 3, 4)))
    linkage = permutation.get("linkage")
    if linkage:
        told = (
            f"The most probable link of a person to a row is {share(linkage)}, 1 in {number(round(1 / linkage, 2))}, "
        )
        blocks.append(Lines([told + "for somebody who knows all quasi-identifiers and how the release was made."]))
    return Section("What was lost", blocks)


def columns(summary: Summary) -> Section:
    """Return what was done to each column that is published."""
    roles = summary.get("roles") or {}
    hierarchies = {h["attribute"]: h for h in summary.get("hierarchies", ())}
    rows = [_recoded(name, hierarchies.get(name), summary) for name in roles.get("quasi_identifiers", ())]
    for role in ("sensitive", "insensitive"):
        rows += [(str(name), role, "", "", "published as it is") for name in roles.get(role, ())]
    header = ("Column", "Role", "Hierarchy", "Level", "What was done")
    return Section("What was done to each column", [Grid(header, rows, right=(3,))])


def _recoded(name: str, hierarchy: Summary | None, summary: Summary) -> tuple[str, ...]:
    role = "quasi-identifier"
    if hides(summary):
        block = next((b for b in summary["permutation"].get("blocks", ()) if name in b), [name])
        others = ", ".join(str(n) for n in block if n != name)
        done = "published as it is" if name in (summary.get("within") or ()) else "permuted within groups"
        return (str(name), role, "", "", f"{done}, together with {others}" if others else done)
    if hierarchy is None:
        return (str(name), role, "", "", "recoded")
    level, height, origin = hierarchy["level"], hierarchy["height"], str(hierarchy["origin"])
    kind = (summary.get("output") or {}).get(name, "interval")
    if level is None:
        # Regions stand on no level, and those of a column that nobody may mix are its values.
        done = "published as it is" if name in (summary.get("within") or ()) else f"in regions, as {kind}"
        return (str(name), role, origin, "", done)
    done = "published as it is" if level == 0 else "nothing left of it" if level == height else "generalized"
    if kind != "interval":
        done = f"as {kind}, in classes of that level"
    return (str(name), role, origin, f"{level} of {height}", done)


def hidden(summary: Summary) -> Section:
    """Return what is never published."""
    roles = summary.get("roles") or {}
    key = roles.get("entity_key")
    parts = [
        ("Identifiers", roles.get("identifiers", ())),
        ("The key that tells persons apart", [key] if key else []),
        ("Columns without a role", roles.get("dropped", ())),
    ]
    lines = [f"{title}: {', '.join(names)}" for title, names in parts if names]
    lines.append("The order of the rows in the source: rows are shuffled with a secret key that is kept nowhere.")
    lines.append("The suppressed rows: they are left out, not shown as a class of their own.")
    return Section("What is never published", [Bullets(lines)])


def bounds_section(summary: Summary) -> Section | None:
    """Return what the published bounds tell about single rows."""
    bounds = summary.get("bounds")
    if bounds is None:
        return None
    lines = [f"Setting: {bounds}. {BOUNDS.get(bounds, '')}".rstrip()]
    drawn = [str(h["attribute"]) for h in summary.get("hierarchies", ()) if "from the data" in h["origin"]]
    if drawn:
        lines.append(f"The cut points of these columns come from the data, all rows together: {', '.join(drawn)}.")
    lines += _outputs(summary.get("output") or {}, bounds)
    return Section("Bounds", [Lines(lines)])


def _outputs(kinds: Mapping[str, str], bounds: str) -> list[str]:
    """Return what each way of writing regions tells, with the columns that are written so."""
    lines = []
    for kind in dict.fromkeys(kinds.values()):
        names = ", ".join(name for name, own in kinds.items() if own == kind)
        told = TIGHT_SET if (kind, bounds) == ("set", "tight") else OUTPUT.get(kind, "")
        lines.append(f"Written as {kind}: {names}. {told}".rstrip())
    return lines


def notes(summary: Summary) -> Section | None:
    """Return what else a reader should know."""
    lines = [str(n) for n in summary.get("notes", ())]
    if summary.get("unit") == "persons":
        lines.append(
            "k counts persons, not rows: all rows of a person in a group count once, and a person with many of its "
            "rows is linked to one of them more easily."
            if hides(summary)
            else "k counts persons, not rows: all rows of a person in a class count once."
        )
    return Section("Notes", [Bullets(lines)]) if lines else None


def not_promised(summary: Summary) -> Section:
    """Return what no reader may take for granted."""
    if hides(summary):
        # There is no class whose members could have something in common.
        others = [line for line in NOT_PROMISED if "members of a class" not in line]
        return Section("What is not promised", [Bullets([*HIDDEN_NOT_PROMISED, *others])])
    return Section("What is not promised", [Bullets(NOT_PROMISED)])


def again(summary: Summary) -> Section:
    """Return versions, algorithm and times."""
    engine, algorithm = summary.get("engine") or {}, summary.get("algorithm") or {}
    search, steering = outcome(summary.get("search") or {}), summary.get("steering") or {}
    versions = f"duckanon {summary.get('duckanon', '')}, {engine.get('name', '')} {engine.get('version', '')}"
    lines = [
        f"Versions: {versions.strip(' ,')}.",
        f"Algorithm: {algorithm.get('name', '')}; parameters: {parameters(algorithm.get('parameters') or {})}.",
        *([f"Search: {search}."] if search else []),
        *(f"{str(name).replace('_', ' ').capitalize()}: {_given(v)}." for name, v in steering.items()),
        AGAIN_DRAWN if hides(summary) and not summary.get("seeded") else AGAIN,
    ]
    blocks: list[Block] = [Lines(lines)]
    seconds = summary.get("seconds") or {}
    if seconds:
        times = [(str(step), f"{s:.2f}") for step, s in seconds.items()]
        blocks.append(Grid(("Step", "Seconds"), times, right=(1,)))
    return Section("How to get it again", blocks)


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
    '8 blocks of rows near each other, each clustered by itself'
    """
    if "nodes" not in search:
        made = [f"{number(search['parts'])} parts, cut by the database"] if "parts" in search else []
        if search.get("redrawn"):
            made.append(f"blocks drawn again because they had stayed where they were: {number(search['redrawn'])}")
        if "blocks" in search:
            made.append(f"{number(search['blocks'])} blocks of rows near each other, each clustered by itself")
        return "; ".join(made)
    text = "first pass: " if "pass" in search else ""
    text += f"{number(search['visited'])} of {number(search['nodes'])} nodes visited"
    if "metric" not in search:
        return text
    found = f"{search['metric']} {number(search['value'])}"
    if search.get("optimal"):
        return f"{text}; {found}, and no node is better"
    gap = search.get("gap")
    if gap is None or not math.isfinite(gap):
        return f"{text}; {found}, with no proof of how far from the best"
    return f"{text}; {found}, at most {number(gap)} from the best there may be"
