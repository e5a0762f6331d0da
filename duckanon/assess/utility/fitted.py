"""What an encoder has learnt of a release, without scikit-learn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from duckanon.assess.utility.cells import BATCH, Cells, Layout, Mixtures, Texts, batches, type_of
from duckanon.assess.utility.codebook import METHODS, Codebook, as_sets
from duckanon.assess.utility.learn_domain import Seen, learn
from duckanon.assess.utility.shares import ClassShares, owned_hierarchies
from duckanon.engine.open import workspace
from duckanon.errors import ParameterError, did_you_mean
from duckanon.hierarchy import Hierarchy, resolve
from duckanon.release.release import Release

if TYPE_CHECKING:
    import pyarrow as pa
    import scipy.sparse as sp

    from duckanon.engine.base import Engine


@dataclass(eq=False)
class Fitted:
    """The codebooks of the columns of a release; ``shares`` are those of its classes, where its owner encodes it."""

    layout: Layout
    books: dict[str, Codebook]
    shares: ClassShares | None = None

    @classmethod
    def of(
        cls,
        data: Any,
        method: str,
        hierarchies: Mapping[str, Hierarchy],
        columns: Sequence[str] | None,
        most: int,
        types: Mapping[str, str] | None = None,
    ) -> Fitted:
        """Read a release or table once, and learn what its cells stand for."""
        if columns is None and isinstance(data, Release):
            columns = list(data.recoding.columns)
        seen: dict[str, Seen] = {}
        layout = Layout({})
        for rows in batches(data):
            if not seen:
                layout = Layout.of(rows.column_names, columns)
                known = types or {}
                seen = {
                    name: Seen(name, known.get(name) or _type(data, rows, name, layout)) for name in layout.attributes
                }
            for name, own in seen.items():
                count(own, layout.cells(rows, name), method)
        mixed = _mixed(data, layout)
        owned = owned_hierarchies(data) if isinstance(data, Release) else None
        found = cls(layout, learnt(seen, method, hierarchies, most, owned, mixed))
        # Rows whose values were permuted have no classes that could be seen: their cells are plain values.
        classed = isinstance(data, Release) and bool(data.recoding.cells)
        if classed and method == "proportional" and not mixed:
            found.shares = ClassShares(data, found.books)
        return found

    @property
    def names(self) -> list[str]:
        """The names of all features."""
        return [name for book in self.books.values() for name in book.names]

    def encoded(self, data: Any, size: int = BATCH) -> Iterator[sp.csr_matrix]:
        """Yield the encoded rows in batches."""
        import scipy.sparse as sp

        for rows in batches(data, size):
            blocks = [book.encode(self.layout.cells(rows, name)) for name, book in self.books.items()]
            found = sp.hstack(blocks, format="csr") if blocks else sp.csr_matrix((rows.num_rows, 0))
            if self.shares is not None:
                found = _by_class(self.shares, rows, found)
            yield found


def learnt(
    seen: Mapping[str, Seen],
    method: str,
    hierarchies: Mapping[str, Hierarchy],
    most: int,
    owned: Mapping[str, Hierarchy] | None = None,
    mixed: set[str] | None = None,
) -> dict[str, Codebook]:
    """Return the codebooks of columns; ``owned`` are the hierarchies of their original values, where those are known.

    Hierarchies are often those of a whole table: one of a column that is not encoded is passed over.
    """
    lowered = {name.lower(): name for name in seen}
    given = {lowered[name.lower()]: own for name, own in hierarchies.items() if name.lower() in lowered}
    books = {}
    for name, cells in seen.items():
        own = given.get(name) or (owned or {}).get(name)
        domain = learn(cells, own, most, name not in given and owned is not None, name in (mixed or ()))
        books[name] = Codebook(domain, method, cells, most)
    return books


def require(method: str, most: int) -> None:
    """Raise where a parameter is not what it must be."""
    if method not in METHODS:
        hint = did_you_mean(str(method), METHODS)
        raise ParameterError(f"The 'method' parameter must be one of {', '.join(METHODS)}. Got {method!r}.{hint}")
    if isinstance(most, bool) or not isinstance(most, int | np.integer) or most < 2:
        raise ParameterError("The 'max_features' parameter must be an integer >= 2.")


def resolved(specs: Mapping[str, Any] | None, engine: Engine | None = None) -> dict[str, Hierarchy]:
    """Return the hierarchies that are meant, as ``anonymize`` does."""
    found = {name: spec for name, spec in (specs or {}).items() if isinstance(spec, Hierarchy)}
    rest = {name: spec for name, spec in (specs or {}).items() if name not in found}
    if rest:
        with workspace(engine) as own:
            found |= {name: resolve(spec, own, None) for name, spec in rest.items()}
    return found


def _type(data: Any, rows: pa.Table, name: str, layout: Layout) -> str | None:
    """Return the type of a column: the original one of a release, else its own where that is a number or date."""
    if isinstance(data, Release):
        known = {a.name: a.type for a in data.plan.roles.published}
        if name in known:
            return known[name]
    kind = rows.schema.field(layout.attributes[name][0]).type
    kind = kind.field(0).type if str(kind).startswith("struct<lo") else kind
    found = type_of(kind)
    return None if found == "VARCHAR" else found


def count(seen: Seen, cells: Cells, method: str, n: Any = None) -> None:
    """Count the cells of a batch, each of which stands for ``n`` rows, or one."""
    rows = np.ones(len(cells), dtype=np.int64) if n is None else np.asarray(n)
    if isinstance(cells, Texts):
        counts = np.bincount(cells.codes + 1, weights=rows, minlength=len(cells.labels) + 1).astype(np.int64)
        seen.missing += int(counts[0])
        seen.add_labels(cells.labels, counts[1:].tolist())
    elif isinstance(cells, Mixtures):
        if method in ("one_class", "fill_parent", "fill_child"):
            # A mixture is published as a whole: its labels are no cells of their own.
            seen.add_labels(cells.labels, [0] * len(cells.labels))
            count(seen, as_sets(cells), method, rows)
            return
        weights = cells.shares * np.repeat(rows, np.diff(cells.starts))
        shares = np.bincount(cells.codes, weights=weights, minlength=len(cells.labels))
        seen.add_labels(cells.labels, np.maximum(shares.round().astype(int), 1).tolist())
    else:
        blank = np.isnan(cells.numbers)
        seen.missing += int(rows[blank].sum())
        values, at = np.unique(cells.numbers[~blank], return_inverse=True)
        seen.add_values(values, np.bincount(at, weights=rows[~blank], minlength=len(values)).astype(np.int64))


def _mixed(data: Any, layout: Layout) -> set[str]:
    """Return the columns of a release whose cells are published as shares already."""
    types = {column.name: column.type for column in data.columns} if isinstance(data, Release) else {}
    return {name for name, parts in layout.attributes.items() if types.get(parts[0], "").startswith("MAP")}


def _by_class(shares: ClassShares, rows: pa.Table, found: sp.csr_matrix) -> sp.csr_matrix:
    """Put the shares of their classes in the place of rows that are rows of the release."""
    import scipy.sparse as sp

    at = shares.find(rows)
    if not (at >= 0).any():
        return found
    if (at >= 0).all():
        return shares.matrix[at]
    both = sp.vstack([shares.matrix, found], format="csr")
    return both[np.where(at >= 0, at, shares.size + np.arange(len(at)))]


__all__ = ["Fitted", "count", "learnt", "require", "resolved"]
