"""The form of an attack: what it is given, and what it found beside what chance would find."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from duckanon.registry import Registry

if TYPE_CHECKING:
    from sqlglot import exp

    from duckanon.disclosure.subject import Subject


@dataclass(frozen=True)
class Finding:
    """How often an attack succeeded, and how often it would by chance. Counts and shares only, no value of the data.

    ``rows`` is what ``success`` is a share of; ``attribute`` the column that was disclosed, or None.
    """

    attack: str
    success: float
    base_rate: float
    rows: int
    text: str
    attribute: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Case:
    """What an attacker has: the original as background knowledge, the release, and how values became labels.

    ``relations`` are those of the release. ``mappings`` has for each quasi-identifier a query (value, label), both as
    text; it is None where nothing says how the release was recoded. ``carried`` are the columns that both tables have
    unchanged.
    """

    original: Subject
    released: Subject
    relations: dict[str, str]
    mappings: Sequence[exp.Query] | None
    carried: Sequence[str]


class Attacker(ABC):
    """An attack, registered under a name."""

    name: ClassVar[str]
    summary: ClassVar[str] = ""

    @abstractmethod
    def needs(self, case: Case) -> str | None:
        """Return what is missing for this attack, in words, or None."""

    @abstractmethod
    def run(self, case: Case) -> list[Finding]:
        """Carry it out."""


attackers: Registry[Attacker] = Registry("attack", "duckanon.disclosure.attacks")
