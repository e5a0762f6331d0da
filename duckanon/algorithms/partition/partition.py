"""Partitions of rows by Mondrian's cuts, on arrays: items, axes, rules and the classes that result.

Every algorithm that divides rows into classes is a ``Partitioner``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from duckanon.algorithms.base import Algorithm
from duckanon.encoding.words import WordLayout
from duckanon.engine.process import cores
from duckanon.errors import UnsupportedError
from duckanon.models.base import Groups, Histograms, Model

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from duckanon.algorithms.base import Problem
    from duckanon.algorithms.full_domain.nodes import Node
    from duckanon.algorithms.permutation.permuting import Permuted

    Integers = NDArray[np.int64]
    Words = NDArray[np.uint64]
    Floats = NDArray[np.float64]


_BLOCK = 32_768
"""Rows whose words stay in the cache until all axes are in them."""


@dataclass(frozen=True)
class CodedPlaces:
    """``codes[j]`` are the codes on axis j, in pieces that are as long on every axis; ``place[j]`` has their places.

    With ``bits`` they are words, of which so many bits from one on, the shift and the mask of each axis, are the codes.
    """

    codes: tuple[tuple[NDArray[Any], ...], ...]
    place: tuple[NDArray[np.uint32] | None, ...]
    bits: tuple[tuple[int, int], ...] | None = None

    def __len__(self) -> int:
        return sum(map(len, self.codes[0]))

    @cached_property
    def array(self) -> NDArray[Any]:
        """The places, of which most searches never need all at once."""
        largest = max(len(p) for p in self.place if p is not None)
        places = np.empty((len(self), len(self.codes)), np.uint16 if largest <= 2**16 else np.uint32, order="F")
        for j, (pieces, place) in enumerate(zip(self.codes, self.place, strict=True)):
            assert place is not None
            start = 0
            for piece in pieces:
                if self.bits is not None:
                    shift, mask = self.bits[j]
                    piece = (piece >> np.uint64(shift)) & np.uint64(mask)
                places[start : start + len(piece), j] = place[piece]
                start += len(piece)
        return places


@dataclass(frozen=True)
class Items:
    """The rows, or their distinct combinations with the number of rows of each.

    ``given`` are their places on the axes, as an array or as codes that become one when it is asked for. ``values`` has
    the codes of sensitive columns, ``entity`` the numbers of persons, ``targets`` what information gain and least
    squares look at. ``ties`` tells rows apart that are equal in everything else, for relaxed cuts.
    """

    given: NDArray[Any] | CodedPlaces
    counts: Integers | None = None
    entity: Integers | None = None
    values: dict[str, Integers] = field(default_factory=dict)
    ties: NDArray[np.uint64] | None = None
    targets: tuple[NDArray[Any], ...] = ()

    def __len__(self) -> int:
        return len(self.given)

    @property
    def places(self) -> NDArray[Any]:
        """The place of each item on each axis."""
        return self.given.array if isinstance(self.given, CodedPlaces) else self.given

    def taken(self, order: Integers) -> Items:
        """Return these items of them, in this order."""

        def some(array: Any) -> Any:
            return None if array is None else array[order]

        values = {name: codes[order] for name, codes in self.values.items()}
        targets = tuple(t[order] for t in self.targets)
        return Items(self.places[order], some(self.counts), some(self.entity), values, some(self.ties), targets)


def pack(
    places: NDArray[Any] | CodedPlaces, words: Words, spare: Words, at: Integers, order: int, threads: int
) -> None:
    """Fill the words of all rows with the places on every axis and the rows' own numbers.

    ``at`` has the word and the first bit of each axis, ``order`` says which half of a word has the number. ``spare`` is
    room that the first cut fills with one thread: to touch memory for the first time takes long on some machines.
    """
    if not isinstance(places, CodedPlaces):
        width = places.shape[1]
        places = CodedPlaces(tuple((places[:, j],) for j in range(width)), (None,) * width)
    blocks, start = [], 0
    for piece, own in enumerate(places.codes[0] if places.codes else [words]):
        blocks += [(start, piece, a, min(a + _BLOCK, len(own))) for a in range(0, len(own), _BLOCK)]
        start += len(own)
    if len(blocks) <= 1:
        _fill(places, words, spare, at, order, blocks)
        return
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(lambda t: _fill(places, words, spare, at, order, blocks[t::threads]), range(threads)):
            pass


def _fill(
    places: CodedPlaces,
    words: Words,
    spare: Words,
    at: Integers,
    order: int,
    blocks: Sequence[tuple[int, int, int, int]],
) -> None:
    from duckanon.kernels.packing import add_places, move_places, number_rows

    for start, piece, low, high in blocks:
        own = words[start + low : start + high]
        spare[start + low : start + high] = 0
        number_rows(own, order, start + low)
        for j, place in enumerate(places.place):
            codes = np.ascontiguousarray(places.codes[j][piece][low:high])
            # Arrays from the database are read-only, and kernels are compiled for read-only arrays.
            codes.flags.writeable = False
            if places.bits is None:
                add_places(codes, place, own, at[0, j], np.uint64(at[1, j]))
            else:
                down, mask = map(np.uint64, places.bits[j])
                move_places(codes, down, mask, place, own, at[0, j], np.uint64(at[1, j]))


_GRAIN = 20_000
"""Partitions with fewer rows than this are not divided in a task of their own."""
CHOICES = ("range", "distinct", "round_robin", "information_gain", "least_squares")
"""How the axis of the next cut is chosen."""


@dataclass(frozen=True)
class PartitionAxis:
    """A quasi-identifier as cuts see it: its distinct values have places 0, 1, ..., NULL the last one.

    A line has ``atoms`` (by place, ascending): cuts come only between two of them; with ``inner``, values of one atom
    can be told apart, each by itself. A tree has ``nodes[level]`` (by place; level 0 the places, the last level one
    node) and ``leaves[level]`` (by node); nodes are runs of places. ``numbers`` are the sizes of a line's values.
    """

    size: int
    null: bool
    numbers: Floats
    atoms: Integers | None = None
    inner: bool = False
    nodes: tuple[Integers, ...] = ()
    leaves: tuple[Integers, ...] = ()
    weight: float = 1.0
    top: int = 1
    """The level of the top label, which a class gets that has NULL and other values."""
    measured: bool = False
    """Whether the values of a tree have distances, of which its nodes are published."""


@dataclass(frozen=True)
class Rules:
    """What a class must satisfy, and how it is cut.

    ``totals`` counts, for each sensitive column, the rows of every code in the whole table, and has the node over each
    code on every level of the column's hierarchy.
    """

    models: tuple[Model, ...]
    totals: dict[str, tuple[Integers, tuple[Integers, ...]]] = field(default_factory=dict)
    relaxed: bool = False
    choose: str = "range"
    tight: bool = False
    remember: bool = False
    """Whether the cuts are returned besides the classes."""

    @property
    def least(self) -> int:
        """The least rows of a class."""
        return max(m.traits.min_class_size for m in self.models)


@dataclass(frozen=True)
class OrderedAxis:
    """An axis and its order: ``place[code]`` of each value, also as the table ``(code, place)``.

    ``grid`` is the table of ``grid_bounds`` where cuts come only between the groups of the first level.
    """

    axis: PartitionAxis
    place: Integers
    table: str
    grid: str | None = None

    @property
    def code(self) -> Integers:
        """The code at each place."""
        import numpy as np

        codes = np.empty_like(self.place)
        codes[self.place] = np.arange(len(self.place))
        return codes


@dataclass(frozen=True)
class Parts:
    """The classes: class i has the items ``order[starts[i]:starts[i + 1]]``.

    ``regions[i, j]`` are its first and last place on axis j, ``levels[i, j]`` is -1 for such a run, else the level of
    the node over the first place. ``search_stats`` are numbers for the report, which are added up over the parts of a
    table. ``judged`` is false for classes that nobody has asked about yet; ``refused`` are those that are not published
    whatever their size.
    """

    order: NDArray[np.int32]
    starts: Integers
    regions: NDArray[np.int32]
    levels: NDArray[np.int32]
    search_stats: dict[str, Any] = field(default_factory=dict)
    judged: bool = True
    refused: NDArray[np.bool_] | None = None
    cuts: NDArray[np.int32] | None = field(default=None, repr=False, compare=False)
    """The cuts, where they were to be remembered, see ``kernels.layout.WHOLE``: a line for each of their groups."""


def partition(
    axes: Sequence[PartitionAxis],
    items: Items,
    rules: Rules,
    starts: Integers | None = None,
    regions: NDArray[np.int32] | None = None,
    threads: int | None = None,
    advance: Callable[[int], None] | None = None,
) -> Parts:
    """Split the items, or each run of them between two ``starts``, until no cut is allowed.

    The caller sees to it that each run satisfies the rules as a whole. The result is the same for any number of
    threads. ``regions`` are the first and last place on each axis of what is divided, where that is not all of it;
    ``advance`` is called with the number of items in classes.
    """
    from duckanon.kernels import mondrian as kernels
    from duckanon.kernels.bundle import bundled
    from duckanon.kernels.layout import BOUNDS, Found

    workers = threads if threads is not None else min(8, cores())
    data, config, at = _data(axes, items, rules, workers)
    callback = _callback(rules)
    kernel_data = _with_hooks(data, _axes(axes, at), _asked(rules, callback), config, axes, items, rules)
    count = len(items)
    bounds = np.array([0, count], dtype=np.int64) if starts is None else np.asarray(starts, dtype=np.int64)
    if regions is None:
        regions = np.array([[0, a.size - 1 - a.null] for a in axes], dtype=np.int32)
    grain = max(_GRAIN, count // (8 * workers))
    width = len(axes)
    scratches: list[Any] = []
    logs = [np.empty((0, 7), dtype=np.int32)]

    def work(node: tuple[int, int, int, NDArray[np.int32]]) -> tuple[list[Any], Any]:
        """Split a large node once, a small one to the end; return the open nodes and the classes."""
        start, end, parent, own = node
        scratch = scratches.pop() if scratches else bundled(_scratch(axes, items, rules, config))
        try:
            once = end - start > grain
            most = end - start if items.counts is not None else (end - start) // rules.least + 1
            ends = np.empty(1 if once else most, dtype=np.int64)
            out = np.empty((len(ends), width, 2), dtype=np.int32)
            levels = np.empty((len(ends), width), dtype=np.int32)
            scratch.own[:] = own
            # A group of the only cut has a key of its own; else there are fewer groups than twice the classes.
            lines = 0 if not rules.remember else scratch.buffer.shape[1] if once else 2 * most
            log = np.empty((lines, 7), dtype=np.int32)
            classes = bundled(Found(ends, out, levels, log))
            first, groups, noted = kernels.grow(*kernel_data, scratch, classes, start, end, parent, once)
            if callback.error is not None:
                raise callback.error
            if noted:
                logs.append(log[:noted].copy())
            if groups:
                cuts = scratch.buffer[BOUNDS, : groups + 1].tolist()
                return [(cuts[g], cuts[g + 1], first, scratch.regions[g].copy()) for g in range(groups)], None
            return [], (start, end, ends[:first].copy(), out[:first].copy(), levels[:first].copy())
        finally:
            scratches.append(scratch)

    waiting: list[Any] = [(int(a), int(b), -1, regions) for a, b in pairwise(bounds) if b > a]
    done: list[Any] = []
    placed = 0
    with ThreadPoolExecutor(workers) as pool:
        running: set[Future[Any]] = set()
        try:
            while running or waiting:
                while waiting and len(running) < 4 * workers:
                    running.add(pool.submit(work, waiting.pop()))
                finished, running = wait(running, return_when=FIRST_COMPLETED)
                for one in finished:
                    open_nodes, classes = one.result()
                    waiting += open_nodes
                    if classes is not None:
                        done.append(classes)
                        placed += classes[1] - classes[0]
                        if advance is not None:
                            advance(placed)
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    done.sort(key=lambda classes: classes[0])
    firsts = np.zeros(1, dtype=np.int64)
    return Parts(
        data.numbers[:, config.order],
        np.concatenate([firsts, *(classes[2] for classes in done)]),
        np.concatenate([classes[3] for classes in done]) if done else np.empty((0, width, 2), dtype=np.int32),
        np.concatenate([classes[4] for classes in done]) if done else np.empty((0, width), dtype=np.int32),
        cuts=np.concatenate(logs) if rules.remember else None,
    )


def classes_of_items(parts: Parts, first: int, threads: int) -> NDArray[np.int32]:
    """Return the number of every item's class, counted from ``first`` on."""
    from duckanon.kernels.packing import put_classes

    found = np.empty(int(parts.starts[-1]), dtype=np.int32)
    classes = len(parts.starts) - 1
    edges = [classes * t // threads for t in range(threads + 1)]
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(lambda a, b: put_classes(parts.order, parts.starts, first, a, b, found), edges, edges[1:]):
            pass
    return found


def _data(axes: Sequence[PartitionAxis], items: Items, rules: Rules, threads: int) -> tuple[Any, Any, Any]:
    """Return the items in one buffer, and where their places and the rest stand in it."""
    from duckanon.kernels.layout import Data, SplitConfig

    count = len(items)
    codes = [items.values[name] for name in rules.totals]
    codes += [items.entity] if items.entity is not None else []
    row = WordLayout()
    at = np.array(list(zip(*(row.bits(a.size) for a in axes), strict=True)), dtype=np.int64)
    order = row.number()
    many = row.number() if items.counts is not None else -1
    extra = row.numbers(len(codes))
    tie = row.words() if items.ties is not None else -1
    target = row.words(len(items.targets))
    buffer = np.empty((count, len(row.used)), dtype=np.uint64)
    spare = np.empty_like(buffer)
    pack(items.given, buffer, spare, at, order, threads)
    data = Data(buffer.ravel(), spare.ravel(), buffer.view(np.int32), buffer.view(np.float64))
    if items.counts is not None:
        data.numbers[:, many] = items.counts
    for i, code in enumerate(codes):
        data.numbers[:, extra + i] = code
    if items.ties is not None:
        buffer[:, tie] = items.ties
    for i, values in enumerate(items.targets):
        data.floats[:, target + i] = values - values.min() if rules.choose == "least_squares" and count else values
    widths = [3 if rules.choose == "least_squares" else int(t.max(initial=0)) + 1 for t in items.targets]
    config = SplitConfig(
        least=rules.least,
        persons=items.entity is not None,
        choose=CHOICES.index(rules.choose),
        tight=rules.tight,
        order=order,
        many=many,
        extra=extra,
        extras=len(rules.totals),
        tie=tie,
        target=target,
        slots=np.concatenate([[0], np.cumsum(widths)]).astype(np.int64),
        deal=0,
        gain=0,
    )
    return data, config, at


def _axes(axes: Sequence[PartitionAxis], at: Integers) -> Any:
    from duckanon.kernels.layout import Axes

    keys: list[NDArray[Any]] = []
    widths: list[NDArray[Any]] = []
    firsts: list[NDArray[Any]] = []
    starts, first_starts, depths = [0], [0], []
    for axis in axes:
        places = np.arange(axis.size)
        if axis.atoms is None:
            levels = [np.asarray(level) for level in axis.nodes]
            most = max(int(axis.leaves[-1].max(initial=1)) - 1, 1)
            shares = [(np.asarray(n)[level] - 1) / most for level, n in zip(levels, axis.leaves, strict=True)]
            firsts.append(np.zeros(1))
        else:
            count = axis.size - axis.null
            dense = np.zeros(axis.size, dtype=np.int64)
            dense[1:count] = np.cumsum(np.diff(axis.atoms[:count]) != 0)
            if axis.null:
                dense[count:] = (dense[count - 1] if count else -1) + 1
            levels = [places, dense]
            numbers, whole = np.zeros(axis.size), np.ones(axis.size)
            if count:
                known = np.asarray(axis.numbers[:count], dtype=np.float64)
                with np.errstate(over="ignore"):
                    spread = known[-1] - known[0]
                if np.isfinite(spread) and spread > 0:
                    numbers[:count] = known
                    whole[:] = spread
            shares = [numbers, whole]
            firsts.append(np.append(np.flatnonzero(np.diff(dense[:count], prepend=-1)), count))
        keys += [*levels, (places == axis.size - 1) & axis.null]
        widths += [*shares, np.zeros(axis.size)]
        depths.append(len(levels))
        starts.append(starts[-1] + axis.size * (len(levels) + 1))
        first_starts.append(first_starts[-1] + len(firsts[-1]))
    table = [
        [a.atoms is None for a in axes],
        [a.inner for a in axes],
        [a.size - 1 if a.null else -1 for a in axes],
        [len(a.nodes) - 1 if a.atoms is None else a.top for a in axes],
        [a.size for a in axes],
        starts[:-1],
        first_starts[:-1],
        depths,
        *at,
    ]
    return Axes(
        np.array(table, dtype=np.int64),
        np.concatenate(keys).astype(np.int32),
        np.concatenate(widths).astype(np.float64),
        np.concatenate(firsts).astype(np.int32),
        np.array([a.weight for a in axes], dtype=np.float64),
    )


def _asked(rules: Rules, callback: Any) -> Any:
    """Return the models as rules that the kernel can ask."""
    from duckanon.kernels.layout import Rules as Asked

    names = list(rules.totals)
    rules_of_models = [model.rule() for model in rules.models]
    sensitive = [getattr(model, "sensitive", None) for model in rules.models]
    columns = [names.index(name) if name is not None else -1 for name in sensitive]
    sizes = [len(totals) for totals, _ in rules.totals.values()]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    depths = [max(len(ancestors) - 1, 1) for _, ancestors in rules.totals.values()]
    stride, deepest = int(offsets[-1]), max(depths, default=0)
    shares = np.zeros((3, stride + len(sizes)))
    over = np.zeros((deepest, stride), dtype=np.int64)
    masses = np.zeros((deepest, stride))
    for c, (totals, ancestors) in enumerate(rules.totals.values()):
        own, p = slice(offsets[c], offsets[c + 1]), totals / max(int(totals.sum()), 1)
        shares[0, own], shares[1, own] = p, np.cumsum(p)
        shares[2, offsets[c] + c + 1 : offsets[c + 1] + c + 1] = np.cumsum(np.cumsum(p))
        for level in range(depths[c] if ancestors else 0):
            nodes = np.asarray(ancestors[level])
            over[level, own], masses[level, own] = nodes, np.bincount(nodes, weights=p)[nodes]
    return Asked(
        np.array([[kind for kind, *_ in rules_of_models], columns], dtype=np.int64),
        np.array([[a for _, a, _ in rules_of_models], [b for *_, b in rules_of_models]], dtype=np.float64),
        np.array([offsets, [*depths, 0]], dtype=np.int64),
        shares,
        over.ravel(),
        masses.ravel(),
        callback.address,
        0,
    )


def _with_hooks(
    data: Any, axes: Any, asked: Any, config: Any, given: Sequence[PartitionAxis], items: Items, rules: Rules
) -> tuple[Any, Any, Any, Any]:
    """Return what kernels are given, with the addresses of hooks: only those that are needed are compiled."""
    from duckanon.kernels import cuts, mondrian
    from duckanon.kernels.bundle import bundled
    from duckanon.kernels.jit import address_of

    judged = items.entity is not None or not all(m.traits.size_only for m in rules.models)
    if not (judged or rules.relaxed or items.targets):
        return bundled(data), bundled(axes), bundled(asked), bundled(config)
    # What they are compiled for are types, which are the same with and without addresses.
    types = [bundled(part) for part in (data, axes, asked, config, _scratch(given, items, rules, config))]
    if judged:
        asked = asked._replace(judge=address_of(cuts.judge, *types))
    if rules.relaxed:
        config = config._replace(deal=address_of(cuts.deal, *types))
    if items.targets:
        config = config._replace(gain=address_of(mondrian.gain, *types))
    return types[0], types[1], bundled(asked), bundled(config)


def _callback(rules: Rules) -> Any:
    """Return what asks a model without a rule about one class."""
    from duckanon.kernels.callback import ClassCallback

    def ask(rule: int, size: int, rows: int, codes: Integers, counts: Integers) -> bool:
        model = rules.models[rule]
        histograms = None
        if (name := getattr(model, "sensitive", None)) is not None:
            histograms = Histograms(np.array([0, len(codes)]), codes, counts, *rules.totals[name])
        return bool(model.satisfied(Groups(np.array([size]), np.array([rows]), histograms))[0])

    return ClassCallback(ask)


def _scratch(axes: Sequence[PartitionAxis], items: Items, rules: Rules, config: Any) -> Any:
    """Return the scratch buffers of one thread."""
    from duckanon.kernels.layout import Scratch

    width = len(axes)
    values = sum(len(totals) for totals, _ in rules.totals.values())
    people = 0 if items.entity is None else int(items.entity.max(initial=0)) + 1
    # Some of it holds what is compared of a row: its places and codes, and what tells it apart.
    keys = max(2, *(a.size for a in axes), width + len(rules.totals)) + 2
    return Scratch(
        np.zeros((5, width), dtype=np.int64),
        np.zeros(width),
        np.zeros(width),
        np.zeros((6, keys), dtype=np.int64),
        np.zeros((keys, width, 2), dtype=np.int32),
        np.zeros((4, values), dtype=np.int64),
        np.zeros(values),
        np.zeros((2, people), dtype=np.int32),
        np.zeros(int(config.slots[-1]) * (keys + 2)),
        np.zeros((keys, 2), dtype=np.int64),
        np.zeros(keys // 64 + 1, dtype=np.uint64),
        np.zeros((width, 2), dtype=np.int32),
    )


def undivided(items: Items, starts: NDArray[np.int64], rules: Rules) -> Parts:
    """Return runs of items as classes without regions; who is in them only where more than rows is counted."""
    counted = items.counts is not None or items.entity is not None or rules.totals
    none = np.empty((len(starts) - 1, 0), dtype=np.int32)
    return Parts(np.arange(len(items) if counted else 0, dtype=np.int32), starts, none, none)


def rows_of(parts: Parts, counts: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """Return the rows of each class."""
    if counts is None:
        return np.diff(parts.starts)
    running = np.concatenate([[0], np.cumsum(counts[parts.order])])
    return np.asarray(running[parts.starts[1:]] - running[parts.starts[:-1]], dtype=np.int64)


def judge(parts: Parts, items: Items, rules: Rules) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return for each class whether every model is satisfied, and its number of members."""
    rows = rows_of(parts, items.counts)
    classes = len(rows)
    sizes = rows
    owner = np.empty(0, dtype=np.int64)
    if items.entity is not None or rules.totals:
        owner = np.repeat(np.arange(classes), np.diff(parts.starts))
    if items.entity is not None:
        people = items.entity[parts.order].astype(np.int64)
        most = int(people.max(initial=0)) + 1
        sizes = np.bincount(np.unique(owner * most + people) // most, minlength=classes)
    fine = rows >= rules.least
    counted: dict[str, Groups] = {}
    for model in rules.models:
        name = getattr(model, "sensitive", None)
        if name is not None and name not in counted:
            totals, ancestors = rules.totals[name]
            key, inverse = np.unique(
                owner * len(totals) + items.values[name][parts.order].astype(np.int64), return_inverse=True
            )
            weights = None if items.counts is None else items.counts[parts.order]
            counts = np.bincount(inverse, weights=weights, minlength=len(key)).astype(np.int64)
            starts = np.searchsorted(key, np.arange(classes + 1) * len(totals))
            histograms = Histograms(starts, key % len(totals), counts, totals, ancestors)
            counted[name] = Groups(sizes, rows, histograms=histograms)
        fine &= model.satisfied(counted[name] if name is not None else Groups(sizes, rows))
    return fine, sizes


class Partitioner(Algorithm):
    """An algorithm that divides rows into classes.

    It gets rows, or combinations of values with the number of rows of each, as places on axes, and says which are in
    one class. Privacy does not depend on it: the gate checks what was written.
    """

    ordered: tuple[str, ...] = ()
    """Columns of categories that have an order."""
    target: Any = ()
    """Columns beside the quasi-identifiers that the division looks at."""
    budget: int | None = None
    """The most rows that are divided at once; None for as many as fit into memory."""

    @property
    def partitions(self) -> bool:
        return True

    @property
    def reported(self) -> tuple[str, ...]:
        """The metrics that a report has besides the usual ones."""
        return ()

    @property
    def by_rows(self) -> bool:
        """Whether rows with equal values may come into different classes."""
        return False

    @property
    def choice(self) -> str:
        """What the division does with the target, see ``mondrian``."""
        return "range"

    @property
    def cuts(self) -> bool:
        """Whether classes are what cuts leave of the table, so that there are bounds between them."""
        return True

    def divides_as(self, attribute: str) -> str | None:
        """Return what a column's axis must be, a "grid", a "line" or a "tree"; None where the plan decides."""
        return None

    def bytes_of_item(self, width: int, size: int) -> int:
        """Return the memory that an item of so many columns takes, a place being of so many bytes."""
        # Fetched codes, places, the two buffers between which rows are moved, and the classes.
        return width * size * 4 + 56

    @staticmethod
    def load() -> None:
        """Load what all kernels need before they are called."""
        from duckanon.kernels.packing import warm

        warm()

    @abstractmethod
    def divide(
        self,
        axes: Sequence[PartitionAxis],
        items: Items,
        rules: Rules,
        *,
        starts: NDArray[np.int64],
        regions: NDArray[np.int32] | None = None,
        threads: int | None = None,
        advance: Callable[[int], None] | None = None,
    ) -> Parts:
        """Divide the items between each two of ``starts``, see ``algorithms.partition.partition``."""

    def permuted(self, items: Items, parts: Parts, units: NDArray[np.int64], label: int) -> Permuted | None:
        """Return the rows with values permuted within their classes; None where values are recoded instead."""
        return None

    def supports(self, model: Model) -> bool:
        """Return whether the model can be checked on single classes: not those of a population or the whole table."""
        return not (model.needs_population or model.traits.whole_table)

    def search(self, problem: Problem) -> Node:
        """Refuse: regions are no node of the lattice."""
        raise UnsupportedError(f"{self.name} divides rows into classes, which are no node of the lattice.")
