"""What every recoding offers: how rows are published, and what the gate compares with the source."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.encoding.counting import ENTITY, persons
from duckanon.encoding.dictionaries import published_type
from duckanon.engine.sql.recode import Cell
from duckanon.engine.sql.relations import (
    RelationTables,
    call,
    cast,
    col,
    conjunction,
    ident,
    in_utc,
    is_finite,
    named,
    number,
    qualified,
    same,
    subquery,
    table,
    text,
    union_all,
)
from duckanon.errors import RoleError, UnsupportedError, did_you_mean
from duckanon.hierarchy.rules import ColumnType

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.engine.base import Engine
    from duckanon.plan.plan import Plan


@dataclass(frozen=True)
class Recoding:
    """A level for each quasi-identifier and the mapping of its values.

    ``levels`` maps a quasi-identifier to its level. ``mapping``, ``groups`` and ``to_sql`` hold raw values: they are
    for the owner, not for publication.
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

    def groups(self, attribute: str) -> pa.Table:
        """Return (level, label, value): which values of the table each label of a hierarchy stands for.

        It is for the owner: it has values of the table, also of labels that no row of the release has.

        Examples
        --------
        >>> import duckanon, pyarrow as pa
        >>> people = pa.table({"town": ["Bonn", "Lyon", "Oslo"] * 2})
        >>> with duckanon.anonymize(people, quasi_identifiers=["town"], k=3) as release:
        ...     groups = release.recoding.groups("town").to_pylist()
        >>> groups[0]
        {'level': 1, 'label': '{Bonn, Lyon}', 'value': 'Bonn'}
        """
        cell = next((c for c in self.cells if c.name.lower() == attribute.lower()), None)
        if cell is None:
            known = [c.name for c in self.cells]
            raise RoleError(f"{attribute!r} is no quasi-identifier.{did_you_mean(attribute, known)}")
        (height,) = self.engine.row(exp.select(exp.Max(this=col("level"))).from_(table(cell.labels)))
        parts: list[exp.Query] = []
        for level in range(1, int(height or 0) + 1):
            on = exp.and_(
                exp.EQ(this=col("level", "l"), expression=number(level)),
                exp.EQ(this=col("code", "l"), expression=col(f"c{level}", "k")),
            )
            query = exp.select(col("level", "l"), col("label", "l"), named(col("text", "v"), "value"), col("code", "v"))
            query = query.from_(table(cell.values, "v"))
            query = query.join(table(cell.levels, "k"), on=exp.EQ(this=col("code", "k"), expression=col("code", "v")))
            parts.append(query.join(table(cell.labels, "l"), on=on))
        every = exp.select(col("level"), col("label"), col("value")).from_(subquery(union_all(parts), "g"))
        return self.engine.arrow(every.order_by(col("level"), col("code")))

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


GROUP, PERSON, KEPT = "group_id", "person", "kept"
"""Columns of the evidence and of rows side by side, besides those that are numbered."""


@dataclass(frozen=True)
class Lookup:
    """Values that rows have by number: ``query(code, ...)``, joined to the rows by their column ``key``.

    Its further columns are ``s_j``, the values of the quasi-identifiers as they were, and ``r_j`` (and ``r_jb``), what
    is published of them; of midpoints ``x_j`` and ``y_j``, too, the ends that they lie between, as ticks; or ``p_i``,
    what is published as it is.
    """

    key: str
    query: exp.Query


@dataclass(frozen=True)
class SideBySide:
    """The rows of a release as they were and as they are published.

    ``rows`` has one row for each of the source: the keys of ``lookups``, ``p_0``, ``p_1``, ... that are published as
    they are unless they are looked up, ``person`` where persons are counted, and perhaps ``kept``, false for rows that
    are not published. Rows for which a look-up has no line are not published either.
    """

    rows: exp.Query
    lookups: tuple[Lookup, ...]
    marked: bool = False
    """Whether rows have ``kept``."""
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Evidence:
    """A private table that ties the rows of the source to those of the release, and the claims that the gate checks.

    ``blocks`` name the quasi-identifiers that are permuted together. With ``redraws``, a block that stayed where it was
    is drawn again in groups that are large enough for that, see ``linkage``.
    """

    table: str
    quasi: tuple[str, ...]
    extra: tuple[str, ...]
    blocks: tuple[tuple[str, ...], ...]
    k: int
    redraws: bool
    persons: bool

    @property
    def originals(self) -> list[exp.Expr]:
        """The quasi-identifiers of the source."""
        return [col(f"s_{j}") for j in range(len(self.quasi))]

    @property
    def published(self) -> list[exp.Expr]:
        """The quasi-identifiers of the release."""
        return [col(f"r_{j}") for j in range(len(self.quasi))]

    @property
    def others(self) -> list[exp.Expr]:
        """The other published columns."""
        return [col(f"p_{i}") for i in range(len(self.extra))]

    def block(self, names: Sequence[str], side: str) -> list[exp.Expr]:
        """Return the columns of a block, of the source ("s") or the release ("r")."""
        return [col(f"{side}_{self.quasi.index(name)}") for name in names]


class Recoder(ABC):
    """Knows the classes of a release, and how a row of the source is published."""

    engine: Engine
    cells: list[Cell]
    relations: RelationTables
    by_code = False
    """Whether ``extra`` of ``rows`` are columns of the coded rows, not of the source."""

    @property
    @abstractmethod
    def shown(self) -> Sequence[tuple[str, str]]:
        """The published columns of the quasi-identifiers, each with its name among ``rows``."""

    @abstractmethod
    def rows(self, extra: Sequence[tuple[str, exp.Expr]], keyed: bool = False) -> exp.Select:
        """Return the published rows as ``(q_0, ..., p_0, ...)``, p being ``extra``, in any order.

        With ``keyed``, the last column ``ORDER`` has a hash of their content under secret parameters, see ``shuffled``.
        """

    @abstractmethod
    def released(self, rows: exp.Query, columns: Sequence[tuple[str, str]]) -> exp.Select:
        """Return the release from ``rows``, in their order: (published name, name among rows) for each column."""

    @abstractmethod
    def recoding(self) -> Recoding:
        """Return the recoding as the owner sees it."""

    def write(
        self,
        extra: Sequence[tuple[str, exp.Expr]],
        columns: Sequence[tuple[str, str]],
        path: Path,
        params: Mapping[str, int],
        count: int,
        from_file: Callable[[exp.Select], exp.Select] | None = None,
    ) -> bool:
        """Write the release and return True where there is a faster way than a query of ``rows``; else False.

        The order is that of ``shuffled``. ``from_file`` puts rows into a file before they are sorted, where there is
        too little memory to join and sort them at a time.
        """
        return False

    # What the gate compares with the source: each recoder gives one of the two.

    def beside(self, extra: Sequence[tuple[str, exp.Expr]], person: exp.Expr | None) -> SideBySide | None:
        """Return all rows of the source as they were and as they are published, where cells stand for values."""
        return None

    def evidence(
        self, extra: Sequence[tuple[str, exp.Expr]], person: exp.Expr | None, keys: Mapping[str, int]
    ) -> Evidence | None:
        """Create what ties the published rows to those of the source, where values were permuted between rows.

        ``person`` is a keyed hash of the entity key, ``keys`` its parameters.
        """
        return None

    def described(self) -> dict[str, Any]:
        """Return what reports say of the permutation; nothing where none was made."""
        return {}


def through(extra: Sequence[tuple[str, exp.Expr]], person: exp.Expr | None, alias: str) -> list[exp.Expr]:
    """Return what rows of the source have besides quasi-identifiers."""
    columns = [named(qualified(expression, alias), f"p_{i}") for i, (_, expression) in enumerate(extra)]
    return [*columns, *([named(qualified(person, alias), PERSON)] if person is not None else [])]


def originals(cells: Sequence[Cell]) -> list[Lookup]:
    """Return the values of the quasi-identifiers by their codes ``k_0``, ``k_1``, ..."""
    return [
        Lookup(f"k_{j}", exp.select(col("code"), named(col("value"), f"s_{j}")).from_(table(cell.values)))
        for j, cell in enumerate(cells)
    ]
