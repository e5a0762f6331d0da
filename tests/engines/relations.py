"""Small relations in an engine, read by the statements of ``sql/``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from duckanon.engine.base import Engine
from duckanon.engine.sql.files import load
from duckanon.testing.common import RELATIONS

Rows = Mapping[str, Sequence[Sequence[Any]]]
_TYPES = {"int64": pa.int64(), "string": pa.string(), "bool": pa.bool_(), "float64": pa.float64()}


@contextmanager
def registered(engine: Engine, rows: Rows) -> Iterator[dict[str, str]]:
    """Make relations readable and give the names of their tables; they are gone afterwards."""
    names = {}
    for relation, given in rows.items():
        columns = zip(*given, strict=True) if given else [[]] * len(RELATIONS[relation])
        types = [_TYPES[kind] for kind in RELATIONS[relation].values()]
        arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
        names[relation] = engine.fresh(relation)
        engine.register(names[relation], pa.table(arrays, names=list(RELATIONS[relation])))
    try:
        yield names
    finally:
        for name in names.values():
            engine.unregister(name)


def ask(engine: Engine, statement: str, rows: Rows, **parameters: Any) -> list[tuple[Any, ...]]:
    """Return what ``sql/<statement>.sql`` says of relations, of which those that it does not read are left out."""
    file = load(statement)
    with registered(engine, {relation: rows[relation] for relation in file.reads}) as names:
        return engine.rows(file.bind(names), {name: parameters[name] for name in file.params})
