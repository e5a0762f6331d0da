"""Checks that every model, metric and algorithm must pass, those of other packages too, and hypothesis strategies.

``check_model``, ``check_metric`` and ``check_algorithm`` raise an AssertionError that says what is wrong. The module
``duckanon.testing.strategies`` needs hypothesis.

Examples
--------
>>> import duckanon
>>> check_model(duckanon.models.KAnonymity(3))
"""

from duckanon.testing.algorithms import check_algorithm
from duckanon.testing.metrics import check_metric
from duckanon.testing.models import check_model

__all__ = ["check_algorithm", "check_metric", "check_model"]
