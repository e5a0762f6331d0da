"""Downcoding: predicates made of published bounds that hold for one person alone (Cohen 2022).

A class discloses bounds for each column. Adding "and the age is the lower bound" to the description of the class
singles a person out if exactly one member has that age. With bounds that are the smallest and largest value of the
class there is always such a member, and with few members it is often only one; with bounds from a grid it is chance.
The same predicate with any other value of the cell in place of the bound is that chance.

A published tuple of points (medians, medoids, means) is itself a predicate: that everything is as published.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from duckanon.assess.attacks.base import Attacker, Case, Finding, attackers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


class Line(Protocol):
    """A column: cell c covers the places from ``low[c]`` to ``high[c]``.

    Those of a cell with gaps are ``members[start[c]:stop[c]]``; ``start[c]`` is -1 where there are no gaps.
    """

    @property
    def low(self) -> Floats:
        """The first place of each cell, -inf where any will do."""

    @property
    def high(self) -> Floats:
        """The last place of each cell."""

    @property
    def start(self) -> Ints:
        """Where the members of a cell begin."""

    @property
    def stop(self) -> Ints:
        """Where they end."""

    @property
    def members(self) -> Floats:
        """The places of cells with gaps."""


@dataclass(frozen=True)
class Singled:
    """How many predicates there were, how many held for one person alone, and how many would by chance.

    ``bounds``, ``bounds_hit`` and ``bounds_chance`` are of predicates with a bound in them; ``tuples`` and
    ``tuples_hit`` of the published tuples as they are.
    """

    bounds: int = 0
    bounds_hit: int = 0
    bounds_chance: float = 0.0
    tuples: int = 0
    tuples_hit: int = 0


def singled_out(lines: Sequence[Line], cells: NDArray[np.int32], points: Floats, weights: Ints) -> Singled:
    """Try the predicates of published tuples on people.

    Parameters
    ----------
    lines : sequence of Line
    cells : array (tuples, columns)
        The published tuples that are tried.
    points : array (people, columns)
        The positions of people, each combination once; ``weights`` counts the people with it.

    Notes
    -----
    Chance is that a place which is taken at random among those in the cell that occur in the table, in place of
    the bound, gives a predicate that holds for one person alone. Cells of one place, and those that stand for
    everything, have no bounds.
    """
    domains = [np.unique(points[:, j]) for j in range(len(lines))]
    # People are selected column by column, the column with the most places first: few are left for the others.
    order = sorted(range(len(lines)), key=lambda j: -len(domains[j]))
    sorted_by = np.argsort(points[:, order[0]], kind="stable")
    leading = points[sorted_by, order[0]]
    hits = count = tuples_hit = 0
    chance = 0.0
    for tuple_cells in cells:
        inside = _members(lines, order, tuple_cells, points, sorted_by, leading)
        tuples_hit += int(weights[inside].sum() == 1)
        for j, line in enumerate(lines):
            allowed = domains[j][_covered(line, tuple_cells[j], domains[j])]
            bounds = _bounds(line, int(tuple_cells[j]))
            if not len(bounds):
                continue
            here, back = np.unique(points[inside, j], return_inverse=True)
            alone = here[np.bincount(back, weights=weights[inside], minlength=len(here)) == 1]
            count += len(bounds)
            hits += int(np.isin(bounds, alone).sum())
            chance += len(bounds) * len(alone) / max(len(allowed), 1)
    return Singled(count, hits, chance, len(cells), tuples_hit)


def _members(
    lines: Sequence[Line],
    order: Sequence[int],
    cell_codes: NDArray[np.int32],
    points: Floats,
    by: Ints,
    leading: Floats,
) -> Ints:
    """Return the people whom a tuple covers."""
    first = order[0]
    line, cell = lines[first], cell_codes[first]
    ends = np.searchsorted(leading, line.low[cell], "left"), np.searchsorted(leading, line.high[cell], "right")
    inside = by[ends[0] : ends[1]]
    inside = inside[_covered(line, cell, points[inside, first])]
    for j in order[1:]:
        inside = inside[_covered(lines[j], cell_codes[j], points[inside, j])]
    return inside


def _covered(line: Line, cell: int, places: Floats) -> NDArray[np.bool_]:
    if line.start[cell] >= 0:
        return np.isin(places, line.members[line.start[cell] : line.stop[cell]])
    inside: NDArray[np.bool_] = (places >= line.low[cell]) & (places <= line.high[cell])
    return inside


def _bounds(line: Line, cell: int) -> Floats:
    """Return what a cell discloses: its two bounds, or all members where it lists them."""
    if line.start[cell] >= 0:
        return line.members[line.start[cell] : line.stop[cell]]
    low, high = line.low[cell], line.high[cell]
    ends = np.array([low, high]) if low < high else np.empty(0)
    return ends[np.isfinite(ends)]


_CLASSES = 2000
_WORK = 200_000_000
_SETTINGS = {
    "tight": "Bounds are the smallest and largest values of each class (bounds='tight'): not for release.",
    "cut": "Bounds come from the cuts between classes (bounds='cut'): they can be values of persons.",
}
_POINTS = ("median", "mode", "medoid")


@attackers.register("downcoding")
class Downcoding(Attacker):
    """Describes each class by its cells, and adds that one column has just the value of a published bound.

    Success is the share of such predicates that hold for exactly one row of the original; the base rate is the same
    with any other value of the cell, taken at random among those that occur in the table. Bounds that are a person's
    value (``bounds="tight"``) give far more than that; those of a grid or of a hierarchy do not.

    A second finding takes the published tuples as they are: points such as medians or medoids may describe one person
    alone. Its base rate is that of tuples whose columns are put together at random. At most 2,000 classes are tried,
    fewer of large tables.

    References
    ----------
    A. Cohen, Attacks on deidentification's defenses, 2022.
    """

    summary: ClassVar[str] = "predicates made of published bounds that hold for one person alone"

    def needs(self, case: Case) -> str | None:
        return None if case.published else "quasi-identifiers"

    def run(self, case: Case) -> list[Finding]:
        import numpy as np

        space = case.space
        lines, everybody = space.axes[: space.quasi], space.everybody
        draw = np.random.default_rng(case.settings.seed)
        view = space.view(range(space.quasi))
        most = max(50, min(_CLASSES, _WORK // max(len(everybody), 1)))
        chosen = np.sort(draw.permutation(len(view.cells))[:most])
        cells = view.cells[chosen]
        points, weights = np.unique(everybody.points[:, : space.quasi], axis=0, return_counts=True)
        predicates = singled_out(lines, cells, points, weights)
        mixed = np.stack([draw.permutation(column) for column in cells.T], axis=1)
        chance = singled_out(lines, mixed, points, weights)
        total = len(view.cells) if len(cells) < len(view.cells) else None
        findings = []
        if predicates.bounds:
            findings.append(
                Finding(
                    attack=self.name,
                    success=predicates.bounds_hit / predicates.bounds,
                    base_rate=predicates.bounds_chance / predicates.bounds,
                    rows=predicates.bounds,
                    text="share of predicates with a published bound that hold for one person alone",
                    sampled_from=None if total is None else round(predicates.bounds * total / len(cells)),
                    remark=" ".join(filter(None, (_settings_note(case, "bounds"), everybody.sample_note))),
                )
            )
        findings.append(
            Finding(
                attack=self.name,
                success=predicates.tuples_hit / predicates.tuples,
                base_rate=chance.tuples_hit / chance.tuples,
                rows=predicates.tuples,
                text="share of published tuples that describe one person alone",
                sampled_from=total,
                remark=" ".join(filter(None, (_settings_note(case, "output"), everybody.sample_note))),
            )
        )
        return findings


def _settings_note(case: Case, what: str) -> str:
    """Return a remark on the settings of the release, where they are known and unsafe."""
    plan: Any = None if case.release is None else case.release.plan
    if plan is None or not plan.algorithm.partitions:
        return ""
    if what == "bounds":
        return _SETTINGS.get(plan.bounds, "")
    kinds = [kind for kind in dict.fromkeys(plan.publication.kinds.values()) if kind in _POINTS]
    return f"Values of persons are published (output={kinds[0]!r})." if kinds else ""


__all__ = ["Line", "Singled", "singled_out"]
