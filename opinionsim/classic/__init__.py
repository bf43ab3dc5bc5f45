"""Classic models of opinion dynamics on any network: compiled, seeded, with every scheme explicit.

Each model is a module that declares its parameters, its update and its transition. The contract suite tests all models,
and the documentation lists them. Names that need mesa, pandas or the engine of language models load on first use.
"""

from typing import TYPE_CHECKING

from opinionsim.foundation.lazy import on_first_use

if TYPE_CHECKING:
    from opinionsim.classic._actors import meeting_actors as meeting_actors
    from opinionsim.classic._contract import ClassicModelContract as ClassicModelContract
    from opinionsim.classic._declaration import (
        ClassicModel as ClassicModel,
        Parameter as Parameter,
        Units as Units,
    )
    from opinionsim.classic._equation_agents import Equation as Equation
    from opinionsim.classic._lorenz_agents import follower_network as follower_network, lorenz_agents as lorenz_agents
    from opinionsim.classic._mesa import ClassicOpinionModel as ClassicOpinionModel, OpinionAgent as OpinionAgent
    from opinionsim.classic._registry import MODELS as MODELS, find_model as find_model
    from opinionsim.classic._simulate import simulate as simulate
    from opinionsim.classic._simulated import Trajectories as Trajectories
    from opinionsim.classic._step import transition as transition
    from opinionsim.classic._transition import Transition as Transition
    from opinionsim.classic.figures._phase import phase_diagram as phase_diagram
    from opinionsim.classic.figures._phase_data import phase_data as phase_data
    from opinionsim.classic.figures._theory import read_theory as read_theory
    from opinionsim.classic.kernels._pairwise import pairwise_kernel as pairwise_kernel
    from opinionsim.classic.kernels._process import (
        Batch as Batch,
        Process as Process,
        Setup as Setup,
        check_names as check_names,
        set_up as set_up,
    )
    from opinionsim.classic.models._linear import (
        friedkin_johnsen_equilibrium as friedkin_johnsen_equilibrium,
        influence_matrix as influence_matrix,
    )
    from opinionsim.classic.points._sweep import sweep as sweep

__getattr__, __dir__ = on_first_use(__name__)
