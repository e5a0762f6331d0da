"""The results of a study in one DuckDB file: a line for each task that ended, and a wide table for readers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon._version import __version__
from duckanon.engine.sql.relations import col, table

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.studies.base import Record, Study, Task

_CATALOG = "study_results"
_TASKS = {
    "key": "string",
    "study": "string",
    "duckanon": "string",
    "labels": "string",
    "given": "string",
    "outcome": "string",
    "error": "string",
    "seconds": "float64",
    "finished": "string",
    "records": "string",
}
"""``outcome`` is "done" or "failed"; ``labels``, ``given`` and ``records`` are JSON."""


class Results:
    """The file of results: a task is written in one statement, so that a killed run leaves it whole or not at all.

    Examples
    --------
    >>> import tempfile
    >>> from duckanon.studies.base import Task, get_study
    >>> study, task = get_study("property-vectors"), Task({"k": 5})
    >>> with tempfile.TemporaryDirectory() as folder, Results(Path(folder) / "results.duckdb") as results:
    ...     results.add(study, task, [{"value": 0.5}], 1.0)
    ...     results.records(study, [task])
    [{'k': 5, 'value': 0.5}]
    """

    def __init__(self, path: Path) -> None:
        from duckanon.engine.base import open_engine

        self.path = path
        self._engine = open_engine()
        try:
            self._engine.catalog.attach(path, _CATALOG, writable=True)
            self._replace("tasks", self._table([]), keep=True)
        except BaseException:
            self._engine.close()
            raise

    def __enter__(self) -> Results:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._engine.close()

    def add(
        self, study: Study, task: Task, records: Sequence[Record], seconds: float, error: str | None = None
    ) -> None:
        """Write the end of a task; ``error`` is the reason where it failed."""
        line = {
            "key": task.key(study),
            "study": study.name,
            "duckanon": __version__,
            "labels": json.dumps(dict(task.labels)),
            "given": json.dumps(dict(task.given)),
            "outcome": "done" if error is None else "failed",
            "error": error,
            "seconds": float(seconds),
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "records": json.dumps([{k: _plain(v) for k, v in r.items()} for r in records]),
        }
        incoming = self._engine.fresh("incoming")
        self._engine.register(incoming, self._table([line]))
        whole = exp.select("*").from_(table(incoming))
        self._engine.run(exp.Insert(this=_place("tasks"), expression=whole))
        self._engine.unregister(incoming)

    def lines(self, study: Study, tasks: Iterable[Task]) -> dict[str, dict[str, Any]]:
        """Return key, outcome, error, seconds and records of those tasks that ended; the last time counts."""
        wanted = {task.key(study) for task in tasks}
        names = ("key", "outcome", "error", "seconds", "records", "finished")
        query = exp.select(*(col(n) for n in names)).from_(_place("tasks")).order_by(col("finished"))
        lines: dict[str, dict[str, Any]] = {}
        for row in self._engine.arrow(query).to_pylist():
            # A task that failed once may be done now, never the other way round.
            if row["key"] in wanted and lines.get(row["key"], {}).get("outcome") != "done":
                lines[row["key"]] = {**row, "records": json.loads(row["records"])}
        return lines

    def records(self, study: Study, tasks: Sequence[Task]) -> list[Record]:
        """Return the records of all tasks that are done, in the order of the tasks, with the labels before each."""
        lines = self.lines(study, tasks)
        records: list[Record] = []
        for task in tasks:
            line = lines.get(task.key(study))
            if line is not None and line["outcome"] == "done":
                records += [{**task.labels, **record} for record in line["records"]]
        return records

    def publish(self, study: Study, records: Sequence[Record]) -> None:
        """Write all records as one wide table, called like the study with underscores."""
        import pyarrow as pa

        names = list(dict.fromkeys(name for record in records for name in record))
        columns = {n: _column([record.get(n) for record in records]) for n in names}
        self._replace(study.name.replace("-", "_"), pa.table(columns) if columns else pa.table({"empty": pa.nulls(0)}))

    def _replace(self, name: str, content: pa.Table, keep: bool = False) -> None:
        incoming = self._engine.fresh("incoming")
        self._engine.register(incoming, content)
        whole = exp.select("*").from_(table(incoming))
        kind = {"exists": True} if keep else {"replace": True}
        self._engine.run(exp.Create(this=_place(name), kind="TABLE", expression=whole, **kind))
        self._engine.unregister(incoming)

    def _table(self, lines: Sequence[Mapping[str, Any]]) -> pa.Table:
        import pyarrow as pa

        schema = pa.schema([(name, getattr(pa, kind)()) for name, kind in _TASKS.items()])
        return pa.Table.from_pylist([dict(line) for line in lines], schema=schema)


def _place(name: str) -> exp.Table:
    return table(name, schema="main", catalog=_CATALOG)


def _plain(value: Any) -> Any:
    """Return a number of numpy as one of Python; what is not finite is None, as JSON has no word for it."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):
        return None
    return value


def _column(values: list[Any]) -> pa.Array:
    import pyarrow as pa

    present = [v for v in values if v is not None]
    if all(isinstance(v, bool) for v in present):
        return pa.array(values, pa.bool_())
    if all(isinstance(v, int) for v in present):
        return pa.array(values, pa.int64())
    if all(isinstance(v, int | float) for v in present):
        return pa.array(values, pa.float64())
    return pa.array([v if v is None or isinstance(v, str) else json.dumps(v) for v in values], pa.string())
