"""Data frames and Arrow tables: what is published is what they show, or the column is refused by name."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import duckanon
from duckanon.errors import DataError
from duckanon.io.arrow_rows import arrow_of_pandas


def passed(data: Any) -> list[Any]:
    """Return the values of y, as they are passed through."""
    with duckanon.anonymize(data, quasi_identifiers=["x"], insensitive=["y"], k=2) as release:
        return release.to_arrow().column("y").to_pylist()


def test_numbers_of_128_bits_in_polars_are_decimals_or_texts() -> None:
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"x": [1, 1, 1], "y": pl.Series([2**100, -(2**100), None], dtype=pl.Int128)})
    assert Counter(passed(frame)) == Counter([Decimal(2**100), Decimal(-(2**100)), None])
    frame = pl.DataFrame({"x": [1, 1, 1], "y": pl.Series([2**127 - 1, -(2**127 - 1), None], dtype=pl.Int128)})
    assert Counter(passed(frame)) == Counter([str(2**127 - 1), str(-(2**127 - 1)), None])


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_missing_value_does_not_make_floats_of_the_integers_of_pandas(missing: float | None) -> None:
    pd = pytest.importorskip("pandas")
    whole = [*range(20, 40), missing]
    frame = pd.DataFrame({"age": whole, "weight": [70.5, *whole[1:]], "far": [2.0**53, *whole[1:]], "none": missing})
    rows = arrow_of_pandas(frame)
    assert rows.schema.field("age").type == pa.int64()
    assert rows.column("age").to_pylist() == [*range(20, 40), None]
    assert {str(rows.schema.field(name).type) for name in ("weight", "far")} == {"double"}


def test_the_grid_of_whole_numbers_is_the_same_with_a_missing_value() -> None:
    pd = pytest.importorskip("pandas")
    shown = []
    for more in ([], [float("nan")] * 5):
        people = pd.DataFrame({"age": [*range(20, 80), *more]})
        with duckanon.anonymize(people, quasi_identifiers=["age"], k=5) as release:
            shown.append(set(release.to_arrow().column("age").to_pylist()) - {None})
    assert shown[0] == shown[1]


@pytest.mark.parametrize("kind", ["Float64", "double[pyarrow]"])
def test_floats_that_may_be_missing_stay_floats(kind: str) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"age": pd.array([20.0, 30.0, None], dtype=kind)})
    assert arrow_of_pandas(frame).schema.field("age").type == pa.float64()


@pytest.mark.parametrize("algorithm", ["mondrian", "mdav", "ola"])
def test_whole_numbers_have_one_grid_however_they_are_stored(algorithm: str) -> None:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    whole, none = [float(x) for x in range(20, 60)] * 3, [None] * 6
    frames = {
        "integers": pd.DataFrame({"age": [int(x) for x in whole]}),
        "integers with NaN": pd.DataFrame({"age": [int(x) for x in whole] + [float("nan")] * 6}),
        "Int64": pd.DataFrame({"age": pd.array([int(x) for x in whole] + none, dtype="Int64")}),
        "int64[pyarrow]": pd.DataFrame({"age": pd.array([int(x) for x in whole] + none, dtype="int64[pyarrow]")}),
        "floats": pd.DataFrame({"age": whole}),
        "double[pyarrow]": pd.DataFrame({"age": pd.array(whole + none, dtype="double[pyarrow]")}),
        "polars": pl.DataFrame({"age": whole + none}),
        "decimals": pa.table({"age": pa.array([Decimal(int(x)) for x in whole], pa.decimal128(6, 2))}),
    }
    origins = {}
    for name, frame in frames.items():
        limit = {"suppression_limit": 0.2}
        with duckanon.anonymize(frame, quasi_identifiers=["age"], k=6, algorithm=algorithm, seed=1, **limit) as release:
            origins[name] = release.levels[0].origin
    assert set(origins.values()) == {"made: nested round grid of width 5, 10, 50"}, origins


@pytest.mark.parametrize("value", [-(2**127), 2**127 - 1, 10**38])
@pytest.mark.parametrize("nested", [False, True])
def test_decimals_of_more_digits_than_their_type_are_refused_by_name(value: int, nested: bool) -> None:
    """As DuckDB itself gives HUGEINT to Arrow."""
    with duckdb.connect() as connection:
        own = f"'{value}'::HUGEINT"
        query = f"SELECT 1 AS x, {f'[{own}]' if nested else own} AS y FROM range(2)"
        data = connection.sql(query).to_arrow_table()
    with pytest.raises(DataError, match="The column 'y' has numbers of more digits than its Arrow type") as told:
        passed(data)
    assert str(value) not in str(told.value)


@pytest.mark.parametrize("kind", ["list", "object"])
def test_columns_of_polars_that_cannot_be_read_are_named(kind: str) -> None:
    pl = pytest.importorskip("polars")
    wide = pl.Series([[1], [2]], dtype=pl.List(pl.Int128))
    own = wide if kind == "list" else pl.Series([object(), object()], dtype=pl.Object)
    with pytest.raises(DataError, match="The column 'y' of the data frame is"):
        passed(pl.DataFrame({"x": [1, 1], "y": own}))


def test_periods_of_pandas_are_published_as_they_are_shown() -> None:
    pd = pytest.importorskip("pandas")
    periods = pd.Series(pd.period_range("2020-01", periods=2, freq="M"))
    rows = pd.DataFrame(
        {"x": [1, 1, 1], "y": pd.concat([periods, pd.Series([pd.NaT])], ignore_index=True).astype("period[M]")}
    )
    assert sorted(map(str, passed(rows))) == ["2020-01", "2020-02", "None"]
    with duckanon.anonymize(rows, quasi_identifiers=["y"], k=1) as release:
        assert release.rows_in == 3


@pytest.mark.parametrize("kind", ["complex", "mixed", "sparse"])
def test_columns_of_pandas_that_arrow_cannot_hold_are_named(kind: str) -> None:
    pd = pytest.importorskip("pandas")
    own = {"complex": [1 + 2j, 2j], "mixed": [1, "a"], "sparse": pd.arrays.SparseArray([1, 2])}[kind]
    with pytest.raises(DataError, match="The column 'y' of the data frame is of mixed types, or of a type"):
        passed(pd.DataFrame({"x": [1, 1], "y": own}))


def test_durations_keep_their_nanoseconds_or_are_refused_by_name() -> None:
    whole = pa.table({"x": [1, 1], "y": pa.array([1_000, 2_000], pa.duration("ns"))})
    assert sorted(passed(whole)) == ["00:00:00.000001", "00:00:00.000002"]
    for own in (pa.array([1, 2], pa.duration("ns")), pa.array([[1], [2]], pa.list_(pa.duration("ns")))):
        with pytest.raises(DataError, match="The column 'y' has durations in nanoseconds"):
            passed(pa.table({"x": [1, 1], "y": own}))


def test_types_of_arrow_that_the_database_does_not_have() -> None:
    halves = pa.table({"x": [1, 1], "y": pa.array([0.5, 1.5]).cast(pa.float16())})
    assert sorted(passed(halves)) == [0.5, 1.5]
    wide = pa.table({"x": [1, 1], "y": pa.array([Decimal(10**60)] * 2, pa.decimal256(70, 0))})
    for data in (wide, pa.RecordBatchReader.from_batches(wide.schema, wide.to_batches())):
        with pytest.raises(DataError, match="The column 'y' has an Arrow type that the database cannot read"):
            passed(data)
