"""Columns of every type with usual, extreme and odd values, and hierarchies with the meaning of their labels."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import date
from functools import cache, partial
from typing import Any

import duckdb
from hypothesis import strategies as st
from reference.labels import Reader, completed_years, family, masked, place

from duckanon import Hierarchy

HUGE = 170141183460469231731687303715884105727
LONG = "repeat('long', 250000)"
# Values of each type as expressions of DuckDB.
VALUES: dict[str, list[str]] = {
    "BOOLEAN": ["true", "false"],
    "TINYINT": ["-128", "127", "0", "7"],
    "UTINYINT": ["0", "255", "7"],
    "SMALLINT": ["-32768", "32767", "5"],
    "USMALLINT": ["0", "65535"],
    "INTEGER": ["-2147483648", "2147483647", "0", "41", "42", "43"],
    "UINTEGER": ["0", "4294967295"],
    "BIGINT": ["'-9223372036854775808'", "9223372036854775807", "9007199254740993", "9007199254740992", "1"],
    "UBIGINT": ["0", "18446744073709551615", "9007199254740993"],
    "HUGEINT": [f"'{-HUGE - 1}'", f"'{-HUGE}'", f"'{HUGE}'", "0", f"'{10**38}'", f"'{8 * 10**37}'", "12", "13"],
    "UHUGEINT": ["0", f"'{2 * HUGE + 1}'", f"'{8 * 10**37}'", "5", "6"],
    "BIGNUM": [f"'{10**60}'", "'-1'", "'0'"],
    "DECIMAL(4,1)": ["999.9", "-999.9", "0", "0.1"],
    "DECIMAL(38,0)": [f"'{10**38 - 1}'", f"'{1 - 10**38}'", f"'{8 * 10**37}'", "1"],
    "DECIMAL(38,38)": [f"'0.{'9' * 38}'", f"'-0.{'9' * 38}'", "0"],
    "FLOAT": ["'nan'", "'inf'", "'-inf'", "'-0.0'", "'1e-45'", "'3.4e38'", "0.1"],
    "DOUBLE": ["'nan'", "'inf'", "'-inf'", "'-0.0'", "'5e-324'", "'1.7976931348623157e308'", "0.1", "0"],
    "VARCHAR": [
        "''",
        "'NULL'",
        "'*'",
        "'007'",
        "'7'",
        "' a'",
        "'a,\"b\"'",
        "chr(10) || 'x'",
        "'é'",
        "chr(0)",
        "'[1, 2)'",
        "'{a, b}'",
        LONG,
    ],
    "BLOB": ["''", r"'\x00\xFF'", "'a'"],
    "BIT": ["'0'", "'00'", "'0101'"],
    "DATE": [
        "'infinity'",
        "'-infinity'",
        "'5877642-06-25 (BC)'",
        "'5881580-07-10'",
        "'0044-03-15 (BC)'",
        "'10000-01-01'",
        "'2020-02-29'",
        "'2020-03-01'",
        "'1970-01-01'",
    ],
    "TIME": ["'00:00:00'", "'24:00:00'", "'23:59:59.999999'", "'12:30'"],
    "TIME_NS": ["'00:00:00'", "'23:59:59.999999999'"],
    "TIMETZ": ["'12:00:00+00'", "'13:00:00+01'", "'24:00:00-15:59:59'"],
    "TIMESTAMP": [
        "'infinity'",
        "'-infinity'",
        "'290309-12-22 (BC) 00:00:00'",
        "'294247-01-10 04:00:54.775806'",
        "'0044-03-15 (BC) 12:00:00'",
        "'10000-01-01 10:00'",
        "'2020-02-29 13:05'",
        "'2020-02-29 23:59:59.999999'",
    ],
    "TIMESTAMP_S": [
        "'infinity'",
        "'-infinity'",
        "'290309-12-22 (BC) 00:00:00'",
        "'294247-01-10 04:00:54'",
        "'2020-02-29 13:05:01'",
        "'1969-12-31 23:59:59'",
    ],
    "TIMESTAMP_MS": [
        "'infinity'",
        "'-infinity'",
        "'290309-12-22 (BC) 00:00:00'",
        "'2020-02-29 13:05:01.123'",
        "'1969-12-31 23:59:59.999'",
    ],
    "TIMESTAMP_NS": [
        "'infinity'",
        "'1677-09-22 00:00:00'",
        "'2262-04-11 23:47:16.854775806'",
        "'2020-02-29 13:05:00.123456789'",
        "'2020-02-29 23:59:59.999999999'",
    ],
    "TIMESTAMPTZ": [
        "'infinity'",
        "'-infinity'",
        "'290309-12-22 (BC) 00:00:00+00'",
        "'294247-01-10 04:00:54.775806+00'",
        "'2020-02-29 13:05:00.123456+00'",
        "'1500-01-01 00:00:00+00'",
    ],
    "TIMESTAMPTZ_NS": ["'2020-02-29 13:05:00.123456789+00'", "'1970-01-01 00:00:00+00'", "'infinity'"],
    "INTERVAL": ["'1 month'", "'30 days'", "'3.123456 seconds'", "'-1 year'"],
    "UUID": ["'00000000-0000-0000-0000-000000000000'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'"],
    "ENUM('low', 'mid', 'high', '')": ["'low'", "'high'", "''", "'mid'"],
    "JSON": ["'{\"a\": 1}'", "'null'", "'[]'"],
    "INTEGER[]": ["[]", "[1, NULL]", "[2147483647]"],
    "HUGEINT[]": [f"['{HUGE}']", "[]", "[NULL]"],
    "INTEGER[2]": ["[1, 2]", "[NULL, -1]"],
    'STRUCT(a HUGEINT, "b c" TIMETZ)': [f"{{'a': '{HUGE}', 'b c': '12:00:00+05:30'}}", "{'a': NULL, 'b c': NULL}"],
    "STRUCT(a DOUBLE)": ["{'a': '-0.0'}", "{'a': 'nan'}", "{'a': 0.1}"],
    "MAP(VARCHAR, INTERVAL)": ["MAP {'a': '1.000001 seconds'}", "MAP {}"],
    "MAP(ENUM('x', 'y'), UHUGEINT[])": [f"MAP {{'x': ['{2 * HUGE + 1}']}}"],
    "UNION(num INTEGER, str VARCHAR)": ["1", "'1'"],
    "VARIANT": ["1", "'1'"],
}


@cache
def text_of(kind: str, cell: str) -> str | None:
    """Return the text of a value, which may be NULL."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        (text,) = connection.execute(f"SELECT (({cell})::{kind})::VARCHAR").fetchone() or (None,)
        return text


@dataclass(frozen=True)
class Ladder:
    """A hierarchy and what its labels say beyond what can be read in them.

    ``chain`` gives the labels over a value; ``dealt`` says that groups are numbered, so that only who knows all values
    can say what is in them.
    """

    hierarchy: Hierarchy | None
    chain: Callable[[str], Collection[str]] | None = None
    mask: str | None = None
    dealt: int | None = None
    top: str = "*"

    def reader(self, kind: str, order: list[str]) -> Labels:
        """Return what reads the labels of a column of a type, whose texts are given in the order of the values."""
        chain = self.chain
        if self.dealt is not None:
            chain = partial(_dealt, order, self.dealt)
        return Labels(Reader(kind, order, chain, self.top), self.mask)


@dataclass(frozen=True)
class Labels:
    reader: Reader
    mask: str | None

    def covers(self, cell: str | None, value: str | None) -> bool:
        """Say whether a label is true of a value."""
        if self.reader.covers(cell, value):
            return True
        return self.mask is not None and cell is not None and value is not None and masked(self.mask, cell, value)


def _dealt(order: list[str], fanout: int, value: str) -> list[str]:
    """Return the numbered groups over a value of which ``fanout`` neighbours at a time are joined."""
    found, span = [], fanout
    # UTC may be left out of a text.
    at = order.index(value if value in order else f"{value}+00")
    while span < len(order):
        found.append(f"group {at // span + 1}/{(len(order) - 1) // span + 1}")
        span *= fanout
    return found


def _bands(kind: str, today: date, widths: list[int], value: str) -> list[str]:
    """Return how old a person is and in which bands that is."""
    if "infinity" in value:
        return []
    years = completed_years(value, kind, today)
    if years < 0:
        return ["< 0"]
    lows = [(years // width * width, width) for width in widths]
    return [str(years), *(f"[{low}, {low + width})" for low, width in lows)]


@st.composite
def ladders(draw: st.DrawFn, kind: str, cells: list[str]) -> Ladder:
    """Draw a hierarchy for a column of a type, or none, which lets one be made."""
    own = family(kind)
    known = ["made", "made", "suppress", "order", "tree", "mask", "prefix"]
    known += {"number": ["width", "cuts", "quantiles"], "date": ["dates", "age"], "moment": ["dates", "age"]}.get(
        own, []
    )
    which = draw(st.sampled_from(known))
    top = draw(st.sampled_from(["*", "*", "all"]))
    if which == "made":
        return Ladder(None)
    if which == "suppress":
        return Ladder(Hierarchy.suppress(top=top), top=top)
    if which == "order":
        fanout = draw(st.integers(2, 5))
        return Ladder(Hierarchy.order(fanout, top=top), dealt=fanout, top=top)
    if which == "tree":
        return _tree(draw, [t for cell in cells if (t := text_of(kind, cell)) is not None], top)
    if which == "mask":
        side, character = draw(st.sampled_from(["right", "left"])), draw(st.sampled_from(["*", "#"]))
        rule = Hierarchy.mask(side=side, character=character, levels=draw(st.integers(1, 9)), top=top)
        return Ladder(rule, mask=character, top=top)
    if which == "prefix":
        lengths = draw(st.sampled_from([[1], [7, 4], [4, 2, 1]]))
        return Ladder(Hierarchy.prefix(lengths, top=top), lambda v: [v[:n] or "*" for n in lengths], top=top)
    if which == "width":
        width = draw(st.sampled_from([1, 5, 0.1, 10**9, 10**36]))
        factors = draw(st.sampled_from([[], [2, 5]]))
        return Ladder(Hierarchy.intervals(width=width, factors=factors, top=top), top=top)
    if which == "cuts":
        cuts = sorted(draw(st.sets(st.sampled_from([-(10**30), -1, 0, 0.1, 7, 42, 10**18]), min_size=1)))
        return Ladder(Hierarchy.intervals(cuts=cuts, top=top), top=top)
    if which == "quantiles":
        return Ladder(Hierarchy.quantiles(draw(st.sampled_from([2, 4])), top=top), top=top)
    if which == "age":
        today = draw(st.sampled_from([date(2024, 2, 29), date(2023, 3, 1), date(2020, 2, 28)]))
        widths = draw(st.sampled_from([[5, 10], [1, 20]]))
        return Ladder(Hierarchy.age(today, widths, top=top), partial(_bands, kind, today, widths), top=top)
    levels = draw(
        st.sampled_from([["day", "week"], ["day", "month", "year"], ["quarter", "decade"], ["year"], ["week"]])
    )
    return Ladder(Hierarchy.dates(levels, top=top), top=top)


def _tree(draw: st.DrawFn, texts: list[str], top: str) -> Ladder:
    """A table that lists values: those that it leaves out are published as the top label, or refused."""
    listed = [t for t in dict.fromkeys(texts) if t not in (top, "*")]
    left_out = draw(st.sampled_from([0, 0, 1]))
    listed = listed[: len(listed) - left_out]
    if not listed:
        return Ladder(None)
    group = {t: f"g{draw(st.integers(0, 2))}" for t in listed}
    above = {g: f"h{i % 2}" for i, g in enumerate(sorted(set(group.values())))}
    table: dict[str, Any] = {"leaf": listed, "one": [group[t] for t in listed]}
    table["two"] = [above[g] for g in table["one"]]
    if len(set(table["two"])) == 1:
        # A last level with one label is the top.
        top = table["two"][0]
    return Ladder(
        Hierarchy.from_table(table, top=top), lambda v: [group[v], above[group[v]]] if v in group else [], top=top
    )


def between(kind: str, ends: tuple[str | None, ...], value: str | None) -> bool:
    """Say whether a value is between two bounds, of which either may be open; of NULL both are."""
    if value is None:
        return ends == (None, None)
    low, high = (None if end is None else place(end, kind) for end in ends)
    own = place(value, kind)
    return (low is None or low <= own) and (high is None or own <= high)
