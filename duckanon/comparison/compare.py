"""Releases side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from duckanon.errors import ParameterError
from duckanon.release import Release

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Comparison:
    """Releases side by side.

    Parameters
    ----------
    metrics : pyarrow.Table
        ``metric``, ``attribute`` (NULL for the whole release), ``direction`` ("lower" or "higher" is better), and a
        column for each release.
    indices : pyarrow.Table
        ``property``, ``index``, ``release``, ``against``, ``value`` (the index of the first beside the second) and
        ``aligned``: whether both vectors list the same row at the same place. Where not, distributions were compared.
    sizes : pyarrow.Table
        ``release``, ``property`` and its ``min``, ``q25``, ``median``, ``mean``, ``q75``, ``max`` over rows.
    """

    metrics: pa.Table
    indices: pa.Table
    sizes: pa.Table

    def to_dict(self) -> dict[str, Any]:
        """Return the tables as lists of rows."""
        return {name: getattr(self, name).to_pylist() for name in ("metrics", "indices", "sizes")}


def compare(
    releases: Sequence[Release] | Mapping[str, Release],
    *,
    by: str = "coverage",
    properties: Sequence[str] = ("class_size",),
    metrics: Sequence[str] | None = None,
) -> Comparison:
    """Compare releases of one source by all metrics, and in pairs by an index on property vectors.

    Parameters
    ----------
    releases : sequence of Release, or mapping of name to Release
        Two or more, made from the same rows; without names they are called a, b, ...
    by : str
        The index: "coverage", "spread", "hypervolume" (a logarithm) or "count_better".
    properties : sequence of str
    metrics : sequence of str, optional

    Notes
    -----
    A release keeps no row ids, so the vector of ``class_size`` is sorted (suppressed rows are one class, as in the
    paper): coverage 1 then says that the distribution of class sizes is nowhere worse, not that no person is worse off.

    References
    ----------
    R. Dewri, I. Ray, I. Ray and D. Whitley, On the comparison of microdata disclosure control algorithms, 2009.

    Examples
    --------
    >>> import duckanon, pyarrow as pa
    >>> people = pa.table({"age": [34, 35, 36, 61, 62, 63]})
    >>> a, b = (duckanon.anonymize(people, quasi_identifiers=["age"], k=k) for k in (3, 6))
    >>> found = duckanon.compare([a, b])
    >>> [(r["release"], r["against"], r["value"]) for r in found.indices.to_pylist()]
    [('a', 'b', 0.0), ('b', 'a', 1.0)]
    >>> found.metrics.column_names
    ['metric', 'attribute', 'direction', 'a', 'b']
    """
    import numpy as np
    import pyarrow as pa

    from duckanon.comparison.indices import get_binary
    from duckanon.comparison.properties.base import properties as registry

    named = _named(releases)
    index = get_binary(by)
    pairs: list[dict[str, Any]] = []
    sizes: list[dict[str, Any]] = []
    for name in properties:
        chosen = registry.get(name)()
        vectors = {label: chosen.vector(release) for label, release in named.items()}
        for label, vector in vectors.items():
            quantiles = np.quantile(vector, [0, 0.25, 0.5, 0.75, 1], method="inverted_cdf")
            low, q25, median, q75, high = (float(q) for q in quantiles)
            found = {"min": low, "q25": q25, "median": median, "mean": float(vector.mean()), "q75": q75, "max": high}
            sizes.append({"release": label, "property": name, **found})
            pairs += [
                {
                    "property": name,
                    "index": by,
                    "release": label,
                    "against": other,
                    "value": index(vector, vectors[other]),
                    "aligned": chosen.aligned,
                }
                for other in named
                if other != label
            ]
    return Comparison(_side_by_side(named, metrics), pa.Table.from_pylist(pairs), pa.Table.from_pylist(sizes))


def _named(releases: Sequence[Release] | Mapping[str, Release]) -> dict[str, Release]:
    if isinstance(releases, Mapping):
        named = {str(name): release for name, release in releases.items()}
    else:
        items = list(releases)
        letters = [chr(ord("a") + i) if len(items) <= 26 else f"release_{i + 1}" for i in range(len(items))]
        named = dict(zip(letters, items, strict=True))
    if len(named) < 2:
        raise ParameterError(f"Comparing takes two releases or more. Got {len(named)}.")
    for name, release in named.items():
        if not isinstance(release, Release):
            raise ParameterError(f"compare takes releases. {name!r} is a {type(release).__name__}.")
    rows = {release.rows_in for release in named.values()}
    if len(rows) > 1:
        raise ParameterError(
            f"The releases were made from different rows: {', '.join(str(r) for r in sorted(rows))} rows."
        )
    taken = {"metric", "attribute", "direction"} & set(named)
    if taken:
        raise ParameterError(f"A release cannot be called {taken.pop()!r}.")
    return named


def _side_by_side(named: Mapping[str, Release], metrics: Sequence[str] | None) -> pa.Table:
    import pyarrow as pa

    rows: dict[tuple[str, str | None, str], dict[str, Any]] = {}
    for name, release in named.items():
        for m in release.measure(metrics):
            rows.setdefault((m.metric, m.attribute, m.direction), {})[name] = m.value
    keys = ("metric", "attribute", "direction")
    found = [dict(zip(keys, key, strict=True)) | values for key, values in rows.items()]
    schema = pa.schema([*((k, pa.string()) for k in keys), *((n, pa.float64()) for n in named)])
    return pa.Table.from_pylist(found, schema=schema)


__all__ = ["Comparison", "compare"]
