"""What algorithms that divide rows into classes have in common; each class has a region of its own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from duckanon.algorithms.base import Algorithm
from duckanon.errors import UnsupportedError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from duckanon.algorithms.base import Problem
    from duckanon.algorithms.full_domain.nodes import Node
    from duckanon.algorithms.partition.items import Items
    from duckanon.algorithms.partition.partition import PartitionAxis, Parts, Rules
    from duckanon.algorithms.permutation.permuting import Permuted
    from duckanon.models.base import Model


class Partitioner(Algorithm):
    """An algorithm that divides rows into classes.

    It gets rows, or combinations of values with the number of rows of each, as places on axes, and says which are in
    one class. Privacy does not depend on it: the gate checks what was written.
    """

    ordered: tuple[str, ...] = ()
    """Columns of categories that have an order."""
    target: Any = ()
    """Columns beside the quasi-identifiers that the division looks at."""
    budget: int | None = None
    """The most rows that are divided at once; None for as many as fit into memory."""

    @property
    def partitions(self) -> bool:
        return True

    @property
    def reported(self) -> tuple[str, ...]:
        """The metrics that a report has besides the usual ones."""
        return ()

    @property
    def by_rows(self) -> bool:
        """Whether rows with equal values may come into different classes."""
        return False

    @property
    def choice(self) -> str:
        """What the division does with the target, see ``mondrian``."""
        return "range"

    @property
    def cuts(self) -> bool:
        """Whether classes are what cuts leave of the table, so that there are bounds between them."""
        return True

    def divides_as(self, attribute: str) -> str | None:
        """Return what a column's axis must be, a "grid", a "line" or a "tree"; None where the plan decides."""
        return None

    def bytes_of_item(self, width: int, size: int) -> int:
        """Return the memory that an item of so many columns takes, a place being of so many bytes."""
        # Fetched codes, places, the two buffers between which rows are moved, and the classes.
        return width * size * 4 + 56

    @staticmethod
    def load() -> None:
        """Load what all kernels need before they are called."""
        from duckanon.kernels.packing import warm

        warm()

    @abstractmethod
    def divide(
        self,
        axes: Sequence[PartitionAxis],
        items: Items,
        rules: Rules,
        *,
        starts: NDArray[np.int64],
        regions: NDArray[np.int32] | None = None,
        threads: int | None = None,
        advance: Callable[[int], None] | None = None,
    ) -> Parts:
        """Divide the items between each two of ``starts``, see ``algorithms.partition.partition``."""

    def permuted(self, items: Items, parts: Parts, units: NDArray[np.int64], label: int) -> Permuted | None:
        """Return the rows with values permuted within their classes; None where values are recoded instead."""
        return None

    def supports(self, model: Model) -> bool:
        """Return whether the model can be checked on single classes: not those of a population or the whole table."""
        return not (model.needs_population or model.traits.whole_table)

    def search(self, problem: Problem) -> Node:
        """Refuse: regions are no node of the lattice."""
        raise UnsupportedError(f"{self.name} divides rows into classes, which are no node of the lattice.")
