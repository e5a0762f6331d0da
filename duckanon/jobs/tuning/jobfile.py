"""The job file of a candidate: the job that it comes from, comments and all, with other privacy and algorithm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from duckanon.algorithms.base import algorithms
from duckanon.errors import ConfigError
from duckanon.io.disk import replacing
from duckanon.jobs.tuning.candidates import Candidate
from duckanon.plan.plan import partitions


def write_job(source: Path, target: Path, candidate: Candidate, remark: str) -> Path:
    """Write the job file of a candidate beside the one that it comes from, and make sure that it can be read."""
    import tomlkit

    from duckanon.jobs import load_job

    require_beside(source, target)
    document = tomlkit.parse(source.read_text(encoding="utf-8"))
    shared: Any = document
    # A candidate is for a job of one table.
    table = shared["tables"][0] if "tables" in shared else shared
    privacy = table.setdefault("privacy", {})
    if candidate.k is not None:
        privacy["k"] = candidate.k
    if candidate.suppression_limit or "suppression_limit" in {**shared.get("privacy", {}), **privacy}:
        privacy["suppression_limit"] = candidate.suppression_limit
    table["algorithm"] = {"name": candidate.algorithm, **candidate.parameters}
    if candidate.weights:
        table.setdefault("steering", {})["weights"] = candidate.weights
    if not partitions(algorithms.get(candidate.algorithm)(**candidate.parameters)):
        # How regions are published means nothing where columns are on levels.
        for one in (shared, table):
            one.get("output", {}).pop("form", None)
    text = "\n".join(f"# {line}" for line in remark.splitlines()) + "\n\n" + tomlkit.dumps(document)
    with replacing(target) as staged:
        staged.write_text(text, encoding="utf-8")
        load_job(staged)
    return target


def require_beside(source: Path, target: Path) -> None:
    """Raise where a job file would not lie in the folder that its paths start from."""
    if target.absolute().parent.resolve() != source.absolute().parent.resolve():
        raise ConfigError(f"{target.name!r} must be beside {source.name!r}: its paths start from that folder.")
    if target.exists() and target.resolve() == source.resolve():
        raise ConfigError(f"{target.name!r} is the job itself: choose another name.")
