"""Metrics of opinions and texts, on arrays and on the tidy frames of a store."""

from __future__ import annotations

from opinionsim.metrics._classes import CLASSES, class_transitions, qualitative_class
from opinionsim.metrics._clusters import cluster_labels, clusters, effective_clusters, largest_cluster
from opinionsim.metrics._communities import communities, modularity
from opinionsim.metrics._components import components, largest_component
from opinionsim.metrics._conditions import (
    NOT_SET,
    check_conditions,
    condition_axes,
    condition_metrics,
    in_order,
    order_levels,
)
from opinionsim.metrics._controversy import random_walk_controversy
from opinionsim.metrics._convergence import (
    ExitProbability,
    FirstTime,
    consensus_time,
    convergence_time,
    exit_probability,
    largest_change,
)
from opinionsim.metrics._density import density, fragmentation, valley_labels
from opinionsim.metrics._dip import dip, dip_p_value
from opinionsim.metrics._frames import run_metrics, step_metrics, trajectories
from opinionsim.metrics._groups import distinctness, group_consensus, group_count, group_divergence, size_parity
from opinionsim.metrics._instruments import by_participants, cut, scale_of, stance_rows
from opinionsim.metrics._lexical import (
    LEXICAL,
    DiversityComponent,
    diversity_component,
    hdd,
    lexical_diversity,
    lexical_frame,
    tokenise,
    type_token_ratio,
)
from opinionsim.metrics._missing import SIDES, exposure
from opinionsim.metrics._moments import (
    extreme_share,
    extremeness,
    median,
    relative_bias,
    relative_diversity,
    skewness,
)
from opinionsim.metrics._named import check_metrics, named_metrics
from opinionsim.metrics._network import (
    active_link_density,
    assortativity,
    disagreement,
    ei_index,
    internal_conflict,
    neighbour_correlation,
    polarization,
    same_side_share,
)
from opinionsim.metrics._opinion_frames import opinion_metrics
from opinionsim.metrics._opinions import Distribution, bias, distribution, diversity
from opinionsim.metrics._polarization import (
    agreement,
    bimodality,
    duclos_esteban_ray,
    esteban_ray,
    opinion_polarization_index,
)
from opinionsim.metrics._regions import largest_region, partial_overlap, regions
from opinionsim.metrics._registry import METRICS, Metric, compute_metrics, find_metric, takes_delta
from opinionsim.metrics._spread import coverage, dispersion, entropy, mean_distance, regionalization, spread
from opinionsim.metrics._sycophancy import sycophancy
from opinionsim.metrics._uncertainty import (
    Interval,
    MeanTest,
    PermutationNull,
    bootstrap_interval,
    paired_effect,
    permutation_null,
    permutation_test,
)
from opinionsim.metrics._wordings import one_wording, wording_statement

__all__ = [
    "CLASSES",
    "LEXICAL",
    "METRICS",
    "NOT_SET",
    "SIDES",
    "Distribution",
    "DiversityComponent",
    "ExitProbability",
    "FirstTime",
    "Interval",
    "MeanTest",
    "Metric",
    "PermutationNull",
    "active_link_density",
    "agreement",
    "assortativity",
    "bias",
    "bimodality",
    "bootstrap_interval",
    "by_participants",
    "check_conditions",
    "check_metrics",
    "class_transitions",
    "cluster_labels",
    "clusters",
    "communities",
    "components",
    "compute_metrics",
    "condition_axes",
    "condition_metrics",
    "consensus_time",
    "convergence_time",
    "coverage",
    "cut",
    "density",
    "dip",
    "dip_p_value",
    "disagreement",
    "dispersion",
    "distinctness",
    "distribution",
    "diversity",
    "diversity_component",
    "duclos_esteban_ray",
    "effective_clusters",
    "ei_index",
    "entropy",
    "esteban_ray",
    "exit_probability",
    "exposure",
    "extreme_share",
    "extremeness",
    "find_metric",
    "fragmentation",
    "group_consensus",
    "group_count",
    "group_divergence",
    "hdd",
    "in_order",
    "internal_conflict",
    "largest_change",
    "largest_cluster",
    "largest_component",
    "largest_region",
    "lexical_diversity",
    "lexical_frame",
    "mean_distance",
    "median",
    "modularity",
    "named_metrics",
    "neighbour_correlation",
    "one_wording",
    "opinion_metrics",
    "opinion_polarization_index",
    "order_levels",
    "paired_effect",
    "partial_overlap",
    "permutation_null",
    "permutation_test",
    "polarization",
    "qualitative_class",
    "random_walk_controversy",
    "regionalization",
    "regions",
    "relative_bias",
    "relative_diversity",
    "run_metrics",
    "same_side_share",
    "scale_of",
    "size_parity",
    "skewness",
    "spread",
    "stance_rows",
    "step_metrics",
    "sycophancy",
    "takes_delta",
    "tokenise",
    "trajectories",
    "type_token_ratio",
    "valley_labels",
    "wording_statement",
]
