"""Pictures of a report as SVG that stands in the page itself: bars, the sizes of classes, and lines over the runs.

Colours come from the page's style sheet by class, so that a picture follows light, dark and paper.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from duckanon.report.markup import Markup, element, joined
from duckanon.report.sections import number

_WIDE, _HIGH, _EDGE = 240.0, 84.0, 7.0
"""The field of a line, in units of its own, and the room around it."""
_SKEWED = 20
"""Sizes are drawn on a logarithmic axis where the largest is more than this many times the smallest."""


@dataclass(frozen=True)
class Point:
    """A value at a run; ``failed`` marks a run that published nothing."""

    value: float | None
    label: str
    failed: bool = False


def bar(fraction: Any, label: str) -> Markup:
    """Return a bar that is filled up to a fraction between 0 and 1; without a figure it stays empty."""
    filled = _percent(min(max(float(fraction), 0.0), 1.0)) if _is_number(fraction) else None
    return element(
        "svg",
        element("rect", class_="track", width="100%", height="8", rx="4"),
        element("rect", class_="fill", width=filled, height="8", rx="4") if filled not in (None, "0%") else None,
        class_="bar",
        role="img",
        aria_label=label,
    )


def sizes(found: Mapping[str, Any], least: float | None = None, unit: str = "rows", what: str = "Classes") -> Markup:
    """Return the sizes of classes: a line from the smallest to the largest, a box around the middle half.

    Parameters
    ----------
    found : mapping
        min, q25, median, q75 and max.
    least : number, optional
        The size that is promised, drawn as a line.
    unit : str
        What sizes are counted in.
    what : str
        What has the sizes.
    """
    values = [found.get(k) for k in ("min", "q25", "median", "q75", "max")]
    if not all(_is_number(v) and v > 0 for v in values if v is not None) or None in values:
        return Markup("")
    low, q25, median, q75, high = (float(v) for v in values if v is not None)
    start = low if least is None else min(low, float(least))
    scale = _Scale.of(start, high)
    at = scale.at
    parts = [
        *(_tick(at(t), number(int(t))) for t in scale.ticks()),
        element("line", class_="axis", x1="2%", x2="98%", y1="58", y2="58"),
        element("line", class_="whisker", x1=at(low), x2=at(high), y1="32", y2="32"),
        *(element("line", class_="whisker", x1=at(v), x2=at(v), y1="25", y2="39") for v in (low, high)),
        element(
            "rect", class_="box", x=at(q25), width=_percent(scale.share(q75) - scale.share(q25)), y="21", height="22"
        ),
        element("line", class_="median", x1=at(median), x2=at(median), y1="19", y2="45"),
    ]
    if least is not None:
        parts += [
            element("line", class_="least", x1=at(float(least)), x2=at(float(least)), y1="12", y2="58"),
            element("text", f"k = {number(least)}", class_="least-label", x=at(float(least)), y="9", dx="-1"),
        ]
    said = f"{what} have {number(int(low))} to {number(int(high))} {unit}, half of them {number(int(q25))} to "
    return element("svg", *parts, class_="sizes", role="img", aria_label=f"{said}{number(int(q75))}.")


def line(points: Sequence[Point], label: str, beside: Sequence[Point] = ()) -> Markup:
    """Return a line over the runs, the last of them as a dot, and a cross for each run that failed.

    The axis begins at 0, so that a small change looks small.

    Parameters
    ----------
    points : sequence of Point
        Oldest first. A run without a value leaves a gap.
    label : str
        What is shown, for who cannot see it.
    beside : sequence of Point
        A second, paler line on the same scale.
    """
    known = [float(p.value) for p in (*points, *beside) if p.value is not None and _is_number(p.value)]
    if not known:
        return Markup("")
    low, high = min(0.0, *known), max(0.0, *known)
    drawn = [
        element("line", class_="axis", x1="0", x2=_unit(_WIDE), y1=_unit(_HIGH - 1), y2=_unit(_HIGH - 1)),
        *(_run(run, "beside") for run in _runs(_placed(beside, low, high))),
        *(_run(run, "trend") for run in _runs(_placed(points, low, high))),
        *_marks(points, low, high),
    ]
    box = f"0 0 {_unit(_WIDE)} {_unit(_HIGH)}"
    return element("svg", *drawn, class_="line", viewBox=box, role="img", aria_label=label)


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
            found = [10.0**e for e in range(first, last + 1, step)]
        else:
            wide = (self.high - self.low) / 4
            power = 10.0 ** math.floor(math.log10(wide))
            step_of = next(power * m for m in (1, 2, 5, 10) if power * m >= wide)
            whole = max(1.0, step_of)
            found = [whole * i for i in range(math.ceil(self.low / whole), math.floor(self.high / whole) + 1)]
        inside = [t for t in found if self.low <= t <= self.high and t == int(t)]
        return inside or [self.low]


def _tick(at: str, label: str) -> Markup:
    return joined(
        element("line", class_="tick", x1=at, x2=at, y1="58", y2="62"),
        element("text", label, class_="tick-label", x=at, y="74"),
    )


_Place = tuple[float, float] | None


def _placed(points: Sequence[Point], low: float, high: float) -> list[_Place]:
    """Return where each point lies; None where there is none."""
    step = (_WIDE - 2 * _EDGE) / max(len(points) - 1, 1)
    places: list[_Place] = []
    for i, point in enumerate(points):
        if not _is_number(point.value):
            places.append(None)
            continue
        share = 0.0 if high <= low else (float(point.value or 0) - low) / (high - low)
        places.append((_EDGE + i * step, _HIGH - _EDGE - 2 - share * (_HIGH - 2 * _EDGE - 4)))
    return places


def _runs(places: Sequence[_Place]) -> list[list[tuple[float, float]]]:
    """Return the stretches without a gap."""
    found: list[list[tuple[float, float]]] = [[]]
    for place in places:
        if place is None:
            found.append([])
        else:
            found[-1].append(place)
    return [run for run in found if run]


def _run(run: Sequence[tuple[float, float]], kind: str) -> Markup:
    if len(run) == 1:
        (x, y) = run[0]
        return element("circle", class_=f"{kind}-alone", cx=_unit(x), cy=_unit(y), r="2")
    return element("polyline", class_=kind, points=" ".join(f"{_unit(x)},{_unit(y)}" for x, y in run))


def _marks(points: Sequence[Point], low: float, high: float) -> list[Markup]:
    """Return what hovering shows, the last value as a dot, and a cross for each failed run."""
    step = (_WIDE - 2 * _EDGE) / max(len(points) - 1, 1)
    marks = []
    places = _placed(points, low, high)
    last = max((i for i, place in enumerate(places) if place is not None), default=-1)
    for i, (point, place) in enumerate(zip(points, places, strict=True)):
        title = element("title", point.label)
        if point.failed:
            x, y = _EDGE + i * step, _HIGH - 8
            cross = f"M{_unit(x - 3)} {_unit(y - 3)}l6 6m0 -6l-6 6"
            marks.append(element("path", title, class_="failed", d=cross))
        if place is not None:
            kind, radius = ("now", "4") if i == last else ("then", "6")
            marks.append(element("circle", title, class_=kind, cx=_unit(place[0]), cy=_unit(place[1]), r=radius))
    return marks


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _percent(share: float) -> str:
    return f"{round(share * 100, 2):g}%"


def _unit(value: float) -> str:
    return f"{round(value, 2):g}"
