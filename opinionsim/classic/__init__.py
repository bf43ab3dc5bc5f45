"""Classic opinion dynamics on any network: the models of the field, compiled, seeded, with every scheme explicit.

To add a model, write a module with its parameters, its update and its transition, and name it in the registry;
the contract suite then tests it, and the documentation lists it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from opinionsim.classic._initial import draw_initial as draw_initial, draw_opinions as draw_opinions
from opinionsim.classic._lorenz_agents import follower_network as follower_network, lorenz_agents as lorenz_agents
from opinionsim.classic._model import ClassicModel as ClassicModel, Parameter as Parameter, Units as Units
from opinionsim.classic._registry import MODELS as MODELS, find_model as find_model
from opinionsim.classic._simulate import simulate as simulate
from opinionsim.classic._step import transition as transition
from opinionsim.classic._trajectories import Trajectories as Trajectories
from opinionsim.classic._transition import Received as Received, Transition as Transition
from opinionsim.classic.kernels._process import (
    Batch as Batch,
    Process as Process,
    Setup as Setup,
    check_names as check_names,
    check_opinions as check_opinions,
    set_up as set_up,
)
from opinionsim.classic.models._linear import (
    friedkin_johnsen_equilibrium as friedkin_johnsen_equilibrium,
    influence_matrix as influence_matrix,
)

if TYPE_CHECKING:
    from opinionsim.classic._actors import RecordedActor as RecordedActor, meeting_actors as meeting_actors
    from opinionsim.classic._mesa import ClassicOpinionModel as ClassicOpinionModel, OpinionAgent as OpinionAgent
    from opinionsim.classic.points._sweep import sweep as sweep


#: Names whose modules load mesa, pandas or the engine of language models, and are loaded when asked for.
_LATER = {"ClassicOpinionModel": "_mesa", "OpinionAgent": "_mesa", "RecordedActor": "_actors",
          "meeting_actors": "_actors", "sweep": "points._sweep"}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
