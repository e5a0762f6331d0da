"""privacy and risk compared with counts by hand."""

from __future__ import annotations

import traceback
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import duckanon
from duckanon.assess.disclosure import with_risk
from duckanon.errors import DataError, DuckanonError, ParameterError, RoleError
from tests.effort import share

PEOPLE = pa.table(
    {
        "age": [30, 30, 30, None, None, 50],
        "sex": ["f", "f", "f", "m", "m", "m"],
        "person": [1, 1, 2, 3, None, 4],
    }
)
cells = st.one_of(st.none(), st.integers(0, 3))
tables = st.lists(st.tuples(cells, cells), min_size=1, max_size=30)


def _table(rows: list[tuple[int | None, int | None]]) -> pa.Table:
    return pa.table({"a": pa.array([r[0] for r in rows], pa.int64()), "b": pa.array([r[1] for r in rows], pa.int64())})


def k_of(table: pa.Table) -> dict[str, Any]:
    """Return the row of k-anonymity."""
    (row,) = (row for row in table.to_pylist() if row["model"] == "k_anonymity")
    return row


def test_privacy_has_a_row_for_k_anonymity() -> None:
    row = k_of(duckanon.privacy(PEOPLE, quasi_identifiers=["age", "sex"]))
    assert (row["attribute"], row["parameter"], row["value"], row["unit"]) == (None, "k", 1.0, "rows")
    assert [row[key] for key in ("classes", "smallest", "largest", "singletons")] == [3, 1, 3, 1]


def test_privacy_counts_persons() -> None:
    row = k_of(duckanon.privacy(PEOPLE, quasi_identifiers=["sex"], entity_key="person"))
    assert (row["unit"], row["value"], row["largest"]) == ("persons", 2.0, 3)


@share(0.5)
@given(tables)
def test_privacy_is_what_check_says(rows: list[tuple[int | None, int | None]]) -> None:
    data = _table(rows)
    k = int(k_of(duckanon.privacy(data, quasi_identifiers=["a", "b"]))["value"])
    assert k == min(Counter(rows).values())
    assert duckanon.check(data, quasi_identifiers=["a", "b"], k=k)[0].holds
    assert not duckanon.check(data, quasi_identifiers=["a", "b"], k=k + 1)[0].holds


@share(0.5)
@given(tables, st.sampled_from([0.0, 0.1, 0.2, 1 / 3, 0.5, 1.0]))
def test_prosecutor_by_hand(rows: list[tuple[int | None, int | None]], threshold: float) -> None:
    found = duckanon.risk(_table(rows), quasi_identifiers=["a", "b"], threshold=threshold)
    sizes = Counter(rows)
    risks = [1 / sizes[row] for row in rows]
    assert found.prosecutor.at_risk == pytest.approx(sum(r > threshold for r in risks) / len(rows))
    assert found.prosecutor.maximum == pytest.approx(max(risks))
    assert found.prosecutor.average == pytest.approx(sum(risks) / len(rows))
    assert found.prosecutor.minimum == pytest.approx(min(risks))
    assert found.prosecutor.affected == pytest.approx(risks.count(max(risks)) / len(rows))
    assert found.sample_unique == pytest.approx(sum(r == 1 for r in risks) / len(rows))
    assert found.journalist is None
    assert found.marketer == found.prosecutor.average


@share(0.5)
@given(tables, tables)
def test_journalist_and_marketer_by_hand(
    rows: list[tuple[int | None, int | None]], others: list[tuple[int | None, int | None]]
) -> None:
    found = duckanon.risk(_table(rows), quasi_identifiers=["a", "b"], population=_table(rows + others), threshold=0.3)
    sample, population = Counter(rows), Counter(rows + others)
    marketer = sum(sample[c] / population[c] for c in sample) / len(rows)
    assert found.journalist is not None
    assert found.journalist.at_risk == pytest.approx(sum(1 / population[r] > 0.3 for r in rows) / len(rows))
    assert found.journalist.maximum == pytest.approx(1 / min(population[c] for c in sample))
    assert found.journalist.average == pytest.approx(max(len(sample) / sum(population[c] for c in sample), marketer))
    smallest, largest = (pick(population[c] for c in sample) for pick in (min, max))
    assert found.journalist.minimum == pytest.approx(1 / largest)
    assert found.journalist.affected == pytest.approx(sum(population[r] == smallest for r in rows) / len(rows))
    assert found.marketer == pytest.approx(marketer)
    assert found.population_unique == pytest.approx(sum(population[r] == 1 for r in rows) / len(rows))


def test_a_threshold_of_one_fifth_allows_classes_of_five() -> None:
    data = pa.table({"a": [1] * 5})
    assert duckanon.risk(data, quasi_identifiers=["a"], threshold=0.2).prosecutor.at_risk == 0


def test_a_release_knows_its_roles_and_persons() -> None:
    data = pa.table({"age": [30, 31, 32, 60, 61, 62], "person": [1, 1, 2, 3, 4, 5]})
    with duckanon.anonymize(data, quasi_identifiers=["age"], entity_key="person", k=2) as release:
        found = duckanon.risk(release)
        assert (found.unit, found.smallest, found.members) == ("persons", 2, 5)
        row = k_of(duckanon.privacy(release))
        assert (row["unit"], row["value"]) == ("persons", 2.0)
        assert k_of(duckanon.privacy(release.to_arrow(), quasi_identifiers=["age"]))["value"] == 3.0


def test_labels_beside_numbers_are_compared_as_text() -> None:
    released = pa.table({"age": ["[30, 40)", "[30, 40)"]})
    with pytest.raises(DataError, match="1 of 1 classes"):
        duckanon.risk(released, quasi_identifiers=["age"], population=pa.table({"age": [31, 32]}))
    population = pa.table({"AGE": ["[30, 40)"] * 4})
    assert duckanon.risk(released, quasi_identifiers=["age"], population=population).marketer == 0.25


def test_numbers_of_other_types_are_the_same_numbers() -> None:
    population = pa.table({"age": [30.0, 30.0]})
    assert duckanon.risk(pa.table({"age": [30]}), quasi_identifiers=["age"], population=population).marketer == 0.5


def test_quotes_and_sql_in_names_just_work() -> None:
    name = 'a"; DROP TABLE x; --'
    assert duckanon.risk(pa.table({name: [1, 1]}), quasi_identifiers=[name]).smallest == 2
    assert len(duckanon.privacy(pa.table({name: [1, 1], "s'": [1, 2]}), quasi_identifiers=[name], sensitive=["s'"]))


def test_bad_input_is_refused() -> None:
    empty = pa.table({"a": pa.array([], pa.int64())})
    for verb in (duckanon.risk, duckanon.privacy):
        with pytest.raises(DataError, match="no rows"):
            verb(empty, quasi_identifiers=["a"])
        with pytest.raises(RoleError, match="Did you mean 'age'"):
            verb(PEOPLE, quasi_identifiers=["agee"])
        with pytest.raises(RoleError, match="Name the quasi-identifiers"):
            verb(PEOPLE)
    for threshold in (-0.1, 1.1, True, "0.2"):
        with pytest.raises(ParameterError, match="threshold"):
            duckanon.risk(PEOPLE, quasi_identifiers=["age"], threshold=threshold)  # type: ignore[arg-type]


def test_risk_is_plain_values() -> None:
    found = duckanon.risk(PEOPLE, quasi_identifiers=["age", "sex"], population=PEOPLE).to_dict()
    prosecutor = {"at_risk": 1.0, "maximum": 1.0, "average": 0.5, "minimum": 1 / 3, "affected": 1 / 6}
    assert found["prosecutor"] == pytest.approx(prosecutor)
    assert found["journalist"]["maximum"] == 1.0


@share(0.5)
@given(tables)
def test_every_row_beside_its_class_and_risk(rows: list[tuple[int | None, int | None]]) -> None:
    sizes = Counter(rows)
    found = with_risk(_table(rows), quasi_identifiers=["a", "b"]).read_all()
    assert found.column_names == ["a", "b", "_ec_size", "_risk"]
    seen = [tuple(row.values()) for row in found.to_pylist()]
    assert Counter(seen) == Counter((*row, sizes[row], 1 / sizes[row]) for row in rows)


def test_rows_with_risk_count_persons() -> None:
    found = with_risk(PEOPLE, quasi_identifiers=["sex"], entity_key="person").read_all()
    assert set(zip(found["sex"].to_pylist(), found["_ec_size"].to_pylist(), strict=True)) == {("f", 2), ("m", 3)}


def test_rows_with_risk_of_every_kind_of_source(tmp_path: Path) -> None:
    pq.write_table(PEOPLE, tmp_path / "p.parquet")
    with duckdb.connect() as con:
        con.execute(f"CREATE TABLE people AS FROM '{tmp_path}/p.parquet'")
        for data in ("people", "SELECT * FROM people", tmp_path / "p.parquet"):
            found = with_risk(data, quasi_identifiers=["sex"], connection=con).read_all()
            assert found["_ec_size"].to_pylist() == [3] * 6
    stream = pa.RecordBatchReader.from_batches(PEOPLE.schema, PEOPLE.to_batches())
    assert with_risk(stream, quasi_identifiers=["sex"]).read_all().num_rows == 6
    with duckanon.anonymize(PEOPLE, quasi_identifiers=["sex"], insensitive=["age"], k=3) as release:
        found = with_risk(release).read_all()
        assert found.column_names == ["age", "sex", "_ec_size", "_risk"]
        assert found["_ec_size"].to_pylist() == [3] * 6


def test_columns_that_are_there_already_are_kept() -> None:
    taken = pa.table({"_EC_SIZE": [7, 7], "_risk": ["x", "x"]})
    found = with_risk(taken, quasi_identifiers=["_risk"]).read_all()
    assert found.column_names == ["_EC_SIZE", "_risk", "_ec_size_", "_risk_"]
    assert found["_ec_size_"].to_pylist() == [2, 2]


def test_a_stream_that_fails_quotes_nothing() -> None:
    canary = "Canary-Q7-Doe"
    with duckdb.connect() as con:
        con.execute(f"CREATE TABLE t AS SELECT CASE WHEN i = 9 THEN '{canary}' ELSE '1' END AS a FROM range(10) r(i)")
        con.execute("CREATE VIEW v AS SELECT a::INTEGER AS a FROM t")
        with pytest.raises(DataError) as caught:
            with_risk("v", quasi_identifiers=["a"], connection=con).read_all()
    assert canary not in "".join(traceback.format_exception(caught.value))


def test_rows_with_risk_refuse_what_is_wrong() -> None:
    with pytest.raises(RoleError, match="Did you mean 'age'"):
        with_risk(PEOPLE, quasi_identifiers=["agee"])
    with pytest.raises(RoleError, match="Name the quasi-identifiers"):
        with_risk(PEOPLE)


def test_a_population_of_wider_numbers() -> None:
    """A number that only HUGEINT holds is nobody of the data; it must not stop the look."""
    found = duckanon.risk(
        "SELECT 1::BIGINT AS a FROM range(2)",
        quasi_identifiers=["a"],
        population="SELECT 1::HUGEINT AS a FROM range(4) UNION ALL SELECT 170141183460469231731687303715884105727",
    )
    assert found.journalist is not None
    assert found.journalist.maximum == 0.25


def test_a_closed_release_has_no_rows_any_more() -> None:
    release = duckanon.anonymize(PEOPLE, quasi_identifiers=["sex"], k=2)
    release.close()
    with pytest.raises(DuckanonError, match="closed"):
        with_risk(release)
