"""Every error a user can meet. Messages name columns, counts and positions, never a cell value."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


class DuckanonError(Exception):
    """Base of all errors raised on purpose."""


class ConfigError(DuckanonError):
    """What was asked for cannot be understood."""


class JobError(ConfigError):
    """A job file is wrong."""


class RoleError(ConfigError):
    """A column is unknown, named twice, or in two roles."""


class UnlistedColumnError(RoleError):
    """The data has columns that nobody named, where that is not allowed: the schema may have changed."""


class ParameterError(ConfigError):
    """A parameter is out of its range."""


class HierarchyError(DuckanonError):
    """A hierarchy is not total, functional, nested or rooted, or does not fit the data."""


class UnknownValueError(HierarchyError):
    """The data has values that a hierarchy does not know, where that is not allowed."""


class DataError(DuckanonError):
    """The data cannot be read, is empty, or has columns that no role can take."""


class UnsupportedError(DuckanonError):
    """A combination that this algorithm or engine does not offer; the message says which one does."""


class InfeasibleError(DuckanonError):
    """The promise cannot be kept on this data; the message says how far the search got."""


class PrivacyViolation(DuckanonError):  # noqa: N818 - a public name
    """The gate found that the materialised release breaks a promise.

    Parameters
    ----------
    message : str
    checks : tuple
        The results of the gate, the failed ones included.
    """

    def __init__(self, message: str, checks: tuple[Any, ...] = ()) -> None:
        super().__init__(message)
        self.checks = checks


class EngineError(DuckanonError):
    """The database could not run a step. Its own message is passed on only where it cannot quote data."""


class ResourceError(EngineError):
    """Memory or room on a disk ran out, a file cannot be read, or the work was interrupted: the data may be sound."""


class AccessError(EngineError):
    """A statement wanted a file, an address or another database that its own database is not allowed to touch."""


class Terminated(KeyboardInterrupt):
    """The process was asked to end by SIGTERM, and ends in the same orderly way as by Ctrl-C."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``" Did you mean 'x'?"`` for the closest known name, or an empty string.

    Examples
    --------
    >>> did_you_mean("agee", ["age", "zip"])
    " Did you mean 'age'?"
    >>> did_you_mean("q", ["age", "zip"])
    ''
    """
    names = list(known)
    lowered = {n.lower(): n for n in names}
    close = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=0.6)
    return f" Did you mean {lowered[close[0]]!r}?" if close else ""
