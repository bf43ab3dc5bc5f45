"""How many examples of a property are tried often: with `make test`, or with `make verify` alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings

from opinionsim.registry import names


def examples(most: int, **others: Any) -> settings:
    """Settings of Hypothesis with that many examples, or the part of them that the profile takes of a hundred."""
    return settings(max_examples=most * settings().max_examples // 100, **others)


def few(values: Iterable[Any], most: int) -> list[Any]:
    """Values of a parameter, of which so many are tried often, spread evenly; all others with `make verify`."""
    listed = list(values)
    often = {round(place * (len(listed) - 1) / max(most - 1, 1)) for place in range(most)}

    def seldom(value: Any) -> Any:
        return pytest.param(*value if isinstance(value, tuple) else (value,), marks=pytest.mark.long)

    return [value if place in often else seldom(value) for place, value in enumerate(listed)]


def brought(kind: str, name: str) -> pytest.MarkDecorator:
    """Marks a test of the core whose example uses a part that a slice brings, which may have been deleted."""
    return pytest.mark.skipif(name not in names(kind), reason=f"the slice with the {kind} {name} is not there")
