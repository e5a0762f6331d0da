"""Data frames and Arrow tables as the database can read them. If a value would change, an error names the column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.engine.sql.relations import table
from duckanon.errors import DataError, DuckanonError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from duckanon.engine.base import Engine


_EXACT = 2**53
"""Whole numbers below this are all different floats."""


def arrow_of_pandas(frame: Any) -> pa.Table:
    """Return a pandas frame as an Arrow table; periods become texts.

    pandas has no missing integers by default: a column of them with a missing value is one of floats. Such a column
    becomes one of integers again.
    """
    import pandas as pd
    import pyarrow as pa

    periods = [c for c, kind in zip(frame.columns, frame.dtypes, strict=True) if isinstance(kind, pd.PeriodDtype)]
    if periods:
        # Arrow would store them as numbers of months or days since 1970.
        frame = frame.assign(**{c: frame[c].astype("string") for c in periods})
    try:
        rows = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    except (pa.ArrowException, TypeError, ValueError):
        rows = None
    if rows is not None:
        # Types with missing values of their own hold floats because somebody wants floats.
        plain = [kind.kind == "f" and type(kind).__module__.startswith("numpy") for kind in frame.dtypes]
        return _with_integers(rows, plain)
    name = next((c for i, c in enumerate(frame.columns) if not _is_held(frame.iloc[:, [i]])), "?")
    # Raised here, so that the original, which may quote data, is not left as its context.
    raise DataError(
        f"The column {str(name)!r} of the data frame is of mixed types, or of a type, that Arrow cannot hold."
    )


def _with_integers(rows: pa.Table, plain: Sequence[bool]) -> pa.Table:
    """Return a table in which floats with missing values are integers, where all that are not missing are whole.

    ``plain`` says which columns have a type of numpy, which has no missing integers.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    for at, field in enumerate(rows.schema):
        column = rows.column(at)
        if not plain[at] or not 0 < column.null_count < len(column):
            continue
        ends = pc.min_max(column).as_py()
        if max(abs(ends["min"]), abs(ends["max"])) >= _EXACT:
            continue
        if pc.all(pc.equal(column, pc.floor(column))).as_py():
            rows = rows.set_column(at, field.name, column.cast(pa.int64()))
    return rows


def _is_held(frame: Any) -> bool:
    import pyarrow as pa

    try:
        pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError):
        return False
    return True


def arrow_of_polars(frame: Any) -> pa.Table:
    """Return a polars frame as an Arrow table; 128-bit numbers become decimals, those of 39 digits become texts."""
    import polars as pl

    wide = {getattr(pl, name, None) for name in ("Int128", "UInt128")} - {None}
    kinds = dict(frame.schema)
    odd = [name for name, kind in kinds.items() if kind == pl.Object or _holds(kind, wide)]
    for name in odd:
        if kinds[name] not in wide:
            raise DataError(f"The column {name!r} of the data frame is {kinds[name]}, which the database cannot read.")
        column = frame.get_column(name)
        decimals = column.cast(pl.Decimal(38, 0), strict=False)
        fits = decimals.null_count() == column.null_count()
        frame = frame.with_columns(decimals if fits else column.cast(pl.String))
    return frame.to_arrow()


def _holds(kind: Any, wide: set[Any]) -> bool:
    if kind in wide:
        return True
    inner = getattr(kind, "inner", None)
    fields = getattr(kind, "fields", None) or ()
    return (inner is not None and _holds(inner, wide)) or any(_holds(f.dtype, wide) for f in fields)


def with_readable_columns(given: pa.Table) -> pa.Table:
    """Return an Arrow table whose durations and half floats are of types that the database has.

    Decimals with more digits than their type says are refused: what the database would read is undefined.
    """
    import pyarrow as pa

    for position, field in enumerate(given.schema):
        kind = field.type
        if _has_decimals(kind) and not _is_valid(given.column(position)):
            raise DataError(
                f"The column {field.name!r} has numbers of more digits than its Arrow type {kind} says (DuckDB writes "
                "such HUGEINT): cast it to text."
            )
        if kind == pa.float16():
            given = given.set_column(position, field.name, given.column(position).cast(pa.float32()))
        if kind == pa.duration("ns"):
            failed = False
            try:
                given = given.set_column(position, field.name, given.column(position).cast(pa.duration("us")))
            except pa.ArrowInvalid:
                failed = True
            if failed:
                raise _too_fine(field.name)
    return given


def _has_decimals(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return pa.types.is_decimal(kind) or any(_has_decimals(kind.field(i).type) for i in range(kind.num_fields))


def _is_valid(column: pa.ChunkedArray) -> bool:
    import pyarrow as pa

    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return not any(_has_smallest(chunk) for chunk in column.chunks)


_SMALLEST = bytes(15) + b"\x80"


def _has_smallest(values: pa.Array) -> bool:
    """Return whether decimals include the smallest 128-bit number: Arrow does not notice that it is too long."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = values.type
    if pa.types.is_decimal128(kind):
        plain = pc.equal(values.view(pa.binary(16)), pa.scalar(_SMALLEST, pa.binary(16)))
        return bool(pc.any(plain).as_py())
    if pa.types.is_struct(kind):
        return any(_has_smallest(values.field(i)) for i in range(kind.num_fields))
    if pa.types.is_map(kind):
        return _has_smallest(values.keys) or _has_smallest(values.items)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _has_smallest(values.values)
    return False


def require_readable(engine: Engine, schema: pa.Schema) -> None:
    """Raise if the database cannot read a column, or would round its values."""
    import pyarrow as pa

    for field in schema:
        if _finest(field.type):
            raise _too_fine(field.name)
    if not _is_read(engine, schema):
        odd = next((f for f in schema if not _is_read(engine, pa.schema([f]))), None)
        which = f"The column {odd.name!r} has an Arrow type" if odd is not None else "The columns have Arrow types"
        raise DataError(f"{which} that the database cannot read: cast it to another one.")


def _is_read(engine: Engine, schema: pa.Schema) -> bool:
    name = engine.fresh("empty")
    try:
        engine.register(name, schema.empty_table())
        engine.columns(exp.select("*").from_(table(name)))
    except (DuckanonError, NotImplementedError):
        return False
    engine.unregister(name)
    return True


def _too_fine(name: str) -> DataError:
    return DataError(
        f"The column {name!r} has durations in nanoseconds, which the database would round: cast them to microseconds."
    )


def _finest(kind: Any) -> bool:
    import pyarrow as pa

    if kind == pa.duration("ns"):
        return True
    return any(_finest(kind.field(i).type) for i in range(kind.num_fields))


__all__ = ["arrow_of_pandas", "arrow_of_polars", "require_readable", "with_readable_columns"]
