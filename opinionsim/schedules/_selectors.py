"""Selectors, which pick one of several replies drawn for a turn."""

from __future__ import annotations

from collections.abc import Sequence

from opinionsim.registry import part


@part("selector", name="first")
def first(texts: Sequence[str]) -> int:
    """The first reply."""
    return 0


@part("selector", name="shortest")
def shortest(texts: Sequence[str]) -> int:
    """The reply with the fewest characters; of several, the first."""
    return min(range(len(texts)), key=lambda position: len(texts[position]))


@part("selector", name="longest")
def longest(texts: Sequence[str]) -> int:
    """The reply with the most characters; of several, the first."""
    return max(range(len(texts)), key=lambda position: len(texts[position]))
