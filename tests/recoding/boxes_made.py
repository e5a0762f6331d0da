"""Partitions made by hand: rows, classes and their regions, and what is published of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
from sqlglot import exp

from duckanon.algorithms import Datafly
from duckanon.encoding.dictionaries import Frequency, code_levels, dictionary, frequency
from duckanon.engine.duckdb.engine import DuckDBEngine
from duckanon.hierarchy import Levels, auto
from duckanon.plan.plan import Plan, Publication
from duckanon.plan.request import Request
from duckanon.recoding.partition_axes import grid_bounds
from duckanon.recoding.regions import Boxes, Published, RegionRelations, publish_boxes

RUN = -1
Region = tuple[Any, Any, int]
"""Text of the first value, text of the last value, level."""


class Cutter(Datafly):
    """Stands for an algorithm that divides rows into regions."""

    name: ClassVar[str] = "cutter"

    @property
    def partitions(self) -> bool:
        return True


@dataclass
class Made:
    """A source with classes: ``classes`` lists the rows of each, ``regions`` their regions by column.

    ``medoids`` has, by column, the texts of the values of the row that stands for each class.
    """

    engine: DuckDBEngine
    data: pa.Table
    classes: Sequence[Sequence[int]]
    regions: Mapping[str, Sequence[Region]]
    options: Mapping[str, Any] = field(default_factory=dict)
    suppressed: Sequence[int] = ()
    use_grid: bool = True
    places: Mapping[str, Sequence[str]] = field(default_factory=dict)
    medoids: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    known: Published | None = None

    def __post_init__(self) -> None:
        engine, cursor = self.engine, self.engine._connection
        numbered = self.data.append_column("row", pa.array(range(len(self.data))))
        given = {"quasi_identifiers": list(self.regions), "k": 1, "algorithm": Cutter()}
        self.plan = Plan.resolve(Request(data=numbered, **(given | dict(self.options))), engine)
        source = self.plan.relation.query
        coded, bound, grids, order = [], [], [], []
        for attribute in self.plan.roles.quasi_identifiers:
            values = dictionary(engine, source, attribute.name, self.plan.expression(attribute))
            hierarchy = self.plan.hierarchies[attribute.name]
            made = hierarchy or auto(engine, values.table, attribute.name, attribute.type)
            levels = made.bind(engine, values.table, attribute.name, attribute.type, self.plan.on_unknown)
            tables = (levels.tree, levels.leaves, levels.height, levels.size, levels.top, levels.unknown > 0)
            coded.append(code_levels(engine, values, *tables))
            bound.append(levels)
            wanted = self.use_grid and self.plan.bounds == "grid"
            grid = grid_bounds(engine, hierarchy, coded[-1], attribute.type) if wanted else None
            grids.append(grid[0] if grid is not None else None)
            order.append(engine.fresh("place"))
            own = self.places.get(attribute.name)
            if own is None:
                cursor.execute(f"CREATE TEMP TABLE {order[-1]} AS SELECT code, code AS place FROM {values.table}")
            else:
                cursor.execute(
                    f"CREATE TEMP TABLE {order[-1]} AS SELECT code, "
                    f"coalesce(list_position($1, text) - 1, {len(own)})::INTEGER AS place FROM {values.table}",
                    [list(own)],
                )
        self.counted: Frequency = frequency(engine, source, coded, self.plan.entity)
        self.bound: tuple[Levels, ...] = tuple(bound)
        self.boxes = Boxes(self._boxes(), tuple(order), tuple(grids), self._members())

    def code(self, j: int, value: Any) -> int:
        values = self.counted.coded[j].dictionary.table
        rows = self.engine._connection.execute(
            f"SELECT code FROM {values} WHERE text IS NOT DISTINCT FROM $1", [value]
        ).fetchall()
        assert len(rows) == 1, f"{value!r} is no value"
        return int(rows[0][0])

    def _boxes(self) -> str:
        columns: dict[str, Any] = {"class_id": [], "n": [], "units": [], "kept": []}
        for i, rows in enumerate(self.classes):
            key = self.plan.roles.entity_key
            units = len({self.data.column(key)[r].as_py() for r in rows}) if key is not None else len(rows)
            for name, value in zip(columns, (i + 1, len(rows), units, i not in self.suppressed), strict=False):
                columns[name].append(value)
        for j, attribute in enumerate(self.plan.roles.quasi_identifiers):
            found = [(self.code(j, a), self.code(j, b), v) for a, b, v in self.regions[attribute.name]]
            assert len(found) == len(self.classes)
            for c, numbers in zip("abv", zip(*found, strict=True), strict=True):
                columns[f"{c}_{j}"] = pa.array(numbers, pa.int32())
            if attribute.name in self.medoids:
                codes = [self.code(j, value) for value in self.medoids[attribute.name]]
                columns[f"m_{j}"] = pa.array(codes, pa.int32())
        return self._table("boxes", pa.table(columns))

    def _table(self, stem: str, data: pa.Table) -> str:
        name = self.engine.fresh(stem)
        self.engine.register(f"{name}_in", data)
        self.engine._connection.execute(f"CREATE TEMP TABLE {name} AS FROM {name}_in")
        self.engine.unregister(f"{name}_in")
        return name

    def _members(self) -> str:
        pairs = [(i + 1, r) for i, rows in enumerate(self.classes) for r in rows]
        assert sorted(r for _, r in pairs) == list(range(len(self.data))), "every row is in one class"
        ids = {"class_id": pa.array([i for i, _ in pairs], pa.int64()), "row": [r for _, r in pairs]}
        self.of_row = self._table("of_row", pa.table(ids))
        joins, codes = [], []
        for j, attribute in enumerate(self.plan.roles.quasi_identifiers):
            values = self.counted.coded[j].dictionary.table
            expression = self.plan.expression(attribute).sql(dialect="duckdb")
            joins.append(f"JOIN {values} AS v{j} ON v{j}.value IS NOT DISTINCT FROM {expression}")
            codes.append(f"v{j}.code AS c_{j}")
        source = self.plan.relation.query.sql(dialect="duckdb")
        name = self.engine.fresh("members")
        self.engine._connection.execute(
            f"CREATE TEMP TABLE {name} AS SELECT o.class_id, {', '.join(codes)}, count(*) AS n "
            f"FROM ({source}) AS s JOIN {self.of_row} AS o ON o.row = s.row {' '.join(joins)} GROUP BY ALL"
        )
        return name

    def written_as(self, output: str) -> Made:
        """Return the same classes with another output."""
        other = copy(self)
        quasi = self.plan.roles.quasi_identifiers
        own = Publication.of(quasi, bounds=self.plan.bounds, output=output, within=self.plan.within)
        other.plan = replace(self.plan, publication=own)
        other.known = None
        return other

    def publish(self) -> Published:
        """Publish once, and return the same again."""
        if self.known is None:
            self.known = publish_boxes(self.plan, self.engine, self.counted, self.bound, self.boxes)
        return self.known

    def shown(self) -> list[tuple[Any, ...]]:
        """Return what is published of the classes, in their order."""
        published = self.publish()
        parts = ", ".join(part for _, part in published.inner)
        cursor = self.engine._connection
        return cursor.execute(f"SELECT {parts} FROM {published.table} ORDER BY class_id").fetchall()

    def types(self) -> list[str]:
        """Return the types of the published columns; that of an enumeration is its kind only."""
        published = self.publish()
        found = self.engine._connection.execute(f"DESCRIBE {published.table}").fetchall()
        return [row[1].split("(")[0] if row[1].startswith("ENUM") else row[1] for row in found[2:]]

    def rows(self, kept: Sequence[tuple[str, exp.Expr]]) -> exp.Query:
        source = self.plan.relation.query.sql(dialect="duckdb")
        parts = "".join(f", {e.sql(dialect='duckdb')} AS p_{i}" for i, (_, e) in enumerate(kept))
        query = (
            f"SELECT o.class_id{parts} FROM ({source}) AS s JOIN {self.of_row} AS o ON o.row = s.row "
            f"JOIN {self.boxes.table} AS b ON b.class_id = o.class_id AND b.kept"
        )
        import sqlglot

        parsed = sqlglot.parse_one(query, dialect="duckdb")
        assert isinstance(parsed, exp.Query)
        return parsed

    def relations(self, functional: bool = True) -> RegionRelations:
        row_map = None if functional else lambda: exp.select("*").from_(self.boxes.members)
        return RegionRelations(self.plan, self.engine, self.counted, self.boxes, self.publish(), self.rows, row_map)

    def written(self, path: Path) -> list[str]:
        """Write the published classes, one row each, and return the names of the columns."""
        published = self.publish()
        columns = [exp.alias_(exp.column(part, quoted=True), name, quoted=True) for name, part in published.inner]
        self.engine.write_parquet(exp.select(*columns).from_(published.table), path)
        return [name for name, _ in published.inner]
