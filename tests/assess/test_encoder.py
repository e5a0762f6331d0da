"""The encoder reads everything that duckanon publishes, encodes raw rows, and is a scikit-learn transformer."""

from __future__ import annotations

import datetime as dt
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import duckanon
from duckanon import Hierarchy
from duckanon.assess.utility import AnonymousEncoder, encode
from duckanon.assess.utility.codebook import METHODS
from duckanon.errors import DataError, HierarchyError, ParameterError
from tests.datasets import PublicData

RELEASED = pd.DataFrame(
    {"age": ["[15, 34]", "[35, 49]", "*", "40"], "sex": ["m", "{f, m}", "f", "m"], "y": [0, 1, 1, 0]}
)
RAW = pd.DataFrame({"age": [17, 40, 99], "sex": ["f", "m", "x"]})


@pytest.fixture(scope="module")
def people() -> pa.Table:
    dice = random.Random(7)
    n = 60
    return pa.table(
        {
            "id": list(range(n)),
            "age": [dice.randrange(17, 90) for _ in range(n)],
            "height": [round(dice.gauss(170, 9), 2) for _ in range(n)],
            "born": [dt.date(1950, 1, 1) + dt.timedelta(days=dice.randrange(20_000)) for _ in range(n)],
            "seen": [dt.datetime(2020, 1, 1) + dt.timedelta(seconds=dice.randrange(10**7)) for _ in range(n)],
            "ward": [dice.choice(["a, b", "c", "d", None, 'e"f']) for _ in range(n)],
        }
    )


KINDS = ("interval", "bounds", "struct", "midpoint", "set", "lca", "proportional")
FORMS = [(kind, "grid") for kind in KINDS] + [
    (kind, way) for kind in ("interval", "bounds") for way in ("cut", "tight")
]


@pytest.mark.parametrize(("output", "bounds"), FORMS)
@pytest.mark.thinned(4)
def test_every_output_is_read(people: pa.Table, output: str, bounds: str) -> None:
    """A value has a feature of the cell that it was published as, and the cells of rows and files are read alike."""
    names = ["age", "height", "born", "seen", "ward"]
    made = duckanon.anonymize(
        people, quasi_identifiers=names, insensitive=["id"], k=10, output=output, bounds=bounds, seed=3
    )
    with made as release:
        table = release.to_arrow()
        encoder = AnonymousEncoder("value_set").fit(release)
        cells = encoder.transform(table).toarray()
        ours = AnonymousEncoder("midpoint").fit(release).transform(table).toarray()
    assert encoder.feature_names_in_.tolist() == list(release.recoding.columns)
    values = encoder.transform(people.take(table.column("id"))).toarray()
    found = encoder.get_feature_names_out().tolist()
    assert np.isfinite(ours).all()
    for name in names:
        own = [i for i, feature in enumerate(found) if feature.startswith(f"{name}_")]
        assert (cells[:, own].sum(axis=1) > 0).all()
        assert (values[:, own].sum(axis=1) == 1).all()
        if output in ("interval", "bounds", "struct", "set", "lca", "proportional"):
            assert (values[:, own] <= cells[:, own]).all()


@pytest.mark.parametrize("method", METHODS)
def test_frames_of_all_kinds(method: str, tmp_path: Path) -> None:
    rows = RELEASED[["age", "sex"]]
    encoder = AnonymousEncoder(method).fit(rows)
    expected = encoder.transform(rows).toarray()
    arrow = pa.Table.from_pandas(rows)
    path = tmp_path / "rows.parquet"
    rows.to_parquet(path)
    for other in (arrow, polars.from_pandas(rows), rows.astype("category"), path, str(path), arrow.to_reader()):
        assert np.array_equal(encoder.transform(other).toarray(), expected)
    for other in (arrow, polars.from_pandas(rows), rows.astype("category"), path):
        assert np.array_equal(AnonymousEncoder(method).fit(other).transform(rows).toarray(), expected)
    parts = [part.toarray() for part in encoder.transform_batches(rows, size=3)]
    assert [len(part) for part in parts] == [3, 1]
    assert np.array_equal(np.vstack(parts), expected)
    assert np.array_equal(
        pickle.loads(pickle.dumps(encoder)).transform(RAW).toarray(), encoder.transform(RAW).toarray()
    )


def test_scikit_learn_takes_it_for_one_of_its_own() -> None:
    for found in check_estimator(AnonymousEncoder("midpoint"), on_fail=None, on_skip=None):
        assert found["status"] in ("passed", "skipped"), found["check_name"]


def test_pipelines_score_raw_rows() -> None:
    model = make_pipeline(AnonymousEncoder("fill_parent"), LogisticRegression())
    model.fit(RELEASED[["age", "sex"]], RELEASED["y"])
    assert model.predict(RAW).shape == (3,)
    columns = ColumnTransformer([("cells", AnonymousEncoder("value_set"), ["age", "sex"])], sparse_threshold=1.0)
    assert columns.fit_transform(RELEASED).shape == (4, 6)
    assert columns.transform(RAW).shape == (3, 6)
    assert clone(AnonymousEncoder("midpoint", max_features=7)).get_params()["max_features"] == 7


def test_frames_have_the_index_and_the_names_of_features() -> None:
    rows = RELEASED[["age", "sex"]].set_index(pd.Index([4, 5, 6, 7]))
    encoder = AnonymousEncoder("value_set").set_output(transform="pandas").fit(rows)
    frame = encoder.transform(rows)
    assert frame.index.tolist() == [4, 5, 6, 7]
    assert frame.columns.tolist() == encoder.get_feature_names_out().tolist()
    assert frame.sparse.density < 1
    dense = AnonymousEncoder("value_set", sparse_output=False).fit(rows)
    assert np.array_equal(dense.transform(rows), frame.to_numpy())
    named = AnonymousEncoder("value_set").set_output(transform="polars").fit(rows).transform(rows)
    assert named.columns == frame.columns.tolist()


def test_values_that_were_never_published() -> None:
    encoder = AnonymousEncoder("one_class").fit(RELEASED[["age", "sex"]])
    names = encoder.get_feature_names_out().tolist()
    found = encoder.transform(RAW).toarray()
    shown = [sorted(name for name, value in zip(names, row, strict=True) if value) for row in found]
    # 99 lies in nothing but "*"; as a number it takes the nearest interval. "x" is under nothing.
    assert shown == [["age_[15, 34]", "sex_f"], ["age_40", "sex_m"], ["age_[35, 49]"]]
    everything = AnonymousEncoder("one_class").fit(pd.DataFrame({"sex": ["m", "*"]}))
    assert everything.transform(pd.DataFrame({"sex": ["x"]})).toarray().tolist() == [[0, 1]]


def test_missing_values_are_values() -> None:
    rows = pd.DataFrame({"age": ["[15, 34]", None], "sex": [None, "m"]})
    encoder = AnonymousEncoder("value_set").fit(rows)
    assert encoder.get_feature_names_out().tolist() == ["age_[15, 34]", "age_missing", "sex_m", "sex_missing"]
    assert encoder.transform(rows).toarray().tolist() == [[1, 0, 0, 1], [0, 1, 1, 0]]
    raw = pa.table({"age": pa.array([20, None]), "sex": ["m", None]})
    assert encoder.transform(raw).toarray().tolist() == [[1, 0, 1, 0], [0, 1, 0, 1]]
    middle = AnonymousEncoder("midpoint", columns=["age"]).fit(rows)
    assert middle.transform(rows).toarray().tolist() == [[24.5, 0], [24.5, 1]]


def test_a_cell_is_encoded_as_its_midpoint() -> None:
    rows = pd.DataFrame({"age": ["[15, 35]", "< 20", ">= 60", "*", "44", "{1, 5}"]})
    found = encode(rows, "midpoint")[0].toarray().ravel().tolist()
    assert found == [25.0, 10.5, 60.0, 30.5, 44.0, 3.0]
    days = pd.DataFrame({"born": ["[1970-01-01, 1970-01-11]", "1970-02", "1970s"]})
    found = encode(days, "midpoint")[0].toarray().ravel().tolist()
    assert found == [5.0, 45.0, 1826.0]


def test_dates_find_their_intervals() -> None:
    released = pd.DataFrame({"born": ["1970-Q1", "[1970-04-01, 1970-12-31]", "1971"]})
    encoder = AnonymousEncoder("value_set", {"born": Hierarchy.dates()}).fit(released)
    raw = pa.table({"born": [dt.date(1970, 3, 31), dt.date(1970, 4, 1), dt.date(1971, 7, 1)]})
    assert encoder.transform(raw).toarray().tolist() == np.eye(3).tolist()
    assert encoder.get_feature_names_out().tolist() == [
        "born_1970-Q1",
        "born_[1970-04-01, 1970-12-31]",
        "born_1971",
    ]


def test_codes_find_their_masks() -> None:
    released = pd.DataFrame({"zip": ["123**", "12345", "54***", "*"]})
    encoder = AnonymousEncoder("one_class", {"zip": Hierarchy.mask()}).fit(released)
    names = encoder.get_feature_names_out().tolist()
    raw = ["12399", "12345", "54321", "99999"]
    found = encoder.transform(pd.DataFrame({"zip": raw})).toarray()
    shown = [[name for name, value in zip(names, row, strict=True) if value] for row in found]
    assert shown == [["zip_123**"], ["zip_12345"], ["zip_54***"], ["zip_*"]]


def test_labels_that_follow_a_prefix_lie_under_each_other() -> None:
    """A plain table of codes, prefixes, and labels of the hierarchy that goes on from them, in one column."""
    labels = ["10001", "070", "NY", "Northeast", "94110", "*"]
    released = pa.table({"zip": labels, "ill": ["E11.9", "A00-A09", "A01", "E10-E14", "*", "*"]})
    given = {"zip": "us_zip5", "ill": "icd10"}
    for method in ("fill_parent", "value_set"):
        encoder = AnonymousEncoder(method, given).fit(released)
        names = encoder.get_feature_names_out().tolist()

        def shown(
            cells: dict[str, list[str]], column: str, encoder: Any = encoder, names: Any = names
        ) -> list[list[str]]:
            other = "ill" if column == "zip" else "zip"
            rows = encoder.transform(pa.table(cells | {other: ["*"] * len(cells[column])})).toarray()
            start = f"{column}_"
            return [
                [name.removeprefix(start) for name, value in zip(names, row, strict=True) if value and start in name]
                for row in rows
            ]

        if method == "fill_parent":
            northeast = shown({"zip": ["10001", "070", "NY", "Northeast", "10099", "Middle Atlantic"]}, "zip")
            for found, own in zip(
                northeast, ["10001", "070", "NY", "Northeast", "100", "Middle Atlantic"], strict=True
            ):
                assert own in found
                assert "Northeast" in found
                assert "West" not in found
            cholera, block = shown({"ill": ["A01", "A00-A09"]}, "ill")
            # The block begins with the code of a category, and is none of its diagnoses.
            assert {"A01", "A00-A09"} < set(cholera)
            assert "A00-A09" in block
            assert not {"A00", "A01"} & set(block)
        else:
            assert shown({"zip": ["NY", "Northeast", "West"]}, "zip") == [["10001"], ["070", "10001"], ["94110"]]
            assert shown({"ill": ["A00-A09", "A02.1"]}, "ill") == [["A01"], ["A01"]]


def test_many_numbers_are_binned() -> None:
    rows = pd.DataFrame({"x": np.linspace(0, 1, 1000)})
    encoder = AnonymousEncoder("value_set", max_features=10).fit(rows)
    found = encoder.transform(rows).toarray()
    assert found.shape == (1000, 10)
    assert found.sum(axis=0).tolist() == [100] * 10
    assert encoder.transform(pd.DataFrame({"x": [-5.0, 7.0]})).toarray()[:, [0, 9]].tolist() == [[1, 0], [0, 1]]


def test_many_words_take_a_level_or_share_a_feature() -> None:
    words = [f"w{i:02}" for i in range(30)]
    rows = pd.DataFrame({"w": [*words, "w03", "w04"]})
    tree = Hierarchy.from_table({"l0": words, "l1": [f"g{i // 5}" for i in range(30)], "l2": ["*"] * 30})
    encoder = AnonymousEncoder("value_set", {"w": tree}, max_features=8).fit(rows)
    assert encoder.get_feature_names_out().tolist() == [f"w_g{i}" for i in range(6)]
    alone = AnonymousEncoder("value_set", max_features=3).fit(rows)
    assert alone.get_feature_names_out().tolist() == ["w_w03", "w_w04", "w_other"]
    assert alone.transform(pd.DataFrame({"w": ["w03", "w17", "new"]})).toarray().tolist() == [
        [1, 0, 0],
        [0, 0, 1],
        [0, 0, 1],
    ]


def test_what_is_refused() -> None:
    with pytest.raises(ParameterError, match="Did you mean 'value_set'"):
        AnonymousEncoder("value_sets").fit(RELEASED)
    with pytest.raises(ParameterError, match="max_features"):
        AnonymousEncoder(max_features=1).fit(RELEASED)
    with pytest.raises(DataError, match="Did you mean 'age'"):
        AnonymousEncoder(columns=["agee"]).fit(RELEASED)
    with pytest.raises(DataError, match="no column 'sex'"):
        AnonymousEncoder().fit(RELEASED).transform(RELEASED[["age"]])
    tree = Hierarchy.from_table({"l0": ["m", "f"], "l1": ["*", "*"]})
    with pytest.raises(HierarchyError, match="2 of 3 labels of 'sex' \\(2 rows\\)") as error:
        AnonymousEncoder(hierarchies={"sex": tree}).fit(pd.DataFrame({"sex": ["m", "Canary-1", "Canary-2"]}))
    assert "Canary" not in str(error.value)


@pytest.mark.parametrize("algorithm", ["mondrian", "optimal", "tdg"])
def test_adult_round_trip(algorithm: str, adult: PublicData) -> None:
    """A model that is trained on a release scores raw rows better than the most frequent answer does."""
    names = ["sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation"]
    rows = adult.table([*names, "income"]).to_pandas()[:5000]
    train, test = rows[:3500], rows[3500:]
    trees = {name: Hierarchy.from_csv(path) for name, path in adult.hierarchies(names).items()}
    made = duckanon.anonymize(
        train,
        quasi_identifiers=names,
        sensitive=["income"],
        hierarchies=trees,
        k=5,
        algorithm=algorithm,
        suppression_limit=0.05,
        seed=1,
    )
    base = (test["income"] == "<=50K").mean()
    with made as release:
        table = release.to_arrow()
        for method in METHODS:
            encoder = AnonymousEncoder(method, trees, names).fit(release)
            raw = encoder.transform(test)
            assert (np.asarray(abs(raw).sum(axis=1)) > 0).all()
            if method in ("value_set", "fill_child") and algorithm == "optimal":
                # Full-domain cells are as wide as a level: the values in them are told apart by nothing.
                continue
            model = LogisticRegression(solver="liblinear", tol=0.01)
            model.fit(encoder.transform(table), table.column("income").to_pylist())
            assert model.score(raw, test["income"]) > base
