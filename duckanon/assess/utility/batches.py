"""Rows from wherever they come, as batches in which every column is texts, numbers or mixtures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from duckanon.errors import DataError, did_you_mean
from duckanon.io.paths import is_file

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.assess.utility.domain import Indices, Numbers

BATCH = 100_000


@dataclass(frozen=True, eq=False)
class Texts:
    """Cells as positions in a list of distinct texts; -1 is NULL."""

    codes: Indices
    labels: list[str]

    def __len__(self) -> int:
        return len(self.codes)


@dataclass(frozen=True, eq=False)
class Values:
    """Cells that are numbers, days or seconds; NaN is NULL."""

    numbers: Numbers
    type: str

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(frozen=True, eq=False)
class Mixtures:
    """Cells that are shares of labels, as ``output="proportional"`` publishes them: one row of a sparse matrix each."""

    starts: Indices
    codes: Indices
    shares: Numbers
    labels: list[str]

    def __len__(self) -> int:
        return len(self.starts) - 1


Cells = Texts | Values | Mixtures


def batches(data: object, size: int = BATCH) -> Iterator[pa.Table]:
    """Yield the rows of a release, Parquet file, table, frame, array or stream as Arrow tables.

    They have at most ``size`` rows, but for a stream, which has batches of its own.
    """
    import pyarrow as pa

    source = _opened(data, size)
    if isinstance(source, pa.Table):
        for start in range(0, max(source.num_rows, 1), size):
            yield source.slice(start, size)
        return
    for batch in source:
        yield pa.Table.from_batches([batch])


def _opened(data: Any, size: int) -> Any:
    import pyarrow as pa

    if isinstance(data, pa.Table):
        return data
    if isinstance(data, str | Path):
        from pyarrow import parquet

        if Path(data).suffix.lower() not in (".parquet", ".pq") or not is_file(data):
            raise DataError(f"{Path(data).name!r} is not a Parquet file: give the path of one, or its rows.")
        return parquet.ParquetFile(data).iter_batches(size)
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if hasattr(data, "reader"):
        return data.reader(size)
    if isinstance(data, pa.RecordBatchReader):
        return data
    if hasattr(data, "iloc") and hasattr(data, "columns"):
        return _from_pandas(data)
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    if isinstance(data, Mapping):
        return pa.table({str(name): _column(values) for name, values in data.items()})
    array = np.asarray(data)
    if array.ndim != 2:
        raise DataError("Rows are given as a release, a table, a frame or an array of two dimensions.")
    return pa.table({f"x{i}": _column(array[:, i]) for i in range(array.shape[1])})


def _from_pandas(frame: Any) -> pa.Table:
    import pyarrow as pa

    names = [str(name) for name in frame.columns]
    return pa.table([_column(frame.iloc[:, i]) for i in range(len(names))], names=names)


def _column(values: Any) -> pa.Array:
    """Return a column as an Arrow array; one that mixes numbers and texts becomes text."""
    import pyarrow as pa

    mixed = getattr(getattr(values, "dtype", None), "kind", "O") == "O"
    first = next((v for v in values if v is not None), None) if mixed else None
    if isinstance(first, list | dict) and not (isinstance(first, dict) and set(first) == {"lo", "hi"}):
        pairs = [list(v.items()) if isinstance(v, dict) else v for v in values]
        return pa.array(pairs, pa.map_(pa.string(), pa.float64()))
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([_text(v) for v in values], pa.string())


def _text(value: Any) -> str | None:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


@dataclass(frozen=True)
class Layout:
    """Which columns of a table are which attributes: those that end in ``_lo`` and ``_hi`` are the bounds of one."""

    attributes: dict[str, tuple[str, ...]]

    @classmethod
    def of(cls, names: Sequence[str], columns: Sequence[str] | None = None) -> Layout:
        """Return the layout of a table, or of some of its columns.

        Examples
        --------
        >>> Layout.of(["age_lo", "age_hi", "sex"]).attributes
        {'age': ('age_lo', 'age_hi'), 'sex': ('sex',)}
        """
        present = list(names)
        attributes: dict[str, tuple[str, ...]] = {}
        for name in names:
            stem = name[:-3]
            if name.endswith(("_lo", "_hi")) and f"{stem}_lo" in present and f"{stem}_hi" in present:
                attributes[stem] = (f"{stem}_lo", f"{stem}_hi")
            else:
                attributes[name] = (name,)
        if columns is None:
            return cls(attributes)
        chosen: dict[str, tuple[str, ...]] = {}
        for name in columns:
            stem = name if name in attributes else name[:-3]
            if stem not in attributes:
                raise DataError(f"There is no column {name!r}.{did_you_mean(name, present)}")
            chosen[stem] = attributes[stem]
        return cls(chosen)

    def cells(self, rows: pa.Table, attribute: str) -> Cells:
        """Return the cells of one attribute; rows that have not been generalized may lack the bounds."""
        parts = self.attributes[attribute]
        present = rows.column_names
        if all(part in present for part in parts):
            columns = [_flat(rows.column(part)) for part in parts]
            return _of_bounds(*columns) if len(columns) == 2 else cells_of(columns[0])
        if attribute in present:
            return cells_of(_flat(rows.column(attribute)))
        if f"{attribute}_lo" in present and f"{attribute}_hi" in present:
            return _of_bounds(*(_flat(rows.column(f"{attribute}_{end}")) for end in ("lo", "hi")))
        raise DataError(f"There is no column {attribute!r}.{did_you_mean(attribute, present)}")


def _flat(column: Any) -> pa.Array:
    import pyarrow as pa

    flat = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(flat, pa.ChunkedArray):
        flat = flat.chunk(0) if flat.num_chunks else pa.array([], flat.type)
    return flat.dictionary_decode() if pa.types.is_dictionary(flat.type) else flat


def cells_of(column: pa.Array) -> Cells:
    """Return the cells of an Arrow array."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_struct(kind) and {f.name for f in kind} == {"lo", "hi"}:
        low, high = (_flat(pc.struct_field(column, end)) for end in ("lo", "hi"))
        return _of_bounds(low, high)
    if pa.types.is_map(kind):
        return _mixtures(column, _flat(column.keys), column.items)
    if pa.types.is_large_list(kind) or (pa.types.is_list(kind) and pa.types.is_struct(kind.value_type)):
        pairs = column.values
        return _mixtures(column, *(_flat(pc.struct_field(pairs, name)) for name in ("key", "value")))
    numbers = _numbers(column)
    if numbers is not None:
        return Values(numbers, type_of(kind))
    return _texts(column)


def type_of(kind: pa.DataType) -> str:
    """Return the database's name of an Arrow type, as far as learners need it."""
    import pyarrow as pa

    if pa.types.is_integer(kind):
        return "BIGINT"
    if pa.types.is_date(kind):
        return "DATE"
    if pa.types.is_timestamp(kind):
        return "TIMESTAMP"
    return "DOUBLE" if pa.types.is_floating(kind) or pa.types.is_decimal(kind) else "VARCHAR"


def _numbers(column: pa.Array) -> Numbers | None:
    """Return numbers as they are, dates as days and timestamps as seconds since 1970."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_date(kind):
        column = column.cast(pa.date32()).cast(pa.int32())
        scale = 1.0
    elif pa.types.is_timestamp(kind):
        column, scale = column.cast(pa.timestamp("us", tz=kind.tz)).cast(pa.int64()), 1e6
    elif type_of(kind) != "VARCHAR":
        scale = 1.0
    else:
        return None
    numbers = column.cast(pa.float64(), safe=False).fill_null(np.nan).to_numpy(zero_copy_only=False)
    return np.asarray(numbers / scale if scale != 1.0 else numbers, dtype=np.float64)


def _texts(column: pa.Array) -> Texts:
    import pyarrow as pa

    if pa.types.is_null(column.type):
        return Texts(np.full(len(column), -1), [])
    if pa.types.is_boolean(column.type) or not (
        pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    ):
        try:
            column = column.cast(pa.string())
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            column = pa.array([None if v is None else str(v) for v in column.to_pylist()], pa.string())
    coded = column.dictionary_encode()
    codes = coded.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    return Texts(codes, coded.dictionary.to_pylist())


def _of_bounds(low: pa.Array, high: pa.Array) -> Cells:
    """Return typed bounds as the texts of intervals; a bound that is NULL is open."""
    lo, hi = (_texts(_written(end)) for end in (low, high))
    pair = (lo.codes + 1) * (len(hi.labels) + 1) + hi.codes + 1
    distinct, codes = np.unique(pair, return_inverse=True)
    left, right = distinct // (len(hi.labels) + 1) - 1, distinct % (len(hi.labels) + 1) - 1
    labels = []
    for a, b in zip(left.tolist(), right.tolist(), strict=True):
        if a < 0 and b < 0:
            labels.append("*")
        elif a < 0:
            labels.append(f"<= {hi.labels[b]}")
        elif b < 0:
            labels.append(f">= {lo.labels[a]}")
        else:
            same = lo.labels[a] == hi.labels[b]
            labels.append(lo.labels[a] if same else f"[{lo.labels[a]}, {hi.labels[b]}]")
    return Texts(codes.astype(np.int64), labels)


def _written(column: pa.Array) -> pa.Array:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us"))
    return column.cast(pa.string())


def _mixtures(column: pa.Array, names: pa.Array, items: pa.Array) -> Mixtures:
    keys = _texts(names)
    shares = np.array(items.fill_null(0.0).to_numpy(zero_copy_only=False), dtype=np.float64)
    offsets = column.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    # A sliced array has keys and items of its own slice or of all rows, by version: positions count from the first.
    first = offsets[0] if len(keys.codes) == offsets[-1] - offsets[0] else 0
    return Mixtures(offsets - first, np.array(keys.codes), shares, keys.labels)


__all__ = ["BATCH", "Cells", "Layout", "Mixtures", "Texts", "Values", "batches", "cells_of", "type_of"]
