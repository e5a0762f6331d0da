"""The releases that studies use: by name of algorithm and k, the same ones in every study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from duckanon.studies.tables import ROW, hierarchies

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from duckanon.algorithms.base import Algorithm
    from duckanon.release.release import Release
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
    figures: Record = {
        "suppressed": release.rows_suppressed / max(release.rows_in, 1),
        "levels": dict(release.recoding.levels) or None,
    }
    if not table.num_rows:
        return {**figures, "classes": 0, "homogeneity": None, "homogeneous": None}
    code = class_codes(table, list(release.recoding.columns))
    values = pc.dictionary_encode(table.column(target).combine_chunks(), null_encoding="encode").indices.to_numpy()
    counts = np.zeros((code.max() + 1, values.max() + 1), dtype=np.int64)
    np.add.at(counts, (code, values), 1)
    sizes, largest = counts.sum(axis=1), counts.max(axis=1)
    purity = largest / sizes
    held = np.histogram(purity, np.linspace(0, 1, 11))[0] / len(sizes)
    return {
        **figures,
        "classes": len(sizes),
        "class_size": float(sizes.mean()),
        "homogeneity": float(largest.sum() / sizes.sum()),
        "homogeneous": [round(float(h), 6) for h in held],
    }


def class_codes(table: pa.Table, names: Sequence[str]) -> NDArray[np.int64]:
    """Return the number of each row's class: rows that agree in all columns named have the same.

    Examples
    --------
    >>> import pyarrow as pa
    >>> class_codes(pa.table({"a": ["x", "y", "x"], "b": [1, 1, 1]}), ["a", "b"]).tolist()
    [0, 1, 0]
    """
    import pyarrow.compute as pc

    code = np.zeros(table.num_rows, dtype=np.int64)
    for name in names:
        codes = pc.dictionary_encode(table.column(name).combine_chunks(), null_encoding="encode").indices
        # Renumbered column by column, so that the product of their sizes cannot overflow.
        _, code = np.unique(code * (int(pc.max(codes).as_py()) + 1) + codes.to_numpy(), return_inverse=True)
    return code


def row_properties(release: Release, target: str) -> dict[str, NDArray[np.float64]]:
    """Return property vectors, a number for each row of the source, from rows that were published with their number.

    ``class_size``, ``loss`` (the mean share of a column's domain that the row's cells cover; lower is better) and
    ``sensitive_share`` (the share of the row's class with its own value of the target; lower is better). Suppressed
    rows form one class, have lost everything, and say nothing about the target.
    """
    import pyarrow.compute as pc

    table = release.to_arrow()
    names = list(release.recoding.columns)
    rows = table.column(ROW).to_numpy()
    code = class_codes(table, names)
    values = pc.dictionary_encode(table.column(target).combine_chunks(), null_encoding="encode").indices.to_numpy()
    pairs = code * (int(values.max(initial=0)) + 1) + values
    _, pair, shared = np.unique(pairs, return_inverse=True, return_counts=True)
    sizes = np.bincount(code)[code]
    gone = float(release.rows_suppressed)
    properties = {
        "class_size": np.full(release.rows_in, gone),
        "loss": np.ones(release.rows_in),
        "sensitive_share": np.zeros(release.rows_in),
    }
    properties["class_size"][rows] = sizes
    properties["loss"][rows] = _covered(release, table, names)
    properties["sensitive_share"][rows] = shared[pair] / sizes
    return properties


def _covered(release: Release, table: pa.Table, names: Sequence[str]) -> NDArray[np.float64]:
    """Return for each published row the mean share of the domains that its cells cover."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from duckanon.assess.utility import AnonymousEncoder

    # Numbers need no separate features here: what cells cover is known without them.
    domains = AnonymousEncoder(method="midpoint", max_features=1_000_000).fit(release).domains_
    lost = np.zeros(table.num_rows)
    for name in names:
        column = table.column(name).cast(pa.string()).combine_chunks()
        cells = pc.dictionary_encode(column, null_encoding="encode")
        domain = domains[name]
        whole = float(domain.weights.sum())
        shares = [float(domain.weights[domain.members(c)].sum()) / whole for c in cells.dictionary.to_pylist()]
        lost += np.array(shares)[cells.indices.to_numpy()] / len(names)
    return lost
