"""Datafly on hierarchies whose order is broken (the control of "Information loss metrics versus utility")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from duckanon.algorithms.base import algorithms
from duckanon.algorithms.full_domain.datafly import Datafly
from duckanon.models.base import require_int


@algorithms.register("datafly_shuffled")
@dataclass(frozen=True)
class DataflyShuffled(Datafly):
    """Datafly after every hierarchy's values were dealt at random to its places: groups of values that do not belong.

    A control for studies: what it loses beside Datafly is what the order and meaning of hierarchies are worth. Groups
    have the sizes that they had, and numbers in place of their labels, which would be untrue of their new members.

    Parameters
    ----------
    stop : {"limit", "k"}
        As of ``datafly``.
    shuffle : int
        The seed of the deal.

    References
    ----------
    L. Sweeney, Guaranteeing anonymity when sharing medical data, the Datafly system, 1997; for the broken order, the
    study of information loss metrics as measures for utility, section 3.
    """

    shuffle: int = 0
    summary: ClassVar[str] = "Datafly on hierarchies whose values were dealt at random, as a control"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "shuffle", require_int("DataflyShuffled", "shuffle", self.shuffle, 0))

    @property
    def dealt(self) -> int | None:
        return self.shuffle
