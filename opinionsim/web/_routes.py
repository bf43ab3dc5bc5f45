"""The application of the room: its routes, and who may use them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from opinionsim.errors import OpinionSimError, StoreError
from opinionsim.web import _pages
from opinionsim.web._guard import Guard, cookie_name, fields, set_cookie, static
from opinionsim.web._open_room import Room
from opinionsim.web._rights import RIGHTS, hashed, new_key

#: What answers: a coroutine function where it awaits something, otherwise run in a thread.
Page = Callable[[Room, Request], Any]


def application(room: Room, hosts: frozenset[str], scheme: str = "http") -> Starlette:
    """The application of a room.

    Parameters
    ----------
    room : Room
        The experiment, its store, and its visitors.
    hosts : frozenset of str
        Names, with ports, under which the server may be reached.
    scheme : str
        ``http`` or ``https``.
    """

    def route(path: str, page: Page, *methods: str) -> Route:
        name = page.__name__
        return Route(path, _guarded(room, name, page), name=name, methods=list(methods or ("GET",)))

    async def told(request: Request, error: Exception) -> Response:
        status, problem = (error.status_code, error.detail) if isinstance(error, HTTPException) else (400, str(error))
        return room.page("notice.html", status=status, title="Not possible", notice=problem)

    own = "/sessions/{run}"
    return Starlette(
        routes=[
            route("/", _pages.home),
            route("/enter/{key}", _pages.enter, "GET", "POST"),
            route(own, _pages.session),
            route(f"{own}/live", _pages.live),
            route(f"{own}/consent", _pages.consent, "GET", "POST"),
            route(f"{own}/debriefing", _pages.debriefing, "GET", "POST"),
            route("/withdrawal", _pages.withdrawal, "GET", "POST"),
            route(f"{own}/seat", _pages.seat),
            route(f"{own}/beside/{{kind}}", _pages.beside),
            route(f"{own}/answer", _pages.answer, "POST"),
            route(f"{own}/signal", _pages.signal, "POST"),
            route(f"{own}/invite", _pages.invite, "POST"),
            route(f"{own}/sit", _pages.sit, "POST"),
            route(f"{own}/handle", _pages.handle, "POST"),
            route(f"{own}/download/{{form}}", _pages.download),
            route("/settings", _pages.settings, "GET", "POST"),
            static(),
        ],
        middleware=[Middleware(Guard, hosts=hosts, scheme=scheme)],
        exception_handlers={HTTPException: told, OpinionSimError: told},
    )


def _guarded(room: Room, name: str, page: Page) -> Callable[[Request], Awaitable[Response]]:
    """A page as a route calls it: the visitor known, its right to the page checked, its cookie set."""

    async def endpoint(request: Request) -> Response:
        cookie = request.cookies.get(cookie_name(request), "")
        known = room.held
        visitor = await run_in_threadpool(room.visitor, cookie) if known is None else room.keys.visitor(cookie, known)
        # A cookie that nobody here has given is not taken over.
        given = cookie if visitor.known else new_key()
        run_id = str(request.path_params.get("run", ""))
        if not visitor.may(name, run_id):
            raise HTTPException(*((403, _pages.NOT_YOURS) if visitor.known else (401, _pages.SIGN_IN)))
        if run_id in visitor.owing and "seat" in RIGHTS[name] and name != "consent":
            if request.method == "POST":
                raise StoreError("You must give your consent first.")
            return RedirectResponse(request.url_for("consent", run=run_id), 303)
        if run_id in visitor.gone and not visitor.owner and "seat" in RIGHTS[name] and name != "debriefing":
            return RedirectResponse(request.url_for("debriefing", run=run_id), 303)
        request.state.visitor, request.state.key = visitor, hashed(given)
        request.state.given = await fields(request) if request.method == "POST" else {}
        waits = iscoroutinefunction(page)
        response: Response = await (page(room, request) if waits else run_in_threadpool(page, room, request))
        if not visitor.known and name == "enter":
            set_cookie(response, request, given)
        return response

    return endpoint
