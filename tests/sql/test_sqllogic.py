"""The collector itself: a file that says something wrong fails, at the right line."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqllogic import Skip, SqlLogicError, run

PATH = Path("x.test")
CLASSES = "statement ok\nCREATE TABLE classes AS SELECT 1 AS class_id, 2 AS n, false AS suppressed\n\n"


@pytest.mark.parametrize(
    "text",
    [
        "statement ok\nSELECT 1\n",
        "query I\nSELECT 1\n----\n1\n",
        "query TR\nSELECT NULL, 1/3\n----\nNULL\t0.33333333333\n",
        "query I rowsort\nSELECT unnest([2, 1])\n----\n1\n2\n",
        "query T\nSELECT ''\n----\n(empty)\n",
        "query B\nSELECT true\n----\ntrue\n",
        "query I\nSELECT 1 WHERE false\n----\n",
        "statement error\nSELECT * FROM nothing\n----\n.*does not exist\n",
        CLASSES + "query model k_anonymity k=3 II\n----\n1\t2\n",
        CLASSES + "query model k_anonymity k=2\n----\n",
        CLASSES + "query metric discernibility TRRR\n----\nNULL\t4\t4\t2\n",
        "# a comment\nstatement ok\n# another\nSELECT 1\n",
        "require duckdb 1.0\n",
    ],
)
def test_what_is_right_passes(text: str) -> None:
    assert run(PATH, text) > 0


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("statement ok\nSELECT nothing\n", 1),
        ("statement ok\nSELECT 1\n\nquery I\nSELECT 1\n----\n2\n", 4),
        ("query I\nSELECT unnest([2, 1])\n----\n1\n2\n", 1),
        ("query I\nSELECT 1 WHERE false\n----\n1\n", 1),
        ("query II\nSELECT 1\n----\n1\n", 1),
        ("query R\nSELECT 1/3\n----\n0.3333\n", 1),
        ("query R\nSELECT NULL\n----\n0\n", 1),
        ("\n\nquery I\nSELECT 1\n", 3),
        ("statement error\nSELECT 1\n----\n.*\n", 1),
        ("statement error\nSELECT * FROM nothing\n----\nno such text\n", 1),
        ("statement maybe\nSELECT 1\n", 1),
        ("select\nSELECT 1\n", 1),
        ("query I sorted\nSELECT 1\n----\n1\n", 1),
        (CLASSES + "query model k_anonymity\n----\n", 4),
        (CLASSES + "query model k_anonymity k=3\n----\n", 4),
        (CLASSES + "query metric discernibility\nSELECT 1\n----\n1\n", 4),
        ("require postgres 12\n", 1),
    ],
)
def test_what_is_wrong_fails_at_its_line(text: str, line: int) -> None:
    with pytest.raises(SqlLogicError) as caught:
        run(PATH, text)
    assert caught.value.line == line
    assert str(caught.value).startswith(f"x.test:{line}: ")


def test_an_older_database_skips() -> None:
    with pytest.raises(Skip):
        run(PATH, "require duckdb 99.0\n")
