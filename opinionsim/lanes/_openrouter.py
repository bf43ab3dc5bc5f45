"""Batches of OpenRouter: requests go with the submission, and batches have no names and cannot be cancelled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from opinionsim.lanes._inline import InlineBatches
from opinionsim.lanes._openai import URL, done_of, read_result
from opinionsim.lanes._protocol import BadLine, Look, Request, Result
from opinionsim.lanes._wire import Wire
from opinionsim.registry import part

if TYPE_CHECKING:
    from opinionsim.llm import ModelClient

_HOME = "https://openrouter.ai/api/v1"
_ENDED = frozenset(("completed", "failed", "expired", "cancelled"))


@part(kind="lane", name="openrouter")
class OpenRouterBatches(InlineBatches):
    """Batches of OpenRouter."""

    most_calls: ClassVar[int] = 5_000
    most_bytes: ClassVar[int] = 190_000_000
    needs: ClassVar[tuple[str, ...]] = ("_create_message_dicts", "_create_chat_result", "openrouter_api_key")

    def __init__(self, client: ModelClient) -> None:
        super().__init__(client)
        key = self.model.openrouter_api_key.get_secret_value()
        self.wire = Wire(self.model.openrouter_api_base or _HOME, {"Authorization": f"Bearer {key}"})

    async def submit(self, token: str, file: str, requests: Sequence[Request]) -> str:
        """Submit a batch and return its id; the server reads the body as it comes, the requests last."""
        asked = [{"custom_id": each.custom_id, "body": each.body} for each in requests]
        body = {"endpoint": URL, "model": requests[0].body["model"], "completion_window": "24h", "requests": asked}
        return str((await self.wire.json("POST", "/batches", body=body))["id"])

    async def page(self, after: str) -> tuple[list[dict[str, Any]], bool]:
        """A page of batches, newest first, and whether more follow."""
        found = await self.wire.json("GET", "/batches", params={"limit": 100, **({"after": after} if after else {})})
        return found["data"], bool(found.get("has_more"))

    def facts(self, batch: Mapping[str, Any]) -> tuple[int, float, bool]:
        """Number of calls of a listed batch, when it was created, and whether it has ended."""
        return (batch.get("request_counts") or {}).get("total", 0), batch["created_at"], batch["status"] in _ENDED

    async def look(self, batch_id: str) -> Look:
        """What the provider says of a batch."""
        found = await self.wire.json("GET", f"/batches/{batch_id}")
        status, reason = found["status"], (found.get("error") or {}).get("message") or ""
        state = "failed" if status == "failed" else "ended" if status in _ENDED else "open"
        return Look(state, done_of(found), found.get("expires_at"), reason, "limit" in reason.lower(), found)

    async def fetch(self, batch_id: str, look: Look | None) -> Sequence[Result | BadLine]:
        """The results, which come with the batch once it has ended."""
        found = await self.wire.json("GET", f"/batches/{batch_id}") if look is None else look.found
        return [read_result(each) for each in found.get("results") or []]
