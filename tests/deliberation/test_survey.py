"""Agents that play people of a survey."""

from __future__ import annotations

import pytest

import opinionsim as osim
from opinionsim.deliberation import Agent, Ensemble, use_survey


def test_the_same_script_has_the_same_people() -> None:
    people = []
    for _ in range(2):
        use_survey("synthetic", "synthetic", seed=3)
        people.append([Agent(persona="random").persona for _ in range(5)])
    assert people[0] == people[1]
    assert len(set(people[0])) == 5


def test_an_agent_is_one_person_in_all_its_structures() -> None:
    use_survey("synthetic", "synthetic")
    agent = Agent(ideology="left")
    assert agent.persona_template == "anes"
    for _ in range(2):
        Ensemble([agent], "What should be done?").process()
    first, second = agent.prompts
    assert agent.persona in first["system"]
    assert first["system"] == second["system"] == agent.system_instructions
    assert "Say nothing that tells others which party you favour" in first["system"]


def test_queries_say_who() -> None:
    use_survey("synthetic", "synthetic")
    people = [Agent(query_str="age < 30 and residence == 'village'").persona for _ in range(10)]
    assert all("You live in a village." in person for person in people)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"query_str": "age < -5"}, "matches none"),
        ({"query_str": "age <"}, "cannot be read"),
        ({"query_str": "wealth > 3"}, "unknown variable 'wealth'"),
        ({"ideology": "liberal"}, "has no group 'liberal'; valid: left, right, centre"),
    ],
)
def test_bad_queries_are_refused_when_the_agent_is_made(arguments: dict[str, str], message: str) -> None:
    use_survey("synthetic", "synthetic")
    with pytest.raises(osim.SurveyError, match=message):
        Agent(**arguments)
