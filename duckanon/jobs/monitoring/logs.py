"""The log: lines for people or JSON for machines, with names, counts and times, never a value of the data."""

from __future__ import annotations

import contextlib
import json
import logging
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import IO, Any, Literal

from duckanon.errors import ParameterError
from duckanon.progress import Event, Listener
from duckanon.report.history import cautions, entry

_LOGGER = "duckanon"
_SQL = "duckanon.sql"
_CONTEXT = ("run", "job", "table")
_FIELDS = (
    *_CONTEXT,
    "step",
    "phase",
    "rows",
    "done",
    "total",
    "unit",
    "seconds",
    "outcome",
    "exit_code",
    "error",
    "rows_in",
    "rows_published",
    "rows_suppressed",
    "suppressed_share",
    "held_back",
    "classes",
    "homogeneous",
    "class_size_min",
    "loss",
    "peak_memory",
    "recoding",
)
"""The fields of a line besides time, level, logger and event. They are listed, so that no other gets in."""
_context: ContextVar[Mapping[str, Any]] = ContextVar("duckanon_log_context", default={})  # noqa: B039 - never changed

log = logging.getLogger(f"{_LOGGER}.run")


@contextlib.contextmanager
def about(**names: Any) -> Iterator[None]:
    """Give the lines inside a run, a job and a table."""
    token = _context.set({**_context.get(), **names})
    try:
        yield
    finally:
        _context.reset(token)


class JsonFormatter(logging.Formatter):
    """One JSON object in a line: ts, level, logger, event, and run, job, table, step, rows ... where they are set.

    Of an exception only the type is logged: messages of other libraries can quote values.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {
            "ts": at.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info and record.exc_info[0] is not None:
            line.setdefault("error", record.exc_info[0].__name__)
        # Only ASCII: some readers take U+2028 for the end of a line.
        return json.dumps({k: _plain(v) for k, v in line.items()}, allow_nan=False)


class HumanFormatter(logging.Formatter):
    """One line for a person: time, level, job and table, and what happened."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        at = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
        fields = _fields(record)
        named = [str(fields[k]) for k in ("job", "table") if k in fields]
        where = f" [{'/'.join(dict.fromkeys(named))}]" if named else ""
        kind = record.exc_info[0] if record.exc_info else None
        text = f"{at} {record.levelname:<7}{where} {record.getMessage()}{f' ({kind.__name__})' if kind else ''}"
        # Control characters of a name must not reach a terminal or start a line.
        return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class _Handler(logging.StreamHandler[IO[str]]):
    """The handler that ``configure`` made, so that it finds its own again."""


def configure(
    kind: Literal["human", "json"] = "human",
    stream: IO[str] | None = None,
    *,
    level: int = logging.INFO,
    sql: bool = False,
) -> Callable[[], None]:
    """Write the log of this package to a stream; a second call replaces the first.

    Parameters
    ----------
    kind : {"human", "json"}
    stream : text stream, optional
        Standard error where none is given.
    level : int
        The lowest level that is written.
    sql : bool
        Whether statements are written, too. They name columns and files, and contain a query of the user's.

    Returns
    -------
    callable
        Removes the log again.
    """
    formatters: dict[str, type[logging.Formatter]] = {"human": HumanFormatter, "json": JsonFormatter}
    if kind not in formatters:
        raise ParameterError(f"The log is 'human' or 'json'. Got {kind!r}.")
    logger = logging.getLogger(_LOGGER)
    for old in [h for h in logger.handlers if isinstance(h, _Handler)]:
        logger.removeHandler(old)
    handler, before = _Handler(stream if stream is not None else sys.stderr), logger.level
    handler.setFormatter(formatters[kind]())
    handler.setLevel(logging.DEBUG if sql else level)
    handler.addFilter(lambda record: sql if _is_sql(record) else record.levelno >= level)
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG if sql else level)

    def undo() -> None:
        if handler in logger.handlers:
            logger.removeHandler(handler)
            logger.setLevel(before)

    return undo


class LoggedProgress:
    """A listener that logs start and end of each step, and in between at most one line every 30 seconds.

    Parameters
    ----------
    then : listener, optional
        Gets every event after it.
    every : float
        Seconds between two lines of one step.
    clock : callable
        For tests.
    names
        run, job and table of the lines: events come from several threads, where ``about`` has no effect.
    """

    def __init__(
        self,
        then: Listener | None = None,
        *,
        every: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
        **names: Any,
    ) -> None:
        self._then, self._every, self._clock = then, every, clock
        self._names = {**_context.get(), **names}
        self._logged: dict[str, float] = {}
        self._lock = threading.Lock()
        self._log = logging.getLogger(f"{_LOGGER}.progress")

    def __call__(self, event: Event) -> None:
        """Take an event; called from several threads."""
        with self._lock:
            self._take(event)
        if self._then is not None:
            self._then(event)

    def _take(self, event: Event) -> None:
        now, step = self._clock(), event.step
        if event.finished:
            self._logged.pop(step, None)
            amount = f", {_count(event.total, event.unit)}" if event.total is not None else ""
            self._line(event, "end", f"{step}: done in {event.elapsed:.1f} s{amount}", event.total)
        elif step not in self._logged:
            self._logged[step] = now
            amount = f", {_count(event.total, event.unit)}" if event.total is not None else ""
            self._line(event, "begin", f"{step}: started{amount}", event.total)
        elif now - self._logged[step] >= self._every:
            self._logged[step] = now
            whole = f" of {_count(event.total, event.unit)}" if event.total is not None else f" {event.unit}"
            self._line(event, "going", f"{step}: {event.done:,.0f}{whole} in {event.elapsed:.0f} s", event.done)

    def _line(self, event: Event, phase: str, text: str, done: float | None) -> None:
        counted: dict[str, Any] = {"done": done, "total": event.total, "unit": event.unit} if phase == "going" else {}
        if event.unit == "rows" and done is not None:
            counted["rows"] = int(done)
        if phase != "begin":
            counted["seconds"] = round(event.elapsed, 3)
        self._log.info("%s", text, extra=_extra({**self._names, "step": event.step, "phase": phase, **counted}))


def log_run(record: Mapping[str, Any]) -> None:
    """Log how a run ended, and its warnings."""
    names = {k: record[k] for k in _CONTEXT if record.get(k) is not None}
    for warning in (*cautions(record.get("summary") or {}), *(record.get("warnings") or ())):
        log.warning("%s", warning, extra=_extra(names))
    figures = entry(record.get("summary") or {}, record)
    suppressed = ((record.get("summary") or {}).get("found") or {}).get("rows_suppressed")
    error = record.get("error") or {}
    fields = {**names, **figures, "rows_suppressed": suppressed, "recoding": record.get("recoding")}
    fields = {k: v for k, v in fields.items() if k in _FIELDS and v is not None}
    took = f" in {record['seconds']:.1f} s" if record.get("seconds") is not None else ""
    if record.get("outcome") == "failed":
        why = ": ".join(str(error[k]) for k in ("type", "message") if error.get(k))
        extra = _extra({**fields, "error": error.get("type")})
        log.error("failed with exit code %s%s. %s", record.get("exit_code"), took, why, extra=extra)
        return
    what = "dry run, nothing written" if record.get("outcome") == "dry_run" else "published"
    rows = f": {figures['rows_published']:,} of {figures['rows_in']:,} rows" if figures["rows_in"] is not None else ""
    log.info("%s%s%s", what, rows, took, extra=_extra(fields))


def _extra(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields under names that a log record does not use."""
    return {f"duckanon_{k}": v for k, v in fields.items() if v is not None}


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    """Return the fields of a line, in order: its own and those of ``about``."""
    around, line = _context.get(), vars(record)
    fields = {k: line.get(f"duckanon_{k}", around.get(k)) for k in _FIELDS}
    return {k: v for k, v in fields.items() if v is not None}


def _is_sql(record: logging.LogRecord) -> bool:
    return record.name == _SQL or record.name.startswith(f"{_SQL}.")


def _count(number: float, unit: str) -> str:
    return f"{number:,.0f} {unit}"


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
