"""Algorithms: from a frequency table to a recoding."""

from duckanon.algorithms.base import Algorithm, algorithms
from duckanon.algorithms.datafly import Datafly

__all__ = ["Algorithm", "Datafly", "algorithms"]
