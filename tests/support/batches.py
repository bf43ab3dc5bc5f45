"""A server on loopback that speaks the batch APIs of providers, misbehaves on purpose, and counts what it sells.

Each dialect lies below a path of its own, with its batches and with ordinary calls at once. What is answered to a
request depends on its messages and its seed alone, in a batch or at once.

In a test it runs in a thread of the process, ``with BatchProvider() as provider: ... provider.url("openai")``. For
clients that are killed it runs as a process of its own, ``python -m tests.support.batches --faults JSON``, which
prints its address and ends when its standard input does. Below ``/control/`` of that address, ``GET counts`` says what
was bought, ``POST faults`` replaces some faults, and ``POST advance`` lets ``{"seconds": 60}`` pass.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import threading
from collections.abc import Collection
from concurrent.futures import Future
from dataclasses import dataclass
from email import message_from_bytes
from typing import Any, Self

from aiohttp import web

from tests.support.batch_answers import sentence
from tests.support.batch_dialects import Call, Dialect, Handler
from tests.support.batch_faults import Faults
from tests.support.batch_gemini import Gemini
from tests.support.batch_inline import Anthropic, OpenRouter
from tests.support.batch_mistral_together import Mistral, Together
from tests.support.batch_openai import Groq, OpenAI
from tests.support.batch_queue import Dropped, Queue, Refusal
from tests.support.provider_replies import plain_reply, scripted_reply

DIALECTS: tuple[type[Dialect], ...] = (OpenAI, Groq, Mistral, Together, Anthropic, Gemini, OpenRouter)


@dataclass(eq=False, repr=False)
class BatchProvider(Queue):
    """A :class:`~tests.support.batch_queue.Queue` that clients reach over HTTP.

    Use it as a context manager; its counts can be read during the block and after it. A key sees only the files and
    batches that it made, by the same dialect.

    Parameters
    ----------
    keys : collection of str, optional
        The keys that are let in; by default any.
    latency : float
        Seconds before an answer at once.
    port : int
        Where it listens; 0 for any free port.
    closes : bool
        Whether it ends each connection after one answer. Some clients never notice the end of one that they keep.
    """

    keys: Collection[str] | None = None
    latency: float = 0.0
    port: int = 0
    closes: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.address = ""
        self._dialects = {each.name: each(self) for each in DIALECTS}
        self._error: BaseException | None = None

    def url(self, dialect: str) -> str:
        """Base address of a dialect for clients."""
        return f"{self.address}{self._dialects[dialect].base}"

    def __enter__(self) -> Self:
        ready: Future[int] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready)), name="batches", daemon=True)
        self._thread.start()
        self.address = f"http://127.0.0.1:{ready.result()}"
        return self

    def __exit__(self, *_: object) -> None:
        """Stop.

        Raises
        ------
        Exception
            What the answer function or a fault raised meanwhile.
        """
        self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join()
        if self._error is not None:
            raise self._error

    async def _serve(self, ready: Future[int]) -> None:
        self._loop, self._closing = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application(client_max_size=1 << 29)
        for dialect in self._dialects.values():
            for method, path, handler in dialect.routes():
                app.router.add_route(method, dialect.base + path, self._spoken(dialect, handler))
        app.router.add_get("/control/counts", self._counts)
        app.router.add_post("/control/faults", self._replace_faults)
        app.router.add_post("/control/advance", self._let_pass)
        runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.01)
        try:
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", self.port, backlog=1024)
            await site.start()
            ready.set_result(runner.addresses[0][1])
        except Exception as error:
            ready.set_exception(error)
        else:
            await self._closing.wait()
        finally:
            await runner.cleanup()

    # --- requests ----------------------------------------------------------------------------------------

    def _spoken(self, dialect: Dialect, handler: Handler) -> Any:
        """A handler of a dialect, as the server wants it."""

        async def respond(request: web.Request) -> web.StreamResponse:
            try:
                account = dialect.account(request.headers, request.query)
                if not account or (self.keys is not None and account not in self.keys):
                    raise Refusal(401, "Incorrect API key provided.", "invalid_api_key")
                call = await _call(request, account)
                sold = self.at_once.total()
                with self.standing_still():
                    response = handler(call)
                if self.closes:
                    response.force_close()
                if self.latency and self.at_once.total() > sold:
                    await asyncio.sleep(self.latency)
                return response
            except Refusal as refusal:
                return dialect.refused(refusal)
            except Dropped:
                assert request.transport is not None
                request.transport.abort()
                await asyncio.Event().wait()  # until the server ends this, since the connection has ended
                raise AssertionError("nothing ends the wait") from None
            except (ConnectionError, asyncio.CancelledError):
                raise
            except Exception as error:
                self._error = self._error or error
                raise

        return respond

    async def _counts(self, _: web.Request) -> web.Response:
        return web.json_response(self.counts())

    async def _replace_faults(self, request: web.Request) -> web.Response:
        try:
            self.faults = self.faults.changed(await request.json())
        except TypeError as error:
            raise web.HTTPBadRequest(text=str(error)) from None
        return web.json_response({})

    async def _let_pass(self, request: web.Request) -> web.Response:
        self.advance(float((await request.json())["seconds"]))
        return web.json_response({"now_s": self.now_s})


async def _call(request: web.Request, account: str) -> Call:
    """A request with all its parts read."""
    form: dict[str, str] = {}
    files: dict[str, tuple[str, bytes]] = {}
    body = await request.read()
    if request.content_type == "multipart/form-data":
        # aiohttp's own reader changes the filters of warnings, which other threads have as well.
        head = f"Content-Type: {request.headers['Content-Type']}\r\n\r\n".encode()
        for part in message_from_bytes(head + body).walk():
            name = part.get_param("name", header="content-disposition")
            content = part.get_payload(decode=True)
            if not isinstance(name, str) or not isinstance(content, bytes):
                continue
            if (called := part.get_filename()) is None:
                form[name] = content.decode()
            else:
                files[name] = called, content
        body = b""
    return Call(account, dict(request.match_info), dict(request.query), request.headers, body, form, files)


def main() -> None:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.batches", description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--faults", type=json.loads, default={}, help="faults as an object in JSON")
    parser.add_argument(
        "--delay", type=json.loads, default=0.0, help="seconds until a batch is done, or a list of them"
    )
    parser.add_argument("--scale", type=float, default=1.0, help="seconds that pass in one second; 0 to advance only")
    parser.add_argument("--refuse", type=float, default=0.0, help="share of answers that refuse")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before an answer at once")
    parser.add_argument("--page", type=int, default=20, help="most entries on a page of a list")
    parser.add_argument("--prices", type=json.loads, default=[1e-6, 4e-6], help="of a token of a prompt, of an answer")
    parser.add_argument("--answer", choices=("sentence", "plain", "scripted"), default="sentence")
    given = vars(parser.parse_args())
    answers = {"sentence": lambda: sentence, "plain": lambda: plain_reply, "scripted": scripted_reply}
    answer, faults = answers[given.pop("answer")](), Faults().changed(given.pop("faults"))
    with BatchProvider(answer, faults=faults, **given | {"prices": tuple(given["prices"])}) as provider:
        sys.stdout.write(provider.address + "\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
