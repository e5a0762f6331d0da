"""Property vectors of releases, releases side by side, and what is refused."""

from __future__ import annotations

import builtins
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import duckanon
from duckanon.assess import comparison
from duckanon.assess.comparison.compare import TABLES
from duckanon.assess.comparison.properties.base import CellProperty, Property, properties
from duckanon.engine.sql.files import names
from duckanon.errors import DataError, ParameterError, UnsupportedError

PEOPLE = pa.table({"age": [90, 34, 61, 35, 62, 36, 63], "ill": list("abcabca"), "id": [7, 6, 5, 4, 3, 2, 1]})


def anonymized(data: object, k: int = 3, **parameters: Any) -> duckanon.Release:
    given = {"quasi_identifiers": ["age"], "k": k, "suppression_limit": 0.2, "algorithm": "datafly"}
    return duckanon.anonymize(data, **(given | parameters))


@pytest.fixture(scope="module")
def releases() -> Iterator[list[duckanon.Release]]:
    made = [anonymized(PEOPLE, k, sensitive=["ill"]) for k in (3, 7)]
    yield made
    for release in made:
        release.close()


def test_releases_stand_side_by_side(releases: list[duckanon.Release]) -> None:
    found = duckanon.compare({"fine": releases[0], "coarse": releases[1]}, properties=["class_size"])
    for name, release in zip(("fine", "coarse"), releases, strict=True):
        column = {(r["metric"], r["attribute"]): r[name] for r in found.metrics.to_pylist()}
        assert column == {(m.metric, m.attribute): m.value for m in release.measure()}
    by_pair = {(r["release"], r["against"]): (r["value"], r["verdict"]) for r in found.indices.to_pylist()}
    # 1, 3, 3, 3, 3, 3, 3: one suppressed row and two classes, beside seven rows in one class.
    assert by_pair == {("fine", "coarse"): (0.0, "worse"), ("coarse", "fine"): (1.0, "better")}
    fine, coarse = found.standing.to_pylist()
    assert (fine["average_risk"], fine["highest_risk"]) == pytest.approx((1 / 3, 1 / 3))
    assert (coarse["average_risk"], coarse["suppressed_share"]) == pytest.approx((1 / 7, 0))
    assert fine["suppressed_share"] == pytest.approx(1 / 7)
    assert fine["loss"] < coarse["loss"] == 1
    assert fine["dominated_by"] == coarse["dominated_by"] == []
    assert found.winner is None
    assert found.front == ["fine", "coarse"]
    assert found.properties.to_pylist()[0] == {
        "release": "fine", "property": "class_size", "direction": "higher",
        "minimum": 1, "q25": 3, "median": 3, "mean": 19 / 7, "q75": 3, "maximum": 3,
    }  # fmt: skip
    assert found.sizes.to_pylist() == [
        {"release": "fine", "size": 3, "rows": 6}, {"release": "coarse", "size": 7, "rows": 7},
    ]  # fmt: skip
    bias = found.bias.to_pylist()[0]
    assert (bias["rows"], bias["suppressed"], bias["gini"], bias["share_in_smallest"]) == (6, 1, 0, 1)


def test_only_a_release_that_dominates_wins(releases: list[duckanon.Release]) -> None:
    people = PEOPLE.append_column("sex", pa.array(["m"] * 3 + ["f"] * 4))
    given: dict[str, Any] = {"quasi_identifiers": ["sex"], "k": 3}
    with (
        duckanon.anonymize(people, **given, levels={"sex": 0}) as exact,
        duckanon.anonymize(people, **given, levels={"sex": 0}) as again,
        duckanon.anonymize(people, **given, levels={"sex": 1}) as nothing,
        duckanon.anonymize(people, **{**given, "k": 4}, levels={"sex": 0}, suppression_limit=0.5) as fewer,
    ):
        less = duckanon.compare({"exact": exact, "nothing": nothing}, metrics=[])
        equal = duckanon.compare({"exact": exact, "again": again}, metrics=[])
        won = duckanon.compare({"fewer": fewer, "again": again, "exact": exact}, metrics=[])
    assert (less.winner, less.front) == (None, ["exact", "nothing"])
    assert "No release wins" in repr(less)
    assert (equal.winner, equal.front) == (None, ["exact", "again"])
    assert "Equal in risk and loss" in repr(equal)
    # Without the three men everybody left has less risk; what they lost is in the loss.
    assert won.winner is None
    assert won.front == ["fewer", "again", "exact"]


def test_a_comparison_is_tables(releases: list[duckanon.Release]) -> None:
    found = duckanon.compare(releases)
    plain = found.to_dict()
    assert list(plain) == ["winner", "front", *TABLES]
    for name in TABLES:
        assert isinstance(found.to_arrow(name), pa.Table)
        assert found.to_arrow(name).num_rows == len(plain[name]) > 0
    with pytest.raises(ParameterError, match="Did you mean 'gains'"):
        found.to_arrow("gain")


def test_lower_is_better_where_a_property_says_so(releases: list[duckanon.Release]) -> None:
    everything = [
        "coverage",
        "spread",
        "hypervolume",
        "rank",
        "average",
        "dominance",
        "weighted",
        "goal",
        "lexicographic",
    ]
    found = duckanon.compare(
        releases,
        properties=["reidentification_risk", "loss"],
        by=everything,
        goals={"reidentification_risk": 1, "loss": 1},
        weights={"loss": 1},
        significance=0.5,
        metrics=[],
    )
    lines = {(r["index"], r["property"], r["release"]): r for r in found.indices.to_pylist()}
    # Risk 0 for the suppressed row and 1/3 for the others, beside 1/7 for all.
    assert lines["coverage", "reidentification_risk", "a"]["value"] == pytest.approx(1 / 7)
    assert lines["spread", "reidentification_risk", "b"]["value"] == pytest.approx(6 * (1 / 3 - 1 / 7))
    assert lines["rank", "reidentification_risk", "a"]["value"] == pytest.approx(math.sqrt(6) / 3)
    assert lines["rank", "reidentification_risk", "b"]["verdict"] == "better"
    assert lines["average", "loss", "a"]["verdict"] == "better"
    assert math.isfinite(lines["hypervolume", "reidentification_risk", "a"]["value"])
    assert lines["dominance", "loss", "a"]["value"] == 1
    assert lines["weighted", None, "a"]["verdict"] == "better"
    assert lines["lexicographic", None, "a"]["value"] == 2
    gains = {(g["property"], g["release"]): g for g in found.gains.to_pylist()}
    assert gains["reidentification_risk", "b"]["rows_better"] == 6
    assert gains["reidentification_risk", "b"]["mean_gain"] == pytest.approx(1 / 3 - 1 / 7)
    assert gains["reidentification_risk", "b"]["mean_loss"] == pytest.approx(1 / 7)
    played = [r for r in found.tournament.to_pylist() if r["index"] is None]
    assert sum(r["wins"] for r in played) == sum(r["losses"] for r in played) > 0
    assert played[0]["wins"] + played[0]["draws"] + played[0]["losses"] + played[0]["incomparable"] == 2 * 6 + 3


def test_a_tolerance_makes_releases_equal(releases: list[duckanon.Release]) -> None:
    for epsilon, draws in ((30, [1] * 4), (29.9, [0] * 4)):
        found = duckanon.compare(releases, properties=["class_size"], by="spread", epsilon=epsilon, metrics=[])
        assert found.tournament.column("draws").to_pylist() == draws
    near = duckanon.compare(releases, properties=["class_size"], by="rank", ideals={"class_size": 3}, metrics=[])
    assert [(r["release"], r["place"]) for r in near.tournament.to_pylist()[-2:]] == [("a", 1), ("b", 2)]


def test_which_groups_carry_the_risk(releases: list[duckanon.Release]) -> None:
    found = [g for g in duckanon.compare(releases, metrics=[]).groups.to_pylist() if g["release"] == "a"]
    assert {g["cell"] for g in found} == set(releases[0].to_arrow().column("age").to_pylist())
    assert sum(g["share_of_risk"] for g in found) == pytest.approx(1)
    assert [(g["rows"], g["mean_risk"], g["bias"]) for g in found] == [(3, pytest.approx(1 / 3), pytest.approx(1))] * 2


def test_indices_take_releases(releases: list[duckanon.Release]) -> None:
    assert comparison.minimum(releases[1]) == 7
    assert comparison.vector(releases[0]).tolist() == [1, 3, 3, 3, 3, 3, 3]
    assert comparison.spread(releases[1], releases[0]) == 6 * 4 + 6
    assert comparison.better(*releases) == "second"


def test_what_cannot_be_compared_is_refused(releases: list[duckanon.Release]) -> None:
    with pytest.raises(ParameterError, match="two releases or more"):
        duckanon.compare(releases[:1])
    with pytest.raises(ParameterError, match="Did you mean 'coverage'"):
        duckanon.compare(releases, by="covrage")
    with pytest.raises(ParameterError, match="Unknown property"):
        duckanon.compare(releases, properties=["size"])
    with pytest.raises(ParameterError, match="takes releases"):
        duckanon.compare([releases[0], pa.table({"a": [1]})])  # type: ignore[list-item]
    for wrong in (
        {"by": []}, {"by": "goal"}, {"by": "goal", "goals": {"loss": 1}}, {"weights": [1, 2]}, {"ideals": {"loss": 1}},
        {"index": "covrage"}, {"index": ["coverage"] * 2}, {"properties": []}, {"properties": "loss"},
        {"properties": ["loss", "loss"]}, {"row_id": "nobody"}, {"row_id": "ill"},
    ):  # fmt: skip
        with pytest.raises(ParameterError):
            duckanon.compare(releases, **({"properties": ["class_size"]} | wrong))
    with anonymized(pa.table({"age": [1, 1]}), k=2) as other, pytest.raises(ParameterError, match="2, 7 rows"):
        duckanon.compare([releases[0], other])


def test_releases_of_other_rows_are_refused(releases: list[duckanon.Release]) -> None:
    """One row more or less is seen at once; another value, or another order, only by a fingerprint."""
    turned = PEOPLE.take([1, 0, 2, 3, 4, 5, 6])
    with anonymized(turned) as other:
        with pytest.raises(ParameterError, match="'age' differ") as caught:
            duckanon.compare([releases[0], other])
        assert "row_id" in str(caught.value)
        assert not any(str(age) in str(caught.value) for age in PEOPLE.column("age").to_pylist())
        with pytest.raises(ParameterError, match="different rows"):
            comparison.coverage(releases[0], other)
        compared = duckanon.compare([releases[0], other], row_id="id", metrics=[])
        assert set(compared.gains.column("rows_equal").to_pylist()) == {7}
    changed = PEOPLE.set_column(0, "age", pa.array([90, 34, 61, 35, 62, 36, 64]))
    with anonymized(changed) as other:
        for row_id in (None, "id"):
            with pytest.raises(ParameterError, match="'age' differ"):
                duckanon.compare([releases[0], other], row_id=row_id)
    renumbered = PEOPLE.set_column(2, "id", pa.array([8, 6, 5, 4, 3, 2, 1]))
    with anonymized(renumbered) as other, pytest.raises(ParameterError, match="'age', 'id' differ"):
        duckanon.compare([releases[0], other], row_id="id")


def test_releases_with_other_quasi_identifiers_are_compared(releases: list[duckanon.Release]) -> None:
    with duckanon.anonymize(PEOPLE, quasi_identifiers=["ill"], k=2) as other:
        found = duckanon.compare([releases[0], other], properties=["class_size"], metrics=[])
    assert found.properties.num_rows == 2
    without = PEOPLE.select(["ill", "id"])
    with (
        duckanon.anonymize(without, quasi_identifiers=["ill"], k=2) as other,
        anonymized(PEOPLE.select(["age", "id"])) as one,
    ):
        with pytest.raises(ParameterError, match="share no quasi-identifier"):
            duckanon.compare([one, other])
        assert (
            duckanon.compare([one, other], row_id="id", properties=["class_size"], metrics=[]).properties.num_rows == 2
        )


def test_a_source_that_changed_is_refused() -> None:
    with duckdb.connect() as database:
        database.register("given", PEOPLE)
        database.execute("CREATE TABLE people AS FROM given")
        with anonymized("people", connection=database) as release:
            database.execute("UPDATE people SET age = 90 WHERE age = 34")
            with pytest.raises(DataError, match="changed since"):
                comparison.vectors(release)
        database.execute("DELETE FROM people WHERE id = 7")
        with anonymized("people", connection=database) as release:
            database.execute("DELETE FROM people WHERE id = 6")
            with pytest.raises(DataError, match="changed since"):
                comparison.vectors(release, row_id="id")


@pytest.mark.parametrize("kind", ["parquet", "csv", "table", "arrow", "frame"])
def test_rows_keep_the_order_of_their_source(kind: str, tmp_path: Path) -> None:
    """Several files, several row groups, several threads: row i is row i."""
    draw = np.random.default_rng(3)
    ages = draw.integers(0, 100, 200_000)
    whole = pa.table({"age": ages, "id": np.arange(len(ages))})
    sizes = np.bincount(ages)[ages]
    with duckdb.connect(config={"threads": 4}) as database:
        source: Any = whole
        if kind in ("parquet", "csv"):
            for part in range(8):
                piece = whole.slice(part * 25_000, 25_000)
                database.register("piece", piece)
                database.execute(
                    f"COPY piece TO '{tmp_path / f'{part}.{kind}'}' "
                    + ("(ROW_GROUP_SIZE 2048)" if kind == "parquet" else "")
                )
            source = str(tmp_path / f"*.{kind}")
        elif kind == "table":
            database.register("given", whole)
            database.execute("CREATE TABLE people AS FROM given")
            source = "people"
        elif kind == "frame":
            source = whole.to_pandas()
        with anonymized(source, k=2, connection=database) as release:
            assert release.recoding.levels == {"age": 0}
            assert (comparison.vector(release) == sizes).all()
            assert (comparison.vectors(release, ["class_size"], row_id="id").column(1).to_numpy() == sizes).all()


def test_vectors_are_written_into_the_owners_database() -> None:
    with duckdb.connect() as database:
        database.register("given", PEOPLE)
        database.execute("CREATE TABLE people AS FROM given")
        with anonymized("people", sensitive=["ill"], connection=database) as release:
            before = release.to_arrow()
            written = comparison.write_properties(
                release, "Vectors of 'a'", ["class_size", "sensitive_count"], connection=database, row_id="id"
            )
            assert written == 7
            joined = database.execute(
                """SELECT id, class_size, sensitive_count_ill
                FROM people JOIN "Vectors of 'a'" ON id = row_id ORDER BY id"""
            ).fetchall()
            assert joined == [(1, 3, 1), (2, 3, 1), (3, 3, 1), (4, 3, 1), (5, 3, 1), (6, 3, 1), (7, 1, 1)]
            with pytest.raises(ParameterError, match="already"):
                comparison.write_properties(release, "vectors of 'A'", connection=database)
            with pytest.raises(ParameterError, match="already"):
                comparison.write_properties(release, "people", connection=database)
            comparison.write_properties(release, "Vectors of 'a'", ["loss"], connection=database, replace=True)
            columns = database.execute("""DESCRIBE "Vectors of 'a'" """).fetchall()
            assert [c[0] for c in columns] == ["row_id", "loss"]
            with pytest.raises(ParameterError, match="connection"):
                comparison.write_properties(release, "more", connection=None)
            assert release.to_arrow() == before
            assert release.to_arrow().column_names == ["age", "ill"]


def test_persons_are_counted_where_the_promise_counts_them() -> None:
    visits = pa.table({"age": [30] * 4 + [40] * 4, "who": [1, 1, 2, 3, 4, 4, 5, 5]})
    with duckanon.anonymize(visits, quasi_identifiers=["age"], entity_key="who", k=2) as release:
        assert comparison.vector(release).tolist() == [3] * 4 + [2] * 4
        found = comparison.vectors(release, ["reidentification_risk", "discernibility"])
        assert found.column(1).to_numpy() == pytest.approx([1 / 3] * 4 + [1 / 2] * 4)
        assert found.column(2).to_pylist() == [4] * 8


def test_sensitive_columns_give_a_vector_each(releases: list[duckanon.Release]) -> None:
    found = comparison.vectors(releases[1], ["sensitive_count", "sensitive_share_age"])
    assert found.column_names == ["row_id", "sensitive_count_ill", "sensitive_share_age"]
    assert found.column(1).to_pylist() == [3, 2, 2, 3, 2, 2, 3]
    assert found.column(2).to_pylist() == pytest.approx([1 / 7] * 7)
    with anonymized(PEOPLE) as plain, pytest.raises(ParameterError, match="none in all releases"):
        comparison.vectors(plain, ["sensitive_count"])
    with pytest.raises(ParameterError, match="no column 'wealth'"):
        comparison.vectors(releases[0], ["sensitive_count_wealth"])
    with pytest.raises(ParameterError, match="takes a release"):
        comparison.vectors(PEOPLE)  # type: ignore[arg-type]


def test_a_property_of_somebody_else(releases: list[duckanon.Release], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(properties, "_members", dict(properties._members))

    @properties.register("position")
    @dataclass(frozen=True)
    class Position(Property):
        """The number of the row."""

        direction: ClassVar[str] = "lower"

        def vector(self, rows: Any) -> Any:
            return np.arange(len(rows), dtype=np.float64)

    found = duckanon.compare(releases, properties=["position"], by=["coverage", "spread"], metrics=[])
    assert found.dominance.column("relation").to_pylist() == ["equal"] * 4


def test_a_source_without_an_order_is_refused() -> None:
    with duckdb.connect() as database:
        database.register("given", PEOPLE)
        database.execute("CREATE TABLE people AS SELECT * EXCLUDE id, range AS id FROM given, range(500)")
        database.execute("CREATE VIEW anyhow AS FROM people ORDER BY random()")
        with (
            anonymized("anyhow", sensitive=["ill"], connection=database) as release,
            pytest.raises(DataError, match="another order"),
        ):
            comparison.vectors(release, ["sensitive_count"])
        database.execute("CREATE OR REPLACE VIEW anyhow AS SELECT *, row_number() OVER () AS key FROM people")
        with anonymized("anyhow", sensitive=["ill"], connection=database) as release:
            assert comparison.vectors(release, ["sensitive_count"], row_id="key").num_rows == 3500


def test_values_that_a_hierarchy_does_not_know_lie_at_the_top() -> None:
    known = duckanon.Hierarchy.from_table({"age": ["34", "35"], "young": ["young", "young"], "all": ["*", "*"]})
    ages = pa.table({"age": [34, 35, 90, 34, 35, 91]})
    with anonymized(ages, k=2, hierarchies={"age": known}, on_unknown="top", suppression_limit=0) as release:
        assert release.recoding.levels == {"age": 0}
        assert comparison.vector(release).tolist() == [2] * 6


def test_many_quasi_identifiers_fill_more_than_one_word() -> None:
    draw = np.random.default_rng(5)
    wide = {f"q{j}": draw.integers(0, 3, 400) * 10_000 for j in range(4)}
    wide |= {f"r{j}": np.arange(400) // 2 for j in range(9)}
    given = {"quasi_identifiers": list(wide), "k": 1, "suppression_limit": 0, "bounds": "cut"}
    with duckanon.anonymize(pa.table(wide), **given) as release:
        rows = list(zip(*(v.tolist() for v in wide.values()), strict=True))
        assert comparison.vector(release).tolist() == [rows.count(r) for r in rows]


def test_every_property_has_its_statement() -> None:
    own = {name for name in properties if not issubclass(properties.get(name), CellProperty)}
    assert {f"properties/{name}" for name in own} == set(names("properties"))


@pytest.mark.parametrize("name", list(properties))
def test_a_property_says_what_it_is(name: str) -> None:
    kind = properties.get(name)
    assert kind.summary
    assert "References\n" in (kind.__doc__ or "")
    assert kind.direction in ("higher", "lower")
    assert comparison.Property.oriented(kind(), np.array([0.25]))[0] in (0.25, -0.25, 0.75)


def test_a_comparison_is_drawn(releases: list[duckanon.Release], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    found = duckanon.compare(
        {"fine $x^": releases[0], "a name that is much too long": releases[1]},
        properties=["class_size", "loss"],
        by=["coverage", "hypervolume", "weighted"],
        metrics=[],
    )
    for suffix, magic in ((".png", b"\x89PNG"), (".svg", b"<?xml")):
        path = found.plot(tmp_path / f"picture{suffix}")
        assert path.read_bytes().startswith(magic)
    with pytest.raises(ParameterError, match=r"\.png"):
        found.plot(tmp_path / "picture.xlsx")


def test_a_picture_without_matplotlib_names_the_extra(
    releases: list[duckanon.Release], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def missing(name: str, *rest: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(UnsupportedError, match=r"duckanon\[plots\]"):
        duckanon.compare(releases, metrics=[]).plot(tmp_path / "picture.png")
    assert pq.read_table(releases[0].path).column_names == ["age", "ill"]


@pytest.mark.parametrize("wrong", [5, None])
def test_only_releases_are_compared(wrong: Any) -> None:
    with pytest.raises(ParameterError, match="compare takes a list of releases"):
        duckanon.compare(wrong)


@pytest.mark.parametrize("passed", [["id"], []])
@pytest.mark.parametrize("algorithm", ["mdav", "v_mdav", "tdg", "knn_clustering", "k_member", "mondrian(relaxed=true)"])
def test_rows_of_algorithms_that_divide_equal_rows_find_their_classes(algorithm: str, passed: list[str]) -> None:
    """Rows that are alike may be in several classes: which they are in is known by all that is published of them."""
    draw = np.random.default_rng(11)
    ages = [None if draw.random() < 0.1 else int(a) for a in draw.integers(20, 26, 80)]
    data = pa.table(
        {
            "id": draw.permutation(80),
            "age": pa.array(ages, pa.int64()),
            "zip": draw.integers(0, 4, 80),
            "ill": pa.array([None, "flu", "gout"]).take(pa.array(draw.integers(0, 3, 80))),
        }
    )
    columns = {"quasi_identifiers": ["age", "zip"], "sensitive": ["ill"], "insensitive": passed}
    with duckanon.anonymize(data, **columns, k=4, algorithm=algorithm) as release:
        found = comparison.vectors(release, ["class_size", "sensitive_count"], row_id="id").to_pylist()
        plain = comparison.vectors(release, ["class_size"]).column("class_size").to_pylist()
        published = release.to_arrow().to_pylist()
        with duckanon.anonymize(data, **columns, k=4, algorithm="mondrian") as other:
            compared = duckanon.compare([release, other])
    classes = Counter((row["age"], row["zip"]) for row in published)
    secrets = Counter((row["age"], row["zip"], row["ill"]) for row in published)
    assert sum(1 / row["class_size"] for row in found) == pytest.approx(len(classes))
    assert sorted(row["class_size"] for row in found) == sorted(plain)
    if passed:
        by_id = {row["id"]: row for row in published}
        for row in found:
            own = by_id[row["row_id"]]
            assert row["class_size"] == classes[own["age"], own["zip"]]
            assert row["sensitive_count_ill"] == secrets[own["age"], own["zip"], own["ill"]]
    assert compared.standing.column("release").to_pylist() == ["a", "b"]
