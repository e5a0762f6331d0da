"""Guessable seeds: a permutation whose random numbers can be made again is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sqlglot import exp

from duckanon.assess.attacks.base import Attacker, Case, Finding, attackers
from duckanon.engine.sql.relations import col, table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from duckanon.release.release import Release

_ROWS = 40
_SIEVED = 16
"""Rows that are tried first: few words are drawn for them."""
_BATCH = 1 << 14
_GROUPS = ("mdav", "mondrian")


@attackers.register("seed")
class Seed(Attacker):
    """Makes the groups of a permuted release again, and tries the seeds 0, 1, 2, ... for its random numbers.

    With the right one, every combination of permuted values is in the release; with others only chance puts it there.
    Who has it knows which row is whose. A key from the operating system (the default) has 256 bits and is not found.
    The order of rows has no such attack: it follows from what is published and a key, not from the source. As many
    ``seeds`` seeds are tried, 1,024 by default. Where blocks are fewer than two there is no combination to
    recognize.
    """

    summary: ClassVar[str] = "permutations undone by trying seeds"

    def needs(self, case: Case) -> str | None:
        release: Any = case.release
        if release is None or not getattr(release.plan.algorithm, "permutes", False):
            return "a Release whose values were permuted"
        if release.plan.algorithm.groups not in _GROUPS:
            return f"groups that are made without random numbers: {' or '.join(_GROUPS)}"
        if len(release.recoder.preparation.blocks) < 2:
            return "at least two blocks of columns"
        return None

    def run(self, case: Case) -> list[Finding]:
        assert case.release is not None
        seeds = case.settings.seeds
        guessed = guess(case.release, range(seeds))
        return [
            Finding(
                attack=self.name,
                success=1.0 if guessed is not None else 0.0,
                base_rate=0.0,
                rows=max(case.release.rows_published, 1),
                text=f"share of people whose row is known by trying the seeds 0 to {seeds - 1:,}",
                remark="" if guessed is None else "The seed of the release can be guessed: it is for tests alone.",
            )
        ]


@dataclass(frozen=True)
class _Call:
    """What was permuted: rows in classes, and the number of the part of the table."""

    items: Any
    parts: Any
    units: NDArray[np.int64]
    label: int


def guess(release: Release, seeds: Sequence[int]) -> int | None:
    """Return the seed by which a release was permuted, None where it is none of those.

    The attacker knows everybody's quasi-identifiers, the settings and the blocks, which the report names.
    """
    from duckanon.algorithms.permutation.permuting import Draw, permute
    from duckanon.recoding.permutation import secret_of

    call, codes, published = _replayed(release)
    if call is None:
        return None
    recoder: Any = release.recoder
    shown = np.sort(_packed(release, recoder.division.ids, codes))
    first = _first_groups(call, _ROWS)
    budget = published.k if release.plan.algorithm.redraw else None  # type: ignore[attr-defined]
    sizes = [len(c) for c in codes]
    sieve = _Sieve.of(_first_groups(call, _SIEVED), codes, published.blocks, shown)
    for begin in range(0, len(seeds), _BATCH):
        for seed in sieve.left(seeds[begin : begin + _BATCH]):
            draw = Draw(secret_of(seed))
            places = permute(first.items, first.parts, first.units, published.blocks, draw, call.label, budget).places
            tuples = _one_number([c[places[:, j]] for j, c in enumerate(codes)], sizes)
            if np.isin(tuples, shown).all():
                return seed
    return None


@dataclass(frozen=True)
class _Sieve:
    """Rules out many seeds at once: some row that they make is not in the release.

    ``places`` are the rows class by class, which begin at ``starts``. A class that stays as it was in some block may
    have been drawn again: it is ignored.
    """

    places: NDArray[np.int64]
    starts: NDArray[np.int64]
    codes: Sequence[NDArray[np.int64]]
    blocks: Sequence[Sequence[int]]
    shown: NDArray[np.int64]
    label: int

    @classmethod
    def of(
        cls, call: _Call, codes: Sequence[NDArray[np.int64]], blocks: Sequence[Sequence[int]], shown: NDArray[np.int64]
    ) -> _Sieve:
        from duckanon.algorithms.permutation.permuting import _in_order

        order, group = _in_order(call.items, call.parts)
        starts = np.append(np.flatnonzero(np.diff(group, prepend=-1)), len(order))
        return cls(call.items.places[order].astype(np.int64), starts, codes, blocks, shown, call.label)

    def left(self, seeds: Sequence[int]) -> list[int]:
        """Return the seeds that may be the right one."""
        from duckanon.algorithms.permutation.permuting import Draw
        from duckanon.recoding.permutation import secret_of

        count = len(self.places)
        draws = [Draw(secret_of(seed)) for seed in seeds]
        words = [np.stack([d.words(count, self.label, b, 0) for d in draws]) for b in range(len(self.blocks))]
        fits = np.ones(len(seeds), dtype=np.bool_)
        for begin, end in pairwise(self.starts):
            places = self.places[begin:end]
            made = np.repeat(places[None], len(seeds), axis=0)
            again = np.zeros(len(seeds), dtype=np.bool_)
            for block, drawn in zip(self.blocks, words, strict=True):
                taken = np.argsort(drawn[:, begin:end], axis=1, kind="stable")
                columns = places[:, list(block)]
                moved = columns[taken]
                made[:, :, list(block)] = moved
                if (columns != columns[0]).any():
                    again |= (moved == columns).all(axis=(1, 2))
            rows = [c[made[:, :, j].ravel()] for j, c in enumerate(self.codes)]
            number = _one_number(rows, [len(c) for c in self.codes])
            at = np.minimum(np.searchsorted(self.shown, number), len(self.shown) - 1)
            there = (self.shown[at] == number).reshape(len(seeds), end - begin).all(axis=1)
            fits &= there | again
        return [seed for seed, fit in zip(seeds, fits, strict=True) if fit]


def _replayed(release: Release) -> tuple[_Call | None, list[NDArray[np.int64]], Any]:
    """Make the groups once more; return what was permuted, the codes of places, and the blocks."""
    from duckanon.algorithms.permutation.probabilistic import Probabilistic
    from duckanon.release import pipeline

    calls: list[_Call] = []

    class Watched(Probabilistic):
        def permuted(self, items: Any, parts: Any, units: Any, label: int) -> Any:
            calls.append(_Call(items, parts, units, label))
            return super().permuted(items, parts, units, label)

    plan = release.plan
    watched = Watched(**{**plan.algorithm.parameters()})
    again = pipeline.run(replace(plan, algorithm=watched, seed=0), release.engine)
    again.folder.close()
    recoder: Any = again.recoder
    codes = [np.asarray(p.code, dtype=np.int64) for p in recoder.associations.coder.placed]
    # Of a table that was permuted in parts, the first is enough, but its rows cannot be separated from those of others.
    return (calls[0] if len(calls) == 1 else None), codes, recoder.preparation


def _first_groups(call: _Call, count: int) -> _Call:
    """Return the first groups alone: what is drawn for them does not depend on the others."""
    from duckanon.algorithms.permutation.permuting import _in_order

    order, group = _in_order(call.items, call.parts)
    last = group[min(count, len(group)) - 1]
    rows = order[group <= last]
    owner = np.empty(len(order), dtype=np.int64)
    owner[call.parts.order] = np.repeat(np.arange(len(call.units)), np.diff(call.parts.starts))
    ties = None if call.items.ties is None else call.items.ties[rows]
    items = type(call.items)(call.items.places[rows], ties=ties)
    starts = np.flatnonzero(np.diff(group[group <= last], prepend=-1))
    units = call.units[owner[rows[starts]]]
    parts = replace(
        call.parts, order=np.arange(len(rows), dtype=np.int32), starts=np.append(starts, len(rows)).astype(np.int64)
    )
    return _Call(items, parts, units, call.label)


def _packed(release: Release, ids: str, codes: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return the published combinations as numbers."""
    from duckanon.recoding.coded_rows import RELEASED

    names = [f"{RELEASED}{j}" for j in range(len(codes))]
    packed = release.engine.arrow(exp.select(*(col(n) for n in names)).distinct().from_(table(ids)))
    columns = [np.asarray(packed.column(n).to_numpy(), dtype=np.int64) for n in names]
    return _one_number(columns, [len(c) for c in codes])


def _one_number(columns: Sequence[NDArray[np.int64]], sizes: Sequence[int]) -> NDArray[np.int64]:
    """Return a number for each combination of codes; combinations beyond 64 bits wrap around, and may rarely meet."""
    numbers = np.zeros(len(columns[0]), dtype=np.uint64)
    for column, size in zip(columns, sizes, strict=True):
        numbers = numbers * np.uint64(size + 1) + column.astype(np.uint64)
    return numbers.astype(np.int64)
