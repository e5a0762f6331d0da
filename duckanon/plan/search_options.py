"""What bounds a search: fixed, lowest and highest levels, weights, and whether suppressed rows are recoded again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from duckanon.errors import ParameterError, UnsupportedError, did_you_mean


@dataclass(frozen=True)
class SearchOptions:
    """What a search may choose, by quasi-identifier.

    ``levels`` fixes the node: columns that it does not name stay as they are. ``minimum`` and ``maximum`` bound the
    levels, ``weights`` say how much a column counts in metrics. ``iterative`` recodes suppressed rows again.
    """

    levels: dict[str, int] = field(default_factory=dict)
    minimum: dict[str, int] = field(default_factory=dict)
    maximum: dict[str, int] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)
    iterative: bool = False

    @classmethod
    def of(
        cls,
        columns: Sequence[str],
        *,
        levels: Mapping[str, int] | None = None,
        min_levels: Mapping[str, int] | None = None,
        max_levels: Mapping[str, int] | None = None,
        weights: Mapping[str, float] | None = None,
        iterative: bool = False,
    ) -> SearchOptions:
        """Match the names with the quasi-identifiers. What does not fit is a ParameterError."""
        given_levels = {
            name: _named(name, given, columns)
            for name, given in (("levels", levels), ("min_levels", min_levels), ("max_levels", max_levels))
        }
        for name, numbers in given_levels.items():
            for column, level in numbers.items():
                if isinstance(level, bool) or not isinstance(level, int) or level < 0:
                    raise ParameterError(f"{name} of {column!r} must be a whole number of at least 0.")
        if levels is not None and (min_levels or max_levels):
            raise ParameterError("levels fixes every level: give either levels, or min_levels and max_levels.")
        if levels is not None and not levels:
            raise ParameterError("levels is empty: name at least one quasi-identifier.")
        for column, low in given_levels["min_levels"].items():
            if low > given_levels["max_levels"].get(column, low):
                raise ParameterError(f"The lowest level of {column!r} is above its highest.")
        heavy = _named("weights", weights, columns)
        for column, weight in heavy.items():
            if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < float("inf"):
                raise ParameterError(f"The weight of {column!r} must be a number above 0.")
        if not isinstance(iterative, bool):
            raise ParameterError("iterative must be true or false.")
        numbers = {column: float(weight) for column, weight in heavy.items()}
        return cls(given_levels["levels"], given_levels["min_levels"], given_levels["max_levels"], numbers, iterative)

    def spans(self, columns: Sequence[str], heights: Sequence[int]) -> tuple[tuple[int, int], ...]:
        """Return the lowest and highest level of each column. A level that its hierarchy lacks is an error."""
        spans = []
        for column, height in zip(columns, heights, strict=True):
            low, high = self.minimum.get(column, 0), self.maximum.get(column, height)
            if self.levels:
                low = high = self.levels.get(column, 0)
            if max(low, high) > height:
                raise ParameterError(f"The hierarchy of {column!r} has the levels 0 to {height}. Got {max(low, high)}.")
            spans.append((low, high))
        return tuple(spans)

    def require_no_levels(self, algorithm: str) -> None:
        """Raise if levels are given to an algorithm that has none."""
        given = {"levels": self.levels, "min_levels": self.minimum, "max_levels": self.maximum}
        asked = [name for name, value in {**given, "iterative": self.iterative}.items() if value]
        if asked:
            raise UnsupportedError(
                f"The algorithm {algorithm} divides rows into regions, which have no levels: {' and '.join(asked)} "
                "is for optimal, datafly and the others that put columns on levels."
            )

    def to_dict(self) -> dict[str, Any]:
        """Return what was given, as plain values."""
        given = {
            "levels": self.levels,
            "min_levels": self.minimum,
            "max_levels": self.maximum,
            "weights": self.weights,
            "iterative": self.iterative,
        }
        return {name: value for name, value in given.items() if value}


def _named(name: str, given: Mapping[str, Any] | None, columns: Sequence[str]) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ParameterError(f"{name} must map quasi-identifiers to numbers. Got a {type(given).__name__}.")
    lowered = {c.lower(): c for c in columns}
    matched = {}
    for column, value in given.items():
        match = lowered.get(str(column).lower())
        if match is None:
            hint = did_you_mean(str(column), columns)
            raise ParameterError(f"{name} names {column!r}, which is no quasi-identifier.{hint}")
        matched[match] = value
    return matched
