"""A model's message taken apart into text, reasoning, usage, and whether it is an answer at all."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage

from opinionsim.messages import Condition

#: Reasoning that open models write in front of their answer. Some templates put the opening tag into the prompt, so
#: that only the closing one arrives; a reply cut short has only the opening one.
_TAGGED = re.compile(r"\s*<(think|thinking|reasoning)>(.*?)(?:</\1>|\Z)", re.DOTALL)
_CLOSED_ONLY = re.compile(r"\A(.*?)</(?:think|thinking|reasoning)>", re.DOTALL)

#: Finish reasons of replies cut at the limit of their length, and of replies withheld by a filter or the model itself.
_CUT_SHORT = frozenset(("length", "max_tokens", "max_output_tokens", "model_length"))
_WITHHELD = frozenset(
    ("content_filter", "content_filtered", "refusal", "safety", "prohibited_content", "blocklist", "spii")
)

#: First sentences in which a model steps out of its task. Narrow on purpose: a refusal that is missed is coded as what
#: it says, but a person who "will not help spread this" has an opinion, and to lose it would bias what is measured.
_STEPS_OUT = re.compile(
    r"""
    \W*(?:(?:i['\u2019]m|i\s+am)\s+(?:(?:very|really|so)\s+)?sorry\b[^.!?]{0,40}?
      |i\s+apologi[sz]e\b[^.!?]{0,40}?
      |sorry\b[^.!?]{0,20}[.!?,]\s+
      |unfortunately,?\s+)?
    (?:
      # I cannot assist with that, comply with this request, generate such content, role-play ...
      \bi\s*(?:can['\u2019]?t|cannot|can\s+not|(?:['\u2019]m|\s+am)\s+(?:not\s+able|unable)\s+to)\s+
      (?:(?:assist|help)(?:\s+you)?(?:\s+with\s+(?:this|that|your|such)\b|\s*[.!?]|\s*\Z)
        |(?:comply\s+with|fulfil+)\s+(?:this|that|your|the)\s+request
        |comply\s*(?:[.!?]|\Z)
        |(?:engage|participate)\s+in\s+(?:this|that|such)\s+(?:an?\s+)?(?:request|role-?play|scenario|conversation)
        |role-?play\b
        |(?:generate|create|produce|provide|write)\s+(?:(?:this|that|such)\s+)?content\b
        |(?:generate|create|produce|provide|write)\s+(?:an?|this|that|such\s+a)\s+(?:social\s+media\s+)?post\b
        |continue\s+with\s+th(?:is|at)\s+(?:request|conversation|role-?play))
      # As an AI language model, ...
      | \bas\s+an\s+(?:ai|artificial\s+intelligence)(?:\s+(?:language\s+)?(?:model|assistant)\b|\s*,)
      # I am just an AI ...
      | \bi(?:['\u2019]m|\s+am)\s+(?:just\s+|only\s+)?an\s+ai
        (?:\s+(?:language\s+)?(?:model|assistant)\b|\s*[.,;]|\s+and\b)
    )
    """,
    re.IGNORECASE | re.VERBOSE,
)


class ParsedReply(NamedTuple):
    """A reply taken apart.

    Attributes
    ----------
    text : str
        The answer, reasoning split off.
    reasoning : str
        The model's reasoning before the answer.
    condition : str
        ``answered``, ``refused``, ``empty`` or ``truncated``.
    finish_reason, model : str
        As the provider returned them; empty when it did not.
    input_tokens, output_tokens, cached_tokens, reasoning_tokens : int or None
        As the provider counted them.
    """

    text: str
    reasoning: str = ""
    condition: Condition = "answered"
    finish_reason: str = ""
    model: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


def read_reply(message: AIMessage) -> ParsedReply:
    """Take a model's message apart.

    Parameters
    ----------
    message : AIMessage
        As LangChain returned it.

    Notes
    -----
    A reply is *refused* when the provider says so (a refusal field, a content filter) or when its first sentence steps
    out of the task in one of a few fixed phrases; *truncated* when it ended at the limit of its length; *empty* when
    no text is left. Everything else is an answer, on whichever side of the question, or between them.
    """
    text, reasoning = _split(message)
    about = message.response_metadata
    finish = _finish_reason(about)
    refusal = _refusal(message)
    usage: Any = message.usage_metadata or {}
    return ParsedReply(
        text=text or refusal,
        reasoning=reasoning,
        condition=_condition(text, finish, bool(refusal)),
        finish_reason=finish,
        model=str(about.get("model_name") or about.get("model") or ""),
        input_tokens=usage.get("input_tokens"),
        output_tokens=usage.get("output_tokens"),
        cached_tokens=(usage.get("input_token_details") or {}).get("cache_read"),
        reasoning_tokens=(usage.get("output_token_details") or {}).get("reasoning"),
    )


def _condition(text: str, finish: str, refusal: bool) -> Condition:
    if refusal or finish.lower() in _WITHHELD or _STEPS_OUT.match(text):
        return "refused"
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
    for name in ("finish_reason", "stop_reason", "done_reason"):
        if about.get(name):
            return str(about[name])
    # OpenAI's Responses API names a reason only for what is incomplete.
    incomplete = about.get("incomplete_details")
    return str(incomplete.get("reason") or "") if isinstance(incomplete, dict) else ""


def _refusal(message: AIMessage) -> str:
    """The words in which the provider's refusal field declines; empty when it does not."""
    stated = message.additional_kwargs.get("refusal")
    if isinstance(stated, str) and stated:
        return stated
    if isinstance(message.content, str):
        return ""
    said = [str(block.get("refusal") or "") for block in message.content if isinstance(block, dict)]
    return "\n".join(filter(None, said))
