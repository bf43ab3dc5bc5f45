"""Sessions that look for a consensus: who speaks when, who reads what in which order, and how long it takes."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pytest
from langchain_core.messages import AIMessage

from opinionsim.consensus import ConsensusInteraction
from opinionsim.errors import SpecError
from opinionsim.foundation.forms import Form
from opinionsim.llm import Seat
from opinionsim.messages import ChatMessage, Message
from opinionsim.planning import preview
from opinionsim.schedules import MAX_STEPS, AnySchedule, External, Setting, Turn, outline
from opinionsim.specification import load_experiment
from opinionsim.testing import ScheduleContract
from tests.support.people import Double
from tests.support.sessions import PREDICTING, Voices, hashed, played, reply, session, task_of


class OfSessions(ScheduleContract):
    """A session in which every reply can be read."""

    fields: ClassVar[dict[str, Any]]
    given: ClassVar[dict[int, str]] = {}
    size = 4

    def schedule(self) -> AnySchedule:
        setting = Setting.of(self.size, seed=3, given=self.given, position="It should be so.", questioned=True)
        return ConsensusInteraction.model_validate({"kind": "consensus", **self.fields}, strict=False).schedule(setting)

    def says(self, turn: Turn, received: Sequence[Message], invented: str) -> str:
        act = turn.act.partition(".")[0]
        judged = "".join("c" if each.act == "criticise" else each.act[0] for each in received).rpartition("c")[2]
        n = len(re.findall("[drp]", judged))
        letters = "".join(f"\nStatement {chr(65 + place)}:\n" for place in range(n))
        return reply(act, letters, hashed(invented))


class TestRankings(OfSessions):
    fields: ClassVar[dict[str, Any]] = {"candidates": 4, "rounds": 2, "incumbent": True}


class TestRatings(OfSessions):
    fields: ClassVar[dict[str, Any]] = {
        "drafters": ({"count": 2}, {"count": 1, "style": "reasoned"}, {"count": 1, "style": "completion"}),
        "ballot": "rating",
        "rule": "nash",
        "ratings": {"position": "before", "passes": 2},
        "standing": ("opinions", "position"),
        "between": "probe",
    }


class TestShortlist(OfSessions):
    fields: ClassVar[dict[str, Any]] = {
        "candidates": 5,
        "ballots": ("stated", "predicted"),
        "shortlist": 2,
        "leave_one_out": 1,
        "controls": ("A statement of another group.",),
        "ratings": {"position": "after", "passes": 1},
        "rounds": 1,
    }


class TestTexts(OfSessions):
    fields: ClassVar[dict[str, Any]] = {"candidates": 3, "ballots": ("predicted",), "rounds": 0}
    given: ClassVar[dict[int, str]] = {0: "I am for it.", 1: "I am against it.", 2: "I do not know.", 3: "Why not?"}


class TestTextsAndPersonas(OfSessions):
    fields: ClassVar[dict[str, Any]] = {
        "candidates": 3,
        "ballots": ("stated", "predicted"),
        "choose_by": "predicted",
        "rounds": 1,
    }
    given: ClassVar[dict[int, str]] = {1: "I am against it."}


# -- transcripts


def transcript(turns: Sequence[Turn], size: int) -> list[str]:
    """The turns, one line each: step, who does what, and what is read."""
    names = [f"citizen {agent}" for agent in range(size)]
    told = []
    for turn in turns:
        who = names[turn.agent] if turn.agent < size else f"role {turn.agent - size}"
        read = " ".join(each.name if isinstance(each, External) else str(each) for each in turn.reads)
        told.append(f"{turn.index}: [{turn.step}] {who} {turn.act}" + (f" < {read}" if read else ""))
    return told


def turns_of(spec: dict[str, Any], **options: Any) -> list[Turn]:
    """The turns of a session that was carried out."""
    ended = played(spec, **options)
    assert not ended.error
    return [turn for turn, _ in ended.turns]


class Alike(Voices):
    """Every citizen votes for the same letter, whatever stands behind it."""

    async def call(self, messages: Sequence[ChatMessage], seed: int, max_tokens: int | None = None) -> AIMessage:
        task = task_of(messages[-1].content)
        return AIMessage(reply(task, messages[-1].content, hashed(task)))


def test_an_opinion_round_and_a_critique_round() -> None:
    turns = turns_of(voices=Alike(), spec=session(3, rounds=1, measurement__self_report={"before": 1, "after": 1}))
    assert transcript(turns, 3) == [
        "0: [0] citizen 0 self-report",
        "1: [0] citizen 1 self-report",
        "2: [0] citizen 2 self-report",
        "3: [1] citizen 0 state",
        "4: [1] citizen 1 state",
        "5: [1] citizen 2 state",
        "6: [1] role 0 draft < 4 5 3",
        "7: [1] role 0 draft < 5 3 4",
        "8: [1] citizen 0 rank < 3 6 7",
        "9: [1] citizen 1 rank < 4 6 7",
        "10: [1] citizen 2 rank < 5 6 7",
        "11: [1] citizen 0 criticise < 3 6",
        "12: [1] citizen 1 criticise < 4 6",
        "13: [1] citizen 2 criticise < 5 6",
        "14: [2] role 0 revise < 6 5 13 4 12 3 11",
        "15: [2] role 0 revise < 6 3 11 5 13 4 12",
        "16: [2] citizen 0 rank < 3 6 11 15 14",
        "17: [2] citizen 1 rank < 4 6 12 14 15",
        "18: [2] citizen 2 rank < 5 6 13 15 14",
        "19: [2] citizen 0 self-report < 3 15",
        "20: [2] citizen 1 self-report < 4 15",
        "21: [2] citizen 2 self-report < 5 15",
    ]


def of(turns: Sequence[Turn], *acts: str) -> list[Turn]:
    """The turns of some acts."""
    return [turn for turn in turns if turn.act.partition(".")[0] in acts]


def test_every_draft_has_the_opinions_in_an_order_of_its_own_and_critiques_go_with_them() -> None:
    turns = turns_of(session(5, candidates=16, rounds=1))
    opinion = {turn.index: turn.agent for turn in of(turns, "state")}
    critique = {turn.index: turn.agent for turn in of(turns, "criticise")}
    drafts, revisions = of(turns, "draft"), of(turns, "revise")
    assert all(sorted(turn.reads) == list(opinion) for turn in drafts)
    assert len({turn.reads for turn in drafts}) > 12
    winner = of(turns, "criticise")[0].reads[1]
    orders = set()
    for turn in revisions:
        assert turn.reads[0] == winner
        authors = [opinion[each] for each in turn.reads[1::2]]
        assert [critique[each] for each in turn.reads[2::2]] == authors
        assert sorted(authors) == [0, 1, 2, 3, 4]
        orders.add(tuple(authors))
    assert len(orders) > 12
    assert orders != {tuple(opinion[each] for each in turn.reads) for turn in drafts}


def test_every_citizen_has_the_statements_in_an_order_of_its_own_beside_its_own_opinion() -> None:
    turns = turns_of(session(5, candidates=16))
    opinion = {turn.agent: turn.index for turn in of(turns, "state")}
    ballots = of(turns, "rank")
    assert [turn.agent for turn in ballots] == [0, 1, 2, 3, 4]
    assert all(turn.reads[0] == opinion[turn.agent] for turn in ballots)
    drafts = [turn.index for turn in of(turns, "draft")]
    assert all(sorted(turn.reads[1:]) == drafts for turn in ballots)
    assert len({turn.reads[1:] for turn in ballots}) == 5


def test_every_pass_of_ratings_is_in_a_new_order() -> None:
    turns = turns_of(session(3, candidates=6, ratings={"position": "after", "passes": 2}))
    position = of(turns, "put")[0].index
    statements = [turn.index for turn in of(turns, "draft")]
    for citizen in range(3):
        acts = {"rate": statements, "rate-position": [position]}
        rated = [turn.reads for turn in turns if turn.act in acts and turn.agent == citizen]
        assert all(set(turn.reads[1:]) <= set(acts.get(turn.act, turn.reads)) for turn in turns)
        assert {own for own, _ in rated} == {citizen + 1}, "each beside the own opinion"
        order = [statement for _, statement in rated]
        assert sorted(order[:7]) == sorted(order[7:]) == sorted([*statements, position])
        assert order[:7] != order[7:]


def test_the_position_is_rated_before_opinions_are_written_or_with_the_candidates() -> None:
    before = turns_of(session(3, ratings={"position": "before", "passes": 0}))
    assert transcript(before, 3)[:7] == [
        "0: [1] role 0 put < position",
        "1: [1] citizen 0 rate-position < 0",
        "2: [1] citizen 1 rate-position < 0",
        "3: [1] citizen 2 rate-position < 0",
        "4: [1] citizen 0 state",
        "5: [1] citizen 1 state",
        "6: [1] citizen 2 state",
    ]
    assert len(of(before, "rate-position")) == 3
    after = turns_of(session(3, ratings={"position": "after", "passes": 1}))
    assert (len(of(after, "rate")), len(of(after, "rate-position"))) == (3 * 2, 3)
    assert all(0 not in turn.reads for turn in of(after, "rank")), "it is rated, and stands for nothing"


def test_models_rate_on_the_labels_that_people_see_and_the_position_for_agreement_alone() -> None:
    """The labels of the source (D3; table S4)."""
    experiment = load_experiment(session(3, ratings={"position": "before", "passes": 1}))
    prompts = {act.partition(" of ")[0]: messages[-1].content for act, messages in preview(experiment).prompts.items()}
    acts = experiment.cells[0].spec.interaction.acts
    for act, items in (("rate", ("Agreement", "Quality")), ("rate-position", ("Agreement",))):
        form = acts[act].form
        assert isinstance(form, Form)
        assert form.items == items
        assert Form.of_json(json.loads(json.dumps(form.as_json()))) == form
        for item, labels in zip(items, form.labels, strict=True):
            told = ", ".join(f"{point} = {label}" for point, label in zip(form.points, labels, strict=True))
            assert re.search(rf"^{item}, how .*: {re.escape(told)}\.$", prompts[act], re.MULTILINE)
    assert acts["rate"].form.labels[0][::3] == ("strongly disagree", "neutral", "strongly agree")
    assert acts["rate"].form.labels[1][::3] == ("terrible", "neutral", "excellent")
    assert "Quality" not in prompts["rate-position"]


def test_predictors_see_one_opinion_each_and_statements_in_an_order_of_its_own() -> None:
    turns = turns_of(session(5, candidates=16, ballots=["stated", "predicted"]))
    opinions, predictions = of(turns, "state"), of(turns, "predict")
    assert [turn.reads[0] for turn in predictions] == [turn.index for turn in opinions]
    assert {turn.agent for turn in predictions} == {6}
    orders = {turn.reads[1:] for turn in [*predictions, *of(turns, "rank")]}
    assert len(orders) == 10
    assert {tuple(sorted(each)) for each in orders} == {tuple(turn.index for turn in of(turns, "draft"))}


def test_a_shortlist_is_what_citizens_vote_on() -> None:
    turns = turns_of(session(5, candidates=8, ballots=["stated", "predicted"], shortlist=3))
    assert all(len(turn.reads) == 1 + 8 for turn in of(turns, "predict"))
    assert len({tuple(sorted(turn.reads[1:])) for turn in of(turns, "rank")}) == 1
    assert all(len(turn.reads) == 1 + 3 for turn in of(turns, "rank"))


def test_drafts_without_one_leave_out_that_opinion_and_are_rated_by_all() -> None:
    turns = turns_of(session(4, leave_one_out=2, ratings={"passes": 1}))
    opinions = [turn.index for turn in of(turns, "state")]
    whole, without = of(turns, "draft")[:2], of(turns, "draft")[2:]
    assert all(sorted(turn.reads) == opinions for turn in whole)
    left_out = [set(opinions) - set(turn.reads) for turn in without]
    assert left_out == [{own} for own in opinions for _ in range(2)]
    rated = Counter(turn.reads[1] for turn in of(turns, "rate"))
    assert rated == dict.fromkeys((turn.index for turn in [*whole, *without]), 4)
    assert all(sorted(turn.reads[1:]) == [turn.index for turn in whole] for turn in of(turns, "rank"))


def test_statements_that_do_not_stand_are_rated_by_predictors_too() -> None:
    fields: ClassVar[dict[str, Any]] = {
        "leave_one_out": 1,
        "controls": ["Statement of others."],
        "ballots": ["predicted"],
        "rounds": 0,
    }
    turns = turns_of(session(3, ballot="rating", **fields))
    beside = [turn.index for turn in [*of(turns, "draft"), *of(turns, "put")]]
    predicted = Counter(turn.reads for turn in of(turns, "predict-rating"))
    assert predicted == {(own, each): 1 for own in (0, 1, 2) for each in beside}
    with pytest.raises(SpecError, match="leave_one_out: needs rated statements"):
        played(session(3, **fields))


def test_a_control_is_put_before_the_group_and_does_not_stand() -> None:
    turns = turns_of(session(3, controls=["What another group agreed on."], ratings={"passes": 1}))
    (control,) = of(turns, "put")
    assert control.reads == (External("control-0"),)
    assert sum(control.index in turn.reads for turn in of(turns, "rate")) == 3
    assert all(control.index not in turn.reads for turn in of(turns, "rank"))


def test_own_opinions_and_the_position_stand_as_candidates() -> None:
    turns = turns_of(session(3, standing=["opinions", "position"]))
    position, *opinions = of(turns, "put")
    assert position.reads == (External("position"),)
    assert [turn.reads for turn in opinions] == [(1,), (2,), (3,)]
    standing = sorted([position.index, *(turn.index for turn in [*of(turns, "draft"), *opinions])])
    assert all(sorted(turn.reads[1:]) == standing for turn in of(turns, "rank"))


def test_the_old_winner_stands_again_where_it_is_asked_to() -> None:
    for incumbent in (True, False):
        turns = turns_of(session(3, rounds=1, incumbent=incumbent))
        winner = of(turns, "criticise")[0].reads[1]
        revised = [turn.index for turn in of(turns, "revise")]
        critique = {turn.agent: turn.index for turn in of(turns, "criticise")}
        for ballot in of(turns, "rank")[3:]:
            # What was said of the last winner comes before the statements that are ranked now.
            before = [critique[ballot.agent]] if incumbent else [winner, critique[ballot.agent]]
            assert list(ballot.reads[1 : 1 + len(before)]) == before
            assert sorted(ballot.reads[1 + len(before) :]) == ([winner, *revised] if incumbent else revised)


def test_drafters_compete_in_one_run() -> None:
    drafters = [
        {"count": 2},
        {"count": 1, "style": "reasoned"},
        {"count": 1, "style": "completion", "role": "tuned", "label": "sft"},
    ]
    turns = turns_of(session(3, drafters=drafters, roles__tuned={}))
    drafts = of(turns, "draft")
    assert [(turn.act, turn.agent) for turn in drafts] == [
        ("draft.zero-shot", 3),
        ("draft.zero-shot", 3),
        ("draft.reasoned", 3),
        ("draft.sft", 4),
    ]
    assert all(len(turn.reads) == 1 + 4 for turn in of(turns, "rank"))


def example(question: str, opinions: int, statement: str) -> str:
    """An example of another session, as a file holds it."""
    listed = "".join(f"Opinion {n}: I think {n}.\n" for n in range(1, opinions + 1))
    return f"Question: {question}\n{listed}Statement: {statement}"


def test_few_shot_drafts_are_shown_examples_of_three_sizes_and_never_of_their_own_question() -> None:
    own = "Should the town centre be closed to cars?"
    given = [example(own, n, "told") for n in (3, 4, 5)]
    given += [example("  should THE town centre be closed  to cars?", 4, "told")]
    given += [
        example("The town centre should be closed to cars.", 4, "told"),
        example("The town centre should be closed to cars", 4, "told"),
    ]
    others = [example(f"Question {n}?", size, f"of {size}") for n in range(4) for size in (3, 4, 5)]
    fields: ClassVar[dict[str, Any]] = {"drafters": [{"count": 12, "style": "few-shot", "examples": [*given, *others]}]}
    turns = turns_of(session(3, **fields, leave_one_out=1, ratings={"passes": 1}))
    seen = set()
    for turn in of(turns, "draft"):
        shown = [each for each in turn.reads if isinstance(each, External)]
        places = [int(each.name.rpartition("-")[2]) for each in shown]
        texts = [[*given, *others][place] for place in places]
        assert [text.rpartition(" ")[2] for text in texts] == ["3", "4", "5"]
        assert turn.reads[:3] == tuple(shown), "before the opinions"
        seen.add(tuple(places))
    assert len(seen) > 6
    with pytest.raises(SpecError, match="drafters: examples of 'few-shot': no session on another question has 3 to 5"):
        played(session(3, drafters=[{"count": 2, "style": "few-shot", "examples": given}]))


def test_few_shot_revisions_are_shown_no_examples() -> None:
    shown = [example("Another?", 3, "of 3")]
    turns = turns_of(session(3, rounds=1, drafters=[{"count": 2, "style": "few-shot", "examples": shown}]))
    assert all(not any(isinstance(each, External) for each in turn.reads) for turn in of(turns, "revise"))


def test_texts_state_and_never_vote_or_criticise() -> None:
    spec = session(3, ballots=["stated", "predicted"], choose_by="predicted", rounds=1)
    del spec["population"]
    spec["cast"] = [{"text": "I want it."}, {}, {}]
    turns = turns_of(spec)
    assert turns[0].act == "submit"
    assert turns[0].reads == (External("text-0"),)
    assert {turn.act for turn in turns if turn.agent == 0} == {"submit"}
    assert [turn.reads[0] for turn in of(turns, "predict")[:3]] == [0, 1, 2]
    assert [turn.agent for turn in of(turns, "criticise")] == [1, 2]


# -- all of a stage at once


@pytest.mark.parametrize(
    ("fields", "latencies"),
    [
        ({}, 3),
        ({"ballots": ["stated", "predicted"]}, 3),
        ({"ballots": ["stated", "predicted"], "ratings": {"position": "before", "passes": 2}}, 3),
        ({"leave_one_out": 2, "ratings": {"position": "after", "passes": 1}}, 3),
        ({"ballot": "rating", "ballots": ["stated", "predicted"], "rule": "nash"}, 3),
        ({"ballots": ["predicted"], "predictor": "instrument", "measurement__instruments": [PREDICTING]}, 2),
        ({"ballots": ["stated", "predicted"], "shortlist": 3}, 4),
        ({"rounds": 1}, 6),
        ({"rounds": 2, "between": "probe", "incumbent": True}, 9),
        ({"standing": ["opinions", "position"], "rounds": 1}, 6),
    ],
)
def test_a_round_takes_as_many_latencies_as_it_has_stages(fields: dict[str, Any], latencies: int) -> None:
    spec = session(5, candidates=16, **fields)
    ended = played(spec)
    assert (ended.error, ended.seconds) == ("", latencies)


def test_questions_before_and_after_stand_beside_the_session() -> None:
    spec = session(5, candidates=16, measurement__self_report={"before": 1, "after": 1})
    # Opinions are written while the first questions are asked; the last ones wait for the winner.
    assert played(spec).seconds == 4


def test_a_person_who_is_slow_holds_up_the_next_stage_alone() -> None:
    seats = {0: Seat(Double(late=lambda _: 10.0))}
    assert played(session(5, candidates=16), seats=seats).seconds == 10 + 1 + 10


@pytest.mark.parametrize("slots", [1, 3])
def test_slots_bound_what_runs_at_once(slots: int) -> None:
    assert played(session(3), slots=slots).seconds == {1: 3 + 2 + 3, 3: 3}[slots]


def test_sixteen_candidates_are_sixteen_turns_with_seeds_of_their_own() -> None:
    voices = Voices()
    turns = turns_of(session(5, candidates=16), voices=voices)
    assert len(of(turns, "draft")) == 16
    seeds = [seed for _, task, seed in voices.asked if task == "draft"]
    assert len(set(seeds)) == 16


# -- forecasts


@pytest.mark.parametrize(
    "fields",
    [
        {"candidates": 5, "rounds": 2, "incumbent": True},
        {"ballots": ["stated", "predicted"], "shortlist": 2, "candidates": 4},
        {"standing": ["opinions"], "leave_one_out": 1, "ratings": {"position": "before", "passes": 2}, "rounds": 1},
    ],
)
def test_a_forecast_counts_the_turns_of_a_session_in_which_all_can_be_read(fields: dict[str, Any]) -> None:
    spec = session(4, **fields)
    interaction = ConsensusInteraction.model_validate(spec["interaction"], strict=False)
    schedule = interaction.schedule(Setting.of(4, position="It should be so."))
    forecast = Counter(turn.act for turn in outline(schedule))
    assert forecast == Counter(turn.act for turn in turns_of(spec))
    assert interaction.turns_a_step(4) * interaction.steps_for(4) >= sum(forecast.values())


def test_a_session_that_nobody_could_carry_out_is_refused() -> None:
    interaction = ConsensusInteraction.model_validate(
        {"kind": "consensus", "candidates": 1000, "rounds": 100, "ballot": "rating", "rule": "nash"}, strict=False
    )
    ((field,), problem), *_ = list(interaction.conflicts(1000))
    assert field == "rounds"
    assert str(MAX_STEPS) in problem


# -- orders follow from the seed


def test_runs_of_one_block_draw_the_same_orders_and_others_draw_others() -> None:
    def orders(seed: int) -> list[tuple[Any, ...]]:
        return [turn.reads for turn in turns_of({**session(5, candidates=8), "seed": seed})]

    assert orders(1) == orders(1)
    assert orders(1) != orders(2)


def test_orders_favour_nobody() -> None:
    setting = Setting.of(4, seed=5)
    places = np.zeros((4, 4))
    for keys in range(2000):
        places[np.arange(4), setting.stream("opinions of a draft", 1, 0, keys).permutation(4)] += 1
    # Each opinion stands at each place in a quarter of all drafts, within four standard errors.
    assert abs(places / 2000 - 0.25).max() < 4 * np.sqrt(0.25 * 0.75 / 2000)
