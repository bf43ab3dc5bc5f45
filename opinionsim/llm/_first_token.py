"""Calls that ask a model for the probabilities of the first token of its reply."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from langchain_core.messages import AIMessage

from opinionsim.llm._reply import read_reply
from opinionsim.messages import ChatMessage

if TYPE_CHECKING:
    from opinionsim.llm._models import ModelClient

#: How many of the likeliest tokens are asked for: as many as OpenAI's own service gives.
TOP = 20
#: A log probability that stands for none.
_NEVER = -1000.0
#: Models, by name, of which it is known that they return no log probabilities, or reason before they answer.
_WITHOUT, _REASONING = re.compile(r"(anthropic|groq):"), re.compile(r"openai:(o\d|gpt-5(?!.*chat))")
#: Options by which models reason.
_REASONS = ("reasoning_effort", "reasoning", "thinking", "enable_thinking")
_NO_ANSWER = "reasons before it answers, so the first token of its reply is not an answer"


class NoLogProbabilities(Exception):
    """A reply has no log probabilities of an answer, so the model's other replies will have none."""


class TokenClient:
    """Makes calls that return the most likely first tokens as JSON text, for :func:`first_token_shares`.

    The journal needs only this text. It contains ``temperature``, that of the model in its run, and ``top``, tokens
    with their log probabilities at temperature 1, to six decimals.

    Parameters
    ----------
    client : ModelClient
        The client of the model.
    """

    def __init__(self, client: ModelClient) -> None:
        self.behind = client

    async def call(
        self, messages: Iterable[ChatMessage], seed: int, max_tokens: int | None = None, **options: Any
    ) -> AIMessage:
        """Ask for one token; raises whatever the model raises.

        Raises
        ------
        NoLogProbabilities
            If the reply has no log probabilities, or the model reasoned before its answer.
        """
        # Some servers apply the temperature before they take logarithms.
        message = await self.behind.call(messages, seed, 1, logprobs=True, top_logprobs=TOP, temperature=1.0, **options)
        about, reply, model = message.response_metadata, read_reply(message), self.behind.model
        if reply.status in ("refused", "filtered"):
            return message
        try:
            listed = about["logprobs"]["content"][0]["top_logprobs"][:TOP]
            told = [(str(each["token"]), float(each["logprob"])) for each in listed]
            # OpenAI's servers say -9999 of tokens that are not among the likeliest.
            top = [(token, round(log, 6)) for token, log in told if log > _NEVER]
        except (LookupError, TypeError, ValueError):
            top = []
        thought = reply.reasoning or reply.reasoning_tokens or any(word.strip()[:6] == "<think" for word, _ in top[:1])
        if thought or not top:
            why = _NO_ANSWER if thought else "returned no log probabilities, which the instrument 'belief' reads"
            remedy = "use another instrument, or a model whose server returns them (docs/belief.md)"
            raise NoLogProbabilities(f"{self.behind.name} {why}; {remedy}")
        temperature = getattr(model, "settings", {}).get("temperature", getattr(model, "temperature", None))
        text = json.dumps({"temperature": temperature, "top": top}, separators=(",", ":"))
        return message.model_copy(update={"content": text, "response_metadata": {**about, "finish_reason": "stop"}})


def first_token_shares(text: str, labels: Sequence[str], *, plain: bool = False) -> np.ndarray:
    """Probability of the tokens that begin each label, regardless of surrounding blanks, shape (k,).

    A sign does not count as the beginning of a number, because the digits are another token.

    Parameters
    ----------
    text : str
        As :class:`TokenClient` replies.
    labels : sequence of str
        k labels.
    plain : bool
        Whether to return probabilities at temperature 1, which leave a remainder for tokens that are not listed.
        Otherwise they are at the model's temperature (default 1), and those of the listed tokens sum to 1.
    """
    said = json.loads(text)
    logs = np.array([log for _, log in said["top"]])
    share = np.exp(logs)
    if not plain:
        at = 1.0 if said["temperature"] is None else max(said["temperature"], 1e-9)
        share = np.exp((logs - logs.max()) / at)
        share /= share.sum()
    tokens = [token.strip() for token, _ in said["top"]]
    begins = [[bool(t) and label.startswith(t) and (t != "-" or t == label) for t in tokens] for label in labels]
    return np.asarray(np.array(begins, dtype=float) @ share)


def without_log_probabilities(name: str, options: Mapping[str, Any]) -> str:
    """Why a model with this name and options gives no probabilities of its answers; empty if unknown."""
    if name == "scripted":
        return "the scripted model has none"
    if _WITHOUT.match(name):
        return f"{name!r} returns none"
    reasons = any(options.get(each) not in (None, False, "none") for each in _REASONS)
    return f"{name!r} {_NO_ANSWER}" if reasons or _REASONING.match(name) else ""
