"""A chat-completions server on this machine that remembers every request: its headers and its body."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, Self

from aiohttp import web


class Loopback:
    """Answers with a text made from the request, on a thread of its own.

    Parameters
    ----------
    together : int
        Answers are held until this many requests are there at once.
    status : int
        What it answers with.
    say : callable
        Reply and further fields of the response, from the body of a request.
    """

    def __init__(
        self, *, together: int = 1, status: int = 200, say: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    ) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self._together, self._status = together, status
        self._say = say or (lambda body: {"text": f"reply to {body['messages'][-1]['content']}"})
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    def __enter__(self) -> Self:
        self._thread.start()
        self._runner, port = self._run(self._start())
        self.base_url = f"http://127.0.0.1:{port}/v1"
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._runner.cleanup())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _start(self) -> tuple[web.AppRunner, int]:
        self._arrived, self._all_there = 0, asyncio.Event()
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self._answer)
        app.router.add_post("/v1/messages", self._answer)
        app.router.add_post("/api/chat", self._answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, backlog=1024)
        await site.start()
        return runner, runner.addresses[0][1]

    async def _answer(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.bodies.append(body)
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        self._arrived += 1
        if self._arrived >= self._together:
            self._all_there.set()
        await self._all_there.wait()
        if self._status != 200:
            return web.json_response({"error": {"message": "not now"}}, status=self._status)
        said = self._say(body)
        message = {"role": "assistant", "content": said.pop("text")}
        return web.json_response(
            {
                "id": "1",
                "object": "chat.completion",
                "created": 0,
                "model": body["model"],
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
                **said,
            }
        )
