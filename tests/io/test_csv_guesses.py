"""CSV dialects and types that DuckDB guesses wrongly from the first rows: quotes, and large integers."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest

from duckanon import Source
from duckanon.engine.base import open_engine
from duckanon.errors import DataError
from duckanon.jobs import exit_code

CANARY = "Canary-Q7-Doe"
SAMPLE = 30_000
"""More rows than those that DuckDB guesses by."""


def read(path: Path | str) -> tuple[dict[str, str], list[tuple[Any, ...]]]:
    with closing(open_engine()) as engine:
        relation = Source.file(path).open(engine)
        return {c.name: c.type for c in relation.columns}, engine.rows(relation.query)


def rows(cell: str, count: int = SAMPLE) -> str:
    return "".join(f"{20 + i % 50},{cell.format(i)}\n" for i in range(count))


NOT_CLOSED = {
    "last of few": f'age,zip\n20,a\n30,"{CANARY}\n',
    "last without a line break": f'age,zip\n20,a\n30,"{CANARY}',
    "first": f'age,zip\n20,"{CANARY}\n30,b\n',
    "beside closed ones": f'age,zip\n20,"a"\n30,"b"\n40,"{CANARY}\n',
    "between closed ones": f'age,zip\n20,"a"\n30,"{CANARY}\n40,"c"\n',
    "in the header": f'age,"zip\n20,{CANARY}\n',
    "one column": f'zip\na\n"{CANARY}\n',
    "doubled and not closed": f'age,zip\n20,"a"\n30,"{CANARY}""\n',
    "something after it": f'age,zip\n20,a\n30,"{CANARY}" and more\n',
    "after many texts": f'age,zip\n{rows("a{}")}30,"{CANARY}\n',
    "after many numbers": f'age,zip\n{rows("1{}")}30,"{CANARY}\n',
    "after many closed ones": "age,zip\n" + rows('"1{}"') + f'30,"{CANARY}\n',
    "another separator": f'age;zip\n20;a\n30;"{CANARY}\n',
}


@pytest.mark.parametrize("case", NOT_CLOSED)
def test_a_quotation_mark_that_is_not_closed_is_refused(tmp_path: Path, case: str) -> None:
    (tmp_path / "people.csv").write_text(NOT_CLOSED[case])
    with pytest.raises(DataError, match="is not a CSV file, or is damaged") as caught:
        read(tmp_path / "people.csv")
    assert exit_code(caught.value) == 3
    assert CANARY not in str(caught.value)


CLOSED = {
    "text": ("a{}", '"Ann"', "Ann"),
    "with a separator": ("a{}", '"Ann, Bob"', "Ann, Bob"),
    "doubled": ("a{}", '"Ann ""A"""', 'Ann "A"'),
    "with a line break": ("a{}", '"Ann\nBob"', "Ann\nBob"),
    "number": ("1{}", '"77"', 77),
    "mark within": ("a{}", '5" pipe', '5" pipe'),
}


@pytest.mark.parametrize("count", [1, SAMPLE])
@pytest.mark.parametrize("case", CLOSED)
def test_a_cell_in_quotes_is_read_without_them_wherever_it_stands(tmp_path: Path, case: str, count: int) -> None:
    usual, cell, value = CLOSED[case]
    (tmp_path / "people.csv").write_text(f"age,name\n{rows(usual, count)}33,{cell}\n")
    _, found = read(tmp_path / "people.csv")
    assert len(found) == count + 1
    assert found[-1] == (33, value)


def test_cells_in_quotes_of_the_second_file_are_read_without_them(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("age,name\n20,a\n")
    (tmp_path / "2.csv").write_text('age,name\n30,"b, c"\n')
    assert sorted(read(str(tmp_path / "*.csv"))[1]) == [(20, "a"), (30, "b, c")]


MANY = {
    "beyond 64 bits": (["9223372036854775808", "18446744073709551617"], "HUGEINT"),
    "below 64 bits": (["-9223372036854775809", "1"], "HUGEINT"),
    "a power of two alone": (["9223372036854775808", ""], "HUGEINT"),
    "beside fractions": (["1.5", "12345678901234567"], "VARCHAR"),
    "that a float holds": (["1.5", "4503599627370496"], "DOUBLE"),
    "beyond 128 bits": (["9" * 45, "1"], "VARCHAR or BIGNUM"),
}


@pytest.mark.parametrize("before", [0, SAMPLE])
@pytest.mark.parametrize("case", MANY)
def test_a_large_integer_is_read_as_it_is(tmp_path: Path, case: str, before: int) -> None:
    cells, kind = MANY[case]
    (tmp_path / "ids.csv").write_text("id,n\n" + "".join(f"{cell},1\n" for cell in [*["1"] * before, *cells]))
    types, found = read(tmp_path / "ids.csv")
    assert types["id"] in kind.split(" or ")
    same = float if types["id"] == "DOUBLE" else str
    assert [same("" if cell is None else cell) for cell, _ in found[-len(cells) :]] == [same(cell) for cell in cells]


def test_duckdb_alone_takes_what_is_not_closed_for_a_value(tmp_path: Path) -> None:
    """If this fails, DuckDB refuses it itself."""
    (tmp_path / "people.csv").write_text('age,zip\n20,a\n30,"b\n')
    assert duckdb.sql(f"FROM read_csv('{tmp_path}/people.csv')").fetchall() == [(20, "a"), (30, '"b')]
