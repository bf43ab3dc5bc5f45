"""The engine runs any schedule out of order, with exactly the same result as a sequential run.

A turn starts as soon as everything it depends on is available. Among turns that wait for a call slot, the one with
the longest remaining path goes first. The engine itself handles actors, turns and messages. Members of the cast call
chat models, and the simulation measures opinions.
"""

from typing import TYPE_CHECKING

from opinionsim.foundation.lazy import on_first_use

if TYPE_CHECKING:
    from opinionsim.engine._cast_members import (
        Casting as Casting,
        Direction as Direction,
        Member as Member,
        OnRecord as OnRecord,
        PersonaActor as PersonaActor,
        check_cast as check_cast,
        conditions_of_others as conditions_of_others,
    )
    from opinionsim.engine._contracts import (
        Actor as Actor,
        Publish as Publish,
        Rate as Rate,
        Witness as Witness,
        calls_per_event as calls_per_event,
    )
    from opinionsim.engine._critical_path import CriticalPath as CriticalPath, critical_path as critical_path
    from opinionsim.engine._engine import Engine as Engine, relayed as relayed
    from opinionsim.engine._simulation import Simulation as Simulation, TurnResult as TurnResult

__getattr__, __dir__ = on_first_use(__name__)
