"""Trees over sorted values: with a fixed fan-out, or random for experiments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from sqlglot import exp

from duckanon.engine.sql.relations import call, cast, col, named, number, quoted_member, subquery, table, text
from duckanon.errors import HierarchyError
from duckanon.hierarchy.rules import Field, Labelling, Rule, whole

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LISTED = 4
"""Up to this many values, the label of a group lists them; larger groups are numbered, so that no bound is shown."""


def random_tree(size: int, seed: int, ordered: bool = True, max_children: int | None = None) -> list[NDArray[np.int64]]:
    """Return a random tree over ``0 .. size - 1`` with all leaves at one depth.

    The full set is split into a random ordered partition, its parts again, until a part is a single value; there the
    tree is cut: the elements of all parts of the level above become leaves.

    Parameters
    ----------
    size : int
    seed : int
    ordered : bool
        Whether parts hold neighbours only; otherwise the values are shuffled first.
    max_children : int, optional
        Most parts of one split; by default any number up to the size of the set. Their number is drawn uniformly from
        2 .. ``max_children``, the cut points uniformly without replacement.

    Returns
    -------
    list of numpy.ndarray
        For each level between the values and the root, finest first, the number of each value's group.

    References
    ----------
    "Information loss metrics versus utility", section 3.3.2 and Figure 3.3.

    Examples
    --------
    >>> [level.tolist() for level in random_tree(6, seed=5, max_children=2)]
    [[0, 0, 0, 0, 1, 1]]
    """
    import numpy as np

    rng = np.random.Generator(np.random.PCG64(seed))
    place = np.arange(size) if ordered else rng.permutation(size)
    bounds = np.array([0, size], dtype=np.int64)
    levels: list[NDArray[np.int64]] = []
    while size > 1:
        pieces = [bounds[:1]]
        for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            length = high - low
            most = length if max_children is None else min(length, max_children)
            cuts = rng.choice(length - 1, size=int(rng.integers(2, most + 1)) - 1, replace=False)
            pieces += [np.sort(cuts) + low + 1, np.array([high], dtype=np.int64)]
        bounds = np.concatenate(pieces)
        if np.diff(bounds).min() == 1:
            break
        groups = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
        levels.insert(0, groups[place])
    return levels


@dataclass(frozen=True)
class Order(Rule):
    """Neighbours joined by a fixed fan-out until one group is left."""

    name: ClassVar[str] = "order"
    fanout: int

    @classmethod
    def make(cls, fanout: object) -> Order:
        """Check the parameters and return the rule."""
        return cls(whole("order", "fanout", fanout, least=2))

    def parameters(self) -> dict[str, Any]:
        return {"fanout": self.fanout}

    def label(self, field: Field) -> Labelling:
        groups, size = _placed(field)
        spans = []
        span = self.fanout
        while span < size:
            spans.append(span)
            span *= self.fanout
        numbers = [exp.IntDiv(this=col("place"), expression=number(span)) for span in spans]
        return _labelled(field, groups, None, numbers)


@dataclass(frozen=True)
class Random(Rule):
    """A random tree over the column's distinct values, see ``random_tree``."""

    name: ClassVar[str] = "random"
    note: ClassVar[str] = " (random, for experiments)"
    seed: int
    ordered: bool = True
    max_children: int | None = None

    @classmethod
    def make(cls, seed: object, ordered: object, max_children: object) -> Random:
        """Check the parameters and return the rule."""
        if not isinstance(ordered, bool):
            raise HierarchyError("The 'ordered' parameter of random must be true or false.")
        most = None if max_children is None else whole("random", "max_children", max_children, least=2)
        return cls(whole("random", "seed", seed, least=0), ordered, most)

    def parameters(self) -> dict[str, Any]:
        parameters: dict[str, Any] = {"seed": self.seed, "ordered": self.ordered}
        return parameters if self.max_children is None else {**parameters, "max_children": self.max_children}

    def label(self, field: Field) -> Labelling:
        import numpy as np
        import pyarrow as pa

        groups, size = _placed(field)
        levels = random_tree(size, self.seed, self.ordered, self.max_children)
        if not levels:
            return _labelled(field, groups, None, [])
        names = [f"g{i}" for i in range(1, len(levels) + 1)]
        tree, incoming = field.engine.fresh("random"), field.engine.fresh("incoming")
        field.engine.register(incoming, pa.table([np.arange(size), *levels], names=["at", *names]))
        field.engine.create(tree, exp.select("*").from_(table(incoming)))
        field.engine.unregister(incoming)
        return _labelled(field, groups, tree, [col(name, "r") for name in names])


def _placed(field: Field) -> tuple[str, int]:
    """Create ``(code, text, place)`` of all values that are not NULL, ``place`` from 0 in the order of the values."""
    name = field.engine.fresh("placed")
    rank = exp.Window(this=exp.RowNumber(), order=exp.Order(expressions=[exp.Ordered(this=col("code"))]))
    place = exp.Sub(this=rank, expression=number(1))
    field.engine.create(name, field.present(text=col("text"), place=place))
    (size,) = field.engine.row(exp.select(exp.Count(this=exp.Star())).from_(table(name)))
    return name, int(size)


def _labelled(field: Field, placed: str, tree: str | None, numbers: Sequence[exp.Expr]) -> Labelling:
    """Return the labelling by groups, whose numbers come from ``place`` or from a joined tree."""
    source = exp.select(col("code", "p"), col("text", "p"), col("place", "p")).from_(table(placed, "p"))
    if tree is not None:
        source = source.join(table(tree, "r"), on=exp.EQ(this=col("at", "r"), expression=col("place", "p")))
    source = source.select(*(named(e, f"g{i}") for i, e in enumerate(numbers, 1)))
    grouped = field.engine.fresh("grouped")
    field.engine.create(grouped, source)
    scratch = [placed, grouped, *([tree] if tree is not None else [])]
    query = exp.select(col("code", "v")).from_(table(grouped, "v"))
    for level in range(1, len(numbers) + 1):
        group, alias, listed = f"g{level}", f"t{level}", field.engine.fresh("listed")
        field.engine.create(listed, _listed(grouped, group))
        scratch.append(listed)
        (total,) = field.engine.row(exp.select(exp.Max(this=col(group))).from_(table(grouped)))
        ordinal = cast(exp.Add(this=col(group, "v"), expression=number(1)), "VARCHAR")
        counted = call("concat", text("group "), ordinal, text(f"/{int(total) + 1}"))
        query = query.select(named(call("coalesce", col("label", alias), counted), f"l{level}")).join(
            table(listed, alias), on=exp.EQ(this=col("g", alias), expression=col(group, "v")), join_type="left"
        )
    return Labelling(query, len(numbers), scratch=tuple(scratch))


def _listed(grouped: str, group: str) -> exp.Select:
    """Return ``(g, label)`` of the groups that are short enough to be listed: ``{a, b}``."""
    count = exp.Count(this=exp.Star())
    short = exp.LTE(this=count, expression=number(_LISTED))
    sizes = exp.select(named(col(group), "g")).from_(table(grouped)).group_by(col(group)).having(short)
    order = exp.Order(this=text(", "), expressions=[col("place", "m")])
    members = call("string_agg", quoted_member(col("text", "m")), order)
    return (
        exp.select(named(col(group, "m"), "g"), named(call("concat", text("{"), members, text("}")), "label"))
        .from_(table(grouped, "m"))
        .join(subquery(sizes, "s"), on=exp.EQ(this=col("g", "s"), expression=col(group, "m")))
        .group_by(col(group, "m"))
    )
