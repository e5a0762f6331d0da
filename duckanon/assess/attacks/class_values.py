"""Attacks that read nothing but the sensitive values of classes: homogeneity and skewness, one statement each.

What classes say is compared with what the table says without them, all rows being one class. That does not depend on
the classes under attack: where everybody is alone, everything is disclosed. Classes of k in which values are chance
disclose something, too; that much k-anonymity allows, and the verdict says so.
"""

from __future__ import annotations

from typing import ClassVar

from duckanon.assess.attacks.base import Attacker, Case, Finding, attackers
from duckanon.engine.sql.files import load


class ClassValues(Attacker):
    """Reads what classes disclose of their sensitive values; ``share`` names the share that is measured."""

    share: ClassVar[str]

    def needs(self, case: Case) -> str | None:
        if case.release is not None and case.release.hidden:
            return "classes that can be seen: values were permuted within groups that the release does not show"
        return None if case.released.sensitive else "a sensitive column"

    def run(self, case: Case) -> list[Finding]:
        file = load(f"attacks/{self.name}")
        bound = file.bind({r: case.relations[r] for r in file.reads})
        rows_of = case.released.engine.rows(bound, {"k": None if case.allowed is None else round(1 / case.allowed)})
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
            for attribute, rows, success, base, allowed in rows_of
        ]


@attackers.register("homogeneity")
class Homogeneity(ClassValues):
    """Reads the sensitive value of everybody whose class has only one.

    The base rate is 0, or 1 where the whole table has one value, which everybody knows without classes. What k allows
    is the share of rows that classes of k would give away if the values were drawn at random from the table's own.

    References
    ----------
    A. Machanavajjhala et al., l-diversity: privacy beyond k-anonymity, 2006, section 2.1.
    """

    summary: ClassVar[str] = "rows in classes that have one sensitive value"
    share: ClassVar[str] = "share of released rows whose class has one value of"


@attackers.register("skewness")
class Skewness(ClassValues):
    """Believes of everybody what the class makes likely: how much belief falls on the right value, on average.

    The base rate is the belief of an adversary who knows the frequencies of values in the whole table. A person is in
    the own class, so even random classes disclose more, 1/size and what the others add: what k allows is the mean over
    all ways to deal the table's rows into classes of k, which has a closed form.

    References
    ----------
    N. Li, T. Li, S. Venkatasubramanian, t-closeness: privacy beyond k-anonymity and l-diversity, 2007, section 2.
    """

    summary: ClassVar[str] = "how likely their class makes people's own sensitive value"
    share: ClassVar[str] = "mean share, within the classes of released rows, of their own value of"
