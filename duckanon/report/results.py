"""What results have in common: a table, a text of a screen, and cards for notebooks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from duckanon.report.html import fragment
from duckanon.report.terminal import as_text

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.report.model import Report


class Result(ABC):
    """A result that is a table, and shows itself: as text, and in notebooks as the cards of a report.

    pyarrow, polars and DuckDB read it by the Arrow stream protocol. No value of the data is in what is shown.
    """

    @abstractmethod
    def to_arrow(self) -> pa.Table:
        """Return the result as an Arrow table."""

    @abstractmethod
    def _shown(self) -> Report:
        """Return what is shown of it."""

    def to_pandas(self) -> Any:
        """Return the result as a pandas frame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """Return the result as a polars frame."""
        import polars

        return polars.from_arrow(self.to_arrow())

    def to_pylist(self) -> list[dict[str, Any]]:
        """Return the rows of the table, as mappings."""
        rows: list[dict[str, Any]] = self.to_arrow().to_pylist()
        return rows

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return as_text(self._shown())

    def _repr_html_(self) -> str:
        return fragment(self._shown())


class TableResult(Result):
    """A result of which all that there is is a table: it has its length, and its rows as mappings."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def to_arrow(self) -> pa.Table:
        return self._table

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __iter__(self) -> Any:
        return iter(self.to_pylist())

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and bool(self._table.equals(other._table))

    __hash__ = None  # type: ignore[assignment]
