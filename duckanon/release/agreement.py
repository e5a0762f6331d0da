"""Whether a manifest is complete and consistent, and agrees with a job.

Anybody who may write a manifest can also renew its hash. So entries that follow from others are computed again, and
unknown entries are errors.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duckanon.errors import DuckanonError
from duckanon.io.sinks.manifest import FOLDER_MANIFEST, PARTS, manifest_path, release_entry
from duckanon.models.base import Model, models
from duckanon.plan.plan import BOUNDS, KINDS
from duckanon.plan.roles import PUBLISHED, Attribute, Role, Roles
from duckanon.registry import make_from
from duckanon.release.release import SEEDED

if TYPE_CHECKING:
    from duckanon.plan.plan import Requirements

_NEEDED = {
    *("manifest", "duckanon", "engine", "python", "created", "unit", "promise", "checks", "algorithm"),
    *("suppression_limit", "roles", "columns", "hierarchies", "found", "seeded", "notes", "files"),
}
_OPTIONAL = {"run", "bounds", "output", "within", "target", "partition_by"}
_LISTS = ("quasi_identifiers", "sensitive", "insensitive", "identifiers", "dropped")
_FOUND = {"rows_in", "rows_published", "rows_suppressed", "suppressed_share", "classes", "class_size"}
_SIZES = ("min", "q25", "median", "mean", "q75", "max")
_CHECK = {"model", "parameters", "holds", "classes", "violating_classes", "violating_rows", "text"}
_HASH = re.compile(r"[0-9a-f]{64}")
_NEAR = 1e-9


@dataclass(frozen=True)
class Expected:
    """What a job expects of the manifest of a release.

    Names are compared without regard to upper and lower case.

    Parameters
    ----------
    requirements : Requirements
        The models, not yet bound to columns.
    roles : mapping
        ``quasi_identifiers``, ``sensitive``, ``insensitive`` and ``identifiers``, and ``entity_key``.
    hierarchies : collection of str
        The columns that have a hierarchy.
    settings : mapping
        ``suppression_limit``, ``bounds`` and ``within``, as far as manifests have them.
    job, table : str
        The names that the manifest's run must have.
    """

    requirements: Requirements
    roles: Mapping[str, Any]
    hierarchies: Collection[str]
    settings: Mapping[str, Any]
    job: str
    table: str

    def problems(self, content: Mapping[str, Any]) -> list[str]:
        """Return how a consistent manifest differs from the job."""
        found = []
        run = content.get("run") or {}
        if (run.get("job"), run.get("table")) != (self.job, self.table):
            found.append(f"the manifest is not of the job {self.job!r} and its table {self.table!r}")
        stated = content["roles"]
        found += [
            f"the {role.replace('_', '-')} are not those of the job"
            for role in ("quasi_identifiers", "sensitive", "insensitive", "identifiers")
            if _lowered(stated[role]) != _lowered(self.roles.get(role, ()))
        ]
        if _lowered([stated["entity_key"] or ""]) != _lowered([self.roles.get("entity_key") or ""]):
            found.append("the entity key is not that of the job")
        for name, wanted in self.settings.items():
            given = content.get(name, "grid" if name == "bounds" else () if name == "within" else None)
            same = _lowered(given) == _lowered(wanted) if name == "within" else given == wanted
            if not same and not (name == "bounds" and name not in content):
                found.append(f"{name} is not that of the job")
        try:
            wanted_models = self.requirements.bound(_roles(content), _lowered_as(self.hierarchies, content))
        except DuckanonError:
            return [*found, "the promise of the job does not fit the columns"]
        promised = [(p["model"], p["parameters"]) for p in content["promise"]]
        if sorted(map(repr, promised)) != sorted(repr((m.name, m.parameters())) for m in wanted_models):
            found.append("the promise is not that of the job")
        return found


def model_of(promise: Mapping[str, Any]) -> Model | None:
    """Return the model of a promise; None for an unknown model or unknown parameters."""
    try:
        made = make_from(models, promise["model"], [], promise["parameters"])
    except (DuckanonError, TypeError, ValueError, KeyError, AttributeError):
        return None
    return made if _same(made.parameters(), promise["parameters"]) else None


def disagreements(content: Mapping[str, Any], name: str) -> list[str]:
    """Return what is missing, unknown or inconsistent in a manifest; ``name`` is that of its file."""
    missing = sorted(_NEEDED - content.keys())
    if missing:
        return [f"the manifest does not say: {', '.join(missing)}"]
    unknown = content.keys() - _NEEDED - _OPTIONAL
    if unknown:
        return [f"the manifest has {len(unknown)} entries that are not known here"]
    try:
        return [f"the manifest contradicts itself or is not complete: {p}" for p in _all(content, name)]
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        return ["the manifest has entries of an unknown form"]


def _all(content: Mapping[str, Any], name: str) -> Iterator[str]:
    yield from _about(content)
    yield from _files(content, name)
    yield from _promises(content)
    yield from _columns(content)
    yield from _counts(content)


def _about(content: Mapping[str, Any]) -> Iterator[str]:
    """Check the entries about the run and the algorithm."""
    if content["manifest"] != 1 or isinstance(content["manifest"], bool):
        yield "its format is not known here"
    datetime.fromisoformat(content["created"])
    engine, algorithm, run = content["engine"], content["algorithm"], content.get("run", {})
    texts = [content["duckanon"], content["python"], engine["name"], engine["version"], algorithm["name"]]
    if not all(isinstance(t, str) and t for t in texts) or set(engine) != {"name", "version"}:
        yield "what made it"
    if not isinstance(algorithm["parameters"], dict) or set(algorithm) != {"name", "parameters"}:
        yield "its algorithm"
    if not set(run) <= {"run", "job", "table"} or not all(isinstance(v, str) for v in run.values()):
        yield "its run"
    notes = content["notes"]
    if not isinstance(notes, list) or not all(isinstance(n, str) for n in notes):
        yield "its notes"
    if not isinstance(content["seeded"], bool) or content["seeded"] != (SEEDED in notes):
        yield "whether it was seeded"


def _files(content: Mapping[str, Any], name: str) -> Iterator[str]:
    """Check the list of files: exactly one release, and the name of the manifest follows from it."""
    files, entry, target = content["files"], release_entry(content), content.get("target")
    if len({f["name"] for f in files}) != len(files) or sum(f["role"] == "release" for f in files) > 1:
        yield "a file is listed twice"
    for file in files:
        keys = {"name", "role", "bytes", "sha256", *(["files"] if file["name"] == PARTS else [])}
        if set(file) != keys or not _HASH.fullmatch(file["sha256"]) or file["role"] not in ("release", "report"):
            yield f"the entry of {file['name']!r}"
    if (entry is None) == (target is None):
        yield "where the rows are"
        return
    if target is not None:
        stem, wanted = target["table"], f"{target['table']}.manifest.json"
        keys = {"duckdb": {"database", "schema"}, "postgres": set[str]()}[target["kind"]]
        if set(target) != keys | {"kind", "table", "rows", "content"}:
            yield "where the rows are"
        if target["rows"] != content["found"]["rows_published"]:
            yield "the number of rows of the table"
    elif entry is not None and entry["name"] == PARTS:
        stem, wanted = "", FOLDER_MANIFEST
    else:
        path = manifest_path(Path(entry["name"] if entry is not None else ""))
        stem, wanted = path.name.removesuffix(".manifest.json"), path.name
    if name != wanted:
        yield "its name is not that of the release that it lists"
    if any(
        f["role"] == "report" and not f["name"].startswith(f"{stem}.report." if stem else "_report.") for f in files
    ):
        yield "the name of a report"
    by = content.get("partition_by")
    if (by is not None) != (entry is not None and entry["name"] == PARTS):
        yield "what it is partitioned by"
    if by is not None and not (by and set(by) <= {c["name"] for c in content["columns"]} and len(set(by)) == len(by)):
        yield "what it is partitioned by"


def _promises(content: Mapping[str, Any]) -> Iterator[str]:
    """Check the promise, its sentences, and the results of the gate."""
    promised, checks, unit = content["promise"], content["checks"], content["unit"]
    if unit != ("rows" if content["roles"]["entity_key"] is None else "persons"):
        yield "the unit that is counted"
    if not isinstance(promised, list) or not promised or len({repr(p) for p in promised}) != len(promised):
        yield "nothing is promised, or something twice"
    for promise in promised:
        made = model_of(promise)
        if made is None:
            yield f"the model {promise['model']!r} is not known here, or not with these parameters"
        elif promise["text"] != made.describe(unit) or set(promise) != {"model", "parameters", "text"}:
            yield f"what is said of {made.name}"
        elif getattr(made, "sensitive", None) not in (None, *content["roles"]["sensitive"]):
            yield f"{made.name} is about no sensitive column"
    shared = [{k: c[k] for k in ("model", "parameters", "text")} for c in checks]
    if shared != [{k: p[k] for k in ("model", "parameters", "text")} for p in promised]:
        yield "other promises were checked than were made"
    for check in checks:
        counts = [check[k] for k in ("violating_classes", "violating_rows", "classes")]
        if set(check) != _CHECK or check["holds"] is not True or any(counts[:2]) or not all(map(_count, counts)):
            yield "a check that does not hold"
    if len({c["classes"] for c in checks}) != 1:
        yield "the number of classes"


def _columns(content: Mapping[str, Any]) -> Iterator[str]:
    """Check the roles and the published columns."""
    roles, columns = content["roles"], content["columns"]
    owner = roles["entity_key"]
    named = all(_names(roles[role]) for role in _LISTS) and (owner is None or _names([owner]))
    if set(roles) != {*_LISTS, "entity_key"} or not named:
        yield "the roles"
        return
    # The entity key may also be an identifier.
    key = [] if roles["entity_key"] is None or roles["entity_key"] in roles["identifiers"] else [roles["entity_key"]]
    everything = [n.lower() for role in _LISTS for n in roles[role]] + [k.lower() for k in key]
    if len(set(everything)) != len(everything) or not roles["quasi_identifiers"]:
        yield "a column has two roles, or there are no quasi-identifiers"
    kinds, published = content.get("output", {}), {str(r) for r in PUBLISHED}
    by_role = {"quasi_identifier": "quasi_identifiers", "sensitive": "sensitive", "insensitive": "insensitive"}
    seen: dict[str, list[str]] = {role: [] for role in by_role}
    names = [c["name"] for c in columns]
    if len({n.lower() for n in names}) != len(names):
        yield "a column is published twice"
    for column in columns:
        of, role = column["of"], column["role"]
        if set(column) != {"name", "type", "role", "of"} or role not in published or of not in roles[by_role[role]]:
            yield f"the role of {column['name']!r}"
            return
        bounds = role == "quasi_identifier" and kinds.get(of) == "bounds"
        if column["name"] not in ((f"{of}_lo", f"{of}_hi") if bounds else (of,)) or not isinstance(column["type"], str):
            yield f"the name of {column['name']!r}"
        seen[role].append(of)
    for role, listed in by_role.items():
        wide = [n for n in roles[listed] if role == "quasi_identifier" and kinds.get(n) == "bounds"]
        if sorted(seen[role]) != sorted([*roles[listed], *wide]):
            yield f"not all {listed.replace('_', '-')} are published"
    quasi = roles["quasi_identifiers"]
    if not set(kinds) <= set(quasi) or not set(kinds.values()) <= set(KINDS):
        yield "the forms of output"
    if not set(content.get("within", [])) <= set(quasi) or content.get("bounds", "grid") not in BOUNDS:
        yield "the bounds"
    attributes = [h["attribute"] for h in content["hierarchies"]]
    if not set(attributes) <= set(quasi) or len(set(attributes)) != len(attributes):
        yield "a hierarchy of another column"
    for h in content["hierarchies"]:
        level = h["level"] is None or (_count(h["level"]) and h["level"] <= h["height"])
        fits = level and _count(h["height"]) and _count(h["leaves"]) and isinstance(h["origin"], str)
        if not fits or set(h) != {"attribute", "origin", "height", "level", "leaves"}:
            yield f"the hierarchy of {h['attribute']!r}"


def _counts(content: Mapping[str, Any]) -> Iterator[str]:
    """Check the numbers of rows and classes, which follow from each other."""
    found, limit = content["found"], content["suppression_limit"]
    rows = [found[k] for k in ("rows_in", "rows_published", "rows_suppressed")]
    if set(found) != _FOUND or not all(_count(n) for n in rows):
        yield "what was found"
        return
    if rows[0] != rows[1] + rows[2]:
        yield "rows in are not rows published and rows suppressed"
    share = rows[2] / rows[0] if rows[0] else 0.0
    if isinstance(found["suppressed_share"], bool) or not math.isclose(found["suppressed_share"], share, abs_tol=_NEAR):
        yield "the share of rows suppressed"
    if isinstance(limit, bool) or not 0 <= limit <= 1:
        yield "the suppression limit"
    sizes, classes = found["class_size"], found["classes"]
    if set(sizes) != set(_SIZES) or not _count(classes) or (classes == 0) != (rows[1] == 0):
        yield "the sizes of classes"
        return
    if classes == 0:
        return
    ordered = [sizes[k] for k in ("min", "q25", "median", "q75", "max")]
    if not all(_count(n) for n in ordered) or ordered != sorted(ordered) or ordered[-1] > rows[1]:
        yield "the sizes of classes"
    if isinstance(sizes["mean"], bool) or not ordered[0] <= sizes["mean"] <= ordered[-1]:
        yield "the mean size of classes"
    members = sizes["mean"] * classes
    if not math.isclose(members, round(members), rel_tol=1e-6) or members > rows[1] * (1 + _NEAR):
        yield "the mean size of classes"
    if content["unit"] == "rows" and not math.isclose(members, rows[1], rel_tol=1e-6):
        yield "the mean size of classes"


def size_problems(content: Mapping[str, Any], sizes: Mapping[str, Any], classes: int) -> list[str]:
    """Compare the sizes of classes with those counted in the files, where both count rows."""
    found = content["found"]
    if content["unit"] != "rows" or found["classes"] != classes or not classes:
        return []
    same = all(math.isclose(found["class_size"][k], sizes[k], rel_tol=1e-9) for k in _SIZES)
    return [] if same else ["the sizes of classes differ from the manifest"]


def _roles(content: Mapping[str, Any]) -> Roles:
    attributes = [
        Attribute(c["of"], c["type"], Role(c["role"])) for c in content["columns"] if c["role"] == str(Role.SENSITIVE)
    ]
    return Roles(tuple(attributes))


def _lowered(names: Any) -> list[str]:
    return sorted(str(n).lower() for n in names or ())


def _lowered_as(names: Iterable[str], content: Mapping[str, Any]) -> set[str]:
    """Return the names as the manifest writes them."""
    lowered = {n.lower() for n in names}
    return {c["of"] for c in content["columns"] if c["of"].lower() in lowered}


def _same(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Compare parameters: numbers by value, but ``True`` is not 1."""
    kinds = {k: isinstance(v, bool) for k, v in first.items()} == {k: isinstance(v, bool) for k, v in second.items()}
    return kinds and dict(first) == dict(second)


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(v, str) and v for v in value)


__all__ = ["Expected", "disagreements", "model_of", "size_problems"]
