"""Contact networks: who can speak to whom, as flat arrays that schedules and classic models share.

A kind of network is one module: a class that inherits :class:`NetworkKind`, with its parameters, their checks, and
the pairs of agents that it joins.
"""

from opinionsim.networks._build import build_network
from opinionsim.networks._kind import NetworkField, NetworkKind
from opinionsim.networks._neighbours import Neighbours
from opinionsim.networks._network import AnyNetwork, Network

__all__ = ["AnyNetwork", "Neighbours", "Network", "NetworkField", "NetworkKind", "build_network"]
