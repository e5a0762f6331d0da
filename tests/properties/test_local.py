"""Local recoding: what must hold of releases in several passes, on many random tables."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties.test_lattice import Setting
from reference import lattice as slow

import duckanon
from duckanon.errors import InfeasibleError
from duckanon.recoding.base import LocalRecoding
from tests.effort import share


@pytest.mark.parametrize("algorithm", ["datafly", "optimal"])
@share(1 / 4)
@given(seed=st.integers(0, 2**32))
def test_every_pass_keeps_the_promise(algorithm: str, seed: int, connection: Any) -> None:
    setting = Setting(random.Random(seed), sensitive=True)
    case = setting.case
    try:
        release = duckanon.anonymize(**setting.arguments(connection), algorithm=algorithm, iterative=True)
    except InfeasibleError:
        # Nothing is refused that a search without passes can do.
        assert not any(n.anonymous and n.suppressed < len(case.rows) for n in setting.nodes) or len(case.rows) < 2
        return
    with release:
        assert release.rows_suppressed <= setting.allowed
        assert release.rows_in == release.rows_published + release.rows_suppressed == len(case.rows)
        file = release.to_arrow()
        published = list(zip(*(file.column(n).to_pylist() for n in case.names), strict=True))
        members = defaultdict(list)
        for row, value in zip(published, file.column("s").to_pylist(), strict=True):
            members[row].append(value)
        assert all(holds(found, setting.values) for found in members.values() for _, holds in setting.promised)
        if case.persons is None:
            assert min(Counter(published).values()) >= case.k
        if not isinstance(release.recoding, LocalRecoding):
            return
        check_passes(setting, release, published)


def check_passes(setting: Setting, release: duckanon.Release, published: list[slow.Row]) -> None:
    """Every row is published at the levels of one pass, and the vectors of rows and classes agree."""
    case = setting.case
    passes = [tuple(p[n] for n in case.names) for p in release.recoding.passes]
    recoded = [slow.generalize(case.rows, case.trees, levels) for levels in passes]
    pool = Counter(published)
    for i in range(len(case.rows)):
        for table in recoded:
            if pool[table[i]]:
                pool[table[i]] -= 1
                break
    vectors = duckanon.comparison.vectors(release, ["class_size", "loss"])
    sizes = Counter(published)
    expected = sorted(n for n in sizes.values() for _ in range(n))
    found = vectors.column("class_size").to_pylist()
    if case.persons is None:
        lost = [release.rows_suppressed] * release.rows_suppressed
        assert sorted(int(v) for v in found) == sorted([*expected, *lost])
    (loss,) = [m.value for m in release.measure(["loss"]) if m.attribute is None]
    assert 0 <= loss <= 1 + 1e-9
    assert {m.metric for m in release.measure()} >= {"entropy", "kl_divergence", "squared_distance_error"}
