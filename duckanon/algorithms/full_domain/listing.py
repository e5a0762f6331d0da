"""The nodes of a lattice as the rows of a table: what each would publish, suppress and lose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any

from duckanon.errors import ParameterError, UnsupportedError
from duckanon.metrics.base import metrics as known_metrics

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from duckanon.algorithms.base import Problem
    from duckanon.algorithms.full_domain.lattice import Lattice
    from duckanon.algorithms.full_domain.objectives import Objective

    Levels = tuple[int, ...]
    Row = dict[str, Any]

MOST = 200_000
"""The most nodes that are listed unless somebody asks for more."""


@dataclass(frozen=True)
class Seen:
    """The state of a search when it ended: the nodes visited and inferred, and how many rows could be suppressed.

    ``tags`` are the lattice's, from its lowest node ``low`` on; of more than ``MOST`` nodes there are none.
    """

    allowed: int
    visited: tuple[Levels, ...]
    low: Levels = ()
    tags: NDArray[np.uint8] | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(cls, lattice: Lattice) -> Seen:
        """Return the state of a lattice."""
        tags = lattice.tags if lattice.size <= MOST else None
        return cls(lattice.problem.allowed, tuple(lattice.visits), lattice.low, tags)

    def inferred(self) -> dict[Levels, bool]:
        """Return the nodes that were not visited, and whether they are anonymous."""
        from duckanon.algorithms.full_domain.search import ANONYMOUS, UNKNOWN

        if self.tags is None:
            return {}
        visited = set(self.visited)
        anonymous = {}
        for place in zip(*(axis.tolist() for axis in (self.tags != UNKNOWN).nonzero()), strict=True):
            levels = tuple(a + b for a, b in zip(place, self.low, strict=True))
            if levels not in visited:
                anonymous[levels] = bool(self.tags[place] == ANONYMOUS)
        return anonymous


def tabulate(
    problem: Problem,
    metrics: str | Sequence[str],
    *,
    pareto: bool = False,
    most: int | None = MOST,
    seen: Seen | None = None,
) -> pa.Table:
    """Return one row for each node of a problem's lattice, or for each that a search has ``seen``.

    ``duckanon.lattice`` says what the columns are. More than ``most`` nodes are an UnsupportedError.
    """
    from math import prod

    from duckanon.algorithms.full_domain.lattice import Lattice
    from duckanon.algorithms.full_domain.objectives import make_objective
    from duckanon.algorithms.full_domain.tables import Tables

    names = require_metrics(metrics, pareto)
    size = prod(high - low + 1 for low, high in zip(problem.low, problem.high, strict=True))
    if seen is None and most is not None and size > most:
        raise UnsupportedError(
            f"The lattice has {size:,} nodes, more than the {most:,} that are listed: narrow it by min_levels and "
            "max_levels, or ask for more."
        )
    lattice = Lattice(problem, Tables(problem), problem.low, problem.high)
    objectives = [make_objective(lattice, name) for name in names]
    inferred = seen.inferred() if seen is not None and not pareto else {}
    nodes = sorted([*seen.visited, *inferred]) if seen is not None else list(lattice.nodes())
    rows: list[Row] = []
    scores: list[float] = []
    with problem.engine.progress.step("lattice", len(nodes), unit="nodes"):
        for levels in nodes:
            row: Row = {"node": ",".join(map(str, levels)), "levels": dict(zip(problem.names, levels, strict=True))}
            row["height"] = sum(levels)
            if levels in inferred:
                row |= {"anonymous": inferred[levels], "visited": False}
            else:
                values = _look(lattice, objectives, levels, row)
                scores.append(values[0] if values else 0.0)
                row |= {n: _shown(o, v) for n, o, v in zip(names, objectives, values, strict=True) if n != "height"}
            rows.append(row)
            problem.engine.progress.advance(len(rows))
    if pareto:
        rows = [rows[i] for i in front(rows, scores)]
    return _table(rows, problem.names, names)


def require_metrics(metrics: str | Sequence[str], pareto: bool = False) -> list[str]:
    """Return the names of metrics, each once; one that is not known is a ParameterError."""
    if isinstance(metrics, str):
        metrics = [metrics]
    if not isinstance(metrics, Sequence) or not all(isinstance(name, str) for name in metrics):
        raise ParameterError("metrics must be names of metrics.")
    if not isinstance(pareto, bool):
        raise ParameterError("pareto must be true or false.")
    for name in metrics:
        known_metrics.get(name)
    if pareto and not metrics:
        raise ParameterError("pareto weighs the risk against the first of the metrics: name one.")
    return list(dict.fromkeys(metrics))


def _look(lattice: Lattice, objectives: Sequence[Objective], levels: Levels, row: Row) -> list[float]:
    """Put what a node publishes into its row, and return its values, of which lower is better."""
    problem = lattice.problem
    # Every model is asked, so that the suppressed rows are exact where a search only needs to know they are too many.
    classes, kept = lattice.kept(levels)
    suppressed = int(classes.rows[~kept].sum())
    row["classes"] = len(classes.rows)
    row["classes_published"] = int(kept.sum())
    row["smallest"] = int(classes.sizes.min())
    row["suppressed"] = suppressed
    row["suppressed_share"] = suppressed / problem.frequency.rows
    # A node that publishes nothing is no release.
    row["anonymous"] = suppressed <= problem.allowed and suppressed < problem.frequency.rows
    row["visited"] = True
    row["risk"] = 1 / int(classes.sizes[kept].min()) if kept.any() else None
    return [objective.value(levels, classes, kept) for objective in objectives]


def _shown(objective: Objective, value: float) -> float | None:
    return objective.shown(value) if isfinite(value) else None


def front(rows: Sequence[Row], scores: Sequence[float]) -> list[int]:
    """Return the anonymous nodes to which no other is as good in score and risk and better in one, best score first.

    A node that publishes nothing has no risk, and is no release.
    """
    able = [i for i, row in enumerate(rows) if row["anonymous"] and row["risk"] is not None and isfinite(scores[i])]
    nodes: list[int] = []
    for i in sorted(able, key=lambda i: (scores[i], rows[i]["risk"], i)):
        last = nodes[-1] if nodes else None
        same = last is not None and scores[last] == scores[i] and rows[last]["risk"] == rows[i]["risk"]
        if last is None or same or rows[i]["risk"] < rows[last]["risk"]:
            nodes.append(i)
    return nodes


def _table(rows: Sequence[Row], columns: Sequence[str], metrics: Sequence[str]) -> pa.Table:
    import pyarrow as pa

    whole, real, flag = pa.int64(), pa.float64(), pa.bool_()
    schema = {
        "node": pa.string(),
        "levels": pa.struct([(name, whole) for name in columns]),
        "height": whole,
        "classes": whole,
        "classes_published": whole,
        "smallest": whole,
        "suppressed": whole,
        "suppressed_share": real,
        "anonymous": flag,
        "visited": flag,
        "risk": real,
        # The metric of this name is the column above.
        **{name: real for name in metrics if name != "height"},
    }
    return pa.Table.from_pylist(list(rows), schema=pa.schema(list(schema.items())))
