"""Which sets of columns single people out: the smallest ones, searched from single columns upwards."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.encoding.dictionaries import canonical
from duckanon.engine.base import workspace
from duckanon.engine.sql.relations import cast, col, hash_of, named, number, subquery, table
from duckanon.errors import DataError, ParameterError, RoleError, did_you_mean
from duckanon.hierarchy.rules import ColumnType
from duckanon.io.source import Source
from duckanon.models.base import require_int, require_number

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.engine.base import Engine
    from duckanon.io.source import Relation

MEASURES = ("uniqueness", "distinction", "separation")
SEED = 20_260_101
SAMPLE = 100_000
THRESHOLD = 0.8
_MOST = 2_000
_GENERATED = 2_000_000
_RECOUNTED = 40


@dataclass(frozen=True)
class Figures:
    """How well a set of columns distinguishes rows."""

    rows: int
    distinct: int
    alike: int
    """Ordered pairs of rows that are the same."""
    alone: int

    @property
    def distinction(self) -> float:
        """Distinct tuples / rows."""
        return self.distinct / self.rows

    @property
    def separation(self) -> float:
        """Pairs of rows that differ / pairs."""
        pairs = self.rows * (self.rows - 1)
        return 1 - self.alike / pairs if pairs else 0.0

    @property
    def uniqueness(self) -> float:
        """Rows that are alone / rows."""
        return self.alone / self.rows


@dataclass(frozen=True)
class IdentifyingSet:
    """A minimal set of columns that singles out; ``approximate`` if the figures are estimates."""

    columns: tuple[str, ...]
    figures: Figures
    approximate: bool


@dataclass(frozen=True)
class Search:
    """The sets found, how many sets were assessed, and how many were left out because there are too many."""

    sets: tuple[IdentifyingSet, ...]
    assessed: int
    left_out: int


def identifying_sets(
    data: object,
    *,
    columns: Sequence[str] | None = None,
    by: str = "uniqueness",
    threshold: float = THRESHOLD,
    max_size: int = 3,
    sample_size: int = SAMPLE,
    connection: Any = None,
) -> pa.Table:
    """Return the minimal sets of columns that single out: none of their columns can be left out.

    Parameters
    ----------
    data : str, Path, Source, Arrow object or data frame
    columns : sequence of str, optional
        The columns to combine; all by default.
    by : {"uniqueness", "distinction", "separation"}
        Which share must reach the threshold: of rows that are alone, of distinct tuples, of pairs that differ.
    threshold : float
    max_size : int
        The largest number of columns in a set.
    sample_size : int
        Of a table with more rows, a random sample of this many (always the same one) is searched. Rows of a sample look
        more unique than they are, so what it finds (the first 40 sets) is counted again on a random part of the tuples
        of all rows.

    Returns
    -------
    pyarrow.Table
        ``columns``, ``size``, ``uniqueness``, ``distinction``, ``separation`` and ``approximate``: whether the figures
        are estimates. The metadata of the schema count how many sets were ``assessed``, and how many ``left_out``: of
        very many columns the least promising sets are.

    Notes
    -----
    All three shares can only grow with the set, so nothing above a set that was found is assessed, and nothing whose
    columns have too few combinations to reach the threshold.

    References
    ----------
    R. Motwani and Y. Xu, Efficient algorithms for masking and finding quasi-identifiers, 2007; R. Agrawal and R.
    Srikant, Fast algorithms for mining association rules, 1994 (the search).

    Examples
    --------
    >>> import pyarrow as pa
    >>> from duckanon.assess.identifying_sets import identifying_sets
    >>> people = pa.table({"sex": list("ffmm"), "age": [30, 40, 30, 40], "city": list("aaab")})
    >>> for row in identifying_sets(people, threshold=1).to_pylist():
    ...     print(row["columns"], row["uniqueness"])
    ['sex', 'age'] 1.0
    """
    require_int("identifying_sets", "max_size", max_size, 1)
    require_int("identifying_sets", "sample_size", sample_size, 2)
    with workspace(connection) as engine:
        relation = Source.of(data).open(engine)
        found = search(
            engine, relation, columns, by=by, threshold=threshold, max_size=max_size, sample_size=sample_size
        )
    return as_table(found)


def as_table(found: Search) -> pa.Table:
    """Return the sets of a search as a table."""
    import pyarrow as pa

    rows = [
        {
            "columns": list(one.columns),
            "size": len(one.columns),
            **{name: getattr(one.figures, name) for name in MEASURES},
            "approximate": one.approximate,
        }
        for one in found.sets
    ]
    shares = [(name, pa.float64()) for name in MEASURES]
    schema = pa.schema([("columns", pa.list_(pa.string())), ("size", pa.int64()), *shares, ("approximate", pa.bool_())])
    metadata = {"assessed": str(found.assessed), "left_out": str(found.left_out)}
    return pa.Table.from_pylist(rows, schema=schema.with_metadata(metadata))


def search(
    engine: Engine,
    relation: Relation,
    columns: Sequence[str] | None = None,
    *,
    by: str = "uniqueness",
    threshold: float = THRESHOLD,
    max_size: int = 3,
    sample_size: int = SAMPLE,
) -> Search:
    """Search the minimal sets level by level; see ``identifying_sets``."""
    if by not in MEASURES:
        raise ParameterError(
            f"The 'by' parameter must be one of {', '.join(MEASURES)}.{did_you_mean(str(by), MEASURES)}"
        )
    least = require_number("identifying_sets", "threshold", threshold, 0, 1, above=True)
    names = _chosen(relation, columns)
    (rows,) = engine.row(exp.select(exp.Count(this=exp.Star())).from_(subquery(relation.query, "s")))
    if not rows:
        raise DataError(f"The source {relation.name!r} has no rows: there is nothing to suggest.")
    codes = _codes(engine, sampled(engine, relation, names, int(rows), sample_size), len(names))
    whole = _Whole(engine, relation, names, int(rows), sample_size) if rows > sample_size else None
    minimal: dict[tuple[int, ...], Figures] = {}
    assessed = left_out = 0
    seen_rows = min(int(rows), sample_size)
    # As many distinct tuples as a set has, or as its parts allow: not fewer rows are alone.
    reach: dict[tuple[int, ...], int] = {(): 1}
    single: dict[int, int] = {}
    for size in range(1, min(max_size, len(names)) + 1):
        if len(reach) * len(names) > _GENERATED:
            left_out += math.comb(len(names), size)
            break
        below, reach = reach, {}
        candidates = []
        for one in _joined(below, len(names)):
            reach[one] = min(below[one[:-1]] * single[one[-1]] if size > 1 else seen_rows, seen_rows)
            if by == "separation" or reach[one] >= least * seen_rows or size == 1:
                candidates.append(one)
        candidates.sort(key=lambda one: -reach[one])
        left = max(_MOST - assessed, len(names) if size == 1 else 0)
        for one in candidates[left:]:
            left_out += 1
            del reach[one]
        assessed += len(candidates[:left])
        for one, figures in _figures(engine, codes, candidates[:left]):
            reach[one] = figures.distinct
            if getattr(figures, by) < least:
                continue
            counted = whole.count(one) if whole is not None else None
            if counted is None or getattr(counted, by) >= least:
                minimal[one] = counted or figures
                del reach[one]
        if size == 1:
            single = {one[0]: distinct for one, distinct in reach.items()}
    engine.drop(codes)
    sets = [IdentifyingSet(tuple(names[j] for j in one), what, whole is not None) for one, what in minimal.items()]
    sets.sort(key=lambda s: (len(s.columns), -getattr(s.figures, by)))
    return Search(tuple(sets), assessed, left_out)


def _joined(below: Mapping[tuple[int, ...], int], columns: int) -> Iterator[tuple[int, ...]]:
    """Yield the sets of one column more all of whose parts are there."""
    for one in below:
        for last in range(one[-1] + 1 if one else 0, columns):
            longer = (*one, last)
            if all(longer[:i] + longer[i + 1 :] in below for i in range(len(longer) - 1)):
                yield longer


class _Whole:
    """Estimates the figures of all rows of a large table from all rows of a random part of its tuples.

    Rows of a sample look more unique than they are: those like them are missing. Of a part of the tuples none is.
    """

    def __init__(self, engine: Engine, relation: Relation, names: Sequence[str], rows: int, sample_size: int) -> None:
        self._engine, self._rows, self._left = engine, rows, _RECOUNTED
        self._parts = -(-rows // sample_size)
        self._source = relation.query
        self._values = [countable(name, relation.type_of(name), relation.collated) for name in names]

    def count(self, one: tuple[int, ...]) -> Figures | None:
        if not self._left:
            return None
        self._left -= 1
        values = [self._values[j] for j in one]
        part = exp.Mod(this=hash_of(*(v.copy() for v in values)), expression=number(self._parts))
        chosen = exp.select("*").from_(subquery(self._source.copy(), "s"))
        chosen = chosen.where(exp.EQ(this=part, expression=number(0)))
        seen, distinct, alike, alone = (
            int(v or 0) for v in self._engine.row(_count_query(subquery(chosen, "p"), values))
        )
        # Rows that all have one of few tuples may be in no part, or in one: that tuples are few is then known anyway.
        scale = self._rows / seen if seen else 0.0
        return Figures(self._rows, round(distinct * scale), round(alike * scale), round(alone * scale))


def _chosen(relation: Relation, columns: Sequence[str] | None) -> list[str]:
    if columns is None:
        return relation.names
    if isinstance(columns, str) or not columns or not all(isinstance(name, str) for name in columns):
        raise RoleError("columns must be a list of at least one column name.")
    lowered = {name.lower(): name for name in relation.names}
    for name in columns:
        if name.lower() not in lowered:
            raise RoleError(f"{relation.name!r} has no column {name!r}.{did_you_mean(name, relation.names)}")
    return list(dict.fromkeys(lowered[name.lower()] for name in columns))


def countable(name: str, type_name: str, collated: bool) -> exp.Expr:
    """Return the value of a column as it is counted; nested values as text."""
    nested = ColumnType.parse(type_name).name in {"list", "STRUCT", "MAP", "UNION", "VARIANT"}
    return cast(col(name), "VARCHAR") if nested else canonical(col(name), type_name, collated)


def sampled(engine: Engine, relation: Relation, names: Sequence[str], rows: int, sample_size: int) -> str:
    """Create a table of the values ``c_0``, ``c_1``, ... of all rows, or of ``sample_size`` random ones."""
    values = [countable(name, relation.type_of(name), relation.collated) for name in names]
    name = engine.fresh("sample")
    query = exp.select(*(named(v, f"c_{j}") for j, v in enumerate(values))).from_(subquery(relation.query, "s"))
    if rows > sample_size:
        sample_of(query, sample_size)
    engine.create(name, query)
    return name


def sample_of(query: exp.Select, sample_size: int) -> exp.Select:
    """Let a query return a random sample of its rows, always the same one."""
    query.set("sample", exp.TableSample(method=exp.var("reservoir"), size=number(sample_size), seed=number(SEED)))
    return query


def _codes(engine: Engine, sample: str, columns: int) -> str:
    """Create the sample with a number for each value: sets of many columns are then counted much quicker."""
    name = engine.fresh("codes")
    ranks = [
        exp.Window(
            this=exp.Anonymous(this="dense_rank"),
            order=exp.Order(expressions=[exp.Ordered(this=col(f"c_{j}"))]),
        )
        for j in range(columns)
    ]
    query = exp.select(*(named(cast(rank, "INTEGER"), f"c_{j}") for j, rank in enumerate(ranks))).from_(table(sample))
    engine.create(name, query)
    engine.drop(sample)
    return name


def _figures(
    engine: Engine, codes: str, candidates: Sequence[tuple[int, ...]]
) -> Iterator[tuple[tuple[int, ...], Figures]]:
    for one in candidates:
        counted = engine.row(_count_query(table(codes), [col(f"c_{j}") for j in one]))
        yield one, Figures(*(int(v) for v in counted))


def _count_query(source: exp.Table | exp.Subquery, values: Sequence[exp.Expr]) -> exp.Select:
    """Return rows, distinct tuples, ordered pairs of rows alike, and rows alone."""
    count = named(exp.Count(this=exp.Star()), "n")
    grouped = exp.select(count).from_(source).group_by(*(v.copy() for v in values))
    n = cast(col("n"), "HUGEINT")
    alike = exp.Mul(this=n, expression=exp.paren(exp.Sub(this=n.copy(), expression=number(1))))
    single = exp.EQ(this=col("n"), expression=number(1))
    return exp.select(
        named(exp.Sum(this=col("n")), "rows"),
        named(exp.Count(this=exp.Star()), "distinct_tuples"),
        named(exp.Sum(this=alike), "alike"),
        named(exp.Sum(this=exp.case().when(single, number(1)).else_(number(0))), "alone"),
    ).from_(subquery(grouped, "g"))


__all__ = ["MEASURES", "SAMPLE", "THRESHOLD", "Figures", "IdentifyingSet", "Search", "identifying_sets", "search"]
