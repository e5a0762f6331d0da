"""Random range queries: what they count on the original, and what a release lets one guess."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlglot import exp

from duckanon.assess.assessed_table import of_table
from duckanon.assess.labels.cells import cell_domains
from duckanon.assess.utility.released_features import hierarchies_of, released_table
from duckanon.encoding.dictionaries import Dictionary, frequency_query
from duckanon.engine.base import workspace
from duckanon.engine.sql import workload as statements
from duckanon.engine.sql.relations import cast, col, named, qualified, subquery, table, union_all
from duckanon.errors import DataError, ParameterError, RoleError
from duckanon.io.source import Source
from duckanon.recoding.relations import size
from duckanon.release.release import Release

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from duckanon.assess.assessed_table import AssessedTable
    from duckanon.engine.base import Engine
    from duckanon.recoding.relations import QuasiIdentifierDomain

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Drawn:
    """Queries by the ranks of values: ``first`` to ``last``, both included, of each of ``columns``; sorted by these."""

    columns: Ints
    first: Ints
    last: Ints
    ranks: tuple[Ints, ...]
    """The rank of every value, by its code: its order, or one dealt at random where it has none."""

    def groups(self) -> list[tuple[tuple[int, ...], Ints]]:
        """Return the sets of columns of the queries, with the numbers of queries."""
        sets, places = np.unique(self.columns, axis=0, return_inverse=True)
        places = places.reshape(-1)
        return [(tuple(int(c) for c in s), np.flatnonzero(places == i)) for i, s in enumerate(sets)]


def draw(domains: Sequence[tuple[int, bool]], n: int, dimensions: int, selectivity: float, seed: int) -> Drawn:
    """Draw queries over columns with so many values, ordered or not.

    A query covers as many values of each column as give the share ``selectivity`` of all combinations.

    Examples
    --------
    >>> drawn = draw([(10, True), (4, False)], n=3, dimensions=1, selectivity=0.5, seed=0)
    >>> (drawn.last - drawn.first + 1).ravel().tolist(), drawn.columns.ravel().tolist()
    ([5, 2, 2], [0, 1, 1])
    """
    rng = np.random.default_rng(seed)
    width = min(dimensions, len(domains))
    chosen = np.sort(np.argsort(rng.random((n, len(domains))), axis=1)[:, :width], axis=1)
    chosen = chosen[np.lexsort(chosen.T[::-1])].astype(np.int64)
    sizes = np.array([values for values, _ in domains], dtype=np.int64)
    lengths = np.ceil(sizes * selectivity ** (1 / width) - 1e-9).astype(np.int64).clip(1)
    length = lengths[chosen]
    first = np.floor(rng.random(chosen.shape) * (sizes[chosen] - length + 1)).astype(np.int64)
    ranks = tuple(np.arange(values) if ordered else rng.permutation(values) for values, ordered in domains)
    return Drawn(chosen, first, first + length - 1, ranks)


@dataclass
class Asked:
    """A release and its original in an engine, ready for questions."""

    engine: Engine
    described: Sequence[QuasiIdentifierDomain]
    source: AssessedTable
    released: AssessedTable
    measure: tuple[exp.Expr, exp.Expr] | None

    def domain(self, j: int) -> tuple[int, bool]:
        """Return how many values a column has, and whether they are ordered; a missing number is in no range."""
        column = self.described[j]
        counted = exp.Count(this=col("value") if column.ordered else exp.Star())
        (values,) = self.engine.row(exp.select(counted).from_(table(column.values)))
        if not values:
            raise DataError(f"The column {column.name!r} has no values to query.")
        return int(values), column.ordered

    @cached_property
    def grain(self) -> float:
        """Return in how many parts of 1 values of the averaged column are counted: the largest keep all digits."""
        assert self.measure is not None
        largest, *_ = self.engine.row(statements.sizes(self.measure[0], self.source.query, 0.0))
        return float(2.0 ** (52 - np.frexp(float(largest))[1])) if largest else 1.0

    def mean_size(self) -> float:
        """Return the mean of the absolute values of the averaged column."""
        assert self.measure is not None
        _, total, counted = self.engine.row(statements.sizes(self.measure[0], self.source.query, self.grain))
        return float(total) / self.grain / int(counted) if counted else 0.0

    def answers(self, drawn: Drawn) -> dict[str, Floats]:
        """Return what every query finds: ``n``, ``total``, ``known`` of the original, and with ``_estimate`` after."""
        engine, measured = self.engine, self.measure is not None
        tuples, cells = self._coded(), self._labelled()
        ranks = [self._ranks(j, cuts) for j, cuts in enumerate(drawn.ranks)]
        cuts = [_query(d.cells) for d in self.described]
        covers = [_query(d.covers) if d.spans is None else d.spans[1].copy() for d in self.described]
        spans = [self._spans(j, *made) for j, made in enumerate(zip(covers, ranks, strict=True))]
        gaps = [self._made("gaps", statements.gaps(*made)) for made in zip(covers, ranks, spans, strict=True)]
        names = statements.TOTALS if measured else statements.TOTALS[:1]
        answers = {f"{name}{end}": np.zeros(len(drawn.columns)) for name in names for end in ("", "_estimate")}
        for columns, numbers in drawn.groups():
            asked = self._queries(drawn, numbers)
            self._count(answers, drawn, columns, numbers, tuples)
            shares = [
                self._made("shares", statements.shares(asked, place, spans[j], gaps[j], ranks[j], cuts[j]))
                for place, j in enumerate(columns)
            ]
            keys = [f"l_{j}" for j in columns]
            guess = statements.estimated(statements.summed(cells, keys, measured), shares, keys, measured)
            _fill(answers, engine.arrow(guess), "_estimate")
            engine.drop(asked, *shares)
        for name in names:
            answers[f"{name}_estimate"] /= self.grain if name == "total" else statements.GRAIN
        if measured:
            answers["total"] /= self.grain
        return answers

    def _count(
        self, answers: dict[str, Floats], drawn: Drawn, columns: tuple[int, ...], numbers: Ints, tuples: str
    ) -> None:
        """Count the original rows of some queries, all about the same columns."""
        ranges, cuts = {"query": numbers}, []
        for place, j in enumerate(columns):
            first, last = (side[numbers, place] for side in (drawn.first, drawn.last))
            ends = np.unique(np.concatenate([first, last + 1]))
            ranges[f"first_{place}"], ranges[f"last_{place}"] = (
                np.searchsorted(ends, e, "right") for e in (first, last)
            )
            places = {"code": np.arange(len(drawn.ranks[j])), "cut": np.searchsorted(ends, drawn.ranks[j], "right")}
            cuts.append(self._given("cuts", places))
        asked, measured = self._given("queries", ranges), self.measure is not None
        exact = statements.actual(asked, tuples, cuts, [f"c_{j}" for j in columns], measured)
        _fill(answers, self.engine.arrow(exact), "")
        self.engine.drop(asked, *cuts)

    def _spans(self, j: int, covers: exp.Query, ranks: str) -> str:
        query, given = statements.spans(covers, ranks), self.described[j].spans
        if given is not None:
            query = union_all([query, statements.given_spans(given[0], ranks)])
        return self._made("spans", query)

    def _made(self, stem: str, query: exp.Query) -> str:
        name = self.engine.fresh(stem)
        self.engine.create(name, query)
        return name

    def _coded(self) -> str:
        """Create the distinct tuples of codes of the original, with what is added up over their rows."""
        columns = [
            Dictionary(domain.name, expression, domain.values, 2**31)
            for domain, expression in zip(self.described, self.source.quasi.values(), strict=True)
        ]
        query = frequency_query(self.source.query, columns)
        if self.measure is not None:
            assert isinstance(query, exp.Select)
            query = query.select(*statements.totals(self.measure[0], self.grain)[1:])
        return self._made("tuples", query)

    def _labelled(self) -> str:
        """Create the distinct tuples of cells of the release, with what is added up over their rows."""
        released = self.released
        cells = [
            named(cast(qualified(expression, "s"), "VARCHAR"), f"l_{j}")
            for j, expression in enumerate(released.quasi.values())
        ]
        sums = statements.totals(self.measure[1], self.grain) if self.measure is not None else statements.totals(None)
        query = exp.select(*cells, *sums).from_(subquery(released.query, "s")).group_by(exp.var("ALL"))
        return self._made("labelled", query)

    def _ranks(self, j: int, ranks: Ints) -> str:
        """Create ``(code, rank, number)`` of the values of a column."""
        import pyarrow as pa

        incoming = self.engine.fresh("incoming")
        self.engine.register(incoming, pa.table({"code": np.arange(len(ranks)), "rank": ranks}))
        column = self.described[j]
        value = size(col("value", "v"), column.type)
        plain = cast(exp.null(), "DOUBLE") if value is None else cast(value, "DOUBLE")
        on = exp.EQ(this=col("code", "v"), expression=col("code", "i"))
        query = exp.select(col("code", "i"), col("rank", "i"), named(plain, "number"))
        name = self._made("ranks", query.from_(table(incoming, "i")).join(table(column.values, "v"), on=on))
        self.engine.unregister(incoming)
        return name

    def _queries(self, drawn: Drawn, numbers: Ints) -> str:
        columns = {"query": numbers}
        for place in range(drawn.columns.shape[1]):
            columns[f"first_{place}"] = drawn.first[numbers, place]
            columns[f"last_{place}"] = drawn.last[numbers, place]
        return self._given("queries", columns)

    def _given(self, stem: str, columns: dict[str, Ints]) -> str:
        import pyarrow as pa

        incoming = self.engine.fresh("incoming")
        self.engine.register(incoming, pa.table(columns))
        name = self._made(stem, exp.select("*").from_(table(incoming)))
        self.engine.unregister(incoming)
        return name


def _query(given: Any) -> exp.Query:
    query: exp.Query = given() if callable(given) else given.copy()
    return query


def _fill(counts: dict[str, Floats], answers: pa.Table, end: str) -> None:
    places = answers.column("query").to_numpy()
    for name in answers.column_names[1:]:
        counts[f"{name}{end}"][places] = answers.column(name).cast("double").fill_null(0.0).to_numpy()


COUNT, AVERAGE = "count", "average"
_QUANTILES = {"q25": 0.25, "median": 0.5, "q75": 0.75, "q90": 0.9}


@dataclass(frozen=True)
class Workload:
    """Answers of queries.

    Attributes
    ----------
    rows : pyarrow.Table
        A line for each query and kind ("count", "average"): ``query``, ``kind``, ``columns`` that it is about,
        ``actual``, ``estimate`` and ``error``, which is relative. No bound of a range is in it.
    rows_in : int
        The rows of the original.
    sanity : float
        Where a query finds next to nothing, errors are relative to this share of all rows.
    unanswered : int
        Averages over ranges without any row, of the original or of the release: they have no error.
    """

    rows: pa.Table = field(repr=False)
    rows_in: int
    selectivity: float
    sanity: float
    seed: int
    unanswered: int = 0

    def to_arrow(self) -> pa.Table:
        """Return the single answers."""
        return self.rows

    def to_pandas(self) -> Any:
        """Return the single answers as a pandas frame."""
        return self.rows.to_pandas()

    def summary(self) -> pa.Table:
        """Return, for each kind, how many ``queries`` there were, and ``mean``, ``median`` and quantiles of errors."""
        import pyarrow as pa

        kinds, errors = (self.rows.column(c).to_numpy(zero_copy_only=False) for c in ("kind", "error"))
        lines = []
        for kind in (COUNT, AVERAGE):
            finite = errors[(kinds == kind) & ~np.isnan(errors)]
            if len(finite):
                figures = {name: float(np.quantile(finite, q)) for name, q in _QUANTILES.items()}
                lines.append({"kind": kind, "queries": len(finite), "mean": float(finite.mean()), **figures})
        numbers = [(name, pa.float64()) for name in ("mean", *_QUANTILES)]
        schema = pa.schema([("kind", pa.string()), ("queries", pa.int64()), *numbers])
        return pa.Table.from_pylist(lines, schema=schema)

    def to_dict(self) -> dict[str, Any]:
        """Return how queries were drawn and how far off answers are."""
        settings = {n: getattr(self, n) for n in ("rows_in", "selectivity", "sanity", "seed", "unanswered")}
        return {**settings, "summary": self.summary().to_pylist()}


def queries(
    original: object,
    release: object,
    *,
    columns: Sequence[str] | None = None,
    n: int = 1000,
    dimensions: int = 2,
    selectivity: float = 0.1,
    average: str | None = None,
    hierarchies: Mapping[str, Any] | None = None,
    sanity: float = 0.001,
    seed: int = 0,
    connection: Any = None,
) -> Workload:
    """Answer random range queries on the original and on the release, and return the errors.

    Parameters
    ----------
    original : str, Path, Source, Arrow object or data frame
        The table that was anonymized.
    release : Release, or anything that ``original`` may be
    columns : sequence of str, optional
        The columns of the queries. The quasi-identifiers of a ``Release`` by default.
    n : int
        The number of queries.
    dimensions : int
        The number of columns of a query; fewer where there are fewer.
    selectivity : float
        The share of the combinations of values that a query covers.
    average : str, optional
        A column of numbers, published as it is: queries for its mean are added.
    hierarchies : mapping, optional
        How columns were generalized; a ``Release`` knows its own.
    sanity : float
        Errors of queries that find fewer rows than this share of all are relative to that share.
    seed : int
        The same table and seed give the same queries.
    connection : duckdb.DuckDBPyConnection, optional

    Notes
    -----
    A query is ``SELECT count(*) WHERE a BETWEEN .. AND .. AND b IN (..)``: columns are drawn, and of each a range of
    neighbouring values (of numbers, dates and times) or a set of values (of all else). A released row counts by the
    share of its region that a query covers, all values of the original that a cell covers being equally
    likely. Suppressed rows count nowhere. Errors are abs(estimate - actual) / max(actual, sanity x rows), of averages
    abs(estimate - actual) / max(abs(actual), sanity x mean of absolute values).

    References
    ----------
    X. Xiao and Y. Tao, Anatomy: simple and effective privacy preservation, 2006, section 6 (the workload); K. LeFevre
    et al., Mondrian multidimensional k-anonymity, 2006, section 5 (uniform within a region); M. Garofalakis and
    A. Kumar, Wavelet synopses for general error metrics, 2005 (the sanity bound).

    Examples
    --------
    >>> import duckanon, pyarrow as pa
    >>> people = pa.table({"age": [20 + i % 40 for i in range(400)], "cost": [float(i % 40) for i in range(400)]})
    >>> with duckanon.anonymize(people, quasi_identifiers=["age"], insensitive=["cost"], k=20) as release:
    ...     found = duckanon.utility.queries(people, release, n=200, average="cost")
    >>> [(line["kind"], line["median"] < 0.2) for line in found.summary().to_pylist()]
    [('count', True), ('average', True)]
    """
    _require(n, dimensions, selectivity, sanity)
    names, data, hierarchies_of_columns = _released(release, columns, hierarchies)
    with workspace(connection) as engine:
        released = of_table(engine, data, names)
        source = of_table(engine, original, list(released.quasi))
        rows = source.rows()
        if not rows:
            raise DataError("The original has no rows: there is nothing to query.")
        measure = _measures(source, released, average)
        described = cell_domains(source, released, hierarchies_of_columns)
        asked = Asked(engine, described, source, released, measure)
        drawn = draw([asked.domain(j) for j in range(len(described))], n, dimensions, selectivity, seed)
        answers = asked.answers(drawn)
        scale = asked.mean_size() if average is not None else 0.0
    return _workload(drawn, answers, list(released.quasi), rows, scale, selectivity, sanity, seed)


def _require(n: int, dimensions: int, selectivity: float, sanity: float) -> None:
    for name, value in (("n", n), ("dimensions", dimensions)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ParameterError(f"{name} must be an int >= 1. Got {value!r}.")
    for name, share in (("selectivity", selectivity), ("sanity", sanity)):
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
            raise ParameterError(f"{name} is a fraction above 0, up to 1. Got {share!r}.")


def _released(
    release: object, columns: Sequence[str] | None, hierarchies: Mapping[str, Any] | None
) -> tuple[list[str], object, dict[str, Any] | None]:
    if not isinstance(release, Release):
        if columns is None:
            raise RoleError("Name the columns of the queries: only a release of duckanon knows its own.")
        return list(columns), release, None if hierarchies is None else dict(hierarchies)
    plan = release.plan
    names = [a.name for a in plan.roles.quasi_identifiers] if columns is None else list(columns)
    all_hierarchies = {**hierarchies_of(release), **(hierarchies or {})}
    wanted = {name.lower() for name in names}
    chosen = {name: h for name, h in all_hierarchies.items() if name.lower() in wanted}
    plain = all(kind not in ("bounds", "struct") for kind in plan.output.values())
    return names, Source.file(release.path) if plain else released_table(release), chosen


def _measures(source: AssessedTable, released: AssessedTable, average: str | None) -> tuple[exp.Expr, exp.Expr] | None:
    """Return the averaged column as a number, of the original and of the release."""
    if average is None:
        return None
    measures = []
    for subject in (source, released):
        name = next((t for t in subject.types if t.lower() == average.lower()), None)
        if name is None:
            raise RoleError(f"There is no column {average!r} to be averaged.")
        value = size(col(name), subject.types[name])
        if value is None:
            raise ParameterError(f"The column {average!r} has no numbers to be averaged.")
        measures.append(qualified(value, "s"))
    return measures[0], measures[1]


def _workload(
    drawn: Drawn,
    answers: Mapping[str, Floats],
    names: Sequence[str],
    rows: int,
    scale: float,
    selectivity: float,
    sanity: float,
    seed: int,
) -> Workload:
    import pyarrow as pa

    asked = [[names[c] for c in columns] for columns in drawn.columns]
    parts, unanswered = [], 0

    def part(kind: str, actual: Floats, estimate: Floats, least: float) -> None:
        error = np.abs(estimate - actual) / np.maximum(np.abs(actual), least)
        parts.append(
            pa.table(
                {
                    "query": np.arange(len(asked)),
                    "kind": [kind] * len(asked),
                    "columns": pa.array(asked, pa.list_(pa.string())),
                    "actual": actual,
                    "estimate": estimate,
                    "error": error,
                }
            )
        )

    part(COUNT, answers["n"], answers["n_estimate"], max(sanity * rows, np.finfo(float).tiny))
    if "total" in answers:
        means = []
        for end in ("", "_estimate"):
            estimable = answers[f"known{end}"]
            means.append(
                np.divide(answers[f"total{end}"], estimable, out=np.full(len(estimable), np.nan), where=estimable > 0)
            )
        unanswered = int((np.isnan(means[0]) | np.isnan(means[1])).sum())
        part(AVERAGE, means[0], means[1], max(sanity * scale, np.finfo(float).tiny))
    return Workload(pa.concat_tables(parts), rows, selectivity, sanity, seed, unanswered)


__all__ = ["Workload", "queries"]
