"""The functions whose meaning or name differs between engines: statements get them from here, never by name.

Each engine's ``Dialect`` turns a statement into its own text. What stands here is a call that DuckDB understands as it
is; the dialect of another engine replaces it by the name.
"""

from __future__ import annotations

from typing import Protocol

from sqlglot import exp

from duckanon.engine.sql.relations import call, param


class Dialect(Protocol):
    """How an engine writes statements."""

    name: str
    """What sqlglot calls it."""

    def sql(self, statement: exp.Expr) -> str:
        """Return the text of a statement; it is not changed, nor copied."""


def hash_of(*values: exp.Expr) -> exp.Expr:
    """Return a hash of 64 bits without a sign; equal values have equal ones. Engines hash differently."""
    return call("hash", *values)


def keyed_hash(*values: exp.Expr) -> exp.Expr:
    """Return a hash under the secret parameters ``key0`` and ``key1``."""
    return hash_of(param("key0"), param("key1"), *values)


def shuffle_key(*values: exp.Expr) -> exp.Expr:
    """Return what rows with these values are sorted by, so that their order tells nothing: a keyed hash, hashed again.

    A hash of several values may mix the last one in weakly. Rows that differ in it alone would then be as far apart in
    every class, and a small file would look sorted.
    """
    return hash_of(keyed_hash(*values))


def approx_distinct(value: exp.Expr) -> exp.Expr:
    """Return about how many different values there are: good enough to choose a way, never to check anything."""
    return call("approx_count_distinct", value)


def is_finite(value: exp.Expr) -> exp.Expr:
    """Return whether a number, date or timestamp is neither infinite nor NaN."""
    return call("isfinite", value)


def epoch_seconds(value: exp.Expr) -> exp.Expr:
    """Return the seconds from 1970 to a date or timestamp, or from midnight to a time, with fractions."""
    return call("epoch", value)


def epoch_microseconds(value: exp.Expr) -> exp.Expr:
    """Return the whole microseconds of ``epoch_seconds``."""
    return call("epoch_us", value)


__all__ = [
    "Dialect",
    "approx_distinct",
    "epoch_microseconds",
    "epoch_seconds",
    "hash_of",
    "is_finite",
    "keyed_hash",
    "shuffle_key",
]
