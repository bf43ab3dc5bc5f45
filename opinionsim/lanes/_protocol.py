"""The batch queue of a provider: what a part of kind ``lane`` does."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from opinionsim.errors import SpecError

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from opinionsim.llm import ModelClient


#: Runs, and calls of a run, that are under way at a time: all that is ready should go out together.
OPEN_RUNS = 2_000


class Request(NamedTuple):
    """A call in a batch."""

    custom_id: str
    """Its name, 32 hexadecimal digits."""
    body: Mapping[str, Any]
    """JSON values, as the provider takes them for a single call."""


class Sought(NamedTuple):
    """A batch that may have been submitted before the process ended."""

    token: str
    created_at: float
    """Unix time shortly before its submission."""
    custom_ids: Collection[str]
    file: str
    """Name of its input file; empty if it has none."""
    others: Collection[str] = ()
    """Ids of batches on record, which it is not."""


class Look(NamedTuple):
    """What a provider says of a batch."""

    state: str
    """``open``, ``ended`` if there may be results, or ``failed`` if the provider refused the batch as a whole."""
    done: int = 0
    """Number of calls that are done."""
    expires_at: float | None = None
    """Unix time at which the provider gives up, if it says so."""
    reason: str = ""
    """Why the batch failed."""
    crowded: bool = False
    """Whether it failed only because too much is in the provider's queue."""
    found: Any = None
    """What :meth:`BatchLane.fetch` needs to know of it."""


class Result(NamedTuple):
    """What a batch brings for a call: a reply, an error, or neither if the batch ended before its turn came."""

    custom_id: str
    reply: Any = None
    """The body of the provider's response to a single call."""
    status: int = 0
    """HTTP status of an error."""
    error: Any = None
    """The provider's error."""


class BadLine(NamedTuple):
    """A line or an item of results that cannot be read."""

    problem: str


class ItemError(Exception):
    """An error that a provider reports for one call of a batch."""

    says_it_all = True

    def __init__(self, result: Result) -> None:
        error = result.error
        told = error.get("message") if isinstance(error, Mapping) else None
        super().__init__(str(told or error or f"status {result.status}"))
        code = error.get("code") if isinstance(error, Mapping) else None
        self.status_code, self.body = result.status or (code if isinstance(code, int) else None), error


class BatchLane:
    """The batch queue of a provider; the base of parts of kind ``lane``.

    A part needs :meth:`submit`, :meth:`find`, :meth:`look` and :meth:`fetch`. Its methods raise whatever the provider's
    client raises: the package repeats what failed for a passing reason.

    Parameters
    ----------
    client : ModelClient
        The model; its `model` is the LangChain chat model with key and address.

    Attributes
    ----------
    most_calls, most_bytes : int
        Limits of one batch.
    cancels : bool
        Whether :meth:`cancel` works.
    needs : tuple of str
        Attributes of LangChain's class without which the part does not work.
    uploads : bool
        Whether :meth:`upload` makes an input file; without one, requests are sent with the submission.

    Raises
    ------
    SpecError
        If the model cannot be asked through batches.
    """

    most_calls: ClassVar[int] = 50_000
    most_bytes: ClassVar[int] = 100_000_000
    cancels: ClassVar[bool] = True
    uploads: ClassVar[bool] = False
    needs: ClassVar[tuple[str, ...]] = ()

    def __init__(self, client: ModelClient) -> None:
        self.model: Any = client.model
        lacking = [name for name in self.needs if not hasattr(self.model, name)]
        if lacking:
            raise SpecError(
                f"LangChain's class {type(self.model).__name__} has no {lacking[0]}, which batches need; choose "
                "another lane for this model, or install another version of its package"
            )

    def body(self, model: Any, messages: Sequence[BaseMessage], options: Mapping[str, Any]) -> Mapping[str, Any]:
        """The body of a single call, from `model`, which is the chat model or a copy with the seed of the call."""
        if hasattr(model, "_get_request_payload"):
            body = dict(model._get_request_payload(list(messages), **options))
        else:
            dictated, parameters = model._create_message_dicts(list(messages), None)
            body = {"messages": dictated, **parameters, **options}
        further = body.pop("extra_body", None) or {}
        return {name: value for name, value in {**body, **further}.items() if value is not None}

    def result(self, reply: Any) -> Any:
        """LangChain's ``ChatResult`` of the body of a response."""
        return self.model._create_chat_result(reply)

    def size(self, request: Request) -> int:
        """Bytes of a call in a batch."""
        return len(json.dumps(request.body)) + 200

    async def upload(self, token: str, requests: Sequence[Request]) -> str:
        """Upload the input file of a batch, if the provider wants one, and return its name; empty if not."""
        return ""

    async def submit(self, token: str, file: str, requests: Sequence[Request]) -> str:
        """Submit a batch, with `token` as its name if the provider takes one, and return its id."""
        raise NotImplementedError

    async def find(self, sought: Sought) -> str | None:
        """The id of a batch that was submitted before; None if there is none, empty if one may turn out to be it."""
        raise NotImplementedError

    async def look(self, batch_id: str) -> Look:
        """What the provider says of a batch now."""
        raise NotImplementedError

    async def fetch(self, batch_id: str, look: Look) -> Sequence[Result | BadLine]:
        """The results of a batch that has ended."""
        raise NotImplementedError

    async def cancel(self, batch_id: str) -> None:
        """Ask the provider to end a batch early; what is done can be fetched."""
        raise NotImplementedError

    async def revoke(self, file: str) -> None:
        """Delete an input file, so that no batch can begin from it any more."""
        raise NotImplementedError
