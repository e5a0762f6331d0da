"""Hierarchies that go on with another one: what follows what, and the same in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duckanon.errors import HierarchyError
from duckanon.hierarchy.masks import FURTHEST, Prefix
from duckanon.hierarchy.store import resolve

if TYPE_CHECKING:
    from duckanon.engine.base import Engine
    from duckanon.hierarchy.table import Hierarchy


def chain(hierarchy: Hierarchy, engine: Engine) -> list[Hierarchy]:
    """Return the hierarchy and all that follow it by ``then``; a name that nobody knows and a loop are errors."""
    found = [hierarchy]
    while isinstance(found[-1].rule, Prefix) and found[-1].rule.then is not None:
        if len(found) > FURTHEST:
            raise HierarchyError("The rule has a loop: its 'then' comes back to itself.")
        found.append(resolve(found[-1].rule.then, engine, found[-1].rule.base))
    return found


def height(links: list[Hierarchy]) -> int | None:
    """Return the levels of a whole chain, or None where only the data decides."""
    last = links[-1].height
    return None if last is None else last + sum(_own(link) for link in links[:-1])


def in_words(links: list[Hierarchy]) -> list[str]:
    """Return a line for each step of a chain; none where the rule is no chain of prefixes."""
    told: list[str] = []
    level = 1
    for link in links:
        if isinstance(link.rule, Prefix):
            for size in link.rule.lengths:
                told.append(f"level {level}: the first {f'{size} characters' if size > 1 else 'character'}")
                level += 1
            if link.rule.then is None:
                told.append(f"level {level}: {link.top}")
        elif told:
            told.append(_last(link, level))
    return told


def _last(link: Hierarchy, level: int) -> str:
    """Return the line of the hierarchy at the end of a chain."""
    name = link.origin.split(": ", 1)[-1]
    if link.height is None:
        return f"level {level} and further: {name}"
    end = level + link.height - 1
    where = f"level {level}" if end == level else f"levels {level} to {end}"
    if link.levels is None:
        return f"{where}: {name}"
    labels = " -> ".join(f"{count:,}" for count in link.describe()["labels"])
    return f"{where}: {name}, labels {labels}"


def _own(link: Hierarchy) -> int:
    return len(link.rule.lengths) if isinstance(link.rule, Prefix) else 0
