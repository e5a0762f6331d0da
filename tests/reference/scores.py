"""Scores of predictions, counted pair by pair."""

from __future__ import annotations

from fractions import Fraction


def accuracy(truth: list[int], said: list[int]) -> float:
    return sum(t == s for t, s in zip(truth, said, strict=True)) / len(truth)


def of_class(truth: list[int], said: list[int], c: int) -> tuple[float, float, float]:
    """Precision, recall and F1 of one class."""
    hits = sum(t == c and s == c for t, s in zip(truth, said, strict=True))
    claimed, there = said.count(c), truth.count(c)
    precision = Fraction(hits, claimed) if claimed else Fraction(0)
    recall = Fraction(hits, there) if there else Fraction(0)
    both = precision + recall
    return float(precision), float(recall), float(2 * precision * recall / both) if both else 0.0


def macro(truth: list[int], said: list[int]) -> tuple[float, float, float]:
    """The mean of each over the classes that occur."""
    found = [of_class(truth, said, c) for c in sorted({*truth, *said})]
    return tuple(sum(column) / len(found) for column in zip(*found, strict=True))  # type: ignore[return-value]


def area(truth: list[int], confidence: list[float], c: int) -> float:
    """The share of pairs, one of the class and one not, in which the first is trusted more; half for equal ones."""
    own = [x for t, x in zip(truth, confidence, strict=True) if t == c]
    others = [x for t, x in zip(truth, confidence, strict=True) if t != c]
    won = sum((a > b) + 0.5 * (a == b) for a in own for b in others)
    return won / (len(own) * len(others))
