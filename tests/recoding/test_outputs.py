"""What is asked for of outputs and refused, and how regions go through the house: file, gate, report, job, SQL."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import duckanon
from duckanon.errors import ConfigError, JobError, ParameterError, PrivacyViolation, RoleError, UnsupportedError
from duckanon.hierarchy import Hierarchy
from duckanon.jobs import load_job, plan_job, run_job
from duckanon.plan.plan import KINDS, Plan
from tests.jobs.jobs import fill, write
from tests.recoding.boxes_made import Cutter

AGES = Hierarchy.intervals(width=5, factors=[2, 2])


# What is asked for

PEOPLE = pa.table({"age": [30, 31], "zip": ["1", "2"], "ill": ["Canary", "b"], "id": [1, 2], "age_lo": [1, 2]})
ASKED = {"quasi_identifiers": ["age", "zip"], "k": 2, "algorithm": Cutter()}


def plan_of(**options: Any) -> Plan:
    return Plan.of(PEOPLE, **(ASKED | options))


def test_the_default_is_a_grid_and_intervals() -> None:
    plan = plan_of()
    assert (plan.bounds, plan.output, plan.within) == ("grid", {"age": "interval", "zip": "interval"}, ())
    assert plan.published_names == ["age", "zip"]
    assert plan.to_dict()["bounds"] == "grid"
    assert "output" not in plan.to_dict()


@pytest.mark.parametrize("kind", KINDS)
def test_one_text_is_for_every_column_that_can_take_it(kind: str) -> None:
    measured = kind in ("bounds", "struct", "midpoint", "mean", "median", "geometric_mean")
    found = plan_of(output=kind).output
    assert found == {"age": kind, "zip": "interval" if measured else kind}


def test_a_mapping_names_columns_in_any_case() -> None:
    plan = plan_of(output={"AGE": "bounds"}, bounds="tight", within=["ZIP"], sensitive=["ill"])
    assert plan.output == {"age": "bounds", "zip": "interval"}
    assert plan.within == ("zip",)
    assert plan.published_as == {"age": ("age_lo", "age_hi"), "zip": ("zip",)}
    assert plan.published_names == ["age_lo", "age_hi", "zip", "ill"]
    found = plan.to_dict()
    assert (found["bounds"], found["output"], found["within"]) == ("tight", {"age": "bounds"}, ["zip"])
    assert found["published"] == ["age_lo", "age_hi", "zip", "ill"]
    words = plan.explain()
    assert "bounds: tight\noutput: age as bounds\nwithin: zip\n" in words


def test_within_makes_quasi_identifiers() -> None:
    plan = plan_of(quasi_identifiers=["age"], within=["ZIP", "zip"], output="bounds")
    assert [a.name for a in plan.roles.quasi_identifiers] == ["age", "zip"]
    assert (plan.within, plan.output) == (("zip",), {"age": "bounds", "zip": "interval"})
    # What is published as it is has no bounds, number or not.
    assert plan_of(within=["age"], output="bounds").output["age"] == "interval"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"bounds": "grids"},
            ParameterError,
            "bounds must be one of grid, cut, tight. Got 'grids'. Did you mean 'grid'?",
        ),
        ({"bounds": 3}, ParameterError, "bounds must be one of grid, cut, tight. Got a int."),
        ({"output": "medians"}, ParameterError, "output must be one of interval, .*Did you mean 'median'?"),
        ({"output": {"age": "average"}}, ParameterError, "output of 'age' must be one of"),
        ({"output": {"agee": "mean"}}, ParameterError, "'agee', which is no quasi-identifier. Did you mean 'age'?"),
        ({"output": {"ill": "mean"}}, ParameterError, "'ill', which is no quasi-identifier."),
        ({"output": {"zip": "mean"}}, ParameterError, "needs numbers, dates or times, and 'zip' is VARCHAR"),
        ({"output": {"age": "mean"}, "within": ["age"]}, ParameterError, "'age' is in within"),
        ({"output": ["mean"]}, ParameterError, "Got a list"),
        (
            {"output": "bounds", "insensitive": ["AGE_LO"]},
            ParameterError,
            "would publish 'age_lo' twice: the bounds of 'age'",
        ),
        ({"within": ["ill"], "sensitive": ["ill"]}, RoleError, "'ill', which is given as sensitive, too"),
        ({"within": ["Id"], "entity_key": "id"}, RoleError, "'Id', which is given as the entity key, too"),
        ({"within": ["ill"], "identifiers": ["ill"]}, RoleError, "'ill', which is given as an identifier, too"),
        ({"within": ["nobody"]}, RoleError, "There is no column 'nobody'"),
        ({"within": "zip"}, RoleError, r"within must be a list of column names. Got the text 'zip': write \['zip'\]"),
    ],
)
def test_what_is_refused(options: dict[str, Any], error: type[ConfigError], message: str) -> None:
    with pytest.raises(error, match=message):
        plan_of(**options)


@pytest.mark.parametrize(
    "options",
    [{"bounds": "cut"}, {"bounds": "tight"}, {"output": "mean"}, {"output": {"age": "set"}}, {"within": ["zip"]}],
)
def test_levels_have_no_regions(options: dict[str, Any]) -> None:
    for verb in (Plan.of, duckanon.anonymize):
        with pytest.raises(UnsupportedError, match=r"datafly puts columns on levels.*divides the rows into regions"):
            verb(PEOPLE, **(ASKED | {"algorithm": "datafly"} | options))
    assert (
        Plan.of(PEOPLE, **(ASKED | {"algorithm": "datafly", "bounds": "grid", "output": "interval"})).bounds == "grid"
    )


# On the way through the house: the file, the gate, the report, a job, SQL

ROWS = pa.table(
    {
        "age": [17, 18, 22, 33, 34, 36, 41, 44, 47, 60, 61, 62],
        "sex": ["f", "m"] * 6,
        "ill": list("abcabcabcabc"),
        "id": list(range(12)),
    }
)
RELEASE = {
    "quasi_identifiers": ["age"],
    "sensitive": ["ill"],
    "k": 3,
    "algorithm": "mondrian",
    "hierarchies": {"age": AGES},
}


@pytest.mark.parametrize("entity", [{}, {"entity_key": "id"}])
@pytest.mark.parametrize("output", ["bounds", "struct"])
def test_all_columns_of_a_quasi_identifier_make_the_classes(
    output: str, entity: dict[str, str], tmp_path: Path
) -> None:
    with duckanon.anonymize(ROWS, **RELEASE, **entity, output=output, within=["sex"]) as release:
        wanted = ["age_lo", "age_hi", "sex", "ill"] if output == "bounds" else ["age", "sex", "ill"]
        assert [c.name for c in release.columns] == wanted
        table = pq.read_table(release.path)
        release.verify(release.path)
        path = tmp_path / "other.parquet"
        # One row's upper bound is changed: its class is its own now, and the gate must see it.
        if output == "bounds":
            column = [*table.column("age_hi").to_pylist()[:-1], 99]
            changed = table.set_column(1, "age_hi", pa.array(column, table.schema.field("age_hi").type))
        else:
            rows = table.column("age").to_pylist()
            rows[-1] = {**rows[-1], "hi": 99}
            changed = table.set_column(0, "age", pa.array(rows, table.schema.field("age").type))
        pq.write_table(changed, path)
        with pytest.raises(PrivacyViolation, match="The gate refused the release"):
            release.verify(path)
        for columns in (wanted[1:], [wanted[-1], *wanted[:-1]]):
            pq.write_table(table.select(columns), path)
            with pytest.raises(PrivacyViolation, match="its columns are not the declared ones"):
                release.verify(path)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.thinned(2)
def test_a_release_of_regions_tells_about_itself(kind: str) -> None:
    with duckanon.anonymize(ROWS, **RELEASE, output=kind, bounds="tight", within=["sex"]) as release:
        summary = release.summary()
        assert [h["level"] for h in summary["hierarchies"]] == [None, None]
        assert (summary["bounds"], summary["within"]) == ("tight", ["sex"])
        assert summary.get("output") == (None if kind == "interval" else {"age": kind})
        classes = release.classes()
        assert classes.num_rows == summary["found"]["classes"]
        assert sum(classes.column("n").to_pylist()) == 12
        assert release.recoding.levels == {}
        with pytest.raises(UnsupportedError, match="divided into regions"):
            release.recoding.to_sql()
        with pytest.raises(UnsupportedError, match="divided into regions"):
            release.recoding.mapping("age")
        report = release.report("md")
        assert f"| age | quasi-identifier | given: rule intervals |  | in regions, as {kind} |" in report
        assert "|  | published as it is |" in report
        assert "every bound is the exact value of a person" in report
        assert ("Written as" in report) == (kind != "interval")


def test_the_terminal_shows_columns_without_levels() -> None:
    from rich.console import Console

    from duckanon.interfaces.cli.run import _columns

    with duckanon.anonymize(ROWS, **RELEASE, output="mean", within=["sex"]) as release:
        console = Console(width=120, file=io.StringIO())
        console.print(_columns(release.summary()))
    shown = console.file.getvalue()
    assert re.search(r"age +\S+ +regions, as means \(given: rule intervals\)", shown)
    assert re.search(r"sex +\S+ +untouched", shown)


def test_a_job_says_it_all(tmp_path: Path) -> None:
    changes = (
        ('name = "datafly"\nstop = "limit"', 'name = "mondrian"'),
        ("k = 4\n", 'k = 4\nbounds = "cut"\n'),
        ('quasi_identifiers = ["age", "town"]', 'quasi_identifiers = ["age"]\nwithin = ["Town"]'),
        ('path = "out/people.parquet"', 'path = "out/people.parquet"\nform = {AGE = "bounds"}'),
    )
    job = write(fill(tmp_path), *changes)
    result = run_job(job)
    assert pq.read_schema(result.written["release"]).names == ["age_lo", "age_hi", "town", "ill"]
    assert (result.summary["bounds"], result.summary["within"]) == ("cut", ["town"])
    assert result.summary["output"] == {"age": "bounds"}
    manifest = json.loads(Path(result.written["manifest"]).read_text())
    assert manifest["output"] == {"age": "bounds"}
    assert plan_job(job).published_names == ["age_lo", "age_hi", "town", "ill"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("k = 4\n", 'k = 4\nbounds = "loose"\n', r"\[privacy\] bounds must be 'grid' or 'cut' or 'tight'. Got 'loose'"),
        ('"out/people.parquet"', '"out/people.parquet"\nform = "means"', r"\[output\] form: .*Did you mean 'mean'"),
        (
            '"out/people.parquet"',
            '"out/people.parquet"\nform = {aeg = "mean"}',
            r"\[output\] form: .*Did you mean 'age'",
        ),
        ('"out/people.parquet"', '"out/people.parquet"\nform = 3', r"\[output\] form must be a text such as 'bounds'"),
        ('["age", "town"]', '["age", "town"]\nwithin = "town"', r"\[roles\] within must be a list of texts"),
    ],
)
def test_what_a_job_may_not_say(old: str, new: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(JobError, match=message):
        load_job(write(fill(tmp_path), (old, new)))


def test_sql_publishes_each_output_in_its_columns() -> None:
    connection = duckanon.connect()
    connection.execute(
        "CREATE TABLE people AS SELECT 20 + i % 30 AS age, ['f', 'm'][1 + i % 2] AS sex, i % 4 AS ill "
        "FROM range(60) AS r(i)"
    )
    arguments = "'people', quasi_identifiers := ['age'], sensitive := ['ill'], k := 5, algorithm := 'mondrian'"
    more = "bounds := 'tight', output := {'AGE': 'bounds'}, within := ['sex']"
    found = connection.execute(f"DESCRIBE FROM anonymize({arguments}, {more})").fetchall()
    assert [(row[0], row[1]) for row in found] == [
        ("age_lo", "BIGINT"),
        ("age_hi", "BIGINT"),
        ("sex", "VARCHAR"),
        ("ill", "BIGINT"),
    ]
    rows = connection.execute(f"FROM anonymize_classes({arguments}, {more})").fetchall()
    assert sum(row[-1] for row in rows) == 60
    assert all(low < high and n >= 5 for low, high, _, n in rows)
    (kind,) = connection.execute(f"SELECT typeof(age) FROM anonymize({arguments}, output := 'mean') LIMIT 1").fetchone()
    assert kind == "DOUBLE"
    connection.close()
