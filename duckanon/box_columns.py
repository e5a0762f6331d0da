"""From the regions of a partition to its published columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from sqlglot import exp

from duckanon.encode import published_type
from duckanon.errors import UnsupportedError
from duckanon.facts import size
from duckanon.hierarchy.rules import ColumnType
from duckanon.leaf_ranks import leaf_ranks
from duckanon.outputs import has_distance
from duckanon.sqlgen.axes import (
    BoxColumn,
    axis_query,
    choose,
    equal,
    is_null,
    nodes_query,
    positions_query,
    present,
)
from duckanon.sqlgen.boxes import (
    RUN,
    cells_query,
    class_lists,
    class_means,
    covers_query,
    keys_query,
    listed_values,
    midpoint,
    regions_query,
    run_lists,
)
from duckanon.sqlgen.recode import Cell
from duckanon.sqlgen.relations import call, col, conjunction, named, subquery, table, text

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.encode import Coded, Frequency
    from duckanon.engine.base import Engine
    from duckanon.hierarchy import Levels
    from duckanon.plan import Plan
    from duckanon.roles import Attribute

MANY_TEXTS = 1_000_000
"""Most texts of a column that are enumerated, where a file then has only those that its rows use."""
ENUM_LIMIT = 50_000
"""Beyond this many texts in a column, an enumeration costs more to look up in than its short codes save in the sort."""

MOST_LISTED = 20_000_000
"""Most values that the sets of a column may list, all different regions together."""


@dataclass(frozen=True)
class Boxes:
    """What a search leaves: classes that are regions.

    ``table(class_id, n, units, kept, a_0, b_0, v_0, ...)`` has every class with the region of each quasi-identifier:
    the codes of its first and last value and the level of the node over them, -1 for a run. NULL mixed with others is
    the top, with NULL as the last value. ``places`` are tables ``(code, place)``, the order of each axis; ``grids``
    those of ``grid_bounds``, where the axis is a line that is cut on a grid. ``members(class_id, c_0, ..., n)`` counts
    the rows of every class by the codes of their values.
    """

    table: str
    places: tuple[str, ...]
    grids: tuple[str | None, ...]
    members: str


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
    axes, cells = [], []
    query = exp.select(col("class_id", "b"), named(col("class_id", "b"), "ec")).from_(table(boxes.table, "b"))
    several = sum(_by_class(plan.output[a.name], plan.bounds) for a in plan.roles.quasi_identifiers) > 1
    members = _stored(engine, boxes.members) if several else boxes.members
    quasi = zip(plan.roles.quasi_identifiers, counted.coded, bound, strict=True)
    for j, (attribute, coded, levels) in enumerate(quasi):
        axis = Axis.of(plan, engine, attribute, coded, levels, boxes, j)
        axes.append(axis)
        cells.append(_cell(attribute, coded, levels))
        alias = f"s_{j}"
        parts = (f"q_{j}", f"q_{j}b") if axis.column.output == "bounds" else (f"q_{j}",)
        inner += zip(plan.published_as[attribute.name], parts, strict=True)
        by_class = _by_class(axis.column.output, axis.column.bounds)
        shown = _shown_by_class(axis, boxes.table, members) if by_class else _shown(axis)
        on = equal(col("class_id", alias), col("class_id", "b")) if by_class else axis.column.on(alias, j, "b")
        query = query.join(table(shown, alias), on=on, copy=False)
        sources = ("q", "qb")[: len(parts)]
        query = query.select(*(named(col(c, alias), part) for c, part in zip(sources, parts, strict=True)), copy=False)
    name = engine.fresh("published")
    engine.create(name, query.where(col("kept", "b"), copy=False))
    if several:
        engine.drop(members)
    name, merged = _merged(engine, name, [part for _, part in inner])
    return Published(name, tuple(inner), tuple(axes), cells, merged)


def _cell(attribute: Attribute, coded: Coded, levels: Levels) -> Cell:
    """Return a quasi-identifier with its values; regions stand on no level."""
    own = coded.dictionary
    tables = (own.table, coded.levels, coded.labels)
    return Cell(attribute.name, own.expression, *tables, RUN, own.size, False, False, levels.top)


@dataclass(frozen=True)
class Axis:
    """A column with the regions that its published classes have.

    ``leaves`` are those that its hierarchy lists, if it does. ``levels`` are the levels between the values and the top
    on which some regions are nodes, ``nodes`` those nodes.
    """

    engine: Engine
    column: BoxColumn
    position: int
    place: str
    leaves: pa.Table | None
    regions: str = ""
    levels: tuple[int, ...] = ()
    nodes: str | None = None
    has_runs: bool = False

    @classmethod
    def of(
        cls, plan: Plan, engine: Engine, attribute: Attribute, coded: Coded, levels: Levels, boxes: Boxes, position: int
    ) -> Axis:
        """Return the axis of a quasi-identifier, with the regions that classes have."""
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
            grid=boxes.grids[position],
            scale=_scale(attribute.type),
        )
        place = boxes.places[position]
        column = _with_axis(engine, column, place, attribute.type)
        hierarchy = plan.hierarchies[attribute.name]
        leaves = hierarchy.levels if hierarchy is not None else None
        return cls(engine, column, position, place, leaves).with_regions(boxes.table)

    def with_regions(self, boxes: str) -> Axis:
        """Return the axis with the regions of the classes that are kept in a table."""
        engine, column = self.engine, self.column
        keys, regions = engine.fresh("keys"), engine.fresh("regions")
        engine.create(keys, keys_query(boxes, self.position))
        used = {int(v) for (v,) in engine.rows(exp.select(col("v")).distinct().from_(table(keys)))}
        by_lowest = column.output == "lca" and RUN in used
        if by_lowest:
            used |= set(range(1, column.height))
        levels = tuple(sorted(v for v in used if 0 < v < column.height))
        lists = column.output == "set" and not column.tight
        wanted = (*levels, column.height) if lists else levels
        nodes = engine.fresh("nodes") if wanted else None
        if nodes is not None:
            engine.create(nodes, nodes_query(column, wanted, lists))
        positions = self.positions if by_lowest else None
        engine.create(regions, regions_query(column, keys, nodes, positions))
        engine.drop(keys)
        return replace(self, regions=regions, levels=levels, nodes=nodes, has_runs=RUN in used)

    @cached_property
    def positions(self) -> str:
        """The table of ``positions_query``."""
        ranks = None
        if self.leaves is not None:
            ranks = leaf_ranks(self.engine, self.column, self.place, self.leaves)
        name = self.engine.fresh("positions")
        self.engine.create(name, positions_query(self.column, ranks))
        return name

    @cached_property
    def cells(self) -> str:
        """The table of ``cells_query``."""
        name = self.engine.fresh("regions")
        self.engine.create(name, cells_query(self.column, self.regions, self.nodes, self.positions))
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


def _with_axis(engine: Engine, column: BoxColumn, place: str, type_name: str) -> BoxColumn:
    """Create the axis of a column, and say where it ends."""
    column = replace(column, axis=engine.fresh("axis"))
    engine.create(column.axis, axis_query(column, place, size(col("value", "v"), type_name)))
    value = present(col("value"))
    at = choose((value, col("place")))
    query = exp.select(
        call("min", at),
        call("max", at.copy()),
        call("arg_max", choose((value, col("code"))), at.copy()),
        call("max", choose((is_null(col("value")), col("code")))),
    )
    first, last, last_code, null_code = engine.row(query.from_(table(column.axis)))
    missing = None if null_code is None else int(null_code)
    return replace(column, first=int(first or 0), last=int(last or 0), last_code=int(last_code or 0), null_code=missing)


# What is published of a region, or of a class


def _by_class(output: str, bounds: str) -> bool:
    """Say whether what is published depends on the members of a class, and not on its region alone."""
    return output == "mean" or (output, bounds) == ("set", "tight")


def _stored(engine: Engine, members: str) -> str:
    """Return the members as a table: they may be a view, which is too dear to look at twice."""
    name = engine.fresh("members")
    engine.create(name, exp.select("*").from_(table(members)))
    return name


def _shown_by_class(axis: Axis, boxes: str, members: str) -> str:
    """Create ``(class_id, q)``."""
    name = axis.engine.fresh("shown")
    if axis.column.output == "mean":
        axis.engine.create(name, class_means(axis.column, axis.position, members))
        return name
    axis.engine.create(name, class_lists(axis.column, axis.position, boxes, members))
    return _enumerated(axis.engine, table(name, "t"), [col("class_id")], col("q"))


def _shown(axis: Axis) -> str:
    """Create ``(key_0, ..., q[, qb])``."""
    engine, column = axis.engine, axis.column
    name = engine.fresh("shown")
    keys = column.keys("r")
    query = exp.select(*keys).from_(table(axis.regions, "r"))
    if column.output in ("bounds", "struct", "midpoint"):
        engine.create(name, query.select(*_measured(column)))
        return name
    if column.type != "VARCHAR" and _as_it_is(axis):
        engine.create(name, query.select(named(col("value", "r"), "q")))
        return name
    if column.output == "set":
        _require_short(axis)
        lists = subquery(run_lists(column, axis.regions), "l")
        on = conjunction([equal(a, b) for a, b in zip(column.keys("l"), keys, strict=True)])
        own = [(equal(col("w", "r"), 0), col("cell", "r")), (col("mixed", "r"), text(column.top))]
        found = choose(*own, otherwise=exp.func("COALESCE", col("listed", "l"), col("listed", "r")))
        engine.create(name, query.select(named(found, "q")).join(lists, on=on, join_type="left"))
        return _enumerated(engine, table(name, "t"), column.keys(), col("q"))
    return _enumerated(engine, table(axis.regions, "t"), column.keys(), col("cell"))


def _require_short(axis: Axis) -> None:
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
    (every,) = axis.engine.row(exp.select(call("bool_and", equal(col("w"), 0))).from_(table(axis.regions)))
    return bool(every)


def _enumerated(engine: Engine, source: exp.Table, keys: Sequence[exp.Expr], found: exp.Expr) -> str:
    """Create ``(keys, q)`` of a table with its texts enumerated: of what is published, and nothing else."""
    texts = exp.select(found).distinct().from_(source).where(present(found))
    (total,) = engine.row(exp.select(exp.Count(this=exp.Star())).from_(subquery(texts.copy(), "t")))
    short = found.copy()
    if 0 < total <= (MANY_TEXTS if engine.writes_used_texts else ENUM_LIMIT):
        enum = engine.fresh("enum")
        engine.create_enum(enum, texts.order_by(found.copy()))
        short = exp.Cast(this=short, to=exp.DataType.build(enum, udt=True))
    name = engine.fresh("shown")
    engine.create(name, exp.select(*keys, named(short, "q")).from_(source))
    return name


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
    engine.create(found, exp.select(col("class_id"), named(first, "ec"), *(col(p) for p in parts)).from_(table(name)))
    engine.drop(name)
    alike = exp.NEQ(this=col("ec"), expression=col("class_id"))
    (several,) = engine.row(exp.select(exp.Count(this=exp.Star())).from_(table(found)).where(alike))
    return found, several > 0


__all__ = ["ENUM_LIMIT", "Axis", "Boxes", "Published", "publish_boxes"]
