"""Chains: agents answer one after another, and read what was answered before."""

from __future__ import annotations

from opinionsim.deliberation._structure import Sequential
from opinionsim.registry import part


@part("interaction", name="chain")
class ChainInteraction(Sequential):
    """Agents answer one after another; each is shown the last answers of all, its own earlier ones among them.

    After Plurals (Ashkinaze et al. 2025).
    """

    instructed = "chain"
