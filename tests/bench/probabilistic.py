"""Probabilistic k-anonymity beside Mondrian in the same run: mixed rows of the hospital table, and ADULT.

python -m tests.bench.probabilistic --rows 1000000 --data ../shared/data

Every figure is one run from Parquet to Parquet in a process of its own: read, group, permute, gate, write, report.
CPU seconds are those of user and system together, which tell more where others use the machine, too.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from duckanon.testing.hospital import write_hospital
from tests.bench.datafly import PARAMETERS
from tests.bench.harness import Figure, measure
from tests.datasets import data_folder

ADULT = ["sex", "age", "race", "marital-status", "education", "native-country", "workclass", "hours-per-week"]
MANY = {"zip"}
"""Columns with more values than Ahmad-Dey's dissimilarity compares."""


def runs(scratch: Path, source: Path, parameters: dict[str, Any], ways: dict[str, str]) -> list[Figure]:
    """Anonymize a file in several ways, Mondrian first."""
    figures = []
    for name, algorithm in {"mondrian": "mondrian", **ways}.items():
        given = dict(parameters)
        if "ahmad_dey" in algorithm:
            given["quasi_identifiers"] = [q for q in given["quasi_identifiers"] if q not in MANY]
            given["insensitive"] = [*given.get("insensitive", []), *(MANY & set(parameters["quasi_identifiers"]))]
        if algorithm != "mondrian":
            given.pop("hierarchies", None)
        target = str(scratch / "release.parquet")
        figures.append(measure(name, "anonymize", source=str(source), target=target, algorithm=algorithm, **given))
    return figures


def show(title: str, figures: list[Figure]) -> None:
    """Print every figure as a ratio to Mondrian."""
    print(f"\n{title}")
    print(f"{'':<34} {'seconds':>9} {'CPU s':>9} {'CPU x mondrian':>15} {'peak MB':>9}")
    base = figures[0].detail["cpu"]
    for f in figures:
        cpu = f.detail["cpu"]
        print(f"{f.name:<34} {f.seconds:>9.1f} {cpu:>9.1f} {cpu / base:>15.2f} {f.peak_mb:>9.0f}")
        steps = ", ".join(f"{step} {seconds:.1f}" for step, seconds in f.detail["seconds"].items())
        print(f"    {steps}")
        told = (f.detail.get("permutation") or {}).get("mutual_information") or {}
        for kind, bits in told.items():
            print(f"    {kind}: {bits['before']:.4f} bits before, {bits['after']:.4f} after")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--only", default="", help="ways to run, by a part of their name")
    options = parser.parse_args()
    ways = {
        "gower": "probabilistic",
        "ahmad_dey": "probabilistic(dissimilarity='ahmad_dey')",
        "groups of mondrian": "probabilistic(groups='mondrian')",
        "groups of tdg": "probabilistic(groups='tdg')",
        "groups of knn_clustering": "probabilistic(groups='knn_clustering')",
    }
    ways = {name: way for name, way in ways.items() if options.only in name}
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        if options.data.is_dir():
            parameters = {"quasi_identifiers": ADULT, "sensitive": ["income"], "k": 5}
            source = options.data / "adult" / "data.parquet"
            show("ADULT, 8 quasi-identifiers, k = 5", runs(scratch, source, parameters, ways))
        if options.rows:
            source = scratch / "hospital.parquet"
            write_hospital(source, options.rows)
            parameters = {**PARAMETERS, "suppression_limit": 0.0}
            title = f"hospital, {options.rows:,} mixed rows, 8 quasi-identifiers, k = 5"
            show(title, runs(scratch, source, parameters, ways))


if __name__ == "__main__":
    main()
