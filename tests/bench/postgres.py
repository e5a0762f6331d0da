"""Rows a second from and to PostgreSQL, beside Parquet of the same rows: python -m tests.bench.postgres URI."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa

from duckanon.engine.duckdb.engine import DuckDBEngine
from duckanon.io.postgres import write_table
from duckanon.io.source import Source

ROWS = 1_000_000
PEOPLE = (
    "SELECT i AS id, 20 + i % 70 AS age, 'zip' || i % 9000 AS zip, (i % 5000)::numeric(8,2) AS pay, "
    f"date '1950-01-01' + i % 9000 AS born, 'illness ' || i % 40 AS ill FROM generate_series(1, {ROWS}) i"
)


def timed(label: str, action) -> object:
    begun = time.perf_counter()
    found = action()
    seconds = time.perf_counter() - begun
    print(f"{label:60} {seconds:6.2f} s  {ROWS / seconds:>10,.0f} rows/s", flush=True)
    return found


def drain(reader: pa.RecordBatchReader) -> None:
    for _ in reader:
        pass


def main(uri: str) -> None:
    import adbc_driver_postgresql.dbapi as dbapi

    with dbapi.connect(uri, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS people, released")
        cursor.execute(f"CREATE TABLE people AS {PEOPLE}")
        cursor.execute("ANALYZE people")
    engine = DuckDBEngine()
    relation = timed("read 6 columns into DuckDB", lambda: Source.postgres(uri, table="people").open(engine))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "people.parquet"
        timed("DuckDB: write the same to Parquet", lambda: engine.write_parquet(relation.query, file))
        timed("DuckDB: read Parquet into a table", lambda: engine.create("copied", engine.parquet([file])))
        for label in ("write, new table, read back", "write, rows replaced, read back"):
            timed(
                label,
                lambda: write_table(
                    uri, "released", engine.reader(engine.parquet([file])), replace=True, comment="", verify=drain
                ),
            )
    engine.close()


if __name__ == "__main__":
    main(sys.argv[1])
