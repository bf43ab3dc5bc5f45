"""Faults of a stub provider, and the requests that meet them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from opinionsim.errors import SpecError
from opinionsim.messages import ChatMessage


class StubRequest(NamedTuple):
    """A request as the stub sees it."""

    messages: tuple[ChatMessage, ...]
    seed: int | None
    identity: str
    """:func:`request_identity` of the two."""
    attempt: int
    """Number of earlier requests of this identity that were let in."""
    model: str
    """Name of the model asked for."""
    authorization: str
    """The header, '' without one."""
    options: Mapping[str, Any]
    """Its whole body."""


class Exchange(NamedTuple):
    """A request and what became of it."""

    request: StubRequest
    fault: str | None
    """The fault played, ``over-limit`` for a limit that was really exceeded, None for a plain true reply."""
    status: int | None
    """HTTP status of the answer; None where none was written to its end."""
    served: bool
    """Whether a whole reply of the model was written: what a provider charges for."""
    began_s: float
    """When the request arrived, seconds on the stub's clock."""


@dataclass(frozen=True, kw_only=True)
class Faults:
    """What goes wrong, how often, and for whom.

    Kinds, by what a client is to make of them:

    - ``Faults.TRANSPORT`` never changes what a request is answered in the end: ``rate-limited`` (429, with
      Retry-After), ``http-500``, ``http-502`` (a page in HTML), ``http-503`` (with Retry-After), ``reset`` (connection
      reset before an answer), ``disconnect`` (closed in good order before one), ``cut`` (reset in the middle of the
      body), ``hang`` (no answer until the client gives up), ``stall`` (the same in the middle of the body), and with
      status 200 ``malformed`` (JSON that stops early), ``html`` (a web page), ``no-choices`` (JSON of another kind),
      ``empty-choices`` (a reply whose list of choices is empty), ``no-message`` (a choice without its message) and
      ``list`` (a list in place of the reply).
    - ``Faults.CONTENT`` is the answer: ``empty``, ``truncated`` (finish reason ``length``), ``refused`` (the field
      ``refusal``, content null), ``declined`` (the text says so), ``filtered`` (finish reason ``content_filter``),
      ``blocked`` (the prompt refused with 400 and code ``content_filter``, as Azure does), ``endless-thought``
      (reasoning that reaches the limit of length before it ends).
    - ``Faults.HARMLESS`` leaves the reply true: ``trickle`` (in small pieces, slowly), ``reasoning-tags`` (reasoning
      before it, in the text), ``reasoning-field`` (in a field ``reasoning_content``).
    - ``Faults.ANY_REQUEST`` and ``Faults.THIS_REQUEST`` are the same at every try. A client expects the former at every
      request: ``quota`` (429 ``insufficient_quota``), ``unauthorized`` (401), ``unknown-model`` (404), ``roles`` (500,
      from a chat template that takes no two messages of one role in a row). The latter concern one prompt:
      ``too-long`` (400 ``context_length_exceeded``).

    Parameters
    ----------
    tries : mapping of str to float
        Probability of each kind for each try of a request, drawn anew for every try; sum at most 1. Here
        ``Faults.CONTENT`` is a matter of the try, and asking again helps.
    requests : mapping of str to float
        Probability of each kind for a request, drawn once: each of its tries meets it unless another fault hits it.
    plan : sequence of str or None, or callable
        Goes before both: the kind for the first, second, … try of every request, or a function of the
        :class:`StubRequest`. None means no planned fault.
    in_a_row : int
        Largest number of tries of a request in a row that are hit by a fault of `tries`, harmless ones not counted; the
        next try is spared. >= 0.
    retry_after_s : float or None
        What 429 and 503 tell the client to wait: exact in ``retry-after-ms``, in whole seconds rounded up in
        ``retry-after``. None sends neither.
    trickle_s : float
        Time a trickled reply takes, seconds.

    Raises
    ------
    SpecError
        If a kind is not known, or a probability is not valid.
    """

    TRANSPORT: ClassVar[tuple[str, ...]] = (
        *("rate-limited", "http-500", "http-502", "http-503", "reset", "disconnect", "cut", "hang", "stall"),
        *("malformed", "html", "no-choices", "empty-choices", "no-message", "list"),
    )
    CONTENT: ClassVar[tuple[str, ...]] = (
        *("empty", "truncated", "refused", "declined", "filtered", "blocked", "endless-thought"),
    )
    HARMLESS: ClassVar[tuple[str, ...]] = ("trickle", "reasoning-tags", "reasoning-field")
    ANY_REQUEST: ClassVar[tuple[str, ...]] = ("quota", "unauthorized", "unknown-model", "roles")
    THIS_REQUEST: ClassVar[tuple[str, ...]] = ("too-long",)
    KINDS: ClassVar[tuple[str, ...]] = (*TRANSPORT, *CONTENT, *HARMLESS, *ANY_REQUEST, *THIS_REQUEST)

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


def drawn(rates: Mapping[str, float], rng: np.random.Generator) -> str | None:
    """One kind by its probability, or none."""
    left = float(rng.random())
    for kind, rate in rates.items():
        left -= rate
        if left < 0:
            return kind
    return None
