"""The information loss of a released table, whoever made it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlglot import exp

from duckanon.assess.assessed_table import AssessedTable, of_table
from duckanon.assess.labels.cells import cell_domains
from duckanon.encoding.counting import count_values
from duckanon.encoding.dictionaries import Dictionary, frequency_query
from duckanon.engine.base import workspace
from duckanon.engine.sql.relations import (
    RelationTables,
    cast,
    col,
    conjunction,
    named,
    number,
    relation,
    same,
    subquery,
    table,
    union_all,
)
from duckanon.errors import DataError, HierarchyError, ParameterError
from duckanon.metrics.base import measure as measure_relations
from duckanon.metrics.base import metrics as registry
from duckanon.metrics.base import require_names
from duckanon.models.base import require_int
from duckanon.recoding.relations import QuasiIdentifierDomain, ReleaseRelations
from duckanon.release.release import Release
from duckanon.release.results import Measures

_WIDEST = 20_000_000
"""More pairs of a tuple and a beginning of a class than this, and rows are not followed to their classes."""


def measure(
    original: object,
    release: object,
    *,
    quasi_identifiers: Sequence[str] | None = None,
    sensitive: Sequence[str] = (),
    hierarchies: Mapping[str, Any] | None = None,
    metrics: Sequence[str] | None = None,
    k: int | None = None,
    connection: Any = None,
) -> Measures:
    """Return what a release lost, by the metrics named or by all that can be computed.

    Parameters
    ----------
    original : str, Path, Source, Arrow object or data frame
        The table that was anonymized. Rows that the released table has fewer count as suppressed.
    release : Release, or anything that ``original`` may be
        A ``Release`` knows its own loss, and nothing else is read.
    quasi_identifiers : sequence of str
        Those of a released table that is no ``Release``.
    sensitive : sequence of str
        What a classifier would predict; for the metric ``classification``.
    hierarchies : mapping of str to Hierarchy, name, path or rule, optional
        How the table was generalized. Columns that are not named get the hierarchy that ``anonymize`` would make.
        Without a mapping there are no levels, and the domain of a column is the values that it has.
    metrics : sequence of str, optional
    k : int, optional
        The k that the table satisfies; for the metric ``average_class_size_lefevre``.
    connection : duckdb.DuckDBPyConnection, optional

    Notes
    -----
    A cell is an original value, a label of the hierarchy, ``*`` for anything, an interval (``[20, 30)``, ``20-30``,
    ``20~30``), a set of values (``{a, b}``, ``a,b``), or, among numbers, a point that no row had, such as the mean of a
    cluster. Cells that are none of these are an error, unless only metrics that need classes alone are computed.

    The level of a label is searched for. Where several levels have all labels of a column, the lowest is taken:
    precision, which counts levels, is then an upper bound. Loss counts leaves and is the same on each of them.

    Metrics that follow rows to their classes (``kl_divergence``, ``non_uniform_entropy``, ``squared_distance_error``,
    ``sse``, ``sse_ratio``) are computed where every original row fits one class only.

    References
    ----------
    V. Iyengar, Transforming data to satisfy privacy constraints, 2002; L. Sweeney, Achieving k-anonymity privacy
    protection using generalization and suppression, 2002; each metric names its own.

    Examples
    --------
    >>> import duckanon, pyarrow as pa
    >>> people = pa.table({"age": [21, 24, 38, 39]})
    >>> released = pa.table({"age": ["21-24", "21-24"]})
    >>> for m in duckanon.measure(people, released, quasi_identifiers=["age"], metrics=["discernibility", "gcp"]):
    ...     print(m.metric, m.attribute, round(m.value, 4))
    discernibility None 12.0
    gcp None 0.5833
    gcp age 0.5833
    """
    if isinstance(release, Release):
        return release.measure(metrics)
    require_names(metrics)
    if hierarchies is not None and not isinstance(hierarchies, Mapping):
        raise ParameterError(f"hierarchies must be a mapping of columns. Got a {type(hierarchies).__name__}.")
    params = {"k": None if k is None else require_int("measure", "k", k, 1)}
    reads = {name: set(registry.get(name).reads()) for name in metrics or registry}
    with workspace(connection) as engine:
        released = of_table(engine, release, quasi_identifiers, sensitive)
        source = of_table(engine, original, list(released.quasi))
        classes = _classes(source, released)
        relations = RelationTables(engine, {"classes": classes})
        if any(names - {"classes", "class_values"} for names in reads.values()):
            try:
                domains = cell_domains(source, released, hierarchies)
            except HierarchyError:
                # By default all metrics that can be computed are.
                if metrics is not None or hierarchies is not None:
                    raise
            else:
                relations = own = _TableRelations(source, released, classes, domains)
                if any("tuples" in names for names in reads.values()):
                    own.follow_rows()
        if released.sensitive and any("class_values" in names for names in reads.values()):
            columns = list(released.quasi.values())
            values = count_values(engine, released.query, columns, released.sensitive, classes)
            relations.add("class_values", values)
        return Measures(measure_relations(engine, relations, metrics, params))


def _classes(original: AssessedTable, released: AssessedTable) -> str:
    """Create ``classes`` of the released table, with the rows that it lacks as one suppressed class."""
    engine, classes = released.engine, released.classes()
    rows, published = original.rows(), released.rows()
    if published > rows:
        raise DataError(f"The released table has {published} rows, the original only {rows}: it was not made from it.")
    if published == rows:
        return classes
    names = [c.name for c in engine.columns(exp.select("*").from_(table(classes)))]
    blank = {"class_id": number(0), "n": number(rows - published), "suppressed": exp.true()}
    lost = exp.select(*(named(blank.get(n, exp.null()), n) for n in names))
    name = engine.fresh("classes")
    engine.create(name, union_all([exp.select("*").from_(table(classes)), lost]))
    return name


class _TableRelations(ReleaseRelations):
    """The relations of any released table, beside its original."""

    def __init__(
        self, original: AssessedTable, released: AssessedTable, classes: str, domains: Sequence[QuasiIdentifierDomain]
    ) -> None:
        self.original, self.released, self.domains = original, released, domains
        # The sensitive columns that both tables have, of one type.
        types = {name.lower(): kind for name, kind in original.types.items()}
        shared = [n for n in released.sensitive if types.get(n.lower()) == released.type_of(n)]
        passed = [(name, released.type_of(name)) for name in shared]
        super().__init__(released.engine, {"classes": classes}, passed)
        self._members: str | None = None

    def lacks(self, name: str) -> bool:
        followed = self._members is not None
        return (name in ("tuples", "tuple_values") and not followed) or super().lacks(name)

    @relation
    def frequency(self) -> exp.Query:
        """``(c_0, ..., n)``: the distinct combinations of values of the original."""
        expressions = self.original.quasi.values()
        columns = [Dictionary(d.name, e, d.values, 2**31) for d, e in zip(self.domains, expressions, strict=True)]
        return frequency_query(self.original.query, columns)

    @relation
    def labelled(self) -> exp.Query:
        """``(class_id, n, l_0, ...)``: the published classes with the texts of their cells."""
        texts = [named(cast(col(f"q_{j}"), "VARCHAR"), f"l_{j}") for j in range(len(self.domains))]
        query = exp.select(col("class_id"), col("n"), *texts).from_(table(self.table("classes")))
        return query.where(exp.Not(this=col("suppressed")))

    def member_rows(self) -> exp.Query:
        assert self._members is not None
        return exp.select("*").from_(table(self._members))

    def source_rows(self) -> exp.Query:
        quasi = [named(e.copy(), f"q_{j}") for j, e in enumerate(self.original.quasi.values())]
        rest = [named(self.original.column(name), f"p_{i}") for i, (name, _) in enumerate(self.passed)]
        return exp.select(*quasi, *rest).from_(subquery(self.original.query.copy(), "s"))

    def class_rows(self) -> exp.Query:
        released = self.released
        keys = [named(e.copy(), f"q_{j}") for j, e in enumerate(released.quasi.values())]
        values = [named(released.sensitive[name].copy(), f"p_{i}") for i, (name, _) in enumerate(self.passed)]
        counted = exp.select(*keys, *values, named(exp.Count(this=exp.Star()), "n"))
        counted = counted.from_(subquery(released.query.copy(), "s")).group_by(exp.var("ALL"))
        on = conjunction([same(col(f"q_{j}", "v"), col(f"q_{j}", "c")) for j in range(len(keys))])
        columns = [col("class_id", "c"), *(col(f"p_{i}", "v") for i in range(len(values))), col("n", "v")]
        return exp.select(*columns).from_(subquery(counted, "v")).join(table(self.table("classes"), "c"), on=on)

    def follow_rows(self) -> None:
        """Follow the original rows to the classes that cover them, if each fits one class and no class lacks any."""
        self._members = _members(self)


def _members(relations: _TableRelations) -> str | None:
    """Follow the original rows to the classes that cover them; None where some row fits several, or counts differ.

    Column by column: a tuple is joined to the beginnings of classes that cover its beginning, so that what grows is
    the number of classes that a row may still belong to.
    """
    engine, width = relations.engine, len(relations.domains)
    codes = [col(f"c_{j}", "f") for j in range(width)]
    texts: list[exp.Expr] = []
    members: str | None = None
    for j in range(width):
        base = table(relations.table("frequency"), "f") if members is None else table(members, "f")
        keep = [*codes, col("n", "f"), *(col(f"l_{i}", "f") for i in range(j))]
        texts.append(col(f"l_{j}"))
        beginnings = exp.select(*(t.copy() for t in texts)).distinct().from_(table(relations.table("labelled")))
        covering = exp.and_(
            exp.EQ(this=col("j", "o"), expression=number(j)),
            exp.EQ(this=col("code", "o"), expression=col(f"c_{j}", "f")),
        )
        fits = [same(col(f"l_{i}", "b"), col(f"l_{i}", "f")) for i in range(j)]
        fits.append(same(col(f"l_{j}", "b"), col("cell", "o")))
        name = engine.fresh("members")
        engine.create(
            name,
            exp.select(*(k.copy() for k in keep), col(f"l_{j}", "b"))
            .from_(base)
            .join(table(relations.table("covers"), "o"), on=covering)
            .join(subquery(beginnings, "b"), on=conjunction(fits)),
        )
        (grown,) = engine.row(exp.select(exp.Count(this=exp.Star())).from_(table(name)))
        if members is not None:
            engine.drop(members)
        members = name
        if grown > _WIDEST:
            return None
    assert members is not None
    return _checked(relations, members, width)


def _checked(relations: _TableRelations, found: str, width: int) -> str | None:
    """Return the rows by class, those that no class covers being suppressed, if every class has as many as it shows."""
    engine = relations.engine
    names = [f"c_{j}" for j in range(width)]
    on = conjunction([same(col(f"l_{j}", "c"), col(f"l_{j}", "f")) for j in range(width)])
    placed = exp.select(col("class_id", "c"), *(col(c, "f") for c in names), col("n", "f"))
    placed = placed.from_(table(found, "f")).join(table(relations.table("labelled"), "c"), on=on)
    covered = exp.and_(*(exp.EQ(this=col(c, "m"), expression=col(c, "f")) for c in names))
    rest = exp.select(named(cast(number(0), "BIGINT"), "class_id"), *(col(c, "f") for c in names), col("n", "f"))
    rest = rest.from_(table(relations.table("frequency"), "f")).join(table(found, "m"), on=covered, join_type="anti")
    members = engine.fresh("members")
    engine.create(members, union_all([placed, rest]))
    counted = exp.select(col("class_id"), named(exp.Sum(this=col("n")), "n")).from_(table(members))
    fit = exp.and_(*(exp.EQ(this=col(c, "m"), expression=col(c, "c")) for c in ("class_id", "n")))
    (classes,) = engine.row(exp.select(exp.Count(this=exp.Star())).from_(table(relations.table("classes"))))
    (same_size,) = engine.row(
        exp.select(exp.Count(this=exp.Star()))
        .from_(subquery(counted.group_by(col("class_id")), "m"))
        .join(table(relations.table("classes"), "c"), on=fit)
    )
    keys = exp.select(*(col(c) for c in names)).distinct().from_(table(members))
    (distinct,) = engine.row(exp.select(exp.Count(this=exp.Star())).from_(subquery(keys, "k")))
    (rows,) = engine.row(exp.select(exp.Count(this=exp.Star())).from_(table(members)))
    if same_size != classes or distinct != rows:
        return None
    return members


__all__ = ["measure"]
