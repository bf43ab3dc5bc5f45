"""What follows from the signs of a reply: what is taken out, asked again, left out, or ends its run."""

from __future__ import annotations

import re
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from pydantic import ValidationError

import opinionsim as osim
from opinionsim.conduct import Looked, ReplyPolicy, Sign
from opinionsim.errors import ModelCallError, Rejected, ScheduleError
from opinionsim.llm import Endpoint, MemoryJournal, ReplayOnly
from opinionsim.messages import AS_IS, ChatMessage, Message, Parsing, Prompt, Reply, Said, Speech
from opinionsim.testing import run_virtual
from tests.support.desk import PROMPT, TURN, Client, Desk, fails

PLAIN = "The lane is good, and I would keep it for the sake of everybody who rides."
NOISY = f"Sure! Here is the post:\n\n**{PLAIN}**"
LOOP = "yes and no and yes and no " * 9
SPEAKS = AS_IS._replace(speech=Speech("Ann", again=lambda cause, reason: f"Again, for {cause}: {reason}."))
HERE = "tests.conduct.test_treatment"
REFUSAL = "I'm sorry, but I can't help with that request."
MARKS = {"preamble": r"Sure! Here is the post:\s*|Final answer:", "markup": r"\*\*", "loop": r"(yes and no.*){4}"}


@osim.part("judge", version=3)
def marks(text: str, status: Any, *, speech: Any, **_: Any) -> Looked:
    """A judge that knows the texts of these tests, so that these depend on no rule."""
    status = {"N/A": "empty", REFUSAL: "refused"}.get(text, status)
    found = [(name, *match.span()) for name, each in MARKS.items() for match in re.finditer(each, text)]
    return Looked(status, tuple(Sign(*each, sure=each[0] != "loop") for each in found if speech))


@osim.part("sign")
def loud(text: str, **_: Any) -> list[tuple[int, int]]:
    """Words in capitals."""
    return [match.span() for match in re.finditer(r"\b[A-Z]{3,}\b", text)]


@osim.part("judge")
async def compared(text: str, status: Any, *, speech: Any, prompt: Any, received: Any) -> Looked:
    """A judge that is awaited, and says with what it could compare a reply."""
    return Looked(status, tuple(Sign(name, 0, 1) for name, each in (("echo_task", prompt), ("echo", received)) if each))


def desk(
    policy: dict[str, Any], *replies: str, journal: Any = None, judge: str = f"{HERE}:marks", longest: int = 40
) -> Desk:
    given = ReplyPolicy.model_validate({"judge": judge, **policy})
    endpoint = Endpoint(Client(*replies) if replies else ReplayOnly(), replies=given, max_tokens=longest)
    return Desk([endpoint] * 3, journal)


def replayed(at: Desk, reading: Parsing = SPEAKS) -> Reply:
    """What the journal alone says, without the study's choices and without another look."""
    return run_virtual(Desk(ReplayOnly(), MemoryJournal(at.journal.records)).ask(reading))


def told(at: Desk) -> list[str]:
    """What each prompt says beyond the first."""
    return [prompt[-1].content.removeprefix(PROMPT[-1].content).strip() for prompt in at.client[0].client.prompts]


@pytest.mark.parametrize(
    ("policy", "text", "taken"),
    [
        ({}, PLAIN, "preamble markup"),
        ({"markup": "keep"}, f"**{PLAIN}**", "preamble"),
        ({"preamble": "keep"}, NOISY.replace("**", ""), "markup"),
        ({"preamble": "keep", "markup": "keep"}, NOISY, ""),
        ({"preamble": {"reask": 0, "then": "strip"}, "markup": {"reask": 0}}, f"**{PLAIN}**", "preamble"),
    ],
)
def test_the_journal_says_what_was_taken_out_and_has_the_whole(policy: dict[str, Any], text: str, taken: str) -> None:
    at = desk(policy, NOISY)
    reply = run_virtual(at.ask(SPEAKS))
    assert reply == replayed(at) == Reply(text, signs=("preamble", "markup"), taken=taken)
    (entry,) = at.journal.records
    assert (entry.text, entry.acceptance, entry.cause, entry.rules) == (NOISY, "accepted", "", f"judge {HERE}:marks@3")
    assert entry.signs[0] == Sign("preamble", 0, 25, True)


def test_only_what_is_sure_is_taken_out() -> None:
    at = desk({"lines": "strip"}, LOOP)
    assert run_virtual(at.ask(SPEAKS)) == Reply(LOOP, signs=("loop",))
    assert ReplyPolicy().taken == {"preamble", "names", "markup"}


@pytest.mark.parametrize("how", [{"speech": None}, {"speech": SPEAKS.speech._replace(looks="none")}, {"closed": True}])
def test_where_nobody_speaks_no_sign_is_looked_for(how: dict[str, Any]) -> None:
    at = desk({"own": {f"{HERE}:loud": "strip"}}, NOISY)
    assert run_virtual(at.ask(SPEAKS._replace(**how))) == Reply(NOISY)
    assert at.journal.records[0].signs == ()


@pytest.mark.parametrize(("looks", "signs"), [("all", ("echo", "echo_task")), ("own", ())])
def test_a_summary_is_compared_with_nothing_that_it_was_shown(looks: Any, signs: tuple[str, ...]) -> None:
    reading = Parsing(None, (Message("News."),), speech=SPEAKS.speech._replace(looks=looks))
    assert run_virtual(desk({}, PLAIN, judge=f"{HERE}:compared").ask(reading)) == Reply(PLAIN, signs=signs)


def test_a_label_that_was_asked_for_stays() -> None:
    prompt = Prompt.of([ChatMessage("user", 'Say what you think. End with "Final answer:" and a number.')])
    at = desk({}, "Final answer: 2")
    reply = run_virtual(at.calls.ask(TURN, "reply", prompt, reading=SPEAKS))
    assert reply == Reply("Final answer: 2", signs=("preamble",))
    assert run_virtual(desk({}, "Final answer: 2").ask(SPEAKS)).text == "2"


def test_a_parse_gets_the_whole_reply_and_what_is_said_of_it_is_stripped_for_readers() -> None:
    whole = SPEAKS._replace(parse=lambda call, text, received: len(text))
    at = desk({}, NOISY)
    assert run_virtual(at.ask(whole)).decision == replayed(at, whole).decision == len(NOISY)
    said = SPEAKS._replace(parse=lambda call, text, received: Said(text.removesuffix("\nNext: Ben"), "Ben"))
    at = desk({}, f"{NOISY}\nNext: Ben")
    reply = Reply(PLAIN, decision="Ben", signs=("preamble", "markup"), taken="preamble markup")
    assert run_virtual(at.ask(said)) == replayed(at, said) == reply


def _move(call: str, text: str, received: tuple[Message, ...]) -> Said:
    """Words around a line that names who is next."""
    before, name, after = text.split("\n")
    return Said(f"{before}\n\n{after}", name.removeprefix("Next: "))


def test_words_that_stand_apart_in_a_reply_are_stripped_too() -> None:
    reading = SPEAKS._replace(parse=_move)
    at = desk({}, "**Please** stay civil.\nNext: Ben\nThank you **all**.")
    move = Reply("Please stay civil.\n\nThank you all.", decision="Ben", signs=("markup",), taken="markup")
    assert run_virtual(at.ask(reading)) == replayed(at, reading) == move


def test_what_was_wrong_is_said_before_the_cue_that_ends_a_task() -> None:
    at = desk({"empty": {"reask": 1}}, "N/A", PLAIN)
    prompt = Prompt.of([ChatMessage("user", "Write a post.\n\nYour post:")])
    run_virtual(at.calls.ask(TURN, "reply", prompt, reading=SPEAKS))
    asked = at.client[0].client.prompts[-1][-1].content
    assert asked == "Write a post.\n\nAgain, for empty: the reply was empty.\n\nYour post:"


@pytest.mark.parametrize(
    ("then", "reply"),
    [
        ("keep", Reply(NOISY.replace("**", ""), taken="markup")),
        ("strip", Reply(PLAIN, taken="preamble markup")),
        ("missing", Reply(NOISY.replace("**", ""), taken="markup")),
        ("skip", Reply(NOISY.replace("**", ""), "left_out", taken="markup")),
    ],
)
def test_a_sign_is_asked_about_so_often_and_then_treated(then: str, reply: Reply) -> None:
    at = desk({"preamble": {"reask": 2, "then": then}}, NOISY, NOISY, NOISY, "never asked")
    reading = SPEAKS._replace(parse=lambda call, text, received: 1)
    decision = None if then == "skip" else 1
    assert run_virtual(at.ask(reading)) == reply._replace(signs=("preamble", "markup"), decision=decision)
    again = "Again, for preamble: the reply shows preamble."
    assert told(at) == ["", again, again]
    assert [(each.acceptance, each.cause) for each in at.journal.records] == [
        *[("rejected", "preamble")] * 2,
        ("accepted", ""),
    ]
    assert replayed(at, reading) == reply._replace(signs=("preamble", "markup"), decision=decision)


def test_a_sign_may_end_the_run_and_what_was_paid_for_is_kept() -> None:
    at = desk({"loop": {"reask": 1, "then": "fail"}}, LOOP, LOOP)
    fails(at, ModelCallError, r"agent 2 \(write\): the reply shows loop$", SPEAKS)
    assert len(at.journal.records) == 2


def test_each_status_and_sign_has_tries_of_its_own_and_is_told() -> None:
    policy = {"loop": {"reask": 1}, "refused": {"reask": 1}, "empty": {"reask": 1}}
    at = desk(policy, LOOP, "N/A", REFUSAL, PLAIN)
    assert run_virtual(at.ask(SPEAKS)) == replayed(at) == Reply(PLAIN)
    assert told(at) == [
        "",
        "Again, for loop: the reply shows loop.",
        "Again, for empty: the reply was empty.",
        "Again, for refused: the reply was refused.",
    ]


@pytest.mark.parametrize("then", ["keep", "missing", "skip"])
def test_an_act_that_rejects_a_reply_with_a_sign_asks_no_more_often_than_it_says(then: str) -> None:
    def never(call: str, text: str, received: Any) -> None:
        raise Rejected("no number in it")

    at = desk({"loop": {"reask": 1, "then": then}}, *[LOOP] * 9)
    if then == "skip":
        assert run_virtual(at.ask(SPEAKS._replace(parse=never))).status == "left_out"
    else:
        fails(
            at,
            ModelCallError,
            "none of 3 replies was acceptable; the last one: no number",
            SPEAKS._replace(parse=never),
        )
        assert [each.cause for each in at.journal.records] == ["loop", *["rejected"] * 3]


@pytest.mark.parametrize(("then", "status"), [("keep", "truncated"), ("missing", "truncated"), ("skip", "left_out")])
def test_a_text_that_was_cut_off_is_asked_for_again_for_that_alone(then: str, status: str) -> None:
    cut = AIMessage(NOISY, response_metadata={"finish_reason": "length"})
    at = desk({"preamble": {"reask": 5, "then": then}}, cut, cut, "never asked")
    reply = run_virtual(at.ask(SPEAKS))
    assert (reply.status, reply.taken, len(at.journal.records)) == (status, "markup", 2)
    assert replayed(at) == reply


@pytest.mark.parametrize("then", ["missing", "fail"])
def test_a_closed_answer_that_cannot_be_read_is_asked_for_again_and_then_decides_nothing(then: str) -> None:
    def number(call: str, text: str, received: Any) -> int:
        if not text.isdecimal():
            raise Rejected("one of 1, 2 is needed")
        return int(text)

    closed = SPEAKS._replace(parse=number, closed=True, attempts=1)
    at = desk({"unreadable": {"reask": 1, "then": then}}, "-1: slightly", "half", "1")
    if then == "fail":
        return fails(at, ModelCallError, "one of 1, 2 is needed", closed)
    assert run_virtual(at.ask(closed)) == replayed(at, closed) == Reply("half", "unreadable")
    assert told(at) == ["", "Again, for unreadable: one of 1, 2 is needed."]
    assert run_virtual(desk({}, "half", "2").ask(closed)) == Reply("2", decision=2)


def test_a_sign_of_ones_own_is_one_part() -> None:
    at = desk({"own": {f"{HERE}:loud": "strip"}}, "SURE I like the lane, and THAT is all.", judge="")
    assert run_virtual(at.ask(SPEAKS)).text == "I like the lane, and  is all."
    assert at.journal.records[0].rules.endswith(f" + sign {HERE}:loud")
    at = desk({"own": {f"{HERE}:loud": {"reask": 1, "then": "skip"}}}, "WOW", "WOW", judge="")
    assert run_virtual(at.ask(SPEAKS)) == replayed(at) == Reply("WOW", "left_out", signs=(f"{HERE}:loud",))


@pytest.mark.parametrize(
    "looked",
    [
        Looked("weird"),
        Looked("left_out"),
        Looked("answered", (("loop", 0, 1),)),
        Looked("answered", (Sign("markup", 0, 999, True),)),
        Looked("answered", (Sign("markup", -5, 4, True),)),
    ],
)
def test_what_a_judge_gives_is_checked_and_the_reply_is_kept(looked: Any) -> None:
    @osim.part("judge", name="odd", version=1)
    def odd(text: str, status: Any, **_: Any) -> Looked:
        return looked

    at = desk({}, PLAIN, judge="odd")
    fails(at, ScheduleError, "judge of replies odd must return a Looked with answered, .* inside the text; got", SPEAKS)
    assert [(each.text, each.acceptance) for each in at.journal.records] == [(PLAIN, "unparsed")]


def test_a_text_of_which_nothing_is_left_is_empty_and_asked_for_again() -> None:
    at = desk({"own": {f"{HERE}:loud": "strip"}}, "NEVER", "Never.", judge="")
    assert run_virtual(at.ask(SPEAKS)) == replayed(at) == Reply("Never.")
    assert [(each.status, each.cause) for each in at.journal.records] == [("empty", "empty"), ("answered", "")]


def test_what_was_paid_for_is_kept_where_a_sign_of_ones_own_fails_and_nobody_gets_it_unseen() -> None:
    fails_now = [True]

    @osim.part("sign", name="outside", version=1)
    def outside(text: str, **_: Any) -> list[tuple[int, int]]:
        return [(0, len(text) + 1 if fails_now else 4)]

    at = desk({"own": {"outside": "strip"}}, PLAIN, "But keep it.")
    fails(at, ScheduleError, "sign of conduct outside must return pairs of start and end inside the text; got", SPEAKS)
    assert [(each.text, each.acceptance) for each in at.journal.records] == [(PLAIN, "unparsed")]
    fails_now.clear()
    seen = Reply("keep it.", signs=("outside",), taken="outside")
    assert run_virtual(at.ask(SPEAKS)) == replayed(at) == seen
    assert [(each.text, each.acceptance) for each in at.journal.records] == [
        (PLAIN, "unparsed"),
        ("But keep it.", "accepted"),
    ]
    assert told(at) == ["", ""]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"echo": "strip"}, "strip works only for signs with a place"),
        ({"loop": {"then": "strip"}}, "strip works only for signs with a place"),
        ({"preamble": "drop"}, "preamble"),
        ({"noise": "keep"}, "noise"),
    ],
)
def test_treatments_that_cannot_be_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ReplyPolicy.model_validate(given)


def test_each_stated_treatment_enters_the_identity_whole_but_for_what_texts_count_for() -> None:
    def identity(**given: Any) -> dict[str, Any]:
        return ReplyPolicy.model_validate(given).identity()

    assert identity() == identity(truncated={"then": "measure"}, preamble="strip", loop="keep") == {}
    assert identity(preamble="keep") == {"preamble": "keep"}
    assert identity(loop={"reask": 2}) == identity(loop={}) == {"loop": {"reask": 2, "then": "keep"}}
    assert identity(truncated={"reask": 2, "then": "fail"}) == {"truncated": {"reask": 2}}
    assert identity(judge=f"{HERE}:marks", own={f"{HERE}:loud": "keep"}) == {
        "judge": f"{HERE}:marks@3",
        "own": {f"{HERE}:loud": "keep"},
    }
    assert ReplyPolicy.model_validate({"echo": {"reask": 0, "then": "missing"}}).uncounted == ("truncated", "echo")
