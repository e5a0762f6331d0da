"""Datafly under every model of a sensitive column, compared with a slow reference on many random tables."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties.test_reference import Case
from reference import datafly as slow
from reference import models as plain

import duckanon
from duckanon.errors import InfeasibleError
from tests.effort import share

TREE = {"s0": ["s0", "m", "*"], "s1": ["s1", "m", "*"], "s2": ["s2", "n", "*"], "s3": ["s3", "n", "*"]}
TREE[None] = [None, None, "*"]
ORDER = ["s0", "s1", "s2", "s3", None]

LEVELS = {f"l{i}": [labels[i] for leaf, labels in TREE.items() if leaf is not None] for i in range(3)}
SENSITIVE_TREE = duckanon.Hierarchy.from_table(pa.table(LEVELS))

Values = list[Any]
Promise = tuple[str, Callable[[Values, Values], bool]]


def promise(rng: random.Random) -> Promise:
    """A model as text, and the same from its definition."""
    t = Fraction(rng.randint(0, 10), 16)
    l = rng.randint(1, 4)  # noqa: E741
    c = Fraction(rng.randint(1, 12), 4)
    beta = Fraction(rng.randint(1, 12), 4)
    alpha = Fraction(rng.randint(1, 8), 8)

    def ordered(values: Values, table: Values) -> bool:
        return plain.ordered_distance(values, table, [v for v in ORDER if v in table]) <= t

    def hierarchical(values: Values, table: Values) -> bool:
        return plain.hierarchical_distance(values, table, TREE) <= t

    return rng.choice(
        [
            (f"l_diversity({l})", lambda v, _: plain.l_diversity(v, l)),
            (f"entropy_l_diversity({float(c) + 1})", lambda v, _: plain.entropy_l_diversity(v, c + 1)),
            (f"recursive_c_l_diversity({float(c)}, {l})", lambda v, _: plain.recursive_c_l_diversity(v, c, l)),
            (f"alpha_k_anonymity({float(alpha)}, {l})", lambda v, _: plain.alpha_k_anonymity(v, len(v), alpha, l)),
            (f"t_closeness({float(t)})", lambda v, w: plain.equal_distance(v, w) <= t),
            (f"ordered_t_closeness({float(t)})", ordered),
            (f"hierarchical_t_closeness({float(t)})", hierarchical),
            (f"basic_beta_likeness({float(beta)})", lambda v, w: plain.basic_beta_likeness(v, w, beta)),
            (f"enhanced_beta_likeness({float(beta)})", lambda v, w: plain.enhanced_beta_likeness(v, w, beta)),
            (f"delta_disclosure({float(beta)})", lambda v, w: plain.delta_disclosure(v, w, beta, Fraction(2))),
        ]
    )


@share(1 / 2)
@given(seed=st.integers(0, 2**32))
def test_datafly_keeps_every_model_as_walking_does(seed: int, connection: duckdb.DuckDBPyConnection) -> None:
    rng = random.Random(seed)
    case = Case(rng)
    values = [rng.choice(rng.choice([["s0"], ORDER])) for _ in case.rows]
    promised = [promise(rng) for _ in range(rng.randint(1, 2))]

    def broken(table: list[slow.Row]) -> set[slow.Row]:
        members = defaultdict(list)
        for row, value in zip(table, values, strict=True):
            members[row].append(value)
        return {row for row, found in members.items() if not all(holds(found, values) for _, holds in promised)}

    try:
        expected = slow.datafly(case.rows, case.trees, case.k, case.limit, persons=case.persons, broken=broken)
    except slow.Infeasible:
        expected = None
    table = case.table().append_column("s", pa.array(values, pa.string()))
    given = {
        "quasi_identifiers": case.names,
        "sensitive": ["s"],
        "entity_key": "person" if case.persons is not None else None,
        "hierarchies": {**case.hierarchies(), "s": SENSITIVE_TREE},
        "k": case.k,
        "models": [text for text, _ in promised],
        "suppression_limit": case.limit,
        "algorithm": "datafly",
        "connection": connection,
    }
    if expected is None:
        with pytest.raises(InfeasibleError):
            duckanon.anonymize(table, **given)
        return
    with duckanon.anonymize(table, **given) as release:
        assert tuple(release.recoding.levels[n] for n in case.names) == expected.levels
        assert release.rows_suppressed == expected.suppressed
        assert all(check.holds for check in release.checks)
        columns = [c.to_pylist() for c in release.to_arrow().select(case.names).columns]
        assert sorted(zip(*columns, strict=True), key=repr) == sorted(expected.published.elements(), key=repr)
