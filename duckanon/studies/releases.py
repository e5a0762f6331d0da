"""The releases that studies look at: by name of algorithm and k, the same ones in every study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from duckanon.studies.tables import hierarchies

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.algorithms.base import Algorithm
    from duckanon.release import Release
    from duckanon.studies.base import Record

REGIONS = ("mondrian", "tdg", "knn_clustering", "mdav", "v_mdav", "k_member", "kaca", "greedy")
NAMES = {
    "ola": "OLA",
    "mondrian": "Mondrian",
    "tdg": "TDG",
    "knn_clustering": "CB",
    "mdav": "MDAV",
    "none": "raw",
}


def shown(algorithm: str) -> str:
    """Return the name that papers give an algorithm."""
    return NAMES.get(algorithm, algorithm)


def release_of(
    table: pa.Table,
    spec: Mapping[str, Any],
    algorithm: str,
    k: int,
    *,
    metric: str = "height",
    suppression_limit: float = 0.0,
    bounds: str = "tight",
    seed: int = 1,
    insensitive: Sequence[str] = (),
) -> Release:
    """Return the release of a table by an algorithm; what does not concern the algorithm is passed over.

    ``metric`` and ``suppression_limit`` are for full-domain algorithms, ``bounds`` for those that make regions.
    """
    from duckanon.api import anonymize

    by_region = algorithm in REGIONS
    return anonymize(
        table,
        quasi_identifiers=list(spec["quasi_identifiers"]),
        sensitive=[spec["target"]],
        insensitive=list(insensitive),
        hierarchies=hierarchies(spec) or None,
        algorithm=_made(algorithm, metric, seed),
        suppression_limit=0.0 if by_region else suppression_limit,
        bounds=bounds if by_region else "grid",
        k=k,
        seed=seed,
    )


def _made(name: str, metric: str, seed: int) -> Algorithm:
    from duckanon.algorithms.base import algorithms

    kind = algorithms.get(name)
    if name in ("ola", "optimal"):
        return kind(metric=metric)  # type: ignore[call-arg]
    if name in ("tdg", "knn_clustering"):
        return kind(seed=seed)  # type: ignore[call-arg]
    return kind()


def described(release: Release, target: str) -> Record:
    """Return levels, suppressed rows, classes and their homogeneity: how one-sided the target is within a class.

    The homogeneity of a class is the share of its most frequent value of the target. ``homogeneity`` is its mean over
    rows, ``homogeneous`` ten shares of classes: those up to 0.1, up to 0.2, and so on.
    """
    import pyarrow.compute as pc

    table = release.to_arrow()
    quasi = [name for name in release.recoding.columns if name in table.column_names]
    found: Record = {
        "suppressed": release.rows_suppressed / max(release.rows_in, 1),
        "levels": dict(release.recoding.levels) or None,
    }
    if not table.num_rows:
        return {**found, "classes": 0, "homogeneity": None, "homogeneous": None}
    code = np.zeros(table.num_rows, dtype=np.int64)
    for name in quasi:
        own = pc.dictionary_encode(table.column(name).combine_chunks(), null_encoding="encode").indices
        # Renumbered column by column, so that the product of their sizes cannot overflow.
        _, code = np.unique(code * (int(pc.max(own).as_py()) + 1) + own.to_numpy(), return_inverse=True)
    values = pc.dictionary_encode(table.column(target).combine_chunks(), null_encoding="encode").indices.to_numpy()
    counts = np.zeros((code.max() + 1, values.max() + 1), dtype=np.int64)
    np.add.at(counts, (code, values), 1)
    sizes, largest = counts.sum(axis=1), counts.max(axis=1)
    purity = largest / sizes
    held = np.histogram(purity, np.linspace(0, 1, 11))[0] / len(sizes)
    return {
        **found,
        "classes": len(sizes),
        "class_size": float(sizes.mean()),
        "homogeneity": float(largest.sum() / sizes.sum()),
        "homogeneous": [round(float(h), 6) for h in held],
    }
