"""SQL functions implemented in Python: how a call in a statement reaches its handler, and how the answer gets back.

A table function is a table macro around ``query(<scalar function>)``. DuckDB calls the scalar function while it binds
the statement, and the function answers with the text of a SELECT, which takes the call's place. It works on a cursor of
its own: it sees what is committed, not what the calling transaction wrote, and nothing private to the calling session.
Functions of values see nothing but their arguments.
"""

from __future__ import annotations

import json
import secrets
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, Protocol, TypeVar

import duckdb
from sqlglot import exp

from duckanon.engine.duckdb.catalog import MACROS, clean_error
from duckanon.engine.duckdb.engine import DuckDBEngine
from duckanon.engine.duckdb.scalars import Scalar, is_registered
from duckanon.engine.duckdb.sealed import NOT_QUALIFIED, sealed
from duckanon.engine.process import touching_only
from duckanon.engine.sql.relations import DIALECT, call, cast, col, ident, number, table, text
from duckanon.errors import DuckanonError, EngineError, ParameterError

CATALOG = MACROS
"""An attached in-memory database with the functions, for sessions that did not install them."""

Connection = duckdb.DuckDBPyConnection
DatabaseError = duckdb.Error
_SCALAR = "__duckanon"
_INSTANCE = "instance"
_KEPT = 32
_INTERRUPTED = "Interrupted."

Kind = Literal["text", "texts", "models", "integer", "number", "boolean", "mapping", "text or mapping", "text or texts"]
_TYPES: dict[Kind, tuple[tuple[type, ...], str]] = {
    "text": ((str,), "a text"),
    "texts": ((list,), "a list of texts, such as ['a', 'b']"),
    "models": ((list,), "a list such as ['l_diversity(l=3)'] or [{'model': 'l_diversity', 'l': 3}]"),
    "integer": ((int,), "an integer"),
    "number": ((int, float), "a number"),
    "boolean": ((bool,), "a boolean"),
    "mapping": ((dict,), "a struct or map, such as {'a': 'b'}"),
    "text or mapping": ((str, dict), "a text or a struct"),
    "text or texts": ((str, list), "a text or a list of texts"),
}
_WORDS = {str: "a text", int: "an integer", float: "a number", bool: "a boolean", list: "a list", dict: "a struct"}


class Closeable(Protocol):
    """An answer that is closed when the cache drops it."""

    def close(self) -> None: ...


C = TypeVar("C", bound=Closeable)


class Memo:
    """A cache of the latest answers. Beyond the limit the least recently used one is closed.

    DuckDB binds a statement several times and calls the function each time: without a cache one statement would show
    several different releases. The cache cannot know which statements still use an answer. But views, prepared
    statements and relations bind again whenever they run, so an answer is missed only if as many others as the limit
    are made between the bind and the run of one statement.
    """

    def __init__(self, limit: int = _KEPT) -> None:
        self._limit = limit
        # Reentrant: a connection may go, and the memo with it, whenever the garbage collector runs.
        self._lock = threading.RLock()
        self._making: dict[str, threading.Lock] = {}
        self._kept: OrderedDict[str, Closeable] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: str, make: Callable[[], C]) -> C:
        """Return the answer for a key; it is made once even if several threads ask for it."""
        with self._lock:
            making = self._making.setdefault(key, threading.Lock())
        with making:
            with self._lock:
                found = self._kept.get(key)
                if found is not None:
                    self._kept.move_to_end(key)
                    return found  # type: ignore[return-value]
            try:
                made = make()
            except BaseException:
                with self._lock:
                    self._making.pop(key, None)
                raise
            with self._lock:
                self._making.pop(key, None)
                self._kept[key] = made
                surplus = [self._kept.popitem(last=False)[1] for _ in range(len(self._kept) - self._limit)]
        for old in surplus:
            old.close()
        return made

    def close(self) -> None:
        """Close all answers."""
        with self._lock:
            kept, self._kept = self._kept, OrderedDict()
        for one in kept.values():
            one.close()


@dataclass(frozen=True)
class Parameter:
    """A named parameter; one that is not required is NULL by default, and NULL means not given."""

    name: str
    kind: Kind
    required: bool = False


@dataclass(frozen=True)
class Call:
    """A call: the arguments that were given, a workspace, and the cache of answers."""

    arguments: dict[str, Any]
    engine: DuckDBEngine
    memo: Memo
    search_path: str


@dataclass(frozen=True)
class Function:
    """A table function: its name, its parameters, and what returns the query that takes a call's place."""

    name: str
    parameters: tuple[Parameter, ...]
    handler: Callable[[Call], exp.Query]
    at_once: bool = False
    """Whether all that it reads is of one state of the tables, and that of the calling statement if nobody commits
    between the beginnings of the two."""
    about: str = ""
    """What it returns, in a sentence."""


class _Installed:
    """What one database has: the connections on which functions were installed, held weakly, and the memo."""

    def __init__(self) -> None:
        self.functions: dict[str, Function] = {}
        self.memo = Memo()
        self._sessions: dict[int, weakref.ref[Connection]] = {}

    def session(self, connection: Connection) -> int:
        """Return the number of a connection, which is new if the connection is."""
        for session, known in self._sessions.items():
            if known() is connection:
                return session
        self._sessions = {session: known for session, known in self._sessions.items() if known() is not None}
        session = max(self._sessions, default=0) + 1
        self._sessions[session] = weakref.ref(connection)
        return session

    def connections(self, first: int | None = None) -> list[Connection]:
        """Return the connections that are not gone, in the order of installation, but the one of a call first."""
        alive = [(session, known()) for session, known in list(self._sessions.items())]
        alive.sort(key=lambda one: (one[0] != first, one[0]))
        return [connection for _, connection in alive if connection is not None]

    def caller(self, session: int | None) -> Connection | None:
        """Return the connection of a session; None where it is gone, or not known."""
        known = self._sessions.get(session) if session is not None else None
        return known() if known is not None else None

    def cursors(self, first: int | None = None) -> Iterator[Connection]:
        """Yield a cursor of each connection that is open."""
        for connection in self.connections(first):
            try:
                cursor = connection.cursor()
            except duckdb.Error:
                continue
            with closing(cursor):
                yield cursor


_lock = threading.Lock()
_installed: dict[str, _Installed] = {}


def connect(path: str, *, read_only: bool, config: dict[str, Any]) -> Connection:
    """Open a database."""
    return duckdb.connect(path, read_only=read_only, config=config)


def install(connection: Connection, functions: Iterable[Function], scalars: Iterable[Scalar] = ()) -> None:
    """Make functions callable on a connection, and under ``CATALOG`` on all others of the same database.

    Nothing is written into the database: the macros are temporary, or lie in an attached database in memory.
    """
    if not isinstance(connection, Connection):
        raise ParameterError(f"install needs a DuckDB connection. Got a {type(connection).__name__}.")
    offered = {f.name: f for f in functions}
    with _lock:
        _forget_closed()
        try:
            _install(connection, offered, tuple(scalars))
        except duckdb.Error as error:
            # No statement of an installation reads data, so the text can quote none.
            raise EngineError(f"The functions cannot be installed. {str(error).splitlines()[0]}") from None


def _install(connection: Connection, offered: dict[str, Function], scalars: tuple[Scalar, ...]) -> None:
    # On a cursor, because what is registered must be there after a ROLLBACK and may not disturb a result in use.
    with closing(connection.cursor()) as cursor:
        _register(cursor)
        for scalar in scalars:
            scalar.register(cursor)
        instance, shared = _instance_of(cursor)
        # Known first: DuckDB calls a function without parameters while its macro is created.
        place = _installed.setdefault(instance, _Installed())
        place.functions.update(offered)
        if connection not in place.connections():
            weakref.finalize(connection, _forget, instance).atexit = False
        session = place.session(connection)
        if shared:
            for function in offered.values():
                cursor.execute(_macro(function.name, function.parameters, instance, None))
            for scalar in scalars:
                cursor.execute(scalar.macro(CATALOG))
    for function in offered.values():
        connection.execute(_macro(function.name, function.parameters, instance, session))
    for scalar in scalars:
        connection.execute(scalar.macro("temp"))


def _register(cursor: Connection) -> None:
    if not is_registered(cursor, _SCALAR):
        # Once the connection that registered a function is closed, DuckDB has a bare pointer to it and crashes if it is
        # gone: so it is a function that lives as long as the process, and it holds no connection.
        cursor.create_function(_SCALAR, dispatch, ["VARCHAR"], "VARCHAR", side_effects=True)
        cursor.create_function(NOT_QUALIFIED, nothing, [], "VARCHAR", side_effects=True)


def _instance_of(cursor: Connection) -> tuple[str, bool]:
    """Return the id of the database, and whether its functions can be shared between sessions."""
    path = exp.select(col("path")).from_(exp.Table(this=call("duckdb_databases")))
    path = path.where(exp.EQ(this=col("database_name"), expression=text(CATALOG)))
    found = cursor.execute(sealed(path)).fetchall()
    macro = table(_INSTANCE, schema="main", catalog=CATALOG)
    if not found:
        instance = secrets.token_hex(8)
        name = ident(CATALOG).sql(dialect=DIALECT)
        cursor.execute(" ".join(("ATTACH ':memory:' AS", name, "(READ_WRITE)")))
        head = ("CREATE MACRO", macro.sql(dialect=DIALECT), "() AS")
        cursor.execute(" ".join((*head, text(instance).sql(dialect=DIALECT))))
        return instance, True
    if found[0][0] is None:
        with suppress(duckdb.CatalogException):
            row = cursor.execute(" ".join(("SELECT", macro.sql(dialect=DIALECT), "()"))).fetchone()
            return str(row[0] if row else ""), True
    # A database of the user has the name: left alone.
    return secrets.token_hex(8), False


@lru_cache(1024)
def _macro(function: str, parameters: tuple[Parameter, ...], instance: str, session: int | None) -> str:
    """Return the statement that creates a function; the payload tells the handler who calls and with what.

    Kept, because some programs open a session for every statement, and the numbers of sessions come again.
    """

    def struct(entries: dict[str, Any]) -> exp.Struct:
        return exp.Struct(expressions=[exp.PropertyEQ(this=text(k), expression=v) for k, v in entries.items()])

    payload: dict[str, Any] = {
        "instance": text(instance),
        "session": exp.null() if session is None else number(session),
        "function": text(function),
        "search_path": call("current_setting", text("search_path")),
        "now": call(NOT_QUALIFIED),
    }
    if parameters:
        payload["arguments"] = struct({p.name: col(p.name) for p in parameters})
    answer = call(_SCALAR, cast(call("to_json", struct(payload)), "VARCHAR"))
    body = exp.select("*").from_(exp.Table(this=call("query", answer)))
    quoted = [(ident(p.name).sql(dialect=DIALECT), "" if p.required else ":= NULL") for p in parameters]
    temporary, catalog = ("", CATALOG) if session is None else ("TEMP", "temp")
    name = table(function, schema="main", catalog=catalog).sql(dialect=DIALECT)
    words = ("CREATE OR REPLACE", temporary, "MACRO", name)
    listed = ", ".join(" ".join(one) for one in quoted)
    return " ".join((*words, "(", listed, ") AS TABLE", sealed(body)))


def _forget(instance: str) -> None:
    """Give up what a database has once no connection with functions is left."""
    place = _installed.get(instance)
    if place is not None and not place.connections():
        _installed.pop(instance, None)
        place.memo.close()


def _forget_closed() -> None:
    """Do the same for connections that were closed: DuckDB tells nobody when that happens."""
    for instance, place in list(_installed.items()):
        if not any(True for _ in place.cursors()) and _installed.pop(instance, None) is not None:
            place.memo.close()


_said = threading.local()


def clean_reason(error: DatabaseError) -> str:
    """Return what anybody may read of a failed statement of this thread: our own reason, or a message without data."""
    reason = getattr(_said, "reason", None)
    if reason is not None and reason in str(error):
        return str(reason)
    if isinstance(error, duckdb.ParserException | duckdb.SyntaxException):
        # No row was read: it quotes the statement and nothing else.
        return str(error).strip().splitlines()[0]
    return str(clean_error(error))


def nothing() -> str:
    """Return an empty text: it only matters that DuckDB finds a function of this name."""
    return ""


def dispatch(payload: str) -> str:
    """Answer a call with the text of a SELECT; where the call fails, the SELECT raises the reason and nothing else."""
    given = json.loads(payload)
    _said.reason = None
    try:
        return sealed(_answer(given))
    except KeyboardInterrupt:
        # Raised here, it would be reported as a failure of the function.
        return sealed(_interrupted(_interrupt(given)))
    except Exception as error:
        reason = reason_of(error)
    _said.reason = reason
    # Evaluated while the statement is bound, so that not even a view can be created; and no traceback surrounds it.
    refusal = exp.Table(this=call("query", call("error", text(reason))))
    return sealed(exp.select("*").from_(refusal))


def _interrupt(payload: dict[str, Any]) -> bool:
    """Interrupt the calling statement; say whether its session is known, so that this could be done."""
    place = _installed.get(payload["instance"])
    caller = place.caller(payload["session"]) if place is not None else None
    if caller is None:
        return False
    with suppress(duckdb.Error):
        caller.interrupt()
    return True


def _interrupted(known: bool) -> exp.Query:
    """Return a query that always fails, as an interruption if DuckDB can be made to notice one."""
    fails = call("error", text(_INTERRUPTED))
    answer = fails
    if known:
        # DuckDB looks for an interruption while it lists files, if it may; else not before it has bound the statement,
        # and would miss the columns of a release that is not there.
        listed = exp.select(exp.Count(this=exp.Star())).from_(exp.Table(this=call("glob", text("/*"))))
        query = exp.select(fails).where(exp.GTE(this=exp.paren(listed), expression=number(0)))
        allowed = call("current_setting", text("enable_external_access"))
        answer = exp.Case().when(allowed, text(sealed(query))).else_(fails.copy())
    return exp.select("*").from_(exp.Table(this=call("query", answer)))


def reason_of(error: Exception) -> str:
    """Return what a caller may read of an error: text that we did not write may quote a cell."""
    if isinstance(error, DuckanonError):
        return str(error)
    return f"duckanon failed with a {type(error).__name__} (its message is withheld: it may quote data)."


def _answer(payload: dict[str, Any]) -> exp.Query:
    place = _installed.get(payload["instance"])
    # A connection that is closed closes its cursors. The calling one is busy and will not be; if it is not known,
    # another one lends its cursor, and the next if somebody closes that one.
    for cursor in place.cursors(payload["session"]) if place is not None else ():
        assert place is not None
        function = place.functions[payload["function"]]
        try:
            with closing(DuckDBEngine(cursor, at_once=function.at_once)) as engine:
                arguments = checked(function, payload.get("arguments") or {})
                engine.catalog.search_path(payload["search_path"])
                # A statement may touch no file that its own connection may not touch.
                with touching_only(engine.may_touch):
                    return function.handler(Call(arguments, engine, place.memo, payload["search_path"]))
        except DuckanonError:
            if _is_open(cursor):
                raise
    raise EngineError("The connection with duckanon's functions is gone: call duckanon.install() on this one.")


def _is_open(cursor: Connection) -> bool:
    try:
        cursor.execute("SELECT 1").fetchall()
    except duckdb.Error:
        return False
    return True


def checked(function: Function, given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments that are not NULL; one of another type is an error."""
    found = {}
    for parameter in function.parameters:
        value = _without_nulls(given.get(parameter.name))
        if value is None:
            if parameter.required:
                raise ParameterError(f"{function.name}: {parameter.name} must not be NULL.")
            continue
        types, wanted = _TYPES[parameter.kind]
        wrong = type(value) not in types
        if wrong or (parameter.kind.endswith("texts") and not all(isinstance(v, str) for v in value)):
            got = f"Got {_WORDS[type(value)]}." if wrong else "It holds something else."
            raise ParameterError(f"{function.name}: {parameter.name} must be {wanted}. {got}")
        found[parameter.name] = value
    return found


def _without_nulls(value: Any) -> Any:
    """Drop NULL fields: structs in one list or map have the same fields, NULL where a rule has no such parameter."""
    if isinstance(value, dict):
        return {k: _without_nulls(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [_without_nulls(v) for v in value]
    return value
