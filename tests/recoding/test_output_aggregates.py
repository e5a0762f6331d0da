"""What is published of the values of a class: medians, geometric means, modes and medoids, made again from the rows."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import duckanon
from duckanon.engine.duckdb.engine import DuckDBEngine
from duckanon.errors import DataError, ParameterError
from duckanon.hierarchy import Hierarchy
from duckanon.jobs import run_job
from duckanon.plan.plan import Plan
from tests.jobs.jobs import fill, write
from tests.recoding.boxes_made import RUN, Cutter, Made, Region

# Straight from their definitions


def median(values: Sequence[Any]) -> Any:
    """The lower median, NULL where NULL is among the values."""
    return None if None in values else sorted(values)[(len(values) - 1) // 2]


def mode(values: Sequence[Any]) -> Any:
    """The most frequent value, the smallest of several, NULL the last of all."""
    count = Counter(values)
    return min((v for v in count if count[v] == max(count.values())), key=lambda v: (v is None, v))


def geometric_mean(values: Sequence[Any]) -> Any:
    return None if None in values else math.exp(math.fsum(math.log(v) for v in values) / len(values))


AGGREGATES: dict[str, Callable[[Sequence[Any]], Any]] = {
    "median": median,
    "mode": mode,
    "geometric_mean": geometric_mean,
}


def sample(rng: random.Random, missing: float, size: int = 200) -> pa.Table:
    def column(values: Callable[[], Any]) -> list[Any]:
        return [None if rng.random() < missing else values() for _ in range(size)]

    day = dt.date(2024, 1, 1)
    return pa.table(
        {
            "n": pa.array(column(lambda: rng.randint(1, 30)), pa.int16()),
            "f": pa.array(column(lambda: rng.choice([0.5, 1.25, 2.0, 7.75, 100.0])), pa.float64()),
            "m": pa.array(column(lambda: Decimal(rng.randint(1, 900)).scaleb(-2)), pa.decimal128(6, 2)),
            "d": pa.array(column(lambda: day + dt.timedelta(rng.randint(0, 40))), pa.date32()),
            "s": pa.array(column(lambda: dt.datetime(2024, 1, 1, rng.randint(0, 23))), pa.timestamp("us")),
            "o": pa.array(column(lambda: dt.time(rng.randint(0, 23), 30)), pa.time64("us")),
            "t": pa.array(column(lambda: rng.choice(["ant", "bee", "cat, big", ""])), pa.string()),
            "b": pa.array(column(lambda: rng.random() < 0.5), pa.bool_()),
            "row": list(range(size)),
        }
    )


MEASURED = ("n", "f", "m", "d", "s", "o")


@pytest.mark.parametrize("missing", [0.0, 0.05])
@pytest.mark.parametrize("bounds", ["grid", "cut", "tight"])
@pytest.mark.parametrize("output", list(AGGREGATES))
@pytest.mark.thinned
def test_every_class_has_what_its_rows_say(output: str, bounds: str, missing: float) -> None:
    data = sample(random.Random(f"{bounds} {missing}"), missing)
    names = data.column_names[:-1]
    able = {"median": MEASURED, "mode": names, "geometric_mean": ("n", "f", "m")}[output]
    options: dict[str, Any] = {"algorithm": "mondrian", "k": 5, "bounds": bounds, "output": output}
    with duckanon.anonymize(data, quasi_identifiers=names, insensitive=["row"], **options) as release:
        assert release.summary()["output"] == dict.fromkeys(able, output)
        published = release.to_arrow()
        release.verify(release.path)
    original = {row["row"]: row for row in data.to_pylist()}
    classes: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in published.to_pylist():
        classes.setdefault(tuple(str(row[name]) for name in names), []).append(row)
    assert len(classes) > 5
    for rows in classes.values():
        for name in able:
            values = [original[row["row"]][name] for row in rows]
            shown, wanted = rows[0][name], AGGREGATES[output](values)
            if output == "geometric_mean" and wanted is not None:
                assert math.isclose(shown, wanted, rel_tol=1e-12), name
            else:
                assert shown == wanted, name
    for name in able:
        kept = published.schema.field(name).type
        numbers = pa.float64() if output == "geometric_mean" else data.schema.field(name).type
        assert kept == numbers or (name == "t" and pa.types.is_string(kept))


# Classes made by hand

FIVES = {"hierarchies": {"q": Hierarchy.intervals(width=5)}}


def typed(engine: DuckDBEngine, values: list[Any], type_name: str) -> pa.Table:
    return engine._connection.sql(f"SELECT unnest($1)::{type_name} AS q", params=[values]).to_arrow_table()


def shown(made: Made, *outputs: str) -> list[list[Any]]:
    return [[row[0] for row in made.written_as(output).shown()] for output in outputs]


def test_ties_go_to_the_smaller_value(engine: DuckDBEngine) -> None:
    data = pa.table({"q": [4, 1, 1, 4, 2, 3, None, None, 9]})
    regions: list[Region] = [("1", "4", RUN), ("2", "3", RUN), ("9", None, 2)]
    made = Made(engine, data, [[0, 1, 2, 3], [4, 5], [6, 7, 8]], {"q": regions}, FIVES)
    assert shown(made, "median", "mode") == [[1, 2, None], [1, 2, None]]
    assert shown(made, "geometric_mean")[0][:2] == [pytest.approx(2), pytest.approx(math.sqrt(6))]


def test_null_is_a_value_of_the_mode_and_no_other(engine: DuckDBEngine) -> None:
    data = pa.table({"q": [7, 7, None, 8, None]})
    made = Made(engine, data, [[0, 1, 2], [3, 4]], {"q": [("7", None, 2), ("8", None, 2)]}, FIVES)
    assert shown(made, "mode", "median", "geometric_mean", "mean") == [[7, 8], *([[None, None]] * 3)]


def test_texts_are_enumerated_as_they_are_published(engine: DuckDBEngine) -> None:
    data = pa.table({"q": ["b", "b", "a", "secret", "c", "c"]})
    regions: list[Region] = [("a", "b", RUN), ("secret", "secret", 0), ("c", "c", 0)]
    classes = [[0, 1, 2], [3], [4, 5]]
    medoids = {"q": ["a", "secret", "c"]}
    made = Made(engine, data, classes, {"q": regions}, {"bounds": "tight"}, suppressed=[1], medoids=medoids)
    for output, wanted in (("mode", ["b", "c"]), ("medoid", ["a", "c"])):
        other = made.written_as(output)
        assert [row[0] for row in other.shown()] == wanted
        (kind,) = [row[1] for row in engine._connection.execute(f"DESCRIBE {other.publish().table}").fetchall()[2:]]
        assert kind == f"ENUM('{wanted[0]}', '{wanted[1]}')"


def test_a_medoid_is_read_from_the_classes(engine: DuckDBEngine) -> None:
    data = pa.table({"a": pa.array([1, 2, 3, None], pa.int16()), "d": [dt.date(2024, 1, i) for i in (1, 2, 3, 4)]})
    regions: dict[str, list[Region]] = {
        "a": [("1", "3", RUN), (None, None, 0)],
        "d": [("2024-01-01", "2024-01-03", RUN), ("2024-01-04", "2024-01-04", 0)],
    }
    medoids = {"a": ["2", None], "d": ["2024-01-02", "2024-01-04"]}
    made = Made(engine, data, [[0, 1, 2], [3]], regions, {"output": "medoid"}, medoids=medoids)
    assert made.shown() == [(2, dt.date(2024, 1, 2)), (None, dt.date(2024, 1, 4))]
    assert made.types() == ["SMALLINT", "DATE"]


def test_a_value_that_its_hierarchy_does_not_know_is_not_shown(engine: DuckDBEngine) -> None:
    for values, type_name, hidden in (
        ([1, 1, 2, 77, 77], "INTEGER", None),
        (["a", "a", "b", "z", "z"], "VARCHAR", "*"),
    ):
        data = typed(engine, values, type_name)
        texts = [str(v) for v in values]
        tree = Hierarchy.from_table(pa.table({"0": texts[:3:2], "1": ["*", "*"]}))
        options = {"hierarchies": {"q": tree}, "on_unknown": "top", "bounds": "cut"}
        regions: list[Region] = [(texts[0], texts[2], RUN), (texts[3], texts[3], RUN)]
        medoids = {"q": [texts[2], texts[3]]}
        made = Made(engine, data, [[0, 1, 2], [3, 4]], {"q": regions}, options, medoids=medoids)
        assert shown(made, "mode", "medoid") == [[values[0], hidden], [values[2], hidden]]
        if type_name == "INTEGER":
            assert shown(made, "median") == [[1, None]]


def test_numbers_that_are_not_finite(engine: DuckDBEngine) -> None:
    data = typed(engine, ["1", "4", "inf", "inf", "nan"], "DOUBLE")
    regions: list[Region] = [("1.0", "inf", RUN), ("inf", "nan", RUN)]
    made = Made(engine, data, [[0, 1, 2], [3, 4]], {"q": regions}, {"bounds": "tight"})
    # They have a place in the order, and no logarithm.
    assert shown(made, "median", "geometric_mean") == [[4.0, math.inf], [pytest.approx(2.0), None]]


MOMENTS = {
    "TIMESTAMP": ["294247-01-10 04:00:54.775806", "290309-12-22 (BC) 00:00:00", "9999-12-31 23:59:59.999999"],
    "TIMESTAMPTZ": ["294247-01-10 04:00:54.775806+00", "2020-02-29 13:05:00.123457+00"],
    "TIMESTAMP_NS": ["2262-04-11 23:47:16.854775806", "1677-09-22 00:12:43.145224193", "2020-02-29 13:05:00.123456789"],
    "TIMESTAMPTZ_NS": ["2262-04-11 23:47:16.854775806+00", "2020-02-29 13:05:00.123456789+00"],
    "DATE": ["5881580-07-10", "5877642-06-25 (BC)"],
    "TIME": ["23:59:59.999999", "24:00:00"],
}


@pytest.mark.parametrize("kind", MOMENTS)
def test_the_mean_of_equal_moments_is_that_moment(kind: str) -> None:
    """However far away: a DOUBLE has too few digits for microseconds of distant years."""
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        told = ", ".join(f"('{moment}')" for moment in MOMENTS[kind])
        connection.execute(f"CREATE TABLE t AS SELECT m::{kind} AS x, m AS was FROM (VALUES {told}) v(m), range(2)")
        given = {"quasi_identifiers": ["x"], "insensitive": ["was"], "k": 2, "connection": connection}
        with duckanon.anonymize("t", output="mean", bounds="tight", **given) as release:
            shown = f"SELECT count(*) FROM '{release.path}' WHERE x = was::{kind}"
            assert connection.execute(shown).fetchone() == (2 * len(MOMENTS[kind]),)


def test_the_mean_of_moments_is_rounded_to_their_unit() -> None:
    with duckdb.connect(config={"threads": 1}) as connection:
        before, after = "'1969-12-31 23:59:59.999998'", "'1970-01-01 00:00:00.000001'"
        connection.execute(f"CREATE TABLE t AS SELECT m::TIMESTAMP AS x FROM (VALUES ({before}), ({after})) v(m)")
        with duckanon.anonymize("t", connection=connection, quasi_identifiers=["x"], output="mean", k=2) as release:
            found = connection.execute(f"SELECT DISTINCT x::VARCHAR FROM '{release.path}'").fetchall()
    assert found == [("1969-12-31 23:59:59.999999",)]


def test_a_geometric_mean_is_never_outside_of_its_values(engine: DuckDBEngine) -> None:
    values = [10.0, 10.0, 1e-300, 1e-300, 1e308, 1e308, 3.3]
    data = pa.table({"q": values})
    regions: list[Region] = [(str(v), str(v), RUN) for v in (10.0, 1e-300, 1e308, 3.3)]
    made = Made(engine, data, [[0, 1], [2, 3], [4, 5], [6]], {"q": regions}, {"bounds": "tight"})
    assert shown(made, "geometric_mean") == [[10.0, 1e-300, 1e308, 3.3]]


def test_the_last_digit_does_not_depend_on_the_other_columns(engine: DuckDBEngine) -> None:
    values = [0.1 * i for i in range(1, 200)] * 2
    found = set()
    for other in ([0] * 398, list(range(398)), list(range(398))[::-1]):
        data = pa.table({"q": values, "r": other})
        regions = {"q": [("0.1", str(max(values)), RUN)], "r": [(str(min(other)), str(max(other)), RUN)]}
        made = Made(engine, data, [list(range(398))], regions, {"output": {"q": "geometric_mean"}, "bounds": "tight"})
        found.add(made.shown()[0][0])
    assert len(found) == 1


# What is refused

COLUMNS = pa.table(
    {
        "a": pa.array([1, 2, 3, 4], pa.int32()),
        "born": [dt.date(2024, 1, i) for i in (1, 2, 3, 4)],
        "at": pa.array([dt.time(i) for i in (1, 2, 3, 4)], pa.time64("us")),
        "zip": ["1", "2", "3", "4"],
    }
)


@pytest.mark.parametrize(
    ("column", "kind", "message"),
    [
        ("born", "geometric_mean", "output='geometric_mean' needs numbers above 0, and 'born' is DATE"),
        ("at", "geometric_mean", "output='geometric_mean' needs numbers above 0, and 'at' is TIME"),
        ("zip", "geometric_mean", "output='geometric_mean' needs numbers above 0, and 'zip' is VARCHAR"),
        ("zip", "median", "output='median' needs numbers, dates or times, and 'zip' is VARCHAR"),
        ("a", "modes", "Did you mean 'mode'"),
    ],
)
def test_columns_that_cannot_be_written_so(column: str, kind: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Plan.of(COLUMNS, quasi_identifiers=list(COLUMNS.column_names), k=2, algorithm=Cutter(), output={column: kind})


def test_one_text_for_all_is_for_those_that_can_take_it() -> None:
    def kinds(output: str) -> list[str]:
        given = {"quasi_identifiers": list(COLUMNS.column_names), "k": 2, "algorithm": Cutter()}
        return list(Plan.of(COLUMNS, **given, output=output).output.values())

    assert kinds("geometric_mean") == ["geometric_mean", "interval", "interval", "interval"]
    assert kinds("median") == ["median", "median", "median", "interval"]
    assert kinds("mode") == ["mode"] * 4
    assert kinds("medoid") == ["medoid"] * 4


@pytest.mark.parametrize("value", [0, -4711, -math.inf])
def test_a_geometric_mean_needs_numbers_above_zero(value: float) -> None:
    data = pa.table({"a": pa.array([1, 2, 3, value, 5, 6], pa.float64())})
    options = {"algorithm": "mondrian", "quasi_identifiers": ["a"], "k": 2, "output": "geometric_mean"}
    with pytest.raises(DataError, match=r"needs numbers above 0, and 'a' has others\. Use output='mean'") as caught:
        duckanon.anonymize(data, **options)
    assert "4711" not in str(caught.value)
    assert "inf" not in str(caught.value)


# On the way through the house: the report, a job, SQL

ROWS = pa.table({"age": [17, 18, 22, 33, 34, 36, 41, 44, 47, 60, 61, 62], "town": list("aab" * 4)})


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("median", "the exact value of a person in it"),
        ("geometric_mean", "an adversary who knows all of them but one can compute that one"),
        ("mode", "the exact value of at least one person in it"),
    ],
)
def test_the_report_says_what_is_told(output: str, said: str) -> None:
    options = {"quasi_identifiers": ["age"], "k": 3, "algorithm": "mondrian", "output": output}
    with duckanon.anonymize(ROWS, **options) as release:
        assert f"Written as {output}: age." in release.report("md").replace("\\_", "_")
        assert said in release.report("md")


def test_a_job_has_them_as_its_form(tmp_path: Path) -> None:
    changes = (
        ('name = "datafly"\nstop = "limit"', 'name = "mondrian"'),
        ('path = "out/people.parquet"', 'path = "out/people.parquet"\nform = {age = "median", town = "mode"}'),
    )
    result = run_job(write(fill(tmp_path), *changes))
    assert result.summary["output"] == {"age": "median", "town": "mode"}
    assert pa.types.is_integer(pq.read_schema(result.written["release"]).field("age").type)


def test_sql_publishes_aggregates_in_their_types() -> None:
    with duckanon.connect() as connection:
        connection.execute(
            "CREATE TABLE people AS SELECT (20 + i % 30)::SMALLINT AS age, i % 4 AS ill FROM range(60) AS r(i)"
        )
        arguments = "'people', quasi_identifiers := ['age'], sensitive := ['ill'], k := 5, algorithm := 'mondrian'"
        for output, kind in (("median", "SMALLINT"), ("mode", "SMALLINT"), ("geometric_mean", "DOUBLE")):
            (found,) = connection.execute(
                f"SELECT DISTINCT typeof(age) FROM anonymize({arguments}, output := '{output}')"
            ).fetchone()
            assert found == kind
