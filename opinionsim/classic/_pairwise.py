"""The kernels of models in which one agent meets one other at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from opinionsim.classic._contacts import draw_pairs
from opinionsim.classic._random import fill, uniform
from opinionsim.classic._stepping import finish_step, start_step
from opinionsim.compilation import inlined

#: Events drawn ahead of their updates.
BLOCK = 512


@inlined
def _unconfined(opinion, p):
    return opinion


@inlined
def draw_block(contacts, timing, given, queue, done, state, words, listeners, speakers):
    """Draw the next pairs of a step, or take the one that is `given`; returns how many they are.

    `words` has room for one word a pair, which is used up, or for another one each behind these.
    """
    count = min(listeners.size, timing.events - done)
    fill(state, words[: count * (words.size // listeners.size)])
    if given.size > 0:
        speakers[0], listeners[0] = given[0], given[1]
    else:
        draw_pairs(contacts, timing.order, queue, done, words, listeners[:count], speakers[:count])
    return count


@inlined
def draw_in_turn(contacts, queue, done, words, listeners, speakers, chances):
    """Draw whom each in turn meets on the complete graph, and the chance of each event, from one random word each.

    A number in [0, 1) times the number of partners is a partner and, behind the point, a number in [0, 1) again.
    """
    apart = not contacts.with_self
    size = np.float64(contacts.n - 1 if apart else contacts.n)
    for event in range(listeners.size):
        first = np.int64(queue[done + event])
        drawn = uniform(words[event]) * size
        other = np.int64(drawn)
        listeners[event], speakers[event] = first, other + np.int64(apart & (other >= first))
        chances[event] = drawn - other


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
        before = opinions.copy() if timing.order == 3 else opinions
        queue, words = contacts.firsts.copy(), np.empty(per_event * BLOCK, dtype=np.uint64)
        listeners, speakers = np.empty(BLOCK, dtype=np.uint32), np.empty(BLOCK, dtype=np.uint32)
        for step in range(timing.steps):
            start_step(opinions, before, contacts, timing, state, queue)
            given, done = pairs[step : step + 1].reshape(-1), 0
            while done < timing.events:
                count = draw_block(contacts, timing, given, queue, done, state, words, listeners, speakers)
                for event in range(count):
                    i, j = np.int64(listeners[event]), np.int64(speakers[event])
                    own, other = before[i], before[j]
                    word = words[count + event] if per_event == 2 else np.uint64(0)
                    opinions[i] = update(i, j, own, other, start[i], p, word, spare)
                    if timing.two_sided:
                        opinions[j] = update(j, i, other, own, start[j], p, word, spare)
                done += count
            finish_step(opinions, step, timing, record)

    return kernel


def vector_kernel(weight: Callable[..., float], settle: Callable[..., float] = _unconfined) -> Callable[..., None]:
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
        A kernel as :func:`pairwise_kernel` makes it, with opinions (N, D) and records (K, N, D).
    """

    def kernel(opinions, start, contacts, timing, p, pairs, state, spare, record):
        before = opinions.copy() if timing.order == 3 else opinions
        queue, words = contacts.firsts.copy(), np.empty(BLOCK, dtype=np.uint64)
        listeners, speakers = np.empty(BLOCK, dtype=np.uint32), np.empty(BLOCK, dtype=np.uint32)
        for step in range(timing.steps):
            start_step(opinions, before, contacts, timing, state, queue)
            given, done = pairs[step : step + 1].reshape(-1), 0
            while done < timing.events:
                count = draw_block(contacts, timing, given, queue, done, state, words, listeners, speakers)
                for event in range(count):
                    i, j = np.int64(listeners[event]), np.int64(speakers[event])
                    squares = 0.0
                    for d in range(opinions.shape[1]):
                        squares += (before[j, d] - before[i, d]) ** 2
                    distance = np.sqrt(squares)
                    forth, back = weight(i, distance, p), weight(j, distance, p)
                    for d in range(opinions.shape[1]):
                        gap = before[j, d] - before[i, d]
                        opinions[i, d] = settle(before[i, d] + forth * gap, p)
                        if timing.two_sided:
                            opinions[j, d] = settle(before[j, d] - back * gap, p)
                done += count
            finish_step(opinions, step, timing, record)

    return kernel
