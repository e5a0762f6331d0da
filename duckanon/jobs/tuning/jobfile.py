"""The job file of a candidate: what the first one said, but for promise, algorithm and weights."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

from duckanon.algorithms.base import algorithms
from duckanon.errors import ConfigError
from duckanon.io.disk import replacing
from duckanon.jobs.tuning.candidates import Candidate
from duckanon.plan.plan import partitions

_REGIONS = ("form",)
"""What an output says of regions, which columns on levels do not have."""


def write_job(source: Path, target: Path, candidate: Candidate, remark: str) -> Path:
    """Write the job file of a candidate beside the one that it comes from, and make sure that it can be read."""
    from duckanon.jobs import load_job

    require_beside(source, target)
    content = tomllib.loads(source.read_text(encoding="utf-8"))
    privacy = dict(content.get("privacy", {}))
    if candidate.k is not None:
        privacy["k"] = candidate.k
    privacy.pop("suppression_limit", None)
    if candidate.suppression_limit:
        privacy["suppression_limit"] = candidate.suppression_limit
    content["privacy"] = privacy
    content["algorithm"] = {"name": candidate.algorithm, **candidate.parameters}
    if candidate.weights:
        content["steering"] = {**content.get("steering", {}), "weights": candidate.weights}
    if not partitions(algorithms.get(candidate.algorithm)(**candidate.parameters)):
        content["output"] = {key: v for key, v in content.get("output", {}).items() if key not in _REGIONS}
    text = "\n".join(f"# {line}" for line in remark.splitlines()) + "\n\n" + written(content)
    with replacing(target) as staged:
        staged.write_text(text, encoding="utf-8")
        load_job(staged)
    return target


def require_beside(source: Path, target: Path) -> None:
    """Raise where a job file would not lie in the folder that its paths start from."""
    if target.absolute().parent.resolve() != source.absolute().parent.resolve():
        raise ConfigError(f"{target.name!r} must lie beside {source.name!r}: its paths start from that folder.")
    if target.exists() and target.resolve() == source.resolve():
        raise ConfigError(f"{target.name!r} is the job itself: choose another name.")


def written(content: Mapping[str, Any]) -> str:
    """Return tables of plain values as TOML.

    Examples
    --------
    >>> print(written({"privacy": {"k": 5}, "hierarchies": {"zip": {"rule": "mask"}}}))
    [privacy]
    k = 5
    <BLANKLINE>
    [hierarchies]
    zip = {rule = "mask"}
    <BLANKLINE>
    """
    parts = []
    for name, table in content.items():
        lines = [f"{_key(key)} = {_value(value)}" for key, value in table.items()]
        parts.append("\n".join([f"[{_key(name)}]", *lines]) + "\n")
    return "\n".join(parts)


def _key(name: str) -> str:
    bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if bare else _text(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(v) for v in value) + "]"
    return repr(value)


def _text(value: str) -> str:
    # What JSON escapes is escaped alike in TOML, but for the delete character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
