"""The owner sees which values the labels of a release stand for; the report says how labels are read."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import duckanon
from duckanon.errors import RoleError, UnsupportedError

TOWNS = [f"town {i:02d}" for i in range(40)]
PEOPLE = pa.table({"town": TOWNS * 5, "age": [20 + i % 30 for i in range(200)]})


@pytest.mark.parametrize(
    "options",
    [{"k": 40}, {"k": 10, "algorithm": "mdav"}, {"k": 10, "algorithm": "ola", "hierarchies": {"town": "town.toml"}}],
    ids=lambda options: str(options.get("algorithm", "mondrian")),
)
def test_every_published_label_is_explained(options: dict[str, Any]) -> None:
    if "hierarchies" in options:
        options = {**options, "hierarchies": {"town": duckanon.Hierarchy.prefix([6])}}
    with duckanon.anonymize(PEOPLE, quasi_identifiers=["town", "age"], seed=1, **options) as release:
        groups, shown = release.recoding.groups("TOWN").to_pylist(), set(release.to_arrow()["town"].to_pylist())
        page = release.report("md")
    by_label: dict[str, set[str]] = {}
    for row in groups:
        by_label.setdefault(row["label"], set()).add(row["value"])
    assert shown <= set(by_label) | set(TOWNS)
    assert by_label["*"] == set(TOWNS)
    for label in shown & set(by_label):
        if label.startswith("["):
            low, high = label.strip("[]").split(", ")
            assert by_label[label] == {town for town in TOWNS if low <= town <= high}
    assert ("holds every value from a to z" in page) is ("hierarchies" not in options)


def test_an_unknown_column_is_refused() -> None:
    with (
        duckanon.anonymize(PEOPLE, quasi_identifiers=["town"], k=5, seed=1) as release,
        pytest.raises(RoleError, match="Did you mean 'town'"),
    ):
        release.recoding.groups("twon")


def test_where_values_are_permuted_there_are_no_groups() -> None:
    hidden: dict[str, Any] = {"k": 5, "seed": 1, "algorithm": "probabilistic"}
    with (
        duckanon.anonymize(PEOPLE, quasi_identifiers=["town", "age"], **hidden) as release,
        pytest.raises(UnsupportedError, match="published as they are"),
    ):
        release.recoding.groups("town")
