"""A chat-completions server on loopback that misbehaves on purpose, the same way every time, and counts what it sends.

It speaks the OpenAI dialect, so that real clients can be driven through everything providers do to them: limits,
errors, broken connections, broken replies, refusals. What a request is answered depends on its messages and its
seed alone; which faults it meets on the way depends on these and on how often it was asked.

In a test it runs in a thread of the process, ``with StubProvider() as stub: ... stub.base_url``; a benchmark runs it
as a process of its own, ``python -m opinionsim.testing._provider --latency 0.2``, which prints its address and ends
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
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from aiohttp import web
from langchain_core.messages import convert_to_messages

from opinionsim.errors import SpecError
from opinionsim.llm import ScriptedChatModel
from opinionsim.messages import ChatMessage
from opinionsim.opinions import OpinionScale
from opinionsim.prompts import load_pack
from opinionsim.streams import canonical_json, digest, stream

__all__ = [
    "Exchange",
    "Faults",
    "StubProvider",
    "StubRequest",
    "evenly",
    "plain_reply",
    "request_identity",
    "scripted_reply",
]

#: What a stub says: a function of the messages and the seed of a request.
Replier = Callable[[tuple[ChatMessage, ...], int | None], str]

_REFUSAL = "I would rather not write about this."
_REASONING = "They ask for a few words. I shall keep it short and say what I hold."
_OPENINGS = ("I have thought about it.", "Let me be brief.", "People ask me this often.", "It came up again today.")
_VIEWS = (
    "I believe it is true.",
    "I believe it is probably true.",
    "I am not sure either way.",
    "I doubt that it is true.",
    "I do not believe it at all.",
)
_CLOSINGS = ("That is how I see it.", "I may think again.", "Nobody told me to say so.", "We shall see.")


def request_identity(messages: Iterable[ChatMessage], seed: int | None) -> str:
    """What makes two requests the same one asked twice: equal messages and an equal seed."""
    return digest(canonical_json([[list(message) for message in messages], seed]))


def plain_reply(messages: Iterable[ChatMessage], seed: int | None) -> str:
    """Three short sentences, drawn by the identity of the request; cheap, and blind to what is asked."""
    draw = int(request_identity(messages, seed), 16)
    sentences = []
    for choices in (_OPENINGS, _VIEWS, _CLOSINGS):
        draw, index = divmod(draw, len(choices))
        sentences.append(choices[index])
    return " ".join(sentences)


def scripted_reply(
    *, pack: str = "default", scale: OpinionScale | None = None, temperature: float = 0.7, **options: Any
) -> Replier:
    """Replies of the scripted model, so that simulations through the stub give sensible texts.

    Parameters
    ----------
    pack : str
        Prompt pack whose marks the model reads.
    scale : OpinionScale, optional
        Scale it speaks on; by default that of five points.
    temperature : float
        In [0, 2]; the temperature a request names is not looked at.
    **options
        Further arguments of :class:`opinionsim.llm.ScriptedChatModel`, for instance ``preset``.

    Returns
    -------
    callable
        ``reply(messages, seed) -> str``, equal to what the scripted model says in the process.
    """
    model = ScriptedChatModel(temperature=temperature, **options).bound(load_pack(pack).marks, scale or OpinionScale())

    def reply(messages: tuple[ChatMessage, ...], seed: int | None) -> str:
        prompt = convert_to_messages([(each.role, each.content) for each in messages])
        return model._generate(prompt, seed=seed).generations[0].text

    return reply


class StubRequest(NamedTuple):
    """A request as the stub sees it."""

    messages: tuple[ChatMessage, ...]
    seed: int | None
    identity: str
    """:func:`request_identity` of the two."""
    attempt: int
    """How many requests of this identity came before, those turned away by a limit not counted."""
    model: str
    """Name of the model asked for."""
    authorization: str
    """The header, '' without one."""


class Exchange(NamedTuple):
    """A request and what became of it."""

    request: StubRequest
    fault: str | None
    """What was played, ``over-limit`` for a limit that was really exceeded, None for a plain true reply."""
    status: int | None
    """HTTP status of the answer; None where none was written to its end."""
    served: bool
    """Whether a whole reply of the model was written: what a provider charges for."""
    began_s: float
    """When the request arrived, seconds on the stub's clock."""
    ended_s: float
    """When its answer was written or its client gone."""


@dataclass(frozen=True, kw_only=True)
class Faults:
    """What goes wrong, how often, and for whom.

    Kinds, by what a client is to make of them:

    - ``Faults.TRANSPORT`` never changes what a request is answered in the end: ``rate-limited`` (429, with
      Retry-After), ``http-500``, ``http-502`` (a page in HTML), ``http-503`` (with Retry-After), ``reset`` (connection
      reset before an answer), ``disconnect`` (closed in good order before one), ``cut`` (reset in the middle of the
      body), ``hang`` (no answer until the client gives up), ``stall`` (the same in the middle of the body), and with
      status 200 ``malformed`` (JSON that stops early), ``html`` and ``no-choices`` (JSON of another kind).
    - ``Faults.CONTENT`` is the answer: ``empty``, ``truncated`` (finish reason ``length``), ``refused`` (the field
      ``refusal``, content null), ``declined`` (the text says so), ``filtered`` (finish reason ``content_filter``),
      ``blocked`` (the prompt refused with 400 and code ``content_filter``, as Azure does), ``endless-thought``
      (reasoning that reaches the limit of length before it ends).
    - ``Faults.HARMLESS`` leaves the reply true: ``trickle`` (in small pieces, slowly), ``reasoning-tags`` (reasoning
      before it, in the text), ``reasoning-field`` (in a field ``reasoning_content``).
    - ``Faults.PERMANENT`` is the same however often one asks: ``quota`` (429 ``insufficient_quota``),
      ``unauthorized`` (401), ``unknown-model`` (404), ``too-long`` (400 ``context_length_exceeded``).

    Parameters
    ----------
    tries : mapping of str to float
        Probability of each kind for each try of a request, drawn anew for every try; sum at most 1. Here
        ``Faults.CONTENT`` is a matter of the try, and asking again helps.
    requests : mapping of str to float
        Probability of each kind for a request, drawn once: all its tries meet it that are not hit otherwise.
    plan : sequence of str or None, or callable
        Goes before both: the kind for the first, second, … try of every request, or a function of the
        :class:`StubRequest`. None means no planned fault.
    in_a_row : int
        How many tries of a request in a row are hit by a fault of `tries` at most, harmless ones not counted; the
        next one is spared. >= 0.
    retry_after_s : float or None
        What 429 and 503 tell the client to wait: exact in ``retry-after-ms``, in whole seconds rounded up in
        ``retry-after``. None sends neither.
    trickle_s : float
        Time a trickled reply takes, seconds.

    Raises
    ------
    SpecError
        If a kind is not known, a probability is none, or `in_a_row` is negative.
    """

    TRANSPORT: ClassVar[tuple[str, ...]] = (
        *("rate-limited", "http-500", "http-502", "http-503", "reset", "disconnect", "cut", "hang", "stall"),
        *("malformed", "html", "no-choices"),
    )
    CONTENT: ClassVar[tuple[str, ...]] = (
        *("empty", "truncated", "refused", "declined", "filtered", "blocked", "endless-thought"),
    )
    HARMLESS: ClassVar[tuple[str, ...]] = ("trickle", "reasoning-tags", "reasoning-field")
    PERMANENT: ClassVar[tuple[str, ...]] = ("quota", "unauthorized", "unknown-model", "too-long")
    KINDS: ClassVar[tuple[str, ...]] = (*TRANSPORT, *CONTENT, *HARMLESS, *PERMANENT)

    tries: Mapping[str, float] = field(default_factory=dict)
    requests: Mapping[str, float] = field(default_factory=dict)
    plan: Sequence[str | None] | Callable[[StubRequest], str | None] = ()
    in_a_row: int = 3
    retry_after_s: float | None = 0.02
    trickle_s: float = 0.1

    def __post_init__(self) -> None:
        planned = [] if callable(self.plan) else [kind for kind in self.plan if kind is not None]
        for kind in (*self.tries, *self.requests, *planned):
            _check_kind(kind)
        for name, rates in (("tries", self.tries), ("requests", self.requests)):
            if any(not rate >= 0 for rate in rates.values()) or sum(rates.values()) > 1 + 1e-9:
                raise SpecError(f"faults: {name} must be probabilities whose sum is at most 1; got {dict(rates)}")
        if self.in_a_row < 0:
            raise SpecError(f"faults: in_a_row must be 0 or more; got {self.in_a_row}")

    def planned(self, request: StubRequest) -> str | None:
        """The kind the plan names for a request, if it names one."""
        if callable(self.plan):
            kind = self.plan(request)
            return None if kind is None else _check_kind(kind)
        return self.plan[request.attempt] if request.attempt < len(self.plan) else None


def _check_kind(kind: str) -> str:
    if kind not in Faults.KINDS:
        raise SpecError(f"faults: unknown kind {kind!r}; valid: {', '.join(Faults.KINDS)}")
    return kind


def evenly(probability: float, kinds: Collection[str]) -> dict[str, float]:
    """A probability shared out evenly over several kinds of fault."""
    return dict.fromkeys(kinds, probability / len(kinds))


def _drawn(rates: Mapping[str, float], rng: np.random.Generator) -> str | None:
    """One kind by its probability, or none."""
    left = float(rng.random())
    for kind, rate in rates.items():
        left -= rate
        if left < 0:
            return kind
    return None


class StubProvider:
    """An OpenAI-compatible server on loopback with faults, latencies and limits of its own.

    It answers ``POST /v1/chat/completions`` (not streaming), ``GET /v1/models`` and, for whoever runs it as a
    process of its own, ``GET /statistics``. Use it as a context manager. All public attributes may be replaced
    while it runs, so that a test can make a provider change under its client.

    Parameters
    ----------
    reply : callable
        ``reply(messages, seed) -> str``: :func:`plain_reply` by default, :func:`scripted_reply` for simulations.
    latency : float or callable
        Seconds before an answer, or a function of a numpy Generator that draws them; equal requests draw the
        same at the same try. A 429 comes at once.
    faults : Faults, optional
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
    cached : float
        Share of the prompt's tokens that the usage reports as cached, in [0, 1].
    seed : int
        Root of the stub's own draws of latencies and faults.

    Raises
    ------
    SpecError
        If a limit is out of its range.

    Attributes
    ----------
    base_url : str
        Address for clients, ``http://127.0.0.1:PORT/v1``; there once the stub is entered.
    log : list of Exchange
        Every exchange that has ended, in the order of their ends.
    peak_in_flight : int
        Largest number of requests that were let in and not yet answered at one time.
    """

    def __init__(
        self,
        reply: Replier = plain_reply,
        *,
        latency: float | Callable[[np.random.Generator], float] = 0.0,
        faults: Faults | None = None,
        model: str | Callable[[int], str] = "stub-1",
        rate: float | None = None,
        burst: int = 1,
        max_in_flight: int | None = None,
        api_key: str | None = None,
        unsupported: Collection[str] = (),
        cached: float = 0.0,
        seed: int = 0,
    ) -> None:
        for name, value, valid, right in (
            ("rate", rate, "positive", rate is None or rate > 0),
            ("burst", burst, "1 or more", burst >= 1),
            ("max_in_flight", max_in_flight, "1 or more", max_in_flight is None or max_in_flight >= 1),
            ("cached", cached, "from 0 to 1", 0 <= cached <= 1),
        ):
            if not right:
                raise SpecError(f"stub provider: {name} must be {valid}; got {value!r}")
        self.reply = reply
        self.latency = latency
        self.faults = faults or Faults()
        self.model = model
        self.rate = rate
        self.burst = burst
        self.max_in_flight = max_in_flight
        self.api_key = api_key
        self.unsupported = unsupported
        self.cached = cached
        self.base_url = ""
        self.log: list[Exchange] = []
        self.peak_in_flight = 0
        self._seed = seed
        self._attempts: Counter[str] = Counter()
        self._streak: Counter[str] = Counter()
        self._replies = 0
        self._in_flight = 0
        self._tokens, self._filled_s = float(burst), -math.inf
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing: asyncio.Event | None = None

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

    def start(self, port: int = 0) -> Self:
        """Listen on loopback; any free port by default. Counts go on from where they were."""
        ready: Future[int] = Future()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(port, ready)), name="opinionsim-stub", daemon=True
        )
        self._thread.start()
        self.base_url = f"http://127.0.0.1:{ready.result()}/v1"
        return self

    def close(self) -> None:
        """Stop: connections are closed, requests under way get no answer.

        Raises
        ------
        Exception
            What the reply function, the plan or the latency raised meanwhile.
        """
        if self._thread is None or self._loop is None or self._closing is None:
            return
        self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join()
        self._thread = None
        if self._error is not None:
            raise self._error

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def _serve(self, port: int, ready: Future[int]) -> None:
        self._loop, self._closing = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application(client_max_size=1 << 26)
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/statistics", self._statistics)
        # A client that gives up ends its handler, so that a hang is over and no longer in flight.
        runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.01)
        try:
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", port, backlog=1024)
            await site.start()
            ready.set_result(runner.addresses[0][1])
        except Exception as error:
            ready.set_exception(error)
        else:
            await self._closing.wait()
        finally:
            await runner.cleanup()

    # --- what it answers ---------------------------------------------------------------------------------

    async def _models(self, _: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": self._name(), "object": "model"}]})

    async def _statistics(self, _: web.Request) -> web.Response:
        return web.json_response(self.statistics())

    async def _complete(self, http: web.Request) -> web.StreamResponse:
        began = asyncio.get_running_loop().time()
        try:
            body = await http.json()
            messages = tuple(ChatMessage(each["role"], _text(each["content"])) for each in body["messages"])
        except (AttributeError, KeyError, TypeError, ValueError):
            return _error(400, "The body is no chat completion request.", "invalid_body")
        seed = body.get("seed")
        identity = request_identity(messages, seed)
        authorization = http.headers.get("Authorization", "")
        model = str(body.get("model", ""))
        request = StubRequest(messages, seed, identity, self._attempts[identity], model, authorization)
        refusal = self._refusal(body, request)
        if refusal is not None:
            return await self._send(http, refusal, request, None, began)
        wait_s = self._over_limit()
        if wait_s is not None:
            return await self._send(http, _rate_limited(wait_s), request, "over-limit", began)
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
            return _error(401, f"Incorrect API key provided: {shown}.", "invalid_api_key")
        for name in (*self.unsupported, *(["stream"] if body.get("stream") else [])):
            if name in body:
                return _error(400, f"Unsupported parameter: {name!r}.", "unsupported_parameter", param=name)
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
            answer = self._error_of(kind, request) or self._reply_of(kind, request)
            return await self._send(http, answer, request, kind, began)
        except (asyncio.CancelledError, ConnectionError):
            self._record(request, kind, None, began)
            raise
        except Exception as error:  # of the functions the stub was given: its user must hear of it
            self._error = self._error or error
            raise

    def _kind(self, request: StubRequest) -> str | None:
        """The fault of this try: planned, or drawn for the try, or drawn for the request."""
        faults, identity = self.faults, request.identity
        planned = faults.planned(request)
        if planned is not None:
            return planned
        kind = _drawn(faults.tries, self._rng("fault of a try", identity, request.attempt)) if faults.tries else None
        if kind is not None and kind not in faults.HARMLESS:
            self._streak[identity] += 1
            if self._streak[identity] <= faults.in_a_row:
                return kind
        self._streak[identity] = 0
        own = _drawn(faults.requests, self._rng("fault of a request", identity)) if faults.requests else None
        return own or (kind if kind in faults.HARMLESS else None)

    def _latency(self, request: StubRequest) -> float:
        if callable(self.latency):
            return float(self.latency(self._rng("latency", request.identity, request.attempt)))
        return self.latency

    def _rng(self, purpose: str, *key: Any) -> np.random.Generator:
        return stream(self._seed, purpose, 0, *key)

    def _name(self) -> str:
        return self.model(self._replies) if callable(self.model) else self.model

    def _error_of(self, kind: str | None, request: StubRequest) -> web.Response | None:
        """The answer of a kind that answers with an error, or with what is no reply."""
        retry_after_s = self.faults.retry_after_s
        match kind:
            case "rate-limited":
                return _rate_limited(retry_after_s)
            case "quota":
                return _error(429, "The quota is used up.", "insufficient_quota", type_="insufficient_quota")
            case "http-500":
                return _error(500, "The server failed.", None, type_="server_error")
            case "http-502":
                return web.Response(status=502, body=_PAGE, content_type="text/html")
            case "http-503":
                return _error(503, "Overloaded.", None, type_="server_error", headers=_retry_after(retry_after_s))
            case "unauthorized":
                return _error(401, "Incorrect API key provided.", "invalid_api_key")
            case "unknown-model":
                return _error(404, f"There is no model {request.model!r}.", "model_not_found", param="model")
            case "too-long":
                return _error(400, "The prompt exceeds the context of the model.", "context_length_exceeded")
            case "blocked":
                return _error(400, "The content filter stopped the prompt.", "content_filter", param="prompt")
            case "html":
                return web.Response(body=_PAGE, content_type="text/html")
            case "no-choices":
                return web.json_response({"id": "", "object": "list", "data": []})
        return None

    def _reply_of(self, kind: str | None, request: StubRequest) -> web.Response:
        """A reply, true or with a fault of content."""
        reply = self.reply(request.messages, request.seed)
        content: str | None = reply
        finish, others = "stop", {}
        match kind:
            case "empty":
                content = ""
            case "truncated":
                content, finish = reply[: len(reply) // 2], "length"
            case "refused":
                content, others = None, {"refusal": _REFUSAL}
            case "declined":
                content = _REFUSAL
            case "filtered":
                content, finish = "", "content_filter"
            case "endless-thought":
                content, finish = f"<think>\n{_REASONING}", "length"
            case "reasoning-tags":
                content = f"<think>\n{_REASONING}\n</think>\n\n{reply}"
            case "reasoning-field":
                others = {"reasoning_content": _REASONING}
        model = self._name()
        given = sum(_tokens(message.content) for message in request.messages)
        thought = _tokens(others.get("reasoning_content", ""))
        said = _tokens(content or others.get("refusal", "")) + thought
        body = {
            "id": f"chatcmpl-{request.identity}",
            "object": "chat.completion",
            "created": 0,
            "model": model,
            "system_fingerprint": f"fp_{digest(model)[:10]}",
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": content, "refusal": None, **others},
                    "finish_reason": finish,
                    "logprobs": None,
                }
            ],
            "usage": {
                "prompt_tokens": given,
                "completion_tokens": said,
                "total_tokens": given + said,
                "prompt_tokens_details": {"cached_tokens": math.floor(given * self.cached)},
                "completion_tokens_details": {"reasoning_tokens": thought},
            },
        }
        answer = web.json_response(body)
        if kind == "malformed":
            answer.body = _bytes(answer)[: len(_bytes(answer)) // 2]
        return answer

    async def _send(
        self, http: web.Request, answer: web.Response, request: StubRequest, kind: str | None, began: float
    ) -> web.StreamResponse:
        """Write an answer in the way of its kind; it counts once it is written to its end."""
        if kind in ("reset", "disconnect", "cut", "hang", "stall"):
            await _break(http, answer, kind)
        sent: web.StreamResponse = answer
        rest = b""
        if kind == "trickle":
            sent, rest = _begun(answer), _bytes(answer)
        await sent.prepare(http)
        while len(rest) > _PIECE:
            await asyncio.sleep(self.faults.trickle_s * _PIECE / len(_bytes(answer)))
            await sent.write(rest[:_PIECE])
            rest = rest[_PIECE:]
        await sent.write_eof(rest)  # raises where the client is gone before the last byte
        self._record(request, kind, answer.status, began)
        return sent

    def _record(self, request: StubRequest, kind: str | None, status: int | None, began: float) -> None:
        served = status == 200 and kind not in Faults.TRANSPORT
        self._replies += served
        ended = asyncio.get_running_loop().time()
        self.log.append(Exchange(request, kind, status, served, began, ended))


_PAGE = b"<html><body><h1>Bad Gateway</h1></body></html>"
#: Bytes written at a time by what writes a body in pieces.
_PIECE = 64
#: Time a client has to read half a body: a reset throws away what was not read.
_READING_S = 0.02


def _text(content: Any) -> str:
    """The text of a message, given as a text or as parts of which some are texts."""
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in content or () if part.get("type") == "text")


def _tokens(text: str) -> int:
    """Estimate of the number of tokens: four for three words."""
    return math.ceil(len(text.split()) * 4 / 3)


def _bytes(answer: web.Response) -> bytes:
    assert isinstance(answer.body, bytes)
    return answer.body


def _begun(answer: web.Response) -> web.StreamResponse:
    """An answer of the same length, to be written in pieces."""
    length = str(len(_bytes(answer)))
    return web.StreamResponse(headers={"Content-Type": answer.content_type, "Content-Length": length})


async def _break(http: web.Request, answer: web.Response, kind: str) -> None:
    """Leave a client without the end of its answer; ends by cancellation, when the connection does."""
    if kind in ("cut", "stall"):
        part = _begun(answer)
        await part.prepare(http)
        await part.write(_bytes(answer)[: len(_bytes(answer)) // 2])
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


def _error(
    status: int,
    message: str,
    code: str | None,
    *,
    type_: str = "invalid_request_error",
    param: str | None = None,
    headers: dict[str, str] | None = None,
) -> web.Response:
    """An error in the form of the dialect."""
    error = {"message": message, "type": type_, "param": param, "code": code}
    return web.json_response({"error": error}, status=status, headers=headers)


def _rate_limited(retry_after_s: float | None) -> web.Response:
    headers = _retry_after(retry_after_s)
    return _error(429, "Too many requests.", "rate_limit_exceeded", type_="requests", headers=headers)


def _retry_after(seconds: float | None) -> dict[str, str]:
    """Headers that say when to come again: whole seconds, as the standard has it, and exact ones."""
    if seconds is None:
        return {}
    return {"Retry-After": str(math.ceil(seconds)), "Retry-After-Ms": f"{seconds * 1000:.3f}"}


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser(prog="python -m opinionsim.testing._provider", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before an answer")
    parser.add_argument("--rate", type=float, help="requests per second let in")
    parser.add_argument("--burst", type=int, default=1, help="requests let in at once under --rate")
    parser.add_argument("--max-in-flight", type=int, help="requests let in at one time")
    parser.add_argument("--faults", type=float, default=0.0, help="probability of a fault of transport for each try")
    parser.add_argument("--scripted", action="store_true", help="answer as the scripted model does")
    chosen = parser.parse_args(arguments)
    stub = StubProvider(
        scripted_reply() if chosen.scripted else plain_reply,
        latency=chosen.latency,
        faults=Faults(tries=evenly(chosen.faults, Faults.TRANSPORT)),
        rate=chosen.rate,
        burst=chosen.burst,
        max_in_flight=chosen.max_in_flight,
    )
    stub.start(chosen.port)
    sys.stdout.write(stub.base_url + "\n")
    sys.stdout.flush()
    sys.stdin.read()
    stub.close()


if __name__ == "__main__":
    main()
