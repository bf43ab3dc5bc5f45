"""Scripts after the examples of Plurals' README and documentation, with other imports, models and texts."""

from __future__ import annotations

from pathlib import Path

import pytest

import opinionsim as osim
from opinionsim.deliberation import Agent, Chain, Debate, Ensemble, Graph, Interview as Interviewer, Moderator

MODEL = "scripted"


def test_one_agent() -> None:
    agent = Agent(persona="a nurse who cycles to work", model=MODEL, kwargs={"temperature": 1})
    answer = agent.process(task="What should be done about the bridge?")
    assert answer
    assert agent.history is not None
    assert agent.history[0]["response"] == answer
    assert agent.history[0]["prompts"]["user"].startswith("What should be done about the bridge?")
    assert "a nurse who cycles to work" in agent.system_instructions
    assert agent.info["persona"] == "a nurse who cycles to work"


def test_an_ensemble_with_a_moderator(capsys: pytest.CaptureFixture[str]) -> None:
    task = "Think of ways to make the market square livelier."
    agents = [Agent(persona=f"a person of {age}", model=MODEL) for age in (20, 40, 60, 80)]
    moderator = Moderator(persona="default", model=MODEL)
    ensemble = Ensemble(agents, moderator=moderator, task=task)
    ensemble.process()
    for response in ensemble.responses:
        print(response)
    assert len(ensemble.responses) == 5
    assert ensemble.final_response == ensemble.responses[-1]
    assert capsys.readouterr().out.count("\n") == 5


def test_a_chain() -> None:
    agent1 = Agent(persona="a gardener", model=MODEL)
    agent2 = Agent(persona="a 24 year old nurse", model=MODEL)
    agent3 = Agent(persona="an old engineer", model=MODEL)
    chain = Chain([agent1, agent2, agent3], task="How should we heat houses?", combination_instructions="chain")
    chain.process()
    assert chain.final_response == chain.responses[2]
    assert [len(agent.history or []) for agent in chain.agents] == [1, 1, 1]


def test_a_debate() -> None:
    task = "To what extent should a town run its own swimming pool?"
    agent1 = Agent(persona="a swimmer", persona_template="default", model=MODEL)
    agent2 = Agent(persona="a taxpayer", persona_template="default", model=MODEL)
    moderator = Moderator(
        persona="You are a neutral moderator overseeing this task, ${task}",
        model=MODEL,
        combination_instructions="default",
    )
    debate = Debate([agent1, agent2], task=task, combination_instructions="debate", moderator=moderator)
    debate.process()
    first, second, last = debate.responses
    assert first.startswith("[Debater 1] ")
    assert second.startswith("[Debater 2] ")
    assert last == debate.final_response
    assert debate.moderator.prompts[0]["system"] == f"You are a neutral moderator overseeing this task, {task}"


def test_graphs_by_position_and_by_name() -> None:
    texts = {"optimist": "you see the best", "pessimist": "you see the worst", "realist": "you see what is there"}
    task = "What will the town be like in ten years? Answer in 20 words."
    listed = [Agent(system_instructions=text, model=MODEL) for text in texts.values()]
    Graph(agents=listed, edges=[(0, 1), (0, 2), (1, 2)], task=task).process()
    agents = {name: Agent(system_instructions=text, model=MODEL) for name, text in texts.items()}
    edges = [("optimist", "pessimist"), ("optimist", "realist"), ("pessimist", "realist")]
    graph = Graph(agents=agents, edges=edges, task=task)
    assert graph.process() == graph.final_response
    assert [prompt["user"].count("<response>") for each in agents.values() for prompt in each.prompts] == [0, 1, 2]
    assert "Agent 0:" in listed[2].prompts[0]["user"]
    assert "optimist:" in agents["realist"].prompts[0]["user"]


def test_a_graph_with_instructions_of_its_agents() -> None:
    prompt = "\nWrite a short play set in a lighthouse.\n"
    agents = {
        role: Agent(
            system_instructions=f"You know all about the {role} of a play.",
            model=MODEL,
            combination_instructions=f"Work out the {role} from this: <start>${{previous_responses}}</end>",
        )
        for role in ("plot", "cast", "stage")
    }
    moderator = Moderator(
        persona="an editor of plays",
        model=MODEL,
        combination_instructions="Make one outline of these: <start>$previous_responses</end>",
    )
    edges = [("stage", "cast"), ("stage", "plot"), ("cast", "plot")]
    play = Graph(agents=agents, edges=edges, task=prompt, moderator=moderator)
    play.process()
    assert play.moderator.prompts[0]["system"] == "an editor of plays"
    assert "Work out the plot from this: <start>\n\ncast:" in agents["plot"].prompts[0]["user"]
    assert "$previous_responses" not in play.moderator.prompts[0]["user"]


def test_moderators_that_write_their_own_instructions() -> None:
    task = "Think of the oddest use of a ladder. Answer in 20 words."
    chain = Chain(
        [Agent(model=MODEL), Agent(model=MODEL)],
        moderator=Moderator(system_instructions="auto", model=MODEL),
        task=task,
    )
    chain.process()
    assert chain.moderator.system_instructions != "auto"
    assert not chain.moderator.system_instructions.startswith("Moderator instructions")
    moderator = Moderator(system_instructions="auto", model=MODEL, task="What is a ladder for?")
    chain = Chain([Agent(model=MODEL), Agent(model=MODEL)], moderator=moderator, task=task)
    chain.process()
    assert "What is a ladder for?" in moderator.prompts[0]["user"]
    assert moderator.system_instructions == "auto"
    moderator = Moderator(model=MODEL, combination_instructions="second_wave")
    moderator.system_instructions = moderator.generate_system_instructions(task)
    Chain([Agent(model=MODEL)], moderator=moderator, task=task).process()
    assert moderator.prompts[-1]["system"] == moderator.system_instructions


def test_shuffled_critique_over_cycles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    agents = [Agent(persona=who, model=MODEL) for who in ("a baker", "a smith", "a sailor")]
    chain = Chain(
        agents,
        task="Write a slogan for the harbour.",
        shuffle=True,
        cycles=2,
        last_n=1000,
        combination_instructions="critique_revise",
    )
    chain.process()
    chain.to_json(tmp_path / "chain.json")
    frame = chain.to_dataframe(tmp_path / "chain.csv")
    chain.print_responses()
    assert list(frame["response"]) == chain.responses
    assert sorted(frame["agent"][:3]) == sorted(frame["agent"][3:]) == [0, 1, 2]
    assert capsys.readouterr().out.count("Agent ") == 6
    assert chain.responses[0] in (tmp_path / "chain.json").read_text(encoding="utf-8")


def test_best_of_n() -> None:
    agent = Agent(model=MODEL, num_responses=4, response_selector=lambda texts: max(texts, key=len))
    answer = agent.process(task="Name the bridge.")
    (entry,) = agent.history or []
    assert len(entry["all_responses"]) == 4
    assert answer == max(entry["all_responses"], key=len)


def test_interviews_make_personas() -> None:
    interview = Interviewer(seed="a farmer from the coast", model=MODEL, temperature=0.9)
    interview.run_interview()
    agent = Agent(persona=interview.combined_response, model=MODEL)
    ensemble = Ensemble([agent], task="What should the harbour look like?")
    ensemble.process()
    assert len(interview.responses or []) == len(interview.questions) == 9
    assert f"Q: {interview.questions[8]}\nA: {interview.responses[8]}" in agent.prompts[0]["system"]
    assert interview.info["kwargs"] == {"temperature": 0.9}


def test_a_model_by_its_bare_name_is_an_error_that_says_the_whole_one() -> None:
    with pytest.raises(osim.SpecError, match="write 'openai:gpt-4o'"):
        Agent(persona="a nurse", model="gpt-4o")
