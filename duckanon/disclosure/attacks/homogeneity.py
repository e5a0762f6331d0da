"""Homogeneity: everybody in a class has the same sensitive value (Machanavajjhala et al. 2006)."""

from __future__ import annotations

from typing import ClassVar

from duckanon.disclosure.attacks.base import Attacker, Case, Finding, attackers
from duckanon.sqlgen.files import load


@attackers.register("homogeneity")
class Homogeneity(Attacker):
    """Reads the sensitive value of everybody whose class has only one.

    The base rate is what classes of the same sizes would give away if the sensitive values were drawn at random from
    the table's own distribution.

    References
    ----------
    A. Machanavajjhala et al., l-diversity: privacy beyond k-anonymity, 2006, section 2.1.
    """

    summary: ClassVar[str] = "rows in classes that have one sensitive value"

    def needs(self, case: Case) -> str | None:
        return None if case.released.sensitive else "a sensitive column"

    def run(self, case: Case) -> list[Finding]:
        file = load("attacks/homogeneity")
        found = case.released.engine.rows(file.bind({r: case.relations[r] for r in file.reads}))
        return [
            Finding(
                attack=self.name,
                attribute=attribute,
                success=float(success),
                base_rate=float(base),
                rows=int(rows),
                text=f"share of released rows whose class has one value of {attribute}",
            )
            for attribute, rows, success, base in found
        ]
