"""What a released table lost, whoever made it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.disclosure.placing import Placed, place
from duckanon.disclosure.subject import Subject, of_table, opened
from duckanon.errors import DataError, ParameterError
from duckanon.metrics.base import measure as measure_relations
from duckanon.metrics.base import metrics as registry
from duckanon.release import Release
from duckanon.sqlgen.files import load
from duckanon.sqlgen.relations import cast, col, named, number, same, table, text, union_all

if TYPE_CHECKING:
    from duckanon.metrics.base import Measure


def measure(
    original: object,
    release: object,
    *,
    quasi_identifiers: Sequence[str] | None = None,
    hierarchies: Mapping[str, Any] | None = None,
    metrics: Sequence[str] | None = None,
    connection: Any = None,
) -> list[Measure]:
    """Return what a release lost, by the metrics named or by all that can be computed.

    Parameters
    ----------
    original : str, Path, Source, Arrow object or data frame
        The table that was anonymized. Rows that the released table has fewer count as suppressed.
    release : Release, or anything that ``original`` may be
        A ``Release`` knows its own loss, and nothing else is read.
    quasi_identifiers : sequence of str
        Those of a released table that is no ``Release``.
    hierarchies : mapping of str to Hierarchy, name, path or rule, optional
        How the table was generalized: with them, metrics that look at cells (loss, precision) are computed, too.
        Columns that are not named get the hierarchy that ``anonymize`` would make; labels on no level are an error.
    metrics : sequence of str, optional
    connection : duckdb.DuckDBPyConnection, optional

    Notes
    -----
    A label's level is looked up. Where several levels have all labels of a column, the lowest is taken: precision,
    which counts levels, is then an upper bound. Loss counts leaves and is the same on each of them.

    References
    ----------
    V. Iyengar, Transforming data to satisfy privacy constraints, 2002; L. Sweeney, Achieving k-anonymity privacy
    protection using generalization and suppression, 2002; each metric names its own.

    Examples
    --------
    >>> import duckanon, pyarrow as pa
    >>> people = pa.table({"zip": ["13053", "13268", "13053", "13269"]})
    >>> released = pa.table({"zip": ["1305*", "1305*"]})
    >>> for m in duckanon.measure(people, released, quasi_identifiers=["zip"]):
    ...     print(m.metric, m.value)
    average_class_size 2.0
    discernibility 12.0
    """
    if isinstance(release, Release):
        return release.measure(metrics)
    wanted = list(metrics) if metrics is not None else None
    cells = hierarchies is not None
    available = {name: load(f"metrics/{name}").reads for name in registry}
    offered = [name for name, reads in available.items() if cells or set(reads) <= {"classes"}]
    for name in wanted or ():
        registry.get(name)
        if name not in offered:
            raise ParameterError(f"The metric {name!r} looks at cells: give the hierarchies that made the table.")
    with opened(connection) as engine:
        released = of_table(engine, release, quasi_identifiers)
        source = of_table(engine, original, list(released.quasi))
        relations = {"classes": _classes(source, released)}
        if hierarchies is not None:
            placed = place(source, released, hierarchies)
            relations["class_cells"] = _class_cells(released, relations["classes"], placed)
            relations["domain"] = _domain(released, placed)
        return measure_relations(engine, relations, wanted if wanted is not None else offered)


def _classes(original: Subject, released: Subject) -> str:
    """Create ``classes`` of the released table, with the rows that it lacks as one suppressed class."""
    engine, kept = released.engine, released.classes()
    rows, published = original.rows(), released.rows()
    if published > rows:
        raise DataError(f"The released table has {published} rows, the original only {rows}: it was not made from it.")
    if published == rows:
        return kept
    names = [c.name for c in engine.columns(exp.select("*").from_(table(kept)))]
    blank = {"class_id": number(0), "n": number(rows - published), "suppressed": exp.true()}
    lost = exp.select(*(named(blank.get(n, exp.null()), n) for n in names))
    name = engine.fresh("classes")
    engine.create(name, union_all([exp.select("*").from_(table(kept)), lost]))
    return name


def _class_cells(released: Subject, classes: str, placed: Sequence[Placed]) -> str:
    null = cast(exp.null(), "DOUBLE")
    parts: list[exp.Query] = []
    for j, p in enumerate(placed):
        part = exp.select(
            col("class_id", "c"),
            named(text(p.attribute), "attribute"),
            col("level", "p"),
            col("leaves", "p"),
            named(null.copy(), "lo"),
            named(null.copy(), "hi"),
        ).from_(table(classes, "c"))
        on = same(cast(col(f"q_{j}", "c"), "VARCHAR"), col("label", "p"))
        parts.append(part.join(table(p.places, "p"), on=on).where(exp.Not(this=col("suppressed", "c"))))
    name = released.engine.fresh("class_cells")
    released.engine.create(name, union_all(parts))
    return name


def _domain(released: Subject, placed: Sequence[Placed]) -> str:
    null = cast(exp.null(), "DOUBLE")
    parts: list[exp.Query] = [
        exp.select(
            named(text(p.attribute), "attribute"),
            named(text("full_domain" if p.level is not None else "cell"), "kind"),
            named(number(p.levels.height), "height"),
            named(number(p.levels.size), "leaves"),
            named(null.copy(), "lo"),
            named(null.copy(), "hi"),
            named(cast(number(1), "DOUBLE"), "weight"),
        )
        for p in placed
    ]
    name = released.engine.fresh("domain")
    released.engine.create(name, union_all(parts))
    return name


__all__ = ["measure"]
