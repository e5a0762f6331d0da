"""A statement may read the files that its own connection may read, and no others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import duckanon
from duckanon.engine.process import is_within
from tests.datasets import PATIENTS

from .conftest import fetch, reason

Con = duckdb.DuckDBPyConnection
REFUSED = "This connection may not touch the files that were named"

SPECS = {
    "text": "'{path}'",
    "struct": "{{'file': '{path}', 'separator': '='}}",
    "then": "{{'rule': 'prefix', 'lengths': [1], 'then': '{path}'}}",
    "struct in then": "{{'rule': 'prefix', 'lengths': [1], 'then': {{'file': '{path}'}}}}",
}
CALLS = {
    "save_hierarchy": "save_hierarchy('e', {spec})",
    "anonymize": "anonymize('patients', quasi_identifiers := ['zip'], k := 2, hierarchies := {{'zip': {spec}}})",
    "sensitive": "anonymize('patients', quasi_identifiers := ['age'], sensitive := ['zip'], k := 2, l := 2, "
    "hierarchies := {{'zip': {spec}}})",
    "privacy": "privacy('patients', quasi_identifiers := ['age'], sensitive := ['zip'], "
    "hierarchies := {{'zip': {spec}}})",
    "information_loss": "information_loss('patients', 'patients', quasi_identifiers := ['zip'], "
    "hierarchies := {{'zip': {spec}}})",
    "query_errors": "query_errors('patients', 'patients', columns := ['zip'], hierarchies := {{'zip': {spec}}})",
    "attack": "attack('patients', 'patients', quasi_identifiers := ['zip'], sensitive := ['diagnosis'], "
    "hierarchies := {{'zip': {spec}}})",
    "encoded": "encoded('patients', columns := ['zip'], method := 'fill_parent', hierarchies := {{'zip': {spec}}})",
    "lattice": "lattice('patients', quasi_identifiers := ['zip'], k := 2, hierarchies := {{'zip': {spec}}})",
    "compare_releases": "compare_releases('patients', quasi_identifiers := ['zip'], k := 2, "
    "releases := {{'a': {{'hierarchies': {{'zip': {spec}}}}}}})",
}
_LATE = {"save_hierarchy", "encoded", "sensitive"}
SOURCES = {
    "anonymize": "anonymize('{path}', quasi_identifiers := ['a'], k := 2)",
    "anonymize_report": "anonymize_report('{path}', quasi_identifiers := ['a'], k := 2)",
    "anonymize_classes": "anonymize_classes('{path}', quasi_identifiers := ['a'], k := 2)",
    "population": "anonymize('patients', quasi_identifiers := ['age'], models := ['k_map(k=2)'], "
    "population := '{path}', algorithm := 'datafly')",
    "privacy": "privacy('{path}', quasi_identifiers := ['a'])",
    "privacy, population": "privacy('patients', quasi_identifiers := ['age'], population := '{path}', k := 2)",
    "information_loss": "information_loss('{path}', 'patients', quasi_identifiers := ['age'])",
    "information_loss, release": "information_loss('patients', '{path}', quasi_identifiers := ['age'])",
    "query_errors": "query_errors('{path}', 'patients', columns := ['age'])",
    "query_errors, release": "query_errors('patients', '{path}', columns := ['age'])",
    "risk": "risk('{path}', quasi_identifiers := ['a'])",
    "risk, population": "risk('patients', quasi_identifiers := ['age'], population := '{path}')",
    "attack": "attack('{path}', 'patients', quasi_identifiers := ['age'])",
    "attack, release": "attack('patients', '{path}', quasi_identifiers := ['age'])",
    "attack, control": "attack('patients', 'patients', control := '{path}', quasi_identifiers := ['age'])",
    "with_risk": "with_risk('{path}', quasi_identifiers := ['a'])",
    "suggest": "suggest('{path}')",
    "identifying_sets": "identifying_sets('{path}')",
    "encoded": "encoded('{path}')",
    "lattice": "lattice('{path}', quasi_identifiers := ['a'], k := 2)",
    "compare_releases": "compare_releases('{path}', quasi_identifiers := ['a'], k := 2, "
    "releases := {{'a': {{'k': 3}}}})",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what may be read, and one beside it with what may not."""
    folder = tmp_path_factory.mktemp("files")
    for name in ("open", "closed"):
        (folder / name).mkdir()
        (folder / name / "h.csv").write_text("".join(f"{10000 + i:05d};x;*\n" for i in range(400)))
        (folder / name / "t.csv").write_text("a,b\n" + "1,2\n" * 20)
    (folder / "closed" / "environ").write_text("SECRET=canary\nHOME=/root\n")
    (folder / "open" / "rule.toml").write_text('file = "../closed/h.csv"\n')
    (folder / "open" / "link.csv").symlink_to(folder / "closed" / "h.csv")
    (folder / "open" / "there").symlink_to(folder / "closed")
    return folder


@pytest.fixture(scope="module")
def locked(place: Path) -> Iterator[Con]:
    """A connection that may touch one folder only."""
    con = duckanon.connect()
    con.execute(PATIENTS)
    con.execute("SET allowed_directories = ?", [[str(place / "open")]])
    con.execute("SET enable_external_access = false")
    yield con
    con.close()


FORMS = (
    "{closed}/h.csv",
    "{closed}/none.csv",
    "{open}/../closed/h.csv",
    "{open}/../closed/none.csv",
    "{open}/link.csv",
    "{open}/there/h.csv",
    "{open}/rule.toml",
)


@pytest.mark.parametrize("call", CALLS)
def test_hierarchies_in_files_that_the_connection_may_not_read_are_refused(locked: Con, place: Path, call: str) -> None:
    for form in FORMS:
        path = form.format(open=place / "open", closed=place / "closed")
        for kind, spec in SPECS.items():
            if (form.endswith(".toml") and kind != "text") or (kind == "then" and call in _LATE):
                continue  # The one is no rule there, the other is read when it is used.
            message = reason(locked, "FROM " + CALLS[call].format(spec=spec.format(path=path)))
            assert REFUSED in message, (form, spec)
            assert "canary" not in message


@pytest.mark.parametrize(
    "path", ["/proc/self/environ", "/proc/self/none", "/etc/passwd", "/dev/stdin", "/nothing/here"]
)
def test_a_struct_reads_no_file_of_the_machine(locked: Con, path: str) -> None:
    assert REFUSED in reason(locked, f"FROM save_hierarchy('e', {{'file': '{path}', 'separator': '='}})")


@pytest.mark.parametrize("call", SOURCES)
def test_sources_that_the_connection_may_not_read_are_refused_whether_they_exist_or_not(
    locked: Con, place: Path, call: str
) -> None:
    folders = {"open": str(place / "open"), "closed": str(place / "closed")}
    forms = ("{closed}/t.csv", "{open}/there/t.csv", "{closed}/*.csv", "{open}/../closed/t.csv", "{open}/*/t.csv")
    there = [reason(locked, "FROM " + SOURCES[call].format(path=f.format(**folders))) for f in forms]
    gone = [
        reason(locked, "FROM " + SOURCES[call].format(path=f.format(**folders).replace("t.csv", "n.csv")))
        for f in forms[:3]
    ]
    assert all(REFUSED in message for message in there)
    assert set(gone) <= set(there)


def test_a_relative_name_does_not_tell_whether_it_exists(
    locked: Con, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place / "closed")
    messages = {
        reason(locked, f"FROM risk('{name}', quasi_identifiers := ['a'])").replace(name, "NAME")
        for name in ("environ", "environment", "none")
    }
    assert len(messages) == 1
    assert {REFUSED in reason(locked, f"FROM risk('{n}', quasi_identifiers := ['a'])") for n in ("t.csv", "u.csv")} == {
        True
    }


def test_what_the_connection_may_read_is_read(locked: Con, place: Path) -> None:
    file = place / "open" / "h.csv"
    assert fetch(locked, f"FROM save_hierarchy('fine', '{file}')") == [("fine", 2)]
    assert fetch(locked, f"SELECT count(*) FROM with_risk('{place}/open/t.csv', quasi_identifiers := ['a'])") == [(20,)]
    assert fetch(locked, "FROM save_hierarchy('shipped', 'us_zip5')")[0][0] == "shipped"


def test_a_rule_in_a_table_reads_no_file(locked: Con, place: Path) -> None:
    rule = json.dumps({"file": str(place / "closed" / "h.csv")})
    locked.execute("CREATE SCHEMA IF NOT EXISTS duckanon")
    locked.execute("CREATE TABLE duckanon.sly AS SELECT ? AS rule", [rule])
    call = "FROM anonymize('patients', quasi_identifiers := ['zip'], k := 2, hierarchies := {'zip': 'sly'})"
    assert REFUSED in reason(locked, call)
    locked.execute("DROP TABLE duckanon.sly")


def test_single_files_may_be_allowed(place: Path) -> None:
    with duckanon.connect() as con:
        con.execute("SET allowed_paths = ?", [[str(place / "closed" / "h.csv")]])
        con.execute("SET enable_external_access = false")
        assert fetch(con, f"FROM save_hierarchy('a', '{place}/open/link.csv')") == [("a", 2)]
        assert REFUSED in reason(con, f"FROM save_hierarchy('b', '{place}/open/h.csv')")


def test_a_connection_that_may_touch_everything_does(place: Path) -> None:
    with duckanon.connect() as con:
        assert fetch(con, f"FROM save_hierarchy('a', '{place}/closed/h.csv')") == [("a", 2)]
        assert "No file matches" in reason(con, "FROM risk('/nothing/here.csv', quasi_identifiers := ['a'])")


@pytest.mark.parametrize(
    ("path", "inside"),
    [
        ("{d}/a.csv", True),
        ("{d}", True),
        ("{d}x/a.csv", False),
        ("{d}/../a.csv", False),
        ("{d}/*.csv", True),
        ("{d}/*/../../a.csv", False),
        ("{d}/../*/a.csv", False),
        ("s3://bucket/a.csv", False),
        ("s3://open/a.csv", True),
        ("s3://open/../b/a.csv", False),
        ("\0", False),
    ],
)
def test_within(tmp_path: Path, path: str, inside: bool) -> None:
    assert is_within(path.format(d=tmp_path), [str(tmp_path), "s3://open"], []) is inside
