"""The contract of prompt packs: the packs of the package keep it, and it catches packs that do not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from opinionsim.errors import SpecError
from opinionsim.prompts import Act, PromptPack, load_pack
from opinionsim.schedules import ActSpec
from opinionsim.testing import PromptPackContract
from tests.support.editing import reword

#: Values of acts of the package, by the template that uses them.
_VALUES = {
    "interview": {"questions": "1. Why?", "words": "10", "separator": "---"},
    "draft": {"style": "reasoned"},
    "revise": {"style": "completion"},
    "rate": {"agreement": "1 = no", "quality": "1 = poor"},
    "predict-rating": {"agreement": "1 = no"},
}


class TestDefault(PromptPackContract):
    def pack(self) -> PromptPack:
        return load_pack()


@pytest.mark.whole
class TestDeliberation(PromptPackContract):
    def pack(self) -> PromptPack:
        return load_pack("deliberation")

    def acts(self) -> Sequence[Act]:
        own = [ActSpec(name, name, name, values=values) for name, values in _VALUES.items()]
        return [*own, *(act for act in super().acts() if act.template not in _VALUES)]


@dataclass
class _Of(PromptPackContract):
    """The contract of a pack in a folder."""

    folder: Path

    def pack(self) -> PromptPack:
        return load_pack(self.folder)


_Check = Callable[[_Of], None]


def _conditions(shown: str = "full", bias: str = "none", world: str = "closed", masked: bool = True) -> _Check:
    return partial(_Of.test_conditions, shown=shown, bias=bias, world=world, masked=masked)  # type: ignore[arg-type]


def _effect(condition: str) -> _Check:
    return partial(_Of.test_every_condition_has_an_effect, condition=condition)


def _labelling(labelling: str) -> _Check:
    return partial(_Of.test_labelling, labelling=labelling)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("file", "old", "new", "check", "said"),
    [
        ("_received.j2", "Post by {", "{{ post.text }} by {", _labelling("named"), "also occurs outside"),
        ("_received.j2", '"Your earlier post"', "post.words", _labelling("you-other"), "no attribute 'words'"),
        ("system.j2", "reads and writes", "reads", _effect("writes"), "writes False and True give the same text"),
        ("_situation.j2", '"closed"', '"shut"', _effect("world"), "world 'open' and 'closed' give the same text"),
        ("_situation.j2", '"strong"', '"firm"', _conditions(bias="strong"), "there is no instruction between"),
        ("_situation.j2", 'bias == "weak"', 'bias != "none"', _effect("confirmation_bias"), "'strong' and 'weak' give"),
        ("system.j2", "{% if name %}", "{% if background %}", _conditions("name"), "the name must be between"),
        ("_words.j2", "the claim that", "it holds that {{ claim }},", _conditions(masked=False), "also occurs outside"),
    ],
)
def test_a_fault_in_a_condition_is_found(folder: Path, file: str, old: str, new: str, check: _Check, said: str) -> None:
    reword(folder / file, old, new)
    with pytest.raises(SpecError, match=said):
        check(_Of(folder))


def test_a_template_of_an_act_of_ones_own_needs_that_act(folder: Path) -> None:
    (folder / "vote.j2").write_text(
        '{% from "_words.j2" import define %}{{ task }} Cast your vote{{ define(" on", claim, masked) }}: '
        "{{ options }}.\n"
        '{% include "_received.j2" %}\n',
        encoding="utf-8",
    )
    declared = (folder / "pack.yaml").read_text(encoding="utf-8")
    (folder / "pack.yaml").write_text(declared.replace("cues:", 'cues:\n  vote: "Cast your vote"'), encoding="utf-8")
    with pytest.raises(SpecError, match=r"vote\.j2:1: undefined variable 'options'"):
        _conditions()(_Of(folder))

    class Voting(_Of):
        def acts(self) -> Sequence[Act]:
            return [ActSpec("vote", "vote", "choice", values={"options": "a, b"})]

    _conditions()(Voting(folder))
    with pytest.raises(AssertionError):
        Voting(folder).test_every_task_has_an_act()
