"""The ties of a run as the store keeps them: those at the start, and those that move."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from opinionsim.networks import Network
from opinionsim.schedules import TieChange
from opinionsim.store import EdgeRow, TieRow


def edge_rows(network: Any) -> tuple[EdgeRow, ...]:
    """The ties a run begins with.

    Parameters
    ----------
    network : Network, networkx graph or None
        As it is before the first step; None and a complete one list no tie.
    """
    if network is None:
        return ()
    pairs, weights = Network.of(network).edges
    heavy = [1.0] * len(pairs) if weights is None else weights.tolist()
    return tuple(
        EdgeRow(source, target, weight) for (source, target), weight in zip(pairs.tolist(), heavy, strict=True)
    )


def moved_ties(network: Any, changes: Iterable[TieChange]) -> list[TieRow]:
    """Ties that moved, each from where :func:`edge_rows` or an earlier change has it.

    Parameters
    ----------
    network : Network, networkx graph or None
        As it was before the first step.
    changes : iterable of TieChange
        In order of steps.
    """
    moved = list(changes)
    if not moved:
        return []
    directed = Network.of(network).directed

    def joined(speaker: int, listener: int) -> tuple[int, int]:
        return (speaker, listener) if directed else (min(speaker, listener), max(speaker, listener))

    return [
        TieRow(step, *joined(dropped, listener), *joined(followed, listener))
        for step, listener, dropped, followed in moved
    ]
