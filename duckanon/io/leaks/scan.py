"""Examine any file or folder that is to be published for what it reveals beyond its rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from duckanon.errors import DataError
from duckanon.io.leaks.base import Leak, merged
from duckanon.io.leaks.order import CHANCE, order_of
from duckanon.io.leaks.parquet import ROWS_CHECKED, parquet_leaks, parquet_pieces
from duckanon.io.paths import is_file, is_folder

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PARQUET, _CSV = (".parquet", ".pq"), (".csv", ".tsv")
_INDEX = re.compile(r"(__index_level_\d+__|unnamed: ?\d+|index|level_\d+|row_?(id|nr|num|number)|rowid)", re.I)
_FEWEST = 8
"""With fewer rows, consecutive numbers may be chance."""
_ORDERS = {
    "sorted": "The rows are sorted by a column.",
    "neighbours": "Rows stand beside rows with near values of a column.",
    "equal": "Rows stand beside rows with the same value of a column.",
}
_BLOCK = 1 << 22
_OURS = re.compile(r"(_manifest\.json|_report\.\w+|.+\.manifest\.json|.+\.report\.\w+)")
_SCRAP = re.compile(
    r"(\..+|~.*|.*~|#.*|.*\.(tmp|temp|bak|old|orig|swp|crc|wal|duckdb|db|log|part|partial|lock)|_.*)", re.I
)


def file_leaks(
    path: str | Path,
    *,
    siblings: bool = True,
    rows: int = ROWS_CHECKED,
    parts: int | None = None,
    chance: float = CHANCE,
) -> tuple[Leak, ...]:
    """Find what a published file or folder reveals beyond its rows.

    Parameters
    ----------
    path : str or Path
        A Parquet or CSV file (which may be compressed by gzip), or a folder of Parquet files.
    siblings : bool
        Whether to look for leftovers beside a single file, too.
    rows : int
        Most rows of a file whose order is checked.
    parts : int, optional
        Most row groups of a file whose dictionaries and statistics are checked; all by default.
    chance : float
        How often a random order may be reported as not random.

    Returns
    -------
    tuple of Leak
        Sorted by kind; empty if nothing was found. ``duckanon.io.leaks.KINDS`` describes the kinds:

        - dictionary: the dictionary pages are decoded and compared with the values of their part of the rows.
        - statistics: smallest and largest values in the footer and the counts of missing ones are compared with the
          rows. Texts that a writer has truncated are no leak. The page index is not read.
        - metadata, column_names: the footer's keys, the notes of pandas, Arrow and Spark, the writer's name; paths,
          addresses and times in them; columns that they name and the file does not have.
        - index: a column of consecutive whole numbers, or one that is named like an index and distinguishes all rows.
        - order: columns whose order is not random (``order_of``); rows that are equal as a whole count once. Of files
          with more than ``rows`` rows (262,144), so many are checked, in pieces.
        - leftovers: files beside the release that are not duckanon's, and the name and time in a gzip header.

    Examples
    --------
    >>> import pyarrow as pa, pyarrow.parquet as pq, tempfile
    >>> from duckanon.io.leaks import file_leaks
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ages = pa.table({"age": list(range(100))})
    ...     pq.write_table(ages, f"{folder}/ages.parquet", store_schema=False)
    ...     [(leak.kind, leak.column) for leak in file_leaks(f"{folder}/ages.parquet")]
    [('index', 'age'), ('order', 'age')]
    """
    target = Path(path)
    if is_folder(target):
        files = sorted(p for p in target.rglob("*") if p.suffix.lower() in _PARQUET and p.is_file())
        if not files:
            raise DataError(f"The folder {target.name!r} holds no Parquet file.")
        leaks = [leak for file in files for leak in _file(file, rows, parts, chance / len(files))]
        return tuple(merged([*leaks, *_folder(target, set(files))]))
    if not is_file(target):
        raise DataError(f"There is no file {target.name!r}.")
    leaks = list(_file(target, rows, parts, chance))
    if siblings:
        leaks += _beside(target)
    return tuple(merged(leaks))


def _file(path: Path, rows: int, parts: int | None, chance: float) -> Iterator[Leak]:
    import pyarrow as pa

    suffixes = [s.lower() for s in path.suffixes]
    failed = False
    try:
        if suffixes and suffixes[-1] in _PARQUET:
            yield from parquet_leaks(path, parts)
            yield from _rows(*parquet_pieces(path, rows), chance)
            return
        if set(suffixes[-2:]) & set(_CSV):
            yield from _gzip(path)
            yield from _rows(*_csv_pieces(path), chance)
            return
    except (pa.ArrowInvalid, OSError):
        failed = True
    if failed:
        raise DataError(f"{path.name!r} cannot be read: it is damaged, or not what its suffix says.")
    raise DataError(f"{path.name!r} is neither Parquet nor CSV.")


# Rows


def _rows(pieces: Sequence[tuple[int, Any]], total: int, chance: float) -> Iterator[Leak]:
    if not pieces:
        return
    schema = pieces[0][1].schema
    ranked: dict[str, list[NDArray[np.int64]]] = {}
    for position, field in enumerate(schema):
        columns = [piece.column(position) for _, piece in pieces]
        yield from _numbering(field, columns, total)
        ranks = _ranks(columns)
        if ranks is not None:
            ranked[field.name] = ranks
    # Rows that are equal as a whole may be neighbours: they reveal nothing about each other.
    firsts = [_first_of_runs([ranks[i] for ranks in ranked.values()]) for i in range(len(pieces))] if ranked else []
    for name, ranks in ranked.items():
        thinned = [(first, values[some]) for (first, _), values, some in zip(pieces, ranks, firsts, strict=True)]
        judged = order_of(thinned, chance)
        if judged.signs:
            word = judged.signs[0]
            yield Leak("order", _ORDERS[word], judged.equal if word == "equal" else judged.rows, total, name)


def _ranks(columns: Sequence[Any]) -> list[NDArray[np.int64]] | None:
    """Return the ranks of a column's values, of nested values in any order; None for other types."""
    import pyarrow as pa
    import pyarrow.compute as pc

    every = pa.chunked_array([chunk for column in columns for chunk in column.chunks], columns[0].type)
    if pa.types.is_dictionary(every.type):
        every = every.cast(every.type.value_type)
    if isinstance(every.type, pa.BaseExtensionType):
        every = pa.chunked_array([chunk.storage for chunk in every.chunks], every.type.storage_type)
    if pa.types.is_nested(every.type):
        counted = _in_numbers(every.type)
        every = every if counted == every.type else every.cast(counted)
        texts = np.array([repr(value) for value in every.to_pylist()])
        ranks = np.unique(texts, return_inverse=True)[1].astype(np.int64)
        return np.split(ranks, np.cumsum([len(column) for column in columns])[:-1])
    try:
        ranks = pc.rank(every, tiebreaker="dense").to_numpy().astype(np.int64)
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError):
        return None
    return np.split(ranks, np.cumsum([len(column) for column in columns])[:-1])


def _in_numbers(kind: Any) -> Any:
    """Return a type with numbers instead of dates and times: those of Python end with the year 9999."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_in_numbers(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_field.with_type(_in_numbers(kind.key_type)), _in_numbers(kind.item_type))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(_in_numbers(kind.value_type)), kind.list_size)
    if pa.types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(_in_numbers(kind.value_type)))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_in_numbers(kind.value_type)))
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return pa.int32()
    times = (pa.types.is_date64, pa.types.is_time64, pa.types.is_timestamp, pa.types.is_duration)
    return pa.int64() if any(one(kind) for one in times) else kind


def _first_of_runs(columns: Sequence[NDArray[np.int64]]) -> NDArray[np.bool_]:
    """Mark the rows that differ from the one before them in some column."""
    marked = np.zeros(len(columns[0]), dtype=np.bool_)
    marked[:1] = True
    for column in columns:
        marked[1:] |= column[1:] != column[:-1]
    return marked


def _numbering(field: Any, columns: Sequence[Any], total: int) -> Iterator[Leak]:
    """Find a column that numbers the rows."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_integer(field.type):
        return
    seen = sum(len(c) for c in columns)
    every = pa.chunked_array([chunk for c in columns for chunk in c.chunks], field.type)
    if seen < _FEWEST or every.null_count or pc.count_distinct(every).as_py() < seen:
        return
    edges = pc.min_max(every).as_py()
    # Only pieces of a large file are here, so the numbers may be spread over the whole table.
    consecutive = edges["max"] - edges["min"] < total if seen == total else edges["max"] - edges["min"] < 2 * total
    if consecutive or _INDEX.fullmatch(field.name):
        yield Leak("index", "A column numbers the rows.", total, total, field.name)


# CSV


def _csv_pieces(path: Path) -> tuple[list[tuple[int, Any]], int]:
    import pyarrow as pa
    from pyarrow import csv

    blocks = max(1, path.stat().st_size // _BLOCK)
    most = ROWS_CHECKED // blocks if blocks > 1 else ROWS_CHECKED
    tabs = ".tsv" in [s.lower() for s in path.suffixes]
    pieces, first = [], 0
    options = csv.ReadOptions(block_size=_BLOCK)
    parsing = csv.ParseOptions(delimiter="\t" if tabs else ",", newlines_in_values=True)
    with pa.input_stream(str(path), compression="detect") as raw:
        for batch in csv.open_csv(raw, read_options=options, parse_options=parsing):
            pieces.append((first, pa.Table.from_batches([batch.slice(0, most)])))
            first += batch.num_rows
    if len(pieces) > 1 and first <= ROWS_CHECKED:
        pieces = [(0, pa.concat_tables([piece for _, piece in pieces]))]
    return pieces, first


def _gzip(path: Path) -> Iterator[Leak]:
    with path.open("rb") as raw:
        head = raw.read(10)
    if head[:2] != b"\x1f\x8b":
        return
    if head[3] & 0x08:
        yield Leak("metadata", "The gzip header has the name that the file had.")
    if int.from_bytes(head[4:8], "little"):
        yield Leak("metadata", "The gzip header has the time of the file.")


# Leftovers


def _beside(path: Path) -> Iterator[Leak]:
    """Find what looks like a copy, a temporary file or a log of a file beside it."""
    stem = path.name.split(".")[0].lower()
    for other in path.parent.iterdir():
        name = other.name.lower()
        if other == path or _OURS.fullmatch(name):
            continue
        if stem in name and _SCRAP.fullmatch(name):
            yield Leak("leftovers", "A file beside it looks like a copy, a draft or a log of it.")


def _folder(path: Path, files: set[Path]) -> Iterator[Leak]:
    for other in path.rglob("*"):
        if other in files or _OURS.fullmatch(other.name):
            continue
        if other.is_dir():
            if not any(p in files for p in other.rglob("*")):
                yield Leak("leftovers", "A folder has no rows: its name may tell a value that no row has.")
        else:
            yield Leak("leftovers", "A file in the folder is no part of the release.")
