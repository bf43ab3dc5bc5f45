"""Batches of Anthropic: requests go with the submission, and batches have no names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from opinionsim.errors import SpecError
from opinionsim.lanes._inline import InlineBatches
from opinionsim.lanes._protocol import BadLine, Look, Request, Result
from opinionsim.lanes._wire import Wire, read_lines, unix_time
from opinionsim.registry import part

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from opinionsim.llm import ModelClient

_PATH = "/messages/batches"
#: HTTP statuses of the errors that results name.
_STATUS = {"rate_limit_error": 429, "overloaded_error": 529, "api_error": 500, "timeout_error": 408}
#: Fields of a body that only a request of its own can have.
_ALONE = ("betas", "extra_headers")


@part(kind="lane", name="anthropic")
class AnthropicBatches(InlineBatches):
    """Message batches of Anthropic."""

    most_calls: ClassVar[int] = 100_000
    most_bytes: ClassVar[int] = 250_000_000
    cancels: ClassVar[bool] = True
    needs: ClassVar[tuple[str, ...]] = ("_async_client", "_get_request_payload", "_format_output")

    def __init__(self, client: ModelClient) -> None:
        super().__init__(client)
        self.wire = Wire.of(self.model._async_client, "/v1")
        body = self.body(self.model, [import_module("langchain_core.messages").HumanMessage("?")], {})
        if named := [name for name in _ALONE if name in body]:
            raise SpecError(f"{client.name}: batches take no {named[0]}; leave out the options that need it")

    def body(self, model: Any, messages: Sequence[BaseMessage], options: Mapping[str, Any]) -> Mapping[str, Any]:
        """The body of a single call."""
        return {name: value for name, value in super().body(model, messages, options).items() if name != "stream"}

    def result(self, reply: Any) -> Any:
        """LangChain's ``ChatResult`` of a message."""
        return self.model._format_output(import_module("anthropic.types").Message.construct(**reply))

    async def submit(self, token: str, file: str, requests: Sequence[Request]) -> str:
        """Submit a batch and return its id."""
        asked = [{"custom_id": each.custom_id, "params": each.body} for each in requests]
        return str((await self.wire.json("POST", _PATH, body={"requests": asked}))["id"])

    async def page(self, after: str) -> tuple[list[dict[str, Any]], bool]:
        """A page of batches, newest first, and whether more follow."""
        found = await self.wire.json("GET", _PATH, params={"limit": 100, **({"after_id": after} if after else {})})
        return found["data"], bool(found.get("has_more"))

    def facts(self, batch: Mapping[str, Any]) -> tuple[int, float, bool]:
        """Number of calls of a listed batch, when it was created, and whether it has ended."""
        ended = batch["processing_status"] == "ended"
        return sum(batch["request_counts"].values()), unix_time(batch["created_at"]) or 0.0, ended

    async def look(self, batch_id: str) -> Look:
        """What the provider says of a batch; it counts what is done at the end."""
        found = await self.wire.json("GET", f"{_PATH}/{batch_id}")
        counts = found["request_counts"]
        state = "ended" if found["processing_status"] == "ended" else "open"
        return Look(state, counts["succeeded"] + counts["errored"], unix_time(found["expires_at"]), found=found)

    async def fetch(self, batch_id: str, look: Look | None) -> Sequence[Result | BadLine]:
        """The results of a batch that has ended."""
        lines = read_lines(await self.wire.text("GET", f"{_PATH}/{batch_id}/results"))
        return [line if isinstance(line, BadLine) else _result(line) for line in lines]

    async def cancel(self, batch_id: str) -> None:
        """Ask the provider to end a batch early."""
        await self.wire.json("POST", f"{_PATH}/{batch_id}/cancel")


def _result(line: Mapping[str, Any]) -> Result:
    custom_id, result = str(line.get("custom_id")), line.get("result") or {}
    if result.get("type") == "succeeded":
        return Result(custom_id, result["message"])
    if result.get("type") in ("canceled", "expired"):
        return Result(custom_id)
    error = (result.get("error") or {}).get("error") or result.get("error") or "no reply and no error"
    kind = error.get("type", "") if isinstance(error, Mapping) else ""
    return Result(custom_id, None, _STATUS.get(kind, 400), error)
