"""The five wordings of the default pack: other sentences about the same things."""

from __future__ import annotations

from itertools import combinations

import pytest
from jinja2 import Environment
from jinja2.meta import find_undeclared_variables

from opinionsim.errors import SpecError
from opinionsim.planning import preview
from opinionsim.prompts import USUAL, PromptPack, load_pack, worded
from opinionsim.specification import load_experiment
from opinionsim.testing import PromptPackContract
from tests.support.running import SMALL, changed

OTHERS = ("second", "third", "fourth", "fifth")
TEMPLATES = ("system", "write", "review", "report", "probe")


@pytest.fixture(params=OTHERS)
def other(request: pytest.FixtureRequest) -> PromptPack:
    return load_pack(worded("default", request.param))


def _variables(pack: PromptPack, template: str) -> set[str]:
    environment = Environment(autoescape=False)  # noqa: S701
    environment.filters |= dict.fromkeys(("heading", "ordinal"), str)
    return find_undeclared_variables(environment.parse(pack.contents[f"{template}.j2"]))


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_wording_uses_the_variables_of_the_usual_one(other: PromptPack, template: str) -> None:
    assert _variables(other, template) == _variables(load_pack(), template)


def test_a_wording_changes_sentences_and_neither_delimiters_nor_what_states_the_treatment(other: PromptPack) -> None:
    usual = load_pack()
    changed = {name for name, text in other.contents.items() if usual.contents[name] != text}
    assert changed == {"pack.yaml", *(f"{name}.j2" for name in TEMPLATES)}
    assert (other.marks.persona, other.marks.post, other.marks.claim) == (
        usual.marks.persona, usual.marks.post, usual.marks.claim,
    )  # fmt: skip


@pytest.mark.parametrize("template", TEMPLATES)
def test_no_two_wordings_are_the_same(template: str) -> None:
    texts = [load_pack(worded("default", name)).contents[f"{template}.j2"] for name in (USUAL, *OTHERS)]
    assert all(one != another for one, another in combinations(texts, 2))


@pytest.mark.whole
class TestSecond(PromptPackContract):
    def pack(self) -> PromptPack:
        return load_pack("default::second")


@pytest.mark.long
class TestThird(PromptPackContract):
    def pack(self) -> PromptPack:
        return load_pack("default::third")


@pytest.mark.long
class TestFourth(PromptPackContract):
    def pack(self) -> PromptPack:
        return load_pack("default::fourth")


@pytest.mark.long
class TestFifth(PromptPackContract):
    def pack(self) -> PromptPack:
        return load_pack("default::fifth")


def test_the_usual_wording_enters_no_identity_and_another_one_does() -> None:
    plain = load_experiment(SMALL).runs[0].run_id
    assert load_experiment({**SMALL, "prompts": {"variant": USUAL}}).runs[0].run_id == plain
    assert load_experiment({**SMALL, "prompts": {"variant": "second"}}).runs[0].run_id != plain


def test_a_wording_that_a_pack_lacks_is_refused() -> None:
    with pytest.raises(
        SpecError, match="no wording 'sixth'; valid: usual, falling, fifth, fourth, second, third, words"
    ):
        load_pack("default::sixth")
    with pytest.raises(SpecError, match="has no wording 'second'; valid: usual"):
        load_experiment({**SMALL, "prompts": {"pack": "deliberation", "variant": "second"}})


@pytest.mark.parametrize(
    ("wording", "listed", "asked"),
    [
        (USUAL, "-1: slightly negative\n0: neutral\n1: slightly positive\n", "one of these numbers"),
        ("falling", "1: slightly positive\n0: neutral\n-1: slightly negative\n", "one of these numbers"),
        ("words", "\nslightly negative\nneutral\nslightly positive\n", "the words of one of these lines"),
    ],
)
def test_two_wordings_change_the_closed_question_alone(wording: str, listed: str, asked: str) -> None:
    spec = changed(SMALL, prompts={"variant": wording}, measurement={"self_report": {"before": 1}})
    usual, prompts = (preview(load_experiment(each)).prompts for each in (changed(spec, prompts={}), spec))
    question = prompts["self-report"][-1].content
    assert listed in question
    assert f"in {asked} and nothing else:" in question
    assert {act for act in prompts if prompts[act] != usual[act]} <= {"self-report"}


@pytest.mark.long
class TestFalling(PromptPackContract):
    def pack(self) -> PromptPack:
        return load_pack("default::falling")


@pytest.mark.long
class TestWords(PromptPackContract):
    def pack(self) -> PromptPack:
        return load_pack("default::words")
