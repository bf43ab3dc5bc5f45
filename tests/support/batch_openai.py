"""The batches of OpenAI, and those of Groq, which follow them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from aiohttp import web

from tests.support.batch_dialects import Call, Handler, chat_response, checked, new_id
from tests.support.batch_files import FileDialect
from tests.support.batch_queue import ENDED, Batch, Outcome, Phase, Refusal

_UNDONE = {
    "expired": ("batch_expired", "This request could not be executed before the completion window expired."),
    "cancelled": ("batch_cancelled", "This request was not executed because the batch was cancelled."),
}


class OpenAI(FileDialect):
    """OpenAI's files and batches."""

    name = "openai"
    base = "/openai/v1"
    endpoint: ClassVar[str] = "/v1/chat/completions"
    upload_fields = frozenset({"purpose", "expires_after[anchor]", "expires_after[seconds]"})

    def routes(self) -> Sequence[tuple[str, str, Handler]]:
        return (
            ("POST", "/chat/completions", self.complete),
            ("POST", "/files", self.upload),
            ("GET", "/files", self.files),
            ("GET", "/files/{id}", self.file),
            ("GET", "/files/{id}/content", self.content),
            ("DELETE", "/files/{id}", self.delete_file),
            ("POST", "/batches", self.create),
            ("GET", "/batches", self.index),
            ("GET", "/batches/{id}", self.look),
            ("POST", "/batches/{id}/cancel", self.cancel),
        )

    def files(self, call: Call) -> web.Response:
        return web.json_response(self.paged(call, [self.shown_file(each) for each in self.own_files(call)], 10_000))

    def paged(self, call: Call, entries: list[dict[str, Any]], most: int = 100) -> dict[str, Any]:
        """A page of a list, after the entry that the query names."""
        after = call.query.get("after")
        if after is not None:
            places = [place for place, each in enumerate(entries) if each["id"] == after]
            if not places:
                raise Refusal(400, f"There is no entry '{after}' to go on after.", "invalid_value")
            entries = entries[places[0] + 1 :]
        size = min(call.number("limit", min(20, most), 1, most), self.queue.page)
        page = entries[:size]
        first, last = (page[0]["id"], page[-1]["id"]) if page else (None, None)
        return {"object": "list", "data": page, "first_id": first, "last_id": last, "has_more": len(entries) > size}

    def create(self, call: Call) -> web.Response:
        given = checked(
            call.json(),
            ("input_file_id", "endpoint", "completion_window"),
            ("metadata", "output_expires_after"),
            "the body",
        )
        if given["endpoint"] != self.endpoint:
            raise Refusal(400, f"Unsupported endpoint: '{given['endpoint']}'.", "invalid_value")
        window = given["completion_window"]
        window_s = self.window(window)
        metadata = given.get("metadata")
        if metadata is not None and not _is_metadata(metadata):
            raise Refusal(400, "metadata: at most 16 pairs of texts of up to 64 and 512 characters.", "invalid_value")
        batch = self.queue.submit(partial(self.make, call.account, given["input_file_id"], metadata, window, window_s))
        return web.json_response(self.shown(batch, "validating"))

    def window(self, given: Any) -> float:
        """Seconds until a batch expires."""
        if given != "24h":
            raise Refusal(400, f"Invalid completion_window: {given}. Only '24h' is supported.", "invalid_value")
        return self.window_s

    def make(self, account: str, file_id: str, metadata: Any, window: str, window_s: float, created_s: float) -> Batch:
        """Create the batch, now or later."""
        try:
            stored = self.queue.file(self.name, account, file_id)
        except Refusal:
            message = f"Cannot find file {file_id}, or the project does not have access to it."
            raise Refusal(400, message) from None
        items, problem = self.checked_items(stored.content)
        models = {each.asked.model for each in items if each.asked is not None}
        if problem is None and len(models) > 1:
            problem = Refusal(400, f"All requests must have one model; got {sorted(models)}.", "model_mismatch")
        return self.queue.create(
            new_id("batch_"),
            items,
            created_s,
            dialect=self.name,
            account=account,
            window_s=window_s,
            label={"metadata": metadata, "window": window, "model": min(models, default=None)},
            input_file=file_id,
            problem=problem,
        )

    def ask(self, line: Mapping[str, Any], model: str | None) -> partial[Any]:
        if line.get("url") != self.endpoint or line.get("method") != "POST":
            raise Refusal(400, "The url of a line is not the endpoint of the batch.", "url_mismatch")
        checked(line, ("custom_id", "method", "url", "body"), (), "the line")
        return super().ask(line, model)

    def index(self, call: Call) -> web.Response:
        return web.json_response(self.paged(call, [self.shown(each) for each in self.listed(call)]))

    def look(self, call: Call) -> web.Response:
        return web.json_response(self.shown(self.batch(call)))

    def cancel(self, call: Call) -> web.Response:
        batch = self.batch(call)
        if not self.queue.cancel(batch):
            phase = batch.phase(self.queue.now_s)
            raise Refusal(409, f"Cannot cancel a batch with status '{phase}'.")
        return web.json_response(self.shown(batch))

    def shown(self, batch: Batch, phase: Phase | None = None) -> dict[str, Any]:
        """A batch as replies show it."""
        phase = phase or batch.phase(self.queue.now_s)
        completed, failed = batch.tally()
        kept, failure = self.results(batch) if phase in ENDED else {}, batch.failure if phase == "failed" else None
        error = failure and {"code": failure.code, "message": failure.message, "param": None, "line": None}
        ended = {name: self.time(batch.ended_s) if phase == name else None for name in ENDED}
        return {
            **{"id": batch.id, "object": "batch", "endpoint": self.endpoint, "status": phase},
            "errors": error and {"object": "list", "data": [error]},
            **{"input_file_id": batch.input_file, "completion_window": batch.label["window"]},
            **{"output_file_id": kept.get("output"), "error_file_id": kept.get("error")},
            "created_at": self.time(batch.created_s),
            "in_progress_at": None if phase in ("validating", "failed") else self.time(batch.validated_s),
            "expires_at": int(self.queue.epoch + batch.expires_s),
            "cancelling_at": self.time(batch.cancelled_s),
            **{f"{name}_at": when for name, when in ended.items()},
            "finalizing_at": self.time(batch.ended_s) if phase == "completed" else None,
            "request_counts": {"total": len(batch.items), "completed": completed, "failed": failed},
            **{"metadata": batch.label["metadata"], "model": batch.label["model"]},
        }

    def line(self, outcome: Outcome) -> dict[str, Any]:
        error = None
        if outcome.kind in _UNDONE:
            code, message = _UNDONE[outcome.kind]
            error = {"code": code, "message": message}
        return {
            **{"id": new_id("batch_req_"), "custom_id": outcome.custom_id},
            **{"response": chat_response(outcome), "error": error},
        }


def _is_metadata(given: Any) -> bool:
    if not isinstance(given, dict) or len(given) > 16:
        return False
    return all(isinstance(value, str) and len(name) <= 64 and len(value) <= 512 for name, value in given.items())


class Groq(OpenAI):
    """Groq's batches: lists have no pages, and windows are from one to seven days."""

    name = "groq"
    base = "/groq/openai/v1"

    def paged(self, call: Call, entries: list[dict[str, Any]], most: int = 100) -> dict[str, Any]:
        return {"object": "list", "data": entries}

    def window(self, given: Any) -> float:
        hours = {"24h": 24, **{f"{days}d": 24 * days for days in range(1, 8)}}.get(given)
        if hours is None:
            raise Refusal(400, f"Invalid completion_window: {given}.", "invalid_value")
        return 3600.0 * hours
