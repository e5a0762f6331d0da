"""The form of a property: one number for each row of the original."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp

from duckanon.engine.sql.files import load
from duckanon.engine.sql.relations import col, named, table
from duckanon.errors import ParameterError
from duckanon.metrics.base import CellMetric
from duckanon.plan.roles import Role
from duckanon.registry import Registry

if TYPE_CHECKING:
    from duckanon.assess.comparison.indices import Vector
    from duckanon.assess.comparison.rows import Rows
    from duckanon.engine.sql.relations import RelationTables
    from duckanon.release.release import Release

_DIGITS = 12


@dataclass(frozen=True)
class Property:
    """A number for each row of the original.

    A subclass is registered under a name. ``sql/properties/<name>.sql`` returns (class_id, value) for every class,
    suppressed ones included, from the relations that metrics read; or (row_id, value) for every row, where it also
    reads ``row_values(row_id, class_id, value)``: each row with its class and its value in a column of the source.

    Parameters
    ----------
    column : str, optional
        The column of the source that ``row_values`` has; of properties that are ``per_column`` only.
    """

    column: str | None = None

    name: ClassVar[str]
    summary: ClassVar[str] = ""
    direction: ClassVar[str] = "higher"
    """Which values are better: "higher" or "lower"."""
    bounds: ClassVar[tuple[float, float | None]] = (0.0, None)
    """The smallest and the largest possible value; None where the largest depends on the data."""
    per_column: ClassVar[bool] = False
    """Whether there is one vector for each sensitive column."""
    unit: ClassVar[str] = "rows"
    """What ``classes.n`` counts: "rows", or "members" for rows or persons, as the models of the release do."""

    @property
    def label(self) -> str:
        """The name of the vector: that of the property, with the column where there is one for each."""
        return self.name if self.column is None else f"{self.name}_{self.column}"

    def vector(self, rows: Rows) -> Vector:
        """Return the property of every row of the original, suppressed ones included."""
        import numpy as np

        made: dict[str, str] = {}
        try:
            query, by_row = self.query(rows, made)
            arrow = rows.release.engine.arrow(query)
        finally:
            rows.release.engine.drop(*made.values())
        ids, values = (arrow.column(i).to_numpy() for i in range(2))
        values = rounded(values.astype(np.float64))
        if by_row:
            placed = rows.scattered(ids, values)
        else:
            of_class = np.full(len(rows.class_ids), np.nan)
            of_class[np.searchsorted(rows.class_ids, ids)] = values
            placed = of_class[rows.positions]
        if np.isnan(placed).any():
            missing_rows = int(np.isnan(placed).sum())
            raise ParameterError(f"The property {self.label!r} has no value for {missing_rows} rows of this release.")
        return placed

    def query(self, rows: Rows, made: dict[str, str]) -> tuple[exp.Query, bool]:
        """Return the query for the values of classes or rows, and whether it is rows.

        Relations that are made for it are added to ``own``; the caller drops them.
        """
        file = load(f"properties/{self.name}")
        if "row_values" in file.reads:
            if self.column is None:
                raise ParameterError(f"The property {self.name!r} looks at a column of the source: name it.")
            made["row_values"] = rows.with_values(self.column)
        if self.unit == "members" and rows.release.plan.entity is not None:
            made["classes"] = _in_units(rows.release)
        by_row = file.returns[0] == "row_id"
        reads = [r for r in file.reads if r not in made]
        return file.bind({**self.require(rows, reads).tables(*reads), **made}), by_row

    def require(self, rows: Rows, reads: Iterable[str]) -> RelationTables:
        """Return the relations of a release; raise where it lacks one that is read."""
        relations = rows.release.relations
        missing = [r for r in reads if not relations.has(r)]
        if missing:
            raise ParameterError(f"The property {self.name!r} reads what this release lacks: {', '.join(missing)}.")
        return relations

    def ideal(self, rows: Rows) -> float:
        """Return the best value that a row can have: what ``rank`` measures the distance to."""
        low, high = self.bounds
        if self.direction == "lower":
            return low
        return float(len(rows)) if high is None else high

    def oriented(self, values: Vector) -> Vector:
        """Return the values such that higher is better: bound - value, or -value, where lower is.

        Differences, and with them coverage, spread and rank, are those of the values themselves. Only the hypervolume,
        a product, depends on where zero is; so a property with an upper bound is measured from there.
        """
        if self.direction == "higher":
            return values
        high = self.bounds[1]
        return -values if high is None else high - values


class CellProperty(Property):
    """What a row contributes to a metric of cells, whose direction and bounds it has."""

    metric: ClassVar[type[CellMetric]]

    def __init_subclass__(cls) -> None:
        cls.direction, cls.bounds = cls.metric.direction, cls.metric.bounds

    def query(self, rows: Rows, made: dict[str, str]) -> tuple[exp.Query, bool]:
        return self.metric.of_classes(self.require(rows, ["classes", "class_cells", "domain"])), False


properties: Registry[Property] = Registry(
    "property", "duckanon.assess.comparison.properties", "duckanon.comparison.properties"
)


def resolve(names: Sequence[str], releases: Sequence[Release]) -> list[Property]:
    """Return the properties named; one for each column that all releases call sensitive where a property is per column.

    ``sensitive_count_<column>`` names a single one, of any column of the source.
    """
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise ParameterError("properties must be a list of names, such as ['class_size'].")
    resolved: list[Property] = []
    for name in names:
        resolved += _named(str(name), releases)
    labels = [p.label for p in resolved]
    if not resolved or len(set(labels)) < len(labels):
        raise ParameterError("Name at least one property, and each only once.")
    return resolved


def _named(name: str, releases: Sequence[Release]) -> list[Property]:
    if name in properties:
        kind = properties.get(name)
        if not kind.per_column:
            return [kind()]
        columns = releases[0].plan.roles.named(Role.SENSITIVE)
        shared = [c for c in columns if all(c in r.plan.roles.named(Role.SENSITIVE) for r in releases)]
        if not shared:
            raise ParameterError(
                f"The property {name!r} counts values of sensitive columns, and there is none in all releases. "
                f"Name a column of the source: '{name}_<column>'."
            )
        return [kind(column) for column in shared]
    for prefix in properties:
        kind = properties.get(prefix)
        if kind.per_column and name.startswith(f"{prefix}_"):
            return [kind(name.removeprefix(f"{prefix}_"))]
    properties.get(name)
    raise AssertionError  # pragma: no cover - get has raised


def rounded(values: Vector) -> Vector:
    """Return values with twelve digits: equal shares must stay equal in whatever order they were summed.

    Examples
    --------
    >>> import numpy as np
    >>> rounded(np.array([0.1 + 0.2, 11520.000000000007, 1 / 3, -2e-16])).tolist()
    [0.3, 11520.0, 0.333333333333, -0.0]
    """
    import numpy as np

    near = np.round(values, _DIGITS)
    with np.errstate(divide="ignore"):
        places = np.where(near == 0, 0, _DIGITS - 1 - np.floor(np.log10(np.abs(near))))
    result: Vector = np.round(near * 10.0**places) / 10.0**places
    return result


def _in_units(release: Release) -> str:
    """Create ``classes`` with members: rows, or persons where there is an entity key."""
    name = release.engine.fresh("classes")
    suppressed = named(exp.Not(this=col("kept")), "suppressed")
    query = exp.select(col("class_id"), named(col("units"), "n"), suppressed)
    release.engine.create(name, query.from_(table(release.relations.table("class_map"))))
    return name
