"""The pieces of which statements are built, and relations by name.

Identifiers are always quoted, values always parameters or literals. Pieces are combined without a copy: copy a piece
before changing it, if another statement may contain it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from sqlglot import exp
from sqlglot.errors import ParseError

if TYPE_CHECKING:
    from duckanon.engine.base import Engine


DIALECT = "duckdb"


@dataclass(frozen=True)
class Column:
    """A column of a relation: its name and the database's name of its type."""

    name: str
    type: str


def ident(name: str) -> exp.Identifier:
    """Return a quoted identifier, whatever characters the name has."""
    return exp.Identifier(this=name, quoted=True)


def col(name: str, table: str | None = None) -> exp.Column:
    """Return a quoted column reference."""
    return exp.Column(this=ident(name), table=ident(table) if table else None)


class LazyTable:
    """A private table that is made when a statement about it is first built.

    ``make`` gets the engine and a fresh name, and creates or registers the table under it.
    """

    def __init__(self, engine: Engine, stem: str, make: Callable[[Engine, str], object]) -> None:
        self._engine, self._stem, self._make = engine, stem, make
        self._name: str | None = None
        self._lock = threading.RLock()

    @property
    def name(self) -> str:
        """The name of the table, which is there from now on."""
        with self._lock:
            if self._name is None:
                name = self._engine.fresh(self._stem)
                self._make(self._engine, name)
                self._name = name
            return self._name

    @property
    def is_made(self) -> bool:
        """Whether the table is there."""
        return self._name is not None


TableName = str | LazyTable
"""A private table, or one that is made when it is needed."""


def registered(engine: Engine, stem: str, data: object) -> LazyTable:
    """Return a table of Arrow data that the database reads when a statement needs it."""
    return LazyTable(engine, stem, lambda engine, name: engine.register(name, data))


def table(
    name: TableName, alias: str | None = None, schema: str | None = None, catalog: str | None = None
) -> exp.Table:
    """Return a quoted table reference."""
    own = name if isinstance(name, str) else name.name
    node = exp.Table(this=ident(own), db=ident(schema) if schema else None, catalog=ident(catalog) if catalog else None)
    if alias:
        node.set("alias", exp.TableAlias(this=ident(alias)))
    return node


def text(value: str) -> exp.Literal:
    """Return a string literal; quotes in it are escaped when the statement is generated."""
    return exp.Literal.string(value)


def number(value: int | float) -> exp.Expr:
    """Return a number literal."""
    return exp.convert(value)


def param(name: str) -> exp.Placeholder:
    """Return a named parameter."""
    return exp.Placeholder(this=name)


def call(function: str, *arguments: exp.Expr) -> exp.Expr:
    """Return a function call by its database name."""
    return exp.Anonymous(this=function, expressions=list(arguments))


def builtin(function: str, *arguments: exp.Expr) -> exp.Expr:
    """Return a call of the database's own function, whatever macro of that name somebody made.

    Examples
    --------
    >>> builtin("floor", number(1.5)).sql(dialect="duckdb")
    'SYSTEM.MAIN.FLOOR(1.5)'
    """
    return exp.Anonymous(this=f"system.main.{function}", expressions=list(arguments))


def cast(value: exp.Expr, type_name: str) -> exp.Expr:
    """Return ``CAST(value AS type_name)``."""
    kind = data_type(type_name)
    return exp.cast(value, kind, copy=False) if isinstance(value, exp.Cast) else exp.Cast(this=value, to=kind)


@lru_cache(256)
def data_type(name: str) -> exp.DataType:
    """Return a type by the database's name for it, also one that sqlglot does not know."""
    try:
        return exp.DataType.build(name, dialect=DIALECT)
    except ParseError:
        return exp.DataType(this=exp.DataType.Type.USERDEFINED, kind=name)


def in_utc(value: exp.Expr, type_name: str) -> exp.Expr:
    """Return a timestamp that date functions accept: they do not accept nanoseconds with a time zone."""
    return call("timezone", text("UTC"), value) if type_name.upper().startswith("TIMESTAMPTZ_NS") else value


def named(value: exp.Expr, name: str) -> exp.Expr:
    """Return ``value AS "name"``."""
    return exp.Alias(this=value, alias=ident(name))


def same(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """Return an equality in which NULL equals NULL."""
    return exp.NullSafeEQ(this=left, expression=right)


def qualified(expression: exp.Expr, alias: str) -> exp.Expr:
    """Return a copy whose columns belong to ``alias``."""
    copy = expression.copy()
    for column in copy.find_all(exp.Column):
        column.set("table", ident(alias))
    return copy


def conjunction(parts: Sequence[exp.Expr]) -> exp.Expr:
    """Return all parts joined by AND; no parts are true."""
    return exp.and_(*parts, copy=False) if parts else exp.true()


def quoted_member(value: exp.Expr) -> exp.Expr:
    """Quote a text that has a comma, brace or quote in it, so that lists of different texts never look alike."""
    odd = call("regexp_matches", value, text('[,{}"]|^$|^ | $'))
    doubled = call("replace", value.copy(), text('"'), text('""'))
    return exp.Case().when(odd, call("concat", text('"'), doubled, text('"'))).else_(value.copy())


def left(source: exp.Expr, on: exp.Expr) -> exp.Join:
    """Return a left join, for ``join``."""
    return exp.Join(this=source, on=on, side="LEFT")


def positional(query: exp.Select, name: str, alias: str) -> exp.Select:
    """Join the rows of a table to those of a query by position."""
    query.append("joins", exp.Join(this=table(name, alias), method="POSITIONAL"))
    return query


def subquery(select: exp.Query, alias: str) -> exp.Subquery:
    """Return a query in parentheses with a quoted alias."""
    return exp.Subquery(this=select, alias=exp.TableAlias(this=ident(alias)))


def union_all(parts: Sequence[exp.Query]) -> exp.Query:
    """Return UNION ALL of the parts."""
    result = parts[0]
    for part in parts[1:]:
        result = exp.union(result, part, distinct=False, copy=False)
    return result


def scan(
    function: str, paths: Sequence[str], options: Mapping[str, bool | str | int | exp.Expr] | None = None
) -> exp.Table:
    """Return a table function over files, such as ``read_parquet(['a', 'b'], hive_partitioning = TRUE)``."""
    arguments: list[exp.Expr] = [exp.Array(expressions=[text(p) for p in paths])]
    for key, value in (options or {}).items():
        given = value if isinstance(value, exp.Expr) else exp.convert(value)
        arguments.append(exp.EQ(this=exp.column(key), expression=given))
    return exp.Table(this=call(function, *arguments))


def copy_to(select: exp.Query, path: str, options: Mapping[str, str | int | exp.Expr]) -> exp.Copy:
    """Return ``COPY (select) TO 'path' (options)``; an option that is a word is written as it is."""

    def written(value: str | int | exp.Expr) -> exp.Expr:
        if isinstance(value, exp.Expr):
            return value
        return exp.var(value) if isinstance(value, str) else number(value)

    return exp.Copy(
        this=exp.Subquery(this=select),
        kind=False,
        files=[text(path)],
        params=[exp.CopyParameter(this=exp.var(k.upper()), expression=written(v)) for k, v in options.items()],
    )


def create_table(name: str, select: exp.Query, temporary: bool = True) -> exp.Create:
    """Return ``CREATE OR REPLACE [TEMPORARY] TABLE name AS select``."""
    properties = exp.Properties(expressions=[exp.TemporaryProperty()]) if temporary else None
    return exp.Create(this=table(name), kind="TABLE", replace=True, expression=select, properties=properties)


_WORD = 2**62


def pack(codes: Sequence[exp.Expr], sizes: Sequence[int]) -> list[exp.Expr]:
    """Return the codes packed into as few BIGINT words as hold them, most significant first."""
    words: list[exp.Expr] = []
    current: exp.Expr | None = None
    space = 1
    for code, size in zip(codes, sizes, strict=True):
        wide = cast(code, "BIGINT")
        if current is None or space * size > _WORD:
            if current is not None:
                words.append(current)
            current, space = wide, size
        else:
            product = exp.Mul(this=exp.paren(current), expression=number(size))
            current, space = exp.Add(this=product, expression=wide), space * size
    if current is not None:
        words.append(current)
    return words


class Dialect(Protocol):
    """How an engine writes statements."""

    name: str
    """What sqlglot calls it."""

    def sql(self, statement: exp.Expr) -> str:
        """Return the text of a statement; it is not changed, nor copied."""


def hash_of(*values: exp.Expr) -> exp.Expr:
    """Return a hash of 64 bits without a sign; equal values have equal ones. Engines hash differently."""
    return call("hash", *values)


def keyed_hash(*values: exp.Expr) -> exp.Expr:
    """Return a hash under the secret parameters ``key0`` and ``key1``."""
    return hash_of(param("key0"), param("key1"), *values)


def shuffle_key(*values: exp.Expr) -> exp.Expr:
    """Return a keyed hash of the values of a row, hashed again: what depends on it tells nothing of the values.

    A hash of several values may mix the last one in weakly. Rows that differ in it alone would then be as far apart in
    every class, and a small file would look sorted.
    """
    return hash_of(keyed_hash(*values))


def approx_distinct(value: exp.Expr) -> exp.Expr:
    """Return about how many different values there are: good enough to choose a way, never to check anything."""
    return call("approx_count_distinct", value)


def is_finite(value: exp.Expr) -> exp.Expr:
    """Return whether a number, date or timestamp is neither infinite nor NaN."""
    return call("isfinite", value)


def epoch_seconds(value: exp.Expr) -> exp.Expr:
    """Return the seconds from 1970 to a date or timestamp, or from midnight to a time, with fractions."""
    return call("epoch", value)


def epoch_microseconds(value: exp.Expr) -> exp.Expr:
    """Return the whole microseconds of ``epoch_seconds``."""
    return call("epoch_us", value)


class relation:  # noqa: N801 - a decorator
    """Marks a method of ``RelationTables`` as the definition of the relation that has its name.

    The method returns the query of the relation, or the name of a table that it has created.
    """

    def __init__(self, define: Callable[[Any], exp.Query | str]) -> None:
        self.define = define
        self.__isabstractmethod__ = getattr(define, "__isabstractmethod__", False)


class RelationTables:
    """The tables of relations: ``tables`` are there already, subclasses define others by methods.

    Examples
    --------
    >>> class Doubled(RelationTables):
    ...     @relation
    ...     def doubled(self):
    ...         return exp.select("n * 2 AS n").from_(self.table("numbers"))
    >>> from duckanon.engine.base import workspace
    >>> with workspace(None) as engine:
    ...     engine.create("numbers", exp.select("1 AS n"))
    ...     relations = Doubled(engine, {"numbers": "numbers"})
    ...     relations.has("doubled"), relations.has("halved"), relations.made()
    ...     engine.rows(exp.select("n").from_(relations.table("doubled")))
    1
    (True, False, ['numbers'])
    [(2,)]
    """

    def __init__(self, engine: Engine, tables: Mapping[str, str] | None = None) -> None:
        self.engine = engine
        self._tables = dict(tables or {})

    def lacks(self, name: str) -> bool:
        """Return whether a relation that is defined cannot be made of these data."""
        return False

    def has(self, name: str) -> bool:
        """Return whether there is such a relation, whether or not its table was created yet."""
        return name in self._tables or (isinstance(getattr(type(self), name, None), relation) and not self.lacks(name))

    def made(self) -> list[str]:
        """Return the names of the relations that have tables by now."""
        return list(self._tables)

    def table(self, name: str) -> str:
        """Return the table of a relation, which is created now if it is not there yet."""
        if name not in self._tables:
            if not self.has(name):
                raise KeyError(name)
            made = getattr(type(self), name).define(self)
            if not isinstance(made, str):
                query, made = made, self.engine.fresh(name)
                self.engine.create(made, query)
            self._tables[name] = made
        return self._tables[name]

    def tables(self, *names: str) -> dict[str, str]:
        """Return the tables of several relations by their names."""
        return {name: self.table(name) for name in names}

    def add(self, name: str, table: str) -> None:
        """Let a table be that of a relation."""
        self._tables[name] = table

    def drop(self, *keep: str) -> None:
        """Drop the tables that were created, except those of the relations named."""
        self.engine.drop(*(made for name, made in self._tables.items() if name not in keep))
