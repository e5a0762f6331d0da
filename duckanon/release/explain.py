"""The statements of a run over rows of the source or of the written file, and the checks of the gate."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp

from duckanon.engine.sql.relations import DIALECT
from duckanon.release import pipeline

if TYPE_CHECKING:
    from duckanon.engine.base import Engine
    from duckanon.plan.plan import Plan
    from duckanon.progress import Event

_BETWEEN = "count"
"""What runs between two steps: rows are counted."""
_SCHEMA = re.compile(r"^DESCRIBE |\bLIMIT 0\)")
"""Statements that ask for names and types, and read no row."""
_PRIVATE = re.compile(r"(duckanon_[a-z_]*?)_?\d+")


@dataclass(frozen=True)
class Statement:
    """A statement that ran: in which step, and for which other columns one like it ran."""

    step: str
    sql: str
    also: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Return it as plain values."""
        return {"step": self.step, "sql": self.sql, "also": list(self.also)}

    def pretty(self) -> str:
        """Return it over several lines, with a comment above that names the step."""
        also = f", and likewise for {', '.join(self.also)}" if self.also else ""
        return (
            f"-- {self.step}{also}\n{sqlglot.parse_one(self.sql, dialect=DIALECT).sql(dialect=DIALECT, pretty=True)};"
        )


def statements(plan: Plan, engine: Engine) -> list[Statement]:
    """Make a release, throw it away, and return the statements over rows that ran for it.

    What runs depends on the data: on the number of values, and on what the search finds. So the rows are read, as in a
    dry run. Housekeeping and statements over counts, hierarchies and classes are left out; ``duckanon run -v`` shows
    them all. Statements that differ in nothing but a column are returned once.
    """
    with _recorded(engine) as ran:
        release = pipeline.run(plan, engine)
        written = str(release.path)
        release.folder.close()
    relations = [plan.relation, *([plan.population] if plan.population is not None else [])]
    sources = [relation.query.sql(dialect=DIALECT) for relation in relations]
    read = [written, *sources, *(f"/* {m.name}:" for m in plan.models)]
    wanted = [(step, sql) for step, sql in ran if any(one in sql for one in read) and not _SCHEMA.search(sql)]
    return _merged(wanted, sources, [a.name for a in plan.roles.attributes])


@contextmanager
def _recorded(engine: Engine) -> Iterator[list[tuple[str, str]]]:
    """Yield the list of (step, statement) that grows while statements run."""
    found: list[tuple[str, str]] = []
    progress, log = engine.progress, logging.getLogger("duckanon.sql")
    step, listener, level = _BETWEEN, progress.listener, log.level

    def listen(event: Event) -> None:
        nonlocal step
        step = _BETWEEN if event.finished else event.step
        if listener is not None:
            listener(event)

    class Recorder(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append((step, record.getMessage()))

    recorder, progress.listener = Recorder(), listen
    log.addHandler(recorder)
    log.setLevel(logging.DEBUG)
    try:
        yield found
    finally:
        log.removeHandler(recorder)
        log.setLevel(level)
        progress.listener = listener


def _merged(ran: list[tuple[str, str]], sources: list[str], columns: list[str]) -> list[Statement]:
    """Return each statement once: of those that differ in one column only, the first with the other columns."""
    shapes: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for step, sql in ran:
        shape = _PRIVATE.sub(r"\1", sql)
        for source in sources:
            # It names all columns itself.
            shape = shape.replace(_PRIVATE.sub(r"\1", source), "SELECT 1")
        tree = sqlglot.parse_one(shape, dialect=DIALECT)
        named = list(dict.fromkeys(c.name for c in tree.find_all(exp.Identifier) if c.name in columns))
        column = named[0] if len(named) == 1 else ""
        if column:
            shape = shape.replace(exp.to_identifier(column, quoted=True).sql(dialect=DIALECT), "?")
        shapes.setdefault((step, shape), []).append((sql, column))
    return [
        Statement(step, alike[0][0], tuple(dict.fromkeys(c for _, c in alike if c and c != alike[0][1])))
        for (step, _), alike in shapes.items()
    ]


__all__ = ["Statement", "statements"]
