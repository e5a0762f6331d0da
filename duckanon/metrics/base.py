"""The form of a metric: a statement over the class relations, with a direction and bounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import expm1, isfinite, log1p
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from sqlglot import exp

from duckanon.engine.sql.files import SqlFile, load, load_of
from duckanon.engine.sql.relations import cast, col, named, number, subquery, table, text, union_all
from duckanon.errors import ParameterError
from duckanon.registry import Registry

if TYPE_CHECKING:
    from duckanon.engine.base import Engine
    from duckanon.engine.sql.relations import RelationTables
    from duckanon.models.base import Model


_NEEDS = {
    "classes": "classes that can be seen in the release",
    "class_cells": "what the cells stand for (hierarchies, or labels that can be understood)",
    "cell_rows": "what the cells stand for (hierarchies, or labels that can be understood)",
    "class_values": "a sensitive column",
    "pairs": "two columns or more, quasi-identifiers or sensitive ones",
    "tuples": "to know which original row became which published one",
}


@dataclass(frozen=True)
class Measure:
    """One value of one metric: of an attribute, or of the whole release where ``attribute`` is None.

    ``normalised`` is 0 at the best that there can be and 1 on the fully suppressed table, whatever the metric's unit
    and direction, and between for all others; None where there is no value, or one that is not finite.
    """

    metric: str
    value: float | None
    direction: str
    attribute: str | None = None
    normalised: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the measure as plain values."""
        return asdict(self)


class MetricValue(NamedTuple):
    """A value that a statement returned, with the worst and the best possible one where it knows them."""

    attribute: str | None
    value: float | None
    worst: float | None = None
    best: float | None = None


class Metric:
    """A number that says how much information a release lost, or still has.

    A subclass is registered under a name; ``sql/metrics/<name>.sql`` returns (attribute, value), (attribute, value,
    worst) or (attribute, value, worst, best) rows, with a NULL attribute for the whole release. ``worst`` is the value
    on the fully suppressed table, ``best`` that of a table of which nothing is lost; where the statement has none, they
    are the bounds.

    Attributes
    ----------
    direction : {"lower", "higher"}
        Which is better.
    bounds : tuple of float and float or None
        Between which all values lie; None where the data decide.
    best : float, optional
        The value of an untouched table, where it is not the better of the bounds.
    params : tuple of str
        The parameters of the statement, such as "k".
    headline : bool
        Whether reports show it. Such a metric must be quick, and read no more than classes, class_cells, cell_rows and
        domain.
    ignores_suppression : bool
        Whether the metric looks at published rows only, so that suppressing rows can improve it.
    beyond : bool
        Whether a release can be better than an untouched table, or worse than a fully suppressed one, as where it shows
        what the original does not. Normalised it then is as good as the one, or as bad as the other.
    """

    name: ClassVar[str]
    summary: ClassVar[str] = ""
    direction: ClassVar[str] = "lower"
    bounds: ClassVar[tuple[float, float | None]] = (0.0, None)
    best: ClassVar[float | None] = None
    params: ClassVar[tuple[str, ...]] = ()
    headline: ClassVar[bool] = False
    ignores_suppression: ClassVar[bool] = False
    beyond: ClassVar[bool] = False

    @classmethod
    def statement(cls) -> SqlFile:
        """Return the statement: of ``sql/metrics``, or beside the module of another package."""
        return load_of("metrics", cls)

    @classmethod
    def reads(cls) -> tuple[str, ...]:
        """Return the relations that are read."""
        return tuple(cls.statement().reads)

    @classmethod
    def rows(cls, engine: Engine, relations: RelationTables, params: Mapping[str, Any]) -> list[MetricValue]:
        """Return the values of the whole and of attributes."""
        file = cls.statement()
        bound = file.bind(relations.tables(*file.reads))
        given = {name: params[name] for name in file.params}
        return [MetricValue(row[0], *(_float(v) for v in row[1:])) for row in engine.rows(bound, given)]

    @classmethod
    def missing(cls, relations: RelationTables, params: Mapping[str, Any]) -> list[str]:
        """Return what the metric needs and is not there."""
        return [r for r in cls.reads() if not relations.has(r)] + [p for p in cls.params if params.get(p) is None]

    @classmethod
    def normalised(cls, measured: MetricValue) -> float | None:
        """Return where a value lies between the best there is (0) and the fully suppressed table (1)."""
        better, worse = cls.bounds if cls.direction == "lower" else cls.bounds[::-1]
        best = next((b for b in (measured.best, cls.best, better) if b is not None), None)
        worst = measured.worst if measured.worst is not None else worse
        value = measured.value
        if value is None or best is None or worst is None or not (isfinite(value) and isfinite(worst)):
            return None
        if worst == best:
            # Nothing can be lost here: a column of one value, a table of one row.
            worse = value > best if cls.direction == "lower" else value < best
            return 0.0 if value == best else float(worse) if cls.beyond else None
        place = (value - best) / (worst - best) + 0.0
        return min(max(place, 0.0), 1.0) if cls.beyond else place


metrics: Registry[Metric] = Registry("metric", "duckanon.metrics")


def headlines() -> list[str]:
    """Return the names of the metrics that reports show."""
    return [name for name in metrics if metrics.get(name).headline]


def metric_parameters(models: Sequence[Model]) -> dict[str, Any]:
    """Return the parameters of metrics: k, where a model has one."""
    given = [m.parameters().get("k") for m in models if not m.needs_population]
    return {"k": max((k for k in given if k is not None), default=None)}


def require_names(names: Sequence[str] | None) -> None:
    """Raise unless metrics are given as a list of names, or not at all."""
    if names is None:
        return
    if isinstance(names, str) or not isinstance(names, Iterable) or not all(isinstance(n, str) for n in names):
        raise ParameterError("metrics must be a list of names, such as ['loss', 'precision'].")


def measure(
    engine: Engine,
    relations: RelationTables,
    names: Sequence[str] | None = None,
    params: Mapping[str, Any] | None = None,
) -> list[Measure]:
    """Return the values of the metrics named, or of all that can be computed; totals first, then attributes.

    A metric that is named and cannot be computed is a ParameterError that says what is missing.
    """
    require_names(names)
    measures: list[Measure] = []
    given = params or {}
    for name in names if names is not None else list(metrics):
        metric = metrics.get(name)
        missing = metric.missing(relations, given)
        if missing and names is not None:
            needs = ", ".join(dict.fromkeys(_NEEDS.get(m, m) for m in missing))
            raise ParameterError(f"The metric {name!r} cannot be computed here: it needs {needs}.")
        if missing:
            continue
        values = [
            Measure(name, row.value, metric.direction, row.attribute, metric.normalised(row))
            for row in metric.rows(engine, relations, given)
        ]
        measures += sorted(values, key=lambda m: (m.attribute is not None, m.attribute or ""))
    return measures


def _float(value: Any) -> float | None:
    return float(value) if value is not None else None


_CELL = ("attribute", "level", "leaves", "lo", "hi")


class CellMetric(Metric):
    """A metric of cells: what one counts depends on the cell and on the domain of its column.

    ``sql/metrics/<name>.sql`` returns (attribute, value) for each cell of ``cell_rows``. A suppressed cell is one of
    which level, leaves and bounds are NULL. The values of columns and of the whole release follow from it, those on a
    fully suppressed and on an untouched table, and those of single rows (``of_classes``).

    Attributes
    ----------
    cells : str, optional
        The metric whose statement is used, where another one counts cells in the same way.
    over_rows : {"mean", "sum"}
        How the cells of a column are put together.
    over_columns : {"mean", "geometric mean", "sum", "weighted sum"}
        How columns are put together; means are weighted.
    """

    cells: ClassVar[str | None] = None
    over_rows: ClassVar[Literal["mean", "sum"]] = "mean"
    over_columns: ClassVar[Literal["mean", "geometric mean", "sum", "weighted sum"]] = "mean"

    @classmethod
    def statement(cls) -> SqlFile:
        return load(f"metrics/{cls.cells}") if cls.cells else load_of("metrics", cls)

    @classmethod
    def reads(cls) -> tuple[str, ...]:
        return ("classes", *cls.statement().reads)

    @classmethod
    def rows(cls, engine: Engine, relations: RelationTables, params: Mapping[str, Any]) -> list[MetricValue]:
        domain = relations.table("domain")
        cells = exp.select(*map(col, _CELL), col("n"), named(text("published"), "part"))
        parts = [cells.from_(table(relations.table("cell_rows")))]
        for part, single in (("worst", _suppressed_cells(domain)), ("best", _untouched_cells(domain))):
            parts.append(exp.select(*map(col, _CELL), number(1), text(part)).from_(single))
        counted = cls._counted(domain, subquery(union_all(parts), "x"), "n", "part")
        sums = exp.select(col("part"), col("attribute"), exp.Sum(this=_product("n", "value")))
        sums = sums.from_(subquery(counted, "c"), copy=False).group_by(col("part"), col("attribute"), copy=False)
        numbers: dict[str, dict[str, float | None]] = {"published": {}, "worst": {}, "best": {}}
        for part, attribute, value in engine.rows(sums):
            numbers[part][attribute] = value
        suppressed = exp.case().when(col("suppressed"), col("n")).else_(number(0))
        totals_of_classes = exp.select(*(cast(exp.Sum(this=n), "DOUBLE") for n in (col("n"), suppressed)))
        rows, lost = engine.row(totals_of_classes.from_(table(relations.table("classes"))))
        weights = dict(engine.rows(exp.select(col("attribute"), col("weight")).from_(table(domain))))
        names = sorted(weights)
        columns: dict[str, tuple[float | None, ...]] = {}
        for name in names:
            worst, best = numbers["worst"][name], numbers["best"][name]
            total = None
            if rows is not None and lost is not None and worst is not None:
                total = (numbers["published"].get(name) or 0) + lost * worst
            totals = [total, *(None if v is None or rows is None else rows * v for v in (worst, best))]
            if cls.over_rows == "mean":
                mean = total / rows if total is not None and rows else None
                totals = [mean, worst, best]
            weight = weights[name] if cls.over_columns == "weighted sum" else 1
            columns[name] = tuple(None if v is None else (weight or 0) * v for v in totals)
        # Where values are bounded, the better of the bounds is that of an untouched table.
        returned = range(3 if cls.bounds[1] is None else 2)
        whole = [cls._together([(columns[n][i], weights[n] or 0) for n in names]) for i in returned]
        return [MetricValue(None, *whole), *(MetricValue(name, *columns[name][: len(returned)]) for name in names)]

    @classmethod
    def _together(cls, columns: Sequence[tuple[float | None, float]]) -> float | None:
        """Return the value of all columns from their values and weights."""
        present = [(value, weight) for value, weight in columns if value is not None]
        if not present:
            return None
        if cls.over_columns in ("sum", "weighted sum"):
            return sum(value for value, _ in present)
        weights = sum(weight for _, weight in present)
        if cls.over_columns == "geometric mean":
            return expm1(sum(log1p(value) * weight for value, weight in present) / weights)
        return sum(value * weight for value, weight in present) / weights

    @classmethod
    def of_classes(cls, relations: RelationTables) -> exp.Query:
        """Return the query for what each row of each class counts: (class_id, value)."""
        domain, ids = relations.table("domain"), {"published": ["class_id"], "suppressed": []}
        value: exp.Expr = exp.Sum(this=col("value"))
        if cls.over_columns in ("mean", "weighted sum"):
            value = exp.Sum(this=_product("value", "weight"))
        if cls.over_columns == "mean":
            value = exp.Div(this=value, expression=exp.Sum(this=col("weight")))
        weights = exp.select(named(col("attribute"), "column"), col("weight")).from_(table(domain))
        same_column = exp.EQ(this=col("attribute"), expression=col("column"))
        sums = {}
        for which, cells in (
            ("published", table(relations.table("class_cells"))),
            ("suppressed", _suppressed_cells(domain)),
        ):
            counted = exp.select(*map(col, ids[which]), named(value.copy(), "value"))
            counted = counted.from_(subquery(cls._counted(domain, cells, *ids[which]), "v"))
            sums[which] = counted.join(subquery(weights, "d"), on=same_column).group_by(*map(col, ids[which]))
        shown = exp.case().when(col("suppressed", "c"), col("value", "s")).else_(col("value", "p"))
        query = exp.select(col("class_id", "c"), named(shown, "value"))
        query = query.from_(table(relations.table("classes"), alias="c"))
        query = query.join(subquery(sums["suppressed"], "s"), join_type="cross")
        same_class = exp.EQ(this=col("class_id", "p"), expression=col("class_id", "c"))
        return query.join(subquery(sums["published"], "p"), on=same_class, join_type="left")

    @classmethod
    def _counted(cls, domain: str, cells: exp.Table | exp.Subquery, *more: str) -> exp.Query:
        """Return the query for what each of some cells counts, with more columns of the cells."""
        statement = cls.statement().bind({"cell_rows": cells, "domain": domain})
        return statement.select(*(col(name, "x") for name in more), copy=False)


def _product(left: str, right: str) -> exp.Expr:
    return exp.Mul(this=col(left), expression=col(right))


def _suppressed_cells(domain: str) -> exp.Subquery:
    """Return one suppressed cell of each column."""
    numbers = {"level": "BIGINT", "leaves": "BIGINT", "lo": "DOUBLE", "hi": "DOUBLE"}
    blank = [named(cast(exp.null(), kind), name) for name, kind in numbers.items()]
    return subquery(exp.select(col("attribute"), *blank).from_(table(domain)), "x")


def _untouched_cells(domain: str) -> exp.Subquery:
    """Return one cell of each column that stands for a single value."""
    single = [named(number(0), "level"), named(number(1), "leaves"), col("lo"), named(col("lo"), "hi")]
    return subquery(exp.select(col("attribute"), *single).from_(table(domain)), "x")
