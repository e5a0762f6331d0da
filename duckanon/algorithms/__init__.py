"""Algorithms: from a frequency table to a recoding."""

from duckanon.algorithms.base import Algorithm, algorithms
from duckanon.algorithms.best_effort import BestEffort
from duckanon.algorithms.datafly import Datafly
from duckanon.algorithms.datafly_shuffled import DataflyShuffled
from duckanon.algorithms.incognito import Incognito
from duckanon.algorithms.mingen import MinGen
from duckanon.algorithms.mondrian import Mondrian
from duckanon.algorithms.ola import Ola
from duckanon.algorithms.optimal import Optimal
from duckanon.algorithms.samarati import Samarati

__all__ = [
    "Algorithm",
    "BestEffort",
    "Datafly",
    "DataflyShuffled",
    "Incognito",
    "MinGen",
    "Mondrian",
    "Ola",
    "Optimal",
    "Samarati",
    "algorithms",
]
