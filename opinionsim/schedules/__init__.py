"""Turns, acts, and every generator of turns.

A schedule is a dataflow graph: a turn depends on the turns it reads and on its agent's memory, and on
nothing else. To add a way of interacting, write a class with `n_agents`, `steps`, `externals` and either
`turns()` (known before the first call) or `decide(outcomes)` (later turns depend on earlier outcomes).
"""

from opinionsim.schedules._controls import Exposure, IndependentReports, RememberedReports, with_probes
from opinionsim.schedules._dyadic import Broadcast, Dyads, SimilarityDyads
from opinionsim.schedules._networks import NETWORKS, Neighbours, build_network
from opinionsim.schedules._turns import (
    ACTS,
    ActSpec,
    AdaptiveSchedule,
    External,
    Outcomes,
    Ref,
    StaticSchedule,
    Turn,
)

__all__ = [
    "ACTS",
    "NETWORKS",
    "ActSpec",
    "AdaptiveSchedule",
    "Broadcast",
    "Dyads",
    "Exposure",
    "External",
    "IndependentReports",
    "Neighbours",
    "Outcomes",
    "Ref",
    "RememberedReports",
    "SimilarityDyads",
    "StaticSchedule",
    "Turn",
    "build_network",
    "with_probes",
]
