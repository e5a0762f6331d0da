"""Rows held out where nobody gave controls, and a release of the other rows, made as the attacked one was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from duckanon.encoding.counting import count_rows
from duckanon.encoding.dictionaries import canonical
from duckanon.engine.sql.relations import builtin, call, cast, col, named, number, subquery, table, text
from duckanon.errors import DuckanonError, ResourceError
from duckanon.progress import Progress
from duckanon.release import pipeline

if TYPE_CHECKING:
    from duckanon.assess.attacks.base import Settings
    from duckanon.engine.base import Engine
    from duckanon.io.source import Relation
    from duckanon.plan.plan import Plan
    from duckanon.release.release import Release

FEWEST = 100
"""Fewest rows that are held out: of fewer the success says too little."""
CLASSES = 10
"""How many classes of k the remaining rows must be able to fill."""


class NotHeldOutError(Exception):
    """Why no rows can be held out, in words."""


@dataclass(frozen=True)
class HeldOut:
    """Rows that were held out, the others, and the private release of those."""

    people: Relation
    controls: Relation
    release: Release
    counts: tuple[int, int]
    """How many rows remained, and how many were held out."""

    @property
    def text(self) -> str:
        """What was done, in words."""
        rest, out = self.counts
        return f"{out:,} rows were held out, and a release of the other {rest:,}, made in the same way, was attacked."

    @property
    def too_few(self) -> str:
        """Why a finding stays undecided, in words."""
        return f"The {self.counts[1]:,} rows that were held out are too few to tell."


@contextmanager
def holding_out(release: Release, rows: int, share: float, settings: Settings) -> Iterator[HeldOut]:
    """Divide the rows of which a release was made, and yield the parts with a private release of the larger one.

    ``rows`` is how many the original has, which must be those of the release; ``share`` is how much of them is held
    out, though no more than are attacked. Nothing is left afterwards. NotHeldOutError where it cannot be done.
    """
    engine, plan = release.engine, release.plan
    share = min(share, settings.sample / max(rows, 1))
    if not plan.algorithm.searches:
        raise NotHeldOutError("its recoding was stored, so that it does not depend on the rows")
    if rows != release.rows_in:
        raise NotHeldOutError("the original has not as many rows as the table of which the release was made")
    # Its steps are not those of the release that is attacked.
    shown, engine.progress = engine.progress, Progress(engine.progress.listener)
    try:
        with engine.forgetting():
            held = _made(plan, engine, rows, share, settings)
            try:
                yield held
            finally:
                held.release.folder.close()
    finally:
        engine.progress = shown


def _made(plan: Plan, engine: Engine, rows: int, share: float, settings: Settings) -> HeldOut:
    try:
        people, controls = divided(plan, engine, share, settings.seed, settings.key)
        rest, out = count_rows(engine, people.query), count_rows(engine, controls.query)
    except ResourceError:
        raise
    except DuckanonError as unread:
        raise NotHeldOutError(f"the table of which the release was made cannot be read again. {unread}") from None
    if rest + out != rows:
        raise NotHeldOutError("the table of which the release was made has changed")
    if out < FEWEST:
        raise NotHeldOutError(f"they would be {out}, and fewer than {FEWEST} say too little")
    if rest < CLASSES * (settings.k or 1):
        raise NotHeldOutError(f"{rest:,} rows would remain, and fewer than {CLASSES} times k are too few")
    try:
        # With a seed the same figures come out again; nobody publishes this release.
        seed = plan.seed if plan.seed is not None else settings.seed
        release = pipeline.run(replace(plan, relation=people, seed=seed), engine)
    except ResourceError:
        raise
    except DuckanonError as failed:
        raise NotHeldOutError(f"of the remaining rows no release could be made. {failed}") from None
    return HeldOut(people, controls, release, (rest, out))


def divided(plan: Plan, engine: Engine, share: float, seed: int, key: str | None) -> tuple[Relation, Relation]:
    """Divide the rows of a plan by the seed, all rows of a person to one side: those that remain, and those held out.

    Persons are told apart by the entity key of the plan, or else by ``key``; without one each row is one.
    """
    relation, person = plan.relation, plan.entity
    keys = {n.lower() for n in (plan.roles.entity_key, key) if n is not None}
    columns = {a.name for a in plan.roles.published} | {n for n in relation.names if n.lower() in keys}
    if person is None and keys:
        name = next(n for n in relation.names if n.lower() in keys)
        person = canonical(col(name), relation.type_of(name), relation.collated)
    unit: exp.Expr = exp.Window(this=exp.RowNumber()) if person is None else person.copy()
    marks, out = engine.fresh("divided"), engine.fresh("held_out")
    kept = tuple(c for c in relation.columns if c.name in columns)
    numbered = exp.select(*(col(c.name) for c in kept), named(cast(unit, "VARCHAR"), out))
    numbered = numbered.from_(subquery(relation.query.copy(), "s"))
    # The hash is that of RFC 1321, which no version of a database changes. Rows without a key are one person.
    place = builtin("md5_number_lower", call("concat", text(f"{seed}:"), col(out)))
    below = exp.LT(this=place, expression=number(int(share * 2**64)))
    engine.create(marks, exp.select(*(col(c.name) for c in kept), named(below, out)).from_(subquery(numbered, "n")))

    def part(held: bool) -> Relation:
        where = col(out) if held else exp.Not(this=col(out))
        query = exp.select(*(col(c.name) for c in kept)).from_(table(marks)).where(where)
        return replace(relation, query=query, columns=kept)

    return part(False), part(True)
