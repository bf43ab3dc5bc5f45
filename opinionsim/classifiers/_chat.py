"""A classifier that asks a chat model for a closed answer about each text."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.language_models import BaseChatModel

from opinionsim import llm
from opinionsim.classifiers._base import Item, check_items
from opinionsim.classifiers._chat_prompt import WORDING, chat_prompt
from opinionsim.classifiers._closed import read_closed
from opinionsim.errors import Rejected, SpecError, whole_number
from opinionsim.foundation import background
from opinionsim.messages import Ask, ChatMessage, Parse, Parsing, Reply, take_as_is
from opinionsim.opinions import OpinionEstimates, OpinionScale
from opinionsim.registry import part

#: Items rated at a time where no run sets a limit.
_CONCURRENCY = 16


@part("classifier", name="chat")
class ChatClassifier:
    """A chat model that answers with one point of the scale for each text.

    Parameters
    ----------
    scale : OpinionScale, optional
        The scale to code on; default -2 to 2.
    model : str or BaseChatModel
        Any name that :func:`opinionsim.load_chat_model` accepts except ``scripted``, or a LangChain chat model, to
        which the next three arguments do not apply. It can differ from the model that plays the agents.
    temperature : float or None
        In [0, 2], default 0; None for models that accept no temperature.
    max_tokens : int
        Maximum length of an answer in tokens, >= 1; default 16. Models that reason need more.
    options : mapping, optional
        Further arguments of the model, such as ``base_url``.
    reask : int
        How many times to ask again, with the reason, if the answer names no point, >= 0, default 2. After that, the
        value is missing.
    question : str
        Question about each text. The labels of the scale should be answers to it. Default: the opinion of the claim
        that the author expresses; only this question needs a claim.

    Raises
    ------
    SpecError
        If the model cannot be loaded, a number is out of range, or the question is blank.

    Notes
    -----
    An answer gives all probability to one point. It is a choice, not a measure of certainty. The value is missing after
    "N", or if no answer names a point. Delimiters that no text can close enclose the text, claim, second text and
    context. An assigned opinion appears as its label on the scale, or as a number if it is not a point of the scale or
    the question is not the default. Equal items get separate calls, because the model may answer differently.
    """

    name = "chat"
    reads_context = True
    reads_about = True

    def __init__(
        self,
        scale: OpinionScale | None = None,
        model: str | BaseChatModel = "",
        temperature: float | None = 0.0,
        max_tokens: int = 16,
        options: Mapping[str, Any] | None = None,
        reask: int = 2,
        question: str = "",
    ) -> None:
        if isinstance(reask, bool) or not isinstance(reask, int) or not 0 <= reask <= 100:
            raise SpecError(f"reask must be a whole number from 0 to 100; got {reask!r}")
        whole_number("max_tokens", max_tokens, 1)
        if not isinstance(question, str) or (question and not question.strip()):
            raise SpecError(f"question must be text; got {question!r}")
        given = dict(options or {})
        loaded = _loaded(model, temperature, max_tokens, given) if isinstance(model, str) else model
        client = llm.ModelClient(loaded, model if isinstance(model, str) else "")
        self.scale = scale or OpinionScale()
        self.endpoint = llm.Endpoint(client, account=client.account, networked=client.networked, max_tokens=max_tokens)
        self.needs_claim = not question
        self._question = question.strip()
        self._reask = reask
        named = isinstance(model, str)
        self._settings = {"temperature": temperature, "max_tokens": max_tokens, "options": given} if named else {}
        self._model = client.name

    @property
    def options(self) -> dict[str, Any]:
        """The model, its settings, and everything else that can change an answer."""
        asked = {"question": self._question} if self._question else {}
        return {"model": self._model, **self._settings, "reask": self._reask, "wording": WORDING, **asked}

    async def rate(self, ask: Ask, item: Item) -> OpinionEstimates:
        """Code one item, asking again if an answer names no point.

        Raises
        ------
        SpecError
            If there is no claim and the question needs one.
        """
        check_items([item], self)
        return OpinionEstimates.from_points(self.scale, [await self._point(ask, item)])

    def classify(self, items: Sequence[Item]) -> OpinionEstimates:
        """Code items outside any run, without a record of the calls.

        Raises
        ------
        SpecError
            If an entry is not an Item, or lacks a claim that the question needs.
        ModelCallError
            If the model does not answer.
        """
        check_items(items, self)
        return OpinionEstimates.from_points(self.scale, background.run(self._points(items)))

    async def _points(self, items: Sequence[Item]) -> list[int | None]:
        """The point of each item, with a limited number of calls at a time."""
        calls = llm.RunCalls("classify", llm.MemoryJournal(), [self.endpoint], llm.SlotPool(_CONCURRENCY))

        async def one(turn: int) -> int | None:
            def ask(
                call: str, messages: Iterable[ChatMessage], *, parse: Parse | None = None, dropped: int = 0, **_: Any
            ) -> Awaitable[Reply]:
                return calls.ask(_Site(turn), call, messages, reading=Parsing(parse), dropped=dropped)

            return await self._point(ask, items[turn])

        found: list[int | None] = []
        for start in range(0, len(items), _CONCURRENCY):
            numbers = range(start, min(start + _CONCURRENCY, len(items)))
            found += await asyncio.gather(*map(one, numbers))
        return found

    async def _point(self, ask: Ask, item: Item) -> int | None:
        reason = ""
        for attempt in range(1 + self._reask):
            call = str(llm.CallName("judge", attempt + 1))
            prompt = chat_prompt(item, self.scale, self._question, reason)
            reply = await ask(call, (prompt,), parse=take_as_is)
            reason = f"the reply was {reply.status}"
            if reply.status == "answered":
                try:
                    return read_closed(self.scale, call, reply.text, ())
                except Rejected as rejected:
                    reason = str(rejected)
        return None


def _loaded(name: str, temperature: float | None, max_tokens: int, options: dict[str, Any]) -> BaseChatModel:
    if not name:
        raise SpecError("classifier 'chat' needs a model among its options, such as model: openai:gpt-4o-mini")
    model = llm.load_chat_model(name, temperature=temperature, max_tokens=max_tokens, **options)
    if isinstance(model, llm.ScriptedChatModel):
        raise SpecError("classifier 'chat' needs a language model, because the scripted model cannot judge texts")
    return model


@dataclass(frozen=True)
class _Site:
    """The site of a call outside any run."""

    index: int
    step: int = 0
    agent: int = 0
    act: str = "judge"
