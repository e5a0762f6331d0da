"""Every model three times: its statement, its arrays and its definition say the same of random classes.

Thresholds are often exactly what a class reaches, so that rounding has a chance to be wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import fields
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import models as reference
from reference.classes import OTHER, SENSITIVE, WHOLE_TABLE, Case, expected, relations

from duckanon.engine.base import Engine
from duckanon.models import models
from duckanon.models.base import Groups, Histograms, Model, levels, violations
from tests.effort import share
from tests.engines.relations import registered


@st.composite
def cases(draw: st.DrawFn) -> Case:
    letters = ["a", "b", "c", "d", "e", None][: draw(st.integers(1, 6))]
    letters += [None] if draw(st.booleans()) and None not in letters else []
    values = draw(st.lists(st.lists(st.sampled_from(letters), min_size=1, max_size=8), min_size=1, max_size=5))
    count = len(values)
    members = [draw(st.integers(1, len(v))) if draw(st.booleans()) else len(v) for v in values]
    out = draw(st.lists(st.booleans(), min_size=count, max_size=count)) if draw(st.booleans()) else [False] * count
    people = [draw(st.sampled_from([0, m, 2 * m, 3 * m, m + 1])) for m in members]
    found = {v for row in values for v in row}
    order = [v for v in letters if v in found]
    tree: dict[Hashable, list[Hashable]] = {v: [v] for v in order}
    groups = {v: i for i, v in enumerate(order)}
    for _ in range(draw(st.integers(0, 2))):
        parent = [draw(st.integers(0, 2)) for _ in range(len(order) + 3)]
        groups = {v: parent[g] for v, g in groups.items()}
        for v, g in groups.items():
            tree[v].append(g)
    for labels in tree.values():
        labels.append("*")
    return Case(tuple(map(tuple, values)), tuple(members), tuple(out), tuple(people), tuple(order), tree)


def groups(case: Case) -> Groups:
    """Return the kept classes as arrays."""
    codes = {v: i for i, v in enumerate(case.order)}
    entries = [sorted((codes[v], n) for v, n in Counter(case.values[i]).items()) for i in case.kept]
    flat = [entry for class_ in entries for entry in class_]
    depth = len(next(iter(case.tree.values())))
    levels = [[case.tree[v][level] for v in case.order] for level in range(depth)]
    numbers = [{label: i for i, label in enumerate(dict.fromkeys(labels))} for labels in levels]
    totals = Counter(case.table)

    def whole(values: list[int]) -> Any:
        return np.array(values, dtype=np.int64)

    return Groups(
        sizes=whole([case.members[i] for i in case.kept]),
        rows=whole([len(case.values[i]) for i in case.kept]),
        histograms=Histograms(
            starts=whole([0, *np.cumsum([len(class_) for class_ in entries])]),
            codes=whole([code for code, _ in flat]),
            counts=whole([n for _, n in flat]),
            totals=whole([totals[v] for v in case.order]),
            ancestors=tuple(whole([n[x] for x in labels]) for n, labels in zip(numbers, levels, strict=True)),
        ),
        population=whole([case.population[i] for i in case.kept]),
    )


def thresholds(name: str, case: Case) -> list[Fraction]:
    """Return what the classes reach exactly, and a few others, where the model has a threshold that is a fraction."""
    table_, found = case.table, [Fraction(1, 10), Fraction(1, 3), Fraction(1, 2)]
    sizes = [case.members[i] for i in case.kept]
    for values in case.values:
        if name == "alpha_k_anonymity":
            found.append(reference.largest_share(values))
        elif name == "t_closeness":
            found.append(reference.equal_distance(values, table_))
        elif name == "ordered_t_closeness":
            found.append(reference.ordered_distance(values, table_, case.order))
        elif name == "hierarchical_t_closeness":
            found.append(reference.hierarchical_distance(values, table_, case.tree))
        elif name.endswith("beta_likeness"):
            found += [gain for _, gain in reference.gains(values, table_)]
    if name in WHOLE_TABLE:
        found += [WHOLE_TABLE[name](sizes), WHOLE_TABLE[name](sizes[1:])]
    found += [Fraction(1, n) for n in case.members]
    return sorted({f for f in found if 0 < f <= 1} | ({Fraction(0)} if "closeness" in name else set()))


def small(draw: st.DrawFn, low: int = 1, high: int = 6) -> int:
    return draw(st.integers(low, high))


@st.composite
def promises(draw: st.DrawFn, name: str) -> tuple[Case, dict[str, Any]]:
    """Return a table and exact parameters of a model."""
    case = draw(cases())
    share = draw(st.sampled_from(thresholds(name, case)))
    wide = st.sampled_from([Fraction(1, 2), Fraction(1), Fraction(11, 10), Fraction(3, 2), Fraction(2), Fraction(3)])
    given_: dict[str, Any] = {
        "k": small(draw), "l": small(draw), "p": small(draw), "alpha": share, "t": share, "beta": share,
        "threshold": share, "c": draw(wide), "delta": draw(wide),
    }  # fmt: skip
    low, high = sorted([draw(st.sampled_from([Fraction(n, 6) for n in range(7)])) for _ in range(2)])
    given_ |= {"minimum": low, "maximum": high, "base": draw(st.sampled_from([Fraction(2), Fraction(3)]))}
    if name == "entropy_l_diversity":
        given_["l"] = draw(st.sampled_from([Fraction(1), Fraction(3, 2), Fraction(2), Fraction(3), Fraction(4)]))
    wanted = {f.name for f in fields(models.get(name))}
    return case, {key: value for key, value in given_.items() if key in wanted}


def violating(engine: Engine, model: Model, rows: dict[str, list[tuple[Any, ...]]]) -> set[int]:
    """Return the classes that violate a model."""
    with registered(engine, rows) as names:
        found = engine.rows(*violations(model, names))
    sizes = {row[0]: row[1] for row in rows["classes"]}
    assert all(sizes.get(class_id, 0) == n for class_id, n in found)
    assert len({class_id for class_id, _ in found}) == len(found)
    return {class_id for class_id, _ in found}


def instance(name: str, given_: dict[str, Any]) -> Model:
    plain = {key: value if isinstance(value, int) else float(value) for key, value in given_.items()}
    kind: Any = models.get(name)
    if "sensitive" in {f.name for f in fields(kind)}:
        plain["sensitive"] = SENSITIVE
    made: Model = kind(**plain)
    return made


@pytest.mark.parametrize("name", list(models))
@pytest.mark.thinned(2)
def test_statement_arrays_and_definition_agree(name: str, shared_engine: Engine) -> None:
    @given(promises(name))
    def check(drawn: tuple[Case, dict[str, Any]]) -> None:
        case, given_ = drawn
        model = instance(name, given_)
        wanted = expected(name, case, given_)
        assert model.satisfied(groups(case)).tolist() == wanted
        found = violating(shared_engine, model, relations(case))
        broken = {i for i, holds in zip(case.kept, wanted, strict=True) if not holds}
        if name in WHOLE_TABLE:
            sizes = [case.members[i] for i in case.kept]
            assert bool(found) == bool(broken) == (WHOLE_TABLE[name](sizes) > given_["threshold"])
            alone = name == "sample_uniqueness"
            blamed = {
                i
                for i in case.kept
                if (case.members[i] == 1 if alone else given_["threshold"] < Fraction(1, case.members[i]))
            }
            assert found == (blamed if broken else set())
        else:
            assert found == broken

    check()


@share(1)
@given(cases())
def test_levels_are_the_strongest_parameters(shared_engine: Engine, case: Case) -> None:
    rows = relations(case)
    found: dict[str, dict[str, float | None]] = {SENSITIVE: {}, OTHER: {}}
    plain: dict[str, float | None] = {}
    with registered(shared_engine, rows) as names:
        for kind in (kind for kind in map(models.get, models) if not kind.hidden):
            by_column = "sensitive" in {f.name for f in fields(kind)}  # type: ignore[arg-type]
            for attribute in (SENSITIVE, OTHER) if by_column else (None,):
                strongest = levels(shared_engine, names, kind, attribute)
                assert (strongest is not None) == bool(case.kept)
                place = plain if attribute is None else found[attribute]
                place.update({f"{kind.name} {parameter}": value for parameter, value in (strongest or {}).items()})
    if not case.kept:
        return
    sizes = [case.members[i] for i in case.kept]
    people = [case.population[i] for i in case.kept]
    shares = [Fraction(m, p) if p else None for m, p in zip(sizes, people, strict=True)]
    known = [s for s in shares if s is not None]
    assert_same(
        plain,
        {
            "k_anonymity k": min(sizes),
            "maximum_reidentification_risk threshold": Fraction(1, min(sizes)),
            "average_reidentification_risk threshold": reference.average_risk(sizes),
            "sample_uniqueness threshold": reference.uniqueness(sizes),
            "k_map k": min(people),
            "delta_presence minimum": min(known, default=None),
            "delta_presence maximum": max(known) if len(known) == len(shares) else None,
        },
    )
    kept = [case.values[i] for i in case.kept]
    assert_same(found[SENSITIVE], reference.levels(kept, case.order, case.tree, case.table))
    assert found[OTHER]["t_closeness t"] == 0
    assert found[OTHER]["l_diversity l"] == 1


def assert_same(found: dict[str, float | None], wanted: dict[str, Any]) -> None:
    assert found == {k: v if v is None else pytest.approx(float(v), rel=1e-9, abs=1e-12) for k, v in wanted.items()}
