"""Columns as axes: lines that are cut between values or on a grid, and trees that are cut along a hierarchy."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.algorithms.partition.partition import OrderedAxis, PartitionAxis
from duckanon.engine.sql.relations import cast, col, named, table
from duckanon.hierarchy.grids import grid_bounds
from duckanon.plan.publication import has_distance
from duckanon.recoding.relations.column_domain import size

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from duckanon.encoding.dictionaries import Coded
    from duckanon.engine.base import Engine
    from duckanon.hierarchy import Hierarchy
    from duckanon.plan.plan import Plan
    from duckanon.plan.roles import Attribute

    Integers = NDArray[np.int64]


def place_column(plan: Plan, engine: Engine, attribute: Attribute, coded: Coded, hierarchy: Hierarchy) -> OrderedAxis:
    """Return the axis of a quasi-identifier; ``hierarchy`` is the one given, or that was made."""
    import numpy as np

    name, dictionary = attribute.name, coded.dictionary
    ordered = {n.lower() for n in getattr(plan.algorithm, "ordered", ())}
    null = dictionary.null
    weight = plan.search_options.weights.get(name, 1.0)
    measured = has_distance(attribute.type)
    if name in plan.within:
        # Rows are divided by this column before any cut, and it is published unchanged.
        places = np.arange(dictionary.size, dtype=np.int64)
        axis = PartitionAxis(
            dictionary.size, null, places.astype(np.float64), places, inner=True, weight=weight, top=coded.height
        )
        return OrderedAxis(axis, places, _stored(engine, places))
    cut_by_order = plan.bounds != "grid" and name.lower() in ordered
    if plan.output[name] == "lca" and not cut_by_order:
        # Numbers and dates are published as nodes of the hierarchy, too, so classes are cut along it.
        return _tree(engine, coded, null, weight, measured)
    if plan.bounds == "grid" and not plan.algorithm.permutes:
        before = plan.algorithm.divides_as(name)  # type: ignore[attr-defined]
        gridded = measured and before != "tree"
        # A column that was cut on a grid before stays one: new values have no place between its groups.
        bounds = grid_bounds(engine, hierarchy, coded, attribute.type, apart=before == "grid") if gridded else None
        if bounds is not None:
            grid, atom = bounds
            order = np.append(np.argsort(atom, kind="stable"), np.arange(len(atom), dictionary.size))
            atoms = np.append(np.sort(atom), np.zeros(int(null), dtype=np.int32)).astype(np.int64)
            axis = _line(engine, attribute, coded, null, weight, atoms, inner=False)
            axis = replace(axis, numbers=np.maximum.accumulate(axis.numbers[order]))
            places = np.empty(dictionary.size, dtype=np.int64)
            places[order] = np.arange(dictionary.size)
            return OrderedAxis(axis, places, _stored(engine, places), grid)
        return _tree(engine, coded, null, weight)
    given = plan.hierarchies[name] is not None
    coded_as_text = hierarchy.rule is not None and hierarchy.rule.name == "mask"
    by_order = not (given or coded_as_text) and getattr(plan.algorithm, "cuts", True)
    if measured or name.lower() in ordered or by_order:
        axis = _line(engine, attribute, coded, null, weight, np.arange(dictionary.size, dtype=np.int64), inner=False)
        listed = (
            _leaf_order(engine, dictionary.table, hierarchy, dictionary.size, null) if not measured and given else None
        )
        places = np.arange(dictionary.size, dtype=np.int64) if listed is None else listed
        return OrderedAxis(axis, places, _stored(engine, places))
    return _tree(engine, coded, null, weight)


def _stored(engine: Engine, places: Integers) -> str:
    """Create ``(code, place)``."""
    import numpy as np
    import pyarrow as pa

    name = engine.fresh("places")
    codes = np.arange(len(places), dtype=np.int32)
    placed = pa.table({"code": codes, "place": places.astype(np.int32)})
    engine.register(name, placed)
    return name


def _line(
    engine: Engine, attribute: Attribute, coded: Coded, null: bool, weight: float, atoms: Integers, inner: bool
) -> PartitionAxis:
    import numpy as np

    total = coded.dictionary.size
    number = size(col("value"), attribute.type) if has_distance(attribute.type) else None
    numbers = np.arange(total, dtype=np.float64)
    if number is not None:
        query = (
            exp.select(named(cast(number, "DOUBLE"), "v")).from_(table(coded.dictionary.table)).order_by(col("code"))
        )
        values: Any = engine.arrow(query).column(0).to_numpy(zero_copy_only=False).astype(np.float64)
        finite = np.flatnonzero(np.isfinite(values))
        if len(finite):
            # Infinities and NaN are placed at the nearest finite number.
            numbers = np.interp(np.arange(total), finite, values[finite])
    return PartitionAxis(total, null, numbers, atoms, inner=inner, weight=weight, top=coded.height)


def _leaf_order(engine: Engine, values: str, hierarchy: Hierarchy, total: int, null: bool) -> Integers | None:
    """Return the place of each code in the order in which a hierarchy's table lists its leaves; None for a rule."""
    import numpy as np
    import pyarrow.compute as pc

    if hierarchy.levels is None:
        return None
    texts = engine.arrow(exp.select(col("text")).from_(table(values)).order_by(col("code"))).column(0)
    at = pc.index_in(texts, value_set=hierarchy.levels.column(0).combine_chunks()).fill_null(len(hierarchy.levels))
    ranks = at.to_numpy(zero_copy_only=False).astype(np.int64)
    if null:
        ranks[total - 1] = np.iinfo(np.int64).max
    places = np.empty(total, dtype=np.int64)
    places[np.argsort(ranks, kind="stable")] = np.arange(total)
    return places


def _tree(engine: Engine, coded: Coded, null: bool, weight: float, measured: bool = False) -> OrderedAxis:
    """Return a tree whose nodes are runs of places: values are sorted by their path from the top.

    ``measured`` says that the values are numbers, dates or times.
    """
    import numpy as np

    total, height = coded.dictionary.size, coded.height
    names = [f"c{level}" for level in range(height + 1)]
    if coded.arrays is not None:
        levels = coded.arrays[0]
    else:
        levels = engine.arrow(exp.select(*(col(n) for n in names)).from_(table(coded.levels)).order_by(col("code")))
    paths = [levels.column(name).to_numpy().astype(np.int64) for name in names]
    leaves_of = _leaves(engine, coded)
    alone = np.zeros(total, dtype=np.int64)
    if null:
        alone[total - 1] = 1
    order = np.lexsort([np.arange(total), *paths, alone])
    nodes, leaves = [np.arange(total, dtype=np.int64)], [np.ones(total, dtype=np.int64)]
    for level in range(1, height + 1):
        # A node is identified by its path from the top; below the top, NULL is a node of its own.
        keys = [paths[above][order] for above in range(level, height + 1)]
        keys += [alone[order]] if level < height else []
        changes = np.zeros(total, dtype=np.int64)
        for key in keys:
            changes[1:] |= key[1:] != key[:-1]
        groups = np.cumsum(changes)
        nodes.append(groups)
        first = np.flatnonzero(np.diff(groups, prepend=-1))
        leaves.append(leaves_of[level][paths[level][order][first]])
    places = np.empty(total, dtype=np.int64)
    places[order] = np.arange(total)
    own, under = tuple(nodes), tuple(leaves)
    axis = PartitionAxis(
        total, null, np.zeros(total), nodes=own, leaves=under, weight=weight, top=height, measured=measured
    )
    return OrderedAxis(axis, places, _stored(engine, places))


def _leaves(engine: Engine, coded: Coded) -> list[Integers]:
    """Return, level by level, how many leaves of the domain lie under each label's code."""
    import numpy as np

    names = ("level", "code", "leaves")
    if coded.arrays is not None:
        labels = coded.arrays[1]
    else:
        labels = engine.arrow(exp.select(*(col(name) for name in names)).from_(table(coded.labels)))
    level, code, leaves = (labels.column(name).to_numpy().astype(np.int64) for name in names)
    counts = []
    for v in range(coded.height + 1):
        leaves_of_level = np.ones(coded.sizes[v], dtype=np.int64)
        leaves_of_level[code[level == v]] = leaves[level == v]
        counts.append(leaves_of_level)
    return counts
