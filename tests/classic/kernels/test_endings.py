"""Where runs end: nothing changes in runs that go on."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest

from opinionsim.classic import simulate
from opinionsim.networks import Network, build_network

pytestmark = pytest.mark.long


@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("deffuant", {"epsilon": 0.2}),
        ("deffuant", {"epsilon": 0.2, "network": {"kind": "watts-strogatz", "k": 6, "p": 0.1}}),
        ("algorithmic-bias", {"epsilon": 0.3}),
        ("hegselmann-krause", {"epsilon": 0.1}),
        ("hegselmann-krause", {"epsilon": 0.1, "order": "random"}),
        ("hegselmann-krause", {"epsilon": 0.1, "order": "permutation"}),
        ("voter", {"network": {"kind": "ring", "k": 4}}),
        ("q-voter", {"q": 3}),
        ("majority", {"r": 5}),
    ],
)
def test_nothing_changes_after_the_end(model: str, options: dict[str, Any]) -> None:
    """Runs end at the same opinions as longer ones, whose clusters stay what they were at the end."""
    options = dict(options)
    network = build_network(options.pop("network", "complete"), 60, 1)
    common = {"network": network, "seed": 4, "replicates": 5, **options}
    ended = simulate(model, steps=5000, until="frozen", record_every=5000, **common)
    assert (ended.ended > 0).all()
    for run, end in enumerate(ended.ended.tolist()):
        longer = simulate(model, steps=end + 200, record_every=end, **{**common, "replicates": 1, "replicate": run})
        np.testing.assert_array_equal(longer.opinions[0, 1], ended.final[run])
        if model in ("deffuant", "algorithmic-bias"):
            parts = [_parts(longer.network, longer.opinions[0, moment], options["epsilon"]) for moment in (1, -1)]
            assert parts[0] == parts[1]
        else:
            np.testing.assert_allclose(longer.final[0], ended.final[run], rtol=0, atol=1e-12)


def _parts(network: Network, opinions: np.ndarray, epsilon: float) -> set[frozenset[int]]:
    """Agents that are joined by ties within reach."""
    pairs = network.edges[0].tolist()
    graph = nx.Graph((i, j) for i, j in pairs if abs(opinions[i] - opinions[j]) <= epsilon)
    return {frozenset(part) for part in nx.connected_components(graph)}
