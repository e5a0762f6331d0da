"""Releases side by side: which is better, for how many rows, and for which groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from math import isclose
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duckanon.assess.comparison.properties.base import resolve
from duckanon.assess.comparison.rows import Rows, require_same_rows
from duckanon.errors import ParameterError, did_you_mean
from duckanon.release.release import Release
from duckanon.report.comparison import comparison_report
from duckanon.report.results import Result

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.assess.comparison.pairwise import Numbers
    from duckanon.report.model import Report


@dataclass(frozen=True, repr=False)
class Comparison(Result):
    """Releases side by side.

    Every table is a ``pyarrow.Table``; ``to_arrow``, ``to_pandas`` and ``to_polars`` return ``standing``.
    Properties are summed up in their own direction; indices are those of vectors of
    which higher is better.

    Attributes
    ----------
    standing : pyarrow.Table
        Risk and loss: ``release``, ``average_risk`` and ``highest_risk`` of its published rows (1 / size of the class),
        ``loss`` (the metric of that name, suppressed rows included), ``suppressed_share``, ``front``, and
        ``dominated_by``: the releases that are no worse in all three and better in one. On the front are those that
        none dominates.
    tournament : pyarrow.Table
        ``index``, ``property``, ``release``, ``wins``, ``draws``, ``losses``, ``incomparable``, ``place`` (1 is best;
        most wins minus losses). The lines whose index and property are NULL sum over all.
    indices : pyarrow.Table
        ``property`` (NULL for an index of all), ``index``, ``release``, ``against``, ``value`` (the index of
        the first beside the second; of unary indices that of the first) and ``verdict``: "better", "worse", "equal" or
        "incomparable".
    dominance : pyarrow.Table
        ``property`` (NULL for all together), ``release``, ``against``, ``relation``: "dominates" (nowhere worse,
        somewhere better), "dominated", "equal" or "incomparable".
    gains : pyarrow.Table
        Who gains and who loses if ``release`` is published in place of ``against``: ``property``, ``release``,
        ``against``, ``rows_better``, ``rows_equal``, ``rows_worse``, ``mean_gain`` and ``mean_loss`` over those rows.
    bias : pyarrow.Table
        The anonymization bias, of the published rows of each ``release``: ``rows``, ``suppressed``; ``minimum``,
        ``q05``, ``q25``, ``median``, ``q75``, ``q95``, ``maximum``, ``mean`` and ``gini`` of the sizes of their
        classes, ``rows_in_smallest`` and ``share_in_smallest`` classes, ``mean_risk``, ``maximum_risk``, and
        ``risk_of_top_tenth``, the part of all risk on the tenth of the rows with most.
    groups : pyarrow.Table
        Which groups carry the risk: ``release``, ``attribute``, ``cell`` (a published value), ``rows``, ``mean_risk``,
        ``share_of_rows``, ``share_of_risk``, and ``bias``, the quotient of both.
    properties : pyarrow.Table
        ``release``, ``property``, ``direction``, and ``minimum``, ``q25``, ``median``, ``mean``, ``q75``, ``maximum``
        over all rows.
    sizes : pyarrow.Table
        ``release``, ``size``, ``rows``: how many published rows lie in classes of each size.
    metrics : pyarrow.Table
        ``metric``, ``attribute`` (NULL for the whole release), ``direction`` ("lower" or "higher" is better), and a
        column for each release.
    """

    standing: pa.Table
    tournament: pa.Table
    indices: pa.Table
    dominance: pa.Table
    gains: pa.Table
    bias: pa.Table
    groups: pa.Table
    properties: pa.Table
    sizes: pa.Table
    metrics: pa.Table

    @property
    def front(self) -> list[str]:
        """The releases that no other dominates in risk and loss."""
        return [str(r["release"]) for r in self.standing.to_pylist() if r["front"]]

    @property
    def winner(self) -> str | None:
        """The release that dominates all others in risk and loss; None where less risk costs more loss."""
        rows = self.standing.to_pylist()
        return next((n for n in self.front if all(n in r["dominated_by"] for r in rows if r["release"] != n)), None)

    def to_arrow(self, what: str = "standing") -> pa.Table:
        """Return a table of the comparison by its name."""
        if what not in TABLES:
            raise ParameterError(
                f"A comparison has no table {what!r}.{did_you_mean(str(what), TABLES)} It has: {', '.join(TABLES)}."
            )
        table: pa.Table = getattr(self, what)
        return table

    def to_dict(self) -> dict[str, Any]:
        """Return the winner, the front, and the tables as lists of rows."""
        tables = {name: self.to_arrow(name).to_pylist() for name in TABLES}
        return {"winner": self.winner, "front": self.front, **tables}

    def _shown(self) -> Report:
        return comparison_report({name: self.to_arrow(name).to_pylist() for name in TABLES})

    def plot(self, path: str | Path) -> Path:
        """Draw the comparison into a file, PNG, SVG or PDF by its suffix; needs ``pip install duckanon[plots]``."""
        from duckanon.assess.comparison.picture import draw

        return draw(self, path)


TABLES = tuple(f.name for f in fields(Comparison))
"""The names of the tables of a comparison."""


def compare(
    releases: Sequence[Release] | Mapping[str, Release],
    *,
    by: str | Sequence[str] = "coverage",
    properties: Sequence[str] = ("class_size", "loss"),
    index: str | Sequence[str] = "coverage",
    weights: Numbers | None = None,
    epsilon: float = 0.0,
    ideals: Mapping[str, Any] | None = None,
    goals: Numbers | None = None,
    significance: Numbers = 0.0,
    row_id: str | None = None,
    metrics: Sequence[str] | None = None,
) -> Comparison:
    """Compare releases of one source: in pairs by indices on property vectors, by their bias, and by all metrics.

    Parameters
    ----------
    releases : sequence of Release, or mapping of name to Release
        Two or more, made from the same rows; without names they are called a, b, ...
    by : str or sequence of str
        Of single properties: "minimum", "average", "rank", "count_better", "coverage", "spread", "hypervolume" (a
        logarithm). Of all properties at once: "weighted", "lexicographic" (most wanted property first), "goal".
        "dominance" is both.
    properties : sequence of str
        ``list(duckanon.comparison.properties)`` lists them.
    index : str, or one for each property
        What "weighted", "lexicographic" and "goal" measure of each property; of "hypervolume" here the volume itself.
    weights : sequence, or mapping of property to number, optional
        Of "weighted"; equal without.
    epsilon : float
        Two releases whose indices differ by no more are equally good.
    ideals : mapping of property to number or vector, optional
        What "rank" measures the distance to; by default the best that a row can have, such as a class of all rows.
    goals : sequence, or mapping of property to number
        Of "goal": the wished values of ``index``.
    significance : number, sequence, or mapping of property to number
        Of "lexicographic": differences of ``index`` up to here do not count.
    row_id : str, optional
        A unique column that the sources share. Without it row i of one source must be row i of the others; in both
        cases a fingerprint of the quasi-identifiers is compared, and sources that differ are refused.
    metrics : sequence of str, optional
        All without.

    Notes
    -----
    Values of a property of which lower is better are turned around before indices are computed: bound minus value where
    it has an upper bound, else minus value. "rank" then is the same distance, "hypervolume" needs the bound. "weighted"
    normalizes indices other than coverage, as the paper advises. Suppressed rows count: they are one class of their
    own, have no utility and no risk.

    References
    ----------
    R. Dewri, I. Ray, I. Ray and D. Whitley, On the comparison of microdata disclosure control algorithms, 2009.

    Examples
    --------
    >>> import duckanon, pyarrow as pa
    >>> people = pa.table({"age": [34, 35, 36, 61, 62, 63]})
    >>> a, b = (duckanon.anonymize(people, quasi_identifiers=["age"], k=k) for k in (3, 6))
    >>> found = duckanon.compare([a, b], properties=["class_size", "loss"], by=["coverage", "weighted"])
    >>> [(r["property"], r["release"], r["value"]) for r in found.indices.to_pylist() if r["index"] == "coverage"]
    [('class_size', 'a', 0.0), ('class_size', 'b', 1.0), ('loss', 'a', 1.0), ('loss', 'b', 0.0)]
    >>> [r["verdict"] for r in found.indices.to_pylist() if r["index"] == "weighted"]
    ['equal', 'equal']
    >>> found.gains.to_pylist()[0]["rows_worse"], found.dominance.to_pylist()[-1]["relation"]
    (6, 'incomparable')
    >>> found.metrics.column_names
    ['metric', 'attribute', 'direction', 'a', 'b']
    """
    from duckanon.assess.comparison.pairwise import Settings, tables

    named = _named(releases)
    chosen = resolve(properties, list(named.values()))
    settings = Settings.make(by, [p.label for p in chosen], index, weights, epsilon, ideals, goals, significance)
    numbered = {name: Rows.of(release, row_id) for name, release in named.items()}
    require_same_rows(numbered.values())
    measured = tables(numbered, chosen, settings)
    bias = _bias(named)
    standing = _standing(named, bias["bias"])
    return Comparison(standing=standing, **measured, **bias, metrics=_side_by_side(named, metrics))


def _named(releases: Sequence[Release] | Mapping[str, Release]) -> dict[str, Release]:
    if not isinstance(releases, Iterable):
        raise ParameterError(f"compare takes a list of releases, or a mapping. Got a {type(releases).__name__}.")
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
        release.require_visible("compare")
    taken = {"metric", "attribute", "direction"} & set(named)
    if taken:
        raise ParameterError(f"A release cannot be called {taken.pop()!r}.")
    return named


def _bias(named: Mapping[str, Release]) -> dict[str, pa.Table]:
    import pyarrow as pa

    from duckanon.assess.comparison.bias import bias_of, groups_of, size_counts

    bias = [{"release": name, **bias_of(release)} for name, release in named.items()]
    groups = [{"release": name, **group} for name, release in named.items() for group in groups_of(release)]
    sizes = []
    for name, release in named.items():
        class_sizes, counts, _ = size_counts(release)
        sizes += [{"release": name, "size": int(s), "rows": int(n)} for s, n in zip(class_sizes, counts, strict=True)]
    strings = [("release", pa.string()), ("attribute", pa.string()), ("cell", pa.string()), ("rows", pa.int64())]
    numbers = [(n, pa.float64()) for n in ("mean_risk", "share_of_rows", "share_of_risk", "bias")]
    return {
        "bias": pa.Table.from_pylist(bias),
        # A column of which all cells are NULL has no type of its own.
        "groups": pa.Table.from_pylist(groups, schema=pa.schema([*strings, *numbers])),
        "sizes": pa.Table.from_pylist(sizes),
    }


_RISKS = ("average_risk", "highest_risk")


def _standing(named: Mapping[str, Release], bias: pa.Table) -> pa.Table:
    """Return risk and loss of each release, and which others are better in one of them and no worse in all."""
    import pyarrow as pa

    rows: list[dict[str, Any]] = []
    for (name, release), risk in zip(named.items(), bias.to_pylist(), strict=True):
        (loss,) = (m.value for m in release.measure(["loss"]) if m.attribute is None)
        share = release.rows_suppressed / release.rows_in if release.rows_in else 0.0
        risks = {"average_risk": risk["mean_risk"], "highest_risk": risk["maximum_risk"]}
        rows.append({"release": name, **risks, "loss": loss, "suppressed_share": share})
    for row in rows:
        row["dominated_by"] = [other["release"] for other in rows if _dominates(other, row)]
        row["front"] = not row["dominated_by"]
    reals = [(key, pa.float64()) for key in (*_RISKS, "loss", "suppressed_share")]
    rest = [("front", pa.bool_()), ("dominated_by", pa.list_(pa.string()))]
    return pa.Table.from_pylist(rows, schema=pa.schema([("release", pa.string()), *reals, *rest]))


def _dominates(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether a release is no worse in all, and better in one; without a loss nothing can be said.

    Examples
    --------
    >>> a = {"average_risk": 0.1, "highest_risk": 0.2, "loss": 0.4}
    >>> _dominates(a, {**a, "loss": 0.5}), _dominates(a, a), _dominates(a, {**a, "loss": 0.5, "average_risk": 0.05})
    (True, False, False)
    """
    pairs = [(one[key], other[key]) for key in (*_RISKS, "loss")]
    if any(value is None for pair in pairs for value in pair):
        return False
    # Figures that are computed in another order differ in their last digits.
    better = [a < b and not isclose(a, b, rel_tol=1e-9) for a, b in pairs]
    worse = [a > b and not isclose(a, b, rel_tol=1e-9) for a, b in pairs]
    return any(better) and not any(worse)


def _side_by_side(named: Mapping[str, Release], metrics: Sequence[str] | None) -> pa.Table:
    import pyarrow as pa

    measured: dict[tuple[str, str | None, str], dict[str, Any]] = {}
    for name, release in named.items():
        for m in release.measure(metrics):
            measured.setdefault((m.metric, m.attribute, m.direction), {})[name] = m.value
    keys = ("metric", "attribute", "direction")
    lines = [dict(zip(keys, key, strict=True)) | values for key, values in measured.items()]
    schema = pa.schema([*((k, pa.string()) for k in keys), *((n, pa.float64()) for n in named)])
    return pa.Table.from_pylist(lines, schema=schema)


__all__ = ["TABLES", "Comparison", "compare"]
