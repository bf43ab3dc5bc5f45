"""The HTTP transport of OpenAI-compatible clients: aiohttp, one set of connections for each event loop."""

from __future__ import annotations

import asyncio
import atexit
import importlib
import os
import zlib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress
from functools import cache
from typing import Any

from opinionsim.errors import SpecError

#: Above any number of calls in flight: slots are what limits calls. None would mean aiohttp's own limit of 100.
_CONNECTIONS = 100_000
#: Seconds an idle connection is kept: below the 5 s after which uvicorn, the server of vLLM and of `transformers
#: serve`, closes its end. A request sent into a connection that is just being closed is lost.
_KEPT_S = 3.0
#: Seconds the connections may take to close when the process ends.
_CLOSING_S = 2.0

#: Longest reply that is read where a model says nothing else, bytes: far above any text, far below what fills a memory.
MAX_REPLY_BYTES = 8_000_000

#: The connections of each event loop, and what closes them with the loop.
_open: dict[asyncio.AbstractEventLoop, tuple[Any, AsyncGenerator[None, None]]] = {}
#: Connections of a parent process: they are its own to close.
_inherited: list[Any] = []


def _forget() -> None:
    """Begin anew in a forked child."""
    _inherited.append(dict(_open))
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


class ReplyTooLong(Exception):
    """A reply that is longer than the bound of its model; the base class determines the kind of failure."""

    def __init__(self, most: int) -> None:
        super().__init__(
            f"a reply is longer than {most:,} bytes, unpacked, and was cut off; raise model.max_reply_bytes if the "
            "model should answer at such length"
        )


async def _unpacked(pieces: AsyncIterator[bytes], encoding: str, most: int) -> AsyncGenerator[bytes, None]:
    """The pieces of a reply without its compression; no piece is unpacked beyond `most` bytes of the whole."""
    unpacker = None if encoding in ("", "identity") else zlib.decompressobj(zlib.MAX_WBITS | 32)
    left = most
    async for packed in pieces:
        piece = packed if unpacker is None else unpacker.decompress(packed, left + 1)
        left -= len(piece)
        if left < 0:
            raise ReplyTooLong(most)
        yield piece


@cache
def fast_client(max_reply_bytes: int) -> Any:
    """An ``http_async_client`` for OpenAI clients, shared by all models and usable on any event loop.

    It handles twice as many calls per second as the default transport. It opens connections when a loop first sends a
    request, and closes them when the loop or the process ends normally.

    Parameters
    ----------
    max_reply_bytes : int
        Longest reply that is read, bytes without compression.

    Returns
    -------
    httpx.AsyncClient
        A client of the httpx that the installed openai package uses.

    Raises
    ------
    SpecError
        If aiohttp, or an openai package that can use it, is not installed.
    """
    openai = importlib.import_module("openai")
    # Recent releases of openai are built on httpx2, earlier ones on httpx.
    base = next(each for each in openai.DefaultAsyncHttpxClient.__mro__ if each.__name__ == "AsyncClient")
    httpx = importlib.import_module(base.__module__.partition(".")[0])
    # Clients below that never send get a transport that does nothing: the usual one makes a TLS context.
    unused = httpx.AsyncBaseTransport()
    try:
        openai.DefaultAioHttpClient(transport=unused)
    except (AttributeError, RuntimeError):
        raise SpecError(
            "OpenAI-compatible models need aiohttp, which is not installed; use pip install 'opinionsim[llm]', or pass "
            "a model with its own http_async_client"
        ) from None
    limits = httpx.Limits(
        max_connections=_CONNECTIONS, max_keepalive_connections=_CONNECTIONS, keepalive_expiry=_KEPT_S
    )

    class LoopClient(openai.DefaultAsyncHttpxClient):  # type: ignore[misc, name-defined]
        """Builds requests itself and sends them through the connections of the running loop."""

        async def send(self, request: Any, *, stream: bool = False, **options: Any) -> Any:
            loop = asyncio.get_running_loop()
            if loop not in _open:
                client = openai.DefaultAioHttpClient(limits=limits, follow_redirects=False)
                keeper = _until_closed(loop, client)
                _open[loop] = client, keeper
                await anext(keeper)
            request.headers["accept-encoding"] = "gzip"  # of the encodings that can be unpacked up to a bound
            try:
                response = await _open[loop][0].send(request, stream=True, **options)
            except httpx.ConnectTimeout as error:
                # Every lost connection is reported as a time-out; only aiohttp's own error tells them apart.
                if isinstance(error.__cause__, TimeoutError):
                    raise
                raise httpx.ConnectError(str(error), request=request) from error.__cause__
            response.stream = BoundedStream(response.stream, response.headers.pop("content-encoding", ""))
            if not stream:
                try:
                    await response.aread()
                finally:
                    await response.aclose()
            return response

    class BoundedStream(httpx.AsyncByteStream):  # type: ignore[misc, name-defined]
        """The body of a response, unpacked and read up to the bound."""

        def __init__(self, packed: Any, encoding: str) -> None:
            self._packed, self._encoding = packed, encoding.strip().lower()

        def __aiter__(self) -> AsyncIterator[bytes]:
            if self._encoding not in ("", "identity", "gzip", "deflate"):
                raise httpx.DecodingError(f"the reply has the encoding {self._encoding!r}, which was not requested")
            return _unpacked(aiter(self._packed), self._encoding, max_reply_bytes)

        async def aclose(self) -> None:
            await self._packed.aclose()

    return LoopClient(transport=unused)


async def _until_closed(loop: asyncio.AbstractEventLoop, client: Any) -> AsyncGenerator[None, None]:
    """Close a client's connections with its loop: loops that end in order first close their generators."""
    try:
        yield
    finally:
        _open.pop(loop, None)
        await client.aclose()


@atexit.register
def _close_all() -> None:
    """Close what loops in other threads hold, so that nothing is reported as left open."""
    for loop, (_, keeper) in list(_open.items()):
        if loop.is_running():
            with suppress(Exception):
                asyncio.run_coroutine_threadsafe(keeper.aclose(), loop).result(_CLOSING_S)
