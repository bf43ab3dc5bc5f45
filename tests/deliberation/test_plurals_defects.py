"""The thirteen defects that were verified in Plurals 0.7 (B9), each as what happens here instead."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable

import pytest

import opinionsim as osim
from opinionsim.deliberation import AbstractStructure, Agent, Chain, Debate, Ensemble, Graph, Moderator

TASK = "Where should the library stand?"


def saying(text: str) -> osim.GivenReplies:
    """A model that always says the same."""
    return osim.GivenReplies(lambda prompt: text)


def counting(word: str) -> osim.GivenReplies:
    """A model whose replies are numbered through all runs."""
    numbers = itertools.count(1)
    return osim.GivenReplies(lambda prompt: f"{word} {next(numbers)}")


def users(speaker: Agent | Moderator) -> list[str]:
    """The user messages that an agent or moderator was sent."""
    return [prompt["user"] for prompt in speaker.prompts]


def test_1_an_agent_that_is_nobody_gets_no_system_message() -> None:
    # Plurals sends the word "None" as its system message.
    model = saying("By the river.")
    Chain([Agent(model=model)], task=TASK).process()
    assert [[message.role for message in prompt] for prompt in model.prompts] == [["user"]]
    assert "None" not in model.prompts[0][0].content


def test_2_the_word_none_stays_in_prompts() -> None:
    # Plurals deletes it: "None of the above" becomes " of the above", "Nonetheless" becomes "theless".
    chain = Chain(
        [Agent(persona="Nonetheless a None", model=saying("None of the above.")), Agent()],
        task="Nonetheless, say None or ${None}.",
    )
    chain.process()
    first, second = chain.agents[0].prompts[0], chain.agents[1].prompts[0]
    assert "\nNonetheless a None\n" in first["system"]
    assert first["user"].startswith("Nonetheless, say None or ${None}.\n")
    assert "\nNone of the above.\n" in second["user"]


def test_3_what_moderators_read_is_put_in_once_and_never_expanded() -> None:
    # Plurals substitutes twice: "$$5" becomes "$5", and a placeholder in a response is expanded again.
    said = "It costs $$5, says ${previous_responses} of ${task}."
    ensemble = Ensemble([Agent(model=saying(said))], task="Pay ${persona} $$7.", moderator=Moderator("default"))
    ensemble.process()
    (prompt,) = ensemble.moderator.prompts
    assert f"<response>\n{said}\n</response>" in prompt["user"]
    assert prompt["user"].count(said) == 1
    assert "Pay ${persona} $$7." in prompt["system"]


def test_4_a_moderator_reads_the_responses_of_its_own_run_once() -> None:
    # In Plurals it sees those of the first run, twice, and not those of the second.
    ensemble = Ensemble([Agent(model=counting("view"))], task=TASK, moderator=Moderator("default"))
    ensemble.process()
    ensemble.process()
    first, second = users(ensemble.moderator)
    assert (first.count("view 1"), first.count("view 2")) == (1, 0)
    assert (second.count("view 1"), second.count("view 2")) == (0, 1)


def test_5_prompts_of_a_second_run_are_those_of_the_first() -> None:
    # In Plurals the combination text of a graph accumulates from run to run.
    graph = Graph([Agent(model=saying("Yes.")), Agent(), Agent()], [(0, 1), (0, 2)], TASK, seed=1)
    graph.process()
    graph.process()
    for agent in graph.agents:
        first, second = users(agent)
        assert first == second


def test_6_responses_are_those_of_the_last_run() -> None:
    # Plurals never clears them.
    chain = Chain([Agent(model=counting("view"))], task=TASK, cycles=2)
    chain.process()
    assert chain.responses == ["view 1", "view 2"]
    chain.process()
    assert chain.responses == ["view 3", "view 4"]


@pytest.mark.parametrize(
    "make",
    [
        lambda agents, task: Chain(agents, task),
        lambda agents, task: Ensemble(agents, task),
        lambda agents, task: Debate(agents, task),
        lambda agents, task: Graph(agents, [(0, 1)], task),
        lambda agents, task: Graph(agents, [(1, 0)], task),
    ],
    ids=["chain", "ensemble", "debate", "graph-root", "graph-leaf"],
)
def test_7_an_agents_own_task_wins_everywhere(make: Callable[[list[Agent], str], AbstractStructure]) -> None:
    # Plurals' warning says so, but it takes the structure's; in a graph it depends on the place.
    own, shared = Agent(task="Sing of the library.", system_instructions="You do: ${task}"), Agent()
    with pytest.warns(UserWarning, match="agent 0 has its own task") as told:
        structure = make([own, shared], TASK)
    assert [warning.filename for warning in told] == [__file__]
    structure.process()
    assert own.prompts[0]["system"] == "You do: Sing of the library."
    assert own.prompts[0]["user"].startswith("Sing of the library.")
    assert TASK not in own.prompts[0]["user"]
    assert shared.prompts[0]["user"].startswith(TASK)


def test_8_structures_leave_agents_as_they_are() -> None:
    # In Plurals an agent keeps the first structure's instructions and task, and is warned about in the second.
    agents = [Agent(model=saying("Yes.")), Agent()]
    before = [{**agent.info, "history": None} for agent in agents]
    Chain(agents, "First?", combination_instructions="First: ${previous_responses}").process()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Chain(agents, "Second?", combination_instructions="Second: ${previous_responses}").process()
    first, second = users(agents[1])
    assert "First?" in first
    assert "First:" in first
    assert "Second?" in second
    assert "Second:" in second
    assert "First" not in second
    assert [{**agent.info, "history": None} for agent in agents] == before


def test_9_an_ensemble_leaves_the_instructions_of_its_agents() -> None:
    # Plurals overwrites them.
    agents = [Agent(model=saying("Yes.")), Agent(combination_instructions="Own: ${previous_responses}")]
    Ensemble(agents, TASK).process()
    assert agents[1].combination_instructions == "Own: ${previous_responses}"
    Chain(agents, TASK).process()
    assert "Own:" not in users(agents[1])[0]
    assert "Own:\n\nResponse 0:\n<response>\nYes.\n</response>" in users(agents[1])[1]


def _broken(prompt: object) -> str:
    raise ValueError("the model is broken")


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (_broken, "the model is broken"),
        (lambda prompt: "", "empty"),
        (lambda prompt: "I can't help with that.", "refused"),
    ],
    ids=["raises", "empty", "refused"],
)
@pytest.mark.parametrize("kind", [Chain, Debate, Ensemble])
def test_10_a_failure_is_an_error_that_names_agent_and_turn(
    kind: type[AbstractStructure], reply: object, reason: str
) -> None:
    # In Plurals it becomes None: a chain passes on nothing, a debate ends in a TypeError, runs report success.
    broken = osim.GivenReplies(reply)
    structure = kind([Agent(model=saying("Yes.")), Agent(model=broken)], TASK)
    with pytest.raises(osim.ModelCallError, match=rf"turn \d, agent 1 .respond.: .*{reason}.*run=NAME"):
        structure.process()
    assert (structure.responses, structure.final_response) == ([], None)


def test_11_previous_responses_are_shown_or_refused() -> None:
    # Plurals drops them silently without instructions, and inserts the name of a template as it stands.
    with pytest.raises(osim.SpecError, match="previous_responses need combination_instructions"):
        Agent(TASK).process(previous_responses="By the river.")
    agent = Agent(TASK, combination_instructions="chain")
    agent.process(previous_responses="By the river.")
    (user,) = users(agent)
    assert "<response>\nBy the river.\n</response>" in user
    assert "Build on them" in user
    assert "chain" not in user


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Agent().process(), "the agent has no task"),
        (lambda: Chain([Agent(task="A?"), Agent()]), "agent 1 has no task"),
        (lambda: Graph([Agent(), Agent()], [(0, 1), (0, 1)], TASK), "the edge from 0 to 1 is given twice"),
        (lambda: Graph([Agent(), Agent()], [(0, -1)], TASK), r"edges\[0\]: agent -1 does not exist"),
        (
            lambda: Graph([Agent(), Agent()], [(0, True)], TASK),
            r"edges\[0\]\[1\]: must be a whole number or text; got true",
        ),
        (lambda: Chain([Agent()], TASK, cycles=True), "cycles: must be a whole number; got true"),
    ],
    ids=["no-task", "one-without", "twice", "negative", "true-edge", "true-cycles"],
)
def test_12_bad_input_is_refused_before_any_call(make: Callable[[], object], message: str) -> None:
    # Plurals: AttributeError without a task; duplicate edges show a text twice; -1 and True are accepted.
    with pytest.raises(osim.SpecError, match=message):
        make()


def test_13_edges_have_an_order_and_reading_does_not_depend_on_it() -> None:
    # In Plurals edges given as a set make the order of reading depend on the hash seed of the process.
    agents = {name: Agent(model=saying(f"{name} says yes.")) for name in ("ada", "ben", "cleo")}
    with pytest.raises(osim.SpecError, match=r"edges must be a list .*order.* got set"):
        Graph(agents, {("ada", "cleo"), ("ben", "cleo")}, TASK)
    read = []
    for edges in ([("ada", "cleo"), ("ben", "cleo")], [("ben", "cleo"), ("ada", "cleo")]):
        graph = Graph(agents, edges, TASK)
        graph.process()
        read.append(users(agents["cleo"])[-1])
    assert read[0] == read[1]
    assert read[0].index("ada:") < read[0].index("ben:")
