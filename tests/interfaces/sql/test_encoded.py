"""Encodings in SQL say what they say in Python."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest

from duckanon.assess.utility import encode
from duckanon.assess.utility.codebook import METHODS

from .conftest import CALL, fetch, reason

Con = duckdb.DuckDBPyConnection
QUASI = ["age", "zip", "sex"]


@pytest.fixture
def released(con: Con) -> Con:
    con.execute(f"CREATE TABLE released AS FROM {CALL}")
    return con


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.thinned(2)
def test_long_and_wide_are_the_matrix(released: Con, method: str) -> None:
    table = released.sql("FROM released").to_arrow_table()
    matrix, names = encode(table, method, columns=QUASI)
    call = f"encoded('released', method := '{method}', keep := ['diagnosis']"
    found = np.zeros(matrix.shape)
    rows = fetch(released, f"FROM {call})")
    for row, _, feature, value in rows:
        found[row, names.index(feature)] = value
    assert np.allclose(found, matrix.toarray())
    assert len(rows) == matrix.nnz
    wide = released.sql(f"FROM {call}, form := 'wide') ORDER BY row").to_arrow_table()
    assert wide.column_names == ["row", "diagnosis", *names]
    assert wide.column("diagnosis").to_pylist() == table.column("diagnosis").to_pylist()
    columns = [wide.column(name).to_numpy() for name in names]
    assert np.allclose(np.column_stack(columns), matrix.toarray())


@pytest.mark.parametrize("output", ["bounds", "proportional"])
def test_other_outputs_hierarchies_and_queries(con: Con, output: str) -> None:
    made = CALL.replace("k := 5", f"k := 5, output := '{output}'")
    con.execute(f"CREATE TABLE released AS FROM {made}")
    table = con.sql("SELECT * EXCLUDE (diagnosis) FROM released").to_arrow_table()
    matrix, names = encode(table, "proportional")
    found = np.zeros(matrix.shape)
    query = "SELECT * EXCLUDE (diagnosis) FROM released"
    for row, feature, value in fetch(con, f"FROM encoded('{query}', method := 'proportional')"):
        found[row, names.index(feature)] = value
    assert np.allclose(found, matrix.toarray())
    con.execute("CREATE TABLE sexes AS SELECT unnest(['f', 'm', '*']) AS sex")
    rule = "hierarchies := {'sex': {'rule': 'tree', 'tree': {'people': ['f', 'm', 'd']}}}"
    features = fetch(con, f"SELECT DISTINCT feature FROM encoded('sexes', {rule}) ORDER BY ALL")
    assert features == [("sex_d",), ("sex_f",), ("sex_m",)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("encoded('nobody')", "There is no table or view 'nobody'"),
        ("encoded('patients', method := 'value')", "Did you mean 'value_set'"),
        ("encoded('patients', form := 'broad')", "form must be one of long, wide"),
        ("encoded('patients', keep := ['agee'])", "Did you mean 'age'"),
        ("encoded('patients', columns := ['agee'])", "Did you mean 'age'"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(shared: Con, call: str, message: str) -> None:
    assert message in reason(shared, f"FROM {call}")


def test_the_word_of_the_database_keeps_its_meaning(con: Con) -> None:
    assert fetch(con, "SELECT decode(encode('a'))") == [("a",)]
