from __future__ import annotations

import asyncio
import gc
import signal
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import mesa
import numpy as np
import pandas as pd
import pytest
from langchain_core.language_models import FakeListChatModel

import opinionsim as osim
from opinionsim.assembly import assemble
from opinionsim.errors import ModelCallError, ScheduleError, SpecError
from opinionsim.foundation import background
from opinionsim.foundation.streams import call_seed
from opinionsim.llm import MemoryJournal, load_chat_model
from opinionsim.metrics import bias, diversity
from opinionsim.model import OpinionModel
from opinionsim.personas import Population
from opinionsim.schedules import (
    AnySchedule,
    BoundedConfidenceDyads,
    Broadcast,
    Dyads,
    Feed,
    GivenDyads,
    Interaction,
    Setting,
    SimilarityDyads,
    with_probes,
)
from opinionsim.specification import load_experiment
from tests.support.provider import StubProvider
from tests.support.provider_replies import scripted_reply
from tests.support.running import SMALL, carry_out, changed, watched


def _parts(**values: Any) -> Any:
    planned = (experiment := load_experiment(changed(SMALL, **values))).runs[0]
    return assemble(planned, experiment.resources)


POPULATION: Population = _parts().population


def _model(chat_model: Any = "scripted", schedule: Any = 6, **options: Any) -> OpinionModel:
    return OpinionModel(POPULATION, "flat-earth", schedule, chat_model, seed=5, **options)


def _messages(model: OpinionModel) -> list[tuple[Any, ...]]:
    return [(each.turn, each.message.text) for each in model.history]


def _assert_usual(model: OpinionModel, **options: Any) -> None:
    """It has come to what a model comes to that nothing happens to, one call at a time."""
    usual = _model(**options, max_concurrency=1, lookahead=0)
    usual.run()
    assert _messages(model) == _messages(usual)
    found, expected = (each.datacollector.get_agent_vars_dataframe() for each in (model, usual))
    pd.testing.assert_frame_equal(found, expected)


def test_a_step_is_committed_whole() -> None:
    model = _model()
    turns = list(model.schedule.turns())
    assert (model.steps, model.running) == (0, True)
    for step, (written, reviewed) in enumerate(zip(turns[::2], turns[1::2], strict=True), 1):
        speaker, listener = written.agent, reviewed.agent
        before = {agent.index: (agent.posts, agent.reports) for agent in model.agents}
        model.step()
        assert model.steps == step
        write, review = model.history[-2:]
        assert (write.turn.agent, review.turn.agent, review.turn.reads) == (speaker, listener, (write.turn.index,))
        for agent in model.agents:
            posts, reports = before[agent.index]
            assert agent.posts == posts + (agent.index == speaker)
            assert agent.reports == reports + (agent.index == listener)
        agents = {agent.index: agent for agent in model.agents}
        assert agents[speaker].last_post == write.message.text
        assert agents[listener].last_report == review.message.text
        assert agents[listener].opinion == review.estimate.value
    assert not model.running
    model.close()


def test_agents_are_what_the_population_says() -> None:
    model = _model()
    assert [agent.index for agent in model.agents] == [0, 1, 2, 3]
    assert [agent.unique_id for agent in model.agents] == [1, 2, 3, 4]
    assert [agent.persona for agent in model.agents] == list(POPULATION.personas)
    assert [agent.assigned_opinion for agent in model.agents] == list(POPULATION.opinions)
    # An assigned opinion is never taken for a measured one.
    assert all(np.isnan(agent.opinion) for agent in model.agents)
    assert [agent.unique_id for agent in _model().agents] == [1, 2, 3, 4]


def test_run_commits_every_step_and_frames_follow() -> None:
    model = _model()
    model.run()
    of_model = model.datacollector.get_model_vars_dataframe()
    of_agents = model.datacollector.get_agent_vars_dataframe()
    assert list(of_model.columns) == ["bias", "diversity", "n_measured", "evidence"]
    assert len(of_model) == 7
    assert of_agents.index.get_level_values("Step").unique().tolist() == list(range(7))
    for step in range(7):
        opinions = of_agents.loc[step]["opinion"].to_numpy()
        row = of_model.iloc[step]
        np.testing.assert_array_equal(row["bias"], bias(opinions))
        np.testing.assert_array_equal(row["diversity"], diversity(opinions))
        assert row["n_measured"] == np.count_nonzero(~np.isnan(opinions))
    assert of_model["n_measured"].iloc[0] == 0
    assert of_model["n_measured"].iloc[-1] > 0


@pytest.mark.parametrize("slots", [1, 3, 64])
@pytest.mark.parametrize("lookahead", [0, 2, None])
@pytest.mark.parametrize("memory", ["cumulative", "reflective"])
def test_slots_and_lookahead_change_nothing(slots: int, lookahead: int | None, memory: str) -> None:
    model = _model(watched()[0], cognition={"memory": memory}, max_concurrency=slots, lookahead=lookahead)
    model.run()
    _assert_usual(model, cognition={"memory": memory})


def test_a_seed_gives_the_same_model_again_and_another_another() -> None:
    first, second, other = _model(), _model(), OpinionModel(POPULATION, "flat-earth", 6, seed=6)
    assert first.random.random() == second.random.random() != other.random.random()
    assert first.rng.random() == second.rng.random() != other.rng.random()
    for model in (first, second, other):
        model.run()
    assert _messages(first) == _messages(second) != _messages(other)


def test_the_runner_gives_the_same_run_under_the_same_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    # A chat model that is given as it is states no limit of its replies, and so prompts no length of reports.
    experiment = load_experiment(changed(SMALL, model={"name": "scripted", "max_tokens": None}))
    planned = experiment.runs[0]
    results = carry_out(experiment, "same.sqlite")[1]
    parts = assemble(planned, experiment.resources)
    cognition = {**dict(parts.conditions), "memory": parts.memory.name}
    model = OpinionModel(parts.population, parts.claim, parts.schedule, cognition=cognition, seed=5)
    monkeypatch.setattr(model, "_run_id", planned.run_id)
    model.run()
    assert [each.message.text for each in model.history] == results.turns["message"].tolist()
    assert [each.turn.agent for each in model.history] == results.turns["agent"].tolist()
    values = [each.estimate.value for each in model.history if each.estimate is not None]
    np.testing.assert_array_equal(values, results.opinions["value"])


@pytest.mark.parametrize("lookahead", [0, 1, 3])
def test_lookahead_bounds_what_is_asked_beyond_the_step(lookahead: int) -> None:
    chat_model, watch = watched(latency=lambda seed: 0.0)
    model = _model(chat_model, 10, lookahead=lookahead)
    for step in range(1, 11):
        model.step()
        background.run(_settled())
        assert len(watch.asked) == 2 * min(step + lookahead, 10)


async def _settled() -> None:
    """Let whatever can go on without waiting go on."""
    for _ in range(200):
        await asyncio.sleep(0)


def test_by_default_one_step_an_agent_is_asked_ahead() -> None:
    chat_model, watch = watched(latency=lambda seed: 0.0)
    model = _model(chat_model, 100)
    model.step()
    background.run(_settled())
    assert len(watch.asked) == 2 * 5
    model.close()


# -- failures and interrupts ---------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [1, 2, 7, 12])
def test_a_failed_step_raises_and_may_be_called_again(number: int) -> None:
    chat_model, watch = watched(fails=lambda n: n == number)
    model = _model(chat_model)
    with pytest.raises(ModelCallError, match="the provider is gone"):
        model.run()
    failed, steps = watch.asked[number - 1], model.steps
    frame = model.datacollector.get_model_vars_dataframe()
    assert steps == len(frame) - 1 < 6
    assert len(model.history) == 2 * steps
    # Replies that were on their way have been kept.
    assert sorted(watch.answered) == sorted(set(watch.asked) - {failed})
    model.run()
    assert model.steps == 6
    assert sorted(watch.answered) == sorted(set(watch.asked))
    assert [seed for seed in set(watch.asked) if watch.asked.count(seed) > 1] == [failed]
    _assert_usual(model)


def test_a_step_that_any_request_failed_is_asked_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key is wrong, and is mended between two tries: nothing of the refusal stays."""
    with StubProvider(scripted_reply(), api_key="right") as stub:
        monkeypatch.setenv("MENDED_API_KEY", "wrong")
        model = _model(
            load_chat_model("openai:m", base_url=stub.base_url, api_key_env="MENDED_API_KEY"), classifier="lexicon"
        )
        with pytest.raises(ModelCallError, match=r"401.*so no more are sent"):
            model.run()
        stub.api_key = "wrong"
        model.run()
    assert model.steps == 6


def test_an_interrupted_step_keeps_replies_on_their_way() -> None:
    main = threading.main_thread().ident
    chat_model, watch = watched(
        latency=lambda seed: 0.01,
        noticed=lambda number: signal.pthread_kill(main, signal.SIGINT) if number == 5 else None,
    )
    model = _model(chat_model)
    with pytest.raises(KeyboardInterrupt):
        model.run()
    assert sorted(watch.answered) == sorted(watch.asked)
    model.run()
    assert len(watch.asked) == len(set(watch.asked)) == 12
    _assert_usual(model)


def test_the_schedule_has_an_end() -> None:
    model = _model(schedule=2)
    model.run()
    frame = model.datacollector.get_model_vars_dataframe()
    with pytest.raises(ScheduleError, match="the schedule ends at step 2"):
        model.step()
    assert (model.steps, model.running) == (2, False)
    assert len(model.datacollector.get_model_vars_dataframe()) == len(frame) == 3
    model.run()
    empty = _model(schedule=0)
    empty.run()
    with pytest.raises(ScheduleError, match="ends at step 0"):
        empty.step()


def test_a_refusal_leaves_the_opinion_as_it_was_last_measured() -> None:
    model = _model(osim.load_chat_model("scripted", refusal_rate=0.5), 30)
    last: dict[int, float] = {agent.index: float("nan") for agent in model.agents}
    refused = 0
    while model.running:
        model.step()
        review = model.history[-1]
        # A review is refused, or skipped since the post was; a skipped one is measured by nobody.
        assert (review.estimate is None) == (review.message.status == "skipped")
        if review.estimate is None or np.isnan(review.estimate.value):
            refused += 1
        else:
            last[review.turn.agent] = review.estimate.value
        np.testing.assert_array_equal([agent.opinion for agent in model.agents], [last[i] for i in range(4)])
    assert 0 < refused < 30


# -- what still runs is ended --------------------------------------------------------------------------------


def _tasks() -> int:
    """Tasks on the package's loop beside the one that counts."""

    async def count() -> int:
        await _settled()
        return len(asyncio.all_tasks()) - 1

    return background.run(count())


def _begun() -> OpinionModel:
    """A model after its first step, the calls of whose other steps never end."""
    chat_model, watch = watched()
    model = _model(chat_model, GivenDyads(4, [(0, 1), (2, 3), (0, 2), (1, 3)]))
    first = {call_seed(model._run_id, turn, "reply", 0) for turn in (0, 1)}
    watch.latency = lambda seed: 0.0 if seed in first else 3600.0
    model.step()
    return model


def test_close_a_with_block_and_garbage_collection_end_what_still_runs() -> None:
    with _begun() as model:
        assert (_tasks() > 0, model.steps) == (True, 1)
    assert _tasks() == 0
    model.close()
    model = _begun()
    assert _tasks() > 0
    model.close()
    assert _tasks() == 0
    alive = weakref.ref(model := _begun())
    assert _tasks() > 0
    del model
    gc.collect()
    assert (alive(), _tasks()) == (None, 0)


def test_stepping_after_close_goes_on_from_the_journal() -> None:
    chat_model, watch = watched(latency=lambda seed: 0.0)
    model = _model(chat_model, lookahead=0)
    model.step()
    model.close()
    model.run()
    assert len(watch.asked) == len(set(watch.asked)) == 12
    _assert_usual(model)


def test_a_journal_of_the_callers_own_answers_a_second_model() -> None:
    journal = MemoryJournal()
    first = _model(journal=journal)
    first.run()
    chat_model, watch = watched()
    second = _model(chat_model, journal=journal)
    second.run()
    assert watch.asked == []
    assert _messages(second) == _messages(first)


# -- where it may be called ----------------------------------------------------------------------------------


def test_it_works_inside_a_running_loop() -> None:
    async def notebook() -> OpinionModel:
        model = _model(watched()[0])
        model.run()
        await asyncio.sleep(0)
        return model

    _assert_usual(asyncio.run(notebook()))


def test_several_models_run_side_by_side_in_threads() -> None:
    def one(seed: int) -> list[tuple[Any, ...]]:
        model = OpinionModel(POPULATION, "flat-earth", 6, watched()[0], seed=seed)
        model.run()
        return _messages(model)

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(one, range(4)))
    assert together == [one(seed) for seed in range(4)]


# -- what it can be made of ----------------------------------------------------------------------------------


def _scheduled(interaction: Interaction, *opinions: float) -> AnySchedule:
    """The schedule of an interaction among four agents."""
    return interaction.schedule(Setting.of(4, 1, opinions=opinions))


@pytest.mark.parametrize(
    "schedule",
    [
        _scheduled(Broadcast(steps=3)),
        _scheduled(SimilarityDyads(steps=5), 0.0, 1.0, -1.0, 2.0),
        _scheduled(Feed(steps=3, posts=2), 0.0, 1.0, -1.0, 2.0),
        with_probes(_scheduled(Dyads(steps=3)), 1, 1),
    ],
    ids=["broadcast", "similarity", "feed", "probed"],
)
def test_any_schedule_steps(schedule: Any) -> None:
    model = _model(schedule=schedule)
    while model.running:
        model.step()
        assert {each.turn.step for each in model.history} <= set(range(model.steps + 1))
    assert model.steps == schedule.steps
    assert max(each.turn.step for each in model.history) == schedule.steps
    assert [each.turn.index for each in model.history] == list(range(len(model.history)))


def test_steps_in_which_nobody_meets_are_steps_all_the_same() -> None:
    """Two couples of one mind each, far from the other: half of all pairs drawn do not meet."""
    schedule = _scheduled(BoundedConfidenceDyads(steps=12, confidence=0.0), -2.0, -2.0, 2.0, 2.0)
    model = _model(schedule=schedule)
    seen = [len(model.history)]
    while model.running:
        model.step()
        seen.append(len(model.history))
    assert model.steps == schedule.steps == 12
    assert len(model.datacollector.get_model_vars_dataframe()) == 13
    assert {later - earlier for earlier, later in pairwise(seen)} == {0, 2}
    nobody = _scheduled(BoundedConfidenceDyads(steps=4, confidence=0.5), -2.0, -1.0, 1.0, 2.0)
    apart = _model(schedule=nobody)
    apart.run()
    assert (apart.steps, apart.history) == (4, [])


def test_the_study_is_the_default() -> None:
    model = OpinionModel(schedule=1)
    assert len(model.agents) == 10
    assert model.evidence == "scripted"
    assert sorted(agent.assigned_opinion for agent in model.agents) == sorted([-2, -2, -1, -1, 0, 0, 1, 1, 2, 2])
    model.step()
    frame = model.datacollector.get_model_vars_dataframe()
    assert (frame["n_measured"].iloc[-1], set(frame["evidence"])) == (1, {"scripted"})


def test_a_model_that_is_not_scripted_needs_its_classifier_named() -> None:
    real = FakeListChatModel(responses=["I am sure that Theory XYZ is true."])
    with pytest.raises(SpecError, match="classifier must be named"):
        _model(real)
    model = _model(real, classifier="lexicon")
    model.run()
    assert model.evidence == "model"
    assert max(agent.opinion for agent in model.agents if agent.reports) == 2
    unmeasured = _model(classifier=None)
    unmeasured.run()
    assert all(np.isnan(agent.opinion) for agent in unmeasured.agents)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"topic": "no-such-topic"}, "topic: unknown 'no-such-topic'; valid: flat-earth"),
        ({"population": "nobody"}, "personas: unknown 'nobody'; valid: chuang2024"),
        ({"framing": "lie"}, "lie"),
        ({"schedule": -1}, "schedule must be a whole number of at least 0; got -1"),
        ({"schedule": GivenDyads(3, [(0, 1)])}, "the schedule needs 3 agents; the population has 10"),
        ({"chat_model": "gpt"}, "unknown model 'gpt'"),
        ({"classifier": "none"}, "unknown classifier 'none'"),
        ({"seed": -1}, "seed must be a whole number of at least 0; got -1"),
        ({"lookahead": -1}, "lookahead must be a whole number of at least 0; got -1"),
        ({"max_concurrency": 0}, "max_concurrency must be at least 1; got 0"),
        (
            {"cognition": {"memroy": "cumulative"}},
            "cognition: memroy: unknown field .did you mean memory",
        ),
        (
            {"cognition": {"memory": "photographic"}},
            "unknown memory 'photographic'; valid: cumulative, none, reflective",
        ),
        ({"cognition": {"confirmation_bias": "mild"}}, "confirmation_bias: unknown value 'mild'; valid: none, weak"),
        ({"prompts": "no-such-folder"}, "neither 'default', 'deliberation'"),
        ({"timeout_s": 0}, "above 0"),
        ({"scale": 5}, "OpinionScale"),
        ({"schedule": "a"}, "schedule"),
        ({"schedule": True}, "steps"),
        (
            {"schedule": SimilarityDyads(steps=2).schedule(Setting.of(10)), "classifier": None},
            "classifier",
        ),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else value,
)
def test_bad_arguments_are_told_before_the_first_step(arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        OpinionModel(**arguments)


@pytest.mark.parametrize("name", ["opinion", "assigned_opinion", "persona", "index", "posts", "last_report"])
def test_what_is_committed_cannot_be_assigned(name: str) -> None:
    model = _model()
    model.step()
    before = model.datacollector.get_model_vars_dataframe()["bias"].iloc[-1]
    for assign in (lambda: setattr(model.agents[2], name, 99), lambda: model.agents.set(name, 99)):
        with pytest.raises(SpecError, match=rf"agent \d: {name} shows what is committed .*the model's population"):
            assign()
    model.datacollector.collect(model)
    np.testing.assert_equal(model.datacollector.get_model_vars_dataframe()["bias"].iloc[-1], before)


def test_attributes_of_ones_own_may_be_given_to_agents() -> None:
    model = _model()
    model.agents.set("colour", "red")
    assert model.agents.get("colour") == ["red"] * 4


def test_an_agent_is_not_stepped_on_its_own() -> None:
    model = _model()
    for step in (model.agents[0].step, lambda: model.agents.shuffle_do("step")):
        with pytest.raises(
            SpecError, match=r"agent \d: an agent cannot be stepped on its own; .*step\(\) of the model"
        ):
            step()
    assert model.steps == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda model: model.agents[1].remove(),
        lambda model: model.remove_all_agents(),
        lambda model: model.deregister_agent(model.agents[1]),
        lambda model: model.agents.remove(model.agents[1]),
        lambda model: model.agents.discard(model.agents[1]),
        lambda model: model.agents_by_type[osim.PersonaAgent].pop(),
        lambda model: model.agents.clear(),
        lambda model: mesa.Agent(model),
        lambda model: model.agents.add(_model().agents[0]),
    ],
)
def test_nobody_joins_or_leaves_a_run(change: Any) -> None:
    model = _model()
    everybody = list(model.agents)
    with pytest.raises(SpecError, match=r"(removed|added): the agents of a model are those of its population.*another"):
        change(model)
    assert list(model.agents) == list(model.agents_by_type[osim.PersonaAgent]) == everybody
    model.run()
    assert len(model.datacollector.get_agent_vars_dataframe().loc[6]) == 4


def test_selections_and_orders_of_agents_are_the_users_own() -> None:
    model = _model()
    some = model.agents.select(lambda agent: agent.index > 0)
    some.remove(some[0])
    everybody = model.agents.select()
    everybody.remove(everybody[0])
    assert [agent.index for agent in some] == [2, 3]
    assert [agent.index for agent in everybody] == [1, 2, 3]
    model.agents.sort("index", inplace=True)
    model.agents.select(at_most=1, inplace=True)
    assert [agent.index for agent in model.agents] == [0, 1, 2, 3]
