"""Reports: complete, on one page, and safe with any name of a column."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pyarrow as pa
import pytest

import duckanon
from duckanon.errors import ParameterError
from duckanon.report import escape, formats, render

SUMMARY: dict[str, Any] = {
    "duckanon": "0.1.0",
    "engine": {"name": "duckdb", "version": "2.0.0"},
    "source": {"kind": "file", "name": "hospital.parquet"},
    "roles": {
        "quasi_identifiers": ["age", "zip", "sex"],
        "sensitive": ["diagnosis"],
        "insensitive": ["cost"],
        "identifiers": ["name"],
        "entity_key": "patient_id",
        "dropped": ["shoe_size"],
    },
    "unit": "persons",
    "promise": [{"model": "k_anonymity", "parameters": {"k": 5}, "text": "every class has at least 5 persons"}],
    "algorithm": {"name": "datafly", "parameters": {"stop": "limit"}},
    "suppression_limit": 0.05,
    "hierarchies": [
        {"attribute": "age", "origin": "made: nested round grid of width 5", "height": 4, "level": 2, "leaves": 90},
        {"attribute": "zip", "origin": "shipped: us_zip5", "height": 5, "level": 5, "leaves": 300},
        {"attribute": "sex", "origin": "made: one step to *", "height": 1, "level": 0, "leaves": 3},
    ],
    "found": {
        "rows_in": 20000,
        "rows_published": 19500,
        "rows_suppressed": 500,
        "suppressed_share": 0.025,
        "classes": 321,
        "class_size": {"min": 5, "q25": 11, "median": 19, "mean": 60.747, "q75": 39, "max": 1860},
    },
    "checks": [
        {
            "model": "k_anonymity",
            "parameters": {"k": 5},
            "holds": True,
            "classes": 321,
            "violating_classes": 0,
            "violating_rows": 0,
            "text": "every class has at least 5 persons",
        }
    ],
    "loss": [
        {"metric": "loss", "value": 0.1534, "direction": "lower", "attribute": None},
        {"metric": "loss", "value": 0.25, "direction": "lower", "attribute": "age"},
        {"metric": "loss", "value": 1.0, "direction": "lower", "attribute": "zip"},
        {"metric": "precision", "value": 0.5, "direction": "higher", "attribute": None},
        {"metric": "precision", "value": None, "direction": "higher", "attribute": "age"},
    ],
    "bounds": "grid",
    "seeded": False,
    "notes": ["hierarchy of age: made: nested round grid of width 5"],
    "seconds": {"encode": 0.7, "search": 0.16},
}


def changed(**entries: Any) -> dict[str, Any]:
    return {**copy.deepcopy(SUMMARY), **entries}


def cells(line: str) -> int:
    """Return the number of cells of a table's row, as Markdown counts them."""
    return len(re.findall(r"(?<!\\)\|", line)) - 1


class TestJson:
    def test_is_the_summary(self) -> None:
        assert json.loads(render(SUMMARY, "json")) == SUMMARY

    def test_the_order_of_keys_does_not_depend_on_the_summary(self) -> None:
        turned = dict(reversed(list(changed(zebra=1, apple=2).items())))
        text = render(turned, "json")
        assert text == render(changed(apple=2, zebra=1), "json")
        assert list(json.loads(text))[-2:] == ["apple", "zebra"]
        assert text.endswith("}\n")

    def test_numbers_that_json_has_not_become_null(self) -> None:
        text = render({"loss": [{"value": float("nan")}, {"value": float("inf")}]}, "json")
        assert json.loads(text)["loss"] == [{"value": None}, {"value": None}]


class TestMarkdown:
    def test_has_every_section_once_and_in_order(self) -> None:
        assert re.findall(r"^## (.*)$", render(SUMMARY, "md"), re.M) == [
            "What is promised",
            "Risk",
            "Verification",
            "What was found",
            "What was lost",
            "What was done to each column",
            "What is never published",
            "Bounds",
            "Notes",
            "What is not promised",
            "How to verify",
            "How to get it again",
        ]

    @pytest.mark.parametrize(
        "line",
        [
            "- Every class has at least 5 persons. (k_anonymity)",
            "- Suppression limit: 5.00% of the rows.",
            "| k_anonymity | k = 5 | yes | 321 | 0 | 0 |",
            "| Rows in | 20,000 |  |",
            "| Rows published | 19,500 | 97.50% |",
            "| Rows suppressed | 500 | 2.50% |",
            "| 5 | 11 | 19 | 60.75 | 39 | 1,860 |",
            "| loss | 0.1534 | lower is better |",
            "| precision | 0.5 | higher is better |",
            "| age | 0.25 | - |",
            "| age | quasi-identifier | made: nested round grid of width 5 | 2 of 4 | generalized |",
            "| zip | quasi-identifier | shipped: us_zip5 | 5 of 5 | nothing left of it |",
            "| sex | quasi-identifier | made: one step to \\* | 0 of 1 | published as it is |",
            "| diagnosis | sensitive |  |  | published as it is |",
            "- Identifiers: name",
            "- The key that identifies persons: patient_id",
            "- Columns without a role: shoe_size",
            "- Differential privacy.",
            "- k counts persons, not rows: all rows of a person in a class count once.",
            "Versions: duckanon 0.1.0, duckdb 2.0.0.",
            "Algorithm: datafly; parameters: stop = limit.",
            "| encode | 0.70 |",
        ],
    )
    def test_says(self, line: str) -> None:
        assert line in render(SUMMARY, "md").splitlines()

    def test_fits_on_a_page_or_two(self) -> None:
        assert len(render(SUMMARY, "md").splitlines()) < 125

    def test_stamps_a_seeded_release_at_the_top(self) -> None:
        stamp = "**seeded: for tests, not for release**"
        assert stamp in render(changed(seeded=True), "md").splitlines()[:4]
        assert stamp not in render(SUMMARY, "md")

    def test_shouts_when_a_check_does_not_hold(self) -> None:
        broken = {**SUMMARY["checks"][0], "holds": False, "violating_classes": 2, "violating_rows": 3}
        assert "| k_anonymity | k = 5 | **NO** | 321 | 2 | 3 |" in render(changed(checks=[broken]), "md")

    @pytest.mark.parametrize(
        ("bounds", "words"),
        [("grid", "no bound discloses a person"), ("cut", "can be"), ("tight", "exact value of a person")],
    )
    def test_says_what_bounds_disclose(self, bounds: str, words: str) -> None:
        assert words in render(changed(bounds=bounds), "md")

    def test_names_columns_whose_cuts_come_from_the_data(self) -> None:
        drawn = {**SUMMARY["hierarchies"][0], "origin": "given: rule quantiles (cut points from the data's quantiles)"}
        assert "come from the data, all rows together: age." in render(changed(hierarchies=[drawn]), "md")
        assert "come from the data" not in render(SUMMARY, "md")

    def test_of_nothing_is_not_an_error(self) -> None:
        assert render({}, "md").startswith("# Report")
        empty = {"rows_in": 0, "rows_published": 0, "rows_suppressed": 0, "suppressed_share": 0.0, "classes": 0}
        assert "| Rows in | 0 |" in render({"found": empty}, "md")


NAMES = [
    "a|b",
    "`tick`",
    "a\nb",
    "a\r\n| x | y |",
    "\\",
    "back\\|slash",
    "# head",
    "<script>alert(1)</script>",
    "[x](http://y)",
    "*bold*",
    "_em_",
    "\x1b[31mred",
    "\u2028line",
    "&lt;",
    "ünï",
    "",
]


@pytest.mark.parametrize("name", NAMES)
def test_names_cannot_break_a_report(name: str) -> None:
    summary = changed(
        roles={**SUMMARY["roles"], "quasi_identifiers": [name], "sensitive": [name], "identifiers": [name]},
        hierarchies=[{**SUMMARY["hierarchies"][0], "attribute": name, "origin": name}],
        loss=[{"metric": "loss", "value": 0.5, "direction": "lower", "attribute": name}],
        notes=[name],
        source={"kind": "table", "name": name},
    )
    lines = render(summary, "md").splitlines()
    assert [line for line in lines if not line.isprintable()] == []
    plain = render(SUMMARY, "md").splitlines()
    assert [x for x in lines if x.startswith("#")] == [x for x in plain if x.startswith("#")]
    width = 0
    for line in lines:
        if not line.startswith("|"):
            width = 0
        elif width:
            assert cells(line.replace("\\\\", "")) == width
        else:
            width = cells(line)
    assert json.loads(render(summary, "json"))["notes"] == [name]


def test_escape_keeps_ordinary_names_readable() -> None:
    assert [escape(n) for n in ("birth_date", "Größe", "a b", "x-1")] == ["birth_date", "Größe", "a b", "x-1"]
    assert escape("_x_") == "\\_x\\_"


@pytest.mark.parametrize("kind", ["htm", "MD", "", None, []])
def test_an_unknown_format_is_refused(kind: Any) -> None:
    with pytest.raises(ParameterError, match="Unknown report format"):
        render(SUMMARY, kind)
    assert formats() == ("json", "md", "html")


def test_of_a_real_release_has_no_cell_of_the_data() -> None:
    people = pa.table(
        {
            "age": [341, 342, 343, 612, 613, 614],
            "town": ["Zaphodville", "Trillianburg", "Marvintown"] * 2,
            "ill": ["Beeblebrox disease"] * 6,
        }
    )
    with duckanon.anonymize(people, quasi_identifiers=["age", "town"], sensitive=["ill"], k=3) as release:
        for kind in formats():
            text = release.report(kind)
            for cell in ("341", "614", "Zaphodville", "Marvintown", "Beeblebrox"):
                assert cell not in text
            assert "made: " in text
