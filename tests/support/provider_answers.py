"""Answers of a stub provider: errors and replies in the form of OpenAI's dialect."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

from aiohttp import web

from opinionsim.foundation.streams import digest
from tests.support.provider_faults import StubRequest

_PAGE = b"<html><body><h1>Bad Gateway</h1></body></html>"
#: What a reply that was refused says.
REFUSAL = "I would rather not write about this."
_REASONING = "They ask for a few words. I shall keep it short and say what I hold."


def error_of(kind: str | None, model: str, retry_after_s: float | None) -> web.Response | None:
    """The answer of a kind of fault that sends an error, or a body that is no reply; None for other kinds."""
    match kind:
        case "rate-limited":
            return rate_limited(retry_after_s)
        case "quota":
            return error(429, "The quota is used up.", "insufficient_quota", type_="insufficient_quota")
        case "http-500":
            return error(500, "The server failed.", None, type_="server_error")
        case "http-502":
            return web.Response(status=502, body=_PAGE, content_type="text/html")
        case "http-503":
            return error(503, "Overloaded.", None, type_="server_error", headers=_retry_after(retry_after_s))
        case "unauthorized":
            return error(401, "Incorrect API key provided.", "invalid_api_key")
        case "unknown-model":
            return error(404, f"There is no model {model!r}.", "model_not_found", param="model")
        case "roles":
            return error(500, "Conversation roles must alternate user/assistant/user/assistant/...", None)
        case "too-long":
            return error(400, "The prompt exceeds the context of the model.", "context_length_exceeded")
        case "blocked":
            return error(400, "The content filter stopped the prompt.", "content_filter", param="prompt")
        case "html":
            return web.Response(body=_PAGE, content_type="text/html")
        case "no-choices":
            return web.json_response({"id": "", "object": "list", "data": []})
        case "empty-choices":
            return web.json_response(_completion(model, []))
        case "no-message":
            return web.json_response(_completion(model, [{"index": 0, "finish_reason": "stop"}]))
        case "list":
            return web.json_response([_completion(model, [])])
    return None


def _completion(model: str, choices: list[dict[str, object]]) -> dict[str, object]:
    """A reply that charges for its prompt and holds these choices."""
    usage = {"prompt_tokens": 1, "completion_tokens": 0, "total_tokens": 1}
    return {
        "id": "chatcmpl-0",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": choices,
        "usage": usage,
    }


def reply_of(
    kind: str | None,
    request: StubRequest,
    reply: str,
    model: str,
    cached: float,
    tokens: Mapping[str, float] = MappingProxyType({}),
) -> web.Response:
    """A reply of a model, true or with a fault of content.

    `cached` is the share of the prompt reported as cached, and `tokens` are the likeliest first tokens.
    """
    content: str | None = reply
    finish, others = "stop", {}
    match kind:
        case "empty":
            content = ""
        case "truncated":
            content, finish = reply[: len(reply) // 2], "length"
        case "refused":
            content, others = None, {"refusal": REFUSAL}
        case "declined":
            content = REFUSAL
        case "filtered":
            content, finish = "", "content_filter"
        case "endless-thought":
            content, finish = f"<think>\n{_REASONING}", "length"
        case "reasoning-tags":
            content = f"<think>\n{_REASONING}\n</think>\n\n{reply}"
        case "reasoning-field":
            others = {"reasoning_content": _REASONING}
    given = sum(_tokens(message.content) for message in request.messages)
    thought = _tokens(others.get("reasoning_content", ""))
    said = _tokens(content or others.get("refusal", "")) + thought
    body = {
        "id": f"chatcmpl-{request.identity}",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "system_fingerprint": f"fp_{digest(model)[:10]}",
        "service_tier": request.options.get("service_tier", "default"),
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": content, "refusal": None, **others},
                "finish_reason": finish,
                "logprobs": {"content": [_first(tokens)]} if tokens else None,
            }
        ],
        "usage": {
            "prompt_tokens": given,
            "completion_tokens": said,
            "total_tokens": given + said,
            "prompt_tokens_details": {"cached_tokens": math.floor(given * cached)},
            "completion_tokens_details": {"reasoning_tokens": thought},
        },
    }
    answer = web.json_response(body)
    if kind == "malformed":
        answer.body = body_of(answer)[: len(body_of(answer)) // 2]
    return answer


def _first(tokens: Mapping[str, float]) -> dict[str, object]:
    """The likeliest first tokens in the form of the dialect."""
    listed = [{"token": token, "logprob": log, "bytes": None} for token, log in tokens.items()]
    return {**max(listed, key=lambda each: float(str(each["logprob"]))), "top_logprobs": listed}


def _tokens(text: str) -> int:
    """Estimate of the number of tokens: four for three words."""
    return math.ceil(len(text.split()) * 4 / 3)


def body_of(answer: web.Response) -> bytes:
    assert isinstance(answer.body, bytes)
    return answer.body


def error(
    status: int,
    message: str,
    code: str | None,
    *,
    type_: str = "invalid_request_error",
    param: str | None = None,
    headers: dict[str, str] | None = None,
) -> web.Response:
    """An error in the form of the dialect."""
    error = {"message": message, "type": type_, "param": param, "code": code}
    return web.json_response({"error": error}, status=status, headers=headers)


def rate_limited(retry_after_s: float | None) -> web.Response:
    headers = _retry_after(retry_after_s)
    return error(429, "Too many requests.", "rate_limit_exceeded", type_="requests", headers=headers)


def _retry_after(seconds: float | None) -> dict[str, str]:
    """Headers that say when to come again: whole seconds, as the standard has it, and exact ones."""
    if seconds is None:
        return {}
    return {"Retry-After": str(math.ceil(seconds)), "Retry-After-Ms": f"{seconds * 1000:.3f}"}
