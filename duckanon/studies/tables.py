"""The tables of a study, as its tasks read them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from duckanon.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from duckanon.assess.utility import Split
    from duckanon.hierarchy import Hierarchy

ROW = "row_of_the_study"
"""The column that ties a row of a release to its original, where both are compared row by row."""
_SAMPLE = 20_260_101


def read(given: Mapping[str, Any], rows: int = 0) -> pa.Table:
    """Return the quasi-identifiers and the target of a table; at most ``rows`` of them, drawn once for all."""
    return _read(json.dumps(dict(given), sort_keys=True), rows)[0]


def divide(given: Mapping[str, Any], rows: int, test_size: float, seed: int) -> tuple[pa.Table, Split]:
    """Return a table with numbered rows, and its rows to learn from and held-out ones.

    Where ``train`` gives the number of first rows that the authors train on, the rest is held out; else chance
    decides.
    """
    from duckanon.assess.utility import Split, split

    whole, learned = _read(json.dumps(dict(given), sort_keys=True), rows)
    table = numbered(whole)
    if learned is None:
        return table, split(table, target=given["target"], test_size=test_size, seed=seed)
    share = 1 - learned / table.num_rows
    return table, Split(table.slice(0, learned), table.slice(learned), given["target"], share, seed, None)


@lru_cache(maxsize=8)
def _read(content: str, rows: int) -> tuple[pa.Table, int | None]:
    """Return a table, and how many of its rows, which come first, its authors learn from."""
    import numpy as np
    import pyarrow.compute as pc

    given = json.loads(content)
    table = _hospital(given["hospital"]) if "hospital" in given else _file(given["path"])
    names = [*given["quasi_identifiers"], given["target"]]
    for name in names:
        if name not in table.column_names:
            hint = did_you_mean(name, table.column_names)
            raise ConfigError(f"[tables.{given['name']}]: the table has no column {name!r}.{hint}")
    table = table.select(list(dict.fromkeys(names)))
    valid = pc.is_valid(table.column(given["target"]))
    table, origin = table.filter(valid), np.flatnonzero(valid.to_numpy())
    if "above" in given:
        place = table.column_names.index(given["target"])
        above = pc.if_else(pc.greater(table.column(place), given["above"]), "above", "not above")
        table = table.set_column(place, given["target"], above)
    most = min((n for n in (rows, given.get("rows", 0)) if n), default=0)
    if most and table.num_rows > most:
        sampled = np.sort(np.random.default_rng(_SAMPLE).permutation(table.num_rows)[:most])
        table, origin = table.take(sampled), origin[sampled]
    learned = int((origin < given["train"]).sum()) if "train" in given else None
    return table.combine_chunks(), learned


def _file(path: str) -> pa.Table:
    from duckanon.engine.base import open_engine
    from duckanon.io.source import Source

    engine = open_engine()
    try:
        return engine.arrow(Source.file(path).open(engine).query)
    finally:
        engine.close()


def _hospital(rows: int) -> pa.Table:
    """Return the shipped synthetic table with the age of the patients in years."""
    import numpy as np
    import pyarrow as pa

    from duckanon.testing.hospital import hospital

    table = hospital(rows)
    days = (table.column(n).to_numpy().astype("datetime64[D]") for n in ("admission_date", "birth_date"))
    at, born = days
    years = ((at - born).astype(np.int64) // 365.25).astype(np.int64)
    return table.append_column("age", pa.array(years))


def hierarchies(given: Mapping[str, Any]) -> dict[str, Hierarchy | str]:
    """Return the hierarchies that are given of a table's quasi-identifiers."""
    from duckanon.hierarchy import Hierarchy

    made: dict[str, Hierarchy | str] = {}
    for name, rule in (given.get("hierarchies") or {}).items():
        if isinstance(rule, str):
            made[name] = rule
        else:
            made[name] = Hierarchy.from_rule({k: v for k, v in rule.items() if k != "digest"})
    return made


def quasi_identifiers(given: Mapping[str, Any], what: str = "full") -> list[str]:
    """Return all quasi-identifiers of a table, or those that ``part`` lists."""
    every = list(given["quasi_identifiers"])
    return list(given.get("part") or every) if what == "part" else every


def numbered(table: pa.Table) -> pa.Table:
    """Return a table with the number of each row in the column ``ROW``."""
    import numpy as np
    import pyarrow as pa

    return table.append_column(ROW, pa.array(np.arange(table.num_rows)))


def codes(column: pa.ChunkedArray, bins: int) -> tuple[NDArray[np.int64], int]:
    """Return whole numbers from 0 on in place of values, in the order of the values, and how many there are.

    A column with more than ``bins`` different numbers is cut into that many bins of the same width, as in section 3.3.1
    of "The limits of information loss metrics as measures for utility". Missing values are the last number.

    Examples
    --------
    >>> import pyarrow as pa
    >>> found, size = codes(pa.chunked_array([[0.0, 1.0, 9.9, 10.0, None]]), bins=2)
    >>> found.tolist(), size
    ([0, 0, 1, 1, 2], 3)
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    missing = column.is_null().to_numpy(zero_copy_only=False)
    if pa.types.is_decimal(column.type) or pa.types.is_boolean(column.type):
        column = column.cast(pa.float64() if pa.types.is_decimal(column.type) else pa.int8())
    present = column.drop_null()
    values = pc.unique(present).sort()
    if len(values) > bins and (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        numbers = present.cast(pa.float64()).to_numpy()
        edges = np.linspace(numbers.min(), numbers.max(), bins + 1)[1:-1]
        placed = np.searchsorted(edges, numbers, side="right")
        used, placed = np.unique(placed, return_inverse=True)
        size = len(used)
    else:
        placed, size = pc.index_in(present, values).to_numpy(), len(values)
    numbered = np.full(len(column), size, dtype=np.int64)
    numbered[~missing] = placed
    return numbered, size + int(missing.any())
