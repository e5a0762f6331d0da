"""Encodings as a query: codebooks are learnt from the cells of each column, and joined to the rows by the database."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from duckanon.assess.utility.batches import Layout, type_of
from duckanon.assess.utility.fitted import count, learnt, require, resolved
from duckanon.assess.utility.learn_domain import Seen
from duckanon.engine.sql.encodings import Encoded, as_json, distinct_cells, long_form, wide_form
from duckanon.errors import ParameterError, UnsupportedError, did_you_mean
from duckanon.io.source import Source

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlglot import exp

    from duckanon.assess.utility.codebook import Codebook
    from duckanon.engine.base import Engine

FORMS = ("long", "wide")
MOST_ENTRIES = 1_000_000
"""Most numbers that the codebooks of a statement may hold: they are part of its text."""


def encoded_query(
    engine: Engine,
    source: str,
    method: str = "value_set",
    *,
    columns: Sequence[str] | None = None,
    hierarchies: Mapping[str, Any] | None = None,
    keep: Sequence[str] = (),
    form: str = "long",
    max_features: int = 256,
) -> exp.Query:
    """Return the query of a released table as learners read it, to be run in the caller's session.

    Parameters
    ----------
    engine : Engine
    source : str
        A table, query or file with published rows.
    method, columns, hierarchies, max_features
        As for ``AnonymousEncoder``.
    keep : sequence of str
        Columns that go along as they are, such as the one to be learnt.
    form : {"long", "wide"}
        One line for each number that is not 0, ``(row, ..., feature, value)``; or one line for each row, with a column
        for each feature. Rows are numbered from 0 in the order in which the source is read.
    """
    require(method, max_features)
    if form not in FORMS:
        raise ParameterError(f"form must be one of {', '.join(FORMS)}. Got {form!r}.{did_you_mean(form, FORMS)}")
    relation = Source.of(source).open(engine)
    query = relation.query
    for name in keep:
        if name not in relation.names:
            raise ParameterError(f"There is no column {name!r}.{did_you_mean(name, relation.names)}")
    wanted = [name for name in relation.names if name not in keep] if columns is None else columns
    layout = Layout.of(relation.names, wanted)
    counts = _free("n", relation.names)
    tables = {
        name: engine.arrow(distinct_cells(query.copy(), parts, counts)) for name, parts in layout.attributes.items()
    }
    seen = {name: _seen(found, layout, name, method, counts) for name, found in tables.items()}
    books = learnt(seen, method, resolved(hierarchies, engine), max_features)
    if not books:
        raise ParameterError("There is no column to encode.")
    attributes = [_encoded(books[name], tables[name], layout, name, form) for name in books]
    row = _free("row", [*keep, "feature", "value", *(n for a in attributes for n in a.names)])
    return (long_form if form == "long" else wide_form)(relation.outside, attributes, list(keep), row)


def _free(name: str, taken: Sequence[str]) -> str:
    lowered = {other.lower() for other in taken}
    while name in lowered:
        name += "_"
    return name


def _seen(counted: pa.Table, layout: Layout, name: str, method: str, counts: str) -> Seen:
    """Count the cells of a column; each may occur in several rows."""
    kind = type_of(counted.schema.field(0).type)
    seen = Seen(name, None if kind == "VARCHAR" else kind)
    count(seen, layout.cells(counted, name), method, counted.column(counts).to_numpy())
    return seen


def _encoded(book: Codebook, counted: pa.Table, layout: Layout, name: str, form: str) -> Encoded:
    matrix = book.encode(layout.cells(counted, name))
    cells, names = counted.column("cell").to_pylist(), book.names
    size = matrix.nnz if form == "long" else matrix.shape[0] * matrix.shape[1]
    if size > MOST_ENTRIES:
        raise UnsupportedError(
            f"The codebook of {name!r} has {size} numbers, more than {MOST_ENTRIES}: its cells are too many for a "
            "statement. Use duckanon.utility.AnonymousEncoder in Python, or fewer max_features."
        )
    if form == "long":
        rows = matrix.tocoo()
        listed = [
            {"cell": cells[i], "feature": names[j], "value": float(v)}
            for i, j, v in zip(rows.row.tolist(), rows.col.tolist(), rows.data.tolist(), strict=True)
        ]
        shape = {"cell": "VARCHAR", "feature": "VARCHAR", "value": "DOUBLE"}
    else:
        keys = [f"f_{i}" for i in range(len(names))]
        dense = matrix.toarray().tolist()
        listed = [{"cell": cell, **dict(zip(keys, row, strict=True))} for cell, row in zip(cells, dense, strict=True)]
        shape = {"cell": "VARCHAR", **dict.fromkeys(keys, "DOUBLE")}
    rows_text = json.dumps(listed, ensure_ascii=False)
    return Encoded(layout.attributes[name], as_json(rows_text, json.dumps([shape])), names)


__all__ = ["FORMS", "encoded_query"]
