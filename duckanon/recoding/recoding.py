"""The recoding that was applied: levels, mapping tables, and one SQL statement that applies it without duckanon."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp

from duckanon.encoding.counting import ENTITY, persons
from duckanon.encoding.dictionaries import published_type
from duckanon.engine.sql.dialect import is_finite
from duckanon.engine.sql.relations import (
    call,
    cast,
    col,
    conjunction,
    ident,
    in_utc,
    named,
    number,
    qualified,
    same,
    subquery,
    table,
    text,
)
from duckanon.errors import UnsupportedError
from duckanon.hierarchy.rules import ColumnType

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.engine.base import Engine
    from duckanon.engine.sql.recode import Cell
    from duckanon.plan.plan import Plan


@dataclass(frozen=True)
class Recoding:
    """A level for each quasi-identifier and the mapping of its values.

    ``levels`` maps a quasi-identifier to its level. ``mapping`` and ``to_sql`` hold raw values: they are for the
    owner, not for publication.
    """

    levels: dict[str, int]
    plan: Plan = field(repr=False)
    cells: Sequence[Cell] = field(repr=False)
    engine: Engine = field(repr=False)
    min_size: int = 1
    class_map: str | None = field(default=None, repr=False)
    """The classes and whether they were kept, where more than the size of a class decided."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the published columns that make the classes."""
        return tuple(c.name for c in self.cells)

    def mapping(self, attribute: str) -> pa.Table:
        """Return (value, label) of one quasi-identifier, the value as text."""
        cell = next(c for c in self.cells if c.name == attribute)
        return self.engine.arrow(self._mapping_query(cell))

    def to_sql(self, dialect: str = "duckdb") -> str:
        """Return one statement, mapping tables included, that makes the same rows from the source without duckanon.

        Classes below the promised size are left out by a window count, those that break another promise by a list of
        them. The rows come in no particular order. Where the
        source was a query, an Arrow object or a data frame, the statement reads it under the name ``source``.
        """
        if dialect != "duckdb":
            raise UnsupportedError(f"The recoding can be written for duckdb. Got {dialect!r}.")
        if any(cell.shares is not None for cell in self.cells):
            raise UnsupportedError("Distributions of whole classes are published: no statement makes them row by row.")
        source = self.plan.relation
        inner = exp.select().from_(subquery((source.portable or source.query).copy(), "s"))
        quasi = {c.name: (j, c) for j, c in enumerate(self.cells)}
        mappings: list[tuple[str, exp.Expr]] = []
        for attribute in self.plan.roles.published:
            if attribute.name not in quasi:
                inner = inner.select(named(qualified(self.plan.expression(attribute), "s"), attribute.name))
                continue
            j, cell = quasi[attribute.name]
            value = qualified(cell.expression, "s")
            if cell.typed:
                inner = inner.select(named(value, attribute.name))
                continue
            if cell.constant:
                inner = inner.select(named(text(cell.top), attribute.name))
                continue
            alias = f"duckanon_map_{j}"
            mappings.append((alias, self._mapping_values(cell)))
            inner = inner.select(named(col("label", alias), attribute.name))
            inner = inner.join(table(alias, alias), on=same(_text(value, attribute.type), col("value", alias)))
        entity = self.plan.entity
        if entity is not None:
            inner = inner.select(named(qualified(entity, "s"), ENTITY))
        columns = [col(a.name) for a in self.plan.roles.published]
        keys = [col(c.name) for c in self.cells]
        counts = [exp.Count(this=exp.Star())] if entity is None else list(persons(col(ENTITY)))
        windows = [exp.Window(this=c, partition_by=[k.copy() for k in keys]) for c in counts]
        size = windows[0] if entity is None else exp.Add(this=windows[0], expression=windows[1])
        query = exp.select(*columns).from_(subquery(inner, "r"))
        if self.class_map is not None:
            refused = self._refused(self.class_map)
            if refused is not None:
                mappings.append(("duckanon_refused", refused))
                on = conjunction([same(col(c.name, "r"), col(c.name, "x")) for c in self.cells])
                inside = exp.select(number(1)).from_(table("duckanon_refused", "x")).where(on)
                query = query.where(exp.Not(this=exp.Exists(this=inside)))
        query.set("qualify", exp.Qualify(this=exp.GTE(this=size, expression=number(self.min_size))))
        for alias, values in mappings:
            query = query.with_(ident(alias), as_=values, copy=False)
        return query.sql(dialect=dialect, pretty=True)

    def _refused(self, class_map: str) -> exp.Query | None:
        """Return the published values of the classes that are suppressed although they are large enough."""
        large = exp.GTE(this=col("units", "c"), expression=number(self.min_size))
        query = exp.select().from_(table(class_map, "c"))
        query = query.where(exp.and_(exp.Not(this=col("kept", "c")), large)).order_by(col("class_id", "c"))
        for j, cell in enumerate(self.cells):
            code = col(f"g_{j}", "c")
            if cell.constant:
                value: exp.Expr = text(cell.top)
            elif cell.typed:
                alias = f"v_{j}"
                query = query.join(table(cell.values, alias), on=exp.EQ(this=col("code", alias), expression=code))
                value = cast(col("value", alias), "VARCHAR")
            else:
                alias = f"l_{j}"
                on_level = exp.EQ(this=col("level", alias), expression=number(cell.level))
                on_code = exp.EQ(this=col("code", alias), expression=code)
                query = query.join(table(cell.labels, alias), on=exp.and_(on_level, on_code))
                value = col("label", alias)
            query = query.select(named(value, cell.name))
        rows = self.engine.rows(query)
        if not rows:
            return None
        listed = [exp.Tuple(expressions=[text(v) if v is not None else exp.null() for v in row]) for row in rows]
        columns = exp.TableAlias(this=ident("m"), columns=[ident(c.name) for c in self.cells])
        types = {a.name: published_type(a.type) for a in self.plan.roles.quasi_identifiers}
        typed = [named(cast(col(c.name), types[c.name] if c.typed else "VARCHAR"), c.name) for c in self.cells]
        return exp.select(*typed).from_(exp.Values(expressions=listed, alias=columns))

    def _mapping_query(self, cell: Cell) -> exp.Query:
        on_code = exp.EQ(this=col("code", "k"), expression=col("code", "v"))
        query = exp.select(named(col("text", "v"), "value")).from_(table(cell.values, "v"))
        if cell.typed:
            return query.select(named(col("text", "v"), "label"))
        on_label = exp.and_(
            exp.EQ(this=col("level", "l"), expression=number(cell.level)),
            exp.EQ(this=col("code", "l"), expression=col(f"c{cell.level}", "k")),
        )
        return (
            query.select(col("label", "l"))
            .join(table(cell.levels, "k"), on=on_code)
            .join(table(cell.labels, "l"), on=on_label)
            .order_by(col("code", "v"))
        )

    def _mapping_values(self, cell: Cell) -> exp.Query:
        rows = self.engine.arrow(self._mapping_query(cell))
        tuples = []
        for value, label in zip(rows.column(0).to_pylist(), rows.column(1).to_pylist(), strict=True):
            pair = [text(v) if v is not None else cast(exp.null(), "VARCHAR") for v in (value, label)]
            tuples.append(exp.Tuple(expressions=pair))
        alias = exp.TableAlias(this=ident("m"), columns=[ident("value"), ident("label")])
        return exp.select("*").from_(exp.Values(expressions=tuples, alias=alias))


@dataclass(frozen=True)
class LocalRecoding(Recoding):
    """A recoding in several passes: what one suppressed, the next recoded at levels of its own.

    ``levels`` are those of the first pass, which most rows have; ``passes`` those of all.
    """

    passes: tuple[dict[str, int], ...] = ()

    def mapping(self, attribute: str) -> pa.Table:
        """Refuse: a value has several labels here, which depend on the row's other values."""
        raise UnsupportedError(f"The recoding is local: values of {attribute!r} have other labels in other rows.")

    def to_sql(self, dialect: str = "duckdb") -> str:
        """Refuse: which labels a row gets depends on the classes of all passes."""
        raise UnsupportedError("The recoding is local: it cannot be written as one short statement.")


@dataclass(frozen=True)
class BoxRecoding(Recoding):
    """A partition: every class has a region of its own, so no column stands on one level and ``levels`` is empty.

    ``names`` are the published columns that make the classes: a quasi-identifier has two where its bounds are written.
    """

    names: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return self.names

    def mapping(self, attribute: str) -> pa.Table:
        """Refuse: a value lies in the regions of many classes."""
        raise UnsupportedError(
            f"The rows were divided into regions: values of {attribute!r} are published differently in other rows."
        )

    def to_sql(self, dialect: str = "duckdb") -> str:
        """Refuse: which region a row lies in depends on the cuts of the whole partition."""
        raise UnsupportedError("The rows were divided into regions: that cannot be written as one short statement.")


def _text(value: exp.Expr, type_name: str) -> exp.Expr:
    """Return a value as text as the mapping has it: points in time in UTC, whatever the session's time zone."""
    plain = cast(value, "VARCHAR")
    if not ColumnType.parse(type_name).zoned:
        return plain
    utc = exp.DPipe(this=cast(call("timezone", text("UTC"), value.copy()), "VARCHAR"), expression=text("+00"))
    return exp.case().when(is_finite(in_utc(value.copy(), type_name)), utc).else_(plain)
