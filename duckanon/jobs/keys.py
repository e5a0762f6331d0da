"""Every table and key of a job file: type, default and meaning, declared once.

Reading, error messages, the JSON Schema for editors and the comments of a draft come from these declarations.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

import msgspec
from msgspec import UNSET, Meta, UnsetType

from duckanon.errors import JobError, did_you_mean
from duckanon.hierarchy import AUTO
from duckanon.plan.request import PARAMETERS

IntersectionPolicy = Literal["off", "warn", "stop", "hold"]
Recoding = Literal["fresh", "frozen", "refresh"]


_SIZE = re.compile(r"^\s*[0-9]+(\.[0-9]+)?\s*([KkMmGgTt][Ii]?[Bb]|[Bb]|%)\s*$")
_DURATION = re.compile(r"^\s*([0-9]+)\s*(s|min|h)\s*$")


def _must_be(words: str, test: Callable[[Any], object] | None = None, **limits: Any) -> Meta:
    """Return what a value must be besides its type, in the words of an error message and as a test.

    ``Meta(pattern=...)`` is not used: in a union it crashes msgspec 0.22 at a later garbage collection.
    """
    return Meta(extra={"words": words, "test": test}, **limits)


def _about(meaning: str) -> Meta:
    return Meta(description=meaning)


def _parameter(name: str) -> Meta:
    """Return the meaning of a key that is a parameter of a request: it is the same for Python, SQL and jobs."""
    return Meta(description=PARAMETERS[name].about)


def _not_blank(value: Any) -> bool:
    """Return whether a text, or each one of a list, has more than spaces; tables are not looked into."""
    if isinstance(value, list):
        return all(_not_blank(one) for one in value)
    return not isinstance(value, str) or bool(value.strip())


def _like(pattern: re.Pattern[str]) -> dict[str, Any]:
    return {"test": pattern.match, "extra_json_schema": {"pattern": pattern.pattern}}


Text = Annotated[str, _must_be("a text", _not_blank, min_length=1, extra_json_schema={"pattern": r"\S"})]
Texts = Annotated[list[Text], _must_be("a list of texts", _not_blank)]
Paths = Annotated[Text | Annotated[list[Text], Meta(min_length=1)], _must_be("a path or a list of paths", _not_blank)]
Flag = Annotated[bool, _must_be("true or false")]
Number = Annotated[int | float, _must_be("a number")]
Count = Annotated[int, _must_be("a whole number of at least 1", ge=1)]
Share = Annotated[
    Annotated[int, Meta(ge=0, le=1)] | Annotated[float, Meta(ge=0, le=1)], _must_be("a fraction between 0 and 1")
]
Levels = Annotated[
    # The search options check names and numbers, and say which is wrong.
    dict[str, Any],
    _must_be(
        "a table of quasi-identifiers and numbers",
        extra_json_schema={"additionalProperties": {"type": "number"}},
    ),
]
Rule = Annotated[
    Text | dict[str, Any],
    _must_be("a name, a file or a table with a rule", _not_blank),
    _about("A ready-made hierarchy, a file, or a rule such as {rule = 'intervals', width = 10}."),
]
Models = Annotated[
    list[Text | Annotated[dict[str, Any], Meta(extra_json_schema={"required": ["model"]})]],
    _must_be("a list of texts such as 'l_diversity(l=3)' or tables such as {model = 'l_diversity', l = 3}", _not_blank),
]
Form = Annotated[
    Text | dict[str, Text],
    _must_be(
        "a text such as 'bounds' or a table such as {age = 'bounds'}",
        lambda value: _not_blank(list(value.values()) if isinstance(value, dict) else value),
    ),
]
Reports = Annotated[tuple[Literal["json", "md", "html"], ...], _must_be("a list of 'json', 'md' and 'html'")]
_Homogeneous = Annotated[int, Meta(ge=0)] | Annotated[float, Meta(ge=0, le=1)]
Types = Annotated[
    dict[str, Text], _must_be("a table of columns and types", lambda value: _not_blank(list(value.values())))
]
Homogeneous = Annotated[
    _Homogeneous | dict[str, _Homogeneous],
    _must_be("a whole number of classes, a share of them such as 0.05, or a table of sensitive columns with either"),
]
Losses = Annotated[dict[str, Number], _must_be("a table of metrics and numbers")]
Memory = Annotated[str, _must_be("a size such as '2GB'", **_like(_SIZE))]
Duration = Annotated[str, _must_be("a time such as '90min'", **_like(_DURATION))]


class Keys(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of a job file. The docstring of each is what editors show."""


class Source(Keys, frozen=True, kw_only=True):
    """Where the rows come from."""

    path: Annotated[
        Paths | UnsetType, _about("Files, globs, or a folder of hive partitions; {date} is the date of the run.")
    ] = UNSET
    format: Annotated[
        Literal["parquet", "csv", "json"] | UnsetType, _about("The format, where the suffix does not tell it.")
    ] = UNSET
    hive: Annotated[Flag | UnsetType, _about("Whether folder names such as year=2026 are values of columns.")] = UNSET
    database: Annotated[Text | UnsetType, _about("A DuckDB file, opened for reading.")] = UNSET
    postgres: Annotated[Text | UnsetType, _about("The address of a PostgreSQL database, such as ${PATIENTS_URI}.")] = (
        UNSET
    )
    table: Annotated[Text | UnsetType, _about("A table or view of the database.")] = UNSET
    query: Annotated[Text | UnsetType, _about("A SELECT in place of a table.")] = UNSET


class Roles(Keys, frozen=True, kw_only=True):
    """What each column is. A column without a role stops the job."""

    quasi_identifiers: Annotated[Texts | UnsetType, _parameter("quasi_identifiers")] = UNSET
    sensitive: Annotated[Texts | UnsetType, _parameter("sensitive")] = UNSET
    insensitive: Annotated[Texts | UnsetType, _parameter("insensitive")] = UNSET
    identifiers: Annotated[Texts | UnsetType, _parameter("identifiers")] = UNSET
    within: Annotated[Texts | UnsetType, _parameter("within")] = UNSET
    entity_key: Annotated[Text | UnsetType, _parameter("entity_key")] = UNSET
    unlisted: Annotated[Literal["error", "drop"], _parameter("unlisted")] = "error"


class Privacy(Keys, frozen=True, kw_only=True):
    """What every equivalence class must satisfy."""

    k: Annotated[Count | UnsetType, _parameter("k")] = UNSET
    l: Annotated[Count | UnsetType, _parameter("l")] = UNSET  # noqa: E741
    t: Annotated[Number | UnsetType, _parameter("t")] = UNSET
    models: Annotated[Models | UnsetType, _parameter("models")] = UNSET
    population: Annotated[Paths | UnsetType, _parameter("population")] = UNSET
    suppression_limit: Annotated[Share | UnsetType, _parameter("suppression_limit")] = UNSET
    on_unknown: Annotated[Literal["error", "top"] | UnsetType, _parameter("on_unknown")] = UNSET
    bounds: Annotated[Literal["grid", "cut", "tight"] | UnsetType, _parameter("bounds")] = UNSET


class Algorithm(Keys, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """How classes are formed. The keys besides name are the algorithm's parameters."""

    name: Annotated[Text, _parameter("algorithm")] = "mondrian"


class Steering(Keys, frozen=True, kw_only=True):
    """What the search may choose from."""

    levels: Annotated[Levels | UnsetType, _parameter("levels")] = UNSET
    min_levels: Annotated[Levels | UnsetType, _parameter("min_levels")] = UNSET
    max_levels: Annotated[Levels | UnsetType, _parameter("max_levels")] = UNSET
    weights: Annotated[Levels | UnsetType, _parameter("weights")] = UNSET
    iterative: Annotated[Flag | UnsetType, _parameter("iterative")] = UNSET


class Output(Keys, frozen=True, kw_only=True):
    """Where the release is published."""

    path: Annotated[
        Text | UnsetType,
        _about("A .parquet or .csv file, or a folder with partition_by; {date} is the date of the run."),
    ] = UNSET
    partition_by: Annotated[
        Texts | UnsetType, _about("Published columns whose values become folders of Parquet files.")
    ] = UNSET
    database: Annotated[Text | UnsetType, _about("A DuckDB file to write a table to.")] = UNSET
    postgres: Annotated[
        Text | UnsetType, _about("The address of a PostgreSQL database to write a table to, such as ${WAREHOUSE_URI}.")
    ] = UNSET
    table: Annotated[Text | UnsetType, _about("The table of the database; it is replaced as a whole.")] = UNSET
    reports_in: Annotated[Text | UnsetType, _about("The folder for manifest and reports of a table.")] = UNSET
    form: Annotated[
        Form | UnsetType, _about("How a region is published: interval, bounds, struct, midpoint, lca, set, mean, ...")
    ] = UNSET
    report: Annotated[Reports, _about("The reports to write.")] = ("json", "md", "html")
    overwrite: Annotated[Flag, _about("Whether an earlier export may be replaced.")] = True
    keep: Annotated[
        Count | UnsetType, _about("How many dated exports stay; older ones are removed after a new one is published.")
    ] = UNSET


class Expect(Keys, frozen=True, kw_only=True):
    """When to stop instead of publishing. Shares of rows are compared with the last published run."""

    min_rows: Annotated[Count | UnsetType, _about("Fewer rows in the source stop the job.")] = UNSET
    max_rows: Annotated[Count | UnsetType, _about("More rows in the source stop the job.")] = UNSET
    rows_may_fall: Annotated[Share, _about("The share of rows that may be missing since the last published run.")] = 0.5
    rows_may_grow: Annotated[
        Number | UnsetType, _about("The share of rows that may be new since the last published run.")
    ] = UNSET
    types: Annotated[Types | UnsetType, _about("The types that columns of the source must have.")] = UNSET
    schema: Annotated[
        Literal["same", "any"], _about("Whether a type that changed since the last published run stops the job.")
    ] = "same"
    max_loss: Annotated[Losses | UnsetType, _about("The largest loss, by metric.")] = UNSET
    max_homogeneous: Annotated[
        Homogeneous | UnsetType,
        _about(
            "The most classes that may have one value of a sensitive column: a whole number, or a share such as 0.05; "
            "for each sensitive column, or as a table for those that it names."
        ),
    ] = UNSET
    max_suppressed: Annotated[
        Share | UnsetType, _about("The largest share of rows that may be suppressed or held back.")
    ] = UNSET


class Nights(Keys, frozen=True, kw_only=True):
    """What one run takes over from the runs before."""

    state: Annotated[
        Text | UnsetType,
        _about("The private folder for what later runs need; by default JOB.state beside the job file."),
    ] = UNSET
    recoding: Annotated[
        Recoding,
        _about(
            "fresh: search anew in each run; frozen: apply the stored recoding, which the first run stores; "
            "refresh: search anew, and store that."
        ),
    ] = "fresh"
    intersection: Annotated[
        IntersectionPolicy | UnsetType,
        _about(
            "Where this release and an earlier one together leave fewer than k persons in a group: off: not checked; "
            "warn; stop: publish nothing; hold: hold persons back. By default warn, where there is an entity_key."
        ),
    ] = UNSET


class Operations(Keys, frozen=True, kw_only=True):
    """What schedulers, dashboards and auditors get."""

    metrics: Annotated[Text | UnsetType, _about("A Prometheus textfile.")] = UNSET
    lineage: Annotated[Text | UnsetType, _about("A file of OpenLineage events, one in each line.")] = UNSET
    signing_key: Annotated[
        Text | UnsetType,
        _about("A private key made by `duckanon keys new`, which signs manifests; outside the folders of exports."),
    ] = UNSET


class Limits(Keys, frozen=True, kw_only=True):
    """What a run may use."""

    memory: Annotated[
        Memory | UnsetType,
        _about("Memory of the run, such as '2GB': the database gets at least half of it, and spills what needs more."),
    ] = UNSET
    threads: Annotated[Count | UnsetType, _about("Threads of the run: database, kernels and libraries.")] = UNSET
    temp_directory: Annotated[Text | UnsetType, _about("The folder that the database spills to.")] = UNSET
    time: Annotated[Duration | UnsetType, _about("How long a run may take, such as '90min', '3h' or '45s'.")] = UNSET


class TableKeys(Keys, frozen=True, kw_only=True):
    """What one table of a job may say, and what several may share."""

    source: Source | UnsetType = UNSET
    roles: Roles | UnsetType = UNSET
    hierarchies: Annotated[
        dict[str, Rule] | Literal["auto"] | UnsetType,
        _about(
            "How values are generalized, by column; 'auto' takes the ready-made hierarchy that fits, for all or one."
        ),
    ] = UNSET
    privacy: Privacy | UnsetType = UNSET
    algorithm: Algorithm | UnsetType = UNSET
    steering: Steering | UnsetType = UNSET
    output: Output | UnsetType = UNSET
    expect: Expect | UnsetType = UNSET


class TableEntry(TableKeys, frozen=True, kw_only=True):
    """One table of a job that has several."""

    name: Annotated[Text, _about("The name of the table.")]


class JobKeys(TableKeys, frozen=True, kw_only=True):
    """A duckanon job."""

    nights: Nights | UnsetType = UNSET
    operations: Operations | UnsetType = UNSET
    limits: Limits | UnsetType = UNSET
    tables: Annotated[
        Annotated[list[TableEntry], Meta(min_length=1)] | UnsetType,
        _about("Several tables in one job; what is outside of them is shared by all."),
    ] = UNSET


SHARED = TableKeys.__struct_fields__
"""The tables that each entry of [[tables]] may have, too."""
_NEEDED = ("source", "roles", "privacy", "output")
_SECONDS = {"s": 1, "min": 60, "h": 3600}
_K = TypeVar("_K", bound=Keys)


def read(kind: type[_K], name: str, content: Mapping[str, Any]) -> _K:
    """Return a table of a job file; a JobError names a key that is unknown, or whose value is wrong."""
    types = {field.name: field.type for field in msgspec.structs.fields(kind)}
    for key, value in content.items():
        if key not in types:
            raise JobError(f"[{name}] has no key {key!r}.{did_you_mean(key, types)} Keys: {', '.join(types)}.")
        require(f"[{name}] {key}", value, types[key])
    return msgspec.convert(content, kind)


def require(where: str, value: Any, kind: Any) -> None:
    """Raise a JobError unless a value has the type of a key; the message does not show what is in a table or list."""
    try:
        msgspec.convert(value, kind)
        fine = all(rule["test"](value) for rule in _rules(kind) if rule["test"] is not None)
    except msgspec.ValidationError:
        fine = False
    if not fine:
        raise JobError(f"{where} must be {_words(kind)}. Got {shown(value)}.")


def require_tables(kind: type[TableKeys], content: Mapping[str, Any]) -> None:
    """Raise a JobError where a table is unknown, or not a table."""
    names = [name for name in kind.__struct_fields__ if name not in ("name", "tables")]
    for name, table in content.items():
        if name not in names:
            raise JobError(f"unknown table [{name}].{did_you_mean(name, names)} Tables: {', '.join(names)}.")
        if not isinstance(table, dict) and not (name == "hierarchies" and table == AUTO):
            raise JobError(f"[{name}] must be a table. Got {shown(table)}.")


def values_of(table: Keys) -> dict[str, Any]:
    """Return the keys that have a value: those of the file, and defaults."""
    return {name: value for name, value in msgspec.structs.asdict(table).items() if value is not UNSET}


def seconds_of(duration: str) -> int:
    """Return the seconds of a time such as '90min'."""
    require("[limits] time", duration, Duration)
    number, unit = _DURATION.findall(duration)[0]
    return int(number) * _SECONDS[unit]


def meaning(kind: type[Keys], key: str) -> str:
    """Return what a key means.

    Examples
    --------
    >>> meaning(Roles, "identifiers")
    'Columns that name a person. Never published.'
    """
    types = {field.name: field.type for field in msgspec.structs.fields(kind)}
    return next(str(meta.description) for meta in types[key].__metadata__ if meta.description)


def shown(value: Any) -> str:
    """Return a value for a message, without what is in a table or list."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float | str):
        return repr(value)
    return "a table" if isinstance(value, dict) else f"a {type(value).__name__}"


def _rules(kind: Any) -> list[dict[str, Any]]:
    """Return what is declared by ``_must_be`` of the type of a key."""
    if rules := [meta.extra for meta in getattr(kind, "__metadata__", ()) if meta.extra]:
        return rules
    return [rule for part in get_args(kind) if not isinstance(part, str) for rule in _rules(part)]


def _words(kind: Any) -> str:
    """Return what a value of the type of a key must be, in words."""
    if rules := _rules(kind):
        return str(rules[0]["words"])
    if get_origin(kind) is Literal:
        return " or ".join(repr(choice) for choice in get_args(kind))
    return next((words for part in get_args(kind) if (words := _words(part))), "")


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of job files (draft 7, which editors for TOML read)."""
    from duckanon.algorithms.base import algorithms

    _, parts = msgspec.json.schema_components([JobKeys], ref_template="#/definitions/{name}")
    job = parts.pop(JobKeys.__name__)
    parts["Algorithm"]["properties"]["name"]["enum"] = sorted(algorithms)
    needed = [{"required": list(_NEEDED)}, {"required": ["tables"]}]
    head = {"$schema": "http://json-schema.org/draft-07/schema#", "title": "duckanon job"}
    # Defaults that are tuples become lists.
    return dict(json.loads(json.dumps({**job, **head, "anyOf": needed, "definitions": parts})))


def schema_text() -> str:
    """Return the text of the JSON Schema file that ``duckanon job schema`` writes."""
    return json.dumps(json_schema(), indent=2) + "\n"
