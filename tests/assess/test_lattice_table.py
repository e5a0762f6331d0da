"""The lattice as a table: every node compared with brute force, and what the search of a release found out."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from properties.test_enforced import ORDER, SENSITIVE_TREE, promise
from properties.test_reference import Case
from reference import lattice as slow
from reference import metrics as plain
from reference.datafly import generalize
from reference.tables import full_domain

import duckanon
from duckanon.errors import DuckanonError, InfeasibleError, ParameterError, UnsupportedError
from duckanon.metrics.base import metrics

SEARCHES = ["samarati", "incognito", "ola", "mingen", "optimal", "best_effort(nodes=7)", "datafly"]
COLUMNS = ["node", "levels", "height", "classes", "classes_published", "smallest", "suppressed", "suppressed_share"]
COLUMNS += ["anonymous", "visited", "risk"]
PEOPLE = pa.table(
    {
        "age": [20 + i * 7 % 40 for i in range(200)],
        "sex": [["f", "m", None][i % 3] for i in range(200)],
        "ill": ["abc"[i * i % 3] for i in range(200)],
    }
)
ARGUMENTS: dict[str, Any] = {"quasi_identifiers": ["age", "sex"], "sensitive": ["ill"], "k": 4}


class Setting:
    """A random table with models of a sensitive column, and all its nodes as the reference sees them."""

    def __init__(self, seed: str, sensitive: bool) -> None:
        rng = random.Random(seed)
        self.case = case = Case(rng)
        self.values = [rng.choice(rng.choice([["s0"], ORDER])) for _ in case.rows]
        self.promised = [promise(rng)] if sensitive else []
        self.allowed = int(len(case.rows) * case.limit + 1e-9)
        self.heights = [len(next(iter(tree.values()))) - 1 for tree in case.trees]
        self.spans = [(low := rng.randint(0, h), rng.randint(low, h)) for h in self.heights]
        if rng.random() < 0.5:
            self.spans = [(0, h) for h in self.heights]
        self.nodes = slow.nodes(
            case.rows, case.trees, case.k, self.allowed, case.persons, self._broken, spans=self.spans
        )

    def _broken(self, table: list[slow.Row]) -> set[slow.Row]:
        members = defaultdict(list)
        for row, value in zip(table, self.values, strict=True):
            members[row].append(value)
        return {
            row for row, found in members.items() if not all(holds(found, self.values) for _, holds in self.promised)
        }

    def arguments(self, connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
        case = self.case
        return {
            "data": case.table().append_column("s", pa.array(self.values, pa.string())),
            "quasi_identifiers": case.names,
            "sensitive": ["s"],
            "entity_key": "person" if case.persons is not None else None,
            "hierarchies": {**case.hierarchies(), "s": SENSITIVE_TREE},
            "k": case.k,
            "models": [text for text, _ in self.promised],
            "suppression_limit": case.limit,
            "min_levels": dict(zip(case.names, (a for a, _ in self.spans), strict=True)),
            "max_levels": dict(zip(case.names, (b for _, b in self.spans), strict=True)),
            "connection": connection,
        }

    def sizes(self, levels: tuple[int, ...]) -> Counter[slow.Row]:
        """The members of every class, persons where there are any: rows without one are of one person."""
        rows = generalize(self.case.rows, self.case.trees, levels)
        people = self.case.persons
        return Counter(rows) if people is None else Counter(row for row, _ in set(zip(rows, people, strict=True)))

    def expected(self, node: slow.Node) -> dict[str, Any]:
        sizes = self.sizes(node.levels)
        kept = {row for row in node.rows if row is not None}
        table = full_domain(self.case.rows, self.case.trees, node.levels, [row is not None for row in node.rows])
        return {
            "node": ",".join(str(level) for level in node.levels),
            "levels": dict(zip(self.case.names, node.levels, strict=True)),
            "height": sum(node.levels),
            "classes": len(sizes),
            "classes_published": len(kept),
            "smallest": min(sizes.values()),
            "suppressed": node.suppressed,
            "suppressed_share": node.suppressed / len(node.rows),
            "anonymous": node.anonymous,
            "visited": True,
            "risk": 1 / min(sizes[row] for row in kept) if kept else None,
            "loss": pytest.approx(plain.loss(table)[None], abs=1e-9),
            "precision": pytest.approx(plain.precision(table)[None], abs=1e-9),
        }


@pytest.mark.parametrize("sensitive", [False, True])
@pytest.mark.parametrize("seed", range(15))
@pytest.mark.thinned(2)
def test_every_node_is_what_the_reference_says(seed: int, sensitive: bool, connection: Any) -> None:
    setting = Setting(f"lattice {seed}", sensitive)
    try:
        found = duckanon.lattice(**setting.arguments(connection), metrics=["loss", "precision"])
    except InfeasibleError:
        assert not any(n.anonymous and n.suppressed < len(n.rows) for n in setting.nodes)
        return
    assert found.to_pylist() == [setting.expected(node) for node in setting.nodes]


@pytest.mark.parametrize("seed", range(15))
def test_the_front_is_what_nothing_beats(seed: int, connection: Any) -> None:
    setting = Setting(f"front {seed}", False)
    metric = ["loss", "precision", "height"][seed % 3]
    sign = -1 if metric == "precision" else 1
    try:
        rows = duckanon.lattice(**setting.arguments(connection), metrics=metric).to_pylist()
    except InfeasibleError:
        return
    front = duckanon.lattice(**setting.arguments(connection), metrics=metric, pareto=True).to_pylist()
    able = [(sign * row[metric], row["risk"], row["node"]) for row in rows if row["anonymous"] and row["risk"]]
    best = [a for a in able if not any(b[0] <= a[0] and b[1] <= a[1] and b[:2] != a[:2] for b in able)]
    assert {row["node"] for row in front} == {node for *_, node in best}
    assert [sign * row[metric] for row in front] == sorted(sign * row[metric] for row in front)


@pytest.mark.parametrize("algorithm", SEARCHES)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.thinned(2)
def test_what_a_search_knows(algorithm: str, seed: int, connection: Any) -> None:
    setting = Setting(f"search {seed}", True)
    truth = {",".join(map(str, n.levels)): setting.expected(n) for n in setting.nodes}
    try:
        release = duckanon.anonymize(**setting.arguments(connection), algorithm=algorithm)
    except InfeasibleError:
        return
    with release:
        rows = release.lattice(["loss", "precision"]).to_pylist()
        known = {row["node"]: row for row in rows}
        assert len(known) == len(rows) <= len(truth)
        for node, row in known.items():
            assert row["anonymous"] == truth[node]["anonymous"], node
            expected = truth[node] if row["visited"] else dict.fromkeys(truth[node])
            same = ("node", "levels", "height", "anonymous", "visited")
            assert {k: v for k, v in row.items() if k not in same} == {
                k: v for k, v in expected.items() if k not in same
            }
        chosen = ",".join(str(release.recoding.levels[name]) for name in setting.case.names)
        assert chosen in known
        searched = release.summary()["search"]
        assert searched["nodes"] == len(truth)
        assert searched["visited"] >= sum(row["visited"] for row in rows)
        if algorithm == "datafly":
            assert all(row["visited"] for row in rows)
        elif algorithm in ("ola", "incognito", "mingen"):
            assert len(rows) == len(truth)
        front = release.lattice(pareto=True).to_pylist()
        assert {row["node"] for row in front} <= {n for n, row in known.items() if row["visited"] and row["anonymous"]}


def test_the_columns_and_their_types() -> None:
    found = duckanon.lattice(PEOPLE, **ARGUMENTS, metrics=["loss", "height", "loss"])
    assert found.to_arrow().column_names == [*COLUMNS, "loss"]
    assert found.to_arrow().schema.field("levels").type == pa.struct([("age", pa.int64()), ("sex", pa.int64())])
    assert duckanon.lattice(PEOPLE, **ARGUMENTS, metrics=[]).to_arrow().column_names == COLUMNS


def test_any_metric_is_the_one_that_a_release_is_measured_by(connection: Any) -> None:
    limits = {"min_levels": {"age": 2}, "max_levels": {"age": 2}}
    given = {**ARGUMENTS, "suppression_limit": 0.2, "connection": connection}
    for row in duckanon.lattice(PEOPLE, **given, **limits, metrics=list(metrics)).to_pylist():
        with duckanon.anonymize(PEOPLE, **given, levels=row["levels"]) as release:
            found = {m.metric: m.value for m in release.measure(list(metrics)) if m.attribute is None}
        assert {name: row[name] for name in metrics} == pytest.approx(found, abs=1e-9)


@pytest.mark.parametrize("metric", ["classification", "average_class_size_lefevre", "diameter"])
def test_a_search_by_a_metric_that_is_measured_in_sql(metric: str, connection: Any) -> None:
    given = {**ARGUMENTS, "suppression_limit": 0.2, "connection": connection}
    with duckanon.anonymize(PEOPLE, **given, algorithm=f"optimal(metric={metric})") as release:
        (value,) = [m.value for m in release.measure([metric]) if m.attribute is None]
        rows = duckanon.lattice(PEOPLE, **given, metrics=metric).to_pylist()
        best = max if metrics.get(metric).direction == "higher" else min
        assert release.searched["value"] == pytest.approx(value)
        assert value == pytest.approx(best(row[metric] for row in rows if row["anonymous"]))


def test_a_node_of_the_table_is_applied() -> None:
    row = duckanon.lattice(PEOPLE, **ARGUMENTS, pareto=True).to_pylist()[-1]
    with duckanon.anonymize(PEOPLE, **ARGUMENTS, levels=row["levels"]) as release:
        found = release.summary()
        assert release.recoding.levels == row["levels"]
        assert found["found"]["classes"] == row["classes_published"]
        assert 1 / found["found"]["class_size"]["min"] == row["risk"]
        assert release.lattice().to_pylist() == [row]


def test_weights_and_limits_count() -> None:
    heavy = duckanon.lattice(PEOPLE, **ARGUMENTS, weights={"age": 9}, min_levels={"sex": 1}, max_levels={"age": 2})
    rows = heavy.to_pylist()
    assert [row["node"] for row in rows] == ["0,1", "1,1", "2,1"]
    assert rows[0]["loss"] == pytest.approx(0.1)


def test_an_iterative_release_shows_its_first_pass() -> None:
    with duckanon.anonymize(
        PEOPLE, **ARGUMENTS, algorithm="optimal", suppression_limit=0.02, iterative=True
    ) as release:
        rows = [row for row in release.lattice().to_pylist() if row["visited"]]
        assert all(row["anonymous"] == (row["suppressed"] <= release.seen.allowed) for row in rows)
        assert release.summary()["search"]["pass"] == 1
        assert "Search: first pass: " in release.report("md")


def test_a_search_that_says_nothing() -> None:
    with duckanon.anonymize(PEOPLE, **ARGUMENTS, algorithm="datafly") as release:
        release.seen = None
        with pytest.raises(UnsupportedError, match="datafly does not say"):
            release.lattice()
    with (
        duckanon.anonymize(PEOPLE, **ARGUMENTS) as release,
        pytest.raises(UnsupportedError, match="mondrian does not say"),
    ):
        release.lattice()


def test_the_report_says_how_the_search_went() -> None:
    with duckanon.anonymize(PEOPLE, **ARGUMENTS, algorithm="optimal", weights={"age": 2}) as release:
        search = release.summary()["search"]
        assert set(search) == {"nodes", "visited", "metric", "value", "bound", "gap", "optimal"}
        text = release.report("md")
        assert f"Search: {search['visited']} of {search['nodes']} nodes visited; loss " in text
        assert "and no node is better." in text
        assert "Weights: age = 2.0." in text


def test_progress_counts_nodes() -> None:
    events = []
    found = duckanon.lattice(PEOPLE, **ARGUMENTS, progress=events.append)
    last = [e for e in events if e.step == "lattice"][-1]
    assert (last.done, last.total, last.unit, last.finished) == (len(found), len(found), "nodes", True)


@pytest.mark.parametrize(
    ("wrong", "kind", "message"),
    [
        ({"metrics": ["los"]}, ParameterError, "Did you mean 'loss'"),
        ({"metrics": [3]}, ParameterError, "names of metrics"),
        ({"metrics": [], "pareto": True}, ParameterError, "name one"),
        ({"pareto": 1}, ParameterError, "pareto must be true or false"),
        ({"most": 0}, ParameterError, "most must be a whole number of at least 1"),
        ({"most": 3}, UnsupportedError, r"The lattice has 10 nodes, more than the 3 .* min_levels and max_levels"),
        ({"k": None}, ParameterError, "No privacy model is given"),
        ({"max_levels": {"age": 99}}, ParameterError, "The hierarchy of 'age' has the levels 0 to"),
        ({"k": 201}, InfeasibleError, "fewer than the 201"),
    ],
)
def test_what_is_refused(wrong: dict[str, Any], kind: type[DuckanonError], message: str) -> None:
    with pytest.raises(kind, match=message):
        duckanon.lattice(PEOPLE, **{**ARGUMENTS, **wrong})
