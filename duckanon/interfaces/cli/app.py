"""The command ``duckanon``: its options, its commands, and what becomes of an error."""

from __future__ import annotations

import functools
import inspect
import sys
import traceback
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from duckanon._version import __version__
from duckanon.interfaces.cli import (
    anonymize,
    assess,
    attack,
    compare,
    hierarchies,
    jobs,
    run,
    serve,
    shell,
    signals,
    studies,
    utility,
    verify,
    warmup,
)
from duckanon.interfaces.cli.options import Json, Verbose, is_verbose
from duckanon.interfaces.cli.screen import Screen, visible


class _Interrupted(Exception):  # noqa: N818 - not an error
    """Ctrl-C, hidden from the parser, which would end without a message."""


class _Commands(TyperGroup):
    """The root command: every error of every command becomes one line and an exit code here."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise _Interrupted from None

    def main(
        self,
        args: Any = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Parse and run; then leave the process with the exit code, unless ``standalone_mode`` is off."""
        given = list(sys.argv[1:] if args is None else args)
        settings = {"complete_var": complete_var, "windows_expand_args": windows_expand_args, **extra}
        if not standalone_mode:
            return super().main(given, prog_name, standalone_mode=False, **settings)
        options = given[: given.index("--")] if "--" in given else given
        try:
            result = super().main(given, prog_name or "duckanon", standalone_mode=False, **settings)
            code = result if isinstance(result, int) else 0
            if code == signals.INTERRUPTED:
                # Outside of a command the parser catches the interruption silently.
                raise KeyboardInterrupt
        except (Exception, KeyboardInterrupt) as error:
            code = _report(error, Screen("--json" in options))
        sys.exit(code)


def _report(error: BaseException, screen: Screen) -> int:
    """Write what went wrong and return the exit code."""
    if isinstance(error, _Interrupted | KeyboardInterrupt | typer.Abort):
        stopped = signals.terminated()
        word, code = ("Terminated", signals.TERMINATED) if stopped else ("Interrupted", signals.INTERRUPTED)
        screen.error(word, f"{word}.", code)
        return code
    if hasattr(error, "format_message"):
        return _report_usage(error, screen)
    from duckanon.errors import DuckanonError
    from duckanon.jobs import exit_code

    code = exit_code(error)
    kind = type(error).__name__
    if isinstance(error, DuckanonError):
        screen.error(kind, " ".join(str(error).split()), code)
    elif isinstance(error, OSError):
        where = f": {error.filename}" if error.filename else ""
        screen.error(kind, f"{error.strerror or kind}{where}", code)
    else:
        # The message of an unknown error may quote a cell of the data. The lines of code where it happened cannot.
        hint = "" if is_verbose() else " Run it again with -v to see where."
        screen.error(kind, f"Unexpected {kind} (its message is withheld: it may quote data).{hint}", code)
        if is_verbose():
            for frame in traceback.extract_tb(error.__traceback__):
                typer.echo(f"  {frame.filename}:{frame.lineno} in {frame.name}", err=True)
    return code


def _report_usage(error: Any, screen: Screen) -> int:
    code = int(getattr(error, "exit_code", 2))
    wanted = getattr(error, "option_name", None)
    if wanted and error.ctx is not None and not error.possibilities:
        # The parser suggests similar options, but the beginning of an option is often not similar enough.
        known = [option for parameter in error.ctx.command.params for option in parameter.opts]
        error.possibilities = [option for option in known if option.startswith(wanted)] or None
    # The message quotes the input, such as the name of a file that the shell expanded.
    error.message = visible(str(getattr(error, "message", "")))
    if screen.as_json:
        screen.error(type(error).__name__, error.format_message() or "A command is missing.", code)
    elif sys.stderr.isatty():
        from typer.rich_utils import rich_format_error

        rich_format_error(error)
    else:
        error.show()
    return code


app = typer.Typer(
    cls=_Commands,
    name="duckanon",
    help="Anonymize tables in DuckDB: k-anonymity and more, verified on the published file.",
    epilog="Start with: duckanon demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(ctx: typer.Context, wanted: bool) -> None:
    if not wanted:
        return
    # Options after this one are not parsed yet.
    if "--json" in sys.argv:
        Screen(True).document({"duckanon": __version__})
    else:
        typer.echo(f"duckanon {__version__}")
    raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Anonymize tables in DuckDB: k-anonymity and more, verified on the published file."""


def _with_common_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command that also takes the options that all commands have; their callbacks do what they ask for."""

    @functools.wraps(command)
    def wrapped(*args: Any, as_json: bool = False, verbose: bool = False, **options: Any) -> Any:
        return command(*args, **options)

    signature = inspect.signature(command, eval_str=True)
    common = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=kind)
        for name, kind in (("as_json", Json), ("verbose", Verbose))
    ]
    parameters = [*signature.parameters.values(), *common]
    wrapped.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {p.name: p.annotation for p in parameters}
    return wrapped


def _group_options(as_json: Json = False, verbose: Verbose = False) -> None:
    """Accept the common options also between a group and its command."""


_modules = (anonymize, run, verify, jobs, assess, compare, utility, attack, hierarchies, studies, shell, serve, warmup)
for _module in _modules:
    _module.add_to(app)
_groups = [group.typer_instance for group in app.registered_groups if group.typer_instance is not None]
for _group in _groups:
    _group.callback()(_group_options)
for _command in [command for group in (app, *_groups) for command in group.registered_commands]:
    if _command.callback is not None:
        _command.callback = _with_common_options(_command.callback)


def main() -> None:
    """Run the command line. If it is interrupted, it cleans up and ends with a message and an exit code."""
    signals.listen()
    try:
        app()
    except KeyboardInterrupt as error:
        # Before a command has begun, or after it has ended.
        signals.deafen()
        signals.end(_report(error, Screen("--json" in sys.argv)))
    except SystemExit as ended:
        if not isinstance(ended.code, int):
            raise
        signals.deafen()
        signals.end(ended.code)
    finally:
        signals.deafen()
