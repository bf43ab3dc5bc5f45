"""Batches of Gemini: requests go with the submission, which has a name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from opinionsim.errors import SpecError
from opinionsim.lanes._protocol import BadLine, BatchLane, Look, Request, Result, Sought
from opinionsim.lanes._wire import Wire
from opinionsim.registry import part

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from opinionsim.llm import ModelClient

_HOME = "https://generativelanguage.googleapis.com"
#: Names of the API for the options of LangChain's class that batches pass on.
_OPTIONS = {
    "temperature": "temperature",
    "max_output_tokens": "maxOutputTokens",
    "top_p": "topP",
    "top_k": "topK",
    "seed": "seed",
}
#: Options that say who answers where, and how replies get back.
_OTHERS = frozenset(
    (
        *("model", "google_api_key", "base_url", "client", "max_retries", "timeout", "cache", "n", "streaming"),
        *("metadata", "default_metadata", "profile", "tags", "name", "verbose"),
    )
)
_OPEN = frozenset(("BATCH_STATE_PENDING", "BATCH_STATE_RUNNING", "BATCH_STATE_UNSPECIFIED"))
_HOURS = 48


@part(kind="lane", name="google_genai")
class GeminiBatches(BatchLane):
    """Batches of the Gemini API, with texts alone."""

    most_bytes: ClassVar[int] = 19_000_000
    needs: ClassVar[tuple[str, ...]] = ("google_api_key", "model")

    def __init__(self, client: ModelClient) -> None:
        super().__init__(client)
        fields, stated = type(self.model).model_fields, self.model.model_fields_set - _OPTIONS.keys() - _OTHERS
        usual = {name: fields[name].get_default(call_default_factory=True, validated_data={}) for name in stated}
        if unknown := sorted(name for name in stated if getattr(self.model, name) != usual[name]):
            raise SpecError(f"{client.name}: batches do not pass on the option {unknown[0]}; leave it out")
        key = self.model.google_api_key.get_secret_value()
        home = getattr(self.model, "base_url", None) or _HOME
        self.wire = Wire(f"{str(home).rstrip('/')}/v1beta", {"x-goog-api-key": key})

    def body(self, model: Any, messages: Sequence[BaseMessage], options: Mapping[str, Any]) -> Mapping[str, Any]:
        """The body of a single call."""
        roles = {"human": "user", "ai": "model"}
        contents = [
            {"role": roles[each.type], "parts": [{"text": str(each.text)}]} for each in messages if each.type in roles
        ]
        system = [{"text": str(each.text)} for each in messages if each.type == "system"]
        stated = {name: options.get(name, getattr(model, name, None)) for name in _OPTIONS}
        config = {_OPTIONS[name]: value for name, value in stated.items() if value is not None}
        body = {"contents": contents, "generationConfig": config}
        return {**body, "systemInstruction": {"parts": system}} if system else body

    def result(self, reply: Any) -> Any:
        """LangChain's ``ChatResult`` of a response."""
        from langchain_core.messages import AIMessage
        from langchain_core.outputs import ChatGeneration, ChatResult

        choice = (reply.get("candidates") or [{}])[0]
        parts = [each for each in (choice.get("content") or {}).get("parts") or [] if each.get("text")]
        said = "".join(each["text"] for each in parts if not each.get("thought"))
        thought = "".join(each["text"] for each in parts if each.get("thought"))
        blocked = (reply.get("promptFeedback") or {}).get("blockReason")
        message = AIMessage(
            said,
            additional_kwargs={"reasoning_content": thought} if thought else {},
            usage_metadata=_usage(reply.get("usageMetadata") or {}),
        )
        about = {"finish_reason": choice.get("finishReason") or blocked or "", "model_name": reply.get("modelVersion")}
        return ChatResult(generations=[ChatGeneration(message=message, generation_info=about)])

    async def submit(self, token: str, file: str, requests: Sequence[Request]) -> str:
        """Submit a batch with its token as name, and return its id."""
        asked = [{"request": each.body, "metadata": {"key": each.custom_id}} for each in requests]
        batch = {"displayName": token, "inputConfig": {"requests": {"requests": asked}}}
        model = str(self.model.model).removeprefix("models/")
        found = await self.wire.json("POST", f"/models/{model}:batchGenerateContent", body={"batch": batch})
        return str(found["name"])

    async def find(self, sought: Sought) -> str | None:
        """The id of the batch with the token as name."""
        params: dict[str, Any] = {"pageSize": 100}
        while True:
            page = await self.wire.json("GET", "/batches", params=params)
            for each in page.get("operations") or []:
                if (each.get("metadata") or {}).get("displayName") == sought.token:
                    return str(each["name"])
            if not page.get("nextPageToken"):
                return None
            params["pageToken"] = page["nextPageToken"]

    async def look(self, batch_id: str) -> Look:
        """What the provider says of a batch; it states no expiry, which is 48 hours after creation."""
        found = await self.wire.json("GET", f"/{batch_id}")
        about = found.get("metadata") or found
        state, stats = about["state"].replace("JOB_STATE", "BATCH_STATE"), about.get("batchStats") or {}
        done = int(stats.get("successfulRequestCount") or 0) + int(stats.get("failedRequestCount") or 0)
        reason = str((found.get("error") or {}).get("message") or "")
        kind = "open" if state in _OPEN else "failed" if state == "BATCH_STATE_FAILED" else "ended"
        return Look(kind, done, None, reason, "quota" in reason.lower(), {**about, "response": found.get("response")})

    async def fetch(self, batch_id: str, look: Look) -> Sequence[Result | BadLine]:
        """The results, which come with the batch once it has ended."""
        output = look.found.get("output") or look.found["response"] or {}
        answers = (output.get("inlinedResponses") or {}).get("inlinedResponses") or []
        return [_result(each) for each in answers]

    async def cancel(self, batch_id: str) -> None:
        """Ask the provider to end a batch early."""
        await self.wire.text("POST", f"/{batch_id}:cancel")


#: HTTP statuses of the codes of errors; 1 is for calls that were not made.
_STATUS = {3: 400, 4: 504, 7: 403, 8: 429, 13: 500, 14: 503, 16: 401}


def _result(answer: Mapping[str, Any]) -> Result:
    custom_id, error = str((answer.get("metadata") or {}).get("key")), answer.get("error")
    if error is None:
        return Result(custom_id, answer.get("response") or {})
    code = int(error.get("code") or 0)
    return Result(custom_id) if code == 1 else Result(custom_id, None, _STATUS.get(code, code), error)


def _usage(counted: Mapping[str, Any]) -> Any:
    """Tokens as LangChain counts them; reasoning is part of the output."""
    given, thought = counted.get("promptTokenCount"), counted.get("thoughtsTokenCount") or 0
    if given is None:
        return None
    said = (counted.get("candidatesTokenCount") or 0) + thought
    details = {"input_token_details": {"cache_read": counted.get("cachedContentTokenCount") or 0}}
    return {"input_tokens": given, "output_tokens": said, "total_tokens": given + said, **details}
