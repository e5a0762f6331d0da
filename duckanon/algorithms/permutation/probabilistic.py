"""Probabilistic k-anonymity: values permuted within groups of similar rows, block by block."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from duckanon.algorithms.base import algorithms
from duckanon.algorithms.clustering.knn_clustering import KnnClustering
from duckanon.algorithms.clustering.mdav import Mdav
from duckanon.algorithms.clustering.tdg import Tdg
from duckanon.algorithms.partition.mondrian import Mondrian
from duckanon.algorithms.partition.partition import Items, PartitionAxis, Partitioner, Parts, Rules
from duckanon.algorithms.permutation.ahmad_dey import AhmadDeyMdav, Apart
from duckanon.algorithms.permutation.permuting import Draw, Permuted, permute
from duckanon.errors import ParameterError, did_you_mean
from duckanon.models.base import require_int
from duckanon.models.k_anonymity import KAnonymity

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from duckanon.models.base import Model

GROUPS = ("mdav", "mondrian", "tdg", "knn_clustering")
DISSIMILARITIES = ("gower", "ahmad_dey")
_TOGETHER = 50_000
"""Most rows of which every one is compared with those near it, where nothing is said."""


@dataclass(frozen=True)
class Preparation:
    """What is computed from the table before the search: the blocks of quasi-identifiers, and the secret draw."""

    blocks: tuple[tuple[int, ...], ...]
    draw: Draw
    k: int
    apart: Apart | None = None
    """How far values are apart, where that takes counts."""


@algorithms.register("probabilistic")
@dataclass(frozen=True)
class Probabilistic(Partitioner):
    """Permute the quasi-identifiers within groups of similar rows, block by block; publish every value as it is.

    Every column keeps its type, its values and how often each occurs; which of them stand in one row changes. Columns
    that tell most of the sensitive column (by mutual information) make a block together, two in each, the last three
    where they are odd. Blocks are permuted independently of each other and of the columns that are published as they
    are, so that within a group any row may be anybody's. ``k`` means ``probabilistic_k_anonymity(k)`` here.

    Groups have at least k + 1 rows, because a block that stayed where it was is drawn again: who knows that can rule
    one order out. With groups of k and drawing again without a limit, as the paper has it, a link would be more likely
    than 1 in k, and certain for k = 2. Here a block is drawn again only where nobody is linked above 1 in k by one who
    knows the rule, see ``permuting.permute``. With ``redraw=False`` groups have k rows, and blocks may stay.

    Parameters
    ----------
    groups : {"mdav", "mondrian", "tdg", "knn_clustering"}
        How similar rows are put together.
    dissimilarity : {"gower", "ahmad_dey"}
        How far rows are apart, for "mdav": shares of the range of numbers, and 1 for categories that differ; or squared
        differences of numbers, weighted by their significance, and for categories how differently the other columns
        are distributed beside them. NULL is a value like any other.
    redraw : bool
        Draw a block again that stayed where it was.
    intervals : int
        Into how many intervals of equal width numbers are put where mutual information and Ahmad-Dey's distances count
        how often values occur together.
    block : int, optional
        Most rows that "mdav" and "knn_clustering" look at together; larger tables are divided into blocks of rows near
        each other. By default 50,000 rows are one block, and larger tables are divided into blocks of 5,000.

    References
    ----------
    N. Senavirathne, V. Torra, Systematic evaluation of probabilistic k-anonymity for privacy preserving micro-data
    publishing and analysis, 2021; A. Ahmad, L. Dey, A k-mean clustering algorithm for mixed numeric and categorical
    data, 2007.

    Examples
    --------
    >>> Probabilistic(groups="tdg").parameters()
    {'groups': 'tdg', 'dissimilarity': 'gower', 'redraw': True, 'intervals': 10, 'block': None}
    """

    groups: str = "mdav"
    dissimilarity: str = "gower"
    redraw: bool = True
    intervals: int = 10
    block: int | None = None
    summary: ClassVar[str] = "values permuted within groups of similar rows: columns keep their values and types"
    permutes: ClassVar[bool] = True

    _preparation = None

    def __post_init__(self) -> None:
        for name, allowed in (("groups", GROUPS), ("dissimilarity", DISSIMILARITIES)):
            value = getattr(self, name)
            if value not in allowed:
                hint = did_you_mean(str(value), allowed)
                raise ParameterError(f"The {name!r} parameter of probabilistic must be {', '.join(allowed)}.{hint}")
        if not isinstance(self.redraw, bool):
            raise ParameterError("The 'redraw' parameter of probabilistic must be true or false.")
        require_int(self.name, "intervals", self.intervals, 2)
        if self.block is not None:
            require_int(self.name, "block", self.block, 1)
        if self.dissimilarity != "gower" and self.groups != "mdav":
            raise ParameterError(f"The 'dissimilarity' parameter of probabilistic is for mdav, not for {self.groups}.")

    def prepared_with(self, preparation: Preparation) -> Self:
        """Return the algorithm with what was computed from the table."""
        prepared = copy.copy(self)
        object.__setattr__(prepared, "_preparation", preparation)
        return prepared

    @property
    def preparation(self) -> Preparation:
        """What was computed from the table."""
        if self._preparation is None:
            raise ParameterError("The algorithm probabilistic has not seen the table yet.")
        return self._preparation

    @property
    def by_rows(self) -> bool:
        return True

    @property
    def cuts(self) -> bool:
        return self.groups == "mondrian"

    @property
    def counts_values(self) -> bool:
        return True

    def bytes_of_item(self, width: int, size: int) -> int:
        # What clustering takes, and the permutation besides: ranks, groups, draws and a second copy of the places.
        return self._grouping().bytes_of_item(width, size) + width * size + 120

    def supports(self, model: Model) -> bool:
        """Return whether a model is about groups that are not visible in the release."""
        return model.hidden

    def _grouping(self, rows: int = 0) -> Partitioner:
        """Return the algorithm that makes the groups of so many rows; its random numbers come from the secret key."""
        block = self.block if self.block is not None or rows <= _TOGETHER else _TOGETHER // 10
        if self.groups == "mondrian":
            return Mondrian()
        if self.groups == "mdav":
            if self.dissimilarity == "gower":
                return Mdav(distance="gower", block=block)
            apart = None if self._preparation is None else self._preparation.apart
            return AhmadDeyMdav(block=block, dissimilarities=apart)
        seed = 0 if self._preparation is None else int(self.preparation.draw.words(1, 0)[0] >> np.uint64(2))
        return Tdg(seed=seed) if self.groups == "tdg" else KnnClustering(seed=seed, block=block)

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
        # One more than k where there are as many, so that a block may be drawn again.
        grouping_rules = replace(rules, models=(KAnonymity(self.preparation.k + int(self.redraw)),), relaxed=False)
        grouping = self._grouping(len(items.places))
        more: dict[str, Any] = {"regions": regions} if self.groups == "mondrian" else {}
        parts = grouping.divide(axes, items, grouping_rules, starts=starts, threads=threads, advance=advance, **more)
        return replace(parts, judged=False)

    def permuted(self, items: Items, parts: Parts, units: NDArray[np.int64], label: int) -> Permuted:
        preparation = self.preparation
        return permute(
            items, parts, units, preparation.blocks, preparation.draw, label, preparation.k if self.redraw else None
        )
