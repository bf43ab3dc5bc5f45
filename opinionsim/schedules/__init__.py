"""Turns, acts, and every generator of turns.

A schedule is a dataflow graph: a turn depends on the turns it reads and on its agent's memory, and on
nothing else. To add a way of interacting, write a class with `n_agents`, `steps`, `externals` and either
`turns()` (known before the first call) or `decide(outcomes)` (later turns depend on earlier outcomes).
"""

from opinionsim.schedules._adaptive import (
    BoundedConfidenceDyads,
    Feed,
    RewiringDyads,
    SimilarityDyads,
    TieChange,
    tie_changes,
)
from opinionsim.schedules._controls import Exposure, IndependentReports, RememberedReports, with_probes
from opinionsim.schedules._dyadic import Broadcast, Dyads
from opinionsim.schedules._snapshots import Snapshots
from opinionsim.schedules._turns import (
    ACTS,
    ActSpec,
    AdaptiveSchedule,
    External,
    Outcomes,
    Ref,
    StaticSchedule,
    Turn,
    outline,
)

__all__ = [
    "ACTS",
    "ActSpec",
    "AdaptiveSchedule",
    "BoundedConfidenceDyads",
    "Broadcast",
    "Dyads",
    "Exposure",
    "External",
    "Feed",
    "IndependentReports",
    "Outcomes",
    "Ref",
    "RememberedReports",
    "RewiringDyads",
    "SimilarityDyads",
    "Snapshots",
    "StaticSchedule",
    "TieChange",
    "Turn",
    "outline",
    "tie_changes",
    "with_probes",
]
