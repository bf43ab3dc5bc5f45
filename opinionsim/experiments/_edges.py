"""The connections of a run as the store keeps them, each for as long as it lasted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opinionsim.networks import Network
from opinionsim.schedules import TieChange
from opinionsim.store import EdgeRow

__all__ = ["edge_rows"]


def edge_rows(network: Any, changes: Sequence[TieChange] = ()) -> tuple[EdgeRow, ...]:
    """The connections a run began with and those that came up in it.

    Parameters
    ----------
    network : Network, networkx graph or None
        As it was before the first step; None and a complete one list no connection.
    changes : sequence of TieChange
        What moved, in order of steps.

    Returns
    -------
    tuple of EdgeRow
        The network after step t is what has ``since <= t`` and ``until`` beyond t or None. A connection that moves
        takes its weight along.
    """
    if network is None:
        return ()
    found = Network.of(network)
    pairs, weights = found.edges

    def joined(speaker: int, listener: int) -> tuple[int, int]:
        return (speaker, listener) if found.directed else (min(speaker, listener), max(speaker, listener))

    ends: list[tuple[int, int]] = [(source, target) for source, target in pairs.tolist()]
    heavy = [1.0] * len(ends) if weights is None else weights.tolist()
    lasting = {pair: EdgeRow(*pair, weight) for pair, weight in zip(ends, heavy, strict=True)}
    over: list[EdgeRow] = []
    for step, listener, dropped, followed in changes:
        ended = lasting.pop(joined(dropped, listener))
        over.append(ended._replace(until=step))
        pair = joined(followed, listener)
        lasting[pair] = EdgeRow(*pair, ended.weight, since=step)
    return (*over, *lasting.values())
