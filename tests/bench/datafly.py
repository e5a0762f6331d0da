"""Datafly from Parquet to Parquet beside a plain copy of the same file.

python -m tests.bench.datafly --rows 1000000 10000000
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from duckanon.testing.hospital import write_hospital
from tests.bench.harness import measure, show

QUASI_IDENTIFIERS = [
    "birth_date",
    "sex",
    "zip",
    "marital_status",
    "education",
    "country",
    "admission_date",
    "ward",
]
PARAMETERS = {
    "quasi_identifiers": QUASI_IDENTIFIERS,
    "sensitive": ["diagnosis"],
    "insensitive": ["length_of_stay", "cost"],
    "identifiers": ["patient_id", "name"],
    "hierarchies": {
        "birth_date": "birth_date",
        "zip": "us_zip5",
        "education": "education_isced",
        "country": "countries",
        "admission_date": "calendar_date",
    },
    "k": 5,
    "suppression_limit": 0.05,
}


def main() -> None:
    """Measure each size, in files of a temporary folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--repeat", type=int, default=3, help="runs of each; the fastest counts")
    parser.add_argument("--folder", type=Path, help="where to keep the files (default: a temporary folder)")
    parser.add_argument("--memory", help="DuckDB memory limit, such as 2GB")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        for rows in options.rows:
            source = folder / f"hospital_{rows}.parquet"
            if not source.exists():
                write_hospital(source, rows)
            runs = []
            for _ in range(options.repeat):
                copied = measure("copy", "copy", source=str(source), target=str(folder / "copy.parquet"))
                released = measure(
                    "datafly, 8 quasi-identifiers, k = 5",
                    "anonymize",
                    source=str(source),
                    target=str(folder / "release.parquet"),
                    memory=options.memory,
                    **PARAMETERS,
                )
                runs.append((copied, released))
            print(f"\n{rows:,} rows, {source.stat().st_size / 1e6:.0f} MB of Parquet, fastest of {options.repeat}")
            show([min((r[i] for r in runs), key=lambda f: f.seconds) for i in range(2)], base="copy")
            print(f"    levels {runs[0][1].detail['levels']}")
            found = runs[0][1].detail["found"]
            print(f"    {found['classes']} classes, {found['suppressed_share']:.2%} suppressed")


if __name__ == "__main__":
    main()
