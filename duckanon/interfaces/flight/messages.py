"""The messages of Arrow Flight SQL that the server reads and writes.

Their fields are those of the specification, https://arrow.apache.org/docs/format/FlightSql.html. Classes are made from
the list below when the module is imported: the packages that ship generated ones pin other libraries or are not
maintained.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from duckanon.errors import ParameterError

_PACKAGE = "arrow.flight.protocol.sql"
_KINDS = descriptor_pb2.FieldDescriptorProto
_TYPES = {
    "string": _KINDS.TYPE_STRING,
    "bytes": _KINDS.TYPE_BYTES,
    "bool": _KINDS.TYPE_BOOL,
    "int32": _KINDS.TYPE_INT32,
    "int64": _KINDS.TYPE_INT64,
    "uint32": _KINDS.TYPE_UINT32,
}
_TABLE = ("catalog optional string", "db_schema optional string", "table string")
# The name of a field, whether it is repeated or optional, and its type; fields are numbered from 1.
_FIELDS: dict[str, tuple[str, ...]] = {
    "CommandGetSqlInfo": ("info repeated uint32",),
    "CommandGetXdbcTypeInfo": ("data_type optional int32",),
    "CommandGetCatalogs": (),
    "CommandGetDbSchemas": ("catalog optional string", "db_schema_filter_pattern optional string"),
    "CommandGetTables": (
        "catalog optional string",
        "db_schema_filter_pattern optional string",
        "table_name_filter_pattern optional string",
        "table_types repeated string",
        "include_schema bool",
    ),
    "CommandGetTableTypes": (),
    "CommandGetPrimaryKeys": _TABLE,
    "CommandGetExportedKeys": _TABLE,
    "CommandGetImportedKeys": _TABLE,
    "CommandGetCrossReference": (),
    "CommandStatementQuery": ("query string", "transaction_id optional bytes"),
    "CommandStatementUpdate": ("query string", "transaction_id optional bytes"),
    "CommandPreparedStatementQuery": ("prepared_statement_handle bytes",),
    "CommandPreparedStatementUpdate": ("prepared_statement_handle bytes",),
    "TicketStatementQuery": ("statement_handle bytes",),
    "ActionCreatePreparedStatementRequest": ("query string", "transaction_id optional bytes"),
    "ActionCreatePreparedStatementResult": (
        "prepared_statement_handle bytes",
        "dataset_schema bytes",
        "parameter_schema bytes",
    ),
    "ActionClosePreparedStatementRequest": ("prepared_statement_handle bytes",),
    "DoPutUpdateResult": ("record_count int64",),
    "DoPutPreparedStatementResult": ("prepared_statement_handle optional bytes",),
}


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="duckanon/flight_sql.proto", package=_PACKAGE, syntax="proto3")
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for number, words in enumerate(fields, 1):
            field_name, *how, kind = words.split()
            field = message.field.add(name=field_name, number=number, type=_TYPES[kind])
            field.label = _KINDS.LABEL_REPEATED if how == ["repeated"] else _KINDS.LABEL_OPTIONAL
            if how == ["optional"]:
                # Whether it was given can be told: proto3 needs a group of its own for that.
                field.proto3_optional = True
                field.oneof_index = len(message.oneof_decl)
                message.oneof_decl.add(name=f"_{field_name}")
    # A pool of its own: another package may define the same messages.
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in _FIELDS}


_CLASSES = _classes()


def message(name: str, **fields: Any) -> Any:
    """Return a message.

    Examples
    --------
    >>> message("CommandGetTables", include_schema=True).include_schema
    True
    """
    return _CLASSES[name](**fields)


def encoded(one: Any) -> bytes:
    """Return a message with its type, as clients and servers exchange it.

    Examples
    --------
    >>> decoded(encoded(message("CommandStatementQuery", query="SELECT 1")))[1].query
    'SELECT 1'
    """
    return bytes(
        any_pb2.Any(
            type_url=f"type.googleapis.com/{one.DESCRIPTOR.full_name}", value=one.SerializeToString()
        ).SerializeToString()
    )


def decoded(content: bytes) -> tuple[str, Any]:
    """Return the name of a message and the message; a ParameterError where it is none of Flight SQL."""
    try:
        wrapped = any_pb2.Any.FromString(content)
        name = wrapped.type_url.rpartition("/")[2].removeprefix(f"{_PACKAGE}.")
        if name in _CLASSES:
            return name, _CLASSES[name].FromString(wrapped.value)
    except DecodeError:
        name = ""
    raise ParameterError(f"The server does not know the command {name or 'that was sent'!r}.")


__all__ = ["decoded", "encoded", "message"]
