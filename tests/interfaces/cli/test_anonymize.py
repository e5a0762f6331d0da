"""``duckanon anonymize``: one line from a table to a verified release."""

from __future__ import annotations

import inspect
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
import typer.main

import duckanon
from duckanon.interfaces.cli.app import app
from duckanon.plan.request import PARAMETERS
from duckanon.testing.hospital import write_hospital
from tests.interfaces.cli.tools import call, document, terminal

LINE = ("anonymize", "people.parquet", "-q", "age,zip", "-s", "ill", "-k", "3")


def test_one_line_publishes_a_release_with_reports_and_a_manifest(people: Path) -> None:
    result = call(*LINE, "-o", "out/people.parquet")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("promise: every combination of quasi-identifiers is shared by at least 3 rows\n")
    assert sorted(p.name for p in Path("out").iterdir()) == [
        "people.manifest.json",
        "people.parquet",
        "people.report.html",
        "people.report.json",
        "people.report.md",
    ]
    assert pq.read_table("out/people.parquet").column_names == ["age", "zip", "ill"]
    assert call("verify", "out").exit_code == 0


def test_a_release_may_be_csv_and_the_result_json(people: Path) -> None:
    found = document(call(*LINE, "-o", "people.csv", "--json"))
    assert found["written"]["release"] == "people.csv"
    assert found["summary"]["checks"][0]["holds"] is True
    assert pacsv.read_csv("people.csv").num_rows == 60


def test_an_existing_release_is_replaced_only_when_told(people: Path) -> None:
    assert call(*LINE, "-o", "out.parquet").exit_code == 0
    before = Path("out.parquet").read_bytes()
    again = call(*LINE, "-o", "out.parquet")
    assert (again.exit_code, again.stderr) == (
        2,
        "Error: 'out.parquet' exists already: choose another name, or add --force.\n",
    )
    assert Path("out.parquet").read_bytes() == before
    assert call(*LINE, "-o", "out.parquet", "--force").exit_code == 0
    assert Path("out.parquet").read_bytes() != before  # its rows are shuffled with a new key


def test_the_source_is_never_replaced(people: Path) -> None:
    before = Path("people.parquet").read_bytes()
    result = call(*LINE, "-o", "people.parquet", "--force")
    assert (result.exit_code, "a release never replaces them" in result.stderr) == (2, True)
    assert Path("people.parquet").read_bytes() == before


def test_a_dry_run_needs_no_target_and_writes_nothing(people: Path) -> None:
    files = sorted(Path().rglob("*"))
    result = call(*LINE, "--dry-run")
    assert (result.exit_code, "dry run: nothing was written" in result.stdout) == (0, True)
    assert sorted(Path().rglob("*")) == files


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("-q", "age"), 2, "Name the release with -o"),
        (("-o", "out.parquet"), 2, "Name the quasi-identifiers with -q, or let --suggest guess them."),
        (("-q", "age", "-k", "3", "-o", "out.txt"), 2, "must end in .parquet or .csv"),
        (("-q", "aeg", "-k", "3", "-o", "out.parquet"), 2, "Did you mean 'age'?"),
        (("-q", "age", "-k", "61", "-o", "out.parquet"), 4, "61"),
        (("-q", "age", "--levels", "age", "-o", "out.parquet"), 2, "--levels needs COLUMN=NUMBER."),
        (("-q", "age", "--form", "age", "--form", "x=set", "-o", "out.parquet"), 2, "--form needs one FORM"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_written(
    people: Path, words: tuple[str, ...], code: int, message: str
) -> None:
    files = sorted(Path().rglob("*"))
    result = call("anonymize", "people.parquet", *words)
    assert (result.exit_code, message in result.stderr) == (code, True), result.stderr
    assert sorted(Path().rglob("*")) == files


def test_each_parameter_of_a_request_is_an_option_without_a_default() -> None:
    command = typer.main.get_command(app).commands["anonymize"]  # type: ignore[attr-defined]
    options = {p.name: p for p in command.params}
    assert set(PARAMETERS) - {"data"} <= set(options)
    assert not any(options[name].default for name in set(PARAMETERS) - {"data"})


GIVEN = {
    "sensitive": (["-s", "ill"], ["ill"]),
    "identifiers": (["--identifiers", "name"], ["name"]),
    "insensitive": (["--insensitive", "room,ward"], ["room", "ward"]),
    "within": (["--within", "sex"], ["sex"]),
    "unlisted": (["--unlisted", "error"], "error"),
    "entity_key": (["--entity-key", "id"], "id"),
    "hierarchies": (["--hierarchy", "zip=us_zip5", "--hierarchy", "age=a.csv"], {"zip": "us_zip5", "age": "a.csv"}),
    "k": (["-k", "4"], 4),
    "l": (["-l", "2"], 2),
    "t": (["-t", "0.5"], 0.5),
    "models": (["--model", "entropy_l_diversity(l=2)"], ["entropy_l_diversity(l=2)"]),
    "algorithm": (["--algorithm", "flash"], "flash"),
    "levels": (["--levels", "age=2"], {"age": 2}),
    "min_levels": (["--min-levels", "age=1"], {"age": 1}),
    "max_levels": (["--max-levels", "age=3"], {"age": 3}),
    "weights": (["--weights", "age=0.5"], {"age": 0.5}),
    "iterative": (["--iterative"], True),
    "bounds": (["--bounds", "tight"], "tight"),
    "output": (["--form", "age=mean", "--form", "zip=set"], {"age": "mean", "zip": "set"}),
    "suppression_limit": (["--suppression-limit", "0.1"], 0.1),
    "on_unknown": (["--on-unknown", "top"], "top"),
    "seed": (["--seed", "7"], 7),
}


def test_each_option_reaches_the_request(people: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, object] = {}
    parameters = set(inspect.signature(duckanon.anonymize).parameters)

    class StopError(Exception):
        pass

    def take(source: object, **arguments: object) -> None:
        asked.update(arguments)
        raise StopError

    monkeypatch.setattr("duckanon.api.anonymize", take)
    words = [word for option, _ in GIVEN.values() for word in option]
    call("anonymize", "people.parquet", "-q", "age,zip", "--population", "people.parquet", *words, "--dry-run")
    assert set(asked) <= parameters
    assert asked["quasi_identifiers"] == ["age", "zip"]
    assert asked["population"].kind == "file"
    assert {name: asked[name] for name in GIVEN} == {name: value for name, (_, value) in GIVEN.items()}
    assert set(GIVEN) | {"quasi_identifiers", "population", "data"} == set(PARAMETERS)


def test_roles_are_guessed_only_when_told(in_folder: Path) -> None:
    write_hospital("stays.parquet", 600)
    assert call("anonymize", "stays.parquet", "-k", "3", "-o", "out.parquet").exit_code == 2
    found = document(call("anonymize", "stays.parquet", "--suggest", "-k", "3", "-o", "out.parquet", "--json"))
    roles = {row["column"]: row["role"] for row in found["roles"]}
    assert roles["patient_id"] == "entity_key"
    assert [name for name, role in roles.items() if role == "quasi_identifier"] == [
        *("birth_date", "sex", "zip", "country", "admission_date")
    ]
    assert found["summary"]["roles"]["entity_key"] == "patient_id"
    assert "unlisted" in roles.values()
    published = set(pq.read_table("out.parquet").column_names)
    assert published == {name for name, role in roles.items() if role in ("quasi_identifier", "sensitive")}


def test_roles_that_are_given_stay_and_the_others_are_guessed(in_folder: Path) -> None:
    write_hospital("stays.parquet", 600)
    words = ("-q", "ward", "--insensitive", "sex", "--suggest", "-k", "3", "--dry-run", "--json")
    roles = document(call("anonymize", "stays.parquet", *words))["summary"]["roles"]
    assert (roles["quasi_identifiers"], roles["insensitive"]) == (["ward"], ["sex"])
    assert (roles["sensitive"], roles["entity_key"]) == (["diagnosis", "cost"], "patient_id")


@pytest.mark.parametrize("given", ["auto", "country=auto", "country=countries"])
def test_ready_made_hierarchies(in_folder: Path, given: str) -> None:
    lands = ["France", "Germany", "Kenya", "Ghana"] * 3
    pq.write_table(pa.table({"country": lands}), "t.parquet")
    words = ("-q", "country", "--levels", "country=2", "-k", "6", "--hierarchy", given)
    assert call("anonymize", "t.parquet", *words, "-o", "out.parquet").exit_code == 0
    assert set(pq.read_table("out.parquet").column("country").to_pylist()) == {"Europe", "Africa"}


def test_a_table_of_a_database(people: Path) -> None:
    with duckdb.connect("d.duckdb") as con:
        con.execute("CREATE TABLE people AS FROM 'people.parquet'")
    words = ("--database", "d.duckdb", "--table", "people", "-q", "age", "-k", "3")
    assert call("anonymize", *words, "-o", "out.parquet").exit_code == 0
    assert pq.read_table("out.parquet").num_rows == 60
    missing = call("anonymize", "--database", "${NO_SUCH_VARIABLE}", *words[2:], "-o", "x.parquet")
    assert (missing.exit_code, "NO_SUCH_VARIABLE" in missing.stderr) == (2, True)


def test_no_cell_is_in_any_message(in_folder: Path) -> None:
    cells = ["canary1", "canary2"] * 30
    pq.write_table(pa.table({"id": list(range(60)), "town": cells, "ill": cells}), "t.parquet")
    for words in (("--suggest", "-k", "5"), ("-q", "town", "-k", "61"), ("-q", "canary", "-k", "2")):
        result = call("anonymize", "t.parquet", *words, "-o", f"{len(words)}.parquet")
        assert "canary1" not in result.output
    assert "canary1" not in call("suggest", "t.parquet").output


def test_the_screen_fits_a_terminal(in_folder: Path) -> None:
    write_hospital("stays.parquet", 300)
    code, drawn = terminal("anonymize", "stays.parquet", "--suggest", "-k", "3", "-o", "out.parquet")
    assert code == 0
    for heading in ("Roles: guesses", "What is promised", "Verification", "What was done to each column", "Files"):
        assert heading in drawn
