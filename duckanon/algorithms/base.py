"""What an algorithm is, and the problem that it solves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self

from duckanon.registry import Registry

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from sqlglot import exp

    from duckanon.algorithms.full_domain.nodes import Node
    from duckanon.encoding.dictionaries import Frequency
    from duckanon.engine.base import Engine
    from duckanon.models.base import Model


POPULATION = "duckanon population"
"""The key of the population among the tallies; no column has this name."""


@dataclass(frozen=True)
class Tally:
    """A second count over the same tuples of codes: of a sensitive column's values, or of the population.

    ``totals`` counts the sensitive values in the whole table by their codes, ``ancestors`` holds the node over each
    code on every level of the column's hierarchy; a population has neither.
    """

    frequency: Frequency
    totals: NDArray[np.int64] | None = None
    ancestors: tuple[NDArray[np.int64], ...] = ()


@dataclass(frozen=True)
class Problem:
    """What is to be solved: find levels for which at most ``allowed`` rows lie in classes that break a model.

    ``tallies`` are the counts that models other than those of the size need, by sensitive column or ``POPULATION``.
    """

    engine: Engine
    frequency: Frequency
    models: tuple[Model, ...]
    allowed: int
    unit: str
    tallies: Mapping[str, Tally] = field(default_factory=dict)
    spans: tuple[tuple[int, int], ...] | None = None
    """The lowest and highest level of each quasi-identifier that may be chosen; all levels by default."""
    weights: tuple[float, ...] = ()
    """How much each quasi-identifier counts in metrics; all the same by default."""
    measure: Callable[[str, Node], float] | None = None
    """Measures any metric on a node, so that lower is better."""

    def key_of(self, model: Model) -> str:
        """Return the key of the tally that a model reads."""
        return POPULATION if model.needs_population else str(getattr(model, "sensitive", None))

    @property
    def low(self) -> tuple[int, ...]:
        """The lowest levels that may be chosen."""
        return tuple(a for a, _ in self.spans) if self.spans is not None else (0,) * len(self.heights)

    @property
    def high(self) -> tuple[int, ...]:
        """The highest levels that may be chosen."""
        return tuple(b for _, b in self.spans) if self.spans is not None else self.heights

    @property
    def size_only(self) -> bool:
        """Whether the size of a class alone decides."""
        return all(m.traits.size_only for m in self.models)

    @property
    def inherited(self) -> bool:
        """Whether a generalization of an anonymous recoding is always anonymous, too."""
        if self.allowed == 0:
            return all(m.traits.monotone for m in self.models)
        # Models of the whole table leave out the smallest classes. Counted in persons, these may have the most rows.
        counts_rows = not self.frequency.entity
        return all(m.traits.absorbing and (counts_rows or not m.traits.whole_table) for m in self.models)

    @property
    def min_size(self) -> int:
        """The least members of a class, rows or persons, that the models of class size require."""
        return max((m.traits.min_class_size for m in self.models if m.traits.size_only), default=1)

    @property
    def min_rows(self) -> int:
        """The least rows of a class that satisfy every model: three values take three rows, even of one person."""
        return max(m.traits.min_class_size for m in self.models)

    @property
    def names(self) -> list[str]:
        """The quasi-identifiers."""
        return [c.dictionary.attribute for c in self.frequency.coded]

    @property
    def heights(self) -> tuple[int, ...]:
        """The top level of each quasi-identifier."""
        return tuple(c.height for c in self.frequency.coded)


class Algorithm(ABC):
    """A way to choose a recoding.

    A subclass is a frozen dataclass registered under a name. Privacy does not depend on it: the gate
    checks what was written.
    """

    name: ClassVar[str]
    summary: ClassVar[str] = ""
    permutes: ClassVar[bool] = False
    """Whether values are permuted within groups that nobody sees, rather than recoded: see ``hidden`` of models."""

    searches: ClassVar[bool] = True
    """Whether the recoding depends on the rows, rather than being applied as it was stored."""

    @abstractmethod
    def search(self, problem: Problem) -> Node:
        """Return the node of the generalization lattice that was chosen."""

    def allowed_rows(self, rows: int, suppression_limit: float, models: tuple[Model, ...]) -> int:
        """Return how many rows may be suppressed."""
        # The tolerance undoes products such as 0.07 * 100, which lie just below the whole number that was meant.
        return int(rows * suppression_limit + 1e-9)

    def supports(self, model: Model) -> bool:
        """Say whether the algorithm can enforce a model; here every model that can judge classes."""
        return True

    @property
    def partitions(self) -> bool:
        """Whether rows are divided into regions, rather than columns put on levels."""
        return False

    @property
    def minimal(self) -> bool:
        """Whether no finer recoding of the same kind is anonymous, which an adversary can exploit (minimality)."""
        return False

    @property
    def counts_values(self) -> bool:
        """Whether the values of all sensitive columns are counted for the search, whatever the models look at."""
        return False

    @property
    def hierarchy_shuffle_seed(self) -> int | None:
        """The seed by which the values of every hierarchy are shuffled; None leaves them in place."""
        return None

    def known_values(self, engine: Engine, attribute: str) -> exp.Query | None:
        """Return ``(value)`` of an earlier recoding, which get codes even if no row has them."""
        return None

    def on_axes(self, engine: Engine, coded: Sequence[Any], placed: Sequence[Any]) -> Self:
        """Return the algorithm for the axes of a partition; most do not depend on them."""
        return self

    def parameters(self) -> dict[str, Any]:
        """Return the parameters by name, as plain values."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


algorithms: Registry[Algorithm] = Registry("algorithm", "duckanon.algorithms")
