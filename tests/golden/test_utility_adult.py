"""Models trained on ADULT, raw and released: known scores, and both extremes."""

from __future__ import annotations

import numpy as np
import pytest

import duckanon
from tests.datasets import PublicData

QUASI = ["age", "workclass", "education", "marital-status", "race", "sex", "native-country"]
LEARN = {"learners": ["logistic_regression"], "seeds": 1}


@pytest.fixture(scope="module")
def parts(adult: PublicData) -> duckanon.utility.Split:
    table = adult.table([*QUASI, "income"])
    return duckanon.utility.split(table, target="income", seed=0)


def released(adult: PublicData, table, k: int, **options):
    hierarchies = adult.hierarchies(QUASI)
    columns = {"quasi_identifiers": QUASI, "insensitive": ["income"], "hierarchies": hierarchies}
    return duckanon.anonymize(table, k=k, algorithm="optimal", **columns, **options)


def figures(found: duckanon.utility.Evaluation) -> dict[str, float]:
    return {
        "zero": found.score("accuracy", learner="zero_rule", trained_on="raw"),
        "raw": found.score("auroc", trained_on="raw"),
        "release": found.score("auroc"),
    }


def test_a_release_teaches_less_than_raw_rows_and_more_than_nothing(adult: PublicData, parts) -> None:
    found = {}
    for k, limit in ((1, 0.0), (5, 0.05), (500, 0.05)):
        make = lambda rows: released(adult, rows, k, suppression_limit=limit)  # noqa: B023, E731
        found[k] = figures(duckanon.utility.trial(parts, make, **LEARN, released_test=False))
    assert found[1]["zero"] == pytest.approx(0.751, abs=0.001)
    # Logistic regression on these seven columns; the literature has 0.85 to 0.88 for ADULT without capital and hours.
    assert 0.84 < found[1]["raw"] < 0.89
    assert found[1]["release"] == pytest.approx(found[1]["raw"], abs=0.004), "with k = 1 nothing is generalized"
    assert 0.6 < found[5]["release"] < found[5]["raw"]
    assert found[500]["release"] < found[5]["release"]


def test_income_dealt_at_random_is_not_learned(adult: PublicData, parts) -> None:
    place = parts.train.column_names.index("income")
    dealt = np.random.default_rng(0).permutation(parts.train.column("income").to_numpy(zero_copy_only=False))
    shuffled = duckanon.utility.Split(parts.train.set_column(place, "income", [dealt]), parts.test, "income")
    make = lambda rows: released(adult, rows, 5, suppression_limit=0.05)  # noqa: E731
    found = duckanon.utility.trial(shuffled, make, **LEARN, released_test=False)
    assert figures(found)["release"] == pytest.approx(0.5, abs=0.1)
    assert found.score("accuracy") == pytest.approx(figures(found)["zero"], abs=0.002)
