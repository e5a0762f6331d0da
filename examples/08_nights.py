"""Night after night: labels that stay, persons who wait, and what two releases together would reveal."""

import tempfile
from pathlib import Path

import duckdb
import pyarrow.parquet as pq

from duckanon.jobs import load_job, run_job
from duckanon.jobs.nights import State, chart
from duckanon.testing.hospital import hospital

JOB = """
[source]
path = "stays.parquet"

[roles]
entity_key = "patient_id"
identifiers = ["name"]
quasi_identifiers = ["birth_date", "sex", "zip"]
sensitive = ["diagnosis"]
unlisted = "drop"

[hierarchies]
zip = "us_zip5"
birth_date = { rule = "dates", levels = ["year", "decade"] }

[privacy]
k = 5
suppression_limit = 0.02

[algorithm]
name = "datafly"

[output]
path = "release/stays-{date}.parquet"
keep = 2

[nights]
recoding = "frozen"
intersection = "hold"
"""

with tempfile.TemporaryDirectory() as temporary:
    folder = Path(temporary)
    (folder / "stays.toml").write_text(JOB)
    stays = hospital(12_000)
    levels = []
    # Every night 30 stays are new: the levels of the first night are applied to them, too.
    for night in range(4):
        pq.write_table(stays.slice(0, 10_000 + 30 * night), folder / "stays.parquet")
        day = load_job(folder / "stays.toml").day.replace(year=2026, month=3, day=1 + night)
        summary = run_job(folder / "stays.toml", day=day).summary
        levels.append({h["attribute"]: h["level"] for h in summary["hierarchies"]})
    print("the same levels every night:", all(one == levels[0] for one in levels))
    print("kept:", sorted(p.name for p in (folder / "release").glob("*.parquet")))

    # Rows whose class is too small wait, and so do persons whom a comparison with the last release would reveal.
    history = State.open(folder / "stays.state" / "stays").history()
    held = history.column("held_back").to_pylist()
    print("somebody had to wait:", held[-1] > 0)
    print(chart(history).splitlines()[0])

    # The history is a file of JSON lines: DuckDB reads it as a table.
    lines = folder / "stays.state" / "stays" / "history.jsonl"
    print("published:", duckdb.read_json(str(lines)).filter("outcome = 'published'").count("*").fetchall())
