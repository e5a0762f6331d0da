"""Every table and key that a job file may have, what each must be, and how an editor is told."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from duckanon.errors import JobError, did_you_mean
from duckanon.jobs.nights import INTERSECTIONS, RECODINGS
from duckanon.report import formats

_MEMORY = re.compile(r"\d+(\.\d+)?\s*([KMGT]i?B|B|%)", re.IGNORECASE)
_DURATION = re.compile(r"(\d+)\s*(s|min|h)")
_SECONDS = {"s": 1, "min": 60, "h": 3600}
_TEXT = {"type": "string", "minLength": 1}
_TEXTS = {"type": "array", "items": _TEXT}
_PATHS = {"anyOf": [_TEXT, {**_TEXTS, "minItems": 1}]}


@dataclass(frozen=True)
class Key:
    """What the value of a key must be, in words and as a test; ``schema`` and ``about`` are for editors."""

    wanted: str
    test: Callable[[Any], bool]
    schema: Mapping[str, Any]
    about: str = ""


def is_text(value: Any) -> bool:
    """Say whether a value is a text with something in it."""
    return isinstance(value, str) and bool(value.strip())


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(is_text(v) for v in value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_share(value: Any) -> bool:
    return _is_number(value) and 0 <= value <= 1


def _text(about: str) -> Key:
    return Key("a text", is_text, _TEXT, about)


def _texts(about: str) -> Key:
    return Key("a list of texts", _are_texts, _TEXTS, about)


def _paths(about: str) -> Key:
    return Key("a path or a list of paths", lambda v: is_text(v) or (_are_texts(v) and len(v) > 0), _PATHS, about)


def _flag(about: str) -> Key:
    return Key("true or false", lambda v: isinstance(v, bool), {"type": "boolean"}, about)


def _number(about: str) -> Key:
    return Key("a number", _is_number, {"type": "number"}, about)


def _whole(about: str) -> Key:
    return Key("a whole number of at least 1", _is_whole, {"type": "integer", "minimum": 1}, about)


def _share(about: str) -> Key:
    return Key("a fraction between 0 and 1", _is_share, {"type": "number", "minimum": 0, "maximum": 1}, about)


def _one_of(about: str, *allowed: str) -> Key:
    return Key(" or ".join(repr(a) for a in allowed), lambda v: v in allowed, {"enum": list(allowed)}, about)


def _some_of(about: str, *allowed: str) -> Key:
    listed = f"{', '.join(repr(a) for a in allowed[:-1])} and {allowed[-1]!r}"
    schema = {"type": "array", "items": {"enum": list(allowed)}}
    return Key(f"a list of {listed}", lambda v: _are_texts(v) and set(v) <= set(allowed), schema, about)


def _levels(about: str) -> Key:
    schema = {"type": "object", "additionalProperties": {"type": "number"}}
    return Key("a table of quasi-identifiers and numbers", lambda v: isinstance(v, dict), schema, about)


def _by_name(wanted: str, test: Callable[[Any], bool], schema: Mapping[str, Any], about: str) -> Key:
    """A table whose keys are names of the user's own."""
    own = {"type": "object", "additionalProperties": schema}
    return Key(wanted, lambda v: isinstance(v, dict) and all(test(one) for one in v.values()), own, about)


RULE = Key(
    "a name, a file or a table with a rule",
    lambda v: is_text(v) or isinstance(v, dict),
    {"anyOf": [_TEXT, {"type": "object"}]},
    "A ready-made hierarchy, a file, or a rule such as {rule = 'intervals', width = 10}.",
)
_MODELS = Key(
    "a list of texts such as 'l_diversity(l=3)' or tables such as {model = 'l_diversity', l = 3}",
    lambda v: isinstance(v, list) and all(is_text(m) or isinstance(m, dict) for m in v),
    {"type": "array", "items": {"anyOf": [_TEXT, {"type": "object", "required": ["model"]}]}},
    "Further models, each about one sensitive column or about all.",
)
_FORM = Key(
    "a text such as 'bounds' or a table such as {age = 'bounds'}",
    lambda v: is_text(v) or (isinstance(v, dict) and all(is_text(kind) for kind in v.values())),
    {"anyOf": [_TEXT, {"type": "object", "additionalProperties": _TEXT}]},
    "What is written of a region: interval, bounds, struct, midpoint, lca, set, mean, ...",
)

KEYS: dict[str, dict[str, Key]] = {
    "source": {
        "path": _paths("Files, globs, or a folder of hive partitions; {date} is the date of the run."),
        "format": _one_of("Where the suffix does not say it.", "parquet", "csv", "json"),
        "hive": _flag("Whether names of folders are values of columns."),
        "database": _text("A DuckDB file, opened for reading."),
        "postgres": _text("The address of a PostgreSQL database, such as ${PATIENTS_URI}."),
        "table": _text("A table or view of the database."),
        "query": _text("One SELECT instead of a table."),
    },
    "roles": {
        "quasi_identifiers": _texts("What somebody else may know of a person: recoded."),
        "sensitive": _texts("What must not be linked to a person: published as it is."),
        "insensitive": _texts("Published as it is."),
        "identifiers": _texts("Never published."),
        "within": _texts("Quasi-identifiers published as they are: each of their values is anonymized by itself."),
        "entity_key": _text("The person behind the rows: k counts persons. Never published."),
        "unlisted": _one_of("What a column without a role does.", "error", "drop"),
    },
    "hierarchies": {},
    "privacy": {
        "k": _whole("The least number of rows or persons in a class."),
        "l": _whole("Different sensitive values in a class, at least."),
        "t": _number("Distance of a class from the whole table, at most."),
        "models": _MODELS,
        "population": _paths("The people from whom the rows were drawn."),
        "suppression_limit": _number("The share of rows that may be left out."),
        "on_unknown": _one_of("What a value does that a hierarchy does not know.", "error", "top"),
        "bounds": _one_of("Where published bounds come from.", "grid", "cut", "tight"),
    },
    "algorithm": {},
    "steering": {
        "levels": _levels("The level of every quasi-identifier."),
        "min_levels": _levels("The lowest level to try."),
        "max_levels": _levels("The highest level to try."),
        "weights": _levels("What matters more."),
        "iterative": _flag("Recode suppressed rows again, at levels of their own."),
    },
    "output": {
        "path": _text("A .parquet or .csv file, or a folder with partition_by; {date} is the date of the run."),
        "partition_by": _texts("Published columns whose values become folders of Parquet files."),
        "database": _text("A DuckDB file to write a table to."),
        "postgres": _text("The address of a PostgreSQL database to write a table to, such as ${WAREHOUSE_URI}."),
        "table": _text("The table of the database; replaced as a whole."),
        "reports_in": _text("The folder of manifest and reports of a table."),
        "form": _FORM,
        "report": _some_of("Reports to write.", *formats()),
        "overwrite": _flag("Whether an earlier export may be replaced."),
        "keep": _whole("How many dated exports are kept; older ones are removed after a new one is published."),
    },
    "expect": {
        "min_rows": _whole("Fewer rows in the source stop the job."),
        "max_rows": _whole("More rows in the source stop the job."),
        "rows_may_fall": _share("Share of rows, against the last published run, that may be missing. Default 0.5."),
        "rows_may_grow": _number("Share of rows, against the last published run, that may be new."),
        "types": _by_name(
            "a table of columns and types", is_text, _TEXT, "Types that columns of the source must have."
        ),
        "schema": _one_of("What a type that changed since the last published run does.", "same", "any"),
        "max_loss": _by_name(
            "a table of metrics and numbers", _is_number, {"type": "number"}, "What may be lost at most, by metric."
        ),
        "max_suppressed": _share("The share of rows that may be suppressed or held back at most."),
    },
    "nights": {
        "state": _text("The private folder of what is kept from run to run; by default beside the job file."),
        "recoding": _one_of("Whether a run keeps the recoding of the one before.", *RECODINGS),
        "intersection": _one_of(
            "What is done where two releases, laid upon each other, break k for persons: nothing is looked at, it is "
            "said, nothing is published, or persons are held back. Default: warn, where there is an entity key.",
            *INTERSECTIONS,
        ),
    },
    "operations": {
        "metrics": _text("A Prometheus textfile."),
        "lineage": _text("A file of OpenLineage events, one a line."),
        "signing_key": _text(
            "A private key of `duckanon keys new`, by which manifests are signed; not where exports go."
        ),
    },
    "limits": {
        "memory": Key(
            "a size such as '2GB'",
            lambda v: isinstance(v, str) and bool(_MEMORY.fullmatch(v.strip())),
            _TEXT,
            "Memory of the run, such as '2GB': the database gets at least the half of it; what needs more spills.",
        ),
        "threads": _whole("Threads of the run: of the database, of kernels and of libraries."),
        "temp_directory": _text("Where the database spills."),
        "time": Key(
            "a time such as '90min'",
            lambda v: isinstance(v, str) and bool(_DURATION.fullmatch(v.strip())),
            _TEXT,
            "The longest a run may take, such as '90min', '3h' or '45s'.",
        ),
    },
}
"""Every table and key of a job file. The keys of hierarchies and algorithm depend on other tables."""

PER_TABLE = ("source", "roles", "hierarchies", "privacy", "algorithm", "steering", "output", "expect")
"""What an entry of ``tables`` may have; what stands outside of it is shared by all."""
MANY = "tables"


def seconds_of(duration: str) -> int:
    """Return the seconds of a time such as '90min'."""
    found = _DURATION.fullmatch(duration.strip())
    if found is None:
        raise JobError("[limits] time must be a time such as '90min'.")
    return int(found[1]) * _SECONDS[found[2]]


class Tables:
    """The tables of a job file, each handed out only after its keys and types were checked."""

    def __init__(self, content: Mapping[str, Any], known: Mapping[str, Any] = KEYS) -> None:
        for name, table in content.items():
            if name not in known:
                raise JobError(f"unknown table [{name}].{did_you_mean(name, known)} Tables: {', '.join(known)}.")
            if not isinstance(table, dict):
                raise JobError(f"[{name}] must be a table. Got {kind_of(table)}.")
        self._content = content

    def get(self, name: str, keys: Mapping[str, Key] | None = None) -> dict[str, Any]:
        """Return a table whose keys are all known and of the right type."""
        table: dict[str, Any] = self._content.get(name, {})
        known = KEYS[name] if keys is None else keys
        for key, value in table.items():
            if key not in known:
                raise JobError(f"[{name}] has no key {key!r}.{did_you_mean(key, known)} Keys: {', '.join(known)}.")
            if not known[key].test(value):
                raise JobError(f"[{name}] {key} must be {known[key].wanted}. Got {kind_of(value)}.")
        return table

    def raw(self, name: str) -> dict[str, Any]:
        """Return a table as it stands."""
        return dict(self._content.get(name, {}))


def kind_of(value: Any) -> str:
    """Return a value for a message; what a table or list holds is not shown."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float | str):
        return repr(value)
    return "a table" if isinstance(value, dict) else f"a {type(value).__name__}"


__all__ = ["KEYS", "MANY", "PER_TABLE", "RULE", "Key", "Tables", "is_text", "kind_of", "seconds_of"]
