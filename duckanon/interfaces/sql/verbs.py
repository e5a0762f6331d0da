"""Functions in SQL that assess tables: what a table satisfies, what a release lost, how risky rows are, and so on.

Their results are computed in Python and small; they take the place of the call as a list of values. They read committed
rows and publish nothing. Nothing is kept between calls, and a transaction that sees other rows is not detected. Only
``with_risk`` and ``encoded`` are plain SQL and read what their statement reads; but which cells ``encoded`` knows comes
from committed rows.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.engine.duckdb.functions import Call, Function, Parameter, checked
from duckanon.engine.sql.encodings import as_json
from duckanon.engine.sql.relations import cast, col, named, text
from duckanon.errors import ParameterError, UnsupportedError, did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa


def as_query(result: pa.Table) -> exp.Select:
    """Return a query with the rows of a small table, its names and its types.

    Examples
    --------
    >>> import pyarrow as pa
    >>> as_query(pa.table({"a": [1, None]})).sql(dialect="duckdb")
    'SELECT CAST("c0" AS BIGINT) AS "a" FROM (VALUES (1), (NULL)) AS r(c0)'
    """
    types = [_type(field.type) for field in result.schema]
    columns = [f"c{i}" for i in range(result.num_columns)]
    rows = list(zip(*(column.to_pylist() for column in result.columns), strict=True))
    listed = [tuple(_literal(value) for value in row) for row in rows or [(None,) * len(columns)]]
    casts = [named(cast(col(c), t), name) for c, t, name in zip(columns, types, result.column_names, strict=True)]
    query = exp.select(*casts).from_(exp.values(listed, alias="r", columns=columns))
    return query if rows else query.where(exp.false())


def _type(kind: pa.DataType) -> str:
    import pyarrow as pa

    if pa.types.is_list(kind):
        return f"{_type(kind.value_type)}[]"
    if pa.types.is_boolean(kind):
        return "BOOLEAN"
    if pa.types.is_integer(kind):
        return "BIGINT"
    return "DOUBLE" if pa.types.is_floating(kind) else "VARCHAR"


def _literal(value: Any) -> exp.Expr:
    if isinstance(value, list):
        return exp.Array(expressions=[_literal(v) for v in value])
    if isinstance(value, float):
        # As its shortest exact text: a decimal literal would be read with fewer digits.
        return text(repr(value) if math.isfinite(value) else str(value))
    return exp.convert(value)


def _nested_query(result: pa.Table) -> exp.Select:
    """Return a query with the rows of a table that may be large and may have structs: one text, read as JSON.

    Examples
    --------
    >>> import pyarrow as pa
    >>> print(_nested_query(pa.table({"a": [{"b": 1}]})).sql(dialect="duckdb"))
    SELECT UNNEST(FROM_JSON('[{"a": {"b": 1}}]', '[{"a": {"b": "BIGINT"}}]'), max_depth := 2)
    """
    import pyarrow as pa

    def shape(kind: pa.DataType) -> Any:
        return {f.name: shape(f.type) for f in kind} if pa.types.is_struct(kind) else _type(kind)

    types = {field.name: shape(field.type) for field in result.schema}
    return as_json(_json(result.to_pylist()), _json([types]))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _split(request: Call) -> tuple[str, dict[str, Any]]:
    """Return the source of a call, and its other arguments."""
    arguments = dict(request.arguments)
    return arguments.pop("source"), arguments


def _first(result: pa.Table, *names: str) -> pa.Table:
    """Return a table with those columns first that answer the question: a terminal may have no room for all."""
    return result.select([*names, *(name for name in result.column_names if name not in names)])


def _privacy(request: Call) -> exp.Query:
    from duckanon.assess.privacy import privacy

    source, arguments = _split(request)
    result = privacy(source, connection=request.engine, **arguments).to_arrow()
    return as_query(_first(result, "model", "attribute", "parameter", "value", "holds", "threshold", "text", "unit"))


def _information_loss(request: Call) -> exp.Query:
    from duckanon.assess.comparison.loss import measure

    arguments = dict(request.arguments)
    original, release = arguments.pop("original"), arguments.pop("release")
    return as_query(measure(original, release, connection=request.engine, **arguments).to_arrow())


def _query_errors(request: Call) -> exp.Query:
    from duckanon.assess.utility.workload import queries

    arguments = dict(request.arguments)
    original, release = arguments.pop("original"), arguments.pop("release")
    return as_query(queries(original, release, connection=request.engine, **arguments).summary())


def _risk(request: Call) -> exp.Query:
    from duckanon.assess.risk import risk

    source, arguments = _split(request)
    return as_query(risk(source, connection=request.engine, **arguments).to_arrow())


def _attack(request: Call) -> exp.Query:
    from duckanon.assess.attacks.attack import attack

    arguments = dict(request.arguments)
    original, release = arguments.pop("original"), arguments.pop("release")
    result = attack(original, release, connection=request.engine, **arguments)
    return as_query(_first(result.to_arrow(), "attack", "attribute", "adversary", "level", "verdict", "risk"))


def _with_risk(request: Call) -> exp.Query:
    from duckanon.assess.row_risk import rows_of

    source, arguments = _split(request)
    wanted = arguments.get("quasi_identifiers")
    return rows_of(request.engine, source, wanted, arguments.get("entity_key"), elsewhere=True).with_risk()


def _suggest(request: Call) -> exp.Query:
    from duckanon.assess.suggest import suggest

    source, arguments = _split(request)
    return as_query(suggest(source, connection=request.engine, **arguments).to_arrow())


def _identifying_sets(request: Call) -> exp.Query:
    from duckanon.assess.identifying_sets import identifying_sets

    source, arguments = _split(request)
    return as_query(identifying_sets(source, connection=request.engine, **arguments))


_MOST_LINES = 100_000


def _hierarchy(request: Call) -> exp.Query:
    """Return the levels of a hierarchy: those of its table, or those that a rule gives the values of a column."""
    import pyarrow as pa

    from duckanon.hierarchy import resolve
    from duckanon.hierarchy.chain import chain, height

    hierarchy, first = resolve(request.arguments["spec"], request.engine), 0
    source, column = request.arguments.get("source"), request.arguments.get("attribute")
    if (source is None) != (column is None):
        raise ParameterError("hierarchy: source and attribute go together.")
    if column is not None:
        hierarchy = hierarchy.materialise(*_values(request, column), request.engine)
    elif hierarchy.levels is None:
        # The part of a rule that is a table, such as the states of ZIP codes, can be shown without values.
        links = chain(hierarchy, request.engine)
        tables = [link for link in links if link.levels is not None]
        whole = height(links)
        if not tables or whole is None:
            rule = hierarchy.to_rule()
            return as_query(pa.table({"key": list(rule), "value": [_json(value) for value in rule.values()]}))
        hierarchy = tables[0]
        first = whole - (hierarchy.height or 0)
    levels = hierarchy.levels
    assert levels is not None
    if levels.num_rows > _MOST_LINES:
        raise UnsupportedError(f"The hierarchy has {levels.num_rows:,} lines: more than can be shown as a table.")
    return as_query(levels.rename_columns([f"level_{first + i}" for i in range(levels.num_columns)]))


def _values(request: Call, column: str) -> tuple[pa.Array, str]:
    """Return the distinct values of a column of the source, and their type."""
    from duckanon.engine.sql.relations import subquery
    from duckanon.errors import RoleError
    from duckanon.io.source import Source

    relation = Source.of(request.arguments["source"]).open(request.engine)
    lowered = {name.lower(): name for name in relation.names}
    if column.lower() not in lowered:
        raise RoleError(f"There is no column {column!r} in the source.{did_you_mean(column, relation.names)}")
    name = lowered[column.lower()]
    query = exp.select(col(name)).distinct().from_(subquery(relation.query, "s")).order_by(col(name))
    present = exp.Not(this=exp.Is(this=col(name), expression=exp.null()))
    values = request.engine.arrow(query.where(present).limit(_MOST_LINES + 1)).column(0)
    return values.combine_chunks(), relation.type_of(name)


def _lattice(request: Call) -> exp.Query:
    from duckanon.assess.lattice import lattice

    source, arguments = _split(request)
    nodes = lattice(source, engine=request.engine, **{"quasi_identifiers": [], **arguments})
    return _nested_query(nodes.to_arrow())


def _encoded(request: Call) -> exp.Query:
    from duckanon.assess.utility.encoding_sql import encoded_query

    source, arguments = _split(request)
    return encoded_query(request.engine, source, **arguments)


_ABOUT = ("releases", "properties", "by", "what", "metrics", "row_id")


def _compare_releases(request: Call, shared: tuple[Parameter, ...]) -> exp.Query:
    """Make every release with the shared arguments and its own, and compare them."""
    from duckanon.api import anonymize
    from duckanon.assess.comparison.compare import TABLES, compare

    source, arguments = _split(request)
    about = {name: arguments.pop(name) for name in _ABOUT if name in arguments}
    what, variations = about.pop("what", "standing"), about.pop("releases", {})
    if what not in TABLES:
        raise ParameterError(f"compare_releases: what must be one of {', '.join(TABLES)}.{did_you_mean(what, TABLES)}")
    if what != "metrics":
        about.setdefault("metrics", [])
    parameters = {p.name: p for p in shared if p.name != "source"}
    made = {}
    with ExitStack() as stack:
        for name, variation in variations.items():
            given = {**arguments, **_varied(name, variation, parameters)}
            made[name] = anonymize(source, engine=request.engine, **{"quasi_identifiers": [], **given})
            stack.callback(made[name].folder.close)
        return as_query(compare(made, **about).to_arrow(what))


def _varied(name: str, variation: Any, parameters: Mapping[str, Parameter]) -> dict[str, Any]:
    """Return the arguments of one release, checked as those of ``anonymize`` are."""
    label = f"compare_releases, release {name!r}"
    if not isinstance(variation, dict):
        raise ParameterError(f"{label}: give its arguments as a struct, such as {{'k': 5}}.")
    for key in variation:
        if key not in parameters:
            raise ParameterError(f"{label}: there is no parameter {key!r}.{did_you_mean(key, parameters)}")
    return checked(Function(label, tuple(parameters.values()), _privacy), variation)


_SOURCE = Parameter("source", "text", required=True)
_QUASI = Parameter("quasi_identifiers", "texts")
_SEARCH = (Parameter("max_size", "integer"), Parameter("by", "text"), Parameter("threshold", "number"))


def verbs(anonymize: tuple[Parameter, ...]) -> list[Function]:
    """Return the functions; ``anonymize`` are the parameters of the function of that name."""
    return [
        Function(
            "privacy",
            (
                _SOURCE,
                _QUASI,
                Parameter("sensitive", "texts"),
                Parameter("entity_key", "text"),
                Parameter("hierarchies", "mapping"),
                Parameter("population", "text"),
                Parameter("k", "integer"),
                Parameter("l", "integer"),
                Parameter("t", "number"),
                Parameter("models", "models"),
            ),
            _privacy,
            about="What a table satisfies: of each model, the strictest parameter that holds.",
        ),
        Function(
            "information_loss",
            (
                Parameter("original", "text", required=True),
                Parameter("release", "text", required=True),
                _QUASI,
                Parameter("sensitive", "texts"),
                Parameter("hierarchies", "mapping"),
                Parameter("metrics", "texts"),
                Parameter("k", "integer"),
            ),
            _information_loss,
            about="What a release lost, by each metric that can be computed, in all and by column.",
        ),
        Function(
            "query_errors",
            (
                Parameter("original", "text", required=True),
                Parameter("release", "text", required=True),
                Parameter("columns", "texts", required=True),
                Parameter("n", "integer"),
                Parameter("dimensions", "integer"),
                Parameter("selectivity", "number"),
                Parameter("average", "text"),
                Parameter("hierarchies", "mapping"),
                Parameter("sanity", "number"),
                Parameter("seed", "integer"),
            ),
            _query_errors,
            about="How wrong counts and means of random ranges become.",
        ),
        Function(
            "risk",
            (
                _SOURCE,
                _QUASI,
                Parameter("sensitive", "texts"),
                Parameter("population", "text"),
                Parameter("population_size", "integer"),
                Parameter("sampling_fraction", "number"),
                Parameter("threshold", "number"),
                Parameter("entity_key", "text"),
            ),
            _risk,
            about="The risk of reidentification for three kinds of adversaries.",
        ),
        Function(
            "attack",
            (
                Parameter("original", "text", required=True),
                Parameter("release", "text", required=True),
                Parameter("control", "text"),
                _QUASI,
                Parameter("sensitive", "texts"),
                Parameter("hierarchies", "mapping"),
                Parameter("attacks", "texts"),
                Parameter("known", "texts"),
                Parameter("entity_key", "text"),
                Parameter("k", "integer"),
                Parameter("sample", "integer"),
                Parameter("seed", "integer"),
            ),
            _attack,
            about="What simulated adversaries learn from a release, beyond what they learn of anybody.",
        ),
        Function(
            "hierarchy",
            (
                Parameter("spec", "text or mapping", required=True),
                Parameter("source", "text"),
                Parameter("attribute", "text"),
            ),
            _hierarchy,
            about="The levels of a hierarchy, one column for each: those of its table, or those of a column's values.",
        ),
        Function(
            "with_risk",
            (_SOURCE, _QUASI, Parameter("entity_key", "text")),
            _with_risk,
            about="The rows of a table with the size of their class and their risk, for the owner of the data.",
        ),
        Function(
            "suggest",
            (_SOURCE, *_SEARCH, Parameter("sample_size", "integer")),
            _suggest,
            about="A role for each column, with the reason: which ones identify or single out people.",
        ),
        Function(
            "identifying_sets",
            (_SOURCE, Parameter("columns", "texts"), *_SEARCH, Parameter("sample_size", "integer")),
            _identifying_sets,
            about="The smallest sets of columns that single out most rows.",
        ),
        Function(
            "encoded",
            (
                _SOURCE,
                Parameter("method", "text"),
                Parameter("columns", "texts"),
                Parameter("hierarchies", "mapping"),
                Parameter("keep", "texts"),
                Parameter("form", "text"),
                Parameter("max_features", "integer"),
            ),
            _encoded,
            about="The cells of a release as features for learners.",
        ),
        Function(
            "lattice",
            (*anonymize, Parameter("metrics", "texts"), Parameter("pareto", "boolean"), Parameter("most", "integer")),
            _lattice,
            about="The combinations of levels that satisfy the models, with what they lose.",
        ),
        Function(
            "compare_releases",
            (
                *anonymize,
                Parameter("releases", "mapping"),
                Parameter("properties", "texts"),
                Parameter("by", "text or texts"),
                Parameter("metrics", "texts"),
                Parameter("row_id", "text"),
                Parameter("what", "text"),
            ),
            lambda request: _compare_releases(request, anonymize),
            about="Releases of one table, made with shared arguments and with their own, beside each other.",
        ),
    ]


__all__ = ["as_query", "verbs"]
