"""The column that is to be predicted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from duckanon.assess.utility.plain import texts_of
from duckanon.errors import DataError, ParameterError

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

_MOST_CLASSES = 100


@dataclass(frozen=True)
class Target:
    """The column to be predicted: its values in their order, and which of two is the positive one."""

    name: str
    values: pa.Array
    positive: int | None
    notes: tuple[str, ...]

    @classmethod
    def of(cls, tables: Mapping[str, pa.Table], name: str, average: str, positive: Any) -> Target:
        """Return the target of tables of which ``raw`` is learned from."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if average not in ("auto", "macro", "binary"):
            raise ParameterError(f"average must be 'auto', 'macro' or 'binary'. Got {average!r}.")
        columns = {key: texts_of(table.column(name)) for key, table in tables.items()}
        chunks = [chunk for column in columns.values() for chunk in column.chunks]
        values = pc.drop_null(pc.unique(pa.chunked_array(chunks, pa.string())))
        values = values.take(pc.sort_indices(values))
        if len(values) > _MOST_CLASSES:
            raise DataError(f"The target {name!r} has {len(values)} values: put them into at most {_MOST_CLASSES}.")
        if len(values) < 2:
            raise DataError(f"The target {name!r} has {len(values)} values: there is nothing to predict.")
        missing = sum(column.null_count for column in columns.values())
        notes = (f"{missing} rows whose target is missing are left out.",) if missing else ()
        if average == "macro" or (average == "auto" and len(values) != 2):
            return cls(name, values, None, notes)
        codes = pc.drop_null(pc.index_in(columns["raw"], value_set=values)).to_numpy()
        rarer = int(np.argmin(np.bincount(codes, minlength=len(values))))
        if positive is not None:
            found = pc.index(values, str(positive)).as_py()
            if found < 0:
                raise ParameterError("The positive class is no value of the target.")
            rarer = found
        elif len(values) != 2:
            raise ParameterError(f"The target has {len(values)} values: name the positive one, or use 'macro'.")
        return cls(name, values, rarer, notes)

    def known(self, table: pa.Table) -> pa.Table:
        """Return the rows whose target is known."""
        import pyarrow.compute as pc

        column = table.column(self.name)
        found = table.filter(pc.is_valid(column)) if column.null_count else table
        if not found.num_rows:
            raise DataError("A table has no row whose target is known.")
        return found

    def codes(self, table: pa.Table) -> NDArray[np.int64]:
        """Return the class of every row by its number."""
        import pyarrow.compute as pc

        found = pc.index_in(texts_of(table.column(self.name)), value_set=self.values).to_numpy()
        return np.asarray(found, dtype=np.int64)
