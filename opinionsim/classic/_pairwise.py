"""The kernel of models in which one agent meets one other at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from opinionsim.classic._contacts import draw_pairs, order_queue
from opinionsim.classic._random import fill
from opinionsim.compilation import inlined

__all__ = ["Timing", "confined", "pairwise_kernel", "vector_kernel"]

#: Events drawn ahead of their updates.
_BLOCK = 512


class Timing(NamedTuple):
    """How long a kernel runs, in which order agents update, and when it records."""

    steps: int
    """Steps: sweeps, or one recorded pair each."""
    events: int
    """Elementary updates a step."""
    every: int
    """Steps between records."""
    order: int
    """0 random with replacement, 1 random permutation, 2 sequential, 3 synchronous."""
    two_sided: bool
    """Whether both of a pair update."""


@inlined
def confined(opinion, p):
    """An opinion, or the end of the range that it has passed."""
    return min(max(opinion, p.limits[0]), p.limits[1])


@inlined
def _unconfined(opinion, p):
    return opinion


def pairwise_kernel(update: Callable[..., float], *, draws: bool = False) -> Callable[..., None]:
    """The kernel of a model whose agents meet in pairs.

    Parameters
    ----------
    update : callable
        ``update(i, j, own, other, start, p, word, spare) -> float``: the opinion of agent i after it has met
        agent j. `own` and `other` are their opinions before, `start` is i's initial opinion, `p` the parameters,
        `word` a random word and `spare` the state of a generator for what is seldom drawn.
    draws : bool
        Whether `word` is used.

    Returns
    -------
    callable
        ``kernel(opinions, start, contacts, timing, p, pairs, state, spare, record)``: carries `opinions` (N,)
        forward in place and fills `record` (K, N). `pairs` (T, 2) of (speaker, listener) takes the place of
        drawn pairs when it is not empty.
    """
    per_event = 2 if draws else 1

    def kernel(opinions, start, contacts, timing, p, pairs, state, spare, record):
        synchronous = timing.order == 3
        before = opinions.copy() if synchronous else opinions
        queue = contacts.firsts.copy()
        words = np.empty(per_event * _BLOCK, dtype=np.uint64)
        listeners, speakers = np.empty(_BLOCK, dtype=np.uint32), np.empty(_BLOCK, dtype=np.uint32)
        given = pairs.shape[0] > 0
        for step in range(timing.steps):
            if synchronous:
                before[:] = opinions
            order_queue(contacts, timing.order, state, queue)
            done = 0
            while done < timing.events:
                count = min(_BLOCK, timing.events - done)
                if given:
                    speakers[0], listeners[0] = pairs[step, 0], pairs[step, 1]
                    if per_event == 2:
                        fill(state, words[1:2])
                else:
                    fill(state, words[: per_event * count])
                    draw_pairs(contacts, timing.order, queue, done, words, listeners[:count], speakers[:count])
                for event in range(count):
                    i, j = np.int64(listeners[event]), np.int64(speakers[event])
                    own, other = before[i], before[j]
                    word = words[count + event] if per_event == 2 else np.uint64(0)
                    opinions[i] = update(i, j, own, other, start[i], p, word, spare)
                    if timing.two_sided:
                        opinions[j] = update(j, i, other, own, start[j], p, word, spare)
                done += count
            if (step + 1) % timing.every == 0:
                # One by one: assigned as a whole, numbers that are shortened take twice as long.
                moment = record[(step + 1) // timing.every - 1]
                for agent in range(opinions.size):
                    moment[agent] = opinions[agent]

    return kernel


def vector_kernel(weight: Callable[..., float], settle: Callable[..., float] = _unconfined) -> Callable[..., Any]:
    """The kernel of a model of vector opinions that move along the line between two agents.

    Parameters
    ----------
    weight : callable
        ``weight(i, distance, p) -> float``: the part of the way to another opinion, at a Euclidean distance, that
        agent i goes.
    settle : callable
        ``settle(opinion, p) -> float``: what becomes of each component; :func:`confined` keeps it in the range.

    Returns
    -------
    callable
        As of :func:`pairwise_kernel`, with opinions (N, D) and records (K, N, D).
    """

    def kernel(opinions, start, contacts, timing, p, pairs, state, spare, record):
        synchronous = timing.order == 3
        before = opinions.copy() if synchronous else opinions
        queue = contacts.firsts.copy()
        words = np.empty(_BLOCK, dtype=np.uint64)
        listeners, speakers = np.empty(_BLOCK, dtype=np.uint32), np.empty(_BLOCK, dtype=np.uint32)
        given = pairs.shape[0] > 0
        dimensions = opinions.shape[1]
        for step in range(timing.steps):
            if synchronous:
                before[:] = opinions
            order_queue(contacts, timing.order, state, queue)
            done = 0
            while done < timing.events:
                count = min(_BLOCK, timing.events - done)
                if given:
                    speakers[0], listeners[0] = pairs[step, 0], pairs[step, 1]
                else:
                    fill(state, words[:count])
                    draw_pairs(contacts, timing.order, queue, done, words, listeners[:count], speakers[:count])
                for event in range(count):
                    i, j = np.int64(listeners[event]), np.int64(speakers[event])
                    squares = 0.0
                    for d in range(dimensions):
                        squares += (before[j, d] - before[i, d]) ** 2
                    distance = np.sqrt(squares)
                    forth, back = weight(i, distance, p), weight(j, distance, p)
                    for d in range(dimensions):
                        gap = before[j, d] - before[i, d]
                        opinions[i, d] = settle(before[i, d] + forth * gap, p)
                        if timing.two_sided:
                            opinions[j, d] = settle(before[j, d] - back * gap, p)
                done += count
            if (step + 1) % timing.every == 0:
                record[(step + 1) // timing.every - 1] = opinions

    return kernel
