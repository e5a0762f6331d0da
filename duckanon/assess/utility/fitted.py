"""What an encoder has learnt of a release, without scikit-learn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlglot import exp

from duckanon.assess.utility.batches import BATCH, Cells, Layout, Mixtures, Texts, Values, batches, cells_of, type_of
from duckanon.assess.utility.codebook import METHODS, Codebook, as_sets
from duckanon.assess.utility.learn_domain import Seen, learn
from duckanon.engine.base import workspace
from duckanon.engine.sql.relations import col, named, subquery, table
from duckanon.errors import ParameterError, UnsupportedError, did_you_mean
from duckanon.hierarchy import Hierarchy, resolve
from duckanon.recoding.coded_rows import CODE
from duckanon.release.release import Release

if TYPE_CHECKING:
    import pyarrow as pa
    import scipy.sparse as sp

    from duckanon.assess.utility.batches import Cells
    from duckanon.assess.utility.codebook import Codebook
    from duckanon.assess.utility.domain import Indices
    from duckanon.engine.base import Engine
    from duckanon.recoding.base import Recoder
    from duckanon.release.release import Release


def owned_hierarchies(release: Release) -> dict[str, Hierarchy]:
    """Return the hierarchies of a release as tables: the listed ones, else the labels of the values it was made of."""
    hierarchies = {}
    for hierarchy, levels, cell in zip(release.used, release.levels, release.recoding.cells, strict=True):
        if hierarchy.levels is not None:
            hierarchies[levels.attribute] = hierarchy
            continue
        on = exp.EQ(this=col("code", "t"), expression=col("code", "v"))
        query = exp.select(
            named(col("text", "v"), "l0"), *(col(f"l{i}", "t") for i in range(1, levels.height + 1))
        ).from_(table(cell.values, "v"))
        rows = release.engine.arrow(query.join(table(levels.tree, "t"), on=on).order_by(col("code", "v")))
        hierarchies[levels.attribute] = Hierarchy(rows, None, levels.origin, levels.top)
    return hierarchies


class ClassShares:
    """The proportional representation of every class, by the cells that are published of it.

    Parameters
    ----------
    release : Release
    books : mapping
        The codebooks of the attributes, method "proportional", in the order of their features.

    References
    ----------
    F. Viton, C. Mauger, G. Dequen, J.-L. Guérin and G. Le Mahec, Proportional representation to increase data utility
    in k-anonymous tables, ISCC 2021, section III-A.
    """

    def __init__(self, release: Release, books: Mapping[str, Codebook]) -> None:
        self._layout = Layout.of([name for name, _ in _recoder(release).shown])
        self._codes: list[dict[str | None, int]] = [{} for _ in self._layout.attributes]
        self._steps: list[Indices] = []
        query, originals, count = _beside(release, list(books))
        keys = exp.select(*(col(name) for name, _ in _recoder(release).shown)).distinct()
        self._index(release.engine.arrow(keys.from_(subquery(query.copy(), "r"))))
        counted = exp.select("*", named(exp.Count(this=exp.Star()), count)).from_(subquery(query, "r"))
        counted = counted.group_by(exp.var("ALL"))
        self._coded = _by_code(release, books) if _recoder(release).by_code else None
        rows = release.engine.reader(counted, private=True)
        self.matrix = self._counted(rows, books, originals, count)

    def _index(self, classes: pa.Table) -> None:
        """Give every combination of cells a number: step by step, each column with those before it."""
        at = np.zeros(classes.num_rows, dtype=np.int64)
        for j, name in enumerate(self._layout.attributes):
            cells = _as_texts(self._layout.cells(classes, name))
            positions = self._codes[j]
            for label in [None, *cells.labels]:
                positions.setdefault(label, len(positions))
            codes = np.array([positions[label] for label in [*cells.labels, None]])[cells.codes]
            pairs = at * len(positions) + codes
            distinct, at = np.unique(pairs, return_inverse=True)
            self._steps.append(distinct)
        self.size = len(self._steps[-1]) if self._steps else 0

    def find(self, rows: pa.Table) -> Indices:
        """Return the class of each row, -1 where its cells are those of no class."""
        if not all(part in rows.column_names for parts in self._layout.attributes.values() for part in parts):
            return np.full(rows.num_rows, -1)
        at = np.zeros(rows.num_rows, dtype=np.int64)
        for name, positions, step in zip(self._layout.attributes, self._codes, self._steps, strict=True):
            cells = _as_texts(self._layout.cells(rows, name))
            codes = np.array([positions.get(label, -1) for label in [*cells.labels, None]])[cells.codes]
            pairs = at * len(positions) + codes
            place = np.minimum(np.searchsorted(step, pairs), len(step) - 1)
            at = np.where((at >= 0) & (codes >= 0) & (step[place] == pairs), place, -1)
        return at

    def _counted(self, rows: Any, books: Mapping[str, Codebook], originals: Sequence[str], count: str) -> sp.csr_matrix:
        """Return the share of every node in every class, one row for each."""
        import pyarrow as pa
        import scipy.sparse as sp

        coded = self._coded
        tables = [sp.csr_matrix((self.size, len(book.domain.atoms))) for book in books.values()]
        for batch in rows:
            part = pa.Table.from_batches([batch])
            at, n = self.find(part), part.column(count).to_numpy()
            for j, (book, name) in enumerate(zip(books.values(), originals, strict=True)):
                column = part.column(name).combine_chunks()
                atoms = _atoms(book, cells_of(column)) if coded is None else coded[j][column.to_numpy()]
                valid = atoms >= 0
                shape = tables[j].shape
                tables[j] = tables[j] + sp.csr_matrix((n[valid], (at[valid], atoms[valid])), shape=shape)
        blocks = []
        for counts, book in zip(tables, books.values(), strict=True):
            total = np.asarray(counts.sum(axis=1)).ravel()
            scale = sp.diags(np.divide(1.0, total, out=np.zeros_like(total), where=total > 0))
            blocks.append(sp.csr_matrix(scale @ counts @ sp.csr_matrix(book.held.T.astype(float))))
        return sp.hstack(blocks, format="csr")


def _atoms(book: Codebook, cells: Cells) -> Indices:
    """Return the atom of original values, -1 where they have none."""
    if isinstance(cells, Values):
        return book.domain.at(cells.numbers)
    assert isinstance(cells, Texts)
    book.domain.learn(cells.labels)
    members = [book.domain.members(label) for label in [*cells.labels, None]]
    return np.array([atoms[0] if len(atoms) == 1 else -1 for atoms in members], dtype=np.int64)[cells.codes]


def _by_code(release: Release, books: Mapping[str, Codebook]) -> list[Indices]:
    """Return for each attribute the atoms of its original values, by their codes."""
    values = {cell.name: cell.values for cell in _recoder(release).cells}
    by_code = []
    for name, book in books.items():
        query = exp.select(col("value")).from_(table(values[name])).order_by(col("code"))
        by_code.append(_atoms(book, cells_of(release.engine.arrow(query).column(0).combine_chunks())))
    return by_code


def _recoder(release: Release) -> Recoder:
    if release.recoder is None:
        raise UnsupportedError("The classes of this release are no longer tied to its source.")
    return release.recoder


def _beside(release: Release, names: Sequence[str]) -> tuple[exp.Select, list[str], str]:
    """Return the published rows with their original values, the names of those columns, and one for a count."""
    recoder = _recoder(release)
    # The rows of regions are coded once, and have no other trace of the original values.
    coded = recoder.by_code
    columns_kept = [(c.name, col(f"{CODE}{j}") if coded else c.expression) for j, c in enumerate(recoder.cells)]
    rows = recoder.rows(columns_kept)
    taken = {name for name, _ in recoder.shown}
    free = [f"original {j}" for j in range(len(recoder.cells) + len(taken) + 1)]
    free = [name for name in free if name not in taken]
    place = {cell.name: j for j, cell in enumerate(recoder.cells)}
    chosen = [(free[j + 1], f"p_{place[name]}") for j, name in enumerate(names)]
    return recoder.released(rows, [*recoder.shown, *chosen]), [name for name, _ in chosen], free[0]


def _as_texts(cells: Cells) -> Texts:
    """Return numbers as texts, so that cells of any type can be compared."""
    if isinstance(cells, Texts):
        return cells
    assert isinstance(cells, Values)
    distinct, codes = np.unique(cells.numbers, return_inverse=True)
    labels = [repr(float(value)) for value in distinct]
    blank = np.isnan(cells.numbers)
    return Texts(np.where(blank, -1, codes), labels)


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
        """Read a release or table once, and learn which values its cells cover."""
        if columns is None and isinstance(data, Release):
            columns = list(data.recoding.columns)
        seen: dict[str, Seen] = {}
        layout = Layout({})
        for rows in batches(data):
            if not seen:
                layout = Layout.of(rows.column_names, columns)
                types_of = types or {}
                seen = {
                    name: Seen(name, types_of.get(name) or _type(data, rows, name, layout))
                    for name in layout.attributes
                }
            for name, cells_seen in seen.items():
                count(cells_seen, layout.cells(rows, name), method)
        mixed = _mixed(data, layout)
        owned = owned_hierarchies(data) if isinstance(data, Release) else None
        fitted = cls(layout, learnt(seen, method, hierarchies, most, owned, mixed))
        # Rows whose values were permuted have no classes that could be seen: their cells are plain values.
        classed = isinstance(data, Release) and bool(data.recoding.cells)
        if classed and method == "proportional" and not mixed:
            fitted.shares = ClassShares(data, fitted.books)
        return fitted

    @property
    def names(self) -> list[str]:
        """The names of all features."""
        return [name for book in self.books.values() for name in book.names]

    def encoded(self, data: Any, size: int = BATCH) -> Iterator[sp.csr_matrix]:
        """Yield the encoded rows in batches."""
        import scipy.sparse as sp

        for rows in batches(data, size):
            blocks = [book.encode(self.layout.cells(rows, name)) for name, book in self.books.items()]
            encoded = sp.hstack(blocks, format="csr") if blocks else sp.csr_matrix((rows.num_rows, 0))
            if self.shares is not None:
                encoded = _by_class(self.shares, rows, encoded)
            yield encoded


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
    given = {lowered[name.lower()]: hierarchy for name, hierarchy in hierarchies.items() if name.lower() in lowered}
    books = {}
    for name, cells in seen.items():
        hierarchy = given.get(name) or (owned or {}).get(name)
        domain = learn(cells, hierarchy, most, name not in given and owned is not None, name in (mixed or ()))
        books[name] = Codebook(domain, method, cells, most)
    return books


def require(method: str, most: int) -> None:
    """Raise where a parameter is invalid."""
    if method not in METHODS:
        hint = did_you_mean(str(method), METHODS)
        raise ParameterError(f"The 'method' parameter must be one of {', '.join(METHODS)}. Got {method!r}.{hint}")
    if isinstance(most, bool) or not isinstance(most, int | np.integer) or most < 2:
        raise ParameterError("The 'max_features' parameter must be an integer >= 2.")


def resolved(specs: Mapping[str, Any] | None, engine: Engine | None = None) -> dict[str, Hierarchy]:
    """Return the hierarchies that are meant, as ``anonymize`` does."""
    hierarchies = {name: spec for name, spec in (specs or {}).items() if isinstance(spec, Hierarchy)}
    rest = {name: spec for name, spec in (specs or {}).items() if name not in hierarchies}
    if rest:
        with workspace(engine) as workspace_engine:
            hierarchies |= {name: resolve(spec, workspace_engine, None) for name, spec in rest.items()}
    return hierarchies


def _type(data: Any, rows: pa.Table, name: str, layout: Layout) -> str | None:
    """Return the type of a column: the original one of a release, else its own where that is a number or date."""
    if isinstance(data, Release):
        types = {a.name: a.type for a in data.plan.roles.published}
        if name in types:
            return types[name]
    kind = rows.schema.field(layout.attributes[name][0]).type
    kind = kind.field(0).type if str(kind).startswith("struct<lo") else kind
    type_name = type_of(kind)
    return None if type_name == "VARCHAR" else type_name


def count(seen: Seen, cells: Cells, method: str, n: Any = None) -> None:
    """Count the cells of a batch, each of ``n`` rows, or one."""
    rows = np.ones(len(cells), dtype=np.int64) if n is None else np.asarray(n)
    if isinstance(cells, Texts):
        counts = np.bincount(cells.codes + 1, weights=rows, minlength=len(cells.labels) + 1).astype(np.int64)
        seen.missing += int(counts[0])
        seen.add_labels(cells.labels, counts[1:].tolist())
    elif isinstance(cells, Mixtures):
        if method in ("one_class", "fill_parent", "fill_child"):
            # A mixture is published as a whole: its labels are not cells.
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


def _by_class(shares: ClassShares, rows: pa.Table, encoded: sp.csr_matrix) -> sp.csr_matrix:
    """Put the shares of their classes in the place of rows that are rows of the release."""
    import scipy.sparse as sp

    at = shares.find(rows)
    if not (at >= 0).any():
        return encoded
    if (at >= 0).all():
        return shares.matrix[at]
    both = sp.vstack([shares.matrix, encoded], format="csr")
    return both[np.where(at >= 0, at, shares.size + np.arange(len(at)))]


__all__ = ["ClassShares", "Fitted", "count", "learnt", "owned_hierarchies", "require", "resolved"]
