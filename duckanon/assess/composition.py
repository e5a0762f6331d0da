"""Two releases of the same people, one laid upon the other (composition, intersection).

Persons are put into groups by what two releases show of them: the class that they stayed in, the class that they left
and the one that they came to, or one of these alone. Who knows that a person is in both releases, and in which classes,
looks at the persons who are in both of these classes, and they may be fewer than k.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.encoding.counting import count_rows
from duckanon.engine.sql.files import load
from duckanon.engine.sql.relations import call, cast, col, named, number, subquery, table, text

if TYPE_CHECKING:
    from duckanon.assess.subject import Subject
    from duckanon.engine.base import Engine


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
    """What a release and an earlier one of the same people tell together.

    Parameters
    ----------
    k : int
        The least persons of a group.
    tied_by : {"key", "original", "overlap"}
        How persons were followed from one to the other: by a key that both tables have, by placing the rows of an
        original in the classes of both, or not at all: then only what the overlap of classes proves is counted.
    persons_in_both : int
        Of "overlap": the rows of the smaller table, if all its people are in both.
    smallest : int or None
        The smallest group of persons in both.
    groups_below, persons_below : int
        Groups of fewer than k persons in both releases, and the persons in them; of "overlap", those that are proved.
    new_below, departed_below : int
        Persons in one release only, in such groups; 0 where nobody can tell.
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
            "overlap": "as far as the overlap of classes proves it",
        }[self.tied_by]
        return [
            ("previous_k", self.k, "persons that a group of both releases should have at least"),
            ("persons_in_both", self.persons_in_both, f"persons in this release and the previous one, {how}"),
            ("smallest_group", self.smallest, "persons in the smallest group that both releases tell apart"),
            ("groups_below_k", self.groups_below, f"groups of fewer than {self.k} persons, {how}"),
            ("persons_below_k", self.persons_below, f"persons in both whose group has fewer than {self.k}"),
            ("new_below_k", self.new_below, f"persons only in this release, in groups of fewer than {self.k}"),
            ("departed_below_k", self.departed_below, f"persons only in the previous one, in groups below {self.k}"),
        ]


def class_text(columns: Sequence[exp.Expr]) -> exp.Expr:
    """Return a text for a class: its published cells, each with its length, so that no two classes are alike."""
    parts: list[exp.Expr] = []
    for own in columns:
        shown = cast(own, "VARCHAR")
        written = call("concat", call("length", shown), text(":"), shown.copy())
        parts.append(exp.case().when(exp.Is(this=own.copy(), expression=exp.null()), text("-;")).else_(written))
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
    kinds = exp.select(col("kind"), exp.Count(this=exp.Star())).from_(subquery(exposed, "e")).group_by(col("kind"))
    found = {str(kind): int(n) for kind, n in engine.rows(kinds, {"k": k})}
    engine.drop(relations["night_groups"])
    return Compared(
        run,
        both,
        None if smallest is None else int(smallest),
        int(below),
        *(found.get(kind, 0) for kind in ("both", "new", "departed")),
    )


def by_key(subject: Subject, previous: Subject, k: int) -> Composition:
    """Follow persons by a key that both tables have; rows without one are nobody's."""
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
    found = _composed(compared(engine, "previous", tables[0], tables[1], k), k, "key")
    engine.drop(*tables)
    return found


def by_classes(engine: Engine, before: Any, after: Any, k: int) -> Composition:
    """Follow persons whose classes are given: two Arrow tables ``(person, class_id)``."""
    names = []
    for one in (before, after):
        incoming, name = engine.fresh("incoming"), engine.fresh("persons")
        engine.register(incoming, one)
        engine.create(name, exp.select(col("person"), col("class_id")).distinct().from_(table(incoming)))
        engine.unregister(incoming)
        names.append(name)
    found = _composed(compared(engine, "previous", names[0], names[1], k), k, "original")
    engine.drop(*names)
    return found


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


__all__ = ["Compared", "Composition", "by_classes", "by_key", "class_text", "compared", "grouped"]
