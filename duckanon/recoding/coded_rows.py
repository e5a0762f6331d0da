"""The rows of a source with codes for values: what a division works on, and what is published of it.

Codes stand beside the columns that are published as they are, in one private table that spills like any other; only the
codes go to arrays. Where rows repeat, each combination goes there once, with its number of rows. Of many rows, codes
share words of 64 bits and texts of few values are enumerations, which are smaller, and stored and fetched sooner.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.algorithms.partition.partition import CodedPlaces, Items
from duckanon.encoding.dictionaries import ENUM_LIMIT, Coded, Dictionary, code_type, dictionary, enumerated_text
from duckanon.encoding.words import Bits, WordLayout, moved_up, unpacked, word_of_codes
from duckanon.engine.sql.relations import (
    approx_distinct,
    call,
    cast,
    col,
    hash_of,
    keyed_hash,
    named,
    pack,
    param,
    positional,
    qualified,
    same,
    subquery,
    table,
)
from duckanon.errors import ParameterError, did_you_mean
from duckanon.io.shuffled_writer import MANY_ROWS
from duckanon.plan.plan import has_distance
from duckanon.plan.roles import Attribute, Role
from duckanon.recoding.relations import size

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from duckanon.algorithms.partition.partition import OrderedAxis, Partitioner
    from duckanon.engine.base import Engine
    from duckanon.plan.plan import Plan
    from duckanon.recoding.regions import Boxes


CODE = "duckanon c_"
"""The prefix of the columns of codes, which no column of the source has."""
WORD = "duckanon w_"
"""The prefix of words of 64 bits that codes share, used for many rows."""
VALUE, TARGET, PERSON, TIE = "duckanon s_", "duckanon t_", "duckanon person", "duckanon tie"
_REPEATS = 4
"""If rows repeat this often on average, distinct combinations with counts are divided in their place."""
_MOST_TARGETS = 1000
_SAMPLED_ROWS, _FEW_TEXTS = 100_000, 5_000
"""How many rows are sampled, and how many texts a column may have among them to be stored as an enumeration."""


def kept_columns(plan: Plan) -> list[str]:
    """Return the columns that are copied to the coded rows: those that are passed through, and the entity key."""
    names = [a.name for a in plan.roles.published if a.role is not Role.QUASI_IDENTIFIER]
    return names + ([plan.roles.entity_key] if plan.roles.entity_key is not None else [])


@dataclass(frozen=True)
class CodedRows:
    """The table of the coded rows, the columns besides codes that the search needs, and the number of rows.

    ``short`` are the columns whose texts are stored as enumerations. ``words`` is the table of the same rows, in the
    same order, with codes as bits of words, where ``table`` is a view of it.
    """

    table: str
    extras: list[str]
    count: int
    short: frozenset[str] = frozenset()
    words: str | None = None


@dataclass(frozen=True)
class RowCoder:
    """Makes the coded rows of a source; ``values`` are the dictionaries of the sensitive columns that models look at.

    ``keys`` are two secret words for the hashes that decide between equal rows.
    """

    plan: Plan
    engine: Engine
    coded: Sequence[Coded]
    placed: Sequence[OrderedAxis]
    values: dict[str, Dictionary]
    keys: dict[str, int]
    algorithm: Partitioner

    @property
    def codes(self) -> list[exp.Expr]:
        """The columns of codes."""
        return [col(f"{CODE}{j}") for j in range(len(self.coded))]

    @property
    def bits(self) -> list[Bits]:
        """Where every code stands, where codes share words."""
        layout = WordLayout()
        return [layout.bits(coded.dictionary.size) for coded in self.coded]

    @property
    def words(self) -> list[exp.Expr]:
        """The columns of words that codes share."""
        return [col(f"{WORD}{w}") for w in range(max(word for word, _, _ in self.bits) + 1)]

    def rows(self, expected: int) -> CodedRows:
        """Create the coded rows; they lie in a file where ``expected`` of them would take too much of the memory."""
        plan, engine = self.plan, self.engine
        joined: list[tuple[str, Dictionary]] = [
            (f"{VALUE}{i}", values) for i, values in enumerate(self.values.values())
        ]
        if self.algorithm.choice == "information_gain":
            joined += [(f"{TARGET}{i}", values) for i, values in enumerate(self._targets())]
        measured = self._measured_targets() if self.algorithm.choice == "least_squares" else []
        extras = [name for name, _ in joined] + [PERSON] * (plan.entity is not None)
        extras += [f"{TARGET}{i}" for i in range(len(measured))]
        copied = kept_columns(plan)
        taken = [name for name in copied if name.lower().startswith("duckanon ")]
        if taken:
            raise ParameterError(f"The column {taken[0]!r} has a name that is kept for codes: rename it.")
        columns = len(self.coded) + len(joined)
        large = engine.is_crowded_by(expected * 4 * (columns + 2 * len(extras) + 6 * len(copied)))
        many = expected >= MANY_ROWS and not large
        packed = many and engine.keeps_order()
        short = self._enumerated() if many and not self.algorithm.permutes else {}
        query = self._coded(exp.select().from_(subquery(plan.relation.query, "s")), packed)
        for i, (name, values) in enumerate(joined):
            query = _join_by_value(query, values.expression, values.null, table(values.table, f"x{i}"))
            query = query.select(named(cast(col("code", f"x{i}"), code_type(values.size)), name))
        params: dict[str, int | float] = {f"mean{i}": mean for i, (_, mean) in enumerate(measured)}
        if plan.entity is not None:
            # A keyed hash in place of the key itself: a collision can only count two persons as one.
            hidden = keyed_hash(qualified(plan.entity, "s"))
            query, params = query.select(named(hidden, PERSON)), {**params, **self.keys}
        for i, (expression, _) in enumerate(measured):
            # The mean of few values is nearly one of them: statements, which may be shown, have it as a parameter.
            target = exp.func("COALESCE", qualified(expression, "s"), cast(param(f"mean{i}"), "DOUBLE"))
            query = query.select(named(target, f"{TARGET}{i}"))
        for i, name in enumerate(copied):
            if name in short:
                values_of, null = short[name]
                query = _join_by_value(query, col(name, "s"), null, table(values_of, f"e{i}"))
                query = query.select(named(col("short", f"e{i}"), name))
            else:
                query = query.select(col(name, "s"))
        if self.algorithm.by_rows:
            # Rows that are equal in all columns that the search reads are put in order by their published columns.
            others = [qualified(plan.expression(a), "s") for a in plan.roles.published]
            others += [qualified(plan.entity, "s")] if plan.entity is not None else []
            extras.append(TIE)
            query = query.select(named(keyed_hash(*others), extras[-1]))
            params = {**params, **self.keys}
        rows = engine.fresh("rows")
        total = (engine.create_file if large else engine.create)(rows, query, params)
        if not packed:
            return CodedRows(rows, extras, total, frozenset(short))
        shown = engine.fresh("rows")
        every = exp.select(*self._unpacked(), exp.Star()).from_(table(rows))
        engine.create_view(shown, every)
        return CodedRows(shown, extras, total, frozenset(short), rows)

    def _coded(self, query: exp.Select, packed: bool) -> exp.Select:
        """Add the codes of the quasi-identifiers, each in a column of its own or all in the bits of few words."""
        words: dict[int, list[exp.Expr]] = {}
        for j, (coded, (word, shift, _)) in enumerate(zip(self.coded, self.bits, strict=True)):
            values, alias = coded.dictionary, f"v{j}"
            if not packed:
                query = _join_by_value(query, values.expression, values.null, table(values.table, alias))
                query = query.select(named(cast(col("code", alias), code_type(values.size)), f"{CODE}{j}"))
                continue
            # Moved up once for each value, not for each row.
            moved = exp.select(col("value"), named(moved_up(col("code"), shift), "bits")).from_(table(values.table))
            query = _join_by_value(query, values.expression, values.null, subquery(moved, alias))
            words.setdefault(word, []).append(col("bits", alias))
        return query.select(*(named(word_of_codes(parts), f"{WORD}{word}") for word, parts in words.items()))

    def _unpacked(self) -> list[exp.Expr]:
        """Return the codes, each from its bits of a word."""
        return [
            named(cast(unpacked(col(f"{WORD}{bits.word}"), bits), code_type(coded.dictionary.size)), f"{CODE}{j}")
            for j, (coded, bits) in enumerate(zip(self.coded, self.bits, strict=True))
        ]

    def _enumerated(self) -> dict[str, tuple[str, bool]]:
        """Create ``(value, short)`` of the columns of texts that are published as they are, where those are few.

        ``short`` is the text as a value of an enumeration. The second result says whether NULL is among them.
        """
        engine, source = self.engine, self.plan.relation.query
        enumerations: dict[str, tuple[str, bool]] = {}
        for attribute in self.plan.roles.published:
            expression = self.plan.expression(attribute)
            # Only plain columns: a column with a collation would be compared differently.
            plain = attribute.type == "VARCHAR" and isinstance(expression, exp.Column)
            if attribute.role is Role.QUASI_IDENTIFIER or not plain:
                continue
            some = exp.select(expression).from_(subquery(source, "s")).limit(_SAMPLED_ROWS)
            (several,) = engine.row(exp.select(approx_distinct(expression.copy())).from_(subquery(some, "f")))
            if several > _FEW_TEXTS:
                continue
            values, value = engine.fresh("values"), col("value")
            different = engine.create(
                values, exp.select(named(expression, "value")).distinct().from_(subquery(source, "s"))
            )
            missing = exp.Is(this=value, expression=exp.null())
            (null,) = engine.row(exp.select(call("bool_or", missing)).from_(table(values)))
            if null < different <= ENUM_LIMIT:
                name = engine.fresh("short")
                enum = named(enumerated_text(engine, table(values), value, different), "short")
                engine.create(name, exp.select(value, enum).from_(table(values)))
                enumerations[attribute.name] = name, bool(null)
            engine.drop(values)
        return enumerations

    def _target_attributes(self) -> list[Attribute]:
        published = {a.name.lower(): a for a in self.plan.roles.published if a.role is not Role.QUASI_IDENTIFIER}
        targets = []
        for name in self.algorithm.target or ():
            if name.lower() not in published:
                hint = did_you_mean(name, [a.name for a in published.values()])
                raise ParameterError(f"The target {name!r} is no published column beside the quasi-identifiers.{hint}")
            targets.append(published[name.lower()])
        return targets

    def _targets(self) -> list[Dictionary]:
        targets = []
        for attribute in self._target_attributes():
            values = dictionary(self.engine, self.plan.relation.query, attribute.name, self.plan.expression(attribute))
            if values.size > _MOST_TARGETS:
                raise ParameterError(
                    f"The target {attribute.name!r} has {values.size} values, and information gain is for at most "
                    f"{_MOST_TARGETS}: use choose_dim='least_squares' for a number."
                )
            targets.append(values)
        return targets

    def _measured_targets(self) -> list[tuple[exp.Expr, float]]:
        """Return the targets as numbers, each with its mean: it replaces missing ones and does not affect the cuts."""
        targets: list[tuple[exp.Expr, float]] = []
        for attribute in self._target_attributes():
            target = size(self.plan.expression(attribute), attribute.type) if has_distance(attribute.type) else None
            if target is None:
                raise ParameterError(f"Least squares need a number, a date or a time, and {attribute.name!r} is none.")
            mean = exp.select(exp.Avg(this=target.copy())).from_(subquery(self.plan.relation.query, "m"))
            (middle,) = self.engine.row(mean)
            targets.append((cast(target, "DOUBLE"), float(middle or 0.0)))
        return targets

    def grouped(self, rows: CodedRows) -> str | None:
        """Create the distinct combinations with their counts, where rows repeat often enough."""
        if self.algorithm.by_rows or self.algorithm.choice == "least_squares":
            return None
        packed = rows.words is not None
        keys = [*(self.words if packed else self.codes), *(col(e) for e in rows.extras)]
        source = table(rows.words if rows.words is not None else rows.table)
        several = approx_distinct(hash_of(*keys))
        (distinct,) = self.engine.row(exp.select(several).from_(source))
        if int(distinct) * _REPEATS > rows.count:
            return None
        name = self.engine.fresh("combinations")
        count = named(exp.Count(this=exp.Star()), "n")
        grouped = exp.select(*(k.copy() for k in keys), count).from_(source.copy()).group_by(exp.var("ALL"))
        if packed:
            others = [*(col(e) for e in rows.extras), col("n")]
            grouped = exp.select(*self._unpacked(), *others).from_(subquery(grouped, "g"))
        large = self.engine.is_crowded_by(int(distinct) * 4 * (len(self.coded) + len(rows.extras) + 2))
        (self.engine.create_file if large else self.engine.create)(name, grouped)
        return name

    def items(self, column: Callable[[str], Any], extras: Sequence[str], counted: bool, packed: bool = False) -> Items:
        """Return items, of which there are columns of codes, or of words with codes in their bits."""
        import numpy as np

        def array(name: str) -> NDArray[Any]:
            return np.ascontiguousarray(column(name))

        def pieces(name: str) -> tuple[NDArray[Any], ...]:
            values = column(name)
            return (
                tuple(c.to_numpy() for c in values.chunks)
                if hasattr(values, "chunks")
                else (np.ascontiguousarray(values),)
            )

        place, bits = tuple(p.place.astype(np.uint32) for p in self.placed), None
        if packed:
            words = [pieces(word.name) for word in self.words]
            codes = tuple(words[word] for word, _, _ in self.bits)
            bits = tuple((shift, mask) for _, shift, mask in self.bits)
        else:
            codes = tuple(pieces(f"{CODE}{j}") for j in range(len(self.placed)))
        places = CodedPlaces(codes, place, bits)
        targets = [e for e in extras if e.startswith(TARGET)]
        return Items(
            places,
            array("n").astype(np.int64) if counted else None,
            numbered(array(PERSON)) if PERSON in extras else None,
            {name: array(f"{VALUE}{i}") for i, name in enumerate(self.values)},
            array(TIE) if TIE in extras else None,
            tuple(array(t) for t in targets),
        )


def _join_by_value(query: exp.Select, expression: exp.Expr, null: bool, values: exp.Expr) -> exp.Select:
    """Join a table of the values of a column to the rows; ``null`` says whether NULL is one of them."""
    expression, value = qualified(expression, "s"), col("value", values.alias)
    # With plain equality the database can look up dense numbers in an array.
    return query.join(values, on=same(expression, value) if null else exp.EQ(this=expression, expression=value))


def numbered(values: NDArray[Any]) -> NDArray[Any]:
    """Return dense numbers in place of values, in their order.

    Examples
    --------
    >>> import numpy as np
    >>> numbered(np.array([30, 10, 30], dtype=np.uint64)).tolist()
    [1, 0, 1]
    """
    import numpy as np

    order = np.argsort(values, kind="stable").astype(np.int32)
    ranked = values[order]
    numbers = np.empty(len(values), dtype=np.int32)
    numbers[order] = np.cumsum(np.concatenate([[False], ranked[1:] != ranked[:-1]])[: len(values)], dtype=np.int32)
    return numbers


RELEASED = "r_"
"""The prefix of the codes with which rows are published where values are permuted."""


@dataclass(frozen=True)
class Associations:
    """How values occur together in the coded rows before these are divided; ``coder`` has the algorithm with that."""

    coder: RowCoder
    columns: Sequence[Any]
    pairs: str
    """How often values occur together, see ``associations``."""


@dataclass(frozen=True)
class Cuts:
    """The cuts of a division: a line for each group that a cut made, see ``kernels.layout.WHOLE``.

    Classes, counted from 0, stand in place of items, and places are those on the axes of ``placed``.
    """

    lines: NDArray[Any]
    placed: tuple[OrderedAxis, ...]


@dataclass(frozen=True)
class Division:
    """The rows with their classes.

    ``rows`` has the codes of every row and the columns that are published as they are; ``ids`` the class of each, in
    the same order, or ``words`` that of each combination of codes. ``suppressed`` rows lie in classes that break a
    privacy model. ``short`` are the columns whose texts are stored as enumerations.
    """

    boxes: Boxes
    rows: str
    ids: str | None
    words: str | None
    sizes: tuple[int, ...]
    suppressed: int
    searched: dict[str, Any] = field(default_factory=dict)
    associations: Associations | None = None
    short: frozenset[str] = frozenset()
    cuts: Cuts | None = field(default=None, repr=False, compare=False)
    """The cuts between classes, where they were to be remembered."""

    def classed(self, columns: Sequence[exp.Expr], texts: bool = True) -> exp.Select:
        """Return columns of the coded rows ``s`` beside ``class_id`` of ``k``; with ``texts``, no enumerations."""
        if texts and self.short:
            columns = [self.as_texts(column) for column in columns]
        query = exp.select(*columns, col("class_id", "k")).from_(table(self.rows, "s"))
        if self.ids is not None:
            return positional(query, self.ids, "k")
        words = pack([col(f"{CODE}{j}", "s") for j in range(len(self.sizes))], self.sizes)
        on = exp.and_(*(exp.EQ(this=exp.paren(w), expression=col(f"w_{i}", "k")) for i, w in enumerate(words)))
        return query.join(table(str(self.words), "k"), on=on)

    def as_texts(self, column: exp.Expr) -> exp.Expr:
        """Return an expression of the coded rows with texts in place of enumerations."""
        return column.copy().transform(self._as_text)

    def _as_text(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and node.name in self.short:
            return cast(node.copy(), "VARCHAR")
        return node
