"""No cell value in any error, log line or output, whatever goes wrong, and nothing left behind."""

from __future__ import annotations

import logging
import traceback
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import duckanon
from duckanon.errors import DuckanonError, PrivacyViolation
from tests.release.lies import Lie, kept_where, release_with

CANARY = "Canary-Q7-Doe"


def bad_csv(tmp_path: Path) -> dict:
    path = tmp_path / "bad.csv"
    good = "\n".join(f"{20 + i % 50},1{i:04d}" for i in range(30000))
    path.write_text(f'age,zip\n{good}\n20,"{CANARY}\n')
    return {"data": path, "quasi_identifiers": ["age", "zip"], "k": 2}


def ragged_csv(tmp_path: Path) -> dict:
    path = tmp_path / "ragged.csv"
    path.write_text("age,zip\n" + "20,10115\n" * 30000 + f"20,{CANARY},{CANARY},{CANARY}\n")
    return {"data": path, "quasi_identifiers": ["age", "zip"], "k": 2}


def bad_json(tmp_path: Path) -> dict:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"age": 1}\n' * 100 + f'{{"age": "{CANARY}"\n')
    return {"data": path, "quasi_identifiers": ["age"], "k": 2}


def bad_conversion(tmp_path: Path) -> dict:
    query = f"SELECT CASE WHEN i = 99 THEN '{CANARY}' ELSE '1' END::INTEGER AS age FROM range(100) r(i)"
    return {"data": query, "quasi_identifiers": ["age"], "k": 2}


def late_conversion(tmp_path: Path) -> dict:
    con = duckdb.connect()
    con.execute(f"CREATE TABLE t AS SELECT CASE WHEN i = 99 THEN '{CANARY}' ELSE '1' END AS age FROM range(100) r(i)")
    con.execute("CREATE VIEW v AS SELECT age::INTEGER AS age FROM t")
    return {"data": "v", "quasi_identifiers": ["age"], "k": 2, "connection": con}


def hierarchy_gap(tmp_path: Path) -> dict:
    tree = duckanon.Hierarchy.from_table({"leaf": ["a"], "top": ["*"]})
    table = pa.table({"q": ["a", "a", CANARY]})
    return {"data": table, "quasi_identifiers": ["q"], "hierarchies": {"q": tree}, "k": 2}


def hierarchy_file(tmp_path: Path) -> dict:
    (tmp_path / "h.csv").write_text(f"a;*\n{CANARY};*\n{CANARY};x\n")
    return {
        "data": pa.table({"q": ["a"]}),
        "quasi_identifiers": ["q"],
        "hierarchies": {"q": str(tmp_path / "h.csv")},
        "k": 1,
    }


def wrong_rule(tmp_path: Path) -> dict:
    table = pa.table({"q": [CANARY, "b"]})
    return {"data": table, "quasi_identifiers": ["q"], "hierarchies": {"q": {"rule": "intervals", "width": 5}}, "k": 1}


def too_few(tmp_path: Path) -> dict:
    return {"data": pa.table({"q": [CANARY, "b"]}), "quasi_identifiers": ["q"], "k": 3}


def torn_parquet(tmp_path: Path) -> dict:
    path = tmp_path / "torn.parquet"
    pq.write_table(
        pa.table({"q": [f"{CANARY}{i}" for i in range(1000)]}), path, compression="none", use_dictionary=False
    )
    raw = bytearray(path.read_bytes())
    raw[4:200] = b"\xff" * 196
    path.write_bytes(raw)
    return {"data": path, "quasi_identifiers": ["q"], "k": 1}


def invalid_utf8(tmp_path: Path) -> dict:
    path = tmp_path / "latin.csv"
    path.write_bytes(b"age,zip\n" + b"20,10115\n" * 100 + f"20,{CANARY}".encode() + b"\xe4\xff\n")
    return {"data": path, "quasi_identifiers": ["age", "zip"], "k": 2}


ERRORS = [
    bad_csv,
    ragged_csv,
    bad_json,
    bad_conversion,
    late_conversion,
    hierarchy_gap,
    hierarchy_file,
    wrong_rule,
    too_few,
    torn_parquet,
    invalid_utf8,
]


@pytest.mark.parametrize("path", ERRORS, ids=lambda p: p.__name__)
def test_no_error_path_quotes_a_value(
    path, tmp_path: Path, temp_folder: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    options = path(tmp_path)
    try:
        with pytest.raises(DuckanonError) as caught:
            duckanon.anonymize(options.pop("data"), **options)
    finally:
        if "connection" in options:
            options["connection"].close()
    error: BaseException | None = caught.value
    while error is not None:
        assert CANARY not in str(error), type(error)
        assert CANARY not in repr(error.args)
        error = error.__cause__ or error.__context__
    assert CANARY not in "".join(traceback.format_exception(caught.value))
    assert CANARY not in caplog.text
    out, err = capfd.readouterr()
    assert CANARY not in out + err
    assert list(temp_folder.iterdir()) == [], "a private folder is left"


def test_the_gate_quotes_no_value(temp_folder: Path) -> None:
    table = pa.table({"q": [CANARY, "b", "b"]})
    lie = Lie(recoder=kept_where("true"))
    with pytest.raises(PrivacyViolation) as caught:
        release_with(lie, table, quasi_identifiers=["q"], k=2, suppression_limit=0.5)
    assert CANARY not in "".join(traceback.format_exception(caught.value))
    assert list(temp_folder.iterdir()) == []


def test_statements_in_the_log_hold_no_value(caplog: pytest.LogCaptureFixture) -> None:
    table = pa.table({"q": [CANARY, CANARY, "b", "b"], "s": [CANARY] * 4})
    tree = duckanon.Hierarchy.from_table({"leaf": [CANARY, "b"], "l1": [f"{CANARY} group", "b"], "top": ["*", "*"]})
    with caplog.at_level(logging.DEBUG, logger="duckanon"):
        for hierarchies in ({"q": tree}, None):
            with duckanon.anonymize(table, quasi_identifiers=["q"], sensitive=["s"], hierarchies=hierarchies, k=2):
                pass
    assert "SELECT" in caplog.text
    assert CANARY not in caplog.text
