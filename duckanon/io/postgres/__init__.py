"""PostgreSQL: rows come and go as Arrow batches, each time within one transaction."""

from duckanon.io.postgres.names import Known, TableName
from duckanon.io.postgres.rows import Rows, open_rows
from duckanon.io.postgres.session import Session, require_uri
from duckanon.io.postgres.write import column_types, published_comment, require_writable, write_table

__all__ = [
    "Known",
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
