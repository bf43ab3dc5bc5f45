"""A classifier that asks a chat model whose answers a test decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr

from opinionsim.classifiers import ChatClassifier, Item, load_classifier
from opinionsim.opinions import OpinionScale
from opinionsim.registry import part
from opinionsim.topics import Claim

CLAIM = Claim("the Earth is flat", "flat-earth", "falsehood")
_LEXICON = load_classifier("lexicon")


def by_lexicon(text: str) -> str:
    """A sensible answer on the default scale."""
    value = float(_LEXICON.classify([Item(text, CLAIM)]).value[0])
    return "N" if value != value else f"{value:.0f}"


@dataclass
class Bench:
    """What judges say, and what they were asked.

    ``answer`` gives the reply to a text; ``fails`` says whether the n-th question (from 1) fails.
    """

    answer: Callable[[str], str] = by_lexicon
    fails: Callable[[int], bool] = lambda number: False
    finish: str = "stop"
    prompts: list[str] = field(default_factory=list)
    seeds: list[int | None] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        """The texts asked about."""
        return [quoted(prompt) for prompt in self.prompts]


def quoted(prompt: str) -> str:
    """The text a question is about."""
    return prompt.split("<<<text\n")[1].split("\ntext>>>")[0]


class JudgeModel(BaseChatModel):
    """Answers as its bench says."""

    _bench: Bench = PrivateAttr()

    @property
    def _llm_type(self) -> str:
        return "judge"

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        raise AssertionError("only asked asynchronously")

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        bench = self._bench
        (message,) = messages
        bench.prompts.append(str(message.content))
        bench.seeds.append(kwargs.get("seed"))
        if bench.fails(len(bench.prompts)):
            raise PermissionError("the judge is gone")
        reply = AIMessage(
            bench.answer(quoted(str(message.content))),
            response_metadata={"finish_reason": bench.finish, "model_name": "judge-1"},
            usage_metadata={"input_tokens": 100, "output_tokens": 1, "total_tokens": 101},
        )
        return ChatResult(generations=[ChatGeneration(message=reply)])


def judge_model(bench: Bench) -> JudgeModel:
    """A judge that sits on a bench."""
    model = JudgeModel()
    model._bench = bench
    return model


@part("classifier", version=1)
class BenchClassifier(ChatClassifier):
    """The chat classifier, with the model of the present bench in place of one by name."""

    name = "bench"
    bench = Bench()

    def __init__(self, scale: OpinionScale | None = None, court: int = 0, reask: int = 2) -> None:
        super().__init__(scale, judge_model(BenchClassifier.bench), reask=reask)
        self.court = court

    @property
    def options(self) -> dict[str, Any]:
        return {**super().options, "court": self.court}
