"""Common to all pages: access, headers of answers, templates and static files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: Most bytes of a request: far more than any text that a person writes.
MOST_BYTES = 1 << 20
#: Most requests of one cookie at a time, pages that are followed among them: more than a browser makes.
_MOST_AT_ONCE = 32
#: Seconds that a cookie of a visitor is kept: a seat may wait for weeks.
_COOKIE_S = 90 * 86400
#: Headers of every answer: nothing from another host, nothing kept, nothing told to another host, no frame around it.
HEADERS = {
    "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


def static() -> Mount:
    """The route of static files."""
    return Mount("/static", StaticFiles(directory=Path(__file__).parent / "static"), name="static")


def cookie_name(request: Request) -> str:
    """Name of a visitor's cookie; it includes the port because browsers send cookies to all servers of a machine."""
    return f"opinionsim-{request.url.port or {'http': 80, 'https': 443}[request.url.scheme]}"


def set_cookie(response: Response, request: Request, key: str) -> None:
    """Give a visitor its cookie."""
    secure = request.url.scheme == "https"
    response.set_cookie(cookie_name(request), key, max_age=_COOKIE_S, httponly=True, samesite="lax", secure=secure)


async def fields(request: Request) -> dict[str, str]:
    """The fields of a form that was sent.

    Raises
    ------
    HTTPException
        If it is damaged, or contains a file.
    """
    try:
        form = await request.form(max_files=0, max_fields=500)
    except ValueError:
        raise HTTPException(400, "What was sent cannot be read.") from None
    return {name: value for name, value in form.items() if isinstance(value, str)}


class Guard:
    """Refuses requests that use a foreign name, come from a foreign page, or are too large or too many; adds headers.

    Parameters
    ----------
    app : ASGIApp
        The application that answers.
    hosts : frozenset of str
        Names, with ports, under which the server is reached.
    scheme : str
        ``http`` or ``https``.
    """

    def __init__(self, app: ASGIApp, hosts: frozenset[str], scheme: str) -> None:
        self._app = app
        self._hosts = hosts
        self._scheme = scheme
        self._under_way = Counter[str]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        request = Request(scope, receive)
        if problem := self._problem(request):
            return await Response(problem[1], problem[0], headers=HEADERS)(scope, receive, send)
        if request.method == "HEAD":
            # Programs that look at a link ahead of a person ask for its head, which uses up and opens nothing.
            return await Response(headers=HEADERS)(scope, receive, send)
        taken = 0

        async def bounded() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > MOST_BYTES:
                raise HTTPException(413, "This is too long to send.")
            return message

        async def headed(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *own]
            await send(message)

        cookie = request.cookies.get(cookie_name(request), "")
        if cookie and self._under_way[cookie] >= _MOST_AT_ONCE:
            return await Response("Too many pages are open; close some.", 429, headers=HEADERS)(scope, receive, send)
        self._under_way[cookie] += 1
        try:
            await self._app(scope, bounded, headed)
        finally:
            self._under_way[cookie] -= 1
            # What nobody needs is not remembered.
            self._under_way += Counter()

    def _problem(self, request: Request) -> tuple[int, str] | None:
        """Status and sentence of a request that is refused; None for others."""
        host = request.headers.get("host", "")
        if host not in self._hosts:
            return 421, "This server does not have that name."
        origin = request.headers.get("origin")
        if origin is None:
            # Pages are opened without an origin.
            same = request.method in ("GET", "HEAD") or request.headers.get("sec-fetch-site") == "same-origin"
        else:
            same = origin == f"{self._scheme}://{host}"
        return None if same else (403, "The request came from a page of another server and was refused.")
