"""Failures at every position of a structure: first, middle and last agent, judge, and moderator."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr

import opinionsim as osim
from opinionsim.deliberation import NumberedReplies, play, who_saw_what
from opinionsim.llm import phrases
from opinionsim.running import replay
from opinionsim.specification import load_experiment
from tests.support.examples import few
from tests.support.provider import StubProvider
from tests.support.provider_faults import Faults, evenly
from tests.support.provider_replies import scripted_reply
from tests.support.provider_runs import SPEC, assert_paid_once
from tests.support.running import assert_same, carry_out, loaded

NAMES = ("Ada", "Ben", "Cleo")
POSITIONS = ("Ada", "Ben", "Cleo", "select", "instruct", "moderate")
#: Who is where in the cast.
AGENTS = {"Ada": 0, "Ben": 1, "Cleo": 2, "select": 1, "instruct": 3, "moderate": 3}
CHAIN: dict[str, Any] = {
    "cast": [{"name": name, "system": f"Be {name}."} for name in NAMES],
    "roles": {"moderator": {"automatic": True}},
}
CHAIN["cast"][1] |= {"draws": 2, "selector": "judge"}
REFUSED = AIMessage("", additional_kwargs={"refusal": "I decline."})


def _position(messages: list[BaseMessage]) -> str:
    """Whose turn a prompt is."""
    asked = str(messages[-1].content)
    if phrases.pick_one(2) in asked:
        return "select"
    if "Write these instructions" in asked:
        return "instruct"
    if "Your answer as moderator" in asked:
        return "moderate"
    return str(messages[0].content).removeprefix("Be ").partition(".")[0]


class Faulty(NumberedReplies):
    """The numbered model with a fault at one position: a reply, a text put before each reply, or an error."""

    _position: str = PrivateAttr()
    _fault: Any = PrivateAttr()
    _asked: list[str] = PrivateAttr(default_factory=list)

    @classmethod
    def at(cls, position: str, fault: Any) -> Faulty:
        """The model that fails there."""
        model = cls()
        model._position, model._fault = position, fault
        return model

    def _generate(self, messages: list[BaseMessage], *_: Any, **options: Any) -> ChatResult:
        position = _position(messages)
        self._asked.append(position)
        result = super()._generate(messages, **options)
        if position == self._position:
            if isinstance(self._fault, Exception):
                raise self._fault
            if isinstance(self._fault, AIMessage):
                return ChatResult(generations=[ChatGeneration(message=self._fault)])
            reply = f"{self._fault}{result.generations[0].message.text}"
            return ChatResult(generations=[ChatGeneration(message=AIMessage(reply))])
        return result


def _chain(position: str, fault: Any, store: str = "s.sqlite", **fields: Any) -> tuple[osim.Results, Faulty]:
    model = Faulty.at(position, fault)
    return play({"kind": "chain", "order": "cast"}, NAMES, store, chat_model=model, **CHAIN, **fields), model


def _published(results: osim.Results) -> dict[str, tuple[str, str]]:
    """Status and text of each turn, by position."""
    turns = results.turns
    position = turns["act"].where(turns["act"] != "respond", turns["agent"].map(dict(enumerate(NAMES))))
    return dict(zip(position, zip(turns["status"], turns["message"], strict=True), strict=True))


@pytest.mark.parametrize("position", few(POSITIONS, 2))
def test_a_model_that_raises_ends_the_run_with_an_error_that_names_the_turn_and_a_later_run_makes_it_good(
    position: str,
) -> None:
    failed, model = _chain(position, PermissionError("no such account"))
    act = position if position in ("instruct", "moderate") else "respond"
    error = failed.runs["error"].item()
    assert re.search(rf"run \w+, turn \d, agent {AGENTS[position]} \({act}\): PermissionError: no such account", error)
    paid = len(failed.calls)
    assert all(text.strip() for _, text in _published(failed).values()), "nothing is imputed"
    mended, healthy = _chain("nowhere", "")
    assert len(healthy._asked) == len(mended.calls) - paid, "what had arrived is not asked again"
    assert_same(loaded("s.sqlite"), loaded(_chain("nowhere", "", "other.sqlite")[0].url))
    assert position in model._asked


NO_ANSWERS = {"refused": REFUSED, "empty": AIMessage(""), "blank": AIMessage("\n \t"), "label": AIMessage(" [You]:\n")}


@pytest.mark.parametrize(
    ("position", "fault"),
    # A label is no number and no instruction: judges and instructions that are one are rejected, as others are.
    few(
        [
            (each, fault)
            for fault in NO_ANSWERS
            for each in POSITIONS
            if fault != "label" or each not in ("select", "instruct")
        ],
        8,
    ),
)
def test_a_reply_that_is_no_answer_is_left_out_of_what_others_see(position: str, fault: str) -> None:
    results, _ = _chain(position, NO_ANSWERS[fault])
    assert results.runs["error"].item() == ""
    published = _published(results)
    if position != "select":
        assert published.pop(position)[0] == ("refused" if fault == "refused" else "empty")
    assert {each for each, _ in published.values()} == {"answered"}
    assert all(text.strip() not in ("", "None") for _, text in published.values())
    seen = who_saw_what(results).split("\n")
    shown = "\n".join(seen[-2:] if position == "instruct" else seen)
    for name in {"Ada", "Ben", "Cleo"} & {position}:
        assert f": {name} 1" not in shown
    if position == "Ada":
        assert seen[2] == "Ben 1 sees nothing"
        assert seen[4].endswith("sees [You]: Moderator (instruct); Response 0: Ben 1; Response 1: Cleo 1")
    assert [each.difference for each in replay(results)] == [""]


@pytest.mark.parametrize("position", ["Ada", "Ben", "Cleo", "moderate"])
@pytest.mark.parametrize("status", ["refused", "empty"])
def test_under_then_fail_it_ends_the_run(position: str, status: str) -> None:
    model = {"name": "numbered", "replies": {status: {"reask": 1, "then": "fail"}}}
    results, asked = _chain(position, REFUSED if status == "refused" else AIMessage(""), model=model)
    error = results.runs["error"].item()
    assert re.search(rf"run \w+, turn \d, agent {AGENTS[position]} \((respond|moderate)\): ", error)
    assert status in error
    assert asked._asked.count(position) == 2 * (1 + (position == "Ben")), "asked once more, for each draw"


@pytest.mark.parametrize("position", ["Ada", "Ben", "Cleo", "moderate"])
@pytest.mark.parametrize("label", few(["Response 3: ", "[You]:\n", "[Other participant]: [You]:", "OWN: "], 2))
def test_a_label_that_is_echoed_is_taken_away_at_every_position(position: str, label: str) -> None:
    own = {"moderate": "Moderator"}.get(position, position)
    results, _ = _chain(position, label.replace("OWN", own))
    expected, _ = _chain("nowhere", "", "other.sqlite")
    assert results.turns["message"].tolist() == expected.turns["message"].tolist()


def test_a_label_with_anothers_name_stays() -> None:
    results, _ = _chain("Ben", "Ada: ")
    assert _published(results)["Ben"][1].startswith("Ada: Answer")


@pytest.mark.parametrize("fault", ["One. ", AIMessage("2 or 1"), AIMessage("7"), AIMessage("0"), AIMessage("neither")])
def test_a_judge_that_names_no_reply_is_asked_again_and_ends_the_run(fault: Any) -> None:
    results, model = _chain("select", fault)
    error = results.runs["error"].item()
    if fault == "One. ":  # beside the number it names
        assert error == ""
        return
    assert ", agent 1 (respond): none of 3 replies was acceptable; the last one: " in error
    assert model._asked.count("select") == 3
    assert (results.calls["call"] == "select").sum() == 3
    assert _chain("nowhere", "")[0].runs["status"].item() == "complete"


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("I shall be fair.", "must begin with"),
        ("Moderator instructions:", "nothing follows"),
        ("Moderator instructions: " + "fair " * 51, "51 words; at most 50"),
    ],
)
def test_instructions_are_asked_for_ten_times_and_then_the_run_ends(reply: str, reason: str) -> None:
    results, model = _chain("instruct", AIMessage(reply))
    error = results.runs["error"].item()
    assert re.search(
        r"run \w+, turn \d, agent 3 \(instruct\): none of 10 replies was acceptable; the last one: .*" + reason, error
    )
    assert model._asked.count("instruct") == 10
    mended, again = _chain("nowhere", "")
    assert mended.runs["status"].item() == "complete"
    assert again._asked.count("instruct") == 1, "nine more are not asked for"


@pytest.mark.parametrize("courtesy", ["", "Sure! ", "Of course, ", "Certainly.\n\n", "  **"])
def test_a_courtesy_before_the_instructions_is_no_refusal(courtesy: str) -> None:
    reply = f"{courtesy}Moderator instructions: Weigh all sides, and do not take one."
    results, model = _chain("instruct", AIMessage(reply))
    assert results.runs["status"].item() == "complete"
    assert model._asked.count("instruct") == 1
    assert set(results.calls.loc[results.calls["act"] == "instruct", "status"]) == {"answered"}


@pytest.mark.parametrize("reply", ["I cannot say.", "Verdict: perhaps", "Verdict: accepted\nVerdict: rejected"])
def test_a_moderation_without_a_verdict_is_published_as_it_is_and_decides_nothing(reply: str) -> None:
    moderated = {"roles": {"moderator": {"values": "peace"}}}
    model = Faulty.at("moderate", AIMessage(reply))
    results = play({"kind": "chain"}, NAMES, "s.sqlite", chat_model=model, **{**CHAIN, **moderated})
    assert results.runs["status"].item() == "complete"
    assert _published(results)["moderate"] == ("answered", reply)
    assert model._asked.count("moderate") == 3


def test_a_draw_that_is_a_label_alone_is_not_chosen() -> None:
    """What a selector chooses from is what would be published, and a label alone is asked for again."""
    cast = [{"name": "Ada", "draws": 2, "selector": "shortest"}]
    replies = iter(["[You]:", "Response 0: Yes.", "Perhaps, perhaps not."])
    spec = {"name": "labels", "task": "Say yes.", "cast": cast, "interaction": {"kind": "chain"}}
    model = osim.GivenReplies(lambda prompt: next(replies))
    results = osim.run(load_experiment({**spec, "model": {"name": "given"}}), "s.sqlite", chat_model=model)
    assert results.turns["message"].tolist() == ["Yes."]
    assert results.turns["status"].tolist() == ["answered"]
    assert sorted(results.calls["status"]) == ["answered", "answered", "empty"]


@pytest.mark.parametrize("left", [0, 1])
def test_a_judge_is_not_asked_where_there_is_nothing_to_choose(left: int) -> None:
    cast = [{"name": "Ada", "draws": 3, "selector": "judge"}]
    model = osim.GivenReplies(["Yes.", *[REFUSED] * 9] if left else [REFUSED] * 12)
    spec = {
        "name": "alone",
        "task": "Say yes.",
        "cast": cast,
        "interaction": {"kind": "chain"},
        "model": {"name": "given", "replies": {"refused": {"reask": 0}}},
        "execution": {"max_concurrency": 1},
    }
    results = osim.run(load_experiment(spec), "s.sqlite", chat_model=model)
    assert results.runs["error"].item() == ""
    assert results.calls["call"].tolist() == ["reply", "reply.2", "reply.3"]
    assert results.turns["status"].tolist() == ["answered" if left else "refused"]


# -- through the client of a provider that misbehaves -------------------------------------------------------------


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[StubProvider]:
    """A provider at the address that the environment names."""
    with StubProvider(scripted_reply(pack="deliberation")) as running:
        monkeypatch.setenv("OPENAI_API_KEY", "of-no-use-here")
        monkeypatch.setenv("OPENAI_BASE_URL", running.base_url)
        yield running


PROVIDED: dict[str, dict[str, Any]] = {
    "chain": {"interaction": {"kind": "chain", "cycles": 2}},
    "moderated ensemble": {"interaction": {"kind": "ensemble"}, "roles": {"moderator": {"automatic": True}}},
    "graph": {
        "interaction": {"kind": "graph", "edges": [["Ada", "Ben"], ["Ada", "Cleo"], ["Ben", "Dan"], ["Cleo", "Dan"]]},
        "roles": {"moderator": {}},
    },
}


@pytest.mark.parametrize("structure", few(PROVIDED, 1))
def test_structures_through_a_provider_that_misbehaves(stub: StubProvider, structure: str) -> None:
    quick = tuple(kind for kind in Faults.TRANSPORT if kind not in ("hang", "stall"))
    content = evenly(0.7, Faults.CONTENT)
    cast = [{"name": name, "persona": f"{name}, a driver"} for name in ("Ada", "Ben", "Cleo", "Dan")]
    spec = {
        "name": "provided",
        "task": "What should a town do first?",
        "cast": cast,
        "replicates": 4,
        **{name: SPEC[name] for name in ("model", "execution")},
        **PROVIDED[structure],
    }
    stub.faults = Faults(tries=evenly(0.4, quick), requests=content)
    summary, found = carry_out(spec, "s.sqlite")
    log, stub.log = stub.log, []
    assert (summary.complete, summary.errors) == (4, {})
    assert summary.repeated > 0
    assert_paid_once(log, found.calls)
    answered = found.turns[found.turns["status"].isin(["answered", "truncated"])]
    assert len(answered) < len(found.turns), "some replies were no answers"
    assert not answered["message"].str.strip().isin(["", "None"]).any()
    stub.faults = Faults(requests=content)
    assert_same(found, carry_out(spec, "calm.sqlite")[1])
    assert [each.difference for each in replay(found)] == [""] * 4
