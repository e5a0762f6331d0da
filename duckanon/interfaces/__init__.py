"""Where users come in: the command line, SQL and dbt."""
