"""The columns that a learner sees of one attribute, and the row of numbers that encodes each cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from duckanon.assess.labels.text import WHOLE
from duckanon.assess.utility.batches import Mixtures, Texts, Values
from duckanon.assess.utility.domain import MISSING, Domain, Leaves

if TYPE_CHECKING:
    import scipy.sparse as sp
    from numpy.typing import NDArray

    from duckanon.assess.utility.batches import Cells
    from duckanon.assess.utility.domain import Indices, Numbers
    from duckanon.assess.utility.learn_domain import Seen

METHODS = ("one_class", "fill_parent", "fill_child", "proportional", "value_set", "midpoint")
_CHUNK = 2048
_MOST_ENTRIES = 2**21
"""Most numbers of encoded cells of the release that a column keeps, so that batches need not work them out again."""


class Codebook:
    """Encodes the cells of one attribute.

    Every cell and every feature is a set of atoms. ``one_class`` gives a cell the feature of its own label,
    ``fill_parent`` those of all sets that hold it and hold a published cell, ``fill_child`` those of all sets that it
    holds, ``value_set`` those of its atoms, and ``proportional`` the share of each node of the hierarchy. ``midpoint``
    gives numbers the mean of their bounds, and everything else what ``one_class`` gives it.

    Parameters
    ----------
    domain : Domain
    method : str
    seen : Seen
        The cells that were published, with their number of rows.
    most : int
        Most published labels that become features beside the nodes of the hierarchy; the others are encoded by the
        smallest feature that holds them.
    """

    def __init__(self, domain: Domain, method: str, seen: Seen, most: int) -> None:
        self.domain = domain
        self.single = method == "midpoint" and domain.numeric
        self.method = "one_class" if method == "midpoint" and not self.single else method
        self._rows: dict[str | None, tuple[Indices, Numbers]] = {}
        self._entries, self._published = 0, frozenset(seen.labels)
        self._atoms: Any = None
        if self.single:
            self.labels: list[str] = []
            self._outer = _outer(domain, seen)
            self._typical = 0.0
            self._typical = self._mean(seen)
            return
        self._features(seen, most)

    # What a learner sees

    @property
    def names(self) -> list[str]:
        """The names of the features: the column's, and the label's."""
        if self.single:
            blank = [f"{self.domain.name}_{MISSING}"] if self.domain.missing is not None else []
            return [self.domain.name, *blank]
        names: list[str] = []
        for label, level in zip(self.labels, self.levels, strict=True):
            name = f"{self.domain.name}_{label}"
            names.append(name if name not in names else f"{name} (level {level})")
        return names

    def _features(self, seen: Seen, most: int) -> None:
        domain, size, released = self.domain, len(self.domain.atoms), seen.labels
        sets = [np.array([at]) for at in range(size)]
        self.labels, self.levels = list(domain.atoms), [0] * size
        if self.method != "value_set":
            for node in domain.nodes:
                sets.append(node.atoms)
                self.labels.append(str(node.label))
                self.levels.append(node.level)
        by_label = {key: at for at, key in reversed(list(enumerate(self.labels)))}
        by_set = {_key(members): at for at, members in reversed(list(enumerate(sets)))}
        rows = np.zeros(len(sets), dtype=np.int64)
        np.add.at(rows, domain.at(seen.values), seen.counts)
        if domain.missing is not None:
            rows[domain.missing] += seen.missing
        self.own: dict[str, int] = {}
        rest = 0
        domain.learn(list(released))
        for label in sorted(released, key=lambda label: (-released[label], label)):
            members = domain.members(label)
            if not len(members):
                continue
            at = by_label.get(label) if _same(sets, by_label.get(label), members) else by_set.get(_key(members))
            if label == WHOLE and at is not None and at < size and self.labels[at] != WHOLE:
                # All that is known to be there is one value, but anything could be.
                at = None
            if at is None and self.method in ("one_class", "fill_parent", "fill_child") and rest < most:
                at, rest = len(sets), rest + 1
                sets.append(members)
                self.labels.append(label)
                self.levels.append(int(label == WHOLE))
                by_set.setdefault(_key(members), at)
                rows = np.append(rows, 0)
            if at is not None:
                self.own[label] = at
                rows[at] += released[label]
        for label, at in by_label.items():
            self.own.setdefault(label, at)
        if self.method == "one_class" and not domain.has_tree:
            sets, rows = self._only_released(sets, rows)
        self.held = np.zeros((len(sets), size), dtype=np.float32)
        for at, members in enumerate(sets):
            self.held[at, members] = 1
        self.sizes = self.held.sum(axis=1)
        self.released = rows > 0
        top = max(self.levels)
        self._open = [
            at
            for at, (label, level) in enumerate(zip(self.labels, self.levels, strict=True))
            if label == WHOLE or (0 < level == top and self.sizes[at] == size)
        ]
        # The smallest set first, of equal ones that with more rows.
        self._preference = np.lexsort((np.arange(len(sets)), -rows, self.sizes))
        self._shown = self._features_of(seen, rows[:size]) if self.method == "fill_parent" else None

    def _features_of(self, seen: Seen, rows: Indices) -> NDArray[np.bool_]:
        """Return which features the release has; ``rows`` are those with each atom as their value."""
        shown = np.zeros(len(self.labels), dtype=np.bool_)
        self._shown = None
        labels = list(seen.labels)
        for start in range(0, len(labels), _CHUNK):
            for indices, _ in self._vectors(labels[start : start + _CHUNK]):
                shown[indices] = True
        atoms = np.flatnonzero(rows)
        features = [self.own.get(self.domain.atoms[at]) for at in atoms]
        for indices, _ in self._of_sets([np.array([at]) for at in atoms], features):
            shown[indices] = True
        return shown

    def _only_released(self, sets: list[Indices], rows: Indices) -> tuple[list[Indices], Indices]:
        """Leave out atoms that were never published alone, where no hierarchy makes them categories."""
        published = [at for at in range(len(sets)) if rows[at] > 0 or at == self.domain.missing]
        if not published:
            return sets, rows
        position = {old: new for new, old in enumerate(published)}
        self.labels = [self.labels[at] for at in published]
        self.levels = [self.levels[at] for at in published]
        self.own = {label: position[at] for label, at in self.own.items() if at in position}
        return [sets[at] for at in published], rows[published]

    # How cells become rows

    def encode(self, cells: Cells) -> sp.csr_matrix:
        """Return the rows of cells as a sparse matrix."""
        if isinstance(cells, Values):
            return self._numbers(cells.numbers)
        if isinstance(cells, Texts):
            book = self._book([*cells.labels, None])
            # Position -1 is NULL, the last row.
            return book[cells.codes]
        return self._mixed(cells)

    def _book(self, labels: Sequence[str | None]) -> sp.csr_matrix:
        """Return the rows of labels; each is worked out once."""
        fresh = [label for label in labels if label not in self._rows]
        if fresh:
            self.domain.learn([label for label in fresh if label is not None])
            for start in range(0, len(fresh), _CHUNK):
                part = fresh[start : start + _CHUNK]
                self._rows.update(zip(part, self._vectors(part), strict=True))
        vectors = [self._rows[label] for label in labels]
        # Values that are not cells of the release may be as many as the rows: they are not cached.
        for label in fresh:
            size = len(self._rows[label][0])
            if label in self._published and self._entries + size <= _MOST_ENTRIES:
                self._entries += size
            elif len(self._rows) > _CHUNK and label not in getattr(self, "own", {}):
                del self._rows[label]
        return _matrix(vectors, len(self.names))

    def _vectors(self, labels: Sequence[str | None]) -> list[tuple[Indices, Numbers]]:
        if self.single:
            return [self._middle(label) for label in labels]
        members = [self.domain.members(label) for label in labels]
        features = [self.own.get(self.domain.alias(label)) if label is not None else None for label in labels]
        vectors = self._of_sets(members, features)
        return [row if len(cell) else self._unknown() for row, cell in zip(vectors, members, strict=True)]

    def _unknown(self) -> tuple[Indices, Numbers]:
        """Return the row of a value that is under no label but the top."""
        atoms = len(self.domain.atoms)
        features = [at for at in self._open if at < atoms] if self.method == "fill_child" else self._open
        if self.method == "one_class":
            features = [at for at in features if self.released[at]][:1]
        if self._shown is not None:
            features = [at for at in features if self._shown[at]]
        return np.array(features, dtype=np.int64), np.ones(len(features))

    def _of_sets(self, members: Sequence[Indices], features: Sequence[int | None]) -> list[tuple[Indices, Numbers]]:
        if self.method == "value_set":
            return [(atoms, np.ones(len(atoms))) for atoms in members]
        cells = np.zeros((len(members), self.held.shape[1]), dtype=np.float64)
        for at, atoms in enumerate(members):
            weights = self.domain.weights[atoms] if self.method == "proportional" else np.ones(len(atoms))
            if self.method == "proportional" and len(atoms):
                weights = weights / weights.sum() if weights.sum() > 0 else np.full(len(atoms), 1 / len(atoms))
            cells[at, atoms] = weights
        common = cells @ self.held.T
        if self.method == "proportional":
            return [_sparse(row) for row in common]
        sizes = np.array([len(atoms) for atoms in members], dtype=np.float32)[:, None]
        levels = np.array(self.levels)
        level = np.array([-1 if at is None else self.levels[at] for at in features])[:, None]
        same = (common == sizes) & (common == self.sizes)
        some = sizes > 0
        if self.method == "fill_child":
            below = (common == self.sizes) & some & ~(same & (level >= 0) & (levels > level))
            return [_sparse(row.astype(float)) for row in below]
        above = (common == sizes) & some
        if self.method == "fill_parent":
            above &= ~(same & (level >= 0) & (levels < level))
            if self._shown is not None:
                # Learners have only met features of rows of the release: a value gets those of the known nodes above
                # it.
                above &= self._shown
            return [_sparse(row.astype(float)) for row in above]
        return [self._one(row, at, same[i]) for i, (row, at) in enumerate(zip(above, features, strict=True))]

    def _one(self, above: Any, feature: int | None, same: Any) -> tuple[Indices, Numbers]:
        """Return the feature of a label: its own, or the smallest published one that holds it where it is not."""
        if feature is None:
            features = np.flatnonzero(same)
            feature = int(features[0]) if len(features) else None
        if feature is None or not self.released[feature]:
            wider = self._preference[(above & self.released)[self._preference]]
            feature = int(wider[0]) if len(wider) else feature
        if feature is None:
            return np.empty(0, dtype=np.int64), np.empty(0)
        return np.array([feature]), np.ones(1)

    def _numbers(self, numbers: Numbers) -> sp.csr_matrix:
        import scipy.sparse as sp

        if self.single:
            blank = np.isnan(numbers)
            columns = [np.where(blank, self._typical, numbers)]
            if self.domain.missing is not None:
                columns.append(blank.astype(float))
            return sp.csr_matrix(np.column_stack(columns))
        if self._atoms is None:
            every = [np.array([at]) for at in range(len(self.domain.atoms))]
            features = [self.own.get(label) for label in self.domain.atoms]
            self._atoms = _matrix([*self._of_sets(every, features), self._unknown()], len(self.names))
        return self._atoms[self.domain.at(numbers)]

    def _mixed(self, cells: Mixtures) -> sp.csr_matrix:
        import scipy.sparse as sp

        shape = (len(cells), len(cells.labels))
        shares = sp.csr_matrix((cells.shares, cells.codes, cells.starts), shape=shape)
        if self.single:
            middles = np.array([self._middle(label)[1][0] for label in cells.labels])
            means = shares @ middles
            width = len(self.names)
            return sp.csr_matrix(np.column_stack([means, *[np.zeros(len(means))] * (width - 1)]))
        if self.method == "proportional":
            return sp.csr_matrix(shares @ self._book(cells.labels))
        if self.method == "value_set":
            means = sp.csr_matrix(shares.sign() @ self._book(cells.labels))
            means.data[:] = 1.0
            return means
        texts = as_sets(cells)
        return self._book([*texts.labels, None])[texts.codes]

    # Numbers

    def _mean(self, seen: Seen) -> float:
        """Return the mean over the rows of the release, which replaces NULL."""
        middles = [float(self._middle(label)[1][0]) for label in seen.labels]
        total = float(np.dot(middles, list(seen.labels.values()))) + float(np.dot(seen.values, seen.counts))
        rows = sum(seen.labels.values()) + int(seen.counts.sum())
        return total / rows if rows else 0.0

    def _middle(self, label: str | None) -> tuple[Indices, Numbers]:
        if label is None:
            blank = self.domain.missing is not None
            values = [self._typical, 1.0] if blank else [self._typical]
            return np.arange(len(values)), np.array(values)
        low, high = (-np.inf, np.inf) if label == WHOLE else self.domain.ends(label) or (-np.inf, np.inf)
        low, high = (low if np.isfinite(low) else self._outer[0]), (high if np.isfinite(high) else self._outer[1])
        return np.array([0]), np.array([low / 2 + high / 2])


def _outer(domain: Domain, seen: Seen) -> tuple[float, float]:
    """Return the outermost known bounds, which replace open ones."""
    finite = [e for label in seen.labels if label != WHOLE for e in domain.ends(label) or () if np.isfinite(e)]
    if isinstance(domain, Leaves) and domain.sizes is not None:
        finite += [float(domain.sizes[0]), float(domain.sizes[-1])]
    if len(seen.values):
        finite += [float(seen.values[0]), float(seen.values[-1])]
    return (min(finite), max(finite)) if finite else (0.0, 0.0)


def _same(sets: Sequence[Indices], at: int | None, members: Indices) -> bool:
    return at is not None and np.array_equal(sets[at], members)


def _key(members: Indices) -> bytes:
    return members.astype(np.int64).tobytes()


def _sparse(row: Numbers) -> tuple[Indices, Numbers]:
    places = np.flatnonzero(row)
    return places, row[places]


def _matrix(rows: Sequence[tuple[Indices, Numbers]], width: int) -> sp.csr_matrix:
    import scipy.sparse as sp

    starts = np.concatenate([[0], np.cumsum([len(indices) for indices, _ in rows])])
    indices = np.concatenate([i for i, _ in rows]) if rows else np.empty(0, dtype=np.int64)
    values = np.concatenate([v for _, v in rows]) if rows else np.empty(0)
    return sp.csr_matrix((values.astype(np.float64), indices.astype(np.int64), starts), shape=(len(rows), width))


def as_sets(cells: Mixtures) -> Texts:
    """Return mixtures as the sets of their labels, in the form that duckanon writes sets."""

    def quoted(label: str) -> str:
        odd = not label or any(c in label for c in ',{}"') or label != label.strip(" ")
        return '"' + label.replace('"', '""') + '"' if odd else label

    labels: dict[str, int] = {}
    codes = np.empty(len(cells), dtype=np.int64)
    for at in range(len(cells)):
        entries = slice(cells.starts[at], cells.starts[at + 1])
        members = [
            cells.labels[c] for c, share in zip(cells.codes[entries], cells.shares[entries], strict=True) if share > 0
        ]
        text = members[0] if len(members) == 1 else "{" + ", ".join(quoted(m) for m in sorted(members)) + "}"
        codes[at] = labels.setdefault(text, len(labels)) if members else -1
    return Texts(codes, list(labels))


__all__ = ["METHODS", "Codebook", "as_sets"]
