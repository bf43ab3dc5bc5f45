"""What is wrong with a study in batches is said by `plan` and by `run`, in one line, before anything is sent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import opinionsim as osim
from opinionsim.errors import SpecError
from opinionsim.running import Invocation, under_way
from opinionsim.specification import load_experiment
from tests.support.batch_runs import ChatGoogleGenerativeAI, prices, study
from tests.support.batches import BatchProvider
from tests.support.command import refused
from tests.support.running import changed

Edit = Callable[[dict[str, Any]], dict[str, Any]]


def said(spec: dict[str, Any]) -> str:
    """What both commands say of a specification, in one line."""
    Path("half.yaml").write_text(yaml.safe_dump(spec, sort_keys=False), encoding="utf-8")
    planned, run = (refused(command, "half.yaml", "--store", "s.sqlite")[:2000] for command in ("plan", "run"))
    assert planned == run
    assert not Path("s.sqlite").exists()
    print(run)
    return run


def unlisted(spec: dict[str, Any]) -> dict[str, Any]:
    prices("openai:m", "openai:other", lanes={"openai:other": {"batch": RULE}})
    return spec


RULE = {"factor": 0.5, "date": "2026-11-29", "source": "a test"}
WRONG: dict[str, tuple[Edit, tuple[str, ...]]] = {
    "a model without the lane": (
        unlisted,
        ("no lane 'batch' for 'openai:m'", "it lists it for openai:other", "add it to a copy of the table"),
    ),
    "impatience": (lambda spec: changed(spec, execution__patience_s=59), ("execution.patience_s", "60")),
    "a tail below none": (lambda spec: changed(spec, execution__tail=-1), ("execution.tail", "0")),
    "another lane": (lambda spec: changed(spec, execution__lane="slow"), ("execution.lane", "batch")),
    "the lane of a model that is not there": (
        lambda spec: changed(spec, execution__lane={"openai:n": "batch"}),
        ("execution.lane", "'openai:n'", "did you mean openai:m?"),
    ),
    "a part that is not there": (
        lambda spec: _part(spec, "nowhere:Lane"),
        ("execution.lane", "nowhere"),
    ),
    "a part that is no queue": (lambda spec: _part(spec, "json:JSONDecoder"), ("execution.lane", "JSONDecoder")),
    "the Responses API": (
        lambda spec: changed(spec, model__options={**spec["model"]["options"], "use_responses_api": True}),
        ("execution.lane", "Responses API", "choose another lane"),
    ),
    "a model that plays by rules": (
        lambda spec: {**spec, "model": {"name": "scripted"}},
        ("no lane 'batch' for 'scripted'",),
    ),
}


def _part(spec: dict[str, Any], part: str) -> dict[str, Any]:
    prices("openai:m", part=part)
    return spec


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_said_before_anything_is_sent(wrong: str) -> None:
    edit, words = WRONG[wrong]
    with BatchProvider() as provider:
        found = said(edit(study(provider)))
        assert provider.counts()["creates"] == 0
    for each in words:
        assert each in found


def test_a_key_that_is_missing_is_said_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    with BatchProvider() as provider:
        spec = study(provider)
        Path("half.yaml").write_text(yaml.safe_dump(spec), encoding="utf-8")
        monkeypatch.delenv("FAKE_KEY")
        assert "set the environment variable FAKE_KEY" in refused("run", "half.yaml")
        assert provider.counts()["creates"] == 0


# -- objects of LangChain that batches cannot be made for ----------------------------------------------------


def refusal(spec: dict[str, Any], model: Any) -> str:
    """Why a study with an object as model is not carried out."""
    with pytest.raises(SpecError) as raised, under_way(Invocation(load_experiment(spec), "s.sqlite", chat_model=model)):
        pass
    print(raised.value)
    return str(raised.value)


def test_options_of_gemini_that_batches_do_not_pass_on_are_refused() -> None:
    with BatchProvider() as provider:
        spec = study(provider, "gemini")
        found = refusal(spec, ChatGoogleGenerativeAI(safety_settings={"HARM": "BLOCK_NONE"}))
    assert "execution.lane: google_genai:m: batches do not pass on the option safety_settings" in found


def test_a_class_that_lacks_what_batches_need_is_refused() -> None:
    class Bare(ChatGoogleGenerativeAI):
        """A version whose package keeps everything to itself."""

    with BatchProvider() as provider:
        # The name says OpenAI, and the object is another.
        found = refusal(study(provider), Bare())
    assert "execution.lane: LangChain's class Bare has no root_async_client, which batches need" in found
    assert "choose another lane for this model, or install another version" in found


def test_a_model_of_ones_own_may_have_no_queue() -> None:
    with BatchProvider() as provider:
        spec = study(provider, prices=prices("somebody:m"))
        spec = {**spec, "model": {"name": "somebody:m", "temperature": None}}
        with pytest.raises(SpecError) as raised:
            osim.run(load_experiment(spec), "s.sqlite", chat_model=ChatGoogleGenerativeAI())
    print(raised.value)
    assert "execution.lane" in str(raised.value)
    assert "somebody" in str(raised.value)
