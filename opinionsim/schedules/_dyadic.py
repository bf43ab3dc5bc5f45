"""Random dyads, in which one agent writes and another reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from opinionsim.errors import SpecError
from opinionsim.networks import AnyNetwork, Neighbours
from opinionsim.registry import part
from opinionsim.schedules._dyadic_acts import REVIEW, WRITE
from opinionsim.schedules._interaction import Setting
from opinionsim.schedules._posts import PostsInteraction
from opinionsim.schedules._turns import Schedule, Turn, named


def dyad_turns(index: int, step: int, speaker: int, listener: int) -> tuple[Turn, Turn]:
    """The two turns of a dyad, a post and its review, the first with the given index."""
    return Turn(index, step, speaker, "write"), Turn(index + 1, step, listener, "review", (index,))


def dyads_of(pairs: Iterable[Sequence[int]]) -> Iterator[Turn]:
    """The turns of one dyad (speaker, listener) per step: index 2(t-1) writes and 2(t-1)+1 reviews in step t."""
    for t, (speaker, listener) in enumerate(pairs):
        yield from dyad_turns(2 * t, t + 1, speaker, listener)


def drawn_listeners(n_agents: int, steps: int, rng: np.random.Generator) -> list[int]:
    """Draw the listeners that :class:`Dyads` draws on the complete network with the same generator.

    If an interaction without speakers draws its agents in this way, the same agent reports in each step of a block as
    in the random dyads that it is compared with. A single agent reports in every step.
    """
    if n_agents == 1:
        return [0] * steps
    listeners: list[int] = Neighbours(n_agents).draw_pairs(steps, rng)[:, 1].tolist()
    return listeners


@part("interaction", name="dyadic")
class Dyads(PostsInteraction):
    """In each step, a random speaker writes a post and a random neighbour reviews it.

    The ordered pair (speaker, listener) is drawn uniformly among the pairs that the network joins; on the complete
    graph this is Chuang et al. 2023, Algorithm 1 (A1). The review's text is the listener's report.
    """

    def turns(self, setting: Setting) -> Iterator[Turn]:
        """A ``write`` and a ``review`` per step."""
        return dyads_of(setting.neighbours.draw_pairs(self.steps_for(setting.size), setting.rng).tolist())


class GivenDyads(Schedule):
    """Dyads of given pairs instead of randomly drawn pairs.

    Parameters
    ----------
    network : Network, networkx graph or int
        Network with N >= 2 agents and at least one edge, as for :meth:`Network.of`; N means the complete graph.
    pairs : sequence of (int, int)
        The (speaker, listener) of every step; the network must join them.

    Raises
    ------
    SpecError
        If the network is not valid, or it does not join the pairs.
    """

    acts = named(WRITE, REVIEW)

    def __init__(self, network: AnyNetwork, pairs: Sequence[tuple[int, int]]) -> None:
        neighbours = Neighbours(network)
        self.n_agents, self.steps = neighbours.n, len(pairs)
        self._pairs = _pairs(pairs)
        apart = ~neighbours.join(self._pairs)
        if apart.any():
            t = int(np.argmax(apart))
            speaker, listener = self._pairs[t].tolist()
            raise SpecError(f"pairs: in step {t + 1} agent {speaker} cannot speak to agent {listener} on this network")

    def turns(self) -> Iterator[Turn]:
        """A ``write`` and a ``review`` per step."""
        return dyads_of(self._pairs.tolist())


def _pairs(given: Sequence[tuple[int, int]]) -> np.ndarray:
    """Pairs as an array (T, 2)."""
    try:
        array = np.asarray(given) if len(given) else np.empty((0, 2), dtype=np.int64)
    except ValueError:  # rows of different lengths
        array = np.empty(0)
    if array.shape != (len(given), 2) or array.dtype.kind not in "iu":
        raise SpecError(f"pairs must give one (speaker, listener), both integers, for each step; got {given!r:.80}")
    return array.astype(np.int64)
