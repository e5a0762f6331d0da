"""An Arrow Flight SQL server on a DuckDB database, with the functions installed."""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyarrow import flight

from duckanon.errors import DuckanonError, ParameterError, UnsupportedError
from duckanon.interfaces.flight.messages import decoded, encoded, message
from duckanon.interfaces.flight.metadata import SCHEMAS, answer, schema_of
from duckanon.interfaces.flight.statements import READING, Statements, TimeLimitError

_PREPARED = 1_000
_ACTIONS = ("CreatePreparedStatement", "ClosePreparedStatement")
_QUERIES = ("CommandStatementQuery", "CommandPreparedStatementQuery")


@dataclass
class _Prepared:
    query: str
    names: Sequence[str]
    values: list[list[Any]] = field(default_factory=list)
    """A row of values for each time that the statement runs."""


class Server(flight.FlightServerBase):  # type: ignore[misc]
    """Answers clients until ``shutdown``. Each statement has a cursor of its own: results do not wait for each other.

    Parameters
    ----------
    statements : Statements
    token : str
        What a client must send, as ``Authorization: Bearer``, or as the password of a user of any name.
    host, port : str, int
        Port 0 is one that is free; ``port`` says which.
    certificate, key : bytes, optional
        For TLS.
    """

    def __init__(
        self,
        statements: Statements,
        token: str,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        certificate: bytes | None = None,
        key: bytes | None = None,
    ) -> None:
        self._statements = statements
        self._prepared: OrderedDict[bytes, _Prepared] = OrderedDict()
        self._lock = threading.Lock()
        scheme, settings = "grpc", {}
        if certificate is not None and key is not None:
            scheme, settings = "grpc+tls", {"tls_certificates": [(certificate, key)]}
        super().__init__(
            f"{scheme}://{_bracketed(host)}:{port}",
            auth_handler=_NoHandshake(),
            middleware={"token": _Tokens(token)},
            **settings,
        )

    # What clients ask for

    def get_flight_info(self, context: Any, descriptor: Any) -> Any:
        """Say which columns a command returns, and where its rows are."""
        with _refused():
            name, command = decoded(descriptor.command or b"")
            ticket = command
            if name == "CommandStatementQuery":
                # The text is the handle: the server keeps nothing that a client would have to give back.
                ticket = message("TicketStatementQuery", statement_handle=command.query.encode())
            elif name not in SCHEMAS and name != "CommandPreparedStatementQuery":
                raise ParameterError(f"{name} returns no rows.")
            if name in _QUERIES:
                query, values = self._asked(name, command)
                kind, _ = self._statements.kinds(query)
                if kind not in READING:
                    # Done now: clients may never fetch the rows of what has none.
                    counted = self._statements.change(query, values, _waiting(context))
                    return flight.FlightInfo(pa.schema([]), descriptor, [], counted, -1)
            endpoint = flight.FlightEndpoint(flight.Ticket(encoded(ticket)), [])
            return flight.FlightInfo(self._columns(name, command, context), descriptor, [endpoint], -1, -1)

    def get_schema(self, context: Any, descriptor: Any) -> Any:
        """Say which columns a command returns."""
        with _refused():
            name, command = decoded(descriptor.command or b"")
            return flight.SchemaResult(self._columns(name, command, context))

    def do_get(self, context: Any, ticket: Any) -> Any:
        """Send the rows of a command."""
        with _refused():
            name, command = decoded(ticket.ticket)
            if name in SCHEMAS:
                return flight.RecordBatchStream(
                    answer(name, command, self._statements.rows, self._bound(context), self._read_only)
                )
            query, values = self._asked(name, command)
            kind, _ = self._statements.kinds(query)
            if kind not in READING:
                raise ParameterError("A statement that writes returns no rows.")
            schema, batches = self._statements.batches(query, values, _waiting(context))
            return flight.GeneratorStream(schema, _sent(batches))

    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        """Run a statement that writes, or take the values of a prepared one."""
        with _refused():
            name, command = decoded(descriptor.command or b"")
            if name == "CommandStatementUpdate":
                self._statements.kinds(command.query)
                counted = self._statements.change(command.query, [], _waiting(context))
                writer.write(_body(message("DoPutUpdateResult", record_count=counted)))
                return
            if name not in ("CommandPreparedStatementQuery", "CommandPreparedStatementUpdate"):
                raise ParameterError(f"The server does not take data for {name}.")
            prepared = self._found(command)
            rows = [list(row.values()) for row in reader.read_all().to_pylist()]
            if name == "CommandPreparedStatementQuery":
                if len(rows) > 1:
                    raise UnsupportedError("A query takes one row of values at a time.")
                prepared.values = rows
                handle = command.prepared_statement_handle
                writer.write(_body(message("DoPutPreparedStatementResult", prepared_statement_handle=handle)))
                return
            changed = [
                self._statements.change(prepared.query, values, _waiting(context)) for values in rows or [list[Any]()]
            ]
            counted = -1 if any(n < 0 for n in changed) else sum(changed)
            writer.write(_body(message("DoPutUpdateResult", record_count=counted)))

    def list_actions(self, context: Any) -> list[tuple[str, str]]:
        """Return what ``do_action`` can do."""
        return [(name, "") for name in _ACTIONS]

    def do_action(self, context: Any, action: Any) -> Iterator[bytes]:
        """Prepare a statement, or forget it."""
        with _refused():
            if action.type not in _ACTIONS:
                raise ParameterError(f"The server has no action {action.type!r}.")
            name, request = decoded(action.body.to_pybytes())
            if name == "ActionClosePreparedStatementRequest":
                with self._lock:
                    self._prepared.pop(request.prepared_statement_handle, None)
                return iter(())
            return iter([encoded(self._prepare(request.query, context))])

    # How it is found

    @property
    def _read_only(self) -> bool:
        return self._statements.limits.read_only

    def _columns(self, name: str, command: Any, context: Any) -> pa.Schema:
        if name in SCHEMAS:
            return schema_of(name, command)
        query, values = self._asked(name, command)
        kind, _ = self._statements.kinds(query)
        # Only a query is bound to learn its columns: another statement would be run.
        return self._bound(context)(query, values) if kind == "SELECT" else _other_columns(kind)

    def _bound(self, context: Any) -> Callable[..., pa.Schema]:
        def columns(query: str, values: Sequence[Any] = ()) -> pa.Schema:
            return self._statements.schema(query, values, _waiting(context))

        return columns

    def _prepare(self, query: str, context: Any) -> Any:
        kind, names = self._statements.kinds(query)
        handle = secrets.token_bytes(16)
        # What a value may be is not known before it is there.
        parameters = pa.schema([pa.field(name, pa.null()) for name in names])
        result = message(
            "ActionCreatePreparedStatementResult",
            prepared_statement_handle=handle,
            parameter_schema=parameters.serialize().to_pybytes(),
        )
        if kind == "SELECT" and not names:
            result.dataset_schema = self._bound(context)(query).serialize().to_pybytes()
        with self._lock:
            self._prepared[handle] = _Prepared(query, names)
            while len(self._prepared) > _PREPARED:
                self._prepared.popitem(last=False)
        return result

    def _found(self, command: Any) -> _Prepared:
        with self._lock:
            prepared = self._prepared.get(command.prepared_statement_handle)
            if prepared is not None:
                self._prepared.move_to_end(command.prepared_statement_handle)
        if prepared is None:
            raise ParameterError("There is no such prepared statement (any more): prepare it again.")
        return prepared

    def _asked(self, name: str, command: Any) -> tuple[str, list[Any]]:
        """Return the statement of a command, and the values of its parameters."""
        if name == "CommandStatementQuery":
            return str(command.query), []
        if name == "TicketStatementQuery":
            return command.statement_handle.decode(), []
        if name == "CommandPreparedStatementQuery":
            prepared = self._found(command)
            return prepared.query, prepared.values[0] if prepared.values else []
        raise ParameterError(f"{name} returns no rows.")


def _other_columns(kind: str) -> pa.Schema:
    """Return the columns of a statement that is not bound beforehand: those of EXPLAIN, or none."""
    if kind == "EXPLAIN":
        return pa.schema([("explain_key", pa.string()), ("explain_value", pa.string())])
    return pa.schema([])


def _waiting(context: Any) -> Callable[[], bool]:
    return lambda: not context.is_cancelled()


def _body(one: Any) -> pa.Buffer:
    return pa.py_buffer(one.SerializeToString())


class _refused:  # noqa: N801 - used like a function
    """Turns errors into those of Flight, whose message is all that a client sees; others are withheld."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None or isinstance(error, flight.FlightError | GeneratorExit):
            return
        raise _as_flight_error(error) from None


def _as_flight_error(error: BaseException) -> Exception:
    """Return the error of Flight for one of ours: clients add to the message, so it has no full stop.

    Arrow would send the traceback of any other exception along.
    """
    if not isinstance(error, DuckanonError):
        name = type(error).__name__
        withheld = f"Unexpected {name} (its message is withheld: it may quote data)"
        return flight.FlightInternalError(withheld)  # type: ignore[no-any-return]
    text = str(error).removesuffix(".")
    kinds: tuple[tuple[type[DuckanonError], Any], ...] = (
        (TimeLimitError, flight.FlightTimedOutError),
        (UnsupportedError, flight.FlightUnauthorizedError),
    )
    return next((made for kind, made in kinds if isinstance(error, kind)), flight.FlightServerError)(text)  # type: ignore[no-any-return]


def _sent(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches; where the client goes away, the statement ends with this generator."""
    with _refused():
        try:
            yield from batches
        finally:
            batches.close()  # type: ignore[attr-defined]


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


class _NoHandshake(flight.ServerAuthHandler):  # type: ignore[misc]
    """Lets the handshake of clients with a name and a password through: their header has been checked by then."""

    def authenticate(self, outgoing: Any, incoming: Any) -> None:
        """Do nothing."""

    def is_valid(self, token: bytes) -> str:
        """Say who is there: everybody with the token is the same."""
        return ""


class _Tokens(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Refuses each call without the token."""

    def __init__(self, token: str) -> None:
        self._token = token

    def start_call(self, info: Any, headers: Mapping[str, Sequence[str]]) -> Any:
        """Check the header of a call."""
        given = next((v[0] for name, v in headers.items() if name.lower() == "authorization" and v), "")
        scheme, _, secret = given.partition(" ")
        if scheme.lower() == "basic":
            try:
                # Some clients leave out the padding.
                padded = secret + "=" * (-len(secret) % 4)
                secret = base64.b64decode(padded, validate=True).decode().partition(":")[2]
            except (binascii.Error, UnicodeDecodeError):
                secret = ""
        elif scheme.lower() != "bearer":
            secret = ""
        if not hmac.compare_digest(secret.encode(), self._token.encode()):
            raise flight.FlightUnauthenticatedError("The token is missing or wrong.")
        return _Told(self._token) if scheme.lower() == "basic" else None


class _Told(flight.ServerMiddleware):  # type: ignore[misc]
    """Tells a client that gave the token as a password how to send it from now on."""

    def __init__(self, token: str) -> None:
        self._token = token

    def sending_headers(self) -> dict[str, str]:
        """Return the header."""
        return {"authorization": f"Bearer {self._token}"}


__all__ = ["Server"]
