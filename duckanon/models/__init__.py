"""Privacy models: what a release promises about each of its equivalence classes."""

from duckanon.models.base import CheckResult, Model, Traits, models
from duckanon.models.k_anonymity import KAnonymity

__all__ = ["CheckResult", "KAnonymity", "Model", "Traits", "models"]
