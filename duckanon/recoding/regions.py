"""Recoding by regions: every class of a partition has one. Their labels, the published columns, and the relations."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from sqlglot import exp

from duckanon.encoding.counting import ENTITY, count_domain, persons
from duckanon.encoding.dictionaries import enumerated, published_type
from duckanon.engine.sql.aggregates import AGGREGATES, not_positive
from duckanon.engine.sql.axes import (
    RUN,
    BoxColumn,
    axis_query,
    cells_query,
    choose,
    class_lists,
    covers_query,
    equal,
    is_null,
    listed_values,
    midpoint,
    midpoint_ends,
    nodes_by_place,
    nodes_query,
    positions_query,
    present,
    regions_query,
    run_lists,
    used_levels,
)
from duckanon.engine.sql.recode import ORDER, Cell, shuffled
from duckanon.engine.sql.relations import (
    call,
    cast,
    col,
    conjunction,
    data_type,
    hash_of,
    named,
    number,
    pack,
    qualified,
    relation,
    shuffle_key,
    subquery,
    table,
    text,
    union_all,
)
from duckanon.errors import DataError, UnsupportedError
from duckanon.hierarchy.rules import ColumnType
from duckanon.io.shuffled_writer import MANY_ROWS, can_look_up, write_shuffled
from duckanon.plan.plan import has_distance
from duckanon.plan.roles import Role
from duckanon.recoding.base import BoxRecoding, Lookup, Recoder, Recoding, SideBySide, originals, through
from duckanon.recoding.coded_rows import CODE, kept_columns
from duckanon.recoding.partition_axes import node_names
from duckanon.recoding.relations import QuasiIdentifierDomain, ReleaseRelations, size, source_rows

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.encoding.dictionaries import Coded, Dictionary, Frequency
    from duckanon.engine.base import Engine
    from duckanon.engine.sql.relations import TableName
    from duckanon.hierarchy import Levels
    from duckanon.plan.plan import Plan
    from duckanon.plan.roles import Attribute
    from duckanon.recoding.coded_rows import Division


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
        hierarchy = plan.hierarchies[attribute.name]
        leaves = hierarchy.levels if hierarchy is not None else None
        if leaves is not None and column.grid is not None and column.output == "interval":
            column = replace(column, names=node_names(engine, leaves, attribute.type))
        engine.create(column.axis, axis_query(column, boxes.places[j], size(col("value", "v"), attribute.type)))
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


Rows = Callable[[Sequence[tuple[str, exp.Expr]]], exp.Query]
"""Gives ``(class_id, p_0, ...)`` of the rows of the source in classes that are kept, p being named expressions."""


class RegionRelations(ReleaseRelations):
    """The relations of a release of regions; classes that are published alike are one.

    ``rows`` gives the classes of the source's rows. ``row_map`` defines the relation of that name where rows with the
    same values may be in several classes.
    """

    def __init__(
        self,
        plan: Plan,
        engine: Engine,
        counted: Frequency,
        boxes: Boxes,
        published: Published,
        rows: Rows,
        row_map: Callable[[], exp.Query] | None = None,
    ) -> None:
        self.plan, self.counted, self.boxes, self.published, self.rows = plan, counted, boxes, published, rows
        self._row_map = row_map
        self.sensitive = [a for a in plan.roles.published if a.role is Role.SENSITIVE]
        super().__init__(engine, {"published": published.table}, [(a.name, a.type) for a in self.sensitive])
        self.domains = self._column_domains()

    def lacks(self, name: str) -> bool:
        if name in ("tuple_map", "row_map"):
            return (self._row_map is None) == (name == "row_map")
        return super().lacks(name)

    @property
    def sensitive_values(self) -> dict[str, exp.Expr]:
        """The sensitive columns with their expressions in the source."""
        return {a.name: self.plan.expression(a) for a in self.sensitive}

    @relation
    def frequency(self) -> exp.Query:
        """``(c_0, ..., n)``: the distinct combinations of values."""
        codes = [col(f"c_{j}") for j in range(len(self.counted.coded))]
        total = named(cast(exp.Sum(this=col("n")), "BIGINT"), "n")
        return exp.select(*codes, total).from_(table(self.boxes.members)).group_by(exp.var("ALL"))

    @relation
    def tuple_map(self) -> exp.Query:
        """``(w_0, ..., class_id, kept)``: the class of every combination of values."""
        sizes = [c.dictionary.size for c in self.counted.coded]
        words = pack([col(f"c_{j}", "m") for j in range(len(sizes))], sizes)
        packed = [named(word, f"w_{i}") for i, word in enumerate(words)]
        query = exp.select(*packed, col("class_id", "m"), col("kept", "c")).from_(table(self.table("members"), "m"))
        on = equal(col("class_id", "c"), col("class_id", "m"))
        return query.join(table(self.table("class_map"), "c"), on=on)

    @relation
    def row_map(self) -> exp.Query:
        """``(class_id, c_0, ..., u_0, ..., place)``: the classes of rows, by their codes and what is passed through."""
        assert self._row_map is not None
        return self._row_map()

    @relation
    def domain_values(self) -> str:
        """``(attribute, value, n)``: the sensitive values of the source."""
        return count_domain(self.engine, self.plan.relation.query, self.sensitive_values)

    def source_rows(self) -> exp.Query:
        return source_rows(self.plan, self.sensitive)

    @relation
    def class_map(self) -> exp.Query:
        """``(class_id, n, units, kept)``; suppressed classes keep their ids."""
        columns = [col(c) for c in ("class_id", "n", "units", "kept")]
        if not self.published.merged:
            return exp.select(*columns).from_(table(self.boxes.table))
        total = [named(cast(exp.Sum(this=col(c, "b")), "BIGINT"), c) for c in ("n", "units")]
        published = exp.select(named(col("ec", "p"), "class_id"), *total, named(exp.true(), "kept"))
        published = published.from_(table(self.boxes.table, "b")).join(*self._ec("b")).group_by(col("ec", "p"))
        entity = self.plan.entity
        if entity is not None:
            # A person may be in two classes that are published as one, and is one person there.
            every = self.rows([(ENTITY, entity)])
            distinct, nobody = persons(col("p_0", "r"))
            people = exp.select(named(col("ec", "p"), "class_id"))
            people = people.select(named(exp.Add(this=distinct, expression=nobody), "units"))
            people = people.from_(subquery(every, "r")).join(*self._ec("r")).group_by(col("ec", "p"))
            query = exp.select(*(col(c, "k") for c in ("class_id", "n")), col("units", "u"), col("kept", "k"))
            on = equal(col("class_id", "u"), col("class_id", "k"))
            published = query.from_(subquery(published, "k")).join(subquery(people, "u"), on=on)
        lost = exp.select(*columns).from_(table(self.boxes.table)).where(exp.Not(this=col("kept")))
        return union_all([published, lost])

    @relation
    def classes(self) -> exp.Query:
        """``(class_id, n, suppressed)``."""
        suppressed = named(exp.Not(this=col("kept")), "suppressed")
        return exp.select(col("class_id"), col("n"), suppressed).from_(table(self.table("class_map")))

    def _ec(self, alias: str) -> tuple[exp.Table, exp.Expr]:
        """Return what to join so that ``ec`` of ``p`` is the published class of an id."""
        return table(self.published.table, "p"), equal(col("class_id", "p"), col("class_id", alias))

    @relation
    def members(self) -> exp.Query:
        """The table of ``member_rows``."""
        return self.member_rows()

    def member_rows(self) -> exp.Query:
        """Return ``(class_id, c_0, ..., n)`` of all classes."""
        codes = [f"c_{j}" for j in range(len(self.published.regions))]
        if not self.published.merged:
            return exp.select(*(col(c) for c in ("class_id", *codes, "n"))).from_(table(self.boxes.members))
        published, on = self._ec("m")
        number_of = exp.func("COALESCE", col("ec", "p"), col("class_id", "m"))
        query = exp.select(named(number_of, "class_id"), *(col(c, "m") for c in codes))
        query = query.select(named(cast(exp.Sum(this=col("n", "m")), "BIGINT"), "n"))
        query = query.from_(table(self.boxes.members, "m")).join(published, on=on, join_type="left")
        return query.group_by(exp.var("ALL"))

    @relation
    def class_values(self) -> exp.Query:
        """``(class_id, attribute, value, n)``, counted on the rows themselves."""
        parts: list[exp.Query] = []
        for name, expression in self.sensitive_values.items():
            counted = exp.select(col("class_id"), col("p_0"), named(exp.Count(this=exp.Star()), "n"))
            counted = counted.from_(subquery(self.rows([(name, expression)]), "r")).group_by(
                col("class_id"), col("p_0")
            )
            count = cast(exp.Sum(this=col("n", "v")), "BIGINT")
            query = exp.select(
                named(col("ec", "p"), "class_id"),
                named(text(name), "attribute"),
                named(cast(col("p_0", "v"), "VARCHAR"), "value"),
                named(count, "n"),
            )
            query = query.from_(subquery(counted, "v")).join(*self._ec("v"))
            parts.append(query.group_by(col("ec", "p"), col("p_0", "v")))
        return union_all(parts)

    def class_rows(self) -> exp.Query:
        values = [col(f"p_{i}") for i in range(len(self.passed))]
        counted = exp.select(col("class_id"), *values, named(exp.Count(this=exp.Star()), "n"))
        counted = counted.from_(subquery(self.rows(list(self.sensitive_values.items())), "r")).group_by(
            col("class_id"), *values
        )
        query = exp.select(named(col("ec", "p"), "class_id"), *(col(f"p_{i}", "v") for i in range(len(self.passed))))
        return query.select(col("n", "v")).from_(subquery(counted, "v")).join(*self._ec("v"))

    # Cells: classes that are published alike get the smallest region that holds all of theirs.

    @cached_property
    def regions(self) -> tuple[RegionColumn, ...]:
        """The columns with the regions of the classes as they are published."""
        if not self.published.merged:
            return self.published.regions
        return with_regions(self.engine, self.published.regions, self.published_boxes)

    @cached_property
    def published_boxes(self) -> str:
        """The table of published classes, in the form of ``Boxes.table``."""
        if not self.published.merged:
            return self.boxes.table
        name = self.engine.fresh("boxes")
        several = exp.select(col("ec")).from_(table(self.published.table)).group_by(col("ec"))
        several = several.having(exp.GT(this=exp.Count(this=exp.Star()), expression=number(1)))
        among = exp.In(this=col("ec", "p"), query=exp.Subquery(this=several))
        keys = [f"{c}_{j}" for j in range(len(self.published.regions)) for c in "abv"]
        single = exp.select(
            col("class_id", "b"), col("n", "b"), named(exp.true(), "kept"), *(col(k, "b") for k in keys)
        )
        single = single.from_(table(self.boxes.table, "b")).join(*self._ec("b")).where(exp.Not(this=among))
        total = named(cast(exp.Sum(this=col("n", "b")), "BIGINT"), "n")
        both = exp.select(named(col("ec", "p"), "class_id"), total, named(exp.true(), "kept"))
        both = both.from_(table(self.boxes.table, "b")).join(*self._ec("b")).where(among.copy())
        for region in self.published.regions:
            both = _hull(both, region)
        self.engine.create(name, union_all([single, both.group_by(col("ec", "p"))]))
        return name

    @relation
    def labelled(self) -> exp.Query:
        """``(class_id, n, l_0, ...)`` of the published classes."""
        query = (
            exp.select(col("class_id", "b"), col("n", "b"))
            .from_(table(self.published_boxes, "b"))
            .where(col("kept", "b"))
        )
        for region in self.regions:
            alias = f"r_{region.position}"
            query = query.select(named(col("cell", alias), f"l_{region.position}"))
            query = query.join(table(region.regions, alias), on=region.column.on(alias, region.position, "b"))
        return query

    @relation
    def class_cells(self) -> exp.Query:
        """``(class_id, attribute, cell, level, leaves, lo, hi)`` of the published classes."""
        parts: list[exp.Query] = []
        for region in self.regions:
            columns = [col(c, "r") for c in ("cell", "level", "leaves", "lo", "hi")]
            query = exp.select(col("class_id", "b"), named(text(region.column.name), "attribute"), *columns)
            on = region.column.on("r", region.position, "b")
            query = query.from_(table(self.published_boxes, "b")).join(table(region.cells, "r"), on=on)
            parts.append(query.where(col("kept", "b")))
        return union_all(parts)

    @relation
    def cell_rows(self) -> exp.Query:
        """``(attribute, level, leaves, lo, hi, n)``: in how many published rows cells stand for that much."""
        parts: list[exp.Query] = []
        for region in self.regions:
            keys = [col(f"{c}_{region.position}") for c in "abv"]
            # Counted first and joined after: there are far fewer regions of a column than classes.
            counted = exp.select(*keys, named(cast(exp.Sum(this=col("n")), "BIGINT"), "n")).from_(
                table(self.published_boxes)
            )
            counted = counted.where(col("kept")).group_by(*(key.copy() for key in keys))
            query = exp.select(named(text(region.column.name), "attribute"))
            query = query.select(*(col(c, "r") for c in ("level", "leaves", "lo", "hi")), col("n", "b"))
            on = region.column.on("r", region.position, "b")
            parts.append(query.from_(subquery(counted, "b")).join(table(region.cells, "r"), on=on))
        return union_all(parts)

    def _column_domains(self) -> list[QuasiIdentifierDomain]:
        """Return the quasi-identifiers with what their regions stand for."""
        types = {a.name: a.type for a in self.plan.roles.quasi_identifiers}
        domains = []
        for j, region in enumerate(self.published.regions):
            column = region.column
            weight = self.plan.search_options.weights.get(column.name, 1.0)
            domains.append(
                QuasiIdentifierDomain(
                    column.name,
                    types[column.name],
                    column.values,
                    column.height,
                    column.leaves,
                    partial(self._cells_of, j),
                    partial(self._covers_of, j),
                    weight,
                    spanned=True,
                    # Where no region is an interval, all are values or nodes.
                    labels=column.output == "lca" or not region.has_runs,
                )
            )
        return domains

    def _cells_of(self, j: int) -> exp.Query:
        lowest = [named(exp.Min(this=col("level")), "level")]
        lowest += [named(call("arg_min", col(c), col("level")), c) for c in ("leaves", "lo", "hi")]
        # A name that two regions share stands for the one on the lower level.
        return exp.select(col("cell"), *lowest).from_(table(self.regions[j].cells)).group_by(col("cell"))

    def _covers_of(self, j: int) -> exp.Query:
        return self.regions[j].covers()


def _hull(query: exp.Select, region: RegionColumn) -> exp.Select:
    """Add the smallest region that holds those of one column of all classes that are published alike."""
    j, column = region.position, region.column
    a, b, v = (col(f"{c}_{j}", "b") for c in "abv")
    for alias, code in ((f"x_{j}", a), (f"y_{j}", b)):
        query = query.join(table(column.axis, alias), on=equal(col("code", alias), code.copy()))
    lowest, highest = (exp.Min(this=v), exp.Max(this=v.copy()))
    same_region = [equal(exp.Min(this=c.copy()), exp.Max(this=c.copy())) for c in (a, b, v)]
    level = exp.case().when(exp.and_(*same_region), lowest)
    # A tree has nodes only; the regions of a line are joined to the run from the first to the last of their values.
    if region.has_runs:
        no_run = exp.NEQ(this=v.copy(), expression=number(RUN))
        missing = call("bool_or", exp.and_(is_null(col("value", f"y_{j}")), no_run))
        level = level.when(missing, number(column.height)).else_(number(RUN))
    else:
        query = query.join(table(column.levels, f"k_{j}"), on=equal(col("code", f"k_{j}"), a.copy()))
        for step in range(1, column.height):
            node = col(f"c{step}", f"k_{j}")
            one = equal(exp.Min(this=node), exp.Max(this=node.copy()))
            low_enough = exp.LTE(this=highest.copy(), expression=number(step))
            level = level.when(exp.and_(low_enough, one), number(step))
        level = level.else_(number(column.height))
    return query.select(
        named(call("arg_min", a.copy(), col("place", f"x_{j}")), f"a_{j}"),
        named(call("arg_max", b.copy(), col("place", f"y_{j}")), f"b_{j}"),
        named(cast(level, "INTEGER"), f"v_{j}"),
    )


class Regions(Recoder):
    """Every class has a region of its own."""

    by_code = True

    def __init__(
        self, plan: Plan, engine: Engine, counted: Frequency, bound: Sequence[Levels], division: Division
    ) -> None:
        self.plan, self.engine, self.division = plan, engine, division
        self.published = publish_boxes(plan, engine, counted, bound, division.boxes)
        self.cells = self.published.cells
        functional = not getattr(plan.algorithm, "by_rows", False)
        row_map = None if functional else self._row_map
        self.relations = RegionRelations(plan, engine, counted, division.boxes, self.published, self._classed, row_map)

    @property
    def shown(self) -> Sequence[tuple[str, str]]:
        return self.published.inner

    def _classed(self, extra: Sequence[tuple[str, exp.Expr]]) -> exp.Select:
        """Return ``(class_id, p_0, ...)`` of the rows whose classes are published."""
        passed = [named(qualified(expression, "s"), f"p_{i}") for i, (_, expression) in enumerate(extra)]
        inner = self.division.classed(passed)
        query = exp.select(col("class_id", "r"), *(col(f"p_{i}", "r") for i in range(len(extra))))
        on = exp.EQ(this=col("class_id", "c"), expression=col("class_id", "r"))
        return query.from_(subquery(inner, "r")).join(table(self.published.table, "c"), on=on)

    def _row_map(self) -> exp.Query:
        """Return ``(class_id, c_0, ..., u_0, ..., place)``: the classes of rows that are coded alike and passed alike.

        Such rows may lie in several classes, and their published columns do not say in which: ``place`` numbers them.
        """
        codes = [named(col(f"{CODE}{j}", "s"), f"c_{j}") for j in range(len(self.cells))]
        passed = [named(col(name, "s"), f"u_{i}") for i, name in enumerate(kept_columns(self.plan))]
        number_of_class = exp.func("COALESCE", col("ec", "p"), col("class_id", "r"))
        alike = [col(e.alias, "r") for e in (*codes, *passed)]
        order = exp.Order(expressions=[exp.Ordered(this=number_of_class.copy(), desc=False, nulls_first=False)])
        place = exp.Window(this=exp.RowNumber(), partition_by=[c.copy() for c in alike], order=order)
        query = exp.select(named(number_of_class, "class_id"), *alike, named(place, "place"))
        query = query.from_(subquery(self.division.classed([*codes, *passed]), "r"))
        on = exp.EQ(this=col("class_id", "p"), expression=col("class_id", "r"))
        return query.join(table(self.published.table, "p"), on=on, join_type="left")

    def rows(self, extra: Sequence[tuple[str, exp.Expr]], keyed: bool = False) -> exp.Select:
        passed = [named(qualified(expression, "s"), f"p_{i}") for i, (_, expression) in enumerate(extra)]
        inner = self.division.classed(passed)
        through = [col(f"p_{i}", "r") for i in range(len(extra))]
        labels = [col(name, "c") for _, name in self.published.inner]
        on = exp.EQ(this=col("class_id", "c"), expression=col("class_id", "r"))
        query = exp.select(*labels, *through).from_(subquery(inner, "r"))
        query = query.join(table(self.published.table, "c"), on=on)
        if keyed:
            query = query.select(named(shuffle_key(col("ec", "c"), *(p.copy() for p in through)), ORDER))
        return query

    def released(self, rows: exp.Query, columns: Sequence[tuple[str, str]]) -> exp.Select:
        # Sorted as enumerations, but written as texts: with several threads DuckDB 2.0.0 sometimes writes an empty
        # text in place of the value of an enumeration.
        types = {c.name: c.type for c in self.engine.columns(exp.select("*").from_(table(self.published.table)))}
        texts = {name for name, kind in types.items() if kind.startswith("ENUM")}
        values = [cast(col(inner), "VARCHAR") if inner in texts else col(inner) for _, inner in columns]
        return exp.select(*(named(own, name) for own, (name, _) in zip(values, columns, strict=True))).from_(
            subquery(rows, "r")
        )

    def write(
        self,
        extra: Sequence[tuple[str, exp.Expr]],
        columns: Sequence[tuple[str, str]],
        path: Path,
        params: Mapping[str, int],
        count: int,
        from_file: Callable[[exp.Select], exp.Select] | None = None,
    ) -> bool:
        """Write the release by looking up its texts after the sort; False where rows are few or of other types."""
        names = [inner for _, inner in self.published.inner]
        if count < MANY_ROWS or not names:
            return False
        through = [named(qualified(e, "s"), f"p_{i}") for i, (_, e) in enumerate(extra)]
        passed = self.engine.columns(self.division.classed(through))[: len(through)]
        shown = self.engine.columns(exp.select(*(col(n) for n in names)).from_(table(self.published.table)))
        if not can_look_up(shown, passed):
            return False
        short = self.division.short if from_file is None else frozenset()
        short = frozenset(e.alias for e in through if e.this.name in short)
        rows = self._keyed_classes(through, short)
        if from_file is not None and self._joins:
            rows, params = from_file(rows), {}
        else:
            rows = shuffled(rows)
        write_shuffled(self.engine, (self.published.table, names), rows, params, columns, path)
        return True

    @property
    def _joins(self) -> bool:
        """Whether the class that is published has to be looked up before rows are sorted."""
        return self.published.merged or self.division.suppressed > 0

    def _keyed_classes(self, extra: Sequence[exp.Expr], short: frozenset[str]) -> exp.Select:
        """Return ``(class_id, p_0, ..., ORDER)`` of the rows that are published.

        Columns of ``short`` are enumerations, which are hashed as the texts that they are.
        """
        inner = self.division.classed(extra, texts=not short)
        through = [col(f"p_{i}", "r") for i in range(len(extra))]
        query = exp.select(named(cast(col("class_id", "r"), "INTEGER"), "class_id"), *through)
        query = query.from_(subquery(inner, "r"))
        class_key: exp.Expr = cast(col("class_id", "r"), "BIGINT")
        if self._joins:
            on = exp.EQ(this=col("class_id", "c"), expression=col("class_id", "r"))
            query, class_key = query.join(table(self.published.table, "c"), on=on), col("ec", "c")
        values = [cast(p.copy(), "VARCHAR") if p.name in short else p.copy() for p in through]
        return query.select(named(shuffle_key(class_key, *values), ORDER))

    def beside(self, extra: Sequence[tuple[str, exp.Expr]], person: exp.Expr | None) -> SideBySide:
        codes = [named(col(f"{CODE}{j}", "s"), f"k_{j}") for j in range(len(self.cells))]
        passed, texts = through(extra, person, "s"), []
        for i, one in enumerate(passed):
            if isinstance(one.this, exp.Column) and one.this.name in self.division.short:
                # As numbers, because a text would be hashed again in every row.
                passed[i], lookup = self._numbered_text(i, one.this)
                texts.append(lookup)
            else:
                passed[i] = self.division.as_texts(one)
        rows = self.division.classed([*codes, *passed], texts=False)
        shown = [named(col(name), name.replace("q_", "r_", 1)) for _, name in self.published.inner]
        published = exp.select(named(col("class_id"), "code"), *shown).from_(table(self.published.table))
        lookups = [*originals(self.cells), *texts, Lookup("class_id", published)]
        middle = [region for region in self.published.regions if region.column.output == "midpoint"]
        return SideBySide(rows, (*lookups, *(Lookup("class_id", self._ends(region)) for region in middle)))

    def _numbered_text(self, i: int, column: exp.Column) -> tuple[exp.Expr, Lookup]:
        """Return the number of a text that is stored as an enumeration, 0 for NULL, and the texts by their numbers."""
        code = exp.func("COALESCE", exp.Add(this=call("enum_code", column.copy()), expression=number(1)), number(0))
        texts = exp.select(named(code, "code"), named(cast(column.copy(), "VARCHAR"), f"p_{i}")).distinct()
        return named(code.copy(), f"u_{i}"), Lookup(f"u_{i}", texts.from_(table(self.division.rows, "s")))

    def _ends(self, region: RegionColumn) -> exp.Select:
        """Return ``(code, x_j, y_j)``: the ends of the regions that midpoints are of, as ticks."""
        boxes = self.division.boxes.table
        ends = [
            named(end, f"{side}_{region.position}")
            for side, end in zip("xy", midpoint_ends(region.column), strict=True)
        ]
        words = region.column.keys()
        regions = exp.select(*words, *ends).from_(table(region.regions))
        query = exp.select(named(col("class_id", "b"), "code"), *(col(e.alias, "r") for e in ends))
        on = region.column.on("r", region.position, "b")
        return query.from_(table(boxes, "b")).join(subquery(regions, "r"), on=on)

    def recoding(self) -> Recoding:
        return BoxRecoding({}, self.plan, self.cells, self.engine, names=self.published.columns)


__all__ = ["Boxes", "Published", "RegionColumn", "RegionRelations", "Regions", "Rows", "publish_boxes", "with_regions"]
