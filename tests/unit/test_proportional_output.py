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
from duckanon.errors import UnsupportedError
from duckanon.utility import AnonymousEncoder


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


def test_it_is_for_partitions() -> None:
    with pytest.raises(UnsupportedError, match="output='proportional'"):
        duckanon.anonymize(people(1), quasi_identifiers=["age"], k=2, algorithm="datafly", output="proportional")
