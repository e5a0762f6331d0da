"""The verbs: anonymize a table, and check one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duckanon.engine.base import open_engine
from duckanon.models.base import statement_of
from duckanon.plan.plan import Plan, Requirements, require_visible
from duckanon.plan.request import PARAMETERS, Request
from duckanon.progress import watched
from duckanon.release import pipeline
from duckanon.release.gate import check_models
from duckanon.release.release import Release
from duckanon.release.results import Checks

if TYPE_CHECKING:
    from duckanon.algorithms.base import Algorithm
    from duckanon.engine.base import Engine
    from duckanon.models.base import Model
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
    hierarchies: Mapping[str, Any] | str | None = None,
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
    """Anonymize a table: return a verified release, or raise.

    Parameters
    ----------
    data : str, Path, Source, Arrow object or data frame
        A file or glob (Parquet, CSV, JSON), the name of a table or view of ``connection``, a SELECT statement, an Arrow
        table, reader, dataset or stream, a pandas or polars frame.
    quasi_identifiers : sequence of str
        Columns that could link a row to a person. They are generalized.
    sensitive, insensitive : sequence of str
        Columns that are published as they are; models are about the sensitive ones.
    identifiers : sequence of str
        Columns that name a person. Never published.
    unlisted : {"drop", "error"}
        Whether columns without a role are left out or are an error. They are never published.
    entity_key : str, optional
        The column that identifies persons: k then counts persons instead of rows. Never published.
    hierarchies : mapping of str to Hierarchy, name, path or rule, or "auto", optional
        How each quasi-identifier is generalized. For those without one, a hierarchy is made, and the report says so,
        and which ready-made one would fit. "auto", for all columns or as the hierarchy of one, takes the ready-made one
        that fits the column's name and values; values that it lacks are published as ``*``.
        The hierarchy of a sensitive column is for hierarchical t-closeness.
    k : int, optional
        k-anonymity: the smallest size of an equivalence class.
    l : int, optional
        Distinct l-diversity of every sensitive column.
    t : float, optional
        t-closeness of every sensitive column: ordered distance for numbers, dates and times, equal distance
        for everything else.
    models : sequence of Model, text or mapping
        Further privacy models, each for one sensitive column or, if it names none, for all of them:
        ``LDiversity(3, "disease")``, ``"l_diversity(l=3, sensitive='disease')"``,
        ``{"model": "l_diversity", "l": 3, "sensitive": "disease"}``.
    population : table, optional
        The people from whom ``data`` were drawn, with the same quasi-identifiers. For k_map and delta_presence.
    algorithm : str or Algorithm, optional
        How the recoding is found: "mondrian", "optimal", "ola", ...; ``duckanon list algorithms`` shows all. By default
        "mondrian", or "datafly" if levels, ``iterative``, or a model about a population or the whole table need columns
        on levels. Some algorithms (those that search a lattice for minimal nodes, and "mondrian") publish as much
        detail as a model of sensitive values allows. An adversary who knows the algorithm can ask why no finer classes
        were published; ``duckanon.attack(..., attacks=["minimality"])`` measures what that reveals.
    levels : mapping of str to int, optional
        Apply this node without a search: the level of each quasi-identifier, 0 for those that are not named.
    min_levels, max_levels : mapping of str to int, optional
        The lowest and highest level that may be chosen of a quasi-identifier.
    weights : mapping of str to float, optional
        How much a quasi-identifier counts in metrics that are averaged over columns. By default 1.
    iterative : bool
        Recode suppressed rows again, at levels of their own, as long as that helps (local recoding). Far fewer rows
        are lost, but the values of a column are then published on several levels.
    bounds : {"grid", "cut", "tight"}
        Where the bounds of published regions come from, for algorithms that partition the rows.

        - "grid": from level 1 of the hierarchies, which are given or made of round numbers. No bound reveals a person's
          value: groups of numbers, dates and timestamps are published whole, whatever values their rows have. Of other
          columns, and of numbers that all lie within one group of the grid, the lowest label over all rows of a class
          is published. It can be a single value, and it reveals that no label below it covers all rows of the class.
        - "cut": the values on both sides of the cuts between classes. Each is the exact value of a person in the
          table, though not always of one in the class.
        - "tight": the smallest and largest value of each class. Every bound is the exact value of a person. This is
          for research and for comparison with papers, not for publication.
    output : str or mapping of str to str
        What is written of a region, for all quasi-identifiers or for each. If one kind is given for all, columns
        without distances, such as texts, keep "interval" where the kind needs distances.

        - "interval": a text such as "[15, 34]", or a label of the hierarchy. It reveals the bounds and nothing else.
        - "bounds": two columns of the original type, ``<name>_lo`` and ``<name>_hi``; "struct": one column with both.
          They reveal what "interval" reveals. NULL if a bound is open, or if the class has missing values.
        - "midpoint": a number or date halfway between the bounds. An open bound is replaced by the smallest or largest
          value of the whole table.
        - "mean": the mean of the class; "geometric_mean": that of numbers above 0. Somebody who knows the values of all
          members but one can compute that one. Infinite values and NaN are left out; without others it is NULL.
        - "median": the lower median of the class, in its original type; "mode": the most frequent value, the smallest
          of several. Each is the exact value of a person. The mode can be NULL; the others are NULL if the class has
          missing values.
        - "medoid": the values of the row nearest to the centre of its class, for one column or for all. For all, it is
          the exact row of a person.
        - "lca": the lowest common ancestor in the hierarchy of all values of the region. Numbers and dates are then cut
          along their hierarchy, too.
        - "set": all values of the region that occur in the table, such as "{a, b, c}"; with "tight" bounds those that
          occur in the class. It reveals exact values of persons, and which values do not occur.
        - "proportional": a map from the values of the class to their shares of its rows. Numbers, dates and times are
          counted by the first level of their hierarchy, NULL as the top label. It reveals how many members of a class
          have each value. ``duckanon.utility.AnonymousEncoder`` reads it. It is the only kind for algorithms that put
          columns on levels; numbers on level 0 are then counted as they are.
    within : sequence of str
        Quasi-identifiers that are published as they are: all rows of a class have the same values in them.
    suppression_limit : float
        The share of rows that may be left out, between 0 and 1.
    on_unknown : {"error", "top"}
        What to do with values that a hierarchy lacks: raise, or publish them as the top label.
    seed : int, optional
        For tests: fixes the order of the rows and the random numbers of the algorithm. The release is then marked as
        not for publication: somebody who guesses the seed can undo a permutation.
    connection : duckdb.DuckDBPyConnection, optional
        The database in which table names are looked up. The work is done on a separate cursor. An open transaction is
        refused, because a cursor does not see its rows. While a result of the connection is only partly fetched,
        DuckDB does not say whether a transaction is open: then only committed rows are read.
    progress : callable, optional
        Called with a ``duckanon.progress.Event`` during the work. In a notebook, without one, a bar is drawn below the
        cell; ``progress=lambda event: None`` draws none.
    stage : path, optional
        A folder for the private file of the release. In the folder of the target, publishing is a rename.

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
    with watched(None if engine is not None else progress) as listener:
        workspace = engine if engine is not None else open_engine(connection, listener)
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
    quasi_identifiers: Sequence[str] | None = None,
    sensitive: Sequence[str] = (),
    entity_key: str | None = None,
    hierarchies: Mapping[str, Any] | None = None,
    population: object = None,
    k: int | None = None,
    l: int | None = None,  # noqa: E741 - the field's own name
    t: float | None = None,
    models: Sequence[Model | str | Mapping[str, Any]] = (),
    connection: Any = None,
) -> Checks:
    """Check for each model whether a table satisfies it. The table need not be made by duckanon.

    A release of duckanon knows its own quasi-identifiers. The result is true if all models hold; ``violated`` has those
    that do not.

    Models that compare with the whole table compare with ``data`` itself. ``population`` must have its
    quasi-identifiers generalized as in ``data``; ``hierarchies`` are those of sensitive columns.

    Examples
    --------
    >>> import duckanon, pyarrow as pa
    >>> people = pa.table({"age": [1, 1, 2, 2], "ill": ["a", "b", "a", "a"]})
    >>> checks = duckanon.check(people, quasi_identifiers=["age"], sensitive=["ill"], k=2, l=2)
    >>> bool(checks), [c.holds for c in checks], [c.model for c in checks.violated]
    (False, [True, False], ['l_diversity'])
    """
    from duckanon.assess.assessed_table import assessed

    requirements = Requirements.of(k=k, l=l, t=t, models=models)
    requirements.require_population(population is not None)
    require_visible(requirements.models)
    with assessed(
        data,
        quasi_identifiers=quasi_identifiers,
        sensitive=sensitive,
        entity_key=entity_key,
        hierarchies=hierarchies,
        population=population,
        connection=connection,
    ) as subject:
        bound = requirements.bound(subject.roles, subject.hierarchies)
        relations = subject.relations({name for m in bound for name in statement_of(type(m)).reads}, shared=True)
        checks = Checks(check_models(subject.engine, relations, bound, subject.unit))
        subject.drop(relations)
        return checks


__all__ = ["anonymize", "check"]
