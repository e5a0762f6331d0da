"""Tables II and III of Viton et al., Proportional representation to increase data utility in k-anonymous tables, 2021.

Figure 1, the hierarchy, is a picture; what the text and Table III say of it: felidae are cat, lion and tiger, canine is
dog and one more, cetaceans are dolphin and whale, all are mammals. Two cells of Table II contradict that, and are
misprints: in (b) dog has R_12 (cetaceans) and lacks R_11 (canine) and R_20, though "any value exhibits all features of
its parents"; in (c) canine has R_05, which is dolphin in Table III. They are corrected here, and nothing else is.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import duckanon
from duckanon import Hierarchy
from duckanon.assess.utility import AnonymousEncoder, encode

RACE = Hierarchy.from_table(
    {
        "l0": ["cat", "lion", "tiger", "dog", "wolf", "dolphin", "whale"],
        "l1": ["felidae"] * 3 + ["canine"] * 2 + ["cetaceans"] * 2,
        "l2": ["mammals"] * 7,
    }
)
GENDER = Hierarchy.from_table({"l0": ["M", "F"], "l1": ["*", "*"]})
SHOWN = ["cat", "dog", "felidae", "canine", "mammals"]
TABLE_II = {
    "one_class": [
        [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0],
        [0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0],
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
    ],
    "fill_parent": [
        [1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1],
        [0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 1],
        [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1],
        [0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1],
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
    ],
    "fill_child": [
        [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0],
        [1, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0],
        [0, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0],
        [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1],
    ],
}
# The paper cuts thirds off after two digits.
TABLE_III = [
    [0.33, 0.66, 1, 0.33, 0.33, 0, 0.33, 0, 0, 0, 0.66, 0.33, 0, 1],
    [0.66, 0.33, 1, 0, 0, 0, 0, 0, 0.33, 0.66, 0, 0, 1, 1],
]
# The paper's classes are given by a column that is published as it is: no algorithm here would choose them.
T = pa.table(
    {
        "class": [1, 1, 1, 2, 2, 2],
        "G": ["M", "F", "F", "M", "M", "F"],
        "R": ["cat", "lion", "dog", "dolphin", "whale", "whale"],
    }
)
T_ANO = [("*", "cetaceans")] * 3 + [("*", "mammals")] * 3


@pytest.mark.parametrize("method", TABLE_II)
def test_encodings_are_those_of_table_ii(method: str) -> None:
    matrix, names = encode(pa.table({"R": SHOWN}), method, hierarchies={"R": RACE})
    assert names[7:] == ["R_felidae", "R_canine", "R_cetaceans", "R_mammals"]
    assert matrix.toarray().tolist() == TABLE_II[method]


def test_table_iii_is_what_the_owner_of_the_release_gets() -> None:
    hierarchies = {"G": GENDER, "R": RACE}
    made = duckanon.anonymize(
        T,
        quasi_identifiers=["class", "G", "R"],
        within=["class"],
        output={"G": "lca", "R": "lca"},
        hierarchies=hierarchies,
        k=3,
        seed=1,
    )
    with made as release:
        assert sorted((row["G"], row["R"]) for row in release.to_arrow().to_pylist()) == T_ANO
        encoder = AnonymousEncoder("proportional", columns=["G", "R"]).fit(release)
        names = encoder.get_feature_names_out().tolist()
        matrix = encoder.transform(release).toarray()
        labels = release.to_arrow().column("R").to_pylist()
    assert names[:3] == ["G_M", "G_F", "G_*"]
    assert len(names) == 14
    for row, label in zip(matrix, labels, strict=True):
        expected = TABLE_III[0 if label == "mammals" else 1]
        assert (np.floor(row * 100 + 1e-9) / 100).tolist() == expected


def test_table_iii_is_what_a_full_domain_release_publishes(tmp_path: Path) -> None:
    hierarchies = {"G": GENDER, "R": RACE}
    made = duckanon.anonymize(
        T,
        quasi_identifiers=["class", "G", "R"],
        levels={"class": 0, "G": 1, "R": 2},
        output={"G": "proportional", "R": "proportional"},
        hierarchies=hierarchies,
        algorithm="datafly",
        k=3,
        seed=1,
    )
    with made as release:
        assert release.recoding.levels == {"class": 0, "G": 1, "R": 2}
        release.write(tmp_path / "r.parquet")
    # Whoever has the file and the hierarchies has the table, too.
    encoder = AnonymousEncoder("proportional", hierarchies, columns=["G", "R"]).fit(tmp_path / "r.parquet")
    matrix = encoder.transform(tmp_path / "r.parquet").toarray()
    assert len(encoder.get_feature_names_out()) == 14
    for row, number in zip(matrix, pq.read_table(tmp_path / "r.parquet").column("class").to_pylist(), strict=True):
        assert (np.floor(row * 100 + 1e-9) / 100).tolist() == TABLE_III[number - 1]


def test_figure_3_5_is_value_set() -> None:
    """Section 3.4.1 of the thesis on information loss and utility: sets become binary tuples."""
    table = pa.table({"gender": ["{0}", "{0}", "{0, 1}", "{0, 1}"], "age": ["{1,3}", "{1,3}", "{0,1}", "{0,1}"]})
    matrix, names = encode(table, "value_set")
    # No cell has 2, and nobody said that there is one: a hierarchy would.
    assert names == ["gender_0", "gender_1", "age_0", "age_1", "age_3"]
    assert matrix.toarray().astype(int).tolist() == [[1, 0, 0, 1, 1]] * 2 + [[1, 1, 1, 1, 0]] * 2
    ages = Hierarchy.from_table({"l0": ["0", "1", "2", "3"], "l1": ["*"] * 4})
    matrix, names = encode(table, "value_set", hierarchies={"age": ages})
    assert names == ["gender_0", "gender_1", "age_0", "age_1", "age_2", "age_3"]
    assert matrix.toarray().astype(int).tolist() == [[1, 0, 0, 1, 0, 1]] * 2 + [[1, 1, 1, 1, 0, 0]] * 2
