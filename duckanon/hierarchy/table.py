"""A generalization hierarchy: a table of levels, or a rule that makes one for a column; and one bound to a column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.engine.sql.relations import (
    call,
    cast,
    col,
    left,
    named,
    number,
    registered,
    same,
    subquery,
    table,
    text,
    union_all,
)
from duckanon.errors import HierarchyError, ParameterError, UnknownValueError
from duckanon.hierarchy.rules import ColumnType, Field, Kind, Labelling, Rule

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.engine.base import Engine
    from duckanon.engine.sql.relations import TableName


ON_UNKNOWN = ("error", "top")


@dataclass(frozen=True)
class Levels:
    """A hierarchy bound to a column.

    ``tree(code, known, l1, ..., lh)`` has the labels of every data value; where ``known`` is false, all of them are the
    top label. ``leaves(level, label, leaves)`` counts the leaves of the domain under each label, levels 1 to h.
    """

    attribute: str
    tree: TableName
    leaves: TableName
    height: int
    size: int
    top: str
    origin: str
    kind: Kind
    unknown: int
    """How many values of the data the hierarchy lacks."""
    arrays: tuple[pa.Table, pa.Table] | None = field(default=None, repr=False, compare=False)
    """Both tables, where they were made in memory."""


def bind(
    hierarchy: Hierarchy,
    engine: Engine,
    values: str,
    attribute: str,
    type_name: str,
    on_unknown: str = "error",
    texts: pa.Array | None = None,
) -> Levels:
    """Create the private tables of ``Levels`` for the column whose distinct values are in the table ``values``.

    ``texts`` are those of its values, where they are few enough for a lookup in memory.
    """
    from duckanon.hierarchy.auto import Auto, auto

    if on_unknown not in ON_UNKNOWN:
        raise ParameterError("The 'on_unknown' parameter must be 'error' or 'top'.")
    if isinstance(hierarchy.rule, Auto):
        hierarchy = auto(engine, values, attribute, type_name)
    if hierarchy.chosen:
        on_unknown = "top"
    column = ColumnType.parse(type_name)
    listed = hierarchy.levels
    if listed is not None and texts is not None:
        matched = _taken_from(listed, texts)
        if matched is not None:
            top, height = _top(listed), listed.num_columns - 1
            counted, size = _listed_leaves(listed, texts.null_count > 0, top)
            tables = registered(engine, "tree", matched), registered(engine, "leaves", counted)
            origin, arrays = hierarchy.origin, (matched, counted)
            return Levels(attribute, *tables, height, size, top, origin, column.kind, 0, arrays)
    field = Field(engine, values, attribute, column)
    domain = engine.fresh("domain")
    if listed is not None:
        engine.register(domain, listed)
        labelling = _matched(field, domain, listed.num_columns - 1, _top(listed))
    else:
        assert hierarchy.rule is not None
        labelling = hierarchy.rule.label(field)
    top = hierarchy.top if labelling.top is None else labelling.top
    height = labelling.depth + (labelling.top is None)
    tree = engine.fresh("tree")
    size = engine.create(tree, _completed(field, labelling, top))
    engine.drop(*labelling.scratch)
    if listed is not None:
        engine.unregister(domain)
    unknown, null = 0, False
    if not labelling.total:
        try:
            unknown, null = _unknown(field, tree, on_unknown)
        except HierarchyError:
            engine.drop(tree)
            raise
    leaves, incoming = engine.fresh("leaves"), engine.fresh("incoming")
    if listed is None:
        query = _leaf_counts(tree, height)
    else:
        counted, size = _listed_leaves(listed, null, top)
        engine.register(incoming, counted)
        query = exp.select(exp.Star()).from_(table(incoming), copy=False)
    engine.create(leaves, _with_unknown(query, height, top, size) if unknown else query)
    if listed is not None:
        engine.unregister(incoming)
    return Levels(attribute, tree, leaves, height, size, top, hierarchy.origin, field.type.kind, unknown)


def _taken_from(listed: pa.Table, texts: pa.Array) -> pa.Table | None:
    """Return ``(code, known, l1, ..., lh)``; None if the text of a value is not listed. NULL need not be."""
    import pyarrow as pa
    import pyarrow.compute as pc

    at = pc.index_in(texts, value_set=listed.column(0).combine_chunks())
    if pc.any(pc.and_(at.is_null(), texts.is_valid())).as_py():
        return None
    listed_values = pa.repeat(pa.scalar(True, pa.bool_()), len(texts))
    columns = {"code": pa.array(range(len(texts)), pa.int32()), "known": listed_values}
    for level, column in enumerate(listed.columns[1:], 1):
        columns[f"l{level}"] = column.combine_chunks().take(at)
    columns[f"l{level}"] = columns[f"l{level}"].fill_null(_top(listed))
    return pa.table(columns)


def _top(levels: pa.Table) -> str:
    return str(levels.column(levels.num_columns - 1)[0].as_py())


def _is_null(value: exp.Expr) -> exp.Expr:
    return exp.Is(this=value, expression=exp.null())


def _matched(field: Field, domain: str, height: int, top: str) -> Labelling:
    """Look up every value in the table: by its text, or else, if it is a number, by its size."""
    # Labels of the NULL leaf may be NULL below the top, but not at the top: only the top shows a match.
    hit = exp.Not(this=_is_null(col(f"l{height}", "d")))
    labels = [exp.Coalesce(this=col(f"l{height}", "d"), expressions=[text(top)])]
    below = [col(f"l{i}", "d") for i in range(1, height)]
    query = exp.select(
        col("code", "v"),
        named(exp.Or(this=hit, expression=_is_null(col("value", "v"))), "known"),
        *(named(label, f"l{i}") for i, label in enumerate([*below, *labels], 1)),
    ).from_(table(field.values, "v"), copy=False)
    scratch: tuple[str, ...] = ()
    on = same(col("text", "v"), col("l0", "d"))
    if field.type.kind == "number":
        plain = exp.select(col("code", "v"), named(col("l0", "d"), "leaf"), named(hit, "hit"))
        plain = plain.from_(table(field.values, "v"), copy=False).join(left(table(domain, "d"), on), copy=False)
        if _by_number(field, domain, plain):
            by_number = field.engine.fresh("by_number")
            field.engine.create(by_number, _numeric(field, domain, plain))
            scratch = (by_number,)
            query = query.join(
                table(by_number, "f"), on=exp.EQ(this=col("code", "f"), expression=col("code", "v")), copy=False
            )
            on = exp.and_(col("hit", "f"), same(col("leaf", "f"), col("l0", "d")), copy=False)
    query = query.join(table(domain, "d"), on=on, join_type="left", copy=False)
    return Labelling(query, height, top=top, total=False, nulls=True, scratch=scratch)


def _by_number(field: Field, domain: str, labels: exp.Query) -> bool:
    """Whether there are values without a match, and all leaves are numbers."""
    missed = (
        exp.select(exp.Count(this=exp.Star()))
        .from_(subquery(labels, "f"), copy=False)
        .where(exp.Not(this=col("hit")), copy=False)
    )
    if field.engine.row(missed) == (0,):
        return False
    odd = exp.and_(
        _is_null(exp.TryCast(this=col("l0"), to=exp.DataType.build("DOUBLE"))),
        exp.Not(this=_is_null(col("l0"))),
        copy=False,
    )
    (texts,) = field.engine.row(
        exp.select(exp.Count(this=exp.Star())).from_(table(domain), copy=False).where(odd, copy=False)
    )
    return not texts


def _canonical(field: Field, value: exp.Expr) -> exp.Expr:
    """Return the form in which numbers are compared: DOUBLE for floats, else their digits, which are exact."""
    if field.type.family == "float":
        return exp.TryCast(this=value, to=exp.DataType.build("DOUBLE"))
    digits = call("regexp_replace", call("trim", value), text(r"^\+?(-?)0*([0-9])"), text(r"\1\2"))
    digits = call("regexp_replace", digits, text(r"(\.[0-9]*?)0*$"), text(r"\1"))
    digits = call("regexp_replace", digits, text(r"\.$"), text(""))
    return call("regexp_replace", digits, text("^-0$"), text("0"))


def _numeric(field: Field, domain: str, labels: exp.Query) -> exp.Select:
    """Return ``labels`` with the remaining values matched by number, where exactly one leaf is that number."""
    leaf = exp.select(named(_canonical(field, col("l0")), "number"), named(exp.Min(this=col("l0")), "leaf"))
    leaf = (
        leaf.from_(table(domain), copy=False)
        .where(exp.Not(this=_is_null(col("l0"))), copy=False)
        .group_by(number(1), copy=False)
    )
    leaf = leaf.having(exp.EQ(this=exp.Count(this=exp.Star()), expression=number(1)), copy=False)
    hit = exp.Or(this=col("hit", "f"), expression=exp.Not(this=_is_null(col("leaf", "n"))))
    on = exp.and_(
        exp.Not(this=col("hit", "f")),
        exp.EQ(this=_canonical(field, col("text", "v")), expression=col("number", "n")),
        copy=False,
    )
    return (
        exp.select(
            col("code", "f"),
            named(exp.Coalesce(this=col("leaf", "f"), expressions=[col("leaf", "n")]), "leaf"),
            named(hit, "hit"),
        )
        .from_(subquery(labels, "f"), copy=False)
        .join(table(field.values, "v"), on=exp.EQ(this=col("code", "v"), expression=col("code", "f")), copy=False)
        .join(left(subquery(leaf, "n"), on), copy=False)
    )


def _completed(field: Field, labelling: Labelling, top: str) -> exp.Query:
    """Return ``(code, known, l1, ..., lh)`` of all values, NULL and unknown ones included; these have the top label."""
    height = labelling.depth + (labelling.top is None)
    is_known = exp.true() if labelling.total else col("known", "q")

    def level(i: int) -> exp.Expr:
        label: exp.Expr = text(top) if i > labelling.depth else col(f"l{i}", "q")
        if not labelling.total:
            label = exp.Case().when(is_known.copy(), label, copy=False).else_(text(top), copy=False)
        return named(cast(label, "VARCHAR"), f"l{i}")

    labelled = exp.select(col("code", "q"), named(is_known, "known"), *(level(i) for i in range(1, height + 1)))
    labelled = labelled.from_(subquery(labelling.query, "q"), copy=False)
    if labelling.nulls:
        return labelled
    blank = [named(cast(exp.null(), "VARCHAR"), f"l{i}") for i in range(1, height)]
    nulls = exp.select(col("code"), named(exp.true(), "known"), *blank, named(text(top), f"l{height}"))
    nulls = nulls.from_(table(field.values), copy=False).where(_is_null(col("value")), copy=False)
    return exp.union(labelled, nulls, distinct=False)


def _unknown(field: Field, tree: str, on_unknown: str) -> tuple[int, bool]:
    """Return how many values the hierarchy lacks, or raise; and whether NULL is among the values."""
    missing = exp.Not(this=col("known", "t"))
    query = (
        exp.select(
            exp.Count(this=exp.Star()),
            call("count_if", missing),
            exp.Sum(this=col("n", "v")),
            call("sum", exp.Case().when(missing, col("n", "v"), copy=False).else_(number(0), copy=False)),
            call("bool_or", _is_null(col("value", "v"))),
        )
        .from_(table(tree, "t"), copy=False)
        .join(table(field.values, "v"), on=exp.EQ(this=col("code", "v"), expression=col("code", "t")), copy=False)
    )
    values, unknown, rows, affected, null = field.engine.row(query)
    if unknown and on_unknown == "error":
        raise UnknownValueError(
            f"The hierarchy of {field.attribute!r} does not know {unknown} of {values} values "
            f"({affected} of {rows} rows). Add them to it, or set on_unknown='top' to publish them as its top label."
        )
    return int(unknown), bool(null)


def _leaf_counts(tree: str, height: int) -> exp.Query:
    """Return ``(level, label, leaves)`` of every level of a table of labels."""
    parts: list[exp.Query] = []
    for level in range(1, height + 1):
        at, label = named(cast(number(level), "INTEGER"), "level"), col(f"l{level}")
        count = named(exp.Count(this=exp.Star()), "leaves")
        query = exp.select(at, named(label, "label"), count).from_(table(tree), copy=False)
        parts.append(query.group_by(label, copy=False))
    return union_all(parts)


def _listed_leaves(levels: pa.Table, null: bool, top: str) -> tuple[pa.Table, int]:
    """Return ``(level, label, leaves)`` of a hierarchy, and how many leaves it has, NULL among them."""
    import pyarrow as pa

    if null and not levels.column(0).null_count:
        blank = {name: [None] for name in levels.column_names} | {levels.column_names[-1]: [top]}
        levels = pa.concat_tables([levels, pa.table(blank, levels.schema)])
    parts = []
    for level, column in enumerate(levels.columns[1:], 1):
        counted = column.combine_chunks().value_counts()
        at = pa.repeat(pa.scalar(level, pa.int32()), len(counted))
        parts.append(pa.table({"level": at, "label": counted.field("values"), "leaves": counted.field("counts")}))
    return pa.concat_tables(parts), levels.num_rows


def _with_unknown(query: exp.Query, height: int, top: str, size: int) -> exp.Query:
    """Let the top label cover the whole domain on every level, because unknown values are published as it."""
    result = exp.select(col("level"), col("label"), col("leaves")).from_(subquery(query, "c"), copy=False)
    covered = exp.and_(exp.LT(this=col("level"), expression=number(height)), same(col("label"), text(top)), copy=False)
    union: exp.Query = result.where(exp.Not(this=exp.paren(covered, copy=False)))
    for level in range(1, height):
        row = exp.select(
            named(cast(number(level), "INTEGER"), "level"),
            named(text(top), "label"),
            named(cast(number(size), "BIGINT"), "leaves"),
        )
        union = exp.union(union, row, distinct=False)
    return union


TOP = "*"


@dataclass(frozen=True, eq=False, repr=False)
class Hierarchy:
    """Level 0 is the value itself, every further level a coarser label, the last one label for all.

    Made by one of the constructors below, which check what they are given; the class itself only stores.

    Attributes
    ----------
    levels : pyarrow.Table, optional
        VARCHAR columns ``l0`` (the leaf; NULL is allowed) to ``lh`` (one label).
    rule : Rule, optional
        The rule, if there is no table.
    source : str
        Where it comes from, for reports.
    top : str
        The label of the last level of a rule.
    chosen : bool
        Whether it was chosen for the values of a column, see ``Hierarchy.auto``: those that it lacks get the top label.
    """

    levels: pa.Table | None = field(default=None)
    rule: Rule | None = None
    source: str = "given: table"
    top: str = TOP
    chosen: bool = False

    @classmethod
    def from_csv(cls, path: str | Path, separator: str = ";", top: str = TOP) -> Hierarchy:
        """Read the exchange format of ARX: no header, a line for each leaf, leaf first, quote and escape ``"``.

        A line with another number of cells, a leaf in two lines, an empty cell, a label with two parents, labels on a
        loop and a file of one column are errors. An empty leaf is NULL, a quoted empty leaf the empty text. If the last
        level has several labels, one more level with the label ``top`` is added.
        """
        from duckanon.hierarchy.files import read_csv
        from duckanon.hierarchy.validate import inspect

        file = Path(path)
        read = read_csv(file, separator)
        validation = inspect(read.table, lines=read.lines, ragged=read.ragged, flat=read.flat)
        if not validation.ok:
            raise HierarchyError(f"The hierarchy file {file.name!r} cannot be used. {' '.join(validation.problems)}")
        return cls(_rooted(read.table, top), None, f"given: file {file.name}", top)

    @classmethod
    def from_table(cls, data: object, columns: Sequence[str] | None = None, top: str = TOP) -> Hierarchy:
        """Use an Arrow table, a data frame or anything with ``__arrow_c_stream__``; columns are leaf, level 1, ...

        Examples
        --------
        >>> Hierarchy.from_table({"city": ["Bonn", "Köln", "Lyon"], "country": ["DE", "DE", "FR"]})
        Hierarchy(given: table, height 2, 3 leaves)
        """
        from duckanon.hierarchy.files import as_text

        return cls._checked(as_text(data, None if columns is None else list(columns)), "given: table", top)

    @classmethod
    def from_query(cls, connection: Any, sql: str, top: str = TOP) -> Hierarchy:
        """Use the result of a SELECT; ``connection`` is a DuckDB connection or an engine."""
        from sqlglot import exp

        from duckanon.engine.base import workspace
        from duckanon.engine.sql.relations import table
        from duckanon.hierarchy.files import select_text

        with workspace(connection) as engine:
            if engine.catalog.statement_kind(sql) != (1, "SELECT"):
                raise HierarchyError("The query of a hierarchy must be one SELECT statement.")
            # Names in the query are resolved as in the caller's session, unlike those in our own statements.
            name = engine.fresh("query")
            engine.catalog.create_as(name, sql)
            levels = select_text(engine, exp.select("*").from_(table(name)))
            engine.drop(name)
        return cls._checked(levels, "given: query", top)

    @classmethod
    def _checked(cls, levels: pa.Table, source: str, top: str) -> Hierarchy:
        from duckanon.hierarchy.validate import inspect

        validation = inspect(levels)
        if not validation.ok:
            raise HierarchyError(f"The hierarchy cannot be used ({source}). {' '.join(validation.problems)}")
        return cls(_rooted(levels, top), None, source, top)

    @classmethod
    def _ruled(cls, rule: Rule, top: str) -> Hierarchy:
        if not isinstance(top, str) or not top:
            raise HierarchyError(f"The 'top' parameter of {rule.name} must be a text with at least one character.")
        return cls(None, rule, f"given: rule {rule.name}", top)

    @classmethod
    def intervals(
        cls,
        width: float | Decimal | str | None = None,
        origin: float | Decimal | str = 0,
        factors: int | Sequence[int] | None = None,
        levels: int | None = None,
        cuts: Sequence[Any] | None = None,
        top: str = TOP,
    ) -> Hierarchy:
        """Half-open intervals of numbers.

        Parameters
        ----------
        width : number
            Width on level 1; intervals begin at ``origin`` plus its multiples.
        origin : number
        factors : int or list of int
            How many neighbours each further level joins; one number needs ``levels``.
        levels : int
            Number of levels below the top; with no ``factors``, each doubles the width.
        cuts : list of numbers, or list of lists
            Given cut points instead of a width, one list for each level, each with some cuts of the one before.
        top : str

        Examples
        --------
        >>> Hierarchy.intervals(width=5, factors=[2, 2]).materialise([17, 23]).preview()
        [('17', '[15, 20)', '[10, 20)', '[0, 20)', '*'), ('23', '[20, 25)', '[20, 30)', '[20, 40)', '*')]
        >>> Hierarchy.intervals(cuts=[[18, 65], [65]]).materialise([17, 65]).preview()
        [('17', '< 18', '< 65', '*'), ('65', '>= 65', '>= 65', '*')]
        """
        from duckanon.hierarchy.intervals import Cuts, Intervals

        if (width is None) == (cuts is None):
            raise HierarchyError("The rule intervals needs either 'width' or 'cuts'.")
        if cuts is not None:
            if factors is not None or levels is not None or origin:
                raise HierarchyError("With 'cuts', the rule intervals takes no 'origin', 'factors' or 'levels'.")
            return cls._ruled(Cuts.make(cuts), top)
        return cls._ruled(Intervals.make(width, origin, factors, levels), top)

    @classmethod
    def quantiles(cls, bins: int, then: int | Sequence[int] | None = None, top: str = TOP) -> Hierarchy:
        """Intervals with about equally many rows, cut at the data's quantiles, rounded.

        The cut points depend on the data, and the report says so. ``then`` gives the number of bins on further levels,
        each a divisor of the one before.
        """
        from duckanon.hierarchy.intervals import Quantiles

        return cls._ruled(Quantiles.make(bins, then), top)

    @classmethod
    def mask(
        cls,
        side: str = "right",
        positions: Sequence[Any] | None = None,
        character: str = "*",
        levels: int | None = None,
        top: str = TOP,
    ) -> Hierarchy:
        """Hide one character more at each level, or the given positions (counted from 1, each level a larger set).

        Examples
        --------
        >>> Hierarchy.mask().materialise(["123"]).preview()
        [('123', '12*', '1**', '*')]
        """
        from duckanon.hierarchy.rules import Mask

        return cls._ruled(Mask.make(side, positions, character, levels), top)

    @classmethod
    def prefix(
        cls,
        lengths: Sequence[int],
        then: Hierarchy | Mapping[str, Any] | str | Path | None = None,
        top: str = TOP,
        base: Path | None = None,
    ) -> Hierarchy:
        """Keep the first characters of a code; ``then`` names a hierarchy that goes on from the shortest prefix.

        Examples
        --------
        >>> Hierarchy.prefix([3, 1]).materialise(["E11.9"]).preview()
        [('E11.9', 'E11', 'E', '*')]
        """
        from duckanon.hierarchy.rules import Prefix

        return cls._ruled(Prefix.make(lengths, then, base), top)

    @classmethod
    def dates(cls, levels: Sequence[str] | None = None, top: str = TOP) -> Hierarchy:
        """Calendar levels of a DATE or TIMESTAMP: day, week, month, quarter, year, decade, from fine to coarse.

        By default all but the week, which lies in no month: ``week`` can only be the last level. A DATE is a day
        already, so that level is passed over there. Timestamps with a zone are taken in UTC.
        """
        from duckanon.hierarchy.rules import Dates

        return cls._ruled(Dates.make(levels), top)

    @classmethod
    def age(cls, reference_date: date | str, bands: Sequence[int] = (5, 10, 20, 40), top: str = TOP) -> Hierarchy:
        """Birth date to age in completed years on ``reference_date``, then bands, each a multiple of the one before."""
        from duckanon.hierarchy.rules import Age

        return cls._ruled(Age.make(reference_date, bands), top)

    @classmethod
    def order(cls, fanout: int = 3, top: str = TOP) -> Hierarchy:
        """Join ``fanout`` neighbours in the order of the values at each level until one group is left.

        A group of up to 16 values is named by all of them, a larger one by its first and last.

        Examples
        --------
        >>> Hierarchy.order(2).materialise(["Bonn", "Lyon", "Oslo"]).preview(1)
        [('Bonn', '{Bonn, Lyon}', '*')]
        """
        from duckanon.hierarchy.rules import Order

        return cls._ruled(Order.make(fanout), top)

    @classmethod
    def random(cls, seed: int, ordered: bool = True, max_children: int | None = None, top: str = TOP) -> Hierarchy:
        """Draw a random tree over the column's distinct values, all leaves at one depth; see ``order.random_tree``."""
        from duckanon.hierarchy.rules import Random

        return cls._ruled(Random.make(seed, ordered, max_children), top)

    @classmethod
    def tree(cls, tree: Mapping[str, Any] | Sequence[Any], top: str = TOP) -> Hierarchy:
        """Use a nested mapping of labels, with lists of values at the ends.

        Examples
        --------
        >>> Hierarchy.tree({"Europe": {"West": ["FR"], "North": ["SE"]}, "Asia": ["JP"]}).preview()
        [('FR', 'West', 'Europe', '*'), ('SE', 'North', 'Europe', '*'), ('JP', 'Asia', 'Asia', '*')]
        """
        from duckanon.hierarchy.build import flatten

        return cls._checked(flatten(tree), "given: rule tree", top)

    @classmethod
    def suppress(cls, top: str = TOP) -> Hierarchy:
        """One step from the value to the top."""
        from duckanon.hierarchy.rules import Suppress

        return cls._ruled(Suppress(), top)

    @classmethod
    def from_rule(cls, rule: Mapping[str, Any], base: Path | None = None) -> Hierarchy:
        """Make a hierarchy from a rule as in TOML files and SQL structs.

        Examples
        --------
        >>> Hierarchy.from_rule({"rule": "intervals", "width": 5, "factors": [2, 2, 2]})
        Hierarchy(given: rule intervals)
        """
        from duckanon.hierarchy.build import from_rule

        return from_rule(rule, base)

    @classmethod
    def auto(cls, type_name: str | None = None) -> Hierarchy:
        """Choose a hierarchy by the column's name, type and values once the column is known.

        A release gets the ready-made hierarchy that fits, such as ``countries``, with values that it lacks at the top;
        where none fits, one is made. The text "auto" means the same.
        """
        from duckanon.hierarchy.auto import Auto, expected

        return cls(None, Auto(), expected(type_name))

    @property
    def origin(self) -> str:
        """Where the hierarchy comes from, for reports: ``given``, ``shipped``, ``saved`` or ``made``."""
        return self.source + (self.rule.note if self.rule is not None else "")

    @property
    def height(self) -> int | None:
        """Number of levels above the values; None if it depends on the data."""
        if self.levels is not None:
            return int(self.levels.num_columns) - 1
        depth = self.rule.depth() if self.rule is not None else None
        return None if depth is None else depth + 1

    def named(self, source: str) -> Hierarchy:
        """Return the same hierarchy with another origin."""
        return replace(self, source=source)

    def bind(
        self,
        engine: Engine,
        values: str,
        attribute: str,
        type_name: str,
        on_unknown: str = "error",
        texts: pa.Array | None = None,
    ) -> Levels:
        """Create the labels of a column's distinct values, see ``levels.bind``."""
        return bind(self, engine, values, attribute, type_name, on_unknown, texts)

    def materialise(self, values: object, type_name: str | None = None, engine: Engine | None = None) -> Hierarchy:
        """Return the table that a rule makes of some values: a list, an Arrow array or a series."""
        from duckanon.hierarchy.build import materialise

        return self if self.levels is not None else materialise(self, values, type_name, engine)

    def to_rule(self) -> dict[str, Any]:
        """Return the rule as JSON types; a table has none."""
        if self.rule is None:
            raise HierarchyError("A hierarchy that is a table cannot be written as a rule: save it, and use its name.")
        rule = {"rule": self.rule.name, **self.rule.parameters()}
        return rule if self.top == TOP else {**rule, "top": self.top}

    def to_csv(self, path: str | Path, separator: str = ";") -> None:
        """Write the levels in the exchange format of ARX; an existing file is replaced in one step."""
        from duckanon.hierarchy.files import write_csv

        write_csv(self._table(), Path(path), separator)

    def describe(self) -> dict[str, Any]:
        """Return origin, kind, height and the number of labels on each level (level 0: the leaves)."""
        description: dict[str, Any] = {"origin": self.origin, "kind": "rule" if self.levels is None else "table"}
        description["height"] = self.height
        if self.levels is None:
            return {**description, "rule": self.to_rule(), "labels": None}
        import pyarrow.compute as pc

        labels = [len(pc.unique(self.levels.column(i))) for i in range(self.levels.num_columns)]
        return {**description, "rule": None, "labels": labels}

    def preview(self, limit: int = 20) -> list[tuple[str | None, ...]]:
        """Return the first rows of the hierarchy."""
        rows = self._table().slice(0, limit)
        return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))

    def _table(self) -> pa.Table:
        if self.levels is None:
            raise HierarchyError("A rule has no rows of its own: call materialise(values) first.")
        return self.levels

    def __repr__(self) -> str:
        if self.levels is None:
            return f"Hierarchy({self.origin})"
        return f"Hierarchy({self.origin}, height {self.height}, {len(self.levels)} leaves)"


def _rooted(levels: pa.Table, top: str) -> pa.Table:
    """Add a level with one label unless the last one has only one, or is the leaves themselves."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from duckanon.hierarchy.files import names

    if not isinstance(top, str) or not top:
        raise HierarchyError("The 'top' parameter of a hierarchy must be a text with at least one character.")
    width = levels.num_columns
    if width == 1 or len(pc.unique(levels.column(width - 1))) > 1:
        levels = levels.append_column(f"l{width}", pa.array([top] * len(levels), pa.string()))
    return levels.rename_columns(names(levels.num_columns))
