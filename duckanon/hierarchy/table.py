"""A generalization hierarchy: a table of levels, or a rule that makes one for a column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duckanon.errors import HierarchyError
from duckanon.hierarchy.levels import Levels, bind
from duckanon.hierarchy.rules import Rule

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.engine.base import Engine

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
    """

    levels: pa.Table | None = field(default=None)
    rule: Rule | None = None
    source: str = "given: table"
    top: str = TOP

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

        from duckanon.engine.open import workspace
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
        from duckanon.hierarchy.masks import Mask

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
        from duckanon.hierarchy.masks import Prefix

        return cls._ruled(Prefix.make(lengths, then, base), top)

    @classmethod
    def dates(cls, levels: Sequence[str] | None = None, top: str = TOP) -> Hierarchy:
        """Calendar levels of a DATE or TIMESTAMP: day, week, month, quarter, year, decade, from fine to coarse.

        By default all but the week, which lies in no month: ``week`` can only be the last level. A DATE is a day
        already, so that level is passed over there. Timestamps with a zone are taken in UTC.
        """
        from duckanon.hierarchy.dates import Dates

        return cls._ruled(Dates.make(levels), top)

    @classmethod
    def age(cls, reference_date: date | str, bands: Sequence[int] = (5, 10, 20, 40), top: str = TOP) -> Hierarchy:
        """Birth date to age in completed years on ``reference_date``, then bands, each a multiple of the one before."""
        from duckanon.hierarchy.dates import Age

        return cls._ruled(Age.make(reference_date, bands), top)

    @classmethod
    def order(cls, fanout: int = 3, top: str = TOP) -> Hierarchy:
        """Join ``fanout`` neighbours in the order of the values at each level until one group is left."""
        from duckanon.hierarchy.order import Order

        return cls._ruled(Order.make(fanout), top)

    @classmethod
    def random(cls, seed: int, ordered: bool = True, max_children: int | None = None, top: str = TOP) -> Hierarchy:
        """Draw a random tree over the column's distinct values, all leaves at one depth; see ``order.random_tree``."""
        from duckanon.hierarchy.order import Random

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
        from duckanon.hierarchy.masks import Suppress

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
        """Choose a hierarchy by the column's type and values once the column is known."""
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
