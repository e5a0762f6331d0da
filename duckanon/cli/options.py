"""Options that every command has, and the reading of lists."""

from __future__ import annotations

import csv
import logging
import sys
from collections.abc import Iterable
from typing import Annotated

import typer

from duckanon.cli.screen import JSON

_LOGGER = "duckanon"


class _Lines(logging.StreamHandler):  # type: ignore[type-arg]
    """The log on standard error, as it is at the time of writing."""


def _want_json(context: typer.Context, wanted: bool) -> bool:
    if wanted:
        context.meta[JSON] = True
    return wanted


def _want_log(wanted: bool) -> bool:
    logger = logging.getLogger(_LOGGER)
    if wanted and not is_verbose():
        handler = _Lines(sys.stderr)
        handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG)
    return wanted


def is_verbose() -> bool:
    """Say whether -v was given."""
    return any(isinstance(h, _Lines) for h in logging.getLogger(_LOGGER).handlers)


def quiet() -> None:
    """Undo -v."""
    logger = logging.getLogger(_LOGGER)
    for handler in [h for h in logger.handlers if isinstance(h, _Lines)]:
        logger.removeHandler(handler)
    logger.setLevel(logging.NOTSET)


Json = Annotated[bool, typer.Option("--json", callback=_want_json, help="Write one JSON document.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", callback=_want_log, help="Show the SQL on standard error.")]


def names(given: Iterable[str] | None) -> list[str]:
    """Return the names in comma-separated lists; one with a comma in it is put in double quotes.

    Examples
    --------
    >>> names(["age, zip", 'sex,"a,b"'])
    ['age', 'zip', 'sex', 'a,b']
    """
    rows = csv.reader(given or (), skipinitialspace=True)
    return [name.strip() for row in rows for name in row if name.strip()]
