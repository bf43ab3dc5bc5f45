"""Random dyads: one agent writes, another reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from opinionsim.errors import SpecError
from opinionsim.networks import AnyNetwork, Neighbours
from opinionsim.registry import part
from opinionsim.schedules._acts import REVIEW, WRITE
from opinionsim.schedules._interaction import Setting
from opinionsim.schedules._posts import PostsInteraction
from opinionsim.schedules._turns import Schedule, Turn, named


def dyad_turns(index: int, step: int, speaker: int, listener: int) -> tuple[Turn, Turn]:
    """The two turns of a dyad, a post and its review, the first with the given index."""
    return Turn(index, step, speaker, "write"), Turn(index + 1, step, listener, "review", (index,))


def _given_pairs(pairs: Sequence[tuple[int, int]], steps: int, neighbours: Neighbours) -> np.ndarray:
    """Pairs given by the user as an array (T, 2), checked against the network."""
    try:
        array = np.asarray(pairs) if len(pairs) else np.empty((0, 2), dtype=np.int64)
    except ValueError:  # rows of different lengths
        array = np.empty(0)
    if array.shape != (steps, 2) or array.dtype.kind not in "iu":
        raise SpecError(
            f"pairs must give one (speaker, listener), both integers, for each of the {steps} steps; got {pairs!r:.80}"
        )
    apart = ~neighbours.join(array.astype(np.int64))
    if apart.any():
        t = int(np.argmax(apart))
        speaker, listener = array[t].tolist()
        raise SpecError(f"pairs: in step {t + 1} agent {speaker} cannot speak to agent {listener} on this network")
    return array.astype(np.int64)


class Dyads(Schedule):
    """Random ordered pairs: in each step a speaker writes a post and a listener reviews it.

    Each step draws an ordered pair (speaker, listener) uniformly among the pairs the network joins; on the
    complete graph this is Chuang et al. 2023, Algorithm 1 (A1). Each step has two turns, ``write`` and
    ``review``; the review's text is the listener's report.

    Parameters
    ----------
    network : Network, networkx graph or int
        On N >= 2 agents and with an edge, as :meth:`Network.of` takes it; N stands for the complete graph.
    steps : int
        T >= 0.
    rng : numpy.random.Generator, optional
        Draws the pairs; needed unless `pairs` is given.
    pairs : sequence of (int, int), optional
        The (speaker, listener) of every step instead of drawn ones; the network must join them.

    Raises
    ------
    SpecError
        If T < 0, the network is not as described, or the pairs do not fit it.

    Attributes
    ----------
    pairs : ndarray (T, 2) of int
        The speaker and the listener of every step.
    """

    acts = named(WRITE, REVIEW)

    def __init__(
        self,
        network: AnyNetwork,
        steps: int,
        rng: np.random.Generator | None = None,
        pairs: Sequence[tuple[int, int]] | None = None,
    ) -> None:
        DyadicInteraction.checked(steps=steps)
        neighbours = Neighbours(network)
        self.n_agents = neighbours.n
        self.steps = steps
        if pairs is not None:
            self.pairs = _given_pairs(pairs, steps, neighbours)
        elif rng is not None:
            self.pairs = neighbours.draw_pairs(steps, rng)
        else:
            raise SpecError("Dyads needs either rng or pairs")

    def turns(self) -> Iterator[Turn]:
        """All turns: index 2(t-1) writes and 2(t-1)+1 reviews in step t."""
        for t, (speaker, listener) in enumerate(self.pairs.tolist()):
            yield from dyad_turns(2 * t, t + 1, speaker, listener)


def drawn_listeners(n_agents: int, steps: int, rng: np.random.Generator) -> np.ndarray:
    """The listeners that :class:`Dyads` draws on the complete network with the same generator, shape (steps,).

    A schedule without a speaker that draws its agents so lets in each step of a block report whoever reports in the
    random dyads that it is compared with. A single agent reports in every step.
    """
    if n_agents == 1:
        return np.zeros(steps, dtype=np.int64)
    return Neighbours(n_agents).draw_pairs(steps, rng)[:, 1]


@part("interaction", name="dyadic")
class DyadicInteraction(PostsInteraction):
    """In each step a random speaker writes a post and a random neighbour reviews it."""

    def arranged(self, setting: Setting) -> Dyads:
        """Random dyads on the run's network."""
        return Dyads(setting.joined, self.steps_for(setting.size), setting.rng)
