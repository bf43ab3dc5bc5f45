"""Turns, acts, and every generator of turns.

A schedule is a dataflow graph: a turn depends on the turns it reads and on its agent's memory, and on
nothing else. A way of interacting is one module with an :class:`Interaction`, which has the fields of a specification
and makes a schedule of them.
"""

from opinionsim.schedules._acts import (
    INSTRUCT,
    MODERATE,
    PROBE,
    REPORT,
    REPORT_ONCE,
    RESPOND,
    REVIEW,
    SELF_REPORT,
    WRITE,
)
from opinionsim.schedules._bounded_confidence import BoundedConfidenceDyads
from opinionsim.schedules._broadcast import Broadcast
from opinionsim.schedules._critical_path import CriticalPath, critical_path
from opinionsim.schedules._dyadic import Dyads
from opinionsim.schedules._events import Event, acts_with, dropped_turns, takes_reads, takes_reviews, with_events
from opinionsim.schedules._external import Exposure
from opinionsim.schedules._feed import Feed
from opinionsim.schedules._independent import IndependentReports
from opinionsim.schedules._interaction import (
    MAX_SIZE,
    MAX_STEPS,
    Interaction,
    InteractionField,
    NetworkedInteraction,
    ReportsInteraction,
    Setting,
    SteppedInteraction,
)
from opinionsim.schedules._interview import read_answers
from opinionsim.schedules._moderated import MODERATOR, automatic_instructions, read_verdict, with_moderator
from opinionsim.schedules._posts import PostsInteraction, without_turns
from opinionsim.schedules._probes import with_probes
from opinionsim.schedules._remembered import RememberedReports
from opinionsim.schedules._rewiring import RewiringDyads
from opinionsim.schedules._selectors import AskingSelector, position, selector_of
from opinionsim.schedules._similarity import SimilarityDyads
from opinionsim.schedules._snapshots import Snapshots
from opinionsim.schedules._structure import Sequential, Structure, balanced_order
from opinionsim.schedules._ties import Phase, TieChange, tie_changes, with_phases
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
    check_turn,
    first_keeper,
    n_members,
    named,
    outline,
)

__all__ = [
    "INSTRUCT",
    "MAX_SIZE",
    "MAX_STEPS",
    "MODERATE",
    "MODERATOR",
    "NO_EXTERNALS",
    "PARTICIPANT",
    "PROBE",
    "REPORT",
    "REPORT_ONCE",
    "RESPOND",
    "REVIEW",
    "SELF_REPORT",
    "TASK_VARIABLES",
    "WRITE",
    "ActSpec",
    "AdaptiveSchedule",
    "AnySchedule",
    "AskingSelector",
    "BoundedConfidenceDyads",
    "Broadcast",
    "CriticalPath",
    "Dyads",
    "Event",
    "Exposure",
    "External",
    "Feed",
    "IndependentReports",
    "Interaction",
    "InteractionField",
    "NetworkedInteraction",
    "Outcomes",
    "Phase",
    "PostsInteraction",
    "Ref",
    "RememberedReports",
    "ReportsInteraction",
    "RewiringDyads",
    "Schedule",
    "Sequential",
    "Setting",
    "SimilarityDyads",
    "Snapshots",
    "StaticSchedule",
    "SteppedInteraction",
    "Structure",
    "TieChange",
    "Turn",
    "acts_with",
    "automatic_instructions",
    "balanced_order",
    "check_schedule",
    "check_turn",
    "critical_path",
    "dropped_turns",
    "first_keeper",
    "n_members",
    "named",
    "outline",
    "position",
    "read_answers",
    "read_verdict",
    "selector_of",
    "takes_reads",
    "takes_reviews",
    "tie_changes",
    "with_events",
    "with_moderator",
    "with_phases",
    "with_probes",
    "without_turns",
]
