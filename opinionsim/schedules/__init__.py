"""Turns, acts, and every generator of turns.

A schedule is a dataflow graph: a turn depends on the turns it reads and on its agent's memory, and on
nothing else. To add a way of interacting, inherit :class:`Schedule`, declare participants, steps and acts, and add
`turns()` (known before the first call) or `decide(outcomes)` (later turns depend on earlier outcomes).
"""

from opinionsim.schedules._acts import PROBE, REPORT, REPORT_ONCE, REVIEW, SELF_REPORT, WRITE
from opinionsim.schedules._adaptive import (
    BoundedConfidenceDyads,
    Feed,
    RewiringDyads,
    SimilarityDyads,
    TieChange,
    tie_changes,
)
from opinionsim.schedules._controls import Exposure, IndependentReports, RememberedReports, with_probes
from opinionsim.schedules._critical_path import CriticalPath, critical_path
from opinionsim.schedules._dyadic import Broadcast, Dyads
from opinionsim.schedules._snapshots import Snapshots
from opinionsim.schedules._turns import (
    NO_EXTERNALS,
    PARTICIPANT,
    TASK_VARIABLES,
    ActSpec,
    AdaptiveSchedule,
    AnySchedule,
    External,
    Outcomes,
    Ref,
    Schedule,
    StaticSchedule,
    Turn,
    check_schedule,
    first_keeper,
    n_members,
    named,
    outline,
)

__all__ = [
    "NO_EXTERNALS",
    "PARTICIPANT",
    "PROBE",
    "REPORT",
    "REPORT_ONCE",
    "REVIEW",
    "SELF_REPORT",
    "TASK_VARIABLES",
    "WRITE",
    "ActSpec",
    "AdaptiveSchedule",
    "AnySchedule",
    "BoundedConfidenceDyads",
    "Broadcast",
    "CriticalPath",
    "Dyads",
    "Exposure",
    "External",
    "Feed",
    "IndependentReports",
    "Outcomes",
    "Ref",
    "RememberedReports",
    "RewiringDyads",
    "Schedule",
    "SimilarityDyads",
    "Snapshots",
    "StaticSchedule",
    "TieChange",
    "Turn",
    "check_schedule",
    "critical_path",
    "first_keeper",
    "n_members",
    "named",
    "outline",
    "tie_changes",
    "with_probes",
]
