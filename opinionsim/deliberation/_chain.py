"""Chains, in which agents answer one after another and read earlier answers."""

from opinionsim.deliberation._structure import Sequential
from opinionsim.registry import part


@part("interaction", name="chain")
class ChainInteraction(Sequential):
    """Agents answer one after another, and each sees the last answers of all agents, including its own.

    After Plurals (Ashkinaze et al. 2025).
    """

    instructed = "chain"
