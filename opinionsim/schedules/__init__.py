"""Turns, acts, and the schedules that generate turns.

A schedule is a dataflow graph: a turn depends only on the turns that it reads and on its agent's memory. Each
interaction is a module with one :class:`Interaction`, which defines its fields in a specification, their checks, and
the turns that it makes from a :class:`Setting`.
"""

from typing import TYPE_CHECKING

from opinionsim.foundation.lazy import on_first_use

if TYPE_CHECKING:
    from opinionsim.schedules._bounded_confidence import BoundedConfidenceDyads as BoundedConfidenceDyads
    from opinionsim.schedules._broadcast import Broadcast as Broadcast
    from opinionsim.schedules._dyadic import Dyads as Dyads, GivenDyads as GivenDyads
    from opinionsim.schedules._dyadic_acts import (
        CONSENT as CONSENT,
        INSTRUCT as INSTRUCT,
        MODERATE as MODERATE,
        PROBE as PROBE,
        REPORT as REPORT,
        REPORT_ONCE as REPORT_ONCE,
        REVIEW as REVIEW,
        SELF_REPORT as SELF_REPORT,
        WRITE as WRITE,
        act as act,
        asked_of_persons as asked_of_persons,
        read_answer as read_answer,
    )
    from opinionsim.schedules._events import (
        Event as Event,
        acts_with as acts_with,
        dropped_turns as dropped_turns,
        takes_reads as takes_reads,
        takes_reviews as takes_reviews,
        with_events as with_events,
    )
    from opinionsim.schedules._external import Exposure as Exposure, blank_messages as blank_messages
    from opinionsim.schedules._feed import Feed as Feed
    from opinionsim.schedules._independent import IndependentReports as IndependentReports
    from opinionsim.schedules._interaction import (
        GIVEN as GIVEN,
        MAX_SIZE as MAX_SIZE,
        MAX_STEPS as MAX_STEPS,
        AskedOnce as AskedOnce,
        Closing as Closing,
        Conflict as Conflict,
        Interaction as Interaction,
        InteractionField as InteractionField,
        NetworkedInteraction as NetworkedInteraction,
        Setting as Setting,
        SteppedInteraction as SteppedInteraction,
    )
    from opinionsim.schedules._moderated import (
        MODERATOR as MODERATOR,
        automatic_instructions as automatic_instructions,
        with_moderator as with_moderator,
    )
    from opinionsim.schedules._placebo import Placebo as Placebo
    from opinionsim.schedules._posts import PostsInteraction as PostsInteraction
    from opinionsim.schedules._probes import stated_on as stated_on, with_probes as with_probes
    from opinionsim.schedules._remembered import RememberedReports as RememberedReports
    from opinionsim.schedules._rewiring import RewiringDyads as RewiringDyads
    from opinionsim.schedules._selectors import (
        AskingSelector as AskingSelector,
        position as position,
        selector_of as selector_of,
    )
    from opinionsim.schedules._self_echo import SelfEcho as SelfEcho
    from opinionsim.schedules._similarity import SimilarityDyads as SimilarityDyads
    from opinionsim.schedules._source_cell import SourceCell as SourceCell
    from opinionsim.schedules._tie_changes import Phase as Phase, with_phases as with_phases
    from opinionsim.schedules._turns import (
        PARTICIPANT as PARTICIPANT,
        ActSpec as ActSpec,
        AdaptiveSchedule as AdaptiveSchedule,
        AnySchedule as AnySchedule,
        External as External,
        Outcomes as Outcomes,
        Ref as Ref,
        Schedule as Schedule,
        StaticSchedule as StaticSchedule,
        TieChange as TieChange,
        Turn as Turn,
        TurnCheck as TurnCheck,
        called as called,
        check_acts as check_acts,
        check_names as check_names,
        check_schedule as check_schedule,
        first_keeper as first_keeper,
        n_members as n_members,
        named as named,
        outline as outline,
        tie_changes as tie_changes,
        unremembered as unremembered,
        with_own as with_own,
    )
    from opinionsim.schedules._yoked import Yoked as Yoked

__getattr__, __dir__ = on_first_use(__name__)
