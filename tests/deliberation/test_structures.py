"""Structures: arguments, order, what each agent is shown, and results."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import opinionsim as osim
from opinionsim.deliberation import (
    AbstractStructure,
    Agent,
    Chain,
    Custom,
    Debate,
    Ensemble,
    Graph,
    Moderator,
    Rounds,
    Structure,
)
from opinionsim.schedules import Turn

TASK = "Where should the library stand?"


def named(name: str) -> Agent:
    """An agent that says its name, and how many messages it was shown."""

    def say(prompt: list[Any]) -> str:
        return f"{name} after {prompt[-1].content.count('<response>')}"

    return Agent(model=osim.GivenReplies(say))


def shown(agent: Agent) -> list[list[str]]:
    """The texts that an agent was shown in each of its turns."""
    return [re.findall(r"<response>\n(.*)\n</response>", prompt["user"]) for prompt in agent.prompts]


TWO = [Agent(), Agent()]
WRONG: list[tuple[Callable[[], object], str]] = [
    (lambda: Chain([], TASK), "agents must contain at least one agent"),
    (lambda: Chain(Agent(), TASK), "agents must be a list of agents; got Agent"),
    (lambda: Chain({"a": Agent()}, TASK), "agents must be a list of agents; got dict"),
    (lambda: Chain([Agent(), "b"], TASK), r"agents\[1\] must be an Agent; got str"),
    (lambda: Chain([Moderator()], TASK), r"agents\[0\] must be an Agent; got Moderator"),
    (lambda: Chain(TWO), "agent 0 has no task; set a task for it or for the structure"),
    (lambda: Chain(TWO, " "), "task: must not be blank"),
    (lambda: Chain(TWO, TASK, shuffle=1), "shuffle must be True or False; got 1"),
    (lambda: Chain(TWO, TASK, cycles=0), "cycles: must be at least 1; got 0"),
    (lambda: Chain(TWO, TASK, last_n=0), "last_n: must be at least 1; got 0"),
    (lambda: Chain(TWO, TASK, combination_instructions="chian"), "interaction.instructions: unknown name .*chain"),
    (lambda: Chain(TWO, TASK, moderator=Agent()), "moderator must be a Moderator; got Agent"),
    (lambda: Chain(TWO, TASK, verbose="yes"), "verbose must be True or False"),
    (lambda: Chain(TWO, TASK, seed=-1), "seed: must be at least 0; got -1"),
    (lambda: Chain(TWO, TASK, no_answer="ignore"), "no_answer must be 'fail' or 'skip'"),
    (lambda: Debate([Agent()], TASK), "cast: must be at least 2 for interaction kind 'debate'; got 1"),
    (lambda: Debate([*TWO, Agent()], TASK), "a debate is between exactly 2 agents; got 3"),
    (
        lambda: Ensemble(TWO, TASK, combination_instructions="debate"),
        "instructions.*: has no effect, because agents see no answers",
    ),
    (
        lambda: Chain([Agent(task="A?")], moderator=Moderator()),
        "moderator: task: is required, because a moderator answ",
    ),
    (lambda: Ensemble(TWO, TASK, last_n=2), "last_n: unknown field; valid: .*cycles"),
    (lambda: Rounds([Agent()], TASK), "must be at least 2 for interaction kind 'rounds'"),
    (lambda: Rounds(TWO, TASK, network="rign"), "did you mean ring"),
    (lambda: Graph(TWO, [(0, 1)], TASK, cycles=2), "cycles: must be 1, because agents in a graph answer only once"),
    (lambda: Graph(TWO, [(0, 2)], TASK), "agent 2 does not exist; valid: 0..1"),
    (lambda: Graph({"a": Agent(), "b": Agent()}, [("a", "c")], TASK), "there is no agent 'c'; valid: a, b"),
    (
        lambda: Chain([Agent(task="A?")], moderator=Moderator("default")),
        "moderator: task: is required, because the text .* contains",
    ),
    (
        lambda: Moderator("default", system_instructions="Be brief."),
        "roles.moderator.system: cannot be combined with persona",
    ),
    (lambda: Moderator("default", "auto"), "roles.moderator.automatic: cannot be combined with persona"),
    (lambda: Custom(TWO, "chian", TASK), "interaction.kind: unknown interaction 'chian' .did you mean chain"),
    (lambda: Moderator("defualt"), "did you mean default"),
    (lambda: Moderator(combination_instructions="chain"), "roles.moderator: instructions: unknown name 'chain'"),
    (lambda: Moderator(system_instructions="auto").generate_system_instructions(), "has no task to write"),
    (
        lambda: Moderator().generate_system_instructions(TASK, max_tries=True),
        "interaction.attempts: must be a whole number",
    ),
    (lambda: Chain(TWO, TASK).to_dataframe(), r"has not been processed; call process\(\) first"),
    (lambda: Chain(TWO, TASK).process(store="sqlite:///a.sqlite"), "give run=NAME"),
    (lambda: Chain(TWO, TASK).process(execution={"budgte": {}}), "did you mean|valid"),
]


@pytest.mark.parametrize(("make", "message"), WRONG, ids=range(len(WRONG)))
def test_bad_arguments_are_one_error_before_any_call(make: Callable[[], object], message: str) -> None:
    with pytest.raises(osim.SpecError, match=message):
        make()


PATH, TWICE = {"edges": [["a", "b"]]}, {"cycles": 2, "order": "cast"}


@pytest.mark.parametrize(
    ("structure", "interaction"),
    [
        (Chain(TWO, TASK, cycles=2, last_n=2), {"kind": "chain", **TWICE, "last_n": 2}),
        (Ensemble(TWO, TASK, shuffle=True), {"kind": "ensemble", "cycles": 1, "order": "shuffled"}),
        (Graph(TWO, [(1, 0)], TASK), {"kind": "graph", "cycles": 1, "order": "cast", "edges": [(1, 0)]}),
        (Rounds({"a": Agent(), "b": Agent()}, TASK, PATH), {"kind": "rounds", **TWICE, "network": PATH}),
    ],
    ids=["chain", "ensemble", "graph", "rounds"],
)
def test_a_structure_is_an_interaction(structure: AbstractStructure, interaction: dict[str, Any]) -> None:
    """What agents see in it is tested of the interaction, in test_turns."""
    assert structure.specification["interaction"] == interaction
    names = structure.agents if isinstance(structure.agents, dict) else (None, None)
    assert [each.get("name") for each in structure.specification["cast"]] == [*names]


def test_a_debate_tells_own_statements_from_the_others() -> None:
    agents = [named("ada"), named("ben")]
    debate = Debate(agents, TASK, cycles=2, moderator=Moderator())
    debate.process()
    assert debate.responses[:2] == ["[Debater 1] ada after 0", "[Debater 2] ben after 1"]
    assert "[You]:\n<response>\nada after 0" in agents[0].prompts[1]["user"]
    assert "[Other participant]:\n<response>\nben after 1" in agents[0].prompts[1]["user"]
    assert debate.moderated
    assert debate.moderator.prompts[0]["user"].count("Debater 2:\n<response>\nben after") == 2


@osim.part("interaction")
class EchoOfTheFirst(Structure):
    """Everybody answers after the first agent."""

    gap: int = 0
    """Agents that do not hear it."""

    def turns(self, setting: Any) -> Any:
        """The first agent, then all others."""
        for agent in range(setting.size):
            yield Turn(agent, 1, agent, "respond", (0,) if agent > self.gap else ())


def test_a_structure_of_ones_own_is_a_class_that_yields_turns() -> None:
    agents = [named("ada"), named("ben"), named("cleo")]
    own = Custom(agents, EchoOfTheFirst, TASK, fields={"gap": 1}, moderator=Moderator())
    own.process()
    assert own.responses[:3] == ["ada after 0", "ben after 0", "cleo after 1"]
    with pytest.raises(osim.SpecError, match="gpa"):
        Custom(agents, EchoOfTheFirst, TASK, fields={"gpa": 1})


def test_shuffling_follows_the_seed_and_debaters_keep_their_numbers() -> None:
    chain = Chain([named(name) for name in "abcdef"], TASK, shuffle=True, cycles=2)
    orders = {seed: [said.split()[0] for said in (chain.process(seed=seed), chain.responses)[1]] for seed in (1, 2, 1)}
    first, second = orders[1], orders[2]
    assert first != second
    assert sorted(first[:6]) == sorted(first[6:]) == list("abcdef")
    assert first[:6] != first[6:]
    debate = Debate([named("ada"), named("ben")], TASK, shuffle=True)
    said = [debate.responses[0] for seed in range(8) if debate.process(seed=seed)]
    assert set(said) == {"[Debater 1] ada after 0", "[Debater 2] ben after 0"}


def test_instructions_of_the_agent_come_before_those_of_the_structure() -> None:
    own = Agent(combination_instructions="minimal_discussion")
    shared = Agent()
    Chain([named("ada"), own, shared], TASK, combination_instructions="voting").process()
    assert "It is your turn to speak." in own.prompts[0]["user"]
    assert "one definite conclusion" in shared.prompts[0]["user"]


def test_tasks_may_be_the_agents_own_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chain = Chain(
            [Agent("Sing?"), Agent("Dance?", system_instructions="Now: ${task}")], moderator=Moderator(task="Or?")
        )
        chain.process()
    assert chain.agents[1].prompts[0]["system"] == "Now: Dance?"
    assert "Sing?" not in chain.moderator.prompts[0]["user"]


def test_objects_play_the_agents_they_are_given_to() -> None:
    one, other = osim.GivenReplies(lambda prompt: "one"), osim.GivenReplies(lambda prompt: "other")
    ensemble = Ensemble(
        [Agent(model=one), Agent(model=other), Agent(model=one), Agent()], TASK, moderator=Moderator(model=other)
    )
    ensemble.process()
    assert ensemble.responses[:3] == ["one", "other", "one"]
    assert ensemble.final_response == "other"
    assert list(ensemble.results.agents["model"]) == [
        "GivenReplies", "GivenReplies#2", "GivenReplies", "scripted", "GivenReplies#2",
    ]  # fmt: skip
    assert (len(one.prompts), len(other.prompts)) == (2, 2)


def test_what_a_structure_hands_back(tmp_path: Path) -> None:
    chain = Chain([named("ada"), named("ben")], TASK)
    assert (chain.responses, chain.final_response, chain.results) == ([], None, None)
    chain.process()
    chain.to_json(tmp_path / "chain.json")
    told = json.loads((tmp_path / "chain.json").read_text(encoding="utf-8"))
    assert told["responses"] == ["ada after 0", "ben after 1"]
    assert [agent["history"][0]["response"] for agent in told["agents"]] == told["responses"]
    frame = chain.to_dataframe()
    assert list(frame["response"]) == chain.responses
    assert list(frame["reads"]) == [(), (0,)]
    assert set(frame["evidence"]) == {"scripted"}
    assert chain.plan().calls == 2
    assert chain.specification["interaction"]["kind"] == "chain"


def test_values_lead_to_a_verdict() -> None:
    model = osim.GivenReplies(["The tree is in the way.", "Verdict: rejected\nRationale: Trees come first."])
    ensemble = Ensemble([Agent(model=model)], "Fell the tree.", moderator=Moderator(values="Trees first.", model=model))
    assert ensemble.process(execution={"max_concurrency": 1}) == "Verdict: rejected\nRationale: Trees come first."
    (prompt,) = ensemble.moderator.prompts
    assert "Trees first." in prompt["system"]
    assert "state your verdict" in prompt["user"]
    assert "Combine" not in prompt["user"]


def test_automatic_instructions_are_asked_for_again_up_to_the_number_of_tries() -> None:
    replies = ["Be brief.", " moderator  INSTRUCTIONS: Combine."]
    moderator = Moderator(model=osim.GivenReplies(replies))
    moderator.system_instructions = moderator.generate_system_instructions(TASK, max_tries=2)
    assert moderator.system_instructions == "Combine."
    model = osim.GivenReplies(lambda prompt: "Be brief.")
    with pytest.raises(osim.ModelCallError, match="must begin with 'Moderator instructions:'"):
        Moderator(model=model).generate_system_instructions(TASK, max_tries=3)
    assert len(model.prompts) == 3
    with pytest.raises(osim.SpecError, match=r"roles\.moderator\.system: cannot be combined with persona"):
        Moderator("default").system_instructions = "Be brief."


def test_abstract_structures_are_not_made() -> None:
    with pytest.raises(TypeError):
        AbstractStructure([Agent()], TASK)
