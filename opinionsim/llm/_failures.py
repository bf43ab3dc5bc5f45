"""Classifies errors of providers, and computes the wait before the next attempt."""

from __future__ import annotations

import json
import math
import re
import ssl
import time
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np

from opinionsim.foundation.redaction import redacted
from opinionsim.registry import part_at

FailureKind = Literal["rate-limited", "no-room", "transient", "this-request", "any-request", "content-filter"]

#: Longest Retry-After that is obeyed: the limit may be lifted earlier, and a run should not sleep for a day.
_LONGEST_RETRY_AFTER_S = 600.0
_LONGEST_REASON = 400
#: Longer error texts are pages of proxies.
_LONGEST_TEXT = 4_000

_KNOWN: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_name("failures.toml").read_text(encoding="utf-8"))
#: Providers' words for failures, and names of error classes, by what they say.
_WORDS, _CLASSES = (
    {name: frozenset(listed.split()) for name, listed in _KNOWN[part].items()} for part in ("words", "classes")
)
#: Values of the field param of OpenAI's dialect that name an option, and no part that differs between prompts.
_OPTION = re.compile(r"(?!messages|input|prompt|content|max_|body|none|null)[a-z_]+(\.[a-z_]+)*")

_FILTER_TEXT = re.compile(r"content filter|content management policy|content policy|prompt was flagged", re.IGNORECASE)
_NO_ROOM_TEXT = re.compile(r"resource unavailable", re.IGNORECASE)
_BUSY_TEXT = re.compile(r"overloaded|too many (pending )?requests|maximum pending requests|server busy", re.IGNORECASE)
_ACCOUNT_TEXT = re.compile(r"credit balance is too low|api key not valid", re.IGNORECASE)

_ROLES_TEXT = re.compile(_KNOWN["texts"]["roles"], re.IGNORECASE)

#: What mends a request that the model refuses for the order of its messages.
_JOINED = "; the server refuses that order of roles; set model.options.roles: alternate to join messages of one role"

_PAGE = re.compile(r"<!doctype html|<html\b", re.IGNORECASE)

#: Statuses below 500 that another try may mend: time-out, conflict, too early.
_PASSING = {408, 409, 425}
#: Statuses that are about the key, the account, the address, or what the server can do at all. 403 is not among
#: them: firewalls send it for texts they reject.
_REFUSING = {*range(300, 400), 401, 402, 404, 405, 407, 410, 501, 505}

#: Errors of the operating system that are about files or rights and not about connections.
_LOCAL = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError)
#: Errors raised by reading a malformed reply.
_UNREADABLE = (AttributeError, LookupError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class Failure:
    """What a failed attempt means.

    Attributes
    ----------
    kind : {"rate-limited", "no-room", "transient", "this-request", "any-request", "content-filter"}
        ``rate-limited``: the provider asks for fewer calls; ``no-room``: its flexible tier has no room at the moment,
        which says nothing about other calls; ``transient``: the same call may succeed later;
        ``any-request``: every request to the model would fail because of its key, account, address, name or options;
        ``this-request``: this request will always fail, but others may succeed; ``content-filter``: the provider
        refused the content, which is data.
    reason : str
        One line without credentials, safe to store and show.
    retry_after_s : float or None
        Seconds the provider asked to wait, 0 to 600.
    """

    kind: FailureKind
    reason: str
    retry_after_s: float | None = None


def classify_failure(error: BaseException, *, networked: bool = False) -> Failure:
    """Classify an error raised by a chat model.

    The function reads status, codes, headers and class names of the error and its causes. It therefore understands
    clients of any provider without importing them.

    Parameters
    ----------
    error : BaseException
        The error of the model.
    networked : bool
        Whether the model is behind a network. If so, a plain ValueError, TypeError, LookupError or AttributeError means
        that a reply could not be read, which is transient.

    Returns
    -------
    Failure
        Rate-limited: status 429, and 503 or 529 that mention overload. Transient: statuses 408, 409, 425, 5xx,
        unreadable replies, time-outs and lost connections. Content filter: the provider refused the content. Any
        request: statuses 3xx, 401, 402, 404, 405, 407, 410, 501 and 505, an exhausted account, messages about a key,
        model, option or order of roles that is not accepted, unusable certificates and addresses. This request:
        everything else, including unknown errors, because a single prompt must not stop the others.
    """
    chain = list(_chain(error))
    kind = _kind(chain, networked)
    passed = kind in ("rate-limited", "no-room", "content-filter")
    ordered = not passed and any(_ROLES_TEXT.search(_text(each)) for each in chain)
    kind, advice = ("any-request", _JOINED) if ordered else (kind, "")
    retry_after_s = None
    if kind in ("rate-limited", "no-room", "transient"):
        retry_after_s = next((seconds for each in chain if (seconds := _retry_after_s(each)) is not None), None)
    where = "" if (found := part_at(error)) is None else f" (in {found[0].name}, {found[1]})"
    return Failure(kind, _reason(chain, networked) + where + advice, retry_after_s)


def wait_s(n_failures: int, failure: Failure, *, first_s: float, longest_s: float, rng: np.random.Generator) -> float:
    """Seconds to wait before the next attempt: exponential back-off with full jitter.

    Parameters
    ----------
    n_failures : int
        Number of failed attempts, including this one, >= 1.
    failure : Failure
        The last failure.
    first_s : float
        Maximum wait after the first failure, in seconds; it doubles with each further failure.
    longest_s : float
        Maximum wait in seconds, not including Retry-After.
    rng : numpy.random.Generator
        Draws the jitter.

    Returns
    -------
    float
        Retry-After, plus a uniform draw between 0 and the maximum wait for this failure, which prevents calls that
        failed together from being repeated together.
    """
    # A larger exponent would overflow a float.
    longest = min(longest_s, first_s * 2.0 ** min(n_failures - 1, 60))
    return (failure.retry_after_s or 0.0) + float(rng.uniform(0.0, longest))


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and its chain of causes."""
    seen: set[int] = set()
    each: BaseException | None = error
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        yield each
        each = each.__cause__


def _kind(chain: list[BaseException], networked: bool) -> FailureKind:
    names = set().union(*map(_class_names, chain))
    if _CLASSES["lasting"] & names or any(isinstance(each, ssl.SSLCertVerificationError) for each in chain):
        return "any-request"
    if _CLASSES["of-a-reply"] & names:
        return "this-request"
    # aiohttp gives an answer that is no HTTP the status 400, which no server sent.
    if "HttpProcessingError" in names:
        return "transient"
    for each in chain:
        kind = _by_answer(each) or _by_class(each)
        if kind is not None:
            return kind
    return "transient" if networked and isinstance(chain[0], _UNREADABLE) else "this-request"


def _by_answer(error: BaseException) -> FailureKind | None:
    """Kind of a failure by the provider's answer that the error carries; None where that decides nothing."""
    status, words, text = _status(error), _words(error), _text(error)
    if words & _WORDS["filtered"] or (status == 400 and _FILTER_TEXT.search(text)):
        return "content-filter"
    if words & _WORDS["used-up"]:
        return "any-request"
    if status is None:
        return "rate-limited" if words & _WORDS["too-many"] else "transient" if words & _WORDS["faults"] else None
    if status == 429 and (words & _WORDS["no-room"] or _NO_ROOM_TEXT.search(text)):
        return "no-room"
    if status == 429 or (status >= 500 and (words & _WORDS["too-many"] or _BUSY_TEXT.search(text))):
        return "rate-limited"
    # An error with a status of success is about the body.
    if status in _PASSING or 200 <= status < 300 or (status >= 500 and status not in _REFUSING):
        return "transient"
    lasting = status in _REFUSING or words & _WORDS["any-request"] or _ACCOUNT_TEXT.search(text)
    return "any-request" if lasting and not words & _WORDS["this-request"] else "this-request"


def _by_class(error: BaseException) -> FailureKind | None:
    names = _class_names(error)
    if names & _CLASSES["filtered"]:
        return "content-filter"
    if names & _CLASSES["too-many"]:
        return "rate-limited"
    passing = isinstance(error, OSError) and not isinstance(error, _LOCAL)
    # Ollama's client gives an error within a stream of its server the status -1.
    broken_stream = "ResponseError" in names and getattr(error, "status_code", None) == -1
    return "transient" if passing or broken_stream or names & _CLASSES["passing"] else None


def _class_names(error: BaseException) -> set[str]:
    return {each.__name__ for each in type(error).__mro__}


def _status(error: BaseException) -> int | None:
    """The HTTP status an error is about."""
    response = getattr(error, "response", None)
    if isinstance(response, Mapping):  # botocore
        candidates = iter([_mapping(response.get("ResponseMetadata")).get("HTTPStatusCode")])
    else:
        # One after the other: aiohttp warns of the last name of an error.
        names = ("status_code", "status", "http_status", "code")
        candidates = (getattr(place, name, None) for place in (error, response) for name in names)
    return next((int(each) for each in candidates if isinstance(each, int) and 100 <= each < 600), None)


def _words(error: BaseException) -> set[str]:
    """The provider's words for the failure, in the error or in the answer it carries."""
    places: list[Any] = [{name: getattr(error, name, None) for name in ("code", "type", "status", "param")}]
    places += [getattr(error, "body", None), getattr(error, "details", None), getattr(error, "response", None)]
    # An error in an answer with a status of success arrives as a mapping among the arguments.
    places += [argument for argument in getattr(error, "args", ()) if isinstance(argument, Mapping)]
    words: set[str] = set()
    while places:
        place = _mapping(places.pop())
        for name, value in place.items():
            name = str(name).lower()
            if isinstance(value, str) and name in ("code", "type", "status"):
                words.add(value.lower().replace("-", "_"))
            elif isinstance(value, str) and name == "param" and _OPTION.fullmatch(value.lower()):
                words.add("unsupported_parameter")
            elif name in ("error", "innererror", "inner_error"):
                places.append(value)
    return words


def _mapping(value: Any) -> Mapping[Any, Any]:
    """A mapping as it is, text that is a JSON object as a mapping, anything else as an empty one."""
    if isinstance(value, str) and value.lstrip().startswith("{") and len(value) < _LONGEST_TEXT:
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    return value if isinstance(value, Mapping) else {}


def _retry_after_s(error: BaseException) -> float | None:
    """Seconds after which the provider wants to be asked again, by its headers."""
    response = getattr(error, "response", None)
    if isinstance(response, Mapping):  # botocore
        headers = _mapping(response.get("ResponseMetadata")).get("HTTPHeaders")
    else:
        headers = getattr(response, "headers", None) or getattr(error, "headers", None)
    try:
        named = {str(name).lower(): str(value).strip() for name, value in headers.items()}  # type: ignore[union-attr]
    except (AttributeError, TypeError, ValueError):
        return None
    for name, scale in (("retry-after-ms", 1e-3), ("x-ms-retry-after-ms", 1e-3), ("retry-after", 1.0)):
        seconds = _seconds(named.get(name, "")) * scale
        if math.isfinite(seconds):
            return min(max(seconds, 0.0), _LONGEST_RETRY_AFTER_S)
    return None


def _seconds(text: str) -> float:
    """Seconds from a number, or from now to an HTTP date; NaN for any other text."""
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return parsedate_to_datetime(text).timestamp() - time.time()
    except (ValueError, TypeError, OverflowError):
        return math.nan


def _reason(chain: list[BaseException], networked: bool) -> str:
    """One line about an error and, where no answer came, about its innermost cause."""
    said = _said(chain[0])
    body = _body(chain[0]) if networked else ""
    if body:
        said = f"{body} ({said})"
    # Clients reword connection failures, such as calling a lost connection a time-out.
    if len(chain) > 1 and _status(chain[0]) is None:
        causes = [each for each in chain[1:] if _text(each) not in ("", _text(chain[0]))]
        cause = _said((causes or chain)[-1])
        said = said if cause in said else f"{said} ({cause})"
    if _status(chain[0]) == 404:
        said += " (check the model's name, and that base_url, if given, ends as its server requires, as in /v1)"
    return said if len(said) <= _LONGEST_REASON else said[: _LONGEST_REASON - 1] + "…"


def _body(error: BaseException) -> str:
    """What is wrong with the body of an answer that could not be read; empty where its error is of another kind."""
    text = str(getattr(error, "doc", _text(error)))
    if _PAGE.search(text[:_LONGEST_TEXT]):
        return "the provider returned a web page instead of JSON"
    if not 200 <= (_status(error) or 200) < 300 or not isinstance(error, _UNREADABLE):
        return ""
    if isinstance(error, json.JSONDecodeError):
        return f"the provider returned {'broken JSON' if text.strip() else 'an empty body instead of JSON'}"
    if isinstance(error, IndexError) or "'choices'" in text:
        return "the provider returned a reply without choices"
    if any(isinstance(argument, Mapping) for argument in error.args):
        return ""
    return "the provider returned a body that is not a chat completion"


def _said(error: BaseException) -> str:
    text = " ".join(redacted(_text(error)).split())
    if text and getattr(error, "says_it_all", False):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _text(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:
        # The error cannot be shown as text: the name of its class must do.
        return ""
    # Half a credential would not be recognised: the last, cut word is dropped.
    return text.strip() if len(text) <= _LONGEST_TEXT else " ".join(text[:_LONGEST_TEXT].split()[:-1])
