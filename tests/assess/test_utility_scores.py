"""Scores compared with counting pair by pair."""

from __future__ import annotations

import math

import numpy as np
import pytest
from reference import scores as slow

from duckanon.assess.utility.scores import confidence_of, scores


@pytest.mark.parametrize("seed", range(40))
def test_scores_are_those_counted_by_hand(seed: int) -> None:
    rng = np.random.default_rng(seed)
    classes, rows = int(rng.integers(2, 5)), int(rng.integers(4, 40))
    truth, said = rng.integers(0, classes, rows), rng.integers(0, classes, rows)
    truth[:2] = [0, 1]
    confidence = rng.integers(0, 6, (rows, classes)) / 5.0
    positive = int(rng.integers(0, 2)) if classes == 2 else None
    found = scores(truth, said, confidence, positive)
    plain = truth.tolist(), said.tolist()
    wanted = slow.macro(*plain) if positive is None else slow.of_class(*plain, positive)
    assert found["accuracy"] == pytest.approx(slow.accuracy(*plain))
    assert [found[name] for name in ("precision", "recall", "f1")] == pytest.approx(list(wanted))
    there = sorted(set(plain[0])) if positive is None else [positive]
    areas = [slow.area(plain[0], confidence[:, c].tolist(), c) for c in there]
    assert found["auroc"] == pytest.approx(sum(areas) / len(areas))


def test_one_class_has_no_curve() -> None:
    found = scores(np.zeros(3, dtype=np.int64), np.zeros(3, dtype=np.int64), np.zeros((3, 2)), None)
    assert math.isnan(found["auroc"])
    assert found["accuracy"] == found["f1"] == 1.0


def test_a_class_that_was_never_seen_is_trusted_least() -> None:
    class Learned:
        classes_ = np.array([0, 2])

        def decision_function(self, rows: object) -> np.ndarray:
            return np.array([-3.0, 2.0])

    found = confidence_of(Learned(), None, 3)
    assert found.argmax(axis=1).tolist() == [0, 2]
    assert (found[:, 1] < found[:, [0, 2]].min()).all()
