"""What every recoding offers: how rows are published, and what the gate compares with the source."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.engine.relation_tables import RelationTables
from duckanon.engine.sql.recode import Cell
from duckanon.engine.sql.relations import col, named, qualified, table
from duckanon.recoding.recoding import Recoding

if TYPE_CHECKING:
    from duckanon.engine.base import Engine

GROUP, PERSON, KEPT = "group_id", "person", "kept"
"""Columns of the evidence and of rows side by side, besides those that are numbered."""


@dataclass(frozen=True)
class Lookup:
    """Values that rows have by number: ``query(code, ...)``, joined to the rows by their column ``key``.

    Its further columns are ``s_j``, the values of the quasi-identifiers as they were, and ``r_j`` (and ``r_jb``), what
    is published of them; of midpoints ``x_j`` and ``y_j``, too, the ends that they lie between, as ticks; or ``p_i``,
    what is published as it is.
    """

    key: str
    query: exp.Query


@dataclass(frozen=True)
class SideBySide:
    """The rows of a release as they were and as they are published.

    ``rows`` has one row for each of the source: the keys of ``lookups``, ``p_0``, ``p_1``, ... that are published as
    they are unless they are looked up, ``person`` where persons are counted, and perhaps ``kept``, false for rows that
    are not published. Rows for which a look-up has no line are not published either.
    """

    rows: exp.Query
    lookups: tuple[Lookup, ...]
    marked: bool = False
    """Whether rows have ``kept``."""
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Evidence:
    """A private table that ties the rows of the source to those of the release, and the claims that the gate checks.

    ``blocks`` name the quasi-identifiers that are permuted together. With ``redraws``, a block that stayed where it was
    is drawn again in groups that are large enough for that, see ``linkage``.
    """

    table: str
    quasi: tuple[str, ...]
    extra: tuple[str, ...]
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
        """The other published columns."""
        return [col(f"p_{i}") for i in range(len(self.extra))]

    def block(self, names: Sequence[str], side: str) -> list[exp.Expr]:
        """Return the columns of a block, of the source ("s") or the release ("r")."""
        return [col(f"{side}_{self.quasi.index(name)}") for name in names]


class Recoder(ABC):
    """Knows the classes of a release, and how a row of the source is published."""

    engine: Engine
    cells: list[Cell]
    relations: RelationTables
    by_code = False
    """Whether ``extra`` of ``rows`` are columns of the coded rows, not of the source."""

    @property
    @abstractmethod
    def shown(self) -> Sequence[tuple[str, str]]:
        """The published columns of the quasi-identifiers, each with its name among ``rows``."""

    @abstractmethod
    def rows(self, extra: Sequence[tuple[str, exp.Expr]]) -> exp.Select:
        """Return the published rows as ``(q_0, ..., p_0, ...)``, p being ``extra``, in a shuffled order."""

    @abstractmethod
    def released(self, rows: exp.Query, columns: Sequence[tuple[str, str]]) -> exp.Select:
        """Return the release from ``rows``, in their order: (published name, name among rows) for each column."""

    @abstractmethod
    def recoding(self) -> Recoding:
        """Return the recoding as the owner sees it."""

    def write(
        self,
        extra: Sequence[tuple[str, exp.Expr]],
        columns: Sequence[tuple[str, str]],
        path: Path,
        params: Mapping[str, int],
        count: int,
        from_file: Callable[[exp.Select], exp.Select] | None = None,
    ) -> bool:
        """Write the release and return True where there is a faster way than a query of ``rows``; else False.

        The order is that of ``rows``. ``from_file`` puts rows into a file before they are sorted, where there is too
        little memory to join and sort them at a time.
        """
        return False

    # What the gate compares with the source: each recoder gives one of the two.

    def beside(self, extra: Sequence[tuple[str, exp.Expr]], person: exp.Expr | None) -> SideBySide | None:
        """Return all rows of the source as they were and as they are published, where cells stand for values."""
        return None

    def evidence(
        self, extra: Sequence[tuple[str, exp.Expr]], person: exp.Expr | None, keys: Mapping[str, int]
    ) -> Evidence | None:
        """Create what ties the published rows to those of the source, where values were permuted between rows.

        ``person`` is a keyed hash of the entity key, ``keys`` its parameters.
        """
        return None

    def described(self) -> dict[str, Any]:
        """Return what reports say of the permutation; nothing where none was made."""
        return {}


def through(extra: Sequence[tuple[str, exp.Expr]], person: exp.Expr | None, alias: str) -> list[exp.Expr]:
    """Return what rows of the source have besides quasi-identifiers."""
    columns = [named(qualified(expression, alias), f"p_{i}") for i, (_, expression) in enumerate(extra)]
    return [*columns, *([named(qualified(person, alias), PERSON)] if person is not None else [])]


def originals(cells: Sequence[Cell]) -> list[Lookup]:
    """Return the values of the quasi-identifiers by their codes ``k_0``, ``k_1``, ..."""
    return [
        Lookup(f"k_{j}", exp.select(col("code"), named(col("value"), f"s_{j}")).from_(table(cell.values)))
        for j, cell in enumerate(cells)
    ]


__all__ = ["GROUP", "KEPT", "PERSON", "Evidence", "Lookup", "Recoder", "SideBySide", "originals", "through"]
