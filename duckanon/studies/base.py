"""The form of a study: independent tasks with a key each, and a page made of their results."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from duckanon._version import __version__
from duckanon.errors import ParameterError, did_you_mean

if TYPE_CHECKING:
    from duckanon.report.model import Block, Grid
    from duckanon.studies.config import Settings
    from duckanon.studies.figures import Figure

    Part = Block | Figure

Record = dict[str, Any]
"""Names and numbers that one task found; no value of the data is among them."""


@dataclass(frozen=True)
class Task:
    """A piece of a study that needs no other.

    Attributes
    ----------
    labels : mapping
        What distinguishes the task: table, algorithm, k, ... In the results they come before its records.
    given : mapping
        Everything else that its results depend on: the table, the learners, the seed. Plain values, as in JSON.
    """

    labels: Mapping[str, Any]
    given: Mapping[str, Any] = field(default_factory=dict)

    def key(self, study: Study) -> str:
        """Return the key of the task's results: a digest of its labels, its inputs and the versions."""
        content = {
            "study": study.name,
            "revision": study.revision,
            "duckanon": __version__,
            "labels": dict(self.labels),
            "given": dict(self.given),
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def seed(self, salt: str = "") -> int:
        """Return a number that depends on the labels alone, so that it is the same on every machine."""
        content = json.dumps([dict(self.labels), salt], sort_keys=True)
        return int.from_bytes(hashlib.sha256(content.encode()).digest()[:4], "big")


@dataclass(frozen=True)
class Chapter:
    """A heading of the page of results and the parts below it: sentences, lists, tables, drawings."""

    title: str
    parts: Sequence[Part]


class Study(ABC):
    """A paper as a command.

    Attributes
    ----------
    name, title, paper : str
    revision : int
        Raised when the same task would find something else: results of an older one are not used.
    keys : mapping of str to type
        What ``[study]`` and ``[full]`` of its settings may have.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    paper: ClassVar[str]
    revision: ClassVar[int] = 1
    keys: ClassVar[Mapping[str, type]] = {}

    @classmethod
    def shipped(cls) -> Path:
        """Return the file of its settings."""
        return Path(__file__).parent / "defaults" / f"{cls.name}.toml"

    @abstractmethod
    def tasks(self, settings: Settings) -> list[Task]:
        """Return all tasks, those that take longest first where that is known."""

    def left_out(self, settings: Settings) -> list[str]:
        """Return what the tasks lack because an optional package is not installed, a sentence for each."""
        return []

    @abstractmethod
    def run(self, task: Task) -> list[Record]:
        """Do a task; called in another process, too."""

    @abstractmethod
    def page(self, records: list[Record], settings: Settings) -> list[Chapter]:
        """Return the chapters of the page; ``records`` have the labels of their tasks, some of which may be missing."""


_STUDIES = {
    "metrics-vs-utility": ("metrics_vs_utility", "MetricsVsUtility"),
    "k-anonymity-in-practice": ("practice", "Practice"),
    "proportional-representation": ("proportional", "Proportional"),
    "probabilistic-k-anonymity": ("probabilistic", "Probabilistic"),
    "property-vectors": ("vectors", "PropertyVectors"),
}


def names() -> list[str]:
    """Return the names of all studies.

    Examples
    --------
    >>> names()[0]
    'metrics-vs-utility'
    """
    return list(_STUDIES)


def get_study(name: str) -> Study:
    """Return the study of that name; ``package.module:Class`` is a third party's.

    Examples
    --------
    >>> get_study("property-vectors").name
    'property-vectors'
    """
    if ":" in name:
        module, _, kind = name.partition(":")
        try:
            study: Study = getattr(import_module(module), kind)()
        except (ImportError, AttributeError):
            raise ParameterError(f"Unknown study {name!r}: expected an importable module and a class in it.") from None
        return study
    if name not in _STUDIES:
        raise ParameterError(f"Unknown study {name!r}.{did_you_mean(name, _STUDIES)} Known: {', '.join(_STUDIES)}.")
    module, kind = _STUDIES[name]
    shipped: Study = getattr(import_module(f"duckanon.studies.{module}"), kind)()
    return shipped


def distinct(records: Sequence[Record], label: str) -> list[Any]:
    """Return the values of a label in the order in which they first occur.

    Examples
    --------
    >>> distinct([{"k": 5}, {"k": 2}, {"k": 5}], "k")
    [5, 2]
    """
    return list(dict.fromkeys(r[label] for r in records if label in r))


def where(records: Sequence[Record], **labels: Any) -> list[Record]:
    """Return the records that have these labels.

    Examples
    --------
    >>> where([{"k": 5, "a": 1}, {"k": 2, "a": 2}], k=2)
    [{'k': 2, 'a': 2}]
    """
    return [r for r in records if all(r.get(name) == value for name, value in labels.items())]


def grid(header: Sequence[str], rows: Sequence[Sequence[Any]], words: int = 1) -> Grid:
    """Return a table of figures whose first columns are words; None is a dash.

    Examples
    --------
    >>> grid(["table", "rate"], [["birth", 0.57249], ["ring", None]]).rows
    [['birth', '0.572'], ['ring', '-']]
    """
    from duckanon.report.model import Grid

    shown = [[_cell(v) for v in row] for row in rows]
    return Grid(list(header), shown, right=range(words, len(header)))


def _cell(value: Any) -> str:
    if value is None or value != value:
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def mean(values: Sequence[float | None]) -> float | None:
    """Return the mean of the numbers that are there; None where none is.

    Examples
    --------
    >>> mean([1.0, None, 2.0]), mean([None])
    (1.5, None)
    """
    present = [float(v) for v in values if v is not None and v == v]
    return sum(present) / len(present) if present else None
