from __future__ import annotations

from typing import Any

import pytest

from opinionsim.errors import SpecError
from opinionsim.planning import preview
from opinionsim.specification import load_experiment
from tests.planning.test_plan import INTERACTIONS
from tests.support.examples import few
from tests.support.running import SMALL, carry_out, changed


@pytest.mark.parametrize(
    "asked", [{}, {"probe": {"before": 1}, "self_report": {"after": 1}}], ids=["not asked", "asked"]
)
@pytest.mark.parametrize("kind", few(INTERACTIONS, 4))
def test_every_act_is_shown_and_nobody_is_asked(
    kind: str, asked: dict[str, dict[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unavailable(*args: Any) -> Any:
        raise AssertionError("a preview asked the model")

    spec = changed(SMALL, interaction=INTERACTIONS[kind], measurement=asked)
    acts = set(carry_out(spec, "shown.sqlite")[1].turns["act"])
    monkeypatch.setattr("opinionsim.llm.scripted._script.ScriptedChatModel._reply", unavailable)
    assert set(preview(load_experiment(spec)).prompts) == acts


def test_the_first_prompt_is_the_one_a_run_asks() -> None:
    spec = changed(SMALL, sweep={"cognition.confirmation_bias": ["none", "strong"]}, replicates=2)
    experiment = load_experiment(spec)
    results = carry_out(experiment, "asked.sqlite")[1]
    for position, planned in enumerate(experiment.runs):
        shown = preview(experiment, position)
        assert (shown.run_id, shown.cell) == (planned.run_id, planned.cell.label)
        assert list(shown.prompts["write"]) == results.prompt(planned.run_id, 0)


def test_a_message_from_outside_is_shown_and_one_of_an_agent_stands_open() -> None:
    outside = preview(load_experiment(changed(SMALL, interaction=INTERACTIONS["external"] | {"order": "sequence"})))
    assert "One." in outside.prompts["review"][-1].content
    inside = preview(load_experiment(SMALL))
    assert "(the text of another agent's post)" in inside.prompts["review"][-1].content


def test_a_run_that_does_not_exist() -> None:
    with pytest.raises(SpecError, match=r"run 1 does not exist; valid: 0\.\.0"):
        preview(load_experiment(SMALL), 1)
