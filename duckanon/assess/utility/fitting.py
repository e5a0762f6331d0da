"""Fit learners side by side: bounded threads, the same figures with any number of them, warnings counted."""

from __future__ import annotations

import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from duckanon.assess.utility.scores import confidence_of, scores
from duckanon.engine.process import cores
from duckanon.errors import UnsupportedError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from duckanon.assess.utility.learners import Learner

_FEW_CELLS = 20_000_000
"""Up to here all cells are laid out, which most learners read faster; more stay sparse where a learner can."""
_MOST_CELLS = 200_000_000


@dataclass(frozen=True)
class Rows:
    """Rows as numbers, and the class of each."""

    cells: Any
    classes: NDArray[np.int64]

    def mixed(self) -> Rows:
        """Return the rows in an order that depends on nothing but what they are, and that has no meaning.

        Releases of other tools have equal rows side by side, sorted by their class, and most learners read rows one
        after the other, or draw some by their places.
        """
        from scipy import sparse

        cells = sparse.csr_matrix(self.cells)
        cells.sum_duplicates()
        cells.eliminate_zeros()
        ends, places, values = cells.indptr, cells.indices.astype(np.int64), cells.data

        def key(row: int) -> tuple[bytes, bytes, int]:
            here = slice(ends[row], ends[row + 1])
            return places[here].tobytes(), values[here].tobytes(), int(self.classes[row])

        order = np.array(sorted(range(len(self.classes)), key=key), dtype=np.int64)
        order = order[np.random.default_rng(0).permutation(len(order))]
        return Rows(cells[order], self.classes[order])


@dataclass(frozen=True)
class Lesson:
    """What is learned from, and the rows that are predicted afterwards, by their names."""

    name: str
    train: Rows
    tests: dict[str, Rows]

    def reduced(self, variance: float) -> Lesson:
        """Return the lesson in the principal components that explain this share of the training rows' variance."""
        from sklearn.decomposition import PCA

        first = _laid_out(self.train.cells, "PCA")
        components = PCA(n_components=variance, svd_solver="full").fit(first)
        train = Rows(components.transform(first), self.train.classes)
        tests = {
            name: Rows(components.transform(_laid_out(rows.cells, "PCA")), rows.classes)
            for name, rows in self.tests.items()
        }
        return Lesson(self.name, train, tests)


@dataclass(frozen=True)
class Fitted:
    """The scores of one learner, trained once."""

    learner: str
    seed: int
    trained_on: str
    tested_on: str
    scores: dict[str, float]
    warnings: int


def fit_all(
    lessons: Sequence[Lesson],
    learners: Sequence[Learner],
    seeds: Sequence[int],
    *,
    classes: int,
    positive: int | None,
    workers: int | None = None,
    advance: Callable[[float], None] | None = None,
) -> list[Fitted]:
    """Train every learner on every lesson with every seed; one that is not random only once, with the first.

    Linear algebra is kept to one thread, so that sums are always added up in the same order; learners are trained side
    by side in ``workers`` threads, by default as many as there are cores.
    """
    tasks = [
        (lesson, learner, seed)
        for lesson in lessons
        for learner in learners
        for seed in (seeds if learner.random else seeds[:1])
    ]
    laid_out: dict[tuple[str, str, bool], Any] = {}
    for lesson in lessons:
        for learner in learners:
            for name, rows in {"": lesson.train, **lesson.tests}.items():
                dense = _is_dense(learner, rows.cells)
                if (lesson.name, name, dense) not in laid_out:
                    cells = _laid_out(rows.cells, learner.name) if dense else rows.cells
                    laid_out[lesson.name, name, dense] = cells
    done = Counter[str]()
    lock = threading.Lock()

    def one(task: tuple[Lesson, Learner, int]) -> list[Fitted]:
        results = _fit(*task, laid_out, classes, positive)
        with lock:
            done["all"] += 1
            if advance is not None:
                advance(done["all"])
        return results

    from threadpoolctl import threadpool_limits

    # Set here for linear algebra, whose threads are the process's, and in every thread for loops that are its own.
    alone = partial(threadpool_limits, 1)
    with alone(), ThreadPoolExecutor(_threads(workers), initializer=alone) as pool, _counted() as counts:
        return [fitted for some in pool.map(lambda task: counts(one, task), tasks) for fitted in some]


def _threads(workers: int | None) -> int:
    return max(1, workers if workers is not None else min(cores(), 16))


def _fit(
    lesson: Lesson,
    learner: Learner,
    seed: int,
    laid_out: dict[tuple[str, str, bool], Any],
    classes: int,
    positive: int | None,
) -> list[Fitted]:
    made = learner.make(seed)
    cells = laid_out[lesson.name, "", _is_dense(learner, lesson.train.cells)]
    if len(np.unique(lesson.train.classes)) < 2:
        # Where a release has one class only there is nothing to learn, and some learners refuse it.
        from sklearn.dummy import DummyClassifier

        made = DummyClassifier(strategy="most_frequent")
    made.fit(cells, lesson.train.classes)
    results = []
    for name, rows in lesson.tests.items():
        tested = laid_out[lesson.name, name, _is_dense(learner, rows.cells)]
        predicted = np.asarray(made.predict(tested), dtype=np.int64)
        figures = scores(rows.classes, predicted, confidence_of(made, tested, classes), positive)
        results.append(Fitted(learner.name, seed, lesson.name, name, figures, 0))
    return results


def _is_dense(learner: Learner, cells: Any) -> bool:
    return learner.dense or isinstance(cells, np.ndarray) or cells.shape[0] * cells.shape[1] <= _FEW_CELLS


def _laid_out(cells: Any, who: str) -> NDArray[np.float64]:
    if isinstance(cells, np.ndarray):
        return cells
    if cells.shape[0] * cells.shape[1] > _MOST_CELLS:
        raise UnsupportedError(
            f"{who} needs all cells of a table of {cells.shape[0]} rows and {cells.shape[1]} columns, the zeros among "
            "them: use fewer rows (max_rows), fewer features, or another learner or encoding."
        )
    dense: NDArray[np.float64] = cells.toarray()
    return dense


@contextmanager
def _counted() -> Iterator[Callable[..., list[Fitted]]]:
    """Count the warnings of every task instead of printing them; they are those of the thread that it runs in."""
    local = threading.local()

    def count(*_: Any, **__: Any) -> None:
        local.count = getattr(local, "count", 0) + 1

    def counted(action: Callable[[Any], list[Fitted]], task: Any) -> list[Fitted]:
        local.count = 0
        results = action(task)
        return [Fitted(f.learner, f.seed, f.trained_on, f.tested_on, f.scores, local.count) for f in results]

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = count
        yield counted
