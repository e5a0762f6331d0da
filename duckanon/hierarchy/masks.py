"""Rules over the text of a value: masks, prefixes, and the one step to the top."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from sqlglot import exp

from duckanon.engine.sql.axes import present
from duckanon.engine.sql.relations import call, col, named, number, subquery, table, text
from duckanon.errors import HierarchyError
from duckanon.hierarchy.rules import Field, Labelling, Rule, numbered, sequence, whole

if TYPE_CHECKING:
    from duckanon.hierarchy.table import Hierarchy

_LONGEST = 32
"""Longest text that is masked character by character without a given number of levels."""
FURTHEST = 8
"""Most hierarchies in a chain of ``then``; more are a loop of names."""
_followed: ContextVar[int] = ContextVar("followed", default=0)


@dataclass(frozen=True)
class Suppress(Rule):
    """Nothing between the value and the top."""

    name: ClassVar[str] = "suppress"

    def parameters(self) -> dict[str, Any]:
        return {}

    def depth(self) -> int:
        return 0

    def label(self, field: Field) -> Labelling:
        return Labelling(field.present(), 0)


@dataclass(frozen=True)
class Mask(Rule):
    """One character more at each level, from the right or the left, or the given positions."""

    name: ClassVar[str] = "mask"
    side: str = "right"
    positions: tuple[frozenset[int], ...] | None = None
    character: str = "*"
    levels: int | None = None

    @classmethod
    def make(cls, side: object, positions: object, character: object, levels: object) -> Mask:
        """Check the parameters and return the rule."""
        if side not in {"right", "left"}:
            raise HierarchyError("The 'side' parameter of mask must be 'right' or 'left'.")
        if not isinstance(character, str) or len(character) != 1:
            raise HierarchyError("The 'character' parameter of mask must be one character.")
        count = None if levels is None else whole("mask", "levels", levels)
        if positions is None:
            return cls(str(side), None, character, count)
        if count is not None:
            raise HierarchyError("A mask takes either 'positions' or 'levels', not both.")
        sets = [
            frozenset(whole("mask", "positions", p) for p in sequence("mask", "positions", level))
            for level in sequence("mask", "positions", positions)
        ]
        if any(not a < b for a, b in pairwise(sets)):
            raise HierarchyError(
                "The levels of mask do not nest: each level of 'positions' must hold all positions of the one before "
                "and at least one more."
            )
        return cls(str(side), tuple(sets), character)

    def parameters(self) -> dict[str, Any]:
        if self.positions is not None:
            return {"positions": [sorted(level) for level in self.positions], "character": self.character}
        parameters: dict[str, Any] = {"side": self.side, "character": self.character}
        return parameters if self.levels is None else {**parameters, "levels": self.levels}

    def depth(self) -> int | None:
        return self.levels if self.positions is None else len(self.positions)

    def label(self, field: Field) -> Labelling:
        if self.positions is not None:
            labels = [self._positions(level) for level in self.positions]
        else:
            depth = self.levels if self.levels is not None else self._depth(field)
            labels = [self._side(masked) for masked in range(1, depth + 1)]
        source = field.present(text=col("text"), size=call("length", col("text")))
        return Labelling(exp.select(col("code"), *numbered(labels)).from_(subquery(source, "v")), len(labels))

    def _depth(self, field: Field) -> int:
        """Return one level less than the longest text has characters: the top masks the last one."""
        longest = exp.Max(this=call("length", col("text")))
        (size,) = field.engine.row(exp.select(longest).from_(table(field.values)))
        if size is not None and size > _LONGEST:
            raise HierarchyError(
                f"The longest value of {field.attribute!r} has {size} characters: give the 'levels' of the mask."
            )
        return max(0, (size or 0) - 1)

    def _stars(self, count: exp.Expr) -> exp.Expr:
        return call("repeat", text(self.character), count)

    def _side(self, masked: int) -> exp.Expr:
        size, shown = col("size"), exp.Sub(this=col("size"), expression=number(masked))
        if self.side == "right":
            label = call("concat", call("left", col("text"), shown), self._stars(number(masked)))
        else:
            label = call("concat", self._stars(number(masked)), call("right", col("text"), shown))
        short = exp.LTE(this=size, expression=number(masked))
        return exp.Case().when(short, self._stars(call("greatest", size.copy(), number(1)))).else_(label)

    def _positions(self, masked: frozenset[int]) -> exp.Expr:
        parts: list[exp.Expr] = []
        at, last = 1, max(masked)
        while at <= last:
            stop, inside = at, at in masked
            while stop < last and (stop + 1 in masked) == inside:
                stop += 1
            if inside:
                reach = exp.Sub(this=call("least", col("size"), number(stop)), expression=number(at - 1))
                parts.append(self._stars(call("greatest", reach, number(0))))
            else:
                parts.append(call("substr", col("text"), number(at), number(stop - at + 1)))
            at = stop + 1
        parts.append(call("substr", col("text"), number(last + 1)))
        return _filled(call("concat", *parts), self.character)


def _filled(label: exp.Expr, character: str) -> exp.Expr:
    """Give the empty text a visible label that stays the same on every further level."""
    return call("coalesce", call("nullif", label, text("")), text(character))


@dataclass(frozen=True)
class Prefix(Rule):
    """The first characters of a code, fewer at each level, and then perhaps another hierarchy of the last prefix."""

    name: ClassVar[str] = "prefix"
    lengths: tuple[int, ...]
    then: Hierarchy | Mapping[str, Any] | str | Path | None = None
    base: Path | None = None

    @classmethod
    def make(cls, lengths: object, then: object, base: Path | None) -> Prefix:
        """Check the parameters and return the rule."""
        from duckanon.hierarchy.table import Hierarchy

        sizes = [whole("prefix", "lengths", n) for n in sequence("prefix", "lengths", lengths)]
        if any(a <= b for a, b in pairwise(sizes)):
            raise HierarchyError("The 'lengths' of prefix must become smaller, each once.")
        if then is not None and not isinstance(then, Hierarchy | Mapping | str | Path):
            raise HierarchyError("The 'then' parameter of prefix must be a hierarchy, its name, a path or a rule.")
        if isinstance(then, Mapping):
            then = Hierarchy.from_rule(then, base=base)
        return cls(tuple(sizes), then, base)

    def parameters(self) -> dict[str, Any]:
        from duckanon.hierarchy.table import Hierarchy

        parameters: dict[str, Any] = {"lengths": list(self.lengths)}
        if isinstance(self.then, Hierarchy):
            parameters["then"] = self.then.to_rule()
        elif self.then is not None:
            parameters["then"] = str(self.then)
        return parameters

    def depth(self) -> int | None:
        return len(self.lengths) if self.then is None else None

    def label(self, field: Field) -> Labelling:
        prefixes = self._prefixes()
        if self.then is None:
            query = exp.select(col("code"), *numbered(prefixes)).from_(subquery(field.present(text=col("text")), "v"))
            return Labelling(query, len(prefixes))
        return self._continued(field, prefixes)

    def _prefixes(self, alias: str | None = None) -> list[exp.Expr]:
        return [_filled(call("left", col("text", alias), number(size)), "*") for size in self.lengths]

    def _continued(self, field: Field, prefixes: list[exp.Expr]) -> Labelling:
        from duckanon.hierarchy.levels import bind
        from duckanon.hierarchy.store import resolve

        engine = field.engine
        follow = resolve(self.then, engine, self.base)
        roots = engine.fresh("prefixes")
        last = prefixes[-1].copy()
        grouped = exp.select(named(last, "value"), named(exp.Sum(this=col("n")), "n")).from_(table(field.values))
        grouped = grouped.where(present(col("value"))).group_by(number(1))
        rank = exp.Window(this=exp.RowNumber(), order=exp.Order(expressions=[exp.Ordered(this=col("value"))]))
        engine.create(
            roots,
            exp.select(named(rank, "code"), col("value"), named(col("value"), "text"), col("n")).from_(
                subquery(grouped, "g")
            ),
        )
        if _followed.get() >= FURTHEST:
            raise HierarchyError(f"The hierarchy of {field.attribute!r} has a loop: its 'then' comes back to itself.")
        step = _followed.set(_followed.get() + 1)
        try:
            above = bind(follow, engine, roots, field.attribute, "VARCHAR", "top")
        finally:
            _followed.reset(step)
        levels = [*self._prefixes("v"), *(col(f"l{i}", "t") for i in range(1, above.height + 1))]
        source = field.present(text=col("text"), root=prefixes[-1].copy())
        query = (
            exp.select(col("code", "v"), col("known", "t"), *numbered(levels))
            .from_(subquery(source, "v"))
            .join(table(roots, "r"), on=exp.EQ(this=col("root", "v"), expression=col("value", "r")))
            .join(table(above.tree, "t"), on=exp.EQ(this=col("code", "r"), expression=col("code", "t")))
        )
        return Labelling(query, len(levels), top=above.top, total=False, scratch=(roots, above.tree, above.leaves))
