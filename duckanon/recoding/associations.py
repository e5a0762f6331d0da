"""Count how values of columns occur together, before values are permuted and after.

Numbers are counted in intervals of equal width, because a single number occurs too rarely to say anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.engine.sql.files import load
from duckanon.engine.sql.relations import cast, col, named, table, text, union_all
from duckanon.plan.plan import has_distance
from duckanon.recoding.coded_rows import CODE, VALUE, RowCoder
from duckanon.recoding.relations import size

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from duckanon.encoding.dictionaries import Dictionary
    from duckanon.engine.base import Engine

_DIGITS = 9
"""Sums are added up in any order: differences beyond this digit do not count."""


@dataclass(frozen=True)
class Counted:
    """A column by the codes of its values. ``bins`` is the table of their intervals, None if every value counts alone.

    ``code`` is its name among the coded rows; ``intervals`` the intervals by code, for arrays.
    """

    name: str
    code: str
    size: int
    quasi: bool
    bins: str | None = None
    intervals: NDArray[np.int64] | None = None


def counted_columns(coder: RowCoder, intervals: int) -> list[Counted]:
    """Return the quasi-identifiers and the sensitive columns that have codes."""
    types = {a.name: a.type for a in coder.plan.roles.attributes}
    columns = []
    for j, coded in enumerate(coder.coded):
        columns.append(_counted(coder.engine, coded.dictionary, types, f"{CODE}{j}", True, intervals))
    for i, values in enumerate(coder.values.values()):
        columns.append(_counted(coder.engine, values, types, f"{VALUE}{i}", False, intervals))
    return columns


def _counted(
    engine: Engine, values: Dictionary, types: dict[str, str], code: str, quasi: bool, intervals: int
) -> Counted:
    import numpy as np
    import pyarrow as pa

    name = values.attribute
    number_of = size(col("value"), types[name]) if has_distance(types[name]) else None
    if number_of is None or values.size - values.null <= intervals:
        return Counted(name, code, values.size, quasi)
    query = exp.select(named(cast(number_of, "DOUBLE"), "v")).from_(table(values.table)).order_by(col("code"))
    numbers: Any = engine.arrow(query).column(0).to_numpy(zero_copy_only=False).astype(np.float64)
    finite = np.isfinite(numbers)
    low, high = (numbers[finite].min(), numbers[finite].max()) if finite.any() else (0.0, 0.0)
    # NULL, NaN and infinities are an interval of their own.
    at = np.full(len(numbers), intervals, dtype=np.int64)
    with np.errstate(over="ignore", invalid="ignore"):
        share = (numbers[finite] / 2 - low / 2) / (high / 2 - low / 2) if high > low else np.zeros(int(finite.sum()))
    at[finite] = np.minimum((share * intervals).astype(np.int64), intervals - 1)
    bins = engine.fresh("bins")
    engine.register(bins, pa.table({"code": np.arange(len(at), dtype=np.int32), "bin": at.astype(np.int32)}))
    return Counted(name, code, intervals + 1, quasi, bins, at)


def count_pairs(
    engine: Engine,
    columns: Sequence[Counted],
    code_of: Callable[[Counted], exp.Expr],
    rows: exp.Select,
    released: bool = False,
) -> exp.Query:
    """Return ``(released, first, second, x, y, n)`` of every two columns; ``rows`` selects nothing yet.

    ``code_of`` gives the code of a column in ``rows``.
    """
    query = rows.copy()
    for i, column in enumerate(columns):
        code = code_of(column)
        if column.bins is not None:
            on = exp.EQ(this=col("code", f"b{i}"), expression=code)
            query = query.join(table(column.bins, f"b{i}"), on=on)
            code = col("bin", f"b{i}")
        query = query.select(named(cast(code, "INTEGER"), f"b_{i}"))
    binned = engine.fresh("binned")
    engine.create(binned, query.select(named(exp.Count(this=exp.Star()), "n")).group_by(exp.var("ALL")))
    parts: list[exp.Query] = []
    for i, j in combinations(range(len(columns)), 2):
        counts = exp.select(
            named(exp.true() if released else exp.false(), "released"),
            named(text(columns[i].name), "first"),
            named(text(columns[j].name), "second"),
            named(cast(col(f"b_{i}"), "VARCHAR"), "x"),
            named(cast(col(f"b_{j}"), "VARCHAR"), "y"),
            named(cast(exp.Sum(this=col("n")), "BIGINT"), "n"),
        )
        parts.append(counts.from_(table(binned)).group_by(col(f"b_{i}"), col(f"b_{j}")))
    return union_all(parts)


def information(engine: Engine, pairs: str) -> list[tuple[str, str, float, float | None]]:
    """Return the mutual information of every two columns in bits, before and after."""
    statement = load("permutation/mutual_information").bind({"pairs": pairs})
    rows = engine.rows(statement)
    return [
        (
            str(first),
            str(second),
            round(float(before), _DIGITS),
            None if after is None else round(float(after), _DIGITS),
        )
        for first, second, before, after in rows
    ]


def with_sensitive(
    columns: Sequence[Counted], bits_of_pairs: Sequence[tuple[str, str, float, float | None]]
) -> list[float]:
    """Return the bits that each quasi-identifier has in common with all sensitive columns, before the permutation."""
    sensitive = {c.name for c in columns if not c.quasi}
    bits = {c.name: 0.0 for c in columns if c.quasi}
    for first, second, before, _ in bits_of_pairs:
        if first in bits and second in sensitive:
            bits[first] += before
    return [round(bits[c.name], _DIGITS) for c in columns if c.quasi]


def mean_information(
    columns: Sequence[Counted], bits_of_pairs: Sequence[tuple[str, str, float, float | None]]
) -> dict[str, dict[str, float]]:
    """Return the mean before and after, over pairs of quasi-identifiers and over those with a sensitive column."""
    quasi = {c.name for c in columns if c.quasi}
    kinds: dict[str, list[tuple[float, float]]] = {"quasi_identifiers": [], "with_sensitive": []}
    for first, second, before, after in bits_of_pairs:
        inside = (first in quasi) + (second in quasi)
        if inside:
            kinds["quasi_identifiers" if inside == 2 else "with_sensitive"].append((before, after or 0.0))
    return {
        kind: {
            "before": sum(b for b, _ in pairs) / len(pairs),
            "after": sum(a for _, a in pairs) / len(pairs),
            "pairs": len(pairs),
        }
        for kind, pairs in kinds.items()
        if pairs
    }


__all__ = ["Counted", "count_pairs", "counted_columns", "information", "mean_information", "with_sensitive"]
