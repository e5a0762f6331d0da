"""Which algorithm treats whom better: property vectors of the releases of k-anonymity in practice."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from duckanon.studies.base import Chapter, Record, Study, Task
from duckanon.studies.releases import release_of, row_properties
from duckanon.studies.tables import ROW, codes, numbered, read

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from duckanon.studies.config import Settings

PROPERTIES = {"class_size": True, "loss": False, "sensitive_share": False}
"""The properties of a row, and whether higher is better."""


class PropertyVectors(Study):
    """The comparators of the paper's sections 4 and 5 on all pairs of releases with the same k."""

    name = "property-vectors"
    title = "Which algorithm treats whom better?"
    paper = "R. Dewri, I. Ray, I. Ray, D. Whitley, On the comparison of microdata disclosure control algorithms, 2009"
    keys: ClassVar[Mapping[str, type]] = {
        "algorithms": list,
        "ks": list,
        "rows": int,
        "by": list,
        "metric": str,
        "suppression_limit": float,
        "bounds": str,
        "groups": int,
        "seed": int,
    }

    def tasks(self, settings: Settings) -> list[Task]:
        given = {n: v for n, v in settings.values.items() if n != "ks"}
        return [
            Task({"table": name, "k": k}, {**given, "table": dict(table)})
            for k in settings["ks"]
            for name, table in settings.tables.items()
        ]

    def run(self, task: Task) -> list[Record]:
        given = task.given
        spec = given["table"]
        table = numbered(read(spec, given["rows"]))
        found: dict[str, dict[str, NDArray[np.float64]]] = {}
        for name in given["algorithms"]:
            with release_of(
                table,
                spec,
                name,
                task.labels["k"],
                metric=given["metric"],
                suppression_limit=given["suppression_limit"],
                bounds=given["bounds"],
                seed=given["seed"],
                insensitive=[ROW],
            ) as release:
                found[name] = row_properties(release, spec["target"])
        rare = rarity(table, list(spec["quasi_identifiers"]), given["groups"])
        return [*_games(found, given["by"]), *_by_group(found, rare), *_bias(found)]

    def page(self, records: list[Record], settings: Settings) -> list[Chapter]:
        from duckanon.studies.vectors_page import chapters

        return chapters(records)


def _games(found: Mapping[str, Mapping[str, NDArray[np.float64]]], by: list[str]) -> list[Record]:
    """Return who is better in each pair by each comparator, and how many rows gain and lose by how much."""
    from duckanon.assess.comparison import better

    lines: list[Record] = []
    for one, other in permutations(found, 2):
        for what, higher in PROPERTIES.items():
            a, b = (_oriented(found[name][what], higher) for name in (one, other))
            gain = a - b
            labels = {"algorithm": one, "against": other, "property": what}
            won = {index: better(a, b, by=index, ideal=_ideal(a, higher)) for index in [*by, "dominance"]}
            lines.append(
                {
                    "what": "game",
                    **labels,
                    **{f"by_{index}": verdict for index, verdict in won.items()},
                    "rows_better": int((gain > 0).sum()),
                    "rows_worse": int((gain < 0).sum()),
                    "rows": len(gain),
                    "mean_gain": float(gain[gain > 0].mean()) if (gain > 0).any() else 0.0,
                    "mean_loss": float(-gain[gain < 0].mean()) if (gain < 0).any() else 0.0,
                }
            )
    return lines


def _oriented(values: NDArray[np.float64], higher: bool) -> NDArray[np.float64]:
    """Return a vector of which higher is better: of a share that should be low, what is missing to one.

    Rounded, so that equal shares stay equal in whatever order they were summed.
    """
    return np.round(values if higher else 1.0 - values, 12)


def _ideal(values: NDArray[np.float64], higher: bool) -> float:
    return float(len(values)) if higher else 1.0


def _by_group(found: Mapping[str, Mapping[str, NDArray[np.float64]]], rare: NDArray[np.int64]) -> list[Record]:
    sizes = np.bincount(rare)
    return [
        {"what": "rarity", "algorithm": name, "property": what, "group": group, "mean": float(value)}
        for name, vectors in found.items()
        for what in PROPERTIES
        for group, value in enumerate(np.bincount(rare, vectors[what]) / sizes)
    ]


def _bias(found: Mapping[str, Mapping[str, NDArray[np.float64]]]) -> list[Record]:
    """Return how unequal the rows of each release are treated (section 2)."""
    from duckanon.assess.comparison import gini

    lines = []
    for name, vectors in found.items():
        sizes = vectors["class_size"]
        risk = np.sort(1.0 / np.maximum(sizes, 1.0))[::-1]
        lines.append(
            {
                "what": "bias",
                "algorithm": name,
                "smallest": float(sizes.min()),
                "median_size": float(np.median(sizes)),
                "gini": gini(sizes),
                "in_smallest": float(np.mean(sizes == sizes.min())),
                "mean_risk": float(risk.mean()),
                "risk_of_top_tenth": float(risk[: max(1, len(risk) // 10)].sum() / risk.sum()),
                "gini_of_loss": gini(vectors["loss"]),
            }
        )
    return lines


def rarity(table: pa.Table, quasi: list[str], groups: int) -> NDArray[np.int64]:
    """Return the group of each row, from 0 for the commonest to the rarest.

    How rare a row is, is the sum of how surprising its values are (the logarithm of one over their shares), numbers in
    20 bins; groups are of the same size, rows with equal sums in the order of the table.
    """
    surprise = np.zeros(table.num_rows)
    for name in quasi:
        own, size = codes(table.column(name), 20)
        surprise -= np.log2(np.bincount(own, minlength=size) / len(own))[own]
    ranks = np.empty(table.num_rows, dtype=np.int64)
    ranks[np.argsort(surprise, kind="stable")] = np.arange(table.num_rows)
    found: NDArray[np.int64] = ranks * min(groups, table.num_rows) // max(table.num_rows, 1)
    return found
