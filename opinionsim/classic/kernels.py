"""What kernels of classic models are made of: contacts, random words, panels, and the loops around an update."""

from opinionsim.classic._contacts import (
    EDGE,
    LISTENER,
    SPEAKER,
    Contacts,
    Topology,
    Variant,
    pair_drawer,
    shuffle,
    topology,
    visitor,
)
from opinionsim.classic._groups import draw_places, panel_drawer
from opinionsim.classic._model import CENTRED, ENDS, OPINIONS, ORDERS, PICKS, SHARES
from opinionsim.classic._pairwise import block_drawer, draw_in_turn, pairwise_kernel, vector_kernel
from opinionsim.classic._random import draw, fill, index, keyed_words, new_state, normal, uniform
from opinionsim.classic._stepping import (
    Begin,
    Machine,
    Maker,
    Stop,
    Timing,
    array_kernel,
    confined,
    copy,
    no_room,
    step_kernel,
)
from opinionsim.classic._until import CHANGE, CONSENSUS, Until, one_number

__all__ = ["CENTRED", "CHANGE", "CONSENSUS", "EDGE", "ENDS", "LISTENER", "OPINIONS", "ORDERS", "PICKS", "SHARES",
           "SPEAKER", "Begin", "Contacts", "Machine", "Maker", "Stop", "Timing", "Topology", "Until", "Variant",
           "array_kernel", "block_drawer", "confined", "copy", "draw", "draw_in_turn", "draw_places", "fill", "index",
           "keyed_words", "new_state", "no_room", "normal", "one_number", "pair_drawer", "pairwise_kernel",
           "panel_drawer", "shuffle", "step_kernel", "topology", "uniform", "vector_kernel",
           "visitor"]  # fmt: skip
