"""Every model: searches enforce it, and the gate finds out when they do not."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlglot import exp

import duckanon
from duckanon.errors import InfeasibleError, ParameterError, PrivacyViolation, RoleError, UnsupportedError
from duckanon.models import KAnonymity, models
from duckanon.models.base import Model
from duckanon.plan.plan import parse_model
from duckanon.release import gate
from tests.release.lies import Lie, kept_where, publishing, release_with

# Class a has every value thrice, class b one value thrice, c is alone; z is the most frequent value.
ROWS = [("a", s) for s in "xyz" * 3] + [("b", "z")] * 3 + [("c", "x")]
TABLE = pa.table({"q": [q for q, _ in ROWS], "s": [s for _, s in ROWS]})
PEOPLE = pa.table({"Q": ["a"] * 20 + ["b"] * 3 + ["c"] * 2 + ["d"] * 9})
TREE = duckanon.Hierarchy.from_table(pa.table({"l0": ["x", "y", "z"], "l1": ["m", "m", "n"], "l2": ["*", "*", "*"]}))

# A threshold that a keeps and b (of the whole table: c) breaks.
PROMISES = {
    "k_anonymity": "k_anonymity(5)",
    "alpha_k_anonymity": "alpha_k_anonymity(alpha=0.5, k=2)",
    "l_diversity": "l_diversity(2)",
    "entropy_l_diversity": "entropy_l_diversity(2.5)",
    "recursive_c_l_diversity": "recursive_c_l_diversity(c=2, l=2)",
    "t_closeness": "t_closeness(0.3)",
    "ordered_t_closeness": "ordered_t_closeness(0.2)",
    "hierarchical_t_closeness": "hierarchical_t_closeness(0.3)",
    "basic_beta_likeness": "basic_beta_likeness(0.5)",
    "enhanced_beta_likeness": "enhanced_beta_likeness(0.5)",
    "delta_disclosure": "delta_disclosure(0.8)",
    "p_sensitive_k_anonymity": "p_sensitive_k_anonymity(p=2, k=2)",
    "k_map": "k_map(5)",
    "delta_presence": "delta_presence(0, 0.47)",
    "average_reidentification_risk": "average_reidentification_risk(0.12)",
    "maximum_reidentification_risk": "maximum_reidentification_risk(0.2)",
    "sample_uniqueness": "sample_uniqueness(0.05)",
}


def options(model: Model) -> dict[str, Any]:
    found: dict[str, Any] = {"quasi_identifiers": ["q"], "sensitive": ["s"], "models": [model]}
    if model.needs_population:
        found["population"] = PEOPLE
    if model.needs_hierarchy:
        found["hierarchies"] = {"s": TREE}
    return found


def release(model: Model, **changes: Any) -> duckanon.Release:
    given = {"suppression_limit": 0.4, "algorithm": "datafly"}
    return duckanon.anonymize(TABLE, **(options(model) | given | changes))


def test_every_model_is_here() -> None:
    # Groups that nobody sees have tests of their own.
    assert {name for name in models if not models.get(name).hidden} == set(PROMISES)


@pytest.mark.parametrize("name", PROMISES)
@pytest.mark.thinned(2)
def test_a_model_is_enforced_and_checked(name: str) -> None:
    with release(parse_model(PROMISES[name])) as found:
        kept = {"a", "b"} if name == "sample_uniqueness" else {"a"}
        assert set(pq.read_table(found.path).column("q").to_pylist()) == kept
        assert found.rows_suppressed == (1 if name == "sample_uniqueness" else 4)
        (check,) = found.checks
        assert (check.holds, check.classes, check.violating_classes) == (True, len(kept), 0)
        assert name in found.report("json")
        if found.plan.models[0].needs_population or name == "sample_uniqueness":
            return
        # The recoding as plain SQL leaves the same classes out.
        engine = found.engine
        engine.register("source", TABLE)
        (rows,) = engine.rows(exp.maybe_parse(f"SELECT count(*) FROM ({found.recoding.to_sql()})", dialect="duckdb"))
        assert rows == (9,)


def lying(lie: Lie, model: Model, **changes: Any) -> duckanon.Release:
    return release_with(lie, TABLE, **(options(model) | {"suppression_limit": 0.4} | changes))


@pytest.mark.parametrize("name", PROMISES)
@pytest.mark.thinned(2)
def test_a_search_that_lets_every_class_pass_is_caught(name: str) -> None:
    lie = Lie(levels=(0,), node=lambda node: {"outlier_rows": 0}, recoder=kept_where("true"))
    with pytest.raises(PrivacyViolation, match=f"{name} is broken by"):
        lying(lie, parse_model(PROMISES[name]))


@pytest.mark.parametrize("name", PROMISES)
@pytest.mark.thinned(3)
def test_a_table_of_anybody_is_checked(name: str) -> None:
    model = parse_model(PROMISES[name])
    (found,) = duckanon.check(TABLE, **options(model))
    broken = {"average_reidentification_risk": 2, "sample_uniqueness": 1, "delta_presence": 2}
    assert (found.holds, found.violating_classes) == (False, broken.get(name, 2))
    good = {"q": ["a"] * 9, "s": list("xyz") * 3}
    (kept,) = duckanon.check(pa.table(good), **options(model))
    assert kept.holds


def test_another_sensitive_column_in_the_file_than_the_one_that_was_searched_is_caught() -> None:
    other = publishing(
        lambda honest, *given: honest(*given).transform(
            lambda n: (
                exp.alias_(exp.Literal.string("x"), "s", quoted=True)
                if isinstance(n, exp.Alias) and n.alias == "s"
                else n
            )
        )
    )
    with pytest.raises(PrivacyViolation, match="l_diversity is broken by 1 of 1"):
        lying(Lie(recoder=other), parse_model("l_diversity(2)"))


def test_frequencies_of_the_whole_table_are_counted_by_the_gate_itself() -> None:
    """Class b alone is published, as if the values of the whole table were spread as in it."""
    lie = Lie(levels=(0,), node=lambda node: {"outlier_rows": 10}, recoder=kept_where("n = 3"))
    with pytest.raises(PrivacyViolation, match="t_closeness is broken by"):
        lying(lie, parse_model("t_closeness(0.3)"), suppression_limit=0.9)


def test_a_file_changed_on_disk_is_refused(tmp_path) -> None:
    with release(parse_model("l_diversity(3)")) as found:
        table = pq.read_table(found.path)
        other = tmp_path / "other.parquet"
        pq.write_table(table.set_column(1, "s", pa.array(["x"] * table.num_rows)), other)
        with pytest.raises(PrivacyViolation, match="l_diversity is broken by 1 of 1 classes"):
            found.verify(other)


def test_several_sensitive_columns_each_with_its_own_model() -> None:
    table = TABLE.append_column("pay", pa.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 5, 9, 4]))
    promised = ["l_diversity(l=2, sensitive=s)", {"model": "ordered_t_closeness", "t": 0.3, "sensitive": "PAY"}]
    given = {"quasi_identifiers": ["q"], "sensitive": ["s", "pay"], "suppression_limit": 0.4}
    with duckanon.anonymize(table, models=promised, k=2, **given) as found:
        assert [(c.model, c.parameters.get("sensitive")) for c in found.checks] == [
            ("k_anonymity", None),
            ("l_diversity", "s"),
            ("ordered_t_closeness", "pay"),
        ]
    with duckanon.anonymize(table, l=2, t=0.4, **given) as found:
        assert [(c.model, c.parameters.get("sensitive")) for c in found.checks] == [
            ("l_diversity", "s"),
            ("l_diversity", "pay"),
            ("t_closeness", "s"),
            ("ordered_t_closeness", "pay"),
        ]


def test_a_population_with_other_values_and_another_type() -> None:
    """Values that only the population has get a place in the hierarchy, too."""
    data = pa.table({"age": pa.array([30, 31, 32, 33] * 3, pa.int32()), "s": ["x", "y"] * 6})
    people = pa.table({"AGE": pa.array([*range(10, 90)] * 2, pa.int64())})
    given = {"quasi_identifiers": ["age"], "population": people}
    with duckanon.anonymize(data, models=["k_map(8)"], **given) as found:
        assert found.checks[0].holds
        (label,) = set(found.to_arrow().column("age").to_pylist())
        assert label != "*"
    with duckanon.anonymize(data, models=["delta_presence(0, 0.2)"], **given) as found:
        assert found.checks[0].holds
    # With a lower bound, population classes without anybody in the data are a disclosure, too: only the top is left.
    with duckanon.anonymize(data, models=["delta_presence(0.01, 0.2)"], **given) as found:
        assert set(found.to_arrow().column("age").to_pylist()) == {"*"}


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"models": ["k_map(3)"]}, ParameterError, "give population="),
        ({"population": PEOPLE, "k": 2}, ParameterError, "no model needs one"),
        ({"population": pa.table({"x": [1]}), "models": ["k_map(3)"]}, RoleError, "The population has no column 'q'"),
        ({"models": ["hierarchical_t_closeness(0.2)"]}, ParameterError, "give hierarchies="),
        ({"models": ["l_diversity(2, 'q')"]}, RoleError, "names 'q', which is no sensitive column"),
        ({"l": 2, "sensitive": []}, ParameterError, "name one in sensitive"),
        ({"t": 0.2, "sensitive": []}, ParameterError, "name one in sensitive"),
        ({"t": 1.5}, ParameterError, "'t' parameter"),
        ({"l": 0}, ParameterError, "'l' parameter"),
        ({"models": ["l_diversity(l=2, L=3)"]}, ParameterError, "no parameter 'L'"),
        ({"models": ["l_diversity(2, l=3)"]}, ParameterError, "given twice"),
        ({"models": ["l_diversity(1, 2, 3, 4)"]}, ParameterError, "takes l, sensitive"),
        ({"models": ["l_diversity"]}, ParameterError, r"needs l: write it as l_diversity\(l=..., sensitive=...\)"),
        ({"models": ["l_diversity(l=open('x'))"]}, ParameterError, "A model as text"),
        ({"models": ["l_diversity(**{})"]}, ParameterError, "A model as text"),
        ({"models": ["1 +"]}, ParameterError, "A model as text"),
        ({"models": [{"l": 3}]}, ParameterError, "needs the key 'model'"),
        ({"models": "l_diversity(2)"}, ParameterError, "must be a list"),
        ({"models": {"model": "l_diversity", "l": 2}}, ParameterError, "must be a list"),
    ],
)
def test_what_is_refused(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        duckanon.anonymize(TABLE, **({"quasi_identifiers": ["q"], "sensitive": ["s"]} | changes))


def test_a_promise_that_cannot_be_kept() -> None:
    with pytest.raises(InfeasibleError, match=r"13 of 13 rows are in classes that break a promise \(l_diversity\)"):
        duckanon.anonymize(TABLE, quasi_identifiers=["q"], sensitive=["s"], l=4, algorithm="datafly")
    with pytest.raises(InfeasibleError, match="The table as a whole breaks the promise"):
        duckanon.anonymize(TABLE, quasi_identifiers=["q"], sensitive=["s"], l=4)


def test_persons_and_sensitive_values() -> None:
    people = TABLE.append_column("p", pa.array([1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 5, 6, 7]))
    given = {"quasi_identifiers": ["q"], "sensitive": ["s"], "entity_key": "p", "suppression_limit": 0.4}
    with duckanon.anonymize(people, k=3, l=2, algorithm="datafly", **given) as found:
        assert set(found.to_arrow().column("q").to_pylist()) == {"a"}
        assert any("shares of sensitive values count rows" in note for note in found.summary()["notes"])


def test_one_person_may_have_all_the_values() -> None:
    """Values are counted in rows: three of them need three rows, not three persons."""
    table = pa.table({"q": ["a"] * 3 + ["b"] * 3, "s": ["x", "y", "z"] * 2, "p": [1, 1, 2, 3, 3, 4]})
    with duckanon.anonymize(table, quasi_identifiers=["q"], sensitive=["s"], entity_key="p", l=3) as found:
        assert set(found.to_arrow().column("q").to_pylist()) == {"a", "b"}


def test_null_is_a_value_of_a_sensitive_column() -> None:
    table = pa.table({"q": ["a"] * 4, "s": ["x", "x", None, None]})
    with duckanon.anonymize(
        table, quasi_identifiers=["q"], sensitive=["s"], models=["entropy_l_diversity(2)"]
    ) as found:
        assert set(found.to_arrow().column("q").to_pylist()) == {"a"}
    with pytest.raises(InfeasibleError):
        duckanon.anonymize(table, quasi_identifiers=["q"], sensitive=["s"], l=3)


def test_sensitive_columns_of_models_are_listed_once() -> None:
    found = [parse_model("l_diversity(2, 's')"), KAnonymity(2), parse_model("t_closeness(0.2, 's')")]
    assert gate.sensitive_of(found) == ["s"]


def test_numbers_that_are_published_as_text_have_no_order() -> None:
    """As text 10 comes before 9: the ordered distance would be another one than that of the numbers."""
    query = "SELECT i % 2 AS g, CAST(i // 2 AS {}) AS s FROM range(60) AS r(i) WHERE i % 2 = 0 OR i < 30"
    given = {"quasi_identifiers": ["g"], "sensitive": ["s"]}
    with pytest.raises(UnsupportedError, match="BIGNUM, which is published as text"):
        duckanon.anonymize(query.format("BIGNUM"), models=["ordered_t_closeness(0.1)"], **given)
    for kind, model in (("BIGNUM", "t_closeness"), ("HUGEINT", "ordered_t_closeness")):
        with duckanon.anonymize(query.format(kind), t=0.9, **given) as found:
            assert [c.model for c in found.checks] == [model]


def test_a_population_of_another_kind_is_refused() -> None:
    data = pa.table({"a": [1] * 6})
    for people in (pa.table({"a": [1.4] * 10}), pa.table({"a": ["01"] * 10})):
        with pytest.raises(ParameterError, match="cast one to the type of the other"):
            duckanon.anonymize(data, quasi_identifiers=["a"], models=["k_map(5)"], population=people)


def test_a_list_of_texts_may_be_sensitive() -> None:
    with duckdb.connect() as con:
        con.execute("CREATE TABLE t AS SELECT i % 2 AS q, [CAST(i % 3 AS VARCHAR)] AS s FROM range(12) AS r(i)")
        with duckanon.anonymize("t", quasi_identifiers=["q"], sensitive=["s"], l=3, connection=con) as found:
            assert found.checks[0].holds


@pytest.mark.parametrize("algorithm", ["datafly", "optimal", "ola", "incognito", "samarati", "mingen", "best_effort"])
def test_no_search_suppresses_who_would_be_told_to_be_absent(algorithm: str) -> None:
    """Two of fourteen are too few; with both suppressed, none of the fourteen would be in the data."""
    rows, people = pa.table({"q": ["a"] * 4 + ["b"] * 2}), pa.table({"q": ["a"] * 10 + ["b"] * 14})
    given = {"quasi_identifiers": ["q"], "population": people, "suppression_limit": 0.5, "algorithm": algorithm}
    with duckanon.anonymize(rows, models=["delta_presence(0.2, 1)"], **given) as release:
        assert (release.recoding.levels, release.rows_suppressed) == ({"q": 1}, 0)
    with duckanon.anonymize(rows, models=["delta_presence(0, 1)", "k_anonymity(3)"], **given) as release:
        assert all(check.holds for check in release.checks)


@pytest.mark.parametrize("algorithm", ["datafly", "optimal"])
def test_passes_of_which_none_finds_anything_are_infeasible(algorithm: str) -> None:
    rows = pa.table({"q": ["a", "b", "c"], "ill": ["x", "x", "x"]})
    given = {"quasi_identifiers": ["q"], "sensitive": ["ill"], "l": 2, "suppression_limit": 1.0, "iterative": True}
    with pytest.raises(InfeasibleError):
        duckanon.anonymize(rows, algorithm=algorithm, **given)
