"""The order of the rows is random: nothing that is reported of a release changes when they are shuffled."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import duckanon
from duckanon.assess.attacks import attackers
from duckanon.assess.utility.learners import LEARNERS
from duckanon.assess.utility.neighbours import NearestNeighbours
from duckanon.assess.utility.scores import SCORES
from tests.effort import share

QUASI = ["age", "city", "income"]
LOOK_AT_ORDER = {"position", "order"}
"""Attacks that ask whether the order of rows gives anything away."""


def _people(rng: random.Random, rows: int) -> pa.Table:
    ages = [rng.choice([None, *range(18, 30)]) for _ in range(rows)]
    return pa.table(
        {
            "age": pa.array(ages, pa.int64()),
            "city": pa.array([rng.choice(["Ulm", "Bonn", "Kiel", None]) for _ in range(rows)], pa.string()),
            "income": [round(rng.gauss(30, 10), 1) for _ in range(rows)],
            "ill": [rng.choice(["flu", "gout"]) if (a or 20) > 22 else "none" for a in ages],
        }
    )


def _released(table: pa.Table, rng: random.Random) -> tuple[pa.Table, pa.Table]:
    """Return a release, sorted as badly as can be, and the same rows in another order."""
    options: dict[str, Any] = {"k": rng.choice([2, 3, 5]), "algorithm": rng.choice(["mondrian", "datafly"])}
    options["suppression_limit"] = 0.0 if options["algorithm"] == "mondrian" else 0.3
    with duckanon.anonymize(table, quasi_identifiers=QUASI, sensitive=["ill"], **options) as release:
        found = release.to_arrow()
    texts = [[str(v) for v in found.column(name).to_pylist()] for name in found.column_names]
    worst = sorted(range(found.num_rows), key=lambda i: [column[i] for column in texts])
    return found.take(worst), found.take(rng.sample(range(found.num_rows), found.num_rows))


@share(1 / 10)
@given(seed=st.integers(0, 2**32))
def test_learners_do_not_see_the_order_of_released_rows(seed: int) -> None:
    rng = random.Random(seed)
    parts = duckanon.utility.split(_people(rng, rng.randint(60, 150)), target="ill", seed=seed)
    learners = ["knn", "logistic_regression", "decision_tree", rng.choice([*list(LEARNERS)[:-1]])]
    lines = []
    for released in _released(parts.train, rng):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = duckanon.utility.evaluate(
                parts.train,
                released,
                target="ill",
                test=parts.test,
                learners=list(dict.fromkeys(learners)),
                quasi_identifiers=QUASI,
                seeds=1,
                workers=1,
            )
        lines.append({(r["learner"], r["trained_on"]): [r[s] for s in SCORES] for r in found.rows.to_pylist()})
    first, second = lines
    assert first.keys() == second.keys()
    for key, scores in first.items():
        assert scores == pytest.approx(second[key], abs=1e-9, nan_ok=True), key


@share(1 / 20)
@given(seed=st.integers(0, 2**32))
def test_attacks_and_metrics_do_not_see_the_order_of_released_rows(seed: int) -> None:
    rng = random.Random(seed)
    table, others = _people(rng, rng.randint(30, 80)), _people(rng, 30)
    names: dict[str, Any] = {"quasi_identifiers": QUASI, "sensitive": ["ill"]}
    attacks = [a for a in attackers if a not in LOOK_AT_ORDER]
    figures = []
    for released in _released(table, rng):
        found = duckanon.attack(table, released, control=others, attacks=attacks, **names)
        told = {
            (f.attack, f.attribute, f.adversary, f.text): (f.success, f.base_rate, f.control) for f in found.findings
        }
        lost = duckanon.measure(table, released, k=2, **names)
        told |= {(m.metric, m.attribute): (m.value, m.normalised) for m in lost}
        asked = duckanon.utility.queries(table, released, columns=QUASI, n=20, seed=1).summary()
        told["queries",] = tuple(v for line in asked.to_pylist() for v in line.values() if isinstance(v, float))
        figures.append(told)
    first, second = figures
    assert first.keys() == second.keys()
    for key, values in first.items():
        for one, other in zip(values, second[key], strict=True):
            assert (one is None) == (other is None), key
            assert one is None or one == pytest.approx(other, rel=1e-9, abs=1e-9, nan_ok=True), (key, one, other)


def test_labels_dealt_at_random_are_guessed_by_the_more_frequent_one() -> None:
    """Equal rows stand together, sorted by their class: ten neighbours by their place would all be of the rarer one."""
    rng = np.random.default_rng(0)
    labels = np.sort(rng.permutation(np.repeat([0, 1], [150, 850])))
    cells = np.zeros((1000, 2))
    for order in (np.arange(1000), np.arange(1000)[::-1], rng.permutation(1000)):
        found = NearestNeighbours(10).fit(cells[order], labels[order])
        assert found.predict_proba(cells[:3]) == pytest.approx(np.array([[0.15, 0.85]] * 3))
        assert found.predict(cells).mean() == 1


@given(
    rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from("abc")), min_size=1, max_size=40),
    asked=st.lists(st.tuples(st.integers(-1, 4), st.integers(0, 3)), min_size=1, max_size=6),
    k=st.integers(1, 12),
)
def test_neighbours_share_the_votes_of_the_last_distance(
    rows: list[tuple[int, int, str]], asked: list[tuple[int, int]], k: int
) -> None:
    found = NearestNeighbours(k).fit([r[:2] for r in rows], [r[2] for r in rows])
    votes = min(k, len(rows))
    for (x, y), shares in zip(asked, found.predict_proba(asked), strict=True):
        squares = sorted((a - x) ** 2 + (b - y) ** 2 for a, b, _ in rows)
        limit = squares[votes - 1]
        nearer = Counter(c for a, b, c in rows if (a - x) ** 2 + (b - y) ** 2 < limit)
        tied = Counter(c for a, b, c in rows if (a - x) ** 2 + (b - y) ** 2 == limit)
        rest = votes - nearer.total()
        expected = [(nearer[c] + rest * tied[c] / tied.total()) / votes for c in sorted({r[2] for r in rows})]
        assert list(shares) == pytest.approx(expected)
