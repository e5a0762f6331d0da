"""The statements of risk, levels and attacks: headers say what they do, and Spark can run them."""

from __future__ import annotations

import pytest
import sqlglot
from sqlglot import exp

from duckanon.engine.sql.files import load, names
from duckanon.models import models

STATEMENTS = [name for folder in ("attacks", "levels", "risk") for name in names(folder)]


@pytest.mark.parametrize("name", STATEMENTS)
def test_the_header_is_the_statement(name: str) -> None:
    file = load(name)
    tree = file.tree()
    steps = {cte.alias for cte in tree.find_all(exp.CTE)}
    assert file.title.startswith(name.split("/")[1] + ":")
    assert tuple(tree.named_selects) == file.returns
    assert {p.name for p in tree.find_all(exp.Placeholder, exp.Parameter)} == set(file.params)
    assert {t.name for t in tree.find_all(exp.Table)} - steps == set(file.reads)


@pytest.mark.parametrize("name", STATEMENTS)
def test_the_statement_is_spark_sql_too(name: str) -> None:
    assert sqlglot.transpile(load(name).text, read="duckdb", write="spark", unsupported_level=sqlglot.ErrorLevel.RAISE)


def test_every_level_is_that_of_a_model() -> None:
    for name in names("levels"):
        assert name.split("/")[1] in models
        assert load(name).returns == ("attribute", "parameter", "value")
