"""Classes with sensitive values: the relations that statements of models read, and what the definitions say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from reference import models

SENSITIVE = "dis'ease"
OTHER = "other"
WHOLE_TABLE = {"average_reidentification_risk": models.average_risk, "sample_uniqueness": models.uniqueness}


@dataclass(frozen=True)
class Case:
    """Classes of a table: values of their rows, members, whether suppressed, members in the population."""

    values: tuple[tuple[Hashable, ...], ...]
    members: tuple[int, ...]
    suppressed: tuple[bool, ...]
    population: tuple[int, ...]
    order: tuple[Hashable, ...]
    tree: dict[Hashable, list[Hashable]]

    @property
    def table(self) -> list[Hashable]:
        return [v for values in self.values for v in values]

    @property
    def kept(self) -> list[int]:
        return [i for i, out in enumerate(self.suppressed) if not out]


def relations(case: Case) -> dict[str, list[tuple[Any, ...]]]:
    totals = Counter(case.table)
    nodes = []
    for level in range(len(next(iter(case.tree.values())))):
        codes = {label: i for i, label in enumerate(dict.fromkeys(labels[level] for labels in case.tree.values()))}
        nodes += [(SENSITIVE, v, level, codes[labels[level]]) for v, labels in case.tree.items()]
    return {
        "classes": [(i, m, case.suppressed[i]) for i, m in enumerate(case.members)],
        # A second column that is worse in every way: a statement that forgets to choose would count it.
        "class_values": [(i, SENSITIVE, v, n) for i, vs in enumerate(case.values) for v, n in Counter(vs).items()]
        + [(i, OTHER, "x", len(vs)) for i, vs in enumerate(case.values)],
        "domain_values": [(SENSITIVE, v, i, totals[v]) for i, v in enumerate(case.order)] + [(OTHER, "x", 0, 1)],
        "domain_nodes": [*nodes, (OTHER, "x", 0, 0), (OTHER, "x", 1, 0), (OTHER, "x", 9, 0)],
        "permuted_blocks": [
            (i, block, m, case.suppressed[i], 0, False, 1 / m) for i, m in enumerate(case.members) for block in range(2)
        ],
        "population_classes": [(i, n) for i, n in enumerate(case.population) if n],
    }


def expected(name: str, case: Case, given_: dict[str, Any]) -> list[bool]:
    """Return for each kept class what the definition says."""
    kept = [(case.values[i], case.members[i], case.population[i]) for i in case.kept]
    call = getattr(models, name, None)
    if name in WHOLE_TABLE:
        return models.staying([m for _, m, _ in kept], WHOLE_TABLE[name], given_["threshold"])
    if name in ("k_anonymity", "probabilistic_k_anonymity"):
        return [m >= given_["k"] for _, m, _ in kept]
    distances = {
        "t_closeness": lambda v: models.equal_distance(v, case.table),
        "ordered_t_closeness": lambda v: models.ordered_distance(v, case.table, case.order),
        "hierarchical_t_closeness": lambda v: models.hierarchical_distance(v, case.table, case.tree),
    }
    if name in distances:
        return [distances[name](v) <= given_["t"] for v, _, _ in kept]
    first: dict[str, Any] = {
        "alpha_k_anonymity": lambda v, m, p: (v, m), "p_sensitive_k_anonymity": lambda v, m, p: (v, m),
        "k_map": lambda v, m, p: (p,), "delta_presence": lambda v, m, p: (m, p),
        "maximum_reidentification_risk": lambda v, m, p: (m,), "l_diversity": lambda v, m, p: (v,),
        "entropy_l_diversity": lambda v, m, p: (v,), "recursive_c_l_diversity": lambda v, m, p: (v,),
    }  # fmt: skip
    arguments = first.get(name, lambda v, m, p: (v, case.table))
    assert call is not None
    return [call(*arguments(*class_), **given_) for class_ in kept]
