"""A chat-completions server on loopback that misbehaves on purpose, the same way every time, and counts what it sends.

It speaks the OpenAI dialect, so that real clients can be driven through everything providers do to them: limits,
errors, broken connections, broken replies, refusals. The true reply to a request depends on its messages and its
seed alone; the faults it meets depend on these and on the number of the try.

In a test it runs in a thread of the process, ``with StubProvider() as stub: ... stub.base_url``; a benchmark runs it
as a process of its own, ``python -m tests.support.provider --latency 0.2``, which prints its address and ends
when its standard input does.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import socket
import struct
import sys
import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy as np
from aiohttp import web

from opinionsim.foundation.streams import stream
from opinionsim.messages import ChatMessage
from tests.support.provider_answers import body_of, error, error_of, rate_limited, reply_of
from tests.support.provider_faults import Exchange, Faults, StubRequest, drawn
from tests.support.provider_replies import Replier, plain_reply, request_identity


@dataclass(eq=False, repr=False)
class StubProvider:
    """An OpenAI-compatible server on loopback with faults, latencies and limits of its own.

    It answers ``POST /v1/chat/completions`` (not streaming) and, for stubs that run as a process of their own,
    ``GET /statistics``. Use it as a context manager. All public attributes may be replaced while it runs, so that a
    test can make a provider change under its client.

    Parameters
    ----------
    reply : callable
        ``reply(messages, seed) -> str``: :func:`plain_reply` by default, :func:`scripted_reply` for simulations.
    latency : float or callable
        Seconds before an answer, or a function of a numpy Generator that draws them; equal requests draw the
        same at the same try. A 429 comes at once.
    faults : Faults
        What goes wrong; nothing by default.
    model : str or callable
        Name of the model that replies carry, or a function of the number of replies already sent. The system
        fingerprint follows it.
    rate : float, optional
        Requests per second that are let in, by a token bucket; others get a 429 that says when to come again.
    burst : int
        Requests the bucket holds, >= 1.
    max_in_flight : int, optional
        Requests that are let in at one time; others get a 429.
    api_key : str, optional
        The key a client must show. A wrong one is quoted in full in the error, as careless servers do.
    unsupported : collection of str
        Parameters of the request's body, such as ``temperature``, that are refused with status 400.
    tokens : callable, optional
        ``tokens(messages) -> {token: log probability}``: the likeliest first tokens, for requests that ask for them.
        By default there are none.
    cached : float
        Share of the prompt's tokens that the usage reports as cached, in [0, 1].
    room : callable
        ``room(request) -> bool``: whether the flexible tier has room for a request that asks for it; others get a 429.
    seed : int
        Root of the stub's own draws of latencies and faults.

    Attributes
    ----------
    base_url : str
        Address for clients, ``http://127.0.0.1:PORT/v1``; there once the stub is entered.
    log : list of Exchange
        Every exchange that has ended, in the order of their ends.
    peak_in_flight : int
        Largest number of requests that were let in and not yet answered at one time.
    """

    reply: Replier = plain_reply
    _: KW_ONLY
    latency: float | Callable[[np.random.Generator], float] = 0.0
    faults: Faults = field(default_factory=Faults)
    model: str | Callable[[int], str] = "stub-1"
    rate: float | None = None
    burst: int = 1
    max_in_flight: int | None = None
    api_key: str | None = None
    unsupported: Collection[str] = ()
    tokens: Callable[[tuple[ChatMessage, ...]], Mapping[str, float]] | None = None
    cached: float = 0.0
    room: Callable[[StubRequest], bool] = lambda request: True
    seed: int = 0

    def __post_init__(self) -> None:
        self.base_url = ""
        self.log: list[Exchange] = []
        self.peak_in_flight = 0
        self._attempts: Counter[str] = Counter()
        self._streak: Counter[str] = Counter()
        self._replies = 0
        self._in_flight = 0
        self._tokens, self._filled_s = float(self.burst), -math.inf
        self._error: BaseException | None = None

    # --- what it counted ---------------------------------------------------------------------------------

    @property
    def in_flight(self) -> int:
        """Requests let in and not yet answered, at this moment."""
        return self._in_flight

    @property
    def served(self) -> Counter[str]:
        """Whole replies written, by the identity of the request."""
        return Counter(each.request.identity for each in list(self.log) if each.served)

    @property
    def paid_twice(self) -> dict[str, int]:
        """Requests that got a whole reply more than once, and how often."""
        return {identity: count for identity, count in self.served.items() if count > 1}

    @property
    def played(self) -> Counter[str]:
        """How often each kind of fault was played."""
        return Counter(each.fault for each in list(self.log) if each.fault is not None)

    @property
    def authorizations(self) -> set[str]:
        """Every authorization header that was seen."""
        return {each.request.authorization for each in list(self.log)}

    def statistics(self) -> dict[str, Any]:
        """The counts as JSON can hold them."""
        served = self.served
        return {
            "requests": len(self.log),
            "served": sum(served.values()),
            "different": len(served),
            "peak_in_flight": self.peak_in_flight,
            "played": dict(self.played),
        }

    # --- its life ----------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        """Listen on any free port of loopback."""
        ready: Future[int] = Future()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(ready)), name="opinionsim-stub", daemon=True
        )
        self._thread.start()
        self.base_url = f"http://127.0.0.1:{ready.result()}/v1"
        return self

    def __exit__(self, *_: object) -> None:
        """Stop: connections are closed, requests under way get no answer.

        Raises
        ------
        Exception
            What the reply function, the plan or the latency raised meanwhile.
        """
        self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join()
        if self._error is not None:
            raise self._error

    async def _serve(self, ready: Future[int]) -> None:
        self._loop, self._closing = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application(client_max_size=1 << 26)
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_get("/statistics", self._statistics)
        # A client that gives up ends its handler, so that a hang is over and no longer in flight.
        runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.01)
        try:
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0, backlog=1024)
            await site.start()
            ready.set_result(runner.addresses[0][1])
        except Exception as error:
            ready.set_exception(error)
        else:
            await self._closing.wait()
        finally:
            await runner.cleanup()

    # --- what it answers ---------------------------------------------------------------------------------

    async def _statistics(self, _: web.Request) -> web.Response:
        return web.json_response(self.statistics())

    async def _complete(self, http: web.Request) -> web.StreamResponse:
        began = asyncio.get_running_loop().time()
        try:
            body = await http.json()
            messages = tuple(ChatMessage(each["role"], _text(each["content"])) for each in body["messages"])
        except (AttributeError, KeyError, TypeError, ValueError):
            return error(400, "The body is no chat completion request.", "invalid_body")
        seed = body.get("seed")
        identity = request_identity(messages, seed)
        authorization = http.headers.get("Authorization", "")
        model = str(body.get("model", ""))
        request = StubRequest(messages, seed, identity, self._attempts[identity], model, authorization, body)
        refusal = self._refusal(body, request)
        if refusal is not None:
            return await self._send(http, refusal, request, None, began)
        if body.get("service_tier") == "flex" and not self.room(request):
            full = error(429, "Resource Unavailable", "resource_unavailable")
            return await self._send(http, full, request, "no-room", began)
        wait_s = self._over_limit()
        if wait_s is not None:
            return await self._send(http, rate_limited(wait_s), request, "over-limit", began)
        self._attempts[identity] += 1
        self._in_flight += 1
        self.peak_in_flight = max(self.peak_in_flight, self._in_flight)
        try:
            return await self._play(http, request, began)
        finally:
            self._in_flight -= 1

    def _refusal(self, body: dict[str, Any], request: StubRequest) -> web.Response | None:
        """The answer to a request with a wrong key, or for what the stub does not do."""
        shown = request.authorization.removeprefix("Bearer ")
        if self.api_key is not None and shown != self.api_key:
            return error(401, f"Incorrect API key provided: {shown}.", "invalid_api_key")
        for name in (*self.unsupported, *(["stream"] if body.get("stream") else [])):
            if name in body:
                return error(400, f"Unsupported parameter: {name!r}.", "unsupported_parameter", param=name)
        return None

    def _over_limit(self) -> float | None:
        """Seconds to wait for a request that exceeds a limit; None lets it in."""
        if self.max_in_flight is not None and self._in_flight >= self.max_in_flight:
            return self.faults.retry_after_s or 0.0
        if self.rate is None:
            return None
        now = asyncio.get_running_loop().time()
        self._tokens = min(float(self.burst), self._tokens + (now - self._filled_s) * self.rate)
        self._filled_s = now
        if self._tokens < 1:
            return (1 - self._tokens) / self.rate
        self._tokens -= 1
        return None

    async def _play(self, http: web.Request, request: StubRequest, began: float) -> web.StreamResponse:
        """Let a request meet its fault, if it has one, and its true reply otherwise."""
        kind: str | None = None
        try:
            kind = self._kind(request)
            if kind not in ("rate-limited", "quota"):
                await asyncio.sleep(self._latency(request))
            answer = error_of(kind, request.model, self.faults.retry_after_s) or self._reply(kind, request)
            return await self._send(http, answer, request, kind, began)
        except (asyncio.CancelledError, ConnectionError):
            self._record(request, kind, None, began)
            raise
        except Exception as error:  # of the functions the stub was given: its end raises it
            self._error = self._error or error
            raise

    def _kind(self, request: StubRequest) -> str | None:
        """The fault of this try: planned, or drawn for the try, or drawn for the request."""
        faults, identity = self.faults, request.identity
        planned = faults.planned(request)
        if planned is not None:
            return planned
        kind = drawn(faults.tries, self._rng("fault of a try", identity, request.attempt)) if faults.tries else None
        if kind is not None and kind not in faults.HARMLESS:
            self._streak[identity] += 1
            if self._streak[identity] <= faults.in_a_row:
                return kind
        self._streak[identity] = 0
        own = drawn(faults.requests, self._rng("fault of a request", identity)) if faults.requests else None
        return own or (kind if kind in faults.HARMLESS else None)

    def _latency(self, request: StubRequest) -> float:
        if callable(self.latency):
            return float(self.latency(self._rng("latency", request.identity, request.attempt)))
        return self.latency

    def _rng(self, purpose: str, *key: Any) -> np.random.Generator:
        return stream(self.seed, purpose, 0, *key)

    def _name(self) -> str:
        return self.model(self._replies) if callable(self.model) else self.model

    def _reply(self, kind: str | None, request: StubRequest) -> web.Response:
        asked = self.tokens is not None and request.options.get("logprobs")
        tokens = self.tokens(request.messages) if self.tokens is not None and asked else {}
        reply = max(tokens, key=tokens.__getitem__) if tokens else self.reply(request.messages, request.seed)
        return reply_of(kind, request, reply, self._name(), self.cached, tokens)

    async def _send(
        self, http: web.Request, answer: web.Response, request: StubRequest, kind: str | None, began: float
    ) -> web.StreamResponse:
        """Write an answer in the way of its kind; it counts once it is written to its end."""
        if kind in ("reset", "disconnect", "cut", "hang", "stall"):
            await _break(http, answer, kind)
        sent: web.StreamResponse = answer
        rest = b""
        if kind == "trickle":
            sent, rest = _begun(answer), body_of(answer)
        await sent.prepare(http)
        while len(rest) > _PIECE:
            await asyncio.sleep(self.faults.trickle_s * _PIECE / len(body_of(answer)))
            await sent.write(rest[:_PIECE])
            rest = rest[_PIECE:]
        await sent.write_eof(rest)  # raises where the client is gone before the last byte
        self._record(request, kind, answer.status, began)
        return sent

    def _record(self, request: StubRequest, kind: str | None, status: int | None, began: float) -> None:
        served = status == 200 and kind not in Faults.TRANSPORT
        self._replies += served
        self.log.append(Exchange(request, kind, status, served, began))


#: Bytes in each piece of a trickled body.
_PIECE = 64
#: Time a client has to read half a body: a reset throws away what was not read.
_READING_S = 0.02


def _text(content: Any) -> str:
    """The text of a message, given as a text or as parts of which some are texts."""
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in content or () if part.get("type") == "text")


def _begun(answer: web.Response) -> web.StreamResponse:
    """An answer of the same length, to be written in pieces."""
    length = str(len(body_of(answer)))
    return web.StreamResponse(headers={"Content-Type": answer.content_type, "Content-Length": length})


async def _break(http: web.Request, answer: web.Response, kind: str) -> None:
    """Leave a client without the end of its answer; ends by cancellation, when the connection does."""
    if kind in ("cut", "stall"):
        part = _begun(answer)
        await part.prepare(http)
        await part.write(body_of(answer)[: len(body_of(answer)) // 2])
        await asyncio.sleep(_READING_S)
    transport = http.transport
    if transport is None:
        raise ConnectionResetError("the client is gone")
    if kind in ("reset", "cut"):
        # With this option the connection ends by a reset instead of an orderly end of the stream.
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
    elif kind == "disconnect":
        transport.close()
    await asyncio.Event().wait()


def main() -> None:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.provider", description=__doc__)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before an answer")
    with StubProvider(latency=parser.parse_args().latency) as stub:
        sys.stdout.write(stub.base_url + "\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
