"""Mondrian: rows are divided by cuts as long as every side satisfies the models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from duckanon.algorithms.base import algorithms
from duckanon.algorithms.partition.partition import CHOICES, Items, PartitionAxis, Partitioner, Parts, Rules, partition
from duckanon.errors import ParameterError, did_you_mean

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_BY_TARGET = ("information_gain", "least_squares")


@algorithms.register("mondrian")
@dataclass(frozen=True)
class Mondrian(Partitioner):
    """Divide the rows by cuts through one column after the other, as long as both sides satisfy every model.

    Numbers, dates and times, and columns named in ``ordered``, are cut in two near the median; other columns along
    their hierarchy, a group for each child of the lowest node that has all values (so are all columns of which labels
    are published, ``output="lca"``, and a TIME on the grid, for which none is made). Children that cannot stand alone
    stay together under their parent. NULL is cut off from other values first. Nothing is suppressed. Where only the
    size of classes counts, the median cut is moved to the nearest place that leaves enough rows on both sides; for
    other models the median is tried on every column before other places are, so that no allowed cut of such a column
    is left.

    With ``bounds="grid"`` (see ``anonymize``) cuts come only between groups of the hierarchy's first level.

    Parameters
    ----------
    relaxed : bool
        Rows of the median value may go to both sides, so that halves are even (local recoding); by default rows with
        equal values stay together.
    choose_dim : {"range", "distinct", "round_robin", "information_gain", "least_squares"}, optional
        Which column is cut next: the one with the widest range, each as a share of its whole, times its weight (the
        default), that with most different values, one after the other, or that whose best cut tells most about the
        ``target``: by entropy (the default where there is a target), or by squared deviations of a number.
    target : str or list of str, optional
        Published columns that a later model is to predict.
    ordered : list of str
        Columns whose categories are cut by their order (that of the hierarchy's leaves, else that of an enumeration,
        else alphabetical) in place of their hierarchy. Of no effect with ``bounds="grid"``.
    budget : int, optional
        Most rows that are divided in memory at once; larger tables are cut by the database first, through the column
        with an order that is widest, whatever ``choose_dim`` says, and finished part by part. By default as many as a
        quarter of the memory limit holds.

    References
    ----------
    K. LeFevre, D. DeWitt, R. Ramakrishnan, Mondrian multidimensional k-anonymity, 2006; Workload-aware anonymization,
    2006.

    Examples
    --------
    >>> Mondrian(target="income").choice
    'information_gain'
    """

    relaxed: bool = False
    choose_dim: str | None = None
    target: str | tuple[str, ...] | None = None
    ordered: tuple[str, ...] = ()
    budget: int | None = None
    summary: ClassVar[str] = "regions of their own for every class, by cuts near the median"

    @property
    def minimal(self) -> bool:
        return not self.relaxed

    def __post_init__(self) -> None:
        if not isinstance(self.relaxed, bool):
            raise ParameterError("The 'relaxed' parameter of mondrian must be true or false.")
        if self.choose_dim is not None and self.choose_dim not in CHOICES:
            hint = did_you_mean(str(self.choose_dim), CHOICES)
            raise ParameterError(f"The 'choose_dim' parameter of mondrian must be one of {', '.join(CHOICES)}.{hint}")
        for name in ("target", "ordered"):
            object.__setattr__(self, name, _names(name, getattr(self, name)))
        if bool(self.target) != (self.choice in _BY_TARGET):
            raise ParameterError(f"A 'target' of mondrian goes with choose_dim {' or '.join(_BY_TARGET)}.")
        if self.relaxed and self.target:
            raise ParameterError("Relaxed cuts are at the median row: a 'target' of mondrian cannot place them.")
        if self.budget is not None and (
            isinstance(self.budget, bool) or not isinstance(self.budget, int) or self.budget < 1
        ):
            raise ParameterError("The 'budget' parameter of mondrian must be a number of rows of at least 1.")

    @property
    def choice(self) -> str:
        """How the column of the next cut is chosen."""
        return self.choose_dim or ("information_gain" if self.target else "range")

    @property
    def by_rows(self) -> bool:
        return self.relaxed

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
        return partition(axes, items, rules, starts, regions, threads, advance)


def _names(parameter: str, value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(n, str) and n for n in names):
        raise ParameterError(
            f"The {parameter!r} parameter of mondrian must be the name of a column, or a list of them."
        )
    return tuple(names)
