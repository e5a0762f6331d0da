"""A hierarchy bound to a few literals, for tests."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from duckanon.engine.duckdb.engine import DuckDBEngine
from duckanon.hierarchy import Hierarchy, Levels, auto

Labels = dict[str | None, tuple[str | None, ...]]


@cache
def _engine() -> DuckDBEngine:
    """Return the engine that all share: to open a database costs more than to use it."""
    return DuckDBEngine()


class Bound:
    """A hierarchy bound to a column of literals, with what it made in Python's hands."""

    def __init__(
        self,
        hierarchy: Hierarchy | None,
        values: Iterable[str | None],
        type_name: str,
        on_unknown: str = "error",
        counts: list[int] | None = None,
        threads: int = 2,
    ) -> None:
        given = list(values)
        counts = counts or [1] * len(given)
        engine = _engine()
        cursor = engine._connection
        try:
            cursor.execute(f"SET threads = {threads}")
            cursor.execute("CREATE OR REPLACE TABLE raw(v VARCHAR, n BIGINT)")
            cursor.executemany("INSERT INTO raw VALUES (?, ?)", list(zip(given, counts, strict=True)))
            cursor.execute(
                f"CREATE OR REPLACE TABLE vals AS "
                f"SELECT (row_number() OVER (ORDER BY value NULLS LAST) - 1)::INTEGER AS code, "
                f"value, value::VARCHAR AS text, n "
                f"FROM (SELECT v::{type_name} AS value, sum(n)::BIGINT AS n FROM raw GROUP BY ALL)"
            )
            made = hierarchy or auto(engine, "vals", "column", type_name)
            self.levels: Levels = made.bind(engine, "vals", "column", type_name, on_unknown)
            tree = self.levels.tree
            rows = cursor.execute(
                f"SELECT v.text, t.* EXCLUDE (code) FROM {tree} t JOIN vals v USING (code) ORDER BY code"
            ).fetchall()
            self.labels: Labels = {row[0]: row[2:] for row in rows}
            self.known = {row[0]: row[1] for row in rows}
            self.leaves = {
                (level, label): leaves
                for level, label, leaves in cursor.execute(f"SELECT * FROM {self.levels.leaves}").fetchall()
            }
            self.tables = {row[0] for row in cursor.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
            self.types = [row[1] for row in cursor.execute(f"DESCRIBE {tree}").fetchall()]
            engine.drop(tree, self.levels.leaves)
        except BaseException:
            # What a refused hierarchy left is gone with its engine, and not counted against the next one.
            _engine.cache_clear()
            engine.close()
            raise
        assert len(rows) == len(self.labels), "a value was lost or multiplied"
        assert self.tables == {"raw", "vals", self.levels.tree, self.levels.leaves}, "scratch tables are left"
