"""Range queries, answered row by row.

A query is a mapping of columns to the sets of values that it asks for. A released cell is given as the list of values
that it can stand for, each as likely as the others; or as a number, which is inside where it lies between the smallest
and the largest value asked for.
"""

from __future__ import annotations

from fractions import Fraction


def matches(row: dict, query: dict[str, set]) -> bool:
    return all(row[column] in values for column, values in query.items())


def share(cell: object, values: set) -> Fraction:
    if isinstance(cell, list):
        return Fraction(sum(v in values for v in cell), len(cell))
    return Fraction(int(min(values) <= cell <= max(values)))


def weight(row: dict, query: dict[str, set]) -> Fraction:
    found = Fraction(1)
    for column, values in query.items():
        found *= share(row[column], values)
    return found


def answers(rows: list[dict], released: list[dict], query: dict[str, set], average: str | None) -> dict[str, float]:
    """Count and mean of the original, and as the release tells them; None where there is nothing to be averaged."""
    hits = [row for row in rows if matches(row, query)]
    weights = [(weight(row, query), row) for row in released]
    found: dict = {"count": len(hits), "count_estimate": float(sum(w for w, _ in weights))}
    if average is not None:
        known = [row[average] for row in hits if row[average] is not None]
        found["average"] = sum(known) / len(known) if known else None
        some = [(w, row[average]) for w, row in weights if row[average] is not None and w > 0]
        total = sum(w for w, _ in some)
        found["average_estimate"] = float(sum(w * Fraction(v) for w, v in some) / total) if some else None
    return found
