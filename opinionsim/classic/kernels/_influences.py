"""Influences on opinions in addition to other agents: noise, zealots and media, the same in every model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from opinionsim.classic._declaration import Parameter
from opinionsim.classic._transition import Received, Transition
from opinionsim.classic.kernels._contacts import Variant
from opinionsim.classic.kernels._random import draw, index, uniform
from opinionsim.foundation.compilation import at, inlined

_TURN = "probability that an agent whose turn it is takes {} instead of updating"
#: Noise, or free will, of models of any opinion and of models of states.
NOISE = Parameter(0.0, _TURN.format("a random opinion of the range"), r"\eta", "[0, 1]", idle=True)
STATE_NOISE = Parameter(0.0, _TURN.format("an end of the range at random"), r"\eta", "[0, 1]", idle=True)
BIAS = Parameter(0.5, "probability that an end taken at random is the upper one", "b", "[0, 1]", beside="noise")
ZEALOT = Parameter(0, "1 for an agent that never changes, 0 for all others", "z_i", "[0, 1]", idle=True)
MEDIA = Parameter(
    0.0, "probability that an agent whose turn it is meets a medium instead of an agent", r"p_m", "[0, 1]", idle=True
)
MEDIA_OPINIONS = Parameter(
    (), "opinions of the media, each drawn with equal probability", r"x_m", opinions=True, beside="media"
)

#: What happens in a turn: the agent meets another, comes to an opinion by itself, or meets a medium.
MEETS, ALONE, MEDIUM = 0, 1, 2


class Turns(NamedTuple):
    """Functions that kernels call for an agent's turn in a variant.

    Attributes
    ----------
    vary : bool
        Whether anything other than meetings of agents can happen.
    fate : callable
        ``fate(i, p, spare)``: MEETS, ALONE or MEDIUM.
    jump : callable
        ``jump(i, p, spare)``: a random opinion, or a random end of the range.
    rests : callable
        ``rests(i, p)``: whether an agent is a zealot.
    """

    vary: bool
    fate: Callable[..., Any]
    jump: Callable[..., Any]
    rests: Callable[..., Any]


@inlined
def _anywhere(i, p, spare):
    return p.limits[0] + (p.limits[1] - p.limits[0]) * uniform(draw(spare))


@inlined
def _at_an_end(i, p, spare):
    return p.limits[1] if uniform(draw(spare)) < at(p.bias, i) else p.limits[0]


@inlined
def _zealot(i, p):
    return at(p.zealot, i) == 1


@inlined
def _nobody(i, p):
    return False


@inlined
def medium_of(p, spare):
    """Return the opinion of a random medium."""
    return p.media_opinions[index(draw(spare), p.media_opinions.size)]


def turns(variant: Variant, *, discrete: bool = False) -> Turns:
    """Make the functions for turns; random opinions come from the range or, if `discrete`, from its ends."""
    noisy, mediated = variant.option("noise"), variant.option("media")

    def fate(i, p, spare):
        # From the second stream, so that who meets whom is the same without.
        if noisy and uniform(draw(spare)) < at(p.noise, i):
            return ALONE
        if mediated and uniform(draw(spare)) < at(p.media, i):
            return MEDIUM
        return MEETS

    rests = _zealot if variant.option("zealot") else _nobody
    return Turns(noisy or mediated, inlined(fate), _at_an_end if discrete else _anywhere, rests)


class Meeting(NamedTuple):
    """Functions that kernels call for an update by pairwise meetings, with all influences of a variant.

    Attributes
    ----------
    turns : Turns
        Functions for turns.
    update : callable
        The update if agents meet, which zealots ignore.
    alone : callable
        ``alone(fate, i, own, start, p, word, spare)``: the opinion of agent i after a turn without another agent.
    """

    turns: Turns
    update: Callable[..., Any]
    alone: Callable[..., Any]


def meeting(update: Callable[..., float], variant: Variant, *, discrete: bool = False) -> Meeting:
    """Add the noise, zealots and media of a variant to an update for :func:`pairwise_kernel`."""
    found = turns(variant, discrete=discrete)
    rests, jump, noisy, mediated = found.rests, found.jump, variant.option("noise"), variant.option("media")

    def steadfast(i, j, own, other, start, p, word, spare):
        return own if rests(i, p) else update(i, j, own, other, start, p, word, spare)

    kept = inlined(steadfast) if variant.option("zealot") else update

    def alone(fate, i, own, start, p, word, spare):
        opinion = own
        if noisy and fate == ALONE and not rests(i, p):
            opinion = jump(i, p, spare)
        if mediated and fate == MEDIUM:
            opinion = kept(i, i, own, medium_of(p, spare), start, p, word, spare)
        return opinion

    return Meeting(found, kept, inlined(alone))


def heeding(update: Callable[..., float], variant: Variant, *, discrete: bool = False) -> Callable[..., float]:
    """Add noise, zealots and media to an update for given meetings; the result is the listener's whole turn."""
    (vary, fate_of, _, _), kept, alone = meeting(update, variant, discrete=discrete)
    if not vary:
        return kept

    def heed(i, j, own, other, start, p, word, spare):
        fate = fate_of(i, p, spare)
        if fate != MEETS:
            return alone(fate, i, own, start, p, word, spare)
        return kept(i, j, own, other, start, p, word, spare)

    return inlined(heed)


_Rule = Callable[[Received, Any], Transition | np.ndarray]


def disturbed(transition: _Rule, *, discrete: bool = False) -> _Rule:
    """Add noise, zealots and media to the transition of a model, as a mixture.

    Parameters
    ----------
    transition : callable
        As in :class:`ClassicModel`; its point masses sum to 1.
    discrete : bool
        Whether random opinions are the ends of the range, in the model's units.
    """

    def mixed(received: Received, p: Any) -> Transition | np.ndarray:
        size = received.own.size

        def each(name: str) -> np.ndarray:
            return np.broadcast_to(np.asarray(getattr(p, name, 0.0), dtype=float), size)[:, None]

        noise, media, free = each("noise"), each("media"), 1.0 - each("zealot")
        if not (noise.any() or media.any() or (free < 1).any()):
            return transition(received, p)
        masses = [(1.0 - media, received.said)]
        if media.any():
            masses += [(media / p.media_opinions.size, np.full(received.said.shape, said)) for said in p.media_opinions]
        values, probabilities = [received.own[:, None]], [1.0 - free]
        for share, said in masses:
            found = transition(received._replace(said=said), p)
            if not isinstance(found, Transition):
                found = Transition(found[:, None], np.ones((size, 1)))
            values.append(found.values)
            probabilities.append(free * (1.0 - noise) * share * found.probabilities)
        low, high = received.limits
        if discrete:
            values.append(np.broadcast_to([low, high], (size, 2)))
            probabilities.append(free * noise * np.concatenate([1.0 - each("bias"), each("bias")], axis=1))
        even = (free * noise)[:, 0] / (high - low)

        def density(opinions: np.ndarray) -> np.ndarray:
            return np.where((opinions >= low) & (opinions <= high), even, 0.0)

        smooth = not discrete and bool(noise.any())
        return Transition(np.hstack(values), np.hstack(probabilities), density if smooth else None)

    return mixed
