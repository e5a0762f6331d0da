"""The class size and risk of every row, for the owner of the data: never in a release."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.assess.assessed_table import published_columns
from duckanon.encoding.counting import persons
from duckanon.encoding.dictionaries import canonical
from duckanon.engine.base import open_engine
from duckanon.engine.sql.relations import cast, col, conjunction, ident, named, number, qualified, same, subquery, table
from duckanon.errors import DataError, RoleError
from duckanon.io.source import Source
from duckanon.plan.roles import Roles
from duckanon.release.release import Release

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.engine.base import Engine

SIZE, RISK = "_ec_size", "_risk"
_ROWS = "duckanon_rows"


def with_risk(
    data: object,
    *,
    quasi_identifiers: Sequence[str] | None = None,
    entity_key: str | None = None,
    connection: Any = None,
) -> pa.RecordBatchReader:
    """Return the rows of a table with the size of their class and their risk, as a stream.

    Parameters
    ----------
    data : str, Path, Source, Arrow object, data frame or Release
    quasi_identifiers : sequence of str
        A release knows its own.
    entity_key : str, optional
        The column that identifies persons: the size then counts persons.
    connection : duckdb.DuckDBPyConnection, optional

    Returns
    -------
    pyarrow.RecordBatchReader
        All columns, then ``_ec_size`` (BIGINT) and ``_risk`` (DOUBLE, 1 / size); an underscore more where the table has
        a column of that name. Rows come in no order. Read it to its end, or close it.

    Notes
    -----
    The two columns show who is at risk: they are for the owner of the data and must not be published.
    For a release the sizes count published rows, also where its requirements count persons.

    References
    ----------
    K. El Emam and F. Dankar, Protecting privacy using k-anonymity, 2008.

    Examples
    --------
    >>> import duckanon, pyarrow as pa
    >>> people = pa.table({"age": [30, 30, 40], "name": ["a", "b", "c"]})
    >>> rows = duckanon.with_risk(people, quasi_identifiers=["age"]).read_all().sort_by("name").to_pylist()
    >>> [(row["name"], row["_ec_size"], row["_risk"]) for row in rows]
    [('a', 2, 0.5), ('b', 2, 0.5), ('c', 1, 1.0)]
    """
    if isinstance(data, Release):
        columns = data.recoding.columns if quasi_identifiers is None else published_columns(data, quasi_identifiers)
        names = [a.name for a in Roles.resolve(data.columns, quasi_identifiers=columns, nested=True).quasi_identifiers]
        rows = Rows(data.query(), [c.name for c in data.columns], [col(name) for name in names])
        return data.engine.reader(rows.with_risk())
    engine = open_engine(connection)
    try:
        stream = engine.reader(rows_of(engine, data, quasi_identifiers, entity_key).with_risk(), private=True)
    except BaseException:
        engine.close()
        raise
    import pyarrow as pa

    def batches() -> Iterator[pa.RecordBatch]:
        failed = False
        try:
            yield from stream
        except Exception:
            # Raised below, so that the original, which may quote data, is not even left as its context.
            failed = True
        finally:
            engine.close()
        if failed:
            raise DataError("DuckDB could not read all rows (its message is withheld: it may quote data).")

    return pa.RecordBatchReader.from_batches(stream.schema, batches())


@dataclass(frozen=True)
class Rows:
    """Rows with their keys as they are counted, and the key of persons."""

    query: exp.Query
    names: Sequence[str]
    keys: Sequence[exp.Expr]
    entity: exp.Expr | None = None
    once: bool = False
    """Whether to read the rows once only, because they may be others the second time."""

    def with_risk(self) -> exp.Select:
        """Return the query of the rows with the two columns."""
        rows = exp.select("*").from_(table(_ROWS)) if self.once else self.query
        aliases = [f"q_{j}" for j in range(len(self.keys))]
        members: exp.Expr = exp.Count(this=exp.Star())
        if self.entity is not None:
            distinct, nobody = persons(self.entity.copy())
            members = exp.Add(this=distinct, expression=nobody)
        sizes = (
            exp.select(*(named(k.copy(), a) for k, a in zip(self.keys, aliases, strict=True)), named(members, "n"))
            .from_(subquery(rows.copy(), "s"))
            .group_by(*(k.copy() for k in self.keys))
        )
        on = [same(qualified(k, "s"), col(a, "c")) for k, a in zip(self.keys, aliases, strict=True)]
        risk = exp.Div(this=cast(number(1), "DOUBLE"), expression=col("n", "c"))
        taken = {name.lower() for name in self.names}
        query = (
            exp.select(
                exp.Column(this=exp.Star(), table=ident("s")),
                named(cast(col("n", "c"), "BIGINT"), _free(SIZE, taken)),
                named(risk, _free(RISK, taken)),
            )
            .from_(subquery(rows.copy(), "s"))
            .join(subquery(sizes, "c"), on=conjunction(on))
        )
        return query.with_(_ROWS, as_=self.query, materialized=True) if self.once else query


def rows_of(
    engine: Engine,
    data: object,
    quasi_identifiers: Sequence[str] | None,
    entity_key: str | None,
    *,
    elsewhere: bool = False,
) -> Rows:
    """Return the rows of a table; ``elsewhere`` if the query is to be run in another session."""
    if quasi_identifiers is None:
        raise RoleError("Name the quasi-identifiers: only a release of duckanon knows its own.")
    relation = Source.of(data).open(engine, read=not elsewhere)
    roles = Roles.resolve(relation.columns, quasi_identifiers=quasi_identifiers, entity_key=entity_key)

    def counted(name: str) -> exp.Expr:
        return canonical(col(name), relation.type_of(name), relation.collated)

    query, once = relation.outside if elsewhere else relation.query, elsewhere and relation.kind == "query"
    keys = [counted(a.name) for a in roles.quasi_identifiers]
    entity = counted(roles.entity_key) if roles.entity_key is not None else None
    return Rows(query, relation.names, keys, entity, once)


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


__all__ = ["Rows", "rows_of", "with_risk"]
