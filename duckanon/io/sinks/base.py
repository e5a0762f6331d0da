"""The protocols of a sink, which is a place where releases go, and of a release as a sink sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from duckanon.errors import ConfigError
from duckanon.io.paths import covers

if TYPE_CHECKING:
    from sqlglot import exp

    from duckanon.engine.base import Engine
    from duckanon.engine.sql.relations import Column


class Publishable(Protocol):
    """What a sink sees of a release."""

    engine: Engine
    path: Path
    """The private Parquet file that passed the gate."""
    columns: tuple[Column, ...]

    @property
    def sources(self) -> Sequence[str]:
        """Paths and patterns of the files that the release was made from."""

    def described(self) -> dict[str, Any]:
        """Return what a manifest needs: the summary, and the published columns with their types and roles."""

    def verify(self, path: Path) -> None:
        """Raise unless a Parquet file is the one that passed the gate, or meets every privacy requirement."""

    def inspect(self, path: Path) -> None:
        """Raise if a file or folder that is to be published reveals more than its rows."""

    def verify_rows(self, relation: exp.Query) -> None:
        """Check rows that were read back from their target; raise if they do not meet the privacy requirements."""


class Sink(Protocol):
    """A place where releases go. If publishing fails, the release that was published there before stays.

    A sink for another database implements this; ``duckanon.io.sinks.tables`` has what sinks with transactions share.
    """

    @property
    def name(self) -> str:
        """The name of the target, for messages."""

    @property
    def stage(self) -> Path | None:
        """A folder on the file system of the target, for private files; it need not exist yet."""

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files that the sink writes: none of them may be among the files of the source."""

    def exists(self) -> bool:
        """Return whether the target exists."""

    def require_writable(self) -> None:
        """Raise unless the target can be written and no other run is writing it. Finish what a killed run left."""

    def publish(self, release: Publishable, *, reports: Mapping[str, str], run: Mapping[str, Any]) -> dict[str, Any]:
        """Publish a release with its reports and its manifest, all or nothing.

        ``reports`` has the text of each report by format; ``run`` describes the run: ``run`` (its id), ``job`` and
        ``table``. Returns ``release`` (a path, or the name of a table), ``manifest`` (a path) and ``reports`` (paths).
        """

    def published_run(self) -> str | None:
        """Return the id of the run whose release is published now, or None if that is unknown."""


def require_apart(sink: Sink, patterns: Sequence[str]) -> None:
    """Raise a ConfigError if a sink would write among the files of a source."""
    for pattern in patterns:
        if any(covers(pattern, path) for path in sink.paths):
            raise ConfigError(f"{sink.name!r} lies among the source's own files: a release never replaces them.")


__all__ = ["Publishable", "Sink", "require_apart"]
