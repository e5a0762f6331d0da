"""Probabilistic k-anonymity from end to end: the published table, the gate and the report."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import duckanon
from duckanon.algorithms import Probabilistic
from duckanon.algorithms.permutation.permuting import Permuted
from duckanon.errors import InfeasibleError, ParameterError, PrivacyViolation, UnsupportedError
from duckanon.recoding import permutation as permuted
from duckanon.release.stages import partition as dividing
from duckanon.release.verify import NOT_CHECKABLE, verify_export

QUASI = ["age", "sex", "zip", "height", "born"]


def people(rows: int = 240, seed: int = 1) -> pa.Table:
    random = np.random.default_rng(seed)
    age = random.integers(18, 90, rows)
    ill = np.where(random.random(rows) < age / 120, "gout", random.choice(["flu", "cold"], rows))
    return pa.table(
        {
            "age": pa.array(age, pa.int16(), mask=random.random(rows) < 0.05),
            "sex": pa.array(random.choice(["m", "f"], rows)),
            "zip": pa.array(random.choice(["10115", "20095", "80331", None], rows), pa.string()),
            "height": pa.array(random.normal(170, 12, rows)),
            "born": pa.array([dt.date(2020, 1, 1) - dt.timedelta(days=int(a) * 365) for a in age]),
            "ill": pa.array(ill),
            "visit": pa.array(np.arange(rows), pa.int64()),
            "person": pa.array(np.arange(rows) // 2, pa.int64()),
        }
    )


def release(data: pa.Table | None = None, **changes: Any) -> duckanon.Release:
    given: dict[str, Any] = {
        "quasi_identifiers": QUASI,
        "sensitive": ["ill"],
        "insensitive": ["visit"],
        "k": 4,
        "algorithm": "probabilistic",
    }
    return duckanon.anonymize(people() if data is None else data, **(given | changes))


def values(table: pa.Table, name: str) -> Counter[Any]:
    return Counter(table.column(name).to_pylist())


# What is published


@pytest.mark.parametrize("groups", ["mdav", "mondrian", "tdg", "knn_clustering"])
@pytest.mark.thinned(4)
def test_every_column_keeps_its_type_and_its_values(groups: str) -> None:
    data = people()
    with release(data, algorithm=Probabilistic(groups=groups)) as found:
        table = found.to_arrow()
        for name in [*QUASI, "ill", "visit"]:
            assert table.schema.field(name).type == data.schema.field(name).type
            assert values(table, name) == values(data, name)
        assert "person" not in table.column_names
        # The columns that are published as they are stay together, and the quasi-identifiers do not stay with them.
        assert values_of(table, ["ill", "visit"]) == values_of(data, ["ill", "visit"])
        assert values_of(table, [*QUASI, "visit"]) != values_of(data, [*QUASI, "visit"])


def values_of(table: pa.Table, names: list[str]) -> Counter[Any]:
    return Counter(zip(*(table.column(n).to_pylist() for n in names), strict=True))


def test_blocks_stay_together() -> None:
    data = people()
    with release(data) as found:
        blocks = found.summary()["permutation"]["blocks"]
        assert sorted(n for b in blocks for n in b) == sorted(QUASI)
        assert sorted(len(b) for b in blocks) == [2, 3]
        for block in blocks:
            assert values_of(found.to_arrow(), block) == values_of(data, block)


def test_suppressed_rows_are_missing_and_nothing_else() -> None:
    """One ward of three rows cannot be grouped with others."""
    data = people(60).append_column("ward", pa.array(["a"] * 57 + ["b"] * 3))
    with release(data, within=["ward"], suppression_limit=0.1) as found:
        assert found.rows_suppressed == 3
        for name in [*QUASI, "ill", "ward"]:
            assert values(found.to_arrow(), name) == values(data.slice(0, 57), name)
    with pytest.raises(InfeasibleError):
        release(data, within=["ward"])


def test_as_many_rows_as_k_are_one_group() -> None:
    with release(people(8), k=8) as found:
        assert found.summary()["found"]["class_size"]["min"] == 8


def test_equal_rows_and_single_columns_do_not_loop() -> None:
    data = pa.table({"q": ["a"] * 12, "r": [None] * 12, "s": list("xyzxyzxyzxyz")})
    for quasi in (["q"], ["q", "r"]):
        with release(data, quasi_identifiers=quasi, sensitive=["s"], insensitive=[], k=3) as found:
            assert values_of(found.to_arrow(), [*quasi, "s"]) == values_of(data, [*quasi, "s"])


def test_a_table_that_is_divided_part_by_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Probabilistic, "budget", 60)
    data = people()
    with release(data) as found:
        assert found.searched["parts"] > 1
        for name in [*QUASI, "ill"]:
            assert values(found.to_arrow(), name) == values(data, name)


def test_seed_and_threads() -> None:
    def rows(seed: int | None, threads: int, backwards: bool = False) -> list[Any]:
        data = people()
        if backwards:
            data = data.take(np.arange(data.num_rows)[::-1])
        import duckdb

        with duckdb.connect(config={"threads": threads}) as con, release(data, seed=seed, connection=con) as found:
            return list(zip(*(c.to_pylist() for c in found.to_arrow().columns), strict=True))

    first = rows(7, 1)
    assert first == rows(7, 2) == rows(7, 2, backwards=True)
    assert Counter(first) != Counter(rows(8, 1))
    assert Counter(rows(None, 1)) != Counter(rows(None, 1))


# The gate


def mutant(change: Any) -> Any:
    """Return a permutation of which ``change`` alters the places, after they were permuted properly."""
    proper = Probabilistic.permuted

    def altered(self: Probabilistic, items: Any, parts: Any, units: Any, label: int) -> Permuted:
        found = proper(self, items, parts, units, label)
        places = found.places.copy()
        change(self, items, parts, places)
        return Permuted(places, found.redrawn)

    return altered


def identity(self: Any, items: Any, parts: Any, places: Any) -> None:
    places[:] = items.places


def one_block_stays(self: Any, items: Any, parts: Any, places: Any) -> None:
    for j in self.preparation.blocks[0]:
        places[:, j] = items.places[:, j]


def one_group_stays(self: Any, items: Any, parts: Any, places: Any) -> None:
    members = parts.order[parts.starts[0] : parts.starts[1]]
    places[members] = items.places[members]


def between_groups(self: Any, items: Any, parts: Any, places: Any) -> None:
    """Swap a whole block of a row with one of another group."""
    block = list(self.preparation.blocks[0])
    a = parts.order[parts.starts[0]]
    other = parts.order[parts.starts[1] :]
    b = other[(places[other][:, block] != places[a][block]).any(axis=1)][0]
    places[np.ix_([a, b], block)] = places[np.ix_([b, a], block)]


def torn(self: Any, items: Any, parts: Any, places: Any) -> None:
    """Turn one column of a block within every group."""
    j = self.preparation.blocks[0][0]
    for start, end in zip(parts.starts[:-1], parts.starts[1:], strict=True):
        members = parts.order[start:end]
        places[members, j] = places[np.roll(members, 1), j]


def invented(self: Any, items: Any, parts: Any, places: Any) -> None:
    places[0, 0] = (places[0, 0] + 1) % (items.places[:, 0].max() + 1)


@pytest.mark.parametrize(
    "change", [identity, one_block_stays, one_group_stays, between_groups, torn, invented], ids=lambda c: c.__name__
)
@pytest.mark.thinned(3)
def test_the_gate_catches_a_wrong_permutation(change: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Probabilistic, "permuted", mutant(change))
    with pytest.raises(PrivacyViolation, match="probabilistic_k_anonymity is broken"):
        release()


@pytest.mark.parametrize("redraw", [True, False])
def test_the_gate_catches_a_permutation_that_never_happened(redraw: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Probabilistic, "permuted", mutant(identity))
    with pytest.raises(PrivacyViolation):
        release(algorithm=Probabilistic(redraw=redraw))


def test_the_gate_catches_groups_that_are_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    proper = Probabilistic.prepared_with
    monkeypatch.setattr(Probabilistic, "prepared_with", lambda self, found: proper(self, permuted.replace(found, k=1)))
    proper_judge = dividing.judge
    monkeypatch.setattr(dividing, "judge", lambda *given: (proper_judge(*given)[1] > 0, proper_judge(*given)[1]))
    with pytest.raises(PrivacyViolation, match="probabilistic_k_anonymity is broken"):
        release()


def test_the_gate_counts_persons(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every person has four rows that are alike, so that groups of rows are often those of one person."""
    data = pa.concat_tables([people(60)] * 4)
    with release(data, entity_key="person") as found:
        assert found.summary()["found"]["class_size"]["min"] >= 4
    monkeypatch.setattr(dividing.RowCoder, "items", without_entity(dividing.RowCoder.items))
    with pytest.raises(PrivacyViolation, match="probabilistic_k_anonymity is broken"):
        release(data, entity_key="person")


def without_entity(proper: Any) -> Any:
    from dataclasses import replace

    return lambda self, *given: replace(proper(self, *given), entity=None)


def test_the_gate_ties_the_evidence_to_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """The evidence is of a proper permutation, the file of another."""
    proper = permuted.PermutedRows.rows

    def other(self: Any, extra: Any, keyed: bool = False) -> Any:
        return _nulled(proper(self, extra, keyed), "r_0")

    monkeypatch.setattr(permuted.PermutedRows, "rows", other)
    with pytest.raises(PrivacyViolation, match="does not hold the rows that were checked"):
        release()


def _nulled(query: Any, name: str) -> Any:
    from sqlglot import exp

    # The type of a column stays: NULLIF(x, x) is a NULL of it.
    nothing = {c.alias_or_name: exp.Nullif(this=c.unalias(), expression=c.unalias().copy()) for c in query.selects}
    selects = [exp.alias_(nothing[name], name) if c.alias_or_name == name else c for c in query.selects]
    return query.select(*selects, append=False)


def test_the_gate_ties_the_evidence_to_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    proper = permuted.PermutedRows._kept

    def other(self: Any, *columns: Any) -> Any:
        query = proper(self, *columns)
        return _nulled(query, "s_1") if "s_1" in query.named_selects else query

    monkeypatch.setattr(permuted.PermutedRows, "_kept", other)
    monkeypatch.setattr(permuted.PermutedRows, "_valued", _outer(permuted.PermutedRows._valued))
    with pytest.raises(PrivacyViolation, match="are not those of the source"):
        release()


def _outer(proper: Any) -> Any:
    def left(self: Any, inner: Any, codes: Any, more: Any) -> Any:
        query = proper(self, inner, codes, more)
        for join in query.args["joins"]:
            join.set("side", "LEFT")
        return query

    return left


def test_blocks_of_one_column_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(permuted, "blocks_of", lambda bits: tuple((j,) for j in range(len(bits))))
    with pytest.raises(PrivacyViolation, match="one column alone"):
        release()


# What is asked for, and what is said


def test_k_means_the_probabilistic_promise() -> None:
    with release() as found:
        assert [c.model for c in found.checks] == ["probabilistic_k_anonymity"]
        assert "k_anonymity" not in {p["model"] for p in found.summary()["promise"]}
    with release(algorithm=None, k=None, models=["probabilistic_k_anonymity(4)"]) as found:
        assert found.plan.algorithm.name == "probabilistic"


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"l": 2}, UnsupportedError, "cannot enforce l_diversity. It permutes"),
        ({"t": 0.3}, UnsupportedError, "cannot enforce t_closeness"),
        ({"models": ["k_anonymity(4)"], "k": None}, UnsupportedError, "cannot enforce k_anonymity"),
        ({"algorithm": "mondrian", "models": ["probabilistic_k_anonymity(4)"]}, UnsupportedError, "cannot enforce"),
        ({"bounds": "tight"}, ParameterError, "publishes values as they are"),
        ({"algorithm": "probabilistic(groups='datafly')"}, ParameterError, "must be mdav, mondrian"),
        ({"algorithm": "probabilistic(dissimilarity='gover')"}, ParameterError, "Did you mean 'gower'"),
    ],
)
def test_what_cannot_be_done_is_refused(changes: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error) as raised:
        release(**changes)
    assert words in str(raised.value)


def test_what_needs_classes_says_that_there_are_none() -> None:
    with release() as found:
        for look in (found.classes, lambda: duckanon.risk(found), lambda: duckanon.privacy(found)):
            with pytest.raises(UnsupportedError, match="not visible by design"):
                look()
        with pytest.raises(UnsupportedError, match="not visible by design"):
            duckanon.compare([found, found])
        with pytest.raises(ParameterError, match="needs classes that can be seen"):
            found.measure(["discernibility"])
        assert {m.metric for m in found.measure()} == {"mutual_information_loss", "bivariate_correlation"}
    with pytest.raises(UnsupportedError, match="cannot be checked on a table"):
        duckanon.check(people(), quasi_identifiers=QUASI, models=["probabilistic_k_anonymity(4)"])


def test_the_report_says_what_is_promised_and_what_is_not() -> None:
    with release(entity_key="person") as found:
        for kind in ("md", "html"):
            text = found.report(kind)
            assert "permuted within groups" in text
            assert "k-anonymity of what can be seen" in text
            assert "not visible in the release" in text
            assert "Classes" not in text
        assert 0 < found.summary()["permutation"]["linkage"] <= 1 / 4


def test_a_seed_is_nowhere_but_its_stamp_is(tmp_path: Path) -> None:
    with release(seed=918273645) as found:
        found.write(tmp_path / "out.parquet", report=("json", "md", "html"))
    for path in tmp_path.iterdir():
        if path.suffix != ".parquet":
            assert "918273645" not in path.read_text()
    told = json.loads((tmp_path / "out.manifest.json").read_text())
    assert told["seeded"]
    assert any("seeded" in note for note in told["notes"])


def test_files_alone_cannot_tell(tmp_path: Path) -> None:
    with release() as found:
        found.write(tmp_path / "out.parquet")
    checked = verify_export(tmp_path / "out.parquet")
    assert checked.intact
    (promise,) = checked.exports[0].promises
    assert promise.state == NOT_CHECKABLE
    assert "cannot be seen" in promise.reason


def test_the_sql_door() -> None:
    call = "anonymize{}('people', quasi_identifiers := ['age', 'sex'], sensitive := ['ill'], k := 4, algorithm := {})"
    with duckanon.connect() as con:
        con.register("arrow", people(60))
        con.execute("CREATE TABLE people AS FROM arrow")
        for name in ("'probabilistic'", "'probabilistic(groups=''tdg'')'"):
            assert con.execute(f"SELECT count(*) FROM {call.format('', name)}").fetchone() == (60,)
        with pytest.raises(Exception, match="not visible by design"):
            con.execute(f"FROM {call.format('_classes', name)}")
