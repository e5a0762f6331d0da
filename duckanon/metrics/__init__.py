"""Loss metrics: what a release lost, on the relations that describe its classes."""

from duckanon.metrics.base import Measure, Metric, headlines, measure, metrics

__all__ = ["Measure", "Metric", "headlines", "measure", "metrics"]
