"""Reports: a release's summary as JSON, and as one page of Markdown for whoever has to answer for it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from duckanon.errors import ParameterError, did_you_mean

Summary = Mapping[str, Any]

_ORDER = (
    "duckanon",
    "engine",
    "source",
    "roles",
    "unit",
    "promise",
    "algorithm",
    "suppression_limit",
    "steering",
    "hierarchies",
    "found",
    "search",
    "checks",
    "loss",
    "bounds",
    "output",
    "within",
    "seeded",
    "notes",
    "seconds",
)

_BOUNDS = {
    "grid": "Bounds in the published values come from the hierarchies or from a round grid, never from a class's own "
    "minimum, maximum or median, so they tell nothing about single rows.",
    "cut": "Bounds in the published values are the cuts at which classes were divided, which depend on the data: a "
    "bound can be the value of a person.",
    "tight": "Bounds in the published values are the smallest and largest value of each class: every bound is the "
    "exact value of a person. This is for research and for comparing with papers, not for release.",
}

_OUTPUT = {
    "midpoint": "Published numbers are halfway between the bounds of a region, and no person's value need be there; "
    "where a bound is open, the smallest or largest value of the whole table takes its place.",
    "mean": "Published numbers are means of classes: the mean of a class of k is a function of k exact values, and who "
    "knows all of them but one can work out that one.",
    "geometric_mean": "Published numbers are geometric means of classes: that of a class of k is a function of k exact "
    "values, and who knows all of them but one can work out that one.",
    "median": "Published is the lower median of each class, which is the exact value of a person in it.",
    "mode": "Published is the most frequent value of each class, the exact value of at least one person in it; how "
    "many have it is not told.",
    "medoid": "Published are values of one row of each class, the nearest to its centre: the exact values of a person, "
    "and with all columns written so, that person's exact row.",
    "set": "All values of a region that occur in the table are listed: each is the exact value of a person, and a "
    "value that is not listed is nobody's.",
    "lca": "Regions are published as the lowest label of the hierarchy that holds them.",
    "bounds": "The two bounds of a region are published as columns of their own; NULL is an open bound.",
    "struct": "The two bounds of a region are published as one column; NULL is an open bound.",
}
_TIGHT_SET = (
    "The values that occur in each class are listed: every member of a class has one of them, and each is the exact "
    "value of a person in it."
)

_NOT_PROMISED = (
    "What somebody knows beyond the declared quasi-identifiers: columns published as they are can tell persons apart.",
    "What all members of a class have in common: k-anonymity hides who a row is, not what a class shares.",
    "What follows from combining this release with other releases or with other publishers' data.",
    "What can be inferred from knowing how the algorithm chose this result among others.",
    "Differential privacy.",
    "That nothing can be learned from how long the work took.",
)

_MARKUP = re.compile(r"([\\`*\[\]<>|&~#$])")


def render(summary: Summary, format: str = "md") -> str:  # noqa: A002 - the field's word
    """Return the report of a release.

    Parameters
    ----------
    summary : mapping
        What ``Release.summary`` returns.
    format : {"json", "md"}

    Examples
    --------
    >>> print(render({"seeded": False, "duckanon": "0.1.0"}, "json"), end="")
    {
      "duckanon": "0.1.0",
      "seeded": false
    }
    """
    try:
        renderer = _FORMATS[format]
    except (KeyError, TypeError):
        hint = did_you_mean(str(format), _FORMATS)
        raise ParameterError(f"Unknown report format {format!r}.{hint} Known: {', '.join(_FORMATS)}.") from None
    return renderer(summary)


def formats() -> tuple[str, ...]:
    """Return the names of the formats."""
    return tuple(_FORMATS)


def _json(summary: Summary) -> str:
    keys = [k for k in _ORDER if k in summary] + sorted(k for k in summary if k not in _ORDER)
    return json.dumps({k: _plain(summary[k]) for k in keys}, indent=2, ensure_ascii=False, default=str) + "\n"


def _plain(value: Any) -> Any:
    """Return a value that JSON can hold: infinities and NaN have no form there."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _markdown(summary: Summary) -> str:
    sections = [
        _head(summary),
        _proof(summary),
        _found(summary),
        _loss(summary),
        _columns(summary),
        _hidden(summary),
        _bounds(summary),
        _notes(summary),
        ["## What is not promised", "", *(f"- {line}" for line in _NOT_PROMISED)],
        _reproduce(summary),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def escape(value: object) -> str:
    r"""Return text that Markdown shows as it is, in one line, in a table as well as outside of one.

    Examples
    --------
    >>> print(escape("a|b`c"))
    a\|b\`c
    >>> print(escape("two\nlines"))
    two\\nlines
    """
    # Line breaks and control characters, which could begin a new row or steer a terminal, are shown as escapes.
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(value))
    shown = _MARKUP.sub(r"\\\1", shown)
    # Within a word an underscore is itself; at its ends it would be emphasis.
    return re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", shown)


def _table(header: Sequence[str], rows: Sequence[Sequence[object]], right: Sequence[int] = ()) -> list[str]:
    marks = ["---:" if i in right else "---" for i in range(len(header))]
    lines = [f"| {' | '.join(header)} |", f"| {' | '.join(marks)} |"]
    return lines + [f"| {' | '.join(str(cell) for cell in row)} |" for row in rows]


def _number(value: Any) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _share(value: Any) -> str:
    return "-" if value is None else f"{value:.2%}"


def _parameters(parameters: Summary) -> str:
    return ", ".join(f"{escape(k)} = {escape(v)}" for k, v in parameters.items()) or "none"


def _head(summary: Summary) -> list[str]:
    source = summary.get("source", {})
    lines = ["# Report of a release", ""]
    if summary.get("seeded"):
        lines += ["**seeded: for tests, not for release**", ""]
    lines += [f"Source: {escape(source.get('kind', ''))} {escape(source.get('name', ''))}".rstrip(), ""]
    promises = [f"- {escape(_sentence(p['text']))} ({escape(p['model'])})" for p in summary.get("promise", ())]
    limit = f"- Suppression limit: {_share(summary.get('suppression_limit'))} of the rows."
    return [*lines, "## What is promised", "", *promises, limit, "- A column without a role is not published."]


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if text.endswith(".") else text + "."


def _proof(summary: Summary) -> list[str]:
    rows = [
        (
            escape(c["model"]),
            _parameters(c["parameters"]),
            "yes" if c["holds"] else "**NO**",
            _number(c["classes"]),
            _number(c["violating_classes"]),
            _number(c["violating_rows"]),
        )
        for c in summary.get("checks", ())
    ]
    header = ("Model", "Parameters", "Holds", "Classes checked", "Classes that break it", "Rows in those")
    text = "Every promise was checked again on the file itself, apart from the algorithm that made it."
    return ["## The proof", "", text, "", *_table(header, rows, right=(3, 4, 5))]


def _found(summary: Summary) -> list[str]:
    found = summary.get("found", {})
    rows_in, published = found.get("rows_in"), found.get("rows_published")
    kept = published / rows_in if rows_in else None
    rows = [
        ("Rows in", _number(rows_in), ""),
        ("Rows published", _number(published), _share(kept)),
        ("Rows suppressed", _number(found.get("rows_suppressed")), _share(found.get("suppressed_share"))),
        ("Classes published", _number(found.get("classes")), ""),
    ]
    lines = ["## What was found", "", *_table(("", "Number", "Share"), rows, right=(1, 2))]
    sizes = found.get("class_size") or {}
    if sizes:
        names = {"min": "Smallest", "q25": "25 %", "q75": "75 %", "max": "Largest"}
        header = [names.get(k, escape(k).capitalize()) for k in sizes]
        table = _table(header, [[_number(v) for v in sizes.values()]], right=range(len(sizes)))
        lines += ["", f"{str(summary.get('unit', 'rows')).capitalize()} in a class:", "", *table]
    return lines


def _loss(summary: Summary) -> list[str]:
    measures = summary.get("loss") or ()
    if not measures:
        return []
    better = {"lower": "lower is better", "higher": "higher is better"}
    totals = [m for m in measures if m["attribute"] is None]
    rows = [(escape(m["metric"]), _number(m["value"]), better.get(m["direction"], "")) for m in totals]
    lines = ["## What was lost", "", *_table(("Metric", "Value", ""), rows, right=(1,))]
    single = [m for m in measures if m["attribute"] is not None]
    if single:
        metrics = list(dict.fromkeys(m["metric"] for m in single))
        values = {(m["attribute"], m["metric"]): m["value"] for m in single}
        attributes = list(dict.fromkeys(m["attribute"] for m in single))
        cells = [(escape(a), *(_number(values.get((a, m))) for m in metrics)) for a in attributes]
        header = ("Column", *(escape(m) for m in metrics))
        lines += ["", *_table(header, cells, right=range(1, len(header)))]
    return lines


def _columns(summary: Summary) -> list[str]:
    roles = summary.get("roles", {})
    hierarchies = {h["attribute"]: h for h in summary.get("hierarchies", ())}
    rows: list[tuple[str, ...]] = []
    kinds, within = summary.get("output") or {}, summary.get("within") or ()
    for name in roles.get("quasi_identifiers", ()):
        h = hierarchies.get(name)
        if h is None:
            rows.append((escape(name), "quasi-identifier", "", "", "recoded"))
            continue
        level, height = h["level"], h["height"]
        if level is None:
            # Regions stand on no level, and those of a column that nobody may mix are its values.
            done = "published as it is" if name in within else f"in regions, as {kinds.get(name, 'interval')}"
            rows.append((escape(name), "quasi-identifier", escape(h["origin"]), "", done))
            continue
        done = "published as it is" if level == 0 else "nothing left of it" if level == height else "generalized"
        rows.append((escape(name), "quasi-identifier", escape(h["origin"]), f"{level} of {height}", done))
    for role, word in (("sensitive", "sensitive"), ("insensitive", "insensitive")):
        rows += [(escape(name), word, "", "", "published as it is") for name in roles.get(role, ())]
    header = ("Column", "Role", "Hierarchy", "Level", "What was done")
    return ["## What was done to each column", "", *_table(header, rows, right=(3,))]


def _hidden(summary: Summary) -> list[str]:
    roles = summary.get("roles", {})
    key = roles.get("entity_key")
    parts = [
        ("Identifiers", roles.get("identifiers", ())),
        ("The key that tells persons apart", [key] if key else []),
        ("Columns without a role", roles.get("dropped", ())),
    ]
    lines = [f"- {title}: {', '.join(escape(n) for n in names)}" for title, names in parts if names]
    lines.append("- The order of the rows in the source: rows are shuffled with a secret key that is kept nowhere.")
    lines.append("- The suppressed rows: they are left out, not shown as a class of their own.")
    return ["## What is never published", "", *lines]


def _bounds(summary: Summary) -> list[str]:
    bounds = summary.get("bounds")
    if bounds is None:
        return []
    lines = [f"Setting: {escape(bounds)}. {_BOUNDS.get(bounds, '')}".rstrip()]
    drawn = [escape(h["attribute"]) for h in summary.get("hierarchies", ()) if "from the data" in h["origin"]]
    if drawn:
        lines.append(f"The cut points of these columns come from the data, all rows together: {', '.join(drawn)}.")
    lines += _outputs(summary.get("output") or {}, bounds)
    return ["## Bounds", "", *lines]


def _outputs(kinds: Mapping[str, str], bounds: str) -> list[str]:
    """Return what each way of writing regions tells, with the columns that are written so."""
    lines = []
    for kind in dict.fromkeys(kinds.values()):
        columns = ", ".join(escape(name) for name, own in kinds.items() if own == kind)
        told = _TIGHT_SET if (kind, bounds) == ("set", "tight") else _OUTPUT.get(kind, "")
        lines.append(f"Written as {escape(kind)}: {columns}. {told}".rstrip())
    return lines


def _notes(summary: Summary) -> list[str]:
    notes = [f"- {escape(n)}" for n in summary.get("notes", ())]
    if summary.get("unit") == "persons":
        notes.append("- k counts persons, not rows: all rows of a person in a class count once.")
    return ["## Notes", "", *notes] if notes else []


def _given(value: Any) -> str:
    return _parameters(value) if isinstance(value, Mapping) else str(value).lower()


def outcome(search: Summary, number: Callable[[Any], str] = _number) -> str:
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


def _reproduce(summary: Summary) -> list[str]:
    engine, algorithm = summary.get("engine") or {}, summary.get("algorithm") or {}
    parameters = _parameters(algorithm.get("parameters") or {})
    search, steering = outcome(summary.get("search") or {}), summary.get("steering") or {}
    versions = f"duckanon {summary.get('duckanon', '')}, {engine.get('name', '')} {engine.get('version', '')}"
    lines = [
        f"Versions: {escape(versions.strip(' ,'))}.",
        f"Algorithm: {escape(algorithm.get('name', ''))}; parameters: {parameters}.",
        *([f"Search: {escape(search)}."] if search else []),
        *(f"{escape(name).replace('_', ' ').capitalize()}: {_given(v)}." for name, v in steering.items()),
        "The same source, roles, hierarchies and parameters give the same rows with these versions, in another order.",
    ]
    seconds = summary.get("seconds") or {}
    if seconds:
        times = [(escape(step), f"{s:.2f}") for step, s in seconds.items()]
        lines += ["", *_table(("Step", "Seconds"), times, right=(1,))]
    return ["## How to get it again", "", *lines]


_FORMATS: dict[str, Callable[[Summary], str]] = {"json": _json, "md": _markdown}
