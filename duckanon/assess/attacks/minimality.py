"""Minimality: what is learned from classes that were not made smaller (Wong et al. 2007)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from duckanon.assess.attacks.base import Attacker, Case, Finding, attackers
from duckanon.hierarchy.rules import ColumnType

if TYPE_CHECKING:
    from duckanon.assess.attacks.minimality_search import Believed, Members
    from duckanon.plan.plan import Plan
    from duckanon.release.release import Release

_CLASSES = 300


@attackers.register("minimality")
class Minimality(Attacker):
    """Knows the algorithm and everybody's quasi-identifiers, and asks why finer classes were not published.

    Where sizes do not explain it, the promise about the sensitive column must have been broken: only the worlds in
    which it was are left. Success is how often the likeliest value of a person in these worlds is right; the base rate
    is the same by the class alone. For full-domain algorithms that choose a minimal node (optimal, ola, incognito,
    samarati, mingen), and for strict mondrian, where cuts through numbers, dates and times are looked at, in at most
    300 classes; that trees were not cut tells something, too, and is not followed. All worlds of a class are counted up
    to 5,000, else as many are drawn. Other algorithms are not minimal or draw by lot; with suppression a node may be
    refused for its number of suppressed rows, which is not followed, nor are persons, passes and ``within``: such
    releases are not attacked, and the report says why.

    References
    ----------
    R. Wong, A. Fu, K. Wang, J. Pei, Minimality attack in privacy preserving data publishing, 2007.
    """

    summary: ClassVar[str] = "sensitive values inferred from why no finer classes were published"

    def needs(self, case: Case) -> str | None:
        release: Any = case.release
        if release is None:
            return "a Release: its algorithm and promise"
        if not _promised(release):
            return "a promise about the values of a sensitive column in each class"
        plan = release.plan
        if not plan.algorithm.minimal:
            return f"a minimal algorithm, which {plan.algorithm.name} is not as it was set"
        unfollowed = {
            "that counts rows: why classes of persons were not divided": plan.unit != "rows",
            "without suppression: why rows were left out": bool(plan.suppression_limit),
            "of one pass: why a later one changed nothing": plan.search_options.iterative,
            "whose quasi-identifiers were all recoded: what was kept as it is (within)": bool(plan.within),
            "with numbers, dates or times to cut: why a hierarchy was": plan.algorithm.partitions and not lines(plan),
        }
        found = [what for what, there in unfollowed.items() if there]
        return f"a release {found[0]} is not followed" if found else None

    def run(self, case: Case) -> list[Finding]:
        release: Any = case.release
        return [self._of(release, name, models, case.settings.seed) for name, models in _promised(release).items()]

    def _of(self, release: Release, sensitive: str, models: list[Any], seed: int) -> Finding:
        import numpy as np

        from duckanon.assess.attacks.minimality_search import best_guess, by_cuts, by_levels, judge
        from duckanon.assess.attacks.refusals import cut_classes, level_classes

        total = None
        classes: list[Members]
        believed: list[Believed] | None
        if release.plan.algorithm.partitions:
            classes, totals, every = cut_classes(release, sensitive, _CLASSES, seed)
            total = every if every > len(classes) else None
            allowed = judge(models, totals)
            believed = [by_cuts(members, allowed, seed + i) for i, members in enumerate(classes)]
        else:
            classes, totals = level_classes(release, sensitive)
            believed = by_levels(classes, judge(models, totals), seed)
        people = sum(len(m.values) for m in classes)
        base = hits = raised = 0.0
        drawn = 0
        for i, members in enumerate(classes):
            known, counts = np.unique(members.values, return_counts=True)
            prior = np.tile(counts / len(members.values), (len(members.values), 1))
            guessed = best_guess(prior, known, members.values)
            base += guessed
            own = None if believed is None else believed[i]
            hits += guessed if own is None else best_guess(own.chances, own.values, members.values)
            if own is not None:
                # Shares of worlds that were drawn differ by chance.
                slack = 1e-6 if own.exact else 0.05
                raised += float((own.chances.max(axis=1) > prior.max(axis=1) + slack).sum())
                drawn += not own.exact and bool(members.parts.shape[1])
        remark = f"Of {raised / people:.1%} of the people some value is likelier than any is in their class."
        trees = len(release.plan.roles.quasi_identifiers) - len(lines(release.plan))
        if release.plan.algorithm.partitions and trees:
            remark += f" Why hierarchies were not cut is not followed: those of {trees} columns."
        if drawn:
            remark += f" Worlds of {drawn} of {len(classes)} classes were drawn, not counted."
        return Finding(
            attack=self.name,
            attribute=sensitive,
            success=hits / people,
            base_rate=base / people,
            rows=people,
            text=f"share of people whose {sensitive} is guessed from why no finer classes were published",
            sampled_from=None if total is None else release.rows_published,
            remark=remark,
        )


def lines(plan: Plan) -> list[str]:
    """Return the quasi-identifiers that are cut between values: numbers, dates and times."""
    return [a.name for a in plan.roles.quasi_identifiers if ColumnType.parse(a.type).kind != "category"]


def _promised(release: Release) -> dict[str, list[Any]]:
    """Return the models about values of each sensitive column that look at classes alone."""
    found: dict[str, list[Any]] = {}
    for model in release.plan.models:
        name = getattr(model, "sensitive", None)
        if name is not None and not model.needs_population and not model.needs_hierarchy and not model.needs_order:
            found.setdefault(name, []).append(model)
    return found
