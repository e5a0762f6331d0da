"""What ties the rows of a release whose values were permuted to the rows of its source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from duckanon.engine.sql.relations import col

GROUP, PERSON = "group_id", "person"
"""The columns of the evidence besides ``s_j``, ``r_j`` and ``p_i``."""


@dataclass(frozen=True)
class Evidence:
    """A private table that ties the rows of the source to those of the release, and what is claimed of it.

    ``blocks`` name the quasi-identifiers that are permuted together. With ``redraws``, a block that stayed where it was
    is drawn again in the groups that can afford it, see ``linkage``.
    """

    table: str
    quasi: tuple[str, ...]
    kept: tuple[str, ...]
    blocks: tuple[tuple[str, ...], ...]
    k: int
    redraws: bool
    persons: bool

    @property
    def originals(self) -> list[exp.Expr]:
        """The quasi-identifiers of the source."""
        return [col(f"s_{j}") for j in range(len(self.quasi))]

    @property
    def published(self) -> list[exp.Expr]:
        """The quasi-identifiers of the release."""
        return [col(f"r_{j}") for j in range(len(self.quasi))]

    @property
    def others(self) -> list[exp.Expr]:
        """What is published beside them."""
        return [col(f"p_{i}") for i in range(len(self.kept))]

    def block(self, names: Sequence[str], side: str) -> list[exp.Expr]:
        """Return the columns of a block, of the source ("s") or the release ("r")."""
        return [col(f"{side}_{self.quasi.index(name)}") for name in names]
