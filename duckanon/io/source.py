"""Where the rows come from: files, tables, queries, databases, Arrow, data frames. Nothing is copied row by row."""

from __future__ import annotations

import re
import secrets
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from glob import escape, glob, has_magic, iglob
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.engine.process import is_remote, may_touch
from duckanon.engine.sql.relations import DIALECT, Column, call, scan, table, text
from duckanon.errors import AccessError, DataError, EngineError, ParameterError, ResourceError, did_you_mean
from duckanon.io.arrow_rows import arrow_of_pandas, arrow_of_polars, require_readable, with_readable_columns
from duckanon.io.file_rows import LONG_LINES, UnlikeFilesError, csv_rows, json_rows, parquet_rows
from duckanon.io.paths import is_file, is_folder, is_there, require_listable, require_regular, require_touchable

if TYPE_CHECKING:
    from duckanon.engine.base import Engine

_READERS = {
    ".parquet": "read_parquet",
    ".pq": "read_parquet",
    ".csv": "read_csv",
    ".tsv": "read_csv",
    ".json": "read_json",
    ".jsonl": "read_json",
    ".ndjson": "read_json",
}
_DATABASES = {".duckdb", ".ddb", ".db"}
_OTHER_TABLES = re.compile(r"DuckDB: (Catalog|Binder) Error")
_QUERY = re.compile(r"^\s*(\(|--|/\*|(select|from|with|values|table|pivot|unpivot|summarize|describe|show)\b)", re.I)


@dataclass(frozen=True)
class Relation:
    """An opened source: a query over it, its columns, and how to name it in another session."""

    query: exp.Query
    columns: tuple[Column, ...]
    kind: str
    name: str
    collated: bool = False
    """Whether a column may carry a collation, which would merge values that are published as different bytes."""
    portable: exp.Query | None = None
    """The query as its owner would write it, if ``query`` reads a private table."""
    files: tuple[str, ...] = ()
    """The paths and patterns of the files that are read."""
    statement: str | None = None
    """The caller's statement, if ``query`` reads a private table of its rows."""

    @property
    def names(self) -> list[str]:
        """The column names in their order."""
        return [c.name for c in self.columns]

    @property
    def outside(self) -> exp.Query:
        """The query in a session of the caller's own."""
        if self.kind == "query" and self.statement is not None:
            return exp.select("*").from_(exp.Table(this=call("query", text(self.statement))))
        return self.portable or self.query

    def type_of(self, name: str) -> str:
        """Return the database's name of a column's type."""
        return next(c.type for c in self.columns if c.name == name)


@dataclass(frozen=True)
class Source:
    """A description of where rows come from; ``open`` makes it readable in an engine.

    Made by ``Source.of``, or by ``file``, ``table``, ``query``, ``database``, ``postgres`` and ``arrow`` if
    ``of`` should not guess.
    """

    kind: str
    name: str
    target: Any = field(repr=False, default=None)
    options: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def of(cls, data: object) -> Source:
        """Return the source that ``data`` means; a string is a table, a query or a path, decided when it is opened."""
        if isinstance(data, Source):
            return data
        if isinstance(data, Path):
            return cls.file(data)
        if isinstance(data, str):
            if not data.strip(" ./\\"):
                raise DataError("The source is empty: give a table, a query or a file.")
            if data.lstrip().lower().startswith(("postgresql://", "postgres://")):
                raise ParameterError("A PostgreSQL source is given by Source.postgres(uri, table=... or query=...).")
            return cls("text", data.strip() or data, data)
        if isinstance(data, list | tuple) and data and all(isinstance(p, str | Path) for p in data):
            return cls.file(*data)
        return cls.arrow(data)

    @classmethod
    def file(cls, *paths: str | Path, format: str | None = None, hive: bool | None = None) -> Source:  # noqa: A002
        """Files, globs or a folder of hive partitions; ``format``: parquet, csv or json, else by suffix."""
        options = tuple((k, v) for k, v in (("format", format), ("hive", hive)) if v is not None)
        return cls("file", Path(str(paths[0])).name, tuple(str(p) for p in paths), options)

    @classmethod
    def table(cls, name: str) -> Source:
        """A table or view of the connection."""
        return cls("table", name, name)

    @classmethod
    def query(cls, sql: str) -> Source:
        """One SELECT statement. It is run once."""
        return cls("query", "query", sql)

    @classmethod
    def database(cls, path: str | Path, *, table: str | None = None, query: str | None = None) -> Source:
        """A table, view or query in a DuckDB file."""
        if (table is None) == (query is None):
            raise DataError("Source.database needs either table= or query=.")
        return cls("database", table or "query", str(path), (("table", table), ("query", query)))

    @classmethod
    def postgres(cls, uri: str, *, table: str | None = None, query: str | None = None) -> Source:
        """A table (``table`` or ``schema.table``), view or query of a PostgreSQL server; ``duckanon.io.postgres.rows``.

        The URI, ``postgresql://role@host/database``, is shown nowhere. A query is one SELECT statement in PostgreSQL's
        dialect; the server does not let it write.
        """
        from duckanon.io.postgres.session import require_uri

        if (table is None) == (query is None):
            raise ParameterError("Source.postgres needs either table= or query=.")
        for key, value in (("table", table), ("query", query)):
            if value is not None and (not isinstance(value, str) or not value.strip() or "\0" in value):
                raise ParameterError(f"The {key} of Source.postgres must be a text that is not empty.")
        return cls("postgres", table or "query", require_uri(uri), (("table", table), ("query", query)))

    @classmethod
    def arrow(cls, data: object) -> Source:
        """An Arrow table, reader, dataset, anything with ``__arrow_c_stream__``, a pandas or polars frame."""
        return cls("arrow", type(data).__name__, data)

    def open(self, engine: Engine, *, read: bool = True) -> Relation:
        """Return the relation, with its columns looked up and duplicate names refused.

        With ``read=False`` only the schema is touched: a query is not run and a stream not consumed.
        """
        if self.kind == "text":
            return _guess(self.target, engine).open(engine, read=read)
        relation: Relation = getattr(self, f"_open_{self.kind}")(engine, read)
        refuse_duplicates(relation.names)
        return relation

    def _open_file(self, engine: Engine, read: bool) -> Relation:
        options = dict(self.options)
        for path in self.target:
            require_touchable(path)
        paths = [_existing(p) for p in self.target]
        for path in paths:
            require_touchable(path)
        reader = _reader(paths[0], options.get("format"))
        # A partition's value in the path wins over a column of the same name in the file, which would then be lost.
        arguments = {"hive_partitioning": options["hive"]} if "hive" in options else {}
        try:
            if reader == "read_parquet":
                query, columns = parquet_rows(engine, paths, arguments)
            elif reader == "read_csv":
                query, columns = csv_rows(engine, paths, read)
            else:
                query, columns = json_rows(engine, paths)
        except UnlikeFilesError as error:
            raise DataError(f"{self.name!r} cannot be read as one table. {error}") from None
        except (AccessError, ResourceError):
            raise
        except (EngineError, DataError) as error:
            _require_readable(paths)
            shape = {"read_parquet": "Parquet", "read_csv": "CSV", "read_json": "JSON"}[reader]
            raise DataError(f"{self.name!r} is not a {shape} file, or is damaged. {error}") from None
        _refuse_renamed(engine, reader, paths, columns)
        return Relation(query, tuple(columns), "file", self.name, files=tuple(self.target))

    def _open_table(self, engine: Engine, read: bool) -> Relation:
        match = _find_table(self.target, engine)
        if match is None:
            hint = did_you_mean(self.target, [".".join(k) for k in engine.catalog.tables()])
            raise DataError(
                f"There is no table or view {self.target!r}.{hint} A table that an open transaction created is visible "
                "only after COMMIT; temporary tables and registered data frames are private to their session: put "
                "their rows into a table first."
            )
        given, node = match
        query, statement = exp.select("*").from_(node), None
        # The name as its owner knows it, even if a temporary table hides it here.
        portable = exp.select("*").from_(table(given[-1], None, *reversed(given[:-1])))
        if (node.db, node.name) in engine.catalog.views(node.catalog) and _is_theirs(engine, query):
            # The names in a view are resolved as in its owner's session.
            statement = query.sql(dialect=DIALECT)
            name = engine.fresh("view")
            engine.catalog.create_as(name, statement, empty=not read)
            query = exp.select("*").from_(table(name))
        columns = tuple(engine.columns(query))
        return Relation(query, columns, "table", self.name, collated=True, portable=portable, statement=statement)

    def _open_query(self, engine: Engine, read: bool) -> Relation:
        _require_select(engine, self.target)
        # Run once: a query may return other rows the second time (samples, random()), and rows are read three times.
        name = engine.fresh("query")
        try:
            refuse_duplicates(engine.catalog.statement_columns(self.target))
            engine.catalog.create_as(name, self.target, empty=not read)
        except EngineError as error:
            if _OTHER_TABLES.match(str(error)) is None:
                raise
            raise DataError(f"The query does not fit the tables. {error}") from None
        query = exp.select("*").from_(table(name))
        portable = exp.select("*").from_(table("source"))
        columns = tuple(engine.columns(query))
        return Relation(query, columns, "query", self.name, collated=True, portable=portable, statement=self.target)

    def _open_database(self, engine: Engine, read: bool) -> Relation:
        options = dict(self.options)
        path = Path(self.target)
        require_touchable(path)
        if not is_file(path):
            raise DataError(f"There is no database file {path.name!r}.")
        # Other sessions of the caller's database see what is attached, so the name must be unique.
        alias = f"{engine.fresh('db')}_{secrets.token_hex(4)}"
        try:
            engine.catalog.attach(path, alias)
        except (AccessError, ResourceError):
            raise
        except EngineError as error:
            _require_readable([escape(str(path))])
            if "lock" in str(error).lower():
                raise ResourceError(f"The database {path.name!r} is in use by another process.") from None
            raise DataError(f"{path.name!r} is not a DuckDB database.") from None
        # Escaped, so that the name is no pattern: no release may be written into this file.
        files = (escape(str(path)),)
        if options["query"] is not None:
            _require_select(engine, options["query"])
            portable = exp.select("*").from_(table("source"))
            query = _asked_apart(engine, path, options["query"], "the query", read)
        else:
            tables = {k[1:] for k in engine.catalog.tables() if k[0] == alias}
            parts = _parts(options["table"], tables)
            if parts is None:
                hint = did_you_mean(options["table"], [k[-1] for k in tables])
                raise DataError(f"{path.name!r} has no table or view {options['table']!r}.{hint}")
            schema = parts[-2] if len(parts) > 1 else "main"
            portable = exp.select("*").from_(table(parts[-1], schema=parts[-2] if len(parts) > 1 else None))
            query = exp.select("*").from_(table(parts[-1], schema=schema, catalog=alias))
            if (schema, parts[-1]) in engine.catalog.views(alias):
                # A view is a statement that somebody else wrote, and may call macros.
                theirs = exp.select("*").from_(table(parts[-1], schema=schema)).sql(dialect=DIALECT)
                query = _asked_apart(engine, path, theirs, f"the view {parts[-1]!r}", read)
        columns = tuple(engine.columns(query))
        return Relation(query, columns, "database", self.name, collated=True, portable=portable, files=files)

    def _open_postgres(self, engine: Engine, read: bool) -> Relation:
        from duckanon.io.postgres.rows import open_rows

        name = engine.fresh("data")
        with open_rows(self.target, **dict(self.options)) as rows:
            refuse_duplicates(rows.names)
            if read:
                streamed = f"{name}_stream"
                with engine.progress.step("read"), rows.reader(engine.progress.advance) as reader:
                    engine.register(streamed, reader)
                    try:
                        engine.create(name, exp.select("*").from_(table(streamed)))
                    finally:
                        engine.unregister(streamed)
            else:
                engine.register(name, rows.schema.empty_table())
            theirs = table(rows.table.name, schema=rows.table.schema) if rows.table else table("source")
        query = exp.select("*").from_(table(name))
        portable = exp.select("*").from_(theirs)
        return Relation(query, tuple(engine.columns(query)), "postgres", self.name, portable=portable)

    def _open_arrow(self, engine: Engine, read: bool) -> Relation:
        import pyarrow as pa
        import pyarrow.dataset as ds

        data = self.target
        name = engine.fresh("data")
        library = type(data).__module__.split(".")[0]
        if library == "pandas" and hasattr(data, "columns"):
            refuse_duplicates([str(c) for c in data.columns])
            data = arrow_of_pandas(data)
        elif library == "polars" and hasattr(data, "to_arrow"):
            data = arrow_of_polars(data)
        if isinstance(data, pa.Table):
            data = with_readable_columns(data)
        if isinstance(data, pa.Table | ds.Dataset):
            refuse_duplicates(data.schema.names)
            require_readable(engine, data.schema)
            engine.register(name, data)
        elif hasattr(data, "__arrow_c_stream__"):
            # A stream can be read only once, and the rows are read three times.
            stream = pa.RecordBatchReader.from_stream(data)
            refuse_duplicates(stream.schema.names)
            require_readable(engine, stream.schema)
            streamed = f"{name}_stream" if read else name
            engine.register(streamed, stream)
            if read:
                engine.create(name, exp.select("*").from_(table(streamed)))
        else:
            hint = " Call collect() on it first." if hasattr(data, "collect") else ""
            raise DataError(f"A {type(self.target).__name__} cannot be read as a table.{hint}")
        query = exp.select("*").from_(table(name))
        portable = exp.select("*").from_(table("source"))
        return Relation(query, tuple(engine.columns(query)), "arrow", self.name, portable=portable)


def refuse_duplicates(names: Iterable[str]) -> None:
    """Raise if two columns have the same name for the database, which ignores case."""
    counts = Counter(n.lower() for n in names)
    twice = sorted(n for n, count in counts.items() if count > 1)
    if twice:
        listed = ", ".join(repr(n) for n in twice)
        raise DataError(f"Column names must differ (case is ignored): {listed} occurs more than once.")


def _require_select(engine: Engine, sql: str) -> None:
    count, kind = engine.catalog.statement_kind(sql)
    if count != 1 or kind != "SELECT":
        raise ParameterError("The query must be one SELECT statement.")


def _asked_apart(engine: Engine, path: Path, sql: str, what: str, read: bool) -> exp.Query:
    """Return the rows of a statement that may access nothing but a database file."""
    try:
        return engine.catalog.ask_apart(path, sql, read=read, check=refuse_duplicates)
    except AccessError:
        raise DataError(
            f"{what[0].upper()}{what[1:]} of {path.name!r} reads files, addresses or another database, and only what "
            "the source names may be read: put the rows into a table of that database, or name the file as the source."
        ) from None
    except EngineError as error:
        if _OTHER_TABLES.match(str(error)) is None:
            raise
        raise DataError(f"{what[0].upper()}{what[1:]} of {path.name!r} does not fit the tables. {error}") from None


def _guess(given: str, engine: Engine) -> Source:
    if _find_table(given, engine) is not None:
        return Source.table(given)
    # A path without access is recognised by its name alone, whether it exists or not.
    there = is_remote(given) or (may_touch(given) and is_there(given))
    if there or (_suffix(given) in _READERS and not _QUERY.match(given)):
        if _suffix(given) in _DATABASES:
            raise DataError(
                f"{Path(given).name!r} is a database: use Source.database(path, table=...) or a connection."
            )
        return Source.file(given)
    if _QUERY.match(given):
        return Source.query(given)
    if has_magic(given) or "/" in given:
        return Source.file(given)
    return Source.table(given)


def _readings(name: str) -> list[tuple[str, ...]]:
    """Return what the name of a table may mean: as it is, else split at dots."""
    candidates: list[tuple[str, ...]] = [(name,)]
    try:
        parsed = exp.to_table(name, dialect="duckdb")
        candidates.append(tuple(p.name for p in parsed.parts))
    except Exception:  # noqa: S110 - whatever the parser dislikes is simply not a dotted name
        pass
    return candidates


def _find_table(name: str, engine: Engine) -> tuple[tuple[str, ...], exp.Table] | None:
    """Return the parts of a name, and the table or view that the caller of an engine means by it."""
    return next(((parts, node) for parts in _readings(name) if (node := engine.catalog.find(*parts)) is not None), None)


def _is_theirs(engine: Engine, view: exp.Query) -> bool:
    """Return whether a view may mean something else in the engine's own session."""
    return engine.catalog.has_macros() or engine.attempt(exp.Describe(this=view)) is None


def _parts(name: str, tables: set[tuple[str, ...]]) -> tuple[str, ...] | None:
    """Return the parts of a table's name; case is ignored only if the exact name is not found."""
    candidates = _readings(name)
    for candidate in candidates:
        if candidate in tables:
            return candidate
    lowered = {tuple(p.lower() for p in k): k for k in tables}
    for candidate in candidates:
        exact = lowered.get(tuple(p.lower() for p in candidate))
        if exact is not None:
            return exact
    return None


def _suffix(path: str) -> str:
    bare = path.split("?")[0] if is_remote(path) else path
    suffixes = [s.lower() for s in Path(bare).suffixes]
    if suffixes and suffixes[-1] in {".gz", ".zst"}:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def _existing(path: str) -> str:
    if is_remote(path):
        return path
    if is_folder(path):
        for suffix in (".parquet", ".csv", ".json"):
            pattern = str(Path(path) / "**" / f"*{suffix}")
            if glob(pattern, recursive=True):
                return pattern
        raise DataError(f"The folder {Path(path).name!r} holds no Parquet, CSV or JSON file.")
    if not has_magic(path) or is_there(path):
        require_regular(Path(path))
    elif not glob(path, recursive=True):
        require_listable(path)
        raise DataError(f"No file matches {path!r}.")
    return path


def _require_readable(patterns: Iterable[str]) -> None:
    """Raise if a file cannot be read at all."""
    for pattern in patterns:
        for path in [] if is_remote(pattern) else map(Path, iglob(pattern, recursive=True)):
            try:
                if path.is_file():
                    with path.open("rb") as file:
                        file.read(1)
            except OSError as error:
                reason = error.strerror or type(error).__name__
                raise ResourceError(f"{path.name!r} cannot be read: {reason}.") from None


def _reader(path: str, given: str | None) -> str:
    if given is not None:
        if f"read_{given}" not in _READERS.values():
            raise DataError(f"Unknown file format {given!r}: use parquet, csv or json.")
        return f"read_{given}"
    suffix = _suffix(path)
    if suffix in _DATABASES:
        raise DataError(f"{Path(path).name!r} is a database: use Source.database(path, table=...) or a connection.")
    try:
        return _READERS[suffix]
    except KeyError:
        raise DataError(f"{Path(path).name!r} is not a table: its suffix is none of {', '.join(_READERS)}.") from None


def _refuse_renamed(engine: Engine, reader: str, paths: Sequence[str], columns: Sequence[Column]) -> None:
    """Check the names in the file itself: readers rename a second 'a' to 'a_1', which could then escape its role."""
    first = [text(p) for p in paths[:1]]
    if reader == "read_parquet":
        schema = exp.Table(this=exp.Anonymous(this="parquet_schema", expressions=first))
        rows = engine.rows(exp.select("file_name", "name", "num_children").from_(schema))
        file = rows[0][0]
        refuse_duplicates(_top_level([(str(n), int(c or 0)) for f, n, c in rows if f == file]))
    elif reader == "read_csv":
        plain = scan(reader, paths[:1], {"header": False, "all_varchar": True, **LONG_LINES})
        header = engine.attempt(exp.select("*").from_(plain).limit(1))
        names = [str(v) for v in header[0]] if header else []
        if names and names[0] == columns[0].name:
            refuse_duplicates(names)


def _top_level(nodes: list[tuple[str, int]]) -> list[str]:
    """Return the names of the root's children from a depth-first list of (name, number of children)."""
    names: list[str] = []
    position = 1
    for _ in range(nodes[0][1]):
        names.append(nodes[position][0])
        pending = 1
        while pending:
            pending += nodes[position][1] - 1
            position += 1
    return names
