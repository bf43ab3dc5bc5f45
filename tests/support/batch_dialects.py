"""What the dialects of providers of batches have in common: requests, errors, and the chat API of OpenAI's kind."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar

from aiohttp import web

from opinionsim.messages import ChatMessage
from tests.support.batch_answers import Answer, Asked, text_of
from tests.support.batch_queue import Batch, Item, Outcome, Queue, Refusal

Handler = Callable[["Call"], web.Response]


@dataclass(frozen=True)
class Call:
    """A request to a provider."""

    account: str
    """The key it shows."""
    names: Mapping[str, str]
    """What its path names."""
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""
    form: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, tuple[str, bytes]] = field(default_factory=dict)
    """Name and content of each file in a form."""

    def json(self) -> dict[str, Any]:
        """The body as an object; a Refusal where it is none."""
        try:
            found = json.loads(self.body)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise Refusal(400, "The body is no JSON object.", "invalid_body")
        return found

    def address(self, path: str) -> str:
        """A path of this server as a whole address."""
        return f"http://{self.headers['Host']}{path}"

    def number(self, name: str, default: int, least: int, most: int) -> int:
        """A number in the query."""
        given = self.query.get(name, str(default))
        if not (given.isdigit() and least <= int(given) <= most):
            raise Refusal(400, f"{name} must be between {least} and {most}; got {given}.", "invalid_value")
        return int(given)


@dataclass
class Upload:
    """A file that is being sent in several requests."""

    account: str
    name: str
    purpose: str
    checksum: str | None = None
    content: bytes = b""


class Dialect:
    """One way to speak with a provider: paths, bodies, errors.

    The queue behind it is shared with other dialects; each sees the files and batches that were made through it.
    """

    name: ClassVar[str]
    #: Path below which it lies; clients take it as their base address.
    base: ClassVar[str]
    most_requests: ClassVar[int] = 50_000
    most_bytes: ClassVar[int] = 200_000_000
    window_s: ClassVar[float] = 86_400.0

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        #: Uploads under way: account, name, purpose, checksum and content so far by an id in the address.
        self.uploads: dict[str, Upload] = {}

    def routes(self) -> Sequence[tuple[str, str, Handler]]:
        """Method, path below the base, and handler of everything that it answers."""
        raise NotImplementedError

    def account(self, headers: Mapping[str, str], query: Mapping[str, str]) -> str:
        """The key of a request, '' without one; the address of an upload stands for its key."""
        if query.get("upload_id") in self.uploads:
            return self.uploads[query["upload_id"]].account
        return self.key(headers, query)

    def key(self, headers: Mapping[str, str], query: Mapping[str, str]) -> str:
        """The key in a request, '' without one."""
        scheme, _, key = headers.get("Authorization", "").partition(" ")
        return key if scheme == "Bearer" else ""

    def refused(self, refusal: Refusal) -> web.Response:
        """A refusal in the form of the dialect."""
        error = {"message": refusal.message, "type": _type(refusal.status), "param": None, "code": refusal.code}
        return web.json_response({"error": error}, status=refusal.status)

    # --- what several dialects do ------------------------------------------------------------------------

    def time(self, seconds: float | None) -> int | None:
        """A time of the queue in whole seconds of the epoch; None where it has not come."""
        return None if seconds is None or seconds > self.queue.now_s else int(self.queue.epoch + seconds)

    def clock(self, seconds: float | None) -> str | None:
        """A time of the queue as RFC 3339, also one that is to come."""
        if seconds is None:
            return None
        return datetime.fromtimestamp(self.queue.epoch + seconds, UTC).isoformat().replace("+00:00", "Z")

    def batch(self, call: Call) -> Batch:
        """The batch that a path names."""
        return self.queue.batch(self.name, call.account, call.names["id"])

    def listed(self, call: Call) -> list[Batch]:
        """The batches that lists show to the account, newest first."""
        return self.queue.listed(self.name, call.account)

    def too_many(self, items: Sequence[Item], size: int) -> Refusal | None:
        """What is wrong with the size of a batch."""
        most = self.queue.most_requests or self.most_requests
        if len(items) > most:
            return Refusal(400, f"A batch has at most {most} requests; got {len(items)}.", "too_many_tasks")
        if size > self.most_bytes:
            return Refusal(413, f"A batch has at most {self.most_bytes} bytes; got {size}.", "request_too_large")
        return None


def _type(status: int) -> str:
    """OpenAI's word for the kind of an error."""
    return {429: "requests", 500: "server_error"}.get(status, "invalid_request_error")


def checked(given: Any, required: Collection[str], optional: Collection[str], what: str) -> dict[str, Any]:
    """An object with the fields it must have and none but those it may; a Refusal otherwise."""
    if not isinstance(given, dict):
        raise Refusal(400, f"{what} is no object.", "invalid_type")
    if missing := [each for each in required if each not in given]:
        raise Refusal(400, f"Missing required parameter in {what}: '{missing[0]}'.", "missing_required_parameter")
    if unknown := [each for each in given if each not in required and each not in optional]:
        raise Refusal(400, f"Unknown parameter in {what}: '{unknown[0]}'.", "unknown_parameter")
    return given


def doubled(items: Sequence[Item]) -> str | None:
    """An id that two items share."""
    seen: set[str] = set()
    for item in items:
        if item.custom_id in seen:
            return item.custom_id
        seen.add(item.custom_id)
    return None


def item_of(custom_id: Any, ask: Callable[[], Asked]) -> Item:
    """An item of a batch; what is wrong with its body shows in the results."""
    if not isinstance(custom_id, str) or not custom_id:
        raise Refusal(400, "Every request needs a custom_id that is a text.", "missing_required_parameter")
    try:
        return Item(custom_id, ask())
    except Refusal as refusal:
        return Item(custom_id, None, refusal.message)


def lines(results: Sequence[Any]) -> bytes:
    """Results as JSON Lines."""
    return b"".join(json.dumps(each).encode() + b"\n" for each in results)


def new_id(prefix: str) -> str:
    """An id that was never there before."""
    return f"{prefix}{uuid.uuid4().hex}"


# --- chat completions ------------------------------------------------------------------------------------

_SAMPLING = {"temperature", "top_p", "max_tokens", "stop", "n", "presence_penalty", "frequency_penalty"}
#: What bodies of chat completions may have beside the model and the messages.
CHAT_OPTIONS = _SAMPLING | {
    *("max_completion_tokens", "seed", "logprobs", "top_logprobs", "logit_bias", "response_format", "service_tier"),
    *("reasoning_effort", "reasoning_format", "reasoning", "verbosity", "store", "metadata", "user"),
    *("tools", "tool_choice", "stream"),
}
_ROLES: dict[Any, Any] = {"developer": "system", "system": "system", "user": "user", "assistant": "assistant"}


def chat_asked(
    body: Any, *, model: str | None = None, seed: str = "seed", options: Collection[str] = CHAT_OPTIONS
) -> Asked:
    """What a body of a chat completion asks; `model` is that of a batch whose bodies may leave it out."""
    given = checked({"model": model, **body} if model and isinstance(body, dict) else body, _CHAT, options, "the body")
    if given.get("stream"):
        raise Refusal(400, "Streams are not supported here.", "unsupported_value")
    try:
        messages = tuple(ChatMessage(_ROLES[each["role"]], text_of(each["content"])) for each in given["messages"])
    except (AttributeError, KeyError, TypeError):
        raise Refusal(400, "messages: each needs a role and a content.", "invalid_value") from None
    if not messages:
        raise Refusal(400, "messages: too short.", "invalid_value")
    given = {name: value for name, value in given.items() if name != "stream"}
    return Asked(given, str(given["model"]), messages, given.get(seed))


_CHAT = ("model", "messages")


def chat_completion(answer: Answer) -> dict[str, Any]:
    """An answer as a chat completion; a refusal is in a field of its own."""
    given, said = answer.asked.tokens, answer.tokens
    message = {"role": "assistant", "content": answer.text, "refusal": None}
    if answer.refused:
        message |= {"content": None, "refusal": answer.text}
    return {
        "id": f"chatcmpl-{answer.asked.digest}",
        "object": "chat.completion",
        "created": 0,
        "model": answer.asked.model,
        "system_fingerprint": "fp_batches",
        "service_tier": "default",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}],
        "usage": {
            **{"prompt_tokens": given, "completion_tokens": said, "total_tokens": given + said},
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
    }


def chat_error(outcome: Outcome) -> dict[str, Any]:
    """The body of an item that met an error."""
    code = {400: "content_filter", 429: "rate_limit_exceeded"}.get(outcome.status)
    return {"error": {"message": outcome.message, "type": _type(outcome.status), "param": None, "code": code}}


def chat_response(outcome: Outcome) -> dict[str, Any] | None:
    """What the API answered to an item of a batch; None where it was never asked."""
    if outcome.kind == "answer" and outcome.answer is not None:
        return {"status_code": 200, "request_id": new_id("req_"), "body": chat_completion(outcome.answer)}
    if outcome.kind == "error":
        return {"status_code": outcome.status, "request_id": new_id("req_"), "body": chat_error(outcome)}
    return None
