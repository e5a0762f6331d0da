"""What a table satisfies: the strongest parameter of every model that can say it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from duckanon.disclosure.subject import looked_at
from duckanon.models.base import models
from duckanon.sqlgen.files import load, names

if TYPE_CHECKING:
    import pyarrow as pa


def privacy(
    data: object,
    *,
    quasi_identifiers: Sequence[str] | None = None,
    sensitive: Sequence[str] = (),
    entity_key: str | None = None,
    connection: Any = None,
) -> pa.Table:
    """Return what a table satisfies, duckanon's or not: one row for each model, and for each sensitive column it reads.

    Parameters
    ----------
    data : str, Path, Source, Arrow object, data frame or Release
    quasi_identifiers : sequence of str
        A release knows its own.
    sensitive : sequence of str
    entity_key : str, optional
        The column that tells persons apart: members of a class are then persons instead of rows.
    connection : duckdb.DuckDBPyConnection, optional

    Returns
    -------
    pyarrow.Table
        ``model``, ``attribute`` (the sensitive column, or NULL), ``parameter`` and its ``value`` (a DOUBLE: the largest
        k that holds, ...), ``unit`` (rows or persons), ``classes``, ``smallest`` and ``largest`` class, ``singletons``
        (how many members are alone in their class).

    Notes
    -----
    A registered model takes part by a file ``sql/levels/<model>.sql`` that returns (attribute, parameter, value) from
    ``classes``, ``class_values`` and ``domain_values``; one that reads sensitive values is left out where no sensitive
    column is named.

    References
    ----------
    L. Sweeney, k-anonymity: a model for protecting privacy, 2002.

    Examples
    --------
    >>> import duckanon, pyarrow as pa
    >>> people = pa.table({"age": [30, 30, 30, 40, 40], "sex": ["f", "f", "f", "m", "m"]})
    >>> row = duckanon.privacy(people, quasi_identifiers=["age", "sex"]).to_pylist()[0]
    >>> row["model"], row["parameter"], row["value"], row["classes"], row["singletons"]
    ('k_anonymity', 'k', 2.0, 2, 0)
    """
    import pyarrow as pa

    files = {name: load(f"levels/{name}") for name in models if f"levels/{name}" in names("levels")}
    wanted = {relation for file in files.values() for relation in file.reads}
    rows: list[dict[str, Any]] = []
    with looked_at(
        data, quasi_identifiers=quasi_identifiers, sensitive=sensitive, entity_key=entity_key, connection=connection
    ) as subject:
        relations = subject.relations(sorted(wanted))
        sizes = load("risk/sizes")
        classes, _, smallest, largest, singletons = subject.engine.row(sizes.bind({"classes": relations["classes"]}))
        for name, file in files.items():
            if not set(file.reads) <= set(relations):
                continue
            for attribute, parameter, value in subject.engine.rows(file.bind({r: relations[r] for r in file.reads})):
                rows.append(
                    {
                        "model": name,
                        "attribute": attribute,
                        "parameter": parameter,
                        "value": value,
                        "unit": subject.unit,
                        "classes": classes,
                        "smallest": smallest,
                        "largest": largest,
                        "singletons": singletons,
                    }
                )
        subject.engine.drop(*relations.values())
    texts = [(key, pa.string()) for key in ("model", "attribute", "parameter")]
    counts = [(key, pa.int64()) for key in ("classes", "smallest", "largest", "singletons")]
    schema = pa.schema([*texts, ("value", pa.float64()), ("unit", pa.string()), *counts])
    return pa.Table.from_pylist(rows, schema=schema)
