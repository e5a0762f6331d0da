"""Write many rows whose texts depend on their class alone: only the number of the class goes through the sort.

Rows are sorted as arrays where they fit, else by the database, and come as a stream. What is published of a class is
looked up for one row group after the other and written as codes with the texts that this row group has, and no others:
nothing is joined to the sorted rows, which would cost them their order, and no text is hashed again for every row.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.engine import limits
from duckanon.engine.limits import give_back
from duckanon.engine.sql.relations import Column, col, table
from duckanon.io.parquet import RowGroups, encode
from duckanon.io.sorted_rows import SortedRows

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from duckanon.engine.base import Engine

MANY_ROWS = 500_000
"""Fewer rows than these are sorted with all their columns: that takes fewer steps."""
_ROW_GROUP = 491_520
"""More rows than usual: the texts of a row group are written once for all of them, and read once."""
_SMALL_GROUP, _AMPLE = 122_880, 2**29
"""Rows of a group where arrays have less than so many bytes."""
_OF_WORKER = 2**28
"""Bytes that arrays must have for each row group that is looked up and encoded at a time beyond two."""
# Types that mean the same to DuckDB, Arrow and Parquet, so that it does not matter who writes them.
_PLAIN = re.compile(
    r"BOOLEAN|U?TINYINT|U?SMALLINT|U?INTEGER|U?BIGINT|FLOAT|DOUBLE|VARCHAR|DATE|TIMESTAMP|DECIMAL\(\d+,\d+\)"
)


def can_look_up(published: Sequence[Column], passed: Sequence[Column]) -> bool:
    """Say whether rows can be written so: what is published of classes, and the columns that rows have besides."""
    kinds = [c.type for c in published if not c.type.startswith("ENUM")] + [c.type for c in passed]
    return all(_PLAIN.fullmatch(kind) for kind in kinds)


@dataclass(frozen=True)
class LookedUp:
    """What is published of classes: ``published(class_id, q_0, ...)``, of which ``names`` are written."""

    engine: Engine
    published: str
    names: tuple[str, ...]

    def _found(self) -> tuple[pa.Table, NDArray[np.int64]]:
        """The published columns, and where each class is among them."""
        import numpy as np

        query = exp.select(col("class_id"), *(col(n) for n in self.names)).from_(table(self.published))
        found = self.engine.arrow(query)
        ids = found.column("class_id").to_numpy()
        at = np.zeros(int(ids.max(initial=0)) + 1, dtype=np.int64)
        at[ids] = np.arange(len(ids))
        return found, at

    def write(
        self,
        rows: SortedRows,
        columns: Sequence[tuple[str, str]],
        path: Path,
    ) -> None:
        """Write sorted rows ``(class_id, p_0, ...)``; ``columns`` lists (published name, name here) in their order."""
        size, workers, limit = _ROW_GROUP, self.engine.threads(), self.engine.array_limit()
        if limit is not None:
            workers = min(workers, max(2, limit // _OF_WORKER))
        if limit is not None and limit < _AMPLE:
            size = min(size, _SMALL_GROUP)
            # The columns as they came from the database would lie beside the sort otherwise.
            give_back()
        texts = _Texts(self._found(), self.names, size)
        waiting: deque[Future[tuple[pa.Buffer, int]]] = deque()
        file = RowGroups(path)
        done = 0

        def write_next() -> None:
            nonlocal done
            raw, count = waiting.popleft().result()
            file.add(raw, count)
            done += count
            self.engine.progress.advance(done)

        # Neither looking up nor encoding holds the interpreter.
        with limits.workers(workers) as pool:
            try:
                for group in rows.groups(size):
                    waiting.append(pool.submit(texts.encoded, group, columns))
                    while len(waiting) > workers:
                        write_next()
                while waiting:
                    write_next()
            finally:
                pool.shutdown(wait=True, cancel_futures=True)
                file.close()


class _Texts:
    """Looks up what is published of the classes of a row group."""

    def __init__(self, found: tuple[pa.Table, NDArray[np.int64]], names: Sequence[str], size: int) -> None:
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        (known, self.at), self.size = found, size
        self.values: dict[str, Any] = {}
        self.texts: dict[str, Any] = {}
        codes = []
        for name in names:
            column = known.column(name).combine_chunks()
            if pa.types.is_string(column.type):
                column = column.dictionary_encode()
            if not pa.types.is_dictionary(column.type):
                self.values[name] = column
                continue
            self.texts[name] = column.dictionary.cast(pa.string())
            codes.append(pc.fill_null(column.indices.cast(pa.int32()), -1).to_numpy())
        # The first is that of NULL.
        sizes = [1 + len(t) for t in self.texts.values()]
        self.codes = np.zeros((len(self.at), len(codes)), dtype=np.uint32)
        for j, own in enumerate(codes):
            if len(own):
                self.codes[:, j] = own[self.at] + 1
        self.firsts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.rooms: list[tuple[Any, Any, Any]] = []

    def encoded(self, rows: Callable[[], pa.Table], columns: Sequence[tuple[str, str]]) -> tuple[pa.Buffer, int]:
        """Return the rows of a group as they are published, encoded, and their number."""
        # Several groups may be looked up at a time, each in a room of its own.
        room = self.rooms.pop() if self.rooms else self._room()
        found = self._of(rows(), columns, room)
        raw = encode(found, _options(found.schema))
        self.rooms.append(room)
        return raw, found.num_rows

    def _of(self, group: pa.Table, columns: Sequence[tuple[str, str]], room: tuple[Any, Any, Any]) -> pa.Table:
        """Return the rows of a group as they are published; codes lie in the room."""
        import numpy as np
        import pyarrow as pa

        from duckanon.kernels.lookup import look_up

        ids = np.ascontiguousarray(group.column("class_id").to_numpy(), dtype=np.uint32)
        counts = np.zeros((2, len(self.texts)), dtype=np.int64)
        ranks, used, whole = room
        out = whole[: len(self.texts) * len(ids)].reshape(len(self.texts), len(ids))
        look_up(ids, self.codes, ranks, self.firsts, used, out, counts)
        found: dict[str, Any] = {}
        for j, (name, texts) in enumerate(self.texts.items()):
            own = used[self.firsts[j] : self.firsts[j] + counts[0, j]] - 1
            valid = pa.py_buffer(np.packbits(out[j] >= 0, bitorder="little")) if counts[1, j] else None
            codes = pa.Array.from_buffers(pa.int32(), len(ids), [valid, pa.py_buffer(out[j])], int(counts[1, j]))
            # Codes are ranks of these texts, which need not be tested again.
            found[name] = pa.DictionaryArray.from_arrays(codes, texts.take(pa.array(own)), safe=False)
        for name, values in self.values.items():
            found[name] = values.take(pa.array(self.at[ids]))
        chosen = [found[inner] if inner in found else _used(group.column(inner)) for _, inner in columns]
        return pa.table(chosen, names=[name for name, _ in columns])

    def _room(self) -> tuple[Any, Any, Any]:
        import numpy as np

        ranks = np.full(int(self.firsts[-1]), -2, dtype=np.int32)
        ranks[self.firsts[:-1]] = -1
        return ranks, np.empty_like(ranks), np.empty(len(self.texts) * self.size, dtype=np.int32)


def _used(column: pa.ChunkedArray) -> Any:
    """Return a column with those texts only that its rows have."""
    import numpy as np
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        return column
    found = column.combine_chunks()
    codes = found.indices.fill_null(0).to_numpy()
    used = np.zeros(len(found.dictionary), dtype=np.bool_)
    used[codes if not found.null_count else codes[found.is_valid().to_numpy(zero_copy_only=False)]] = True
    ranks = (np.cumsum(used) - 1).astype(np.int32)[codes] if len(used) else codes
    mask = found.is_null().to_numpy(zero_copy_only=False) if found.null_count else None
    return pa.DictionaryArray.from_arrays(pa.array(ranks, mask=mask), found.dictionary.filter(pa.array(used)))


def _options(schema: pa.Schema) -> dict[str, Any]:
    """Return how columns are written: shuffled texts need no bounds, and floats hardly ever repeat."""
    import pyarrow as pa

    floats = [pa.types.is_floating(f.type) for f in schema]
    coded = [pa.types.is_dictionary(f.type) or pa.types.is_string(f.type) for f in schema]
    return {
        "compression": "snappy",
        "store_schema": False,
        "use_dictionary": [f.name for f, no in zip(schema, floats, strict=True) if not no],
        "write_statistics": [f.name for f, no in zip(schema, coded, strict=True) if not no],
        # Codes are written as they come, however long the texts of a row group are together.
        "dictionary_pagesize_limit": 2**30,
    }


__all__ = ["MANY_ROWS", "LookedUp", "can_look_up"]
