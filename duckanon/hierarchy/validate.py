"""Checks whether a table is a hierarchy: total, functional, nested, rooted. Messages have no values in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duckanon.errors import HierarchyError, did_you_mean
from duckanon.io.paths import is_file, is_there

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.hierarchy.table import Hierarchy

_SHOWN = 5


@dataclass(frozen=True)
class Validation:
    """The result of a check: with ``problems`` the table cannot be used, with ``notes`` it can."""

    leaves: int
    height: int | None
    """Levels above the leaves; None for a rule if it depends on the data."""
    duplicates: int = 0
    """Leaves that stand in more than one row."""
    gaps: int = 0
    """Empty cells where a label should be."""
    not_nested: int = 0
    """Labels with more than one parent, over all levels."""
    loops: int = 0
    """Labels from which the way up leads back to themselves."""
    ragged: int = 0
    """Lines with another number of cells than the first."""
    tops: int = 1
    """Different labels on the last level; more than one and a level is added."""
    missing: int | None = None
    """Data values without a row; None if no values were given."""
    rule: str | None = None
    """The name of the rule, if the hierarchy is a rule and not a table."""
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the table can be used."""
        return not self.problems

    @property
    def functional(self) -> bool:
        """Whether each leaf has one row and no cell is empty."""
        return not (self.duplicates or self.gaps or self.ragged)

    @property
    def nested(self) -> bool:
        """Whether equal labels have equal parents, and no way up is a loop."""
        return not (self.not_nested or self.loops)

    @property
    def rooted(self) -> bool:
        """Whether the last level has one label."""
        return self.tops == 1

    @property
    def total(self) -> bool | None:
        """Whether every data value has a row; None if no values were given."""
        return None if self.missing is None else self.missing == 0


def validate(
    data: Hierarchy | pa.Table | str | Path, values: object = None, separator: str = ";", connection: Any = None
) -> Validation:
    """Check a hierarchy, a levels table (leaf first) or a file, and whether it knows all of ``values``.

    Parameters
    ----------
    data : Hierarchy, pyarrow.Table, str or Path
        A text is the name of a saved or shipped hierarchy, or the path of a CSV file or of a TOML file with a rule.
    values : list, Arrow array or series, optional
        Values that must have a row, compared as text.
    separator : str
        Of a CSV file.
    connection : optional
        A DuckDB connection or an engine, in which saved hierarchies are looked up.

    Examples
    --------
    >>> import pyarrow as pa
    >>> found = validate(pa.table({"leaf": ["a", "b"], "up": ["x", "y"]}), values=["a", "c"])
    >>> found.ok, found.rooted, found.missing
    (False, False, 1)
    >>> found.problems
    ('1 of 2 given values has no row.',)
    """
    import pyarrow as pa

    from duckanon.hierarchy.store import load, saved
    from duckanon.hierarchy.table import Hierarchy

    if isinstance(data, str) and connection is not None and data in saved(connection):
        data = load(connection, data)
    if isinstance(data, str | Path):
        return _validate_file(_existing(data), values, separator, connection)
    if isinstance(data, Hierarchy):
        if data.levels is None:
            return _validate_rule(data, values, connection)
        data = data.levels
    if not isinstance(data, pa.Table):
        raise TypeError("validate takes a Hierarchy, an Arrow table, a path or the name of a shipped hierarchy.")
    return inspect(data, values)


def _existing(spec: str | Path) -> Path:
    """Return the path of a shipped hierarchy of that name, else the text as a path."""
    from duckanon.hierarchy.store import shipped

    if isinstance(spec, Path) or spec.lower().endswith((".csv", ".toml")):
        return Path(spec)
    ready = shipped()
    if spec not in ready and not is_there(spec):
        hint = did_you_mean(spec, ready)
        raise HierarchyError(f"There is no hierarchy file {spec!r}, and no hierarchy of that name is shipped.{hint}")
    return ready.get(spec, Path(spec))


def _validate_file(path: Path, values: object, separator: str, connection: Any) -> Validation:
    from duckanon.hierarchy.files import read_csv
    from duckanon.hierarchy.store import from_path

    if path.suffix.lower() != ".toml":
        read = read_csv(path, separator)
        return inspect(read.table, values, read.lines, read.ragged, read.flat)
    try:
        hierarchy = from_path(path)
    except HierarchyError as error:
        if not is_file(path):
            raise
        return Validation(0, None, tops=0, rule="unknown", problems=(str(error),))
    # A rule file may as well name a CSV file.
    if hierarchy.levels is not None:
        return inspect(hierarchy.levels, values)
    return _validate_rule(hierarchy, values, connection)


def _validate_rule(hierarchy: Hierarchy, values: object, connection: Any) -> Validation:
    """Check the chain of a rule and its labels of values; its parameters were checked when it was made."""
    from duckanon.engine.base import workspace
    from duckanon.hierarchy.build import column
    from duckanon.hierarchy.chain import chain, height

    assert hierarchy.rule is not None
    name, leaves, missing = hierarchy.rule.name, 0, None
    problems: list[str] = []
    levels = hierarchy.height
    with workspace(connection) as engine:
        try:
            levels = height(chain(hierarchy, engine))
            if values is not None:
                dictionary, type_name = column(engine, values)
                bound = hierarchy.bind(engine, dictionary.table, "values", type_name, "top")
                leaves, levels, missing = dictionary.size, bound.height, bound.unknown
                engine.drop(dictionary.table, bound.tree, bound.leaves)
        except HierarchyError as error:
            problems.append(str(error))
    if missing:
        problems.append(f"{missing} of {leaves} given values {'has' if missing == 1 else 'have'} no row.")
    return Validation(leaves, levels, missing=missing, rule=name, problems=tuple(problems))


def inspect(
    levels: pa.Table,
    values: object = None,
    lines: Sequence[int] | None = None,
    ragged: Sequence[int] = (),
    flat: str | None = None,
) -> Validation:
    """Check a table of VARCHAR columns.

    ``lines`` are the rows' numbers in their file, ``ragged`` those left out, ``flat`` says what is wrong with a file
    that has no level above its leaves.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = [levels.column(i).combine_chunks() for i in range(levels.num_columns)]
    height, problems, notes = max(0, len(columns) - 1), [], []
    if ragged:
        problems.append(
            f"{_lines(ragged)} {'has' if len(ragged) == 1 else 'have'} another number of cells than line 1."
        )
    if not columns or not len(levels):
        return Validation(0, height, ragged=len(ragged), problems=("The hierarchy is empty.", *problems))
    numbers = pa.array(lines if lines is not None else range(1, len(levels) + 1), pa.int64())
    rows = "Line" if lines is not None else "Row"
    leaf = columns[0]
    counted = leaf.value_counts()
    repeated = counted.field("values").filter(pc.greater(counted.field("counts"), pa.scalar(1, pa.int64())))
    if len(repeated):
        where = numbers.filter(pc.is_in(leaf, value_set=repeated)).to_pylist()
        problems.append(
            f"{_many(len(repeated), 'leaf is', 'leaves are')} in more than one row: {_lines(where, rows).lower()}."
        )
    gaps = _gaps(columns)
    for level, mask in gaps.items():
        where = numbers.filter(mask).to_pylist()
        problems.append(
            f"{_many(len(where), 'empty cell', 'empty cells')} at level {level}: {_lines(where, rows).lower()}."
        )
    not_nested = 0
    for level in range(1, height):
        several = _parents(columns[level], columns[level + 1])
        not_nested += several
        if several:
            problems.append(
                f"{_many(several, 'label', 'labels')} of level {level} with more than one parent at level {level + 1}."
            )
    loops = _on_loops(columns)
    if loops:
        problems.append(f"{loops} labels lie on a loop: the way up from each leads back to it.")
    if flat is not None:
        problems.append(flat)
    tops = len(pc.unique(columns[-1]))
    if tops > 1 and height:
        notes.append(f"The last level has {tops} labels, so a level with one is added.")
    missing = None
    if values is not None:
        given = _texts(values)
        missing = pc.sum(pc.invert(pc.is_in(given, value_set=leaf))).as_py() or 0
        if missing:
            problems.append(f"{missing} of {len(given)} given values {'has' if missing == 1 else 'have'} no row.")
    return Validation(
        leaves=len(leaf),
        height=height,
        duplicates=len(repeated),
        gaps=sum(pc.sum(mask).as_py() or 0 for mask in gaps.values()),
        not_nested=not_nested,
        loops=loops,
        ragged=len(ragged),
        tops=tops,
        missing=missing,
        problems=tuple(problems),
        notes=tuple(notes),
    )


def _gaps(columns: Sequence[Any]) -> dict[int, Any]:
    """Return where labels are NULL or empty, by level; the row of the NULL leaf may leave out all but the last."""
    import pyarrow as pa
    import pyarrow.compute as pc

    with_leaf = pc.is_valid(columns[0])
    gaps = {}
    for level in range(1, len(columns)):
        empty = pc.fill_null(pc.equal(columns[level], pa.scalar("", columns[level].type)), True)
        if level < len(columns) - 1:
            empty = pc.and_(empty, with_leaf)
        if pc.any(empty).as_py():
            gaps[level] = empty
    return gaps


def _parents(child: Any, parent: Any) -> int:
    """Return how many labels have more than one parent."""
    import numpy as np

    low, high = (
        c.dictionary_encode(null_encoding="encode").indices.to_numpy().astype(np.int64) for c in (child, parent)
    )
    parents = int(high.max()) + 1
    pairs = np.unique(low * parents + high)
    return int((np.bincount(pairs // parents) > 1).sum())


def _on_loops(columns: Sequence[Any]) -> int:
    """Return how many labels, over all levels, are their own ancestors.

    A label repeated on the next level fills up a short branch and is not counted. A top ``*`` ends every path, although
    it may also be a value of the data.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    if pc.unique(columns[-1]).to_pylist() == ["*"]:
        columns = columns[:-1]
    ways = []
    for child, parent in pairwise(columns):
        below, above = child.dictionary_encode(), parent.dictionary_encode()
        both = pc.and_(child.is_valid(), parent.is_valid())
        first, second = (e.indices.filter(both).to_numpy().astype(np.int64) for e in (below, above))
        pairs = np.unique(first * max(len(above.dictionary), 1) + second)
        low, high = np.divmod(pairs, max(len(above.dictionary), 1))
        steps = pa.table({"child": below.dictionary.take(low), "parent": above.dictionary.take(high)})
        ways.append(steps.filter(pc.not_equal(steps["child"], steps["parent"])))
    if not ways:
        return 0
    steps_up = pa.concat_tables(ways)
    # A label without children is not on a loop, nor is one whose children are not: nothing is left of most hierarchies.
    before = len(steps_up) + 1
    while 0 < len(steps_up) < before:
        before = len(steps_up)
        steps_up = steps_up.filter(pc.is_in(steps_up["child"], value_set=steps_up["parent"].combine_chunks()))
    if not len(steps_up):
        return 0
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ends = pa.concat_arrays([*steps_up["child"].chunks, *steps_up["parent"].chunks]).dictionary_encode()
    below, above = np.split(ends.indices.to_numpy(), 2)
    size = len(ends.dictionary)
    graph = coo_array((np.ones(len(below), dtype=np.int8), (below, above)), shape=(size, size))
    _, component = connected_components(graph, connection="strong")
    sizes = np.bincount(component)
    return int(sizes[sizes > 1].sum())


def _texts(values: object) -> Any:
    from duckanon.hierarchy.files import as_text

    return as_text(values).column(0).combine_chunks().unique()


def _many(count: int, one: str, more: str) -> str:
    return f"{count} {one if count == 1 else more}"


def _lines(numbers: Sequence[int], word: str = "Line") -> str:
    shown = ", ".join(str(n) for n in numbers[:_SHOWN])
    more = f" and {len(numbers) - _SHOWN} more" if len(numbers) > _SHOWN else ""
    return f"{word if len(numbers) == 1 else word + 's'} {shown}{more}"
