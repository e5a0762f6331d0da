"""Results of which a release is one source among others: checks of models, measures of loss, nodes of a lattice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from duckanon.models.base import CheckResult
from duckanon.report.results import Result, TableResult

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.metrics.base import Measure
    from duckanon.report.model import Report


class Checks(Result, tuple[CheckResult, ...]):
    """What checks of models found: true if there are checks and all of them hold.

    It is a tuple of ``CheckResult``, one for each model.

    Examples
    --------
    >>> import duckanon, pyarrow as pa
    >>> people = pa.table({"age": [1, 1, 2, 2], "ill": ["a", "b", "a", "a"]})
    >>> checks = duckanon.check(people, quasi_identifiers=["age"], sensitive=["ill"], k=2, l=2)
    >>> bool(checks), [c.model for c in checks.violated], bool(checks[0])
    (False, ['l_diversity'], True)
    """

    __slots__ = ()

    def __bool__(self) -> bool:
        return len(self) > 0 and all(c.holds for c in self)

    @property
    def violated(self) -> tuple[CheckResult, ...]:
        """The checks that do not hold."""
        return tuple(c for c in self if not c.holds)

    def to_arrow(self) -> pa.Table:
        """Return a row for each check.

        The columns are ``model``, ``text``, ``holds``, ``classes``, ``violating_classes`` and ``violating_rows``.
        """
        import pyarrow as pa

        names = ("model", "text", "holds", "classes", "violating_classes", "violating_rows")
        kinds = (pa.string(), pa.string(), pa.bool_(), *[pa.int64()] * 3)
        rows = [{name: getattr(c, name) for name in names} for c in self]
        return pa.Table.from_pylist(rows, schema=pa.schema(list(zip(names, kinds, strict=True))))

    def _shown(self) -> Report:
        from duckanon.report.assessments import checks_report

        return checks_report(self)


class Measures(Result, tuple["Measure", ...]):
    """What a release lost: a tuple of ``Measure``, one for each metric and column.

    Examples
    --------
    >>> import duckanon, pyarrow as pa
    >>> people = pa.table({"age": [34, 35, 36, 61, 62, 63]})
    >>> with duckanon.anonymize(people, quasi_identifiers=["age"], k=3) as release:
    ...     lost = release.measure(["loss"])
    >>> lost.to_arrow().column_names
    ['metric', 'attribute', 'value', 'normalised', 'direction']
    """

    __slots__ = ()

    def to_arrow(self) -> pa.Table:
        """Return a row for each measure; ``attribute`` is NULL for the whole release."""
        import pyarrow as pa

        texts, reals = ("metric", "attribute"), ("value", "normalised")
        schema = [*((n, pa.string()) for n in texts), *((n, pa.float64()) for n in reals), ("direction", pa.string())]
        return pa.Table.from_pylist([m.to_dict() for m in self], schema=pa.schema(schema))

    def _shown(self) -> Report:
        from duckanon.report.assessments import measures_report

        return measures_report(self)


class Lattice(TableResult):
    """The nodes of a lattice; ``duckanon.lattice`` says what the columns are.

    Examples
    --------
    >>> import duckanon, pyarrow as pa
    >>> people = pa.table({"age": [34, 35, 36, 61, 62, 63]})
    >>> nodes = duckanon.lattice(people, quasi_identifiers=["age"], k=3)
    >>> len(nodes), [row["node"] for row in nodes.front()]
    (5, ['2', '3', '4'])
    """

    def __init__(self, table: pa.Table, metrics: Sequence[str]) -> None:
        super().__init__(table)
        self.metrics = tuple(dict.fromkeys(metrics))

    def front(self) -> list[dict[str, Any]]:
        """Return the anonymous nodes to which no other is as good in both risk and the first metric, and better in one.

        The best by the metric comes first.
        """
        rows = self.to_pylist()
        return [rows[i] for i in self._best(rows)]

    def _best(self, rows: Sequence[dict[str, Any]]) -> list[int]:
        from duckanon.algorithms.full_domain.listing import front
        from duckanon.metrics.base import metrics

        if not self.metrics:
            return []
        first = self.metrics[0]
        sign = 1 if metrics.get(first).direction == "lower" else -1
        scores = [sign * row[first] if row[first] is not None else float("inf") for row in rows]
        return front(rows, scores)

    def _shown(self) -> Report:
        from duckanon.report.assessments import lattice_report

        rows = self.to_pylist()
        return lattice_report(rows, self.metrics, self._best(rows))


__all__ = ["Checks", "Lattice", "Measures"]
