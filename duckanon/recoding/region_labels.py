"""How the regions of a partition are labelled in the published columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from sqlglot import exp

from duckanon.encoding.dictionaries import enumerated, published_type
from duckanon.engine.sql.aggregates import AGGREGATES, not_positive
from duckanon.engine.sql.axes import (
    BoxColumn,
    axis_query,
    choose,
    equal,
    is_null,
    nodes_by_place,
    nodes_query,
    positions_query,
    present,
)
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
from duckanon.engine.sql.dialect import hash_of
from duckanon.engine.sql.recode import Cell
from duckanon.engine.sql.relations import (
    call,
    cast,
    col,
    conjunction,
    data_type,
    named,
    number,
    subquery,
    table,
    text,
    union_all,
)
from duckanon.errors import DataError, UnsupportedError
from duckanon.hierarchy.rules import ColumnType
from duckanon.plan.publication import has_distance
from duckanon.recoding.relations.column_domain import size

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.encoding.dictionaries import Coded, Dictionary, Frequency
    from duckanon.engine.base import Engine
    from duckanon.engine.sql.relations import TableName
    from duckanon.hierarchy import Levels
    from duckanon.plan.plan import Plan
    from duckanon.plan.roles import Attribute

MOST_LISTED = 20_000_000
"""The most values that all sets of a column may list together."""


@dataclass(frozen=True)
class Boxes:
    """What a search leaves: classes that are regions.

    ``table(class_id, n, units, kept, a_0, b_0, v_0, ...)`` has every class with the region of each quasi-identifier:
    the codes of its first and last value and the level of the node over them, -1 for a run. NULL mixed with others is
    the top, with NULL as the last value. ``places`` are tables ``(code, place)``, the order of each axis; ``grids``
    those of ``grid_bounds``, where the axis is a line that is cut on a grid. ``members(class_id, c_0, ..., n)`` counts
    the rows of every class by the codes of their values. For the output "medoid" the table has ``m_j``, too: the code
    of that row which stands for its class. ``kinds`` says what each axis is: "grid", "line" or "tree".
    """

    table: str
    places: tuple[str, ...]
    grids: tuple[str | None, ...]
    members: TableName
    kinds: tuple[str, ...] = ()


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
    regions: tuple[RegionColumn, ...]
    cells: list[Cell]
    merged: bool

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the published columns that make the classes."""
        return tuple(name for name, _ in self.inner)


def publish_boxes(plan: Plan, engine: Engine, counted: Frequency, bound: Sequence[Levels], boxes: Boxes) -> Published:
    """Make what is published of every class that is kept, see ``Published``."""
    inner: list[tuple[str, str]] = []
    kinds = [kind for kind in plan.output.values() if kind != "medoid"]
    several = sum(_by_class(kind, plan.bounds) for kind in kinds) > 1
    members = _stored(engine, boxes.members) if several else boxes.members
    quasi = list(zip(plan.roles.quasi_identifiers, counted.coded, bound, strict=True))
    columns = with_regions(engine, _columns(plan, engine, quasi, boxes), boxes.table)
    query = exp.select(col("class_id", "b"), named(col("class_id", "b"), "ec")).from_(table(boxes.table, "b"))
    for j, (region, (attribute, _, _)) in enumerate(zip(columns, quasi, strict=True)):
        alias = f"s_{j}"
        parts = (f"q_{j}", f"q_{j}b") if region.column.output == "bounds" else (f"q_{j}",)
        inner += zip(plan.published_as[attribute.name], parts, strict=True)
        by_class = _by_class(region.column.output, region.column.bounds)
        shown = _shown_by_class(region, boxes.table, members) if by_class else _shown(region)
        on = equal(col("class_id", alias), col("class_id", "b")) if by_class else region.column.on(alias, j, "b")
        source = table(shown, alias) if isinstance(shown, str) else subquery(shown, alias)
        query = query.join(source, on=on, copy=False)
        sources = ("q", "qb")[: len(parts)]
        query = query.select(*(named(col(c, alias), part) for c, part in zip(sources, parts, strict=True)), copy=False)
    name = engine.fresh("published")
    engine.create(name, query.where(col("kept", "b"), copy=False))
    if several:
        engine.drop(members)
    name, merged = _merged(engine, name, [part for _, part in inner])
    return Published(name, tuple(inner), columns, [_cell(*one) for one in quasi], merged)


def _cell(attribute: Attribute, coded: Coded, levels: Levels) -> Cell:
    """Return a quasi-identifier with its values; regions stand on no level."""
    dictionary = coded.dictionary
    tables = (dictionary.table, coded.levels, coded.labels)
    return Cell(attribute.name, dictionary.expression, *tables, RUN, dictionary.size, False, False, levels.top)


@dataclass
class RegionColumn:
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

    def with_regions(self, boxes: str, used: set[int]) -> RegionColumn:
        """Return the column with the regions of the kept classes of a table; ``used`` are their levels."""
        engine, column = self.engine, self.column
        by_lowest = column.output == "lca" and RUN in used
        if by_lowest:
            used = used | set(range(1, column.height))
        levels = tuple(sorted(v for v in used if 0 < v < column.height))
        found = replace(self, regions=engine.fresh("regions"), levels=levels, has_runs=RUN in used)
        nodes = found.nodes if column.lists or column.output == "midpoint" else None
        positions = found.positions if by_lowest else None
        query = regions_query(column, boxes, self.position, found.has_runs, levels, nodes, positions)
        found.total = engine.create(found.regions, query)
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
            ranks = _leaf_ranks(self.engine, self.column, self.place, self.leaves)
        name, runs = self.engine.fresh("positions"), _node_runs(self.engine, self.column)
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


def _columns(
    plan: Plan, engine: Engine, quasi: Sequence[tuple[Attribute, Coded, Levels]], boxes: Boxes
) -> list[RegionColumn]:
    """Return the quasi-identifiers with tables of their values in order; regions follow."""
    columns = []
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
        engine.create(column.axis, axis_query(column, boxes.places[j], size(col("value", "v"), attribute.type)))
        hierarchy = plan.hierarchies[attribute.name]
        leaves = hierarchy.levels if hierarchy is not None else None
        columns.append(RegionColumn(engine, column, j, boxes.places[j], leaves))
    return columns


def _ends(engine: Engine, dictionary: Dictionary, place: str) -> tuple[int, int, int | None]:
    """Return ``last``, ``last_code`` and ``null_code`` of an axis: places count from 0, and NULL is on the last."""
    last = max(dictionary.size - 1 - dictionary.null, 0)
    if not dictionary.null:
        return last, 0, None
    (last_code,) = engine.row(exp.select(col("code")).from_(table(place), copy=False).where(equal(col("place"), last)))
    return last, int(last_code), dictionary.size - 1


def with_regions(engine: Engine, columns: Sequence[RegionColumn], boxes: str) -> tuple[RegionColumn, ...]:
    """Return columns with the regions of the classes that are kept in a table."""
    used = engine.row(used_levels(boxes, [region.column.height for region in columns]))
    levels = [{RUN + at for at, bit in enumerate(bits or "") if bit == "1"} for bits in used]
    return tuple(region.with_regions(boxes, own) for region, own in zip(columns, levels, strict=True))


# Where the values of a column stand: among the leaves that its hierarchy lists, and under its nodes


def _leaf_ranks(engine: Engine, column: BoxColumn, place: str, levels: pa.Table) -> str | None:
    """Create ``(code, first, last)``: which leaves a run takes in that begins or ends at a value.

    Leaves are in the order of their values, or of the hierarchy where those are only texts. A run on a grid takes in
    the leaves of its outermost groups, and one that is open at an end all leaves up to that of the domain. None is
    returned where leaves cannot be read as values of the column.
    """
    import numpy as np
    import pyarrow as pa

    leaves, incoming = engine.fresh("leaves"), engine.fresh("incoming")
    position = pa.array(np.arange(1, len(levels) + 1, dtype=np.int64))
    engine.register(incoming, pa.table({"at": position, "leaf": levels.column("l0")}))
    listed = exp.select(col("at"), col("leaf")).from_(table(incoming)).where(present(col("leaf")))
    if column.family != "other":
        typed = exp.TryCast(this=col("leaf"), to=data_type(column.type))
        listed = listed.select(named(typed, "value"))
    engine.create(leaves, listed)
    engine.unregister(incoming)
    ranks = engine.fresh("ranks")
    if column.family == "other":
        engine.create(ranks, _by_text(column, leaves))
    else:
        (odd,) = engine.row(exp.select(call("count_if", is_null(col("value")))).from_(table(leaves)))
        if odd:
            engine.drop(leaves)
            return None
        engine.create(ranks, _by_value(column, place, leaves))
    engine.drop(leaves)
    return ranks


def _node_runs(engine: Engine, column: BoxColumn) -> str:
    """Create ``(code, i1, ...)``: on every level, which run of neighbours under one node a value is in."""
    import numpy as np
    import pyarrow as pa

    nodes = engine.arrow(nodes_by_place(column))
    runs = {"code": nodes.column("code")}
    for level in range(1, column.height):
        node = nodes.column(f"c{level}").to_numpy()
        changed = np.concatenate([[False], node[1:] != node[:-1]])[: len(node)]
        runs[f"i{level}"] = pa.array(np.cumsum(changed, dtype=np.int64))
    name = engine.fresh("runs")
    engine.register(name, pa.table(runs))
    return name


def _by_text(column: BoxColumn, leaves: str) -> exp.Query:
    query = exp.select(col("code", "v"), named(col("at", "f"), "first"), named(col("at", "f"), "last"))
    on = equal(col("leaf", "f"), col("text", "v"))
    return query.from_(table(column.values, "v")).join(table(leaves, "f"), on=on)


def _by_value(column: BoxColumn, place: str, leaves: str) -> exp.Query:
    """Count the leaves before the lower bound of every value, and those up to its upper bound."""
    sides = []
    for name, bound, end in (("first", "lo", column.first), ("last", "hi", column.last)):
        value: exp.Expr = col("value", "v")
        if column.grid is not None:
            value = col(bound, "g")
        elif not column.tight:
            value = exp.case().when(exp.NEQ(this=col("place", "p"), expression=number(end)), value)
        points = exp.select(named(value, "value"), col("code", "v"), named(number(0), "leaf"))
        points = points.from_(table(column.values, "v"))
        points = points.join(table(place, "p"), on=equal(col("code", "p"), col("code", "v")))
        if column.grid is not None:
            points = points.join(table(column.grid, "g"), on=equal(col("code", "g"), col("code", "v")))
        points = points.where(present(col("value", "v")))
        listed = exp.select(col("value"), named(cast(exp.null(), "INTEGER"), "code"), named(number(1), "leaf"))
        every = union_all([points, listed.from_(table(leaves))])
        # Of equal values, leaves come after the bound that begins with them, and before the one that ends with them.
        order = [
            exp.Ordered(this=col("value"), desc=False, nulls_first=name == "first"),
            exp.Ordered(this=col("leaf"), desc=name == "last"),
        ]
        running = exp.Window(
            this=exp.Sum(this=col("leaf")),
            order=exp.Order(expressions=order),
            spec=exp.WindowSpec(kind="ROWS", start="UNBOUNDED", start_side="PRECEDING", end="CURRENT ROW"),
        )
        before: exp.Expr = running if name == "last" else exp.Add(this=running, expression=number(1))
        ranked = exp.select(col("code"), named(cast(before, "BIGINT"), name)).from_(subquery(every, "e"))
        sides.append(exp.select("*").from_(subquery(ranked, "r")).where(present(col("code"))))
    query = exp.select(col("code", "a"), col("first", "a"), col("last", "b")).from_(subquery(sides[0], "a"))
    return query.join(subquery(sides[1], "b"), on=equal(col("code", "a"), col("code", "b")))


# What is published of a region, or of a class


def _by_class(output: str, bounds: str) -> bool:
    """Return whether the published value depends on the members of a class, not on its region alone."""
    return output in AGGREGATES or (output, bounds) == ("set", "tight")


def _stored(engine: Engine, members: TableName) -> str:
    """Return the members as a table: they may be a view, which is too expensive to read twice."""
    name = engine.fresh("members")
    engine.create(name, exp.select("*").from_(table(members), copy=False))
    return name


def _shown_by_class(region: RegionColumn, boxes: str, members: TableName) -> exp.Query | str:
    """Return ``(class_id, q)``, a table or a query of one."""
    engine, column = region.engine, region.column
    if column.output == "geometric_mean":
        _require_positive(region)
    name = engine.fresh("shown")
    query = AGGREGATES.get(column.output, class_lists)
    engine.create(name, query(column, region.position, boxes, members))
    texts = column.output == "set" or (column.type == "VARCHAR" and column.output != "proportional")
    return enumerated(engine, table(name, "t"), [col("class_id")], col("q")) if texts else name


def _require_positive(region: RegionColumn) -> None:
    (several,) = region.engine.row(not_positive(region.column))
    if several:
        raise DataError(
            f"output='geometric_mean' needs numbers above 0, and {region.column.name!r} has others. Use output='mean' "
            "or output='median'."
        )


def _shown(region: RegionColumn) -> exp.Query | str:
    """Return ``(key_0, ..., q[, qb])``, a table or a query of one."""
    engine, column = region.engine, region.column
    keys = column.keys("r")
    query = exp.select(*keys).from_(table(region.regions, "r"), copy=False)
    if column.output in ("bounds", "struct", "midpoint"):
        return query.select(*_measured(column), copy=False)
    if column.type != "VARCHAR" and _as_it_is(region):
        return query.select(named(col("value", "r"), "q"), copy=False)
    if column.output == "set":
        _require_short(region)
        lists = subquery(run_lists(column, region.regions), "l")
        on = conjunction([equal(a, b) for a, b in zip(column.keys("l"), keys, strict=True)])
        cases = [(equal(col("w", "r"), 0), col("cell", "r")), (col("mixed", "r"), text(column.top))]
        label = choose(*cases, otherwise=exp.func("COALESCE", col("listed", "l"), col("listed", "r")))
        name = engine.fresh("shown")
        engine.create(name, query.select(named(label, "q")).join(lists, on=on, join_type="left"))
        return enumerated(engine, table(name, "t"), column.keys(), col("q"))
    most = region.total if column.null_code is None else None
    return enumerated(engine, table(region.regions, "t"), column.keys(), col("cell"), most)


def _require_short(region: RegionColumn) -> None:
    (total,) = region.engine.row(listed_values(region.column, region.regions))
    if total > MOST_LISTED:
        raise UnsupportedError(
            f"output='set' of {region.column.name!r} would list {int(total)} values, more than {MOST_LISTED}: its "
            "regions are too wide for that. Use output='interval', or a coarser column."
        )


def _measured(column: BoxColumn) -> list[exp.Expr]:
    if column.output == "midpoint":
        return [named(midpoint(column), "q")]
    if column.output == "bounds":
        return [named(col("low", "r"), "q"), named(col("high", "r"), "qb")]
    pairs = [exp.PropertyEQ(this=text(key), expression=col(c, "r")) for key, c in (("lo", "low"), ("hi", "high"))]
    return [named(exp.Struct(expressions=pairs), "q")]


def _as_it_is(region: RegionColumn) -> bool:
    """Return whether every region is a single value, so that the column keeps its type."""
    (every,) = region.engine.row(
        exp.select(call("bool_and", equal(col("w"), 0))).from_(table(region.regions), copy=False)
    )
    return bool(every)


def _merged(engine: Engine, name: str, parts: Sequence[str]) -> tuple[str, bool]:
    """Give classes that are published alike one number; this is rare."""
    # If there are as many distinct hashes as classes, no two classes are alike.
    hashes = hash_of(*(col(part) for part in parts))
    query = exp.select(exp.Count(this=exp.Star()), call("count", exp.Distinct(expressions=[hashes])))
    classes, different = engine.row(query.from_(table(name)))
    if classes == different:
        return name, False
    first = exp.Window(this=exp.Min(this=col("class_id")), partition_by=[col(part) for part in parts])
    numbered = engine.fresh("published")
    engine.create(
        numbered,
        exp.select(col("class_id"), named(first, "ec"), *(col(p) for p in parts)).from_(table(name), copy=False),
    )
    engine.drop(name)
    alike = exp.NEQ(this=col("ec"), expression=col("class_id"))
    (several,) = engine.row(
        exp.select(exp.Count(this=exp.Star())).from_(table(numbered), copy=False).where(alike, copy=False)
    )
    return numbered, several > 0


__all__ = ["Boxes", "Published", "RegionColumn", "publish_boxes", "with_regions"]
