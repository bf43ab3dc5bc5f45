"""The application: its routes, who may use them, and what every answer carries."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from opinionsim.errors import OpinionSimError
from opinionsim.web import _pages
from opinionsim.web._rights import COOKIE, hashed, new_key
from opinionsim.web._room import Room

#: Most bytes of a request: far more than any text that a person writes.
MOST_BYTES = 1 << 20
#: Seconds that a cookie of a visitor is kept: a seat may wait for weeks.
_COOKIE_S = 90 * 86400
#: Headers of every answer: nothing from another host, nothing kept, nothing told to another host, no frame around it.
_HEADERS = {
    "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_HERE = Path(__file__).parent

#: What answers: a coroutine function where it awaits something, otherwise run in a thread.
Page = Callable[[Room, Request], Any]


class _Guard:
    """Refuses requests under a foreign name, from a foreign page, or too large, and adds the headers of every answer.

    Parameters
    ----------
    app : ASGIApp
        What answers.
    hosts : frozenset of str
        Names, with ports, under which the server is reached.
    scheme : str
        ``http`` or ``https``.
    """

    def __init__(self, app: ASGIApp, hosts: frozenset[str], scheme: str) -> None:
        self._app = app
        self._hosts = hosts
        self._scheme = scheme

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        request = Request(scope, receive)
        if problem := self._problem(request):
            return await Response(problem[1], problem[0], headers=_HEADERS)(scope, receive, send)
        taken = 0

        async def bounded() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > MOST_BYTES:
                raise HTTPException(413, "This is too long to be sent.")
            return message

        async def headed(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
                message["headers"] = [*message["headers"], *own]
            await send(message)

        await self._app(scope, bounded, headed)

    def _problem(self, request: Request) -> tuple[int, str] | None:
        """Status and sentence of a request that is refused; None for others."""
        host = request.headers.get("host", "")
        if host not in self._hosts:
            return 421, "This server does not go by that name."
        if request.method in ("GET", "HEAD"):
            return None
        origin = request.headers.get("origin")
        same = request.headers.get("sec-fetch-site") == "same-origin" if origin is None else False
        if origin == f"{self._scheme}://{host}" or same:
            return None
        return 403, "This was sent from another page than the room's own, and was not taken."


def application(room: Room, hosts: frozenset[str], scheme: str = "http") -> Starlette:
    """The application of a room.

    Parameters
    ----------
    room : Room
        The experiment, its store, and who is known.
    hosts : frozenset of str
        Names, with ports, under which the server may be reached.
    scheme : str
        ``http`` or ``https``.
    """

    def route(path: str, page: Page, *methods: str) -> Route:
        name = page.__name__
        return Route(path, _guarded(room, name, page, scheme), name=name, methods=list(methods or ("GET",)))

    async def told(request: Request, error: Exception) -> Response:
        status, problem = (error.status_code, error.detail) if isinstance(error, HTTPException) else (400, str(error))
        return room.page("notice.html", status=status, title="Not possible", notice=problem)

    own = "/sessions/{run}"
    return Starlette(
        routes=[
            route("/", _pages.home),
            route("/enter/{key}", _pages.enter),
            route(own, _pages.session),
            route(f"{own}/live", _pages.live),
            route(f"{own}/consent", _pages.consent, "GET", "POST"),
            route(f"{own}/debriefing", _pages.debriefing),
            route("/withdrawal", _pages.withdrawal, "GET", "POST"),
            route(f"{own}/seat", _pages.seat),
            route(f"{own}/analysis", _pages.analysis),
            route(f"{own}/answer", _pages.answer, "POST"),
            route(f"{own}/signal", _pages.signal, "POST"),
            route(f"{own}/invite", _pages.invite, "POST"),
            route(f"{own}/sit", _pages.sit, "POST"),
            route(f"{own}/download/{{form}}", _pages.download),
            route("/settings", _pages.settings, "GET", "POST"),
            Mount("/static", StaticFiles(directory=_HERE / "static"), name="static"),
        ],
        middleware=[Middleware(_Guard, hosts=hosts, scheme=scheme)],
        exception_handlers={HTTPException: told, OpinionSimError: told},
    )


def _guarded(room: Room, name: str, page: Page, scheme: str) -> Callable[[Request], Awaitable[Response]]:
    """A page as a route calls it: the visitor known, its right to the page checked, its cookie set."""

    async def endpoint(request: Request) -> Response:
        cookie = request.cookies.get(COOKIE, "")
        given = cookie or new_key()
        visitor = await run_in_threadpool(room.visitor, cookie)
        run_id = str(request.path_params.get("run", ""))
        if not visitor.may(name, run_id):
            signed = bool(visitor.owner or visitor.seats or visitor.watches)
            raise HTTPException(403 if signed else 401, _pages.NOT_YOURS if signed else _pages.SIGN_IN)
        request.state.visitor, request.state.key = visitor, hashed(given)
        request.state.given = await _pages.fields(request) if request.method == "POST" else {}
        waits = iscoroutinefunction(page)
        response: Response = await (page(room, request) if waits else run_in_threadpool(page, room, request))
        if not cookie and name == "enter":
            response.set_cookie(
                COOKIE, given, max_age=_COOKIE_S, httponly=True, samesite="lax", secure=scheme == "https"
            )
        return response

    return endpoint
