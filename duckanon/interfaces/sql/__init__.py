"""SQL: table functions, scalar functions and macros on a DuckDB connection."""
