"""Encodings against the slow reference: random hierarchies, random releases, and the rows that they were made of."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from reference import encodings as slow

import duckanon
from duckanon import Hierarchy
from duckanon.assess.utility import AnonymousEncoder, encode
from duckanon.assess.utility.codebook import METHODS

NODE_METHODS = {
    "one_class": slow.one_class,
    "fill_parent": slow.fill_parent,
    "fill_child": slow.fill_child,
    "proportional": slow.even,
}


def random_tree(dice: random.Random) -> list[tuple[str, ...]]:
    """Leaves with two levels of groups above and a top; labels are told apart by their level."""
    size = dice.randint(2, 9)
    low = sorted(dice.randrange(4) for _ in range(size))
    return [(f"v{i}", f"a{group}", f"b{group // 2}", "*") for i, group in enumerate(low)]


def as_hierarchy(tree: list[tuple[str, ...]]) -> Hierarchy:
    return Hierarchy.from_table({f"l{i}": list(column) for i, column in enumerate(zip(*tree, strict=True))})


def dense(names: list[str], found: dict[slow.Node, float], column: str) -> list[float]:
    by_name = {f"{column}_{label}": value for (_, label), value in found.items()}
    assert set(by_name) <= set(names)
    return [by_name.get(name, 0.0) for name in names]


@pytest.mark.parametrize("seed", range(40))
def test_labels_of_trees(seed: int) -> None:
    dice = random.Random(seed)
    tree = random_tree(dice)
    labels = [label for _, label in slow.nodes(tree)]
    cells = [dice.choice(labels) for _ in range(12)]
    rows = pa.table({"c": cells})
    for method, reference in NODE_METHODS.items():
        matrix, names = encode(rows, method, hierarchies={"c": as_hierarchy(tree)})
        expected = [dense(names, reference(tree, cell), "c") for cell in cells]
        assert np.allclose(matrix.toarray(), expected)
    matrix, names = encode(rows, "value_set", hierarchies={"c": as_hierarchy(tree)})
    assert matrix.toarray().tolist() == [dense(names, slow.value_set(tree, cell), "c") for cell in cells]


@pytest.mark.parametrize("seed", range(40))
def test_raw_values_of_trees(seed: int) -> None:
    dice = random.Random(1000 + seed)
    tree = random_tree(dice)
    labels = [label for _, label in slow.nodes(tree)]
    cells = [dice.choice(labels) for _ in range(4)]
    released = dict.fromkeys(cells, 1)
    raw = [row[0] for row in tree]
    encoder = AnonymousEncoder("one_class", {"c": as_hierarchy(tree)}).fit(pa.table({"c": cells}))
    names = encoder.get_feature_names_out().tolist()
    expected = [dense(names, slow.one_class(tree, slow.lifted(tree, released, value)), "c") for value in raw]
    assert encoder.transform(pa.table({"c": raw})).toarray().tolist() == expected
    known = set().union(*(slow.fill_parent(tree, cell) for cell in cells))
    for method, reference in (
        # Features that no published row has were never published.
        ("fill_parent", lambda tree, value: {n: x for n, x in slow.fill_parent(tree, value).items() if n in known}),
        ("proportional", slow.even),
    ):
        encoder.set_params(method=method).fit(pa.table({"c": cells}))
        expected = [dense(names, reference(tree, value), "c") for value in raw]
        assert encoder.transform(pa.table({"c": raw})).toarray().tolist() == expected


@pytest.mark.parametrize("seed", range(40))
def test_fill_parent_sets_no_feature_that_was_never_published(seed: int) -> None:
    dice = random.Random(seed)
    rows = pa.table({"c": [random_cell(dice) for _ in range(dice.randint(1, 6))]})
    encoder = AnonymousEncoder("fill_parent").fit(rows)
    published = encoder.transform(rows).toarray().any(axis=0)
    raw = encoder.transform(pa.table({"c": list(range(100))})).toarray()
    assert not raw[:, ~published].any()


def random_cell(dice: random.Random) -> str:
    low, high = sorted(dice.sample(range(100), 2))
    return dice.choice(
        [
            "*",
            str(low),
            f"[{low}, {high}]",
            f"[{low}, {high})",
            f"({low}, {high}]",
            f"<= {high}",
            f"< {high}",
            f">= {low}",
            "{" + ", ".join(str(x) for x in sorted(dice.sample(range(100), 3))) + "}",
        ]
    )


@pytest.mark.parametrize("seed", range(60))
def test_numbers_share_a_feature_unless_a_cell_tells_them_apart(seed: int) -> None:
    dice = random.Random(seed)
    cells = [random_cell(dice) for _ in range(dice.randint(1, 8))]
    inside = [slow.values_of(cell) for cell in cells]
    encoder = AnonymousEncoder("value_set").fit(pa.table({"c": cells}))
    found = encoder.transform(pa.table({"c": cells})).toarray() > 0
    points = encoder.transform(pa.table({"c": list(range(100))})).toarray() > 0
    assert (points.sum(axis=1) == 1).all()
    told = {value for cell, own in zip(cells, inside, strict=True) for value in own if cell != "*"}
    for value in told:
        # A cell has a value's feature if and only if it can stand for the value.
        has = (found & points[value]).any(axis=1).tolist()
        assert has == [value in own for own in inside]
    signatures = {tuple(value in own for own in inside) for value in told}
    assert found.shape[1] >= max(len(signatures), 1)


@pytest.mark.parametrize("seed", range(30))
def test_containment_of_intervals(seed: int) -> None:
    dice = random.Random(seed)
    cells = list(dict.fromkeys(random_cell(dice) for _ in range(6)))
    inside = {cell: slow.values_of(cell) for cell in cells}
    told = set().union(*(own for cell, own in inside.items() if cell != "*"))
    inside = {cell: own & told if told else own for cell, own in inside.items()}
    for method, holds in (("fill_parent", set.issubset), ("fill_child", set.issuperset)):
        encoder = AnonymousEncoder(method).fit(pa.table({"c": cells}))
        book = encoder._fitted.books["c"]
        found = encoder.transform(pa.table({"c": cells})).toarray() > 0
        for i, cell in enumerate(cells):
            for other in cells:
                assert found[i, book.own[other]] == holds(inside[cell], inside[other])


ALGORITHMS = ("mondrian", "datafly", "tdg", "k_member")
OUTPUTS = ("interval", "bounds", "struct", "set", "lca")


@pytest.mark.parametrize("seed", range(7))
@pytest.mark.thinned(2)
def test_features_of_a_release_are_those_of_the_reference(seed: int) -> None:
    """The features of an original value are among those of its cell, and shares are those of the class."""
    dice = random.Random(seed)
    n = dice.randint(20, 60)
    tree = random_tree(dice)
    people = pa.table(
        {
            "id": list(range(n)),
            "age": [dice.choice([None, *range(20, 40)]) if seed % 3 == 0 else dice.randrange(20, 60) for _ in range(n)],
            "work": [dice.choice(tree)[0] for _ in range(n)],
        }
    )
    algorithm, output = dice.choice(ALGORITHMS), dice.choice(OUTPUTS)
    keywords = {} if algorithm == "datafly" else {"output": output}
    made = duckanon.anonymize(
        people,
        quasi_identifiers=["age", "work"],
        insensitive=["id"],
        hierarchies={"work": as_hierarchy(tree)},
        k=4,
        algorithm=algorithm,
        suppression_limit=0.3,
        seed=seed,
        **keywords,
    )
    with made as release:
        table = release.to_arrow()
        ids = table.column("id").to_pylist()
        encoders = {method: AnonymousEncoder(method).fit(release) for method in METHODS}
        found = {method: encoder.transform(release).toarray() for method, encoder in encoders.items()}
        again = {method: encoder.transform(table).toarray() for method, encoder in encoders.items()}
        shown = list(release.recoding.columns)
    raw = people.take(pa.array(ids))
    values = {method: encoder.transform(raw).toarray() for method, encoder in encoders.items()}
    for method in METHODS:
        assert np.array_equal(found[method], again[method])
    for method in ("value_set", "fill_child"):
        own = [name.startswith("work") or method == "value_set" for name in encoders[method].get_feature_names_out()]
        assert (values[method][:, own] <= found[method][:, own]).all()
    assert (values["fill_parent"] >= found["fill_parent"]).all()
    names = encoders["proportional"].get_feature_names_out().tolist()
    at = [i for i, name in enumerate(names) if name.startswith("work")]
    classes: dict[str, list[str]] = {}
    rows = table.select(shown).to_pylist()
    for row, value in zip(rows, raw.column("work").to_pylist(), strict=True):
        classes.setdefault(str(row), []).append(value)
    for i, row in enumerate(rows):
        expected = dense([names[j] for j in at], slow.proportional(tree, classes[str(row)]), "work")
        assert np.allclose(found["proportional"][i, at], expected)
