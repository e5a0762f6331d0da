"""Minimality: what is learned from classes that were not made smaller (Wong et al. 2007)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from duckanon.disclosure.attacks.base import Attacker, Case, Finding, attackers

if TYPE_CHECKING:
    from duckanon.disclosure.minimality import Believed, Members
    from duckanon.release import Release

_CLASSES = 300


@attackers.register("minimality")
class Minimality(Attacker):
    """Knows the algorithm and everybody's quasi-identifiers, and asks why finer classes were not published.

    Where sizes do not explain it, the promise about the sensitive column must have been broken: only the worlds in
    which it was are left. Success is how often the likeliest value of a person in these worlds is right; the base rate
    is the same by the class alone. For full-domain algorithms that choose a minimal node (optimal, ola, incognito,
    samarati, mingen), and for strict mondrian, where cuts through numbers, dates and times are looked at, in at most
    300 classes. All worlds of a class are counted up to 5,000, else as many are drawn. Other algorithms are not minimal
    or draw by lot; with suppression a node may be refused for its number of suppressed rows, which is not followed.

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
        if plan.unit != "rows" or plan.suppression_limit or plan.steering.iterative or plan.within:
            return "classes of rows, without suppression, passes or columns that are kept as they are"
        return None

    def run(self, case: Case) -> list[Finding]:
        release: Any = case.release
        return [self._of(release, name, models, case.settings.seed) for name, models in _promised(release).items()]

    def _of(self, release: Release, sensitive: str, models: list[Any], seed: int) -> Finding:
        import numpy as np

        from duckanon.disclosure.minimality import best_guess, by_cuts, by_levels, judge
        from duckanon.disclosure.refusals import cut_classes, level_classes

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


def _promised(release: Release) -> dict[str, list[Any]]:
    """Return the models about values of each sensitive column that look at classes alone."""
    found: dict[str, list[Any]] = {}
    for model in release.plan.models:
        name = getattr(model, "sensitive", None)
        if name is not None and not model.needs_population and not model.needs_hierarchy and not model.needs_order:
            found.setdefault(name, []).append(model)
    return found
