"""What the kernels of all models share: how long they run, and how they begin, end and record a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from opinionsim.classic._contacts import SYNCHRONOUS, order_queue
from opinionsim.compilation import inlined


class Timing(NamedTuple):
    """How long a kernel runs, in which order agents update, and when it records.

    Attributes
    ----------
    steps : int
        Steps: of as many updates as there are agents, or of one recorded pair each.
    events : int
        Elementary updates a step.
    every : int
        Steps between records.
    order : int
        0 random with replacement, 1 random permutation, 2 sequential, 3 synchronous.
    two_sided : bool
        Whether both of a pair update.
    """

    steps: int
    events: int
    every: int
    order: int
    two_sided: bool


@inlined
def confined(opinion, p):
    """An opinion, or the end of the range that it has passed."""
    return min(max(opinion, p.limits[0]), p.limits[1])


@inlined
def start_step(opinions, before, contacts, timing, state, queue):
    """Lay down the order of updates of a step, and, where all update at once, the opinions that they start from."""
    if timing.order == SYNCHRONOUS:
        before[:] = opinions
    order_queue(contacts, timing.order, state, queue)


@inlined
def finish_step(opinions, step, timing, record):
    """Record opinions if it is time to."""
    if (step + 1) % timing.every == 0:
        # One by one: assigned as a whole, numbers that are shortened take twice as long.
        moment, states = record[(step + 1) // timing.every - 1].reshape(-1), opinions.reshape(-1)
        for place in range(states.size):
            moment[place] = states[place]


@inlined
def _no_room(opinions, contacts, p, spare):
    return opinions


def step_kernel(step: Callable[..., None], room: Callable[..., Any] = _no_room) -> Callable[..., None]:
    """The kernel of a model that is written as one step.

    Parameters
    ----------
    step : callable
        ``step(opinions, before, contacts, timing, p, queue, state, spare, space)``: changes `opinions` in place.
        `before` are those that updates start from: a copy, where all update at once, else `opinions` themselves.
        `queue` holds the agents in the order in which they update, where it is not random with replacement.
    room : callable
        ``room(opinions, contacts, p, spare)``: the arrays that each step is handed as its `space`.

    Returns
    -------
    callable
        A kernel as :func:`pairwise_kernel` makes it.
    """

    def kernel(opinions, start, contacts, timing, p, pairs, state, spare, record):
        before = opinions.copy() if timing.order == 3 else opinions
        queue = contacts.firsts.copy()
        space = room(opinions, contacts, p, spare)
        for number in range(timing.steps):
            start_step(opinions, before, contacts, timing, state, queue)
            step(opinions, before, contacts, timing, p, queue, state, spare, space)
            finish_step(opinions, number, timing, record)

    return kernel


def carry_forward(
    opinions: np.ndarray,
    timing: Timing,
    record: np.ndarray,
    step: Callable[[np.ndarray], np.ndarray],
    low: Any,
    high: Any,
) -> None:
    """Carry opinions forward by ``step(opinions) -> opinions`` outside compiled code, and record them.

    `low` and `high` are the bounds that rounding must not take opinions beyond; `step` returns a new array.
    """
    states = opinions
    for done in range(1, timing.steps + 1):
        states = step(states)
        states.clip(low, high, out=states)
        if done % timing.every == 0:
            record[done // timing.every - 1] = states
    opinions[:] = states
