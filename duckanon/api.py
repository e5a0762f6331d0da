"""The verbs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duckanon.engine.open import open_engine
from duckanon.models.statements import statement_of
from duckanon.plan.plan import Plan
from duckanon.plan.request import PARAMETERS, Request
from duckanon.plan.requirements import Requirements, require_visible
from duckanon.release import pipeline
from duckanon.release.gate import check_models
from duckanon.release.release import Release

if TYPE_CHECKING:
    from duckanon.algorithms.base import Algorithm
    from duckanon.engine.base import Engine
    from duckanon.models.base import CheckResult, Model
    from duckanon.progress import Listener


def anonymize(
    data: object,
    *,
    quasi_identifiers: Sequence[str],
    sensitive: Sequence[str] = (),
    identifiers: Sequence[str] = (),
    insensitive: Sequence[str] = (),
    unlisted: str = "drop",
    entity_key: str | None = None,
    hierarchies: Mapping[str, Any] | None = None,
    k: int | None = None,
    l: int | None = None,  # noqa: E741 - the field's own name
    t: float | None = None,
    models: Sequence[Model | str | Mapping[str, Any]] = (),
    population: object = None,
    algorithm: str | Algorithm | None = None,
    levels: Mapping[str, int] | None = None,
    min_levels: Mapping[str, int] | None = None,
    max_levels: Mapping[str, int] | None = None,
    weights: Mapping[str, float] | None = None,
    iterative: bool = False,
    bounds: str = "grid",
    output: str | Mapping[str, str] = "interval",
    within: Sequence[str] = (),
    suppression_limit: float = 0.0,
    on_unknown: str = "error",
    seed: int | None = None,
    connection: Any = None,
    engine: Engine | None = None,
    progress: Listener | None = None,
    stage: str | Path | None = None,
) -> Release:
    """Return a release of ``data`` that keeps the promise, or raise.

    Parameters
    ----------
    data : str, Path, Source, Arrow object or data frame
        A file or glob (Parquet, CSV, JSON), the name of a table or view of ``connection``, a SELECT statement, an Arrow
        table, reader, dataset or stream, a pandas or polars frame.
    quasi_identifiers : sequence of str
        Columns that could link a row with a person; they are recoded.
    sensitive, insensitive : sequence of str
        Columns that are published as they are.
    identifiers : sequence of str
        Columns that name a person; never published.
    unlisted : {"drop", "error"}
        What becomes of columns that nobody named. They are never published.
    entity_key : str, optional
        The column that tells persons apart: k then counts persons instead of rows. Never published.
    hierarchies : mapping of str to Hierarchy, name, path or rule, optional
        How each quasi-identifier is generalized; where none is given one is made, and the report says so. That of a
        sensitive column is for hierarchical t-closeness.
    k : int, optional
        k-anonymity: the smallest size of an equivalence class.
    l : int, optional
        Distinct l-diversity of every sensitive column.
    t : float, optional
        t-closeness of every sensitive column: ordered distance for numbers, dates and times, equal distance
        for everything else.
    models : sequence of Model, text or mapping
        Further promises, each about one sensitive column or, where it names none, about all of them:
        ``LDiversity(3, "disease")``, ``"l_diversity(l=3, sensitive='disease')"``,
        ``{"model": "l_diversity", "l": 3, "sensitive": "disease"}``.
    population : table, optional
        The people from whom ``data`` were drawn, with the same quasi-identifiers: for k_map and delta_presence.
    algorithm : str or Algorithm, optional
        How the recoding is found: "mondrian", "optimal", "ola", ...; ``duckanon list algorithms`` has all. By default
        "mondrian"; or "datafly" where levels, ``iterative`` or a promise about a population or the whole table ask
        for columns on levels. Of an algorithm that publishes as much detail as a promise about sensitive values allows
        (all that search a lattice for minimal nodes, and "mondrian"), who knows it can ask why no finer classes were
        published; ``duckanon.attack(..., attacks=["minimality"])`` says what that tells.
    levels : mapping of str to int, optional
        Apply this node: the level of each quasi-identifier, 0 for those that are not named. Nothing is searched.
    min_levels, max_levels : mapping of str to int, optional
        The lowest and highest level that may be chosen of a quasi-identifier.
    weights : mapping of str to float, optional
        How much a quasi-identifier counts in the metrics that are averaged over columns; 1 where none is given.
    iterative : bool
        Recode suppressed rows again, at levels of their own, as long as that helps (local recoding). Far fewer rows
        are lost, and a column's values are then published on several levels.
    bounds : {"grid", "cut", "tight"}
        Of an algorithm that divides the rows into regions: where the bounds of published regions come from.

        - "grid": from level 1 of the hierarchies, given or made of round numbers. No bound tells a person's value, and
          groups of numbers, dates and timestamps are published whole, whatever values their rows have. Of other
          columns, and of numbers that all lie within one group of the grid, the lowest label over all rows of a class
          is published, which can be a single value: it tells that no label below it has all of them.
        - "cut": the values on both sides of the cuts between classes. Each is the exact value of a person in the
          table, though not always of one in the class.
        - "tight": the smallest and largest value of each class. Every bound is the exact value of a person. This is
          for research and for comparing with papers, not for release.
    output : str or mapping of str to str
        What is written of a region, for all quasi-identifiers or by quasi-identifier. Kinds that need distances leave
        texts as they are by default.

        - "interval": a text such as "[15, 34]", or a label of the hierarchy. It tells the bounds and nothing else.
        - "bounds": two columns of the original type, ``<name>_lo`` and ``<name>_hi``; "struct": one column with both.
          They tell what "interval" tells. NULL where a bound is open, or where missing values are in the class.
        - "midpoint": a number or date halfway between the bounds; instead of an open one, the smallest or largest value
          of the whole table.
        - "mean": the mean of the class; "geometric_mean": that of numbers above 0. It is a function of the exact values
          of its members: who knows all of them but one can work that one out. Infinite values and NaN are left out of
          it, and of a class that has no others it is NULL.
        - "median": the lower median of the class, in the original type; "mode": its most frequent value, the smallest
          where several are. Each is the exact value of a person. NULL is a value to the mode; the others are NULL where
          missing values are in the class.
        - "medoid": the values of the row that is nearest to the centre of its class, for one column or for all. It is
          the exact row of a person, as far as columns are written so.
        - "lca": the lowest label of the hierarchy that holds the whole region. Classes are made along the hierarchy
          then, of numbers and dates, too.
        - "set": all values of the region that occur in the table, such as "{a, b, c}"; with "tight" bounds those that
          occur in the class. It tells exact values of persons, and which values nobody has.
        - "proportional": a map from the values of the class to their shares of its rows, of numbers, dates and times by
          the first level of their hierarchy; NULL counts as the top label. It tells how many members of a class have
          each value. ``duckanon.utility.AnonymousEncoder`` reads it. Algorithms that put columns on levels have it,
          too, and only it: numbers on level 0 then are counted as they are.
    within : sequence of str
        Quasi-identifiers that are published as they are: rows are only put into one class if they agree in them.
    suppression_limit : float
        The share of rows that may be left out, between 0 and 1.
    on_unknown : {"error", "top"}
        What to do with values that a hierarchy does not know: refuse, or publish them as the top label.
    seed : int, optional
        For tests: fixes the order of the rows, and what an algorithm draws. The release is then marked as not for
        publication: who guesses the seed can undo a permutation.
    connection : duckdb.DuckDBPyConnection, optional
        The database in which table names are looked up; the work happens on a cursor of its own. An open transaction is
        refused, for a cursor does not see its rows. While a result of the connection is read half, DuckDB does not say
        whether there is one: what is committed is read then.
    progress : callable, optional
        Called with a ``duckanon.progress.Event`` while the work goes on.
    stage : path, optional
        A folder for the private file of the release; the one of the later target makes publishing a rename.

    Examples
    --------
    >>> import duckanon, pyarrow as pa
    >>> people = pa.table({"age": [34, 35, 36, 61, 62, 63], "ill": ["a", "b", "a", "c", "a", "b"]})
    >>> release = duckanon.anonymize(people, quasi_identifiers=["age"], sensitive=["ill"], k=3)
    >>> release.rows_published, [c.holds for c in release.checks]
    (6, [True])
    """
    given = locals()
    request = Request(**{name: given[name] for name in PARAMETERS})
    owned = engine is None
    workspace = engine if engine is not None else open_engine(connection, progress)
    try:
        plan = Plan.resolve(request, workspace)
        return pipeline.run(plan, workspace, Path(stage) if stage is not None else None)
    except BaseException:
        if owned:
            workspace.close()
        raise


def check(
    data: object,
    *,
    quasi_identifiers: Sequence[str],
    sensitive: Sequence[str] = (),
    k: int | None = None,
    l: int | None = None,  # noqa: E741 - the field's own name
    t: float | None = None,
    models: Sequence[Model | str | Mapping[str, Any]] = (),
    entity_key: str | None = None,
    hierarchies: Mapping[str, Any] | None = None,
    population: object = None,
    connection: Any = None,
    engine: Engine | None = None,
) -> list[CheckResult]:
    """Say for each model whether a table satisfies it, duckanon's or not.

    Frequencies in the whole table are those of ``data`` itself. ``population`` has the quasi-identifiers written as in
    ``data``, generalized in the same way; ``hierarchies`` are those of sensitive columns.

    Examples
    --------
    >>> import duckanon, pyarrow as pa
    >>> people = pa.table({"age": [1, 1, 2, 2], "ill": ["a", "b", "a", "a"]})
    >>> [r.holds for r in duckanon.check(people, quasi_identifiers=["age"], sensitive=["ill"], k=2, l=2)]
    [True, False]
    """
    from duckanon.assess.assessed_table import of_table

    requirements = Requirements.of(k=k, l=l, t=t, models=models)
    requirements.require_population(population is not None)
    require_visible(requirements.models)
    workspace = engine if engine is not None else open_engine(connection, None)
    try:
        assessed = of_table(
            workspace, data, quasi_identifiers, sensitive, entity_key, hierarchies=hierarchies, population=population
        )
        bound = requirements.bound(assessed.roles, assessed.hierarchies)
        relations = assessed.relations({name for m in bound for name in statement_of(type(m)).reads})
        return list(check_models(workspace, relations, bound, assessed.unit))
    finally:
        if engine is None:
            workspace.close()


__all__ = ["anonymize", "check"]
