"""Building blocks for kernels of classic models: contacts, random words, panels, and the loops around an update."""

from opinionsim.classic._declaration import (
    CENTRED as CENTRED,
    ENDS as ENDS,
    OPINIONS as OPINIONS,
    ORDERS as ORDERS,
    PICKS as PICKS,
    SHARES as SHARES,
)
from opinionsim.classic.kernels._contacts import (
    EDGE as EDGE,
    LISTENER as LISTENER,
    SPEAKER as SPEAKER,
    Contacts as Contacts,
    Variant as Variant,
    pair_drawer as pair_drawer,
    shuffle as shuffle,
    topology as topology,
    visitor as visitor,
)
from opinionsim.classic.kernels._groups import draw_places as draw_places, panel_drawer as panel_drawer
from opinionsim.classic.kernels._pairwise import (
    block_drawer as block_drawer,
    draw_in_turn as draw_in_turn,
    pairwise_kernel as pairwise_kernel,
    vector_kernel as vector_kernel,
)
from opinionsim.classic.kernels._random import (
    draw as draw,
    fill as fill,
    index as index,
    keyed_words as keyed_words,
    new_state as new_state,
    normal as normal,
    uniform as uniform,
)
from opinionsim.classic.kernels._stepping import (
    Begin as Begin,
    Machine as Machine,
    Maker as Maker,
    Stop as Stop,
    Timing as Timing,
    array_kernel as array_kernel,
    confined as confined,
    copy as copy,
    no_room as no_room,
    step_kernel as step_kernel,
)
from opinionsim.classic.kernels._until import (
    CHANGE as CHANGE,
    CONSENSUS as CONSENSUS,
    Until as Until,
    one_number as one_number,
)
