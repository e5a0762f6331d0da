"""The tables as attackers look at them: labels are read, people are drawn, and both put in the same places."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.assess.attacks.linkage_axis import Column, read_column, span_label
from duckanon.assess.attacks.sight import People, Sight, grouped
from duckanon.assess.placing import column_levels
from duckanon.encoding.dictionaries import dictionary
from duckanon.engine.sql.axes import is_null
from duckanon.engine.sql.relations import cast, col, named, same, subquery, table, text, union_all
from duckanon.errors import HierarchyError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from duckanon.assess.attacks.base import Case
    from duckanon.assess.subject import Subject
    from duckanon.hierarchy import Levels

    Ints = NDArray[np.int64]

EVERYBODY = 1_000_000
"""Most people who are looked at."""


def look(case: Case) -> Sight:
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
    known = None if settings.known is None else tuple(names.index(n.lower()) for n in settings.known)
    return Sight(
        axes=tuple(c.axis for c in columns),
        quasi=len(case.published),
        cells=cells[first],
        sizes=weights,
        everybody=people,
        others=controls,
        sample=settings.sample,
        known=known,
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
            own = None
            if case.control is not None:
                alone = exp.select(named(_typed(original, name, kind), "value")).from_(subquery(original.query, "s"))
                own = dictionary(original.engine, alone, name, col("value")).table
            return column_levels(original, released, made[0], name, values, hierarchies, own)

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
            # Labels such as "group 1/2" come from the hierarchy that is made where none is given.
            return read({})
        except HierarchyError:
            raise unread from None


def _typed(subject: Subject, name: str, kind: str) -> exp.Expr:
    own = subject.column(name)
    return own if subject.type_of(name) == kind else cast(own, kind)


def _label(released: Subject, made: Sequence[str]) -> exp.Expr:
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
    found = engine.arrow(coded)
    cells = np.stack([found.column(j).to_numpy() for j in range(len(columns))], axis=1).astype(np.int32)
    rows = np.ones(len(cells), dtype=np.int64) if keyed else found.column("n").to_numpy().astype(np.int64)
    return rows, cells


def _people(case: Case, subject: Subject, names: Sequence[str], columns: Sequence[Column], of: Ints | None) -> People:
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
    found = engine.arrow(coded.order_by(col("at", "s")))
    engine.unregister(drawn)
    codes = [found.column(f"c_{j}").to_numpy() for j in range(len(columns))]
    points = np.stack([c.axis.places[code] for c, code in zip(columns, codes, strict=True)], axis=1)
    own = None
    if keyed:
        assert of is not None
        at = found.column("own").to_numpy()
        own = np.where(at > 0, of[np.maximum(at - 1, 0)], -1)
    return People(np.ascontiguousarray(points), total, own, chosen)


def _keys(case: Case) -> exp.Query:
    """Return where each key is published first."""
    assert case.settings.key is not None
    key = cast(case.released.column(case.settings.key), "VARCHAR")
    numbered = exp.select(named(exp.Window(this=exp.RowNumber()), "i"), named(key, "k"))
    rows = numbered.from_(subquery(case.released.query, "r"))
    first = exp.select(col("k"), named(exp.Min(this=col("i")), "i")).from_(subquery(rows, "r"))
    return first.where(exp.Not(this=is_null(col("k")))).group_by(col("k"))


__all__ = ["look"]
