"""The learners: scikit-learn's, each with fixed settings, by name; or any classifier with their methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from duckanon.errors import ParameterError, UnsupportedError, did_you_mean

Made = Callable[[int], Any]


@dataclass(frozen=True)
class Learner:
    """A classifier under a name: ``make(seed)`` returns a new one that has learned nothing."""

    name: str
    make: Made
    dense: bool = False
    """Whether it needs all cells of the table, the many zeros among them."""
    random: bool = True
    """Whether another seed may give another result."""


def _logistic_regression(seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=300)


def _random_forest(seed: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_estimators=100, random_state=seed)


def _knn(seed: int) -> Any:
    from duckanon.assess.utility.neighbours import NearestNeighbours

    return NearestNeighbours(n_neighbors=10)


def _linear_svm(seed: int) -> Any:
    from sklearn.svm import LinearSVC

    return LinearSVC(C=1.0, random_state=seed)


def _decision_tree(seed: int) -> Any:
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(min_samples_leaf=5, random_state=seed)


def _mlp(seed: int) -> Any:
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier((32,), learning_rate_init=0.005, max_iter=100, early_stopping=True, random_state=seed)


def _gradient_boosting(seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=seed)


def _xgboost(seed: int) -> Any:
    try:
        from xgboost import XGBClassifier
    except ImportError:
        raise UnsupportedError(
            "The learner xgboost needs a package of its own: pip install xgboost. gradient_boosting needs none."
        ) from None
    return XGBClassifier(n_estimators=100, random_state=seed, n_jobs=1)


LEARNERS: dict[str, Learner] = {
    learner.name: learner
    for learner in (
        Learner("logistic_regression", _logistic_regression, random=False),
        Learner("random_forest", _random_forest),
        Learner("knn", _knn, dense=True, random=False),
        Learner("linear_svm", _linear_svm),
        Learner("decision_tree", _decision_tree),
        Learner("mlp", _mlp),
        Learner("gradient_boosting", _gradient_boosting, dense=True),
        # With these settings it draws neither rows nor columns.
        Learner("xgboost", _xgboost, random=False),
    )
}
USUAL = ("logistic_regression", "random_forest", "gradient_boosting")
"""The default learners: a linear model, a random forest, and boosted trees."""


def resolve(learners: str | Sequence[Any] | Mapping[str, Any]) -> list[Learner]:
    """Return the learners that names, classifiers of scikit-learn's kind, or a mapping of names to them mean.

    Examples
    --------
    >>> [learner.name for learner in resolve(["knn", "mlp"])]
    ['knn', 'mlp']
    >>> from sklearn.naive_bayes import GaussianNB
    >>> [(learner.name, learner.random) for learner in resolve({"bayes": GaussianNB()})]
    [('bayes', False)]
    """
    if isinstance(learners, str):
        learners = [learners]
    if isinstance(learners, Mapping):
        resolved = [_named(str(name), given) for name, given in learners.items()]
    elif isinstance(learners, Sequence):
        resolved = [_named(None, given) for given in learners]
    else:
        raise ParameterError(f"learners must be names or classifiers. Got a {type(learners).__name__}.")
    names = [learner.name for learner in resolved]
    if not names:
        raise ParameterError("Name one learner at least.")
    twice = {name for name in names if names.count(name) > 1}
    if twice or ZERO_RULE in names:
        raise ParameterError(f"Learners must have names of their own: {sorted(twice or {ZERO_RULE})[0]!r} is taken.")
    for learner in resolved:
        learner.make(0)
    return resolved


ZERO_RULE = "zero_rule"
"""Always the most frequent class: what a learner that learned nothing reaches."""


def _named(name: str | None, given: Any) -> Learner:
    if isinstance(given, Learner):
        return given
    if isinstance(given, str):
        if given not in LEARNERS:
            raise ParameterError(
                f"There is no learner {given!r}.{did_you_mean(given, LEARNERS)} There are: {', '.join(LEARNERS)}."
            )
        learner = LEARNERS[given]
        return Learner(name or given, learner.make, learner.dense, learner.random)
    if not hasattr(given, "fit") or not hasattr(given, "predict") or not hasattr(given, "get_params"):
        raise ParameterError(f"A learner is a name or a classifier. Got a {type(given).__name__}.")
    seeded = [key for key in given.get_params() if key.split("__")[-1] == "random_state"]

    def make(seed: int) -> Any:
        from sklearn.base import clone

        return clone(given).set_params(**dict.fromkeys(seeded, seed))

    return Learner(name or type(given).__name__, make, True, bool(seeded))
