"""The contents of stores, as JSON for the page that draws single runs; they are only read."""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from http import HTTPStatus
from inspect import signature
from pathlib import Path
from typing import Any

from sse_starlette import EventSourceResponse
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from opinionsim import watching
from opinionsim.errors import OpinionSimError, SpecError, StoreError
from opinionsim.store import AbsentError, Store, StoreReader, open_store

#: Seconds for which an answer holds: as many times as long as it took, but at least and at most so many.
_REST, _LEAST_S, _MOST_S = 10, 0.3, 10.0
#: Answers that are kept, and seconds for which a store stays open after a question.
_KEPT, _OPEN_S = 32, 3.0
#: Seconds between two looks at a run, and after which one that is under way is looked at though nothing was added: the
#: end of the process that carries it out changes nothing in the store.
_LOOK_S, _ALIVE_S = 0.5, 3.0
#: Most digits of a number, and most characters of a text, in an address.
_DIGITS, _CHARACTERS = 9, 1000

#: What answers a request.
Endpoint = Callable[[Request], Awaitable[Response]]

#: What answers, by path.
_ANSWERS: Mapping[str, Callable[..., Mapping[str, Any]]] = {
    "/search": watching.search,
    "/runs/{run}": watching.run_record,
    "/runs/{run}/turns": watching.run_turns,
    "/runs/{run}/turns/{turn}": watching.run_turn,
    "/runs/{run}/agents/{agent}": watching.run_agent,
    "/runs/{run}/metrics": watching.run_metric,
    "/runs/{run}/beyond": watching.beyond_turns,
}
#: Parameters that an address spells otherwise.
_SPELLED = {"start": "from", "text": "q"}


class Viewer:
    """A store that is shown, with its most recent answers to the page of a run.

    It is closed a few seconds after the last question: as long as somebody has it open, the process that writes it
    cannot bring its log in at the end.

    Parameters
    ----------
    url : str
        Address of the store.

    Attributes
    ----------
    url : str
        Address of the store.

    Raises
    ------
    StoreError
        If the store cannot be read.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._asking = threading.Lock()
        self._store: Store | None = open_store(url, write=False)
        self._resting: threading.Timer | None = None
        #: Until when an answer holds, and the answer; the oldest first.
        self._answers: dict[Any, tuple[float, Any]] = {}

    def close(self) -> None:
        """Close the store; the next question opens it again."""
        with self._asking:
            if self._store is not None:
                self._store.close()
            self._store = None

    def _rest(self) -> None:
        """Close the store soon, unless another question comes first."""
        if self._resting is not None:
            self._resting.cancel()
        self._resting = threading.Timer(_OPEN_S, self.close)
        self._resting.daemon = True
        self._resting.start()

    def asked(self, key: Any, question: Callable[[StoreReader], Any]) -> Any:
        """The answer of the store to a question, or a recent answer to the same question.

        Parameters
        ----------
        key : hashable
            Key that distinguishes the question from others.
        question : callable
            Function that receives the open store.

        Raises
        ------
        StoreError
            If the store cannot be read; it is opened again for the next question.
        """
        with self._asking:
            until, answer = self._answers.pop(key, (0.0, None))
            began = time.monotonic()
            if began >= until:
                answer = self._read(question)
                ended = time.monotonic()
                until = ended + min(max(_LEAST_S, _REST * (ended - began)), _MOST_S)
            self._answers[key] = until, answer
            if len(self._answers) > _KEPT:
                del self._answers[next(iter(self._answers))]
            return answer

    def _read(self, question: Callable[[StoreReader], Any]) -> Any:
        if self._store is None:
            self._store = open_store(self.url, write=False)
        try:
            return question(self._store)
        except AbsentError:
            raise
        except StoreError:
            self._store.close()
            self._store = None
            self._answers.clear()
            raise
        finally:
            self._rest()

    def standing(self, run_id: str) -> watching.Standing:
        """How far a run is recorded."""
        # An answer from before a change would hide the change from those who look again only after the next one.
        key = "run", run_id, str(mark_of(self.url))
        found: watching.Standing = self.asked(key, lambda reader: watching.standing(reader, run_id))
        return found


def routes(viewer_of: Callable[[str], Viewer], owned: Callable[[Endpoint], Endpoint]) -> Iterator[Route]:
    """The routes that answer with JSON, and tell of what is new in a run.

    Parameters
    ----------
    viewer_of : callable
        Returns the store with a name.
    owned : callable
        Makes an endpoint one that only the owner may use.
    """

    def data(path: str, function: Callable[..., Mapping[str, Any]]) -> Route:
        def told(request: Request) -> bytes:
            given, viewer = arguments(function, request), viewer_of(request.query_params.get("store", ""))
            # What has been added since makes it another question.
            now = viewer.standing(given["run"]) if "run" in given else None
            key = request.url.path, request.url.query, now
            return bytes(viewer.asked(key, lambda reader: as_json(function(reader, **given))))

        async def endpoint(request: Request) -> Response:
            return Response(await run_in_threadpool(told, request), media_type="application/json")

        return Route(f"/data{path}", owned(endpoint))

    async def live(request: Request) -> Response:
        viewer = viewer_of(request.query_params.get("store", ""))
        return EventSourceResponse(_changes(viewer, request.path_params["run"], request), ping=15)

    yield from (data(path, function) for path, function in _ANSWERS.items())
    yield Route("/live/{run}", owned(live))


def path_of(url: str) -> Path:
    """The file of a store; of a database, what takes its place where files are keys."""
    return Path(url.removeprefix("sqlite:///"))


def mark_of(url: str) -> Any:
    """What differs once a store has changed: cheap for a file; of a database nothing is known, so the half second."""
    path = url.removeprefix("sqlite:///")
    return time.monotonic() // _LOOK_S if "://" in path else [_mark(f"{path}{end}") for end in ("", "-wal")]


def _mark(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    # A process that reads a store creates an empty log and removes it again, which is no change.
    return (found.st_mtime_ns, found.st_size) if found.st_size else None


async def _changes(viewer: Viewer, run_id: str, request: Request) -> AsyncIterator[dict[str, str]]:
    """Tell a viewer that something has been added to a run, until it goes away."""
    last = request.query_params.get("since", "")
    state = mark = None
    looked = 0.0
    while True:
        now = time.monotonic()
        if mark == (mark := mark_of(viewer.url)) and (state != "under way" or now < looked + _ALIVE_S):
            await asyncio.sleep(_LOOK_S)
            continue
        looked = now
        try:
            found = await run_in_threadpool(viewer.standing, run_id)
        except OpinionSimError as error:
            yield {"event": "lost", "data": json.dumps({"problem": problem_of(error)[1]})}
            return
        known = f"{found.generation}.{found.seq}"
        if (known, found.state) != (last, state):
            last, state = known, found.state
            yield {"event": "change", "id": known, "data": json.dumps(found._asdict())}
        await asyncio.sleep(_LOOK_S)


def problem_of(error: Exception) -> tuple[int, str]:
    """Status and sentence of an error."""
    if isinstance(error, HTTPException):
        own = error.detail != HTTPStatus(error.status_code).phrase
        return error.status_code, error.detail if own else "There is nothing at this address."
    if isinstance(error, OpinionSimError):
        kinds = ((AbsentError, 404), (StoreError, 503))
        return next((status for kind, status in kinds if isinstance(error, kind)), 400), str(error)
    return 500, f"The server failed to answer ({type(error).__name__}); please report this error."


def as_json(content: Mapping[str, Any]) -> bytes:
    """JSON in ASCII, for texts may hold characters that no encoding has."""
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


def arguments(function: Callable[..., Any], request: Request) -> dict[str, Any]:
    """What an address gives of the parameters of a function that are whole numbers or texts, by their names.

    Raises
    ------
    SpecError
        If a number is none, or something is too long.
    """
    found: dict[str, Any] = {}
    for name, parameter in signature(function).parameters.items():
        spelled, kind = _SPELLED.get(name, name), str(parameter.annotation).removesuffix(" | None")
        value = str(request.path_params.get(spelled, request.query_params.get(spelled, "")))
        if not value or kind not in ("int", "str"):
            continue
        if len(value) > _CHARACTERS:
            raise SpecError(f"{spelled} has {len(value):,} characters; at most {_CHARACTERS:,} are allowed.")
        if kind == "int" and not re.fullmatch(rf"[0-9]{{1,{_DIGITS}}}", value):
            raise SpecError(f"{spelled} must be a whole number of at most {_DIGITS} digits; got {value[:40]!r}.")
        found[name] = int(value) if kind == "int" else value
    return found
