"""The contract of a prompt pack as tests that others inherit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import pytest

from opinionsim.prompts import Act, BeliefTense, Conditions, ConfirmationBias, PersonaShown, PromptPack, World
from opinionsim.schedules import ActSpec

_Labelling = Literal["anonymous", "numbered", "named", "you-other"]
#: Every value of what a study may vary; of numbers and opinions a few.
_AXES: Mapping[str, tuple[Any, ...]] = {
    "persona_shown": get_args(PersonaShown),
    "confirmation_bias": get_args(ConfirmationBias),
    "world": get_args(World),
    "masked": (True, False),
    "belief_tense": get_args(BeliefTense),
    "post_words": (None, 7),
    "opinion": (None, -1, 0, 1),
    "reads": (True, False),
    "writes": (True, False),
}


class PromptPackContract(ABC):
    """Tests every prompt pack passes; inherit, load one in :meth:`pack`, and pytest runs them.

    A run checks what it uses of a pack. The suite renders all templates under all conditions, and checks that whatever
    is inserted stands between its delimiters, that cues tell tasks apart, and that every condition changes a prompt.
    """

    @abstractmethod
    def pack(self) -> PromptPack:
        """Load the pack under test."""

    def acts(self) -> Sequence[Act]:
        """One act for each task template.

        By default acts that declare all variables of tasks. Override it if a template uses values of an act of your
        own, and give that act instead.
        """
        heard = {"write": {"answers": False}}
        return [ActSpec(task, task, task, **heard.get(task, {"audience": "nobody"})) for task in self.pack().tasks]

    def test_every_task_has_an_act(self) -> None:
        """Every task template is checked by one of the acts."""
        assert {act.template for act in self.acts()} >= set(self.pack().tasks)

    @pytest.mark.parametrize("masked", _AXES["masked"])
    @pytest.mark.parametrize("world", _AXES["world"])
    @pytest.mark.parametrize("bias", _AXES["confirmation_bias"])
    @pytest.mark.parametrize("shown", _AXES["persona_shown"])
    def test_conditions(self, shown: PersonaShown, bias: ConfirmationBias, world: World, masked: bool) -> None:
        """All templates say what they must under every combination of persona, bias, world and masking."""
        self._check({"persona_shown": shown, "confirmation_bias": bias, "world": world, "masked": masked})

    @pytest.mark.parametrize("tense", _AXES["belief_tense"])
    @pytest.mark.parametrize("words", _AXES["post_words"])
    def test_wordings(self, tense: BeliefTense, words: int | None) -> None:
        """All templates say what they must with either tense of the initial belief, and a limit of words or none."""
        self._check({"belief_tense": tense, "post_words": words})

    @pytest.mark.parametrize("labelling", get_args(_Labelling))
    def test_labelling(self, labelling: _Labelling) -> None:
        """Tasks and memories of every kind of act show received messages under every labelling."""
        pack = self.pack()
        acts = [
            ActSpec(act.name, act.template, act.name, act.text, tuple(act.variables), act.values, labelling, **heard)
            for act in self.acts()
            for heard in ({"answers": False}, {"audience": "nobody"}, {})
        ]
        pack.check(acts, pack.frames[1:])

    @pytest.mark.parametrize("condition", _AXES)
    def test_every_condition_has_an_effect(self, condition: str) -> None:
        """No two values of a condition give the same text."""
        self.pack().check_effects(self.acts(), {condition: _AXES[condition]})

    def _check(self, conditions: Conditions) -> None:
        pack = self.pack()
        pack.check(self.acts(), pack.frames[1:], **conditions)
