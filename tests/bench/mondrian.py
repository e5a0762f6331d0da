"""Mondrian from Parquet to Parquet beside a plain copy of the same file; ADULT in one warm process, and what it loses.

python -m tests.bench.mondrian --data ../shared/data

The hospital table and the floats are made here; ADULT is not part of the project: ``--data`` (or DUCKANON_DATA) names
the folder that has it. The varied rows are those of ``tests.bench.lattice``.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

from duckanon.testing.hospital import write_hospital
from tests.bench.datafly import PARAMETERS
from tests.bench.harness import measure, show
from tests.bench.lattice import hierarchies, varied
from tests.datasets import data_folder

COLUMNS = ["sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation"]
CELLS: dict[str, dict[str, Any]] = {
    "grid (default): nodes of hierarchies, intervals on their first level": {},
    "cut: nodes of hierarchies, intervals between cuts": {"bounds": "cut"},
    "tight: nodes of hierarchies, smallest to largest value": {"bounds": "tight"},
    "tight, by order: from the first to the last value": {"bounds": "tight", "ordered": True},
    "tight, by hierarchy: sets of values": {"bounds": "tight", "output": "set"},
    "tight, by order: sets of values": {"bounds": "tight", "output": "set", "ordered": True},
}


def files(scratch: Path, name: str, source: Path, repeat: int, parameters: dict[str, Any]) -> None:
    """Copy and anonymize a file, each in a process of its own; the fastest of each counts."""
    runs = []
    for _ in range(repeat):
        copied = measure("copy", "copy", source=str(source), target=str(scratch / "copy.parquet"))
        target = str(scratch / "release.parquet")
        runs.append((copied, measure("mondrian", "anonymize", source=str(source), target=target, **parameters)))
    print(f"\n{name}, {source.stat().st_size / 1e6:.0f} MB of Parquet, fastest of {repeat}")
    show([min((r[i] for r in runs), key=lambda f: f.seconds) for i in range(2)], base="copy")
    pairs = [f"{made.seconds / copied.seconds:.2f} ({made.cpu / copied.cpu:.2f})" for copied, made in runs]
    print(f"    pair by pair, by the clock (in processor time): {', '.join(pairs)}")
    print(f"    {runs[0][1].detail['found']['classes']} classes")


def hospital(scratch: Path, rows: int, repeat: int) -> None:
    """Eight quasi-identifiers of mixed types, nearly all combinations distinct."""
    source = scratch / f"hospital_{rows}.parquet"
    if not source.exists():
        write_hospital(source, rows)
    parameters = {**PARAMETERS, "k": 10, "suppression_limit": 0.0, "algorithm": "mondrian"}
    files(scratch, f"hospital, {rows:,} rows, 8 quasi-identifiers, k = 10", source, repeat, parameters)


_LOW = {"age": 74, "sex": 2, "race": 5, "marital": 7, "edu": 16, "country": 41, "workclass": 8, "occ": 14}
"""The columns of the low-cardinality table and how many values each has."""
_PASSED = 20


def low(scratch: Path, rows: int, repeat: int) -> None:
    """Eight columns of few values, hashes of the number of the row; one is sensitive, and one more is not listed."""
    import duckdb

    source = scratch / f"low_{rows}.parquet"
    if not source.exists():
        columns = [f"(hash(i, {j}) % {size})::TINYINT AS {name}" for j, (name, size) in enumerate(_LOW.items())]
        with duckdb.connect() as connection:
            connection.execute(
                f"COPY (SELECT i AS id, {', '.join(columns)}, (hash(i, 99) % 12)::TINYINT AS ill "
                f"FROM range({rows}) AS t(i)) TO $target (FORMAT parquet)",
                {"target": str(source)},
            )
    parameters = {"quasi_identifiers": list(_LOW), "sensitive": ["ill"], "k": 10, "algorithm": "mondrian"}
    files(scratch, f"low cardinality, {rows:,} rows, 8 quasi-identifiers, k = 10", source, repeat, parameters)


def wide(scratch: Path, rows: int, repeat: int) -> None:
    """The hospital with twenty more columns that are published as they are: numbers, dates and texts."""
    import duckdb

    plain, source = scratch / f"hospital_{rows}.parquet", scratch / f"wide_{rows}.parquet"
    if not plain.exists():
        write_hospital(plain, rows)
    kinds = ["(h % 1000)::INTEGER", "(h % 100003) / 100.0::DOUBLE", "DATE '2000-01-01' + (h % 9000)::INTEGER"]
    kinds.append("'text ' || (h % 500)")
    names = [f"more_{i}" for i in range(_PASSED)]
    if not source.exists():
        more = ", ".join(
            kinds[i % len(kinds)].replace("h %", f"hash(n, {i}) %") + f" AS {names[i]}" for i in range(_PASSED)
        )
        with duckdb.connect() as connection:
            connection.execute(
                f"COPY (SELECT * EXCLUDE (n), {more} FROM "
                "(SELECT *, row_number() OVER () AS n FROM read_parquet($source))) TO $target (FORMAT parquet)",
                {"source": str(plain), "target": str(source)},
            )
    parameters = {**PARAMETERS, "k": 10, "suppression_limit": 0.0, "algorithm": "mondrian"}
    parameters["insensitive"] = [*parameters.get("insensitive", []), *names]
    files(scratch, f"hospital with {_PASSED} more columns, {rows:,} rows, k = 10", source, repeat, parameters)


def floats(scratch: Path, rows: int, repeat: int) -> None:
    """Four columns in which every value is another."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = scratch / f"floats_{rows}.parquet"
    if not source.exists():
        rng = np.random.default_rng(20060)
        pq.write_table(pa.table({f"x{j}": rng.normal(size=rows) for j in range(4)}), source)
    for bounds in ("grid", "cut"):
        parameters = {"quasi_identifiers": [f"x{j}" for j in range(4)], "k": 10, "bounds": bounds}
        name = f"floats, {rows:,} rows x 4 columns, all distinct, bounds {bounds}, k = 10"
        files(scratch, name, source, repeat, {**parameters, "algorithm": "mondrian"})


def large(data: Path, scratch: Path, rows: int, repeat: int) -> None:
    """Varied rows of ADULT, many of which repeat."""
    source = scratch / f"varied_{rows}.parquet"
    if not source.exists():
        varied(data, source, rows)
    parameters = {"quasi_identifiers": COLUMNS, "hierarchies": hierarchies(data, COLUMNS), "k": 10}
    files(scratch, f"varied ADULT, {rows:,} rows, k = 10", source, repeat, {**parameters, "algorithm": "mondrian"})


def adult(data: Path, repeat: int) -> None:
    """Seconds of the search and of the whole call, all compiled and read before; and the loss by kind of cell."""
    import duckanon
    from duckanon.algorithms import Mondrian

    print("\nADULT, 8 quasi-identifiers; seconds of search and whole call at k = 10; mean NCP at k = 5, 10, 50")
    for name, own in CELLS.items():
        given = dict(own)
        ordered = tuple(c for c in COLUMNS if c != "age") if given.pop("ordered", False) else ()
        seconds, losses = [], []
        for k in (5, 10, 50):
            for _ in range(repeat):
                start = time.perf_counter()
                with duckanon.anonymize(
                    data / "data.parquet",
                    quasi_identifiers=COLUMNS,
                    hierarchies=hierarchies(data, COLUMNS),
                    k=k,
                    algorithm=Mondrian(ordered=ordered),
                    **given,
                ) as release:
                    whole = time.perf_counter() - start
                    if k == 10:
                        seconds.append((release.engine.progress.seconds["search"], whole))
                    loss = mean_ncp(release, given.get("output") == "set")
            losses.append(f"{loss:.3f}")
        search, whole = (min(s[i] for s in seconds) for i in range(2))
        print(f"    {name:<70} {search:.3f} s {whole:.2f} s   {' / '.join(losses)}")


def mean_ncp(release: Any, sets: bool) -> float:
    """Return the mean over cells: width by range of numbers, values by values of the domain (one value: 0) of others.

    A set counts the values that it has, everything else those that it stands for.
    """
    import pyarrow.compute as pc
    from sqlglot import exp

    from duckanon.engine.sql.relations import col, table

    engine, found = release.engine, release.relations

    def rows(name: str, *columns: str) -> list[tuple[Any, ...]]:
        fetched = engine.arrow(exp.select(*(col(c) for c in columns)).from_(table(found.table(name))))
        return list(zip(*(fetched.column(c).to_pylist() for c in columns), strict=True))

    sizes = dict(rows("classes", "class_id", "n"))
    domain = {
        a: (kind, leaves, lo, hi)
        for a, kind, leaves, lo, hi in rows("domain", "attribute", "kind", "leaves", "lo", "hi")
    }
    total = 0.0
    for class_id, attribute, leaves, lo, hi in rows("class_cells", "class_id", "attribute", "leaves", "lo", "hi"):
        kind, every, low, high = domain[attribute]
        if kind == "ordered":
            total += sizes[class_id] * (hi - lo) / (high - low)
        elif not sets and leaves > 1:
            total += sizes[class_id] * leaves / every
    if sets:
        names = [a.name for a in release.plan.roles.quasi_identifiers]
        members = engine.arrow(exp.select("*").from_(table(found.table("members"))))
        for j, name in enumerate(names):
            if domain[name][0] != "ordered":
                pairs = (
                    members.select(["class_id", f"c_{j}"])
                    .group_by("class_id")
                    .aggregate([(f"c_{j}", "count_distinct")])
                )
                counts = zip(
                    pairs.column("class_id").to_pylist(), pairs.column(f"c_{j}_count_distinct").to_pylist(), strict=True
                )
                total += sum(sizes[c] * n / domain[name][1] for c, n in counts if n > 1)
    return total / (pc.sum(list(sizes.values())).as_py() * len(domain))


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", choices=["hospital", "low", "wide", "floats", "varied", "adult"])
    parser.add_argument("--folder", type=Path, help="where to keep the files (default: a temporary folder)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        scratch = options.folder or Path(temporary)
        if options.only in (None, "hospital"):
            for rows in options.rows:
                hospital(scratch, rows, options.repeat)
        for name, bench in (("low", low), ("wide", wide)):
            if options.only in (None, name):
                for rows in options.rows:
                    bench(scratch, rows, options.repeat)
        if options.only in (None, "floats"):
            floats(scratch, 1_000_000, options.repeat)
        if options.only in (None, "varied"):
            large(options.data / "adult", scratch, 3_000_000, options.repeat)
        if options.only in (None, "adult"):
            adult(options.data / "adult", options.repeat)


if __name__ == "__main__":
    main()
