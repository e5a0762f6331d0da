"""What holds for every hierarchy, tried on many: functional, nested, rooted, every value where its label says."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
from hypothesis import assume, given, reject
from hypothesis import strategies as st

from duckanon.engine.duckdb.engine import DuckDBEngine
from duckanon.errors import HierarchyError
from duckanon.hierarchy import Hierarchy, auto, validate
from duckanon.hierarchy.auto import grid_widths
from duckanon.hierarchy.rules import ColumnType, Field, random_tree

_BOUNDS = re.compile(r"\[(.+), (.+)\)|>= (.+)|< (.+)")
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
NASTY = st.one_of(
    TEXT, st.text("\";\n\r,'*{} \\", max_size=6), st.sampled_from(["", "NULL", '"', "é😀", "\ufeff", " a "])
)


# One engine for all examples: making one costs more than using it.
ENGINE = DuckDBEngine(threads=1)
TYPES = {
    pa.float64(): "DOUBLE",
    pa.float32(): "FLOAT",
    pa.int64(): "BIGINT",
    pa.decimal128(20, 4): "DECIMAL(20,4)",
    pa.string(): "VARCHAR",
    pa.date32(): "DATE",
}
VALUES = """
CREATE OR REPLACE TEMPORARY TABLE vals AS
SELECT (row_number() OVER (ORDER BY value NULLS LAST) - 1)::INTEGER AS code, value, value::VARCHAR AS text, n
FROM (SELECT value, count(*) AS n FROM incoming GROUP BY value)
"""
BOUND = "SELECT v.text, t.* EXCLUDE (code, known) FROM {} AS t JOIN vals AS v USING (code) ORDER BY code"
NAMES = [f"l{i}" for i in range(20)]
LABELS = "SELECT v.text, q.* EXCLUDE (code), '*' FROM vals AS v LEFT JOIN ({}) AS q USING (code) ORDER BY v.code"


def field(column: pa.Array) -> Field:
    """Put the distinct values of a column where rules read them."""
    ENGINE.register("incoming", pa.table({"value": column}))
    ENGINE._connection.execute(VALUES)
    ENGINE.unregister("incoming")
    return Field(ENGINE, "vals", "values", ColumnType.parse(TYPES[column.type]))


def applied(hierarchy: Hierarchy, column: pa.Array) -> Hierarchy:
    """Return what ``materialise`` returns, from the rule's own labels: a third of its statements, and of its time."""
    assert hierarchy.rule is not None
    labelling = hierarchy.rule.label(field(column))
    rows = ENGINE._connection.execute(LABELS.format(labelling.query.sql(dialect="duckdb"))).fetchall()
    ENGINE.drop(*labelling.scratch)
    columns = [pa.array([row[i] for row in rows], pa.string()) for i in range(labelling.depth + 2)]
    return Hierarchy(pa.table(columns, names=[f"l{i}" for i in range(labelling.depth + 2)]))


def nested(levels: pa.Table) -> None:
    """Check a table of levels without the code under test."""
    rows = list(zip(*(column.to_pylist() for column in levels.columns), strict=True))
    assert len({row[0] for row in rows}) == len(rows), "a leaf stands twice"
    for level in range(1, levels.num_columns - 1):
        parents: dict[str | None, set[str | None]] = {}
        for row in rows:
            parents.setdefault(row[level], set()).add(row[level + 1])
        assert all(len(found) == 1 for found in parents.values()), "a label has two parents"
    assert len({row[-1] for row in rows}) == 1, "there is more than one top"
    assert rows[0][-1] is not None
    assert validate(levels).ok


def inside(label: str, value: Decimal) -> bool:
    match = _BOUNDS.fullmatch(label)
    assert match is not None, "not an interval"
    low, high, least, below = (None if g is None else Decimal(g) for g in match.groups())
    if least is not None:
        return value >= least
    if below is not None:
        return value < below
    assert low is not None
    assert high is not None
    return low <= value < high


# Random trees


@given(st.integers(0, 200), st.integers(0, 2**64), st.booleans(), st.none() | st.integers(2, 10))
def test_random_trees_are_trees(size: int, seed: int, ordered: bool, most: int | None) -> None:
    levels = [level.tolist() for level in random_tree(size, seed, ordered, most)]
    again = [level.tolist() for level in random_tree(size, seed, ordered, most)]
    assert levels == again
    coarser: list[int] = [0] * size
    for level in reversed(levels):
        assert len(level) == size
        groups = [[i for i in range(size) if level[i] == g] for g in range(max(level) + 1)]
        # Every part is split again, and none is a single value: all leaves are at one depth.
        assert all(len(group) >= 2 for group in groups)
        children: dict[int, set[int]] = {}
        for i in range(size):
            children.setdefault(coarser[i], set()).add(level[i])
        assert all(2 <= len(c) <= (most or size) for c in children.values())
        assert sum(len(c) for c in children.values()) == len(groups), "a group has two parents"
        if ordered:
            assert all(group == list(range(group[0], group[-1] + 1)) for group in groups)
        coarser = level


@given(st.sets(TEXT, min_size=1, max_size=12), st.integers(0, 1000), st.booleans())
def test_random_hierarchies_nest(values: set[str], seed: int, ordered: bool) -> None:
    made = applied(Hierarchy.random(seed, ordered=ordered, max_children=3), pa.array(sorted(values)))
    assert made.levels is not None
    assert len(made.levels) == len(values)
    nested(made.levels)


@given(st.sets(NASTY, min_size=1, max_size=12), st.integers(2, 5))
def test_order_nests_whatever_the_values_hold(values: set[str], fanout: int) -> None:
    made = applied(Hierarchy.order(fanout), pa.array(sorted(values)))
    assert made.levels is not None
    assert made.height == max(1, math.ceil(round(math.log(len(values), fanout), 9)))
    nested(made.levels)


# Intervals

# Numbers at the ends of what a DOUBLE holds, close to each other more often than chance would have them.
EXTREMES = st.sampled_from(
    [0.0, -0.0, 5e-324, -1e-300, 0.1, 1e16, 1e300, -1.7e308, 1.7e308, math.inf, -math.inf, math.nan]
)
FLOATS = EXTREMES | st.floats(width=64, allow_nan=True, allow_infinity=True, allow_subnormal=True)
SINGLES = st.sampled_from([0.0, 2.0**-149, 2.0**127, -(2.0**127), math.inf, math.nan]) | st.floats(width=32)
WIDTHS = st.one_of(
    st.integers(1, 1000),
    st.decimals("0.001", "50", places=3).filter(lambda d: d > 0),
    st.sampled_from(["0.1", "0.7", "1e-7", "1e12", "1e30", "1e300", "1e308"]),
)
ORIGINS = st.one_of(st.just(0), st.integers(-1000, 1000), st.decimals("-5", "5", places=2))
FACTORS = st.lists(st.integers(2, 10), max_size=2)


def grid(width: Decimal, origin: Decimal, factors: list[int]) -> Hierarchy:
    """Return the rule; the few combinations that need more digits than a number has are refused, and not tried."""
    try:
        return Hierarchy.intervals(width=width, origin=origin, factors=factors)
    except HierarchyError:
        reject()


def covered(made: Hierarchy) -> None:
    assert made.levels is not None
    nested(made.levels)
    for row in made.preview(10_000):
        if row[0] is None:
            assert set(row[1:-1]) <= {None}
        elif row[0] in {"nan", "-nan"}:
            assert set(row[1:-1]) <= {"nan"}
        else:
            assert all(label is not None and inside(label, Decimal(row[0])) for label in row[1:-1])


@given(st.lists(FLOATS, min_size=1, max_size=8), WIDTHS, ORIGINS, FACTORS)
def test_intervals_hold_every_double(values: list[float], width: Decimal, origin: Decimal, factors: list[int]) -> None:
    covered(applied(grid(width, origin, factors), pa.array(values, pa.float64())))


@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=10), WIDTHS, FACTORS)
def test_doubles_on_a_bound_lie_above_it(steps: list[int], width: Decimal, factors: list[int]) -> None:
    values = [float(Decimal(width) * step) for step in steps]
    made = applied(grid(width, Decimal(0), factors), pa.array(values, pa.float64()))
    for row in made.preview(1000):
        low = _BOUNDS.fullmatch(row[1] or "")
        assert low is not None
        assert low.group(1) is None or float(low.group(1)) == float(row[0] or "")


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.none(), min_size=1, max_size=8), WIDTHS, ORIGINS, FACTORS)
def test_intervals_hold_every_integer(
    values: list[int | None], width: Decimal, origin: Decimal, factors: list[int]
) -> None:
    covered(applied(grid(width, origin, factors), pa.array(values, pa.int64())))


@given(
    st.lists(st.decimals(-(10**12), 10**12, places=4, allow_nan=False), min_size=1, max_size=8),
    WIDTHS,
    ORIGINS,
    FACTORS,
)
def test_intervals_hold_every_decimal(
    values: list[Decimal], width: Decimal, origin: Decimal, factors: list[int]
) -> None:
    covered(applied(grid(width, origin, factors), pa.array(values, pa.decimal128(20, 4))))


@given(
    st.lists(st.floats(width=64), min_size=1, max_size=8),
    st.sets(st.decimals("-100", "100", places=2), min_size=1, max_size=12),
    st.integers(1, 3),
)
def test_cuts_hold_every_value(values: list[float], cuts: set[Decimal], every: int) -> None:
    finest = sorted(cuts)
    levels = [finest, finest[::every]]
    covered(applied(Hierarchy.intervals(cuts=levels), pa.array(values, pa.float64())))


@given(st.lists(st.floats(width=64), min_size=1, max_size=12), st.sampled_from([(4, [2]), (12, [6, 3]), (7, [])]))
def test_quantiles_hold_every_value(values: list[float], bins: tuple[int, list[int]]) -> None:
    covered(applied(Hierarchy.quantiles(*bins), pa.array(values, pa.float64())))


@given(
    st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False), st.booleans()
)
def test_made_grids_nest_and_are_round(low: float, high: float, integer: bool) -> None:
    widths = grid_widths(min(low, high), max(low, high), integer)
    assert len(widths) < 12
    for width in widths:
        assert width.normalize().as_tuple().digits in {(1,), (5,)}
    assert all(b % a == 0 and b > a for a, b in pairwise(widths))


@given(
    st.lists(FLOATS | st.none(), min_size=1, max_size=6).map(lambda v: pa.array(v, pa.float64()))
    | st.lists(SINGLES | st.none(), min_size=1, max_size=6).map(lambda v: pa.array(v, pa.float32()))
)
def test_a_hierarchy_is_made_for_any_floats(column: pa.Array) -> None:
    values, name = field(column).values, TYPES[column.type]
    levels = auto(ENGINE, values, "values", name).bind(ENGINE, values, "values", name)
    rows = ENGINE._connection.execute(BOUND.format(levels.tree)).fetchall()
    ENGINE.drop(levels.tree, levels.leaves)
    made = pa.table(
        [pa.array([row[i] for row in rows], pa.string()) for i in range(levels.height + 1)],
        names=NAMES[: levels.height + 1],
    )
    assert levels.unknown == 0
    covered(Hierarchy(made))


# Texts


@given(st.sets(NASTY, min_size=1, max_size=8), st.sampled_from(["left", "right"]), st.integers(1, 6))
def test_masks_nest_and_hide(values: set[str], side: str, levels: int) -> None:
    made = applied(Hierarchy.mask(side=side, character="#", levels=levels), pa.array(sorted(values)))
    assert made.levels is not None
    nested(made.levels)
    for row in made.preview(1000):
        value = row[0] or ""
        for masked in range(1, levels + 1):
            hidden = min(masked, len(value))
            kept = value[: len(value) - hidden] + "#" * hidden if side == "right" else "#" * hidden + value[hidden:]
            assert row[masked] == (kept or "#")


@given(st.sets(NASTY, min_size=1, max_size=8), st.lists(st.sets(st.integers(1, 8), min_size=1), min_size=1, max_size=3))
def test_masked_positions_nest_and_hide(values: set[str], chosen: list[set[int]]) -> None:
    positions: list[set[int]] = []
    for more in chosen:
        larger = more | (positions[-1] if positions else set())
        if not positions or larger != positions[-1]:
            positions.append(larger)
    made = applied(Hierarchy.mask(positions=positions), pa.array(sorted(values)))
    assert made.levels is not None
    nested(made.levels)
    for row in made.preview(1000):
        for level, masked in enumerate(positions, 1):
            assert row[level] == "".join("*" if i in masked else c for i, c in enumerate(row[0] or "*", 1))


@given(st.sets(NASTY, min_size=1, max_size=8), st.sets(st.integers(1, 8), min_size=1, max_size=4))
def test_levels_of_prefixes_nest(values: set[str], lengths: set[int]) -> None:
    made = applied(Hierarchy.prefix(sorted(lengths, reverse=True)), pa.array(sorted(values)))
    assert made.levels is not None
    nested(made.levels)


@given(
    st.lists(st.dates() | st.none(), min_size=1, max_size=8),
    st.sampled_from([Hierarchy.dates(), Hierarchy.dates(["week"])]) | st.dates().map(Hierarchy.age),
)
def test_dates_and_ages_nest(values: list[object], rule: Hierarchy) -> None:
    table = applied(rule, pa.array(values, pa.date32())).levels
    assert table is not None
    nested(table)


# Loops


@given(st.lists(st.lists(st.sampled_from("abcdef"), min_size=3, max_size=3), min_size=1, max_size=6))
def test_loops_are_counted(rows: list[list[str]]) -> None:
    up: dict[str, set[str]] = {}
    for below, above in (pair for row in rows for pair in pairwise(row)):
        up.setdefault(below, set()).add(above)
    reached = {label: set(above) - {label} for label, above in up.items()}
    for _ in reached:
        reached = {
            label: found.union(*(reached.get(a, set()) for a in found)) if found else found
            for label, found in reached.items()
        }
    table = pa.table([[row[i] for row in rows] for i in range(3)], names=["a", "b", "c"])
    assert validate(table).loops == sum(label in found for label, found in reached.items())


# Files


@given(st.data())
def test_a_file_is_read_as_it_was_written(tmp_path_factory: object, data: st.DataObject) -> None:
    leaves = data.draw(st.lists(NASTY | st.none(), min_size=1, max_size=12, unique=True))
    labels = NASTY.filter(bool)
    middle = [data.draw(labels) for _ in leaves]
    above = {label: data.draw(labels) for label in set(middle)}
    table = pa.table([pa.array(leaves, pa.string()), middle, [above[m] for m in middle]], names=["a", "b", "c"])
    assume(not validate(table).loops)
    made = Hierarchy.from_table(table)
    assert made.levels is not None
    nested(made.levels)
    separator = data.draw(st.sampled_from(";,\t|"))
    path: Path = tmp_path_factory.mktemp("csv") / "h.csv"  # type: ignore[attr-defined]
    made.to_csv(path, separator)
    assert Hierarchy.from_csv(path, separator).preview(1000) == made.preview(1000)
