"""Ranges of texts, as Mondrian writes them, are read again from the file alone."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import duckanon


@pytest.mark.parametrize("bounds", ["tight", "cut"])
def test_the_loss_of_a_file_is_that_of_the_release(bounds: str) -> None:
    draw = random.Random(1)
    cities = ["Laos", "Peru", "Chad", "Mali", "Oman", "a, b", "Iran"]
    people = pa.table(
        {"city": [draw.choice(cities) for _ in range(400)], "age": [draw.randrange(90) for _ in range(400)]}
    )
    metrics = ["ncp", "loss"]
    with duckanon.anonymize(people, quasi_identifiers=["city", "age"], k=9, bounds=bounds) as release:
        own = {m.metric: m.value for m in release.measure(metrics) if m.attribute is None}
        shown = release.to_arrow()
    assert any(label.startswith(("[", ">=", "<=")) for label in shown["city"].to_pylist())
    found = duckanon.measure(people, shown, metrics=metrics, quasi_identifiers=["city", "age"])
    assert {m.metric: m.value for m in found if m.attribute is None} == pytest.approx(own)
