"""Privacy models: parameters, words, what searches may assume, and arrays at their edges."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from duckanon.errors import ParameterError
from duckanon.models import (
    AlphaKAnonymity,
    AverageReidentificationRisk,
    BasicBetaLikeness,
    DeltaDisclosure,
    DeltaPresence,
    EnhancedBetaLikeness,
    EntropyLDiversity,
    HierarchicalTCloseness,
    KAnonymity,
    KMap,
    LDiversity,
    MaximumReidentificationRisk,
    Model,
    OrderedTCloseness,
    ProbabilisticKAnonymity,
    PSensitiveKAnonymity,
    RecursiveCLDiversity,
    SampleUniqueness,
    TCloseness,
    Traits,
    models,
)
from duckanon.models.base import Groups, Histograms
from duckanon.plan.plan import parse_model
from duckanon.testing import check_model
from duckanon.testing.models import _Table

MANY = [
    *(AlphaKAnonymity(alpha, k) for alpha in (0.2, 0.4, 0.7, 1) for k in (1, 3)),
    *(LDiversity(n) for n in (1, 2, 3)),
    *(EntropyLDiversity(n) for n in (1, 1.5, 2, 3)),
    *(RecursiveCLDiversity(c, n) for c in (0.5, 1, 2, 5) for n in (1, 2, 3)),
    *(kind(t) for kind in (TCloseness, OrderedTCloseness, HierarchicalTCloseness) for t in (0, 0.1, 0.2, 0.4, 1)),
    *(kind(beta) for kind in (BasicBetaLikeness, EnhancedBetaLikeness) for beta in (0.1, 0.5, 1, 4)),
    *(DeltaDisclosure(delta, base=base) for delta in (0.3, 1, 2) for base in (2, 10)),
    *(PSensitiveKAnonymity(p, k) for p in (1, 2, 3) for k in (1, 4)),
    *(DeltaPresence(low, high) for low, high in ((0, 0.5), (0.4, 0.5), (0.3, 1))),
    *(kind(k) for kind in (KAnonymity, KMap, ProbabilisticKAnonymity) for k in (1, 3, 7)),
    *(kind(t) for kind in (MaximumReidentificationRisk, AverageReidentificationRisk) for t in (0.05, 0.2, 0.5, 1)),
    *(SampleUniqueness(t) for t in (0, 0.05, 0.2)),
]


def test_every_model_is_here() -> None:
    assert {m.name for m in MANY} == set(models)


def groups(*classes: dict[int, int], totals: list[int], ancestors: Any = ()) -> Groups:
    """Return classes as arrays; each maps codes to counts."""
    codes = [code for c in classes for code in sorted(c)]
    counts = [c[code] for c in classes for code in sorted(c)]
    starts = np.cumsum([0, *(len(c) for c in classes)])
    rows = np.array([sum(c.values()) for c in classes], dtype=np.int64)
    above = tuple(np.array(a) for a in ancestors)
    whole = [np.array(a, dtype=np.int64) for a in (starts, codes, counts, totals)]
    return Groups(rows, rows, Histograms(*whole, above), 2 * rows)


def named(model: Model) -> str:
    return f"{model.name}-{'-'.join(str(v) for v in model.parameters().values() if v is not None)}"


@pytest.mark.parametrize("model", MANY, ids=named)
def test_the_rules_hold_whatever_the_parameters(model: Model) -> None:
    """Traits that a random search refutes would let a search prune what it must not."""
    from duckanon.testing.models import _check_searches

    for seed in range(1000, 1060):
        _check_searches(model, seed)


@pytest.mark.parametrize("name", sorted({m.name for m in MANY if not m.traits.whole_table}))
@pytest.mark.thinned(4)
def test_no_trait_is_left_out(name: str) -> None:
    """What a model does not claim is refuted by some table: searches need not be slower than they must."""
    candidates = [m for m in MANY if m.name == name]
    claimed = candidates[0].traits
    monotone = absorbing = sizes = True
    for model in candidates:
        for seed in range(150):
            table = _Table.random(seed)
            n, found = 2 * table.pairs, model.satisfied(table.groups(merged=True))
            first, second, merged = found[:n:2], found[1:n:2], found[n:]
            monotone &= bool((merged | ~(first & second)).all())
            absorbing &= bool((merged | ~(first | second)).all())
            sizes &= bool((found == (table.groups(merged=True).sizes >= model.traits.min_class_size)).all())
    assert (claimed.monotone, claimed.absorbing, claimed.size_only) == (monotone, absorbing, sizes)


def test_salaries_and_diseases_of_the_paper() -> None:
    """Li et al. 2007: 3 to 11 thousand; the class of 3, 4, 5 is at 0.375, the one of 6, 8, 11 at 0.167."""
    found = groups({0: 1, 1: 1, 2: 1}, {3: 1, 5: 1, 8: 1}, totals=[1] * 9)
    assert OrderedTCloseness(0.375).satisfied(found).tolist() == [True, True]
    assert OrderedTCloseness(0.374).satisfied(found).tolist() == [False, True]
    assert OrderedTCloseness(1 / 6).satisfied(found).tolist() == [False, True]
    assert OrderedTCloseness(0.166).satisfied(found).tolist() == [False, False]
    assert TCloseness(2 / 3).satisfied(found).tolist() == [True, True]
    assert TCloseness(0.66).satisfied(found).tolist() == [False, False]
    levels = [range(6), [0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1], [0] * 6]
    stomach = groups({0: 1, 1: 1, 2: 1}, {0: 1, 2: 1, 5: 1}, totals=[1, 2, 2, 1, 2, 1], ancestors=levels)
    assert HierarchicalTCloseness(4 / 9).satisfied(stomach).tolist() == [True, True]
    assert HierarchicalTCloseness(0.444).satisfied(stomach).tolist() == [False, True]
    assert HierarchicalTCloseness(0.259).satisfied(stomach).tolist() == [False, False]


def test_two_equally_frequent_values_are_two_diverse() -> None:
    found = groups({0: 1, 1: 1}, {0: 500_000, 1: 500_000}, {0: 3, 1: 2}, totals=[500_004, 500_003])
    assert EntropyLDiversity(2).satisfied(found).tolist() == [True, True, False]


def test_strict_comparisons_stay_strict() -> None:
    found = groups({0: 11, 1: 10}, totals=[11, 10])
    assert not RecursiveCLDiversity(1.1, 2).satisfied(found)[0], "1.1 * 10 is 11.000000000000002, and yet 11"
    twice = groups({0: 2}, {0: 2, 1: 2}, totals=[4, 4])
    assert DeltaDisclosure(1).satisfied(twice).tolist() == [False, True]
    assert DeltaDisclosure(1.0001).satisfied(twice).tolist() == [True, True]
    assert DeltaDisclosure(0.5, base=4).satisfied(twice).tolist() == [False, True]


def test_delta_disclosure_looks_at_values_that_occur() -> None:
    """Two good classes may merge to a bad one: value 2 is frequent enough in the first, too rare in both."""
    parts = groups({0: 6, 1: 5, 2: 1}, {0: 6, 1: 6}, {0: 12, 1: 11, 2: 1}, totals=[45, 45, 10])
    assert DeltaDisclosure(1).satisfied(parts).tolist() == [True, True, False]


def test_a_risk_of_one_nth_is_n_members() -> None:
    for n in range(1, 1000):
        assert MaximumReidentificationRisk(1 / n).traits.min_class_size == n


def test_a_risk_that_is_no_nth_is_rounded_up() -> None:
    assert [MaximumReidentificationRisk(t).traits.min_class_size for t in (1, 0.6, 0.3, 0.21, 0.19)] == [1, 2, 4, 5, 6]


def test_the_smallest_classes_go_first_and_no_more_than_needed() -> None:
    sizes = np.array([1, 5, 1, 1, 12])
    found = Groups(sizes, sizes)
    # 5 of 20 on average; without one of the single members 4 of 19, without two 3 of 18, without all three 2 of 17
    expect = {0.25: [], 0.22: [0], 1 / 6: [0, 2], 0.12: [0, 2, 3], 0.1: [0, 1, 2, 3], 0.05: [0, 1, 2, 3, 4]}
    for threshold, out in expect.items():
        stays = AverageReidentificationRisk(threshold).satisfied(found)
        assert np.flatnonzero(~stays).tolist() == out, threshold
    # 3 of 20 are alone
    for threshold, out in {0.15: [], 0.14: [0], 0.1: [0, 2], 0.01: [0, 2, 3], 0: [0, 2, 3]}.items():
        assert np.flatnonzero(~SampleUniqueness(threshold).satisfied(found)).tolist() == out, threshold


def test_delta_presence_cannot_hide_who_is_not_there() -> None:
    found = dataclasses.replace(groups({0: 1}, totals=[1]), population_only=1)
    assert DeltaPresence(0, 0.5).satisfied(found).tolist() == [True]
    assert DeltaPresence(0.1, 0.5).satisfied(found).tolist() == [False]


@pytest.mark.parametrize("model", MANY, ids=named)
def test_no_classes_and_one_class(model: Model) -> None:
    assert model.satisfied(groups(totals=[3, 4], ancestors=[[0, 1], [0, 0]])).tolist() == []
    one = groups({0: 3, 1: 4}, totals=[3, 4], ancestors=[[0, 1], [0, 0]])
    assert model.satisfied(one).shape == (1,)


def test_a_class_without_values_shows_nothing() -> None:
    found = groups({}, {0: 2, 1: 2}, {}, totals=[2, 2], ancestors=[[0, 1], [0, 0]])
    of_column: list[Model] = [
        LDiversity(1), EntropyLDiversity(1), RecursiveCLDiversity(5, 1), TCloseness(1), OrderedTCloseness(1),
        HierarchicalTCloseness(1), BasicBetaLikeness(9), EnhancedBetaLikeness(9), DeltaDisclosure(9),
    ]  # fmt: skip
    for model in of_column:
        with np.errstate(all="raise"):
            assert model.satisfied(found).tolist() == [False, True, False], model.name


def test_many_values_cost_no_memory() -> None:
    """Classes times values would be 10^11 numbers."""
    random = np.random.default_rng(7)
    classes, size = 100_000, 1_000_000
    codes = np.sort(random.integers(0, size, (classes, 3)) + np.array([0, size, 2 * size]), axis=1).ravel()
    h = Histograms(
        np.arange(0, 3 * classes + 1, 3), codes, np.ones(3 * classes, dtype=np.int64), np.ones(3 * size, dtype=np.int64)
    )
    rows = np.full(classes, 3)
    found = OrderedTCloseness(0.3).satisfied(Groups(rows, rows, h))
    some = random.integers(0, classes, 3)
    cumulated = np.arange(1, 3 * size + 1) / (3 * size)
    for i in some:
        own = np.searchsorted(codes[3 * i : 3 * i + 3], np.arange(3 * size), side="right") / 3
        assert found[i] == (np.abs(own - cumulated).sum() / (3 * size - 1) <= 0.3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LDiversity(0), "'l' parameter of LDiversity must be an int >= 1. Got 0"),
        (lambda: LDiversity(2.5), "must be an int"),  # type: ignore[arg-type]
        (lambda: LDiversity(2, ""), "'sensitive' parameter of LDiversity must be the name of a column"),
        (lambda: LDiversity(2, 5), "must be the name of a column"),  # type: ignore[arg-type]
        (lambda: EntropyLDiversity(0.9), "must be a number >= 1"),
        (lambda: EntropyLDiversity(float("inf")), "must be a number >= 1. Got inf"),
        (lambda: RecursiveCLDiversity(0, 2), "must be a number > 0"),
        (lambda: TCloseness(1.1), "must be a number >= 0 and <= 1. Got 1.1"),
        (lambda: TCloseness(float("nan")), "must be a number"),
        (lambda: TCloseness("0.2"), "must be a number .* Got str"),  # type: ignore[arg-type]
        (lambda: OrderedTCloseness(-0.1), "must be a number >= 0"),
        (lambda: HierarchicalTCloseness(True), "must be a number"),
        (lambda: BasicBetaLikeness(0), "must be a number > 0"),
        (lambda: EnhancedBetaLikeness(-1), "must be a number > 0"),
        (lambda: DeltaDisclosure(0), "'delta' parameter of DeltaDisclosure must be a number > 0"),
        (lambda: DeltaDisclosure(1, base=1), "'base' parameter of DeltaDisclosure must be a number > 1"),
        (lambda: AlphaKAnonymity(0, 2), "'alpha' parameter of AlphaKAnonymity must be a number > 0 and <= 1"),
        (lambda: AlphaKAnonymity(0.5, 0), "'k' parameter of AlphaKAnonymity"),
        (lambda: PSensitiveKAnonymity(0, 2), "'p' parameter"),
        (lambda: KMap(0), "'k' parameter of KMap"),
        (lambda: DeltaPresence(0.5, 0.4), "'minimum' parameter of DeltaPresence must be at most its 'maximum'"),
        (lambda: DeltaPresence(0, 1.5), "'maximum' parameter of DeltaPresence"),
        (lambda: MaximumReidentificationRisk(0), "'threshold' parameter of MaximumReidentificationRisk"),
        (lambda: AverageReidentificationRisk(2), "'threshold' parameter of AverageReidentificationRisk"),
        (lambda: SampleUniqueness(-0.1), "'threshold' parameter of SampleUniqueness"),
    ],
)
def test_parameters_out_of_range_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make()


def test_a_search_that_forgets_what_a_model_reads_is_told() -> None:
    rows = np.array([3])
    with pytest.raises(ParameterError, match="sensitive column"):
        LDiversity(2).satisfied(Groups(rows, rows))
    with pytest.raises(ParameterError, match="population"):
        KMap(2).satisfied(Groups(rows, rows))
    with pytest.raises(ParameterError, match="hierarchy"):
        HierarchicalTCloseness(0.5).satisfied(groups({0: 1}, totals=[1]))


def test_what_models_need() -> None:
    assert {n for n in models if models.get(n).needs_population} == {"k_map", "delta_presence"}
    assert {n for n in models if models.get(n).needs_hierarchy} == {"hierarchical_t_closeness"}


@pytest.mark.parametrize(
    ("traits", "message"),
    [
        (Traits(monotone=True, min_class_size=1), "is not monotone"),
        (Traits(monotone=False, min_class_size=1, absorbing=True), "is not absorbing"),
        (Traits(monotone=False, min_class_size=4), "smaller than min_class_size"),
    ],
)
def test_a_trait_that_is_not_so_is_found(traits: Traits, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DeltaDisclosure, "traits", traits)
    with pytest.raises(AssertionError, match=message):
        check_model(DeltaDisclosure(2))


def test_arrays_that_differ_from_the_statement_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LDiversity, "satisfied", lambda self, g: np.diff(g.histograms.starts) >= self.l + 1)
    with pytest.raises(AssertionError, match="do not name the same classes"):
        check_model(LDiversity(2))
    monkeypatch.setattr(SampleUniqueness, "satisfied", lambda self, g: g.sizes < 3)
    with pytest.raises(AssertionError, match="larger than one that stays"):
        check_model(SampleUniqueness(0.1))


def test_the_words_of_a_delta_beyond_all_numbers() -> None:
    assert "less than inf times" in DeltaDisclosure(1e308).describe()


def test_whole_numbers_end_where_those_of_statements_do() -> None:
    assert KAnonymity(2**63 - 1).k == 2**63 - 1
    with pytest.raises(ParameterError, match="at most 9223372036854775807"):
        KAnonymity(2**63)


@pytest.mark.parametrize("text", ["k_anonymity(k={[]})", "k_anonymity({[1]: 2})"])
def test_a_model_whose_text_cannot_be_a_value(text: str) -> None:
    with pytest.raises(ParameterError, match="A model as text"):
        parse_model(text)
