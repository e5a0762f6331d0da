"""Singling out, linkability and inference beside anonymeter's, on the same rows.

pip install --no-deps anonymeter && pytest -m peers tests/peers/test_anonymeter.py
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import duckanon
from tests.datasets import PublicData

pytestmark = pytest.mark.peers
evaluators = pytest.importorskip("anonymeter.evaluators", reason="anonymeter is not installed")

QUASI = ["age", "education", "marital-status", "hours-per-week"]
SECRET = "occupation"
ROWS = 1500


@pytest.fixture(scope="module")
def tables(adult: PublicData) -> dict[str, pa.Table]:
    """People, others who are not released, and further ones of whom a release is made that has none of the people."""
    table = adult.table([*QUASI, SECRET])
    mixed = table.take(np.random.default_rng(4).permutation(table.num_rows))
    parts = {name: mixed.slice(i * ROWS, ROWS) for i, name in enumerate(("people", "others", "strangers"))}
    half = pa.concat_tables([parts["people"].slice(0, ROWS // 2), parts["strangers"].slice(0, ROWS // 2)])
    return {**parts, "half": half}


def _theirs(kind: str, tables: dict[str, pa.Table], release: str, **how: Any) -> Any:
    frames = {name: table.to_pandas() for name, table in tables.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        evaluator = getattr(evaluators, kind)(
            ori=frames["people"], syn=frames[release], control=frames["others"], n_attacks=ROWS, **how
        )
        evaluator.evaluate(n_jobs=1) if kind != "SinglingOutEvaluator" else evaluator.evaluate(mode="multivariate")
        return evaluator.risk()


def _ours(attack: str, tables: dict[str, pa.Table], release: str) -> Any:
    found = duckanon.attack(
        tables["people"],
        tables[release],
        control=tables["others"],
        quasi_identifiers=QUASI,
        sensitive=[SECRET],
        attacks=[attack],
    )
    return found.findings


@pytest.mark.parametrize(("release", "leaks"), [("people", True), ("half", True), ("strangers", False)])
def test_inference(tables: dict[str, pa.Table], release: str, leaks: bool) -> None:
    theirs = _theirs("InferenceEvaluator", tables, release, aux_cols=QUASI, secret=SECRET, regression=False)
    (ours,) = _ours("inference", tables, release)
    assert ours.risk == pytest.approx(theirs.value, abs=0.1)
    assert (ours.level == "much") == leaks == (theirs.ci[0] > 0)


@pytest.mark.parametrize(("release", "leaks"), [("people", True), ("strangers", False)])
def test_linkability(tables: dict[str, pa.Table], release: str, leaks: bool) -> None:
    theirs = _theirs("LinkabilityEvaluator", tables, release, aux_cols=(QUASI[::2], QUASI[1::2]), n_neighbors=1)
    (ours,) = _ours("linkability", tables, release)
    # With equally near rows anonymeter takes the first of both lists, which is the same one; here a lot is drawn.
    assert ours.risk <= theirs.value + 0.05
    assert (ours.gain_interval[0] > 0) == leaks == (theirs.ci[0] > 0)


@pytest.mark.parametrize(("release", "leaks"), [("people", True), ("strangers", False)])
def test_singling_out(tables: dict[str, pa.Table], release: str, leaks: bool) -> None:
    theirs = _theirs("SinglingOutEvaluator", tables, release, n_cols=4)
    ours = _ours("singling_out", tables, release)[-1]
    assert (ours.level == "much") == leaks
    assert (theirs.value > 0.1) == leaks
