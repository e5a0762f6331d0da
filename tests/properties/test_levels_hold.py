"""The levels that `privacy` reports hold, and nothing stricter does: for every model, on random tables."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import duckanon
from duckanon.interfaces.cli.assess import LARGER_IS_STRICTER, bound
from tests.effort import share

VALUES = ["s0", "s1", "s2", "s3", None]
TREE = duckanon.Hierarchy.from_table({"l0": VALUES[:4], "l1": ["m", "m", "n", "n"], "l2": ["*"] * 4})
WHOLE = ("k_anonymity", "k_map", "l_diversity", "p_sensitive_k_anonymity")
BESIDE = {"alpha_k_anonymity": {"k": 1}, "p_sensitive_k_anonymity": {"k": 1}}
LEAST = 1e-12
"""The least that is told of a parameter that must be above 0."""


@share(1 / 2)
@given(seed=st.integers(0, 2**32))
def test_what_is_told_holds_and_nothing_stricter_does(seed: int, connection: Any) -> None:
    rng = random.Random(seed)
    groups, persons = rng.randint(1, 6), rng.random() < 0.4
    n = rng.randint(1, 40)
    weights = [[rng.random() ** 3 for _ in VALUES] for _ in range(groups)]
    keys = [rng.choice([None, *range(1, groups)]) for _ in range(n)]
    table = {
        "q": pa.array(keys, pa.int64()),
        "ill": pa.array([rng.choices(VALUES, weights[k or 0])[0] for k in keys], pa.string()),
        "pay": pa.array([rng.choice([None, rng.randint(0, 9), 3]) for _ in keys], pa.int64()),
        "person": pa.array([rng.choice([None, *range(n)]) for _ in keys], pa.int64()),
    }
    people = [k for k in keys if rng.random() < 0.9] + rng.choices([None, *range(groups + 1)], k=rng.randint(1, n))
    given_: dict[str, Any] = {
        "quasi_identifiers": ["q"],
        "sensitive": ["ill", "pay"],
        "hierarchies": {"ill": TREE},
        "entity_key": "person" if persons else None,
        "connection": connection,
    }
    population = pa.table({"q": pa.array(people, pa.int64())})
    rows = duckanon.privacy(pa.table(table), population=population, **given_).to_pylist()
    told = {(r["model"], r["attribute"], r["parameter"]): r["value"] for r in rows}
    assert {model for model, _, _ in told} == set(duckanon.models.models) - {"probabilistic_k_anonymity"}

    asked: list[tuple[dict[str, Any], bool]] = []

    def expect(holds: bool, model: str, column: str | None, **parameters: Any) -> None:
        beside = {**BESIDE.get(model, {}), **({"sensitive": column} if column else {})}
        if model == "recursive_c_l_diversity":
            # The column's own l is what its c is told for.
            beside["l"] = int(told["l_diversity", column, "l"])
        asked.append(({"model": model, **parameters, **beside}, holds))

    low, high = (told["delta_presence", None, end] for end in ("minimum", "maximum"))
    if high is None:
        expect(False, "delta_presence", None, minimum=0, maximum=1)
    else:
        expect(True, "delta_presence", None, minimum=low, maximum=high)
        if low < 1 - 1e-6:
            expect(False, "delta_presence", None, minimum=low + 1e-6, maximum=1)
        if high > 1e-6:
            expect(False, "delta_presence", None, minimum=0, maximum=high - 1e-6)
    for (model, column, parameter), value in told.items():
        if model == "delta_presence":
            continue
        if value is None:
            assert model.endswith("beta_likeness"), model
            expect(False, model, column, **{parameter: 1e9})
        elif model in WHOLE:
            # Of no member of the population there is no k that could be asked for.
            if value:
                expect(True, model, column, **{parameter: int(value)})
            expect(False, model, column, **{parameter: int(value) + 1})
        else:
            expect(True, model, column, **{parameter: value})
            expect(True, model, column, **{parameter: float(bound(parameter, value).replace(",", ""))})
            stricter = value * (1 + 1e-6) if parameter in LARGER_IS_STRICTER else value * (1 - 1e-6)
            if value > LEAST and abs(value - stricter) > 1e-9:
                expect(False, model, column, **{parameter: stricter})
    models = [model for model, _ in asked]
    checks = duckanon.check(pa.table(table), models=models, population=population, **given_)
    # Two that ask for the same are checked once, and those of the size of classes come first.
    found = {tuple(sorted({"model": c.model, **c.parameters}.items(), key=str)): c.holds for c in checks}
    for model, expected in asked:
        own = [holds for key, holds in found.items() if set(model.items()) <= set(key)]
        assert own == [expected], model
