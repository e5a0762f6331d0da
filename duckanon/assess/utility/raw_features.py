"""Columns as learners read them where nothing was generalized: numbers standardised, categories one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from duckanon.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

MOST = 255
"""Categories of one column that get a place of their own, the most frequent ones; the others share none."""


def is_number(kind: pa.DataType) -> bool:
    """Return whether values of a type have distances: numbers, dates and times."""
    import pyarrow.types as pt

    numbers = pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind)
    return bool(numbers or pt.is_date(kind) or pt.is_timestamp(kind) or pt.is_time(kind))


def numbers_of(column: pa.ChunkedArray) -> Floats:
    """Return a column as numbers: dates in days, times in units of their own; NaN where it has no finite value."""
    import pyarrow as pa
    import pyarrow.types as pt

    kind = column.type
    if pt.is_date(kind):
        column = column.cast(pa.date32()).cast(pa.int32())
    elif pt.is_time32(kind):
        column = column.cast(pa.int32())
    elif pt.is_timestamp(kind) or pt.is_time64(kind):
        column = column.cast(pa.int64())
    numbers: Floats = column.cast(pa.float64()).to_numpy()
    return np.where(np.isfinite(numbers), numbers, np.nan)


def texts_of(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column as texts."""
    import pyarrow as pa
    import pyarrow.types as pt

    if pt.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column if pt.is_string(column.type) else column.cast(pa.string())


@dataclass
class _Number:
    mean: float
    deviation: float
    missing: bool

    @classmethod
    def fit(cls, column: pa.ChunkedArray) -> _Number:
        numbers = numbers_of(column)
        # In order, so that sums are the same in whatever order the rows have.
        present = np.sort(numbers[~np.isnan(numbers)])
        deviation = float(present.std()) if len(present) else 0.0
        return cls(float(present.mean()) if len(present) else 0.0, deviation or 1.0, len(present) < len(numbers))

    def transform(self, column: pa.ChunkedArray) -> Any:
        from scipy import sparse

        numbers = numbers_of(column)
        unknown = np.isnan(numbers)
        # A missing number becomes the mean, with an indicator column where training rows had missing numbers.
        parts = [np.where(unknown, 0.0, (numbers - self.mean) / self.deviation)]
        parts += [unknown.astype(np.float64)] if self.missing else []
        return sparse.csr_matrix(np.column_stack(parts))


@dataclass
class _Category:
    values: pa.Array

    @classmethod
    def fit(cls, column: pa.ChunkedArray) -> _Category:
        import pyarrow.compute as pc

        counted = pc.value_counts(texts_of(column).combine_chunks())
        counted = counted.take(pc.sort_indices(counted.field("values")))
        values, counts = counted.field("values"), counted.field("counts").to_numpy(zero_copy_only=False)
        # Most frequent first, and by their texts where they are equally frequent.
        return cls(values.take(np.argsort(-counts, kind="stable")[:MOST]))

    def transform(self, column: pa.ChunkedArray) -> Any:
        import pyarrow.compute as pc
        from scipy import sparse

        places = pc.fill_null(pc.index_in(texts_of(column), value_set=self.values), -1).to_numpy()
        rows = np.flatnonzero(places >= 0)
        ones = np.ones(len(rows))
        return sparse.csr_matrix((ones, (rows, places[rows])), shape=(len(places), len(self.values)))


@dataclass
class PlainEncoder:
    """Columns of an Arrow table as a sparse matrix: numbers, dates and times standardised, all else one-hot.

    What is learned in ``fit`` (means, deviations, categories) is learned from its rows alone; a category that they do
    not have is nothing in ``transform``.

    Examples
    --------
    >>> import pyarrow as pa
    >>> encoder = PlainEncoder(["age", "sex"]).fit(pa.table({"age": [20, 40], "sex": ["f", "m"]}))
    >>> encoder.transform(pa.table({"age": [30, 40], "sex": ["m", "x"]})).toarray().tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """

    columns: Sequence[str]
    fitted: dict[str, _Number | _Category] = field(default_factory=dict)

    def fit(self, table: pa.Table) -> PlainEncoder:
        """Learn what training rows have."""
        kinds = {name: _Number if is_number(table.schema.field(name).type) else _Category for name in self.columns}
        self.fitted = {name: kinds[name].fit(table.column(name)) for name in self.columns}
        return self

    def transform(self, table: pa.Table) -> Any:
        """Return rows as numbers."""
        from scipy import sparse

        parts = []
        for name, one in self.fitted.items():
            column = table.column(name)
            if isinstance(one, _Number) and not is_number(column.type):
                raise DataError(f"The column {name!r} has numbers in one table, and {column.type} in another.")
            parts.append(one.transform(column))
        return sparse.hstack(parts, format="csr") if parts else sparse.csr_matrix((table.num_rows, 0))
