"""Property vectors as columns beside the rows of the original: for the owner, never in a published file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.assess.comparison.properties.base import resolve
from duckanon.assess.comparison.rows import Rows
from duckanon.engine.base import open_engine
from duckanon.engine.sql.relations import table
from duckanon.errors import ParameterError
from duckanon.release.release import Release

if TYPE_CHECKING:
    import pyarrow as pa

DEFAULT = ("class_size", "reidentification_risk", "iyengar_utility", "loss")


def vectors(release: Release, properties: Sequence[str] = DEFAULT, *, row_id: str | None = None) -> pa.Table:
    """Return property vectors of a release: a line for each row of the source, suppressed ones included.

    Parameters
    ----------
    release : Release
    properties : sequence of str
        Names of properties; ``list(duckanon.comparison.properties)`` lists them. Those of sensitive columns give one
        vector for each, called ``sensitive_count_<column>``; that name selects a single one.
    row_id : str, optional
        A column of the source with another value in every row. Without it rows are numbered 0, 1, 2, ... as the source
        lists them: the insertion order of a table, the order of files and of the rows in them.

    Returns
    -------
    pyarrow.Table
        ``row_id`` and a column for each property, in the property's own direction (``risk`` and ``loss``: lower is
        better), ordered by ``row_id``.

    References
    ----------
    R. Dewri, I. Ray, I. Ray and D. Whitley, On the comparison of microdata disclosure control algorithms, 2009.

    Examples
    --------
    >>> import duckanon, pyarrow as pa
    >>> people = pa.table({"age": [61, 34, 35, 62, 36, 90], "ill": ["a", "b", "b", "c", "d", "d"]})
    >>> with duckanon.anonymize(
    ...     people, algorithm="datafly", quasi_identifiers=["age"], sensitive=["ill"], k=2, suppression_limit=0.2
    ... ) as release:
    ...     found = vectors(release, ["class_size", "sensitive_count"])
    >>> found.column("class_size").to_pylist()
    [2.0, 3.0, 3.0, 2.0, 3.0, 1.0]
    >>> found.column("sensitive_count_ill").to_pylist()
    [1.0, 2.0, 2.0, 1.0, 1.0, 1.0]
    """
    import pyarrow as pa

    if not isinstance(release, Release):
        raise ParameterError(f"vectors takes a release. Got a {type(release).__name__}.")
    chosen = resolve(properties, [release])
    rows = Rows.of(release, row_id)
    columns = {p.label: pa.array(p.vector(rows)) for p in chosen}
    return pa.table({"row_id": rows.keys(), **columns})


def write_properties(
    release: Release,
    name: str,
    properties: Sequence[str] = DEFAULT,
    *,
    connection: Any,
    row_id: str | None = None,
    replace: bool = False,
) -> int:
    """Write property vectors into a table of the owner's database, to be joined with the rows there.

    Parameters
    ----------
    release : Release
    name : str
        The table that is made; one that exists is an error unless ``replace`` is true.
    properties, row_id
        As for ``vectors``.
    connection : duckdb.DuckDBPyConnection
        A database of the owner. The table shows which rows of the source are in small classes: never publish it.
    replace : bool

    Returns
    -------
    int
        The number of rows written.

    Examples
    --------
    >>> import duckanon, duckdb
    >>> database = duckdb.connect()
    >>> made = database.execute("CREATE TABLE people AS SELECT range AS id, 30 + range % 3 AS age FROM range(6)")
    >>> release = duckanon.anonymize("people", quasi_identifiers=["age"], k=2, connection=database)
    >>> write_properties(release, "sizes", ["class_size"], connection=database, row_id="id")
    6
    >>> database.sql("SELECT min(class_size) FROM people JOIN sizes ON id = row_id").fetchall()
    [(2.0,)]
    >>> release.close()
    """
    if connection is None:
        raise ParameterError("Property vectors are written into a database of the owner: give its connection.")
    table_of_vectors = vectors(release, properties, row_id=row_id)
    engine = open_engine(connection)
    try:
        if not replace and engine.catalog.find(name) is not None:
            raise ParameterError(f"There is a table {name!r} already: give another name, or replace=True.")
        registered = engine.fresh("vectors")
        engine.register(registered, table_of_vectors)
        content = exp.select("*").from_(table(registered))
        engine.run(exp.Create(this=engine.catalog.place(name), kind="TABLE", replace=True, expression=content))
    finally:
        engine.close()
    return int(table_of_vectors.num_rows)


__all__ = ["vectors", "write_properties"]
