"""The frequency table of a problem as packed arrays, rolled up to the classes of any node of the lattice."""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING

import numpy as np
from sqlglot import exp

from duckanon.algorithms.base import POPULATION, Problem
from duckanon.encoding.words import WordLayout, bits_for, joined, moved_up
from duckanon.engine.sql.relations import cast, col, named, number, table
from duckanon.errors import EngineError
from duckanon.models.base import Groups, Histograms

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from duckanon.encoding.dictionaries import Coded, Frequency
    from duckanon.engine.base import Engine

    Keys = NDArray[np.uint64]
    Integers = NDArray[np.int64]
    Levels = tuple[int, ...]

_MOST_BITS = 63
_ROW_BYTES = 80
_CLASSES = "duckanon classes"
"""The key of the table that classes are counted in, beside those of sensitive columns and the population."""


@dataclass(frozen=True)
class Packing:
    """Where each quasi-identifier has its bits: ``words[j]`` holds column j at ``shifts[j]``, under ``masks[j]``.

    The lowest bits of the last word are kept free for one carried code: a sensitive value, or a person.
    """

    words: Integers
    shifts: Keys
    masks: Keys
    width: int

    @classmethod
    def of(cls, sizes: list[int], carried: int) -> Packing:
        """Return a packing of columns with so many codes each, and of one carried code."""
        layout = WordLayout(_MOST_BITS, in_order=True)
        places = [layout.bits(size) for size in sizes]
        # The carried code has the lowest bits of the last word, so that sorted keys stand class by class.
        last = bits_for(carried) if carried else 0
        if carried:
            layout.bits(carried)
        count = max(1, len(layout.used))
        return cls(
            np.array([p.word for p in places], dtype=np.int64),
            np.array([p.shift + last * (p.word == count - 1) for p in places], dtype=np.uint64),
            np.array([p.mask for p in places], dtype=np.uint64),
            count,
        )

    def keep(self, carried_bits: int) -> Keys:
        """Return the bits of each word that are not the carried code's."""
        bits = np.full(self.width, np.iinfo(np.uint64).max, dtype=np.uint64)
        bits[-1] ^= np.uint64((1 << carried_bits) - 1)
        return bits


@dataclass(frozen=True)
class Packed:
    """Distinct keys with their counts at some levels; ``None`` levels are the dictionaries' own codes."""

    keys: Keys
    counts: Integers

    @property
    def nbytes(self) -> int:
        return self.keys.nbytes + self.counts.nbytes


@dataclass(frozen=True)
class Source:
    """A table that is rolled up: its packing, how many bits are carried, and its rows at the bottom."""

    packing: Packing
    carried_bits: int
    base: Packed


@dataclass
class Classes:
    """The classes of a node: keys in ascending order, rows and members of each."""

    keys: Keys
    rows: Integers
    sizes: Integers


class _Held:
    """The nodes whose tables are held, in arrays that grow."""

    def __init__(self, width: int) -> None:
        self.levels = np.zeros((64, width), dtype=np.int16)
        self.sizes = np.zeros(64, dtype=np.int64)
        self.used = 0

    def add(self, levels: Levels, size: int) -> None:
        if self.used == len(self.sizes):
            self.levels = np.concatenate([self.levels, np.zeros_like(self.levels)])
            self.sizes = np.concatenate([self.sizes, np.zeros_like(self.sizes)])
        self.levels[self.used], self.sizes[self.used] = levels, size
        self.used += 1

    def remove(self, levels: Levels) -> None:
        (at,) = np.flatnonzero((self.levels[: self.used] == levels).all(axis=1))
        self.used -= 1
        self.levels[at], self.sizes[at] = self.levels[self.used], self.sizes[self.used]

    def smallest_below(self, levels: Levels, limit: int) -> Levels | None:
        """Return the held node below ``levels`` with the smallest table under ``limit``; the first of equals."""
        if not self.used:
            return None
        fits = (self.levels[: self.used] <= np.array(levels, dtype=np.int16)).all(axis=1)
        sizes = np.where(fits, self.sizes[: self.used], limit)
        at = int(sizes.argmin())
        return tuple(self.levels[at].tolist()) if sizes[at] < limit else None


@dataclass
class Tables:
    """All tables of a problem, and those of nodes that were rolled up, so that others start from the nearest.

    ``memory_limit`` is how many bytes of rolled-up tables are kept; the largest go first.
    """

    problem: Problem
    memory_limit: int = 512 * 2**20
    sources: dict[str, Source] = field(init=False)
    rolled: dict[str, dict[Levels, Packed]] = field(init=False)
    held: int = 0

    def __post_init__(self) -> None:
        self.memory_limit = min(self.memory_limit, _share(self.problem.engine))
        self.codes = [_codes(self.problem, c) for c in self.problem.frequency.coded]
        self.sources = {_CLASSES: self._fetch(self.problem.frequency)}
        for key, tally in self.problem.tallies.items():
            self.sources[key] = self._fetch(tally.frequency)
        self.rolled = {key: {} for key in self.sources}
        width = len(self.problem.frequency.coded)
        self._held = {key: _Held(width) for key in self.sources}
        self._largest: list[tuple[int, str, Levels]] = []
        self._steps: dict[tuple[int, int, int], Integers] = {}
        self.value_counts = [_counts(self.problem, c) for c in self.problem.frequency.coded]

    @property
    def class_packing(self) -> Packing:
        """Where the keys of classes have the bits of each column."""
        return self.sources[_CLASSES].packing

    def leaves(self, column: int) -> list[NDArray[np.float64]]:
        """Return, for every level of a column, how many leaves of the domain each code stands for."""
        coded = self.problem.frequency.coded[column]
        query = exp.select(col("level"), col("code"), col("leaves")).from_(table(coded.labels))
        counts = [np.ones(size) for size in coded.sizes]
        for level, code, leaves in self.problem.engine.rows(query):
            counts[int(level)][int(code)] = leaves
        return counts

    def classes(self, levels: Levels) -> Classes:
        """Return the classes of a node, in no particular order."""
        source, packed = self.sources[_CLASSES], self.roll_up(_CLASSES, levels)
        if not source.carried_bits:
            return Classes(packed.keys, packed.counts, packed.counts)
        return Classes(*_plain(packed, source))

    def ordered(self, classes: Classes) -> Classes:
        """Return classes in the order of their keys, which is that of ``groups``."""
        order = self.order(classes)
        return Classes(classes.keys[order], classes.rows[order], classes.sizes[order])

    def order(self, classes: Classes) -> Integers:
        """Return the places of classes in the order of their keys."""
        return _order(classes.keys)

    def groups(self, key: str, classes: Classes, levels: Levels) -> Groups:
        """Return what a model of a sensitive column or of the population is asked about; ``classes`` are in order."""
        source, packed = self.sources[key], self.roll_up(key, levels)
        tally = self.problem.tallies[key]
        order = _order(packed.keys)
        keys, counts = packed.keys[order], packed.counts[order]
        if key == POPULATION or tally.totals is None:
            ours, theirs = self._plain_codes(_CLASSES, classes.keys), self._plain_codes(key, keys)
            at = _positions(ours, theirs)
            population = np.zeros(len(classes.sizes), dtype=np.int64)
            population[at[at >= 0]] = counts[at >= 0]
            return Groups(classes.sizes, classes.rows, population=population, population_only=int((at < 0).sum()))
        carried = np.uint64((1 << source.carried_bits) - 1)
        masked = keys.copy()
        masked[:, -1] &= ~carried
        new = np.ones(len(keys), dtype=np.bool_)
        new[1:] = (masked[1:] != masked[:-1]).any(axis=1)
        starts = np.append(np.flatnonzero(new), len(keys)).astype(np.int64)
        codes = (keys[:, -1] & carried).astype(np.int64)
        histograms = Histograms(starts, codes, counts, tally.totals, tally.ancestors)
        return Groups(classes.sizes, classes.rows, histograms=histograms)

    def roll_up(self, key: str, levels: Levels) -> Packed:
        """Return a table at the levels of a node, from the smallest table at a node below it."""
        from duckanon.kernels.lattice import group

        known = self.rolled[key]
        if levels in known:
            return known[levels]
        source = self.sources[key]
        start, packed = self._nearest(key, levels, source.base)
        changed = [j for j in range(len(levels)) if start is None or start[j] != levels[j]]
        steps = [self._step(j, -1 if start is None else start[j], levels[j]) for j in changed]
        offsets = np.concatenate([[0], np.cumsum([len(s) for s in steps])[:-1]]) if steps else np.zeros(0)
        keys, counts, _ = group(
            packed.keys,
            packed.counts,
            source.packing.words[changed],
            source.packing.shifts[changed],
            source.packing.masks[changed],
            offsets.astype(np.int64),
            np.concatenate(steps) if steps else np.zeros(1, dtype=np.int64),
            np.full(source.packing.width, np.iinfo(np.uint64).max, dtype=np.uint64),
        )
        rolled = Packed(keys, counts)
        self._hold(key, levels, rolled)
        return rolled

    def _nearest(self, key: str, levels: Levels, base: Packed) -> tuple[Levels | None, Packed]:
        """Return the smallest table at a node below, and its levels; None is the base."""
        known = self.rolled[key]
        lower = [j for j, (level, low) in enumerate(zip(levels, self.problem.low, strict=True)) if level > low]
        children = [c for j in lower if (c := (*levels[:j], levels[j] - 1, *levels[j + 1 :])) in known]
        if lower and len(children) == len(lower):
            # Generalization never increases the number of classes: with all children stored, no other node is smaller.
            child = min(children, key=lambda c: len(known[c].counts))
            return child, known[child]
        at = self._held[key].smallest_below(levels, len(base.counts))
        return (None, base) if at is None else (at, known[at])

    def _hold(self, key: str, levels: Levels, rolled: Packed) -> None:
        self.rolled[key][levels] = rolled
        self._held[key].add(levels, len(rolled.counts))
        self.held += rolled.nbytes
        while self.held > self.memory_limit and self._largest:
            # The largest table is dropped: it is hardly a better start than the base.
            _, name, at = heappop(self._largest)
            self.held -= self.rolled[name].pop(at).nbytes
            self._held[name].remove(at)
        heappush(self._largest, (-rolled.nbytes, key, levels))

    def _step(self, column: int, below: int, above: int) -> Integers:
        """Return the code on level ``above`` of every code on level ``below`` (-1: of the dictionary)."""
        place = (column, below, above)
        if place not in self._steps:
            codes = self.codes[column]
            if below < 0:
                self._steps[place] = codes[above]
            else:
                codes_above = np.zeros(int(codes[below].max(initial=0)) + 1, dtype=np.int64)
                codes_above[codes[below]] = codes[above]
                self._steps[place] = codes_above
        return self._steps[place]

    def column_codes(self, classes: Classes, column: int) -> Integers:
        """Return the code of one quasi-identifier in every class."""
        packing = self.sources[_CLASSES].packing
        codes = (classes.keys[:, packing.words[column]] >> packing.shifts[column]) & packing.masks[column]
        return np.asarray(codes, dtype=np.int64)

    def _plain_codes(self, key: str, keys: Keys) -> Integers:
        packing = self.sources[key].packing
        columns = [(keys[:, w] >> s) & m for w, s, m in zip(packing.words, packing.shifts, packing.masks, strict=True)]
        return np.stack(columns, axis=1).astype(np.int64)

    def _require_room(self, frequency: Frequency) -> None:
        """Raise where the arrays of a search would take more than their half of the engine's memory."""
        engine = self.problem.engine
        (rows,) = engine.row(exp.select(exp.Count(this=exp.Star())).from_(table(frequency.table)))
        # Keys and counts, as they come and as they are grouped, and the slots of the hash table.
        needed, half = int(rows) * _ROW_BYTES, _share(engine)
        if needed > half:
            raise EngineError(
                f"The {int(rows):,} different combinations of values take about {needed >> 20:,} MB in this search, "
                f"more than half of the memory limit ({half >> 20:,} MB). Raise it, leave out or coarsen a column, or "
                "use datafly, which works on disk."
            )

    def _fetch(self, frequency: Frequency) -> Source:
        """Read a frequency table, packed by the database."""
        engine = self.problem.engine
        self._require_room(frequency)
        carried, people = 0, None
        if frequency.carried is not None:
            inner = exp.select(named(col(frequency.carried), "value")).distinct().from_(table(frequency.table))
            people = engine.fresh("carried")
            if frequency.carried == "value":
                largest = exp.select(exp.func("COALESCE", exp.Max(this=col("value")), number(0)))
                (top,) = engine.row(largest.from_(table(frequency.table)))
                carried, people = int(top) + 1, None
            else:
                order = exp.Order(expressions=[exp.Ordered(this=col("value"), desc=False, nulls_first=False)])
                rank = exp.Sub(this=exp.Window(this=exp.RowNumber(), order=order), expression=number(1))
                query = exp.select(col("value"), named(cast(rank, "BIGINT"), "code"))
                engine.create(people, query.from_(inner.subquery("d")))
                (carried,) = engine.row(exp.select(exp.Count(this=exp.Star())).from_(table(people)))
        sizes = [max(c.dictionary.size, *c.sizes) for c in frequency.coded]
        packing = Packing.of(sizes, int(carried))
        bits = bits_for(int(carried)) if carried else 0
        query = exp.select().from_(table(frequency.table, "f"))
        for word in range(packing.width):
            parts: list[exp.Expr] = [
                moved_up(col(f"c_{j}", "f"), int(packing.shifts[j]))
                for j in range(len(sizes))
                if packing.words[j] == word
            ]
            if word == packing.width - 1 and carried:
                parts.append(cast(col("code", "p") if people is not None else col("value", "f"), "UBIGINT"))
            query = query.select(named(joined(parts), f"w_{word}"))
        if people is not None:
            on = exp.NullSafeEQ(this=col("value", "p"), expression=col("entity", "f"))
            query = query.join(table(people, "p"), on=on)
        fetched = engine.arrow(query.select(col("n", "f")))
        if people is not None:
            engine.drop(people)
        words = [np.asarray(fetched.column(f"w_{i}").to_numpy(), dtype=np.uint64) for i in range(packing.width)]
        # A copy: arrays that may not be written are of another type, for which the kernel would be compiled once more.
        counts = np.array(fetched.column("n").to_numpy(), dtype=np.int64)
        return Source(packing, bits, Packed(np.ascontiguousarray(np.stack(words, axis=1)), counts))


def _share(engine: Engine) -> int:
    limit = engine.memory_limit()
    return limit // 2 if limit is not None else 2**62


def _codes(problem: Problem, coded: Coded) -> list[Integers]:
    """Return, for every level, the code of each value of the dictionary."""
    columns = [col(f"c{level}") for level in range(coded.height + 1)]
    levels = problem.engine.arrow(exp.select(*columns).from_(table(coded.levels)).order_by(col("code")))
    return [np.asarray(c.to_numpy(), dtype=np.int64) for c in levels.columns]


def _counts(problem: Problem, coded: Coded) -> Integers:
    """Return the rows with each value of the dictionary."""
    query = exp.select(col("n")).from_(table(coded.dictionary.table)).order_by(col("code"))
    return np.asarray(problem.engine.arrow(query).column("n").to_numpy(), dtype=np.int64)


def _plain(packed: Packed, source: Source) -> tuple[Keys, Integers, Integers]:
    """Return the classes of a table with a carried code: keys without it, rows, and how many codes each has."""
    from duckanon.kernels.lattice import group

    none = np.zeros(0, dtype=np.int64)
    bits = np.zeros(0, dtype=np.uint64)
    keep = source.packing.keep(source.carried_bits)
    return group(packed.keys, packed.counts, none, bits, bits, none, np.zeros(1, dtype=np.int64), keep)


def _order(keys: Keys) -> Integers:
    if keys.shape[1] == 1:
        return np.argsort(keys[:, 0], kind="stable")
    return np.lexsort(keys.T[::-1])


def _positions(ours: Integers, theirs: Integers) -> Integers:
    """Return where each of their rows stands among ours, -1 where it does not."""
    places = {tuple(row): i for i, row in enumerate(ours.tolist())}
    return np.array([places.get(tuple(row), -1) for row in theirs.tolist()], dtype=np.int64)
