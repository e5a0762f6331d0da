"""From the regions of a partition to its published columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from sqlglot import exp

from duckanon.encoding.dictionaries import enumerated, enumerated_text, published_type
from duckanon.engine.sql.aggregates import AGGREGATES, not_positive
from duckanon.engine.sql.axes import BoxColumn, axis_query, choose, equal, nodes_query, positions_query
from duckanon.engine.sql.boxes import (
    RUN,
    cells_query,
    class_lists,
    covers_query,
    listed_values,
    midpoint,
    regions_query,
    run_lists,
    used_levels,
)
from duckanon.engine.sql.recode import Cell
from duckanon.engine.sql.relations import call, col, conjunction, named, subquery, table, text
from duckanon.errors import DataError, UnsupportedError
from duckanon.hierarchy.rules import ColumnType
from duckanon.plan.publication import has_distance
from duckanon.recoding.few_cells import name_classes
from duckanon.recoding.leaf_ranks import leaf_ranks, node_runs
from duckanon.recoding.relations.column_domain import size

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.encoding.dictionaries import Coded, Dictionary, Frequency
    from duckanon.engine.base import Engine
    from duckanon.engine.sql.relations import TableName
    from duckanon.hierarchy import Levels
    from duckanon.plan.plan import Plan
    from duckanon.plan.roles import Attribute
    from duckanon.recoding.few_cells import NamedClasses

MOST_LISTED = 20_000_000
"""Most values that the sets of a column may list, all different regions together."""


@dataclass(frozen=True)
class Boxes:
    """What a search leaves: classes that are regions.

    ``table(class_id, n, units, kept, a_0, b_0, v_0, ...)`` has every class with the region of each quasi-identifier:
    the codes of its first and last value and the level of the node over them, -1 for a run. NULL mixed with others is
    the top, with NULL as the last value. ``places`` are tables ``(code, place)``, the order of each axis; ``grids``
    those of ``grid_bounds``, where the axis is a line that is cut on a grid. ``members(class_id, c_0, ..., n)`` counts
    the rows of every class by the codes of their values. For the output "medoid" the table has ``m_j``, too: the code
    of that row which stands for its class. ``kinds`` says what each axis is: "grid", "line" or "tree". ``few`` is the
    table once more, where classes are few.
    """

    table: str
    places: tuple[str, ...]
    grids: tuple[str | None, ...]
    members: TableName
    kinds: tuple[str, ...] = ()
    few: pa.Table | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class Published:
    """What is published of the classes.

    ``table(class_id, ec, q_0, [q_0b,] q_1, ...)`` has one row for each class that is kept. ``ec`` is the class as a
    reader sees it: the smallest class_id of those that are published alike, and ``merged`` says whether there are any.
    ``inner`` lists (published column, column of the table), quasi-identifiers in their order. Texts are enumerations
    that hold published texts and no others.
    """

    table: str
    inner: tuple[tuple[str, str], ...]
    axes: tuple[Axis, ...]
    cells: list[Cell]
    merged: bool

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the published columns that make the classes."""
        return tuple(name for name, _ in self.inner)


def publish_boxes(plan: Plan, engine: Engine, counted: Frequency, bound: Sequence[Levels], boxes: Boxes) -> Published:
    """Make what is published of every class that is kept, see ``Published``."""
    inner: list[tuple[str, str]] = []
    cells = []
    kinds = [kind for kind in plan.output.values() if kind != "medoid"]
    several = sum(_by_class(kind, plan.bounds) for kind in kinds) > 1
    members = _stored(engine, boxes.members) if several else boxes.members
    quasi = list(zip(plan.roles.quasi_identifiers, counted.coded, bound, strict=True))
    bare, known = _axes(plan, engine, quasi, boxes), None
    if boxes.few is not None:
        known = name_classes(engine, [axis.column for axis in bare], counted.coded, boxes.few)
    axes = with_regions(engine, bare, boxes.table, known)
    classes = table(known.table if known is not None else boxes.table, "b")
    query = exp.select(col("class_id", "b"), named(col("class_id", "b"), "ec")).from_(classes, copy=False)
    for j, (axis, (attribute, coded, levels)) in enumerate(zip(axes, quasi, strict=True)):
        cells.append(_cell(attribute, coded, levels))
        alias = f"s_{j}"
        parts = (f"q_{j}", f"q_{j}b") if axis.column.output == "bounds" else (f"q_{j}",)
        inner += zip(plan.published_as[attribute.name], parts, strict=True)
        if known is not None and j in known.names:
            own = enumerated_text(engine, classes.copy(), col(f"q_{j}", "b"), known.names[j])
            query = query.select(named(own, f"q_{j}"), copy=False)
            continue
        by_class = _by_class(axis.column.output, axis.column.bounds)
        shown = _shown_by_class(axis, boxes.table, members) if by_class else _shown(axis)
        on = equal(col("class_id", alias), col("class_id", "b")) if by_class else axis.column.on(alias, j, "b")
        source = table(shown, alias) if isinstance(shown, str) else subquery(shown, alias)
        query = query.join(source, on=on, copy=False)
        sources = ("q", "qb")[: len(parts)]
        query = query.select(*(named(col(c, alias), part) for c, part in zip(sources, parts, strict=True)), copy=False)
    name = engine.fresh("published")
    engine.create(name, query.where(col("kept", "b"), copy=False))
    if several:
        engine.drop(members)
    name, merged = _merged(engine, name, [part for _, part in inner])
    return Published(name, tuple(inner), axes, cells, merged)


def _cell(attribute: Attribute, coded: Coded, levels: Levels) -> Cell:
    """Return a quasi-identifier with its values; regions stand on no level."""
    own = coded.dictionary
    tables = (own.table, coded.levels, coded.labels)
    return Cell(attribute.name, own.expression, *tables, RUN, own.size, False, False, levels.top)


@dataclass
class Axis:
    """A column with the regions that its published classes have.

    ``leaves`` are those that its hierarchy lists, if it does. There are ``total`` regions. ``levels`` are the levels
    between the values and the top on which some regions are nodes.
    """

    engine: Engine
    column: BoxColumn
    position: int
    place: str
    leaves: pa.Table | None
    regions: str = ""
    total: int = 0
    levels: tuple[int, ...] = ()
    has_runs: bool = False

    def with_regions(self, boxes: str, used: set[int], later: bool = False) -> Axis:
        """Return the axis with the regions of the classes that are kept in a table; ``used`` are their levels.

        That table is made ``later`` where nobody may ask for it.
        """
        engine, column = self.engine, self.column
        by_lowest = column.output == "lca" and RUN in used
        if by_lowest:
            used |= set(range(1, column.height))
        levels = tuple(sorted(v for v in used if 0 < v < column.height))
        found = replace(self, regions=engine.fresh("regions"), levels=levels, has_runs=RUN in used)

        def make() -> None:
            nodes = found.nodes if column.lists or column.output == "midpoint" else None
            positions = found.positions if by_lowest else None
            query = regions_query(column, boxes, self.position, found.has_runs, levels, nodes, positions)
            found.total = engine.create(found.regions, query)

        if later:
            engine.later(found.regions, make)
        else:
            make()
        return found

    @cached_property
    def nodes(self) -> str | None:
        """The table of ``nodes_query``; None where no region is named after a node."""
        levels = (*self.levels, self.column.height) if self.column.lists else self.levels
        if not levels:
            return None
        name = self.engine.fresh("nodes")
        self.engine.create(name, nodes_query(self.column, levels))
        return name

    @cached_property
    def positions(self) -> str:
        """The table of ``positions_query``."""
        ranks = None
        if self.leaves is not None:
            ranks = leaf_ranks(self.engine, self.column, self.place, self.leaves)
        name, runs = self.engine.fresh("positions"), node_runs(self.engine, self.column)
        self.engine.create(name, positions_query(self.column, ranks, runs))
        self.engine.unregister(runs)
        return name

    @cached_property
    def cells(self) -> str:
        """The table of ``cells_query``."""
        name = self.engine.fresh("regions")
        sizes = [size(col(c, "r"), self.column.type) for c in ("low", "high")]
        bounds = [s for s in sizes if s is not None] or None
        self.engine.create(name, cells_query(self.column, self.regions, self.nodes, self.positions, bounds))
        return name

    def covers(self) -> exp.Query:
        """Return ``(cell, code)``: the values that each region can stand for."""
        return covers_query(self.column, self.regions, self.levels)


def _family(type_name: str) -> str:
    if not has_distance(type_name):
        return "other"
    kind = ColumnType.parse(type_name)
    return "time" if kind.family == "other" else kind.family


def _scale(type_name: str) -> int | None:
    """Return the decimal places of a type if all its digits and those of its unit fit into 38."""
    digits = [int(d) for d in re.findall(r"\d+", type_name)] if type_name.upper().startswith("DECIMAL") else []
    return digits[1] if len(digits) == 2 and sum(digits) < 38 else None


def _axes(plan: Plan, engine: Engine, quasi: Sequence[tuple[Attribute, Coded, Levels]], boxes: Boxes) -> list[Axis]:
    """Create the axes of the quasi-identifiers, and say where they end."""
    axes = []
    for j, (attribute, coded, levels) in enumerate(quasi):
        last, last_code, null_code = _ends(engine, coded.dictionary, boxes.places[j])
        column = BoxColumn(
            name=attribute.name,
            type=published_type(attribute.type),
            family=_family(attribute.type),
            output=plan.output[attribute.name],
            bounds=plan.bounds,
            values=coded.dictionary.table,
            levels=coded.levels,
            labels=coded.labels,
            size=coded.dictionary.size,
            height=coded.height,
            leaves=coded.domain_size,
            top=levels.top,
            masked=coded.masked,
            axis=engine.fresh("axis"),
            grid=boxes.grids[j],
            last=last,
            last_code=last_code,
            null_code=null_code,
            scale=_scale(attribute.type),
        )
        engine.later(column.axis, partial(_make_axis, engine, column, boxes.places[j], attribute.type))
        hierarchy = plan.hierarchies[attribute.name]
        leaves = hierarchy.levels if hierarchy is not None else None
        axes.append(Axis(engine, column, j, boxes.places[j], leaves))
    return axes


def _make_axis(engine: Engine, column: BoxColumn, place: str, type_name: str) -> None:
    engine.create(column.axis, axis_query(column, place, size(col("value", "v"), type_name)))


def _ends(engine: Engine, own: Dictionary, place: str) -> tuple[int, int, int | None]:
    """Return ``last``, ``last_code`` and ``null_code`` of an axis: places count from 0, and NULL is on the last."""
    last = max(own.size - 1 - own.null, 0)
    if not own.null:
        return last, 0, None
    (last_code,) = engine.row(exp.select(col("code")).from_(table(place), copy=False).where(equal(col("place"), last)))
    return last, int(last_code), own.size - 1


def with_regions(
    engine: Engine, axes: Sequence[Axis], boxes: str, known: NamedClasses | None = None
) -> tuple[Axis, ...]:
    """Return axes with the regions of the classes that are kept in a table; ``known`` is what was found in memory."""
    if known is not None:
        pairs = zip(axes, known.used, strict=True)
        return tuple(axis.with_regions(boxes, own, axis.position in known.names) for axis, own in pairs)
    used = engine.row(used_levels(boxes, [axis.column.height for axis in axes]))
    levels = [{RUN + at for at, bit in enumerate(bits or "") if bit == "1"} for bits in used]
    return tuple(axis.with_regions(boxes, own) for axis, own in zip(axes, levels, strict=True))


# What is published of a region, or of a class


def _by_class(output: str, bounds: str) -> bool:
    """Say whether what is published depends on the members of a class, and not on its region alone."""
    return output in AGGREGATES or (output, bounds) == ("set", "tight")


def _stored(engine: Engine, members: TableName) -> str:
    """Return the members as a table: they may be a view, which is too dear to look at twice."""
    name = engine.fresh("members")
    engine.create(name, exp.select("*").from_(table(members), copy=False))
    return name


def _shown_by_class(axis: Axis, boxes: str, members: TableName) -> exp.Query | str:
    """Return ``(class_id, q)``, a table or a query of one."""
    engine, column = axis.engine, axis.column
    if column.output == "geometric_mean":
        _require_positive(axis)
    name = engine.fresh("shown")
    query = AGGREGATES.get(column.output, class_lists)
    engine.create(name, query(column, axis.position, boxes, members))
    texts = column.output == "set" or (column.type == "VARCHAR" and column.output != "proportional")
    return enumerated(engine, table(name, "t"), [col("class_id")], col("q")) if texts else name


def _require_positive(axis: Axis) -> None:
    (found,) = axis.engine.row(not_positive(axis.column))
    if found:
        raise DataError(
            f"output='geometric_mean' needs numbers above 0, and {axis.column.name!r} has others. Use output='mean' "
            "or output='median'."
        )


def _shown(axis: Axis) -> exp.Query | str:
    """Return ``(key_0, ..., q[, qb])``, a table or a query of one."""
    engine, column = axis.engine, axis.column
    keys = column.keys("r")
    query = exp.select(*keys).from_(table(axis.regions, "r"), copy=False)
    if column.output in ("bounds", "struct", "midpoint"):
        return query.select(*_measured(column), copy=False)
    if column.type != "VARCHAR" and _as_it_is(axis):
        return query.select(named(col("value", "r"), "q"), copy=False)
    if column.output == "set":
        _requireshort(axis)
        lists = subquery(run_lists(column, axis.regions), "l")
        on = conjunction([equal(a, b) for a, b in zip(column.keys("l"), keys, strict=True)])
        own = [(equal(col("w", "r"), 0), col("cell", "r")), (col("mixed", "r"), text(column.top))]
        found = choose(*own, otherwise=exp.func("COALESCE", col("listed", "l"), col("listed", "r")))
        name = engine.fresh("shown")
        engine.create(name, query.select(named(found, "q")).join(lists, on=on, join_type="left"))
        return enumerated(engine, table(name, "t"), column.keys(), col("q"))
    most = axis.total if column.null_code is None else None
    return enumerated(engine, table(axis.regions, "t"), column.keys(), col("cell"), most)


def _requireshort(axis: Axis) -> None:
    (total,) = axis.engine.row(listed_values(axis.column, axis.regions))
    if total > MOST_LISTED:
        raise UnsupportedError(
            f"output='set' of {axis.column.name!r} would list {int(total)} values, more than {MOST_LISTED}: its "
            "regions are too wide for that. Use output='interval', or a coarser column."
        )


def _measured(column: BoxColumn) -> list[exp.Expr]:
    if column.output == "midpoint":
        return [named(midpoint(column), "q")]
    if column.output == "bounds":
        return [named(col("low", "r"), "q"), named(col("high", "r"), "qb")]
    pairs = [exp.PropertyEQ(this=text(key), expression=col(c, "r")) for key, c in (("lo", "low"), ("hi", "high"))]
    return [named(exp.Struct(expressions=pairs), "q")]


def _as_it_is(axis: Axis) -> bool:
    """Say whether every region is one value, so that the column keeps its type."""
    (every,) = axis.engine.row(exp.select(call("bool_and", equal(col("w"), 0))).from_(table(axis.regions), copy=False))
    return bool(every)


def _merged(engine: Engine, name: str, parts: Sequence[str]) -> tuple[str, bool]:
    """Give classes that are published alike one number; hardly ever are there any."""
    # Equal values have equal hashes: as many hashes as classes, and no two classes are alike.
    hashes = call("hash", *(col(part) for part in parts))
    query = exp.select(exp.Count(this=exp.Star()), call("count", exp.Distinct(expressions=[hashes])))
    classes, different = engine.row(query.from_(table(name)))
    if classes == different:
        return name, False
    first = exp.Window(this=exp.Min(this=col("class_id")), partition_by=[col(part) for part in parts])
    found = engine.fresh("published")
    engine.create(
        found, exp.select(col("class_id"), named(first, "ec"), *(col(p) for p in parts)).from_(table(name), copy=False)
    )
    engine.drop(name)
    alike = exp.NEQ(this=col("ec"), expression=col("class_id"))
    (several,) = engine.row(
        exp.select(exp.Count(this=exp.Star())).from_(table(found), copy=False).where(alike, copy=False)
    )
    return found, several > 0


__all__ = ["Axis", "Boxes", "Published", "publish_boxes", "with_regions"]
