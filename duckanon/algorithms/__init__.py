"""Algorithms: from a frequency table to a recoding, or from rows to classes."""

from duckanon.algorithms.base import Algorithm, algorithms
from duckanon.algorithms.best_effort import BestEffort
from duckanon.algorithms.datafly import Datafly
from duckanon.algorithms.datafly_shuffled import DataflyShuffled
from duckanon.algorithms.greedy import Greedy
from duckanon.algorithms.incognito import Incognito
from duckanon.algorithms.k_member import KMember
from duckanon.algorithms.kaca import Kaca
from duckanon.algorithms.knn_clustering import KnnClustering
from duckanon.algorithms.mdav import Mdav
from duckanon.algorithms.mingen import MinGen
from duckanon.algorithms.mondrian import Mondrian
from duckanon.algorithms.ola import Ola
from duckanon.algorithms.optimal import Optimal
from duckanon.algorithms.probabilistic import Probabilistic
from duckanon.algorithms.samarati import Samarati
from duckanon.algorithms.tdg import Tdg
from duckanon.algorithms.v_mdav import VMdav

__all__ = [
    "Algorithm",
    "BestEffort",
    "Datafly",
    "DataflyShuffled",
    "Greedy",
    "Incognito",
    "KMember",
    "Kaca",
    "KnnClustering",
    "Mdav",
    "MinGen",
    "Mondrian",
    "Ola",
    "Optimal",
    "Probabilistic",
    "Samarati",
    "Tdg",
    "VMdav",
    "algorithms",
]
