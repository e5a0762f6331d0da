"""Which ready-made hierarchy fits a column: by the name of the column and by its values."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from sqlglot import exp

from duckanon.engine.sql.relations import col, table
from duckanon.hierarchy.files import read_csv
from duckanon.hierarchy.rules import ColumnType, Prefix
from duckanon.hierarchy.store import from_path, shipped
from duckanon.hierarchy.table import Hierarchy

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.engine.base import Engine

MOST = 100_000
"""Columns of more values are not compared: no ready-made hierarchy is of names, numbers of accounts and the like."""
_LIKELY, _NAMED = 0.8, 0.5
"""The share of values that a hierarchy must have, and of a column whose name says what it is."""


@dataclass(frozen=True)
class Ready:
    """When a ready-made hierarchy is considered.

    ``words`` are what names of its columns have in them. ``named`` says that only such columns are considered: values
    such as 25 or A11 mean many things. ``exact`` says that every character counts, as in A+. ``pattern`` is how its
    values are written, for a rule. ``numbers`` says that columns of whole numbers are considered, too.
    """

    words: tuple[str, ...]
    named: bool = False
    exact: bool = False
    pattern: str = ""
    numbers: bool = False


READY = {
    "countries": Ready(("country", "nation", "citizen", "birthplace", "origin")),
    "countries_iso2": Ready(("country", "nation", "citizen")),
    "countries_iso3": Ready(("country", "nation", "citizen")),
    "us_states": Ready(("state", "st", "province", "region")),
    "us_state_names": Ready(("state", "province", "region")),
    "us_zip5": Ready(("zip", "zipcode", "zip5", "zcta", "postal", "postcode"), named=True, pattern=r"[0-9]{5}"),
    "us_zip3": Ready(("zip", "zip3", "postal", "postcode"), named=True, exact=True),
    "education_isced": Ready(("education", "school", "degree", "qualification", "diploma")),
    "icd10": Ready(
        ("icd", "icd10", "diagnosis", "diag", "dx"), named=True, pattern=r"[A-Z][0-9]{2}(\.?[0-9A-Z]{1,4})?"
    ),
    "icd10_categories": Ready(("icd", "icd10", "diagnosis", "diag", "dx"), named=True, exact=True),
    "iso_dates": Ready(
        ("date", "day", "birth", "dob", "born", "time"),
        pattern=r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])([T ].*)?",
    ),
    "marital_status": Ready(("marital", "civil", "family", "relationship")),
    "work_class": Ready(("work", "workclass", "employer", "employment", "worker", "sector")),
    "blood_types": Ready(("blood", "abo"), exact=True),
    "weekdays": Ready(("weekday", "day", "dow")),
    "months": Ready(("month",)),
    "month_numbers": Ready(("month",), named=True, exact=True, numbers=True),
    "age_bands": Ready(("age",), named=True, exact=True, numbers=True),
}
"""The hierarchies that are considered. Those of dates are not: a column of dates gets the calendar anyhow."""


@dataclass(frozen=True)
class Match:
    """A ready-made hierarchy, and how many of the values of a column it has. No value is in it.

    Examples
    --------
    >>> match("nationality", "VARCHAR", ["France", "SPAIN", "Atlantis", None]).text
    'countries matches 2 of 3 values'
    """

    name: str
    matched: int
    values: int

    @property
    def text(self) -> str:
        """The match in words."""
        return f"{self.name} matches {self.matched:,} of {self.values:,} {'value' if self.values == 1 else 'values'}"


def match(column: str, type_name: str, values: Sequence[str | None]) -> Match | None:
    """Return the ready-made hierarchy that fits a column best, or None; ``values`` are its distinct values as texts.

    Spaces, case, accents and punctuation do not count: ``United-States`` is ``United States``.

    Examples
    --------
    >>> match("state", "VARCHAR", ["CA", "NY", "TX", "DE"])
    Match(name='us_states', matched=4, values=4)
    >>> match("code", "VARCHAR", ["A11", "A12"]) is None
    True
    """
    kind, present = ColumnType.parse(type_name), [v for v in values if v is not None]
    if not present or len(present) > MOST or kind.family not in ("text", "integer"):
        return None
    folded, found = [_folded(value) for value in present], list[tuple[int, bool, str]]()
    for name, ready in READY.items():
        says = _says(column, ready.words)
        if (ready.named and not says) or (kind.family == "integer" and not ready.numbers):
            continue
        if ready.pattern:
            matched = sum(_fits(name, ready.pattern, value) for value in present)
        else:
            matched = sum(value in _places(name) for value in (present if ready.exact else folded))
        # A number or date that does not fit means that the column is about something else.
        share = 1.0 if ready.numbers or name == "iso_dates" else _NAMED if says else _LIKELY
        if matched >= max(1 if says else 2, share * len(present)):
            found.append((matched, says, name))
    best = max(found, default=None)
    if best is None or (not best[1] and sum(one[0] == best[0] for one in found) > 1):
        # Codes such as CA and DE are states and countries, and nothing tells which.
        return None
    return Match(best[2], best[0], len(present))


def matched_hierarchy(engine: Engine, column: str, type_name: str, values: str) -> Hierarchy | None:
    """Return the ready-made hierarchy for a column, with its values as the column spells them, or None.

    ``values`` is the table of its distinct values. Those that the hierarchy lacks are published as its top label.
    """
    listed = exp.select(col("text")).from_(table(values)).limit(MOST + 2)
    texts = engine.arrow(listed).column(0).to_pylist()
    best = match(column, type_name, texts)
    if best is None:
        return None
    hierarchy = from_path(shipped()[best.name], None)
    if hierarchy.levels is not None and not READY[best.name].exact:
        hierarchy = replace(hierarchy, levels=_respelled(best.name, hierarchy.levels, texts))
    missing = best.values - best.matched
    others = (
        "" if not missing else "; the other is published as *" if missing == 1 else "; the others are published as *"
    )
    return replace(hierarchy, source=f"shipped: {best.text}{others}", chosen=True)


def _respelled(name: str, levels: pa.Table, texts: Sequence[str | None]) -> pa.Table:
    """Return a table of levels with a leaf for each value that it has, and without the leaves that these stand for."""
    import pyarrow as pa

    places = _places(name)
    spelled = [(places[_folded(text)], text) for text in texts if text is not None and _folded(text) in places]
    used = {_folded(text) for _, text in spelled}
    others = [(at, leaf) for at, leaf in enumerate(levels.column(0).to_pylist()) if _folded(leaf) not in used]
    # In the order of the file, where the values of a group are beside each other.
    leaves = sorted(spelled + others)
    rows = levels.take(pa.array([at for at, _ in leaves], pa.int64()))
    return rows.set_column(0, "l0", pa.array([leaf for _, leaf in leaves], pa.string()))


def _says(column: str, words: Sequence[str]) -> bool:
    """Return whether the name of a column has one of some words, at the beginning of one of its own."""
    parts = re.findall(r"[a-z]+[0-9]*", re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", column).lower())
    return any(part == word or (len(word) > 3 and part.startswith(word)) for part in parts for word in words)


def _fits(name: str, pattern: str, value: str) -> bool:
    """Return whether a value is written as a rule's values are, and what follows the rule has its prefix."""
    if re.fullmatch(pattern, value) is None:
        return False
    rule = _rule(name)
    return rule.then is None or value[: rule.lengths[-1]] in _places(str(rule.then))


def _folded(value: str) -> str:
    """Return a text without case, accents, spaces and punctuation."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", value.casefold()) if c.isalnum())
    return plain or value


@cache
def _rule(name: str) -> Prefix:
    rule = from_path(shipped()[name], None).rule
    if not isinstance(rule, Prefix):
        raise TypeError(f"{name} is no rule of prefixes")
    return rule


@cache
def _places(name: str) -> dict[str, int]:
    """Return where a table has each of its leaves: as they are, or folded; the first of those that are folded alike."""
    leaves = read_csv(shipped()[name]).table.column(0).to_pylist()
    exact = READY[name].exact
    return {leaf if exact else _folded(leaf): at for at, leaf in reversed(list(enumerate(leaves)))}


__all__ = ["READY", "Match", "match", "matched_hierarchy"]
