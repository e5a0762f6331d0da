"""Ready-made hierarchies that are chosen for a column: in Python, SQL and jobs, and in the nights after."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import duckanon
from duckanon.errors import ParameterError
from duckanon.hierarchy import Hierarchy, shipped
from duckanon.jobs import load_job, plan_job, run_job

COUNTRIES = ["France", "Germany", "UNITED-STATES", "Mexico", "Japan", "Viet-Nam", "Vietnam", "Kenya", "Atlantis"]
LABELS = {
    label for line in shipped()["countries"].read_text(encoding="utf-8").splitlines() for label in line.split(";")[1:]
}


def people(countries: list[str], times: int = 4) -> pa.Table:
    every = countries * times
    return pa.table(
        {
            "country": every,
            "age": [20 + 7 * i % 60 for i in range(len(every))],
            "town": [f"{'abc'[i % 3]} town" for i in range(len(every))],
            "ill": ["flu" if i % 2 else "gout" for i in range(len(every))],
        }
    )


QUASI = ["country", "age", "town"]


@pytest.mark.parametrize("given", ["auto", {"country": "auto"}, {"country": Hierarchy.auto()}], ids=str)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bounds": "cut"},
        {"output": "lca"},
        {"algorithm": "ola"},
        {"algorithm": "optimal", "suppression_limit": 0.2},
        {"algorithm": "mdav"},
        {"algorithm": "datafly", "iterative": True, "suppression_limit": 0.1},
    ],
    ids=str,
)
def test_its_labels_are_published_and_what_was_chosen_is_said(given: Any, options: dict[str, Any]) -> None:
    data = people(COUNTRIES)
    with duckanon.anonymize(data, quasi_identifiers=QUASI, hierarchies=given, k=4, seed=1, **options) as release:
        shown = set(release.to_arrow().column("country").to_pylist())
        summary, page = release.summary(), release.report("md")
    if options.get("bounds") != "cut":
        assert shown <= LABELS | set(COUNTRIES)
    (chosen,) = [h for h in summary["hierarchies"] if h["attribute"] == "country"]
    assert chosen["origin"] == "shipped: countries matches 8 of 9 values; the other is published as *"
    assert chosen["height"] == 3
    assert "countries matches 8 of 9 values" in page
    # The value that it lacks is in no group, and nothing was proposed for what has a hierarchy.
    assert "Atlantis" not in shown
    assert not [note for note in summary["notes"] if "'country'" in note]


def test_a_proposal_counts_and_shows_no_value() -> None:
    with duckanon.anonymize(people(COUNTRIES), quasi_identifiers=QUASI, k=4, seed=1) as release:
        notes = release.summary()["notes"]
    (proposal,) = [note for note in notes if "matches" in note]
    assert (
        proposal
        == "countries matches 8 of 9 values of 'country': hierarchies={'country': 'auto'} publishes its labels."
    )
    for options in (
        {"within": ["country"]},
        {"algorithm": "probabilistic"},
        {"hierarchies": {"country": "suppress.toml"}},
    ):
        if "hierarchies" in options:
            options = {"hierarchies": {"country": Hierarchy.suppress()}}
        with duckanon.anonymize(people(COUNTRIES), quasi_identifiers=QUASI, k=4, seed=1, **options) as release:
            assert not [note for note in release.summary()["notes"] if "matches" in note]


def test_other_words_than_auto_are_refused() -> None:
    with pytest.raises(ParameterError, match=r"or be 'auto'\. Got 'best'"):
        duckanon.anonymize(people(COUNTRIES), quasi_identifiers=QUASI, hierarchies="best", k=4)


def test_in_sql_for_all_columns_or_one() -> None:
    con = duckanon.connect()
    try:
        con.register("people", people(COUNTRIES))
        con.execute("CREATE TABLE t AS FROM people")
        for given in ("'auto'", "{'country': 'auto'}"):
            call = f"anonymize('t', quasi_identifiers := ['country', 'age', 'town'], hierarchies := {given}, k := 4)"
            found = con.sql(f"SELECT DISTINCT country FROM {call}").fetchall()
            assert {country for (country,) in found} <= LABELS | set(COUNTRIES)
        call = "lattice('t', quasi_identifiers := ['country'], hierarchies := 'auto', k := 4)"
        nodes = con.sql(f"SELECT max(levels.country) FROM {call}").fetchall()
        assert nodes == [(3,)]
    finally:
        con.close()


JOB = """
{hierarchies}
[source]
path = "people.parquet"
[roles]
quasi_identifiers = ["country", "age"]
sensitive = ["ill"]
insensitive = ["town"]
{table}
[privacy]
k = 4
[algorithm]
name = "{algorithm}"
[output]
path = "out/people.parquet"
[nights]
recoding = "frozen"
"""


def job(folder: Path, algorithm: str = "mondrian", hierarchies: str = 'hierarchies = "auto"', table: str = "") -> Path:
    path = folder / "job.toml"
    path.write_text(JOB.format(algorithm=algorithm, hierarchies=hierarchies, table=table), encoding="utf-8")
    return path


@pytest.mark.parametrize("algorithm", ["mondrian", "ola"])
@pytest.mark.parametrize(
    ("hierarchies", "table"), [('hierarchies = "auto"', ""), ("", '[hierarchies]\ncountry = "auto"')]
)
def test_a_job_with_nights_that_have_new_values(tmp_path: Path, algorithm: str, hierarchies: str, table: str) -> None:
    pq.write_table(people(COUNTRIES, 8), tmp_path / "people.parquet")
    path = job(tmp_path, algorithm, hierarchies, table)
    assert plan_job(path).described()["hierarchies"]["country"].startswith("auto: the ready-made one that fits")
    run_job(path)
    manifest = json.loads((tmp_path / "out" / "people.manifest.json").read_text(encoding="utf-8"))
    origins = {h["attribute"]: h["origin"] for h in manifest["hierarchies"]}
    assert origins["country"].startswith("shipped: countries matches 8 of 9 values")
    # Another country that is listed, and one that is not.
    pq.write_table(people([*COUNTRIES, "Spain", "Utopia"], 8), tmp_path / "people.parquet")
    run_job(path)
    shown = set(pq.read_table(tmp_path / "out" / "people.parquet").column("country").to_pylist())
    assert shown <= LABELS | set(COUNTRIES) | {"Spain"}


def test_several_tables_share_auto(tmp_path: Path) -> None:
    pq.write_table(people(COUNTRIES), tmp_path / "people.parquet")
    text = JOB.format(algorithm="mondrian", hierarchies='hierarchies = "auto"', table="")
    text = text.replace('path = "out/people.parquet"', 'report = ["json"]')
    text += (
        '[[tables]]\nname = "a"\noutput = {path = "out/a.parquet"}\n'
        '[[tables]]\nname = "b"\noutput = {path = "out/b.parquet"}\nhierarchies = {country = "suppress.toml"}\n'
        '[[tables]]\nname = "c"\noutput = {path = "out/c.parquet"}\nhierarchies = "auto"\n'
    )
    (tmp_path / "job.toml").write_text(text, encoding="utf-8")
    tables = {table.name: table.request.hierarchies for table in load_job(tmp_path / "job.toml").tables}
    assert tables["a"] == tables["c"] == {"country": "auto", "age": "auto"}
    assert tables["b"] == {"country": "suppress.toml", "age": "auto"}


def test_the_labels_are_read_again_with_auto() -> None:
    data = people(COUNTRIES, 6)
    names: dict[str, Any] = {"quasi_identifiers": ["country"], "hierarchies": {"country": "auto"}}
    with duckanon.anonymize(data, k=7, seed=1, algorithm="ola", **names) as release:
        shown, lost = release.to_arrow(), {m.metric: m.value for m in release.measure(["loss"]) if m.attribute is None}
    assert set(shown.column("country").to_pylist()) & LABELS
    found = duckanon.measure(data.select(["country"]), shown, metrics=["loss"], **names)
    assert {m.metric: m.value for m in found if m.attribute is None} == pytest.approx(lost)
