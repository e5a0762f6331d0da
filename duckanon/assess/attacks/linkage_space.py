"""The space of linkage attacks: published tuples and people as its points, and how to link one to the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.assess.attacks.linkage_axis import MISSING, Column, LinkageAxis, read_column, span_label
from duckanon.assess.labels.levels import column_levels
from duckanon.encoding.dictionaries import dictionary
from duckanon.engine.sql.axes import is_null
from duckanon.engine.sql.relations import cast, col, named, same, subquery, table, text, union_all
from duckanon.errors import HierarchyError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from duckanon.assess.assessed_table import AssessedTable
    from duckanon.assess.attacks.base import Case
    from duckanon.hierarchy import Levels

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


PART, FULL, ALL = "part", "full", "all"
"""Adversaries: one who knows half of the quasi-identifiers, all of them, or every other column besides."""


@dataclass(frozen=True)
class People:
    """People in the places of the columns: those attacked of ``total``, and where each one's own row is published.

    ``own`` is the number of the person's published tuple, -1 where there is none; None where that is unknown.
    """

    points: Floats
    total: int
    own: Ints | None = None
    rows: Ints | None = None
    """The numbers of their rows in the table, from 0 on."""

    def __len__(self) -> int:
        return len(self.points)

    @property
    def sampled_from(self) -> int | None:
        """How many there are, where not all are attacked."""
        return self.total if len(self) < self.total else None

    @property
    def sample_note(self) -> str:
        """A remark, as what fits one of a sample may fit others, too."""
        return "" if self.sampled_from is None else f"Searched among {len(self)} of {self.total} rows."

    def sorted_by(self, column: int) -> tuple[NDArray[np.int32], Floats]:
        """Return the people by their places on a column, and those places."""
        import numpy as np

        if column not in self._sorted:
            order = np.argsort(self.points[:, column], kind="stable").astype(np.int32)
            self._sorted[column] = order, self.points[order, column]
        return self._sorted[column]

    @cached_property
    def _sorted(self) -> dict[int, tuple[NDArray[np.int32], Floats]]:
        return {}

    def first(self, most: int) -> People:
        """Return some of them; they were drawn in no order."""
        if len(self) <= most:
            return self
        return People(self.points[:most], self.total, None if self.own is None else self.own[:most])


@dataclass(frozen=True, eq=False)
class Projection:
    """The published tuples on some of the columns: ``cells`` has each once, with the number of its rows.

    ``of`` maps each tuple of the whole to one of these.
    """

    space: LinkageSpace
    columns: tuple[int, ...]
    cells: NDArray[np.int32]
    sizes: Ints
    of: Ints

    @cached_property
    def places(self) -> Any:
        """What the cells cover, as kernels read it."""
        import numpy as np

        from duckanon.kernels.linking import Places

        axes = [self.space.axes[j] for j in self.columns]
        offset = np.cumsum([0, *(len(a.low) for a in axes)])[:-1].astype(np.int64)
        shift = np.cumsum([0, *(len(a.members) for a in axes)])[:-1]
        start = [np.where(a.start < 0, -1, a.start + s) for a, s in zip(axes, shift, strict=True)]
        return Places(
            np.array([a.ordered for a in axes]),
            offset,
            np.concatenate([a.low for a in axes]),
            np.concatenate([a.high for a in axes]),
            np.concatenate(start).astype(np.int64),
            np.concatenate([a.stop + s for a, s in zip(axes, shift, strict=True)]).astype(np.int64),
            np.concatenate([a.members for a in axes]),
        )

    @cached_property
    def _tree(self) -> Any:
        from duckanon.kernels.linking import grow, new_tree

        tree = new_tree(self.cells)
        grow(self.places, self.cells, tree)
        return tree

    def points(self, people: People) -> Floats:
        """Return what is known of people on these columns."""
        import numpy as np

        return np.ascontiguousarray(people.points[:, list(self.columns)])

    def nearest(self, people: People) -> Links:
        """Return the nearest tuples of each person by Gower's distance, all of them where several are as near."""
        import numpy as np

        from duckanon.kernels.linking import gather, least

        points = self.points(people)
        far, counts = np.empty(len(points)), np.empty(len(points), dtype=np.int64)
        least(self.places, self.cells, self._tree, points, far, counts)
        starts = np.concatenate(([0], np.cumsum(counts)))
        nearest = np.empty(starts[-1], dtype=np.int64)
        gather(self.places, self.cells, self._tree, points, far, starts, nearest)
        return Links(self, starts, nearest, far / len(self.columns))

    def fitting(self, cells: NDArray[np.int32], people: People, enough: int) -> Ints:
        """Return how many people each tuple of cells covers; counting ends at ``enough``.

        Only people within the bounds of the most selective cell are compared.
        """
        import numpy as np

        from duckanon.kernels.linking import fitting

        ranges = []
        for at, column in enumerate(self.columns):
            axis, (_, places) = self.space.axes[column], people.sorted_by(column)
            column_cells = cells[:, at]
            sides = (
                np.searchsorted(places, axis.low[column_cells], "left"),
                np.searchsorted(places, axis.high[column_cells], "right"),
            )
            ranges.append(np.stack(sides))
        begins, ends = np.stack(ranges, axis=1)
        narrowest = (ends - begins).argmin(axis=0)
        counts = np.zeros(len(cells), dtype=np.int64)
        columns = np.array(self.columns)
        for at, column in enumerate(self.columns):
            here = np.flatnonzero(narrowest == at)
            fits, order = np.empty(len(here), dtype=np.int64), people.sorted_by(column)[0]
            some = begins[at, here], ends[at, here]
            fitting(self.places, cells[here], people.points, columns, order, *some, enough, fits)
            counts[here] = fits
        return counts


@dataclass(frozen=True, eq=False)
class Links:
    """The tuples that an attacker takes for each person's: those of person i are ``found`` from ``starts[i]`` on."""

    view: Projection
    starts: Ints
    found: Ints
    far: Floats

    @cached_property
    def rows(self) -> Ints:
        """How many published rows each person is linked to."""
        import numpy as np

        total = np.concatenate(([0], np.cumsum(self.view.sizes[self.found])))
        return total[self.starts[1:]] - total[self.starts[:-1]]

    def identified(self, own_tuples: Ints) -> Floats:
        """Return the chance that a row drawn from those linked is the person's own."""
        import numpy as np

        person = np.repeat(np.arange(len(own_tuples)), np.diff(self.starts))
        mine = np.where(own_tuples >= 0, self.view.of[np.maximum(own_tuples, 0)], -1)
        hit = np.zeros(len(own_tuples), dtype=bool)
        hit[person[self.found == mine[person]]] = True
        return np.where(hit, 1.0 / self.rows, 0.0)

    def guessed(self, secret: SecretColumn, people: People) -> Floats:
        """Return how often the guess of a secret from the rows linked is right, person by person."""
        import numpy as np

        from duckanon.kernels.linking import votes

        begins, codes, sizes = secret.by_tuple(self.view)
        hits = np.empty(len(people))
        truth, tolerance = secret.truth(people), secret.tolerance if secret.measured else -1.0
        votes(self.starts, self.found, begins, codes, sizes, truth, secret.numbers, tolerance, hits)
        return hits


@dataclass(frozen=True, eq=False)
class SecretColumn:
    """A column that attackers want to know: its values numbered, and whether a guess may be near or must be right."""

    space: LinkageSpace
    column: int
    tolerance: float
    measured: bool
    places: Floats
    numbers: Floats

    @property
    def name(self) -> str:
        """The column's name."""
        return self.space.axes[self.column].name

    @cached_property
    def published(self) -> Ints:
        """The code of the value in each published tuple."""
        import numpy as np

        return np.searchsorted(self.places, self.space.axes[self.column].low[self.space.cells[:, self.column]])

    def truth(self, people: People) -> Ints:
        """Return the codes of people's values."""
        import numpy as np

        return np.searchsorted(self.places, people.points[:, self.column])

    def by_tuple(self, view: Projection) -> tuple[Ints, Ints, Ints]:
        """Return where the values of each tuple of a view begin, their codes and numbers of rows."""
        import numpy as np

        tuples, at = grouped([view.of, self.published], [len(view.sizes), len(self.places)])
        sizes = np.bincount(at, weights=self.space.sizes, minlength=len(tuples)).astype(np.int64)
        owner = view.of[tuples]
        order = np.lexsort((self.published[tuples], owner))
        begins = np.searchsorted(owner[order], np.arange(len(view.sizes) + 1))
        return begins, self.published[tuples][order], sizes[order]

    def constant(self, people: People) -> float:
        """Return how often the best single guess for everybody, taken from the release, is right: the base rate."""
        import numpy as np

        counts = np.bincount(self.published, weights=self.space.sizes, minlength=len(self.places))
        truth = self.truth(people)
        if not self.measured:
            return float((truth == counts.argmax()).mean())
        present = np.flatnonzero(~np.isnan(self.numbers))
        numbers, weight = self.numbers[present], np.concatenate(([0.0], np.cumsum(counts[present])))
        slack = self.tolerance
        # A guess g is right for every x with |g - x| <= slack |x|: between g / (1 + slack) and g / (1 - slack).
        ends = np.sort(np.stack((numbers / (1 + slack), numbers / (1 - slack))), axis=0)
        first, last = np.searchsorted(numbers, ends[0], "left"), np.searchsorted(numbers, ends[1], "right")
        guess = numbers[(weight[last] - weight[first]).argmax()] if len(present) else np.nan
        theirs = self.numbers[truth]
        return float((np.abs(guess - theirs) <= slack * np.abs(theirs)).mean())


FEW_NUMBERS = 20
"""A number with no more different values is guessed exactly, as a category is."""


@dataclass(frozen=True, eq=False)
class LinkageSpace:
    """The release and people in the same places.

    ``cells[i, j]`` is the cell of published tuple i on column j; ``sizes`` counts its rows. The quasi-identifiers come
    first among the columns, ``quasi`` of them; the others are published as they are.
    """

    axes: tuple[LinkageAxis, ...]
    quasi: int
    cells: NDArray[np.int32]
    sizes: Ints
    everybody: People
    """The people of the original, or very many of them, drawn in no order; ``others`` are not in the release."""
    others: People | None
    sample: int
    known: tuple[int, ...] | None
    tolerance: float
    _views: dict[tuple[int, ...], Projection] = field(default_factory=dict, repr=False)

    @property
    def targets(self) -> People:
        """The people who are attacked."""
        return self.everybody.first(self.sample)

    @property
    def controls(self) -> People | None:
        """The people on whom attacks are tried though they are not in the release."""
        return None if self.others is None else self.others.first(self.sample)

    @property
    def published(self) -> int:
        """The number of published rows."""
        return int(self.sizes.sum())

    def view(self, columns: Sequence[int]) -> Projection:
        """Return the published tuples on some columns."""
        import numpy as np

        key = tuple(columns)
        if key not in self._views:
            parts = [self.cells[:, j].astype(np.int64) for j in key]
            first, of = grouped(parts, [len(self.axes[j].low) for j in key])
            sizes = np.bincount(of, weights=self.sizes, minlength=len(first)).astype(np.int64)
            cells = np.ascontiguousarray(self.cells[first][:, list(key)])
            self._views[key] = Projection(self, key, cells, sizes, of)
        return self._views[key]

    def adversaries(self) -> dict[str, tuple[int, ...]]:
        """Return the quasi-identifiers that each adversary knows: half of them, those with the most values, and all."""
        full = tuple(range(self.quasi))
        part = self.known
        if part is None:
            most = sorted(full, key=lambda j: (-len(self.axes[j].places), j))
            part = tuple(sorted(most[: (self.quasi + 1) // 2]))
        return {PART: part, FULL: full} if part != full else {FULL: full}

    def secret(self, name: str) -> SecretColumn:
        """Return a column that is published as it is as what attackers want to know."""
        import numpy as np

        column = next(j for j, axis in enumerate(self.axes) if j >= self.quasi and axis.name.lower() == name.lower())
        axis = self.axes[column]
        all_places = [axis.low, axis.places]
        places = np.unique(np.concatenate(all_places))
        numbers = np.where(places == MISSING, np.nan, axis.least + axis.span * places) if axis.ordered else places
        measured = axis.ordered and len(places) > FEW_NUMBERS
        return SecretColumn(self, column, self.tolerance, measured, places, numbers.astype(np.float64))


def grouped(parts: Sequence[Ints], sizes: Sequence[int]) -> tuple[Ints, Ints]:
    """Return the first row of each distinct tuple of codes, and for each row the number of its tuple."""
    import numpy as np

    code, limit = np.zeros(len(parts[0]) if parts else 0, dtype=np.int64), 1
    for part, size in zip(parts, sizes, strict=True):
        if limit * size >= 2**62:
            _, code = np.unique(code, return_inverse=True)
            limit = int(code.max()) + 1
        code, limit = code * size + part, limit * size
    _, first, of = np.unique(code, return_index=True, return_inverse=True)
    return first, of


EVERYBODY = 1_000_000
"""The largest number of people who are read."""


def read_linkage_space(case: Case) -> LinkageSpace:
    """Read the labels of a release, and put it and the people whom the attacker knows in the same places."""
    import numpy as np

    engine, settings = case.released.engine, case.settings
    pairs: dict[str, tuple[str, ...]] = {**case.published, **{n: (n,) for n in _carried(case)}}
    columns: list[Column] = []
    for at, (name, made) in enumerate(pairs.items()):
        columns.append(_column(case, name, made, carried=at >= len(case.published)))
    rows, cells = _released(case, list(pairs.values()), columns)
    first, of = grouped([cells[:, j].astype(np.int64) for j in range(len(columns))], [len(c.axis.low) for c in columns])
    weights = np.bincount(of, weights=rows, minlength=len(first)).astype(np.int64)
    people = _people(case, case.original, list(pairs), columns, of)
    controls = _people(case, case.control, list(pairs), columns, None) if case.control is not None else None
    engine.drop(*(name for c in columns for name in (c.values.table, c.cells)))
    names = [name.lower() for name in pairs]
    part = None if settings.known is None else tuple(names.index(n.lower()) for n in settings.known)
    return LinkageSpace(
        axes=tuple(c.axis for c in columns),
        quasi=len(case.published),
        cells=cells[first],
        sizes=weights,
        everybody=people,
        others=controls,
        sample=settings.sample,
        known=part,
        tolerance=settings.tolerance,
    )


def _carried(case: Case) -> list[str]:
    """Return the columns that are published as they are, and known of controls, too; not the key."""
    key = (case.settings.key or "").lower()
    theirs = None if case.control is None else {n.lower() for n in case.control.types}
    return [n for n in case.carried if n.lower() != key and (theirs is None or n.lower() in theirs)]


def _column(case: Case, name: str, made: tuple[str, ...], carried: bool) -> Column:
    original, released = case.original, case.released
    sides = [s for s in (original, case.control) if s is not None]
    kind = original.type_of(name)
    values = [exp.select(named(_typed(s, name, kind), "value")).from_(subquery(s.query, "s")) for s in sides]

    def published(null: bool) -> tuple[exp.Query, exp.Expr]:
        label = _label(released, made)
        whole = label if null or carried else exp.func("COALESCE", label, text("*"))
        return released.query, whole

    def levels_by(hierarchies: Mapping[str, Any] | None) -> Callable[[str], Levels | None]:
        def levels_of(values: str) -> Levels | None:
            # A column that is published as numbers has points, not labels.
            if hierarchies is None or len(made) > 1 or released.type_of(made[0]).upper().startswith("STRUCT"):
                return None
            original_values = None
            if case.control is not None:
                alone = exp.select(named(_typed(original, name, kind), "value")).from_(subquery(original.query, "s"))
                original_values = dictionary(original.engine, alone, name, col("value")).table
            return column_levels(original, released, made[0], name, values, hierarchies, original_values)

        return levels_of

    def read(hierarchies: Mapping[str, Any] | None) -> Column:
        people = union_all([v.copy() for v in values])
        return read_column(released.engine, name, kind, people, published, levels_by(hierarchies), carried)

    try:
        return read(case.hierarchies)
    except HierarchyError as unread:
        if case.hierarchies is not None:
            raise
        try:
            # Labels of groups may come from the hierarchy that is made where none is given.
            return read({})
        except HierarchyError:
            raise unread from None


def _typed(subject: AssessedTable, name: str, kind: str) -> exp.Expr:
    value = subject.column(name)
    return value if subject.type_of(name) == kind else cast(value, kind)


def _label(released: AssessedTable, made: Sequence[str]) -> exp.Expr:
    """Return what is published of a column as one text: two bounds, in two columns or in one, are an interval."""
    if len(made) > 1:
        return span_label(released.column(made[0]), released.column(made[1]))
    if released.type_of(made[0]).upper().startswith("STRUCT"):
        fields = [exp.Dot(this=col(made[0]), expression=exp.to_identifier(f, quoted=True)) for f in ("lo", "hi")]
        return span_label(fields[0], fields[1])
    return cast(released.column(made[0]), "VARCHAR")


def _released(case: Case, made: Sequence[Sequence[str]], columns: Sequence[Column]) -> tuple[Ints, NDArray[np.int32]]:
    """Return the rows and the cells of published tuples; with a key every row is one, in the order of the table."""
    import numpy as np

    engine = case.released.engine
    query = exp.select()
    for j, (names, column) in enumerate(zip(made, columns, strict=True)):
        label: exp.Expr = _label(case.released, names)
        if not column.values.null and j < len(case.published):
            label = exp.func("COALESCE", label, text("*"))
        query = query.select(named(label, f"t_{j}"))
    numbered = exp.Window(this=exp.RowNumber())
    source = exp.select(named(numbered, "duckanon_i"), "*").from_(subquery(case.released.query, "r"))
    keyed = case.settings.key is not None
    query = (
        query.select(col("duckanon_i")).from_(subquery(source, "s"))
        if keyed
        else query.from_(subquery(case.released.query, "s"))
    )
    coded = exp.select().from_(subquery(query, "s"))
    for j, column in enumerate(columns):
        coded = coded.join(table(column.cells, f"x_{j}"), on=same(col("label", f"x_{j}"), col(f"t_{j}", "s")))
        coded = coded.select(named(col("cell", f"x_{j}"), f"c_{j}"))
    if keyed:
        coded = coded.order_by(col("duckanon_i", "s"))
    else:
        coded = coded.select(named(exp.Count(this=exp.Star()), "n")).group_by(exp.var("ALL"))
        coded = coded.order_by(*(col(f"c_{j}") for j in range(len(columns))))
    published_rows = engine.arrow(coded)
    cells = np.stack([published_rows.column(j).to_numpy() for j in range(len(columns))], axis=1).astype(np.int32)
    rows = np.ones(len(cells), dtype=np.int64) if keyed else published_rows.column("n").to_numpy().astype(np.int64)
    return rows, cells


def _people(
    case: Case, subject: AssessedTable, names: Sequence[str], columns: Sequence[Column], of: Ints | None
) -> People:
    """Draw people, and find their places; ``of`` has the tuple of each published row, where a key ties rows to them."""
    import numpy as np
    import pyarrow as pa

    engine, settings = subject.engine, case.settings
    total = subject.rows()
    draw = np.random.default_rng([settings.seed, 0 if of is not None else 1])
    chosen = draw.permutation(total)[:EVERYBODY]
    drawn = engine.fresh("drawn")
    engine.register(drawn, pa.table({"i": chosen + 1, "at": np.arange(len(chosen))}))
    numbered = exp.select(named(exp.Window(this=exp.RowNumber()), "duckanon_i"), "*")
    numbered = numbered.from_(subquery(subject.query, "r"))
    on = exp.EQ(this=col("i", "d"), expression=col("duckanon_i", "s"))
    query = exp.select(col("at", "d")).from_(subquery(numbered, "s")).join(table(drawn, "d"), on=on)
    for j, (name, column) in enumerate(zip(names, columns, strict=True)):
        value = _typed(subject, name, case.original.type_of(name))
        if isinstance(column.values.expression, exp.Cast):
            value = cast(value, "VARCHAR")
        query = query.select(named(value, f"v_{j}"))
    keyed = of is not None and settings.key is not None
    if keyed:
        assert settings.key is not None
        query = query.select(named(cast(subject.column(settings.key), "VARCHAR"), "k"))
    coded = exp.select(col("at", "s")).from_(subquery(query, "s"))
    for j, column in enumerate(columns):
        coded = coded.join(table(column.values.table, f"x_{j}"), on=same(col("value", f"x_{j}"), col(f"v_{j}", "s")))
        coded = coded.select(named(col("code", f"x_{j}"), f"c_{j}"))
    if keyed:
        coded = coded.select(named(exp.Coalesce(this=col("i", "k"), expressions=[exp.convert(0)]), "own"))
        on = exp.EQ(this=col("k", "k"), expression=col("k", "s"))
        coded = coded.join(subquery(_keys(case), "k"), on=on, join_type="left")
    people_rows = engine.arrow(coded.order_by(col("at", "s")))
    engine.unregister(drawn)
    codes = [people_rows.column(f"c_{j}").to_numpy() for j in range(len(columns))]
    points = np.stack([c.axis.places[code] for c, code in zip(columns, codes, strict=True)], axis=1)
    own_tuples = None
    if keyed:
        assert of is not None
        at = people_rows.column("own").to_numpy()
        own_tuples = np.where(at > 0, of[np.maximum(at - 1, 0)], -1)
    return People(np.ascontiguousarray(points), total, own_tuples, chosen)


def _keys(case: Case) -> exp.Query:
    """Return where each key is published first."""
    assert case.settings.key is not None
    key = cast(case.released.column(case.settings.key), "VARCHAR")
    numbered = exp.select(named(exp.Window(this=exp.RowNumber()), "i"), named(key, "k"))
    rows = numbered.from_(subquery(case.released.query, "r"))
    first = exp.select(col("k"), named(exp.Min(this=col("i")), "i")).from_(subquery(rows, "r"))
    return first.where(exp.Not(this=is_null(col("k")))).group_by(col("k"))


__all__ = [
    "ALL",
    "FULL",
    "PART",
    "LinkageSpace",
    "Links",
    "People",
    "Projection",
    "SecretColumn",
    "grouped",
    "read_linkage_space",
]
