"""Codes of many rows are packed into words; the release is the same as with one column for each code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sqlglot import exp

import duckanon
from duckanon.algorithms import Mondrian
from duckanon.engine.sql.relations import col, table
from duckanon.recoding import coded_rows, regions
from duckanon.recoding.coded_rows import RowCoder

# 6 columns of 11 bits each: 5 of them fill 55 bits of one word, the sixth begins another; x4 takes its highest bits.
WIDE = [f"x{j}" for j in range(6)]


def people(rows: int = 1500, values: int = 2048) -> pa.Table:
    rng = np.random.default_rng(64)
    columns: dict[str, Any] = {}
    for name in WIDE:
        own = np.concatenate([np.arange(min(values, rows)), rng.integers(0, values, max(0, rows - values))])
        columns[name] = rng.permutation(own)
    texts = np.array(["a", "b", "c", "d"])
    missing = rng.random(rows) < 0.05
    return pa.table(
        {
            **columns,
            "town": pa.array(texts[rng.integers(0, 4, rows)], mask=missing),
            "ill": texts[rng.integers(0, 4, rows)],
            "who": rng.integers(0, rows // 2, rows),
        }
    )


def found(source: pa.Table, **options: Any) -> dict[str, Any]:
    given = {"quasi_identifiers": [*WIDE, "town"], "insensitive": ["ill"], "k": 5, "seed": 3, **options}
    with duckanon.anonymize(source, **given) as release:
        members = exp.select("*").from_(table(release.relations.table("members"))).order_by(exp.var("ALL"))
        return {
            "rows": release.to_arrow().to_pylist(),
            "found": release.summary()["found"],
            "members": release.engine.rows(members),
        }


CASES: list[dict[str, Any]] = [
    {},
    {"insensitive": [], "sensitive": ["ill"], "l": 2},
    {"entity_key": "who"},
    {"algorithm": Mondrian(relaxed=True)},
    {"algorithm": Mondrian(choose_dim="information_gain", target=["ill"])},
    {"algorithm": Mondrian(budget=400)},
    {"within": ["town"]},
]


@pytest.fixture
def packed(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Rows count as many; the list says of each call whether codes shared words."""
    asked: list[bool] = []
    honest = RowCoder.rows

    def rows(self: RowCoder, expected: int) -> coded_rows.CodedRows:
        made = honest(self, expected)
        asked.append(made.words is not None)
        return made

    monkeypatch.setattr(RowCoder, "rows", rows)
    return asked


def made_many(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (coded_rows, regions):
        monkeypatch.setattr(module, "MANY_ROWS", 1)


@pytest.mark.parametrize("options", CASES, ids=str)
@pytest.mark.thinned(3)
def test_shared_words_give_the_same_release(
    options: dict[str, Any], packed: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = people()
    plain = found(source, **options)
    made_many(monkeypatch)
    assert found(source, **options) == plain
    assert packed == [False, True]


def test_few_combinations_are_counted(packed: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    source = people(rows=3000, values=2)
    plain = found(source)
    made_many(monkeypatch)
    assert found(source) == plain
    assert packed == [False, True]


def test_codes_are_those_of_the_values(monkeypatch: pytest.MonkeyPatch) -> None:
    made_many(monkeypatch)
    source = people(rows=2500)
    seen: list[Any] = []
    honest = RowCoder.rows

    def rows(self: RowCoder, expected: int) -> coded_rows.CodedRows:
        made = honest(self, expected)
        assert [word for word, _, _ in self.bits] == [0, 0, 0, 0, 0, 1, 0]
        own = exp.select(*self.codes, col("ill")).from_(table(made.table))
        seen.append(self.engine.arrow(own))
        return made

    monkeypatch.setattr(RowCoder, "rows", rows)
    duckanon.anonymize(source, quasi_identifiers=[*WIDE, "town"], insensitive=["ill"], k=5).close()
    (codes,) = seen
    # Codes are numbers in the order of the values, here from 0 on.
    for j, name in enumerate(WIDE):
        assert codes.column(j).to_pylist() == source.column(name).to_pylist()
    towns = zip(source.column("town").to_pylist(), codes.column(len(WIDE)).to_pylist(), strict=True)
    assert sorted(set(towns), key=lambda pair: str(pair[0])) == [(None, 4), ("a", 0), ("b", 1), ("c", 2), ("d", 3)]
