"""Classes that tell a sensitive value are counted on the published rows, and shown wherever a release is."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import duckanon
from duckanon.report import render
from duckanon.report.history import cautions

QUASI = ["age", "sex"]


def people(rows: int, seed: int) -> pa.Table:
    draw = random.Random(seed)
    return pa.table(
        {
            "id": [draw.randrange(rows // 2 + 1) for _ in range(rows)],
            "age": [draw.randint(18, 90) for _ in range(rows)],
            "sex": [draw.choice("fm") for _ in range(rows)],
            "ill": [draw.choice(["flu", "flu", "gout", None]) for _ in range(rows)],
            "paid": [draw.choice([1.5, float("nan"), None, 0.0, -0.0]) for _ in range(rows)],
            "stage": pa.array([draw.choice("ab") for _ in range(rows)]).dictionary_encode(),
        }
    )


def counted(rows: pa.Table, sensitive: list[str]) -> dict[str, tuple[int, int]]:
    """Return the classes, and those with one value, of each sensitive column: in Python, from the rows alone."""
    lines = rows.to_pylist()
    found = {}
    for name in sensitive:
        values: dict[Any, set[str]] = defaultdict(set)
        for line in lines:
            value = line[name]
            # NaN is one value, and so are the two zeros.
            text = repr(abs(value)) if isinstance(value, float) and not value else repr(value)
            values[tuple(line[q] for q in QUASI)].add(text)
        found[name] = (len(values), sum(len(v) == 1 for v in values.values()))
    return found


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "options",
    [
        {"k": 2},
        {"k": 2, "l": 2},
        {"k": 2, "l": 1},
        {"k": 2, "entity_key": "id"},
        {"k": 2, "algorithm": "ola", "suppression_limit": 0.3},
        {"k": 2, "algorithm": "mdav"},
        {"k": 2, "output": {"age": "mean"}},
    ],
    ids=str,
)
def test_classes_of_one_value_are_counted_as_in_python(options: dict[str, Any], seed: int) -> None:
    sensitive = ["stage"] if "l" in options else ["ill", "paid", "stage"]
    with duckanon.anonymize(people(60, seed), quasi_identifiers=QUASI, sensitive=sensitive, seed=1, **options) as made:
        rows, found = made.to_arrow(), {h.attribute: (h.classes, h.homogeneous) for h in made.homogeneity}
    assert found == counted(rows, sensitive)
    if options.get("l") == 2:
        assert not found["stage"][1]


def test_a_file_of_many_rows_is_counted_by_hashes() -> None:
    rows = people(300, 4)
    many = pa.concat_tables([rows] * 2000)
    with duckanon.anonymize(many, quasi_identifiers=QUASI, sensitive=["ill", "stage"], k=4000, seed=1) as made:
        shown = pa.table(made).group_by([*QUASI, "ill", "stage"]).aggregate([])
        assert {h.attribute: (h.classes, h.homogeneous) for h in made.homogeneity} == counted(shown, ["ill", "stage"])


ONE_EACH = pa.table({"age": [20, 21, 22, 60, 61, 62], "sex": list("fffmmm"), "ill": ["flu"] * 3 + ["gout"] * 3})
WORDS = "2 of 2 classes have one value of 'ill'"


def test_a_release_that_tells_says_so_in_every_form(tmp_path: Path) -> None:
    with duckanon.anonymize(ONE_EACH, quasi_identifiers=QUASI, sensitive=["ill"], k=3) as made:
        summary = made.summary()
        assert WORDS in repr(made)
        assert summary["homogeneity"] == [{"attribute": "ill", "classes": 2, "homogeneous": 2}]
        assert WORDS in cautions(summary)[0]
        assert WORDS in made.report("md").replace("\\'", "'")
        page = made.report("html")
        assert page.count("2 of 2 classes have one value of") == 1
        assert "gout" not in page + render(summary, "json") + render(summary, "md")
        written = made.write(tmp_path / "out.parquet")
    stored = json.loads(next(p for p in written["reports"] if p.suffix == ".json").read_text(encoding="utf-8"))
    assert stored["homogeneity"] == summary["homogeneity"]


def test_nothing_is_warned_of_where_no_class_tells() -> None:
    mixed = ONE_EACH.set_column(2, "ill", pa.array(["flu", "gout"] * 3))
    with duckanon.anonymize(mixed, quasi_identifiers=QUASI, sensitive=["ill"], k=3) as made:
        assert "warning" not in repr(made)
        assert not cautions(made.summary())
        assert "Classes with one value of ill | 0" in made.report("md")
    with duckanon.anonymize(ONE_EACH, quasi_identifiers=QUASI, k=3) as made:
        assert not made.homogeneity
        assert "homogeneity" not in made.summary()


def test_groups_that_cannot_be_seen_are_not_counted() -> None:
    options: dict[str, Any] = {"k": 3, "algorithm": "probabilistic", "seed": 1}
    with duckanon.anonymize(ONE_EACH, quasi_identifiers=QUASI, sensitive=["ill"], **options) as made:
        assert not made.homogeneity
