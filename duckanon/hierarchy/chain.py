"""Hierarchies that continue with another one: the chain of them, and its description in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duckanon.errors import HierarchyError
from duckanon.hierarchy.rules import FURTHEST, Prefix
from duckanon.hierarchy.store import resolve

if TYPE_CHECKING:
    from duckanon.engine.base import Engine
    from duckanon.hierarchy.table import Hierarchy


def chain(hierarchy: Hierarchy, engine: Engine) -> list[Hierarchy]:
    """Return the hierarchy and all that follow it by ``then``; unknown names and loops are errors."""
    links = [hierarchy]
    while isinstance(links[-1].rule, Prefix) and links[-1].rule.then is not None:
        if len(links) > FURTHEST:
            raise HierarchyError("The rule has a loop: its 'then' comes back to itself.")
        links.append(resolve(links[-1].rule.then, engine, links[-1].rule.base))
    return links


def height(links: list[Hierarchy]) -> int | None:
    """Return the number of levels of a whole chain, or None if it depends on the data."""
    last = links[-1].height
    return None if last is None else last + sum(_own(link) for link in links[:-1])


def in_words(links: list[Hierarchy]) -> list[str]:
    """Return a line for each step of a chain; no lines if the rule is not a chain of prefixes."""
    lines: list[str] = []
    level = 1
    for link in links:
        if isinstance(link.rule, Prefix):
            for size in link.rule.lengths:
                lines.append(f"level {level}: the first {f'{size} characters' if size > 1 else 'character'}")
                level += 1
            if link.rule.then is None:
                lines.append(f"level {level}: {link.top}")
        elif lines:
            lines.append(_last(link, level))
    return lines


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
