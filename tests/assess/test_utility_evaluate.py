"""Models trained on a release, compared with models trained on raw rows and with a baseline."""

from __future__ import annotations

import sys
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

import duckanon
from duckanon.assess.utility import page
from duckanon.assess.utility.learners import LEARNERS, resolve
from duckanon.assess.utility.released_features import released_table
from duckanon.assess.utility.scores import SCORES
from duckanon.errors import DataError, ParameterError, RoleError, UnsupportedError
from tests.assess.lessons import Labels
from tests.datasets import earners as people

FAST = ["logistic_regression", "decision_tree"]
FEATURES = ["age", "trade", "hours"]


def split_of(table: pa.Table) -> duckanon.utility.Split:
    return duckanon.utility.split(table, target="pay", seed=0)


def by_key(found: duckanon.utility.Evaluation) -> dict:
    return {(r["learner"], r["trained_on"], r["tested_on"]): r for r in found.summary().to_pylist()}


def test_a_release_that_changed_nothing_teaches_what_raw_rows_teach() -> None:
    parts = split_of(people(500))
    found = duckanon.utility.evaluate(
        parts.train,
        parts.train.select([*FEATURES, "pay"]),
        target="pay",
        test=parts.test,
        released_test=parts.test,
        learners=list(LEARNERS)[:-1],
        encoding=Labels(),
        seeds=2,
    )
    assert found.features == tuple(FEATURES)
    lines = by_key(found)
    for name in list(LEARNERS)[:-1]:
        raw = lines[name, "raw", "raw"]
        for tested in ("raw", "release"):
            assert {s: lines[name, "release", tested][s] for s in SCORES} == {s: raw[s] for s in SCORES}, name
        assert raw["accuracy"] > 0.7 > lines["zero_rule", "raw", "raw"]["accuracy"]
        assert raw["runs"] == (2 if LEARNERS[name].random else 1)
    assert not found.in_sample


def test_a_target_dealt_at_random_is_not_learned() -> None:
    table = people(3000)
    dealt = np.random.default_rng(0).permutation(table.column("pay").to_numpy(zero_copy_only=False))
    parts = split_of(table.set_column(4, "pay", [dealt]))
    with duckanon.anonymize(
        parts.train, quasi_identifiers=["age", "trade"], insensitive=["pay"], k=5, algorithm="optimal"
    ) as release:
        found = duckanon.utility.evaluate(
            parts.train,
            release,
            target="pay",
            test=parts.test,
            learners=["logistic_regression"],
            encoding=Labels(),
            features=["age", "trade"],
            average="macro",
        )
    for line in found.summary().to_pylist():
        assert abs(line["auroc"] - 0.5) < 0.06, line
        assert line["accuracy"] < 0.56


def test_figures_do_not_depend_on_threads() -> None:
    parts = split_of(people(400, classes=3))
    tables = [
        duckanon.utility.evaluate(
            parts.train,
            parts.train,
            target="pay",
            test=parts.test,
            learners=[
                RandomForestClassifier(20),
                MLPClassifier((5,), max_iter=20),
                HistGradientBoostingClassifier(max_iter=5),
            ],
            seeds=[4, 7],
            workers=workers,
        ).to_arrow()
        for workers in (1, 4)
    ]
    assert tables[0].equals(tables[1])
    assert set(tables[0].column("seed").to_pylist()) == {4, 7}


def test_three_classes_are_averaged_and_two_have_a_positive_one() -> None:
    parts = split_of(people(400, classes=3))
    found = duckanon.utility.evaluate(parts.train, parts.train, target="pay", test=parts.test, learners=FAST, seeds=1)
    zero = by_key(found)["zero_rule", "raw", "raw"]
    assert (found.average, found.classes) == ("macro", 3)
    assert zero["recall"] == pytest.approx(1 / 3)
    two = split_of(people(400))
    options = {"target": "pay", "test": two.test, "learners": FAST, "seeds": 1, "baseline": False}
    high, low = (duckanon.utility.evaluate(two.train, two.train, positive=p, **options) for p in ("high", "low"))
    assert high.average == "binary"
    assert high.score("accuracy", learner=FAST[0]) == low.score("accuracy", learner=FAST[0])
    assert high.score("recall", learner=FAST[0]) != low.score("recall", learner=FAST[0])
    assert high.score("auroc", learner=FAST[0]) == pytest.approx(low.score("auroc", learner=FAST[0]))
    assert "raw" not in {k[1] for k in by_key(high) if k[0] != "zero_rule"}


def test_warnings_are_counted_and_not_shown() -> None:
    parts = split_of(people())
    hasty = {"hasty": LogisticRegression(max_iter=1), "calm": LogisticRegression(max_iter=1000)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = duckanon.utility.evaluate(
            parts.train, parts.train, target="pay", test=parts.test, learners=hasty, seeds=3
        )
    lines = by_key(found)
    assert (lines["hasty", "raw", "raw"]["warnings"], lines["calm", "raw", "raw"]["warnings"]) == (3, 0)


def test_principal_components_are_an_encoding_of_their_own() -> None:
    parts = split_of(people())
    options = {"target": "pay", "test": parts.test, "learners": ["knn"], "seeds": 1}
    options["features"] = FEATURES
    plain, reduced = (duckanon.utility.evaluate(parts.train, parts.train, pca=p, **options) for p in (None, 0.8))
    assert {r["encoding"] for r in reduced.to_arrow().to_pylist()} == {"raw", "raw+pca(0.8)", "midpoint+pca(0.8)"}
    assert reduced.score("auroc", trained_on="raw") != plain.score("auroc", trained_on="raw")
    assert reduced.score("accuracy") == reduced.score("accuracy", trained_on="raw") > 0.7


def test_rows_without_a_target_and_too_many_rows_are_told() -> None:
    table = people(1000)
    pay = [None if i % 10 == 0 else v for i, v in enumerate(table.column("pay").to_pylist())]
    parts = split_of(table.set_column(4, "pay", [pay]))
    found = duckanon.utility.evaluate(
        parts.train, parts.train, target="pay", test=parts.test, learners=FAST[:1], max_rows=300
    )
    assert (found.train_rows, found.release_rows, found.test_rows) == (300, 300, 180)
    assert any("180 rows whose target is missing" in note for note in found.notes)
    assert any("a sample of 300 of 720 rows" in note for note in found.notes)


def test_numbers_that_are_missing_and_dates_are_features() -> None:
    rng = np.random.default_rng(1)
    day = rng.integers(0, 1000, 500)
    cost = [None if d % 7 == 0 else float(d % 13) for d in day]
    table = pa.table(
        {
            "day": pa.array(day.astype("datetime64[D]")),
            "cost": pa.array(cost, pa.float64()),
            "pay": np.where(day > 500, "high", "low"),
        }
    )
    parts = split_of(table)
    found = duckanon.utility.evaluate(
        parts.train, parts.train, target="pay", test=parts.test, learners=["decision_tree"], seeds=1
    )
    assert found.score("accuracy") > 0.97


def test_the_only_class_of_a_release_is_what_it_teaches() -> None:
    parts = split_of(people())
    import pyarrow.compute as pc

    poor = parts.train.filter(pc.equal(parts.train.column("pay"), "low"))
    found = duckanon.utility.evaluate(parts.train, poor, target="pay", test=parts.test, learners=FAST, seeds=1)
    assert found.score("recall", learner=FAST[0]) in (0.0, 1.0)


def test_bounds_are_read_as_intervals() -> None:
    parts = split_of(people())
    for output in ("bounds", "struct", "midpoint", "interval"):
        with duckanon.anonymize(
            parts.train, quasi_identifiers=["age", "trade"], insensitive=["pay"], k=20, output={"age": output}
        ) as release:
            table = released_table(release)
            assert table.column_names == ["age", "trade", "pay"]
            if output in ("bounds", "struct"):
                assert all(cell == "*" or (cell[0], cell[-1]) == ("[", "]") for cell in table["age"].to_pylist())


def test_what_makes_no_sense_is_refused() -> None:
    table = people(100)
    parts = split_of(table)
    options = {"target": "pay", "test": parts.test, "learners": FAST, "seeds": 1}
    with pytest.raises(ParameterError, match="Did you mean 'random_forest'"):
        duckanon.utility.evaluate(parts.train, parts.train, **{**options, "learners": ["random_forrest"]})
    with pytest.raises(RoleError, match="must be published as it is"):
        duckanon.utility.evaluate(parts.train, parts.train.drop_columns(["pay"]), **options)
    with pytest.raises(RoleError, match="cannot be a feature"):
        duckanon.utility.evaluate(parts.train, parts.train, features=["pay"], **options)
    with pytest.raises(ParameterError, match="seeds"):
        duckanon.utility.evaluate(parts.train, parts.train, **{**options, "seeds": 0})
    for pca in (0.0, 1.0, 3.0, True):
        with pytest.raises(ParameterError, match="share of the variance"):
            duckanon.utility.evaluate(parts.train, parts.train, pca=pca, **options)
    with pytest.raises(ParameterError, match="Did you mean 'midpoint'"):
        duckanon.utility.evaluate(parts.train, parts.train, encoding="midpont", **options)
    with pytest.raises(DataError, match="101 values"):
        duckanon.utility.evaluate(people(101), people(101), target="id", test=table, learners=FAST)
    with pytest.raises(ParameterError, match="positive"):
        duckanon.utility.evaluate(parts.train, parts.train, positive="huge", **options)
    with pytest.raises(ParameterError, match="names of their own"):
        resolve(["knn", "knn"])
    with pytest.raises(ParameterError, match="classifier"):
        resolve([3])


def test_xgboost_is_asked_for_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(UnsupportedError, match="pip install xgboost"):
        resolve(["xgboost"])


def test_xgboost_learns_where_it_is_installed() -> None:
    pytest.importorskip("xgboost")
    parts = split_of(people(500))
    options = {"target": "pay", "test": parts.test, "learners": ["xgboost"], "seeds": 2}
    lines = [duckanon.utility.evaluate(parts.train, parts.train, **options).summary().to_pylist() for _ in range(2)]
    assert lines[0] == lines[1]
    by = {(line["learner"], line["trained_on"]): line for line in lines[0]}
    assert by["xgboost", "release"]["auroc"] > 0.6 > by["zero_rule", "raw"]["auroc"] == 0.5
    assert by["xgboost", "release"]["runs"] == 1


def test_the_page_says_what_every_learner_keeps() -> None:
    ages = [20 + i % 50 for i in range(400)]
    table = pa.table({"age": ages, "ill": ["yes" if age > 44 else "no" for age in ages]})
    parts = duckanon.utility.split(table, target="ill")
    columns: dict[str, Any] = {"quasi_identifiers": ["age"], "insensitive": ["ill"]}
    found = duckanon.utility.trial(
        parts,
        lambda rows: duckanon.anonymize(rows, k=5, **columns),
        learners=["decision_tree", "knn"],
        seeds=1,
    )
    report = page.report(found)
    assert report.verdict is not None
    for learner, share in found.kept().items():
        assert share is not None
        assert f"{learner.replace('_', ' ')} {share:.0%}" in report.verdict.text
    (kept,) = [section for section in report.sections if section.title == "Kept"]
    bars = [cell for row in kept.blocks[0].rows for cell in row[1:]]  # type: ignore[union-attr]
    assert len(bars) == 6
    assert all(cell.bar is not None for cell in bars if str(cell) != "–")  # type: ignore[union-attr]


def test_learners_that_differ_are_no_good_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"age": list(range(100)), "ill": ["no"] * 50 + ["yes"] * 50})
    found = duckanon.utility.evaluate(table, table, target="ill", learners=["knn"], seeds=1)
    outside = replace(found, in_sample=False)
    monkeypatch.setattr(type(found), "kept", lambda self, score="auroc": {"knn": 0.9, "mlp": 0.1})
    verdict = page.report(outside).verdict
    assert verdict is not None
    assert (verdict.kind, verdict.title) == ("warn", "Some learners keep most of their quality, others little")
    assert verdict.text.endswith("mlp 10%, knn 90%.")
