"""A permutation with a seed that can be guessed is undone; one with the operating system's randomness is not."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import duckanon
from duckanon.algorithms import Probabilistic
from duckanon.assess.attacks.seed import guess

QUASI = ["age", "height", "letter", "weight"]


def _people(n: int = 240) -> pa.Table:
    rng = np.random.default_rng(3)
    return pa.table(
        {
            "age": rng.integers(18, 90, n),
            "height": rng.integers(140, 200, n),
            "letter": rng.choice(list("abcdefgh"), n),
            "weight": rng.integers(40, 120, n),
            "ill": rng.choice(["x", "y", "z"], n),
        }
    )


def _release(seed: int | None, **how: object) -> duckanon.Release:
    given = {"quasi_identifiers": QUASI, "sensitive": ["ill"], "k": 4, "algorithm": "probabilistic", "seed": seed}
    return duckanon.anonymize(_people(), **(given | how))


@pytest.mark.parametrize("redraw", [True, False])
def test_a_seed_is_found(redraw: bool) -> None:
    with _release(170, algorithm=Probabilistic(redraw=redraw, groups="mondrian")) as release:
        assert guess(release, range(200)) == 170
        assert guess(release, range(170)) is None


def test_the_attack_says_so_and_does_not_find_a_secret_key() -> None:
    with _release(5) as release:
        (found,) = duckanon.attack(_people(), release, attacks=["seed"]).findings
    assert (found.success, found.level) == (1.0, "much")
    with _release(None) as release:
        (found,) = duckanon.attack(_people(), release, attacks=["seed"]).findings
    assert (found.success, found.level) == (0.0, "nothing")


@pytest.mark.parametrize(
    ("how", "word"),
    [
        ({"algorithm": "mondrian"}, "permuted"),
        ({"quasi_identifiers": ["age", "height"]}, "two blocks"),
    ],
)
def test_where_there_is_nothing_to_try_it_is_said(how: dict[str, object], word: str) -> None:
    with _release(None, **how) as release:
        found = duckanon.attack(_people(), release, attacks=["seed"])
    assert word in found.skipped["seed"]
