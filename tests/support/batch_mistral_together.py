"""The batch jobs of Mistral and the batches of Together."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

from aiohttp import web

from tests.support.batch_dialects import (
    CHAT_OPTIONS,
    Call,
    Handler,
    Upload,
    chat_response,
    checked,
    doubled,
    item_of,
    new_id,
)
from tests.support.batch_files import FileDialect
from tests.support.batch_queue import ENDED, Batch, Item, Outcome, Phase, Refusal, StoredFile


class Mistral(FileDialect):
    """Mistral's files and batch jobs: requests in files or in the body, results in files."""

    name = "mistral"
    base = "/mistral/v1"
    most_requests = 1_000_000
    seed_field = "random_seed"
    options = frozenset((CHAT_OPTIONS - {"seed", "max_completion_tokens", "service_tier"}) | {"random_seed"})
    options |= {"safe_prompt", "prompt_mode", "parallel_tool_calls", "prediction"}
    names_undone = False
    upload_fields = frozenset({"purpose", "expiry", "visibility"})
    _STATUS: ClassVar[dict[Phase, str]] = {
        **{"validating": "QUEUED", "failed": "FAILED", "in_progress": "RUNNING", "finalizing": "RUNNING"},
        **{"completed": "SUCCESS", "expired": "TIMEOUT_EXCEEDED"},
        **{"cancelling": "CANCELLATION_REQUESTED", "cancelled": "CANCELLED"},
    }

    def routes(self) -> Sequence[tuple[str, str, Handler]]:
        return (
            ("POST", "/chat/completions", self.complete),
            ("POST", "/files", self.upload),
            ("GET", "/files", self.files),
            ("GET", "/files/{id}", self.file),
            ("GET", "/files/{id}/content", self.content),
            ("DELETE", "/files/{id}", self.delete_file),
            ("POST", "/batch/jobs", self.create),
            ("GET", "/batch/jobs", self.index),
            ("GET", "/batch/jobs/{id}", self.look),
            ("POST", "/batch/jobs/{id}/cancel", self.cancel),
            ("DELETE", "/batch/jobs/{id}", self.delete),
        )

    def refused(self, refusal: Refusal) -> web.Response:
        if refusal.status in (401, 404):
            return web.json_response({"detail": refusal.message}, status=refusal.status)
        error = {"object": "error", "message": refusal.message, "type": "invalid_request_error", "param": None}
        return web.json_response({**error, "code": refusal.code}, status=refusal.status)

    def new_file_id(self) -> str:
        return str(uuid.uuid4())

    def shown_file(self, stored: StoredFile) -> dict[str, Any]:
        result = stored.purpose != self.purpose
        return {
            **{"id": stored.id, "object": "file", "bytes": len(stored.content), "filename": stored.name},
            **{"created_at": self.time(stored.created_s), "purpose": self.purpose},
            **{
                "sample_type": "batch_result" if result else "batch_request",
                "source": "mistral" if result else "upload",
            },
            "num_lines": len(stored.content.splitlines()),
        }

    def files(self, call: Call) -> web.Response:
        entries = [self.shown_file(each) for each in self.own_files(call)]
        return web.json_response(self.paged(call, entries))

    def paged(self, call: Call, entries: list[dict[str, Any]]) -> dict[str, Any]:
        """A page of a list, by its number and size."""
        size = call.number("page_size", self.queue.page, 1, 100)
        first = call.number("page", 0, 0, 1_000_000) * size
        return {"object": "list", "data": entries[first : first + size], "total": len(entries)}

    def create(self, call: Call) -> web.Response:
        optional = ("input_files", "requests", "model", "agent_id", "metadata", "timeout_hours")
        given = checked(call.json(), ("endpoint",), optional, "the body")
        if given["endpoint"] != "/v1/chat/completions":
            raise Refusal(422, f"Unsupported endpoint: '{given['endpoint']}'.", "invalid_value")
        if (given.get("input_files") is None) == (given.get("requests") is None):
            raise Refusal(422, "Either input_files or requests are needed.", "invalid_value")
        hours = given.get("timeout_hours", 24)
        if not isinstance(hours, int) or not 1 <= hours <= 168:
            raise Refusal(422, "timeout_hours must be between 1 and 168.", "invalid_value")
        batch = self.queue.submit(partial(self.make, call.account, given, 3600.0 * hours))
        return web.json_response(self.shown(batch, "validating"))

    def make(self, account: str, given: dict[str, Any], window_s: float, created_s: float) -> Batch:
        """Create the job, now or later."""
        names, model = given.get("input_files") or [], given.get("model")
        if given.get("requests") is None:
            contents = [self.queue.file(self.name, account, each).content for each in names]
            items, problem = self.checked_items(b"\n".join(contents), model)
        else:
            items = [item_of(each.get("custom_id"), self.ask(each, model)) for each in given["requests"]]
            problem = self.too_many(items, len(json.dumps(given)))
            if (twice := doubled(items)) is not None:
                problem = Refusal(400, f"The custom_id '{twice}' appears more than once.", "duplicate_custom_id")
        return self.queue.create(
            str(uuid.uuid4()),
            items,
            created_s,
            dialect=self.name,
            account=account,
            window_s=window_s,
            label={"metadata": given.get("metadata"), "model": model, "files": names},
            problem=problem,
        )

    def index(self, call: Call) -> web.Response:
        entries = [self.shown(each) for each in self.listed(call)]
        wanted = call.query.get("status")
        return web.json_response(self.paged(call, [each for each in entries if wanted in (None, each["status"])]))

    def look(self, call: Call) -> web.Response:
        batch = self.batch(call)
        shown = self.shown(batch)
        if call.query.get("inline") == "true" and (output := self.results(batch).get("output")):
            content = self.queue.fetch(batch, self.queue.files[output].content)
            shown["outputs"] = [json.loads(each) for each in content.splitlines()]
        return web.json_response(shown)

    def cancel(self, call: Call) -> web.Response:
        batch = self.batch(call)
        self.queue.cancel(batch)
        return web.json_response(self.shown(batch))

    def delete(self, call: Call) -> web.Response:
        batch = self.batch(call)
        if batch.phase(self.queue.now_s) not in ENDED:
            raise Refusal(400, "A job that has not ended cannot be deleted.")
        del self.queue.batches[batch.id]
        return web.json_response({"id": batch.id, "object": "batch", "deleted": True})

    def shown(self, batch: Batch, phase: Phase | None = None) -> dict[str, Any]:
        """A job as replies show it."""
        phase = phase or batch.phase(self.queue.now_s)
        succeeded, failed = batch.tally()
        kept = self.results(batch) if phase in ENDED else {}
        errors = [{"message": batch.failure.message, "count": 1}] if batch.failure and phase == "failed" else []
        return {
            **{"id": batch.id, "object": "batch", "status": self._STATUS[phase], "endpoint": "/v1/chat/completions"},
            **{"input_files": batch.label["files"], "metadata": batch.label["metadata"], "model": batch.label["model"]},
            **{"agent_id": None, "errors": errors, "outputs": None},
            **{"output_file": kept.get("output"), "error_file": kept.get("error")},
            **{"created_at": self.time(batch.created_s), "started_at": self.time(batch.validated_s)},
            "completed_at": self.time(batch.ended_s) if phase in ENDED else None,
            **{"total_requests": len(batch.items), "completed_requests": succeeded + failed},
            **{"succeeded_requests": succeeded, "failed_requests": failed},
        }

    def line(self, outcome: Outcome) -> dict[str, Any]:
        response = chat_response(outcome)
        assert response is not None
        return {
            **{"id": new_id("batch-"), "custom_id": outcome.custom_id},
            **{"response": {name: response[name] for name in ("status_code", "body")}, "error": None},
        }


class Together(FileDialect):
    """Together's files, sent in steps, and its batches, which have neither metadata nor counts."""

    name = "together"
    base = "/together/v1"
    most_bytes = 100_000_000
    purpose = "batch-api"
    names_undone = False
    options = FileDialect.options | {"top_k", "repetition_penalty", "min_p", "context_length_exceeded_behavior"}
    _STATUS: ClassVar[dict[Phase, str]] = {
        **{"validating": "VALIDATING", "failed": "FAILED", "in_progress": "IN_PROGRESS", "finalizing": "IN_PROGRESS"},
        **{"completed": "COMPLETED", "expired": "EXPIRED", "cancelling": "IN_PROGRESS", "cancelled": "CANCELLED"},
    }

    def routes(self) -> Sequence[tuple[str, str, Handler]]:
        return (
            ("POST", "/chat/completions", self.complete),
            ("POST", "/files", self.announce),
            ("PUT", "/stored-files", self.put),
            ("POST", "/files/{id}/preprocess", self.file),
            ("POST", "/files/upload", self.upload),
            ("GET", "/files", self.files),
            ("GET", "/files/{id}", self.file),
            ("GET", "/files/{id}/content", self.content),
            ("DELETE", "/files/{id}", self.delete_file),
            ("POST", "/batches", self.create),
            ("GET", "/batches", self.index),
            ("GET", "/batches/{id}", self.look),
            ("POST", "/batches/{id}/cancel", self.cancel),
        )

    upload_fields = frozenset({"purpose", "file_name", "file_type"})

    def announce(self, call: Call) -> web.Response:
        """Say where a file is to be put; a file with the same checksum is there already."""
        given = checked(dict(call.form), ("purpose", "file_name", "file_type"), ("checksum",), "the form")
        if given["purpose"] != self.purpose or given["file_type"] != "jsonl":
            raise Refusal(400, f"The purpose must be '{self.purpose}' and the type 'jsonl'.", "invalid_value")
        checksum = given.get("checksum")
        for file_id, upload in self.uploads.items():
            same = checksum is not None and (upload.account, upload.checksum) == (call.account, checksum)
            if same and file_id in self.queue.files:
                return web.json_response({"error": "The file exists.", "file_id": file_id}, status=409)
        file_id = self.new_file_id()
        self.uploads[file_id] = Upload(call.account, given["file_name"], self.purpose, checksum)
        where = call.address(f"{self.base}/stored-files?upload_id={file_id}")
        return web.Response(status=302, headers={"Location": where, "X-Together-File-Id": file_id})

    def put(self, call: Call) -> web.Response:
        """Take the content of a file."""
        file_id = call.query["upload_id"]
        upload = self.uploads[file_id]
        self.queue.keep(self.name, call.account, upload.name, self.purpose, call.body, file_id)
        return web.Response()

    def stored(self, account: str, name: str, purpose: str, content: bytes) -> StoredFile:
        return super().stored(account, name, self.purpose if purpose == "batch_output" else purpose, content)

    def shown_file(self, stored: StoredFile) -> dict[str, Any]:
        return {
            **{"id": stored.id, "object": "file", "bytes": len(stored.content), "filename": stored.name},
            **{"created_at": self.time(stored.created_s), "FileType": "jsonl", "purpose": stored.purpose},
            "processing_status": "COMPLETED",
        }

    def files(self, call: Call) -> web.Response:
        return web.json_response({"data": [self.shown_file(each) for each in self.own_files(call)]})

    def create(self, call: Call) -> web.Response:
        optional = ("completion_window", "model_id", "priority")
        given = checked(call.json(), ("input_file_id", "endpoint"), optional, "the body")
        if given["endpoint"] != "/v1/chat/completions":
            raise Refusal(400, f"Unsupported endpoint: '{given['endpoint']}'.", "invalid_value")
        batch = self.queue.submit(partial(self.make, call.account, given["input_file_id"], given.get("model_id")))
        return web.json_response({"job": self.shown(batch, "validating"), "warning": None}, status=201)

    def make(self, account: str, file_id: str, model: str | None, created_s: float) -> Batch:
        """Create the batch, now or later."""
        content = self.queue.file(self.name, account, file_id).content
        items, problem = self.checked_items(content, model)
        return self.queue.create(
            str(uuid.uuid4()),
            items,
            created_s,
            dialect=self.name,
            account=account,
            window_s=self.window_s,
            label={"model": model or _model(items), "bytes": len(content)},
            input_file=file_id,
            problem=problem,
        )

    def index(self, call: Call) -> web.Response:
        return web.json_response([self.shown(each) for each in self.listed(call)])

    def look(self, call: Call) -> web.Response:
        return web.json_response(self.shown(self.batch(call)))

    def cancel(self, call: Call) -> web.Response:
        batch = self.batch(call)
        if not self.queue.cancel(batch):
            raise Refusal(400, "A batch that has ended cannot be cancelled.")
        return web.json_response(self.shown(batch))

    def shown(self, batch: Batch, phase: Phase | None = None) -> dict[str, Any]:
        """A batch as replies show it."""
        phase = phase or batch.phase(self.queue.now_s)
        kept = self.results(batch) if phase in ENDED else {}
        return {
            **{"id": batch.id, "user_id": "user", "input_file_id": batch.input_file, "status": self._STATUS[phase]},
            **{"file_size_bytes": batch.label["bytes"], "model_id": batch.label["model"]},
            **{"created_at": self.clock(batch.created_s), "job_deadline": self.clock(batch.expires_s)},
            "completed_at": self.clock(batch.ended_s) if phase in ENDED else None,
            "endpoint": "/v1/chat/completions",
            "progress": 100 * sum(batch.tally()) / max(1, len(batch.items)),
            **{"output_file_id": kept.get("output"), "error_file_id": kept.get("error")},
            "error": batch.failure.message if batch.failure is not None and phase == "failed" else None,
        }

    def line(self, outcome: Outcome) -> dict[str, Any]:
        if outcome.kind == "error":
            return {"custom_id": outcome.custom_id, "error": {"message": outcome.message, "code": outcome.status}}
        response = chat_response(outcome)
        assert response is not None
        return {
            "custom_id": outcome.custom_id,
            "response": {name: response[name] for name in ("status_code", "body")},
        }


def _model(items: Sequence[Item]) -> str | None:
    return next((each.asked.model for each in items if each.asked is not None), None)
