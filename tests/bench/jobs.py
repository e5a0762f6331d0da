"""Jobs under load: many at once on one machine, and one over a source larger than its memory limit.

python -m tests.bench.jobs
python -m tests.bench.jobs --only large --rows 50000000 --memory 1GB [--algorithm datafly] [--persons]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow.parquet as pq

from duckanon.engine.process import share_of_database, size_in_bytes
from duckanon.io.sinks import verify_files
from duckanon.jobs.monitoring.memory import in_bytes
from duckanon.testing.hospital import write_hospital

ALGORITHMS = ("mondrian", "datafly", "tdg", "optimal", "mdav")
JOB = """
[source]
path = "{source}"

[roles]
{key}
identifiers = [{unused}
  "name", "country", "education", "marital_status", "admission_date", "length_of_stay", "cost", "ward"]
quasi_identifiers = ["birth_date", "sex", "zip"]
sensitive = ["diagnosis"]

[hierarchies]
zip = "us_zip5"
birth_date = {{ rule = "dates", levels = ["month", "year", "decade"] }}

[privacy]
k = {k}
suppression_limit = 0.05

[algorithm]
name = "{algorithm}"

[output]
path = "out/{name}.parquet"

[operations]
metrics = "{name}.prom"

[limits]
memory = "{memory}"
threads = 2
"""


PERSONS = {"key": 'entity_key = "patient_id"', "unused": ""}
ROWS = {"key": "", "unused": '"patient_id", '}


def together(folder: Path, count: int, rows: int) -> None:
    """Start different jobs at the same time; all must end right."""
    write_hospital(folder / "hospital.parquet", rows)
    jobs = []
    for i in range(count):
        values = {"source": "hospital.parquet", "k": 3 + i, "algorithm": ALGORITHMS[i % len(ALGORITHMS)]}
        job = folder / f"job{i:02}.toml"
        job.write_text(JOB.format(name=job.stem, memory="1GB", **PERSONS, **values))
        jobs.append(job)
    alone = _timed([jobs[0]])
    start = time.perf_counter()
    seconds = _timed(jobs)
    whole = time.perf_counter() - start
    wrong = [job.stem for job in jobs if verify_files(folder / "out" / f"{job.stem}.manifest.json")]
    print(f"{count} jobs over {rows:,} rows each, started together: {whole:.1f} s, one alone {alone[0]:.1f} s")
    print(f"    exit codes other than 0: {sum(code != 0 for code in _codes)}; exports that do not verify: {len(wrong)}")
    print(f"    slowest {max(seconds):.1f} s, fastest {min(seconds):.1f} s")


_codes: list[int] = []


def _timed(jobs: list[Path]) -> list[float]:
    begun = time.perf_counter()
    command = [sys.executable, "-m", "duckanon", "run"]
    running = {job: subprocess.Popen([*command, str(job), "--json"], stdout=subprocess.DEVNULL) for job in jobs}
    seconds = {}
    while running:
        for job, process in list(running.items()):
            if process.poll() is not None:
                seconds[job] = time.perf_counter() - begun
                _codes.append(process.returncode)
                del running[job]
        time.sleep(0.05)
    return list(seconds.values())


def large(folder: Path, rows: int, memory: str, algorithm: str, source: Path | None, persons: bool) -> None:
    """Run one job over a source larger than its memory, and verify what it published within the same."""
    if source is None:
        source = folder / "large.parquet"
        write_hospital(source, rows)
    job, unit = folder / "large.toml", PERSONS if persons else ROWS
    job.write_text(JOB.format(name="large", source=source, k=10, algorithm=algorithm, memory=memory, **unit))
    code, said, seconds, cpu, _ = _measured(["run", str(job)])
    (told,) = (folder / "large.state" / "large" / "history.jsonl").read_text().splitlines()
    peak = json.loads(told)["peak_memory"] / 1e9
    size, what = source.stat().st_size / 1e9, "persons" if persons else "rows"
    first = pq.ParquetFile(source).read_row_group(0)
    whole, share = rows * first.nbytes / first.num_rows / 1e9, share_of_database(size_in_bytes(memory)) / 1e9
    print(f"{rows:,} rows ({size:.1f} GB of Parquet, {whole:.1f} GB as Arrow), {algorithm}, k counts {what}:")
    print(f"    memory {memory}, of which the database may use {share:.2f} GB")
    print(f"    exit code {code}, {seconds:.0f} s ({cpu:.0f} s of CPU), peak of the process {peak:.2f} GB")
    if code:
        print(f"    {said.strip()}")
        return
    summary = json.loads(said)["summary"]
    print(f"    {summary['found']['classes']:,} classes; {summary['search']}; seconds by step {summary['seconds']}")
    code, _, seconds, cpu, peak = _measured(["verify", str(folder / "out"), "--memory", memory])
    print(f"    verify: exit code {code}, {seconds:.0f} s ({cpu:.0f} s of CPU), peak {peak:.2f} GB")


def _measured(arguments: list[str]) -> tuple[int, str, float, float, float]:
    """Run a command; return its exit code, what it said, its seconds, CPU seconds and largest resident size in GB."""
    start = time.perf_counter()
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen([sys.executable, "-m", "duckanon", *arguments, "--json"], stdout=said)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        seconds, peak = time.perf_counter() - start, in_bytes(used.ru_maxrss, sys.platform) / 1e9
        return process.returncode, said.read(), seconds, used.ru_utime + used.ru_stime, peak


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=["together", "large"])
    parser.add_argument("--jobs", type=int, default=20)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--memory", default="1GB")
    parser.add_argument("--algorithm", default="mondrian")
    parser.add_argument("--source", type=Path, help="the table of --rows rows, where it is there already")
    parser.add_argument("--persons", action="store_true", help="k counts persons, and the night is kept for the next")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if given.only in (None, "together"):
            together(Path(folder), given.jobs, given.rows or 20_000)
        if given.only in (None, "large"):
            large(Path(folder), given.rows or 50_000_000, given.memory, given.algorithm, given.source, given.persons)


if __name__ == "__main__":
    main()
