"""Attacks that look at nothing but the sensitive values of classes: one statement each.

What classes tell is seen beside what the table tells without them, all rows being one class. That does not depend on
the classes under attack: where everybody is alone, everything is told. Classes of k in which values are chance tell
something, too; that much k-anonymity allows, and it is called so.
"""

from __future__ import annotations

from typing import ClassVar

from duckanon.assess.attacks.base import Attacker, Case, Finding
from duckanon.engine.sql.files import load


class ClassValues(Attacker):
    """Reads what the classes of a release tell of their sensitive values; ``share`` says of what it gives the share."""

    share: ClassVar[str]

    def needs(self, case: Case) -> str | None:
        if case.release is not None and case.release.hidden:
            return "classes that can be seen: values were permuted within groups that the release does not show"
        return None if case.released.sensitive else "a sensitive column"

    def run(self, case: Case) -> list[Finding]:
        file = load(f"attacks/{self.name}")
        bound = file.bind({r: case.relations[r] for r in file.reads})
        found = case.released.engine.rows(bound, {"k": None if case.allowed is None else round(1 / case.allowed)})
        return [
            Finding(
                attack=self.name,
                attribute=attribute,
                success=float(success),
                base_rate=float(base),
                rows=int(rows),
                text=f"{self.share} {attribute}",
                allowed=None if allowed is None else float(allowed),
            )
            for attribute, rows, success, base, allowed in found
        ]
