"""``k_anonymous`` and ``l_diverse`` say what ``duckanon.check`` says, need no plugin, and refuse wrong arguments."""

from __future__ import annotations

import random
from pathlib import Path

import duckdb
import pytest

import duckanon

from .conftest import Project

pytestmark = pytest.mark.dbt

ODD = 'the "zip", b;--'
TABLES = 10


def random_table(con: duckdb.DuckDBPyConnection, name: str, seed: int) -> None:
    """Few values, so that some classes are large; NULL, texts that differ by case, and -0.0 among them."""
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


def test_they_agree_with_check(tmp_path: Path) -> None:
    settings = "settings: {default_collation: nocase}"
    project = Project.make(tmp_path / "clinic", plugin=False, settings=settings)
    expected: dict[str, int] = {}
    declared = ["sources:", "  - name: raw", "    schema: main", "    tables:"]
    keys = [ODD, "a", "key_1"]
    listed = "quasi_identifiers: ['the \"zip\", b;--', a, key_1]"
    with duckdb.connect(str(project.database)) as con:
        for seed in range(TABLES):
            name, dice = f"t{seed}", random.Random(1000 + seed)
            random_table(con, name, seed)
            declared += [f"      - name: {name}", "        data_tests:"]
            k, l, entropy = dice.randint(1, 6), dice.randint(1, 3), dice.choice([1, 1.5, 2.0, 2.7])  # noqa: E741
            cases = {
                "k": (f"k_anonymous: {{@}}, k: {k}", {"k": k}),
                "persons": (f"k_anonymous: {{@}}, k: {k}, entity_key: person", {"k": k, "entity_key": "person"}),
                "l": (f"l_diverse: {{@}}, l: {l}, sensitive: s", {"l": l, "sensitive": ["s"]}),
                "entropy": (
                    f"l_diverse: {{@}}, l: {entropy}, sensitive: s, kind: entropy",
                    {"models": [f"entropy_l_diversity(l={entropy})"], "sensitive": ["s"]},
                ),
            }
            for label, (test, arguments) in cases.items():
                kind, _, given = test.partition(": ")
                given = given.replace("{@}", listed)
                declared += [
                    f"          - duckanon.{kind}:",
                    f"              name: {name}_{label}",
                    "              config: {severity: warn}",
                    f"              arguments: {{{given}}}",
                ]
                (found,) = duckanon.check(name, quasi_identifiers=keys, connection=con, **arguments)
                expected[f"{name}_{label}"] = found.violating_classes
    project.write("models/sources.yml", "\n".join(declared) + "\n")
    project.deps()
    found = {name: one.failures for name, one in project.dbt("test").items()}
    assert found == expected, project.output
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


def test_wrong_arguments_are_refused(tmp_path: Path) -> None:
    project = Project.make(tmp_path / "clinic", plugin=False)
    project.model("t", "select 1 as a, 2 as s")
    cases = {
        "text_k": ("k_anonymous", "{quasi_identifiers: [a], k: '5 or 1=1'}", "k must be an integer of at least 1"),
        "zero_k": ("k_anonymous", "{quasi_identifiers: [a], k: 0}", "k must be an integer of at least 1"),
        "true_k": ("k_anonymous", "{quasi_identifiers: [a], k: true}", "k must be an integer of at least 1"),
        "one_key": ("k_anonymous", "{quasi_identifiers: a, k: 2}", "quasi_identifiers must be a list of columns"),
        "no_keys": ("k_anonymous", "{quasi_identifiers: [], k: 2}", "quasi_identifiers must be a list of columns"),
        "odd_key": ("k_anonymous", "{quasi_identifiers: [1], k: 2}", "must be the name of a column"),
        "half_l": ("l_diverse", "{quasi_identifiers: [a], sensitive: s, l: 1.5}", "l must be an integer"),
        "small_l": ("l_diverse", "{quasi_identifiers: [a], sensitive: s, l: 0.5, kind: entropy}", "l must be a number"),
        "kind": ("l_diverse", "{quasi_identifiers: [a], sensitive: s, l: 2, kind: recursive}", "kind must be"),
        "listed": ("l_diverse", "{quasi_identifiers: [a], sensitive: [s], l: 2}", "sensitive must be the name"),
        "unknown": ("k_anonymous", "{quasi_identifiers: [b], k: 2}", 'Referenced column "b" not found'),
    }
    lines = ["models:", "  - name: t", "    data_tests:"]
    for name, (test, arguments, _) in cases.items():
        lines += [f"      - duckanon.{test}:", f"          name: {name}", f"          arguments: {arguments}"]
    project.write("models/tests.yml", "\n".join(lines) + "\n")
    project.deps()
    found = project.dbt("build")
    for name, (_, _, words) in cases.items():
        assert found[name].status == "error", name
        assert words in found[name].message, found[name].message
