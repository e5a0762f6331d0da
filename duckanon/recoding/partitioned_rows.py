"""The result of a partition: the tables with the rows and with the class of each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.engine.sql.relations import cast, col, pack, positional, table
from duckanon.recoding.coded_rows import CODE, RowCoder
from duckanon.recoding.region_labels import Boxes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from duckanon.algorithms.partition.partition import OrderedAxis

RELEASED = "r_"
"""The prefix of the codes with which rows are published where values are permuted."""


@dataclass(frozen=True)
class Associations:
    """How values occur together in the coded rows before these are divided; ``coder`` has the algorithm with that."""

    coder: RowCoder
    columns: Sequence[Any]
    pairs: str
    """How often values occur together, see ``associations``."""


@dataclass(frozen=True)
class Cuts:
    """The cuts of a division: a line for each group that a cut made, see ``kernels.layout.WHOLE``.

    Classes, counted from 0, stand in place of items, and places are those on the axes of ``placed``.
    """

    lines: NDArray[Any]
    placed: tuple[OrderedAxis, ...]


@dataclass(frozen=True)
class Division:
    """The rows with their classes.

    ``rows`` has the codes of every row and the columns that are published as they are; ``ids`` the class of each, in
    the same order, or ``words`` that of each combination of codes. ``suppressed`` rows lie in classes that break a
    privacy model. ``short`` are the columns whose texts are stored as enumerations.
    """

    boxes: Boxes
    rows: str
    ids: str | None
    words: str | None
    sizes: tuple[int, ...]
    suppressed: int
    searched: dict[str, Any] = field(default_factory=dict)
    associations: Associations | None = None
    short: frozenset[str] = frozenset()
    cuts: Cuts | None = field(default=None, repr=False, compare=False)
    """The cuts between classes, where they were to be remembered."""

    def classed(self, columns: Sequence[exp.Expr], texts: bool = True) -> exp.Select:
        """Return columns of the coded rows ``s`` beside ``class_id`` of ``k``; with ``texts``, no enumerations."""
        if texts and self.short:
            columns = [self.as_texts(column) for column in columns]
        query = exp.select(*columns, col("class_id", "k")).from_(table(self.rows, "s"))
        if self.ids is not None:
            return positional(query, self.ids, "k")
        words = pack([col(f"{CODE}{j}", "s") for j in range(len(self.sizes))], self.sizes)
        on = exp.and_(*(exp.EQ(this=exp.paren(w), expression=col(f"w_{i}", "k")) for i, w in enumerate(words)))
        return query.join(table(str(self.words), "k"), on=on)

    def as_texts(self, column: exp.Expr) -> exp.Expr:
        """Return an expression of the coded rows with texts in place of enumerations."""
        return column.copy().transform(self._as_text)

    def _as_text(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and node.name in self.short:
            return cast(node.copy(), "VARCHAR")
        return node


__all__ = ["RELEASED", "Associations", "Cuts", "Division"]
