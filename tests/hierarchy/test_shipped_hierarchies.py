"""The hierarchy files that come with the package: their format, their nesting and some facts in them."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "hierarchies"

LEAVES = {
    "age_bands": 121,
    "blood_types": 10,
    "countries": 292,
    "countries_iso2": 249,
    "countries_iso3": 249,
    "education_isced": 88,
    "icd10_categories": 2564,
    "marital_status": 24,
    "month_numbers": 12,
    "months": 12,
    "us_state_names": 62,
    "us_states": 62,
    "us_zip3": 931,
    "weekdays": 7,
    "work_class": 35,
}


def table(name: str) -> list[list[str]]:
    with (FOLDER / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file, delimiter=";"))


def above(name: str) -> dict[str, list[str]]:
    return {row[0]: row[1:] for row in table(name)}


def rule(name: str) -> dict[str, object]:
    return tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


def test_every_table_is_known() -> None:
    assert {path.stem for path in FOLDER.glob("*.csv")} == set(LEAVES)


@pytest.mark.parametrize("name", sorted(LEAVES))
def test_bytes(name: str) -> None:
    raw = (FOLDER / f"{name}.csv").read_bytes()
    assert not raw.startswith(b"\xef\xbb\xbf")
    assert b"\r" not in raw
    assert raw.endswith(b"\n")
    assert b"\n\n" not in raw
    raw.decode("utf-8")


@pytest.mark.parametrize("name", sorted(LEAVES))
def test_leaves(name: str) -> None:
    leaves = [row[0] for row in table(name)]
    assert len(leaves) == LEAVES[name]
    assert len(set(leaves)) == len(leaves)


@pytest.mark.parametrize("name", sorted(LEAVES))
def test_rectangular_and_rooted(name: str) -> None:
    rows = table(name)
    assert len({len(row) for row in rows}) == 1
    assert len(rows[0]) >= 3
    for row in rows:
        assert row[-1] == "*"
        assert "*" not in row[:-1]
        assert all(label and label == label.strip() for label in row)


@pytest.mark.parametrize("name", sorted(LEAVES))
def test_one_parent_per_label(name: str) -> None:
    rows = table(name)
    for level in range(len(rows[0]) - 1):
        parents: dict[str, str] = {}
        for row in rows:
            assert parents.setdefault(row[level], row[level + 1]) == row[level + 1], row


@pytest.mark.parametrize("name", sorted(LEAVES))
def test_levels_share_no_label_and_get_coarser(name: str) -> None:
    levels = [set(column) for column in zip(*table(name), strict=True)]
    assert sum(map(len, levels)) == len(set().union(*levels))
    sizes = [len(level) for level in levels]
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == len(sizes)


def test_build_script_gives_the_same_tables() -> None:
    done = subprocess.run(
        [sys.executable, "-B", str(FOLDER / "build.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_readme_counts() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    found = {m[1]: (int(m[2]), int(m[3])) for m in re.finditer(r"^\| `(\w+)\.csv` \| (\d+) \| (\d+) \|", text, re.M)}
    assert found == {name: (leaves, len(table(name)[0]) - 1) for name, leaves in LEAVES.items()}
    assert {path.name for path in FOLDER.glob("*.toml")} == set(re.findall(r"^\| `(\w+\.toml)`", text, re.M))


@pytest.mark.parametrize(
    ("name", "leaf", "path"),
    [
        ("countries", "France", ["Western Europe", "Europe", "*"]),
        ("countries", "United States", ["Northern America", "Americas", "*"]),
        ("countries", "Nigeria", ["Western Africa", "Africa", "*"]),
        ("countries", "Côte d'Ivoire", ["Western Africa", "Africa", "*"]),
        ("countries", "Mexico", ["Central America", "Americas", "*"]),
        ("countries_iso2", "JP", ["Eastern Asia", "Asia", "*"]),
        ("countries_iso2", "NA", ["Southern Africa", "Africa", "*"]),
        ("countries_iso3", "NZL", ["Australia and New Zealand", "Oceania", "*"]),
        ("us_states", "CA", ["Pacific", "West", "*"]),
        ("us_states", "DC", ["South Atlantic", "South", "*"]),
        ("us_states", "PR", ["Caribbean territories", "Island areas", "*"]),
        ("us_state_names", "Minnesota", ["West North Central", "Midwest", "*"]),
        ("us_zip3", "902", ["CA", "Pacific", "West", "*"]),
        ("us_zip3", "100", ["NY", "Middle Atlantic", "Northeast", "*"]),
        ("us_zip3", "606", ["IL", "East North Central", "Midwest", "*"]),
        ("us_zip3", "733", ["TX", "West South Central", "South", "*"]),
        ("us_zip3", "008", ["VI", "Caribbean territories", "Island areas", "*"]),
        ("us_zip3", "986", ["WA", "Pacific", "West", "*"]),
        ("age_bands", "0", ["[0, 5)", "[0, 10)", "[0, 20)", "[0, 40)", "*"]),
        ("age_bands", "37", ["[35, 40)", "[30, 40)", "[20, 40)", "[0, 40)", "*"]),
        ("age_bands", "120", ["[120, 125)", "[120, 130)", "[120, 140)", "[120, 160)", "*"]),
        ("education_isced", "Bachelor's degree", ["ISCED 6", "High", "*"]),
        ("education_isced", "High school diploma", ["ISCED 3", "Medium", "*"]),
        ("education_isced", "Primary school", ["ISCED 1", "Low", "*"]),
        ("education_isced", "Doctorate", ["ISCED 8", "High", "*"]),
        ("icd10_categories", "E11", ["E10-E14", "IV Endocrine, nutritional and metabolic diseases (E00-E90)", "*"]),
        ("icd10_categories", "I21", ["I20-I25", "IX Diseases of the circulatory system (I00-I99)", "*"]),
        ("icd10_categories", "D48", ["D37-D48", "II Neoplasms (C00-D48)", "*"]),
        ("icd10_categories", "Y05", ["X85-Y09", "XX External causes of morbidity and mortality (V01-Y98)", "*"]),
        ("icd10_categories", "A10", ["A00-B99", "I Certain infectious and parasitic diseases (A00-B99)", "*"]),
        ("icd10_categories", "U07", ["U00-U49", "XXII Codes for special purposes (U00-U99)", "*"]),
        ("countries", "Scotland", ["Northern Europe", "Europe", "*"]),
        ("education_isced", "HS-grad", ["ISCED 3", "Medium", "*"]),
        ("marital_status", "Divorced", ["Marriage ended, or apart", "*"]),
        ("work_class", "Federal-gov", ["Public employer", "*"]),
        ("blood_types", "AB-", ["AB", "*"]),
        ("weekdays", "Sunday", ["weekend", "*"]),
        ("weekdays", "Friday", ["weekday", "*"]),
        ("months", "July", ["Q3", "H2", "*"]),
        ("month_numbers", "12", ["Q4", "H2", "*"]),
    ],
)
def test_fact(name: str, leaf: str, path: list[str]) -> None:
    assert above(name)[leaf] == path


def test_country_tables_agree() -> None:
    def sizes(name: str) -> dict[tuple[str, ...], int]:
        counts: dict[tuple[str, ...], int] = {}
        for row in table(name):
            counts[tuple(row[1:])] = counts.get(tuple(row[1:]), 0) + 1
        return counts

    two, three, names = sizes("countries_iso2"), sizes("countries_iso3"), sizes("countries")
    assert two == three
    assert set(names) == set(two)
    assert all(names[path] >= two[path] for path in two)
    assert len(two) == 22
    assert all(re.fullmatch("[A-Z]{2}", leaf) for leaf in above("countries_iso2"))
    assert all(re.fullmatch("[A-Z]{3}", leaf) for leaf in above("countries_iso3"))


@pytest.mark.parametrize(("spelling", "other"), [("Türkiye", "Turkey"), ("Vietnam", "Viet Nam")])
def test_spellings_share_their_region(spelling: str, other: str) -> None:
    assert above("countries")[spelling] == above("countries")[other]


def test_states_of_the_zip_prefixes() -> None:
    states = above("us_states")
    census = {state for state, path in states.items() if path[1] in {"Northeast", "Midwest", "South", "West"}}
    assert len(census) == 51
    used = {path[0] for path in above("us_zip3").values()}
    assert census <= used <= set(states)
    for leaf, (state, *rest) in above("us_zip3").items():
        assert re.fullmatch(r"\d{3}", leaf)
        assert rest == states[state]


@pytest.mark.parametrize("prefix", ["000", "004", "213", "343", "987"])
def test_unallocated_prefixes_are_absent(prefix: str) -> None:
    assert prefix not in above("us_zip3")


def test_age_bands_hold_their_ages() -> None:
    for age, *bands, _ in table("age_bands"):
        spans = [tuple(map(int, re.fullmatch(r"\[(\d+), (\d+)\)", band).groups())) for band in bands]  # type: ignore[union-attr]
        assert [high - low for low, high in spans] == [5, 10, 20, 40]
        assert all(low <= int(age) < high for low, high in spans)


def test_icd10_ranges_hold_their_members() -> None:
    rows = table("icd10_categories")
    for leaf, block, chapter, _ in rows:
        assert re.fullmatch(r"[A-Z]\d\d", leaf)
        first, last = block.split("-")
        low, high = re.search(r"\((\w{3})-(\w{3})\)$", chapter).groups()  # type: ignore[union-attr]
        assert low <= first <= leaf <= last <= high
    assert len({chapter for _, _, chapter, _ in rows}) == 22
    blocks: dict[str, set[str]] = {}
    for leaf, block, _, _ in rows:
        blocks.setdefault(block, set()).add(leaf)
    whole = {re.search(r"\((.*)\)$", row[2])[1] for row in rows}  # type: ignore[index]
    every = {f"{letter}{number:02d}" for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" for number in range(100)}
    for block, members in blocks.items():
        if block not in whole:
            assert members == {code for code in every if block[:3] <= code <= block[4:]}, block


@pytest.mark.parametrize("name", ["us_zip5", "icd10"])
def test_prefix_rules(name: str) -> None:
    content = rule(name)
    assert content == {"rule": "prefix", "lengths": [3], "then": content["then"]}
    assert content["then"] in LEAVES
    assert {len(leaf) for leaf in above(str(content["then"]))} == {3}


@pytest.mark.parametrize(
    ("name", "levels"),
    [
        ("birth_date", ["month", "quarter", "year", "decade"]),
        ("admission_date", ["week"]),
        ("calendar_date", ["month", "quarter", "year"]),
    ],
)
def test_date_rules(name: str, levels: list[str]) -> None:
    assert rule(name) == {"rule": "dates", "levels": levels}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.toml")), ids=lambda path: path.stem)
def test_rules_say_what_they_are_for(path: Path) -> None:
    assert path.read_text(encoding="utf-8").startswith("# ")
