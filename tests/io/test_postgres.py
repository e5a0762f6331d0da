"""PostgreSQL as far as it goes without a server: parameters, names, types, secrets, the missing driver."""

from __future__ import annotations

import builtins
import pickle

import pyarrow as pa
import pytest

import duckanon
from duckanon.errors import DataError, EngineError, ParameterError, UnsupportedError
from duckanon.io.postgres import KnownTables, TableName, column_types, published_comment, require_writable, write_table
from duckanon.io.postgres.rows import _digits, _one_statement
from duckanon.io.postgres.session import Session, _clean
from duckanon.io.source import Source

SECRET = "PaSsCanary3Okapi"
URI = f"postgresql://role:{SECRET}@db.invalid/clinic"


@pytest.mark.parametrize(
    ("uri", "options"),
    [
        (URI, {}),
        (URI, {"table": "t", "query": "SELECT 1"}),
        (URI, {"table": ""}),
        (URI, {"query": "  "}),
        (URI, {"table": "a\0b"}),
        (URI, {"table": 3}),
        (f"mysql://role:{SECRET}@db", {"table": "t"}),
        (f"host=db password={SECRET}", {"table": "t"}),
        ("", {"table": "t"}),
        (None, {"table": "t"}),
        (f"{URI}\0", {"table": "t"}),
    ],
)
def test_a_source_that_is_none(uri, options) -> None:
    with pytest.raises(ParameterError) as caught:
        Source.postgres(uri, **options)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("given", [URI, URI.replace("postgresql", "POSTGRES"), f"  {URI}"])
def test_a_bare_uri_is_refused_without_being_shown(given: str) -> None:
    with pytest.raises(ParameterError, match=r"Source\.postgres") as caught:
        duckanon.anonymize(given, quasi_identifiers=["a"], k=2)
    assert SECRET not in str(caught.value)


def test_the_uri_is_shown_nowhere() -> None:
    source = Source.postgres(URI, table="people")
    assert source.name == "people"
    assert source == Source.postgres(URI, table="people")
    for shown in (repr(source), str(source), repr(source.target), str(source.target), f"{vars(source)}"):
        assert SECRET not in shown
        assert "db.invalid" not in shown
    assert pickle.loads(pickle.dumps(source)) == source


@pytest.mark.parametrize(
    "use",
    [
        lambda: duckanon.anonymize(Source.postgres(URI, table="t"), quasi_identifiers=["a"], k=2),
        lambda: published_comment(URI, "t"),
        lambda: require_writable(URI, "t", replace=True),
        lambda: write_table(URI, "t", pa.table({"a": [1]}).to_reader(), replace=True, comment="", verify=print),
    ],
)
def test_without_the_driver_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, use) -> None:
    real = builtins.__import__

    def without(name, *arguments):
        if name.startswith("adbc_driver"):
            raise ModuleNotFoundError(name)
        return real(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(EngineError, match=r"pip install 'duckanon\[postgres\]'"):
        use()


def test_a_failed_connection_is_the_environment() -> None:
    pytest.importorskip("adbc_driver_postgresql")
    with pytest.raises(EngineError, match="Cannot connect to PostgreSQL") as caught:
        Session(f"postgresql://role:{SECRET}@127.0.0.1:1/x", read_only=True)
    assert SECRET not in str(caught.value)
    assert caught.value.__context__ is None


class Failed(Exception):
    def __init__(self, sqlstate: object) -> None:
        super().__init__(f"invalid input syntax: {SECRET}")
        self.sqlstate = sqlstate


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        ("22P02", DataError),
        ("42P01", DataError),
        ("25006", DataError),
        ("42501", EngineError),
        ("53100", EngineError),
        ("57P01", EngineError),
        ("XX000", EngineError),
        (None, EngineError),
        (SECRET + "!", EngineError),
    ],
)
def test_what_the_server_says_is_withheld(state: object, kind: type) -> None:
    error = _clean(Failed(state))
    assert type(error) is kind
    assert SECRET not in str(error)
    assert "withheld" in str(error)


def test_names_are_found_as_they_stand_then_split_then_in_another_case() -> None:
    public = [TableName("public", n) for n in ("people", "a.b", "Mixed", "twice", "TWICE")]
    hidden = [TableName("clinic", "people"), TableName("clinic", 'say "hi"')]
    known = KnownTables((*public, *hidden), frozenset(public))
    for given, expected in {
        "people": public[0],
        "clinic.people": hidden[0],
        "CLINIC.People": hidden[0],
        '"clinic"."people"': hidden[0],
        "a.b": public[1],
        '"a.b"': public[1],
        'public."a.b"': public[1],
        "mixed": public[2],
        'clinic."say ""hi"""': hidden[1],
        "TWICE": public[4],
        "Twice": None,
        'say "hi"': None,
        "a.b.c": None,
        "": None,
        '"': None,
    }.items():
        assert known.find(given) is expected, given
    with pytest.raises(DataError, match=r"Did you mean 'people'\?"):
        known.require("poeple")


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("SELECT 1;", "SELECT 1"),
        ("SELECT ';' ; -- x; y", "SELECT ';' "),
        ("SELECT 1 -- ;", "SELECT 1 -- ;"),
        ("SELECT $$;$$", "SELECT $$;$$"),
        ("SELECT 1;;", "SELECT 1"),
    ],
)
def test_the_end_of_a_statement(query: str, kept: str) -> None:
    assert _one_statement(query) == kept


@pytest.mark.parametrize("query", ["SELECT 1; SELECT 2", ";", "; SELECT 1", "-- nothing", "SELECT 1; DROP TABLE x --"])
def test_more_or_less_than_one_statement(query: str) -> None:
    with pytest.raises(DataError, match="one SELECT"):
        _one_statement(query)


def test_the_digits_of_a_numeric() -> None:
    assert _digits(((38 << 16) | 10) + 4) == (38, 10)
    assert _digits(((39 << 16) | 10) + 4) is None
    assert _digits(((30 << 16) | (2048 - 10)) + 4) is None, "30 digits before ten zeros"
    assert _digits(((2 << 16) | 39) + 4) is None


def test_types_of_columns() -> None:
    schema = pa.schema([("a", pa.uint64()), ("b", pa.list_(pa.date32())), ("c", pa.timestamp("s", "UTC"))])
    assert column_types(schema) == {"a": "numeric(20,0)", "b": "date[]", "c": "timestamp with time zone"}
    with pytest.raises(UnsupportedError, match="output='bounds'"):
        column_types(pa.schema([("age", pa.struct([("lo", pa.int32()), ("hi", pa.int32())]))]))
    with pytest.raises(DataError, match="no columns"):
        column_types(pa.schema([]))
    with pytest.raises(ParameterError, match="63 bytes"):
        column_types(pa.schema([("x" * 64, pa.int32())]))
