"""The synthetic hospital table: determinism, shape and distributions."""

from __future__ import annotations

import csv
import hashlib
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from duckanon.testing import hospital as demo

FOLDER = Path(__file__).parents[2] / "hierarchies"
ROWS = 60_000

TYPES = {
    "patient_id": pa.int64(),
    "name": pa.string(),
    "birth_date": pa.date32(),
    "sex": pa.string(),
    "zip": pa.string(),
    "marital_status": pa.string(),
    "education": pa.string(),
    "country": pa.string(),
    "admission_date": pa.date32(),
    "ward": pa.string(),
    "diagnosis": pa.string(),
    "length_of_stay": pa.int32(),
    "cost": pa.float64(),
}


def leaves(name: str) -> set[str]:
    with (FOLDER / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return {row[0] for row in csv.reader(file, delimiter=";")}


def digest(table: pa.Table) -> str:
    return hashlib.sha256(repr(table.slice(0, 500).to_pylist()).encode()).hexdigest()


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return demo.hospital(ROWS)


@pytest.fixture(scope="module")
def frame(table: pa.Table) -> pd.DataFrame:
    data = table.to_pandas(date_as_object=False)
    data["age"] = (data["admission_date"] - data["birth_date"]).dt.days / 365.25
    return data


def test_schema(table: pa.Table) -> None:
    assert table.num_rows == ROWS
    assert dict(zip(table.column_names, table.schema.types, strict=True)) == TYPES
    assert table.column_names == list(TYPES)


def test_default_size() -> None:
    assert demo.hospital().num_rows == 20_000


def test_same_seed_same_table(table: pa.Table) -> None:
    again = demo.hospital(ROWS)
    assert again.equals(table)
    assert digest(again) == digest(table)


def test_other_seed_other_table(table: pa.Table) -> None:
    other = demo.hospital(ROWS, seed=1)
    assert other.schema == table.schema
    assert digest(other) != digest(table)


@pytest.mark.parametrize("rows", [0, 1, 2, 7])
def test_tiny(rows: int, tmp_path: Path) -> None:
    table = demo.hospital(rows)
    assert table.num_rows == rows
    assert dict(zip(table.column_names, table.schema.types, strict=True)) == TYPES
    demo.write_hospital(tmp_path / "tiny.parquet", rows)
    assert pq.read_table(tmp_path / "tiny.parquet").equals(table)


@pytest.mark.parametrize(("chunk", "groups"), [(1, 5), (2_000, 3), (1_000_000, 1)])
def test_file_equals_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, chunk: int, groups: int) -> None:
    monkeypatch.setattr(demo, "BLOCK", 1_000)
    table = demo.hospital(4_321, seed=5)
    demo.write_hospital(tmp_path / "out.parquet", 4_321, seed=5, chunk=chunk)
    assert pq.read_table(tmp_path / "out.parquet").equals(table)
    assert pq.ParquetFile(tmp_path / "out.parquet").num_row_groups == groups


def test_blocks_share_no_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "BLOCK", 1_000)
    patients = demo.hospital(3_000)["patient_id"].to_numpy()
    first, second, third = (set(patients[start : start + 1_000]) for start in (0, 1_000, 2_000))
    assert not first & second
    assert not first & third
    assert not second & third


def test_refuses_nonsense(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="rows"):
        demo.hospital(-1)
    with pytest.raises(ValueError, match="chunk"):
        demo.write_hospital(tmp_path / "out.parquet", 10, chunk=0)


def test_persons_repeat(frame: pd.DataFrame) -> None:
    stays = frame.groupby("patient_id").size()
    assert 0.17 < (stays > 1).mean() < 0.23
    assert stays.max() >= 5
    persons = frame.groupby("patient_id")[["name", "birth_date", "sex", "country"]].nunique(dropna=False)
    assert (persons == 1).all(axis=None)
    moved = frame.dropna(subset=["zip"]).groupby("patient_id")["zip"].nunique()[stays > 1]
    assert 0.02 < (moved > 1).mean() < 0.25


def test_dates(frame: pd.DataFrame) -> None:
    assert frame["admission_date"].min() == pd.Timestamp("2024-01-01")
    assert frame["admission_date"].max() == pd.Timestamp("2025-12-31")
    assert frame["age"].min() >= 0
    assert 95 < frame["age"].max() < 105
    weekend = frame["admission_date"].dt.day_of_week >= 5
    assert 0.19 < weekend.mean() < 0.25
    months = frame["admission_date"].dt.month.value_counts()
    assert months[1] > 1.1 * months[7]


def test_ages_are_skewed(frame: pd.DataFrame) -> None:
    share = frame["age"].groupby(frame["age"] // 10).size() / len(frame)
    assert share[7] > 1.5 * share[4] > 2 * share[1]
    assert share.get(10, 0) < 0.002


def test_zips_are_skewed(frame: pd.DataFrame) -> None:
    counts = frame["zip"].value_counts()
    assert 280 <= len(counts) <= 330
    assert counts.iloc[0] > 8 * counts.median()
    assert counts.iloc[-1] < counts.median() / 5
    assert all(re.fullmatch(r"\d{5}", code) for code in counts.index)
    assert {code[:3] for code in counts.index} <= leaves("us_zip3")


@pytest.mark.parametrize(
    ("column", "low", "high"),
    [
        ("sex", 0.004, 0.012),
        ("zip", 0.012, 0.018),
        ("marital_status", 0.025, 0.035),
        ("education", 0.055, 0.065),
        ("cost", 0.017, 0.023),
    ],
)
def test_some_values_are_missing(frame: pd.DataFrame, column: str, low: float, high: float) -> None:
    assert low < frame[column].isna().mean() < high


def test_other_values_are_not_missing(frame: pd.DataFrame) -> None:
    rest = frame.drop(columns=["sex", "zip", "marital_status", "education", "cost"])
    assert not rest.isna().any(axis=None)


def test_labels_are_leaves_of_the_shipped_hierarchies(frame: pd.DataFrame) -> None:
    assert set(frame["education"].dropna()) <= leaves("education_isced")
    assert set(frame["country"]) <= leaves("countries")
    assert {code[:3] for code in frame["diagnosis"]} <= leaves("icd10_categories")


def test_sex_and_country(frame: pd.DataFrame) -> None:
    assert set(frame["sex"].dropna()) == {"F", "M", "X"}
    assert 0 < (frame["sex"] == "X").mean() < 0.01
    countries = frame["country"].value_counts(normalize=True)
    assert countries.index[0] == "United States"
    assert 0.8 < countries.iloc[0] < 0.9
    assert len(countries) > 50


def test_names(frame: pd.DataFrame) -> None:
    given, family = (frame["name"].str.split(" ").str[place] for place in (0, 1))
    assert (frame["name"].str.count(" ") == 1).all()
    assert family.nunique() >= 150
    assert given[frame["sex"] == "F"].nunique() >= 80
    assert given[frame["sex"] == "M"].nunique() >= 80
    assert not set(given[frame["sex"] == "F"]) & set(given[frame["sex"] == "M"])
    counts = family.value_counts()
    assert counts.iloc[0] > 5 * counts.median()


def test_wards_depend_on_age(frame: pd.DataFrame) -> None:
    age = frame.groupby("ward")["age"].median()
    assert 10 <= len(age) <= 14
    assert age["Pediatrics"] < 10
    assert 20 < age["Obstetrics"] < 40
    assert age["Geriatrics"] > 80
    assert age["Cardiology"] > 60


def test_diagnoses_depend_on_age_and_sex(frame: pd.DataFrame) -> None:
    counts = frame["diagnosis"].value_counts()
    assert 100 <= len(counts) <= 140
    assert counts.iloc[0] > 5 * counts.median()
    assert all(re.fullmatch(r"[A-Z]\d\d(\.\d)?", code) for code in counts.index)
    chapter = frame["diagnosis"].str[0]
    pregnant = frame[chapter == "O"]
    assert len(pregnant) > 1_000
    assert not (pregnant["sex"] == "M").any()
    assert pregnant["age"].between(15, 46).all()
    assert not (frame.loc[frame["diagnosis"] == "C61", "sex"] == "F").any()
    assert frame.loc[chapter == "P", "age"].max() < 0.1
    assert frame.loc[chapter == "I", "age"].median() > frame.loc[chapter == "F", "age"].median() + 15


def test_marital_status_and_education_depend_on_age(frame: pd.DataFrame) -> None:
    age = frame.groupby("marital_status")["age"].median()
    assert age["Single"] < age["Married"] < age["Widowed"]
    children = frame[frame["age"] < 14]
    assert set(children["marital_status"].dropna()) == {"Single"}
    assert not children["education"].isin(["Bachelor's degree", "Doctorate", "High school diploma"]).any()


def test_length_and_cost(frame: pd.DataFrame) -> None:
    days, cost = frame["length_of_stay"], frame["cost"]
    assert days.min() >= 0
    assert days.max() <= 180
    assert days.mean() > 1.2 * days.median()
    assert cost.min() > 0
    assert cost.mean() > 1.2 * cost.median()
    known = cost.dropna()
    assert np.array_equal(known, known.round(2))
    assert np.corrcoef(days[known.index], known)[0, 1] > 0.5
    assert frame.groupby("ward")["cost"].median().idxmax() == "Intensive Care"
