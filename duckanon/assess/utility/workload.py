"""Random range queries: what they count on the original, and what a release lets one guess."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlglot import exp

from duckanon.assess.published_cells import understood
from duckanon.assess.subject import of_table
from duckanon.assess.utility.asking import Asked, Drawn, draw
from duckanon.assess.utility.released import hierarchies_of, released_table
from duckanon.engine.open import workspace
from duckanon.engine.sql.relations import col, qualified
from duckanon.errors import DataError, ParameterError, RoleError
from duckanon.io.source import Source
from duckanon.recoding.relations.column_domain import size
from duckanon.release.release import Release

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from duckanon.assess.subject import Subject

    Floats = NDArray[np.float64]

COUNT, AVERAGE = "count", "average"
_QUANTILES = {"q25": 0.25, "median": 0.5, "q75": 0.75, "q90": 0.9}


@dataclass(frozen=True)
class Workload:
    """Answers of queries.

    Attributes
    ----------
    rows : pyarrow.Table
        A line for each query and kind ("count", "average"): ``query``, ``kind``, ``columns`` that it asks about,
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
            own = errors[(kinds == kind) & ~np.isnan(errors)]
            if len(own):
                figures = {name: float(np.quantile(own, q)) for name, q in _QUANTILES.items()}
                lines.append({"kind": kind, "queries": len(own), "mean": float(own.mean()), **figures})
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
    """Ask random range queries of the original and of the release, and return how far the answers are apart.

    Parameters
    ----------
    original : str, Path, Source, Arrow object or data frame
        The table that was anonymized.
    release : Release, or anything that ``original`` may be
    columns : sequence of str, optional
        What queries ask about. The quasi-identifiers of a ``Release`` by default.
    n : int
        How many queries are asked.
    dimensions : int
        How many columns a query asks about; fewer where there are fewer.
    selectivity : float
        The share of the values' combinations that a query asks for.
    average : str, optional
        A column of numbers, published as it is: queries for its mean are asked, too.
    hierarchies : mapping, optional
        How columns were generalized; a ``Release`` knows its own.
    sanity : float
        Errors of queries that find fewer rows than this share of all are relative to that share.
    seed : int
        The same table and seed ask the same queries.
    connection : duckdb.DuckDBPyConnection, optional

    Notes
    -----
    A query is ``SELECT count(*) WHERE a BETWEEN .. AND .. AND b IN (..)``: columns are drawn, and of each a range of
    neighbouring values (of numbers, dates and times) or a set of values (of all else). A released row counts by the
    share of its region that a query asks for, all values of the original that a cell can stand for being equally
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
    names, data, known = _released(release, columns, hierarchies)
    with workspace(connection) as engine:
        released = of_table(engine, data, names)
        source = of_table(engine, original, list(released.quasi))
        rows = source.rows()
        if not rows:
            raise DataError("The original has no rows: there is nothing to ask.")
        measure = _measures(source, released, average)
        described = understood(source, released, known)
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
            raise RoleError("Name the columns that queries ask about: only a release of duckanon knows its own.")
        return list(columns), release, None if hierarchies is None else dict(hierarchies)
    plan = release.plan
    names = [a.name for a in plan.roles.quasi_identifiers] if columns is None else list(columns)
    own = {**hierarchies_of(release), **(hierarchies or {})}
    wanted = {name.lower() for name in names}
    known = {name: h for name, h in own.items() if name.lower() in wanted}
    plain = all(kind not in ("bounds", "struct") for kind in plan.output.values())
    return names, Source.file(release.path) if plain else released_table(release), known


def _measures(source: Subject, released: Subject, average: str | None) -> tuple[exp.Expr, exp.Expr] | None:
    """Return the averaged column as a number, of the original and of the release."""
    if average is None:
        return None
    found = []
    for subject in (source, released):
        name = next((t for t in subject.types if t.lower() == average.lower()), None)
        if name is None:
            raise RoleError(f"There is no column {average!r} to be averaged.")
        value = size(col(name), subject.types[name])
        if value is None:
            raise ParameterError(f"The column {average!r} has no numbers to be averaged.")
        found.append(qualified(value, "s"))
    return found[0], found[1]


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
            known = answers[f"known{end}"]
            means.append(np.divide(answers[f"total{end}"], known, out=np.full(len(known), np.nan), where=known > 0))
        unanswered = int((np.isnan(means[0]) | np.isnan(means[1])).sum())
        part(AVERAGE, means[0], means[1], max(sanity * scale, np.finfo(float).tiny))
    return Workload(pa.concat_tables(parts), rows, selectivity, sanity, seed, unanswered)


__all__ = ["Workload", "queries"]
