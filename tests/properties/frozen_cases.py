"""Tables and plans of all kinds whose recoding can be frozen, and more rows for the nights that follow."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa

from duckanon.hierarchy import Hierarchy

Values = list[Any]
_DAY = dt.date(2020, 1, 1)
_CODES = [f"{a}{b}{c}" for a in "12" for b in "123" for c in "1234"]
_TOWNS = ["Aachen", "Bonn", "Celle", "Dessau", "Erfurt", "Fulda", "Gera", "Halle", "Iserlohn", "Jena"]


@dataclass(frozen=True)
class Kind:
    """A type of a column with values that it may have, and hierarchies that fit, ``None`` for the one that is made.

    ``strange`` are values that come on later nights only: hierarchies that list their leaves do not know them.
    """

    type: pa.DataType
    values: Values
    hierarchies: tuple[Callable[[random.Random], Hierarchy | None], ...]
    measured: bool = True
    strange: Values = field(default_factory=list)


def _nothing(rng: random.Random) -> None:
    return None


def _tree(values: Values, steps: tuple[int, ...]) -> Callable[[random.Random], Hierarchy]:
    """Return a maker of tables: neighbours have one parent, and neighbours among these another."""

    def make(rng: random.Random) -> Hierarchy:
        texts = [str(v) for v in values]
        columns = {"leaf": texts}
        for step in steps:
            columns[f"by {step}"] = [f"{step}: {i // step}" for i in range(len(texts))]
        return Hierarchy.from_table({**columns, "top": ["*"] * len(texts)})

    return make


def _scattered(values: Values, parents: int) -> Callable[[random.Random], Hierarchy]:
    """Return a maker of tables whose parents have children anywhere."""

    def make(rng: random.Random) -> Hierarchy:
        of = [f"of {rng.randrange(parents)}" for _ in values]
        over = {name: f"over {rng.randrange(2)}" for name in sorted(set(of))}
        return Hierarchy.from_table(
            {"leaf": [str(v) for v in values], "a": of, "b": [over[o] for o in of], "top": ["*"] * len(of)}
        )

    return make


_AGES = list(range(17, 60))
_DATES = [_DAY + dt.timedelta(days=9 * i) for i in range(60)]
_WEIGHTS = [0.0, -0.0, float("nan"), float("inf"), float("-inf"), *(i / 4 for i in range(-20, 60))]
KINDS: dict[str, Kind] = {
    "age": Kind(
        pa.int32(),
        _AGES,
        (
            _nothing,
            lambda rng: Hierarchy.intervals(width=rng.choice([3, 5, 10]), factors=2, levels=2),
            lambda rng: Hierarchy.intervals(cuts=[20, 25, 30, 45]),
            lambda rng: Hierarchy.quantiles(8, [4, 2]),
            _tree(_AGES, (2, 8)),
            _scattered(_AGES, 5),
            lambda rng: Hierarchy.mask(),
            lambda rng: Hierarchy.suppress(),
            lambda rng: Hierarchy.order(3),
            lambda rng: Hierarchy.auto(),
        ),
        strange=[-3, 5, 16, 60, 130],
    ),
    "born": Kind(
        pa.date32(),
        _DATES,
        (
            _nothing,
            lambda rng: Hierarchy.dates(["month", "quarter", "year"]),
            lambda rng: Hierarchy.dates(["week"]),
            lambda rng: Hierarchy.age("2026-01-01", [2, 4]),
            _tree(_DATES, (3, 12)),
            lambda rng: Hierarchy.order(4),
        ),
        strange=[_DAY - dt.timedelta(days=5), *(_DAY + dt.timedelta(days=9 * i + 4) for i in range(0, 60, 7))],
    ),
    "seen": Kind(
        pa.timestamp("us"),
        [dt.datetime(2021, 1 + i % 12, 1 + i % 28, i % 24, 7 * i % 60) for i in range(70)],
        (_nothing, lambda rng: Hierarchy.dates(["day", "month", "year"]), lambda rng: Hierarchy.suppress()),
    ),
    "weight": Kind(
        pa.float64(),
        _WEIGHTS,
        (
            _nothing,
            lambda rng: Hierarchy.intervals(width=2.5, factors=2, levels=2),
            lambda rng: Hierarchy.quantiles(4, 2),
        ),
    ),
    "cost": Kind(
        pa.decimal128(9, 2),
        [Decimal(i * 37) / 100 for i in range(80)],
        (_nothing, lambda rng: Hierarchy.intervals(width="2.5", factors=[2, 2]), lambda rng: Hierarchy.order(5)),
    ),
    "hour": Kind(pa.time64("us"), [dt.time(i % 24, i % 60) for i in range(70)], (_nothing,)),
    "zip": Kind(
        pa.string(),
        _CODES,
        (
            _nothing,
            lambda rng: Hierarchy.mask(),
            lambda rng: Hierarchy.mask(side="left"),
            lambda rng: Hierarchy.mask(levels=2),
            lambda rng: Hierarchy.prefix([2, 1]),
            lambda rng: Hierarchy.prefix([2], then={"rule": "mask"}),
            lambda rng: Hierarchy.order(3),
            lambda rng: Hierarchy.random(rng.randrange(99)),
            lambda rng: Hierarchy.auto(),
            _tree(_CODES, (4, 12)),
            _scattered(_CODES, 6),
        ),
        measured=False,
        strange=["", "*", "1", "121212", "999"],
    ),
    "town": Kind(
        pa.dictionary(pa.int32(), pa.string()),
        _TOWNS,
        (_nothing, _tree(_TOWNS, (3,)), _scattered(_TOWNS, 3), lambda rng: Hierarchy.suppress()),
        measured=False,
    ),
    "ok": Kind(pa.bool_(), [False, True], (_nothing, lambda rng: Hierarchy.suppress()), measured=False),
}
FULL_DOMAIN = ("datafly", "optimal", "samarati", "incognito", "ola", "mingen", "best_effort")


@dataclass
class Case:
    """A table with its plan; ``more`` makes rows for another night."""

    rng: random.Random
    names: list[str]
    plan: dict[str, Any]
    pools: dict[str, Values]
    persons: bool
    rows: list[dict[str, Any]] = field(default_factory=list)
    made: int = 0

    @classmethod
    def of(cls, seed: int, most: int = 160) -> Case:
        rng = random.Random(seed)
        names = rng.sample(sorted(KINDS), rng.choice([1, 2, 2, 3, 3, 4]))
        persons = rng.random() < 0.5
        divided = rng.random() < 0.7
        plan: dict[str, Any] = {
            "quasi_identifiers": names,
            "sensitive": ["ill"],
            "insensitive": ["who"],
            "k": rng.choice([1, 2, 2, 3, 4, 5]),
            "hierarchies": {},
            "entity_key": "id" if persons else None,
            "on_unknown": "top",
        }
        for name in names:
            own = rng.choice(KINDS[name].hierarchies)(rng)
            if own is not None:
                plan["hierarchies"][name] = own
        cls._model(rng, plan)
        if divided:
            cls._division(rng, names, plan)
        else:
            plan["algorithm"] = rng.choice(FULL_DOMAIN)
            plan["suppression_limit"] = rng.choice([0.0, 0.1, 0.4])
        nulls = {name: rng.choice([0.0, 0.0, 0.05, 0.3]) for name in names}
        pools = {}
        for name in names:
            values = KINDS[name].values
            few = rng.sample(values, rng.randint(1, len(values))) if rng.random() < 0.6 else values
            missing = [None] * max(1, int(len(few) * nulls[name])) if nulls[name] else []
            pools[name] = [*few, *missing]
        case = cls(rng, names, plan, pools, persons)
        case.rows = [case.row() for _ in range(rng.randint(max(plan["k"], 4), most))]
        return case

    @staticmethod
    def _model(rng: random.Random, plan: dict[str, Any]) -> None:
        more = rng.choice([{}, {}, {}, {"l": 2}, {"t": 0.6}, {"models": ["entropy_l_diversity(l=2)"]}])
        plan.update(more)

    @staticmethod
    def _division(rng: random.Random, names: list[str], plan: dict[str, Any]) -> None:
        options = [
            rng.choice(["", "choose_dim='distinct'", "choose_dim='round_robin'", "target='ill'"]),
            rng.choice(["", "", "budget=20"]),
        ]
        categories = [n for n in names if not KINDS[n].measured]
        if categories and rng.random() < 0.3:
            options.append(f"ordered=[{rng.choice(categories)!r}]")
        plan["algorithm"] = f"mondrian({', '.join(o for o in options if o)})"
        plan["bounds"] = rng.choice(["grid", "cut"])
        outputs = ["interval", "interval", "bounds", "struct", *(["lca"] if plan["bounds"] == "grid" else [])]
        plan["output"] = rng.choice(outputs)
        if len(names) > 1 and rng.random() < 0.25:
            plan["within"] = [rng.choice(names)]
            plan["suppression_limit"] = 0.9

    def row(self, anything: bool = False) -> dict[str, Any]:
        """Return a row of somebody new, or of somebody who has rows already."""
        rng, self.made = self.rng, self.made + 1
        again = self.rows and self.persons and rng.random() < 0.3
        own: dict[str, Any] = {n: self._value(n, anything) for n in self.names}
        if anything and rng.random() < 0.1:
            own[rng.choice(self.names)] = None
        who = {"id": rng.choice(self.rows)["id"] if again else self.made, "who": f"row {self.made}"}
        return {**own, **who, "ill": rng.choice("aaabbc")}

    def _value(self, name: str, anything: bool) -> Any:
        kind = KINDS[name]
        if anything and kind.strange and self.rng.random() < 0.1:
            return self.rng.choice(kind.strange)
        return self.rng.choice(kind.values if anything else self.pools[name])

    def table(self, rows: list[dict[str, Any]]) -> pa.Table:
        """Return rows as a table."""
        types = {n: KINDS[n].type for n in self.names} | {"id": pa.int64(), "who": pa.string(), "ill": pa.string()}
        columns = {}
        for name, kind in types.items():
            values = [row[name] for row in rows]
            if pa.types.is_dictionary(kind):
                # All towns are members, in an order that is not that of the alphabet.
                members = pa.array(list(reversed(_TOWNS)))
                at = [None if v is None else len(_TOWNS) - 1 - _TOWNS.index(v) for v in values]
                columns[name] = pa.DictionaryArray.from_arrays(pa.array(at, pa.int32()), members)
            else:
                columns[name] = pa.array(values, kind)
        return pa.table(columns)
