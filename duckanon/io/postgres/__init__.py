"""PostgreSQL: rows are read and written as Arrow batches, within one transaction."""

from duckanon.io.postgres.names import KnownTables, TableName
from duckanon.io.postgres.rows import Rows, open_rows
from duckanon.io.postgres.session import Session, require_uri
from duckanon.io.postgres.write import column_types, published_comment, require_writable, write_table

__all__ = [
    "KnownTables",
    "Rows",
    "Session",
    "TableName",
    "column_types",
    "open_rows",
    "published_comment",
    "require_uri",
    "require_writable",
    "write_table",
]
