"""Classic opinion dynamics on any network: the models of the field, compiled, seeded, with every scheme explicit.

To add a model, write a module with its parameters, its update and its transition, and name it in the registry;
the contract suite then tests it, and the documentation lists it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from opinionsim.classic._initial import draw_initial, draw_opinions
from opinionsim.classic._linear import friedkin_johnsen_equilibrium, influence_matrix
from opinionsim.classic._lorenz_agents import follower_network, lorenz_agents
from opinionsim.classic._model import ClassicModel, Parameter, Units
from opinionsim.classic._process import Batch, Process, Setup, check_names, check_opinions, set_up
from opinionsim.classic._registry import MODELS, find_model
from opinionsim.classic._simulate import simulate
from opinionsim.classic._step import transition
from opinionsim.classic._trajectories import Trajectories
from opinionsim.classic._transition import Received, Transition

if TYPE_CHECKING:
    from opinionsim.classic._actors import RecordedActor, meeting_actors
    from opinionsim.classic._mesa import ClassicOpinionModel, OpinionAgent
    from opinionsim.classic._sweep import sweep

__all__ = ["MODELS", "Batch", "ClassicModel", "ClassicOpinionModel", "OpinionAgent", "Parameter", "Process",
           "Received", "RecordedActor", "Setup", "Trajectories", "Transition", "Units", "check_names",
           "check_opinions", "draw_initial", "draw_opinions", "find_model", "follower_network",
           "friedkin_johnsen_equilibrium", "influence_matrix", "lorenz_agents", "meeting_actors", "set_up",
           "simulate", "sweep", "transition"]  # fmt: skip

#: Names whose modules load mesa, pandas or the engine of language models, and are loaded when asked for.
_LATER = {"ClassicOpinionModel": "_mesa", "OpinionAgent": "_mesa", "RecordedActor": "_actors",
          "meeting_actors": "_actors", "sweep": "_sweep"}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
