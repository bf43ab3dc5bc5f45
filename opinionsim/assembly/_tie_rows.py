"""Store rows of the ties of a run: ties at the start, and changes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from opinionsim.networks import Network
from opinionsim.schedules import TieChange
from opinionsim.store import EdgeRow, TieRow


def edge_rows(network: Any) -> tuple[EdgeRow, ...]:
    """Store rows of the ties at the start of a run.

    Parameters
    ----------
    network : Network, networkx graph or None
        The network before the first step; None and a complete network give no row.
    """
    if network is None:
        return ()
    pairs, weights = Network.of(network).edges
    heavy = [1.0] * len(pairs) if weights is None else weights.tolist()
    return tuple(
        EdgeRow(source, target, weight) for (source, target), weight in zip(pairs.tolist(), heavy, strict=True)
    )


def tie_rows(network: Any, changes: Iterable[TieChange]) -> list[TieRow]:
    """Store rows of ties that moved, were added or were removed, from those of :func:`edge_rows` and earlier changes.

    Parameters
    ----------
    network : Network, networkx graph or None
        The network before the first step.
    changes : iterable of TieChange
        Changes in order of steps.
    """
    moved = list(changes)
    if not moved:
        return []
    directed = Network.of(network).directed

    def joined(speaker: int | None, listener: int) -> tuple[int | None, int | None]:
        if speaker is None:
            return None, None
        return (speaker, listener) if directed else (min(speaker, listener), max(speaker, listener))

    return [
        TieRow(step, *joined(dropped, listener), *joined(followed, listener))
        for step, listener, dropped, followed in moved
    ]
