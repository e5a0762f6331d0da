"""Range queries drawn at random, and their answers in SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlglot import exp

from duckanon.encoding.dictionaries import Dictionary, frequency_query
from duckanon.engine.sql import workload as statements
from duckanon.engine.sql.relations import cast, col, named, qualified, subquery, table, union_all
from duckanon.errors import DataError
from duckanon.recoding.relations.column_domain import size

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from duckanon.assess.subject import Subject
    from duckanon.engine.base import Engine
    from duckanon.recoding.relations.column_domain import QuasiIdentifierDomain

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
        """Return the sets of columns that are asked about, with the numbers of their queries."""
        sets, places = np.unique(self.columns, axis=0, return_inverse=True)
        places = places.reshape(-1)
        return [(tuple(int(c) for c in s), np.flatnonzero(places == i)) for i, s in enumerate(sets)]


def draw(domains: Sequence[tuple[int, bool]], n: int, dimensions: int, selectivity: float, seed: int) -> Drawn:
    """Draw queries over columns with so many values, ordered or not.

    Of each column as many values are asked for that together they are the share ``selectivity`` of all combinations.

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
    source: Subject
    released: Subject
    measure: tuple[exp.Expr, exp.Expr] | None

    def domain(self, j: int) -> tuple[int, bool]:
        """Return how many values a column has, and whether they are ordered; a missing number is in no range."""
        own = self.described[j]
        counted = exp.Count(this=col("value") if own.ordered else exp.Star())
        (values,) = self.engine.row(exp.select(counted).from_(table(own.values)))
        if not values:
            raise DataError(f"The column {own.name!r} has no values to ask for.")
        return int(values), own.ordered

    @cached_property
    def grain(self) -> float:
        """Return in how many parts of 1 values of the averaged column are counted: the largest keep all digits."""
        assert self.measure is not None
        largest, *_ = self.engine.row(statements.sizes(self.measure[0], self.source.query, 0.0))
        return float(2.0 ** (52 - np.frexp(float(largest))[1])) if largest else 1.0

    def mean_size(self) -> float:
        """Return the mean of the absolute values of the averaged column."""
        assert self.measure is not None
        _, total, known = self.engine.row(statements.sizes(self.measure[0], self.source.query, self.grain))
        return float(total) / self.grain / int(known) if known else 0.0

    def answers(self, drawn: Drawn) -> dict[str, Floats]:
        """Return what every query finds: ``n``, ``total``, ``known`` of the original, and with ``_estimate`` after."""
        engine, measured = self.engine, self.measure is not None
        tuples, cells = self._coded(), self._labelled()
        ranks = [self._ranks(j, own) for j, own in enumerate(drawn.ranks)]
        own = [_query(d.cells) for d in self.described]
        covers = [_query(d.covers) if d.spans is None else d.spans[1].copy() for d in self.described]
        spans = [self._spans(j, *made) for j, made in enumerate(zip(covers, ranks, strict=True))]
        gaps = [self._made("gaps", statements.gaps(*made)) for made in zip(covers, ranks, spans, strict=True)]
        names = statements.TOTALS if measured else statements.TOTALS[:1]
        found = {f"{name}{end}": np.zeros(len(drawn.columns)) for name in names for end in ("", "_estimate")}
        for columns, numbers in drawn.groups():
            asked = self._queries(drawn, numbers)
            self._count(found, drawn, columns, numbers, tuples)
            shares = [
                self._made("shares", statements.shares(asked, place, spans[j], gaps[j], ranks[j], own[j]))
                for place, j in enumerate(columns)
            ]
            keys = [f"l_{j}" for j in columns]
            guess = statements.estimated(statements.summed(cells, keys, measured), shares, keys, measured)
            _fill(found, engine.arrow(guess), "_estimate")
            engine.drop(asked, *shares)
        for name in names:
            found[f"{name}_estimate"] /= self.grain if name == "total" else statements.GRAIN
        if measured:
            found["total"] /= self.grain
        return found

    def _count(
        self, found: dict[str, Floats], drawn: Drawn, columns: tuple[int, ...], numbers: Ints, tuples: str
    ) -> None:
        """Count the original rows of some queries, all about the same columns."""
        ranges, cuts = {"query": numbers}, []
        for place, j in enumerate(columns):
            first, last = (side[numbers, place] for side in (drawn.first, drawn.last))
            ends = np.unique(np.concatenate([first, last + 1]))
            ranges[f"first_{place}"], ranges[f"last_{place}"] = (
                np.searchsorted(ends, e, "right") for e in (first, last)
            )
            own = {"code": np.arange(len(drawn.ranks[j])), "cut": np.searchsorted(ends, drawn.ranks[j], "right")}
            cuts.append(self._given("cuts", own))
        asked, measured = self._given("queries", ranges), self.measure is not None
        exact = statements.actual(asked, tuples, cuts, [f"c_{j}" for j in columns], measured)
        _fill(found, self.engine.arrow(exact), "")
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
            Dictionary(own.name, expression, own.values, 2**31)
            for own, expression in zip(self.described, self.source.quasi.values(), strict=True)
        ]
        query = frequency_query(self.source.query, columns)
        if self.measure is not None:
            assert isinstance(query, exp.Select)
            query = query.select(*statements.totals(self.measure[0], self.grain)[1:])
        return self._made("tuples", query)

    def _labelled(self) -> str:
        """Create the distinct tuples of cells of the release, with what is added up over their rows."""
        own = self.released
        cells = [
            named(cast(qualified(expression, "s"), "VARCHAR"), f"l_{j}")
            for j, expression in enumerate(own.quasi.values())
        ]
        sums = statements.totals(self.measure[1], self.grain) if self.measure is not None else statements.totals(None)
        query = exp.select(*cells, *sums).from_(subquery(own.query, "s")).group_by(exp.var("ALL"))
        return self._made("labelled", query)

    def _ranks(self, j: int, ranks: Ints) -> str:
        """Create ``(code, rank, number)`` of the values of a column."""
        import pyarrow as pa

        incoming = self.engine.fresh("incoming")
        self.engine.register(incoming, pa.table({"code": np.arange(len(ranks)), "rank": ranks}))
        own = self.described[j]
        value = size(col("value", "v"), own.type)
        plain = cast(exp.null(), "DOUBLE") if value is None else cast(value, "DOUBLE")
        on = exp.EQ(this=col("code", "v"), expression=col("code", "i"))
        query = exp.select(col("code", "i"), col("rank", "i"), named(plain, "number"))
        name = self._made("ranks", query.from_(table(incoming, "i")).join(table(own.values, "v"), on=on))
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
    found: exp.Query = given() if callable(given) else given.copy()
    return found


def _fill(found: dict[str, Floats], answers: pa.Table, end: str) -> None:
    places = answers.column("query").to_numpy()
    for name in answers.column_names[1:]:
        found[f"{name}{end}"][places] = answers.column(name).cast("double").fill_null(0.0).to_numpy()
