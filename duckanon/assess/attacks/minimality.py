"""Minimality: what is learned from the fact that an algorithm did not publish more detail (Wong et al. 2007).

An adversary who knows that the algorithm publishes as much detail as the requirement allows, and knows the
quasi-identifiers of all persons, knows which finer classes were *not* published. Where those are large enough, they
must have violated the requirement about the sensitive column. A world is one way to give the sensitive values of a
class, which are published, to its members; only those worlds are left in which every finer division that was refused
had to be refused. How often a member has a value among them is what the adversary believes.

- Classes that were divided by cuts: every cut through a class was refused, each class separately.
- Full-domain levels: every node one step below was refused, because of *some* class. The classes are independent
  otherwise, so that the worlds of all of them are counted by inclusion and exclusion over the refused nodes.

All worlds of a class are counted where there are no more than ``WORLDS``; else so many are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, pairwise
from math import factorial, prod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sqlglot import exp

from duckanon.assess.attacks.base import Attacker, Case, Finding, attackers
from duckanon.engine.sql.relations import cast, col, named, qualified, same, subquery, table
from duckanon.hierarchy.rules import ColumnType
from duckanon.models.base import Groups, Histograms
from duckanon.recoding.coded_rows import CODE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from duckanon.models.base import Model
    from duckanon.plan.plan import Plan
    from duckanon.release.release import Release

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]
    Booleans = NDArray[np.bool_]
    Judge = Callable[[Ints, Ints, int], Booleans]


WORLDS = 5000
"""The most worlds of a class that are counted one by one."""
_SURE = 1e-12
_NODES = 6
_PEOPLE = 500
_CELLS = 2_000_000


@dataclass(frozen=True)
class Members:
    """The people of one published class.

    ``values`` are codes of the sensitive column. ``parts[i, c]`` is the part in which person i would lie if division c
    had been made; part numbers begin at 0.
    """

    values: Ints
    parts: NDArray[np.int64]


@dataclass(frozen=True)
class Believed:
    """What an attacker believes of the people of a class.

    ``chances[i, v]`` is the probability that person i has ``values[v]``; ``exact`` means that all worlds were counted.
    """

    values: Ints
    chances: Floats
    exact: bool


def judge(models: Sequence[Model], totals: Ints) -> Judge:
    """Return a function that decides for each group whether the models about one sensitive column allow it.

    The function gets the group and the value of every member, and the number of groups; empty groups are allowed.
    """

    def allowed(group: Ints, values: Ints, groups: int) -> Booleans:
        key, counts = np.unique(group * len(totals) + values, return_counts=True)
        starts = np.searchsorted(key, np.arange(groups + 1) * len(totals))
        sizes = np.bincount(group, minlength=groups)
        found = Groups(sizes, sizes, Histograms(starts, key % len(totals), counts, totals))
        fine = np.ones(groups, dtype=np.bool_)
        for model in models:
            fine &= model.satisfied(found)
        return np.asarray(fine | (sizes == 0), dtype=np.bool_)

    return allowed


def worlds(values: Ints, seed: int = 0) -> tuple[NDArray[np.int64], bool]:
    """Return the ways to give the values of a class to its members, and whether these are all.

    Examples
    --------
    >>> import numpy as np
    >>> worlds(np.array([7, 7, 9]))
    (array([[7, 7, 9],
           [7, 9, 7],
           [9, 7, 7]]), True)
    """
    distinct, counts = np.unique(values, return_counts=True)
    several = len(values) > _PEOPLE or factorial(len(values)) // prod(factorial(int(c)) for c in counts) > WORLDS
    if not several:
        return distinct[_arrangements(tuple(int(c) for c in counts))], True
    draw = np.random.default_rng(seed)
    # Of a class with many people fewer worlds fit into memory.
    count = max(100, min(WORLDS, _CELLS // len(values)))
    return draw.permuted(np.tile(values, (count, 1)), axis=1), False


@lru_cache(maxsize=256)
def _arrangements(counts: tuple[int, ...]) -> NDArray[np.int64]:
    """Return all different orders of ``counts[0]`` zeros, ``counts[1]`` ones and so on."""
    left, row = list(counts), list[int]()
    arrangements: list[tuple[int, ...]] = []

    def step() -> None:
        if len(row) == sum(counts):
            arrangements.append(tuple(row))
            return
        for value, more in enumerate(left):
            if more:
                left[value] -= 1
                row.append(value)
                step()
                row.pop()
                left[value] += 1

    step()
    return np.array(arrangements, dtype=np.int64).reshape(-1, sum(counts))


def refused(members: Members, tried: NDArray[np.int64], allowed: Judge) -> Booleans:
    """Return for each world and each division whether the division violates the requirement there."""
    count = len(tried)
    refusals = np.zeros((count, members.parts.shape[1]), dtype=np.bool_)
    for c in range(members.parts.shape[1]):
        parts = members.parts[:, c]
        width = int(parts.max()) + 1
        group = (np.arange(count)[:, None] * width + parts[None, :]).ravel()
        fine = allowed(group, tried.ravel(), count * width)
        refusals[:, c] = ~fine.reshape(count, width).all(axis=1)
    return refusals


def by_cuts(members: Members, allowed: Judge, seed: int = 0) -> Believed:
    """Return what is believed of a class that was divided no further: every division listed was refused."""
    tried, exact = worlds(members.values, seed)
    distinct = np.unique(members.values)
    left = tried[refused(members, tried, allowed).all(axis=1)] if members.parts.shape[1] else tried
    # Of drawn worlds none may be left: then nothing is learned from them.
    return Believed(distinct, _shares(left if len(left) else tried, distinct), exact)


def by_levels(classes: Sequence[Members], allowed: Judge, seed: int = 0) -> list[Believed] | None:
    """Return what is believed of all classes of a node: each node below it was refused because of some class.

    Every class has the same divisions: one for each node below, of which the first six are tried. None where it is
    sure enough (1 - 1e-12) that some class would have refused each of them anyway: nothing is learned.
    """
    nodes = min(classes[0].parts.shape[1], _NODES) if classes else 0
    if not nodes:
        return None
    chosen = [t for size in range(1, nodes + 1) for t in combinations(range(nodes), size)]
    passing = np.zeros((len(classes), len(chosen)))
    seen = []
    log = np.zeros(nodes)
    for i, members in enumerate(classes):
        tried, exact = worlds(members.values, seed + i)
        broken = refused(replace(members, parts=members.parts[:, :nodes]), tried, allowed)
        fine = np.stack([~broken[:, list(t)].any(axis=1) for t in chosen], axis=1)
        passing[i] = fine.mean(axis=0)
        seen.append((tried, fine, exact))
        with np.errstate(divide="ignore"):
            log += np.log((~broken).mean(axis=0))
        if (log < np.log(_SURE)).all() and i + 1 < len(classes):
            return None
    signs = np.array([(-1.0) ** len(t) for t in chosen])
    whole = 1 + float(signs @ passing.prod(axis=0))
    beliefs = []
    for i, (members, (tried, fine, exact)) in enumerate(zip(classes, seen, strict=True)):
        distinct = np.unique(members.values)
        others = np.delete(passing, i, axis=0).prod(axis=0)
        # Each world of this class, weighted by how likely the other classes explain what it does not.
        weight = 1 + fine @ (signs * others)
        chances = _shares(tried, distinct, np.maximum(weight, 0.0)) if whole > _SURE else _shares(tried, distinct)
        beliefs.append(Believed(distinct, chances, exact))
    return beliefs


def _shares(tried: NDArray[np.int64], distinct: Ints, weight: Floats | None = None) -> Floats:
    weights = np.ones(len(tried)) if weight is None or not weight.any() else weight
    shares: Floats = np.stack([(weights[:, None] * (tried == value)).sum(axis=0) for value in distinct], axis=1)
    return np.asarray(shares / weights.sum(), dtype=np.float64)


def best_guess(chances: Floats, distinct: Ints, truth: Ints) -> float:
    """Return how many people's values are guessed rightly by the likeliest one; among equals one is drawn."""
    best = chances >= chances.max(axis=1, keepdims=True) - 1e-9
    right = best & (distinct[None, :] == truth[:, None])
    return float((right.sum(axis=1) / best.sum(axis=1)).sum())


_CUTS = 12
"""The number of cuts of one class that are tried: of all that its members allow, those nearest to the middle."""


def level_classes(release: Release, sensitive: str) -> tuple[list[Members], Ints]:
    """Return the classes of a node with the nodes one step below that sizes alone allow, and the values' totals."""
    cells: Any = release.recoder.cells  # type: ignore[union-attr]
    query = exp.select().from_(subquery(release.plan.relation.query, "s"))
    lowest = release.plan.search_options.minimum
    steps = [j for j, cell in enumerate(cells) if cell.level > lowest.get(cell.name, 0)]
    for j, cell in enumerate(cells):
        query = _coded(query, j, cell.values, cell.levels, qualified(cell.expression, "s"))
        query = query.select(named(col(f"c{cell.level}", f"k_{j}"), f"g_{j}"))
    for j in steps:
        query = query.select(named(col(f"c{cells[j].level - 1}", f"k_{j}"), f"f_{j}"))
    rows = release.engine.arrow(query.select(named(_value(release, sensitive, "s"), "v")))
    values, totals = _codes(rows.column("v"))
    classes = _numbered([_ints(rows, f"g_{j}") for j in range(len(cells))])
    least = _least(release)
    parts = []
    for j in steps:
        part = _numbered([classes, _ints(rows, f"f_{j}")])
        # A node with a class too small was refused for that alone.
        if np.bincount(part).min() >= least:
            parts.append(part)
    return _split(classes, values, np.stack(parts, axis=1) if parts else np.zeros((len(values), 0), int)), totals


def cut_classes(release: Release, sensitive: str, most: int, seed: int) -> tuple[list[Members], Ints, int]:
    """Return some classes of a division with the cuts that sizes alone allow, the values' totals, and all classes.

    Cuts through columns of numbers, dates and times are listed; those along a hierarchy of other columns are not.
    """
    recoder: Any = release.recoder
    plan, cells = release.plan, recoder.cells
    # Divided rows have the codes of their values.
    cells_kept: list[tuple[str, exp.Expr]] = [(cell.name, col(f"{CODE}{j}")) for j, cell in enumerate(cells)]
    sensitive_column = next(a for a in plan.roles.attributes if a.name == sensitive)
    cells_kept.append((sensitive, plan.expression(sensitive_column)))
    rows = recoder.rows(cells_kept)
    query = exp.select().from_(subquery(rows, "r"))
    labels = [inner for _, inner in recoder.shown]
    for inner in labels:
        query = query.select(named(cast(col(inner, "r"), "VARCHAR"), inner))
    types = {a.name: a.type for a in plan.roles.quasi_identifiers}
    lines = [j for j, c in enumerate(cells) if ColumnType.parse(types[c.name]).kind != "category"]
    level = 1 if plan.bounds == "grid" else 0
    for j in lines:
        for alias, other in ((f"v_{j}", cells[j].values), (f"k_{j}", cells[j].levels)):
            query = query.join(table(other, alias), on=exp.EQ(this=col("code", alias), expression=col(f"p_{j}", "r")))
        missing = exp.Is(this=col("value", f"v_{j}"), expression=exp.null())
        query = query.select(named(col(f"p_{j}", "r"), f"o_{j}"), named(col(f"c{level}", f"k_{j}"), f"a_{j}"))
        query = query.select(named(missing, f"n_{j}"))
    value = named(cast(col(f"p_{len(cells)}", "r"), "VARCHAR"), "v")
    cut_rows = release.engine.arrow(query.select(value))
    values, totals = _codes(cut_rows.column("v"))
    classes = _numbered([_codes(cut_rows.column(inner))[0] for inner in labels])
    total = int(classes.max()) + 1 if len(classes) else 0
    chosen = np.sort(np.random.default_rng(seed).permutation(total)[:most])
    order = np.argsort(classes, kind="stable")
    starts = np.searchsorted(classes[order], np.arange(total + 1))
    axes = [(_ints(cut_rows, f"o_{j}"), _ints(cut_rows, f"a_{j}"), cut_rows.column(f"n_{j}").to_numpy()) for j in lines]
    least = _least(release)
    made = []
    for c in chosen:
        members = order[starts[c] : starts[c + 1]]
        cuts = [
            cut
            for place, atom, null in axes
            if not null[members].any()
            for cut in _cuts(place[members], atom[members], least)
        ]
        cuts.sort(key=lambda cut: abs(2 * int(cut.sum()) - len(members)))
        parts = np.stack(cuts[:_CUTS], axis=1) if cuts else np.zeros((len(members), 0), dtype=np.int64)
        made.append(Members(values[members], parts))
    return made, totals, total


def _cuts(place: Ints, atom: Ints, least: int) -> list[Ints]:
    """Return on which side of each cut between groups of values people are, where both sides are large enough."""
    first = np.full(int(atom.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, atom, place)
    at = first[atom]
    sides = [(at > start).astype(np.int64) for start in np.unique(at)[:-1]]
    return [side for side in sides if least <= side.sum() <= len(side) - least]


def _least(release: Release) -> int:
    return max(m.traits.min_class_size for m in release.plan.models)


def _coded(query: exp.Select, j: int, values: str, levels: str, value: exp.Expr) -> exp.Select:
    """Join the dictionary of a column and the codes of its values on every level."""
    query = query.join(table(values, f"v_{j}"), on=same(value, col("value", f"v_{j}")))
    on = exp.EQ(this=col("code", f"k_{j}"), expression=col("code", f"v_{j}"))
    return query.join(table(levels, f"k_{j}"), on=on)


def _value(release: Release, sensitive: str, alias: str) -> exp.Expr:
    attribute = next(a for a in release.plan.roles.attributes if a.name == sensitive)
    return cast(qualified(release.plan.expression(attribute), alias), "VARCHAR")


def _ints(table: Any, name: str) -> Ints:
    return np.asarray(table.column(name).to_numpy(), dtype=np.int64)


def _codes(column: Any) -> tuple[Ints, Ints]:
    """Return the values of a column as numbers, NULL being one, and how often each occurs."""
    coded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    if hasattr(coded, "chunks"):
        coded = coded.unify_dictionaries().combine_chunks()
    codes = np.asarray(coded.indices.to_numpy(), dtype=np.int64)
    return codes, np.bincount(codes, minlength=len(coded.dictionary)).astype(np.int64)


def _numbered(columns: Sequence[Ints]) -> Ints:
    """Return a number for each combination of numbers."""
    _, numbers = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    return np.asarray(numbers.reshape(-1), dtype=np.int64)


def _split(classes: Ints, values: Ints, parts: Ints) -> list[Members]:
    order = np.argsort(classes, kind="stable")
    starts = np.searchsorted(classes[order], np.arange(int(classes.max(initial=-1)) + 2))
    made = []
    for first, after in pairwise(starts):
        members = order[first:after]
        local = np.zeros((len(members), parts.shape[1]), dtype=np.int64)
        for c in range(parts.shape[1]):
            local[:, c] = np.unique(parts[members, c], return_inverse=True)[1]
        made.append(Members(values[members], local))
    return made


_CLASSES = 300


@attackers.register("minimality")
class Minimality(Attacker):
    """Knows the algorithm and the quasi-identifiers of all persons, and infers why finer classes were not published.

    Where sizes do not explain it, the requirement about the sensitive column must have been violated: only the worlds
    in which it was are left. Success is how often the likeliest value of a person in these worlds is right; the base
    rate is the same by the class alone. For full-domain algorithms that choose a minimal node (optimal, ola, incognito,
    samarati, mingen), and for strict mondrian, where cuts through numbers, dates and times are tried, in at most 300
    classes; that trees were not cut discloses something, too, and is not followed. All worlds of a class are counted up
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
            return "a Release: its algorithm and privacy requirements"
        if not _promised(release):
            return "a privacy requirement about the values of a sensitive column in each class"
        plan = release.plan
        if not plan.algorithm.minimal:
            return f"a minimal algorithm, which {plan.algorithm.name} is not as it was set"
        unfollowed = {
            "that counts rows: why classes of persons were not divided": plan.unit != "rows",
            "without suppression: why rows were left out": bool(plan.suppression_limit),
            "of one pass: why a later one changed nothing": plan.search_options.iterative,
            "whose quasi-identifiers were all recoded: what was published as it is (within)": bool(plan.within),
            "with numbers, dates or times to cut: why a hierarchy was": plan.algorithm.partitions and not lines(plan),
        }
        missing = [what for what, there in unfollowed.items() if there]
        return f"a release {missing[0]} is not followed" if missing else None

    def run(self, case: Case) -> list[Finding]:
        release: Any = case.release
        return [self._of(release, name, models, case.settings.seed) for name, models in _promised(release).items()]

    def _of(self, release: Release, sensitive: str, models: list[Any], seed: int) -> Finding:
        import numpy as np

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
            distinct, counts = np.unique(members.values, return_counts=True)
            prior = np.tile(counts / len(members.values), (len(members.values), 1))
            guessed = best_guess(prior, distinct, members.values)
            base += guessed
            belief = None if believed is None else believed[i]
            hits += guessed if belief is None else best_guess(belief.chances, belief.values, members.values)
            if belief is not None:
                # Shares of worlds that were drawn differ by chance.
                slack = 1e-6 if belief.exact else 0.05
                raised += float((belief.chances.max(axis=1) > prior.max(axis=1) + slack).sum())
                drawn += not belief.exact and bool(members.parts.shape[1])
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
    """Return the models about values of each sensitive column that are decided for each class alone."""
    promised: dict[str, list[Any]] = {}
    for model in release.plan.models:
        name = getattr(model, "sensitive", None)
        if name is not None and not model.needs_population and not model.needs_hierarchy and not model.needs_order:
            promised.setdefault(name, []).append(model)
    return promised


__all__ = [
    "WORLDS",
    "Believed",
    "Members",
    "best_guess",
    "by_cuts",
    "by_levels",
    "cut_classes",
    "judge",
    "level_classes",
    "refused",
    "worlds",
]
