"""What was tried already, in a DuckDB file: whoever was stopped goes on where it ended."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.engine.open import open_engine
from duckanon.engine.sql.relations import col, table, text
from duckanon.errors import DataError, EngineError

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.engine.base import Engine

TABLE = "candidates"
_ALIAS = "results"
_NUMBERS = ("score", "deviation", "average_risk", "maximum_risk", "suppressed", "seconds")
_TEXTS = ("key", "label", "setting", "state", "reason")


def _schema() -> pa.Schema:
    import pyarrow as pa

    counts = [(name, pa.int64()) for name in ("k", "classes", "rows")]
    return pa.schema([*((n, pa.string()) for n in _TEXTS), *counts, *((n, pa.float64()) for n in _NUMBERS)])


class Store:
    """Results by their keys: kept in memory, and in a file where one is given."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._found: dict[str, dict[str, Any]] = {}
        if path is not None and path.exists():
            with self._opened() as engine:
                query = exp.select("*").from_(self._place())
                for line in engine.arrow(query).to_pylist() if self._has_table(engine) else ():
                    self._found[line["key"]] = {**line, "setting": json.loads(line["setting"])}

    def get(self, key: str) -> dict[str, Any] | None:
        """Return what was found under a key."""
        return self._found.get(key)

    def add(self, line: dict[str, Any]) -> None:
        """Keep a result; the file is written and closed at once, so that nothing is lost where the process ends."""
        import pyarrow as pa

        self._found[line["key"]] = line
        if self.path is None:
            return
        told = pa.Table.from_pylist([{**line, "setting": json.dumps(line["setting"])}], schema=_schema())
        with self._opened() as engine:
            engine.register("incoming", told)
            incoming = exp.select("*").from_(table("incoming"))
            if self._has_table(engine):
                same = exp.EQ(this=col("key"), expression=text(line["key"]))
                engine.run(exp.Delete(this=self._place(), where=exp.Where(this=same)))
                engine.run(exp.Insert(this=self._place(), expression=incoming))
            else:
                engine.run(exp.Create(this=self._place(), kind="TABLE", expression=incoming))
            engine.unregister("incoming")

    @contextlib.contextmanager
    def _opened(self) -> Iterator[Engine]:
        assert self.path is not None
        engine = open_engine()
        try:
            try:
                engine.catalog.attach(self.path, _ALIAS, writable=True)
            except EngineError:
                raise DataError(
                    f"{self.path.name!r} is not a DuckDB database, or is in use by another process."
                ) from None
            yield engine
        finally:
            engine.close()

    def _place(self) -> exp.Table:
        return table(TABLE, schema="main", catalog=_ALIAS)

    def _has_table(self, engine: Engine) -> bool:
        return (_ALIAS, "main", TABLE) in engine.catalog.tables()
