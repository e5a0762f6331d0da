"""The database. ``duckdb`` is imported only here."""
