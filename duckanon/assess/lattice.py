"""The lattice of full-domain generalizations as a table: every node, what it would publish, and what it would lose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from duckanon.algorithms.full_domain.listing import MOST, require_metrics, tabulate
from duckanon.engine.base import open_engine
from duckanon.errors import ParameterError
from duckanon.plan.plan import Plan, resolve_algorithm
from duckanon.plan.request import Request
from duckanon.progress import watched
from duckanon.release.results import Lattice
from duckanon.release.stages.encode import encode, with_hierarchies

if TYPE_CHECKING:
    from duckanon.engine.base import Engine
    from duckanon.progress import Listener


def lattice(
    data: object,
    *,
    quasi_identifiers: Sequence[str],
    metrics: str | Sequence[str] = ("loss",),
    pareto: bool = False,
    most: int = MOST,
    connection: Any = None,
    engine: Engine | None = None,
    progress: Listener | None = None,
    **parameters: Any,
) -> Lattice:
    """Return every node of the full-domain lattice: all ways to choose one level for each quasi-identifier.

    Nothing is published. A node that pleases is applied by ``duckanon.anonymize(..., levels=...)``.

    Parameters
    ----------
    data, quasi_identifiers, connection, progress
        As of ``duckanon.anonymize``.
    **parameters
        The roles, hierarchies and privacy requirements of ``duckanon.anonymize``; ``suppression_limit`` says which
        nodes are anonymous, ``min_levels`` and ``max_levels`` which nodes there are, ``weights`` how columns count in
        metrics.
    metrics : sequence of str
        Metrics to compute of every node: any that is registered. Those that searches know are quick; others are
        measured in SQL, node by node.
    pareto : bool
        Keep the front of risk and loss only: the anonymous nodes to which no other is as good in both the risk and the
        first metric and better in one of them. The best by the metric comes first.
    most : int
        A lattice with more nodes is refused.

    Returns
    -------
    Lattice
        A table (``to_arrow``, ``to_pandas``, ``to_polars``) that shows itself,
        with one row for each node, in their order:

        - ``node``: its levels as text, such as "0,3,1";
        - ``levels``: the same by quasi-identifier, as a struct, so that no column's name meets another;
        - ``height``: the sum of the levels;
        - ``classes``, ``classes_published``, ``smallest``: how many classes there are, how many of them would be
          published, and the size of the smallest of all, in rows or persons;
        - ``suppressed``, ``suppressed_share``: rows in classes that violate a requirement;
        - ``anonymous``: whether no more are suppressed than may be, and any are published;
        - ``visited``: false where a search inferred it from another node (``Release.lattice``); numbers are then NULL;
        - ``risk``: the highest of a published row (1 / smallest class published), NULL where none is;
        - each metric, by its name: what the release would lose, be the node anonymous or not. That of "height" is the
          column above.

    Examples
    --------
    >>> import duckanon, pyarrow as pa
    >>> people = pa.table({"age": [34, 35, 36, 61, 62, 63]})
    >>> nodes = duckanon.lattice(people, quasi_identifiers=["age"], k=3)
    >>> nodes.to_arrow().select(["node", "smallest", "suppressed", "anonymous", "risk"]).slice(0, 1).to_pylist()
    [{'node': '0', 'smallest': 1, 'suppressed': 6, 'anonymous': False, 'risk': None}]
    >>> [row["levels"] for row in nodes.to_pylist() if row["anonymous"]][0]
    {'age': 2}
    """
    require_metrics(metrics, pareto)
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise ParameterError("most must be a whole number of at least 1.")
    request = Request(data=data, quasi_identifiers=quasi_identifiers, **parameters)
    with watched(None if engine is not None else progress) as listener:
        workspace = engine if engine is not None else open_engine(connection, listener)
        try:
            plan = Plan.resolve(request, workspace)
            return nodes_of(plan, workspace, metrics, pareto=pareto, most=most)
        finally:
            if engine is None:
                workspace.close()


def nodes_of(
    plan: Plan, engine: Engine, metrics: str | Sequence[str] = ("loss",), *, pareto: bool = False, most: int = MOST
) -> Lattice:
    """Return the nodes of a plan's lattice, as ``lattice`` does."""
    if plan.algorithm.partitions:
        # Regions have no level; the lattice exists all the same.
        plan = replace(plan, algorithm=resolve_algorithm("optimal"))
    with engine.snapshot():
        names = require_metrics(metrics, pareto)
        problem = encode(with_hierarchies(plan, engine), engine).problem
        return Lattice(tabulate(problem, names, pareto=pareto, most=most), names)


__all__ = ["lattice", "nodes_of"]
