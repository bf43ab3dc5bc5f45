"""One agent writes, one or several read: random dyads and broadcasts on a network."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence

import networkx as nx
import numpy as np

from opinionsim.errors import SpecError
from opinionsim.schedules._networks import Neighbours
from opinionsim.schedules._turns import NO_EXTERNALS, Outcomes, Turn

__all__ = ["Broadcast", "Dyads", "SimilarityDyads"]


def _neighbours(network: nx.Graph | int, steps: int) -> Neighbours:
    """Who may meet, once the sizes are known to be possible."""
    if steps < 0:
        raise SpecError(f"interaction.steps must be at least 0; got {steps}")
    return Neighbours(network)


def _given_pairs(pairs: Sequence[tuple[int, int]], steps: int, neighbours: Neighbours) -> np.ndarray:
    """The pairs of a user as an array (T, 2), checked against the network."""
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


class Dyads:
    """Random ordered pairs: in each step a speaker writes a post and a listener reviews it.

    Each step draws an ordered pair (speaker, listener) uniformly among the pairs the network joins; on the
    complete graph this is Chuang et al. 2023, Algorithm 1 (A1). Each step has two turns, ``write`` and
    ``review``; the review's text is the listener's report.

    Parameters
    ----------
    network : networkx.Graph or int
        A graph on nodes 0..N-1, N >= 2, with at least one edge; or N for the complete graph.
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

    def __init__(
        self,
        network: nx.Graph | int,
        steps: int,
        rng: np.random.Generator | None = None,
        pairs: Sequence[tuple[int, int]] | None = None,
    ) -> None:
        neighbours = _neighbours(network, steps)
        self.n_agents = neighbours.n
        self.steps = steps
        self.externals = NO_EXTERNALS
        if pairs is not None:
            self.pairs = _given_pairs(pairs, steps, neighbours)
        elif rng is not None:
            self.pairs = neighbours.draw_pairs(steps, rng)
        else:
            raise SpecError("Dyads needs either rng or pairs")

    def turns(self) -> Iterator[Turn]:
        """All turns: index 2(t-1) writes and 2(t-1)+1 reviews in step t."""
        for t, (speaker, listener) in enumerate(self.pairs.tolist()):
            yield Turn(2 * t, t + 1, speaker, "write")
            yield Turn(2 * t + 1, t + 1, listener, "review", (2 * t,))


class Broadcast:
    """In each step one agent writes a post and all who hear it review it.

    The speaker is drawn uniformly among the agents that somebody hears. Chuang et al. 2023 name this as
    future work (A1).

    Parameters
    ----------
    network : networkx.Graph or int
        A graph on nodes 0..N-1, N >= 2, with at least one edge; or N for the complete graph.
    steps : int
        T >= 0.
    rng : numpy.random.Generator
        Draws the speakers.
    """

    def __init__(self, network: nx.Graph | int, steps: int, rng: np.random.Generator) -> None:
        self._neighbours = _neighbours(network, steps)
        self.n_agents = self._neighbours.n
        self.steps = steps
        self.externals = NO_EXTERNALS
        self.speakers = rng.choice(self._neighbours.can_speak, steps)

    def turns(self) -> Iterator[Turn]:
        """All turns: in each step the ``write``, then one ``review`` a listener in ascending order."""
        index = 0
        for step, speaker in enumerate(self.speakers.tolist(), 1):
            post, audience = index, self._neighbours.audience(speaker).tolist()
            yield Turn(post, step, speaker, "write")
            for offset, listener in enumerate(audience, 1):
                yield Turn(post + offset, step, listener, "review", (post,))
            index += 1 + len(audience)


class SimilarityDyads:
    """Dyads whose speaker is chosen by similarity of opinion: an adaptive schedule.

    In each step a listener i is drawn uniformly among the agents that hear somebody, and a speaker j among
    those it hears with probability proportional to exp(-strength * |o_i - o_j|), where o is an agent's last
    measured opinion, the assigned one until then. The draw for a step awaits only the opinions it needs.

    Parameters
    ----------
    network : networkx.Graph or int
        A graph on nodes 0..N-1, N >= 2, with at least one edge; or N for the complete graph.
    steps : int
        T >= 0.
    strength : float
        >= 0, per scale unit; 0 chooses uniformly.
    opinions : sequence of float, length N
        Where agents start; NaN for an agent assigned none, who counts as far away as the others do on average.
    seed : int
        Of the draws; the same draws at every call.
    """

    def __init__(
        self, network: nx.Graph | int, steps: int, *, strength: float, opinions: Sequence[float], seed: int
    ) -> None:
        if not (np.isfinite(strength) and strength >= 0):
            raise SpecError(f"interaction.strength must be a number of at least 0; got {strength}")
        self._neighbours = _neighbours(network, steps)
        self.n_agents = self._neighbours.n
        self.steps = steps
        self.externals = NO_EXTERNALS
        self.strength = strength
        self._opinions = np.asarray(opinions, dtype=float)
        if self._opinions.shape != (self.n_agents,):
            raise SpecError(
                f"opinions must give one number for each of the {self.n_agents} agents; got {opinions!r:.80}"
            )
        self._seed = seed

    async def decide(self, outcomes: Outcomes) -> AsyncIterator[Turn]:
        """Turns as for :class:`Dyads`, each pair drawn once the opinions it rests on are measured."""
        rng = np.random.default_rng(self._seed)
        listeners = rng.choice(self._neighbours.can_hear, self.steps).tolist()
        uniforms = rng.random(self.steps)
        opinions = self._opinions.copy()
        unread: dict[int, list[int]] = {}
        for t, listener in enumerate(listeners):
            sources = self._neighbours.sources(listener)
            for agent in (listener, *sources.tolist()):
                for review in unread.pop(agent, ()):
                    measured = await outcomes.opinion(review)
                    if not np.isnan(measured):
                        opinions[agent] = measured
            distance = np.abs(opinions[sources] - opinions[listener])
            known = ~np.isnan(distance)
            distance[~known] = distance[known].mean() if known.any() else 0.0
            cumulative = np.cumsum(np.exp(-self.strength * (distance - distance.min())))
            speaker = int(sources[np.searchsorted(cumulative, uniforms[t] * cumulative[-1], side="right")])
            yield Turn(2 * t, t + 1, speaker, "write")
            yield Turn(2 * t + 1, t + 1, listener, "review", (2 * t,))
            unread.setdefault(listener, []).append(2 * t + 1)
