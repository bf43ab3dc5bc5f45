"""How many examples a property is tried with that takes more than the usual hundred, or fewer."""

from __future__ import annotations

from typing import Any

from hypothesis import settings


def examples(most: int, **others: Any) -> settings:
    """Settings of Hypothesis with that many examples, or the part of them that the profile takes of a hundred."""
    return settings(max_examples=most * settings().max_examples // 100, **others)
