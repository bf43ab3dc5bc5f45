"""Agents by themselves: arguments, attributes, and the one call of process()."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings, strategies as st

import opinionsim as osim
from opinionsim.deliberation import Agent, Chain

#: How every request for a response ends.
ALONE = "Write only the response itself, with nothing before or after it.\n\nYour response:"
TASK = "Where should the library stand?"


def echo(prompt: list[osim.messages.ChatMessage]) -> str:
    """How many messages the prompt has, and who speaks."""
    return ", ".join(message.role for message in prompt)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"persona": "a", "system_instructions": "b"}, "persona and system_instructions both describe the agent"),
        ({"ideology": "liberal", "query_str": "age < 40"}, "ideology and query_str both describe the agent"),
        ({"persona": " "}, "persona: must not be blank"),
        ({"task": ""}, "task: must not be blank"),
        ({"persona_template": "default"}, r"cast\[0\].template: has no effect without a persona, query or group"),
        ({"system_instructions": "a", "persona_template": "default"}, r"cast\[0\].template: has no effect"),
        ({"persona": "a", "persona_template": "anse"}, "did you mean anes"),
        ({"persona": "a", "persona_template": "You are nobody."}, r"must contain \$\{persona\}"),
        ({"combination_instructions": "chian"}, r"cast\[0\]: instructions: unknown name .* .did you mean chain"),
        ({"combination_instructions": "Build on these."}, r"must contain \$\{previous_responses\}"),
        ({"num_responses": 2}, r"cast\[0\].draws: 2 replies need a selector"),
        ({"num_responses": 0, "response_selector": "first"}, r"cast\[0\].draws: must be at least 1; got 0"),
        ({"num_responses": True}, r"cast\[0\].draws: must be a whole number; got true"),
        ({"num_responses": 101, "response_selector": "first"}, "at most 100"),
        ({"response_selector": "first"}, r"cast\[0\].selector: has no effect with one draw; also set draws"),
        (
            {"num_responses": 2, "response_selector": "longets"},
            r"cast\[0\].selector: unknown selector 'longets' .did you mean longest",
        ),
        ({"num_responses": 2, "response_selector": 3}, "plain function or the name of a selector; got 3"),
        ({"model": "gpt-4o"}, "write 'openai:gpt-4o'"),
        ({"model": "anthropic/claude-3"}, "write 'anthropic:claude-3'"),
        ({"model": "llama"}, "write 'PROVIDER:MODEL'"),
        ({"model": 3}, "model must be a name"),
        ({"kwargs": "hot"}, "kwargs must be a mapping"),
        ({"kwargs": {"temperature": "hot"}}, "model.temperature: must be a number; got 'hot'"),
        (
            {"kwargs": {"api_key": "secret"}},
            r"cast\[0\].model.options: api_key: a specification must not contain credentials",
        ),
        ({"model": osim.GivenReplies([]), "kwargs": {"temperature": 1}}, "kwargs have no effect on a chat model"),
    ],
)
def test_bad_arguments_are_refused_when_the_agent_is_made(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(osim.SpecError, match=message):
        Agent(**arguments)


@pytest.mark.parametrize(
    "arguments",
    [{"persona": "random"}, {"ideology": "liberal"}, {"query_str": "age < 40"}],
    ids=lambda each: next(iter(each)),
)
def test_a_person_of_a_survey_needs_one(arguments: dict[str, str]) -> None:
    with pytest.raises(osim.SurveyError, match="use_survey"):
        Agent(**arguments)


def test_the_system_message_is_known_before_any_call() -> None:
    assert Agent().system_instructions is None
    assert Agent(system_instructions="Do ${task}").system_instructions == "Do ${task}"
    assert Agent("sing", system_instructions="Do ${task}").system_instructions == "Do sing"
    model = osim.GivenReplies(["Yes."])
    agent = Agent(TASK, persona="a ${task} None {brace}", persona_template="Be ${persona}!", model=model)
    agent.process()
    assert agent.system_instructions == "Be\n\n<persona>\na ${task} None {brace}\n</persona>\n\n!"
    assert model.prompts[0][0].content == agent.system_instructions


def test_nothing_about_an_agent_can_be_set_but_its_task() -> None:
    agent = Agent(TASK, persona="a nurse", model=osim.GivenReplies(lambda prompt: "Yes."))
    for name in ("persona", "task", "model", "combination_instructions", "history", "system_instructions"):
        with pytest.raises(AttributeError):
            setattr(agent, name, "another")
    with pytest.raises(osim.SpecError, match=r"cast\[0\].task: must not be blank"):
        agent.set_task(" ")
    chain = Chain([agent], cycles=1)
    agent.set_task("Sing.")
    chain.process()
    assert agent.prompts[0]["user"].startswith("Sing.")


def test_process_makes_one_call_and_keeps_the_agents_own_task() -> None:
    model = osim.GivenReplies(lambda prompt: f"{prompt[-1].content.splitlines()[0]} Yes.")
    agent = Agent(TASK, model=model)
    assert agent.process("Another?") == "Another? Yes."
    assert agent.task == TASK
    assert agent.prompts[-1]["user"] == f"Another?\n\n{ALONE}"
    assert agent.process() == f"{TASK} Yes."
    assert agent.responses == ["Another? Yes.", f"{TASK} Yes."]
    assert len(model.prompts) == 2


def test_history_is_none_with_a_warning_before_the_first_call() -> None:
    with pytest.warns(UserWarning, match="no history yet"):
        assert Agent(TASK).history is None


def test_two_calls_are_two_draws_and_a_seed_repeats_one() -> None:
    agents = [Agent("Say something.") for _ in range(6)]
    assert len({agent.process() for agent in agents}) > 1
    assert len({agents[0].process(seed=seed) for seed in range(6)}) > 1
    assert len({agent.process(seed=5) for agent in agents}) == 1


def test_settings_of_a_named_model_go_into_the_specification() -> None:
    kwargs = {"temperature": 0.2, "max_tokens": 50, "top_p": 0.9}
    chain = Chain([Agent(TASK, model="openai:gpt-4o", kwargs=kwargs)])
    model = chain.specification["cast"][0]["model"]
    assert (model["temperature"], model["max_tokens"], model["options"]) == (0.2, 50, {"top_p": 0.9})


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("first", "a long text"),
        ("shortest", "b"),
        (lambda texts: "cc", "cc"),
        (lambda texts: texts.index("b"), "b"),
        (min, "a long text"),
    ],
    ids=["first", "shortest", "text", "position", "builtin"],
)
def test_a_selector_returns_a_text_or_its_position(
    selector: Callable[[list[str]], object] | str, expected: str
) -> None:
    replies = osim.GivenReplies(["a long text", "b", "cc"])
    agent = Agent(TASK, num_responses=3, response_selector=selector, model=replies)
    assert agent.process(execution={"max_concurrency": 1}) == expected
    assert agent.history[0]["all_responses"] == ["a long text", "b", "cc"]


def test_a_selector_that_returns_neither_is_an_error_that_says_so() -> None:
    agent = Agent(TASK, num_responses=2, response_selector=lambda texts: None)
    with pytest.raises(osim.ScheduleError, match=r"must return a position from 0, or one of the texts; got None"):
        agent.process()


WORDS = st.text(st.sampled_from("ab ${}<>/\n%\\") | st.characters(codec="utf-8", exclude_categories=["C"]), max_size=20)


@settings(max_examples=15)
@given(task=WORDS.map(lambda words: f"T{words}T"), shown=WORDS.map(lambda words: f"R{words}R"))
def test_whatever_is_said_stands_in_the_prompt_as_it_is(task: str, shown: str) -> None:
    model = osim.GivenReplies(lambda prompt: "Yes.")
    Agent(task, combination_instructions="Now: $previous_responses.", model=model).process(previous_responses=shown)
    user = model.prompts[0][-1].content
    assert user == f"{task}\n\nNow:\n\nResponse 0:\n<response>\n{shown}\n</response>\n\n.\n\n{ALONE}"
