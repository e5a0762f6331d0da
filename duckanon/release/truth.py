"""Truthfulness: the rows of a release, before and after recoding, are compared side by side.

The pairs of rows come from the recoding and are not trusted. Three things are verified:

1. the original values, with the other published columns and the person, are the rows of the source, suppressed rows
   included;
2. the published cells, with the other published columns, are the rows of the written file;
3. every published cell stands for the value beside it.

Rows are compared as multisets by the sum of their keyed hashes, under secret random keys that are drawn after the rows
were written. If all three hold, the file has the rows of the source with true cells, whatever the recoding did.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.encoding.words import batches, joined, named_in, secret_words, sum_of_rows, word_of, words_of
from duckanon.engine.process import workers
from duckanon.engine.sql.axes import choose, equal, is_null, present
from duckanon.engine.sql.relations import call, cast, col, named, number, same, subquery, table
from duckanon.errors import PrivacyViolation
from duckanon.recoding.base import KEPT, PERSON, Lookup, SideBySide
from duckanon.release.cell_meaning import BY_CLASS, Meaning, Shown, class_is_right, meaning, shares_are_right

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from duckanon.engine.base import Engine

_CLASS = "class_id"
NOWHERE = 2**31 - 1
"""A place after all values."""
_OF_CELL, _OF_CLASS = 4, 21
"""Bytes for each class and column: of the number of a cell, and of a cell that only this class has."""
_WORDS = 2**64
_AHEAD = 3
"""Batches that may wait."""
Part = tuple[int, int]
"""A range of classes: the first, and the one after the last."""


@dataclass(frozen=True)
class Claim:
    """What the rows are compared with; nothing of it comes from the recoding.

    ``original`` are the quasi-identifiers as the source has them, ``passed`` what is published beside them, ``person``
    a hash of the entity key. ``names`` are the published names of each quasi-identifier, ``others`` those of
    ``passed``; ``types`` has the types of the written file by name.
    """

    source: exp.Query
    original: Sequence[exp.Expr]
    passed: Sequence[exp.Expr]
    person: exp.Expr | None
    shown: Sequence[Shown]
    names: Sequence[Sequence[str]]
    others: Sequence[str]
    types: Mapping[str, str]


@dataclass(frozen=True)
class Fingerprint:
    """The rows of a release as one number under a secret key: other rows have another number.

    ``columns`` has names, types and numbers of columns.
    """

    keys: Mapping[str, Any] = field(repr=False)
    columns: tuple[tuple[str, str, int], ...]
    rows: int
    total: int

    def require(self, engine: Engine, relation: exp.Query) -> None:
        """Raise a PrivacyViolation unless a relation holds the same rows."""
        words = [w for name, kind, slot in self.columns for w in words_of(col(name), kind, slot)]
        if sum_of_rows(engine, relation, words, self.keys) != (self.rows, self.total):
            _refuse("the file does not hold the rows that were checked")


def require_truth(engine: Engine, beside: SideBySide, claim: Claim, suppressed: int) -> Fingerprint:
    """Return the fingerprint of the published rows, which the file of the release must have, too.

    Raise a PrivacyViolation if they are not the rows of the source, or if a cell does not stand for its value.
    """
    return _Truth(engine, beside, claim).require(suppressed)


def _refuse(problem: str) -> None:
    raise PrivacyViolation(f"The gate refused the release: {problem}. Nothing was published.")


def _require_numbers(codes: NDArray[Any], first: int = 0) -> None:
    if len(codes) and int(codes.min()) < first:
        _refuse("what it looks up has numbers below the first")


def _require_each(codes: NDArray[Any], filled: NDArray[Any]) -> None:
    """Raise where a number occurs twice."""
    if int(filled.sum()) != len(codes):
        _refuse("what it looks up under a number is not one thing")


def _in_part(number_of: exp.Expr, part: Part) -> exp.Expr:
    """Return whether a class is in a range; rows without a class count as -1."""
    own = exp.func("COALESCE", number_of, number(-1))
    return exp.and_(exp.GTE(this=own, expression=number(part[0])), exp.LT(this=own.copy(), expression=number(part[1])))


@dataclass(frozen=True)
class Column:
    """The lookups of a quasi-identifier: rows find their value by column ``of``, their cell by column ``by``.

    Values and cells are packed, see ``kernels.beside``.
    """

    of: str
    by: str
    values: NDArray[Any]
    cells: NDArray[Any] | None
    """None for what is published of a class as a whole."""


@dataclass
class RowCounts:
    """How many rows there are and how many are published, the sums of their words, and the wrong cells by column."""

    wrong: dict[int, int]
    rows: int = 0
    total: int = 0
    published: int = 0
    published_total: int = 0
    lost: int = 0
    """How many values were not in their lookup."""

    def add(self, counts: NDArray[Any], sums: NDArray[Any]) -> None:
        """Add what was counted of some rows, see ``kernels.beside.read_rows``."""
        self.total = (self.total + int(sums[0])) % _WORDS
        self.published_total = (self.published_total + int(sums[1])) % _WORDS
        self.published += int(sums[2])
        self.lost += int(counts[:, 0].sum())
        for j in self.wrong:
            self.wrong[j] += int(counts[j, 1])


# Statements


@dataclass
class _Truth:
    engine: Engine
    beside: SideBySide
    claim: Claim

    def __post_init__(self) -> None:
        claim = self.claim
        self.raw_types = [
            c.type
            for c in self.engine.columns(
                exp.select(*(named(e.copy(), f"s_{j}") for j, e in enumerate(claim.original))).from_(
                    subquery(claim.source.copy(), "s")
                )
            )
        ]
        count = len(claim.original)
        # Every column has a number of its own: a value that changes columns is another one.
        self.others = {f"p_{i}": (count + i, claim.types[name]) for i, name in enumerate(claim.others)}
        first = count + len(claim.others)
        self.person_slot = first
        self.published: dict[str, tuple[int, str, str]] = {}
        for j, names in enumerate(claim.names):
            for end, name in zip(("", "b"), names, strict=False):
                first += 1
                self.published[f"r_{j}{end}"] = first, claim.types[name], name
        self.keys = secret_words(first + 1)
        self.tables: list[str] = []

    def require(self, suppressed: int) -> Fingerprint:
        """See ``require_truth``."""
        fingerprint = self._require(suppressed)
        self.engine.drop(*self.tables)
        return fingerprint

    def _require(self, suppressed: int) -> Fingerprint:
        engine, claim = self.engine, self.claim
        own = [w for j, e in enumerate(claim.original) for w in words_of(e.copy(), self.raw_types[j], j)]
        beside = [
            w
            for e, (slot, kind) in zip(claim.passed, self.others.values(), strict=True)
            for w in words_of(e.copy(), kind, slot)
        ]
        if claim.person is not None:
            beside.append(word_of(claim.person.copy(), self.person_slot))
        params = {**self.keys, **(self.beside.params if claim.person is not None else {})}
        source = sum_of_rows(engine, claim.source, [*own, *beside], params)
        self._read_lookups()
        counts = self._read()
        if counts.lost or (counts.rows, counts.total) != source:
            _refuse("the rows that were checked are not those of the source")
        if counts.rows - counts.published != suppressed:
            _refuse("rows in are not rows published plus suppressed")
        for j, count in counts.wrong.items():
            self._require_none(count, j)
        for j, own_meaning in self.meanings.items():
            if own_meaning.covers is not None:
                self._require_none(self._uncovered(j), j)
        for j, one in enumerate(claim.shown):
            if one.kind in BY_CLASS:
                self._require_none(self._wrong_classes(j), j)
        columns = tuple((name, kind, slot) for slot, kind, name in self.published.values())
        columns += tuple((n, k, s) for n, (s, k) in zip(claim.others, self.others.values(), strict=True))
        return Fingerprint(self.keys, columns, counts.published, counts.published_total)

    def _require_none(self, count: int, j: int) -> None:
        if count:
            _refuse(f"{count} published cells of {self.claim.shown[j].name!r} do not stand for the value of their row")

    # Lookups, with words and with what cells stand for

    def _read_lookups(self) -> None:
        engine = self.engine
        self.holders: dict[str, Lookup] = {}
        for lookup in self.beside.lookups:
            self.holders |= {c.name: lookup for c in engine.columns(lookup.query) if c.name != "code"}
        missing = {f"s_{j}" for j in range(len(self.claim.original))} | set(self.published)
        halved = {f"{side}_{j}" for j, s in enumerate(self.claim.shown) if s.kind == "midpoint" for side in "xy"}
        if set(self.holders) - set(self.others) not in (missing, missing | halved):
            _refuse("its columns are not the declared ones")
        self.meanings: dict[int, Meaning] = {}
        self.numbered: dict[int, str] = {}
        self.columns = [self._column(j, shown) for j, shown in enumerate(self.claim.shown)]
        # Each has a key of its own: of two under one key every row would have both.
        self.passed_words = {self.holders[name].key: self._passed(name) for name in self.others if name in self.holders}
        if len(self.passed_words) != len(set(self.others) & set(self.holders)):
            _refuse("its columns are not the declared ones")

    def _ends_of(self, j: int) -> list[str]:
        """Return the names of what is published of a quasi-identifier."""
        return [name for name in (f"r_{j}", f"r_{j}b") if name in self.published]

    def _cell(self, name: str, alias: str) -> exp.Expr:
        """Return a published cell in the type of the file."""
        return cast(col(name, alias), self.published[name][1])

    def _column(self, j: int, shown: Shown) -> Column:
        """Return the lookups of a quasi-identifier."""
        of, by = (self.holders[f"{side}_{j}"] for side in "sr")
        for name in self._ends_of(j):
            if self.holders[name] is not by:
                _refuse("its columns are not the declared ones")
        if shown.kind in BY_CLASS:
            values = exp.select(col("code", "l"), named(number(0), "at"), self._word_of_value(j, "l"))
            return Column(of.key, by.key, self._values(values.from_(subquery(of.query.copy(), "l"))), None)
        cells = self._number_cells(j, by)
        different = exp.select(*(col(name) for name in ("cell", *(["cell_b"] if len(self._ends_of(j)) > 1 else []))))
        self.meanings[j] = meaning(self.engine, shown, self.raw_types[j], different.distinct().from_(table(cells)))
        self.tables += self.meanings[j].tables
        values_of = self._place_values(j, of)
        before = self._values(exp.select(col("code"), col("at"), col("word")).from_(table(values_of)))
        return Column(of.key, by.key, before, self._reach(j, cells, values_of))

    def _word_of_value(self, j: int, alias: str) -> exp.Expr:
        return named(joined(words_of(col(f"s_{j}", alias), self.raw_types[j], j)), "word")

    def _word_of_cell(self, j: int, alias: str) -> exp.Expr:
        words = [
            w
            for name in self._ends_of(j)
            for w in words_of(self._cell(name, alias), self.published[name][1], self.published[name][0])
        ]
        return named(joined(words), "word")

    def _passed(self, name: str) -> NDArray[Any]:
        """Return the words of a column that is passed through by their codes."""
        slot, kind = self.others[name]
        word = named(joined(words_of(col(name, "l"), kind, slot)), "word")
        query = exp.select(col("code", "l"), named(number(0), "at"), word)
        return self._values(query.from_(subquery(self.holders[name].query.copy(), "l")))

    def _create(self, stem: str, query: exp.Query) -> str:
        created = self.engine.fresh(stem)
        self.engine.create(created, query, named_in(query, self.keys))
        self.tables.append(created)
        return created

    def _values(self, query: exp.Select) -> NDArray[Any]:
        """Return the places and the words of values by their codes."""
        from duckanon.kernels.beside import packed_values

        codes, at, words = self._arrays(query, ("code", "at", "word"))
        _require_numbers(codes)
        values: NDArray[Any] = packed_values(codes, at, words)
        _require_each(codes, values[:, 1] > 0)
        return values

    def _arrays(self, query: exp.Select, names: Sequence[str]) -> list[NDArray[Any]]:
        """Return columns as arrays: numbers of 32 bits, and words of 64."""
        kinds = {"word": "UBIGINT", "nul": "UTINYINT"}
        columns = [named(cast(col(name, "a"), kinds.get(name, "INTEGER")), name) for name in names]
        plain = exp.select(*columns).from_(subquery(query, "a"))
        fetched = self.engine.arrow(plain, named_in(plain, self.keys))
        return [fetched.column(name).to_numpy() for name in names]

    def _number_cells(self, j: int, by: Lookup) -> str:
        """Create ``(ix, r, [rb], cell, [cell_b], word)``: the different cells of a column, counted from 0."""
        ends = self._ends_of(j)
        different = exp.select(*(col(name) for name in ends)).distinct().from_(subquery(by.query.copy(), "l"))
        place = exp.Sub(this=exp.Window(this=exp.RowNumber()), expression=number(1))
        query = exp.select(named(cast(exp.paren(place), "INTEGER"), "ix"), *(col(name, "d") for name in ends))
        for name, alias in zip(ends, ("cell", "cell_b"), strict=False):
            query = query.select(named(self._cell(name, "d"), alias))
        query = query.select(self._word_of_cell(j, "d"))
        self.numbered[j] = self._create("numbered", query.from_(subquery(different, "d")))
        return self.numbered[j]

    def _place_values(self, j: int, of: Lookup) -> str:
        """Create ``(code, value, at, word)`` of values as they were; ``at`` is their place in order, 0 that of NULL."""
        own = self.meanings[j]
        query = exp.select(col("code", "l"), self._word_of_value(j, "l")).from_(subquery(of.query.copy(), "l"))
        if own.at is None:
            on = same(col("value", "v"), col(f"s_{j}", "l"))
            query = query.join(table(str(own.places), "v"), on=on, join_type="left")
            at: exp.Expr = col("at", "v")
        else:
            at = own.at.copy().transform(
                lambda n: col(f"s_{j}", "l") if isinstance(n, exp.Column) and n.name == "value" else n
            )
        query = query.select(named(at, "value"))
        order = exp.Order(expressions=[exp.Ordered(this=col("value", "p"), desc=False, nulls_first=False)])
        rank = exp.Window(this=call("dense_rank"), order=order)
        place = choose((is_null(col("value", "p")), number(0)), otherwise=rank)
        every = exp.select(col("code", "p"), col("value", "p"), named(place, "at"), col("word", "p"))
        return self._create("placed", every.from_(subquery(query, "p")))

    def _reach(self, j: int, cells: str, values: str) -> NDArray[Any]:
        """Return what the cells of a column stand for: from one place to another."""
        from duckanon.kernels.beside import packed_cells

        on = same(col("cell", "m"), col("cell", "n"))
        if len(self._ends_of(j)) > 1:
            on = exp.and_(on, same(col("cell_b", "m"), col("cell_b", "n")))
        ends = exp.select(col("ix", "n"), col("word", "n"), *(col(c, "m") for c in ("lo", "hi", "nul", "below")))
        ends = ends.from_(table(cells, "n")).join(table(self.meanings[j].cells, "m"), on=on, join_type="left")
        placed = exp.select(col("value"), col("at")).from_(table(values)).where(present(col("value")))
        before = exp.Sub(this=col("at", "b"), expression=number(1))
        high = choose((exp.and_(col("below", "c"), equal(col("value", "b"), col("hi", "c"))), before))
        query = exp.select(
            col("ix", "c"),
            named(exp.func("COALESCE", col("at", "a"), number(NOWHERE)), "low"),
            named(exp.func("COALESCE", high, col("at", "b"), number(0)), "high"),
            named(exp.func("COALESCE", col("nul", "c"), exp.false()), "nul"),
            col("word", "c"),
        ).from_(subquery(ends, "c"))
        # The first value from one end on, and the last one up to the other.
        for alias, end, side in (("a", "lo", exp.LTE), ("b", "hi", exp.GTE)):
            within = side(this=col(end, "c"), expression=col("value", alias))
            nearest = exp.Join(this=subquery(placed.copy(), alias), method="ASOF", side="LEFT", on=within)
            query.append("joins", nearest)
        found_cells: NDArray[Any] = packed_cells(*self._arrays(query, ("ix", "low", "high", "nul", "word")))
        return found_cells

    def _shown_by(self, j: int, part: Part | None) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return keys, the numbers of the cells that they show, and all cells.

        What is published of a class as a whole is a cell of its own.
        """
        import numpy as np

        from duckanon.kernels.beside import packed_cells

        by, cells = self.holders[f"r_{j}"], self.columns[j].cells
        query = exp.select(col("code", "l")).from_(subquery(by.query.copy(), "l"))
        if part is not None and by.key == _CLASS:
            query = query.where(_in_part(col("code", "l"), part))
        if cells is None:
            codes, words = self._arrays(query.select(self._word_of_cell(j, "l")), ("code", "word"))
            numbers = np.arange(len(codes), dtype=np.int32)
            every = np.ones_like(numbers)
            cells = packed_cells(numbers, 0 * every, NOWHERE * every, every, words)
        else:
            on = exp.and_(*(same(col(name, "n"), col(name, "l")) for name in self._ends_of(j)))
            query = query.select(col("ix", "n")).join(table(self.numbered[j], "n"), on=on)
            codes, numbers = self._arrays(query, ("code", "ix"))
        _require_numbers(codes, 0 if part is None else part[0])
        return codes, numbers, cells

    # Rows

    def _parts(self) -> list[Part] | list[None]:
        """Return ranges of classes, so small that the lookups of each fit into memory."""
        limit, of_class = self.engine.array_limit(), 0
        for column in self.columns:
            if column.by == _CLASS:
                of_class += _OF_CELL if column.cells is not None else _OF_CLASS
        if limit is None or not of_class:
            return [None]
        lookup = next(lookup for lookup in self.beside.lookups if lookup.key == _CLASS)
        last = exp.func("COALESCE", exp.Max(this=col("code")), number(0))
        (most,) = self.engine.row(exp.select(last).from_(subquery(lookup.query.copy(), "l")))
        parts = max(1, -(-(int(most) + 1) * of_class * 2 // limit))
        if parts == 1:
            return [None]
        # Rows of no class have the number -1.
        size = -(-(int(most) + 2) // parts)
        return [(-1 + i * size, -1 + (i + 1) * size) for i in range(parts)]

    def _read(self) -> RowCounts:
        """Read all rows once, or once for each part."""
        counts = RowCounts(dict.fromkeys(self.meanings, 0))
        for part in self._parts():
            self._read_part(part, counts)
        return counts

    def _read_part(self, part: Part | None, total: RowCounts) -> None:
        import numpy as np

        from duckanon.kernels.beside import read_rows

        names = self._key_names()
        columns, values, shows, cells = self._packed(names, part)
        no_owner = np.zeros(0, dtype=np.uint64)

        def read(batch: pa.RecordBatch) -> tuple[NDArray[Any], NDArray[Any]]:
            keys = np.stack([batch.column(name).to_numpy() for name in names])
            through, kept = batch.column("through").to_numpy(), np.array(batch.column(KEPT).to_numpy())
            owner = np.array(batch.column("owner").to_numpy()) if self.claim.person is not None else no_owner
            counts, sums = np.zeros((len(columns), 2), dtype=np.int64), np.zeros(3, dtype=np.uint64)
            read_rows(keys, columns, values, shows, cells, through, owner, kept, counts, sums)
            return counts, sums

        threads = self.engine.threads()
        waiting: deque[Future[tuple[NDArray[Any], NDArray[Any]]]] = deque()
        # One batch is compared while the database makes the next.
        with workers(min(threads, 2)) as pool:
            for batch in batches(self.engine, self._rows(part), {**self.keys, **self.beside.params}):
                waiting.append(pool.submit(read, batch))
                total.rows += batch.num_rows
                while len(waiting) >= min(threads, _AHEAD):
                    total.add(*waiting.popleft().result())
            for one in waiting:
                total.add(*one.result())

    def _packed(
        self, names: list[str], part: Part | None
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return what ``kernels.beside.read_rows`` takes: columns, values, the cell of each key, and cells."""
        import numpy as np

        from duckanon.kernels import beside as at

        columns = np.zeros((len(self.columns) + len(self.passed_words), 9), dtype=np.int64)
        values, cells = [c.values for c in self.columns] + list(self.passed_words.values()), list[Any]()
        for j, (key, own) in enumerate(zip([*(c.of for c in self.columns), *self.passed_words], values, strict=True)):
            columns[j, [at.OF, at.CODES]] = names.index(key), len(own)
        columns[1:, at.VALUES] = np.cumsum(columns[:-1, at.CODES])
        columns[len(self.columns) :, at.BY] = -1
        shows: list[NDArray[Any]] = []
        for by in dict.fromkeys(c.by for c in self.columns):
            mine = [j for j, c in enumerate(self.columns) if c.by == by]
            base = part[0] if part is not None and by == _CLASS else 0
            block = np.full((0, len(mine)), -1, dtype=np.int32)
            for i, j in enumerate(mine):
                codes, numbers, own = self._shown_by(j, part)
                size = int(codes.max(initial=base - 1)) + 1 - base
                if size > len(block):
                    block = np.concatenate([block, np.full((size - len(block), len(mine)), -1, dtype=np.int32)])
                block[codes - base, i] = numbers
                _require_each(codes, block[:, i] >= 0)
                columns[j, at.CELLS] = sum(len(one) for one in cells)
                cells.append(own)
            columns[mine, at.BY], columns[mine, at.BASE], columns[mine, at.KEYS] = names.index(by), base, len(block)
            # The cells of one class stand together: they are fetched together.
            columns[mine, at.SHOWS] = sum(len(one) for one in shows) + np.arange(len(mine))
            columns[mine, at.STRIDE] = len(mine)
            shows.append(block.ravel())
        return (
            columns,
            np.concatenate(values),
            shows[0] if len(shows) == 1 else np.concatenate(shows),
            np.concatenate(cells),
        )

    def _key_names(self) -> list[str]:
        return list(dict.fromkeys([*(key for c in self.columns for key in (c.of, c.by)), *self.passed_words]))

    def _rows(self, part: Part | None) -> exp.Select:
        """Return the keys of rows, -1 for none, with the words of the other published columns and of the person."""
        query = exp.select().from_(subquery(self.beside.rows.copy(), "r"))
        for key in self._key_names():
            query = query.select(named(exp.func("COALESCE", cast(col(key, "r"), "INTEGER"), number(-1)), key))
        plain = {name: own for name, own in self.others.items() if name not in self.holders}
        through = [w for name, (slot, kind) in plain.items() for w in words_of(col(name, "r"), kind, slot)]
        query = query.select(named(joined(through), "through"))
        if self.claim.person is not None:
            query = query.select(named(word_of(col(PERSON, "r"), self.person_slot), "owner"))
        kept: exp.Expr = exp.func("COALESCE", col(KEPT, "r"), exp.false()) if self.beside.marked else exp.true()
        query = query.select(named(cast(kept, "UTINYINT"), KEPT))
        return query if part is None else query.where(_in_part(col(_CLASS, "r"), part))

    def _pairs(self, j: int, odd: bool) -> exp.Query:
        """Return ``(value_key, cell_key, n)``: how often a value of the source stands beside what is published.

        With ``odd``, only cells that are no ranges.
        """
        keys = [col(self.holders[f"{side}_{j}"].key, "r") for side in "sr"]
        query = exp.select(*(named(k, n) for k, n in zip(keys, ("value_key", "cell_key"), strict=True)))
        query = query.select(named(exp.Count(this=exp.Star()), "n")).from_(subquery(self.beside.rows.copy(), "r"))
        if self.beside.marked:
            query = query.where(col(KEPT, "r"))
        published = {id(lookup): lookup for name, lookup in self.holders.items() if name.startswith("r_")}
        for lookup in published.values():
            codes = exp.select(col("code", "l")).from_(subquery(lookup.query.copy(), "l"))
            if odd and lookup is self.holders[f"r_{j}"]:
                on = exp.and_(*(same(col(name, "n"), col(name, "l")) for name in self._ends_of(j)))
                codes = codes.join(table(self.numbered[j], "n"), on=on)
                reads = same(col("cell", "m"), col("cell", "n"))
                codes = codes.join(table(self.meanings[j].cells, "m"), on=reads).where(col("odd", "m"))
            query = query.where(exp.In(this=col(lookup.key, "r"), query=codes.subquery()))
        return query.group_by(*(k.copy() for k in keys))

    def _uncovered(self, j: int) -> int:
        """Return how many cells that are no ranges do not list the value beside them."""
        pairs = self._with_values(self._pairs(j, True), j)
        on = exp.and_(same(col("cell", "c"), col("cell", "x")), same(col("value", "c"), col("value", "x")))
        listed = exp.select(col("cell"), col("value"), named(exp.true(), "listed"))
        listed = listed.from_(table(str(self.meanings[j].covers)))
        query = exp.select(exp.func("COALESCE", exp.Sum(this=col("n", "x")), number(0))).from_(subquery(pairs, "x"))
        query = query.join(subquery(listed, "c"), on=on, join_type="left").where(is_null(col("listed", "c")))
        (count,) = self.engine.row(query, named_in(query, self.beside.params))
        return int(count)

    def _with_values(self, pairs: exp.Query, j: int) -> exp.Select:
        """Return ``(cell_key, n, value, cell, [low_end, high_end])`` of pairs of keys."""
        raw, shown = (self.holders[f"{side}_{j}"].query.copy() for side in "sr")
        query = exp.select(col("cell_key", "p"), col("n", "p"), named(col(f"s_{j}", "s"), "value"))
        query = query.select(named(self._cell(f"r_{j}", "t"), "cell")).from_(subquery(pairs, "p"))
        if f"x_{j}" in self.holders:
            ends = self.holders[f"x_{j}"].query.copy()
            query = query.select(named(col(f"x_{j}", "e"), "low_end"), named(col(f"y_{j}", "e"), "high_end"))
            query = query.join(subquery(ends, "e"), on=equal(col("code", "e"), col("cell_key", "p")))
        query = query.join(subquery(raw, "s"), on=equal(col("code", "s"), col("value_key", "p")))
        return query.join(subquery(shown, "t"), on=equal(col("code", "t"), col("cell_key", "p")))

    # What is published of a class as a whole

    def _wrong_classes(self, j: int) -> int:
        """Return how many classes have a cell that does not follow from their values."""
        shown = self.claim.shown[j]
        labels = [col(c, "k") for c in ("known", *(["l1"] if shown.height else []))]
        pairs = self._with_values(self._pairs(j, False), j)
        on = same(col("value", "k"), col("value", "x"))
        ends = ["low_end", "high_end"] if f"x_{j}" in self.holders else []
        query = exp.select(*(col(c, "x") for c in ("cell_key", "n", "value", "cell", *ends)), *labels, col("text", "k"))
        labelled = query.from_(subquery(pairs, "x")).join(
            subquery(shown.labelled_values(), "k"), on=on, join_type="left"
        )
        right = class_is_right(shown, self.published[f"r_{j}"][1], f"x_{j}" in self.holders)
        measured = shown.family != "other" and shown.height
        grouped = exp.select(named(exp.func("COALESCE", right, exp.false()), "ok")).from_(subquery(labelled, "y"))
        every: list[exp.Query] = []
        if shown.kind == "proportional":
            # By their labels, or by the values themselves, where these are the labels.
            every += [
                shares_are_right(shown, labelled.copy(), name) for name in (("l1", "text") if measured else ("text",))
            ]
        else:
            every.append(grouped.group_by(*(col(c) for c in ("cell_key", "cell", *ends))))
        return min(self._count_wrong(one) for one in every)

    def _count_wrong(self, grouped: exp.Query) -> int:
        wrong = call("count_if", exp.Not(this=exp.func("COALESCE", col("ok"), exp.false())))
        query = exp.select(wrong).from_(subquery(grouped, "z"))
        (count,) = self.engine.row(query, named_in(query, self.beside.params))
        return int(count)


__all__ = ["Claim", "Fingerprint", "require_truth"]
