"""What is verified of a CSV file is what its readers find in it."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv
import pytest

import duckanon
from duckanon.errors import ConfigError, DataError, PrivacyViolation
from duckanon.io.sinks.files import CsvFile
from duckanon.release.verify import verify_export

pd = pytest.importorskip("pandas")


def publish(folder: Path, values: list[str | None], **more: Any) -> Path:
    """Publish one class of all values, each twice."""
    rows = pa.table({"q": [1] * 2 * len(values), "s": pa.array(values * 2, pa.string())})
    given = {"quasi_identifiers": ["q"], "sensitive": ["s"], "k": 2, **more}
    with duckanon.anonymize(rows, **given) as release:
        CsvFile(folder / "out.csv").publish(release, reports={}, run={})
    return folder / "out.csv"


@pytest.mark.parametrize("algorithm", ["mondrian", "datafly"])
@pytest.mark.parametrize(
    "values",
    [
        [None, ""],
        ["NULL", None],
        ["", "NA"],
        ["nan", "None"],
        ["7", "007"],
        ["7", "7.0"],
        ["true", "True"],
        ["-7", " -07"],
    ],
)
def test_values_that_readers_take_for_one_do_not_make_a_class_diverse(
    tmp_path: Path, values: list[str | None], algorithm: str
) -> None:
    with pytest.raises(PrivacyViolation, match="readers of CSV take different values of 's' for one"):
        publish(tmp_path, values, l=2, algorithm=algorithm)
    assert not list(tmp_path.iterdir())
    # Nobody counts the values of a class where only its size is promised.
    path = publish(tmp_path, values, algorithm=algorithm)
    with path.open(newline="") as file:
        assert sorted(row["s"] for row in csv.DictReader(file)) == sorted(v or "" for v in values * 2)


@pytest.mark.parametrize("algorithm", ["mondrian", "datafly", "probabilistic"])
def test_values_that_readers_take_for_one_are_found_in_a_file_of_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, algorithm: str
) -> None:
    more = {"suppression_limit": 0.5} if algorithm == "probabilistic" else {"l": 2}
    path = publish(tmp_path, ["flu", None], algorithm=algorithm, **more)
    assert verify_export(path, accept=["groups"]).ok
    monkeypatch.setattr("duckanon.io.sinks.files.require_told_apart", lambda *_: None)
    values = ["7", "007"]
    if algorithm == "probabilistic":
        # Groups are hidden, and what is promised of them is k alone: nobody counts values.
        assert verify_export(publish(tmp_path, values, algorithm=algorithm, **more), accept=["groups"]).ok
        return
    found = verify_export(publish(tmp_path, values, algorithm=algorithm, **more))
    assert found.state == "broken"
    assert found.problems == ["the promise is broken: readers of CSV take different values of 's' for one"]


@pytest.mark.parametrize(
    "values",
    [
        ["flu", None],
        ["flu", ""],
        ["7", "07a"],
        ["7", "70"],
        ["x,y", "x"],
        ['"a"', "a"],
        ["a\r\nb", "a\nb"],
        ["-0", "7"],
    ],
)
def test_values_that_readers_tell_apart_are_published(tmp_path: Path, values: list[str | None]) -> None:
    path = publish(tmp_path, values, l=2)
    assert pd.read_csv(path)["s"].nunique(dropna=False) == 2
    with duckdb.connect() as connection:
        found = connection.sql("SELECT s::VARCHAR FROM read_csv(?, quote = '\"')", params=[str(path)]).fetchall()
    assert len(set(found)) == 2


@pytest.mark.parametrize("name", ["a,b", 'a"b', "a;b", "'a'", "#a", "NULL", "a\tb", "ä", "a'b c"])
def test_names_of_columns_are_read_back(tmp_path: Path, name: str) -> None:
    rows = pa.table({name: [1] * 4, "s": ["x", "y"] * 2})
    with duckanon.anonymize(rows, quasi_identifiers=[name], insensitive=["s"], k=2) as release:
        CsvFile(tmp_path / "out.csv").publish(release, reports={}, run={})
    path = tmp_path / "out.csv"
    assert pa.csv.read_csv(path).column_names == [name, "s"]
    assert list(pd.read_csv(path).columns) == [name, "s"]
    with duckdb.connect() as connection:
        assert connection.read_csv(str(path)).columns == [name, "s"]


@pytest.mark.parametrize("name", ["a\nb", "a\rb", "a\r\nb", "\na", " a", "a ", "\ufeffa", "a\u2028b"])
def test_names_of_columns_that_readers_change_are_refused(tmp_path: Path, name: str) -> None:
    rows = pa.table({name: [1] * 4})
    with (
        duckanon.anonymize(rows, quasi_identifiers=[name], k=2) as release,
        pytest.raises(ConfigError, match="Rename the column, or publish Parquet"),
    ):
        CsvFile(tmp_path / "out.csv").publish(release, reports={}, run={})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("rows", [1, 50, 30_000])
@pytest.mark.parametrize("name", ["a\nb", "a\rb", "a\r\nb"])
def test_line_breaks_in_names_of_a_source_are_read_or_refused(tmp_path: Path, name: str, rows: int) -> None:
    path = tmp_path / "in.csv"
    path.write_text(f'"{name}",other\r\n' + "1,x\r\n" * rows, newline="")
    try:
        with duckanon.anonymize(path, quasi_identifiers=[name, "other"], k=1) as release:
            assert release.to_arrow().column_names == [name, "other"]
            assert release.rows_in == rows
    except (DataError, duckanon.errors.RoleError):
        pass
