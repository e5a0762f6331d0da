"""Inference by a model: a learner is trained on the release and asked about people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from duckanon.assess.attacks.base import Attacker, Case, Finding, attackers
from duckanon.assess.attacks.features import of_people, of_tuples
from duckanon.assess.attacks.guessing import guessed, needs_secret, secrets

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from duckanon.assess.attacks.sight import People, Secret, View

    Floats = NDArray[np.float64]

TRAINED = 50_000
"""Most rows that a learner is trained on."""
CLASSES = 24
"""Values that are learned; those beyond the most frequent ones are not guessed."""


class ModelInference(Attacker):
    """Trains a learner on the release, and lets it guess the sensitive value.

    Cells are read as the middle of what they stand for, or as shares of values (see ``disclosure.features``); people
    have exact values. Success on controls is what the release teaches about everybody, which is its use; only the rest
    is told about those who are in it.
    """

    learner: ClassVar[str]
    words: ClassVar[str]

    def needs(self, case: Case) -> str | None:
        return needs_secret(case) if case.released.sensitive else "a sensitive column"

    def run(self, case: Case) -> list[Finding]:
        sight = case.sight
        found = []
        for adversary, columns in sight.adversaries().items():
            view = sight.view(columns)
            for secret in secrets(case):
                ask = _Training(view, secret, case.settings.seed).trained(self.learner)
                hits = ask(sight.targets)
                theirs = ask(sight.controls) if sight.controls is not None else None
                near = f"within {100 * secret.tolerance:g} %" if secret.measured else "right"
                text = f"the guess of {secret.name} by {self.words} is {near}"
                found.append(guessed(self.name, case, adversary, secret, hits, theirs, sight.targets, text))
        return found


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

    def __init__(self, view: View, secret: Secret, seed: int) -> None:
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
        """Return a function that says of people whether the guess is right."""
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
    """Return a context in which learners use one thread: sums are added in one order, and a busy machine is no trap."""
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
