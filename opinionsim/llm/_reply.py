"""Splits a model's message into text, reasoning, usage and the provider's status."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from opinionsim.foundation.redaction import redacted
from opinionsim.messages import ReplyStatus

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage

#: Reasoning that open models write in front of their answer. Some templates put the opening tag into the prompt, so
#: that only the closing one arrives; a reply cut short has only the opening one.
_TAGGED = re.compile(r"\s*<(think|thinking|reasoning)>(.*?)(?:</\1>|\Z)", re.DOTALL)
_CLOSED_ONLY = re.compile(r"\A(.*?)</(?:think|thinking|reasoning)>", re.DOTALL)

#: Finish reasons of replies cut at the limit of their length, of those withheld by a filter, and by the model itself.
_CUT_SHORT = frozenset(("length", "max_tokens", "max_output_tokens", "model_length"))
_WITHHELD = frozenset(("content_filter", "content_filtered", "safety", "prohibited_content", "blocklist", "spii"))
_DECLINED = "refusal"

#: No model takes in or makes as many tokens in one call.
_MOST_TOKENS = 100_000_000

#: What a provider says of a reply, without credentials; the same words come with every reply.
_kept = lru_cache(maxsize=256)(redacted)


class ParsedReply(NamedTuple):
    """A model's reply, split into its parts.

    Attributes
    ----------
    text : str
        The answer without reasoning.
    reasoning : str
        The model's reasoning before the answer.
    status : str
        The status by its provider: ``answered``, ``refused``, ``filtered``, ``empty`` or ``truncated``.
    finish_reason, model, fingerprint : str
        As the provider returned them, without credentials; empty if it returned none. The fingerprint identifies its
        configuration.
    input_tokens, output_tokens, cached_tokens, reasoning_tokens : int or None
        As the provider counted them; None if it returned no number or an impossible one.
    lane : str
        How the reply was bought: ``flex`` if the provider says that its flexible tier answered, and otherwise ``now``.
    """

    text: str
    reasoning: str = ""
    status: ReplyStatus = "answered"
    finish_reason: str = ""
    model: str = ""
    fingerprint: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    lane: str = ""


def read_reply(message: AIMessage) -> ParsedReply:
    """Split a model's message into its parts.

    Parameters
    ----------
    message : AIMessage
        As LangChain returned it.

    Notes
    -----
    A reply is *refused* if the provider reports a refusal of the model, *filtered* if it reports that a filter withheld
    the reply, *truncated* if the reply ended at its maximum length, and *empty* if no text is left.
    :func:`opinionsim.conduct.look` examines the words of the reply.
    """
    text, reasoning = _split(message)
    about = message.response_metadata
    finish = _finish_reason(about)
    refusal = _refusal(message)
    return ParsedReply(
        text=text or refusal,
        reasoning=reasoning,
        status=_status(text, finish, bool(refusal)),
        finish_reason=finish,
        model=_kept(str(about.get("model_name") or about.get("model") or "")),
        fingerprint=_kept(str(about.get("system_fingerprint") or "")),
        lane="flex" if about.get("service_tier") == "flex" else "now",
        **_counted(message.usage_metadata or {}),
    )


def _counted(usage: Mapping[str, Any]) -> dict[str, int | None]:
    """Tokens as the provider counted them; None for what it does not say, or what cannot be."""
    given, said = _count(usage.get("input_tokens")), _count(usage.get("output_tokens"))
    cached = _detail(usage.get("input_token_details"), "cache_read")
    thought = _detail(usage.get("output_token_details"), "reasoning")
    return {
        "input_tokens": given,
        "output_tokens": said,
        "cached_tokens": None if given is None or (cached or 0) > given else cached,
        "reasoning_tokens": None if said is None or (thought or 0) > said else thought,
    }


def _detail(details: Mapping[str, Any] | None, name: str) -> int | None:
    """A part of the tokens; LangChain puts the tier of OpenAI's before its name, as in ``flex_cache_read``."""
    found = [value for key, value in (details or {}).items() if key.endswith(name) and value is not None]
    return _count(found[0]) if found else None


def _count(tokens: object) -> int | None:
    """A number of tokens; None where it is no whole number, negative, or beyond any model."""
    return tokens if type(tokens) is int and 0 <= tokens <= _MOST_TOKENS else None


def _status(text: str, finish: str, refusal: bool) -> ReplyStatus:
    """What a provider says of a reply."""
    if refusal or finish.lower() == _DECLINED:
        return "refused"
    if finish.lower() in _WITHHELD:
        return "filtered"
    if finish.lower() in _CUT_SHORT:
        return "truncated"
    return "answered" if text.strip() else "empty"


def _split(message: AIMessage) -> tuple[str, str]:
    """Answer and reasoning of a message."""
    thoughts = []
    spoken = message.additional_kwargs.get("reasoning_content")
    if isinstance(spoken, str):
        thoughts.append(spoken)
    elif not isinstance(message.content, str):
        thoughts += [
            str(block.get("reasoning") or "") for block in message.content_blocks if block["type"] == "reasoning"
        ]
    text = str(message.text)
    if "</" in text or "<" in text[:40]:
        text, tagged = _untagged(text)
        thoughts += tagged
    return text, "\n\n".join(thought.strip() for thought in thoughts if thought.strip())


def _untagged(text: str) -> tuple[str, list[str]]:
    """A text without the tagged reasoning in front of it, and that reasoning."""
    thoughts = []
    rest = text
    while found := _TAGGED.match(rest):
        thoughts.append(found[2])
        rest = rest[found.end() :]
    if not thoughts and (closed := _CLOSED_ONLY.match(rest)) and "<think" not in closed[1]:
        thoughts.append(closed[1])
        rest = rest[closed.end() :]
    return (rest.lstrip(), thoughts) if thoughts else (text, [])


def _finish_reason(about: dict[str, Any]) -> str:
    reasons = [about.get(name) for name in ("finish_reason", "stop_reason", "done_reason")]
    # OpenAI's Responses API names a reason only for what is incomplete.
    incomplete = about.get("incomplete_details")
    reasons.append(incomplete.get("reason") if isinstance(incomplete, dict) else None)
    return _kept(str(next(filter(None, reasons), "")))


def _refusal(message: AIMessage) -> str:
    """The words in which the provider's refusal field declines; empty when it does not."""
    stated = message.additional_kwargs.get("refusal")
    if isinstance(stated, str) and stated:
        return stated
    if isinstance(message.content, str):
        return ""
    said = [str(block.get("refusal") or "") for block in message.content if isinstance(block, dict)]
    return "\n".join(filter(None, said))
