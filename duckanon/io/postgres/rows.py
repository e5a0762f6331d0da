"""Read rows of a server as a stream of Arrow batches, with types that DuckDB knows.

====================================  ================================================================================
PostgreSQL                            arrives as
====================================  ================================================================================
boolean, integers, real, double,      the same
text, varchar, name, date, time,
timestamp, timestamptz (in UTC),
interval, bytea, uuid
numeric(p, s), p up to 38             DECIMAL(p, s): every digit is kept. The driver sends texts
numeric without p, or p above 38      DOUBLE: no DECIMAL holds them all, and texts would not be numbers. About 15 digits
                                      are kept; cast to ``numeric(p, s)`` in a query to keep more
money                                 DECIMAL(22, 3)
oid                                   BIGINT
char(n)                               text without the blanks that fill it up: PostgreSQL does not compare them either
arrays of these, one dimension        lists (of DOUBLE for numeric)
enumerations, json, inet, ranges,     text as PostgreSQL writes it
composites, extensions' types, ...
====================================  ================================================================================

Refused when they are met: infinite dates and times, NaN in ``numeric(p, s)``, arrays of several dimensions (the driver
would flatten them).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlglot import exp, tokenize
from sqlglot.errors import SqlglotError

from duckanon.engine.sql.relations import call, col, ident, named
from duckanon.errors import DataError, DuckanonError, EngineError
from duckanon.io.postgres.names import KnownTables, TableName
from duckanon.io.postgres.session import DIALECT, Address, Session, guarded, logged

if TYPE_CHECKING:
    import pyarrow as pa

_PLAIN = {
    *("bool", "int2", "int4", "int8", "float4", "float8", "text", "varchar", "name", "char"),
    *("date", "time", "timestamp", "timestamptz", "interval", "bytea", "uuid"),
}
_DIGITS = 38
# The driver counts from 1970 and PostgreSQL from 2000: infinite values wrap around to before all real ones.
_FIRST_DAY = -3_000_000
_FIRST_MICROSECOND = _FIRST_DAY * 86_400_000_000
_GUARD = "duckanon dimensions"
_QUERY = "source"


@dataclass(frozen=True)
class Asked:
    """How a column is queried, and what it becomes.

    ``dimensions`` is set for an array, whose number of dimensions must be checked.
    """

    name: str
    expression: exp.Expr
    type: pa.DataType
    dimensions: bool = False


class Rows:
    """The rows of a table or query, not yet read: ``names`` and ``schema`` are known."""

    def __init__(self, session: Session, relation: str, table: TableName | None) -> None:
        self.table = table
        self._session = session
        self._relation = relation
        self._fields = list(session.schema(relation))
        self.names = [f.name for f in self._fields]
        if not self.names:
            raise DataError("The PostgreSQL source has no columns.")

    @property
    def schema(self) -> pa.Schema:
        """The names and types of the columns as they will arrive."""
        import pyarrow as pa

        return pa.schema([(a.name, a.type) for a in self._asked()])

    @contextlib.contextmanager
    def reader(self, fetched: Callable[[int], None] | None = None) -> Iterator[pa.RecordBatchReader]:
        """Return the rows as a stream; an error that stops it is raised again when the context ends.

        ``fetched`` is called with the number of rows that have arrived.
        """
        import pyarrow as pa

        asked = self._asked()
        guards = [named(_several(a.expression), f"{_GUARD} {i}") for i, a in enumerate(asked) if a.dimensions]
        chosen = [named(a.expression, a.name) for a in asked] + guards
        words = exp.select(*chosen).sql(dialect=DIALECT)
        sql = logged(" ".join((words, "FROM (", self._relation, ") AS", ident(_QUERY).sql(dialect=DIALECT))))
        failures: list[DuckanonError] = []
        with self._session.cursor() as cursor:
            guarded(lambda: cursor.execute(sql))
            sent = guarded(cursor.fetch_record_batch)
            batches = self._batches(sent, asked, fetched, failures)
            try:
                yield pa.RecordBatchReader.from_batches(self.schema, batches)
            except (DuckanonError, pa.ArrowException, OSError):
                if not failures:
                    raise
            finally:
                batches.close()
        if failures:
            raise failures[0]

    def _batches(
        self, sent: Any, asked: list[Asked], fetched: Callable[[int], None] | None, failures: list[DuckanonError]
    ) -> Generator[pa.RecordBatch, None, None]:
        import pyarrow as pa

        done = 0
        while True:
            failure: DuckanonError | None = None
            try:
                batch = sent.read_next_batch()
            except StopIteration:
                return
            except (pa.ArrowException, OSError):
                failure = self._session.broken()
            if failure is None:
                try:
                    batch = _converted(batch, asked)
                except DuckanonError as error:
                    failure = error
            if failure is not None:
                failures.append(failure)
                raise failure
            done += batch.num_rows
            if fetched is not None:
                fetched(done)
            yield batch

    def _asked(self) -> list[Asked]:
        return [_asked_for(field) for field in self._fields]


@contextlib.contextmanager
def open_rows(uri: str | Address, *, table: str | None = None, query: str | None = None) -> Iterator[Rows]:
    """Open a table, view or query for reading, within one read-only transaction that sees one state of the data."""
    with Session(uri, read_only=True) as session:
        if query is not None:
            # In a subquery, PostgreSQL allows nothing but a SELECT; the new line ends a comment.
            yield Rows(session, _wrapped(_one_statement(query)), None)
        else:
            existing = KnownTables.of(session).require(str(table))
            yield Rows(session, exp.select("*").from_(existing.node()).sql(dialect=DIALECT), existing)


def table_rows(session: Session, table: TableName) -> Rows:
    """Return the rows of a table as a running transaction sees them."""
    return Rows(session, exp.select("*").from_(table.node()).sql(dialect=DIALECT), table)


def _wrapped(query: str) -> str:
    return " ".join(("SELECT * FROM (", query, "\n) AS", ident(_QUERY).sql(dialect=DIALECT)))


def _one_statement(query: str) -> str:
    """Return a query without the semicolon at its end; more than one statement is refused."""
    try:
        tokens = tokenize(query, dialect=DIALECT)
    except SqlglotError:
        return query  # the server says what is wrong with it
    ends = [t for t in tokens if t.token_type.name == "SEMICOLON"]
    spoken = [t for t in tokens if t.token_type.name != "SEMICOLON"]
    if not spoken or (ends and ends[0].start < spoken[-1].start):
        raise DataError("The query must be one SELECT statement.")
    return query[: ends[0].start] if ends else query


def _asked_for(field: pa.Field) -> Asked:
    import pyarrow as pa

    metadata = field.metadata or {}
    if b"POSTGRESQL:type" not in metadata:
        raise EngineError("The PostgreSQL driver is too old: pip install --upgrade 'duckanon[postgres]'.")
    kind = metadata[b"POSTGRESQL:type"].decode()
    plain = col(field.name, _QUERY)
    if kind == "numeric":
        digits = _digits(int(metadata.get(b"POSTGRESQL:typmod", b"-1")))
        if digits is None:
            return Asked(field.name, _cast(plain, "double precision"), pa.float64())
        return Asked(field.name, _cast(plain, "text"), pa.decimal128(*digits))
    if kind == "money":
        return Asked(field.name, _cast(_cast(plain, "numeric(22, 3)"), "text"), pa.decimal128(22, 3))
    if kind == "oid":
        return Asked(field.name, _cast(plain, "bigint"), pa.int64())
    if pa.types.is_list(field.type):
        base = kind.removeprefix("_")
        if base == "numeric":
            return Asked(field.name, _cast(plain, "double precision[]"), pa.list_(pa.float64()), dimensions=True)
        if base in _PLAIN:
            return Asked(field.name, plain, pa.list_(field.type.value_type), dimensions=True)
        return Asked(field.name, _cast(plain, "text[]"), pa.list_(pa.string()), dimensions=True)
    if kind in _PLAIN:
        return Asked(field.name, plain, field.type)
    return Asked(field.name, _cast(plain, "text"), pa.string())


def _digits(modifier: int) -> tuple[int, int] | None:
    """Return precision and scale of a DECIMAL that holds a numeric with this type modifier; None if there is none.

    Examples
    --------
    >>> _digits(655366), _digits(-1), _digits(198658), _digits(131081)
    ((10, 2), None, (5, 0), (5, 5))
    """
    if modifier < 4:
        return None
    precision, scale = (modifier - 4) >> 16, (modifier - 4) & 0x7FF
    if scale >= 1024:  # below zero: numeric(3, -2) has 3 digits before two zeros
        scale -= 2048
    precision, scale = max(precision - min(scale, 0), scale), max(scale, 0)
    return (precision, scale) if precision <= _DIGITS else None


def _cast(value: exp.Expr, type_name: str) -> exp.Expr:
    return exp.Cast(this=value, to=exp.DataType.build(type_name, dialect=DIALECT))


def _several(value: exp.Expr) -> exp.Expr:
    counted = call("array_ndims", value.copy())
    return exp.GT(this=counted, expression=exp.Literal.number(1))


def _converted(batch: pa.RecordBatch, asked: list[Asked]) -> pa.RecordBatch:
    import pyarrow as pa
    import pyarrow.compute as pc

    for position in range(len(asked), batch.num_columns):
        if pc.any(batch.column(position)).as_py():
            guarded_ones = [a.name for a in asked if a.dimensions]
            name = guarded_ones[position - len(asked)]
            raise DataError(f"The column {name!r} has arrays of several dimensions, which cannot be read as lists.")
    arrays = [_finite(batch.column(i), a) for i, a in enumerate(asked)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([(a.name, a.type) for a in asked]))


def _finite(array: Any, asked: Asked) -> Any:
    """Return a column in its type; values that only PostgreSQL has are refused."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_decimal(asked.type):
        converted = None
        with contextlib.suppress(pa.ArrowInvalid):
            converted = array.cast(asked.type)
        if converted is None:
            raise DataError(
                f"The column {asked.name!r} holds NaN, which no DECIMAL does: leave it out, or cast the column to "
                "double precision in a query."
            )
        return converted
    values = pc.list_flatten(array) if pa.types.is_list(asked.type) else array
    for is_kind, whole, first in (
        (pa.types.is_date32, pa.int32(), _FIRST_DAY),
        (pa.types.is_timestamp, pa.int64(), _FIRST_MICROSECOND),
    ):
        if is_kind(values.type):
            lowest = pc.min(values.view(whole)).as_py()
            if lowest is not None and lowest < first:
                raise DataError(
                    f"The column {asked.name!r} holds infinite dates or times, or some beyond the year 294246: leave "
                    "them out, or put NULL for them in a query."
                )
    return array
