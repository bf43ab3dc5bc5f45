"""What follows from the signs of a reply: what is taken out, asked again, left out, or ends its run."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from opinionsim.conduct import ReplyPolicy, Sign
from opinionsim.errors import ModelCallError
from opinionsim.llm import Endpoint, ReplayOnly
from opinionsim.messages import AS_IS, Parsing, Reply, Speech
from opinionsim.testing import run_virtual
from tests.support.desk import PROMPT, Client, Desk, fails

PLAIN = "The lane is good, and I would keep it for the sake of everybody who rides."
NOISY = f"Sure! Here is the post:\n\n**{PLAIN}**"
SPEAKS = AS_IS._replace(speech=Speech("Ann", again=lambda cause, reason: f"Again, for {cause}: {reason}."))


def desk(policy: dict[str, Any], *replies: str, journal: Any = None) -> Desk:
    endpoint = Endpoint(Client(*replies) if replies else ReplayOnly(), replies=ReplyPolicy.model_validate(policy))
    return Desk([endpoint] * 3, journal)


def told(at: Desk) -> list[str]:
    """What each prompt says beyond the first."""
    return [prompt[-1].content.removeprefix(PROMPT[-1].content).strip() for prompt in at.client[0].client.prompts]


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        ({}, PLAIN),
        ({"markup": "keep"}, f"**{PLAIN}**"),
        ({"preamble": "keep"}, NOISY.replace("**", "")),
        ({"preamble": "keep", "markup": "keep"}, NOISY),
        ({"preamble": {"reask": 0, "then": "strip"}, "markup": {"reask": 0}}, f"**{PLAIN}**"),
    ],
)
def test_what_is_taken_out_is_up_to_the_study_and_the_journal_has_the_whole(policy: dict[str, Any], text: str) -> None:
    at = desk(policy, NOISY)
    reply = run_virtual(at.ask(SPEAKS))
    assert reply == Reply(text, signs=("preamble", "markup"))
    (entry,) = at.journal.records
    assert (entry.text, entry.acceptance, entry.signs[0]) == (NOISY, "accepted", Sign("preamble", 0, 25, True))
    assert run_virtual(desk(policy, journal=at.journal).ask(SPEAKS)) == reply


def test_where_nobody_speaks_no_sign_is_looked_for() -> None:
    at = desk({}, NOISY)
    assert run_virtual(at.ask()) == Reply(NOISY)
    assert at.journal.records[0].signs == ()


def test_a_form_of_its_own_is_parsed_whole_and_shows_nothing() -> None:
    reading = Parsing(lambda call, text, received: len(text), formal=True, speech=SPEAKS.speech)
    assert run_virtual(desk({}, NOISY).ask(reading)) == Reply(NOISY, decision=len(NOISY))


def test_a_parse_gets_the_whole_reply() -> None:
    reading = SPEAKS._replace(parse=lambda call, text, received: len(text))
    assert run_virtual(desk({}, NOISY).ask(reading)) == Reply(PLAIN, decision=len(NOISY), signs=("preamble", "markup"))


@pytest.mark.parametrize(
    ("then", "reply"),
    [
        ("keep", Reply(NOISY.replace("**", ""), signs=("preamble", "markup"))),
        ("strip", Reply(PLAIN, signs=("preamble", "markup"))),
        ("missing", Reply(NOISY.replace("**", ""), signs=("preamble", "markup"))),
        ("skip", Reply(NOISY.replace("**", ""), "off_role", signs=("preamble", "markup"))),
    ],
)
def test_a_sign_is_asked_about_so_often_and_then_treated(then: str, reply: Reply) -> None:
    policy = {"preamble": {"reask": 2, "then": then}}
    at = desk(policy, NOISY, NOISY, NOISY, "never asked")
    assert run_virtual(at.ask(SPEAKS)) == reply
    again = "Again, for preamble: the reply shows preamble."
    assert told(at) == ["", again, again]
    assert [entry.acceptance for entry in at.journal.records] == ["rejected", "rejected", "accepted"]
    assert run_virtual(desk(policy, journal=at.journal).ask(SPEAKS)) == reply


def test_a_better_reply_ends_it() -> None:
    at = desk({"preamble": {"reask": 2}}, NOISY, PLAIN)
    assert run_virtual(at.ask(SPEAKS)) == Reply(PLAIN)


def test_a_sign_may_end_the_run_and_what_was_paid_for_is_kept() -> None:
    at = desk({"loop": {"reask": 1, "then": "fail"}}, *["yes and no and yes and no " * 9] * 2)
    fails(at, ModelCallError, r"agent 2 \(write\): the reply shows loop$", SPEAKS)
    assert len(at.journal.records) == 2


def test_each_cause_has_tries_of_its_own_and_is_told() -> None:
    policy = {"loop": {"reask": 1}, "refused": {"reask": 1}}
    at = desk(policy, "yes and no and yes and no " * 9, "N/A", PLAIN)
    assert run_virtual(at.ask(SPEAKS)) == Reply(PLAIN)
    assert told(at) == ["", "Again, for loop: the reply shows loop.", "Again, for empty: the reply was empty."]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"echo": "strip"}, "strip is for signs with a place in the text"),
        ({"loop": {"then": "strip"}}, "strip is for signs with a place in the text"),
        ({"preamble": "drop"}, "preamble"),
        ({"noise": "keep"}, "noise"),
    ],
)
def test_treatments_that_cannot_be_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ReplyPolicy.model_validate(given)


def test_what_texts_count_for_is_no_part_of_the_identity() -> None:
    def identity(**given: Any) -> dict[str, Any]:
        return ReplyPolicy.model_validate(given).identity()

    assert identity() == identity(truncated={"then": "measure"}) == {}
    assert identity(preamble="keep") == {"preamble": "keep"}
    assert identity(echo={"reask": 1, "then": "missing"}) != identity(echo={"reask": 1, "then": "keep"})
    assert ReplyPolicy.model_validate({"echo": {"reask": 0, "then": "missing"}}).uncounted == ("truncated", "echo")
