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
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.encoding.words import (
    WORDS,
    batches,
    joined,
    named_in,
    secret_words,
    sum_of_rows,
    word_of,
    words_of,
)
from duckanon.engine.process import workers
from duckanon.engine.sql.axes import choose, equal, is_null
from duckanon.engine.sql.relations import (
    call,
    cast,
    col,
    named,
    number,
    registered,
    same,
    subquery,
    table,
    text,
    union_all,
)
from duckanon.errors import PrivacyViolation
from duckanon.recoding.base import KEPT, PERSON, Lookup, SideBySide
from duckanon.release.cell_meaning import NOWHERE, Cells, Labelled, Placed, Reach, Shown, ends_of, extremes, read_ends
from duckanon.release.class_meaning import BY_CLASS, class_is_right, shares_are_right

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from duckanon.engine.base import Engine

_CLASS = "class_id"
_OF_CELL, _OF_CLASS = 4, 21
"""Bytes for each class and column: of the number of a cell, and of a cell that only this class has."""
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
        self._require(*sum_of_rows(engine, relation, words, self.keys))

    def require_classes(self, engine: Engine, classes: str) -> None:
        """Raise unless these are the same rows, of which ``classes(n, total)`` has the number and the sum by class."""
        sums = [exp.func("COALESCE", exp.Sum(this=col(name)), number(0)) for name in ("n", "total")]
        rows, total = engine.row(exp.select(*sums).from_(table(classes)))
        self._require(int(rows), int(total))

    def _require(self, rows: int, total: int) -> None:
        if (rows, total % WORDS) != (self.rows, self.total):
            _refuse("the file does not hold the rows that were checked")

    def words(self, names: Collection[str]) -> tuple[exp.Expr, exp.Expr]:
        """Return the word of some columns of a row, and that of its other columns.

        Rows with other values have another word: two have the same by chance with a probability of 2 to the power -64.
        """
        both = [
            joined([w for n, kind, slot in self.columns if (n in names) == mine for w in words_of(col(n), kind, slot)])
            for mine in (True, False)
        ]
        return both[0], both[1]


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


def _each_own(words: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return numbers, and cells with these words of which each stands for everything."""
    import numpy as np

    from duckanon.kernels.beside import packed_cells

    numbers = np.arange(len(words), dtype=np.int32)
    every = np.ones_like(numbers)
    return numbers, packed_cells(numbers, 0 * every, NOWHERE * every, every, words)


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
        self.total = (self.total + int(sums[0])) % WORDS
        self.published_total = (self.published_total + int(sums[1])) % WORDS
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
        self.holders: dict[str, Lookup] = {}
        for lookup in self.beside.lookups:
            self.holders |= {name: lookup for name in lookup.query.named_selects if name != "code"}
        missing = {f"s_{j}" for j in range(len(self.claim.original))} | set(self.published)
        halved = {f"{side}_{j}" for j, s in enumerate(self.claim.shown) if s.kind == "midpoint" for side in "xy"}
        if set(self.holders) - set(self.others) not in (missing, missing | halved):
            _refuse("its columns are not the declared ones")
        for j in range(len(self.claim.shown)):
            if any(self.holders[name] is not self.holders[f"r_{j}"] for name in self._ends_of(j)):
                _refuse("its columns are not the declared ones")
        self._read_cells()
        # Each has a key of its own: of two under one key every row would have both.
        self.passed_words = {self.holders[name].key: self._passed(name) for name in self.others if name in self.holders}
        if len(self.passed_words) != len(set(self.others) & set(self.holders)):
            _refuse("its columns are not the declared ones")

    def _read_cells(self) -> None:
        """Read the different cells of all columns, and what they stand for."""
        import numpy as np

        from duckanon.kernels.beside import packed_cells

        shown = list(enumerate(self.claim.shown))
        by_row = [j for j, s in shown if s.kind not in BY_CLASS]
        typed = [j for j in by_row if self._is_typed(j)]
        self.cells = self._different([j for j in by_row if j not in typed])
        self.numbered = {j: self._number_cells(j) for j in typed}
        trees = [
            j for j, own in self.cells.items() if own.shown.family == "other" or (own.shown.by_tree and own.inside)
        ]
        labelled = self._labelled(trees)
        self.reach: dict[int, Reach] = {}
        values, cells = {}, {}
        for j, one in shown:
            if one.kind in BY_CLASS:
                query = exp.select(col("code", "l"), named(number(0), "at"), self._word_of_value(j, "l"))
                values[j] = self._values(query.from_(subquery(self.holders[f"s_{j}"].query.copy(), "l")))
                continue
            if j in typed:
                codes, at, words = self._place_typed(j)
            elif one.family == "other":
                own, words = labelled[j]
                codes = own.codes
                at, self.reach[j] = self.cells[j].in_order(own)
            else:
                codes, at, words = self._place_texts(j, labelled.get(j))
            values[j] = self._packed_values(codes, at, words)
            reach = self.reach[j]
            cells[j] = packed_cells(np.arange(len(reach.low)), reach.low, reach.high, reach.null, self.words[j])
        self.columns = [
            Column(self.holders[f"s_{j}"].key, self.holders[f"r_{j}"].key, values[j], cells.get(j)) for j, _ in shown
        ]

    def _ends_of(self, j: int) -> list[str]:
        """Return the names of what is published of a quasi-identifier."""
        return [name for name in (f"r_{j}", f"r_{j}b") if name in self.published]

    def _is_typed(self, j: int) -> bool:
        """Say whether cells are bounds or values in the type of the column, rather than texts about them."""
        kind, own = self.claim.shown[j].kind, self.raw_types[j]
        return kind in ("bounds", "struct") or (own != "VARCHAR" and self.published[f"r_{j}"][1] == own)

    def _cell(self, name: str, alias: str) -> exp.Expr:
        """Return a published cell in the type of the file."""
        return cast(col(name, alias), self.published[name][1])

    def _word_of_value(self, j: int, alias: str) -> exp.Expr:
        return named(joined(words_of(col(f"s_{j}", alias), self.raw_types[j], j)), "word")

    def _word_of_cell(self, j: int, alias: str, name: str = "word") -> exp.Expr:
        words = [
            w
            for name in self._ends_of(j)
            for w in words_of(self._cell(name, alias), self.published[name][1], self.published[name][0])
        ]
        return named(joined(words), name)

    def _passed(self, name: str) -> NDArray[Any]:
        """Return the words of a column that is passed through by their codes."""
        slot, kind = self.others[name]
        word = named(joined(words_of(col(name, "l"), kind, slot)), "word")
        query = exp.select(col("code", "l"), named(number(0), "at"), word)
        return self._values(query.from_(subquery(self.holders[name].query.copy(), "l")))

    def _values(self, query: exp.Select) -> NDArray[Any]:
        """Return the places and the words of values by their codes."""
        return self._packed_values(*self._arrays(query, ("code", "at", "word")))

    def _packed_values(self, codes: NDArray[Any], at: NDArray[Any], words: NDArray[Any]) -> NDArray[Any]:
        from duckanon.kernels.beside import packed_values

        _require_numbers(codes)
        values: NDArray[Any] = packed_values(codes, at, words)
        _require_each(codes, values[:, 1] > 0)
        return values

    def _fetch(self, query: exp.Query, names: Mapping[str, str]) -> pa.Table:
        """Return columns of a query in the given types."""
        columns = [named(cast(col(name, "a"), kind), name) for name, kind in names.items()]
        plain = exp.select(*columns).from_(subquery(query, "a"))
        return self.engine.arrow(plain, named_in(plain, self.keys))

    def _arrays(self, query: exp.Query, names: Sequence[str]) -> list[NDArray[Any]]:
        """Return columns as arrays: numbers of 32 bits, and words of 64."""
        fetched = self._fetch(query, {name: "UBIGINT" if name == "word" else "INTEGER" for name in names})
        return [fetched.column(name).to_numpy() for name in names]

    # Cells that are texts

    def _different(self, columns: Sequence[int]) -> dict[int, Cells]:
        """Return the different cells of columns, and keep their words: their places among them are their numbers.

        Where keys are codes of the column itself, what each shows is kept, too.
        """
        import numpy as np
        import pyarrow as pa

        self.words: dict[int, NDArray[Any]] = {}
        self.shown: dict[int, tuple[NDArray[Any], NDArray[Any]]] = {}
        parts: list[exp.Query] = []
        for j in columns:
            lookup = self.holders[f"r_{j}"]
            own = exp.select(named(self._cell(f"r_{j}", "l"), f"r_{j}")).from_(subquery(lookup.query.copy(), "l"))
            own = own.distinct() if lookup.key == _CLASS else own.select(col("code", "l"))
            code = number(0) if lookup.key == _CLASS else col("code", "d")
            query = exp.select(named(number(j), "j"), named(code, "code"), self._word_of_cell(j, "d"))
            query = query.select(named(cast(col(f"r_{j}", "d"), "VARCHAR"), "cell"))
            parts.append(query.from_(subquery(own, "d")))
        found: dict[int, Cells] = {}
        types = {"code": "INTEGER", "cell": "VARCHAR", "word": "UBIGINT"}
        for j, rows in self._by_column(parts, types, columns).items():
            cells, words = rows.column("cell"), rows.column("word").to_numpy()
            encoded = cells.combine_chunks().dictionary_encode(null_encoding="encode")
            if isinstance(encoded, pa.ChunkedArray):
                encoded = encoded.combine_chunks()
            numbers = encoded.indices.to_numpy().astype(np.int32)
            self.words[j] = np.zeros(len(encoded.dictionary), dtype=np.uint64)
            self.words[j][numbers] = words
            if self.holders[f"r_{j}"].key != _CLASS:
                self.shown[j] = rows.column("code").to_numpy(), numbers
            found[j] = Cells(self.claim.shown[j], encoded.dictionary)
        return found

    def _by_column(
        self, parts: Sequence[exp.Query], names: Mapping[str, str], columns: Sequence[int]
    ) -> dict[int, pa.Table]:
        """Return the rows of every column ``j``: one statement is much faster than many."""
        import pyarrow.compute as pc

        if not parts:
            return {}
        rows = self._fetch(union_all(parts), {"j": "INTEGER", **names})
        if len(columns) == 1:
            return {columns[0]: rows}
        return {j: rows.filter(pc.equal(rows.column("j"), j)) for j in columns}

    def _labelled(self, columns: Sequence[int]) -> dict[int, tuple[Labelled, NDArray[Any]]]:
        """Return the values in the lookups of columns, with their labels, and their words."""
        parts: list[exp.Query] = []
        for j in columns:
            missing = named(is_null(col(f"s_{j}", "l")), "missing")
            query = exp.select(named(number(j), "j"), col("code", "l"), self._word_of_value(j, "l"), missing)
            query = query.select(named(col("code", "v"), "number"), col("text", "v"))
            query = query.from_(subquery(self.holders[f"s_{j}"].query.copy(), "l"))
            on = same(col("value", "v"), col(f"s_{j}", "l"))
            parts.append(query.join(table(self.claim.shown[j].values, "v"), on=on, join_type="left"))
        types = {"code": "INTEGER", "word": "UBIGINT", "missing": "UTINYINT", "number": "INTEGER", "text": "VARCHAR"}
        return {
            j: (Labelled.of(self.claim.shown[j], rows), rows.column("word").to_numpy())
            for j, rows in self._by_column(parts, types, columns).items()
        }

    def _place_texts(
        self, j: int, labelled: tuple[Labelled, NDArray[Any]] | None
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Place the values of a column with distances, whose cells are texts; return codes, places and words.

        With a tree, labels mean what it says, and only others are intervals; else the other way round.
        """
        import numpy as np

        own, shown = self.cells[j], self.claim.shown[j]
        value: exp.Expr = col(f"s_{j}", "l")
        if shown.type in ("FLOAT", "REAL"):
            value = cast(cast(value, "VARCHAR"), "DOUBLE")
        inside = own.inside
        if labelled is not None:
            inside = {i: inside[i] for i in inside.keys() - own.known(labelled[0])}
        ends = ends_of(shown, inside)
        incoming = registered(self.engine, "ends", ends) if ends is not None else None
        read = None if incoming is None else read_ends(shown).from_(table(incoming))
        placed = self._placed(j, value, read)
        if incoming is not None:
            self.engine.drop(incoming)
        if labelled is None and inside.keys() - set(np.flatnonzero(placed.found).tolist()):
            labelled = self._labelled([j])[j]
        reach = Reach.of_ranges(placed.low, placed.high, own.null)
        if labelled is not None:
            at_of_code = np.zeros(int(placed.codes.max(initial=-1)) + 1, dtype=np.int32)
            at_of_code[placed.codes] = placed.at
            among, listed = own.among(labelled[0], at_of_code[labelled[0].codes])
            # What an interval is said to be comes first where there is no tree.
            reach = reach.replaced(among, listed[~placed.found[listed]])
        own.add_whole(reach)
        self.reach[j] = reach
        return placed.codes, placed.at, placed.words

    # Cells of the column's own type

    def _number_cells(self, j: int) -> str:
        """Create ``(ix, r, [rb], cell, [cell_b], word)``: the different cells of a column, counted from 0."""
        ends = self._ends_of(j)
        lookup = self.holders[f"r_{j}"].query.copy()
        different = exp.select(*(col(name) for name in ends)).distinct().from_(subquery(lookup, "l"))
        place = exp.Sub(this=exp.Window(this=exp.RowNumber()), expression=number(1))
        query = exp.select(named(cast(exp.paren(place), "INTEGER"), "ix"), *(col(name, "d") for name in ends))
        for name, alias in zip(ends, ("cell", "cell_b"), strict=False):
            query = query.select(named(self._cell(name, "d"), alias))
        query = query.select(self._word_of_cell(j, "d")).from_(subquery(different, "d"))
        created = self.engine.fresh("numbered")
        self.engine.create(created, query, named_in(query, self.keys))
        self.tables.append(created)
        return created

    def _place_typed(self, j: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Place the values of a column whose cells are values or bounds; return codes, places and words."""
        shown = self.claim.shown[j]
        ends: list[exp.Expr] = [col("cell"), col("cell_b" if shown.kind == "bounds" else "cell")]
        if shown.kind == "struct":
            ends = [call("struct_extract", col("cell"), text(end)) for end in ("lo", "hi")]
        nothing = exp.and_(*(is_null(end.copy()) for end in ends))
        if shown.kind in ("bounds", "struct"):
            open_ends = (cast(text(end), shown.type) for end in extremes(shown.type))
            ends = [exp.func("COALESCE", end, most) for end, most in zip(ends, open_ends, strict=True)]
        own = exp.select(col("ix"), named(ends[0], "lo"), named(ends[1], "hi"), named(exp.false(), "below"))
        placed = self._placed(j, col(f"s_{j}", "l"), own.from_(table(self.numbered[j])))
        query = exp.select(col("ix"), named(nothing, "missing"), col("word")).from_(table(self.numbered[j]))
        numbers, missing, words = self._arrays(query, ("ix", "missing", "word"))
        self.words[j], null = words.copy(), missing > 0
        self.words[j][numbers], null[numbers] = words, missing > 0
        self.reach[j] = Reach.of_ranges(placed.low, placed.high, null)
        return placed.codes, placed.at, placed.words

    def _placed(self, j: int, value: exp.Expr, ends: exp.Query | None) -> Placed:
        """Return the places of the values of a column, and which of them lie between ``ends(ix, lo, hi, below)``."""
        lookup = subquery(self.holders[f"s_{j}"].query.copy(), "l")
        columns = [named(number(0), "side"), named(col("code", "l"), "ix"), named(value, "v")]
        parts: list[exp.Query] = [
            exp.select(*columns, named(exp.false(), "below"), self._word_of_value(j, "l")).from_(lookup)
        ]
        for side, end in enumerate(("lo", "hi"), 1):
            columns = [named(number(side), "side"), col("ix", "e"), named(col(end, "e"), "v"), col("below", "e")]
            if ends is not None:
                none = named(cast(number(0), "UBIGINT"), "word")
                parts.append(exp.select(*columns, none).from_(subquery(ends.copy(), "e")))
        order = exp.Order(expressions=[exp.Ordered(this=col("v", "u"), desc=False, nulls_first=False)])
        rank = choose((is_null(col("v", "u")), number(0)), otherwise=exp.Window(this=call("dense_rank"), order=order))
        query = exp.select(*(col(c, "u") for c in ("side", "ix", "below", "word")), named(rank, "rank"))
        names = ("side", "ix", "below", "word", "rank")
        rows = dict(zip(names, self._arrays(query.from_(subquery(union_all(parts), "u")), names), strict=True))
        most = int(rows["ix"][rows["side"] > 0].max(initial=-1)) + 1
        return Placed.of(rows, len(self.cells[j].texts) if j in self.cells else most)

    # What every key shows

    def _shown_by(self, part: Part | None) -> dict[int, tuple[NDArray[Any], NDArray[Any]]]:
        """Return of every column the keys and the numbers of the cells that they show.

        What is published of a class as a whole is a cell of its own, of which the word comes in place of a number.
        """
        found = dict(self.shown)
        together: dict[int, list[int]] = {}
        for j in range(len(self.claim.shown)):
            if j not in found:
                together.setdefault(id(self.holders[f"r_{j}"]), []).append(j)
        for columns in together.values():
            lookup = self.holders[f"r_{columns[0]}"]
            found |= self._shown_together(lookup, columns, part if lookup.key == _CLASS else None)
        return found

    def _shown_together(
        self, lookup: Lookup, columns: Sequence[int], part: Part | None
    ) -> dict[int, tuple[NDArray[Any], NDArray[Any]]]:
        """Return what the keys of one lookup show of several columns."""
        query = exp.select(named(cast(col("code", "l"), "INTEGER"), "code")).from_(subquery(lookup.query.copy(), "l"))
        if part is not None:
            query = query.where(_in_part(col("code", "l"), part))
        types = {c.name: c.type for c in self.engine.columns(lookup.query)}
        for j in columns:
            if j in self.cells:
                # An enumeration comes as numbers.
                plain = self.published[f"r_{j}"][1] == "VARCHAR" and types[f"r_{j}"].startswith("ENUM")
                cell = col(f"r_{j}", "l") if plain else cast(self._cell(f"r_{j}", "l"), "VARCHAR")
                query = query.select(named(cell, f"x_{j}"))
            elif j in self.numbered:
                on = exp.and_(*(same(col(name, f"n_{j}"), col(name, "l")) for name in self._ends_of(j)))
                query = query.select(named(col("ix", f"n_{j}"), f"x_{j}"))
                query = query.join(table(self.numbered[j], f"n_{j}"), on=on)
            else:
                query = query.select(self._word_of_cell(j, "l", f"x_{j}"))
        rows = self.engine.arrow(query, named_in(query, self.keys))
        codes = rows.column("code").to_numpy()
        return {
            j: (codes, self._numbers(j, rows.column(f"x_{j}")) if j in self.cells else rows.column(f"x_{j}").to_numpy())
            for j in columns
        }

    def _numbers(self, j: int, cells: pa.ChunkedArray) -> NDArray[Any]:
        """Return the numbers of cells."""
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        found = [np.zeros(0, dtype=np.int32)]
        for chunk in cells.chunks:
            if pa.types.is_dictionary(chunk.type):
                number_of = pc.index_in(chunk.dictionary, value_set=self.cells[j].texts)
                (null,) = pc.index_in(pa.array([None], pa.string()), value_set=self.cells[j].texts)
                numbers = number_of.take(chunk.indices).fill_null(null if null.is_valid else -1)
            else:
                numbers = pc.index_in(chunk, value_set=self.cells[j].texts).fill_null(-1)
            found.append(numbers.to_numpy(zero_copy_only=False).astype(np.int32))
        return np.concatenate(found)

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
        counts = RowCounts(dict.fromkeys(self.reach, 0))
        for part in self._parts():
            self._read_part(part, counts)
        return counts

    def _read_part(self, part: Part | None, total: RowCounts) -> None:
        import numpy as np

        from duckanon.kernels import beside as at

        odd = [j for j, reach in self.reach.items() if reach.odd.any()]
        names = self._key_names()
        columns, values, shows, cells = self._packed(names, part)
        no_owner = np.zeros(0, dtype=np.uint64)

        def read(batch: pa.RecordBatch) -> tuple[NDArray[Any], NDArray[Any]]:
            keys = np.stack([batch.column(name).to_numpy() for name in names])
            through, kept = batch.column("through").to_numpy(), np.array(batch.column(KEPT).to_numpy())
            owner = np.array(batch.column("owner").to_numpy()) if self.claim.person is not None else no_owner
            counts, sums = np.zeros((len(columns), 2), dtype=np.int64), np.zeros(3, dtype=np.uint64)
            at.read_rows(keys, columns, values, shows, cells, through, owner, kept, counts, sums)
            for j in odd:
                of, by, own = columns[j, at.OF], keys[columns[j, at.BY]] - columns[j, at.BASE], kept > 0
                number = shows[columns[j, at.SHOWS] + by[own] * columns[j, at.STRIDE]]
                counts[j, 1] += self.reach[j].unlisted(number, keys[of][own])
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
        shown = self._shown_by(part)
        for by in dict.fromkeys(c.by for c in self.columns):
            mine = [j for j, c in enumerate(self.columns) if c.by == by]
            base = part[0] if part is not None and by == _CLASS else 0
            block = np.full((0, len(mine)), -1, dtype=np.int32)
            for i, j in enumerate(mine):
                codes, numbers = shown[j]
                _require_numbers(codes, base)
                by_number = self.columns[j].cells
                numbers, own = _each_own(numbers) if by_number is None else (numbers, by_number)
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

    def _pairs(self, j: int) -> exp.Query:
        """Return ``(value_key, cell_key, n)``: how often a value of the source stands beside what is published."""
        keys = [col(self.holders[f"{side}_{j}"].key, "r") for side in "sr"]
        query = exp.select(*(named(k, n) for k, n in zip(keys, ("value_key", "cell_key"), strict=True)))
        query = query.select(named(exp.Count(this=exp.Star()), "n")).from_(subquery(self.beside.rows.copy(), "r"))
        if self.beside.marked:
            query = query.where(col(KEPT, "r"))
        published = {id(lookup): lookup for name, lookup in self.holders.items() if name.startswith("r_")}
        for lookup in published.values():
            codes = exp.select(col("code", "l")).from_(subquery(lookup.query.copy(), "l"))
            query = query.where(exp.In(this=col(lookup.key, "r"), query=codes.subquery()))
        return query.group_by(*(k.copy() for k in keys))

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
        pairs = self._with_values(self._pairs(j), j)
        on = same(col("value", "k"), col("value", "x"))
        ends = ["low_end", "high_end"] if f"x_{j}" in self.holders else []
        query = exp.select(*(col(c, "x") for c in ("cell_key", "n", "value", "cell", *ends)), *labels, col("text", "k"))
        labelled = query.from_(subquery(pairs, "x")).join(subquery(shown.labelled(), "k"), on=on, join_type="left")
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
