"""Contact networks: who can speak to whom, as flat arrays that schedules and classic models share.

A kind of network is a function of :mod:`opinionsim.networks._generators` that returns pairs of agents, entered with
its parameters in :data:`NETWORKS`.
"""

from opinionsim.networks._build import NETWORKS, build_network
from opinionsim.networks._neighbours import Neighbours
from opinionsim.networks._network import Network

__all__ = ["NETWORKS", "Neighbours", "Network", "build_network"]
