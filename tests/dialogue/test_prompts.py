"""The prompt pack of rooms keeps the contract of packs, and each of its guidelines can be left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import pytest

from opinionsim.dialogue import Guideline, RoomInteraction
from opinionsim.opinions import OpinionScale
from opinionsim.prompts import Act, Addressee, Conditions, Past, PromptPack, load_pack
from opinionsim.schedules import ActSpec
from opinionsim.testing import PromptPackContract


@pytest.mark.whole
class TestRoom(PromptPackContract):
    def pack(self) -> PromptPack:
        return load_pack("room")

    def acts(self) -> Sequence[Act]:
        told = {"turns": "12", "words": "150", "most": "5", "without": "", "moderated": "yes"}
        return [ActSpec(act.name, act.template, act.kind, values=told) for act in super().acts()]


@pytest.mark.parametrize("template", ["open", "moderate-room", "speak"])
def test_each_line_of_guidance_can_be_left_out_of_a_room(template: str) -> None:
    def prompt(*without: str) -> str:
        interaction = RoomInteraction(kind="room", without=without)
        act = next(act for act in interaction.acts.values() if act.template == template)
        pack = load_pack("room").bind([act])
        told = Addressee(OpinionScale(), Conditions(world="open"), task="T")
        return pack.for_agent(told).task(act, (), Past()).content

    whole, names = prompt().splitlines(), get_args(Guideline)
    rules = [line for line in whole if line.startswith("- ")]
    assert len(rules) == len(names)
    for name, rule in zip(names, rules, strict=True):
        assert prompt(name).splitlines() == [line for line in whole if line != rule]
    assert "rules" not in prompt(*names)
