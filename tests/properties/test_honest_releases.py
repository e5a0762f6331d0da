"""An honest release is never refused: whatever the table, the algorithm, the output and the way rows are compared.

The gate must refuse every lie, so that it is easily too strict: about a type, an order of values, an end of a range, a
label that looks like something else. Here nobody lies, and each refusal is a defect.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import duckdb
import pytest
from columns_drawn import LONG, VALUES, Ladder, ladders
from hypothesis import given
from hypothesis import strategies as st

import duckanon
from duckanon.errors import DuckanonError, EngineError, PrivacyViolation
from duckanon.io.sinks import CsvFile, DuckDBTable, ParquetFile, ParquetFolder
from duckanon.recoding import coded_rows, regions
from duckanon.release import gate, truth
from tests.effort import share

LEVELS = ["datafly", "datafly_shuffled", "optimal", "ola", "incognito", "samarati", "mingen", "best_effort"]
REGIONS = ["mondrian", "mondrian", "mondrian(relaxed=true)", "mdav", "v_mdav", "tdg", "k_member", "kaca", "greedy"]
REGIONS += ["knn_clustering"]
OUTPUTS = ["interval"] * 3 + ["bounds", "struct", "midpoint", "mean", "geometric_mean", "median", "mode", "medoid"]
OUTPUTS += ["lca", "set", "proportional"]
MODELS: list[dict[str, Any]] = [{}, {}, {"l": 2}, {"t": 0.9}, {"models": ["distinct_l_diversity(2)"]}]
TARGETS = ["none", "none", "parquet", "csv", "table", "folder"]


@st.composite
def cells(draw: st.DrawFn, kind: str, rows: int) -> list[str]:
    few = [value for value in VALUES[kind] if value != LONG]
    chosen = draw(st.lists(st.sampled_from([*few, *few, "NULL"]), min_size=1, max_size=len(few) + 1))
    return [draw(st.sampled_from(chosen)) for _ in range(rows)]


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    rows, kinds = draw(st.integers(4, 24)), st.sampled_from(list(VALUES))
    quasi = [(kind, draw(cells(kind, rows))) for kind in draw(st.lists(kinds, min_size=1, max_size=3))]
    passed = [(kind, draw(cells(kind, rows))) for kind in draw(st.lists(kinds, max_size=2))]
    algorithm = draw(st.sampled_from([*LEVELS, *REGIONS, *REGIONS, "probabilistic"]))
    people = draw(st.integers(0, 2)) == 0
    trees = [draw(ladders(kind, texts)) if draw(st.booleans()) else Ladder(None) for kind, texts in quasi]
    return {
        "quasi": quasi,
        "passed": passed,
        "ills": [draw(st.sampled_from(["'flu'", "'cold'", "'gout'", "NULL"])) for _ in range(rows)],
        "persons": [draw(st.sampled_from(["'ann'", "'bob'", "'cid'", "NULL"])) for _ in range(rows)]
        if people
        else None,
        "trees": trees,
        "algorithm": algorithm,
        "output": draw(st.sampled_from(OUTPUTS)),
        "bounds": draw(st.sampled_from(["grid", "cut", "tight"])),
        "iterative": draw(st.integers(0, 3)) == 0,
        "within": len(quasi) > 1 and draw(st.integers(0, 5)) == 0,
        "k": draw(st.integers(2, 4)),
        "limit": draw(st.sampled_from([0.0, 0.1, 0.5, 1.0])),
        "models": draw(st.sampled_from(MODELS)),
        "target": draw(st.sampled_from(TARGETS)),
        "many": draw(st.booleans()),
        "parts": draw(st.integers(0, 3)) == 0,
    }


def asked(case: dict[str, Any]) -> dict[str, Any]:
    names = [f"q{j}" for j in range(len(case["quasi"]))]
    trees = {n: t.hierarchy for n, t in zip(names, case["trees"], strict=True) if t.hierarchy is not None}
    wanted: dict[str, Any] = {
        "quasi_identifiers": names,
        "sensitive": ["ill"],
        "insensitive": [f"p{i}" for i in range(len(case["passed"]))],
        "hierarchies": trees,
        "on_unknown": "top",
        "k": case["k"],
        "algorithm": case["algorithm"],
        **case["models"],
    }
    if case["persons"]:
        wanted["entity_key"] = "who"
    if case["within"]:
        wanted |= {"within": names[-1:], "hierarchies": {n: t for n, t in trees.items() if n != names[-1]}}
    if case["algorithm"] in REGIONS:
        wanted |= {"output": case["output"]}
        return wanted | ({"bounds": case["bounds"]} if case["algorithm"].startswith("mondrian") else {})
    wanted["suppression_limit"] = case["limit"]
    if case["algorithm"] == "probabilistic":
        return wanted
    if case["output"] == "proportional":
        wanted["output"] = "proportional"
    return wanted | ({"iterative": True} if case["iterative"] else {})


def table_of(case: dict[str, Any], connection: duckdb.DuckDBPyConnection) -> None:
    columns = {f"q{j}": column for j, column in enumerate(case["quasi"])}
    columns |= {f"p{i}": column for i, column in enumerate(case["passed"])} | {"ill": ("VARCHAR", case["ills"])}
    columns["who"] = "VARCHAR", case["persons"] or ["'nobody'"] * len(case["ills"])
    lines = zip(*(texts for _, texts in columns.values()), strict=True)
    rows = ", ".join(
        f"({', '.join(line)})"
        for line in ((f"({c})::{k}" for c, (k, _) in zip(line, columns.values(), strict=True)) for line in lines)
    )
    connection.execute(f"CREATE TABLE t AS SELECT * FROM (VALUES {rows}) AS v({', '.join(columns)})")


def release_of(case: dict[str, Any], folder: Path) -> bool:
    """Return whether there is a release; an error that says why there is none is an answer, a refusal is not."""
    with duckdb.connect(config={"threads": 1}) as connection, pytest.MonkeyPatch.context() as patch:
        connection.execute("SET TimeZone = 'UTC'")
        table_of(case, connection)
        if case["many"]:
            for module in (gate, regions, coded_rows):
                patch.setattr(module, "MANY_ROWS", 0)
        if case["parts"]:
            patch.setattr(truth, "_OF_CELL", 2**30)
            patch.setattr(truth, "_OF_CLASS", 2**30)
        try:
            release = duckanon.anonymize("t", connection=connection, **asked(case))
        except (EngineError, PrivacyViolation):
            raise
        except DuckanonError:
            return False
        with release:
            release.verify_rows(release.query())
            sinks = {
                "parquet": lambda: ParquetFile(folder / "out" / "r.parquet"),
                "csv": lambda: CsvFile(folder / "out" / "r.csv"),
                "table": lambda: DuckDBTable(folder / "r.duckdb", "people", folder / "reports"),
                "folder": lambda: ParquetFolder(folder / "parts", ["ill"]),
            }
            if case["target"] in sinks:
                try:
                    sinks[case["target"]]().publish(release, reports={}, run={})
                except (EngineError, PrivacyViolation):
                    raise
                except DuckanonError:
                    # A target that has no place for a type says so.
                    pass
    return True


@given(cases())
@share(1.5)
def test_an_honest_release_is_never_refused(case: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        release_of(case, Path(folder))


PLAIN: dict[str, Any] = {
    "quasi": [("INTEGER", ["41", "42", "43", "0"] * 5), ("VARCHAR", ["'007'", "'a,\"b\"'", "'{a, b}'", "NULL"] * 5)],
    "passed": [("DOUBLE", ["'nan'", "'-0.0'", "0.1", "NULL"] * 5)],
    "ills": ["'flu'", "'cold'", "'gout'", "NULL", "'flu'"] * 4,
    "persons": None,
    "trees": [Ladder(None), Ladder(None)],
    "bounds": "grid",
    "iterative": False,
    "within": False,
    "k": 3,
    "limit": 1.0,
    "models": {},
    "target": "parquet",
    "parts": False,
}


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("algorithm", [*LEVELS, *dict.fromkeys(REGIONS)])
@pytest.mark.thinned(6)
def test_every_algorithm_releases_a_plain_table(algorithm: str, many: bool, tmp_path: Path) -> None:
    """So that the property above says something of each of them."""
    assert release_of(PLAIN | {"algorithm": algorithm, "many": many, "output": "interval"}, tmp_path)
