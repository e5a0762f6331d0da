"""Groups that two releases reveal together, compared with a count by hand."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from duckanon.assess.composition import compared
from duckanon.engine.base import Engine
from tests.effort import share
from tests.nightly import groups

Classes = dict[int, set[str]]
CLASSES = st.dictionaries(st.integers(0, 12), st.sets(st.sampled_from("ABCD"), min_size=1, max_size=3), max_size=12)


def stored(engine: Engine, classes: Classes) -> str:
    pairs = [(patient, label) for patient, own in classes.items() for label in sorted(own)]
    name = engine.fresh("persons")
    columns: dict[str, Any] = {
        "person": pa.array([str(p).encode() for p, _ in pairs], pa.binary()),
        "class_id": pa.array([c.encode() for _, c in pairs], pa.binary()),
    }
    engine.register(name, pa.table(columns))
    return name


@share(6)
@given(before=CLASSES, after=CLASSES, same=st.booleans(), k=st.integers(1, 4))
def test_groups_are_those_counted_by_hand(engine: Engine, before: Classes, after: Classes, same: bool, k: int) -> None:
    if same:
        # Most stay as they are from night to night.
        after = {patient: after.get(patient, own) if patient % 3 == 0 else own for patient, own in before.items()}
    tables = stored(engine, before), stored(engine, after)
    found = compared(engine, "before", *tables, k)
    for name in tables:
        engine.unregister(name)
    expected = groups(before, after)
    both = expected["both"]
    assert found.persons_in_both == len(before.keys() & after.keys())
    assert found.smallest == min(both.values(), default=None)
    assert found.groups_below == sum(n < k for n in both.values())
    below = exposed(before, after, k)
    assert found.persons_below == len(below["both"])
    assert (found.new_below, found.departed_below) == (len(below["new"]), len(below["departed"]))


def exposed(before: Classes, after: Classes, k: int) -> dict[str, set[int]]:
    """Return the persons who are in groups of fewer than k, each of them looked for in every group."""
    sizes, found = groups(before, after), defaultdict(set)
    for person in before.keys() | after.keys():
        own = groups(*({p: c for p, c in night.items() if p == person} for night in (before, after)))
        for kind, counted in own.items():
            if any(sizes[kind][group] < k for group in counted):
                found[kind].add(person)
    return found
