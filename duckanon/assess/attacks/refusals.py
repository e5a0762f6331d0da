"""Which finer classes an algorithm has refused: what an attacker knows who knows the algorithm and everybody's values.

Only refusals that the sizes of classes do not explain are listed: the promise about the sensitive column must have been
broken by them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlglot import exp

from duckanon.assess.attacks.minimality_search import Members
from duckanon.engine.sql.relations import cast, col, named, qualified, same, subquery, table
from duckanon.hierarchy.rules import ColumnType
from duckanon.recoding.coded_rows import CODE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from duckanon.release.release import Release

    Ints = NDArray[np.int64]

_CUTS = 12
"""Cuts of one class that are looked at: of all that its members allow, those nearest to the middle."""


def level_classes(release: Release, sensitive: str) -> tuple[list[Members], Ints]:
    """Return the classes of a node with the nodes one step below that sizes alone allow, and the values' totals."""
    cells: Any = release.recoder.cells  # type: ignore[union-attr]
    query = exp.select().from_(subquery(release.plan.relation.query, "s"))
    lowest = release.plan.search_options.minimum
    steps = [j for j, cell in enumerate(cells) if cell.level > lowest.get(cell.name, 0)]
    for j, cell in enumerate(cells):
        query = _coded(query, j, cell.values, cell.levels, qualified(cell.expression, "s"))
        query = query.select(named(col(f"c{cell.level}", f"k_{j}"), f"g_{j}"))
    for j in steps:
        query = query.select(named(col(f"c{cells[j].level - 1}", f"k_{j}"), f"f_{j}"))
    found = release.engine.arrow(query.select(named(_value(release, sensitive, "s"), "v")))
    values, totals = _codes(found.column("v"))
    classes = _numbered([_ints(found, f"g_{j}") for j in range(len(cells))])
    least = _least(release)
    parts = []
    for j in steps:
        part = _numbered([classes, _ints(found, f"f_{j}")])
        # A node with a class too small was refused for that alone.
        if np.bincount(part).min() >= least:
            parts.append(part)
    return _split(classes, values, np.stack(parts, axis=1) if parts else np.zeros((len(values), 0), int)), totals


def cut_classes(release: Release, sensitive: str, most: int, seed: int) -> tuple[list[Members], Ints, int]:
    """Return some classes of a division with the cuts that sizes alone allow, the values' totals, and all classes.

    Cuts through columns of numbers, dates and times are listed; those along a hierarchy of other columns are not.
    """
    recoder: Any = release.recoder
    plan, cells = release.plan, recoder.cells
    # Divided rows have the codes of their values.
    kept: list[tuple[str, exp.Expr]] = [(cell.name, col(f"{CODE}{j}")) for j, cell in enumerate(cells)]
    sensitive_column = next(a for a in plan.roles.attributes if a.name == sensitive)
    kept.append((sensitive, plan.expression(sensitive_column)))
    rows = recoder.rows(kept)
    rows.set("order", None)
    query = exp.select().from_(subquery(rows, "r"))
    labels = [inner for _, inner in recoder.shown]
    for inner in labels:
        query = query.select(named(cast(col(inner, "r"), "VARCHAR"), inner))
    types = {a.name: a.type for a in plan.roles.quasi_identifiers}
    lines = [j for j, c in enumerate(cells) if ColumnType.parse(types[c.name]).kind != "category"]
    level = 1 if plan.bounds == "grid" else 0
    for j in lines:
        for alias, other in ((f"v_{j}", cells[j].values), (f"k_{j}", cells[j].levels)):
            query = query.join(table(other, alias), on=exp.EQ(this=col("code", alias), expression=col(f"p_{j}", "r")))
        missing = exp.Is(this=col("value", f"v_{j}"), expression=exp.null())
        query = query.select(named(col(f"p_{j}", "r"), f"o_{j}"), named(col(f"c{level}", f"k_{j}"), f"a_{j}"))
        query = query.select(named(missing, f"n_{j}"))
    value = named(cast(col(f"p_{len(cells)}", "r"), "VARCHAR"), "v")
    found = release.engine.arrow(query.select(value))
    values, totals = _codes(found.column("v"))
    classes = _numbered([_codes(found.column(inner))[0] for inner in labels])
    total = int(classes.max()) + 1 if len(classes) else 0
    chosen = np.sort(np.random.default_rng(seed).permutation(total)[:most])
    order = np.argsort(classes, kind="stable")
    starts = np.searchsorted(classes[order], np.arange(total + 1))
    axes = [(_ints(found, f"o_{j}"), _ints(found, f"a_{j}"), found.column(f"n_{j}").to_numpy()) for j in lines]
    least = _least(release)
    made = []
    for c in chosen:
        own = order[starts[c] : starts[c + 1]]
        cuts = [cut for place, atom, null in axes if not null[own].any() for cut in _cuts(place[own], atom[own], least)]
        cuts.sort(key=lambda cut: abs(2 * int(cut.sum()) - len(own)))
        parts = np.stack(cuts[:_CUTS], axis=1) if cuts else np.zeros((len(own), 0), dtype=np.int64)
        made.append(Members(values[own], parts))
    return made, totals, total


def _cuts(place: Ints, atom: Ints, least: int) -> list[Ints]:
    """Return on which side of each cut between groups of values people are, where both sides are large enough."""
    first = np.full(int(atom.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, atom, place)
    at = first[atom]
    sides = [(at > start).astype(np.int64) for start in np.unique(at)[:-1]]
    return [side for side in sides if least <= side.sum() <= len(side) - least]


def _least(release: Release) -> int:
    return max(m.traits.min_class_size for m in release.plan.models)


def _coded(query: exp.Select, j: int, values: str, levels: str, value: exp.Expr) -> exp.Select:
    """Join the dictionary of a column and the codes of its values on every level."""
    query = query.join(table(values, f"v_{j}"), on=same(value, col("value", f"v_{j}")))
    on = exp.EQ(this=col("code", f"k_{j}"), expression=col("code", f"v_{j}"))
    return query.join(table(levels, f"k_{j}"), on=on)


def _value(release: Release, sensitive: str, alias: str) -> exp.Expr:
    attribute = next(a for a in release.plan.roles.attributes if a.name == sensitive)
    return cast(qualified(release.plan.expression(attribute), alias), "VARCHAR")


def _ints(found: Any, name: str) -> Ints:
    return np.asarray(found.column(name).to_numpy(), dtype=np.int64)


def _codes(column: Any) -> tuple[Ints, Ints]:
    """Return the values of a column as numbers, NULL being one, and how often each occurs."""
    coded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    if hasattr(coded, "chunks"):
        coded = coded.unify_dictionaries().combine_chunks()
    codes = np.asarray(coded.indices.to_numpy(), dtype=np.int64)
    return codes, np.bincount(codes, minlength=len(coded.dictionary)).astype(np.int64)


def _numbered(columns: Sequence[Ints]) -> Ints:
    """Return a number for each combination of numbers."""
    _, found = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    return np.asarray(found.reshape(-1), dtype=np.int64)


def _split(classes: Ints, values: Ints, parts: Ints) -> list[Members]:
    order = np.argsort(classes, kind="stable")
    starts = np.searchsorted(classes[order], np.arange(int(classes.max(initial=-1)) + 2))
    made = []
    for first, after in pairwise(starts):
        own = order[first:after]
        local = np.zeros((len(own), parts.shape[1]), dtype=np.int64)
        for c in range(parts.shape[1]):
            local[:, c] = np.unique(parts[own, c], return_inverse=True)[1]
        made.append(Members(values[own], local))
    return made


__all__ = ["cut_classes", "level_classes"]
