"""Candidates to try in place of a job's own settings: algorithms, class sizes, limits and weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from duckanon.algorithms.base import algorithms
from duckanon.assess.utility.held_out import codes_of
from duckanon.assess.utility.raw_features import is_number, numbers_of
from duckanon.errors import ParameterError
from duckanon.plan.plan import partitions, resolve_algorithm

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from duckanon.jobs import JobTable

_GROUPS = 20
_SLOW = 50_000
"""The slower clustering algorithms are not tried on tables with more rows."""
_FACTORS = (1, 2, 5, 10)


@dataclass(frozen=True)
class Candidate:
    """Settings that meet the privacy requirements of a job.

    Attributes
    ----------
    algorithm : str
        Its name; ``parameters`` are those of the algorithm.
    k : int or None
        The smallest size of a class; None where the job has no k.
    suppression_limit : float
        The share of rows that may be suppressed.
    weights : dict
        How much each quasi-identifier counts in the metric; empty where all count the same.
    """

    algorithm: str
    k: int | None
    suppression_limit: float = 0.0
    parameters: dict[str, Any] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The name of the candidate, without k.

        Examples
        --------
        >>> Candidate("optimal", 5, 0.05, {"metric": "loss"}, {"age": 1.0}).label
        'optimal(metric=loss), weighted, limit 0.05'
        """
        given = ", ".join(f"{name}={value}" for name, value in self.parameters.items())
        named = f"{self.algorithm}({given})" if given else self.algorithm
        limit = f", limit {self.suppression_limit:g}" if self.suppression_limit else ""
        return f"{named}{', weighted' if self.weights else ''}{limit}"

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "algorithm": self.algorithm,
            "parameters": self.parameters,
            "k": self.k,
            "suppression_limit": self.suppression_limit,
            "weights": self.weights,
        }

    def applied(self, table: JobTable) -> JobTable:
        """Return the table of a job with the settings of this candidate."""
        chosen = algorithms.get(self.algorithm)(**self.parameters)
        parameters = {**table.parameters, "algorithm": chosen, "suppression_limit": self.suppression_limit}
        if self.k is not None:
            parameters["k"] = self.k
        if self.weights:
            parameters["weights"] = self.weights
        if not partitions(chosen):
            # How regions are published means nothing where columns are on levels.
            parameters.pop("output", None)
        return replace(table, parameters=parameters)


def candidates(
    table: JobTable,
    train: pa.Table,
    target: str,
    *,
    ks: Sequence[int] | None = None,
    wanted: Sequence[str] | None = None,
    limits: Sequence[float] | None = None,
) -> list[Candidate]:
    """Return the candidates to try, those first that are fast and mostly good.

    Parameters
    ----------
    table : JobTable
        Every candidate meets its requirements: k may be larger, never smaller.
    train : pyarrow.Table
        The rows to learn from: quasi-identifiers that say much about the target get more weight.
    ks, wanted, limits
        Sizes of classes, algorithms (``"mondrian"``, ``"optimal(metric=precision)"``) and suppression limits.
    """
    least = table.request.k
    sizes = _sizes(least, ks, train.num_rows)
    if limits is None:
        limits = [table.request.suppression_limit] if "suppression_limit" in table.parameters else [0.0, 0.05]
    quasi = table.request.quasi_identifiers
    names = {name.lower(): name for name in train.column_names}
    weights = weights_of(train, [names.get(q.lower(), q) for q in quasi], target)
    listed: list[Candidate] = []
    for algorithm, parameters, weighted in _ways(table, train.num_rows, target, wanted):
        divides = partitions(algorithms.get(algorithm)(**parameters))
        for limit in [min(limits)] if divides else limits:
            listed += [Candidate(algorithm, k, limit, parameters, weights if weighted else {}) for k in sizes]
    # All ways with the job's k first: if time runs out, each has been tried.
    return sorted(listed, key=lambda c: sizes.index(c.k))


def _sizes(least: int | None, given: Sequence[int] | None, rows: int) -> Sequence[int | None]:
    if given is None:
        return [None] if least is None else [k for k in (least * f for f in _FACTORS) if k == least or k <= rows // 10]
    for k in given:
        if isinstance(k, bool) or not isinstance(k, int) or k < 1:
            raise ParameterError(f"k must be an int >= 1. Got {k!r}.")
        if least is not None and k < least:
            raise ParameterError(f"The job requires k = {least}: {k} is less.")
    return sorted(set(given))


def _ways(
    table: JobTable, rows: int, target: str, wanted: Sequence[str] | None
) -> list[tuple[str, dict[str, Any], bool]]:
    """Return algorithms with parameters, and whether weights by the target go with them."""
    if wanted is not None:
        made = [resolve_algorithm(text) for text in wanted]
        return [(m.name, _changed(m), False) for m in made]
    asked: Any = table.request.algorithm
    first = [] if asked is None else [(asked.name, _changed(asked), False)]
    ways: list[tuple[str, dict[str, Any], bool]] = [
        *first,
        ("mondrian", {}, False),
        ("mondrian", {"target": target}, False),
        ("optimal", {"metric": "loss"}, False),
        ("optimal", {"metric": "loss"}, True),
        ("optimal", {"metric": "precision"}, True),
        ("optimal", {"metric": "non_uniform_entropy"}, False),
        ("ola", {"metric": "discernibility"}, False),
        ("datafly", {}, False),
        ("tdg", {}, False),
    ]
    if rows <= _SLOW:
        ways += [("mdav", {}, False), ("knn_clustering", {}, False)]
    seen: list[tuple[str, dict[str, Any], bool]] = []
    for way in ways:
        if way not in seen:
            seen.append(way)
    return seen


def _changed(algorithm: Any) -> dict[str, Any]:
    """Return the parameters of an algorithm that are not its defaults."""
    try:
        usual = type(algorithm)().parameters()
    except TypeError:
        # A third party's algorithm may have no defaults.
        usual = {}
    return {name: value for name, value in algorithm.parameters().items() if value != usual.get(name)}


def weights_of(train: pa.Table, quasi: Sequence[str], target: str) -> dict[str, float]:
    """Return a weight for each quasi-identifier: the more it says about the target, the less it should be generalized.

    The weight is 0.1 plus the mutual information of column and target, as a share of the largest one; numbers are put
    into ten groups of about equal size, and rare categories into one.

    References
    ----------
    D. Slijepčević et al., k-Anonymity in practice: how generalisation and suppression affect machine learning
    classifiers, 2021, section 5.8.

    Examples
    --------
    >>> import pyarrow as pa
    >>> people = pa.table({"age": [1, 2, 3, 4] * 5, "sex": ["f", "f", "m", "m"] * 5, "ill": [0, 1, 0, 1] * 5})
    >>> weights_of(people, ["age", "sex"], "ill")
    {'age': 1.1, 'sex': 0.1}
    """
    classes = codes_of(train.column(target))
    information = {name: _information(_grouped(train.column(name)), classes) for name in quasi}
    most = max(information.values(), default=0.0)
    return {name: round(0.1 + (value / most if most > 0 else 1.0), 3) for name, value in information.items()}


def _grouped(column: pa.ChunkedArray) -> NDArray[np.int64]:
    if is_number(column.type):
        numbers = numbers_of(column)
        present = numbers[~np.isnan(numbers)]
        cuts = np.unique(np.quantile(present, np.linspace(0, 1, 11)[1:-1])) if len(present) else np.zeros(0)
        return np.where(np.isnan(numbers), 10, np.searchsorted(cuts, numbers, side="right")).astype(np.int64)
    codes = codes_of(column)
    ranks = np.argsort(np.argsort(-np.bincount(codes), kind="stable"), kind="stable")
    return np.minimum(ranks[codes], _GROUPS).astype(np.int64)


def _information(groups: NDArray[np.int64], classes: NDArray[np.int64]) -> float:
    """Return the mutual information of two columns, in nats."""
    joint = np.zeros((groups.max(initial=0) + 1, classes.max(initial=0) + 1))
    np.add.at(joint, (groups, classes), 1.0)
    joint /= max(joint.sum(), 1.0)
    alone = joint.sum(axis=1, keepdims=True) @ joint.sum(axis=0, keepdims=True)
    there = joint > 0
    return max(0.0, float((joint[there] * np.log(joint[there] / alone[there])).sum()))
