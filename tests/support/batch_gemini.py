"""The batches of Google's Gemini API: operations with a name of one's own, inline or from a file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from aiohttp import web

from opinionsim.foundation.streams import canonical_json
from opinionsim.messages import ChatMessage
from tests.support.batch_answers import Answer, Asked, text_of
from tests.support.batch_dialects import Call, Dialect, Handler, Upload, checked, doubled, item_of, lines, new_id
from tests.support.batch_queue import ENDED, Batch, Item, Outcome, Phase, Refusal, StoredFile

_STATUSES = {
    **{400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND"},
    **{429: "RESOURCE_EXHAUSTED", 500: "INTERNAL"},
}
#: Numbers of errors inside results.
_CODES = {400: 3, 429: 8, 500: 13}
_INLINE_BYTES = 20_000_000


class Gemini(Dialect):
    """Google's generateContent and its batches; nothing of a batch that expires is ever done."""

    name = "gemini"
    base = "/gemini"
    most_requests = 1_000_000
    most_bytes = 2_000_000_000
    window_s = 2 * 86_400.0
    _OPTIONS: ClassVar = {
        *("model", "systemInstruction", "generationConfig", "safetySettings", "tools", "toolConfig", "cachedContent"),
        *("serviceTier", "store"),
    }
    _CONFIG: ClassVar = {
        *("temperature", "topP", "topK", "maxOutputTokens", "stopSequences", "seed", "candidateCount"),
        *("responseMimeType", "responseSchema", "responseJsonSchema", "responseModalities", "thinkingConfig"),
        *("presencePenalty", "frequencyPenalty", "responseLogprobs", "logprobs", "mediaResolution"),
    }
    _STATE: ClassVar[dict[Phase, str]] = {
        **{"validating": "PENDING", "in_progress": "RUNNING", "finalizing": "RUNNING", "cancelling": "RUNNING"},
        **{"completed": "SUCCEEDED", "failed": "FAILED", "expired": "EXPIRED", "cancelled": "CANCELLED"},
    }

    def routes(self) -> Sequence[tuple[str, str, Handler]]:
        return (
            ("POST", "/{version:v1|v1beta}/models/{model}:generateContent", self.complete),
            ("POST", "/{version:v1|v1beta}/models/{model}:batchGenerateContent", self.create),
            ("GET", "/{version:v1|v1beta}/batches", self.index),
            ("GET", "/{version:v1|v1beta}/batches/{id}", self.look),
            ("POST", "/{version:v1|v1beta}/batches/{id}:cancel", self.cancel),
            ("DELETE", "/{version:v1|v1beta}/batches/{id}", self.delete),
            ("POST", "/upload/{version:v1|v1beta}/files", self.upload),
            ("GET", "/{version:v1|v1beta}/files", self.files),
            ("GET", "/{version:v1|v1beta}/files/{id}:download", self.download),
            ("GET", "/download/{version:v1|v1beta}/files/{id}:download", self.download),
            ("GET", "/{version:v1|v1beta}/files/{id}", self.file),
            ("DELETE", "/{version:v1|v1beta}/files/{id}", self.delete_file),
        )

    def key(self, headers: Mapping[str, str], query: Mapping[str, str]) -> str:
        return headers.get("x-goog-api-key", "") or query.get("key", "")

    def refused(self, refusal: Refusal) -> web.Response:
        status = _STATUSES.get(refusal.status, "UNKNOWN")
        error = {"code": refusal.status, "message": refusal.message, "status": status}
        return web.json_response({"error": error}, status=refusal.status)

    # --- requests ----------------------------------------------------------------------------------------

    def ask(self, model: str, body: Any) -> Asked:
        """What a body of generateContent asks."""
        given = checked(body, ("contents",), self._OPTIONS, "the request")
        config = checked(given.get("generationConfig") or {}, (), self._CONFIG, "generationConfig")
        if given.get("model", model).removeprefix("models/") != model:
            raise Refusal(400, "The model of a request must be the model of the batch.")
        roles: Any = {"user": "user", "model": "assistant"}
        try:
            messages = [
                ChatMessage(roles[each.get("role", "user")], text_of(each["parts"])) for each in given["contents"]
            ]
            if given.get("systemInstruction"):
                messages.insert(0, ChatMessage("system", text_of(given["systemInstruction"]["parts"])))
        except (AttributeError, KeyError, TypeError):
            raise Refusal(400, "contents: each needs a role of 'user' or 'model', and parts.") from None
        return Asked({**given, "model": model}, model, tuple(messages), config.get("seed"))

    def complete(self, call: Call) -> web.Response:
        answer = self.queue.call(self.ask(call.names["model"], call.json()))
        return web.json_response(_content(answer))

    # --- batches -----------------------------------------------------------------------------------------

    def create(self, call: Call) -> web.Response:
        given = _camel(checked(call.json(), ("batch",), (), "the body")["batch"])
        checked(given, ("displayName", "inputConfig"), ("name", "model", "priority"), "batch")
        source = checked(_camel(given["inputConfig"]), (), ("requests", "fileName"), "batch.inputConfig")
        if len(source) != 1:
            raise Refusal(400, "batch.inputConfig: either requests or fileName is needed.")
        if "requests" in source and len(call.body) > _INLINE_BYTES:
            raise Refusal(400, f"Requests inside the body have at most {_INLINE_BYTES} bytes.")
        make = partial(self.make, call.account, call.names["model"], str(given["displayName"]), source)
        return web.json_response(self.operation(self.queue.submit(make), "validating"))

    def make(self, account: str, model: str, display_name: str, source: Mapping[str, Any], created_s: float) -> Batch:
        """Create the batch, now or later."""
        inline = "requests" in source
        if inline:
            given = checked(source["requests"], ("requests",), (), "batch.inputConfig.requests")["requests"]
            items, labels = self.inlined(model, given)
        else:
            stored = self.queue.file(self.name, account, str(source["fileName"]).removeprefix("files/"))
            items, labels = self.filed(model, stored.content), {}
        if (twice := doubled(items)) is not None:
            raise Refusal(400, f"The key '{twice}' appears more than once.")
        if (problem := self.too_many(items, 0)) is not None:
            raise problem
        return self.queue.create(
            new_id(""),
            items,
            created_s,
            dialect=self.name,
            account=account,
            window_s=self.window_s,
            label={"name": display_name, "model": model, "metadata": labels, "inline": inline},
            refuses=lambda refusal: refusal.status == 429,
            keeps_expired=False,
        )

    def inlined(self, model: str, given: Sequence[Any]) -> tuple[list[Item], dict[str, Any]]:
        """Items of a list of requests, and what each was given along."""
        items, labels = [], {}
        for number, each in enumerate(given):
            request = checked(each, ("request",), ("metadata",), f"requests[{number}]")
            metadata = request.get("metadata") or {}
            key = metadata["key"] if set(metadata) == {"key"} else canonical_json(metadata or number)
            items.append(item_of(key, partial(self.ask, model, request["request"])))
            labels[key] = metadata
        if not items:
            raise Refusal(400, "batch.inputConfig.requests: at least one request is needed.")
        return items, labels

    def filed(self, model: str, content: bytes) -> list[Item]:
        """Items of an input file."""
        found = []
        for number, line in enumerate(content.splitlines(), 1):
            try:
                request = checked(json.loads(line), ("key", "request"), (), f"line {number}")
            except ValueError:
                raise Refusal(400, f"Line {number} is no JSON.") from None
            found.append(item_of(request["key"], partial(self.ask, model, request["request"])))
        return found

    def index(self, call: Call) -> web.Response:
        entries = [self.operation(each) for each in self.listed(call)]
        return web.json_response(self.paged(call, "operations", entries, 20))

    def paged(self, call: Call, name: str, entries: list[dict[str, Any]], size: int) -> dict[str, Any]:
        """A page of a list; its token is the name of the entry before the next page."""
        names = [each["name"] for each in entries]
        token = call.query.get("pageToken")
        if token not in (None, "", *names):
            raise Refusal(400, "pageToken is not valid.")
        rest = entries[names.index(token) + 1 :] if token else entries
        size = min(call.number("pageSize", size, 1, 1000), self.queue.page)
        more = {"nextPageToken": rest[size - 1]["name"]} if len(rest) > size else {}
        return {name: rest[:size], **more} if rest else {}

    def look(self, call: Call) -> web.Response:
        batch = self.batch(call)
        shown = self.operation(batch)
        if batch.phase(self.queue.now_s) not in ("completed", "cancelled"):
            return web.json_response(shown)
        if not batch.label["inline"]:
            output = {"responsesFile": f"files/{self.responses_file(batch)}"}
            return web.json_response(_with_output(shown, output))
        if self.queue.vanished(batch):
            return web.json_response(shown)
        results = [self.result(batch, each) for each in self.queue.outcomes(batch, in_order=True)]
        output = {"inlinedResponses": {"inlinedResponses": results}}
        body = self.queue.fetch(batch, json.dumps(_with_output(shown, output)).encode())
        return web.Response(body=body, content_type="application/json")

    def responses_file(self, batch: Batch) -> str:
        """Id of the file of the results."""
        if "output" not in batch.kept:
            results = [_line(each) for each in self.queue.outcomes(batch, in_order=True)]
            file_id = f"batch-{batch.id}"
            batch.kept["output"] = file_id
            self.queue.keep(self.name, batch.account, file_id, "output", lines(results), file_id)
        return batch.kept["output"]

    def result(self, batch: Batch, outcome: Outcome) -> dict[str, Any]:
        """A result inside the reply, with what its request was given along."""
        metadata = batch.label["metadata"].get(outcome.custom_id, {"key": outcome.custom_id})
        return {**_result(outcome), **({"metadata": metadata} if metadata else {})}

    def cancel(self, call: Call) -> web.Response:
        if not self.queue.cancel(self.batch(call)):
            raise Refusal(400, "A batch that has ended cannot be cancelled.")
        return web.json_response({})

    def delete(self, call: Call) -> web.Response:
        batch = self.batch(call)
        if batch.phase(self.queue.now_s) not in ENDED:
            raise Refusal(400, "A batch that has not ended cannot be deleted.")
        del self.queue.batches[batch.id]
        return web.json_response({})

    def operation(self, batch: Batch, phase: Phase | None = None) -> dict[str, Any]:
        """A batch as replies show it, without results."""
        phase = phase or batch.phase(self.queue.now_s)
        good, bad = batch.tally()
        stats = {"requestCount": len(batch.items), "successfulRequestCount": good, "failedRequestCount": bad}
        stats["pendingRequestCount"] = len(batch.items) - good - bad
        ended_s = batch.ended_s if phase in ENDED else None
        metadata = {
            "@type": "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch",
            **{"model": f"models/{batch.label['model']}", "displayName": batch.label["name"]},
            **{"name": f"batches/{batch.id}", "state": f"BATCH_STATE_{self._STATE[phase]}"},
            **{"createTime": self.clock(batch.created_s), "updateTime": self.clock(self.queue.now_s)},
            **({} if ended_s is None else {"endTime": self.clock(ended_s)}),
            "batchStats": {name: str(count) for name, count in stats.items() if count},
        }
        shown: dict[str, Any] = {"name": f"batches/{batch.id}", "metadata": metadata}
        if phase in ENDED:
            shown["done"] = True
        if batch.failure is not None and phase == "failed":
            shown["error"] = {"code": 3, "message": batch.failure.message}
        return shown

    # --- files -------------------------------------------------------------------------------------------

    def upload(self, call: Call) -> web.Response:
        """Begin to send a file, or go on."""
        command = call.headers.get("X-Goog-Upload-Command", "")
        if command == "start":
            given = _camel(checked(call.json() if call.body else {}, (), ("file",), "the body").get("file", {}))
            upload_id = new_id("")
            self.uploads[upload_id] = Upload(call.account, given.get("displayName", ""), "batch")
            where = call.address(
                f"{self.base}/upload/{call.names['version']}/files?upload_id={upload_id}&upload_protocol=resumable"
            )
            return web.Response(headers={"X-Goog-Upload-URL": where, "X-Goog-Upload-Status": "active"})
        upload = self.uploads.get(call.query.get("upload_id", ""))
        if upload is None or "upload" not in command:
            raise Refusal(400, "An upload starts with the command 'start'.")
        if call.headers.get("X-Goog-Upload-Offset") != str(len(upload.content)):
            raise Refusal(400, "The offset of the upload is wrong.")
        upload.content += call.body
        if "finalize" not in command:
            return web.Response(headers={"X-Goog-Upload-Status": "active"})
        stored = self.queue.keep(
            self.name, upload.account, upload.name, upload.purpose, upload.content, new_id("")[:12]
        )
        return web.json_response({"file": self.shown_file(stored)}, headers={"X-Goog-Upload-Status": "final"})

    def shown_file(self, stored: StoredFile) -> dict[str, Any]:
        """A file as replies show it."""
        return {
            **{"name": f"files/{stored.id}", "displayName": stored.name, "mimeType": "application/jsonl"},
            **{"sizeBytes": str(len(stored.content)), "createTime": self.clock(stored.created_s)},
            **{"expirationTime": self.clock(stored.created_s + 2 * 86_400), "state": "ACTIVE", "source": "UPLOADED"},
        }

    def files(self, call: Call) -> web.Response:
        own = [each for each in self.queue.files.values() if each.belongs(self.name, call.account)]
        return web.json_response(self.paged(call, "files", [self.shown_file(each) for each in own[::-1]], 10))

    def file(self, call: Call) -> web.Response:
        return web.json_response(self.shown_file(self.queue.file(self.name, call.account, call.names["id"])))

    def download(self, call: Call) -> web.Response:
        stored = self.queue.file(self.name, call.account, call.names["id"])
        batch = self.queue.batches.get(stored.id.removeprefix("batch-"))
        content = stored.content if batch is None else self.queue.fetch(batch, stored.content)
        return web.Response(body=content, content_type="application/octet-stream")

    def delete_file(self, call: Call) -> web.Response:
        del self.queue.files[self.queue.file(self.name, call.account, call.names["id"]).id]
        return web.json_response({})


def _camel(given: Any) -> Any:
    """An object with its fields in the usual spelling; the API takes ``display_name`` for ``displayName`` as well."""
    if not isinstance(given, dict):
        return given
    return {re.sub("_([a-z])", lambda found: found[1].upper(), name): value for name, value in given.items()}


def _with_output(shown: dict[str, Any], output: dict[str, Any]) -> dict[str, Any]:
    return {**shown, "metadata": {**shown["metadata"], "output": output}, "response": output}


def _result(outcome: Outcome) -> dict[str, Any]:
    if outcome.answer is not None:
        return {"response": _content(outcome.answer)}
    if outcome.kind == "error":
        return {"error": {"code": _CODES[outcome.status], "message": outcome.message}}
    return {"error": {"code": 1, "message": "The request was not executed because the batch was cancelled."}}


def _line(outcome: Outcome) -> dict[str, Any]:
    return {"key": outcome.custom_id, **_result(outcome)}


def _content(answer: Answer) -> dict[str, Any]:
    """An answer as a reply of generateContent."""
    given, said = answer.asked.tokens, answer.tokens
    candidate = {"content": {"parts": [{"text": answer.text}], "role": "model"}, "finishReason": "STOP", "index": 0}
    return {
        "candidates": [candidate],
        "usageMetadata": {
            **{"promptTokenCount": given, "candidatesTokenCount": said, "totalTokenCount": given + said},
        },
        **{"modelVersion": answer.asked.model, "responseId": answer.asked.digest},
    }
