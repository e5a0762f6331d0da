"""OpenLineage events in a file: what a run read and wrote, which columns it masked, and which models it verified.

Names, types and counts only. The events follow version 2-0-2 of the specification; privacy models and their
verification are a facet of our own.
"""

from __future__ import annotations

import json
import math
import re
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from duckanon._version import __version__
from duckanon.jobs.monitoring.files import append_lines, os_errors
from duckanon.report.history import risk, total
from duckanon.report.release import published_columns

Record = Mapping[str, Any]
Json = dict[str, Any]

PRODUCER = f"urn:duckanon:{__version__}"
EVENT = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
_FACETS = {
    "schema": "1-1-1/SchemaDatasetFacet",
    "dataSource": "1-0-1/DatasourceDatasetFacet",
    "columnLineage": "1-2-0/ColumnLineageDatasetFacet",
    "outputStatistics": "1-0-2/OutputStatisticsOutputDatasetFacet",
    "errorMessage": "1-0-1/ErrorMessageRunFacet",
    "processing_engine": "1-1-1/ProcessingEngineRunFacet",
    "jobType": "2-0-3/JobTypeJobFacet",
}
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "urn:duckanon:run")
_INTERRUPTED = (130, 143)
_AS_IT_IS = "published as it is"
_KEY_VALUE = re.compile(r"\b(\w+)\s*=\s*('(?:[^'\\]|\\.)*'|\S+)")
_KEPT_KEYS = ("host", "hostaddr", "port", "dbname", "table")


def events(record: Record, *, namespace: str = "duckanon") -> list[Json]:
    """Return the events of a run: its start, and its end as COMPLETE, FAIL or, where it was interrupted, ABORT.

    Parameters
    ----------
    record : mapping
        The run.
    namespace : str
        The namespace of the job, such as the name of the scheduler.
    """
    failed = record.get("outcome") == "failed"
    kind = "COMPLETE" if not failed else "ABORT" if record.get("exit_code") in _INTERRUPTED else "FAIL"
    read = _input(record)
    start = _event("START", record.get("started"), record, namespace, [read], [])
    wrote = [_output(record, read)] if record.get("outcome") == "published" else []
    return [start, _event(kind, record.get("ended"), record, namespace, [read], wrote)]


def write_events(path: str | Path, record: Record, *, namespace: str = "duckanon") -> None:
    """Add the events of a run to a file, one JSON object in each line."""
    path = Path(path)
    lines = [json.dumps(event, ensure_ascii=True, allow_nan=False) for event in events(record, namespace=namespace)]
    with os_errors("lineage file", path):
        append_lines(path, lines)


def _event(kind: str, at: Any, record: Record, namespace: str, inputs: list[Json], outputs: list[Json]) -> Json:
    name = ".".join(dict.fromkeys(str(record[k]) for k in ("job", "table") if record.get(k)))
    facets = _run_facets(record) if kind != "START" else {}
    return {
        "eventType": kind,
        "eventTime": str(at),
        "run": {"runId": run_id(record), "facets": {**_engine(record), **facets}},
        "job": {
            "namespace": namespace,
            "name": name,
            "facets": _facet("jobType", processingType="BATCH", integration="DUCKANON", jobType="JOB"),
        },
        "inputs": inputs,
        "outputs": outputs,
        "producer": PRODUCER,
        "schemaURL": EVENT,
    }


def run_id(record: Record) -> str:
    """Return the identifier of a run of one table, always the same for the same run."""
    parts = json.dumps([record.get("run"), record.get("job"), record.get("table")], default=str)
    return str(uuid.uuid5(_NAMESPACE, parts))


def _engine(record: Record) -> Json:
    engine = (record.get("summary") or {}).get("engine")
    if not engine:
        return {}
    given = {"version": str(engine.get("version")), "name": str(engine.get("name"))}
    return _facet("processing_engine", **given, openlineageAdapterVersion=__version__)


def _run_facets(record: Record) -> Json:
    error = record.get("error") or {}
    facts = {
        "outcome": record.get("outcome"),
        "exitCode": record.get("exit_code"),
        "recoding": record.get("recoding"),
        "heldBack": record.get("held_back"),
        "seconds": record.get("seconds"),
        "peakMemory": record.get("peak_memory"),
        "warnings": [str(w) for w in record.get("warnings") or ()],
    }
    facets = _own("duckanon_run", "RunFacet", **facts)
    if record.get("outcome") == "failed":
        message = ": ".join(str(error[k]) for k in ("type", "message") if error.get(k)) or "The run failed."
        facets |= _facet("errorMessage", message=message, programmingLanguage="PYTHON")
    return facets


def _input(record: Record) -> Json:
    source = (record.get("summary") or {}).get("source") or record.get("source") or {}
    place = _dataset(str(source.get("kind") or "unknown"), str(source.get("name") or record.get("table") or "unknown"))
    fields = [{"name": str(c["name"]), "type": str(c["type"])} for c in record.get("columns") or ()]
    facets = {**(_facet("schema", fields=fields) if fields else {}), **_data_source(place)}
    return {**place, "facets": facets}


def _output(record: Record, read: Json) -> Json:
    summary, written = record.get("summary") or {}, record.get("written") or {}
    place = _dataset("file", str(written.get("release") or record.get("table") or "release"))
    figures, danger = summary.get("found") or {}, risk(summary)
    types = {c["name"]: c["type"] for c in record.get("columns") or ()}
    kinds, fields, lineage = summary.get("output") or {}, [], {}
    for name, role, done in _published(summary):
        unchanged = done == _AS_IT_IS
        for published in (f"{name}_lo", f"{name}_hi") if kinds.get(name) == "bounds" else (name,):
            # What a recoding makes of a type is not in the record.
            fields.append({"name": published, **({"type": str(types[name])} if unchanged and name in types else {})})
            lineage[published] = {"inputFields": [_field(read, name, unchanged, f"{role}: {done}")]}
    grouped = [*(summary.get("roles") or {}).get("quasi_identifiers", ())]
    by_class = {"type": "INDIRECT", "subtype": "GROUP_BY", "description": "forms the classes", "masking": True}
    whole = [{**_from(read), "field": str(name), "transformations": [by_class]} for name in grouped]
    anonymity = _own(
        "duckanon_anonymity",
        "AnonymityDatasetFacet",
        unit=summary.get("unit"),
        promise=[_selected(p, "model", "parameters", "text") for p in summary.get("promise") or ()],
        proof=[
            _selected(c, "model", "parameters", "holds", "classes", "violating_classes", "violating_rows")
            for c in summary.get("checks") or ()
        ],
        suppressionLimit=summary.get("suppression_limit"),
        suppressedShare=figures.get("suppressed_share"),
        rowsSuppressed=figures.get("rows_suppressed"),
        classes=figures.get("classes"),
        classSize=dict(figures.get("class_size") or {}),
        loss=total(summary, "loss"),
        highestRisk=danger.highest if danger else None,
        bounds=summary.get("bounds"),
        seeded=bool(summary.get("seeded")),
    )
    facets = {
        **_facet("schema", fields=fields),
        **_data_source(place),
        **_facet("columnLineage", fields=lineage, dataset=whole),
        **anonymity,
    }
    counted = {
        k: v for k, v in (("rowCount", figures.get("rows_published")), ("size", written.get("bytes"))) if v is not None
    }
    return {**place, "facets": facets, "outputFacets": _facet("outputStatistics", **counted)}


def _published(summary: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return name, role and what was done of each published column, as the reports say it."""
    return [(name, role, done) for name, role, _, _, done in published_columns(summary)]


def _field(read: Json, name: str, unchanged: bool, description: str) -> Json:
    subtype = "IDENTITY" if unchanged else "TRANSFORMATION"
    how = {"type": "DIRECT", "subtype": subtype, "description": description, "masking": not unchanged}
    return {**_from(read), "field": name, "transformations": [how]}


def _from(read: Json) -> Json:
    return {"namespace": read["namespace"], "name": read["name"]}


def _dataset(kind: str, name: str) -> Json:
    """Return namespace and name of a dataset, by the specification's rules for files and servers."""
    name = without_secrets(name)
    parts = urlsplit(name) if "://" in name else None
    if parts is not None and parts.scheme:
        path = unquote(parts.path.lstrip("/")) + (f"#{unquote(parts.fragment)}" if parts.fragment else "")
        return {"namespace": f"{parts.scheme}://{parts.netloc}", "name": path or "/"}
    return {"namespace": kind, "name": name}


def _data_source(place: Json) -> Json:
    namespace, name = place["namespace"], place["name"]
    uri = f"{namespace}/{quote(name)}" if "://" in namespace else f"{quote(namespace)}:{quote(name)}"
    return _facet("dataSource", name=name, uri=uri)


def without_secrets(text: str) -> str:
    """Return the address of a source without user, password and options.

    Examples
    --------
    >>> without_secrets("postgresql://me:pw@db.example:5432/clinic?sslpassword=x#stays")
    'postgresql://db.example:5432/clinic#stays'
    >>> without_secrets("host=db dbname=clinic user=me password='p w'")
    'host=db dbname=clinic'
    >>> without_secrets("out/stays.parquet")
    'out/stays.parquet'
    """
    if "://" in text:
        scheme, _, rest = text.partition("://")
        # A password may hold any sign that is not escaped as it should be: the last @ before the host ends it.
        rest, _, fragment = rest.partition("#") if "@" not in rest.partition("#")[2] else (rest, "", "")
        place, slash, path = rest.rpartition("@")[2].partition("/")
        path = path.partition("?")[0]
        place = place.partition("?")[0]
        return f"{scheme}://{place}{slash}{path}{f'#{fragment}' if fragment else ''}"
    pairs = _KEY_VALUE.findall(text)
    if any(key.lower() in ("host", "hostaddr", "dbname", "password", "user") for key, _ in pairs):
        return " ".join(f"{key}={value}" for key, value in pairs if key.lower() in _KEPT_KEYS)
    return text


def _selected(entry: Mapping[str, Any], *keys: str) -> Json:
    return {_camel(k): entry[k] for k in keys if k in entry}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _facet(facet: str, /, **content: Any) -> Json:
    version, _, kind = _FACETS[facet].partition("/")
    where = f"https://openlineage.io/spec/facets/{version}/{kind}.json#/$defs/{kind}"
    return {facet: {"_producer": PRODUCER, "_schemaURL": where, **content}}


def _own(facet: str, kind: str, /, **content: Any) -> Json:
    """Return a facet of our own, without the entries that have no value."""
    stated = {k: _plain(v) for k, v in content.items() if v is not None}
    return {facet: {"_producer": PRODUCER, "_schemaURL": f"urn:duckanon:openlineage:1-0-0:{kind}", **stated}}


def _plain(value: Any) -> Any:
    """Return a value that JSON can hold."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
