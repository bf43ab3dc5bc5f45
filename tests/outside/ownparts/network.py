import networkx as nx

import opinionsim as osim
from opinionsim.networks import NetworkKind


@osim.part("network")
class Cliques(NetworkKind):
    """Cliques of equal size, each joined to the next by one edge."""

    cliques: int = 2
    """How many there are."""

    def problem(self, size):
        return f"{size} agents do not make {self.cliques} equal cliques" if size % self.cliques else ""

    def pairs(self, size, rng):
        return nx.connected_caveman_graph(self.cliques, size // self.cliques)
