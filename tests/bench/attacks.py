"""All attacks on a release in one call: seconds of processor time and of the clock, by attack, and the peak of memory.

python -m tests.bench.attacks --data ../shared/data --rows 1000000

On ADULT (a third of its rows are controls), and on stays of a made-up hospital; sampling is what ``duckanon.attack``
does by itself. Reading the tables is done once, for all attacks that link people to rows. ``--seeds 1048576`` tries so
many seeds on a small permuted release instead.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import duckanon
from duckanon.assess.attacks import attackers, linkage_space
from duckanon.testing.hospital import write_hospital
from tests.datasets import data_folder

ADULT = ["sex", "age", "race", "marital-status", "education", "native-country", "workclass"]
READING = "reading the tables"


def _cpu() -> float:
    used = os.times()
    return used.user + used.system


@contextmanager
def _watched(spent: dict[str, float]) -> Iterator[None]:
    """Note the processor time of every attack, without that of reading the tables, which is done once."""

    def timed(name: str, function: Any) -> Any:
        def call(*given: Any) -> Any:
            begun, read = _cpu(), spent.get(READING, 0.0)
            try:
                return function(*given)
            finally:
                inside = spent.get(READING, 0.0) - read
                spent[name] = spent.get(name, 0.0) + _cpu() - begun - inside

        return call

    with patch.object(linkage_space, "read_linkage_space", timed(READING, linkage_space.read_linkage_space)):
        kinds = {name: type(attackers.get(name)()) for name in attackers}
        before = {name: kind.run for name, kind in kinds.items()}
        for name, kind in kinds.items():
            kind.run = timed(name, before[name])  # type: ignore[method-assign]
        try:
            yield
        finally:
            for name, kind in kinds.items():
                kind.run = before[name]  # type: ignore[method-assign]


def _attacked(title: str, people: pa.Table, controls: pa.Table, roles: dict[str, Any], **how: Any) -> None:
    with duckanon.anonymize(people, **roles, **how) as release:
        # Once on few rows, so that kernels are compiled.
        duckanon.attack(people.slice(0, 1000), release, control=controls.slice(0, 1000), sample=50)
        sizes = f"{people.num_rows:,} rows, {release.rows_published:,} published, {controls.num_rows:,} controls"
        print(f"\n{title}: {sizes}", flush=True)
        spent: dict[str, float] = {}
        begun, started = _cpu(), time.perf_counter()
        with _watched(spent):
            found = duckanon.attack(people, release, control=controls)
        cpu, seconds = _cpu() - begun, time.perf_counter() - started
    print(f"  {READING:24} {spent[READING]:6.1f} s CPU")
    for name in attackers:
        tried = list(dict.fromkeys(_tried(f) for f in found.to_dict()["findings"] if f["attack"] == name))
        said = "; ".join(tried) or found.skipped.get(name, "nothing to try it on")
        print(f"  {name:24} {spent.get(name, 0.0):6.1f} s CPU   {said}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"  {'all':24} {cpu:6.1f} s CPU, {seconds:.1f} s by the clock; peak of the process {peak:.2f} GB", flush=True)


def _tried(finding: dict[str, Any]) -> str:
    of = f" of {finding['sampled_from']:,}" if finding["sampled_from"] else ""
    return f"{finding['rows']:,}{of} rows"


def _seeds(count: int) -> None:
    """Try so many seeds on a small release, one that was drawn by the last of them and one by a secret key."""
    rng, rows = np.random.default_rng(3), 240
    people = pa.table(
        {name: rng.integers(18, 90, rows) for name in ("age", "height", "weight", "steps")}
        | {"ill": rng.choice(["x", "y", "z"], rows)}
    )
    for seed in (count - 1, None):
        given = {"quasi_identifiers": people.column_names[:4], "sensitive": ["ill"], "k": 4, "seed": seed}
        with duckanon.anonymize(people, algorithm="probabilistic", **given) as release:
            begun = _cpu()
            found = duckanon.attack(people, release, attacks=["seed"], seeds=count).findings[0]
            who = "by the last of them" if seed is not None else "by a secret key"
            print(f"{count:,} seeds, drawn {who}: success {found.success:.0%}, {_cpu() - begun:.1f} s CPU", flush=True)


def main() -> None:
    """Attack ADULT, if it is there, and a hospital."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--rows", type=int, default=1_000_000, help="stays of the hospital, 0 for none")
    parser.add_argument("--only", choices=["adult", "hospital"])
    parser.add_argument("--seeds", type=int, help="try so many seeds, and nothing else")
    options = parser.parse_args()
    if options.seeds:
        _seeds(options.seeds)
        return
    adult = options.data / "adult" / "data.parquet"
    if adult.exists() and options.only != "hospital":
        table = pq.read_table(adult)
        mixed = table.take(np.random.default_rng(1).permutation(table.num_rows))
        files = {c: str(adult.parent / "hierarchies" / f"{c}.csv") for c in ADULT}
        roles = {"quasi_identifiers": ADULT, "sensitive": ["occupation"], "hierarchies": files}
        _attacked("ADULT", mixed.slice(0, 20_000), mixed.slice(20_000), roles, k=5, l=2, algorithm="mondrian")
    if not options.rows or options.only == "adult":
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stays.parquet"
        write_hospital(path, options.rows + 20_000)
        stays = pq.read_table(path)
    roles = {"quasi_identifiers": ["birth_date", "sex", "zip"], "sensitive": ["diagnosis"]}
    people, controls = stays.slice(0, options.rows), stays.slice(options.rows)
    _attacked("hospital", people, controls, roles, k=5, l=2, algorithm="mondrian")


if __name__ == "__main__":
    main()
