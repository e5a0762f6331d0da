"""``output="proportional"``: the distribution of original values in each class, made again from the rows."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import duckanon
from duckanon import Hierarchy
from duckanon.assess.utility import AnonymousEncoder
from duckanon.errors import UnsupportedError
from duckanon.jobs.nights import require_freezable
from duckanon.plan.plan import Plan

AGES = Hierarchy.intervals(width=5, factors=[2])


def people(seed: int, n: int = 80) -> pa.Table:
    dice = random.Random(seed)
    return pa.table(
        {
            "id": list(range(n)),
            "age": [dice.choice([None, *range(17, 60)]) for _ in range(n)],
            "ward": [dice.choice(["a", "b, c", "d", None]) for _ in range(n)],
            "ill": [dice.choice("xyz") for _ in range(n)],
        }
    )


@pytest.mark.parametrize(("seed", "algorithm"), [(1, "mondrian"), (2, "k_member"), (3, "tdg")])
def test_shares_are_those_of_the_class(seed: int, algorithm: str, tmp_path: Path) -> None:
    source = people(seed)
    made = duckanon.anonymize(
        source,
        quasi_identifiers=["age", "ward"],
        sensitive=["ill"],
        insensitive=["id"],
        k=5,
        l=2,
        algorithm=algorithm,
        output="proportional",
        seed=seed,
    )
    with made as release:
        release.write(tmp_path / "r.parquet")
        report = release.report("md")
        first = release.used[0].materialise([x for x in source.column("age").to_pylist() if x is not None])
        checks = release.checks
    assert all(check.holds for check in checks)
    written = pq.read_table(tmp_path / "r.parquet")
    assert written.schema.field("ward").type == pa.map_(pa.string(), pa.float64())
    group = {row[0]: row[1] for row in first.preview(1000)}
    raw = {row["id"]: row for row in source.to_pylist()}
    classes: dict[str, list[int]] = {}
    for row in written.to_pylist():
        classes.setdefault(str((row["age"], row["ward"])), []).append(row["id"])
    for row in written.to_pylist():
        members = [raw[i] for i in classes[str((row["age"], row["ward"]))]]
        assert len(members) >= 5
        wards = Counter("*" if m["ward"] is None else m["ward"] for m in members)
        ages = Counter("*" if m["age"] is None else group[str(m["age"])] for m in members)
        for name, counted in (("ward", wards), ("age", ages)):
            assert dict(row[name]) == pytest.approx({key: n / len(members) for key, n in counted.items()})
            assert [key for key, _ in row[name]] == sorted(key for key, _ in row[name])
    assert "a share of 1 is the value of every member" in report
    assert "in regions, as proportional" in report


def test_the_file_is_read_as_it_was_published(tmp_path: Path) -> None:
    source = people(4)
    made = duckanon.anonymize(
        source, quasi_identifiers=["age", "ward"], sensitive=["ill"], k=5, output="proportional", seed=4
    )
    with made as release:
        release.write(tmp_path / "r.parquet")
        table, frame, polar = release.to_arrow(), release.to_pandas(), release.to_polars()
    columns = ["age", "ward"]
    encoder = AnonymousEncoder("proportional", columns=columns).fit(tmp_path / "r.parquet")
    names = encoder.get_feature_names_out().tolist()
    found = encoder.transform(tmp_path / "r.parquet").toarray()
    for row, cells in zip(found, table.to_pylist(), strict=True):
        spread = sum(share for key, share in cells["ward"] if key == "*")
        for key, share in cells["ward"]:
            if key != "*":
                assert row[names.index(f"ward_{key}")] == pytest.approx(share + spread / 3)
    for other in (table, frame, polar, table.slice(7, 30)):
        assert np.allclose(encoder.transform(other).toarray(), found[7:37] if len(other) == 30 else found)
    raw = encoder.transform(source).toarray()
    wards = [i for i, name in enumerate(names) if name.startswith("ward_")]
    ages = [i for i, name in enumerate(names) if name.startswith("age_")]
    known = [value is not None for value in source.column("ward").to_pylist()]
    assert raw[known][:, wards].sum(axis=1).tolist() == [1.0] * sum(known)
    assert (raw[:, ages].max(axis=1) <= 1).all()


# Columns on levels


@pytest.mark.parametrize("persons", [False, True])
@pytest.mark.parametrize("level", [0, 1, 2, 3])
@pytest.mark.thinned(3)
def test_shares_on_every_level(level: int, persons: bool, tmp_path: Path) -> None:
    """Classes are those of the same levels as labels, whose values are counted; numbers on level 0 are themselves."""
    source = people(5, 400)
    given = {
        "quasi_identifiers": ["age", "ward"],
        "sensitive": ["ill"],
        "insensitive": ["id"],
        "hierarchies": {"age": AGES},
        "levels": {"age": level, "ward": 0},
        "algorithm": "datafly",
        "suppression_limit": 1.0,
        "k": 3,
        "l": 2,
        "seed": 5,
    }
    if persons:
        source = source.append_column("who", pa.array([i // 2 for i in range(400)]))
        given["entity_key"] = "who"
    with duckanon.anonymize(source, **given) as release:
        labels = {row["id"]: (row["age"], row["ward"]) for row in release.to_arrow().to_pylist()}
    with duckanon.anonymize(source, **given, output="proportional") as release:
        release.write(tmp_path / "r.parquet")
        assert release.recoding.levels == {"age": level, "ward": 0}
        assert all(check.holds for check in release.checks)
        assert release.classes().num_rows == release.summary()["found"]["classes"] == len(set(labels.values()))
        counted = release.engine.rows(f"SELECT sum(n) FROM {release.relations.table('class_values')}")
        assert counted == [(len(labels),)]
        report = release.report("md")
        with pytest.raises(UnsupportedError, match="whole classes"):
            release.recoding.to_sql()
    written = pq.read_table(tmp_path / "r.parquet").to_pylist()
    assert {row["id"] for row in written} == set(labels)
    raw = {row["id"]: row for row in source.to_pylist()}
    group = {row[0]: row[1] for row in AGES.materialise(list(range(17, 60))).preview(100)}
    classes: dict[tuple[object, object], list[int]] = {}
    for number, own in labels.items():
        classes.setdefault(own, []).append(number)
    for row in written:
        members = [raw[i] for i in classes[labels[row["id"]]]]
        wards = Counter("*" if m["ward"] is None else m["ward"] for m in members)
        ages = Counter(
            "*" if m["age"] is None else str(m["age"]) if level == 0 else group[str(m["age"])] for m in members
        )
        for name, found in (("ward", wards), ("age", ages)):
            assert dict(row[name]) == pytest.approx({key: n / len(members) for key, n in found.items()})
    assert "a share of 1 is the value of every member" in report
    assert f"| {level} of 3 | as proportional, in classes of that level |" in report


def test_labels_beside_shares(tmp_path: Path) -> None:
    made = duckanon.anonymize(
        people(6, 300),
        quasi_identifiers=["age", "ward"],
        k=4,
        hierarchies={"age": AGES},
        levels={"age": 2, "ward": 1},
        algorithm="datafly",
        output={"ward": "proportional"},
    )
    with made as release:
        assert "output: ward as proportional" in release.plan.explain()
        table = release.to_arrow()
    assert table.schema.field("ward").type == pa.map_(pa.string(), pa.float64())
    assert table.schema.field("age").type == pa.string()
    shares = {(row["age"], str(row["ward"])) for row in table.to_pylist()}
    assert len(shares) == len({age for age, _ in shares})


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"iterative": True}, "iterative=True"),
        ({"population": people(1), "models": ["k_map(k=2)"]}, "population"),
        ({"output": "midpoint"}, "regions"),
        ({"bounds": "cut"}, "regions"),
    ],
)
def test_what_levels_cannot_give(more: dict[str, object], message: str) -> None:
    given = {"quasi_identifiers": ["age"], "k": 2, "algorithm": "datafly", "output": "proportional"}
    with pytest.raises(UnsupportedError, match=message):
        duckanon.anonymize(people(1), **(given | more))


def test_classes_that_would_look_alike_are_refused() -> None:
    source = pa.table({"ward": ["a"] * 3 + [None] * 3 + ["new"] * 3})
    wards = Hierarchy.from_table({"l0": ["a", "b"], "l1": ["*", "*"]})
    given = {"quasi_identifiers": ["ward"], "k": 3, "hierarchies": {"ward": wards}, "on_unknown": "top"}
    given |= {"algorithm": "datafly", "levels": {"ward": 0}}
    with pytest.raises(UnsupportedError, match="two classes alike"):
        duckanon.anonymize(source, **given, output="proportional")
    with duckanon.anonymize(source.slice(0, 6), **given, output="proportional") as release:
        assert release.classes().num_rows == 2


def test_shares_cannot_be_frozen() -> None:
    given = {"quasi_identifiers": ["age"], "k": 2, "algorithm": "datafly"}
    require_freezable(Plan.of(people(1), **given))
    with pytest.raises(UnsupportedError, match="cannot be frozen"):
        require_freezable(Plan.of(people(1), **given, output="proportional"))
