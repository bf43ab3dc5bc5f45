"""The viewer: the contents of a store as JSON for one page that draws them; it only reads."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from http import HTTPStatus
from inspect import signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sse_starlette import EventSourceResponse
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from opinionsim import watching
from opinionsim.errors import OpinionSimError, SpecError, StoreError
from opinionsim.foundation.templates import templates
from opinionsim.store import AbsentError, Store, StoreReader, load, open_store
from opinionsim.web._guard import Guard, cookie_name, set_cookie, static
from opinionsim.web._rights import Keys, hashed, new_key

#: Seconds for which an answer holds: as many times as long as it took, but at least and at most so many.
_REST, _LEAST_S, _MOST_S = 10, 0.3, 10.0
#: Answers that are kept.
_KEPT = 32
#: Seconds between two looks at a run.
_LOOK_S = 0.5
#: Most digits of a number, and most characters of a text, in an address.
_DIGITS, _CHARACTERS = 9, 1000
_SIGN_IN = "Please open the link that the terminal of the viewer shows; it works once."

#: What answers, by path.
_ANSWERS: Mapping[str, Callable[..., Mapping[str, Any]]] = {
    "/experiments": watching.experiments,
    "/experiments/{experiment}": watching.experiment,
    "/experiments/{experiment}/colours": watching.colours,
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
    """A store that is shown, with its most recent answers.

    Parameters
    ----------
    url : str
        Address of the store.

    Attributes
    ----------
    url : str
        Address of the store.
    keys : Keys
        The link and the cookies.
    known : dict
        Colours that were computed (:func:`opinionsim.watching.colours`).

    Raises
    ------
    StoreError
        If the store cannot be read.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.keys = Keys()
        self.known: dict[Any, float | None] = {}
        self._asking = threading.Lock()
        self._store: Store | None = open_store(url, write=False)
        #: Until when an answer holds, and the answer; the oldest first.
        self._answers: dict[Any, tuple[float, Any]] = {}

    def close(self) -> None:
        """Close the store."""
        with self._asking:
            self._close()

    def _close(self) -> None:
        if self._store is not None:
            self._store.close()
        self._store = None
        self.known.clear()
        self._answers.clear()

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
            self._close()
            raise

    def standing(self, run_id: str) -> watching.Standing:
        """How far a run is recorded."""
        found: watching.Standing = self.asked(("run", run_id), lambda reader: watching.standing(reader, run_id))
        return found


def application(viewer: Viewer, hosts: frozenset[str]) -> Starlette:
    """The application of the viewer.

    Parameters
    ----------
    viewer : Viewer
        The store that is shown.
    hosts : frozenset of str
        Names, with ports, under which the server may be reached.
    """
    pages = templates("opinionsim.web")

    def page(template: str, status: int = 200, **values: Any) -> Response:
        content = pages.get_template(template).render(**values)
        return Response(content, status, media_type="text/html; charset=utf-8")

    def may(request: Request) -> bool:
        return viewer.keys.visitor(request.cookies.get(cookie_name(request), ""), []).owner

    def owned(endpoint: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        """An endpoint that only the owner may use."""

        async def checked(request: Request) -> Response:
            if not may(request):
                raise HTTPException(401, _SIGN_IN)
            return await endpoint(request)

        return checked

    def data(path: str, function: Callable[..., Mapping[str, Any]]) -> Route:
        """A route that answers with JSON."""

        def told(request: Request) -> bytes:
            given = _arguments(function, request)
            # What has been added since makes it another question.
            now: Any = viewer.standing(given["run"]) if "run" in given else None
            if function is watching.colours:
                given["known"] = viewer.known
                now = len(viewer.known)
            key = request.url.path, request.url.query, now
            return bytes(viewer.asked(key, lambda reader: _json(function(reader, **given))))

        async def endpoint(request: Request) -> Response:
            return Response(await run_in_threadpool(told, request), media_type="application/json")

        return Route(f"/data{path}", owned(endpoint))

    async def outcome(request: Request) -> Response:
        given = _arguments(watching.experiment, request)
        key = request.url.path, request.url.query
        content = await run_in_threadpool(viewer.asked, key, lambda _: _outcome(viewer.url, **given))
        return Response(content, media_type="image/svg+xml")

    async def home(request: Request) -> Response:
        return page("view.html", title="opinionsim")

    async def enter(request: Request) -> Response:
        response = RedirectResponse("/", 303)
        if not may(request):
            key = new_key()
            if viewer.keys.enter(request.path_params["key"], hashed(key)) is None:
                raise HTTPException(404, f"This link is not valid, or it has been used already. {_SIGN_IN}")
            set_cookie(response, request, key)
        return response

    async def live(request: Request) -> Response:
        return EventSourceResponse(_changes(viewer, request.path_params["run"], request), ping=15)

    def failed(request: Request, error: Exception) -> Response:
        status, problem = _problem(error)
        if request.url.path.startswith(("/data", "/live")):
            return Response(_json({"problem": problem}), status, media_type="application/json")
        return page("notice.html", status, title="Not possible", notice=problem)

    return Starlette(
        routes=[
            Route("/", owned(home)),
            Route("/enter/{key}", enter),
            *(data(path, function) for path, function in _ANSWERS.items()),
            Route("/outcome/{experiment}", owned(outcome)),
            Route("/live/{run}", owned(live)),
            static(),
        ],
        middleware=[Middleware(Guard, hosts=hosts, scheme="http")],
        exception_handlers={HTTPException: failed, OpinionSimError: failed, Exception: failed},
    )


async def _changes(viewer: Viewer, run_id: str, request: Request) -> AsyncIterator[dict[str, str]]:
    """Tell a viewer that something has been added to a run, until it goes away."""
    last = request.query_params.get("since", "")
    state = None
    while True:
        try:
            found = await run_in_threadpool(viewer.standing, run_id)
        except OpinionSimError as error:
            yield {"event": "lost", "data": json.dumps({"problem": _problem(error)[1]})}
            return
        known = f"{found.generation}.{found.seq}"
        if (known, found.state) != (last, state):
            last, state = known, found.state
            yield {"event": "change", "id": known, "data": json.dumps(found._asdict())}
        await asyncio.sleep(_LOOK_S)


def _outcome(url: str, experiment: str, design: int | None = None) -> bytes:
    """The figure of the outcome of an experiment as SVG."""
    from opinionsim.plots import outcome, save

    with TemporaryDirectory() as folder:
        return save(outcome(load(url, experiment, design=design)), Path(folder, "outcome.svg")).read_bytes()


def _problem(error: Exception) -> tuple[int, str]:
    """Status and sentence of an error."""
    if isinstance(error, HTTPException):
        own = error.detail != HTTPStatus(error.status_code).phrase
        return error.status_code, error.detail if own else "There is nothing at this address."
    if isinstance(error, OpinionSimError):
        kinds = ((AbsentError, 404), (StoreError, 503))
        return next((status for kind, status in kinds if isinstance(error, kind)), 400), str(error)
    return 500, f"The server failed to answer ({type(error).__name__}); please report this error."


def _json(content: Mapping[str, Any]) -> bytes:
    """JSON in ASCII, for texts may hold characters that no encoding has."""
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


def _arguments(function: Callable[..., Any], request: Request) -> dict[str, Any]:
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
