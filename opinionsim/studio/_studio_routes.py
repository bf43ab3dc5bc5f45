"""The application of a studio or a viewer: its routes, and who may use them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from opinionsim.errors import OpinionSimError
from opinionsim.studio import _results_pages, _study_pages
from opinionsim.studio._open_studio import Studio
from opinionsim.studio._page_address import PageAddress
from opinionsim.studio._viewing import Endpoint, as_json, problem_of, routes
from opinionsim.web import Guard, cookie_name, fields, hashed, new_key, set_cookie, static

_SIGN_IN = "Please open the link that the terminal shows; it works once."

#: What answers a request for the page of a studio.
_Page = Callable[[Studio, Request], Awaitable[Response]]

#: Pages that show stores, which a viewer has too, by path.
_READ: dict[str, _Page] = {
    "/": _study_pages.home,
    "/results/{store:path}": _results_pages.results,
    "/progress/{store:path}": _results_pages.progress,
    "/part/{what}/{store:path}": _results_pages.part,
    "/figure/{name}/{store:path}": _results_pages.figure,
    "/picture/{name}/{store:path}": _results_pages.picture,
    "/numbers/{name}/{store:path}": _results_pages.numbers,
    "/csv/{name}/{store:path}": _results_pages.csv,
    "/runs/{store:path}": _results_pages.runs,
    "/changes": _results_pages.changes,
    "/study/{study:path}": _study_pages.study,
    "/state/{study:path}": _study_pages.state,
    "/made/{file:path}": _study_pages.made,
}
#: What only a studio has, and changes or starts something.
_WRITE: dict[str, _Page] = {
    "/new": _study_pages.new,
    "/check/{study:path}": _study_pages.check,
    "/save/{study:path}": _study_pages.save_text,
    "/allow/{study:path}": _study_pages.allow,
    "/do/{act}/{study:path}": _study_pages.do,
}


def application(studio: Studio, hosts: frozenset[str]) -> Starlette:
    """The application of a studio or a viewer.

    Parameters
    ----------
    studio : Studio
        What it shows.
    hosts : frozenset of str
        Names, with ports, under which the server may be reached.
    """

    def may(request: Request) -> bool:
        return studio.keys.visitor(request.cookies.get(cookie_name(request), ""), []).owner

    def owned(endpoint: Endpoint) -> Endpoint:
        async def checked(request: Request) -> Response:
            if not may(request):
                raise HTTPException(401, _SIGN_IN)
            return await endpoint(request)

        return checked

    def of(page: _Page) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            request.state.owner = True
            request.state.given = await fields(request) if request.method == "POST" else {}
            return await page(studio, request)

        return owned(endpoint)

    async def section(request: Request) -> Response:
        visitor = studio.keys.visitor(request.cookies.get(cookie_name(request), ""), [])
        own = PageAddress(request.path_params["store"], "", dict(request.query_params))
        # Guests may move about on their page, which is what `at` is for.
        if not (visitor.owner or own.address(f"section/{request.path_params['name']}", at="") in visitor.watches):
            raise HTTPException(401, _SIGN_IN)
        request.state.owner = visitor.owner
        request.state.given = await fields(request) if request.method == "POST" else {}
        return await _results_pages.section(studio, request)

    async def enter(request: Request) -> Response:
        place, cookie = studio.first, request.cookies.get(cookie_name(request), "")
        known, key = bool(cookie and studio.keys.visitor(cookie, []).known), cookie
        if not may(request):
            key = cookie if known else new_key()
            scope = studio.keys.enter(request.path_params["key"], hashed(key))
            if scope is None:
                # A guest who comes back by the link.
                scope = min(studio.keys.visitor(cookie, []).watches, default=None)
            if scope is None:
                raise HTTPException(404, f"This link is not valid, or it has been used already. {_SIGN_IN}")
            place = scope or studio.first
        response = RedirectResponse(place, 303)
        if not known and key:
            set_cookie(response, request, key)
        return response

    def failed(request: Request, error: Exception) -> Response:
        status, problem = problem_of(error)
        if request.url.path.startswith(("/data", "/live", "/check")) or "json" in request.headers.get("accept", ""):
            return Response(as_json({"problem": problem}), status, media_type="application/json")
        if request.url.path.startswith(("/part", "/figure", "/numbers", "/progress", "/state")):
            return _results_pages.page("lacking.html", status, text=problem)
        return _results_pages.page("problem.html", status, title="Not possible", text=problem)

    return Starlette(
        routes=[
            Route("/enter/{key}", enter),
            *(Route(path, of(page)) for path, page in _READ.items()),
            *(Route(path, of(page), methods=["POST"]) for path, page in _WRITE.items() if studio.may_write),
            Route("/section/{name}/{store:path}", section, methods=["GET", "POST"]),
            *routes(studio.viewer, owned),
            Mount("/studio", StaticFiles(directory=Path(__file__).parent / "static")),
            static(),
        ],
        middleware=[Middleware(Guard, hosts=hosts, scheme="http")],
        exception_handlers={HTTPException: failed, OpinionSimError: failed, Exception: failed},
    )
