"""Geometry of pictures: bars, the sizes of classes, and lines over the runs. Templates draw them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from duckanon.report.model import Histogram, Point, Scatter, Sizes, Trend
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


_TOP, _FLOOR, _LEFT = 24, 148, 11.0
"""The field of a histogram: its upper and lower edge in pixels, and its left edge in per cent of the width."""


def histogram(picture: Histogram) -> dict[str, Any] | None:
    """Return the places of the bars, and of round numbers on the axis to the left."""
    heights = [float(height) for _, height in picture.bars if _is_number(height)]
    if not heights or len(heights) < len(picture.bars) or max(heights) <= 0:
        return None
    levels = _round_numbers(max(heights))
    top, wide = levels[-1], (100 - _LEFT) / len(heights)
    # Labels that would touch each other on a small screen are left out.
    longest = max(len(label) for label, _ in picture.bars)
    every = max(1, math.ceil(longest * 6.5 / (wide / 100 * _SMALL)))
    bars: list[dict[str, Any]] = []
    for i, (label, height) in enumerate(picture.bars):
        high = (_FLOOR - _TOP) * height / top
        bars.append(
            {
                "x": _percent((_LEFT + wide * (i + 0.08)) / 100),
                "width": _percent(wide * 0.84 / 100),
                "middle": _percent((_LEFT + wide * (i + 0.5)) / 100),
                # What is not nothing is seen.
                "y": round(_FLOOR - max(high, 1.0 if height else 0.0), 1),
                "height": round(max(high, 1.0 if height else 0.0), 1),
                "label": label if i % every == 0 else "",
                "title": f"{label}: {number(int(height))}",
            }
        )
    return {
        "label": f"{picture.up} by {picture.across}: " + ", ".join(bar["title"] for bar in bars) + ".",
        "left": _percent(_LEFT / 100),
        "levels": [(round(_FLOOR - (_FLOOR - _TOP) * level / top, 1), number(int(level))) for level in levels],
        "bars": bars,
        "across": picture.across,
        "up": picture.up,
    }


_SMALL = 330.0
"""The width of a picture on a small screen, in pixels: labels must not touch there."""
_LETTER, _LINE = 6.6, 15.0
"""The width and height of a letter of a label, in pixels."""
_NAMED = 24
"""So many points have names beside them, the best first; the table has all."""


def scatter(picture: Scatter) -> dict[str, Any] | None:
    """Return the places of points and of their names, which neither touch each other nor leave the picture."""
    spots = [s for s in picture.spots if _is_number(s.x) and _is_number(s.y)]
    if not spots:
        return None
    height = 300
    floor = height - 42
    x_levels = _round_numbers(max(s.x for s in spots))
    y_levels = _round_numbers(max(s.y for s in spots), 5)

    def across(value: float) -> float:
        return _LEFT + (96 - _LEFT) * value / x_levels[-1]

    def up(value: float) -> float:
        return round(floor - (floor - _TOP - 8) * value / y_levels[-1], 1)

    drawn: list[dict[str, Any]] = []
    # Points are obstacles, too.
    taken = [_box(across(s.x) / 100 * _SMALL - 5, up(s.y) - 5, 10, 10) for s in spots]
    order = sorted(range(len(spots)), key=lambda i: (not spots[i].best, spots[i].x, spots[i].y))
    for rank, i in enumerate(order):
        spot = spots[i]
        x, y = across(spot.x), up(spot.y)
        place = _free(spot.name, x / 100 * _SMALL, y, floor, taken) if rank < _NAMED else None
        drawn.append(
            {
                "x": _percent(x / 100),
                "y": y,
                "best": spot.best,
                "title": f"{spot.name}: {picture.across} {_level(spot.x)}, {picture.up} {_level(spot.y)}",
                "name": spot.name if place else "",
                "left": place[0] if place else False,
                "label_y": place[1] if place else 0,
            }
        )
    best = sorted({(s.x, s.y) for s in spots if s.best})
    places = [(_percent(across(x) / 100), up(y)) for x, y in best]
    return {
        "label": "; ".join(spot["title"] for spot in drawn) + ".",
        "height": height,
        "floor": floor,
        "left": _percent(_LEFT / 100),
        "levels": [(up(v), _level(v)) for v in y_levels],
        "ticks": [(_percent(across(v) / 100), _level(v)) for v in x_levels],
        "joined": list(pairwise(places)) if picture.front else [],
        "spots": drawn,
        "across": picture.across,
        "up": picture.up,
    }


_Box = tuple[float, float, float, float]


def _box(x: float, y: float, width: float, height: float) -> _Box:
    return x, y, x + width, y + height


def _free(name: str, x: float, y: float, floor: float, taken: list[_Box]) -> tuple[bool, float] | None:
    """Return whether a name stands to the left of its point, and its height; None where there is no room."""
    wide = len(name) * _LETTER
    for shift in (4.0, -7.0, 15.0, -18.0, 26.0):
        for left in (False, True):
            box = _box(x - 9 - wide if left else x + 9, y + shift - 11, wide, _LINE)
            inside = box[0] >= 0 and box[2] <= _SMALL and box[1] >= 14 and box[3] <= floor + 6
            if inside and not any(_touch(box, other) for other in taken):
                taken.append(box)
                return left, round(y + shift, 1)
    return None


def _touch(a: _Box, b: _Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _round_numbers(most: float, count: int = 4) -> list[float]:
    """Return round numbers from 0 to the first that is not below ``most``.

    Examples
    --------
    >>> _round_numbers(37), _round_numbers(0.2), _round_numbers(0)
    ([0.0, 10.0, 20.0, 30.0, 40.0], [0.0, 0.05, 0.1, 0.15, 0.2], [0.0, 1.0])
    """
    if most <= 0:
        return [0.0, 1.0]
    power = 10.0 ** math.floor(math.log10(most / count))
    step = next(power * m for m in (1, 2, 2.5, 5, 10) if power * m * count >= most * (1 - 1e-12))
    return [round(step * i, 12) for i in range(math.ceil(most / step - 1e-9) + 1)]


def _level(value: float) -> str:
    return number(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:.3g}"


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
