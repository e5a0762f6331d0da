"""Mondrian with `anonymize`: its options, its report, and that the gate does not trust it."""

from __future__ import annotations

import math
from collections import Counter
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sqlglot import exp

import duckanon
from duckanon import Hierarchy
from duckanon.algorithms import Mondrian
from duckanon.engine.sql.recode import shuffled
from duckanon.errors import InfeasibleError, ParameterError, PrivacyViolation, UnsupportedError
from duckanon.release.stages import partition as dividing


def people(rows: int = 400) -> pa.Table:
    rng = np.random.default_rng(7)
    return pa.table(
        {
            "age": rng.integers(18, 90, rows),
            "town": [f"t{i}" for i in rng.integers(0, 6, rows)],
            "region": [f"r{i}" for i in rng.integers(0, 3, rows)],
            "ill": [f"i{i}" for i in rng.integers(0, 5, rows)],
            "cost": rng.normal(size=rows),
        }
    )


ROLES: dict[str, Any] = {"quasi_identifiers": ["age", "town"], "sensitive": ["ill"], "insensitive": ["cost"]}


def sizes(release: Any, columns: list[str]) -> Counter[Any]:
    table = release.to_arrow()
    return Counter(zip(*(table.column(c).to_pylist() for c in columns), strict=True))


def test_it_is_the_default_and_says_so() -> None:
    with duckanon.anonymize(people(), **ROLES, k=5) as release:
        summary = release.summary()
        assert summary["algorithm"]["name"] == "mondrian"
        assert summary["bounds"] == "grid"
        assert min(sizes(release, ["age", "town"]).values()) >= 5
        assert "round grid" in release.report("md")
        assert release.rows_suppressed == 0


@pytest.mark.parametrize(
    ("asked", "used"),
    [({"levels": {"age": 2}, "suppression_limit": 0.9}, "datafly"), ({"iterative": True}, "datafly"), ({}, "mondrian")],
)
def test_levels_bring_an_algorithm_that_has_them(asked: dict[str, Any], used: str) -> None:
    plan = duckanon.Plan.of(people(), **ROLES, k=5, **asked)
    assert plan.algorithm.name == used


def test_levels_are_refused_where_it_is_named() -> None:
    with pytest.raises(UnsupportedError, match="have no levels"):
        duckanon.anonymize(people(), **ROLES, k=5, algorithm="mondrian", max_levels={"age": 1})


def test_a_rare_null_does_not_spoil_its_column() -> None:
    ages = pa.array([None, *(18 + i % 70 for i in range(1999))], pa.int64())
    with duckanon.anonymize(pa.table({"age": ages}), quasi_identifiers=["age"], k=5) as release:
        found = sizes(release, ["age"])
    assert found[("*",)] < 100, "only those beside the NULL are published as the top"
    assert len(found) > 10


WIDE = Hierarchy.intervals(width=10)
LISTED = Hierarchy.from_table(pa.table({"leaf": ["1", "2", "3", "4"], "group": ["one", "two", "more", "more"]}))


@pytest.mark.parametrize("output", ["interval", "bounds"])
@pytest.mark.parametrize(
    ("values", "hierarchy", "names", "bounds"),
    [
        # One value of a group, a whole column of it, and several: the group is published alike.
        ([35, 71], WIDE, ["[30, 39]", "[70, 79]"], [(30, 39), (70, 79)]),
        ([35], WIDE, ["[30, 39]"], [(30, 39)]),
        ([35, 31], WIDE, ["[30, 39]"], [(30, 39)]),
        ([date(2020, 2, 5)], None, ["[2020-02-01, 2020-02-29]"], [(date(2020, 2, 1), date(2020, 2, 29))]),
        # Groups that can have one value alone.
        ([1, 2, 3], LISTED, ["1", "2", "[3, 4]"], [(1, 1), (2, 2), (3, 4)]),
        ([35, 71], Hierarchy.intervals(width=1), [35, 71], [(35, 35), (71, 71)]),
        ([5.0, math.nan], WIDE, ["[0, 10)", "nan"], [(0.0, 10.0), (math.nan, math.nan)]),
        ([5.0, None], WIDE, ["[0, 10)", None], [(0.0, 10.0), (None, None)]),
        # So few values that no grid is made of them.
        ([0, 1], None, [0, 1], [(0, 0), (1, 1)]),
    ],
)
@pytest.mark.thinned(3)
def test_groups_of_a_grid_are_published_whole(
    values: list[Any], hierarchy: Hierarchy | None, names: list[Any], bounds: list[Any], output: str
) -> None:
    table = pa.table({"q": [value for value in values for _ in range(6)]})
    given = {} if hierarchy is None else {"hierarchies": {"q": hierarchy}}
    with duckanon.anonymize(table, quasi_identifiers=["q"], k=3, output={"q": output}, **given) as release:
        columns = release.to_arrow().columns
        rows = {
            repr(row[0] if output == "interval" else row) for row in zip(*(c.to_pylist() for c in columns), strict=True)
        }
        assert rows == {repr(row) for row in (names if output == "interval" else bounds)}


def test_a_limit_that_was_not_needed_is_said() -> None:
    with duckanon.anonymize(people(), **ROLES, k=5, suppression_limit=0.1) as release:
        assert any("no row had to be suppressed" in note for note in release.summary()["notes"])


def test_within_keeps_each_region_apart() -> None:
    with duckanon.anonymize(people(), **ROLES, k=5, within=["region"]) as release:
        assert min(sizes(release, ["age", "town", "region"]).values()) >= 5
        assert set(release.to_arrow().column("region").to_pylist()) == {"r0", "r1", "r2"}


def test_a_region_that_is_too_small_is_refused_or_suppressed() -> None:
    table = people()
    regions = ["small"] * 3 + table.column("region").to_pylist()[3:]
    table = table.set_column(2, "region", pa.array(regions))
    with pytest.raises(InfeasibleError, match=r"1 of 4 parts by region \(3 rows\)"):
        duckanon.anonymize(table, **ROLES, k=5, within=["region"])
    with duckanon.anonymize(table, **ROLES, k=5, within=["region"], suppression_limit=0.01) as release:
        assert release.rows_suppressed == 3
        assert "small" not in release.to_arrow().column("region").to_pylist()


@pytest.mark.parametrize("more", [{}, {"l": 3}, {"t": 0.5}, {"within": ["region"]}])
@pytest.mark.thinned(2)
def test_parts_keep_the_same_promises(more: dict[str, Any]) -> None:
    with duckanon.anonymize(people(2000), **ROLES, k=5, **more, algorithm=Mondrian(budget=150)) as release:
        assert release.summary()["search"]["parts"] > 1
        assert all(c.holds for c in release.checks)
        assert release.rows_published == 2000


def test_combinations_give_the_classes_of_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    from duckanon.recoding import coded_rows

    table, found = people(3000), []
    for repeats in (10**9, 0):
        monkeypatch.setattr(coded_rows, "_REPEATS", repeats)
        with duckanon.anonymize(table, **ROLES, k=5, l=2, seed=1) as release:
            found.append(release.to_arrow().to_pylist())
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"choose_dim": "widest"}, "choose_dim"),
        ({"target": "ill", "choose_dim": "range"}, "target"),
        ({"target": "ill", "relaxed": True}, "Relaxed"),
        ({"relaxed": 1}, "relaxed"),
        ({"ordered": [1]}, "ordered"),
        ({"budget": 0}, "budget"),
    ],
)
def test_parameters_that_make_no_sense(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Mondrian(**parameters)


def test_a_target_must_be_published() -> None:
    with pytest.raises(ParameterError, match="Did you mean 'ill'"):
        duckanon.anonymize(people(), **ROLES, k=5, algorithm=Mondrian(target="il"))
    with pytest.raises(ParameterError, match="Least squares"):
        duckanon.anonymize(people(), **ROLES, k=5, algorithm=Mondrian(target="ill", choose_dim="least_squares"))


@pytest.mark.parametrize("target", [{"target": "ill"}, {"target": ["cost"], "choose_dim": "least_squares"}])
def test_a_target_places_cuts(target: dict[str, Any]) -> None:
    with duckanon.anonymize(people(), **ROLES, k=5, algorithm=Mondrian(**target)) as release:
        assert min(sizes(release, ["age", "town"]).values()) >= 5


def lie_about_size(patch: pytest.MonkeyPatch) -> None:
    """Classes of one row."""
    honest = Mondrian.divide
    rules = dividing.Rules
    patch.setattr(rules, "least", property(lambda self: 1))
    patch.setattr(
        Mondrian,
        "divide",
        lambda self, axes, items, asked, **more: honest(
            self, axes, items, rules((duckanon.models.KAnonymity(1),), asked.totals), **more
        ),
    )


def lie_about_classes(patch: pytest.MonkeyPatch) -> None:
    """One row gets the class of another."""
    honest = dividing.Divider._keep

    def changed(self: Any, items: Any, parts: Any, *rest: Any) -> Any:
        order = parts.order.copy()
        order[0], order[-1] = order[-1], order[0]
        moved = parts.starts.copy()
        moved[1] += 1
        return honest(self, items, dividing.Parts(order, moved, parts.regions, parts.levels), *rest)

    patch.setattr(dividing.Divider, "_keep", changed)


def lie_about_rows(patch: pytest.MonkeyPatch) -> None:
    """Rows of a class are lost."""
    honest = dividing.Division.classed

    def changed(self: Any, columns: Any) -> Any:
        from sqlglot import exp

        from duckanon.engine.sql.relations import col, number

        return honest(self, columns).where(exp.NEQ(this=col("class_id", "k"), expression=number(1)))

    patch.setattr(dividing.Division, "classed", changed)


@pytest.mark.parametrize("lie", [lie_about_size, lie_about_classes, lie_about_rows], ids=lambda f: f.__name__)
def test_the_gate_catches_a_lie(lie: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lie(monkeypatch)
    rows = pa.table({"age": [20, 21, 22, 23, 24, 60, 61, 62, 63, 64]})
    with pytest.raises(PrivacyViolation):
        duckanon.anonymize(rows, quasi_identifiers=["age"], k=5, bounds="cut")


def test_texts_are_sorted_as_enumerations_and_written_as_texts() -> None:
    """DuckDB 2.0.0 with several threads now and then writes an empty text in place of an enumeration's value."""
    with duckanon.anonymize(people(), **ROLES, k=5) as release:
        recoder = release.recoder
        assert recoder is not None
        sorted_rows, keys = shuffled(recoder.rows([], keyed=True)), {"key0": 1, "key1": 2}
        types = {row[1] for row in release.engine.rows(exp.Describe(this=sorted_rows.copy()), keys)}
        assert any(kind.startswith("ENUM") for kind in types)
        written = recoder.released(sorted_rows, recoder.shown)
        types = {row[1] for row in release.engine.rows(exp.Describe(this=written), keys)}
        assert not any(kind.startswith("ENUM") for kind in types)
