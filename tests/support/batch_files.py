"""What dialects with files of requests and files of results share."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from aiohttp import web

from tests.support.batch_dialects import (
    CHAT_OPTIONS,
    Call,
    Dialect,
    chat_asked,
    chat_completion,
    doubled,
    item_of,
    lines,
    new_id,
)
from tests.support.batch_queue import ENDED, Batch, Item, Outcome, Refusal, StoredFile


class FileDialect(Dialect):
    """A dialect whose requests and results are in files."""

    file_prefix: ClassVar[str] = "file-"
    purpose: ClassVar[str] = "batch"
    seed_field: ClassVar[str] = "seed"
    options: ClassVar[frozenset[str]] = frozenset(CHAT_OPTIONS)
    #: Whether the results have a line for what was never executed.
    names_undone: ClassVar[bool] = True
    #: Fields of a form that uploads a file, beside the file.
    upload_fields: ClassVar[frozenset[str]] = frozenset({"purpose"})

    def complete(self, call: Call) -> web.Response:
        """Answer a chat completion at once."""
        asked = chat_asked(call.json(), seed=self.seed_field, options=self.options)
        return web.json_response(chat_completion(self.queue.call(asked)))

    def upload(self, call: Call) -> web.Response:
        """Store an input file."""
        if unknown := [each for each in call.form if each not in self.upload_fields]:
            raise Refusal(400, f"Unknown parameter: '{unknown[0]}'.", "unknown_parameter")
        if call.form.get("purpose") != self.purpose or "file" not in call.files:
            raise Refusal(400, f"A form with a file and the purpose '{self.purpose}' is needed.", "invalid_value")
        name, content = call.files["file"]
        return web.json_response(self.shown_file(self.stored(call.account, name, self.purpose, content)))

    def stored(self, account: str, name: str, purpose: str, content: bytes) -> StoredFile:
        """A new file."""
        return self.queue.keep(self.name, account, name, purpose, content, self.new_file_id())

    def new_file_id(self) -> str:
        """An id of a file that was never there before."""
        return new_id(self.file_prefix)

    def shown_file(self, stored: StoredFile) -> dict[str, Any]:
        """A file as replies show it."""
        return {
            **{"id": stored.id, "object": "file", "bytes": len(stored.content), "purpose": stored.purpose},
            **{"created_at": self.time(stored.created_s), "filename": stored.name, "status": "processed"},
        }

    def own_files(self, call: Call) -> list[StoredFile]:
        """The files of the account, newest first."""
        files = [each for each in self.queue.files.values() if each.belongs(self.name, call.account)]
        purpose = call.query.get("purpose")
        return [each for each in files[::-1] if purpose in (None, each.purpose)]

    def file(self, call: Call) -> web.Response:
        """A file without its content."""
        return web.json_response(self.shown_file(self.queue.file(self.name, call.account, call.names["id"])))

    def content(self, call: Call) -> web.Response:
        """The content of a file; results meet the faults of fetches."""
        stored = self.queue.file(self.name, call.account, call.names["id"])
        source = next((each for each in self.queue.batches.values() if stored.id in each.kept.values()), None)
        body = stored.content if source is None else self.queue.fetch(source, stored.content)
        return web.Response(body=body, content_type="application/octet-stream")

    def delete_file(self, call: Call) -> web.Response:
        """Delete a file for good."""
        stored = self.queue.file(self.name, call.account, call.names["id"])
        del self.queue.files[stored.id]
        return web.json_response({"id": stored.id, "object": "file", "deleted": True})

    def read_items(self, content: bytes, model: str | None = None) -> list[Item]:
        """The items of an input file; a Refusal for a line that is none."""
        found = []
        for number, line in enumerate(content.splitlines(), 1):
            try:
                given = json.loads(line)
                found.append(item_of(given.get("custom_id"), self.ask(given, model)))
            except (ValueError, AttributeError):
                message = f"Line {number}: This line is not parseable as valid JSON."
                raise Refusal(400, message, "invalid_json_line") from None
        if not found:
            raise Refusal(400, "The input file is empty.", "empty_file")
        return found

    def ask(self, line: Mapping[str, Any], model: str | None) -> partial[Any]:
        """How to read the request in a line."""
        return partial(chat_asked, line.get("body"), model=model, seed=self.seed_field, options=self.options)

    def checked_items(self, content: bytes, model: str | None = None) -> tuple[list[Item], Refusal | None]:
        """The items of an input file, and what makes the batch fail."""
        try:
            items = self.read_items(content, model)
        except Refusal as refusal:
            return [], refusal
        twice = doubled(items)
        if twice is not None:
            return items, Refusal(400, f"The custom_id '{twice}' appears more than once.", "duplicate_custom_id")
        return items, self.too_many(items, len(content))

    def make_files(self, batch: Batch, outcomes: Sequence[Outcome]) -> None:
        """Store the results of a batch that has ended: those with an answer in one file, all others in another."""
        good = [self.line(each) for each in outcomes if each.kind == "answer"]
        named = outcomes if self.names_undone else [each for each in outcomes if each.kind in ("answer", "error")]
        bad = [self.line(each) for each in named if each.kind != "answer"]
        for role, results in (("output", good), ("error", bad)):
            if results:
                name = f"{batch.id}_{role}.jsonl"
                batch.kept[role] = self.stored(batch.account, name, "batch_output", lines(results)).id

    def results(self, batch: Batch) -> dict[str, str]:
        """Ids of the files of results, once they are there."""
        if batch.phase(self.queue.now_s) in ENDED - {"failed"} and not batch.kept:
            self.make_files(batch, self.queue.outcomes(batch))
        return batch.kept

    def line(self, outcome: Outcome) -> dict[str, Any]:
        """A line of a file of results."""
        raise NotImplementedError
