"""Batches of Groq, which speaks OpenAI's dialect through a client of its own."""

from __future__ import annotations

from typing import Any, ClassVar

from opinionsim.lanes._openai import OpenAIBatches
from opinionsim.lanes._wire import Wire
from opinionsim.registry import part


@part(kind="lane", name="groq")
class GroqBatches(OpenAIBatches):
    """Batches of Groq."""

    most_bytes: ClassVar[int] = 95_000_000
    needs: ClassVar[tuple[str, ...]] = ("async_client", "_create_message_dicts", "_create_chat_result")

    def connect(self) -> Wire:
        """The provider, with the address and key of the model."""
        return Wire.of(self.model.async_client._client, "/openai/v1")

    def result(self, reply: Any) -> Any:
        """LangChain's ``ChatResult`` of the body of a response."""
        return self.model._create_chat_result(reply, {})
