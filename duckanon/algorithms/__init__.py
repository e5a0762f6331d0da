"""Algorithms: from a frequency table to a recoding, or from rows to classes."""

from duckanon.algorithms.base import Algorithm, algorithms
from duckanon.algorithms.clustering.greedy import Greedy
from duckanon.algorithms.clustering.k_member import KMember
from duckanon.algorithms.clustering.kaca import Kaca
from duckanon.algorithms.clustering.knn_clustering import KnnClustering
from duckanon.algorithms.clustering.mdav import Mdav
from duckanon.algorithms.clustering.tdg import Tdg
from duckanon.algorithms.clustering.v_mdav import VMdav
from duckanon.algorithms.full_domain.best_effort import BestEffort
from duckanon.algorithms.full_domain.datafly import Datafly, DataflyShuffled
from duckanon.algorithms.full_domain.incognito import Incognito
from duckanon.algorithms.full_domain.mingen import MinGen
from duckanon.algorithms.full_domain.ola import Ola
from duckanon.algorithms.full_domain.optimal import Optimal
from duckanon.algorithms.full_domain.samarati import Samarati
from duckanon.algorithms.partition.mondrian import Mondrian
from duckanon.algorithms.permutation.probabilistic import Probabilistic

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
