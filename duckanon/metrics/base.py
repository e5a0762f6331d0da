"""The form of a metric: a statement over the class relations, with a direction and bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from duckanon.registry import Registry
from duckanon.sqlgen.files import load

if TYPE_CHECKING:
    from duckanon.engine.base import Engine


@dataclass(frozen=True)
class Measure:
    """One value of one metric: of an attribute, or of the whole release where ``attribute`` is None."""

    metric: str
    value: float | None
    direction: str
    attribute: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the measure as plain values."""
        return asdict(self)


class Metric:
    """A number that says how much a release lost, or kept.

    A subclass is registered under a name; ``sql/metrics/<name>.sql`` returns (attribute, value) rows, with a NULL
    attribute for the whole release. ``direction`` is "lower" for losses (0 at best), "higher" for qualities.
    """

    name: ClassVar[str]
    summary: ClassVar[str] = ""
    direction: ClassVar[str] = "lower"
    bounds: ClassVar[tuple[float, float | None]] = (0.0, None)
    params: ClassVar[tuple[str, ...]] = ()


metrics: Registry[Metric] = Registry("metric", "duckanon.metrics")


def measure(engine: Engine, relations: Mapping[str, str], names: Sequence[str] | None = None) -> list[Measure]:
    """Return the values of the metrics named, or of all; totals first, then attributes in their order."""
    found: list[Measure] = []
    for name in names if names is not None else list(metrics):
        metric = metrics.get(name)
        file = load(f"metrics/{name}")
        rows = engine.rows(file.bind({r: relations[r] for r in file.reads}))
        values = [
            Measure(name, float(value) if value is not None else None, metric.direction, attribute)
            for attribute, value in rows
        ]
        found += sorted(values, key=lambda m: (m.attribute is not None, m.attribute or ""))
    return found
