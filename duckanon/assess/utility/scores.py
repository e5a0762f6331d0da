"""How well predictions fit: accuracy, precision, recall, F1 and the area under the ROC curve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Codes = NDArray[np.int64]

SCORES = ("accuracy", "precision", "recall", "f1", "auroc")


def scores(truth: Codes, predicted: Codes, confidence: NDArray[np.float64], positive: int | None) -> dict[str, float]:
    """Return the scores of predictions.

    Parameters
    ----------
    truth, predicted : array of int
        Classes by their number.
    confidence : array, a row for each prediction and a column for each class
        How much a learner is for a class: probabilities, or distances from a boundary.
    positive : int or None
        The class that precision, recall and F1 are about; None for the mean over classes, each counting the same.

    Notes
    -----
    The precision of a class that was never predicted is 0. Classes that are neither in the truth nor predicted do
    not count. The area under the curve of several classes is the mean of each against the rest, over those that the
    truth has; NaN where it has one class only.

    Examples
    --------
    >>> import numpy as np
    >>> likely = np.array([[0.9, 0.1], [0.4, 0.6], [0.3, 0.7], [0.0, 1.0]])
    >>> found = scores(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1]), likely, positive=1)
    >>> {name: round(value, 3) for name, value in found.items()}
    {'accuracy': 0.75, 'precision': 0.667, 'recall': 1.0, 'f1': 0.8, 'auroc': 1.0}
    """
    from sklearn.metrics import precision_recall_fscore_support

    how: dict[str, Any] = {"average": "macro"} if positive is None else {"labels": [positive], "average": "micro"}
    precision, recall, f1, _ = precision_recall_fscore_support(truth, predicted, zero_division=0.0, **how)
    return {
        "accuracy": float(np.mean(truth == predicted)),
        "precision": float(precision),
        "recall": float(recall),
        "f1": float(f1),
        "auroc": _auroc(truth, confidence, positive),
    }


def _auroc(truth: Codes, confidence: NDArray[np.float64], positive: int | None) -> float:
    from sklearn.metrics import roc_auc_score

    present = np.unique(truth)
    if len(present) < 2:
        return float("nan")
    wanted = present if positive is None else [positive]
    areas = [roc_auc_score(truth == c, confidence[:, c]) for c in wanted if (truth == c).any()]
    return float(np.mean(areas)) if areas else float("nan")


def confidence_of(learner: Any, rows: Any, classes: int) -> NDArray[np.float64]:
    """Return how much a fitted learner is for each of ``classes``; least of those that it never saw."""
    if hasattr(learner, "predict_proba"):
        probabilities = np.asarray(learner.predict_proba(rows), dtype=np.float64)
    else:
        probabilities = np.asarray(learner.decision_function(rows), dtype=np.float64)
        if probabilities.ndim == 1:
            probabilities = np.column_stack([-probabilities, probabilities])
    whole = np.full((probabilities.shape[0], classes), probabilities.min(initial=0.0) - 1.0)
    whole[:, np.asarray(learner.classes_, dtype=np.int64)] = probabilities
    return whole
