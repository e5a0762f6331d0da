"""Items that do not fit into memory: on disk part by part, and their classes in one file in the order of the items.

Only codes, hashes and numbers are stored, in a private folder. The files are not mapped into memory, so that they do
not count as memory of the process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    Records = NDArray[Any]

RID = "rid"
"""The number of the item in its source."""
_BLOCK = 500_000


@dataclass
class PartFiles:
    """The items of each part in a file of their own, in the order in which they came."""

    folder: Path
    stem: str
    count: int = 0
    kind: np.dtype[Any] | None = None

    def add(self, batch: pa.RecordBatch, parts: NDArray[np.integer[Any]]) -> None:
        """Append items, each to the file of its part."""
        columns = [np.asarray(column.to_numpy(zero_copy_only=False)) for column in batch.columns]
        if self.kind is None:
            named = zip(batch.schema.names, columns, strict=True)
            self.kind = np.dtype([(name, column.dtype) for name, column in named] + [(RID, np.int64)])
        order = np.argsort(parts, kind="stable")
        records = np.empty(batch.num_rows, dtype=self.kind)
        for name, column in zip(batch.schema.names, columns, strict=True):
            records[name] = column[order]
        records[RID] = order + self.count
        self.count += batch.num_rows
        present, starts = np.unique(parts[order], return_index=True)
        for part, start, end in zip(present, starts, [*starts[1:], len(order)], strict=True):
            with self._path(int(part)).open("ab") as file:
                records[start:end].tofile(file)

    def take(self, part: int) -> Records:
        """Return the items of a part, and remove its file."""
        assert self.kind is not None
        path = self._path(part)
        if not path.exists():
            return np.empty(0, dtype=self.kind)
        records = np.fromfile(path, dtype=self.kind)
        path.unlink()
        return records

    def _path(self, part: int) -> Path:
        return self.folder / f"{self.stem}-{part}.items"


@dataclass
class ClassFile:
    """The class of every item, or several such numbers, in the order of the items."""

    path: Path
    count: int
    names: tuple[str, ...] = ("class_id",)

    def __post_init__(self) -> None:
        with self.path.open("wb") as file:
            file.truncate(self.count * self._size)

    @property
    def _size(self) -> int:
        return np.dtype(np.int32).itemsize * len(self.names)

    def put(self, rid: NDArray[np.int64], numbers: Mapping[str, NDArray[np.integer[Any]]]) -> None:
        """Write the numbers of some items, given in ascending order."""
        firsts = np.arange(0, self.count, _BLOCK)
        cuts = np.searchsorted(rid, np.append(firsts, self.count))
        with self.path.open("r+b") as file:
            for first, start, end in zip(firsts.tolist(), cuts[:-1], cuts[1:], strict=True):
                if start == end:
                    continue
                file.seek(first * self._size)
                block = self._block(file)
                for at, name in enumerate(self.names):
                    block[rid[start:end] - first, at] = numbers[name][start:end]
                file.seek(first * self._size)
                block.tofile(file)

    def reader(self) -> pa.RecordBatchReader:
        """Return the numbers of all items as a stream."""
        import pyarrow as pa

        schema = pa.schema(dict.fromkeys(self.names, pa.int32()))
        batches = (
            pa.record_batch([pa.array(np.ascontiguousarray(block[:, at])) for at in range(len(self.names))], schema)
            for block in self._blocks()
        )
        return pa.RecordBatchReader.from_batches(schema, batches)

    def remove(self) -> None:
        """Remove the file."""
        self.path.unlink(missing_ok=True)

    def _block(self, file: IO[bytes]) -> NDArray[np.int32]:
        width = len(self.names)
        return np.fromfile(file, dtype=np.int32, count=_BLOCK * width).reshape(-1, width)

    def _blocks(self) -> Iterator[NDArray[np.int32]]:
        with self.path.open("rb") as file:
            for _ in range(0, self.count, _BLOCK):
                yield self._block(file)


__all__ = ["RID", "ClassFile", "PartFiles"]
