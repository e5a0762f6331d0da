"""``duckanon serve``: other programs call the functions through Arrow Flight SQL."""

from __future__ import annotations

import ipaddress
import os
import secrets
import threading
from pathlib import Path
from typing import Annotated, Any

import typer

from duckanon.interfaces.cli.options import MORE, names
from duckanon.interfaces.cli.screen import Screen, count

TOKEN = "DUCKANON_TOKEN"  # noqa: S105 - the name of a variable
_SHORTEST = 16
PORT = 31337


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("serve", rich_help_panel=MORE)(serve)


def serve(
    ctx: typer.Context,
    database: Annotated[Path, typer.Argument(metavar="DB", help="The DuckDB database.")],
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 for one that is free.")] = PORT,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            metavar="FILE",
            help=f"The token that clients must send. By default the variable {TOKEN}, else one that is made and shown.",
        ),
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option("--certificate", metavar="PEM", help="The certificate, for TLS.")
    ] = None,
    key: Annotated[
        Path | None, typer.Option("--key", metavar="PEM", help="The private key of the certificate.")
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            "--allow",
            metavar="A,B,...",
            help="Serve a private copy of these tables and views, as they are now, and nothing else.",
        ),
    ] = None,
    writable: Annotated[bool, typer.Option("--writable", help="Let clients write to the database.")] = False,
    memory: Annotated[str | None, typer.Option("--memory", help="The memory limit, such as 2GB.")] = None,
    threads: Annotated[int | None, typer.Option("--threads", min=1, help="How many threads to use.")] = None,
    time_limit: Annotated[
        str | None, typer.Option("--time-limit", help="How long a statement may run, such as 10min.")
    ] = None,
    at_once: Annotated[int, typer.Option("--at-once", min=1, help="How many statements may run at the same time.")] = 8,
) -> None:
    """Serve a database over Arrow Flight SQL (ADBC, JDBC and others), with anonymize() and its companions.

    Clients only read, and touch no file, unless told otherwise. Ctrl-C ends it.
    """
    from duckanon.errors import ConfigError

    screen = Screen.of(ctx)
    if writable and allow:
        raise typer.BadParameter("--allow serves a copy: --writable does not go with it.")
    if (certificate is None) != (key is None):
        raise typer.BadParameter("--certificate and --key go together.")
    if certificate is None and not _is_loopback(host):
        raise ConfigError("Beyond this machine, tokens and rows need TLS: give --certificate and --key.")
    token, made = _token(token_file)
    seconds = _seconds(time_limit)
    try:
        from duckanon.interfaces.flight.database import served
        from duckanon.interfaces.flight.server import Server
        from duckanon.interfaces.flight.statements import Limits
    except ImportError:
        raise ConfigError("duckanon serve needs the protobuf package: pip install 'duckanon[serve]'.") from None
    limits = Limits(read_only=not writable, seconds=seconds, at_once=at_once)
    tls: dict[str, Any] = {}
    if certificate is not None and key is not None:
        tls = {"certificate": certificate.read_bytes(), "key": key.read_bytes()}
    with served(database, limits, allow=names(allow), memory=memory, threads=threads) as statements:
        try:
            server = Server(statements, token, host=host, port=port, **tls)
        except OSError as error:
            raise ConfigError(f"{host}:{port} cannot be listened on, or the certificate cannot be used.") from error
        tables = len(statements.rows(_TABLES))
        scheme = "grpc+tls" if tls else "grpc"
        uri = f"{scheme}://{host}:{server.port}"
        _show(screen, database, uri, tables, "read-write" if writable else "read-only", token if made else None)
        try:
            while True:
                # In slices, so that signals are seen everywhere.
                threading.Event().wait(1.0)
        finally:
            statements.close()
            server.shutdown()


_TABLES = (
    "SELECT table_name FROM duckdb_tables() WHERE database_name = current_database() AND NOT internal "
    "UNION ALL SELECT view_name FROM duckdb_views() WHERE database_name = current_database() AND NOT internal"
)


def _show(screen: Screen, database: Path, uri: str, tables: int, mode: str, token: str | None) -> None:
    if screen.as_json:
        screen.document({"uri": uri, "database": database.name, "mode": mode, "tables": tables, "token": token})
        return
    screen.line(f"{database.name}: {count(tables, 'tables')}, {mode}, at {uri}")
    if token is not None:
        screen.line(f"token: {token}")
    screen.line("Ctrl-C ends it.")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def _token(file: Path | None) -> tuple[str, bool]:
    """Return the token, and whether it was made just now."""
    from duckanon.errors import ConfigError

    given = file.read_text(encoding="utf-8").strip() if file is not None else os.environ.get(TOKEN, "")
    if not given and file is None:
        return secrets.token_urlsafe(24), True
    if len(given) < _SHORTEST or not given.isascii() or not given.isprintable():
        raise ConfigError(f"The token must have at least {_SHORTEST} characters, all of them printable ASCII.")
    return given, False


def _seconds(duration: str | None) -> float | None:
    from duckanon.jobs.keys import Duration, require, seconds_of

    if duration is None:
        return None
    require("--time-limit", duration, Duration)
    return float(seconds_of(duration))
