"""Two releases of the same people: what an adversary learns by comparing them.

Each release has at least k persons in every class. An adversary who knows that a person is in both, and in which
classes, looks at the persons in both of these classes, and they may be fewer than k. An adversary who knows that a
person has come or gone looks at what was added to a class or removed from it: the sensitive value of a single missing
row is found by subtraction.

So persons are grouped by what two releases show of them: the class that they stayed in, the class that they left and
the one that they came to, a class that they left for none, or one that they came to from none. **Every group must be
empty or have at least k persons.** A person with several rows is in several groups; what one release shows by itself is
no group. That is what is checked:

- ``persons_below``: persons in both releases, in groups of fewer than k;
- ``new_below`` and ``departed_below``: persons in one of them only, in such groups (the delta of one row).

What is not checked: more than two releases together (each stored one is compared with the new one), releases that are
no longer stored, rows without an entity key, and what the values of other columns reveal.

Persons and classes are identified by a keyed hash of 128 bits. The key does not leave the state folder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.assess.composition import Compared, class_text, compared, grouped
from duckanon.encoding.counting import ENTITY, count_rows
from duckanon.engine.sql.files import load
from duckanon.engine.sql.relations import call, cast, col, ident, named, number, param, subquery, table, text, union_all
from duckanon.errors import DataError, InfeasibleError, ParameterError
from duckanon.release.gate import require_same_classes

if TYPE_CHECKING:
    from duckanon.engine.base import Engine
    from duckanon.jobs.nights.state import State
    from duckanon.plan.plan import Plan
    from duckanon.release.release import Release

PERSONS = "persons.parquet"
_ROUNDS = 100


@dataclass(frozen=True)
class Intersection:
    """The new release compared with each of those stored, the newest first."""

    k: int
    compared: tuple[Compared, ...]

    @property
    def persons_in_both(self) -> int:
        """The persons in the new release and in the last one."""
        return self.compared[0].persons_in_both if self.compared else 0

    @property
    def smallest(self) -> int | None:
        """The smallest group of persons in both, over all comparisons."""
        return min((c.smallest for c in self.compared if c.smallest is not None), default=None)

    @property
    def persons_below(self) -> int:
        """The persons in both releases whose group is below k, in the worst comparison."""
        return max((c.persons_below for c in self.compared), default=0)

    @property
    def delta_below(self) -> int:
        """The persons who came or went in groups below k, in the worst comparison."""
        return max((c.new_below + c.departed_below for c in self.compared), default=0)

    @property
    def holds(self) -> bool:
        """Whether every group, of both and of the deltas, is empty or has k persons."""
        return not self.persons_below and not self.delta_below

    def warnings(self) -> list[str]:
        """Return in words what two releases together would reveal."""
        words = []
        for one in self.compared:
            if one.persons_below:
                words.append(
                    f"Together with the release of run {one.run}, {one.persons_below} of {one.persons_in_both} persons "
                    f"in both are in groups of fewer than {self.k} (the smallest has {one.smallest})."
                )
            if one.new_below or one.departed_below:
                words.append(
                    f"Since run {one.run}, {one.new_below} new and {one.departed_below} departed persons are in groups "
                    f"of fewer than {self.k}: the difference of the two releases shows them."
                )
        return words

    def require(self, *, delta: bool = False) -> None:
        """Raise an InfeasibleError where persons in both are in groups below k; with ``delta``, also persons in one."""
        if self.persons_below or (delta and self.delta_below):
            raise InfeasibleError(
                f"{' '.join(self.warnings())} Nothing was published: freeze the recoding, hold persons back, or warn."
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values."""
        return {"k": self.k, "holds": self.holds, "compared": [asdict(c) for c in self.compared]}


def required_k(plan: Plan) -> int:
    """Return the smallest number of persons that a class may have by the plan."""
    return max((m.traits.min_class_size for m in plan.models if m.traits.size_only), default=1)


def check_intersection(
    engine: Engine, release: Release, state: State, run: str, k: int | None = None, *, keep: int = 3
) -> Intersection:
    """Compare a release that was made, and is not yet published, with the last ``keep`` published ones.

    Parameters
    ----------
    engine : Engine
        The one that made the release.
    release : Release
        Of a plan with an entity key.
    state : State
        Where the persons of earlier releases are kept; those of this one are written to the folder of ``run``.
    run : str
    k : int, optional
        The smallest number of persons in a group; by default that of a class in the plan.
    keep : int
        With how many published releases it is compared.
    """
    after = _persons_of(engine, release, state, state.run_folder(run) / PERSONS)
    smallest = required_k(release.plan) if k is None else k
    comparisons = []
    for other, before in _nights(engine, state, keep):
        comparisons.append(compared(engine, other, before, after, smallest))
        engine.drop(before)
    engine.drop(after)
    return Intersection(smallest, tuple(comparisons))


def kept_nights(state: State, run: str, keep: int) -> list[str]:
    """Return the runs whose persons stay stored when ``run`` is published, the newest first."""
    last = state.last()
    return [run, *(last["nights"] if last is not None else [])][:keep]


def hold_back(
    engine: Engine, plan: Plan, state: State, run: str, k: int | None = None, *, keep: int = 3
) -> tuple[Plan, int]:
    """Return a plan without the persons who must wait, and how many rows they have.

    ``check_intersection`` has run, and the plan applies a stored recoding, so that nobody else's class changes. First
    the persons in groups that are too small wait. Where too few have left a class for good, others of it, drawn at
    random, wait with them, so that k persons are missing from it. That is repeated until every group is empty or has k
    persons.

    The draw depends on the state's key and on the runs that are compared: nobody else can predict it, and the same data
    in the same run, such as a dry run, give the same release.
    """
    if plan.entity is None:
        raise ParameterError("Persons can be held back only with an entity key.")
    smallest = required_k(plan) if k is None else k
    after = _loaded(engine, state.run_folder(run) / PERSONS)
    runs = _nights(engine, state, keep)
    nights = [before for _, before in runs]
    lot = "|".join([state.key(), "companions", *(other for other, _ in runs)])
    salt = hashlib.sha256(lot.encode()).hexdigest()
    held = engine.fresh("held")
    engine.create(held, exp.select(col("person")).from_(table(after)).where(exp.false()))
    for _ in range(_ROUNDS):
        waiting = _waiting(engine, nights, after, smallest, salt)
        if waiting is None:
            break
        engine.run(exp.Insert(this=table(held), expression=exp.select(col("person")).from_(table(waiting))))
        rest = engine.fresh("remaining")
        missing = exp.Join(
            this=table(waiting, "w"), on=exp.EQ(this=col("person", "w"), expression=col("person", "a")), kind="ANTI"
        )
        query = exp.select(col("person", "a"), col("class_id", "a")).from_(table(after, "a")).join(missing)
        engine.create(rest, query)
        engine.drop(after, waiting)
        after = rest
    else:
        raise InfeasibleError(f"After {_ROUNDS} rounds there are still groups of fewer than {smallest} persons.")
    engine.drop(*nights)
    (left,) = engine.row(exp.select(exp.Count(this=exp.Star())).from_(table(after)))
    engine.drop(after)
    if not left:
        raise InfeasibleError(
            "All persons would be held back: too few of any class have come, gone or changed together."
        )
    return _without(engine, plan, held, state.key())


# Persons and classes


def _hidden(kind: str, value: exp.Expr) -> exp.Expr:
    """Return 128 bits of a keyed hash of a text."""
    keyed = call("concat", param("key"), text(f"|{kind}|"), value)
    return call("unhex", call("left", call("sha256", keyed), number(32)))


def _person(entity: exp.Expr) -> exp.Expr:
    """Return the hash of a person; NULL is no person."""
    missing = exp.Is(this=entity.copy(), expression=exp.null())
    return exp.case().when(missing, exp.null()).else_(_hidden("person", cast(entity, "VARCHAR")))


def _class(columns: Sequence[str]) -> exp.Expr:
    """Return the hash of a class: of its published cells, each with its length, so that no two classes collide."""
    return _hidden("class", class_text([col(name) for name in columns]))


def _persons_of(engine: Engine, release: Release, state: State, path: Path) -> str:
    """Write ``(person, class_id)`` of a release to a private file, and return the table of it."""
    plan, recoder = release.plan, release.recoder
    if plan.entity is None or recoder is None:
        raise ParameterError("Releases of two runs can be compared only with an entity key.")
    params: dict[str, Any] = {"key": state.key()}
    columns = [*recoder.shown, (ENTITY, "p_0")]
    # A large table is stored in a file: it would take too much memory.
    crowded = engine.is_crowded_by(release.rows_published * 64)
    create = engine.create_file if crowded else engine.create
    published, persons = engine.fresh("published"), engine.fresh("persons")
    rows = recoder.rows([(ENTITY, _person(plan.entity))])
    create(published, recoder.released(rows, columns), params)
    names = [name for name, _ in recoder.shown]
    # The classes compared are those that the gate verified.
    require_same_classes(engine, release.query(), exp.select("*").from_(table(published)), names)
    query = (
        exp.select(named(col(ENTITY), "person"), named(_class(names), "class_id")).distinct().from_(table(published))
    )
    create(persons, query.where(exp.Not(this=exp.Is(this=col(ENTITY), expression=exp.null()))), params)
    engine.drop(published)
    path.touch(mode=0o600)
    # In the order of the hashes: the file does not say in which order the rows were.
    engine.write_parquet(exp.select("*").from_(table(persons)).order_by(col("person"), col("class_id")), path)
    path.chmod(0o600)
    return persons


def _nights(engine: Engine, state: State, keep: int) -> list[tuple[str, str]]:
    """Return the runs that are kept with the tables of their persons, the newest first."""
    last = state.last()
    runs = list(last["nights"])[:keep] if last is not None else []
    return [(run, _loaded(engine, state.run_folder(run) / PERSONS)) for run in runs]


def _loaded(engine: Engine, path: Path) -> str:
    name = engine.fresh("persons")
    columns = {"person", "class_id"}
    if not path.is_file() or {c.name for c in engine.columns(engine.parquet([path]))} != columns:
        raise DataError("The persons of an earlier run cannot be read: remove the state folder to start anew.")
    query = exp.select(*(col(c) for c in sorted(columns))).from_(subquery(engine.parquet([path]), "p"))
    if engine.is_crowded_by(count_rows(engine, query) * 64):
        engine.create_view(name, query)
    else:
        engine.create(name, query)
    return name


# Groups


def _waiting(engine: Engine, nights: Sequence[str], after: str, k: int, salt: str) -> str | None:
    """Create the table of persons who must wait after one round; None where nobody must."""
    relations = [grouped(engine, before, after) for before in nights]
    try:
        for statement in ("nights/exposed", "nights/companions"):
            parts: list[exp.Query] = []
            for own in relations:
                query = exp.select(col("person", "e")).from_(subquery(load(statement).bind(own), "e"))
                if statement == "nights/exposed":
                    query = query.where(exp.NEQ(this=col("kind", "e"), expression=text("departed")))
                parts.append(query)
            if not parts:
                return None
            name = engine.fresh("waiting")
            every = exp.select(col("person")).distinct().from_(subquery(union_all(parts), "w"))
            params = {"k": k, **({"salt": salt} if statement == "nights/companions" else {})}
            if engine.create(name, every, params):
                return name
            engine.drop(name)
        return None
    finally:
        engine.drop(*(own["night_groups"] for own in relations))


def _without(engine: Engine, plan: Plan, held: str, key: str) -> tuple[Plan, int]:
    """Return the plan over the source without some persons, and how many rows those have."""
    entity = plan.entity
    assert entity is not None
    source = plan.relation.query
    waiting = engine.fresh("waiting")
    people = exp.select(named(entity, "entity")).distinct().from_(subquery(source.copy(), "s"))
    hashed = exp.select(col("entity"), named(_person(col("entity")), "person")).from_(subquery(people, "e"))
    on = exp.EQ(this=col("person", "h"), expression=col("person", "p"))
    query = exp.select(col("entity", "p")).from_(subquery(hashed, "p")).join(table(held, "h"), on=on)
    engine.create(waiting, query, {"key": key})
    engine.drop(held)
    own = entity.copy()
    for column in own.find_all(exp.Column):
        column.set("table", ident("s"))
    there = exp.EQ(this=own, expression=col("entity", "w"))
    every = exp.select(exp.Column(this=exp.Star(), table=ident("s"))).from_(subquery(source.copy(), "s"))
    rest = every.join(exp.Join(this=table(waiting, "w"), on=there, kind="ANTI"))
    rows = count_rows(engine, source.copy()) - count_rows(engine, rest.copy())
    return replace(plan, relation=replace(plan.relation, query=rest)), rows


__all__ = ["Compared", "Intersection", "check_intersection", "hold_back", "kept_nights", "required_k"]
