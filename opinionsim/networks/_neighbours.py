"""Who may meet whom, for schedules that draw pairs."""

from __future__ import annotations

import numpy as np

from opinionsim.errors import SpecError
from opinionsim.networks._graph_reading import named, names_in, refuse
from opinionsim.networks._network import AnyNetwork, Network, check_edge


class Neighbours:
    """Speakers and listeners of a network with at least one edge.

    Parameters
    ----------
    network : Network, networkx graph or int
        As in :meth:`Network.of`; a number means the complete graph. Weights have no effect.

    Raises
    ------
    SpecError
        If there are fewer than two agents or no edges, `network` is not a network, or its nodes are names that were not
        matched to agents.

    Attributes
    ----------
    network : Network
        The network itself.
    n : int
        Number of agents.
    can_speak, can_hear : ndarray of int
        Agents that have a listener, and agents that hear another, ascending.
    """

    def __init__(self, network: AnyNetwork) -> None:
        self.network = Network.of(network)
        self.n = self.network.n
        if self.n < 2:
            raise SpecError(f"population.size is {self.n}; it must be at least 2, a speaker and a listener")
        with named("network"):
            check_edge(self.network)
            if names := names_in(self.network.labels):
                refuse(
                    f"nodes have names, such as {names[0]!r}, but the agents' names are unknown; use "
                    "Network.of(network, names=[...]) to name each agent"
                )
        if self.network.complete:
            self.can_speak = self.can_hear = np.arange(self.n)
            return
        self._heard_starts, self._heard = self.network.heard
        self._starts, self._listeners, _ = self.network.audience
        self.can_speak = np.flatnonzero(np.diff(self._starts))
        self.can_hear = np.flatnonzero(np.diff(self._heard_starts))

    def join(self, pairs: np.ndarray) -> np.ndarray:
        """Return whether each of the ordered pairs (speaker, listener), shape (m, 2), may meet; shape (m,)."""
        inside = ((pairs >= 0) & (pairs < self.n)).all(axis=1) & (pairs[:, 0] != pairs[:, 1])
        if self.network.complete:
            return np.asarray(inside)
        codes = self.network.listeners.astype(np.int64) * self.n + self.network.speakers
        asked = pairs[:, 1] * self.n + pairs[:, 0]
        places = np.minimum(np.searchsorted(codes, asked), len(codes) - 1)
        return np.asarray(inside & (codes[places] == asked))

    def draw_pairs(self, steps: int, rng: np.random.Generator) -> np.ndarray:
        """Draw ordered pairs (speaker, listener) uniformly from those that may meet; shape (steps, 2)."""
        if self.network.complete:
            speakers = rng.integers(self.n, size=steps)
            listeners = rng.integers(self.n - 1, size=steps)
            return np.stack([speakers, listeners + (listeners >= speakers)], axis=1)
        drawn = rng.integers(len(self._listeners), size=steps)
        speakers = np.searchsorted(self._starts, drawn, side="right") - 1
        return np.stack([speakers, self._listeners[drawn].astype(np.int64)], axis=1)

    def audience(self, speaker: int) -> np.ndarray:
        """Return the agents that hear `speaker`, ascending."""
        if self.network.complete:
            return np.delete(self.can_hear, speaker)
        return self._listeners[self._starts[speaker] : self._starts[speaker + 1]]

    def sources(self, listener: int) -> np.ndarray:
        """Return the agents that `listener` hears, ascending."""
        if self.network.complete:
            return np.delete(self.can_speak, listener)
        return self._heard[self._heard_starts[listener] : self._heard_starts[listener + 1]]
