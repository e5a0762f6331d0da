"""The split into training and test rows is made once, is repeatable, and keeps persons on one side."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import duckanon
from duckanon.errors import DataError, ParameterError, RoleError
from tests.datasets import earners as people


def ids(table: pa.Table) -> list[int]:
    return table.column("id").to_pylist()


def test_every_row_is_in_one_part_and_in_its_order() -> None:
    table = people(503)
    parts = duckanon.utility.split(table, target="pay", test_size=0.3, seed=5)
    assert sorted(ids(parts.train) + ids(parts.test)) == list(range(503))
    assert ids(parts.train) == sorted(ids(parts.train))
    assert parts.test.num_rows == round(0.3 * 503)
    assert parts.to_dict()["test_rows"] == 151


def test_the_same_seed_divides_alike_and_another_does_not(tmp_path: Path) -> None:
    table = people()
    pq.write_table(table, tmp_path / "people.parquet")
    first = duckanon.utility.split(table, target="pay", seed=1)
    assert ids(duckanon.utility.split(tmp_path / "people.parquet", target="pay", seed=1).test) == ids(first.test)
    assert ids(duckanon.utility.split(table.to_pandas(), target="pay", seed=1).test) == ids(first.test)
    assert ids(duckanon.utility.split(table, target="pay", seed=2).test) != ids(first.test)


def test_values_of_the_target_have_the_same_shares_in_both_parts() -> None:
    table = people(1000, classes=3)
    rare = ["seldom" if i % 50 == 0 else v for i, v in enumerate(table.column("pay").to_pylist())]
    missing = [None if i % 97 == 0 else v for i, v in enumerate(rare)]
    table = table.set_column(table.column_names.index("pay"), "pay", [missing])
    parts = duckanon.utility.split(table, target="PAY", test_size=0.25)
    whole, held = Counter(missing), Counter(parts.test.column("pay").to_pylist())
    assert all(abs(held[value] - 0.25 * whole[value]) < 1 for value in whole)
    assert parts.target == "pay"


def test_a_person_is_in_one_part_only() -> None:
    table = people(400).append_column("person", [[i // 4 for i in range(400)]])
    parts = duckanon.utility.split(table, target="pay", entity_key="person", test_size=0.3)
    train, test = (set(t.column("person").to_pylist()) for t in (parts.train, parts.test))
    assert not train & test
    assert len(test) == 30
    assert parts.test.num_rows == 120
    alone = duckanon.utility.split(table, target="pay", test_size=0.3)
    assert set(alone.train.column("person").to_pylist()) & set(alone.test.column("person").to_pylist())


def test_what_cannot_be_divided_is_refused() -> None:
    for share in (0, 1, -0.1, True, "half"):
        with pytest.raises(ParameterError):
            duckanon.utility.split(people(), target="pay", test_size=share)
    with pytest.raises(ParameterError, match="seed"):
        duckanon.utility.split(people(), target="pay", seed=-1)
    with pytest.raises(RoleError, match="Did you mean 'pay'"):
        duckanon.utility.split(people(), target="pai")
    with pytest.raises(DataError, match="cannot be divided"):
        duckanon.utility.split(people(1), target="pay")
    with pytest.raises(DataError, match="cannot be divided"):
        duckanon.utility.split(people(5).slice(0, 0), target="pay")
