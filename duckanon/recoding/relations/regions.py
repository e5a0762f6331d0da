"""The relations of a release whose classes are regions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

from sqlglot import exp

from duckanon.encoding.counting import ENTITY, count_domain, persons
from duckanon.engine.relation_tables import relation
from duckanon.engine.sql.axes import equal, is_null
from duckanon.engine.sql.boxes import RUN
from duckanon.engine.sql.relations import call, cast, col, named, number, pack, subquery, table, text, union_all
from duckanon.plan.roles import Role
from duckanon.recoding.region_labels import Boxes, Published, RegionColumn, with_regions
from duckanon.recoding.relations.column_domain import QuasiIdentifierDomain
from duckanon.recoding.relations.pair_counts import source_rows
from duckanon.recoding.relations.relations import ReleaseRelations

if TYPE_CHECKING:
    from duckanon.encoding.dictionaries import Frequency
    from duckanon.engine.base import Engine
    from duckanon.plan.plan import Plan

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


__all__ = ["RegionRelations", "Rows"]
