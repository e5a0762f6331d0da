"""The third stage: from what was found to published cells, and to the relations that describe the classes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from duckanon.recoding.base import Recoder
from duckanon.recoding.full_domain import FullDomain, Local
from duckanon.recoding.permutation import PermutedRows
from duckanon.recoding.regions import Regions

if TYPE_CHECKING:
    from pathlib import Path

    from duckanon.engine.base import Engine
    from duckanon.hierarchy import Hierarchy, Levels
    from duckanon.plan.plan import Plan
    from duckanon.release.stages.encode import Encoded
    from duckanon.release.stages.search import Found


@dataclass(frozen=True)
class Recoded:
    """How each row is published."""

    recoder: Recoder
    levels: tuple[Levels, ...] = field(default=(), repr=False)
    """The hierarchies that values are generalized by; none where values are permuted."""
    hierarchies: tuple[Hierarchy, ...] = field(default=(), repr=False)


def recode(plan: Plan, engine: Engine, encoded: Encoded, found: Found, path: Path) -> Recoded:
    """Make what is published of every class; ``path`` is where the rows will be written."""
    counted, levels = encoded.problem.frequency, encoded.levels
    if found.partition is not None and encoded.algorithm.permutes:
        # No value is generalized: hierarchies only served as distances.
        return Recoded(PermutedRows(plan, engine, counted, found.partition))
    if found.partition is not None:
        recoder: Recoder = Regions(plan, engine, counted, levels, found.partition)
    elif len(found.passes) == 1:
        recoder = FullDomain(plan, engine, counted, levels, found.passes[0], path)
    else:
        recoder = Local(plan, engine, counted, levels, found.passes, path)
    return Recoded(recoder, levels, encoded.hierarchies)


__all__ = ["Recoded", "recode"]
