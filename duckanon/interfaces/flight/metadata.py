"""What tools ask about a server before they show its tables: catalogs, schemas, tables, and what it can do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp

from duckanon._version import __version__
from duckanon.engine.sql.relations import DIALECT, call, col, named, text, union_all

TYPES = ("TABLE", "VIEW")
_NAME = pa.field("table_name", pa.string(), nullable=False)
_PLACE = (pa.field("catalog_name", pa.string()), pa.field("db_schema_name", pa.string()))


def _key_fields() -> list[pa.Field]:
    fields: list[pa.Field] = []
    for side in ("pk", "fk"):
        fields += [pa.field(f"{side}_{name}", pa.string()) for name in ("catalog_name", "db_schema_name")]
        fields += [pa.field(f"{side}_{name}", pa.string(), nullable=False) for name in ("table_name", "column_name")]
    fields.append(pa.field("key_sequence", pa.int32(), nullable=False))
    fields += [pa.field(f"{side}_key_name", pa.string()) for side in ("fk", "pk")]
    return fields + [pa.field(f"{rule}_rule", pa.uint8(), nullable=False) for rule in ("update", "delete")]


_FOREIGN = pa.schema(_key_fields())
_INFO = pa.schema(
    [
        pa.field("info_name", pa.uint32(), nullable=False),
        pa.field(
            "value",
            pa.dense_union(
                [
                    pa.field("string_value", pa.string()),
                    pa.field("bool_value", pa.bool_()),
                    pa.field("bigint_value", pa.int64()),
                    pa.field("int32_bitmask", pa.int32()),
                    pa.field("string_list", pa.list_(pa.string())),
                    pa.field("int32_to_int32_list_map", pa.map_(pa.int32(), pa.list_(pa.int32()))),
                ]
            ),
            nullable=False,
        ),
    ]
)
_XDBC = pa.schema(
    [
        pa.field("type_name", pa.string(), nullable=False),
        pa.field("data_type", pa.int32(), nullable=False),
        pa.field("column_size", pa.int32()),
        pa.field("literal_prefix", pa.string()),
        pa.field("literal_suffix", pa.string()),
        pa.field("create_params", pa.list_(pa.field("item", pa.string(), nullable=False))),
        pa.field("nullable", pa.int32(), nullable=False),
        pa.field("case_sensitive", pa.bool_(), nullable=False),
        pa.field("searchable", pa.int32(), nullable=False),
        pa.field("unsigned_attribute", pa.bool_()),
        pa.field("fixed_prec_scale", pa.bool_(), nullable=False),
        pa.field("auto_increment", pa.bool_()),
        pa.field("local_type_name", pa.string()),
        pa.field("minimum_scale", pa.int32()),
        pa.field("maximum_scale", pa.int32()),
        pa.field("sql_data_type", pa.int32(), nullable=False),
        pa.field("datetime_subcode", pa.int32()),
        pa.field("num_prec_radix", pa.int32()),
        pa.field("interval_precision", pa.int32()),
    ]
)
SCHEMAS: dict[str, pa.Schema] = {
    "CommandGetCatalogs": pa.schema([pa.field("catalog_name", pa.string(), nullable=False)]),
    "CommandGetDbSchemas": pa.schema([_PLACE[0], _PLACE[1].with_nullable(False)]),
    "CommandGetTables": pa.schema([*_PLACE, _NAME, pa.field("table_type", pa.string(), nullable=False)]),
    "CommandGetTableTypes": pa.schema([pa.field("table_type", pa.string(), nullable=False)]),
    "CommandGetPrimaryKeys": pa.schema(
        [
            *_PLACE,
            _NAME,
            pa.field("column_name", pa.string(), nullable=False),
            pa.field("key_name", pa.string()),
            pa.field("key_sequence", pa.int32(), nullable=False),
        ]
    ),
    "CommandGetExportedKeys": _FOREIGN,
    "CommandGetImportedKeys": _FOREIGN,
    "CommandGetCrossReference": _FOREIGN,
    "CommandGetSqlInfo": _INFO,
    "CommandGetXdbcTypeInfo": _XDBC,
}
"""The columns of the answer to each metadata command."""
_WITH_SCHEMA = SCHEMAS["CommandGetTables"].append(pa.field("table_schema", pa.binary(), nullable=False))

_INTERNAL = ("information_schema", "pg_catalog")

Run = Callable[[str], Iterable[Sequence[Any]]]
"""Runs a statement and returns its rows."""


def schema_of(name: str, command: Any) -> pa.Schema:
    """Return the columns of the answer to a metadata command."""
    return _WITH_SCHEMA if name == "CommandGetTables" and command.include_schema else SCHEMAS[name]


def answer(name: str, command: Any, run: Run, columns_of: Callable[[str], pa.Schema], read_only: bool) -> pa.Table:
    """Return the answer to a metadata command. Keys are not told, because a release has none."""
    rows: list[dict[str, Any]] = []
    if name == "CommandGetSqlInfo":
        return _info(command.info, read_only)
    if name == "CommandGetTableTypes":
        rows = [{"table_type": kind} for kind in TYPES]
    elif name in ("CommandGetCatalogs", "CommandGetDbSchemas", "CommandGetTables"):
        rows = list(_listed(name, command, run, columns_of))
    return pa.Table.from_pylist(rows, schema=schema_of(name, command))


def _listed(name: str, command: Any, run: Run, columns_of: Callable[[str], pa.Schema]) -> Iterable[dict[str, Any]]:
    here = exp.EQ(this=col("database_name"), expression=call("current_database"))
    if name == "CommandGetCatalogs":
        yield from ({"catalog_name": row[0]} for row in run(_sql(exp.select(call("current_database")))))
        return
    about = command.catalog if command.HasField("catalog") else None
    pattern = command.db_schema_filter_pattern if command.HasField("db_schema_filter_pattern") else None
    if name == "CommandGetDbSchemas":
        schemas = exp.select("database_name", "schema_name").from_(exp.Table(this=call("duckdb_schemas"))).where(here)
        for catalog, schema in run(_sql(schemas.order_by("schema_name"))):
            if schema in _INTERNAL:
                continue
            if about in (None, catalog) and _like(schema, pattern):
                yield {"catalog_name": catalog, "db_schema_name": schema}
        return
    kinds = (("duckdb_tables", "table_name"), ("duckdb_views", "view_name"))
    parts = [
        exp.select("database_name", "schema_name", named(col(column), "name"), named(text(kind), "kind"))
        .from_(exp.Table(this=call(function)))
        .where(here.copy())
        .where("NOT internal")
        for (function, column), kind in zip(kinds, TYPES, strict=True)
    ]
    wanted = command.table_name_filter_pattern if command.HasField("table_name_filter_pattern") else None
    for row in sorted(tuple(row) for row in run(_sql(union_all(parts)))):
        catalog, schema, table, kind = row
        if about not in (None, catalog) or not _like(schema, pattern) or not _like(table, wanted):
            continue
        if command.table_types and kind not in command.table_types:
            continue
        place = {"catalog_name": catalog, "db_schema_name": schema, "table_name": table, "table_type": kind}
        if not command.include_schema:
            yield place
            continue
        rows = exp.select("*").from_(exp.table_(table, db=schema, catalog=catalog, quoted=True)).limit(0)
        yield {**place, "table_schema": columns_of(_sql(rows)).serialize().to_pybytes()}


def _sql(query: exp.Query) -> str:
    return query.sql(dialect=DIALECT)


def _like(name: str, pattern: str | None) -> bool:
    r"""Say whether a name matches a pattern with ``%`` and ``_``; None matches all.

    Examples
    --------
    >>> _like("visits", "v%"), _like("visits", "visit"), _like("a_b", r"a\_b"), _like("x", None)
    (True, False, True, True)
    """
    if pattern is None:
        return True
    pieces = re.findall(r"\\[%_\\]|.", pattern, re.DOTALL)
    words = {"%": ".*", "_": "."}
    regex = "".join(words.get(p, re.escape(p[1:] if len(p) > 1 else p)) for p in pieces)
    return re.fullmatch(regex, name, re.DOTALL) is not None


def _info(wanted: Iterable[int], read_only: bool) -> pa.Table:
    """Return what the server is and can do, by the numbers of the specification."""
    known: Mapping[int, str | bool | int] = {
        0: "duckanon",
        1: __version__,
        2: str(pa.__version__),
        3: read_only,
        4: True,  # SQL
        5: False,  # Substrait
        8: 0,  # transactions of the protocol
        9: False,  # cancelled by ending the call
        500: False,
        501: not read_only,
        502: not read_only,
        504: '"',
        506: True,
    }
    numbers = [n for n in (list(wanted) or known) if n in known]
    places = {str: 0, bool: 1, int: 3}
    fields = [pa.array([], type=_INFO.field("value").type.field(i).type) for i in range(6)]
    kinds, offsets, values = [], [], {i: list[Any]() for i in range(6)}
    for number in numbers:
        place = places[type(known[number])]
        kinds.append(place)
        offsets.append(len(values[place]))
        values[place].append(known[number])
    for place, found in values.items():
        fields[place] = pa.array(found, type=_INFO.field("value").type.field(place).type)
    union = pa.UnionArray.from_dense(
        pa.array(kinds, pa.int8()),
        pa.array(offsets, pa.int32()),
        fields,
        [_INFO.field("value").type.field(i).name for i in range(6)],
    )
    return pa.Table.from_arrays([pa.array(numbers, pa.uint32()), union], schema=_INFO)


__all__ = ["SCHEMAS", "answer", "schema_of"]
