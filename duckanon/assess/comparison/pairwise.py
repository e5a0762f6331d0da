"""Every pair of releases: indices, dominance, gains and losses, and a tournament over all pairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from duckanon.assess.comparison.indices import get_index
from duckanon.assess.comparison.sets import SETS, finite, matched, numbers, require_known
from duckanon.errors import ParameterError

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.assess.comparison.indices import Vector
    from duckanon.assess.comparison.properties.base import Property
    from duckanon.assess.comparison.rows import Rows

    Numbers = float | Sequence[float] | Mapping[str, float]

_VERDICTS = {
    "first": ("better", "worse"),
    "second": ("worse", "better"),
    "equal": ("equal", "equal"),
    "incomparable": ("incomparable", "incomparable"),
}


@dataclass(frozen=True)
class Settings:
    """The parameters of a comparison, resolved: a number for each property, in their order."""

    by: tuple[str, ...]
    index: str | list[str]
    weights: list[float]
    epsilon: float
    ideals: dict[str, Any]
    goals: list[float] | None
    significance: list[float]

    @classmethod
    def make(
        cls,
        by: str | Sequence[str],
        labels: Sequence[str],
        index: str | Sequence[str],
        weights: Numbers | None,
        epsilon: float,
        ideals: Mapping[str, Any] | None,
        goals: Numbers | None,
        significance: Numbers,
    ) -> Settings:
        """Check everything before any vector is made."""
        chosen = tuple(dict.fromkeys(_listed("by", by)))
        if not chosen:
            raise ParameterError("by needs at least one index.")
        for name in chosen:
            require_known(name)
        inner = index if isinstance(index, str) else _listed("index", index)
        if isinstance(inner, list) and len(inner) != len(labels):
            raise ParameterError(f"index needs one name for each of the {len(labels)} properties. Got {len(inner)}.")
        for name in [inner] if isinstance(inner, str) else inner:
            get_index(name)
        if "goal" in chosen and goals is None:
            raise ParameterError("goal needs goals: the wished index of each property.")
        if isinstance(goals, Mapping) and set(goals) != set(labels):
            raise ParameterError(f"goals needs one number for each property: {', '.join(labels)}.")
        if ideals is not None and not isinstance(ideals, Mapping):
            raise ParameterError("ideals must be a mapping of property to number or vector.")
        for name in ideals or ():
            if name not in labels:
                raise ParameterError(f"ideals names {name!r}, which is none of the properties.")
        count = len(labels)
        return cls(
            by=chosen,
            index=inner,
            weights=numbers("weights", weights, count, labels, 0.0 if weights is not None else 1 / count),
            epsilon=finite("epsilon", epsilon, 0),
            ideals=dict(ideals or {}),
            goals=None if goals is None else numbers("goals", goals, count, labels, 0.0),
            significance=[
                finite("significance", s, 0) for s in numbers("significance", significance, count, labels, 0.0)
            ],
        )

    def of_sets(self, by: str, ideals: Sequence[Any]) -> dict[str, Any]:
        """Return the parameters of a comparator of several properties; ``ideals`` has the best vector of each."""
        if by == "lexicographic":
            return {"epsilon": self.significance, "index": self.index, "ideal": ideals}
        if by == "goal":
            return {"epsilon": self.epsilon, "index": self.index, "goals": self.goals, "ideal": ideals}
        inner = [self.index] if isinstance(self.index, str) else self.index
        normalize = any(name != "coverage" for name in inner)
        shares = {"weights": self.weights, "normalize": normalize}
        return {"epsilon": self.epsilon, "index": self.index, "ideal": ideals, **shares}


def _listed(name: str, given: str | Sequence[str]) -> list[str]:
    """Return names as a list: a single one, or a sequence of them."""
    if isinstance(given, str):
        return [given]
    if not isinstance(given, Iterable) or not all(isinstance(one, str) for one in given):
        raise ParameterError(f"{name} must be the name of an index, or a list of such names.")
    return list(given)


def tables(all_rows: Mapping[str, Rows], chosen: Sequence[Property], settings: Settings) -> dict[str, pa.Table]:
    """Return the tables of a comparison that compare rows."""
    import pyarrow as pa

    names = list(all_rows)
    summaries: list[dict[str, Any]] = []
    sets: dict[str, list[Vector]] = {name: [] for name in names}
    indices: list[dict[str, Any]] = []
    gains: list[dict[str, Any]] = []
    ideals: list[Any] = []
    for position, kind in enumerate(chosen):
        for name, rows in all_rows.items():
            values = kind.vector(rows)
            summaries.append(_summary(name, kind, values))
            sets[name].append(kind.oriented(values))
        ideal = _ideal(kind, next(iter(all_rows.values())), settings)
        ideals.append(ideal)
        for first, second in combinations(names, 2):
            a, b = sets[first][position], sets[second][position]
            gains += _both_ways({"property": kind.label}, first, second, *_gains(a, b))
            for by in settings.by:
                if by not in SETS:
                    match = matched(a, b, by, epsilon=settings.epsilon, ideal=ideal)
                    indices += _lines(kind.label, by, first, second, match)
    for by in settings.by:
        if by in SETS:
            for first, second in combinations(names, 2):
                match = matched(sets[first], sets[second], by, **settings.of_sets(by, ideals))
                indices += _lines(None, by, first, second, match)
    labels = [*(kind.label for kind in chosen), None]

    def place(line: Mapping[str, Any]) -> tuple[int, ...]:
        return labels.index(line["property"]), names.index(line["release"]), names.index(line["against"])

    gains.sort(key=place)
    indices.sort(key=lambda line: (line["property"] is None, settings.by.index(line["index"]), *place(line)))
    keys = [(k, pa.string()) for k in ("property", "index", "release", "against")]
    schema = pa.schema([*keys, ("value", pa.float64()), ("verdict", pa.string())])
    return {
        "tournament": _tournament(names, indices),
        "indices": pa.Table.from_pylist(indices, schema=schema),
        "dominance": pa.Table.from_pylist(
            _dominance(gains), schema=pa.schema([keys[0], *keys[2:], ("relation", pa.string())])
        ),
        "gains": pa.Table.from_pylist(gains),
        "properties": pa.Table.from_pylist(summaries),
    }


def _both_ways(
    head: Mapping[str, Any], first: str, second: str, forth: Mapping[str, Any], back: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the line of a pair, and that of the same pair the other way round."""
    return [
        {**head, "release": first, "against": second, **forth},
        {**head, "release": second, "against": first, **back},
    ]


def _lines(
    label: str | None, by: str, first: str, second: str, match: tuple[float, float, str]
) -> list[dict[str, Any]]:
    forth, back, winner = match
    verdict, other = _VERDICTS[winner]
    head = {"property": label, "index": by}
    return _both_ways(head, first, second, {"value": forth, "verdict": verdict}, {"value": back, "verdict": other})


def _summary(name: str, kind: Property, values: Vector) -> dict[str, Any]:
    quantiles = np.quantile(values, [0, 0.25, 0.5, 0.75, 1], method="inverted_cdf")
    low, q25, median, q75, high = (float(q) for q in quantiles)
    numbers_found = {"minimum": low, "q25": q25, "median": median, "mean": float(values.mean()), "q75": q75}
    return {"release": name, "property": kind.label, "direction": kind.direction, **numbers_found, "maximum": high}


def _ideal(kind: Property, rows: Rows, settings: Settings) -> Any:
    """Return the most desired vector, turned around like the property itself."""
    try:
        wished = np.asarray(settings.ideals.get(kind.label, kind.ideal(rows)), dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"ideals: that of {kind.label!r} is neither a number nor a vector of numbers.") from None
    turned = kind.oriented(np.atleast_1d(wished))
    return float(turned[0]) if wished.ndim == 0 else turned


def _gains(a: Vector, b: Vector) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return who gains and who loses by the first in place of the second, and the other way round."""
    difference = a - b
    up, down = difference > 0, difference < 0
    rows_up, rows_down = int(np.count_nonzero(up)), int(np.count_nonzero(down))
    gain = float(difference.sum(where=up)) / rows_up if rows_up else 0.0
    loss = -float(difference.sum(where=down)) / rows_down if rows_down else 0.0
    equal = len(difference) - rows_up - rows_down
    keys = ("rows_better", "rows_equal", "rows_worse", "mean_gain", "mean_loss")
    forth, back = (rows_up, equal, rows_down, gain, loss), (rows_down, equal, rows_up, loss, gain)
    return dict(zip(keys, forth, strict=True)), dict(zip(keys, back, strict=True))


def _dominance(gains: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the dominance that the numbers of rows that gain and lose make: of each property, and of all together."""
    lines: list[dict[str, Any]] = []
    together: dict[tuple[str, str], list[int]] = {}
    for line in gains:
        counts = [line["rows_better"], line["rows_worse"]]
        pair = (line["release"], line["against"])
        together[pair] = [x + y for x, y in zip(together.get(pair, [0, 0]), counts, strict=True)]
        lines.append({"property": line["property"], "release": pair[0], "against": pair[1], "relation": _named(counts)})
    lines += [{"property": None, "release": a, "against": b, "relation": _named(c)} for (a, b), c in together.items()]
    return lines


def _named(counts: Sequence[int]) -> str:
    up, down = counts
    if up and down:
        return "incomparable"
    return "dominates" if up else "dominated" if down else "equal"


def _tournament(names: Sequence[str], indices: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return wins, draws and losses of each release: by index and property, and over all."""
    import pyarrow as pa

    rounds: dict[tuple[str | None, str | None], dict[str, list[str]]] = {}
    for line in indices:
        for key in ((line["index"], line["property"]), (None, None)):
            rounds.setdefault(key, {name: [] for name in names})[line["release"]].append(line["verdict"])
    lines: list[dict[str, Any]] = []
    for (index, label), verdicts in sorted(rounds.items(), key=lambda item: item[0] == (None, None)):
        score = {name: v.count("better") - v.count("worse") for name, v in verdicts.items()}
        lines += [
            {
                "index": index,
                "property": label,
                "release": name,
                "wins": verdicts[name].count("better"),
                "draws": verdicts[name].count("equal"),
                "losses": verdicts[name].count("worse"),
                "incomparable": verdicts[name].count("incomparable"),
                "place": 1 + sum(other > score[name] for other in score.values()),
            }
            for name in sorted(names, key=score.__getitem__, reverse=True)
        ]
    strings = [(k, pa.string()) for k in ("index", "property", "release")]
    counts = [(k, pa.int64()) for k in ("wins", "draws", "losses", "incomparable", "place")]
    return pa.Table.from_pylist(lines, schema=pa.schema([*strings, *counts]))


__all__ = ["Settings", "tables"]
