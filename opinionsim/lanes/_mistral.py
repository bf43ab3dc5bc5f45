"""Batches of Mistral: an input file, a job, and a file of results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from opinionsim.lanes._openai import MARK, URL, OpenAIBatches
from opinionsim.lanes._protocol import Look, Request, Sought
from opinionsim.lanes._wire import Wire
from opinionsim.registry import part

_JOBS = "/batch/jobs"
_OPEN = frozenset(("QUEUED", "RUNNING", "CANCELLATION_REQUESTED"))
_HOURS = 24


@part(kind="lane", name="mistralai")
class MistralBatches(OpenAIBatches):
    """Batches of Mistral."""

    needs: ClassVar[tuple[str, ...]] = ("async_client", "_create_message_dicts", "_create_chat_result")

    def connect(self) -> Wire:
        """The provider, with the address and key of the model."""
        client = self.model.async_client
        return Wire(str(client.base_url), dict(client.headers))

    def result(self, reply: Any) -> Any:
        """LangChain's ``ChatResult`` of the body of a response."""
        return self.model._create_chat_result(reply)

    def line(self, request: Request) -> dict[str, Any]:
        """A line of the input file."""
        return {"custom_id": request.custom_id, "body": request.body}

    async def submit(self, token: str, file: str, requests: Sequence[Request]) -> str:
        """Submit a job with the token of the batch as metadata, and return its id."""
        asked = {"input_files": [file], "endpoint": URL, "model": requests[0].body["model"], "timeout_hours": _HOURS}
        return str((await self.wire.json("POST", _JOBS, body={**asked, "metadata": {MARK: token}}))["id"])

    async def find(self, sought: Sought) -> str | None:
        """The id of the job whose metadata has the token."""
        page = 0
        while True:
            found = (await self.wire.json("GET", _JOBS, params={"page": page, "page_size": 100}))["data"]
            for each in found:
                if (each.get("metadata") or {}).get(MARK) == sought.token:
                    return str(each["id"])
            if not found:
                return None
            page += 1

    async def look(self, batch_id: str) -> Look:
        """What the provider says of a job."""
        found = await self.wire.json("GET", f"{_JOBS}/{batch_id}")
        status, done = found["status"], int(found.get("completed_requests") or 0)
        reason = "; ".join(str(each.get("message")) for each in (found.get("errors") or [])[:3])
        state = "open" if status in _OPEN else "failed" if status == "FAILED" and not done else "ended"
        files = {"output_file_id": found.get("output_file"), "error_file_id": found.get("error_file")}
        return Look(state, done, found["created_at"] + 3600.0 * _HOURS, reason, "limit" in reason.lower(), files)

    async def cancel(self, batch_id: str) -> None:
        """Ask the provider to end a job early."""
        await self.wire.json("POST", f"{_JOBS}/{batch_id}/cancel")
