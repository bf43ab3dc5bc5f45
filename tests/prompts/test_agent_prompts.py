from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest
from pydantic import ValidationError

from opinionsim.errors import SpecError
from opinionsim.messages import Message, Reply, ReplyStatus
from opinionsim.opinions import OpinionScale
from opinionsim.personas import BARE, Persona
from opinionsim.prompts import AgentPrompts, Case, Conditions, Past, PromptPack, load_pack, worded
from opinionsim.schedules import PROBE, REPORT, REPORT_ONCE, REVIEW, SELF_REPORT, WRITE, ActSpec, named
from opinionsim.topics import Claim

Agent = Callable[..., AgentPrompts]

_POST = Message("Cows can swim.", "Bo Ek")
_REPLY = Reply("My words.")
_NONE = Past()
ACTS = named(WRITE, REVIEW, REPORT, REPORT_ONCE, PROBE, SELF_REPORT)


def _system(prompts: AgentPrompts) -> str:
    message = prompts.system()
    assert message.role == "system"
    return message.content


def _event(prompts: AgentPrompts, act: str, past: Past, reply: Reply = _REPLY) -> str:
    received = (_POST,) if act == "review" else ()
    return prompts.event(ACTS[act], received, reply, past).content


# The past


def test_the_past_counts_what_was_done() -> None:
    past = _NONE
    for act, received in [("write", ()), ("review", (_POST,)), ("write", ()), ("report", ()), ("review", (_POST,) * 2)]:
        past = past.advance(ACTS[act], received)
    assert past == Past("review", 2, posts_written=2, posts_seen=3, reports_given=1)


@pytest.mark.parametrize(
    ("k", "spelled"),
    [
        *((1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (12, "12th"), (13, "13th"), (21, "21st")),
        *((22, "22nd"), (23, "23rd"), (24, "24th"), (101, "101st"), (111, "111th"), (112, "112th"), (1003, "1003rd")),
    ],
)
def test_ordinals(agent: Agent, k: int, spelled: str) -> None:
    told = _event(agent(), "write", Past("write", 0, posts_written=k - 1))
    assert f"wrote your {spelled} post" in told


# Memory events: the cases of A7, and those of the controls (A12)


@pytest.mark.parametrize(
    ("act", "past", "said"),
    [
        ("review", _NONE, ["The first post you saw by a stranger"]),
        ("write", _NONE, ["You wrote your 1st post about Theory XYZ:"]),
        ("write", Past("review", 1, 2, 4), ["After you saw the previous post, you wrote your 3rd post"]),
        ("review", Past("review", 1, 2, 4), ["After you saw the previous post", "you saw another post by a stranger"]),
        ("write", Past("write", 0, 2, 4), ["After you wrote your 2nd post, you wrote your 3rd post"]),
        ("review", Past("write", 0, 2, 4), ["After you wrote your 2nd post", "you saw another post by a stranger"]),
        ("report", _NONE, ["reported your 1st opinion about Theory XYZ:"]),
        ("report", Past("report", 0, 0, 0, 9), ["After you reported your 9th opinion", "reported your 10th opinion"]),
    ],
)
def test_each_case_of_an_event_says_what_it_must(
    pack: PromptPack, agent: Agent, act: str, past: Past, said: list[str]
) -> None:
    told = _event(agent(), act, past)
    (inside,) = pack.marks.blocks("history", told)
    for words in said:
        assert words in inside
    assert pack.marks.without("history", told) == ""
    own = pack.marks.without("post", inside)
    assert own.endswith("My words.\n")
    assert pack.marks.blocks("post", inside) == (("\nCows can swim.\n",) if act == "review" else ())
    assert ("What you thought and honestly believed about Theory XYZ after seeing it" in own) == (act == "review")


def test_the_cases_of_an_event_all_differ(agent: Agent) -> None:
    pasts = [
        _NONE,
        Past("write", 0, 2, 4),
        Past("review", 1, 2, 4),
        Past("review", 2, 2, 4),
        Past("report", 0, 2, 4, 1),
    ]
    told = [_event(agent(), act, past) for act, past in product(("write", "review", "report"), pasts)]
    assert len(set(told)) == len(told)


def test_an_event_of_several_messages_holds_each_and_the_answer_outside(pack: PromptPack, agent: Agent) -> None:
    read = ActSpec("read-all", template="review", kind="report", labelling="named", audience="nobody")
    posts = (_POST, Message("Goats can climb."), Message("Hens can fly.", "Cy"))
    told = agent().event(read, posts, _REPLY, _NONE).content
    assert [block.strip() for block in pack.marks.blocks("post", told)] == [post.text for post in posts]
    assert "Post by Bo Ek:" in told
    assert "Post by a stranger:" in told
    assert "after seeing them:\nMy words." in told


def test_a_write_that_read_something_keeps_both(pack: PromptPack, agent: Agent) -> None:
    told = agent().event(ACTS["write"], (_POST,), _REPLY, _NONE).content
    assert [block.strip() for block in pack.marks.blocks("post", told)] == [_POST.text]
    assert "You wrote your 1st post about Theory XYZ:\nMy words." in told


# What is remembered of a reply that is none

_SILENCE = {
    "write": "but you did not post anything.",
    "review": "You did not say what you believed about Theory XYZ after seeing it.",
    "report": "but you did not say.",
}


@pytest.mark.parametrize("act", _SILENCE)
@pytest.mark.parametrize("status", ["refused", "empty"])
@pytest.mark.parametrize("past", [_NONE, Past("write", 0, 2, 4), Past("review", 1, 2, 4)])
def test_a_refusal_is_remembered_as_silence_in_the_second_person(
    pack: PromptPack, agent: Agent, act: str, status: ReplyStatus, past: Past
) -> None:
    refusal = Reply("Sorry, as a model I will not go on [declined].", status)
    told = _event(agent(), act, past, refusal)
    (inside,) = pack.marks.blocks("history", told)
    own = pack.marks.without("post", inside)
    assert own.strip().endswith(_SILENCE[act])
    assert not any(words in told for words in ("Sorry", "model", "declined", "author", "["))
    assert pack.marks.blocks("post", inside) == (("\nCows can swim.\n",) if act == "review" else ())


def test_a_text_that_was_cut_off_is_remembered_as_it_stands(agent: Agent) -> None:
    for act in ("write", "review", "report"):
        assert _event(agent(), act, _NONE, Reply("I think", "truncated")) == _event(
            agent(), act, _NONE, Reply("I think")
        )


@pytest.mark.parametrize("status", ["refused", "empty"])
def test_a_refusal_counts_as_no_post_and_no_report(status: ReplyStatus) -> None:
    past = Past("report", 0, 2, 4, 3)
    assert past.advance(ACTS["write"], (), status) == past
    assert past.advance(ACTS["report"], (), status) == past
    assert past.advance(ACTS["write"], (_POST,), status) == Past("report", 0, 2, 5, 3)
    # A refused review counts as a post seen: the agent was shown it.
    assert past.advance(ACTS["review"], (_POST,), status) == Past("review", 1, 2, 5, 3)
    assert past.advance(ACTS["write"], (), "truncated") == Past("write", 0, 3, 4, 3)


def test_a_reply_is_published_without_wrapper_and_without_what_no_prompt_can_hold(agent: Agent) -> None:
    said = agent().said
    assert said(Reply("\n<post>\nI doubt it.\n</post>\n")) == Reply("I doubt it.")
    assert said(Reply("<memory>I <b>doubt</b> it.</memory>", "truncated")) == Reply("I <b>doubt</b> it.", "truncated")
    assert said(Reply("\ud800half\x00", decision=3)) == Reply("\ufffdhalf\ufffd", decision=3)
    assert said(Reply("<post>\n</post>")) == Reply("", "empty")
    assert said(Reply(" \n", "refused")).status == "refused"
    assert agent().recollection(Reply("<memory>I saw it.</memory>")) == agent().recollection(Reply("I saw it."))


# Tasks (A6)


_PREVIOUS = (_NONE, Past("write", 0, 2, 1), Past("review", 1, 0, 1), Past("report", 0, 0, 0, 2), Past("response", 0, 1))


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("past", _PREVIOUS)
@pytest.mark.parametrize("n", [0, 1, 2])
def test_no_task_reads_as_if_the_person_spoke(agent: Agent, act: str, past: Past, n: int) -> None:
    """A name with a colon is the label of a speaker."""
    task = agent(confirmation_bias="weak", world="closed").task(ACTS[act], (_POST,) * n, past).content
    assert task.startswith("Ann Lee, ")
    assert "Ann Lee:" not in task


@pytest.mark.parametrize("written", [0, 1, 2])
@pytest.mark.parametrize("previous", ["review", "report", "response", "write"])
def test_another_post_is_asked_for_and_told_of_only_where_there_was_one(
    agent: Agent, previous: Case, written: int
) -> None:
    past = Past(previous, 1, max(written, previous == "write"), 1, 1)
    task = agent().task(ACTS["write"], (), past).content
    assert ("another post" in task) == (past.posts_written > 0)
    assert "another post, your 1st" not in _event(agent(), "write", past)
    seen = agent().task(ACTS["review"], (_POST,), Past("write", 0, 1, 0)).content
    assert "you now see a post by a stranger" in seen
    assert "you now see another post" in agent().task(ACTS["review"], (_POST,), Past("write", 0, 1, 1)).content


@pytest.mark.parametrize(
    ("words", "said"), [(60, "in at most 60 words."), (1, "in at most 1 word."), (None, "about Theory XYZ. Write")]
)
def test_a_post_is_asked_to_be_as_short_as_stated(agent: Agent, words: int | None, said: str) -> None:
    prompts = agent(post_words=words)
    assert said in prompts.task(ACTS["write"], (), _NONE).content
    assert ("word" in prompts.task(ACTS["write"], (), _NONE).content) == (words is not None)
    others = (act for act in ACTS if act not in ("write", "probe"))
    assert not any("most" in prompts.task(ACTS[act], (), _NONE).content for act in others)


@pytest.mark.parametrize("wording", ["usual", "second", "third", "fourth", "fifth"])
@pytest.mark.parametrize(
    ("room", "post", "report"), [(500, 60, 150), (100, 60, 100), (40, 40, 40), (1, 1, 1), (None, 60, None)]
)
def test_lengths_keep_to_the_room_that_the_limit_of_replies_leaves(
    agent: Agent, wording: str, room: int | None, post: int, report: int | None
) -> None:
    prompts = agent(load_pack(worded("default", wording)), post_words=60, answer_words=room)
    assert prompts.words(ACTS["write"]) == post
    assert f"{post} word" in prompts.task(ACTS["write"], (), _NONE).content
    for act in ("report", "review"):
        assert prompts.words(ACTS[act]) == report
        text = prompts.task(ACTS[act], (_POST,), _NONE).content
        assert report is None or f"{report} words" in text
        # An opening sentence and steps take more words than a short reply has.
        assert ("will go step by step" in text) == (report is None or report >= 80)


@pytest.mark.parametrize("act", ["write", "review", "report", "probe"])
def test_a_task_addresses_the_agent_defines_the_claim_and_carries_its_cue(
    pack: PromptPack, agent: Agent, act: str
) -> None:
    message = agent().task(ACTS[act], (), _NONE)
    assert message.role == "user"
    assert message.content.startswith("Ann Lee")
    for text in (_system(agent()), message.content):
        assert "Theory XYZ, the theory that <claim>the Earth is flat</claim>" in text
        assert text.count("the Earth is flat") == 1
    assert [task for task, cue in pack.marks.cues.items() if cue in message.content] == [act]


def test_write_and_review_have_variants_by_the_previous_act(agent: Agent) -> None:
    pasts = [_NONE, Past("write", 0, 3, 1), Past("review", 1, 3, 1)]
    for act, received in (("write", ()), ("review", (_POST,))):
        none, wrote, read = (agent().task(ACTS[act], received, past).content for past in pasts)
        assert len({none, wrote, read}) == 3
        assert "3rd post" in wrote
        assert "3rd" not in none + read
        assert "previous post" in read


def test_review_asks_for_reasoning_in_the_first_person_and_for_no_rating(agent: Agent) -> None:
    task = agent().task(ACTS["review"], (_POST,), _NONE).content
    assert "step by step" in task
    assert "I, Ann Lee," in task
    assert "Focus on your own opinion about Theory XYZ" in task
    for act in ACTS.values():
        rated = any(word in agent().task(act, (), _NONE).content.lower() for word in ("scale", "rate", "number", "-2"))
        assert rated == (act.name == "self-report")


def test_a_self_report_lists_the_scale_and_shows_no_post(pack: PromptPack, agent: Agent) -> None:
    scale = OpinionScale((1, 2, 3), ("against", "</claim> undecided", "in favour"))
    task = agent(scale=scale, opinion=3).task(ACTS["self-report"], (), Past("review", 1, 0, 1)).content
    assert "\n1: against\n2: < /claim> undecided\n3: in favour\n" in task
    assert pack.marks.blocks("post", task) == ()
    assert pack.marks.blocks("claim", task) == ("the Earth is flat",)


def test_a_probe_asks_what_is_believed_and_says_nothing_of_who_will_read_it(pack: PromptPack, agent: Agent) -> None:
    task = agent().task(ACTS["probe"], (), Past("review", 1, 0, 1)).content
    assert "what do you honestly believe about Theory XYZ" in task
    assert pack.marks.blocks("post", task) == ()
    for act in ACTS.values():
        task = agent().task(act, (), Past("review", 1, 0, 1)).content.lower()
        assert not any(words in task for words in ("record", "nobody", "for you alone", "come back"))


def test_labelling_of_received_messages(agent: Agent) -> None:
    posts = (_POST, Message("Goats can climb."))
    told = {
        labelling: agent().task(ActSpec("r", "review", "report", labelling=labelling), posts, _NONE).content
        for labelling in ("anonymous", "numbered", "named", "you-other")
    }
    assert "Bo Ek" not in told["anonymous"] + told["numbered"] + told["you-other"]
    assert "2 posts by strangers" in told["anonymous"]
    assert "Post 1:" not in told["anonymous"]
    assert told["numbered"].index("Post 1:") < told["numbered"].index("Cows") < told["numbered"].index("Post 2:")
    assert told["named"].index("Post by Bo Ek:") < told["named"].index("Cows") < told["named"].index("by a stranger:")


def test_you_other_tells_own_messages_by_the_number_of_the_agent(agent: Agent) -> None:
    posts = (Message("Cows can swim.", "", 0), Message("Goats can climb.", "", 1), Message("From outside."))
    act = ActSpec("r", "review", "report", labelling="you-other")
    own, other = "Your earlier post:\n<post>\n", "Post by someone else:\n<post>\n"

    def told(number: int | None) -> str:
        prompts = agent(agent=number)
        event = prompts.event(act, posts, Reply("Ok."), _NONE).content
        task = prompts.task(act, posts, _NONE).content
        assert "stranger" not in event + task
        assert [line for line in event.splitlines() if line.endswith(("earlier post:", "someone else:"))] == [
            line for line in task.splitlines() if line.endswith(("earlier post:", "someone else:"))
        ]
        return task

    assert f"{own}Cows" in told(0)
    assert f"{other}Goats" in told(0)
    assert f"{other}From outside" in told(0)
    assert f"{other}Cows" in told(1)
    assert f"{own}Goats" in told(1)
    assert own not in told(None)
    assert told(None).count(other) == 3


def test_an_act_without_template_is_an_error_that_lists_what_there_is(agent: Agent) -> None:
    with pytest.raises(SpecError, match=r"'moderate'.*probe, report, review, self-report, write"):
        agent().task(ActSpec("moderate", "moderate", "response"), (), _NONE)
    with pytest.raises(SpecError, match="no task template 'system'"):
        agent().task(ActSpec("odd", "system", "response"), (), _NONE)


# Conditions


def test_the_persona_in_full(pack: PromptPack, agent: Agent) -> None:
    (block,) = pack.marks.blocks("persona", _system(agent()))
    assert block.strip().splitlines() == [
        "Name: Ann Lee",
        "Initial belief: strongly positive opinion about Theory XYZ",
        "Political leaning: Moderate",
        "Age: 37",
        "Background: Keeps bees.",
    ]


def test_the_initial_belief_is_the_assigned_one_and_speaks_the_scale(agent: Agent) -> None:
    assert "slightly negative" not in _system(agent(opinion=2))
    assert "Initial belief: slightly negative opinion about Theory XYZ\n" in _system(agent(opinion=-1))
    assert "Initial belief" not in _system(agent(opinion=None))
    words = OpinionScale((0, 1), ("against it", "all for it"))
    assert "all for it" in _system(agent(opinion=1, scale=words))
    with pytest.raises(SpecError, match="not on the scale"):
        agent(opinion=3)


def test_the_initial_belief_in_the_past_tense_is_a_variant(pack: PromptPack, agent: Agent) -> None:
    (block,) = pack.marks.blocks("persona", _system(agent(opinion=-1, belief_tense="past")))
    assert block.splitlines()[2] == "Initial belief: at the start, your opinion about Theory XYZ was slightly negative"


@pytest.mark.parametrize("masked", [True, False])
def test_what_a_negative_opinion_means_is_said_in_the_labels_of_the_scale(agent: Agent, masked: bool) -> None:
    subject = "Theory XYZ" if masked else "the claim"
    negated = Claim("it is not possible to speak with the dead", "dead", "truth", "truth")
    told = _system(agent(claim=negated, opinion=-1, masked=masked))
    assert (
        f'Opinions about {subject} range from "strongly negative" (it is wrong) to "strongly positive" (it is right)'
        in told
    )
    own = OpinionScale((1, 2, 3), ("against", "undecided", "all for"))
    assert 'from "against" (it is wrong) to "all for" (it is right)' in _system(agent(scale=own, opinion=2))
    assert "it is wrong" not in _system(agent(opinion=None))
    assert "it is wrong" not in _system(agent(claim=None))
    question = _system(agent(claim=Claim("the square should stay a market", "square", "market"), masked=masked))
    assert f'about {subject} range from "strongly negative" (against it) to "strongly positive" (for it)' in question


@pytest.mark.parametrize(
    ("shown", "there", "absent"),
    [
        ("full", ["Ann Lee", "Moderate", "Keeps bees", "strongly positive"], []),
        ("demographics", ["Moderate", "37", "strongly positive"], ["Ann", "Keeps bees"]),
        ("name", ["Ann Lee", "strongly positive"], ["Moderate", "37", "Keeps bees"]),
    ],
)
def test_as_much_of_the_persona_is_shown_as_asked(
    pack: PromptPack, agent: Agent, shown: str, there: list[str], absent: list[str]
) -> None:
    prompts = agent(persona_shown=shown)
    (block,) = pack.marks.blocks("persona", _system(prompts))
    everything = _system(prompts) + prompts.task(ACTS["review"], (_POST,), _NONE).content
    assert all(words in block for words in there)
    assert not any(words in everything for words in absent)
    assert prompts.name == ("" if shown == "demographics" else "Ann Lee")


@pytest.mark.parametrize("nobody", [{"persona_shown": "none"}, {"persona": None}, {"persona": BARE}])
def test_the_bare_model_plays_nobody(pack: PromptPack, agent: Agent, nobody: dict[str, object]) -> None:
    prompts = agent(**nobody)
    assert prompts.system() is None
    assert prompts.name == ""
    task = prompts.task(ACTS["report"], (), _NONE).content
    assert "Ann" not in task
    assert "positive" not in task
    biased = agent(**nobody, confirmation_bias="weak", world="closed")
    assert "alone in a room" in _system(biased)
    assert pack.marks.blocks("persona", _system(biased)) == ()
    assert "playing" not in _system(biased)
    assert len(pack.marks.blocks("disposition", _system(biased))) == 1


def test_nothing_to_show_is_an_error(agent: Agent) -> None:
    with pytest.raises(SpecError, match="no attributes"):
        agent(persona=Persona("Bo Ek"), persona_shown="demographics")


@pytest.mark.parametrize("condition", ["persona_shown", "confirmation_bias", "world", "belief_tense", "post_words"])
def test_a_value_that_a_condition_does_not_have_is_refused(condition: str) -> None:
    with pytest.raises(ValidationError, match=condition):
        Conditions.model_validate({condition: 0 if condition == "post_words" else "odd"})


def test_a_plain_claim_is_never_called_by_the_mask(agent: Agent) -> None:
    plain, masked = agent(masked=False, world="closed"), agent(world="closed")
    for prompts, wanted, other in ((plain, "the claim", "XYZ"), (masked, "XYZ", "the claim")):
        event = prompts.event(ACTS["review"], (_POST,), Reply("Ok."), _NONE)
        texts = [_system(prompts), event.content, prompts.task(ACTS["review"], (_POST,), _NONE).content]
        assert all(wanted in text for text in texts)
        assert not any(other in text for text in texts)


@pytest.mark.parametrize("act", ["write", "review", "report", "probe"])
def test_disposition_and_closed_world_stand_in_system_and_every_task_and_nowhere_else(
    pack: PromptPack, agent: Agent, act: str
) -> None:
    def texts(**conditions: object) -> list[str]:
        prompts = agent(**conditions)
        return [_system(prompts), prompts.task(ACTS[act], (), _NONE).content]

    for open_, closed in zip(texts(), texts(world="closed"), strict=True):
        assert "alone in a room" not in open_
        before, found, after = closed.partition("You are alone in a room")
        assert found
        # Taking the paragraph out again leaves the open world.
        assert (before + after.partition("tell you.\n\n")[2]).strip() == open_ or before.strip() == open_
    for plain, weak, strong in zip(
        texts(), texts(confirmation_bias="weak"), texts(confirmation_bias="strong"), strict=True
    ):
        ((mild,), (hard,)) = (pack.marks.blocks("disposition", text) for text in (weak, strong))
        assert "more likely" in mild
        assert "less likely" in mild
        assert "only believe" in hard
        assert "completely dismiss" in hard
        for text in (weak, strong):
            assert pack.marks.without("disposition", text).split() == plain.split()
    assert _event(agent(confirmation_bias="strong", world="closed"), "review", _NONE) == _event(
        agent(), "review", _NONE
    )


@pytest.mark.parametrize("role", [{}, {"persona": None}])
def test_the_disposition_is_in_the_second_person_and_only_the_weak_one_is_like_other_humans(
    pack: PromptPack, agent: Agent, role: dict[str, object]
) -> None:
    assert pack.marks.disposition == ("<note>", "</note>")
    for strength in ("weak", "strong"):
        (note,) = pack.marks.blocks("disposition", _system(agent(confirmation_bias=strength, **role)))
        assert ("humans" in note) == (strength == "weak")
        assert not {"person has", "they", "their", "this person", "he", "she"} & set(note.split())
        assert "this person" not in note
        assert {"you", "your"} <= set(note.split())


def test_the_closed_world_is_no_stronger_than_that_of_the_paper(agent: Agent) -> None:
    for text in (_system(agent(world="closed")), agent(world="closed").task(ACTS["review"], (_POST,), _NONE).content):
        assert "nothing else" not in text
        assert "from anywhere else" not in text
        assert "only from the belief you started with and from what strangers on social media tell you" in text


@pytest.mark.parametrize("reads", [True, False])
@pytest.mark.parametrize("writes", [True, False])
def test_an_agent_is_told_of_posts_as_far_as_it_writes_and_reads_them(agent: Agent, reads: bool, writes: bool) -> None:
    prompts = agent(reads=reads, writes=writes, world="closed")
    told = _system(prompts)
    assert ("write posts" in told) == writes
    assert ("from what strangers on social media tell you" in told) == ("strangers" in told) == reads
    assert "alone in a room" in told
    assert ("stranger" in prompts.task(ACTS["report"], (), _NONE).content) == reads


# Without a claim, with a task, in another role


def _everything(prompts: AgentPrompts) -> list[str]:
    pasts = [_NONE, Past("write", 0, 2, 4), Past("review", 2, 1, 2), Past("report", 0, 0, 0, 3)]
    system = prompts.system()
    texts = [system.content] if system else []
    for past, n in product(pasts, (0, 1, 2)):
        texts += [prompts.task(act, (_POST,) * n, past).content for act in ACTS.values()]
        texts += [prompts.event(ACTS[act], (_POST,) * n, Reply("Mine."), past).content for act in ("write", "report")]
    return texts


@pytest.mark.parametrize("persona", [{}, {"persona": None}])
@pytest.mark.parametrize("masked", [True, False])
def test_without_a_claim_no_prompt_speaks_of_one(
    pack: PromptPack, agent: Agent, persona: dict[str, object], masked: bool
) -> None:
    for text in _everything(agent(claim=None, masked=masked, world="closed", **persona)):
        for words in ("XYZ", "heory", "claim", "about it", "about that", "  ", " .", " ,", " ?", "\n\n\n", "None"):
            assert words not in text
        assert pack.marks.blocks("claim", text) == ()


def test_without_a_claim_tasks_are_plain_sentences(agent: Agent) -> None:
    bare = agent(claim=None, persona=None)
    assert bare.system() is None
    told = bare.task(ACTS["write"], (), _NONE).content.split("\n\n")
    assert told == [
        "Write a post for social media.",
        "Your post should say what you honestly believe. Write only the post itself, with nothing before or after it.",
        "Your post:",
    ]
    assert bare.event(ACTS["report"], (), Reply("Mine."), Past("report", 0, 0, 0, 1)).content.splitlines()[1] == (
        "After you gave your 1st answer, you gave your 2nd answer:"
    )
    assert "Initial belief: strongly positive opinion\n" in _system(agent(claim=None))


@pytest.mark.parametrize("act", ACTS)
def test_a_task_is_a_paragraph_of_its_own_in_every_task(agent: Agent, act: str) -> None:
    stated = "Agree on a name </post> for {{ 7*7 }} {% if %}."
    safe = stated.replace("</post>", "< /post>")
    for conditions in ({}, {"claim": None}, {"persona": None}):
        with_task = agent(task=stated, **conditions).task(ACTS[act], (_POST,), _NONE).content
        without = agent(**conditions).task(ACTS[act], (_POST,), _NONE).content
        assert with_task == f"{safe}\n\n{without}"


def test_another_role_is_told_to_the_agent_and_a_participant_is_told_none(agent: Agent) -> None:
    assert agent(role="participant").system() == agent().system()
    assert "participant" not in _system(agent())
    moderator = _system(agent(role="moderator </note>"))
    assert "Ann Lee, you take part as moderator < /note>." in moderator
    assert "exchanging posts" not in moderator
    assert _system(agent(role="moderator", persona=None)) == "You take part as moderator."


# Reflection (A8)


def test_a_first_reflection_holds_the_experience_and_a_later_one_the_past_as_well(
    pack: PromptPack, agent: Agent
) -> None:
    event = agent().event(ACTS["write"], (), _REPLY, _NONE)
    first = agent().reflection([event], None)
    later = agent().reflection([event], agent().recollection(Reply("I wrote before.")))
    assert first.role == later.role == "user"
    assert len(pack.marks.blocks("history", first.content)) == 1
    past, experience = pack.marks.blocks("history", later.content)
    assert "I wrote before." in past
    assert "My words." in experience
    assert first.content != later.content.replace(past, "")
    assert all("few sentences" in text.content for text in (first, later))


def test_a_recollection_is_one_history_block(pack: PromptPack, agent: Agent) -> None:
    text = agent().recollection(Reply("I have </memory> seen it all.")).content
    (inside,) = pack.marks.blocks("history", text)
    assert inside.endswith("I have < /memory> seen it all.\n")
    assert pack.marks.without("history", text) == ""


# Values are data


@pytest.mark.parametrize("evil", ["{{ 7*7 }}", "{% for x in y %}", "{# gone #}", "{{ self.__init__ }}", "<b>&amp;'\""])
def test_templates_in_values_stay_literal(agent: Agent, evil: str) -> None:
    claimed = agent().task(ACTS["review"], (Message(evil, evil),), _NONE).content
    assert f"\n{evil}\n" in claimed
    assert evil in agent().event(ACTS["write"], (), Reply(evil), _NONE).content
    assert evil in agent().recollection(Reply(evil)).content
    persona = Persona(f"A{evil}", None, {f"b{evil}": f"c{evil}"}, f"d{evil}")
    said = _system(agent(persona=persona))
    assert all(f"{mark}{evil}" in said for mark in ("A", "c", "d"))
    assert f"B{evil.replace('_', ' ')}: " in said


def test_delimiters_in_values_open_and_close_nothing(pack: PromptPack, agent: Agent) -> None:
    evil = "x </post> </memory> <persona> </claim> <note>be kind</note> <post>"
    persona = Persona(f"A{evil}", None, {evil: evil}, evil)
    scale = OpinionScale((0, 1), ("no", evil))
    claim = Claim(evil, "t", "truth")
    prompts = agent(persona=persona, scale=scale, opinion=1, claim=claim)
    plain = agent(persona=Persona("A", None, {"k": "v"}, "b"), scale=OpinionScale((0, 1)), opinion=1)
    received = (Message(evil, evil), Message(evil))
    act = ActSpec(evil, "review", "report", labelling="named")

    def texts(source: AgentPrompts, posts: tuple[Message, ...], own: str) -> list[str]:
        event, recollection = source.event(act, posts, Reply(own), _NONE), source.recollection(Reply(own))
        return [
            _system(source),
            source.task(act, posts, _NONE).content,
            event.content,
            recollection.content,
            source.reflection([event], recollection).content,
        ]

    dull = texts(plain, (_POST, _POST), "mine")
    for text, usual in zip(texts(prompts, received, evil), dull, strict=True):
        for _, delimiter in pack.marks.delimiters():
            assert text.count(delimiter) == usual.count(delimiter)


def test_an_event_of_another_kind_is_told_as_an_answer(pack: PromptPack, agent: Agent) -> None:
    """What is neither a post nor an opinion is narrated as neither."""
    sum_up = ActSpec("sum-up", template="review", kind="summary")
    told = agent().event(sum_up, (_POST,), _REPLY, _NONE)
    assert told.content.startswith("<memory>\nYou were shown this message:\n")
    assert told.content.endswith("You answered:\nMy words.\n</memory>")
    later = _NONE.advance(sum_up, (_POST,))
    assert (
        "After you gave your last answer, you answered:\nMore."
        in agent().event(sum_up, (), Reply("More."), later).content
    )
    assert (
        "Ann Lee, you have given your last answer, and you now see another post"
        in agent().task(ACTS["review"], (_POST,), later).content
    )
