"""Privacy models: requirements on the equivalence classes of a release."""

from duckanon.models.alpha_k_anonymity import AlphaKAnonymity
from duckanon.models.average_reidentification_risk import AverageReidentificationRisk
from duckanon.models.base import CheckResult, Model, Traits, models
from duckanon.models.basic_beta_likeness import BasicBetaLikeness
from duckanon.models.delta_disclosure import DeltaDisclosure
from duckanon.models.delta_presence import DeltaPresence
from duckanon.models.enhanced_beta_likeness import EnhancedBetaLikeness
from duckanon.models.entropy_l_diversity import EntropyLDiversity
from duckanon.models.hierarchical_t_closeness import HierarchicalTCloseness
from duckanon.models.k_anonymity import KAnonymity
from duckanon.models.k_map import KMap
from duckanon.models.l_diversity import LDiversity
from duckanon.models.maximum_reidentification_risk import MaximumReidentificationRisk
from duckanon.models.ordered_t_closeness import OrderedTCloseness
from duckanon.models.p_sensitive_k_anonymity import PSensitiveKAnonymity
from duckanon.models.probabilistic_k_anonymity import ProbabilisticKAnonymity
from duckanon.models.recursive_c_l_diversity import RecursiveCLDiversity
from duckanon.models.sample_uniqueness import SampleUniqueness
from duckanon.models.t_closeness import TCloseness

__all__ = [
    "AlphaKAnonymity",
    "AverageReidentificationRisk",
    "BasicBetaLikeness",
    "CheckResult",
    "DeltaDisclosure",
    "DeltaPresence",
    "EnhancedBetaLikeness",
    "EntropyLDiversity",
    "HierarchicalTCloseness",
    "KAnonymity",
    "KMap",
    "LDiversity",
    "MaximumReidentificationRisk",
    "Model",
    "OrderedTCloseness",
    "PSensitiveKAnonymity",
    "ProbabilisticKAnonymity",
    "RecursiveCLDiversity",
    "SampleUniqueness",
    "TCloseness",
    "Traits",
    "models",
]
