"""Chat models that raise what would end a process."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult

import opinionsim as osim
from opinionsim.specification import load_experiment
from tests.support.running import SMALL, changed

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
