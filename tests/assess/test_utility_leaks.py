"""Held-out rows are used neither to anonymize nor to train; a leak is detected."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

import duckanon
from duckanon.assess.utility import evaluation
from tests.assess.lessons import Labels
from tests.datasets import earners as people

CANARY = "canary-trade"
QUASI = ["age", "trade"]
SEEN: list[tuple] = []


class Notebook(ClassifierMixin, BaseEstimator):
    """Writes down what it is taught."""

    def fit(self, rows: np.ndarray, classes: np.ndarray) -> Notebook:
        SEEN.append((rows.shape, rows.tobytes(), classes.tobytes()))
        self.classes_ = np.unique(classes)
        return self

    def predict(self, rows: np.ndarray) -> np.ndarray:
        return np.full(len(rows), self.classes_[0])

    def predict_proba(self, rows: np.ndarray) -> np.ndarray:
        return np.full((len(rows), len(self.classes_)), 1 / len(self.classes_))


def poisoned(test: pa.Table) -> pa.Table:
    """The held-out rows, but everybody is 1000 years old and has a trade that nobody has."""
    rows = test.num_rows
    ages, trades = pa.array([1000 + i for i in range(rows)]), pa.array([f"{CANARY}-{i % 5}" for i in range(rows)])
    return test.set_column(1, "age", ages).set_column(2, "trade", trades)


def anonymize(table: pa.Table) -> duckanon.Release:
    return duckanon.anonymize(
        table, quasi_identifiers=QUASI, insensitive=["hours", "pay"], k=5, algorithm="optimal", seed=1
    )


def require_no_leak(run: Callable[[duckanon.utility.Split], object]) -> None:
    """Run an evaluation twice, with other held-out rows: what was taught must be the same to the last bit."""
    parts = duckanon.utility.split(people(), target="pay", seed=0)
    taught = []
    for test in (parts.test, poisoned(parts.test)):
        SEEN.clear()
        run(duckanon.utility.Split(parts.train, test, "pay"))
        taught.append(sorted(SEEN))
    assert len(taught[0]) == 2, "raw rows and the release are taught"
    # Not compared in the assertion: to describe how two tables differ takes minutes.
    same = taught[0] == taught[1]
    assert same, "held-out rows change what is taught"


def honest(parts: duckanon.utility.Split) -> duckanon.utility.Evaluation:
    return duckanon.utility.trial(
        parts, anonymize, learners=[Notebook()], encoding=Labels(), seeds=1, workers=1, released_test=False
    )


def test_nothing_that_is_taught_depends_on_held_out_rows() -> None:
    require_no_leak(honest)


def test_an_encoding_that_sees_held_out_rows_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    fair = evaluation.PlainEncoder.fit

    def lessons(tables, *rest):
        def fit(self, table):
            return fair(self, pa.concat_tables([table, tables["test"].select(table.column_names)]))

        with monkeypatch.context() as patch:
            patch.setattr(evaluation.PlainEncoder, "fit", fit)
            return kept({**tables, "release": tables["raw"]}, *rest)

    kept = evaluation._lessons
    monkeypatch.setattr(evaluation, "_lessons", lessons)
    with pytest.raises(AssertionError, match="held-out rows change"):
        require_no_leak(honest)


def test_a_release_of_all_rows_is_found_out() -> None:
    def leaking(parts: duckanon.utility.Split) -> duckanon.utility.Evaluation:
        whole = pa.concat_tables([parts.train, parts.test])
        return duckanon.utility.trial(
            parts,
            lambda _: anonymize(whole),
            learners=[Notebook()],
            encoding=Labels(),
            seeds=1,
            workers=1,
            released_test=False,
        )

    with pytest.raises(AssertionError, match="held-out rows change"):
        require_no_leak(leaking)
    found = leaking(duckanon.utility.split(people(), target="pay"))
    assert found.in_sample
    assert any("may have been in it" in note for note in found.notes)


def test_a_file_of_all_rows_is_in_sample_and_says_so(tmp_path) -> None:
    table = people()
    with anonymize(table) as release:
        release.write(tmp_path / "all.parquet")
    found = duckanon.utility.evaluate(
        table, tmp_path / "all.parquet", target="pay", learners=["decision_tree"], encoding=Labels(), seeds=1
    )
    assert found.in_sample
    assert found.notes[0].startswith("in-sample")
    assert (found.train_rows, found.release_rows, found.test_rows) == (480, 600, 120)


def test_neither_notes_nor_messages_have_a_cell() -> None:
    parts = duckanon.utility.split(people(), target="pay", seed=0)
    found = honest(duckanon.utility.Split(parts.train, poisoned(parts.test), "pay"))
    assert CANARY not in str(found.to_dict())
    assert CANARY not in repr(found)
