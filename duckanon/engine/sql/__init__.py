"""Statements: built with sqlglot where columns depend on the data, read from ``sql/`` where they do not."""
