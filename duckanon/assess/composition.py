"""Two releases of the same people, one laid upon the other (composition, intersection).

Persons are put into groups by what two releases show of them: the class that they stayed in, the class that they left
and the one that they came to, or one of these alone. An adversary who knows that a person is in both releases, and in
which classes, narrows the person down to those in both classes, and they may be fewer than k.

Persons are followed by a key, or by the classes of both originals. Where neither is given, only the overlap of classes
says something: the members of a class are spread over those classes of the other release that can have a member with
it. From the sizes alone, two classes have at least so many members in common as the others cannot hold, and at most
what is left when the others have theirs (the bounds of Fréchet, with cells that must be empty).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlglot import exp

from duckanon.assess.assessed_table import AssessedTable, of_table
from duckanon.assess.attacks.base import Case
from duckanon.assess.labels.text import parse, text_range
from duckanon.encoding.counting import count_rows
from duckanon.engine.sql.files import load
from duckanon.engine.sql.relations import call, cast, col, named, number, subquery, table, text
from duckanon.errors import ParameterError, UnsupportedError
from duckanon.models.base import require_int

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from duckanon.assess.assessed_table import AssessedTable
    from duckanon.assess.attacks.linkage_space import LinkageSpace
    from duckanon.engine.base import Engine

    Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Compared:
    """A release and an earlier one, ``run``; ``smallest`` is the smallest group of persons in both."""

    run: str
    persons_in_both: int
    smallest: int | None
    groups_below: int
    persons_below: int
    new_below: int
    departed_below: int


@dataclass(frozen=True)
class Composition:
    """What a release and an earlier one of the same people disclose together.

    Parameters
    ----------
    k : int
        The least persons of a group.
    tied_by : {"key", "original", "overlap"}
        How persons were followed from one to the other: by a key that both tables have, by placing the rows of an
        original in the classes of both, or not at all: then only what follows from the overlap of classes is counted.
    persons_in_both : int
        Of "overlap": the rows of the smaller table, if all its people are in both.
    smallest : int or None
        The smallest group of persons in both.
    groups_below, persons_below : int
        Groups of fewer than k persons in both releases, and the persons in them; of "overlap", those that must exist.
    new_below, departed_below : int
        Persons in one release only, in such groups; 0 where that is unknown.
    """

    k: int
    tied_by: str
    persons_in_both: int
    smallest: int | None
    groups_below: int
    persons_below: int
    new_below: int = 0
    departed_below: int = 0

    @property
    def holds(self) -> bool:
        """Whether no group is known to be below k."""
        return not (self.persons_below or self.new_below or self.departed_below)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values."""
        return asdict(self)

    def figures(self) -> list[tuple[str, float | None, str]]:
        """Return name, value and meaning of every figure."""
        how = {
            "key": "followed by their key",
            "original": "placed by the original",
            "overlap": "as far as it follows from the overlap of classes",
        }[self.tied_by]
        return [
            ("previous_k", self.k, "persons that a group of both releases should have at least"),
            ("persons_in_both", self.persons_in_both, f"persons in this release and the previous one, {how}"),
            ("smallest_group", self.smallest, "persons in the smallest group that both releases distinguish"),
            ("groups_below_k", self.groups_below, f"groups of fewer than {self.k} persons, {how}"),
            ("persons_below_k", self.persons_below, f"persons in both whose group has fewer than {self.k}"),
            ("new_below_k", self.new_below, f"persons only in this release, in groups of fewer than {self.k}"),
            ("departed_below_k", self.departed_below, f"persons only in the previous one, in groups below {self.k}"),
        ]


def class_text(columns: Sequence[exp.Expr]) -> exp.Expr:
    """Return a text for a class: its published cells, each with its length, so that no two classes are alike."""
    parts: list[exp.Expr] = []
    for column in columns:
        shown = cast(column, "VARCHAR")
        written = call("concat", call("length", shown), text(":"), shown.copy())
        parts.append(exp.case().when(exp.Is(this=column.copy(), expression=exp.null()), text("-;")).else_(written))
    return call("concat", *parts)


def grouped(engine: Engine, before: str, after: str) -> dict[str, str]:
    """Create the groups of two tables ``(person, class_id)``, and return the relations that statements read."""
    relations = {"night_before": before, "night_after": after, "night_groups": engine.fresh("groups")}
    engine.create(relations["night_groups"], load("nights/groups").bind(relations))
    return relations


def compared(engine: Engine, run: str, before: str, after: str, k: int) -> Compared:
    """Count the groups of two tables ``(person, class_id)``, and who is in those below k."""
    relations = grouped(engine, before, after)
    people = [exp.select(col("person")).from_(table(t)) for t in (before, after)]
    both = count_rows(engine, exp.intersect(*people))
    inside = exp.and_(
        *(exp.Not(this=exp.Is(this=col(c), expression=exp.null())) for c in ("class_before", "class_after"))
    )
    low = exp.case().when(exp.LT(this=col("n"), expression=number(k)), number(1)).else_(number(0))
    query = exp.select(exp.Min(this=col("n")), exp.func("COALESCE", exp.Sum(this=low), number(0)))
    smallest, below = engine.row(query.from_(table(relations["night_groups"])).where(inside))
    exposed = load("nights/exposed").bind(relations)
    kinds = exp.select(col("kind"), exp.Count(this=exp.Star())).from_(subquery(exposed, "e"), copy=False)
    kinds = kinds.group_by(col("kind"), copy=False)
    counts = {str(kind): int(n) for kind, n in engine.rows(kinds, {"k": k})}
    engine.drop(relations["night_groups"])
    return Compared(
        run,
        both,
        None if smallest is None else int(smallest),
        int(below),
        *(counts.get(kind, 0) for kind in ("both", "new", "departed")),
    )


def by_key(subject: AssessedTable, previous: AssessedTable, k: int) -> Composition:
    """Follow persons by a key that both tables have; rows without one are left out."""
    engine = subject.engine
    tables = []
    for side in (previous, subject):
        assert side.entity is not None
        name = engine.fresh("persons")
        person = cast(side.entity.copy(), "VARCHAR")
        query = exp.select(named(person, "person"), named(class_text(list(side.quasi.values())), "class_id"))
        query = query.distinct().from_(subquery(side.query, "s"))
        engine.create(name, query.where(exp.Not(this=exp.Is(this=side.entity.copy(), expression=exp.null()))))
        tables.append(name)
    composition = _composed(compared(engine, "previous", tables[0], tables[1], k), k, "key")
    engine.drop(*tables)
    return composition


def by_classes(engine: Engine, before: Any, after: Any, k: int) -> Composition:
    """Follow persons whose classes are given: two Arrow tables ``(person, class_id)``."""
    names = []
    for one in (before, after):
        incoming, name = engine.fresh("incoming"), engine.fresh("persons")
        engine.register(incoming, one)
        engine.create(name, exp.select(col("person"), col("class_id")).distinct().from_(table(incoming)))
        engine.unregister(incoming)
        names.append(name)
    composition = _composed(compared(engine, "previous", names[0], names[1], k), k, "original")
    engine.drop(*names)
    return composition


def _composed(one: Compared, k: int, how: str) -> Composition:
    return Composition(
        k,
        how,
        one.persons_in_both,
        one.smallest,
        one.groups_below,
        one.persons_below,
        one.new_below,
        one.departed_below,
    )


_MOST = 20_000


@dataclass(frozen=True)
class Reach:
    """The values that a cell covers: a span of numbers, a span of texts, some values, or anything."""

    numbers: tuple[float, float, bool, bool] | None = None
    texts: tuple[str | None, str | None] | None = None
    members: frozenset[str] | None = None


def reach(label: str | None, type_name: str) -> Reach:
    """Read a cell without knowing the original values; what cannot be read may be anything.

    Examples
    --------
    >>> reach("[20, 29]", "BIGINT").numbers, reach("{a, b}", "VARCHAR").members == {"a", "b"}, reach("*", "VARCHAR")
    ((20.0, 29.0, False, False), True, Reach(numbers=None, texts=None, members=None))
    """
    if label is None or label == "*":
        return Reach()
    parsed = parse(label, type_name)
    if parsed.span is not None:
        return Reach(numbers=parsed.span)
    between = text_range(label)
    if between is not None:
        return Reach(texts=between)
    if parsed.members:
        return Reach(members=frozenset(parsed.members))
    # A word may be a value, or the name of a group that has others in it.
    return Reach()


def may_meet(a: Reach, b: Reach) -> bool:
    """Return whether a value can be in both cells.

    Examples
    --------
    >>> ages = [reach(label, "BIGINT") for label in ("[20, 29]", "[25, 40]", "[20, 25)")]
    >>> may_meet(ages[0], ages[1]), may_meet(ages[1], ages[2]), may_meet(ages[1], reach("*", "BIGINT"))
    (True, False, True)
    """
    if a.numbers is not None and b.numbers is not None:
        low, high = max(a.numbers[0], b.numbers[0]), min(a.numbers[1], b.numbers[1])
        if low != high:
            return low < high
        return not any(
            (low == span[0] and span[2] and low != -inf) or (low == span[1] and span[3] and low != inf)
            for span in (a.numbers, b.numbers)
        )
    if a.texts is not None and b.texts is not None:
        starts = [t[0] for t in (a.texts, b.texts) if t[0] is not None]
        ends = [t[1] for t in (a.texts, b.texts) if t[1] is not None]
        return not starts or not ends or max(starts) <= min(ends)
    if a.members is not None and b.members is not None:
        return bool(a.members & b.members)
    for one, other in ((a, b), (b, a)):
        if one.members is not None and other.texts is not None:
            low_text, high_text = other.texts
            return any(
                (low_text is None or low_text <= m) and (high_text is None or m <= high_text) for m in one.members
            )
    return True


def common(meet: NDArray[np.bool_], first: Ints, second: Ints) -> tuple[Ints, Ints]:
    """Return how many members two classes have in common at least and at most, if both tables are of the same people.

    Examples
    --------
    >>> import numpy as np
    >>> meet = np.array([[True, True], [False, True]])
    >>> [m.tolist() for m in common(meet, np.array([5, 4]), np.array([3, 6]))]
    [[[3, 2], [0, 4]], [[3, 2], [0, 4]]]
    """
    least = _least(meet, first, second, meet @ second, first @ meet)
    return least, _most(meet, first, second, least, least.sum(axis=0))


def _least(meet: NDArray[np.bool_], first: Ints, second: Ints, reached: Ints, held: Ints) -> Ints:
    """Return what other classes cannot hold; ``reached`` and ``held`` are the sizes of all that a class meets."""
    least = np.maximum(first[:, None] - (reached[:, None] - second), second - (held - first[:, None]))
    return np.where(meet, np.maximum(least, 0), 0)


def _most(meet: NDArray[np.bool_], first: Ints, second: Ints, least: Ints, taken: Ints) -> Ints:
    """Return what is left when others have the least they must; ``taken`` adds that up for the second table."""
    most = np.minimum((first - least.sum(axis=1))[:, None] + least, (second - taken) + least)
    return np.where(meet, most, 0)


def by_overlap(subject: AssessedTable, previous: AssessedTable, k: int) -> Composition:
    """Count the groups below k that follow from the sizes and cells of both tables."""
    before, first = _classes(previous)
    after, second = _classes(subject)
    if len(first) > _MOST or len(second) > _MOST:
        raise UnsupportedError(
            f"Without a key or an original the classes of both tables are compared in pairs, of which there may be "
            f"{_MOST} classes each at most. Give entity_key or original."
        )
    kinds = [subject.type_of(name) for name in subject.quasi]
    meets = [_cells_meet(before[j], after[j], kinds[j]) for j in range(len(kinds))]
    same_people = first.sum() == second.sum()
    groups = persons = 0
    smallest: int | None = None
    reached = np.zeros(len(first), dtype=np.int64)
    held = np.zeros(len(second), dtype=np.int64)
    blocks = [slice(i, i + 512) for i in range(0, len(first), 512)]
    for block in blocks:
        meet = _block(meets, before, after, block)
        reached[block], held = meet @ second, held + first[block] @ meet
    taken = np.zeros(len(second), dtype=np.int64)
    for block in blocks:
        meet = _block(meets, before, after, block)
        taken += _least(meet, first[block], second, reached[block], held).sum(axis=0)
    for block in blocks:
        meet = _block(meets, before, after, block)
        least = _least(meet, first[block], second, reached[block], held)
        most = _most(meet, first[block], second, least, taken)
        proved = (least >= 1) & (least == most) if same_people else np.zeros_like(meet)
        if proved.any():
            low = int(least[proved].min())
            smallest = low if smallest is None else min(smallest, low)
        below = (least >= 1) & (most < k) if same_people else np.zeros_like(meet)
        groups += int(below.sum())
        persons += int(least[below].sum())
    return Composition(k, "overlap", int(min(first.sum(), second.sum())), smallest, groups, persons)


def _classes(subject: AssessedTable) -> tuple[list[Any], NDArray[np.int64]]:
    """Return the cells of each class, column by column as dictionaries, and the sizes."""
    labels = [
        named(cast(expression.copy(), "VARCHAR"), f"q_{j}") for j, expression in enumerate(subject.quasi.values())
    ]
    query = exp.select(*labels, named(exp.Count(this=exp.Star()), "n")).from_(subquery(subject.query, "s"))
    table = subject.engine.arrow(query.group_by(*(col(f"q_{j}") for j in range(len(labels)))))
    cells = [table.column(j).combine_chunks().dictionary_encode(null_encoding="encode") for j in range(len(labels))]
    return cells, np.asarray(table.column("n").to_numpy(), dtype=np.int64)


def _cells_meet(before: Any, after: Any, kind: str) -> NDArray[np.bool_]:
    sides: list[list[tuple[str | None, Reach]]] = [
        [(label, reach(label, kind)) for label in side.dictionary.to_pylist()] for side in (before, after)
    ]
    return np.array([[a == b or may_meet(x, y) for b, y in sides[1]] for a, x in sides[0]], dtype=np.bool_)


def _block(
    meets: Sequence[NDArray[np.bool_]], before: Sequence[Any], after: Sequence[Any], block: slice
) -> NDArray[np.bool_]:
    cells_meet: NDArray[np.bool_] | None = None
    for meet, a, b in zip(meets, before, after, strict=True):
        column_meets = meet[np.ix_(a.indices.to_numpy()[block], b.indices.to_numpy())]
        cells_meet = column_meets if cells_meet is None else cells_meet & column_meets
    assert cells_meet is not None
    return cells_meet


_APART = 1 << 40
"""Numbers of classes of one release are below it, those of the other from it on."""


def composed(
    subject: AssessedTable,
    previous: object,
    *,
    entity_key: str | None = None,
    original: object = None,
    previous_original: object = None,
    hierarchies: Mapping[str, Any] | None = None,
    k: int,
) -> Composition:
    """Count the groups of persons that a table and an earlier one distinguish together; see ``risk``."""
    least = require_int("risk", "k", k, 1)
    if previous_original is not None and original is None:
        raise ParameterError("previous_original is for those who give original, too.")
    quasi = list(subject.quasi)
    if original is None:
        before = of_table(subject.engine, previous, quasi, entity_key=entity_key)
        if entity_key is None:
            return by_overlap(subject, before, least)
        return by_key(subject, before, least)
    before = of_table(subject.engine, previous, quasi)
    now = of_table(subject.engine, original, quasi, entity_key=entity_key)
    then = now
    if previous_original is not None:
        if entity_key is None:
            raise ParameterError("Two originals need an entity_key: a column of both that identifies persons.")
        then = of_table(subject.engine, previous_original, quasi, entity_key=entity_key)
    tables = [
        _placed(people, released, hierarchies or {}, night)
        for night, (people, released) in enumerate(((then, before), (now, subject)))
    ]
    return by_classes(subject.engine, tables[0], tables[1], least)


def everyone(case: Case) -> LinkageSpace:
    """Return the release and all people of the original in the same places, quasi-identifiers alone."""
    from duckanon.assess.attacks.linkage_space import read_linkage_space

    settings = replace(case.settings, sample=max(case.original.rows(), 1), key=None)
    return read_linkage_space(replace(case, carried=(), control=None, settings=settings))


def _placed(people: AssessedTable, released: AssessedTable, hierarchies: Mapping[str, Any], night: int) -> pa.Table:
    """Return ``(person, class_id)``: in which published classes each row of an original can be."""
    import numpy as np
    import pyarrow as pa

    pairs = zip(people.quasi, released.quasi, strict=True)
    case = Case(people, released, {}, None, (), {o: (r,) for o, r in pairs}, hierarchies=hierarchies)
    space = everyone(case)
    links = space.view(range(space.quasi)).nearest(space.targets)
    inside = np.repeat(links.far == 0, np.diff(links.starts))
    assert space.targets.rows is not None
    rows = np.repeat(space.targets.rows, np.diff(links.starts))[inside]
    persons = _persons(people).take(pa.array(rows))
    return pa.table({"person": persons, "class_id": links.found[inside] + night * _APART}).filter(persons.is_valid())


def _persons(people: AssessedTable) -> pa.ChunkedArray:
    """Return who each row is, in the order of the table: the key, or the number of the row."""
    import numpy as np
    import pyarrow as pa

    if people.entity is None:
        return pa.chunked_array([pa.array(np.arange(people.rows()))])
    query = exp.select(named(cast(people.entity.copy(), "VARCHAR"), "person")).from_(subquery(people.query, "s"))
    return people.engine.arrow(query).column(0)


__all__ = [
    "Compared",
    "Composition",
    "Reach",
    "by_classes",
    "by_key",
    "by_overlap",
    "class_text",
    "common",
    "compared",
    "composed",
    "everyone",
    "grouped",
    "may_meet",
    "reach",
]
