"""The contract of a prompt pack, as tests to inherit from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import pytest

from opinionsim.prompts import Act, CognitionFields, Conditions, PromptPack
from opinionsim.schedules import ActSpec

_Labelling = Literal["anonymous", "numbered", "named", "you-other"]


def _values(annotation: Any) -> tuple[Any, ...]:
    """All values of a condition; of numbers two."""
    return (True, False) if annotation is bool else (None, 7) if annotation == int | None else get_args(annotation)


#: All values of the conditions that a study may vary; a few of numbers and opinions.
_AXES: Mapping[str, tuple[Any, ...]] = {
    **{name: _values(field.annotation) for name, field in Conditions.model_fields.items()},
    "opinion": (None, -1, 0, 1),
    "reads": (True, False),
    "writes": (True, False),
}
#: Conditions, and their values, that are not checked in every combination.
_FURTHER = [
    (name, value)
    for name in Conditions.model_fields
    if name not in ("persona_shown", "confirmation_bias", "world", "masked")
    for value in _AXES[name]
]


class PromptPackContract(ABC):
    """Tests that every prompt pack must pass. Inherit from it and load a pack in :meth:`pack`.

    A run checks only the parts of a pack that it uses. The suite renders all templates under all conditions. It checks
    that every inserted text is between its delimiters, that cues distinguish tasks, and that every condition changes a
    prompt.
    """

    @abstractmethod
    def pack(self) -> PromptPack:
        """Load the pack under test."""

    def acts(self) -> Sequence[Act]:
        """One act for each task template.

        By default, these acts declare all variables of tasks. If a template uses values of an act that you wrote,
        override this method and return that act instead.
        """
        heard = {"write": {"answers": False}}
        return [ActSpec(task, task, task, **heard.get(task, {"audience": "nobody"})) for task in self.pack().tasks]

    def test_every_task_has_an_act(self) -> None:
        """One of the acts checks each task template."""
        assert {act.template for act in self.acts()} >= set(self.pack().tasks)

    @pytest.mark.parametrize("masked", _AXES["masked"])
    @pytest.mark.parametrize("world", _AXES["world"])
    @pytest.mark.parametrize("bias", _AXES["confirmation_bias"])
    @pytest.mark.parametrize("shown", _AXES["persona_shown"])
    def test_conditions(self, shown: str, bias: str, world: str, masked: bool) -> None:
        """All templates contain what they must under every combination of persona, bias, world and masking."""
        self._check(persona_shown=shown, confirmation_bias=bias, world=world, masked=masked)

    @pytest.mark.parametrize(("condition", "value"), _FURTHER)
    def test_further_conditions(self, condition: str, value: Any) -> None:
        """All templates contain what they must under every value of any other condition."""
        self._check(**{condition: value})

    @pytest.mark.parametrize("labelling", get_args(_Labelling))
    def test_labelling(self, labelling: _Labelling) -> None:
        """Tasks and memories of every kind of act show received messages under every labelling."""
        pack = self.pack()
        acts = [
            ActSpec(act.name, act.template, act.name, act.text, act.variables, act.values, labelling, **heard)
            for act in self.acts()
            for heard in ({"answers": False}, {"audience": "nobody"}, {})
        ]
        pack.check(acts, pack.frames[1:])

    @pytest.mark.parametrize("condition", _AXES)
    def test_every_condition_has_an_effect(self, condition: str) -> None:
        """No two values of a condition give the same text, but the templates may omit a condition of cognition."""
        pack = self.pack()
        if condition not in CognitionFields.model_fields or any(condition in text for text in pack.contents.values()):
            pack.check_effects(self.acts(), {condition: _AXES[condition]})

    def _check(self, **conditions: Any) -> None:
        pack = self.pack()
        pack.check(self.acts(), pack.frames[1:], Conditions(**conditions))
