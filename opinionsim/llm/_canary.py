"""A few fixed questions that show whether a provider changed a model while a sweep was under way."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage

from opinionsim.llm._caller import RetryPolicy
from opinionsim.llm._failures import classify_failure, wait_s
from opinionsim.llm._models import ModelClient
from opinionsim.llm._providers import LENGTHS
from opinionsim.llm._reply import read_reply
from opinionsim.messages import ChatMessage

#: Replies are compared by position over years: a new wording needs a new position.
_QUESTIONS = (
    "Name the four seasons of the year in their order, beginning with spring. Answer with the four words only.",
    "Describe a wooden chair in one sentence of about twenty words.",
    "Give the next three numbers of this sequence: 3, 6, 12, 24. Answer with the numbers only.",
    "What weighs more, a kilogram of iron or a kilogram of cotton? Answer in one short sentence.",
)
_SEED = 20240718
#: Longest reply, tokens.
_LONGEST = 48


class CanaryReply(NamedTuple):
    """Reply of a model to one of the fixed questions."""

    position: int
    """Index of the question, from 0."""
    text: str
    """The reply."""
    model: str
    """The model that answered, as the provider names it; '' where it does not."""
    fingerprint: str
    """What the provider says of its configuration (``system_fingerprint``); '' where it says nothing."""
    input_tokens: int | None
    """Tokens of the question; None where not told."""
    output_tokens: int | None
    """Tokens of the reply; None where not told."""


def canary_prompts() -> list[tuple[ChatMessage, ...]]:
    """The fixed questions, each a prompt of its own."""
    return [(ChatMessage("user", question),) for question in _QUESTIONS]


async def ask_canary(
    client: ModelClient, arrived: list[CanaryReply] | None = None, *, retry: RetryPolicy | None = None
) -> tuple[CanaryReply, ...]:
    """Ask the fixed questions, all at once; when one fails for good or the caller is cancelled, all are given up.

    Parameters
    ----------
    client : ModelClient
        Client of the model. A model with a temperature is asked at temperature 0 for short replies, any other, or one
        that thinks, as it is.
    arrived : list of CanaryReply, optional
        Receives replies as they arrive: they are paid for even if others fail.
    retry : RetryPolicy, optional
        How often attempts that failed are repeated, as those of other calls are.

    Returns
    -------
    tuple of CanaryReply
        By position.

    Raises
    ------
    Exception
        As the model raised it at the last attempt.
    """
    steady = ModelClient(_steady(client.model), client.name)
    replies = [] if arrived is None else arrived
    policy = retry or RetryPolicy()

    async def ask(position: int, prompt: tuple[ChatMessage, ...]) -> None:
        replies.append(_read(position, await _patiently(steady, position, prompt, policy)))

    try:
        async with asyncio.TaskGroup() as group:
            for position, prompt in enumerate(canary_prompts()):
                group.create_task(ask(position, prompt))
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return tuple(sorted(replies))


async def _patiently(
    client: ModelClient, position: int, prompt: tuple[ChatMessage, ...], retry: RetryPolicy
) -> AIMessage:
    """The reply to one question, after as many attempts as other calls have."""
    allowed = {"transient": retry.transient, "rate-limited": retry.rate_limited}
    failed: Counter[str] = Counter()
    while True:
        try:
            return await client.call(prompt, _SEED)
        except Exception as error:
            failure = classify_failure(error, networked=client.networked)
            if failed[failure.kind] >= allowed.get(failure.kind, 0):
                raise
            failed[failure.kind] += 1
            tries = failed.total()
            rng = np.random.default_rng((_SEED, position, tries))
            first_s, longest_s = retry.first_wait_s, retry.longest_wait_s
            await asyncio.sleep(wait_s(tries, failure, first_s=first_s, longest_s=longest_s, rng=rng))


def _read(position: int, message: AIMessage) -> CanaryReply:
    reply = read_reply(message)
    fingerprint = str(message.response_metadata.get("system_fingerprint") or "")
    return CanaryReply(position, reply.text, reply.model, fingerprint, reply.input_tokens, reply.output_tokens)


def _steady(model: BaseChatModel) -> BaseChatModel:
    """The model at temperature 0 and with short replies.

    A model without a temperature usually reasons: a short limit would leave it no room for an answer.
    """
    temperature, thinking = getattr(model, "temperature", None), getattr(model, "thinking", None)
    if temperature is None or thinking:
        return model
    update: dict[str, Any] = {"temperature": 0.0}
    for name in LENGTHS:
        if name in type(model).model_fields:
            update[name] = min(getattr(model, name) or _LONGEST, _LONGEST)
    body = getattr(model, "extra_body", None) or {}
    if "max_tokens" in body:
        update["extra_body"] = {**body, "max_tokens": min(body["max_tokens"], _LONGEST)}
    return model.model_copy(update=update)


def compare_canaries(before: tuple[CanaryReply, ...], after: tuple[CanaryReply, ...]) -> str:
    """Tell what changed between two rounds of the fixed questions.

    Parameters
    ----------
    before, after : tuple of CanaryReply
        Replies of the same model. Positions that only one of them has are left out.

    Returns
    -------
    str
        '' if nothing changed, else one sentence.
    """
    last = {reply.position: reply for reply in after}
    pairs = [(reply, last[reply.position]) for reply in before if reply.position in last]
    changes = []
    for what, name in (("model", "the model returned"), ("fingerprint", "the provider's fingerprint")):
        first, then = (_names({getattr(pair[side], what) for pair in pairs}) for side in (0, 1))
        if first != then:
            changes.append(f"{name} was {first} and became {then}")
    differing = sum(first.text != then.text for first, then in pairs)
    if differing:
        changes.append(
            f"{differing} of {len(pairs)} replies to the fixed questions differ "
            "(providers are not deterministic, so that this alone proves no change)"
        )
    return "; ".join(changes)


def _names(found: set[str]) -> str:
    return ", ".join(repr(name) for name in sorted(found - {""})) or "not told"
