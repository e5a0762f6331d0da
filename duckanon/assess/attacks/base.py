"""What an attack is: its inputs, and its findings beside those of chance.

A third party registers an attack as duckanon's own are: a class with ``needs`` and ``run``, under a name, by
``@attackers.register("name")`` or by an entry point of the group ``duckanon.disclosure.attacks``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import sqrt
from typing import TYPE_CHECKING, Any, ClassVar

from duckanon.registry import Registry

if TYPE_CHECKING:
    from sqlglot import exp

    from duckanon.assess.assessed_table import AssessedTable
    from duckanon.assess.attacks.linkage_space import LinkageSpace
    from duckanon.release.release import Release


Interval = tuple[float, float]

Z = 1.959963984540054
"""Two-sided 95 %."""


def wilson(share: float, rows: float, z: float = Z) -> Interval:
    """Return the score interval of a share of ``rows``; all of [0, 1] where there are none.

    References
    ----------
    E. Wilson, Probable inference, the law of succession, and statistical inference, 1927.

    Examples
    --------
    >>> [round(bound, 4) for bound in wilson(0.5, 100)]
    [0.4038, 0.5962]
    >>> wilson(0.0, 0)
    (0.0, 1.0)
    """
    if rows <= 0:
        return 0.0, 1.0
    square = z * z / rows
    middle = (share + square / 2) / (1 + square)
    half = z / (1 + square) * sqrt(share * (1 - share) / rows + square / (4 * rows))
    # At the ends the bound is the share itself, whatever is left of it by rounding.
    return (0.0 if share == 0 else max(middle - half, 0.0)), (1.0 if share == 1 else min(middle + half, 1.0))


def difference(share: float, interval: Interval, other: float, others: Interval) -> Interval:
    """Return the interval of ``share - other``, made of the intervals of both.

    References
    ----------
    R. Newcombe, Interval estimation for the difference between independent proportions, 1998 (method 10).

    Examples
    --------
    >>> [round(b, 4) for b in difference(56 / 70, wilson(56 / 70, 70), 48 / 80, wilson(48 / 80, 80))]
    [0.0524, 0.3339]
    """
    below = sqrt((share - interval[0]) ** 2 + (others[1] - other) ** 2)
    above = sqrt((interval[1] - share) ** 2 + (other - others[0]) ** 2)
    return max(share - other - below, -1.0), min(share - other + above, 1.0)


NOTHING, PROMISED, LITTLE, UNKNOWN, MUCH = LEVELS = ("nothing", "promised", "little", "unknown", "much")
"""The verdicts on a finding, the worst last."""

CONSIDERABLE = 0.05
"""A gain from which on a leak is called one, rather than a little."""


@dataclass(frozen=True)
class Finding:
    """How often an attack succeeded, and how often it would have without the release. No value of the data is in it.

    Parameters
    ----------
    attack : str
        The name of the attack, ``text`` what counts as a success, in words.
    success : float
        The share of ``rows`` on which it succeeded: rows of people who are in the release.
    base_rate : float
        The success without reading single rows of the release: chance, or the best single guess.
    control : float, optional
        The share of the ``controls`` rows on which it succeeded: people who are not in the release. What is
        learned of them would be learned of anybody; only what is beyond it was caused by the release.
    attribute : str, optional
        The column that was disclosed.
    adversary : str, optional
        What the attacker knows of a person: ``part`` or ``full`` quasi-identifiers, or ``all`` other columns.
    sampled_from : int, optional
        How many rows there are, where ``rows`` are a sample of them.
    allowed : float, optional
        The bound that the release allows, such as 1/k.
    general : bool
        Whether as much might be learned of anybody, so that only controls tell a leak from general knowledge.
    level : str, optional
        One of LEVELS where the attack knows better than the figures, such as for what must never be found at all.
    remark : str
        A remark after the verdict.

    Notes
    -----
    The gain is the success less the control or the base rate, whichever is higher, with Newcombe's 95 % interval; the
    risk is the gain as a share of what was left to learn (the figure of anonymeter, where controls decide).

    Examples
    --------
    >>> found = Finding("guess", success=0.6, base_rate=0.3, rows=1000, text="hits", control=0.31, controls=1000)
    >>> found.level, round(found.gain, 2), [round(b, 2) for b in found.gain_interval]
    ('much', 0.29, [0.25, 0.33])
    >>> print(found.verdict)
    Leaks: 29.0 points more than for people who are not in the release.
    >>> alone = Finding("guess", success=0.6, base_rate=0.3, rows=1000, text="hits", general=True)
    >>> print(alone.verdict)
    Cannot tell a leak from general knowledge: 30.0 points more than the base rate, and there were no controls.
    """

    attack: str
    success: float
    base_rate: float
    rows: int
    text: str
    attribute: str | None = None
    adversary: str | None = None
    control: float | None = None
    controls: int = 0
    sampled_from: int | None = None
    allowed: float | None = None
    general: bool = False
    level: str = ""
    remark: str = ""

    def __post_init__(self) -> None:
        if not self.level:
            object.__setattr__(self, "level", self._judged())

    @property
    def interval(self) -> Interval:
        """Wilson's 95 % interval of the success."""
        return wilson(self.success, self.rows)

    @property
    def control_interval(self) -> Interval | None:
        """Wilson's 95 % interval of the success on controls."""
        return None if self.control is None else wilson(self.control, self.controls)

    @property
    def _reference(self) -> tuple[float, Interval]:
        if self.control is None or self.control < self.base_rate:
            return self.base_rate, (self.base_rate, self.base_rate)
        return self.control, wilson(self.control, self.controls)

    @property
    def gain(self) -> float:
        """How much more often it succeeds than on controls, or than by the base rate where that is higher."""
        return self.success - self._reference[0]

    @property
    def gain_interval(self) -> Interval:
        """Newcombe's 95 % interval of the gain."""
        return difference(self.success, self.interval, *self._reference)

    @property
    def risk(self) -> float:
        """The gain as a share of what was left to learn, not below 0."""
        left = 1 - self._reference[0]
        return max(self.gain / left, 0.0) if left > 0 else 0.0

    def _judged(self) -> str:
        if self.gain_interval[0] <= 0:
            return NOTHING
        if self.allowed is not None and self.interval[0] <= self.allowed:
            return PROMISED
        if self.general and self.control is None:
            return UNKNOWN
        return MUCH if self.gain >= CONSIDERABLE else LITTLE

    @property
    def verdict(self) -> str:
        """The verdict, in words."""
        than = "for people who are not in the release"
        if self.control is None or self.control < self.base_rate:
            than = "the base rate"
        points = f"{100 * self.gain:.1f} points more than {than}"
        words = {
            NOTHING: f"Nothing: no more than {than}.",
            PROMISED: f"As promised: {points}, and no more than the {100 * (self.allowed or 0):.1f} % allowed.",
            LITTLE: f"A little: {points}.",
            UNKNOWN: f"Cannot tell a leak from general knowledge: {points}, and there were no controls.",
            MUCH: f"Leaks: {points}.",
        }
        return " ".join(part for part in (words[self.level], self.remark) if part)

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as plain values."""
        names = ("attack", "attribute", "adversary", "text", "rows", "sampled_from", "success", "interval")
        more = ("control", "controls", "control_interval", "base_rate", "allowed", "gain", "gain_interval", "risk")
        values = {name: getattr(self, name) for name in (*names, *more, "level", "verdict")}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


@dataclass(frozen=True)
class Settings:
    """How attacks are carried out.

    ``sample`` is how many people are attacked at most, and ``seed`` draws them; ``known`` are the quasi-identifiers of
    the partially informed adversary; ``key`` is a column of both tables that identifies persons, which no attack reads;
    ``k`` is what the release requires; ``tolerance`` is how far a guessed number may be off, as a share of the truth;
    ``seeds`` is how many seeds of a permutation are tried, from 0 on.
    """

    sample: int = 5000
    seed: int = 0
    known: tuple[str, ...] | None = None
    key: str | None = None
    k: int | None = None
    tolerance: float = 0.05
    seeds: int = 1024


@dataclass(frozen=True)
class Case:
    """What an attacker has: the original as background knowledge, the release, and how values became labels.

    ``relations`` are those of the release. ``mappings`` has for each quasi-identifier a query (value, label), both as
    text; it is None where the recoding is unknown. ``carried`` are the columns that both tables have
    unchanged. ``published`` says under which columns each quasi-identifier of the original is published: two where its
    bounds are. ``control`` are people who are not in the release, with the columns of the original. ``release`` is the
    release itself where it is known as one; ``files`` are the files that the released table was read from, if any.
    """

    original: AssessedTable
    released: AssessedTable
    relations: dict[str, str]
    mappings: Sequence[exp.Query] | None
    carried: Sequence[str]
    published: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    control: AssessedTable | None = None
    release: Release | None = None
    files: tuple[str, ...] = ()
    hierarchies: Mapping[str, Any] | None = None
    settings: Settings = field(default_factory=Settings)

    @cached_property
    def space(self) -> LinkageSpace:
        """The release and the people in one space, for attacks that link one to the other.

        Labels that cannot be read are a HierarchyError.
        """
        from duckanon.assess.attacks.linkage_space import read_linkage_space

        return read_linkage_space(self)

    @cached_property
    def allowed(self) -> float | None:
        """1/k, as required, or by the smallest class; None where a class has one member."""
        from sqlglot import exp

        from duckanon.engine.sql.relations import col, table

        if self.settings.k is not None:
            return 1 / self.settings.k
        smallest = exp.select(exp.Min(this=col("n"))).from_(table(self.relations["classes"]))
        size = int(self.released.engine.row(smallest)[0])
        return 1 / size if size > 1 else None


class Attacker(ABC):
    """An attack, registered under a name.

    ``run`` gets a Case and returns its findings: one for each column disclosed and adversary tried. What grows with
    the rows stays in the engine or in arrays; a Finding must not contain a value of the data.

    Examples
    --------
    >>> from duckanon.assess.attacks import Attacker, Finding, attackers
    >>> class Rows(Attacker):
    ...     summary = "whether as many rows are published as there were"
    ...
    ...     def needs(self, case):
    ...         return None
    ...
    ...     def run(self, case):
    ...         kept = case.released.rows() / case.original.rows()
    ...         return [Finding("rows", kept, base_rate=kept, rows=case.original.rows(), text="rows published")]
    >>> issubclass(Rows, Attacker)
    True
    """

    name: ClassVar[str]
    summary: ClassVar[str] = ""

    @abstractmethod
    def needs(self, case: Case) -> str | None:
        """Return what is missing for this attack, in words, or None."""

    @abstractmethod
    def run(self, case: Case) -> list[Finding]:
        """Carry it out."""


attackers: Registry[Attacker] = Registry("attack", "duckanon.assess.attacks", "duckanon.disclosure.attacks")
