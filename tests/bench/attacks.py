"""All attacks on a release: seconds of processor time, by attack.

python -m tests.bench.attacks --data ../shared/data --rows 1000000

On ADULT (a third of its rows are controls), and on stays of a made-up hospital; sampling is what ``duckanon.attack``
does by itself.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import duckanon
from duckanon.demo import write_hospital
from duckanon.disclosure.attacks import attackers

ADULT = ["sex", "age", "race", "marital-status", "education", "native-country", "workclass"]


def _cpu() -> float:
    used = os.times()
    return used.user + used.system


def _attacked(title: str, people: pa.Table, controls: pa.Table, roles: dict[str, Any], **how: Any) -> None:
    with duckanon.anonymize(people, **roles, **how) as release:
        # Once on few rows, so that kernels are compiled.
        duckanon.attack(people.slice(0, 1000), release, control=controls.slice(0, 1000), sample=50)
        begun = _cpu()
        print(
            f"\n{title}: {people.num_rows:,} rows, {release.rows_published:,} published, {controls.num_rows:,} controls"
        )
        for name in attackers:
            started = _cpu()
            found = duckanon.attack(people, release, control=controls, attacks=[name])
            tried = sorted({f.rows for f in found.findings})
            said = f"{', '.join(f'{n:,}' for n in tried)} rows" if tried else found.skipped.get(name, "")
            print(f"  {name:24} {_cpu() - started:6.1f} s CPU   {said}", flush=True)
        print(f"  {'all':24} {_cpu() - begun:6.1f} s CPU")


def main() -> None:
    """Attack ADULT, if it is there, and a hospital."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parser.parse_args()
    adult = options.data / "adult" / "data.parquet"
    if adult.exists():
        table = pq.read_table(adult)
        mixed = table.take(np.random.default_rng(1).permutation(table.num_rows))
        files = {c: str(adult.parent / "hierarchies" / f"{c}.csv") for c in ADULT}
        roles = {"quasi_identifiers": ADULT, "sensitive": ["occupation"], "hierarchies": files}
        _attacked("ADULT", mixed.slice(0, 20_000), mixed.slice(20_000), roles, k=5, algorithm="mondrian")
    if not options.rows:
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stays.parquet"
        write_hospital(path, options.rows + 20_000)
        stays = pq.read_table(path)
    roles = {"quasi_identifiers": ["birth_date", "sex", "zip"], "sensitive": ["diagnosis"]}
    _attacked("hospital", stays.slice(0, options.rows), stays.slice(options.rows), roles, k=5, algorithm="mondrian")


if __name__ == "__main__":
    main()
