"""Contact networks: who can speak to whom, as flat arrays that schedules and equations share.

Each kind of network is one module with a class that inherits from :class:`NetworkKind`. The class declares and checks
its parameters and returns the pairs of agents that it connects.
"""

from opinionsim.networks._build import build_network as build_network
from opinionsim.networks._kind import NetworkField as NetworkField, NetworkKind as NetworkKind
from opinionsim.networks._neighbours import Neighbours as Neighbours
from opinionsim.networks._network import AnyNetwork as AnyNetwork, Network as Network
