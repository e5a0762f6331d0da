"""Write a release to a table of a server: all of it or nothing, and checked as the server stores it.

Everything happens in one transaction. The rows are sent, read back, and checked by the gate before anybody else can see
them. If anything fails, the old table stays as it was.

If the table has the same columns already, its rows are deleted and the new ones inserted. Readers, in any isolation
level, see all old rows or all new ones and never wait; grants, views, indexes and the owner stay. The space of the old
rows is reused by the next run, once PostgreSQL has vacuumed the table.

If the columns differ, the new table is built beside the old one, which is dropped, and takes its name. Grants on the
table are repeated; indexes and grants on single columns are lost, and views of the old table make the run fail. Readers
wait only for the moment of the exchange. A reader with an older snapshot that reads the table for the first time after
the exchange finds no rows, but never some of them.

TRUNCATE is not used: it locks readers out while rows are sent, and older snapshots then see no rows.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.engine.sql.relations import call, col, ident, table, text
from duckanon.errors import ConfigError, DataError, DuckanonError, EngineError, ParameterError, UnsupportedError
from duckanon.io.postgres.names import KnownTables, TableName, require_short, split
from duckanon.io.postgres.rows import table_rows
from duckanon.io.postgres.session import DIALECT, Address, Session, guarded

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.progress import Progress

_MARK = "duckanon release: "
"""The beginning of the comment of a table that a run wrote. Rows of others are never replaced."""


def write_table(
    uri: str | Address,
    table: str,
    reader: pa.RecordBatchReader,
    *,
    replace: bool,
    comment: str,
    verify: Callable[[pa.RecordBatchReader], None],
    progress: Progress | None = None,
) -> int:
    """Write a stream of rows to a table, in one transaction; return how many there are.

    Parameters
    ----------
    uri : str
        ``postgresql://role@host/database``.
    table : str
        ``table`` or ``schema.table``; a part with a dot in it is in double quotes. It is created if missing.
    reader : pyarrow.RecordBatchReader
        The rows.
    replace : bool
        Whether rows that an earlier run wrote there may be replaced. Other rows never are.
    comment : str
        What ``published_comment`` returns: an id or digest of the run. Everybody can read it.
    verify : callable
        Gets the rows as the server stores them, as a stream that it must read to its end. If they do not meet the
        requirements, it raises, and nothing is published.
    progress : Progress, optional
        Gets the number of rows that were sent.
    """
    types = column_types(reader.schema)
    if not isinstance(comment, str) or "\0" in comment:
        raise ParameterError("comment must be a text.")
    with _target(uri, table, replace) as (session, target, exists):
        same = exists and _columns(session, target) == list(types.items())
        work = target if same or not exists else TableName(target.schema, f"duckanon_{secrets.token_hex(8)}")
        if same:
            session.run(exp.Delete(this=target.node()))
        else:
            session.run(_created(work, types))
        rows = _send(session, work, reader, types, progress)
        _read_back(session, work, rows, verify)
        if work != target:
            _exchange(session, work, target)
        words = ("COMMENT ON TABLE", _sql(target.node()), "IS", _sql(text(_MARK + comment)))
        session.run(" ".join(words))
        session.commit()
    return rows


def require_writable(uri: str | Address, table: str, *, replace: bool) -> None:
    """Raise unless a release can be written there and no other run is writing: to be called before a long run."""
    with _target(uri, table, replace):
        pass


def published_comment(uri: str | Address, table: str, *, settled: bool = False) -> str | None:
    """Return the comment that ``write_table`` left; None if there is no such table, or somebody else wrote it.

    With ``settled``, wait for an active writer: the server may still be committing for a client that was killed, and
    the comment then changes. After ten seconds, an EngineError is raised.
    """
    with Session(uri, read_only=True, snapshot=not settled) as session:
        wanted = _resolved(session, table)
        if settled:
            session.rows(exp.select(call("pg_advisory_xact_lock", exp.convert(_lock_key(wanted)))))
        existing = next((t for t in KnownTables.of(session).tables if (t.schema, t.name) == wanted), None)
        return None if existing is None else _comment(session, existing)


def column_types(schema: pa.Schema) -> dict[str, str]:
    """Return PostgreSQL's type for each column; an UnsupportedError names a column that it cannot store."""
    for name in schema.names:
        require_short("column", name)
    if not schema.names:
        raise DataError("There are no columns to write.")
    return {field.name: _type_name(field.name, field.type) for field in schema}


def _type_name(name: str, kind: pa.DataType) -> str:
    import pyarrow.types as pt

    if pt.is_dictionary(kind):
        kind = kind.value_type
    if pt.is_decimal(kind):
        return f"numeric({kind.precision},{kind.scale})"
    if pt.is_list(kind) or pt.is_large_list(kind):
        # A list of decimals would be read back as doubles, a list of lists or structs not at all.
        inner = _type_name(name, kind.value_type)
        if not inner.startswith("numeric") and not inner.endswith("[]"):
            return f"{inner}[]"
    if getattr(kind, "extension_name", None) == "arrow.uuid":
        return "uuid"
    for names, tests in _TYPES.items():
        if any(getattr(pt, test)(kind) for test in tests):
            return names
    if pt.is_timestamp(kind):
        return "timestamp with time zone" if kind.tz else "timestamp without time zone"
    hint = " Use output='bounds' instead of 'struct'." if pt.is_struct(kind) else " Leave it out, or write a file."
    raise UnsupportedError(f"A PostgreSQL table cannot take the column {name!r}, which has a nested or odd type.{hint}")


_TYPES = {
    "boolean": ("is_boolean",),
    "smallint": ("is_int8", "is_uint8", "is_int16"),
    "integer": ("is_uint16", "is_int32"),
    "bigint": ("is_uint32", "is_int64"),
    "numeric(20,0)": ("is_uint64",),
    "real": ("is_float16", "is_float32"),
    "double precision": ("is_float64",),
    "text": ("is_string", "is_large_string", "is_null"),
    "bytea": ("is_binary", "is_large_binary", "is_fixed_size_binary"),
    "date": ("is_date",),
    "time without time zone": ("is_time",),
}


def _sent_as(type_name: str) -> pa.DataType:
    """Return the type that the driver needs for a column: its binary form must be that of PostgreSQL's type."""
    import pyarrow as pa

    if type_name.endswith("[]"):
        return pa.list_(_sent_as(type_name.removesuffix("[]")))
    if type_name.startswith("numeric"):
        precision, scale = type_name[8:-1].split(",")
        return (pa.decimal128 if int(precision) <= 38 else pa.decimal256)(int(precision), int(scale))
    return {
        "boolean": pa.bool_(),
        "smallint": pa.int16(),
        "integer": pa.int32(),
        "bigint": pa.int64(),
        "real": pa.float32(),
        "double precision": pa.float64(),
        "text": pa.string(),
        "bytea": pa.binary(),
        "date": pa.date32(),
        "time without time zone": pa.time64("us"),
        "timestamp without time zone": pa.timestamp("us"),
        "timestamp with time zone": pa.timestamp("us", "UTC"),
    }[type_name]


@contextlib.contextmanager
def _target(uri: str | Address, name: str, replace: bool) -> Iterator[tuple[Session, TableName, bool]]:
    """Open a transaction that locks a table for writing; yield the table, and whether it exists."""
    with Session(uri, read_only=False) as session:
        wanted = _resolved(session, name)
        if session.row(exp.select(call("pg_try_advisory_xact_lock", exp.convert(_lock_key(wanted))))) != (True,):
            raise EngineError(f"Another run is writing {name!r}: try again when it has ended.")
        # Looked up once the lock is held: another run may just have created the table.
        there = next((t for t in KnownTables.of(session).tables if (t.schema, t.name) == wanted), None)
        if there is None:
            yield session, TableName(*wanted), False
            return
        if not replace:
            raise ConfigError(f"The PostgreSQL table {name!r} exists already and may not be replaced.")
        _require_plain(session, there, name)
        # Readers continue; other writers, and changes of columns, wait.
        session.run(" ".join(("LOCK TABLE", _sql(there.node()), "IN SHARE ROW EXCLUSIVE MODE")))
        if _comment(session, there) is None:
            some = exp.select(exp.Literal.number(1)).from_(there.node()).limit(1)
            if session.rows(some):
                raise ConfigError(
                    f"The PostgreSQL table {name!r} holds rows that no run of duckanon wrote: they are not replaced. "
                    "Choose another name, or drop the table."
                )
        yield session, there, True


def _lock_key(wanted: tuple[str, str]) -> int:
    """Return the number of the advisory lock that a writer of a table holds during its transaction."""
    return int.from_bytes(hashlib.sha256("\0".join(("duckanon", *wanted)).encode()).digest()[:8], signed=True)


def _resolved(session: Session, name: str) -> tuple[str, str]:
    """Return schema and name; a name without a schema is in the current schema."""
    if not isinstance(name, str) or not name.strip():
        raise ParameterError("table must be a name, such as 'releases' or 'schema.releases'.")
    parts = split(name)
    if len(parts) > 2:
        raise ParameterError(f"A PostgreSQL table has at most a schema and a name. Got {name!r}.")
    for kind, part in zip(("table", "schema"), reversed(parts), strict=False):
        require_short(kind, part)
    if len(parts) == 1:
        (schema,) = session.row(exp.select(call("current_schema")))
        if schema is None:
            raise DataError(f"No schema of the search path exists: write {name!r} with its schema.")
        return str(schema), parts[0]
    schemas = exp.select(col("nspname")).from_(table("pg_namespace", schema="pg_catalog"))
    if not session.rows(schemas.where(exp.EQ(this=col("nspname"), expression=text(parts[0])))):
        raise DataError(f"PostgreSQL has no schema {parts[0]!r}: create it before the run.")
    return parts[0], parts[1]


def _require_plain(session: Session, existing: TableName, name: str) -> None:
    """Raise for views, and for tables whose rows are changed, hidden or stored elsewhere."""
    if existing.kind != "table":
        raise ConfigError(f"{name!r} is a {existing.kind} of PostgreSQL: a release is written to a plain table.")
    flags = ("relhastriggers", "relhasrules", "relrowsecurity", "relhassubclass", "relispartition")
    query = exp.select(*(col(f) for f in flags)).from_(table("pg_class", schema="pg_catalog"))
    if any(session.row(query.where(_of(existing, "oid")))):
        raise ConfigError(
            f"The PostgreSQL table {name!r} has triggers, foreign keys, rules, row security or partitions: a release "
            "is written to a plain table."
        )


def _of(existing: TableName, column: str) -> exp.Expr:
    """Return a condition: the column is the id of this table."""
    oid = exp.Cast(this=text(_sql(existing.node())), to=exp.DataType.build("regclass", dialect=DIALECT, udt=True))
    return exp.EQ(this=col(column), expression=oid)


def _comment(session: Session, existing: TableName) -> str | None:
    zero = exp.EQ(this=col("objsubid"), expression=exp.Literal.number(0))
    catalog = exp.EQ(
        this=col("classoid"),
        expression=exp.Cast(
            this=text("pg_catalog.pg_class"), to=exp.DataType.build("regclass", dialect=DIALECT, udt=True)
        ),
    )
    query = exp.select(col("description")).from_(table("pg_description", schema="pg_catalog"))
    rows = session.rows(query.where(exp.and_(_of(existing, "objoid"), zero, catalog)))
    comment = str(rows[0][0]) if rows else ""
    return comment.removeprefix(_MARK) if comment.startswith(_MARK) else None


def _columns(session: Session, existing: TableName) -> list[tuple[str, str]]:
    shown = call("format_type", col("atttypid"), col("atttypmod"))
    query = exp.select(col("attname"), shown).from_(table("pg_attribute", schema="pg_catalog"))
    real = exp.GT(this=col("attnum"), expression=exp.Literal.number(0))
    query = query.where(exp.and_(_of(existing, "attrelid"), real, exp.Not(this=col("attisdropped"))))
    return [(str(name), str(kind)) for name, kind in session.rows(query.order_by(col("attnum")))]


def _created(target: TableName, types: dict[str, str]) -> exp.Create:
    columns = [
        exp.ColumnDef(this=ident(name), kind=exp.DataType.build(kind, dialect=DIALECT)) for name, kind in types.items()
    ]
    return exp.Create(this=exp.Schema(this=target.node(), expressions=columns), kind="TABLE")


def _send(
    session: Session, work: TableName, reader: pa.RecordBatchReader, types: dict[str, str], progress: Progress | None
) -> int:
    """Send the rows in binary form, batch by batch; return how many there were."""
    import pyarrow as pa

    schema = pa.schema(
        [(name, reader.schema.field(name).type if kind == "uuid" else _sent_as(kind)) for name, kind in types.items()]
    )
    failures: list[DuckanonError] = []
    sent = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal sent
        for batch in reader:
            try:
                arrays = [_fitting(batch.column(i), schema.field(i)) for i in range(len(schema))]
            except DuckanonError as error:
                failures.append(error)
                raise
            sent += batch.num_rows
            if progress is not None:
                progress.advance(sent)
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    with session.cursor() as cursor:
        stream = pa.RecordBatchReader.from_batches(schema, batches())
        failed: DuckanonError | None = None
        try:
            guarded(lambda: cursor.adbc_ingest(work.name, stream, mode="append", db_schema_name=work.schema))
        except DuckanonError as error:
            failed = failures[0] if failures else error
        if failed is not None:
            raise failed
    return sent


def _fitting(array: Any, field: pa.Field) -> Any:
    import pyarrow as pa

    if array.type == field.type:
        return array
    converted = None
    with contextlib.suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
        converted = array.cast(field.type)
    if converted is None:
        raise DataError(f"The column {field.name!r} has values that PostgreSQL cannot hold without loss.")
    return converted


def _read_back(session: Session, work: TableName, rows: int, verify: Callable[[pa.RecordBatchReader], None]) -> None:
    """Let ``verify`` read all that the server stores."""
    held = 0

    def told(done: int) -> None:
        nonlocal held
        held = done

    with table_rows(session, work).reader(told) as reader:
        verify(reader)
        unread = sum(batch.num_rows for batch in reader)
    if unread:
        raise EngineError("The rows that PostgreSQL holds were not all checked. Nothing was published.")
    if held != rows:
        raise EngineError("PostgreSQL does not hold the rows that were sent. Nothing was published.")


def _exchange(session: Session, work: TableName, target: TableName) -> None:
    """Replace a table by another one with the same grants."""
    grants = _grants(session, target)
    session.run(" ".join(("DROP TABLE", _sql(target.node()))))
    session.run(" ".join(("ALTER TABLE", _sql(work.node()), "RENAME TO", _sql(ident(target.name)))))
    for role, privilege, passed_on in grants:
        to = "PUBLIC" if role is None else _sql(ident(role))
        ending = ("WITH GRANT OPTION",) if passed_on else ()
        session.run(" ".join(("GRANT", privilege, "ON TABLE", _sql(target.node()), "TO", to, *ending)))


def _grants(session: Session, existing: TableName) -> list[tuple[str | None, str, bool]]:
    """Return all grants: the role (None is everybody), the privilege, and whether it can be granted further."""
    listed = exp.Lateral(this=call("aclexplode", col("relacl", "c")), alias=exp.TableAlias(this=ident("a")))
    query = exp.select(col("rolname", "r"), col("privilege_type", "a"), col("is_grantable", "a"))
    query = query.from_(table("pg_class", "c", schema="pg_catalog")).join(listed, join_type="cross")
    on = exp.EQ(this=col("oid", "r"), expression=col("grantee", "a"))
    query = query.join(table("pg_roles", "r", schema="pg_catalog"), on=on, join_type="left")
    condition = _of(existing, "oid")
    condition.set("this", col("oid", "c"))
    return [(r, str(p), bool(g)) for r, p, g in session.rows(query.where(condition))]


def _sql(node: exp.Expr) -> str:
    return node.sql(dialect=DIALECT)
