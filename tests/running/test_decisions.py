"""Words that are not the whole reply, silence, relays, numbers decided, and closings: run, resumed, replayed."""

from __future__ import annotations

import re
from typing import Any

import pytest

from opinionsim.assembly import LoadedParts
from opinionsim.llm import GivenReplies
from opinionsim.messages import ChatMessage, numbers_in
from opinionsim.planning import Forecast, plan
from opinionsim.running import replay
from opinionsim.specification import load_experiment
from opinionsim.store import Results, open_store
from tests.running import _context_classifier
from tests.support.deciding import NAMES, SPEC, reply
from tests.support.running import assert_same, changed, ended, finished

FIT = {
    "variable": "fit",
    "classifier": "tests.running._context_classifier:HashClassifier",
    "texts": ["opinion"],
    "about": "reads",
    "scale": {"points": [1, 2, 3, 4, 5, 6, 7]},
}
STANCE = {"variable": "stance", "classifier": "lexicon", "texts": ["opinion", "probe"]}
PROBED = {"probe": {"before": 1, "after": 1}}
ASKING = changed(SPEC, interaction__asks_for_fit=True, measurement={**PROBED, "instruments": [STANCE, FIT]})
GIVEN = "I strongly believe that Theory XYZ is false."
WRITTEN = changed(SPEC, cast=[*SPEC["cast"][:3], {"name": "Eve", "text": GIVEN}])
SPECS = {"marks": SPEC, "pairs": ASKING, "texts": WRITTEN}


def _run(spec: dict[str, Any] = SPEC, **options: Any) -> Results:
    return finished(spec, "s.sqlite", GivenReplies(reply), **options)


def _numbers(results: Results, variable: str = "mark") -> dict[tuple[int, int], float]:
    rows = results.opinions[results.opinions["variable"] == variable]
    return {(int(row.turn), int(row.about)): row.value for row in rows.itertuples()}


def test_the_words_are_published_read_and_coded_and_the_journal_keeps_the_reply() -> None:
    results = _run()
    turns = results.turns.set_index("turn")
    spoken = turns[turns["act"] == "speak"]
    replies = results.calls.set_index("turn")["reply"]
    for turn, row in spoken.iterrows():
        assert (
            replies[turn] == f"I strongly believe that Theory XYZ is false, but who cares. <say>{row['message']}</say>"
        )
    stance = results.opinions[results.opinions["variable"] == "stance"].set_index("turn")["value"]
    heard = spoken[spoken["status"] == "answered"]
    assert (stance[heard.index] > 0).all(), "the words are coded, not what stands around them"
    with open_store(results.url, write=False) as store:
        for turn, row in turns[turns["act"] == "judge"].iterrows():
            prompt = store.prompt(results.runs["run_id"][0], turn)[-1].content
            assert "who cares" not in prompt
            shown = re.findall(r"<response>\s*(.*?)\s*</response>", prompt)
            assert shown == [turns["message"][read] for read in row["reads"]]


def test_a_decision_without_words_is_passed_on_to_nobody_coded_by_nobody_and_not_missing() -> None:
    results = _run()
    turns = results.turns.set_index("turn")
    silent = turns[turns["status"] == "silent"]
    assert silent[["step", "agent", "message", "first_status"]].values.tolist() == [[1, 2, "", "answered"]]
    (turn,) = silent.index
    assert all(turn not in reads for reads in turns["reads"])
    assert turn not in set(results.opinions["turn"])
    metrics = results.metrics[results.metrics["kind"] == "opinion"].iloc[0]
    assert metrics["n_texts"] == 7
    assert metrics[["n_missing", "n_empty", "n_refused", "n_skipped", "n_unheard", "missing_rate"]].sum() == 0


def test_a_relay_is_the_message_of_another_under_its_own_name_and_asks_nobody() -> None:
    results = _run()
    turns = results.turns.set_index("turn")
    relays = turns[turns["act"] == "read-out"]
    assert relays["agent"].tolist() == [4, 4]
    for turn, row in relays.iterrows():
        (source,) = row["reads"]
        assert row["message"] == turns["message"][source]
        assert turn not in set(results.calls["turn"])
        assert (row["status"], row["first_status"]) == ("answered", "answered")


def test_numbers_are_opinions_about_each_message_read_and_missing_where_nothing_is_said() -> None:
    results = _run()
    turns, found = results.turns.set_index("turn"), _numbers(results)
    ballots = turns[turns["act"] == "judge"]
    assert set(found) == {(turn, read) for turn, row in ballots.iterrows() for read in row["reads"]}
    for (turn, read), value in found.items():
        said = numbers_in(turns["message"][turn])
        assert bool(said) == (turns["agent"][turn] != 3), "Dan's marks cannot be read"
        assert value == said[read]["mark"] if said else value != value
    rows = results.opinions[results.opinions["variable"] == "mark"]
    assert set(rows["classifier"]) == {"decided"}
    assert set(rows["scale"]) == {"0,1,2,3,4,5,6,7,8,9"}
    assert set(rows["kind"]) == {"rating"}


def test_the_closing_of_an_adaptive_schedule_is_shown_with_the_questions_after_it() -> None:
    results = _run()
    turns, found = results.turns.set_index("turn"), _numbers(results)
    first, last = turns.index[4], turns[turns["step"] == 2]
    opinions = {row["agent"]: turn for turn, row in last[last["act"] == "speak"].iterrows()}
    sums = {each: sum(v for (_, about), v in found.items() if about == each and v == v) for each in opinions.values()}
    winner = max(sums, key=lambda turn: (sums[turn], turn))
    probes = turns[turns["act"] == "probe"]
    assert probes["reads"].tolist()[:4] == [()] * 4
    assert probes["reads"].tolist()[4:] == [(opinions[agent], winner) for agent in range(4)]
    # The second round read the winner of the first, by the marks given: their turns are counted as the schedule does.
    earlier = {each: sum(v for (_, about), v in found.items() if about == each and v == v) for each in (4, 5, 7)}
    assert first == 4
    assert set(last[last["act"] == "speak"]["reads"]) == {(max(earlier, key=lambda turn: (earlier[turn], turn)),)}


def test_questions_change_no_turn_of_an_adaptive_schedule() -> None:
    bare = _run(changed(SPEC, name="bare", measurement={"classifier": "lexicon"}))
    asked = finished(SPEC, "asked.sqlite", GivenReplies(reply))
    rows = asked.turns[asked.turns["act"] != "probe"]
    columns = ["step", "agent", "act", "message", "status"]
    assert rows[columns].values.tolist()[:4] == bare.turns[columns].values.tolist()[:4]
    moved = [tuple(read + 4 for read in reads) for reads in bare.turns["reads"]]
    assert rows["reads"].tolist() == moved


@pytest.mark.long
@pytest.mark.parametrize("name", SPECS)
def test_a_run_is_the_same_at_any_slot_count_resumed_after_any_call_and_replayed(name: str) -> None:
    spec = SPECS[name]
    sequential = finished(spec, "one.sqlite", GivenReplies(reply), slots=1)
    for slots in (3, 64):
        assert_same(finished(spec, f"{slots}.sqlite", GivenReplies(reply), slots=slots), sequential)
    assert [each.difference for each in replay(sequential)] == [""]
    calls = len(sequential.calls)
    for last in range(3, calls, 6):
        asked = 0

        def failing(prompt: list[ChatMessage], last: int = last) -> str:
            nonlocal asked
            asked += 1
            if asked > last:
                raise PermissionError("the provider is gone")
            return reply(prompt)

        store = f"broken-{last}.sqlite"
        assert ended(spec, store, GivenReplies(failing), slots=2).complete == 0
        resumed = finished(spec, store, GivenReplies(reply))
        assert_same(resumed, sequential)
        assert [each.difference for each in replay(resumed)] == [""]


def test_opinions_of_pairs_that_are_acted_on_stand_in_the_journal_by_both_turns() -> None:
    _context_classifier.seen.clear()
    results = _run(ASKING)
    turns = results.turns.set_index("turn")
    run_id = results.runs["run_id"][0]
    (identity,) = {
        each.instrument_id for each in load_experiment(ASKING).cells[0].instruments if each.variable == "fit"
    }
    with open_store(results.url, write=False) as store:
        ratings = {(e.key.turn, e.key.call): float(e.text) for e in store.entries(run_id) if e.source == "instrument"}
    expected = {}
    for step in (1, 2):
        of_step = turns[turns["step"] == step]
        (out,) = of_step.index[of_step["act"] == "read-out"]
        heard = of_step.index[(of_step["act"] == "speak") & (of_step["status"] == "answered")]
        expected |= {(turn, out): turns["message"][turn] for turn in heard}
    known = {(turn, int(call.rpartition(".")[2])): (call, value) for (turn, call), value in ratings.items()}
    assert set(known) == set(expected)
    for (_, about), (call, value) in known.items():
        assert call == f"rating.{identity[:8]}.{about}"
        assert value in range(1, 8)
    pairs = {(item.text, item.about) for item in _context_classifier.seen if item.about is not None}
    assert {(text, turns["message"][about]) for (_, about), text in expected.items()} <= pairs


def _forecast(spec: dict[str, Any]) -> Forecast:
    experiment = load_experiment(spec)
    return plan(experiment, loaded=LoadedParts(experiment, GivenReplies(reply), to_plan=True))


def test_forecasts_count_no_call_for_a_relay() -> None:
    forecast = _forecast(SPEC)
    results = _run()
    assert forecast.calls == len(results.calls) == 2 * 8 + 8
    written = _forecast(WRITTEN)
    # Eve is asked nothing: neither her opinion, nor her marks, nor questions.
    assert written.calls == len(_run(WRITTEN).calls) == 2 * 6 + 6


def test_texts_written_beforehand_stand_for_their_authors() -> None:
    results = _run(WRITTEN)
    turns, agents = results.turns, results.agents
    own = turns[turns["agent"] == 3]
    assert own[["act", "kind", "message", "evidence"]].values.tolist() == [["submit", "opinion", GIVEN, "human"]] * 2
    assert agents[["name", "evidence"]].values.tolist() == [
        *([name, "scripted"] for name in NAMES[:3]),
        ["Eve", "human"],
        ["Clerk", "scripted"],
    ]
    assert results.runs["evidence"].tolist() == ["mixed"]
    assert not set(own["turn"]) & set(results.calls["turn"])
    coded = results.opinions[(results.opinions["agent"] == 3) & (results.opinions["variable"] == "stance")]
    assert coded["value"].tolist() == [-2.0, -2.0]
    assert set(coded["evidence"]) == {"human"}
    assert [each.difference for each in replay(results)] == [""]
    assert turns[(turns["act"] == "probe")]["agent"].tolist() == [0, 1, 2, 0, 1, 2]
