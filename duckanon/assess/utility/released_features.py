"""A released table as learners read it: generalized columns by an encoding, the others as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from duckanon.assess.utility.held_out import table_of
from duckanon.assess.utility.raw_features import PlainEncoder, is_number, texts_of
from duckanon.errors import DataError, ParameterError, did_you_mean
from duckanon.release.release import Release

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.hierarchy import Hierarchy

ENCODINGS = ("one_class", "fill_parent", "fill_child", "proportional", "value_set", "midpoint")


def released_table(release: object, connection: Any = None) -> pa.Table:
    """Return a release as a table with the names of the original: two bounds become one interval."""
    if not isinstance(release, Release):
        return table_of(release, connection)
    table = release.to_arrow()
    for name, columns in release.plan.published_as.items():
        if len(columns) == 2:
            table = _joined(table, name, [table.column(c) for c in columns], columns)
        elif columns[0] in table.column_names and _is_struct(table.column(columns[0]).type):
            parts = table.column(columns[0]).combine_chunks().flatten()
            table = _joined(table, name, parts, columns)
    return table


def _is_struct(kind: pa.DataType) -> bool:
    import pyarrow.types as pt

    return bool(pt.is_struct(kind) and kind.num_fields == 2)


def _joined(table: pa.Table, name: str, bounds: Sequence[Any], columns: Sequence[str]) -> pa.Table:
    """Put an interval in the place of its bounds; anything where one of them is open."""
    import pyarrow as pa
    import pyarrow.compute as pc

    low, high = (texts_of(pa.chunked_array([b]) if isinstance(b, pa.Array) else b) for b in bounds)
    written = pc.binary_join_element_wise(pc.binary_join_element_wise("[", low, ""), high, ", ")
    interval = pc.fill_null(pc.binary_join_element_wise(written, "]", ""), "*")
    place = table.column_names.index(columns[0])
    return table.drop_columns(list(columns)).add_column(place, name, interval)


def hierarchies_of(release: object) -> dict[str, Any]:
    """Return the hierarchies by which a release was made; none of a table that is no ``Release``."""
    if not isinstance(release, Release):
        return {}
    names = [a.name for a in release.plan.roles.quasi_identifiers]
    return dict(zip(names, release.used, strict=False))


def generalized(original: pa.Table, released: pa.Table, columns: Sequence[str]) -> list[str]:
    """Return the columns of a released table that are not what they were: of another type, or with other values."""
    import pyarrow.compute as pc

    names = []
    for name in columns:
        before, after = original.column(name), released.column(name)
        if is_number(before.type) and is_number(after.type):
            continue
        originals = pc.unique(texts_of(before))
        if is_number(before.type) or not pc.all(pc.is_in(pc.unique(texts_of(after)), value_set=originals)).as_py():
            names.append(name)
    return names


def encoder_of(
    encoding: Any, release: object, columns: Sequence[str], given: Mapping[str, Any], original: pa.Table
) -> Any:
    """Return a new encoder of generalized columns, by its name or as a copy of the one given.

    ``given`` are hierarchies that the caller named; those of a ``Release`` are its own. Rules are
    applied to the values of ``original``, the training rows, here, where their types are known.
    """
    if not isinstance(encoding, str):
        from sklearn.base import clone

        if not hasattr(encoding, "fit") or not hasattr(encoding, "transform"):
            raise ParameterError(f"encoding must be a name or a transformer. Got a {type(encoding).__name__}.")
        return clone(encoding)
    if encoding not in ENCODINGS:
        hint = did_you_mean(encoding, ENCODINGS)
        raise ParameterError(f"There is no encoding {encoding!r}.{hint} There are: {', '.join(ENCODINGS)}.")
    if not columns:
        return None
    from duckanon.assess.utility.batches import type_of
    from duckanon.assess.utility.encoder import AnonymousEncoder

    named = {name: _listed(h, original.column(name)) for name, h in given.items() if name in columns}
    types = {name: type_of(original.schema.field(name).type) for name in columns}
    made = AnonymousEncoder(encoding, named or None, list(columns), types=types)
    return _Owned(made, release) if isinstance(release, Release) else made


def _listed(given: Any, values: pa.ChunkedArray) -> Hierarchy:
    from duckanon.engine.base import open_engine
    from duckanon.hierarchy import Hierarchy, resolve

    engine = open_engine()
    try:
        hierarchy = given if isinstance(given, Hierarchy) else resolve(given, engine, None)
    finally:
        engine.close()
    return hierarchy.materialise(values.drop_null().unique())


@dataclass(frozen=True)
class _Owned:
    """An encoder that learns which values cells cover from a ``Release``, which has its hierarchies and types."""

    encoder: Any
    release: Release

    def fit(self, table: pa.Table) -> _Owned:
        self.encoder.fit(self.release)
        return self

    def transform(self, table: pa.Table) -> Any:
        return self.encoder.transform(table)


@dataclass
class ReleasedEncoder:
    """Columns of a release as a sparse matrix; what is learned in ``fit`` is learned from its rows alone.

    ``anonymous`` columns go through ``encoder``, whose numbers outside of 0 to 1 are then standardised; the others are
    as in ``PlainEncoder``.
    """

    anonymous: Sequence[str]
    plain: Sequence[str]
    encoder: Any
    _rest: PlainEncoder = field(init=False)
    _wide: Any = None

    def fit(self, table: pa.Table) -> ReleasedEncoder:
        """Learn what training rows have."""
        self._rest = PlainEncoder(list(self.plain)).fit(table)
        if self.anonymous:
            self.encoder.fit(table.select(list(self.anonymous)))
            self._wide = _spread(self._encoded(table))
        return self

    def transform(self, table: pa.Table) -> Any:
        """Return rows, released or original ones, as numbers."""
        from scipy import sparse

        rest = self._rest.transform(table)
        if not self.anonymous:
            return rest
        encoded = self._encoded(table)
        wide, mean, deviation = self._wide
        if len(wide):
            narrow = np.setdiff1d(np.arange(encoded.shape[1]), wide)
            moved = (encoded[:, wide].toarray() - mean) / deviation
            encoded = sparse.hstack([encoded[:, narrow], sparse.csr_matrix(moved)], format="csr")
        return sparse.hstack([encoded, rest], format="csr")

    def _encoded(self, table: pa.Table) -> Any:
        from scipy import sparse

        encoded = sparse.csr_matrix(self.encoder.transform(table.select(list(self.anonymous))))
        if encoded.shape[0] != table.num_rows:
            raise DataError(f"The encoding made {encoded.shape[0]} rows of {table.num_rows}.")
        return encoded


def _spread(encoded: Any) -> tuple[Any, Any, Any]:
    """Return the places of columns with numbers outside of 0 to 1, and their means and deviations."""
    rows, width = encoded.shape
    if not rows or not width:
        return np.zeros(0, dtype=np.int64), np.zeros(0), np.ones(0)
    low, high = (np.asarray(m.todense()).ravel() for m in (encoded.min(axis=0), encoded.max(axis=0)))
    wide = np.flatnonzero((low < 0) | (high > 1))
    # In order, so that sums are the same in whatever order the rows have.
    cells = np.sort(encoded[:, wide].toarray(), axis=0)
    deviation = cells.std(axis=0)
    return wide, cells.mean(axis=0), np.where(deviation > 0, deviation, 1.0)
