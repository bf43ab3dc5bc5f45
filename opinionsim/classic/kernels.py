"""What kernels of classic models are made of: contacts, random words, panels, and the loops around an update."""

from opinionsim.classic._contacts import EDGE, LISTENER, SPEAKER, Contacts, draw_pairs, meet, order_queue, visited
from opinionsim.classic._groups import panel
from opinionsim.classic._model import CENTRED, ENDS, OPINIONS, ORDERS, PICKS, SHARES
from opinionsim.classic._pairwise import draw_in_turn, pairwise_kernel, vector_kernel
from opinionsim.classic._random import draw, fill, index, new_state, normal, uniform
from opinionsim.classic._stepping import Timing, confined, finish_step, start_step, step_kernel

__all__ = ["CENTRED", "EDGE", "ENDS", "LISTENER", "OPINIONS", "ORDERS", "PICKS", "SHARES", "SPEAKER", "Contacts",
           "Timing", "confined", "draw", "draw_in_turn", "draw_pairs", "fill", "finish_step", "index", "meet",
           "new_state", "normal", "order_queue", "pairwise_kernel", "panel", "start_step", "step_kernel", "uniform",
           "vector_kernel", "visited"]  # fmt: skip
