"""Batches of OpenAI and of servers that speak its dialect: an input file, a batch, and a file of results."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from opinionsim.errors import SpecError
from opinionsim.lanes._protocol import BadLine, BatchLane, Look, Request, Result, Sought
from opinionsim.lanes._wire import Wire, WireError, read_lines
from opinionsim.registry import part

if TYPE_CHECKING:
    from opinionsim.llm import ModelClient

#: Where single calls of a batch go.
URL = "/v1/chat/completions"
#: The key of the batch's token in its metadata.
MARK = "opinionsim"
#: States that are no end.
_OPEN = frozenset(("validating", "in_progress", "finalizing", "cancelling"))
#: Codes of items that were not executed.
_NOT_EXECUTED = frozenset(("batch_expired", "batch_cancelled"))
#: Seconds by which the clocks of provider and machine may differ.
CLOCKS_S = 3600.0


@part(kind="lane", name="openai")
class OpenAIBatches(BatchLane):
    """Batches of OpenAI's dialect, for LangChain classes that hold its client."""

    most_bytes: ClassVar[int] = 190_000_000
    uploads: ClassVar[bool] = True
    needs: ClassVar[tuple[str, ...]] = ("root_async_client", "_get_request_payload", "_create_chat_result")

    def __init__(self, client: ModelClient) -> None:
        super().__init__(client)
        self.wire = self.connect()
        if "messages" not in self.body(self.model, [import_module("langchain_core.messages").HumanMessage("?")], {}):
            raise SpecError(
                f"{client.name} is asked through the Responses API, for which there are no batches "
                "here; leave out the options that need it, or choose another lane"
            )

    def connect(self) -> Wire:
        """The provider, with the address and key of the model."""
        return Wire.of(self.model.root_async_client)

    def result(self, reply: Any) -> Any:
        """LangChain's ``ChatResult`` of the body of a response."""
        kind = import_module("openai.types.chat").ChatCompletion
        try:
            found = kind.model_validate(reply)
        except ValueError:  # some servers leave fields out
            found = kind.construct(**reply)
        return super().result(found)

    def line(self, request: Request) -> dict[str, Any]:
        """A line of the input file."""
        return {"custom_id": request.custom_id, "method": "POST", "url": URL, "body": request.body}

    def lines(self, requests: Sequence[Request]) -> str:
        """The input file."""
        return "".join(json.dumps(self.line(each)) + "\n" for each in requests)

    async def upload(self, token: str, requests: Sequence[Request]) -> str:
        """Upload the input file and return its id."""
        sent = await self.wire.form("/files", {"purpose": "batch"}, f"{token}.jsonl", self.lines(requests))
        return str(sent["id"])

    async def submit(self, token: str, file: str, requests: Sequence[Request]) -> str:
        """Submit a batch with its token as metadata, and return its id."""
        asked = {"input_file_id": file, "endpoint": URL, "completion_window": "24h", "metadata": {MARK: token}}
        return str((await self.wire.json("POST", "/batches", body=asked))["id"])

    async def find(self, sought: Sought) -> str | None:
        """The id of the batch whose metadata has the token."""
        async for each in self.listed():
            if (each.get("metadata") or {}).get(MARK) == sought.token:
                return str(each["id"])
            if each["created_at"] < sought.created_at - CLOCKS_S:
                break
        return None

    async def listed(self) -> AsyncIterator[dict[str, Any]]:
        """The batches of the account, newest first."""
        params: dict[str, Any] = {"limit": 100}
        while True:
            page = await self.wire.json("GET", "/batches", params=params)
            for each in page["data"]:
                yield each
            if not page.get("has_more") or not page["data"]:
                return
            params["after"] = page["data"][-1]["id"]

    async def look(self, batch_id: str) -> Look:
        """What the provider says of a batch."""
        found = await self.wire.json("GET", f"/batches/{batch_id}")
        problems = (found.get("errors") or {}).get("data") or []
        reason = "; ".join(str(each.get("message") or each.get("code")) for each in problems[:3])
        crowded = any(each.get("code") == "token_limit_exceeded" for each in problems)
        status = found["status"]
        state = "open" if status in _OPEN else "failed" if status == "failed" else "ended"
        return Look(state, done_of(found), found.get("expires_at"), reason, crowded, found)

    async def fetch(self, batch_id: str, look: Look) -> Sequence[Result | BadLine]:
        """The results of the output file and of the error file."""
        found: list[Result | BadLine] = []
        for name in filter(None, (look.found.get("output_file_id"), look.found.get("error_file_id"))):
            for line in read_lines(await self.wire.text("GET", f"/files/{name}/content")):
                found.append(line if isinstance(line, BadLine) else read_result(line))
        return found

    async def cancel(self, batch_id: str) -> None:
        """Ask the provider to end a batch early."""
        await self.wire.json("POST", f"/batches/{batch_id}/cancel")

    async def revoke(self, file: str) -> None:
        """Delete the input file."""
        try:
            await self.wire.text("DELETE", f"/files/{file}")
        except WireError as error:
            if error.status_code != 404:
                raise


def done_of(batch: Mapping[str, Any]) -> int:
    """Number of calls that are done."""
    counts = batch.get("request_counts") or {}
    return int(counts.get("completed") or 0) + int(counts.get("failed") or 0)


def read_result(line: Mapping[str, Any]) -> Result:
    """A result of OpenAI's dialect."""
    custom_id, response, error = str(line.get("custom_id")), line.get("response"), line.get("error")
    response = response if isinstance(response, Mapping) else {}
    body, status = response.get("body"), response.get("status_code")
    status = status if isinstance(status, int) else 0
    if 200 <= status < 300 and isinstance(body, Mapping):
        return Result(custom_id, body)
    if isinstance(error, Mapping) and _NOT_EXECUTED & {error.get("code"), error.get("type"), error.get("error_type")}:
        return Result(custom_id)
    told = body.get("error") if isinstance(body, Mapping) else None
    return Result(custom_id, None, status, error or told or body or "no reply and no error")
