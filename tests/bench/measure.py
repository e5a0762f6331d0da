"""All models and all metrics beside a plain copy of the file that was anonymized.

python -m tests.bench.measure --rows 30162 10000000

Measured is what comes after the release is made: what every model says of it (``duckanon.privacy``) and what it lost
(``release.measure``), once cold and once more in the same process.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from duckanon.testing.hospital import write_hospital
from tests.bench.datafly import PARAMETERS
from tests.bench.harness import measure, show


def main() -> None:
    """Measure each size, in files of a temporary folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[30_162, 10_000_000])
    parser.add_argument("--repeat", type=int, default=3, help="runs of each; the fastest counts")
    parser.add_argument("--folder", type=Path, help="where to keep the files (default: a temporary folder)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        for rows in options.rows:
            source = folder / f"hospital_{rows}.parquet"
            if not source.exists():
                write_hospital(source, rows)
            small = rows <= 1_000_000
            runs = []
            for _ in range(options.repeat):
                copied = measure("copy", "copy", source=str(source), target=str(folder / "copy.parquet"))
                given = {"source": str(source), "everything": small, **PARAMETERS}
                looked = measure("release, models, metrics", "look", **given)
                runs.append((copied, looked))
            kinds = "all metrics" if small else "class-based metrics"
            print(f"\n{rows:,} rows, {looked.detail['classes']} classes, {kinds}, fastest of {options.repeat}")
            fastest = [min((r[0] for r in runs), key=lambda f: f.seconds)]
            fastest.append(min((r[1] for r in runs), key=lambda f: sum(f.detail["seconds"].values())))
            show(fastest, base="copy")


if __name__ == "__main__":
    main()
