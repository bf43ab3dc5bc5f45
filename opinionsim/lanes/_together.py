"""Batches of Together: OpenAI's dialect with another way of uploading, and without names of batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from opinionsim.lanes._openai import URL, OpenAIBatches
from opinionsim.lanes._protocol import Look, Request, Sought
from opinionsim.lanes._wire import Wire, WireError, unix_time
from opinionsim.registry import part

_OPEN = frozenset(("VALIDATING", "IN_PROGRESS"))


@part(kind="lane", name="together")
class TogetherBatches(OpenAIBatches):
    """Batches of Together."""

    most_bytes: ClassVar[int] = 95_000_000

    async def upload(self, token: str, requests: Sequence[Request]) -> str:
        """Upload the input file to the address that the provider names, and return its id."""
        form = {"purpose": "batch-api", "file_name": f"{token}.jsonl", "file_type": "jsonl"}
        try:
            await self.wire.form("/files", form)
        except WireError as answer:
            if answer.status_code != 302:
                raise
            place, name = answer.headers["Location"], answer.headers["X-Together-File-Id"]
        # The provider refuses a file with the content of an earlier one, as of a batch that has expired.
        content = self.lines(requests).replace(":", ":" + " " * int(token[-2:], 16), 1)
        await Wire(place, {}).text("PUT", "", data=content.encode())
        await self.wire.text("POST", f"/files/{name}/preprocess")
        return str(name)

    async def submit(self, token: str, file: str, requests: Sequence[Request]) -> str:
        """Submit a batch and return its id."""
        asked = {"input_file_id": file, "endpoint": URL, "completion_window": "24h"}
        return str((await self.wire.json("POST", "/batches", body=asked))["job"]["id"])

    async def find(self, sought: Sought) -> str | None:
        """The id of the batch with the input file."""
        listed = await self.wire.json("GET", "/batches")
        return next((str(each["id"]) for each in listed if each["input_file_id"] == sought.file), None)

    async def look(self, batch_id: str) -> Look:
        """What the provider says of a batch; it counts no calls."""
        found = await self.wire.json("GET", f"/batches/{batch_id}")
        status = found["status"]
        state = "open" if status in _OPEN else "failed" if status == "FAILED" else "ended"
        reason: Any = found.get("error") or ""
        return Look(state, 0, unix_time(found.get("job_deadline")), str(reason), "limit" in str(reason).lower(), found)
