"""Hypothesis strategies: column names, tables and hierarchies, the nasty ones included.

Needs hypothesis: ``pip install 'duckanon[test]'``.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from duckanon.errors import UnsupportedError

try:
    from hypothesis import strategies as st
except ModuleNotFoundError:
    raise UnsupportedError("duckanon.testing.strategies needs hypothesis: pip install 'duckanon[test]'.") from None

if TYPE_CHECKING:
    import pyarrow as pa
    from hypothesis.strategies import SearchStrategy

NASTY_NAMES = (
    "age",
    "select",
    "value",
    "text",
    "code",
    "label",
    "level",
    "class_id",
    "n",
    "g",
    "s",
    "kept",
    "entity",
    "duckanon_entity",
    "rowid",
    "q_0",
    "p_0",
    "w_0",
    "a b",
    'quo"te',
    '"',
    '""',
    "o'clock",
    "semi;colon",
    'x"; DROP TABLE t; --',
    "x') FROM range(3); --",
    "new\nline",
    "tab\tbed",
    "back\\slash",
    "per%cent",
    "$1",
    "?",
    "{brace}",
    "-- comment",
    "/* comment */",
    "*",
    "1",
    "größe",
    "名前",
    "🦆",
    "a.b",
    "x" * 300,
)
"""Column names that break careless quoting, or clash with the names of private tables' columns."""


@dataclass(frozen=True)
class Domain:
    """A column type with values to draw from; the unequal ones among them are unequal in a file, too."""

    type: str
    values: tuple[Any, ...]


_UTC = datetime.UTC
DOMAINS = (
    Domain("int8", (0, 1, -128, 127, 5)),
    Domain("int32", (0, 7, 17, 18, 42, -(2**31), 2**31 - 1)),
    Domain("int64", (0, 1, 2, 10**12, -(2**63), 2**63 - 1)),
    Domain("uint64", (0, 1, 2**64 - 1)),
    Domain("float32", (0.0, -0.0, 1.5, float("nan"), float("inf"))),
    Domain("float64", (0.0, -0.0, 0.1, 1e300, -1e-300, float("nan"), float("inf"), -float("inf"))),
    Domain("decimal", tuple(decimal.Decimal(d) for d in ("0.00", "1.10", "-3.25", "99999.99"))),
    Domain("string", ("a", "A", "ä", "", " ", "NULL", "*", "a;b", "o'clock", "🦆", "x\ny", "10", "9")),
    Domain("string", ("10115", "10117", "10999", "20095", "20097")),
    Domain("dictionary", ("ward 1", "ward 2", "ward 3")),
    Domain("bool", (True, False)),
    Domain("date", (datetime.date(1970, 1, 1), datetime.date(2000, 2, 29), datetime.date(2024, 12, 31))),
    Domain("timestamp", (datetime.datetime(1969, 12, 31, 23, 59, 59), datetime.datetime(2024, 2, 29, 0, 0, 0, 1))),
    Domain(
        "timestamptz",
        (datetime.datetime(2024, 3, 31, 0, 30, tzinfo=_UTC), datetime.datetime(2024, 3, 31, 1, 30, tzinfo=_UTC)),
    ),
    Domain("time", (datetime.time(0, 0), datetime.time(23, 59, 59))),
    Domain("binary", (b"", b"\x00", b"\xff\x00a")),
)


def arrow_type(name: str) -> pa.DataType:
    """Return the Arrow type of a domain."""
    import pyarrow as pa

    special = {
        "decimal": pa.decimal128(10, 2),
        "dictionary": pa.dictionary(pa.int32(), pa.string()),
        "bool": pa.bool_(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us"),
        "timestamptz": pa.timestamp("us", tz="UTC"),
        "time": pa.time64("us"),
    }
    return special[name] if name in special else getattr(pa, name)()


def column_names(count: int) -> SearchStrategy[list[str]]:
    """Lists of ``count`` names that differ even where case is ignored; about half of them nasty."""
    # The Arrow interface hands names over as C strings: they cannot hold NUL or half of a surrogate pair.
    letters = st.characters(exclude_categories=["Cs"], exclude_characters="\x00")
    free = st.text(letters, min_size=1, max_size=8)
    return st.lists(st.one_of(st.sampled_from(NASTY_NAMES), free), min_size=count, max_size=count, unique_by=str.lower)


@st.composite
def columns(draw: st.DrawFn, rows: int, domains: Sequence[Domain] = DOMAINS) -> pa.Array:
    """Arrow arrays of one of the types, few different values and NULL among them, so that classes form."""
    import pyarrow as pa

    domain = draw(st.sampled_from(domains))
    few = draw(st.lists(st.sampled_from(domain.values), min_size=1, max_size=5))
    values = st.sampled_from([*few, None]) if draw(st.booleans()) else st.sampled_from(few)
    return pa.array(draw(st.lists(values, min_size=rows, max_size=rows)), arrow_type(domain.type))


@st.composite
def tables(
    draw: st.DrawFn,
    min_rows: int = 1,
    max_rows: int = 30,
    min_columns: int = 1,
    max_columns: int = 4,
    domains: Sequence[Domain] = DOMAINS,
) -> pa.Table:
    """Arrow tables with columns of mixed types, NULL, NaN, -0.0, unicode and nasty column names."""
    import pyarrow as pa

    rows = draw(st.integers(min_rows, max_rows))
    width = draw(st.integers(min_columns, max_columns))
    arrays = [draw(columns(rows, domains)) for _ in range(width)]
    return pa.Table.from_arrays(arrays, names=draw(column_names(width)))


@st.composite
def level_rows(draw: st.DrawFn, leaves: Sequence[str], max_height: int = 3) -> list[list[str]]:
    """Rows (leaf, level 1, ..., top) of a hierarchy over ``leaves``: nested, rooted, with nasty labels at times."""
    groups = list(range(len(leaves)))
    rows = [[leaf] for leaf in leaves]
    style = draw(st.sampled_from(("[{}/{}]", "{1}", "o'{}\";{}")))
    for level in range(1, draw(st.integers(1, max_height))):
        wanted = draw(st.integers(1, max(1, len(set(groups)))))
        parent = {g: draw(st.integers(0, wanted - 1)) for g in sorted(set(groups))}
        groups = [parent[g] for g in groups]
        for row, group in zip(rows, groups, strict=True):
            row.append(style.format(level, f"{level}{group}"))
    top = draw(st.sampled_from(("*", "any")))
    return [[*row, top] for row in rows]


__all__ = ["DOMAINS", "NASTY_NAMES", "Domain", "arrow_type", "column_names", "columns", "level_rows", "tables"]
