"""Bundles hand kernels what a named tuple has, and one specialization of a kernel serves every kind of work."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

import duckanon
from duckanon.kernels.bundle import bundled
from duckanon.kernels.jit import address_of, call_hook, hook, kernel


class Fields(NamedTuple):
    flags: Any
    below: int
    yes: bool
    no: bool
    share: float
    wide: Any
    hook: int


@hook
def added(fields: Any, _b: Any, _c: Any, _d: Any, _e: Any, x: int, y: int, z: int) -> int:
    return int(fields.wide[1, 2]) + x + y + z


@kernel
def read(fields: Any, out: Any) -> int:
    out[0], out[1], out[2], out[3] = fields.below, fields.share, fields.yes, fields.no
    out[4], out[5] = fields.flags[2], fields.wide[1, 2]
    fields.wide[0, 1] = 9.0
    return call_hook(fields.hook, fields, fields, fields, fields, fields, 1, 2, 3)


def test_kernels_read_and_write_what_a_bundle_has() -> None:
    wide = np.arange(6, dtype=np.float64).reshape(2, 3)
    fields = Fields(np.array([1, 2, 3], dtype=np.uint8), -7, True, False, -0.5, wide, 0)
    bundle = bundled(fields)
    bundle = bundled(fields._replace(hook=address_of(added, *[bundle] * 5)))
    out = np.zeros(6)
    assert read(bundle, out) == 5 + 1 + 2 + 3
    assert out.tolist() == [-7.0, -0.5, 1.0, 0.0, 3.0, 5.0]
    assert wide[0, 1] == 9.0
    assert bundle.below == -7


def test_arrays_of_a_bundle_are_contiguous() -> None:
    with pytest.raises(TypeError, match="contiguous"):
        bundled(Fields(np.zeros(6)[::2], 0, False, False, 0.0, np.zeros((1, 1)), 0))


def test_all_kinds_of_mondrian_share_one_specialization() -> None:
    from duckanon.kernels.cuts import judge
    from duckanon.kernels.mondrian import grow

    rng = np.random.default_rng(5)
    people = pa.table(
        {
            "sex": rng.choice(list("fm"), 200).tolist(),
            "age": rng.integers(0, 90, 200),
            "ill": rng.choice(list("abc"), 200).tolist(),
            "person": np.arange(200) // 2,
        }
    )
    for more in (
        {},
        {"sensitive": ["ill"], "l": 2},
        {"sensitive": ["ill"], "t": 0.5},
        {"entity_key": "person"},
        {"algorithm": "mondrian(relaxed=true)"},
        {"sensitive": ["ill"], "algorithm": "mondrian(target='ill')"},
    ):
        duckanon.anonymize(people, quasi_identifiers=["sex", "age"], k=3, **more).close()
    compiled: list[Any] = [grow, judge]
    assert [len(kernel.overloads) for kernel in compiled] == [1, 1]
