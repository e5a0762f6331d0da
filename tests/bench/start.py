"""What small work costs: the import, a job and a first call in SQL in processes of their own, and warm calls on ADULT.

python -m tests.bench.start
python -m tests.bench.start --only adult --data ../shared/data --repeat 9

Processes are compared with one that only imports duckdb, pyarrow and numba; the runs are interleaved, and the medians
are printed. Kernels have been compiled before. ADULT is not part of the project: ``--data`` (or DUCKANON_DATA) names
the folder that has it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.bench.lattice import ADULT, hierarchies
from tests.datasets import data_folder

_SQL = """
import duckanon, duckdb
con = duckdb.connect()
con.execute("CREATE TABLE hospital AS FROM 'hospital.parquet'")
duckanon.install(con)
assert con.execute('''
    FROM anonymize('hospital', quasi_identifiers := ['birth_date', 'sex', 'zip', 'admission_date'],
        sensitive := ['diagnosis', 'ward'], hierarchies := {'zip': 'us_zip5'}, k := 5)
''').fetchall()
"""
_BASE = "import duckdb, pyarrow, numba"
PROCESSES = {
    _BASE: [sys.executable, "-c", _BASE],
    "import duckanon": [sys.executable, "-c", "import duckanon"],
    "duckanon run, 20,000 rows": [sys.executable, "-m", "duckanon", "run", "hospital.toml", "--json"],
    "FROM anonymize(...), 20,000 rows": [sys.executable, "-c", _SQL],
}
LIMITS: tuple[dict[str, Any], ...] = (
    {"suppression_limit": 0.0},
    {"suppression_limit": 0.05},
    {"suppression_limit": 0.05, "t": 0.2},
    {"suppression_limit": 0.05, "l": 5},
)


def _measured(command: list[str], folder: Path) -> tuple[float, float]:
    """Return the seconds and the processor seconds of a process."""
    start = time.perf_counter()
    with tempfile.TemporaryFile() as printed:
        # Modules are compiled once, as installing a package does, also where the environment says not to store them.
        env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        env["PYTHONPYCACHEPREFIX"] = str(folder / "compiled")
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=printed, stderr=printed)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - start
        if process.returncode:
            printed.seek(0)
            raise SystemExit(printed.read().decode())
    return seconds, used.ru_utime + used.ru_stime


def processes(repeat: int) -> None:
    """Print what each process takes."""
    from duckanon.engine.process import data_folder as own_folder
    from duckanon.testing.hospital import write_hospital

    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in PROCESSES}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_hospital(folder / "hospital.parquet", 20_000)
        (folder / "hospital.toml").write_bytes((own_folder("examples") / "hospital.toml").read_bytes())
        for turn in range(repeat + 1):
            for what, command in PROCESSES.items():
                measured = _measured(command, folder)
                if turn:  # The first compiles kernels and reads files from the disk.
                    taken[what].append(measured)
    print(f"{'process':<34} {'seconds':>8} {'ratio':>6} {'cpu s':>8} {'ratio':>6}")
    _print(taken, taken[_BASE])


def adult(folder: Path, repeat: int) -> None:
    """Print what warm calls take: read, search, publish and check, with and without the files of the release."""
    import duckanon

    taken: dict[str, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for turn in range(repeat + 1):
            for limit in LIMITS:
                begun = time.perf_counter(), time.process_time()
                release = duckanon.anonymize(
                    folder / "data.parquet",
                    quasi_identifiers=ADULT[:8],
                    sensitive=["occupation"] if len(limit) > 1 else [],
                    hierarchies=hierarchies(folder, ADULT[:8]),
                    k=5,
                    algorithm="optimal",
                    **limit,
                )
                called = time.perf_counter(), time.process_time()
                release.write(Path(scratch) / "release.parquet")
                release.close()
                written = time.perf_counter(), time.process_time()
                if turn:
                    name = ", ".join(f"{k.removeprefix('suppression_')} {v}" for k, v in limit.items())
                    taken.setdefault(name, []).append((called[0] - begun[0], called[1] - begun[1]))
                    taken.setdefault(f"{name}, written", []).append((written[0] - begun[0], written[1] - begun[1]))
    print(f"{'ADULT, 8 columns, k = 5, optimal':<34} {'seconds':>8} {'':>6} {'cpu s':>8}")
    _print(taken)


def _print(taken: dict[str, list[tuple[float, float]]], base: list[tuple[float, float]] | None = None) -> None:
    for what, measured in taken.items():
        line = f"{what:<34}"
        for i in range(2):
            own = statistics.median(one[i] for one in measured)
            # Runs of one turn are compared with each other: a machine changes its pace.
            ratio = f"{statistics.median(m[i] / b[i] for m, b in zip(measured, base, strict=True)):.2f}" if base else ""
            line += f" {own:>8.3f} {ratio:>6}"
        print(line.rstrip())


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--only", choices=["processes", "adult"])
    options = parser.parse_args()
    if options.only in (None, "processes"):
        processes(options.repeat)
    if options.only in (None, "adult"):
        adult(options.data / "adult", options.repeat)


if __name__ == "__main__":
    main()
