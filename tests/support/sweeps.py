"""A sweep of a classic model, what a store holds of it, and workers of a cluster that share sweeps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from distributed import LocalCluster

from opinionsim.store import UnitRow, open_store

DIAGRAM: dict[str, Any] = {
    "name": "diagram",
    "seed": 3,
    "replicates": 7,
    "model": {"classic": "deffuant", "parameters": {"mu": 0.3}},
    "interaction": {"network": {"kind": "watts-strogatz", "k": 4, "p": 0.1}, "steps": 12},
    "measurement": {"metrics": ["diversity", "disagreement"], "at": [4]},
    "sweep": {"model.parameters.epsilon": "0.1:0.4:0.1", "population.size": [20, 30]},
}


def rows(url: str) -> list[UnitRow]:
    """All runs in a store, sorted by their key."""
    with open_store(url, write=False) as store:
        points = dict(pair for design in store.designs() for pair in design.units)
        return list(store.units(points))


@contextmanager
def workers(n: int, *, processes: bool) -> Iterator[LocalCluster]:
    """Workers of one thread each; a process that is killed is started again."""
    with LocalCluster(
        n_workers=n,
        threads_per_worker=1,
        processes=processes,
        host="127.0.0.1",
        protocol="tcp://",
        dashboard_address="127.0.0.1:0",
    ) as running:
        yield running
