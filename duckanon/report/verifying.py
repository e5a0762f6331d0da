"""How a recipient can check a release: commands for a shell, from the release and its manifest alone."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from duckanon.models.base import models, statement_of

Summary = Mapping[str, Any]

_FILES = (".parquet", ".pq", ".csv", ".tsv", ".json", ".jsonl")


def commands(summary: Summary, record: Mapping[str, Any] | None = None) -> list[tuple[str, str]]:
    """Return (question, command) for all that can be checked, to be run in the release's folder.

    Examples
    --------
    >>> for _, command in commands({}):
    ...     print(command)
    duckanon verify release.manifest.json
    sha256sum < release.parquet | cut -c1-64 | grep -F -f - release.manifest.json
    """
    release, manifest = _names(record)
    database, tables = _database(record)
    steps = [
        (
            "Are these the published files, and do they meet the privacy requirements? What the files alone cannot "
            f"show is accepted by name; --job and --key verify who made the manifest.{tables}",
            shlex.join(["duckanon", "verify", manifest, *(w for kind in _hidden(summary) for w in ("--accept", kind))])
            + database,
        )
    ]
    check = _check(summary, release)
    if check is not None:
        counted = ""
        if summary.get("unit") == "persons":
            counted = " The key of the persons is not in the file, so this counts rows, never fewer than the persons."
        steps.append(
            (f"Does the file meet the privacy requirements? Counted again from the file alone.{counted}", check)
        )
    if release.lower().endswith(_FILES):
        question = "Is it the published file? Without duckanon: the manifest's line with its SHA-256, or nothing."
        hashed = f"sha256sum < {shlex.quote(release)} | cut -c1-64 | grep -F -f - {shlex.quote(manifest)}"
        steps.append((question, hashed))
    return steps


def _database(record: Mapping[str, Any] | None) -> tuple[str, str]:
    """Return the option that says where a published table is, and what the reader has to know about it."""
    written = str(((record or {}).get("written") or {}).get("release") or "")
    place, colon, _ = written.partition(": ")
    if not colon or written.lower().endswith(_FILES):
        return "", ""
    if place == "postgres":
        # The address is not in the record, and may have a password.
        about = " DUCKANON_DATABASE is the address of the server: a variable, because other users see command lines."
        return ' --database "$DUCKANON_DATABASE"', about
    return f" --database {shlex.quote(place)}", " The option --database is the DuckDB file with the table."


def _hidden(summary: Summary) -> list[str]:
    """Return why requirements cannot be checked from the files alone."""
    reads = {m["model"]: _reads(m["model"]) for m in summary.get("promise") or ()}
    counted = [m for m in reads if _is_of_classes(m) and models.get(m).counts_members]
    compared = set().union(*reads.values())
    return [
        *(["persons"] if summary.get("unit") == "persons" and counted else []),
        *(["source"] if "domain_values" in compared else []),
        *(["population"] if "population_classes" in compared else []),
        *(["groups"] if "permuted_blocks" in compared else []),
    ]


def _reads(model: str) -> set[str]:
    """Return the relations that a model reads; none of a model that is not installed here."""
    return set(statement_of(models.get(model)).reads) if model in models else set()


def _is_of_classes(model: str) -> bool:
    """Return whether the published classes alone decide whether a model holds."""
    return bool(_reads(model)) and _reads(model) <= {"classes", "class_values"}


def _names(record: Mapping[str, Any] | None) -> tuple[str, str]:
    """Return the names of release and manifest; without the folders, which are private."""
    written = (record or {}).get("written") or {}
    release = PurePath(str(written.get("release") or "release.parquet")).name
    given = written.get("manifest")
    return release, PurePath(str(given)).name if given else f"{PurePath(release).stem}.manifest.json"


def _check(summary: Summary, release: str) -> str | None:
    quasi = _published(summary)
    promises = [m for m in summary.get("promise") or () if _can_check(m["model"], summary)]
    if not quasi or not promises or not release.lower().endswith(_FILES):
        return None
    words = ["duckanon", "check", release, "-q", _listed(quasi)]
    sensitive = (summary.get("roles") or {}).get("sensitive") or ()
    if sensitive and any(m["model"] not in ("k_anonymity", "sample_uniqueness") for m in promises):
        words += ["-s", _listed(sensitive)]
    for model in promises:
        given = {k: v for k, v in model["parameters"].items() if isinstance(v, int | float | str)}
        if model["model"] == "k_anonymity" and set(given) == {"k"}:
            words += ["-k", str(given["k"])]
        else:
            words += ["--model", f"{model['model']}({', '.join(f'{k}={v!r}' for k, v in given.items())})"]
    return shlex.join(words)


def _can_check(model: str, summary: Summary) -> bool:
    if _is_of_classes(model):
        return True
    # A class is compared with the whole table, which the release has only if no row was left out.
    whole = not (summary.get("found") or {}).get("rows_suppressed")
    return (
        whole
        and "domain_values" in _reads(model)
        and not (models.get(model).needs_order or models.get(model).needs_hierarchy)
    )


def _published(summary: Summary) -> list[str]:
    """Return the names under which quasi-identifiers are published: two for bounds."""
    kinds = summary.get("output") or {}
    names = []
    for name in (summary.get("roles") or {}).get("quasi_identifiers") or ():
        names += [f"{name}_lo", f"{name}_hi"] if kinds.get(name) == "bounds" else [name]
    return names


def _listed(names: Any) -> str:
    """Return names as the command line reads them: one with a comma or a quote in it is put in double quotes."""
    quoted = ['"' + n.replace('"', '""') + '"' if set(n) & set(',"\n\r') or n != n.strip() else n for n in names]
    return ",".join(quoted)
