"""The batches of Anthropic and OpenRouter, whose requests are in the body and whose results no file holds."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from aiohttp import web

from opinionsim.messages import ChatMessage
from tests.support.batch_answers import Answer, Asked, text_of
from tests.support.batch_dialects import (
    CHAT_OPTIONS,
    Call,
    Dialect,
    Handler,
    chat_asked,
    chat_completion,
    checked,
    doubled,
    item_of,
    lines,
    new_id,
)
from tests.support.batch_queue import ENDED, Batch, Item, Outcome, Phase, Refusal

_ERRORS = {
    **{400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error"},
    **{413: "request_too_large", 429: "rate_limit_error", 500: "api_error"},
}


class Anthropic(Dialect):
    """Anthropic's messages and message batches, which have no name and no metadata."""

    name = "anthropic"
    base = "/anthropic"
    most_requests = 100_000
    most_bytes = 256_000_000
    _OPTIONS: ClassVar = {
        *("system", "temperature", "top_p", "top_k", "stop_sequences", "metadata", "thinking", "service_tier"),
        *("stream", "tools", "tool_choice", "output_config", "context_management", "cache_control", "inference_geo"),
    }

    def routes(self) -> Sequence[tuple[str, str, Handler]]:
        return (
            ("POST", "/v1/messages", self.complete),
            ("POST", "/v1/messages/batches", self.create),
            ("GET", "/v1/messages/batches", self.index),
            ("GET", "/v1/messages/batches/{id}", self.look),
            ("GET", "/v1/messages/batches/{id}/results", self.results),
            ("POST", "/v1/messages/batches/{id}/cancel", self.cancel),
            ("DELETE", "/v1/messages/batches/{id}", self.delete),
        )

    def key(self, headers: Mapping[str, str], query: Mapping[str, str]) -> str:
        return headers.get("x-api-key", "") or super().key(headers, query)

    def refused(self, refusal: Refusal) -> web.Response:
        kind = _ERRORS.get(refusal.status, "invalid_request_error")
        return web.json_response(_error(kind, refusal.message), status=refusal.status)

    def ask(self, params: Any) -> Asked:
        """What a body of a message asks."""
        given = checked(params, ("model", "max_tokens", "messages"), self._OPTIONS, "the body")
        if given.get("stream"):
            raise Refusal(400, "Streams are not supported here.")
        try:
            said = [ChatMessage(each["role"], text_of(each["content"])) for each in given["messages"]]
            system = [ChatMessage("system", text_of(given["system"]))] if given.get("system") else []
        except (AttributeError, KeyError, TypeError):
            raise Refusal(400, "messages: each needs a role and a content.") from None
        if not said or {each.role for each in said} - {"user", "assistant"}:
            raise Refusal(400, "messages: at least one is required, of the roles 'user' and 'assistant'.")
        given = {name: value for name, value in given.items() if name != "stream"}
        return Asked(given, str(given["model"]), (*system, *said), None)

    def complete(self, call: Call) -> web.Response:
        _check_version(call)
        return web.json_response(_message(self.queue.call(self.ask(call.json())), "standard"))

    def create(self, call: Call) -> web.Response:
        _check_version(call)
        given = checked(call.json(), ("requests",), (), "the body")["requests"]
        if not isinstance(given, list) or not given:
            raise Refusal(400, "requests: at least one is required.")
        items = []
        for number, each in enumerate(given):
            request = checked(each, ("custom_id", "params"), (), f"requests.{number}")
            if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", str(request["custom_id"])):
                raise Refusal(400, f"requests.{number}.custom_id: should match '^[a-zA-Z0-9_-]{{1,64}}$'")
            items.append(item_of(request["custom_id"], partial(self.ask, request["params"])))
        if (twice := doubled(items)) is not None:
            raise Refusal(400, f"requests: the custom_id '{twice}' appears more than once.")
        if (problem := self.too_many(items, len(call.body))) is not None:
            raise problem
        return web.json_response(self.shown(call, self.queue.submit(partial(self.make, call.account, items))))

    def make(self, account: str, items: Sequence[Item], created_s: float) -> Batch:
        """Create the batch, now or later."""
        return self.queue.create(
            new_id("msgbatch_"),
            items,
            created_s,
            dialect=self.name,
            account=account,
            window_s=self.window_s,
            label={},
            refuses=lambda problem: True,
        )

    def index(self, call: Call) -> web.Response:
        entries = [self.shown(call, each) for each in self.listed(call)]
        size = min(call.number("limit", 20, 1, 1000), self.queue.page)
        ids = [each["id"] for each in entries]
        if "before_id" in call.query:
            entries = entries[: _place(ids, call.query["before_id"])]
            page, more = entries[-size:], len(entries) > size
        else:
            entries = entries[_place(ids, call.query["after_id"]) + 1 :] if "after_id" in call.query else entries
            page, more = entries[:size], len(entries) > size
        first, last = (page[0]["id"], page[-1]["id"]) if page else (None, None)
        return web.json_response({"data": page, "has_more": more, "first_id": first, "last_id": last})

    def look(self, call: Call) -> web.Response:
        return web.json_response(self.shown(call, self.batch(call)))

    def results(self, call: Call) -> web.Response:
        """The results as JSON Lines."""
        batch = self.batch(call)
        if batch.phase(self.queue.now_s) not in ENDED:
            raise Refusal(404, f"The batch {batch.id} has no results yet.")
        content = lines([self.line(each) for each in self.queue.outcomes(batch)])
        return web.Response(body=self.queue.fetch(batch, content), content_type="application/x-jsonl")

    def line(self, outcome: Outcome) -> dict[str, Any]:
        """A result."""
        found: dict[str, Any] = {"type": {"cancelled": "canceled"}.get(outcome.kind, outcome.kind)}
        if outcome.kind == "answer" and outcome.answer is not None:
            found = {"type": "succeeded", "message": _message(outcome.answer, "batch")}
        elif outcome.kind == "error":
            found = {"type": "errored", "error": _error(_ERRORS[outcome.status], outcome.message)}
        return {"custom_id": outcome.custom_id, "result": found}

    def cancel(self, call: Call) -> web.Response:
        batch = self.batch(call)
        self.queue.cancel(batch)
        return web.json_response(self.shown(call, batch))

    def delete(self, call: Call) -> web.Response:
        batch = self.batch(call)
        if batch.phase(self.queue.now_s) not in ENDED:
            raise Refusal(400, f"The batch {batch.id} has not ended; cancel it first.")
        del self.queue.batches[batch.id]
        return web.json_response({"id": batch.id, "type": "message_batch_deleted"})

    def shown(self, call: Call, batch: Batch) -> dict[str, Any]:
        """A batch as replies show it: its items count as under way until all of it has ended."""
        phase = batch.phase(self.queue.now_s)
        ended = phase in ENDED
        succeeded, errored = batch.tally() if ended else (0, 0)
        left = len(batch.items) - succeeded - errored
        cancelled = batch.cancelled_s is not None and phase in ("cancelling", "cancelled")
        where = call.address(f"{self.base}/v1/messages/batches/{batch.id}/results")
        return {
            **{"id": batch.id, "type": "message_batch", "results_url": where if ended else None},
            "processing_status": "ended" if ended else "canceling" if phase == "cancelling" else "in_progress",
            "request_counts": {
                **{"processing": 0 if ended else left, "succeeded": succeeded, "errored": errored},
                **{"canceled": left if phase == "cancelled" else 0, "expired": left if phase == "expired" else 0},
            },
            **{"created_at": self.clock(batch.created_s), "expires_at": self.clock(batch.expires_s)},
            "ended_at": self.clock(batch.ended_s) if ended else None,
            "cancel_initiated_at": self.clock(batch.cancelled_s) if cancelled else None,
            "archived_at": None,
        }


def _check_version(call: Call) -> None:
    if "anthropic-version" not in call.headers:
        raise Refusal(400, "anthropic-version: header is required")


def _place(ids: Sequence[str], wanted: str) -> int:
    if wanted not in ids:
        raise Refusal(400, f"There is no batch {wanted} to go on from.")
    return ids.index(wanted)


def _message(answer: Answer, tier: str) -> dict[str, Any]:
    """An answer as a message."""
    return {
        **{"id": f"msg_{answer.asked.digest}", "type": "message", "role": "assistant", "model": answer.asked.model},
        "content": [{"type": "text", "text": answer.text}],
        **{"stop_reason": "refusal" if answer.refused else "end_turn", "stop_sequence": None},
        "usage": {
            **{"input_tokens": answer.asked.tokens, "output_tokens": answer.tokens, "service_tier": tier},
            **{"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0},
        },
    }


def _error(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": new_id("req_")}


class OpenRouter(Dialect):
    """OpenRouter's batches: no name, no metadata, nothing to cancel, results beside the state."""

    name = "openrouter"
    base = "/openrouter/api/v1"
    most_requests = 5_000
    _OPTIONS: ClassVar = CHAT_OPTIONS | {"top_k", "provider", "plugins", "transforms", "usage", "models", "route"}

    def routes(self) -> Sequence[tuple[str, str, Handler]]:
        return (
            ("POST", "/chat/completions", self.complete),
            ("POST", "/batches", self.create),
            ("GET", "/batches", self.index),
            ("GET", "/batches/{id}", self.look),
            ("DELETE", "/batches/{id}", self.delete),
        )

    def refused(self, refusal: Refusal) -> web.Response:
        error = {"code": refusal.status, "message": refusal.message}
        return web.json_response({"error": error}, status=refusal.status)

    def complete(self, call: Call) -> web.Response:
        asked = chat_asked(call.json(), options=self._OPTIONS)
        return web.json_response(_completed(self.queue.call(asked)))

    def create(self, call: Call) -> web.Response:
        given = checked(
            call.json(),
            ("endpoint", "model", "requests"),
            ("completion_window", "callback_url", "provider"),
            "the body",
        )
        names = list(given)
        first = [each for each in ("endpoint", "model", "callback_url") if each in given]
        if any(names.index(each) > names.index("requests") for each in first):
            raise Refusal(400, "endpoint, model and callback_url must appear before requests in the body.")
        if given["endpoint"] != "/v1/chat/completions" or given.get("completion_window", "24h") != "24h":
            raise Refusal(400, "Unsupported endpoint or completion_window.")
        items = []
        for each in given["requests"]:
            request = checked(each, ("custom_id", "body"), (), "a request")
            body = request["body"]
            if isinstance(body, dict) and body.get("model", given["model"]) != given["model"]:
                raise Refusal(400, "The model of a request must be the model of the batch.")
            items.append(
                item_of(request["custom_id"], partial(chat_asked, body, model=given["model"], options=self._OPTIONS))
            )
        if (problem := self.too_many(items, len(call.body))) is not None:
            raise problem
        batch = self.queue.submit(partial(self.make, call.account, items, given["model"]))
        return web.json_response(self.shown(batch, "validating"), status=202)

    def make(self, account: str, items: Sequence[Item], model: str, created_s: float) -> Batch:
        """Create the batch, now or later; a request that is not valid makes all of it fail."""
        twice = doubled(items)
        wrong = [each.problem for each in items if each.asked is None]
        if twice is not None:
            wrong.append(f"The custom_id '{twice}' appears more than once.")
        return self.queue.create(
            new_id("batch_"),
            items,
            created_s,
            dialect=self.name,
            account=account,
            window_s=self.window_s,
            label={"model": model},
            problem=Refusal(400, wrong[0]) if wrong else None,
            cancellable=False,
        )

    def index(self, call: Call) -> web.Response:
        batches = self.listed(call)
        if "after" in call.query:
            batches = batches[_place([each.id for each in batches], call.query["after"]) + 1 :]
        size = min(call.number("limit", 20, 1, 100), self.queue.page)
        page = [self.shown(each) for each in batches[:size]]
        first, last = (page[0]["id"], page[-1]["id"]) if page else (None, None)
        more = len(batches) > size
        return web.json_response({"object": "list", "data": page, "first_id": first, "last_id": last, "has_more": more})

    def look(self, call: Call) -> web.Response:
        batch = self.batch(call)
        shown = self.shown(batch)
        if batch.phase(self.queue.now_s) not in ENDED - {"failed"} or self.queue.vanished(batch):
            return web.json_response(shown)
        shown["results"] = [self.line(each) for each in self.queue.outcomes(batch)]
        body = self.queue.fetch(batch, json.dumps(shown).encode())
        return web.Response(body=body, content_type="application/json")

    def line(self, outcome: Outcome) -> dict[str, Any]:
        """A result: the response of the API, or what went wrong."""
        error, response = None, None
        if outcome.answer is not None:
            body = _completed(outcome.answer)
            response = {"status_code": 200, "request_id": new_id("req_"), "body": body}
        else:
            message = outcome.message or f"The request was not executed: the batch is {outcome.kind}."
            kind = {400: "content_policy_violation", 429: "rate_limit_exceeded", 500: "server"}.get(outcome.status)
            error = {"message": message, "type": kind or f"batch_{outcome.kind}", "param": None}
        return {"id": new_id("batch_req_"), "custom_id": outcome.custom_id, "response": response, "error": error}

    def delete(self, call: Call) -> web.Response:
        batch = self.batch(call)
        if batch.phase(self.queue.now_s) not in ENDED:
            raise Refusal(400, "A batch that has not ended cannot be deleted.")
        del self.queue.batches[batch.id]
        return web.json_response({"id": batch.id, "object": "batch", "deletion": {"openrouter": "deleted"}})

    def shown(self, batch: Batch, phase: Phase | None = None) -> dict[str, Any]:
        """A batch as lists show it, without its results."""
        phase = phase or batch.phase(self.queue.now_s)
        completed, failed = batch.tally()
        failure = batch.failure if phase == "failed" else None
        return {
            **{"id": batch.id, "object": "batch", "endpoint": "/v1/chat/completions", "status": phase},
            **{"model": batch.label["model"], "provider": None if phase == "validating" else "Fake"},
            **{"completion_window": "24h", "created_at": self.time(batch.created_s)},
            "expires_at": int(self.queue.epoch + batch.expires_s),
            "finalized_at": self.time(batch.ended_s) if phase in ENDED else None,
            "request_counts": {"total": len(batch.items), "completed": completed, "failed": failed},
            **{"usage": None, "error": failure and {"message": failure.message}, "results": None},
        }


def _completed(answer: Answer) -> dict[str, Any]:
    """An answer as OpenRouter's chat completion, which also says why the model itself stopped."""
    found = chat_completion(answer)
    return {**found, "choices": [{**each, "native_finish_reason": each["finish_reason"]} for each in found["choices"]]}
