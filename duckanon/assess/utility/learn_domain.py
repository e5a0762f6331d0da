"""From the cells of a release to the domain of each column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from sqlglot import exp

from duckanon.assess.labels.text import WHOLE, Span, half_open, parse, size_of, spans, text_range
from duckanon.assess.utility.domain import MISSING, Domain, Leaves, Line, Node
from duckanon.engine.base import workspace
from duckanon.engine.sql.relations import col, table
from duckanon.hierarchy.build import column
from duckanon.hierarchy.chain import chain as links_of
from duckanon.hierarchy.rules import ColumnType

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.assess.utility.domain import Indices, Numbers
    from duckanon.engine.base import Engine
    from duckanon.hierarchy import Hierarchy


NAMES = ("mask", "prefix")
"""Rules that label each value independently of other values, and label labels like values."""


@dataclass(eq=False)
class Ruled(Leaves):
    """Published codes; a code that was not published finds the lowest published label that the rule gives it."""

    rule: Hierarchy | None = None
    aliases: dict[str, str] = field(default_factory=dict)

    def alias(self, label: str) -> str:
        return self.aliases.get(label, label)

    def learn(self, labels: Sequence[str]) -> None:
        fresh = [x for x in labels if x != WHOLE and x not in self.place and x not in self.labels]
        for chain in _chains(self.rule, fresh):
            published = next((label for label in chain if label in self.place or label in self.labels), None)
            self.labels[chain[0]] = np.empty(0, dtype=np.int64) if published is None else self.members(published)
            if published is not None:
                self.aliases[chain[0]] = self.alias(published)


def ruled(seen: Seen, hierarchy: Hierarchy, most: int) -> Ruled:
    """Return the published labels as a tree: those without another one below them are its leaves."""
    import pyarrow as pa

    chains = _chains(hierarchy, [label for label in seen.labels if label != WHOLE])
    inner = {label for chain in chains for label in chain[1:] if label != chain[0]}
    leaves = [chain for chain in chains if chain[0] not in inner]
    columns = [pa.array(column, pa.string()) for column in zip(*leaves, strict=True)]
    from_levels = listed(seen, pa.table(columns, names=[f"l{i}" for i in range(len(columns))]), most, owned=True)
    fields_of_leaves = {f.name: getattr(from_levels, f.name) for f in fields(from_levels)}
    return Ruled(**fields_of_leaves, rule=hierarchy)


def _chains(hierarchy: Hierarchy | None, labels: Sequence[str]) -> list[tuple[str, ...]]:
    """Return each label with those that the rule puts above it."""
    if not labels or hierarchy is None:
        return []
    with workspace(None) as engine:
        above_them = _continued(hierarchy, engine)
        values, _ = column(engine, list(labels), "VARCHAR")
        bound = hierarchy.bind(engine, values.table, "labels", "VARCHAR", "top")
        on = exp.EQ(this=col("code", "t"), expression=col("code", "v"))
        above = [col(f"l{i}", "t") for i in range(1, bound.height + 1)]
        query = exp.select(col("known", "t"), col("text", "v"), *above).from_(table(values.table, "v"))
        rows = engine.arrow(query.join(table(bound.tree, "t"), on=on).order_by(col("code", "v")))
    chains = []
    for known, label, *up in zip(*(column_labels.to_pylist() for column_labels in rows.columns), strict=True):
        # Labels of a hierarchy that goes on from the shortest prefix are not codes, even if they begin like one.
        column_labels = above_them.get(label)
        if column_labels is None and not known:
            column_labels = (up[-1],)
        chains.append(
            (label, *up) if column_labels is None else (*[label] * (len(up) + 1 - len(column_labels)), *column_labels)
        )
    return chains


def _continued(hierarchy: Hierarchy, engine: Engine) -> dict[str, tuple[str, ...]]:
    """Return the labels of the hierarchy that goes on from the shortest prefix, each with those above it.

    Prefixes themselves are left out: the rule reads them as codes. A label with several parents has only the top.
    """
    *before, last = links_of(hierarchy, engine)
    if not before or last.levels is None:
        return {}
    columns = [column_labels.to_pylist() for column_labels in last.levels.columns]
    prefixes = set(columns[0])
    chains: dict[str, tuple[str, ...]] = {}
    for level in range(1, len(columns) - 1):
        for label, *up in zip(*columns[level:], strict=True):
            if label in prefixes:
                continue
            chain = chains.setdefault(label, tuple(up))
            if len(chain) == len(up) and chain != tuple(up):
                chains[label] = tuple(up[-1:])
    return chains


D = TypeVar("D", bound=Domain)
_TYPES = ("DOUBLE", "DATE", "TIMESTAMP")


@dataclass
class Seen:
    """The distinct cells of a column with their number of rows: texts, and numbers where the column has them.

    ``type`` is the database's name of the column's type where it is known, that of the original before that of the
    release.
    """

    name: str
    type: str | None = None
    labels: dict[str, int] = field(default_factory=dict)
    values: Numbers = field(default_factory=lambda: np.empty(0))
    counts: Indices = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    missing: int = 0

    def add_labels(self, labels: Sequence[str], counts: Sequence[int]) -> None:
        """Count texts."""
        for label, n in zip(labels, counts, strict=True):
            self.labels[label] = self.labels.get(label, 0) + n

    def add_values(self, values: Numbers, counts: Indices) -> None:
        """Count numbers."""
        self.values, at = np.unique(np.concatenate([self.values, values]), return_inverse=True)
        self.counts = np.bincount(at, weights=np.concatenate([self.counts, counts])).astype(np.int64)


def learn(seen: Seen, hierarchy: Hierarchy | None, most: int, owned: bool = False, mixed: bool = False) -> Domain:
    """Return the domain of a column, with at most ``most`` atoms.

    ``owned`` says that ``hierarchy`` lists the original values themselves, so that nothing else can be a leaf;
    ``mixed`` that cells are shares of labels, which are those of the first level where values have distances.
    """
    if hierarchy is not None and hierarchy.levels is not None:
        return listed(seen, hierarchy.levels, most, owned, mixed)
    type_name = _type(seen, hierarchy)
    if type_name is not None:
        return _line(seen, type_name, most)
    rule = None if hierarchy is None else hierarchy.rule
    if hierarchy is not None and rule is not None and rule.name in NAMES and set(seen.labels) - {WHOLE}:
        return ruled(seen, hierarchy, most)
    return _words(seen, most)


def _type(seen: Seen, hierarchy: Hierarchy | None) -> str | None:
    """Return the type of a column whose cells are numbers or dates, intervals or sets of them; None for words."""
    if seen.type is not None and ColumnType.parse(seen.type).kind != "category":
        return seen.type
    if len(seen.values):
        return seen.type or "DOUBLE"
    labels = [label for label in seen.labels if label != WHOLE]
    named = hierarchy.rule.name if hierarchy is not None and hierarchy.rule is not None else None
    tried = {"dates": _TYPES[1:], "age": _TYPES[:1], "intervals": _TYPES[:1], "quantiles": _TYPES[:1]}.get(
        named or "", _TYPES
    )
    for type_name in tried:
        if type_name == "DATE" and any(":" in label for label in labels):
            continue
        if labels and all(_plain(label) and spans(label, type_name) is not None for label in labels):
            return type_name
    return None


def _plain(label: str) -> bool:
    """Return whether a text may be a number: one that begins with a zero is a code."""
    return not (len(label) > 1 and label[0] == "0" and label[1].isdigit())


# Numbers and dates


def _line(seen: Seen, type_name: str, most: int) -> Line:
    cells = {
        label: label_spans
        for label in seen.labels
        if (label_spans := spans(label, type_name)) is not None and label != WHOLE
    }
    ends = np.array([e for label_spans in cells.values() for span in label_spans for e in span[:2]])
    finite = np.concatenate([ends[np.isfinite(ends)], seen.values])
    family = ColumnType.parse(type_name).family
    whole = family in ("integer", "date") or (family != "timestamp" and bool(np.all(finite == np.floor(finite))))
    if family == "integer" and not np.all(finite == np.floor(finite)):
        whole = False
    pieces = [
        (*half_open(span, whole), n)
        for label, label_spans in cells.items()
        for span in label_spans
        for n in [seen.labels[label]]
    ]
    above = seen.values + 1 if whole else np.nextafter(seen.values, np.inf)
    cuts = np.unique(np.concatenate([[p[0] for p in pieces], [p[1] for p in pieces], seen.values, above]))
    lows, highs = (cuts[:-1], cuts[1:]) if len(cuts) else (np.array([-np.inf]), np.array([np.inf]))
    rows = np.zeros(len(lows) + 1)
    for low, high, n in pieces:
        first, last = np.searchsorted(lows, [low, high])
        # Spread over what the cell covers, so that bins have about equally many rows.
        rows[first:last] += n / max(last - first, 1)
    rows[np.searchsorted(lows, seen.values)] += seen.counts
    if len(cuts):
        covered = rows[:-1] > 0
        lows, highs, rows = lows[covered], highs[covered], rows[:-1][covered]
    if len(lows) > most:
        lows, highs = _binned(lows, highs, rows, most)
    names = [_interval(low, high, whole, type_name) for low, high in zip(lows, highs, strict=True)]
    weights = _widths(lows, highs, whole)
    line = Line(seen.name, type_name, names, weights, numeric=True, lows=lows, highs=highs, whole=whole)
    _name_by_cells(line, cells, seen.labels)
    return _with_missing(line, seen)


def _binned(lows: Numbers, highs: Numbers, rows: Numbers, most: int) -> tuple[Numbers, Numbers]:
    """Join neighbours until at most ``most`` are left, with about equally many rows in each."""
    before = np.concatenate([[0.0], np.cumsum(rows)[:-1]])
    group = np.minimum((before * most / max(rows.sum(), 1)).astype(np.int64), most - 1)
    first = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
    return lows[first], highs[np.concatenate([first[1:] - 1, [len(lows) - 1]])]


def _widths(lows: Numbers, highs: Numbers, whole: bool) -> Numbers:
    """Return how wide intervals are; single values of a continuous column have no width unless all are such."""
    with np.errstate(invalid="ignore"):
        widths = highs - lows
    single = highs <= np.nextafter(lows, np.inf)
    if not whole:
        widths = np.where(single, 0.0, widths)
    finite = np.isfinite(widths)
    typical = float(np.mean(widths[finite])) if finite.any() else 1.0
    widths = np.where(finite, widths, typical or 1.0)
    return widths if widths.sum() > 0 else np.ones(len(widths))


def _interval(low: float, high: float, whole: bool, type_name: str) -> str:
    """Return what an atom is called."""
    if low == -np.inf and high == np.inf:
        return WHOLE
    if high == low + 1 if whole and np.isfinite(low) else high <= np.nextafter(low, np.inf):
        return _written(low, type_name)
    if low == -np.inf:
        return f"< {_written(high, type_name)}"
    if high == np.inf:
        return f">= {_written(low, type_name)}"
    if whole:
        return f"[{_written(low, type_name)}, {_written(high - 1, type_name)}]"
    return f"[{_written(low, type_name)}, {_written(high, type_name)})"


def _written(value: float, type_name: str) -> str:
    family = ColumnType.parse(type_name).family
    if family in ("date", "timestamp"):
        days = timedelta(days=value) if family == "date" else timedelta(seconds=value)
        moment = datetime(1970, 1, 1, tzinfo=UTC) + days
        return moment.date().isoformat() if family == "date" else moment.replace(tzinfo=None).isoformat(" ")
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(float(value))


def _name_by_cells(line: Line, cells: Mapping[str, list[Span]], rows: Mapping[str, int]) -> None:
    """Give atoms that are published as they are the texts under which they are, the most frequent first."""
    taken = set()
    for label in sorted(cells, key=lambda label: (-rows[label], label)):
        atoms = line.members(label)
        if len(atoms) == 1 and atoms[0] not in taken and not label.startswith("{"):
            low, high = half_open(cells[label][0], line.whole)
            if len(cells[label]) == 1 and low == line.lows[atoms[0]] and high == line.highs[atoms[0]]:
                line.atoms[atoms[0]] = label
                taken.add(atoms[0])


def _with_missing(domain: D, seen: Seen, listed: bool = False) -> D:
    """Add the atom of NULL where there are such cells, or the hierarchy lists it."""
    if (seen.missing or listed) and domain.missing is None:
        domain.missing = len(domain.atoms)
        domain.atoms.append(MISSING)
        domain.weights = np.append(domain.weights, float(np.mean(domain.weights)) if len(domain.weights) else 1.0)
    return domain


# Words


def _words(seen: Seen, most: int) -> Leaves:
    """Return the words that cells consist of, the most frequent ones and one for all others where they are many."""
    weight: dict[str, float] = {}
    for label, n in seen.labels.items():
        if label == WHOLE:
            continue
        ends = text_range(label)
        members = parse(label, "VARCHAR").members if label.startswith("{") else ()
        if ends is not None:
            members = tuple(end for end in ends if end is not None)
        for member in members or (label,):
            if member == WHOLE:
                continue
            weight[member] = weight.get(member, 0.0) + n / max(len(members), 1)
    words = sorted(weight)
    other = None
    if len(words) > most:
        words = sorted(sorted(weight, key=lambda w: (-weight[w], w))[: most - 1])
        other = len(words)
    atoms = [*words, *(["other"] if other is not None else [])] or [WHOLE]
    weights = np.ones(len(atoms))
    if other is not None:
        weights[other] = len(weight) - len(words)
    place = {word: at for at, word in enumerate(words)}
    return _with_missing(Leaves(seen.name, "VARCHAR", atoms, weights, place=place, other=other), seen)


# Hierarchies


def listed(seen: Seen, levels: pa.Table, most: int, owned: bool, mixed: bool = False) -> Domain:
    """Return the leaves of a hierarchy with all nodes above them.

    Where leaves are too many, the lowest level that is small enough takes their place.
    """
    columns = [column.to_pylist() for column in levels.columns]
    leaves, height = columns[0], len(columns) - 1
    null_at = next((i for i, leaf in enumerate(leaves) if leaf is None), None)
    if null_at is not None:
        columns = [[label for i, label in enumerate(column) if i != null_at] for column in columns]
        leaves = columns[0]
    type_name = seen.type if seen.type is not None and ColumnType.parse(seen.type).kind != "category" else None
    sizes = _sizes(leaves, type_name)
    if sizes is not None and type_name is None:
        type_name = "DOUBLE"
    first = 1 if mixed and type_name is not None and height > 1 else 0
    lowest = next((level for level in range(first, height + 1) if len(set(columns[level])) <= most), height)
    if lowest == height and len(set(columns[0])) > most:
        return _frequent(seen, columns, most) if type_name is None else _line(seen, type_name, most)
    leaf_labels = columns[lowest]
    atoms = list(dict.fromkeys(leaf_labels))
    position = {label: at for at, label in enumerate(atoms)}
    owner = np.array([position[label] for label in leaf_labels], dtype=np.int64)
    place = {leaf: int(at) for leaf, at in zip(leaves, owner, strict=True)}
    weights = np.bincount(owner, minlength=len(atoms)).astype(float)
    nodes, labels = nodes_over(columns[lowest:], owner)
    order = np.argsort(sizes, kind="stable") if sizes is not None else None
    domain = Leaves(
        seen.name,
        type_name or "VARCHAR",
        [str(atom) for atom in atoms],
        weights,
        nodes,
        numeric=sizes is not None,
        place={**({} if lowest == 0 else position), **place},
        labels=labels,
        sizes=None if sizes is None or order is None else sizes[order],
        owners=owner[order] if order is not None else np.empty(0, dtype=np.int64),
    )
    if not owned:
        _extend(domain, seen)
    return _with_missing(domain, seen, listed=null_at is not None)


def _extend(domain: Leaves, seen: Seen) -> None:
    """Refuse cells that are neither in the hierarchy nor an interval or set of its labels."""
    from duckanon.errors import HierarchyError

    lost = [n for label, n in seen.labels.items() if not len(domain.members(label))]
    if lost:
        raise HierarchyError(
            f"{len(lost)} of {len(seen.labels)} labels of {domain.name!r} ({sum(lost)} rows) are on no level of its "
            "hierarchy, and no interval or set of its values: give the hierarchy that made this table."
        )


def nodes_over(columns: Sequence[Sequence[str | None]], owner: Indices) -> tuple[list[Node], dict[str, Indices]]:
    """Return the nodes above the atoms, and the atoms of each label, the lowest level first.

    ``columns`` are the labels of every leaf, from the level of the atoms to the top; ``owner`` gives leaves their
    atoms. A label that is repeated on the next level over the same atoms is one node.
    """
    nodes: list[Node] = []
    labels: dict[str, Indices] = {}
    seen_nodes = {(label, np.array([at]).tobytes()) for label, at in zip(columns[0], owner.tolist(), strict=True)}
    for level, labels_of in enumerate(columns[1:], 1):
        under: dict[str | None, set[int]] = {}
        for label, at in zip(labels_of, owner.tolist(), strict=True):
            under.setdefault(label, set()).add(at)
        for label, atoms in under.items():
            members = np.array(sorted(atoms), dtype=np.int64)
            if label is None or (label, members.tobytes()) in seen_nodes:
                continue
            seen_nodes.add((label, members.tobytes()))
            nodes.append(Node(label, level, members))
            labels.setdefault(label, members)
    return nodes, labels


def _sizes(leaves: Sequence[str], type_name: str | None) -> Numbers | None:
    """Return leaves as numbers or days, or None where one of them is neither."""
    for kind in [type_name] if type_name is not None else ["DOUBLE"]:
        numbers = [size_of(leaf, kind) if _plain(leaf) else None for leaf in leaves]
        if numbers and None not in numbers:
            return np.array(numbers, dtype=float)
    return None


def _frequent(seen: Seen, columns: Sequence[Sequence[str]], most: int) -> Leaves:
    """Return the most frequent leaves with their nodes, and one atom for all other leaves."""
    rows = seen.labels
    wanted = sorted(columns[0], key=lambda leaf: (-rows.get(leaf, 0), leaf))[: most - 1]
    atoms = [*sorted(wanted), "other"]
    position = {label: at for at, label in enumerate(atoms[:-1])}
    owner = np.array([position.get(leaf, len(atoms) - 1) for leaf in columns[0]], dtype=np.int64)
    nodes, labels = nodes_over([columns[0], *columns[-1:]], owner)
    place = dict(zip(columns[0], owner.tolist(), strict=True))
    weights = np.bincount(owner, minlength=len(atoms)).astype(float)
    domain = Leaves(seen.name, "VARCHAR", atoms, weights, nodes, place=place, labels=labels, other=len(atoms) - 1)
    return _with_missing(domain, seen)


__all__ = ["NAMES", "Ruled", "Seen", "learn", "listed", "nodes_over", "ruled"]
