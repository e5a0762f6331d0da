"""Jobs: everything in one TOML file, so that the release can be made every night and a scheduler sees what happened."""

import shutil
import tempfile
from pathlib import Path

import duckdb
import pyarrow.parquet as pq

from duckanon.errors import DuckanonError
from duckanon.io.sinks import verify_files
from duckanon.jobs import exit_code, plan_job, run_job
from duckanon.testing.hospital import hospital, write_hospital

here = Path(__file__).parent

with tempfile.TemporaryDirectory() as temporary:
    folder = Path(temporary)
    for name in ("hospital.toml", "wards.toml"):
        shutil.copy(here / name, folder)
    write_hospital(folder / "hospital.parquet", rows=20_000)
    with duckdb.connect(folder / "hospital.duckdb") as con:
        con.execute("CREATE TABLE stays AS SELECT * FROM read_parquet(?)", [str(folder / "hospital.parquet")])

    # No rows are read: good for a review before the first run.
    lines = plan_job(folder / "hospital.toml").explain().splitlines()
    print(*(line for line in lines if line.startswith(("algorithm:", "bounds:", "published:"))), sep="\n")

    for name in ("hospital.toml", "wards.toml"):
        result = run_job(folder / name)
        found = result.summary["found"]
        print(name, "->", found["rows_published"], "of", found["rows_in"], "rows in", found["classes"], "classes")
        # The manifest has the SHA-256 of every file: whoever gets them can see that they are as they were published.
        print("problems:", verify_files(result.written["manifest"]))
    print(sorted(p.name for p in (folder / "release").iterdir()))

    # One night there is a new column in the source. It is not published by accident: the job stops, and what was
    # released before is still there.
    stays = hospital(20_000)
    pq.write_table(stays.append_column("insurance", stays["ward"]), folder / "hospital.parquet")
    try:
        run_job(folder / "hospital.toml")
    except DuckanonError as error:
        print(f"exit code {exit_code(error)}: {error}")
    print("problems:", verify_files(folder / "release" / "hospital.manifest.json"))
