"""Kernels of models in which one agent meets one other agent at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from opinionsim.classic.kernels._contacts import Variant, pair_drawer
from opinionsim.classic.kernels._influences import MEETS, meeting, turns
from opinionsim.classic.kernels._random import fill, uniform
from opinionsim.classic.kernels._stepping import Maker, step_kernel
from opinionsim.foundation.compilation import allocating, inlined

#: Events drawn ahead of their updates.
BLOCK = 512


@inlined
def _unconfined(opinion, p):
    return opinion


@allocating
def pair_buffers(opinions, contacts, p, spare):
    """Allocate arrays for a block of random words, listeners and speakers."""
    return np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.uint32), np.empty(BLOCK, np.uint32)


@inlined
def draw_in_turn(contacts, queue, done, words, listeners, speakers, chances):
    """Draw each agent's partner on the complete graph and the chance of each event, from one random word per event.

    A number in [0, 1) times the number of partners gives a partner (whole part) and a number in [0, 1) (fraction).
    """
    apart = not contacts.with_self
    size = np.float64(contacts.n - 1 if apart else contacts.n)
    for event in range(listeners.size):
        first = np.int64(queue[done + event])
        drawn = uniform(words[event]) * size
        other = np.int64(drawn)
        listeners[event], speakers[event] = first, other + np.int64(apart & (other >= first))
        chances[event] = drawn - other


@inlined
def _take_given(contacts, timing, queue, done, state, words, listeners, speakers):
    """Take the pair of the step in the place of drawn ones."""
    speakers[0], listeners[0] = queue[0], queue[1]
    return 1


def block_drawer(variant: Variant) -> Callable[..., int]:
    """``draw(contacts, timing, queue, done, state, words, listeners, speakers)``: draws the next pairs of a step.

    It returns their number: as many as there is room for, or as many as the step has left. If pairs are given, it uses
    the pair of the step and no random word.
    """
    if variant.given:
        return _take_given
    draw_pairs = pair_drawer(variant)

    def draw(contacts, timing, queue, done, state, words, listeners, speakers):
        count = min(listeners.size, timing.events - done)
        fill(state, words[:count])
        draw_pairs(contacts, queue, done, words, listeners[:count], speakers[:count])
        return count

    return inlined(draw)


def by_pairs(
    variant: Variant, meet: Callable[..., None], *, draws: bool = False
) -> tuple[Callable[..., None], Callable[..., object]]:
    """Make one step of meetings, pair after pair, and its working memory, for :func:`step_kernel`.

    Parameters
    ----------
    variant : Variant
        The case for which the kernel is made.
    meet : callable
        ``meet(opinions, before, start, i, j, p, word, state, spare)``: the meeting of listener i with speaker j.
        `state` is the state of the stream of pairs, `word` a separate random word; the rest is as for a step.
    draws : bool
        Whether `word` is used.
    """
    draw_block = block_drawer(variant)

    def step(opinions, before, start, contacts, timing, p, queue, state, spare, space):
        words, listeners, speakers = space
        done = 0
        while done < timing.events:
            count = draw_block(contacts, timing, queue, done, state, words, listeners, speakers)
            if draws:
                fill(state, words[:count])
            for event in range(count):
                i, j = np.int64(listeners[event]), np.int64(speakers[event])
                meet(opinions, before, start, i, j, p, words[event] if draws else np.uint64(0), state, spare)
            done += count

    return inlined(step), pair_buffers


def pairwise_kernel(update: Callable[..., float], *, draws: bool = False, discrete: bool = False) -> Maker:
    """Make the kernels of a model whose agents meet in pairs, with the noise, zealots and media that it declares.

    Parameters
    ----------
    update : callable
        ``update(i, j, own, other, start, p, word, spare) -> float``: the opinion of agent i after it has met agent j.
        `own` and `other` are their opinions before, `start` is i's initial opinion, `p` the parameters, `word` a random
        word and `spare` the state of a generator for rare draws.
    draws : bool
        Whether the update uses `word`.
    discrete : bool
        Whether noise moves opinions to an end of the range instead of anywhere in it.

    Returns
    -------
    callable
        As from :func:`step_kernel`. If pairs are given, as (speaker, listener) in rows of `pairs` (T, 2), each pair is
        a step, and only the listener updates.
    """

    def make(variant: Variant) -> tuple[Callable[..., None], Callable[..., object]]:
        two_sided, ((vary, fate_of, _, _), met, alone) = variant.two_sided, meeting(update, variant, discrete=discrete)

        def meet(opinions, before, start, i, j, p, word, state, spare):
            own, other = before[i], before[j]
            if vary:
                fate = fate_of(i, p, spare)
                if fate != MEETS:
                    opinions[i] = alone(fate, i, own, start[i], p, word, spare)
                    return
            opinions[i] = met(i, j, own, other, start[i], p, word, spare)
            if two_sided:
                opinions[j] = met(j, i, other, own, start[j], p, word, spare)

        return by_pairs(variant, inlined(meet), draws=draws)

    return step_kernel(make)


def vector_kernel(weight: Callable[..., float], settle: Callable[..., float] = _unconfined) -> Maker:
    """Make the kernels of a model in which vector opinions move along the line between two agents.

    Parameters
    ----------
    weight : callable
        ``weight(i, distance, p) -> float``: share of the way to another opinion, at a Euclidean distance, that agent i
        moves.
    settle : callable
        ``settle(opinion, p) -> float``: adjusts each component after the move; :func:`confined` keeps it in the range.

    Returns
    -------
    callable
        As from :func:`pairwise_kernel`, for opinions (R, N, D) and records (R, K, N, D), without media.
    """
    return step_kernel(lambda variant: by_pairs(variant, _vector_meeting(variant, weight, settle)))


def _vector_meeting(
    variant: Variant, weight: Callable[..., float], settle: Callable[..., float]
) -> Callable[..., None]:
    """The turn of agent i, in which it meets agent j, as :func:`by_pairs` takes it."""
    two_sided, (vary, fate_of, jump, rests) = variant.two_sided, turns(variant)

    def meet(opinions, before, start, i, j, p, word, state, spare):
        if vary and fate_of(i, p, spare) != MEETS:
            if not rests(i, p):
                for d in range(opinions.shape[1]):
                    opinions[i, d] = jump(i, p, spare)
            return
        squares = 0.0
        for d in range(opinions.shape[1]):
            squares += (before[j, d] - before[i, d]) ** 2
        distance = np.sqrt(squares)
        forth, back = weight(i, distance, p), weight(j, distance, p)
        for d in range(opinions.shape[1]):
            gap = before[j, d] - before[i, d]
            if not rests(i, p):
                opinions[i, d] = settle(before[i, d] + forth * gap, p)
            if two_sided and not rests(j, p):
                opinions[j, d] = settle(before[j, d] - back * gap, p)

    return inlined(meet)
