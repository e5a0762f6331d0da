"""The form of metrics of cells: one statement says what a cell counts, and all other values follow from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import expm1, log1p
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from sqlglot import exp

from duckanon.engine.sql.files import SqlFile, load, load_of
from duckanon.engine.sql.relations import cast, col, named, number, subquery, table, text, union_all
from duckanon.metrics.base import Metric, MetricValue

if TYPE_CHECKING:
    from duckanon.engine.base import Engine
    from duckanon.engine.sql.relations import RelationTables

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
        sums = sums.from_(subquery(counted, "c")).group_by(col("part"), col("attribute"))
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
