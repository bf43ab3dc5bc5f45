"""Draws of a turn: all of them end before the turn does."""

from __future__ import annotations

import asyncio

import pytest

from opinionsim.actors import _draw
from opinionsim.messages import Reply
from opinionsim.schedules import ActSpec
from opinionsim.testing import run_virtual

DRAW = ActSpec("draw", "write", "post", draws=3, selector=lambda texts: texts.index(max(texts)))


def test_the_selector_picks_among_all_draws() -> None:
    async def ask(part: str) -> Reply:
        await asyncio.sleep(1)
        return Reply({"reply": "b", "reply.2": "c", "reply.3": "a"}[part])

    assert run_virtual(_draw(DRAW, ask)) == Reply("c")


def test_a_failing_draw_waits_for_the_others() -> None:
    arrived = []

    async def ask(part: str) -> Reply:
        if part == "reply":
            raise ValueError("the first one failed")
        await asyncio.sleep(5)
        arrived.append(part)
        return Reply(part)

    async def story() -> None:
        with pytest.raises(ValueError, match="first one"):
            await _draw(DRAW, ask)
        assert arrived == ["reply.2", "reply.3"]

    run_virtual(story())
