"""A release beside an earlier one of the same people: how persons are followed from one to the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.assess.attacks.base import Case
from duckanon.assess.composition import Composition, by_classes, by_key
from duckanon.assess.overlap import by_overlap
from duckanon.assess.subject import Subject, of_table
from duckanon.engine.sql.relations import cast, named, subquery
from duckanon.errors import ParameterError
from duckanon.models.base import require_int

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.assess.attacks.sight import Sight

_APART = 1 << 40
"""Numbers of classes of one release are below it, those of the other from it on."""


def composed(
    subject: Subject,
    previous: object,
    *,
    entity_key: str | None = None,
    original: object = None,
    previous_original: object = None,
    hierarchies: Mapping[str, Any] | None = None,
    k: int,
) -> Composition:
    """Count the groups of persons that a table and an earlier one tell apart together; see ``risk``."""
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
            raise ParameterError("Two originals need an entity_key that says who is who in both.")
        then = of_table(subject.engine, previous_original, quasi, entity_key=entity_key)
    tables = [
        _placed(people, released, hierarchies or {}, night)
        for night, (people, released) in enumerate(((then, before), (now, subject)))
    ]
    return by_classes(subject.engine, tables[0], tables[1], least)


def everyone(case: Case) -> Sight:
    """Return the release and all people of the original in the same places, quasi-identifiers alone."""
    from duckanon.assess.attacks.looking import look

    settings = replace(case.settings, sample=max(case.original.rows(), 1), key=None)
    return look(replace(case, carried=(), control=None, settings=settings))


def _placed(people: Subject, released: Subject, hierarchies: Mapping[str, Any], night: int) -> pa.Table:
    """Return ``(person, class_id)``: in which published classes each row of an original can be."""
    import numpy as np
    import pyarrow as pa

    pairs = zip(people.quasi, released.quasi, strict=True)
    case = Case(people, released, {}, None, (), {o: (r,) for o, r in pairs}, hierarchies=hierarchies)
    sight = everyone(case)
    links = sight.view(range(sight.quasi)).nearest(sight.targets)
    inside = np.repeat(links.far == 0, np.diff(links.starts))
    assert sight.targets.rows is not None
    rows = np.repeat(sight.targets.rows, np.diff(links.starts))[inside]
    persons = _persons(people).take(pa.array(rows))
    return pa.table({"person": persons, "class_id": links.found[inside] + night * _APART}).filter(persons.is_valid())


def _persons(people: Subject) -> pa.ChunkedArray:
    """Return who each row is, in the order of the table: the key, or the number of the row."""
    import numpy as np
    import pyarrow as pa

    if people.entity is None:
        return pa.chunked_array([pa.array(np.arange(people.rows()))])
    query = exp.select(named(cast(people.entity.copy(), "VARCHAR"), "person")).from_(subquery(people.query, "s"))
    return people.engine.arrow(query).column(0)


__all__ = ["composed", "everyone"]
