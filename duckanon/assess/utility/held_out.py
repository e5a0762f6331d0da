"""Training rows and held-out rows: divided once, before anything is anonymized, and used for every release."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from duckanon.engine.base import open_engine
from duckanon.errors import DataError, ParameterError, RoleError, did_you_mean
from duckanon.io.source import Source

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Split:
    """The two parts of a table.

    Attributes
    ----------
    train, test : pyarrow.Table
        What may be anonymized and learned from, and what is used for the final test alone; in the order of the source.
    target : str
        The column that is to be predicted: both parts have its values in the same shares.
    test_size, seed, entity_key
        How the table was divided: the same values divide the same table in the same way.
    """

    train: pa.Table = field(repr=False)
    test: pa.Table = field(repr=False)
    target: str
    test_size: float = 0.2
    seed: int = 0
    entity_key: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return how the table was divided, as plain values."""
        return {
            "target": self.target,
            "train_rows": self.train.num_rows,
            "test_rows": self.test.num_rows,
            "test_size": self.test_size,
            "seed": self.seed,
            "entity_key": self.entity_key,
        }


def split(
    data: object,
    *,
    target: str,
    test_size: float = 0.2,
    seed: int = 0,
    entity_key: str | None = None,
    connection: Any = None,
) -> Split:
    """Divide a table into rows to learn from and held-out rows, before anything is anonymized.

    Parameters
    ----------
    data : str, Path, Source, Arrow object or data frame
        The original table.
    target : str
        The column to be predicted. Of each of its values, NULL being one, the same share is held out.
    test_size : float
        The share of rows that is held out, between 0 and 1.
    seed : int
        The same table and seed give the same parts.
    entity_key : str, optional
        The column that identifies persons: all rows of a person then go to one part, so that no person is learned by
        heart in one and recognised in the other. The shares of values are then those of persons, by their first row.
    connection : duckdb.DuckDBPyConnection, optional

    Examples
    --------
    >>> import duckanon, pyarrow as pa
    >>> people = pa.table({"age": list(range(20, 60)), "ill": ["yes", "no", "no", "no"] * 10})
    >>> parts = duckanon.utility.split(people, target="ill", test_size=0.2, seed=1)
    >>> parts.train.num_rows, parts.test.num_rows, parts.test["ill"].to_pylist().count("yes")
    (32, 8, 2)
    """
    if isinstance(test_size, bool) or not isinstance(test_size, int | float) or not 0 < test_size < 1:
        raise ParameterError(f"test_size is a fraction between 0 and 1. Got {test_size!r}.")
    table = table_of(data, connection)
    name = column_of(table, target, "target")
    strata = codes_of(table.column(name))
    if entity_key is None:
        held = _held_out(strata, float(test_size), seed)
        key = None
    else:
        key = column_of(table, entity_key, "entity_key")
        persons = codes_of(table.column(key))
        _, first, of_row = np.unique(persons, return_index=True, return_inverse=True)
        held = _held_out(strata[first], float(test_size), seed)[of_row]
    if not held.any() or held.all():
        raise DataError(f"{table.num_rows} rows cannot be divided so that both parts have some.")
    return Split(table.filter(_mask(~held)), table.filter(_mask(held)), name, float(test_size), seed, key)


def table_of(data: object, connection: Any = None) -> pa.Table:
    """Return all rows of a source as an Arrow table, in its order."""
    import pyarrow as pa

    if isinstance(data, pa.Table):
        return data
    engine = open_engine(connection)
    try:
        return engine.arrow(Source.of(data).open(engine).query)
    finally:
        engine.close()


def column_of(table: pa.Table, name: str, what: str) -> str:
    """Return the name of a column as the table spells it."""
    if not isinstance(name, str):
        raise ParameterError(f"{what} must be the name of a column. Got a {type(name).__name__}.")
    matching = [c for c in table.column_names if c == name] or [
        c for c in table.column_names if c.lower() == name.lower()
    ]
    if not matching:
        raise RoleError(f"The table has no column {name!r}.{did_you_mean(name, table.column_names)}")
    return str(matching[0])


def codes_of(column: pa.ChunkedArray) -> Codes:
    """Return the values of a column as numbers from 0 on, in the order of their first rows; NULL is a value."""
    import pyarrow.compute as pc

    combined = column.combine_chunks()
    codes: Codes = pc.dictionary_encode(combined, null_encoding="encode").indices.to_numpy(zero_copy_only=False)
    return codes.astype(np.int64)


def drawn(strata: Codes, share: float, seed: int) -> NDArray[np.bool_]:
    """Return which members are drawn: a share of each stratum, rounded so that the whole is that share, too."""
    rng = np.random.default_rng(seed)
    sizes = np.bincount(strata)
    wanted = sizes * share
    counts = np.floor(wanted).astype(np.int64)
    missing = round(float(wanted.sum())) - int(counts.sum())
    # The largest remainders are rounded up; of equal ones those of values that come first.
    counts[np.argsort(counts - wanted, kind="stable")[:missing]] += 1
    chosen = np.zeros(len(strata), dtype=bool)
    order = np.argsort(strata, kind="stable")
    for members, count in zip(np.split(order, np.cumsum(sizes)[:-1]), counts, strict=True):
        chosen[rng.permutation(members)[:count]] = True
    return chosen


def _held_out(strata: Codes, share: float, seed: int) -> NDArray[np.bool_]:
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ParameterError(f"seed must be an int >= 0. Got {seed!r}.")
    return drawn(strata, share, seed) if len(strata) else np.zeros(0, dtype=bool)


def _mask(chosen: NDArray[np.bool_]) -> Any:
    import pyarrow as pa

    return pa.array(chosen)
