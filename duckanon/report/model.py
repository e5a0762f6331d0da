"""The content of a report, which HTML, Markdown and the terminal render.

A section is declared once and appears in every form. Nothing here is escaped: renderers escape every text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Bar:
    """A bar beside a figure, filled up to a fraction between 0 and 1; without a figure it stays empty."""

    value: Any
    label: str


@dataclass(frozen=True)
class Cell:
    """A cell that is more than a text.

    Attributes
    ----------
    text : str
    aside : str
        A smaller text below it; a terminal leaves it out.
    mark : {"", "good", "warn", "bad"}
        A bad cell is set in bold or in red.
    bar : Bar, optional
        What a page draws beside the text.
    about : str
        An explanation that a page shows where somebody points at the text.
    """

    text: str
    aside: str = ""
    mark: str = ""
    bar: Bar | None = None
    about: str = ""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Lines:
    """Sentences, one after another; ``aside`` are those that explain."""

    lines: Sequence[str]
    aside: bool = False


@dataclass(frozen=True)
class Bullets:
    """A list."""

    items: Sequence[str]


@dataclass(frozen=True)
class Grid:
    """A table; ``right`` are the positions of columns with figures."""

    header: Sequence[str | Cell]
    rows: Sequence[Sequence[str | Cell]]
    right: Sequence[int] = ()
    wide: bool = False

    def drawn(self, position: int) -> bool:
        """Return whether a column has bars."""
        return any(isinstance(row[position], Cell) and row[position].bar for row in self.rows)  # type: ignore[union-attr]


@dataclass(frozen=True)
class Command:
    """A command for a shell."""

    text: str


@dataclass(frozen=True)
class Sizes:
    """A picture of the sizes of classes; the table beside it has the figures.

    Attributes
    ----------
    quantiles : sequence of float
        Smallest, lower quartile, median, upper quartile, largest.
    least : float, optional
        The required size, drawn as a line.
    unit, what : str
        What sizes are counted in, and what has them.
    """

    quantiles: Sequence[float]
    least: float | None = None
    unit: str = "rows"
    what: str = "Classes"


@dataclass(frozen=True)
class Point:
    """A value at a run; ``failed`` marks a run that published nothing."""

    value: float | None
    label: str
    failed: bool = False


@dataclass(frozen=True)
class Trend:
    """One figure over the runs: its title, the value now, the largest, and the points to draw, oldest first.

    ``beside`` is a second, paler line on the same scale.
    """

    title: str
    now: str
    most: str
    points: Sequence[Point]
    beside: Sequence[Point] = ()


@dataclass(frozen=True)
class Trends:
    """Figures over the runs of a job, from the first day to the last."""

    trends: Sequence[Trend]
    first: str
    last: str

    def grid(self) -> Grid:
        """Return the figures as a table, for forms without pictures."""
        return Grid(("", "Now", "Highest"), [(t.title, t.now, t.most) for t in self.trends], right=(1, 2))


@dataclass(frozen=True)
class Drawing:
    """An SVG made by this package, with a sentence about it; only pages show it."""

    svg: str
    caption: str


@dataclass(frozen=True)
class Histogram:
    """A picture of how many there are of each size; the table beside it has the figures.

    Attributes
    ----------
    bars : sequence of (str, float)
        A label and a height for each bar.
    across, up : str
        What the two axes show, with their units.
    """

    bars: Sequence[tuple[str, float]]
    across: str
    up: str


@dataclass(frozen=True)
class Spot:
    """A point of a scatter plot: its place, its name, and whether it is one of the best."""

    x: float
    y: float
    name: str
    best: bool = False


@dataclass(frozen=True)
class Scatter:
    """A picture of points on two axes; the table beside it has the figures.

    Attributes
    ----------
    spots : sequence of Spot
    across, up : str
        What the two axes show, with their units. Lower is better on both.
    front : bool
        Whether the best points are joined by a line.
    """

    spots: Sequence[Spot]
    across: str
    up: str
    front: bool = False


Block = Lines | Bullets | Grid | Command | Sizes | Histogram | Scatter | Trends | Drawing


@dataclass(frozen=True)
class Section:
    """A heading and the blocks below it.

    Attributes
    ----------
    title : str
    blocks : sequence
        Below the heading, in order.
    name : str
        An identifier, for renderers that draw this section differently.
    half : bool
        Whether it takes half of a wide page.
    warns : bool
    brief : bool
        Whether the short view on a terminal has it, too; explanations are left to the files.
    """

    title: str
    blocks: Sequence[Block]
    name: str = ""
    half: bool = False
    warns: bool = False
    brief: bool = True


@dataclass(frozen=True)
class Verdict:
    """The conclusion of a report: good, a warning or bad."""

    kind: str
    title: str
    text: str
    sign: str = ""

    @property
    def shown_sign(self) -> str:
        """Return the sign before it."""
        return self.sign or {"good": "✓", "warn": "!", "bad": "✕"}[self.kind]


@dataclass(frozen=True)
class Tile:
    """A key figure: its name, its value and a remark."""

    name: str
    value: str
    more: str


@dataclass(frozen=True)
class Report:
    """A whole report.

    Attributes
    ----------
    title, kind : str
        The subject, and the kind of report.
    sections : sequence of Section
    facts : sequence of str
        A line below the title.
    stamp : str
        A warning across the top.
    verdict, tiles
        The conclusion, and the key figures.
    footer : str
    """

    title: str
    kind: str
    sections: Sequence[Section]
    facts: Sequence[str] = ()
    stamp: str = ""
    verdict: Verdict | None = None
    tiles: Sequence[Tile] = ()
    footer: str = ""
