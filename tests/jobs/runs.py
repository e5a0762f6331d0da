"""Run records as a job writes them, for tests of reports about runs."""

from __future__ import annotations

import copy
from typing import Any

from tests.report.test_report import SUMMARY

RECORD: dict[str, Any] = {
    "run": "r-7",
    "job": "hospital",
    "table": "stays",
    "started": "2026-03-02T02:00:07+00:00",
    "ended": "2026-03-02T02:00:20.500000+00:00",
    "seconds": 13.5,
    "outcome": "published",
    "exit_code": 0,
    "error": None,
    "warnings": ["The source has 3.1 % fewer rows."],
    "summary": SUMMARY,
    "written": {"release": "out/stays.parquet", "manifest": "out/stays.manifest.json", "reports": []},
    "peak_memory": 700 * 2**20,
    "recoding": "frozen",
    "held_back": 37,
    "intersection": None,
    "columns": [
        {"name": "age", "type": "INTEGER"},
        {"name": "zip", "type": "VARCHAR"},
        {"name": "sex", "type": "VARCHAR"},
        {"name": "diagnosis", "type": "VARCHAR"},
        {"name": "cost", "type": "DOUBLE"},
        {"name": "name", "type": "VARCHAR"},
        {"name": "patient_id", "type": "BIGINT"},
        {"name": "shoe_size", "type": "INTEGER"},
    ],
}


def run(**entries: Any) -> dict[str, Any]:
    return {**copy.deepcopy(RECORD), **entries}


def failed(code: int = 3, **entries: Any) -> dict[str, Any]:
    error = {"type": "DataError", "message": "The source is empty."}
    gone = {"summary": None, "written": None, "warnings": [], "held_back": 0}
    return run(**{"outcome": "failed", "exit_code": code, "error": error, **gone, **entries})
