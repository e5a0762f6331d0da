"""``k_anonymous`` and ``l_diverse`` say what ``duckanon.check`` says, need no plugin, and refuse wrong arguments."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import duckdb
import pytest

import duckanon

from .conftest import Project
from .rendered import CompilerError, render

pytestmark = pytest.mark.dbt

ODD = 'the "zip", b;--'
KEYS = [ODD, "a", "key_1"]


def random_table(con: duckdb.DuckDBPyConnection, name: str, seed: int) -> None:
    """Few values, so that some classes are large; NULL, NaN and texts that differ by case among them."""
    dice = random.Random(seed)
    rows = dice.choice([1, 5, 20, 60])
    quoted = '"' + ODD.replace('"', '""') + '"'
    con.execute(f"CREATE TABLE {name} (a DOUBLE, {quoted} VARCHAR, key_1 INTEGER, s VARCHAR, person INTEGER)")
    for _ in range(rows):
        con.execute(
            f"INSERT INTO {name} VALUES (?, ?, ?, ?, ?)",
            [
                dice.choice([None, 0.0, 1.5, float("nan")][: dice.randint(1, 4)]),
                dice.choice([None, "x", "X", "é", ""][: dice.randint(1, 5)]),
                dice.choice([1, 1, 1, 2]),
                dice.choice([None, "flu", "gout", "cold"][: dice.randint(1, 4)]),
                dice.choice([None, *range(rows)]),
            ],
        )


def promises(seed: int) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Return tests, their arguments, and those of ``check`` that mean the same."""
    dice = random.Random(1000 + seed)
    k, l, entropy = dice.randint(1, 6), dice.randint(1, 3), dice.choice([1, 1.5, 2.0, 2.7])  # noqa: E741
    return [
        ("k_anonymous", {"k": k}, {"k": k}),
        ("k_anonymous", {"k": k, "entity_key": "person"}, {"k": k, "entity_key": "person"}),
        ("l_diverse", {"l": l, "sensitive": "s"}, {"l": l, "sensitive": ["s"]}),
        (
            "l_diverse",
            {"l": entropy, "sensitive": "s", "kind": "entropy"},
            {"models": [f"entropy_l_diversity(l={entropy})"], "sensitive": ["s"]},
        ),
    ]


def test_they_agree_with_check(tmp_path: Path) -> None:
    project = Project.make(tmp_path / "clinic", plugin=False, settings="settings: {default_collation: nocase}")
    expected: dict[str, int] = {}
    tables = []
    with duckdb.connect(str(project.database)) as con:
        for seed in range(5):
            table = f"t{seed}"
            random_table(con, table, seed)
            tests = []
            for i, (test, given, arguments) in enumerate(promises(seed)):
                every = {"quasi_identifiers": KEYS, **given}
                settings = {"name": f"{table}_{i}", "config": {"severity": "warn"}, "arguments": every}
                tests.append({f"duckanon.{test}": settings})
                (found,) = duckanon.check(table, quasi_identifiers=KEYS, connection=con, **arguments)
                expected[f"{table}_{i}"] = found.violating_classes
            tables.append({"name": table, "data_tests": tests})
    # JSON is YAML.
    project.write("models/sources.yml", json.dumps({"sources": [{"name": "raw", "schema": "main", "tables": tables}]}))
    project.deps()
    assert {name: one.failures for name, one in project.dbt("test").items()} == expected, project.output
    assert {count > 0 for count in expected.values()} == {True, False}


def test_no_rows_hold(tmp_path: Path) -> None:
    project = Project.make(tmp_path / "clinic", plugin=False)
    project.model("none", "select 1 as a, 2 as s where false")
    project.write(
        "models/tests.yml",
        """
models:
  - name: none
    data_tests:
      - duckanon.k_anonymous: {arguments: {quasi_identifiers: [a], k: 5}}
      - duckanon.l_diverse: {arguments: {quasi_identifiers: [a], sensitive: s, l: 5}}
""",
    )
    project.deps()
    assert [one.status for one in project.dbt("build").values()] == ["success", "pass", "pass"]


WRONG = {
    "text k": ("k_anonymous", {"k": "5 or 1=1"}, "k must be an integer of at least 1"),
    "zero k": ("k_anonymous", {"k": 0}, "k must be an integer of at least 1"),
    "true k": ("k_anonymous", {"k": True}, "k must be an integer of at least 1"),
    "one key": ("k_anonymous", {"quasi_identifiers": "a"}, "quasi_identifiers must be a list of columns"),
    "no keys": ("k_anonymous", {"quasi_identifiers": []}, "quasi_identifiers must be a list of columns"),
    "number as key": ("k_anonymous", {"quasi_identifiers": [1]}, "every quasi-identifier must be the name of a column"),
    "empty entity": ("k_anonymous", {"entity_key": ""}, "entity_key must be the name of a column"),
    "half l": ("l_diverse", {"l": 1.5}, "l must be an integer"),
    "small l": ("l_diverse", {"l": 0.5, "kind": "entropy"}, "l must be a number"),
    "text l": ("l_diverse", {"l": "2", "kind": "entropy"}, "l must be a number"),
    "kind": ("l_diverse", {"kind": "recursive"}, "kind must be"),
    "two columns": ("l_diverse", {"sensitive": ["s"]}, "sensitive must be the name of a column"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments_are_refused(case: str) -> None:
    test, wrong, words = WRONG[case]
    right = {"k": 2} if test == "k_anonymous" else {"l": 2, "sensitive": "s"}
    render(test, model="t", quasi_identifiers=["a"], **right)
    with pytest.raises(CompilerError, match=words):
        render(test, **{"model": "t", "quasi_identifiers": ["a"], **right, **wrong})


def test_wrong_arguments_stop_dbt_before_it_runs(tmp_path: Path) -> None:
    project = Project.make(tmp_path / "clinic", plugin=False)
    project.model("t", "select 1 as a, 2 as s")
    wrong = "duckanon.k_anonymous: {arguments: {quasi_identifiers: [a], k: '5 or 1=1'}}"
    project.write("models/tests.yml", f"models:\n  - name: t\n    data_tests:\n      - {wrong}\n")
    project.deps()
    assert project.dbt("build") == {}
    assert "k_anonymous: k must be an integer of at least 1." in project.output


@pytest.mark.parametrize("collation", ["", "nocase"])
@pytest.mark.parametrize("seed", range(30))
def test_the_same_without_dbt(seed: int, collation: str) -> None:
    with duckdb.connect() as con:
        random_table(con, "t", seed)
        con.execute(f"SET default_collation = '{collation}'")
        for test, given, arguments in promises(seed):
            sql = render(test, model="t", quasi_identifiers=KEYS, **given)
            (found,) = duckanon.check("t", quasi_identifiers=KEYS, connection=con, **arguments)
            rows = con.execute(sql).fetchall()
            assert len(rows) == found.violating_classes
            assert all(isinstance(cell, int | float) for row in rows for cell in row)


def test_zero_and_its_negative_can_be_told_apart() -> None:
    with duckdb.connect() as con:
        con.execute("CREATE TABLE t AS SELECT unnest([0.0::DOUBLE, '-0.0'::DOUBLE]) AS a")
        assert con.execute(render("k_anonymous", model="t", quasi_identifiers=["a"], k=2)).fetchall() == [(1,), (1,)]
