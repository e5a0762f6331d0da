"""Geometry of pictures: bars, the sizes of classes, and lines over the runs. Templates draw them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from duckanon.report.model import Point, Sizes, Trend
from duckanon.report.text import number

_WIDE, _HIGH, _EDGE = 240.0, 84.0, 7.0
"""The field of a line, in units of its own, and the space around it."""
_SKEWED = 20
"""Sizes are drawn on a logarithmic axis where the largest is more than this many times the smallest."""


def filled(fraction: Any) -> str | None:
    """Return how far a bar is filled; None for an empty bar."""
    share = min(max(float(fraction), 0.0), 1.0) if _is_number(fraction) else 0.0
    return _percent(share) if round(share * 100, 2) else None


def sizes(picture: Sizes) -> dict[str, Any] | None:
    """Return the positions of a line from the smallest to the largest class, with a box around the middle half."""
    if not all(_is_number(v) and v > 0 for v in picture.quantiles):
        return None
    low, q25, median, q75, high = (float(v) for v in picture.quantiles)
    least = picture.least
    scale = _Scale.of(low if least is None else min(low, float(least)), high)
    spread = f"{number(int(low))} to {number(int(high))} {picture.unit}"
    return {
        "label": f"{picture.what} have {spread}, half of them {number(int(q25))} to {number(int(q75))}.",
        "ticks": [(scale.at(t), number(int(t))) for t in scale.ticks()],
        "low": scale.at(low),
        "high": scale.at(high),
        "q25": scale.at(q25),
        "middle_half": _percent(scale.share(q75) - scale.share(q25)),
        "median": scale.at(median),
        "least": None if least is None else scale.at(float(least)),
        "least_label": None if least is None else f"k = {number(least)}",
    }


def trend(picture: Trend) -> dict[str, Any] | None:
    """Return the positions of a line over the runs, the last of them a dot, and a cross for each run that failed.

    The axis begins at 0, so that a small change looks small. A run without a value leaves a gap.
    """
    points, beside = picture.points, picture.beside
    values = [float(p.value) for p in (*points, *beside) if p.value is not None and _is_number(p.value)]
    if not values:
        return None
    low, high = min(0.0, *values), max(0.0, *values)
    places = _places(points, low, high)
    last = max((i for i, place in enumerate(places) if place is not None), default=-1)
    crosses = [(point.label, _cross(i, len(points))) for i, point in enumerate(points) if point.failed]
    marks = [
        (point.label, place, i == last)
        for i, (point, place) in enumerate(zip(points, places, strict=True))
        if place is not None
    ]
    return {
        "label": f"{picture.title} over {len(points)} runs, now {picture.now}",
        "box": f"0 0 {_unit(_WIDE)} {_unit(_HIGH)}",
        "width": _unit(_WIDE),
        "floor": _unit(_HIGH - 1),
        "beside": _stretches(_places(beside, low, high)),
        "stretches": _stretches(places),
        "failed": crosses,
        "marks": marks,
    }


@dataclass(frozen=True)
class _Scale:
    """Positions on an axis from ``low`` to ``high``, as shares of the picture's width."""

    low: float
    high: float
    logarithmic: bool

    @classmethod
    def of(cls, low: float, high: float) -> _Scale:
        return cls(low, max(high, low), high > low * _SKEWED)

    def share(self, value: float) -> float:
        low, high = self.low, self.high
        if high <= low:
            return 0.5
        if self.logarithmic:
            low, high, value = math.log(low), math.log(high), math.log(value)
        return 0.04 + 0.92 * (value - low) / (high - low)

    def at(self, value: float) -> str:
        return _percent(self.share(value))

    def ticks(self) -> list[float]:
        """Return a few round numbers on the axis."""
        if self.high <= self.low:
            return [self.low]
        if self.logarithmic:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            step = max(1, (last - first) // 4)
            ticks = [10.0**e for e in range(first, last + 1, step)]
        else:
            wide = (self.high - self.low) / 4
            power = 10.0 ** math.floor(math.log10(wide))
            whole = max(1.0, next(power * m for m in (1, 2, 5, 10) if power * m >= wide))
            ticks = [whole * i for i in range(math.ceil(self.low / whole), math.floor(self.high / whole) + 1)]
        inside = [t for t in ticks if self.low <= t <= self.high and t == int(t)]
        return inside or [self.low]


_Place = tuple[str, str]


def _step(points: int) -> float:
    return (_WIDE - 2 * _EDGE) / max(points - 1, 1)


def _places(points: Sequence[Point], low: float, high: float) -> list[_Place | None]:
    """Return the position of each point; None where there is none."""
    places: list[_Place | None] = []
    for i, point in enumerate(points):
        if not _is_number(point.value):
            places.append(None)
            continue
        share = 0.0 if high <= low else (float(point.value or 0) - low) / (high - low)
        places.append(
            (_unit(_EDGE + i * _step(len(points))), _unit(_HIGH - _EDGE - 2 - share * (_HIGH - 2 * _EDGE - 4)))
        )
    return places


def _stretches(places: Sequence[_Place | None]) -> list[list[_Place]]:
    """Return the stretches without a gap."""
    stretches: list[list[_Place]] = [[]]
    for place in places:
        if place is None:
            stretches.append([])
        else:
            stretches[-1].append(place)
    return [stretch for stretch in stretches if stretch]


def _cross(i: int, points: int) -> str:
    x, y = _EDGE + i * _step(points), _HIGH - 8
    return f"M{_unit(x - 3)} {_unit(y - 3)}l6 6m0 -6l-6 6"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _percent(share: float) -> str:
    return f"{round(share * 100, 2):g}%"


def _unit(value: float) -> str:
    return f"{round(value, 2):g}"
