"""DuckDB in this process. Nothing outside this folder imports ``duckdb``."""
