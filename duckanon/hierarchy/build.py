"""Hierarchies from what people write: rules in TOML files and SQL structs, nested trees, lists of values."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duckanon.errors import HierarchyError, did_you_mean
from duckanon.hierarchy.files import names
from duckanon.hierarchy.table import Hierarchy

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.encoding.dictionaries import Dictionary
    from duckanon.engine.base import Engine

RULES: dict[str, Callable[..., Hierarchy]] = {
    "intervals": Hierarchy.intervals,
    "quantiles": Hierarchy.quantiles,
    "mask": Hierarchy.mask,
    "prefix": Hierarchy.prefix,
    "dates": Hierarchy.dates,
    "age": Hierarchy.age,
    "order": Hierarchy.order,
    "random": Hierarchy.random,
    "tree": Hierarchy.tree,
    "suppress": Hierarchy.suppress,
}
_DEEPEST = 64


def from_rule(rule: Mapping[str, Any], base: Path | None = None) -> Hierarchy:
    """Make a hierarchy from a mapping with the key ``rule`` or ``file``; ``base`` is the folder of relative paths."""
    if not isinstance(rule, Mapping):
        raise HierarchyError("A rule must be a mapping with the key 'rule' or 'file'.")
    # A field that an SQL struct leaves NULL counts as not given.
    given = {str(key): value for key, value in rule.items() if value is not None}
    if ("rule" in given) == ("file" in given):
        hint = "" if "rule" in given else next(filter(None, (did_you_mean(k, ("rule", "file")) for k in given)), "")
        raise HierarchyError(f"A rule needs one of the keys 'rule' and 'file'.{hint}")
    if "file" in given:
        path = Path(str(given.pop("file")))
        _known_keys("file", given, ("separator", "top"))
        return Hierarchy.from_csv(path if path.is_absolute() or base is None else base / path, **given)
    name = given.pop("rule")
    if name not in RULES:
        hint = did_you_mean(str(name), RULES)
        raise HierarchyError(f"Unknown hierarchy rule {name!r}.{hint} Known: {', '.join(sorted(RULES))}.")
    parameters = inspect.signature(RULES[name]).parameters
    _known_keys(name, given, [p for p in parameters if p != "base"])
    lacking = [p.name for p in parameters.values() if p.default is p.empty and p.name not in given]
    if lacking:
        raise HierarchyError(f"The rule {name!r} needs the key {lacking[0]!r}.")
    if name == "prefix":
        given["base"] = base
    return RULES[name](**given)


def _known_keys(rule: str, given: Mapping[str, Any], allowed: list[str] | tuple[str, ...]) -> None:
    for key in given:
        if key not in allowed:
            hint = did_you_mean(key, allowed)
            raise HierarchyError(f"The rule {rule!r} has no key {key!r}.{hint} Known: {', '.join(allowed)}.")


def flatten(tree: object) -> pa.Table:
    """Return a nested tree as a table, leaf first; a branch with fewer levels than the deepest repeats its label."""
    import pyarrow as pa

    paths = list(_paths(tree, ()))
    if not paths:
        raise HierarchyError("The tree has no values.")
    depth = max(len(path) for path in paths)
    rows = [(path[0], *_stretched(path, depth)) for path in paths]
    columns = [pa.array([row[i] for row in rows], pa.string()) for i in range(depth)]
    return pa.table(columns, names=names(depth))


def _stretched(path: tuple[str, ...], depth: int) -> tuple[str, ...]:
    """Return the labels of a path, leaf excluded, with the lowest repeated until there are ``depth - 1``."""
    lowest = path[1] if len(path) > 1 else path[0]
    return (lowest,) * (depth - len(path)) + path[1:]


def _paths(node: object, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield (leaf, parent, ..., first level) of every leaf."""
    if len(above) > _DEEPEST:
        raise HierarchyError(f"The tree has a loop, or more than {_DEEPEST} levels.")
    if isinstance(node, Mapping):
        if not node and above:
            raise HierarchyError(f"A branch of the tree at level {len(above)} from the top has no values.")
        for key, child in node.items():
            label = _text(key)
            if label in above[1:]:
                raise HierarchyError(
                    f"The tree has a loop: a label {len(above) + 1} levels from the top is its own ancestor."
                )
            yield from _paths(child, (label, *above))
    elif isinstance(node, list | tuple | set | frozenset):
        if not node and above:
            raise HierarchyError(f"A branch of the tree at level {len(above)} from the top has no values.")
        for child in sorted(node) if isinstance(node, set | frozenset) else node:
            yield from _paths(child, above) if isinstance(child, Mapping | list | tuple) else [(_text(child), *above)]
    else:
        yield (_text(node), *above)


def _text(value: object) -> str:
    """Return a value of a tree as the database would write it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float | date):
        return str(value)
    raise HierarchyError(f"A value of the tree is a {type(value).__name__}; it must be a text, a number or a date.")


def materialise(
    hierarchy: Hierarchy, values: object, type_name: str | None = None, engine: Engine | None = None
) -> Hierarchy:
    """Apply a rule to values and return the table that it makes of them."""
    from duckanon.engine.base import workspace

    with workspace(engine) as work:
        return _materialised(hierarchy, work, values, type_name)


def _materialised(hierarchy: Hierarchy, engine: Engine, values: object, type_name: str | None) -> Hierarchy:
    from sqlglot import exp

    from duckanon.engine.sql.relations import col, named, table
    from duckanon.hierarchy.files import select_text

    distinct, type_name = column(engine, values, type_name)
    bound = hierarchy.bind(engine, distinct.table, "values", type_name)
    query = (
        exp.select(named(col("text", "v"), "l0"), *(col(f"l{i}", "t") for i in range(1, bound.height + 1)))
        .from_(table(distinct.table, "v"))
        .join(table(bound.tree, "t"), on=exp.EQ(this=col("code", "t"), expression=col("code", "v")))
        .order_by(col("code", "v"))
    )
    levels = select_text(engine, query)
    engine.drop(distinct.table, bound.tree, bound.leaves)
    return Hierarchy(levels, None, bound.origin, bound.top)


def column(engine: Engine, values: object, type_name: str | None = None) -> tuple[Dictionary, str]:
    """Return the distinct values of a list, array or series as rules read them, and their type."""
    from sqlglot import exp

    from duckanon.encoding.dictionaries import dictionary
    from duckanon.engine.sql.relations import cast, col, named, table
    from duckanon.hierarchy.files import as_arrow

    incoming = engine.fresh("incoming")
    engine.register(incoming, as_arrow(values))
    (only,) = engine.columns(exp.select("*").from_(table(incoming)))
    value = cast(col(only.name), type_name) if type_name else col(only.name)
    distinct = dictionary(engine, exp.select(named(value, "value")).from_(table(incoming)), "values", col("value"))
    engine.unregister(incoming)
    if not distinct.size:
        raise HierarchyError("There are no values to make a hierarchy of.")
    return distinct, type_name or only.type
