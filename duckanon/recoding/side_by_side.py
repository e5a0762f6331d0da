"""The rows of a release as they were and as they are published, side by side: what a recoding hands to the gate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

PERSON, KEPT = "person", "kept"


@dataclass(frozen=True)
class Lookup:
    """What rows show under a number: ``query(code, ...)`` by their column ``key``.

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
    are not published. Nor are rows published for which a look-up has nothing.
    """

    rows: exp.Query
    lookups: tuple[Lookup, ...]
    marked: bool = False
    """Whether rows have ``kept``."""
    params: Mapping[str, Any] = field(default_factory=dict)
