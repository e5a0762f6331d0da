"""Truthfulness: the rows of a release as they were and as they are published, side by side, and what must hold of them.

The rows are private. They are claimed by whoever recoded them, and nothing that is claimed is believed:

1. as they were, with what is passed through and the person, they are the rows of the source, suppressed rows included;
2. as they are published, with what is passed through, they are the rows of the written file;
3. every published cell stands for the value beside it.

Rows are compared as multisets by the sum of their keyed hashes, under secret random keys that are drawn after the rows
were written. So whatever was claimed, a file of which all three hold has the source's rows with true cells.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.cell_meaning import BY_CLASS, Meaning, Shown, meaning
from duckanon.errors import PrivacyViolation
from duckanon.sqlgen.axes import NUMBERS, choose, equal, is_null, present
from duckanon.sqlgen.relations import (
    call,
    cast,
    col,
    in_utc,
    named,
    number,
    param,
    same,
    subquery,
    table,
    text,
)

if TYPE_CHECKING:
    from duckanon.engine.base import Engine

PERSON, KEPT = "person", "kept"
_CLASS = "class_id"
_FIXED = re.compile(
    r"BOOLEAN|U?(TINYINT|SMALLINT|INTEGER|BIGINT)|FLOAT|DOUBLE|DATE|TIME|TIMESTAMP(_S|_MS|_NS| WITH TIME ZONE)?"
)
_NEAR = 1e-9
"""More than rounding can make of a mean, as a share."""


@dataclass(frozen=True)
class Lookup:
    """What rows show under a number: ``query(code, ...)`` by their column ``key``.

    Its further columns are ``s_j``, the values of the quasi-identifiers as they were, and ``r_j`` (and ``r_jb``), what
    is published of them; of midpoints ``x_j`` and ``y_j``, too, the ends that they lie between, as ticks.
    """

    key: str
    query: exp.Query


@dataclass(frozen=True)
class SideBySide:
    """The rows of a release as they were and as they are published.

    ``rows`` has one row for each of the source: the keys of ``lookups``, ``p_0``, ``p_1``, ... that are published as
    they are, ``person`` where persons are counted, and perhaps ``kept``, false for rows that are not published. Nor
    are rows published for which a look-up has nothing.
    """

    rows: exp.Query
    lookups: tuple[Lookup, ...]
    marked: bool = False
    """Whether rows have ``kept``."""
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Claim:
    """What side by side has to be compared with.

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
    """The rows of a release as a number under a secret key: other rows have another one.

    ``columns`` has names, types and numbers of columns.
    """

    keys: Mapping[str, Any] = field(repr=False)
    columns: tuple[tuple[str, str, int], ...]
    rows: int
    total: int

    def require(self, engine: Engine, relation: exp.Query) -> None:
        """Raise a PrivacyViolation unless a relation holds the same rows."""
        words = [w for name, kind, slot in self.columns for w in _words(col(name), kind, slot)]
        found = _sums(engine, relation, words, self.keys)
        if found != (self.rows, self.total):
            _refuse("the file does not hold the rows that were checked")


def require_truth(engine: Engine, beside: SideBySide, claim: Claim, suppressed: int) -> Fingerprint:
    """Return the fingerprint of true rows, which are those of a release if its file has it, too.

    A PrivacyViolation says that they are not those of the source, or that cells do not stand for what is beside them.
    """
    return _Truth(engine, beside, claim).require(suppressed)


def _refuse(problem: str) -> None:
    raise PrivacyViolation(f"The gate refused the release: {problem}. Nothing was published.")


# Hashes


def _words(value: exp.Expr, kind: str, slot: int) -> list[exp.Expr]:
    """Return keyed hashes of a value; texts have two, because texts that differ in few places may share one."""
    plain = cast(value, kind)
    if _FIXED.fullmatch(kind):
        return [_word(plain, slot)]
    own = plain if kind == "VARCHAR" else cast(plain, "VARCHAR")
    after = [_word(exp.DPipe(this=param(name), expression=own.copy()), slot) for name in ("text0", "text1")]
    return after if kind == "VARCHAR" else [_word(plain, slot), *after]


def _word(value: exp.Expr, slot: int) -> exp.Expr:
    # A function of one column is worked out once for each value that a file lists.
    return call("hash", call("xor", cast(param(f"slot{slot}"), "UBIGINT"), call("hash", value)))


def _joined(words: Sequence[exp.Expr]) -> exp.Expr:
    return reduce(lambda a, b: call("xor", a, b), words) if words else cast(number(0), "UBIGINT")


def _sum(words: Sequence[exp.Expr]) -> exp.Expr:
    return exp.func("COALESCE", exp.Sum(this=call("hash", _joined(words))), number(0))


def _sums(engine: Engine, relation: exp.Query, words: Sequence[exp.Expr], keys: Mapping[str, Any]) -> tuple[int, int]:
    query = exp.select(exp.Count(this=exp.Star()), _sum(words)).from_(subquery(relation.copy(), "s"))
    rows, total = engine.row(query, _named_in(query, keys))
    return int(rows), int(total)


def _named_in(query: exp.Expr, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return those parameters that a statement names: the database refuses others."""
    wanted = {placeholder.name for placeholder in query.find_all(exp.Placeholder)}
    return {name: value for name, value in values.items() if name in wanted}


def _in_part(number_of: exp.Expr, part: int, parts: int) -> exp.Expr:
    """Return whether a class is in one of several parts; rows of no class are in the first."""
    rest = exp.Mod(this=exp.func("COALESCE", number_of, number(0)), expression=number(parts))
    return exp.EQ(this=rest, expression=number(part))


def _secret(slots: int) -> dict[str, Any]:
    """Return secret words, and texts that move what follows to other places of the words that are hashed."""
    found: dict[str, Any] = {f"slot{i}": secrets.randbits(64) for i in range(slots)}
    return found | {"text0": secrets.token_hex(8) + "-" * secrets.randbelow(4), "text1": secrets.token_hex(10) + "-+-"}


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
        self.keys = _secret(first + 1)
        self.tables: list[str] = []

    def require(self, suppressed: int) -> Fingerprint:
        """See ``require_truth``."""
        found = self._require(suppressed)
        self.engine.drop(*self.tables)
        return found

    def _require(self, suppressed: int) -> Fingerprint:
        engine, claim = self.engine, self.claim
        own = [w for j, e in enumerate(claim.original) for w in _words(e.copy(), self.raw_types[j], j)]
        beside = [
            w
            for e, (slot, kind) in zip(claim.passed, self.others.values(), strict=True)
            for w in _words(e.copy(), kind, slot)
        ]
        if claim.person is not None:
            beside.append(_word(claim.person.copy(), self.person_slot))
        params = {**self.keys, **(self.beside.params if claim.person is not None else {})}
        source = _sums(engine, claim.source, [*own, *beside], params)
        self._look()
        read, total, kept, shown, *wrong = self._counted(suppressed > 0)
        if (read, total) != source:
            _refuse("the rows that were checked are not those of the source")
        columns = tuple((name, kind, slot) for slot, kind, name in self.published.values())
        columns += tuple((n, k, s) for n, (s, k) in zip(claim.others, self.others.values(), strict=True))
        found = Fingerprint(self.keys, columns, kept, shown)
        if read - kept != suppressed:
            _refuse("rows in are not rows published plus suppressed")
        for j, count in zip(self.by_row, wrong, strict=True):
            self._require_none(count, j)
        for j in self.by_row:
            if self.meanings[j].covers is not None:
                self._require_none(self._uncovered(j), j)
        for j, one in enumerate(claim.shown):
            if one.kind in BY_CLASS:
                self._require_none(self._wrong_classes(j), j)
        return found

    def _require_none(self, count: int, j: int) -> None:
        if count:
            _refuse(f"{count} published cells of {self.claim.shown[j].name!r} do not stand for the value of their row")

    # Look-ups, with hashes and with what cells stand for

    def _look(self) -> None:
        engine = self.engine
        self.holders: dict[str, Lookup] = {}
        self.columns: dict[str, str] = {}
        for lookup in self.beside.lookups:
            for column in engine.columns(lookup.query):
                if column.name != "code":
                    self.holders[column.name], self.columns[column.name] = lookup, column.type
        missing = {f"s_{j}" for j in range(len(self.claim.original))} | set(self.published)
        halved = {f"{side}_{j}" for j, s in enumerate(self.claim.shown) if s.kind == "midpoint" for side in "xy"}
        if set(self.holders) not in (missing, missing | halved):
            _refuse("its columns are not the declared ones")
        self.meanings: dict[int, Meaning] = {}
        self.by_row: list[int] = []
        for j, shown in enumerate(self.claim.shown):
            if shown.kind in BY_CLASS:
                continue
            self.by_row.append(j)
            cells = exp.select(named(self._cell(f"r_{j}", "h"), "cell"))
            if f"r_{j}b" in self.holders:
                cells = cells.select(named(self._cell(f"r_{j}b", "h"), "cell_b"))
            cells = cells.distinct().from_(subquery(self.holders[f"r_{j}"].query.copy(), "h"))
            self.meanings[j] = meaning(engine, shown, self.raw_types[j], cells)
            self.tables += self.meanings[j].tables
        self.hashed: dict[str, str] = {}
        self.sides: dict[str, set[str]] = {}
        for key in dict.fromkeys(lookup.key for lookup in self.beside.lookups):
            self.hashed[key] = self._hashed(key)
            self.tables.append(self.hashed[key])

    def _cell(self, name: str, alias: str) -> exp.Expr:
        """Return a published cell in the type of the file."""
        return cast(col(name, alias), self.published[name][1])

    def _hashed(self, key: str) -> str:
        """Create ``(code, before, after, at_j, lo_j, hi_j, nul_j, odd_j, ...)`` of what rows look up by one key."""
        lookups = [lookup for lookup in self.beside.lookups if lookup.key == key]
        query = exp.select(col("code", "l0")).from_(subquery(lookups[0].query.copy(), "l0"))
        before: list[exp.Expr] = []
        after: list[exp.Expr] = []
        for i, lookup in enumerate(lookups):
            alias = f"l{i}"
            if i:
                on = equal(col("code", alias), col("code", "l0"))
                query = query.join(subquery(lookup.query.copy(), alias), on=on)
            for name in (n for n, holder in self.holders.items() if holder is lookup):
                j = int(re.sub(r"\D", "", name))
                if name.startswith("s_"):
                    before += _words(col(name, alias), self.raw_types[j], j)
                    query = self._with_value(query, j, alias)
                elif name.startswith("r_"):
                    after += _words(self._cell(name, alias), self.published[name][1], self.published[name][0])
                    query = query if name.endswith("b") else self._with_reach(query, j, alias)
        query = query.select(*([named(_joined(before), "before")] if before else []))
        query = query.select(*([named(_joined(after), "after")] if after else []))
        created = self.engine.fresh("looked")
        self.sides[created] = {s for s, own in (("before", before), ("after", after)) if own}
        self.engine.create(created, query, _named_in(query, self.keys))
        return created

    def _with_value(self, query: exp.Select, j: int, alias: str) -> exp.Select:
        own = self.meanings.get(j)
        if own is None:
            return query
        if own.at is not None:
            at = own.at.copy().transform(
                lambda n: col(f"s_{j}", alias) if isinstance(n, exp.Column) and n.name == "value" else n
            )
            return query.select(named(at, f"at_{j}"))
        on = same(col("value", f"v{j}"), col(f"s_{j}", alias))
        query = query.join(table(str(own.places), f"v{j}"), on=on, join_type="left")
        return query.select(named(col("at", f"v{j}"), f"at_{j}"))

    def _with_reach(self, query: exp.Select, j: int, alias: str) -> exp.Select:
        own = self.meanings.get(j)
        if own is None:
            return query
        on = same(col("cell", f"m{j}"), self._cell(f"r_{j}", alias))
        if f"r_{j}b" in self.holders:
            on = exp.and_(on, same(col("cell_b", f"m{j}"), self._cell(f"r_{j}b", alias)))
        query = query.join(table(own.cells, f"m{j}"), on=on, join_type="left")
        return query.select(*(named(col(c, f"m{j}"), f"{c}_{j}") for c in ("lo", "hi", "nul", "odd")))

    # Rows

    def _joined_rows(self, columns: Sequence[exp.Expr], some: bool, part: int = 0, parts: int = 1) -> exp.Select:
        """Return columns of the rows ``r`` beside what they look up, ``some`` of which may find nothing.

        Of several ``parts`` that share out the classes, this one.
        """
        query = exp.select(*columns).from_(subquery(self.beside.rows.copy(), "r"))
        for i, (key, name) in enumerate(self.hashed.items()):
            side = "left" if some and "before" not in self.sides[name] else None
            on = equal(col("code", f"g{i}"), col(key, "r"))
            looked: exp.Expr = table(name, f"g{i}")
            if parts > 1 and key == _CLASS:
                own = exp.select("*").from_(table(name)).where(_in_part(col("code"), part, parts))
                looked = subquery(own, f"g{i}")
                query = query.where(_in_part(col(key, "r"), part, parts))
            query = query.join(looked, on=on, join_type=side)
        return query

    def _parts(self) -> int:
        """Return into how many parts classes are shared out, so that what is looked up of one part fits into memory."""
        limit = self.engine.memory_limit()
        if limit is None or _CLASS not in self.hashed:
            return 1
        (classes,) = self.engine.row(exp.select(exp.Count(this=exp.Star())).from_(table(self.hashed[_CLASS])))
        return max(1, -(-int(classes) * (16 * len(self.by_row) + 40) * 4 // limit))

    def _alias(self, name: str) -> str:
        """Return the alias of what a column is looked up in."""
        return f"g{list(self.hashed).index(self.holders[name].key)}"

    def _kept(self, some: bool) -> exp.Expr | None:
        if not some:
            return None
        parts: list[exp.Expr] = []
        if self.beside.marked:
            parts.append(col(KEPT, "r"))
        for i, name in enumerate(self.hashed.values()):
            if "after" in self.sides[name]:
                parts.append(present(col("after", f"g{i}")))
        return exp.and_(*parts)

    def _counted(self, some: bool) -> list[int]:
        """Return the rows and their sum as they were, and as they are published, and how many cells are wrong."""
        before: list[exp.Expr] = []
        after: list[exp.Expr] = []
        for i, name in enumerate(self.hashed.values()):
            before += [col("before", f"g{i}")] if "before" in self.sides[name] else []
            after += [col("after", f"g{i}")] if "after" in self.sides[name] else []
        through = [w for name, (slot, kind) in self.others.items() for w in _words(col(name, "r"), kind, slot)]
        person = [_word(col(PERSON, "r"), self.person_slot)] if self.claim.person is not None else []
        kept = self._kept(some)
        columns: list[exp.Expr] = [exp.Count(this=exp.Star()), _sum([*before, *through, *person])]
        published: exp.Expr = call("hash", _joined([*after, *(w.copy() for w in through)]))
        if kept is not None:
            published = choose((kept.copy(), published))
        columns.append(exp.Count(this=exp.Star()) if kept is None else call("count_if", kept.copy()))
        columns.append(exp.func("COALESCE", exp.Sum(this=published), number(0)))
        for j in self.by_row:
            wrong: exp.Expr = exp.Not(this=exp.func("COALESCE", self._covered(j), exp.false()))
            columns.append(call("count_if", wrong if kept is None else exp.and_(kept.copy(), wrong)))
        parts, totals = self._parts(), [0] * len(columns)
        for part in range(parts):
            query = self._joined_rows(columns, some, part, parts)
            found = self.engine.row(query, _named_in(query, {**self.keys, **self.beside.params}))
            totals = [total + int(n) for total, n in zip(totals, found, strict=True)]
        return totals

    def _covered(self, j: int) -> exp.Expr:
        a, b = self._alias(f"s_{j}"), self._alias(f"r_{j}")
        at = col(f"at_{j}", a)
        inside = exp.Between(this=at, low=col(f"lo_{j}", b), high=col(f"hi_{j}", b))
        return choose((is_null(at.copy()), col(f"nul_{j}", b)), otherwise=inside)

    def _pairs(self, j: int, condition: exp.Expr | None) -> exp.Query:
        """Return ``(a, b, n)``: how often a value as it was stands beside what is published, both as numbers."""
        keys = [col(self.holders[f"{side}_{j}"].key, "r") for side in "sr"]
        columns = [named(k, n) for k, n in zip(keys, "ab", strict=True)]
        query = self._joined_rows([*columns, named(exp.Count(this=exp.Star()), "n")], True)
        conditions = [c for c in (self._kept(True), condition) if c is not None]
        return query.where(exp.and_(*conditions)).group_by(*(k.copy() for k in keys))

    def _uncovered(self, j: int) -> int:
        """Return how many cells that are no ranges do not list the value beside them."""
        pairs = self._pairs(j, exp.func("COALESCE", col(f"odd_{j}", self._alias(f"r_{j}")), exp.false()))
        looked = self._with_values(pairs, j)
        on = exp.and_(same(col("cell", "c"), col("cell", "x")), same(col("value", "c"), col("value", "x")))
        listed = exp.select(col("cell"), col("value"), named(exp.true(), "listed"))
        listed = listed.from_(table(str(self.meanings[j].covers)))
        query = exp.select(exp.func("COALESCE", exp.Sum(this=col("n", "x")), number(0))).from_(subquery(looked, "x"))
        query = query.join(subquery(listed, "c"), on=on, join_type="left").where(is_null(col("listed", "c")))
        (count,) = self.engine.row(query, _named_in(query, self.beside.params))
        return int(count)

    def _with_values(self, pairs: exp.Query, j: int) -> exp.Select:
        """Return ``(b, n, value, cell)`` of pairs of numbers."""
        raw, shown = (self.holders[f"{side}_{j}"].query.copy() for side in "sr")
        query = exp.select(col("b", "p"), col("n", "p"), named(col(f"s_{j}", "s"), "value"))
        query = query.select(named(self._cell(f"r_{j}", "t"), "cell")).from_(subquery(pairs, "p"))
        if f"x_{j}" in self.holders:
            ends = self.holders[f"x_{j}"].query.copy()
            query = query.select(*(named(col(f"{side}_{j}", "e"), side) for side in "xy"))
            query = query.join(subquery(ends, "e"), on=equal(col("code", "e"), col("b", "p")))
        query = query.join(subquery(raw, "s"), on=equal(col("code", "s"), col("a", "p")))
        return query.join(subquery(shown, "t"), on=equal(col("code", "t"), col("b", "p")))

    # What is published of a class as a whole

    def _wrong_classes(self, j: int) -> int:
        """Return how many classes show what their values do not give."""
        shown = self.claim.shown[j]
        known = [col(c, "k") for c in ("known", *(["l1"] if shown.height else []))]
        pairs = self._with_values(self._pairs(j, None), j)
        on = same(col("value", "k"), col("value", "x"))
        ends = ["x", "y"] if f"x_{j}" in self.holders else []
        query = exp.select(*(col(c, "x") for c in ("b", "n", "value", "cell", *ends)), *known, col("text", "k"))
        looked = query.from_(subquery(pairs, "x")).join(subquery(shown.known.copy(), "k"), on=on, join_type="left")
        right, measured = self._right(j, shown), shown.family != "other" and shown.height
        grouped = exp.select(named(exp.func("COALESCE", right, exp.false()), "ok")).from_(subquery(looked, "y"))
        every: list[exp.Query] = []
        if shown.kind == "proportional":
            # By their labels, or where these are the values themselves, by those.
            every += [self._shares(shown, looked.copy(), name) for name in (("l1", "text") if measured else ("text",))]
        else:
            every.append(grouped.group_by(*(col(c) for c in ("b", "cell", *ends))))
        return min(self._count_wrong(one) for one in every)

    def _count_wrong(self, grouped: exp.Query) -> int:
        wrong = call("count_if", exp.Not(this=exp.func("COALESCE", col("ok"), exp.false())))
        query = exp.select(wrong).from_(subquery(grouped, "z"))
        (count,) = self.engine.row(query, _named_in(query, self.beside.params))
        return int(count)

    def _right(self, j: int, shown: Shown) -> exp.Expr:
        """Return whether the cell of a class is what its values give."""
        value, cell = col("value"), col("cell")
        missing = call("bool_or", is_null(value.copy()))
        if shown.kind in ("median", "mode", "medoid"):
            own: exp.Expr = value.copy()
            if self.published[f"r_{j}"][1] == "VARCHAR":
                own = cast(own, "VARCHAR")
            # A value that its hierarchy does not know is published as the top label, or not at all.
            hidden = is_null(cell.copy())
            if self.published[f"r_{j}"][1] == "VARCHAR":
                hidden = exp.or_(hidden, equal(cell.copy(), text(shown.top)))
            unknown = exp.and_(hidden, exp.Not(this=exp.func("COALESCE", col("known"), exp.true())))
            return call("bool_or", exp.or_(same(own, cell.copy()), exp.paren(unknown)))
        finite: exp.Expr = value.copy()
        if shown.family in ("float", "date", "timestamp"):
            finite = choose((call("isfinite", value.copy()), value.copy()))
        numbers = shown.family in ("integer", "decimal", "float")
        least, most = exp.Min(this=finite), exp.Max(this=finite.copy())
        low: exp.Expr = cast(least, "DOUBLE") if numbers else least
        high: exp.Expr = cast(most, "DOUBLE") if numbers else most
        if shown.kind == "midpoint" and f"x_{j}" in self.holders:
            return _is_middle(shown, missing)
        given: exp.Expr = cast(cell.copy(), "DOUBLE") if numbers else cell.copy()
        inside: exp.Expr = exp.Between(this=given, low=low, high=high)
        if numbers:
            slack = exp.Mul(
                this=exp.paren(exp.Add(this=exp.Abs(this=low.copy()), expression=exp.Abs(this=high.copy()))),
                expression=number(_NEAR),
            )
            ends = exp.Sub(this=low.copy(), expression=slack), exp.Add(this=high.copy(), expression=slack.copy())
            inside = exp.Between(this=given.copy(), low=ends[0], high=ends[1])
        inside = choose((is_null(exp.Min(this=finite.copy())), is_null(cell.copy())), otherwise=inside)
        return choose((missing, is_null(cell.copy())), otherwise=inside)

    def _shares(self, shown: Shown, looked: exp.Query, name: str) -> exp.Select:
        """Return whether each class shows the shares of its values by their labels or texts, and no others."""
        plain = exp.and_(present(col("value")), exp.func("COALESCE", col("known"), exp.false()))
        label = choose((plain, col(name)), otherwise=text(shown.top))
        counts = exp.select(col("b"), col("cell"), named(label, "k"), named(exp.Sum(this=col("n")), "n"))
        counts = counts.from_(subquery(looked, "y")).group_by(col("b"), col("cell"), label.copy())
        total = exp.Window(this=exp.Sum(this=col("n")), partition_by=[col("b")])
        kinds = exp.Window(this=exp.Count(this=exp.Star()), partition_by=[col("b")])
        share = exp.Div(this=cast(col("n"), "DOUBLE"), expression=cast(total, "DOUBLE"))
        # A list of one share, or none.
        given = call("list_extract", call("map_extract", col("cell"), col("k")), number(1))
        near = exp.LT(this=exp.Abs(this=exp.Sub(this=given, expression=share)), expression=number(_NEAR))
        several = equal(call("cardinality", col("cell")), kinds)
        return exp.select(named(exp.and_(near, several), "ok")).from_(subquery(counts, "q"))


def _tick(value: exp.Expr, shown: Shown) -> exp.Expr:
    """Return a value as a number: days, microseconds, or itself; NULL where it is not finite."""
    if shown.family in NUMBERS:
        plain = cast(value, "DOUBLE")
        return choose((call("isfinite", plain.copy()), plain))
    if shown.family == "date":
        return cast(exp.Div(this=call("epoch", value), expression=number(86400)), "BIGINT")
    return cast(call("epoch_us", in_utc(value, shown.type)), "BIGINT")


def _is_middle(shown: Shown, missing: exp.Expr) -> exp.Expr:
    """Return whether all values of a class lie between two ends, and its cell halfway between them."""
    cell = col("cell") if shown.family in NUMBERS else _tick(col("cell"), shown)
    own = _tick(col("value"), shown)
    low, high = col("x"), col("y")
    outside = exp.or_(exp.LT(this=own, expression=low), exp.GT(this=own.copy(), expression=high))
    inside = exp.Not(this=exp.func("COALESCE", call("bool_or", outside), exp.false()))
    if shown.family in NUMBERS:
        halves = [exp.Div(this=exp.paren(end.copy()), expression=number(2)) for end in (low, high)]
        apart = exp.Abs(this=exp.Sub(this=cell, expression=exp.paren(exp.Add(this=halves[0], expression=halves[1]))))
        wide = exp.Add(this=exp.Abs(this=low.copy()), expression=exp.Abs(this=high.copy()))
        middle: exp.Expr = exp.LTE(this=apart, expression=exp.Mul(this=exp.paren(wide), expression=number(_NEAR)))
        alone = call("bool_and", equal(cast(col("value"), "DOUBLE"), col("cell")))
    else:
        total = exp.Add(this=cast(low.copy(), "HUGEINT"), expression=cast(high.copy(), "HUGEINT"))
        middle = equal(cell, exp.IntDiv(this=exp.paren(total), expression=number(2)))
        alone = call("bool_and", equal(col("value"), col("cell")))
    true = exp.or_(exp.func("COALESCE", alone, exp.false()), exp.paren(exp.and_(inside, middle)))
    return choose((missing, is_null(col("cell"))), otherwise=exp.paren(true))


__all__ = ["KEPT", "PERSON", "Claim", "Fingerprint", "Lookup", "SideBySide", "require_truth"]
