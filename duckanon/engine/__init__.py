"""The database behind the work. ``duckdb`` is imported in this room only."""
