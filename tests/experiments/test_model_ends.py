"""Chat models that raise what would end a process, and canary questions of experiments that are done."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult

import opinionsim as osim
from opinionsim.experiments import load_experiment
from opinionsim.llm import canary_prompts
from opinionsim.testing import StubProvider, scripted_reply
from tests._editing import rewrite
from tests._provider_runs import SPEC
from tests._running import SMALL, changed

ENDS = (SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError())


class Ending(BaseChatModel):
    """A blocking model that ends its process, or tries to."""

    error: Any

    @property
    def _llm_type(self) -> str:
        return "ending"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        raise self.error


class EndingInTheLoop(Ending):
    """The same, on the event loop."""

    async def _agenerate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        raise self.error


class EndingInATask(EndingInTheLoop):
    """The same, called by LangChain's way, in a task of its own."""

    async def agenerate(self, *arguments: Any, **options: Any) -> Any:
        return await super().agenerate(*arguments, **options)


@pytest.mark.parametrize("error", ENDS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("kind", [Ending, EndingInTheLoop, EndingInATask])
def test_a_model_ends_its_run_and_no_more(kind: type[Ending], error: BaseException, tmp_path: Path) -> None:
    spec = changed(SMALL, model={"name": "mine:own"}, measurement={"classifier": "lexicon"}, replicates=2)
    results = osim.run(load_experiment(spec), tmp_path / "ends.sqlite", chat_model=kind(error=error, cache=False))
    assert list(results.runs["status"]) == ["incomplete"] * 2
    assert all(type(error).__name__ in each for each in results.runs["error"])
    # The loop goes on for others.
    assert osim.run(load_experiment(SMALL), tmp_path / "after.sqlite").runs["status"].tolist() == ["complete"]


def test_no_canary_question_is_bought_where_no_call_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    questions = {prompt[-1].content for prompt in canary_prompts()}
    store = tmp_path / "done.sqlite"
    with StubProvider(scripted_reply(temperature=0.7)) as stub:
        monkeypatch.setenv("OPENAI_API_KEY", "of-no-use-here")
        monkeypatch.setenv("OPENAI_BASE_URL", stub.base_url)
        experiment = load_experiment(changed(SPEC, execution__canary=True))

        def asked() -> int:
            osim.run(experiment, store)
            log, stub.log = stub.log, []
            return sum(each.request.messages[-1].content in questions for each in log)

        assert asked() == 8
        assert asked() == 0
        # As after a process that died between a run's last call and its end.
        rewrite(store, "update runs set status = 'incomplete'")
        assert asked() == 0
        assert osim.load(str(store), SPEC["name"]).runs["status"].tolist() == ["complete"]
