"""Inference by a model: a learner is trained on the release and predicts for people.

A number is the middle of its cell; of a column with few values each is a feature of its own, of which a cell that
covers several has as many shares. An adversary trains on cells and predicts for exact values: a value is read as the
cells that cover it are on average, which is the cell itself where there is only one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from duckanon.assess.attacks.base import Attacker, Case, Finding, attackers
from duckanon.assess.attacks.guessing import guessed, needs_secret, secrets

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from duckanon.assess.attacks.linkage_axis import LinkageAxis
    from duckanon.assess.attacks.linkage_space import People, Projection, SecretColumn

    Floats = NDArray[np.float64]


FEW = 32
"""Most values of a column that are features of their own; those of others are their places."""


def of_tuples(view: Projection) -> Floats:
    """Return the features of the tuples of a view."""
    import numpy as np

    parts = []
    for j, axis in enumerate(view.space.axes[c] for c in view.columns):
        features = _shares(axis) if _split(axis) else _middles(axis)[:, None]
        parts.append(features[view.cells[:, j]])
    return np.concatenate(parts, axis=1)


def of_people(view: Projection, people: People) -> Floats:
    """Return the features of people on the columns of a view."""
    import numpy as np

    parts = []
    for j, column in enumerate(view.columns):
        axis = view.space.axes[column]
        rows = np.bincount(view.cells[:, j], weights=view.sizes, minlength=len(axis.low)).astype(np.float64)
        places = people.points[:, column]
        if _split(axis):
            parts.append(_value_shares(axis, rows)[places.astype(np.int64)])
        else:
            parts.append(_value_middles(axis, rows, places)[:, None])
    return np.concatenate(parts, axis=1)


def _split(axis: LinkageAxis) -> bool:
    return not axis.ordered and len(axis.places) <= FEW


def _middles(axis: LinkageAxis) -> Floats:
    import numpy as np

    whole = np.isinf(axis.low)
    middle = 0.5 if axis.ordered else (len(axis.places) - 1) / 2
    return np.where(whole, middle, (np.where(whole, 0, axis.low) + np.where(whole, 0, axis.high)) / 2)


def _value_middles(axis: LinkageAxis, rows: Floats, places: Floats) -> Floats:
    """Return the mean middle of the cells over each place, weighted by their rows; without one, the place itself."""
    import numpy as np

    middles = _middles(axis)
    sums = []
    for weight in (rows, rows * middles):
        # Cells that begin at or before a place, less those that end before it.
        begun, ended = np.argsort(axis.low, kind="stable"), np.argsort(axis.high, kind="stable")
        first = np.concatenate(([0.0], np.cumsum(weight[begun])))
        last = np.concatenate(([0.0], np.cumsum(weight[ended])))
        opened = np.searchsorted(axis.low[begun], places, side="right")
        closed = np.searchsorted(axis.high[ended], places, side="left")
        sums.append(first[opened] - last[closed])
    count, total = sums
    covered = count > 0.5
    return np.where(covered, total / np.where(covered, count, 1.0), places)


def _inside(axis: LinkageAxis) -> NDArray[np.bool_]:
    """Return which values each cell covers."""
    import numpy as np

    place = np.arange(len(axis.places))
    inside: NDArray[np.bool_] = (axis.low[:, None] <= place) & (place <= axis.high[:, None])
    for cell in np.flatnonzero(axis.start >= 0):
        inside[cell] = np.isin(place, axis.members[axis.start[cell] : axis.stop[cell]])
    return inside


def _shares(axis: LinkageAxis) -> Floats:
    """Return for each cell the share that each value has of it."""
    import numpy as np

    inside = _inside(axis)
    return np.asarray(inside / np.maximum(inside.sum(axis=1, keepdims=True), 1), dtype=np.float64)


def _value_shares(axis: LinkageAxis, rows: Floats) -> Floats:
    """Return for each value the mean shares of the cells over it; of a value without one, itself."""
    import numpy as np

    over = _inside(axis).T * rows
    total = over.sum(axis=1, keepdims=True)
    mean = over @ _shares(axis) / np.maximum(total, 1)
    return np.where(total > 0, mean, np.eye(len(axis.places)))


TRAINED = 50_000
"""Most rows that a learner is trained on."""
CLASSES = 24
"""Values that are learned; those beyond the most frequent ones are not guessed."""


class ModelInference(Attacker):
    """Trains a learner on the release, and lets it guess the sensitive value.

    Cells are read as the middle of what they cover, or as shares of values; people have exact values. Success on
    controls is what the release says about everybody, which is its use; only the rest is disclosed about those who
    are in it.
    """

    learner: ClassVar[str]
    words: ClassVar[str]

    def needs(self, case: Case) -> str | None:
        return needs_secret(case) if case.released.sensitive else "a sensitive column"

    def run(self, case: Case) -> list[Finding]:
        space = case.space
        findings = []
        for adversary, columns in space.adversaries().items():
            view = space.view(columns)
            for secret in secrets(case):
                ask = _Training(view, secret, case.settings.seed).trained(self.learner)
                hits = ask(space.targets)
                theirs = ask(space.controls) if space.controls is not None else None
                near = f"within {100 * secret.tolerance:g} %" if secret.measured else "right"
                text = f"the guess of {secret.name} by {self.words} is {near}"
                findings.append(guessed(self.name, case, adversary, secret, hits, theirs, space.targets, text))
        return findings


@attackers.register("forest_inference")
class ForestInference(ModelInference):
    """Trains a random forest on the release, and lets it guess the sensitive value.

    See ``ModelInference`` for how cells and people are read.

    References
    ----------
    N. Senavirathne and V. Torra, Systematic evaluation of probabilistic k-anonymity, section 5.2; L. Breiman, Random
    forests, 2001.
    """

    summary: ClassVar[str] = "guesses of a random forest that was trained on the release"
    learner: ClassVar[str] = "forest"
    words: ClassVar[str] = "a random forest"


@attackers.register("boosting_inference")
class BoostingInference(ModelInference):
    """Trains gradient boosting on the release, and lets it guess the sensitive value.

    See ``ModelInference`` for how cells and people are read.

    References
    ----------
    N. Senavirathne and V. Torra, Systematic evaluation of probabilistic k-anonymity, section 5.2; G. Ke et al.,
    LightGBM: a highly efficient gradient boosting decision tree, 2017.
    """

    summary: ClassVar[str] = "guesses of gradient boosting that was trained on the release"
    learner: ClassVar[str] = "boosting"
    words: ClassVar[str] = "gradient boosting"


class _Training:
    """The rows that learners are trained on: those published, or as many drawn from them as learners take."""

    def __init__(self, view: Projection, secret: SecretColumn, seed: int) -> None:
        import numpy as np

        self.view, self.secret, self.seed = view, secret, seed
        begins, codes, sizes = secret.by_tuple(view)
        owner = np.repeat(np.arange(len(view.sizes)), np.diff(begins))
        keep = self._learned(codes, sizes)
        rows = np.repeat(np.flatnonzero(keep), sizes[keep])
        if len(rows) > TRAINED:
            rows = np.sort(np.random.default_rng([seed, 3]).choice(rows, TRAINED, replace=False))
        self.features: Floats = of_tuples(view)[owner[rows]]
        self.codes = codes[rows]

    def _learned(self, codes: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.bool_]:
        import numpy as np

        if self.secret.measured:
            return ~np.isnan(self.secret.numbers[codes])
        counts = np.bincount(codes, weights=sizes)
        return np.isin(codes, np.argsort(-counts, kind="stable")[:CLASSES])

    def trained(self, learner: str) -> Any:
        """Return a function that decides for people whether the guess is right."""
        import numpy as np

        secret = self.secret
        truth = secret.numbers[self.codes] if secret.measured else self.codes
        if len(self.codes) == 0 or len(np.unique(truth)) == 1:
            only = truth[0] if len(truth) else -1
            return lambda people: self._right(np.full(len(people), only), people)
        model = _learner(learner, secret.measured, self.seed)
        with _one_thread():
            model.fit(self.features, truth)

        def ask(people: People) -> Floats:
            with _one_thread():
                return self._right(model.predict(of_people(self.view, people)), people)

        return ask

    def _right(self, guesses: Any, people: People) -> Floats:
        import numpy as np

        truth = self.secret.truth(people)
        if not self.secret.measured:
            return np.asarray(guesses == truth, dtype=np.float64)
        theirs = self.secret.numbers[truth]
        return np.asarray(np.abs(guesses - theirs) <= self.secret.tolerance * np.abs(theirs), dtype=np.float64)


def _one_thread() -> Any:
    """Return a context in which learners use one thread: sums are added in one order."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1)


def _learner(name: str, measured: bool, seed: int) -> Any:
    from sklearn.ensemble import (
        HistGradientBoostingClassifier,
        HistGradientBoostingRegressor,
        RandomForestClassifier,
        RandomForestRegressor,
    )

    if name == "forest":
        forest = RandomForestRegressor if measured else RandomForestClassifier
        return forest(n_estimators=60, min_samples_leaf=2, max_features="sqrt", random_state=seed)
    # Without a penalty, boosting of many classes runs away where few cells repeat many times.
    if measured:
        return HistGradientBoostingRegressor(loss="absolute_error", max_iter=60, random_state=seed)
    return HistGradientBoostingClassifier(max_iter=30, l2_regularization=1.0, early_stopping=False, random_state=seed)
