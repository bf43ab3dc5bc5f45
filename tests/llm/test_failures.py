"""What errors of chat models mean, as real clients raise them; back-off; and no credential in a reason."""

from __future__ import annotations

import asyncio
import base64
import email.utils
import itertools
import json
import re
import socket
import ssl
import threading
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from langchain_openai import ChatOpenAI
from openai import DefaultAsyncHttpxClient
from pydantic import SecretStr

from opinionsim.errors import SpecError
from opinionsim.foundation.redaction import redacted
from opinionsim.llm._failures import Failure, classify_failure, wait_s
from opinionsim.llm._transport import ReplyTooLong, fast_client
from tests.support.provider import StubProvider
from tests.support.provider_faults import Faults

KEY = "sk-proj-Zx81nQ0aBcDeFgHiJkLmNoPq"

# --- through the real client ---------------------------------------------------------------------------------

EXPECTED = {
    **dict.fromkeys(Faults.TRANSPORT, "transient"),
    # The server says that it is overloaded.
    **dict.fromkeys(("rate-limited", "http-503"), "rate-limited"),
    "blocked": "content-filter",
    **dict.fromkeys(("quota", "unauthorized", "unknown-model", "roles"), "any-request"),
    "too-long": "this-request",
}


@pytest.fixture(scope="module")
def stub():
    faults = Faults(plan=lambda request: request.messages[-1].content, retry_after_s=0.25)
    with StubProvider(faults=faults, api_key=KEY) as provider:
        yield provider


def _failure(
    stub: StubProvider, fault: str, *, fast: bool = True, api_key: str = KEY, base_url: str | None = None
) -> Failure:
    """What is made of the error that a real client raises when a provider misbehaves."""

    async def attempt() -> Failure:
        async with DefaultAsyncHttpxClient() as plain:
            model = ChatOpenAI(
                model="stub-1",
                base_url=base_url or stub.base_url,
                api_key=SecretStr(api_key),
                max_retries=0,
                timeout=0.3,
                http_async_client=fast_client(8_000_000) if fast else plain,
            )
            with pytest.raises(Exception) as caught:  # noqa: PT011
                await model.ainvoke(fault)
        return classify_failure(caught.value, networked=True)

    return asyncio.run(attempt())


@pytest.mark.parametrize("fast", [True, False], ids=["aiohttp", "httpx"])
@pytest.mark.parametrize("fault", EXPECTED)
def test_what_a_real_client_raises_is_understood(stub: StubProvider, fault: str, fast: bool) -> None:
    failure = _failure(stub, fault, fast=fast)
    assert failure.kind == EXPECTED[fault]
    assert failure.reason
    assert "\n" not in failure.reason
    # To the millisecond, although the header in seconds says a whole one.
    assert failure.retry_after_s == (0.25 if fault in ("rate-limited", "http-503") else None)


@pytest.mark.parametrize("fast", [True, False], ids=["aiohttp", "httpx"])
@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("html", "the provider returned a web page instead of JSON"),
        ("malformed", "the provider returned broken JSON"),
        ("no-choices", "the provider returned a reply without choices"),
        ("empty-choices", "the provider returned a reply without choices"),
        ("no-message", "the provider returned a body that is not a chat completion"),
        ("list", "the provider returned a body that is not a chat completion"),
    ],
)
def test_a_body_that_is_no_reply_is_named(stub: StubProvider, fault: str, said: str, fast: bool) -> None:
    assert _failure(stub, fault, fast=fast).reason.startswith(said)


_NO_HTTP = (
    b"\x00\xffno answer\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nyes",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhalf\r\nyes\r\n",
)
_NO_BODY = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 0\r\n\r\n"


def _answered(stub: StubProvider, answer: bytes, fast: bool) -> Failure:
    """What is made of an answer that is just these bytes."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answers() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(answer)

        thread = threading.Thread(target=answers)
        thread.start()
        failure = _failure(stub, "", fast=fast, base_url=f"http://127.0.0.1:{server.getsockname()[1]}/v1")
        thread.join()
    return failure


@pytest.mark.parametrize("fast", [True, False], ids=["aiohttp", "httpx"])
@pytest.mark.parametrize("answer", _NO_HTTP, ids=["no status", "two lengths", "no chunk"])
def test_an_answer_that_is_no_http_may_be_whole_the_next_time(stub: StubProvider, answer: bytes, fast: bool) -> None:
    assert _answered(stub, answer, fast).kind == "transient"


def test_a_body_that_is_empty_is_called_so(stub: StubProvider) -> None:
    failure = _answered(stub, _NO_BODY, fast=True)
    assert (failure.kind, failure.reason.partition(" (")[0]) == (
        "transient",
        "the provider returned an empty body instead of JSON",
    )


@pytest.mark.parametrize(
    ("fault", "options", "kind", "said"),
    [
        ("reset", {}, "transient", "Connection reset by peer"),
        # A server that is not there may come back; an address that cannot be used will never do.
        ("", {"base_url": "http://127.0.0.1:9/v1"}, "transient", "127.0.0.1"),
        ("", {"base_url": "gopher://127.0.0.1/v1", "fast": False}, "any-request", ""),
        # A refused key is not quoted.
        ("", {"api_key": "sk-live-000011112222"}, "any-request", "401"),
    ],
)
def test_what_was_wrong_is_said(stub: StubProvider, fault: str, options: dict[str, Any], kind: str, said: str) -> None:
    failure = _failure(stub, fault, **options)
    assert (failure.kind, said in failure.reason, "sk-live" in failure.reason) == (kind, True, False)


@pytest.mark.parametrize(
    "said",
    [
        "After the optional system message, conversation roles must alternate user and assistant roles",
        'messages: roles must alternate between "user" and "assistant", but found multiple "user" roles in a row',
        "deepseek-reasoner does not support successive user or assistant messages (messages[1] and messages[2])",
        "user or tool message(s) should alternate with assistant message(s)",
        "Please ensure that multiturn requests alternate between user and model.",
        "Unexpected role 'user' after role 'user'",
        "System role not supported",
    ],
)
def test_an_order_of_roles_that_is_refused_is_told_with_what_mends_it(said: str) -> None:
    failure = classify_failure(_error("BadRequestError", said, status_code=400), networked=True)
    assert failure.kind == "any-request"
    assert failure.reason.endswith("set model.options.roles: alternate to join messages of one role")
    other = _error("BadRequestError", "Unexpected role 'user' after role 'assistant'", status_code=400)
    assert classify_failure(other).kind == "this-request"
    limited = _error("RateLimitError", said, status_code=429)
    assert classify_failure(limited).kind == "rate-limited"
    echoed = _error("BadRequestError", "invalid input: 'speakers must alternate, men and women'", status_code=422)
    assert classify_failure(echoed).kind == "this-request"


def test_an_option_the_model_does_not_take_concerns_every_request() -> None:
    with StubProvider(unsupported=["model"]) as picky:
        failure = _failure(picky, "")
    assert failure.kind == "any-request"
    assert "Unsupported parameter: 'model'" in failure.reason


# --- by what errors look like, for clients that are not installed ------------------------------------------------


def _error(name: str = "APIStatusError", text: str = "", *bases: type[Exception], **attributes: Any) -> Exception:
    """An error of a class of this name, with these attributes."""
    error = type(name, bases or (Exception,), {})(text)
    for attribute, value in attributes.items():
        setattr(error, attribute, value)
    return error


def _response(status: int = 429, **headers: str) -> SimpleNamespace:
    return SimpleNamespace(status_code=status, headers={k.replace("_", "-"): v for k, v in headers.items()})


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *((status, "any-request") for status in (301, 401, 402, 404, 405, 407, 410, 501, 505)),
        # A firewall answers 403 to texts that it does not like.
        *((status, "this-request") for status in (400, 403, 413, 422, 451)),
        *((status, "transient") for status in (200, 408, 409, 425, 500, 502, 503, 504, 520, 524, 529)),
        (429, "rate-limited"),
    ],
)
@pytest.mark.parametrize("place", ["status_code", "status", "http_status", "code", "response", "botocore"])
def test_a_status_decides_wherever_it_stands(status: int, kind: str, place: str) -> None:
    response: object = SimpleNamespace(status_code=status, headers={})
    if place == "botocore":
        response = {"ResponseMetadata": {"HTTPStatusCode": status}, "Error": {"Code": "Whatever"}}
    named = {"response": response} if place in ("response", "botocore") else {place: status}
    assert classify_failure(_error(**named)).kind == kind


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        # Anthropic: the words are in the body.
        (
            _error("OverloadedError", status_code=529, body={"type": "error", "error": {"type": "overloaded_error"}}),
            "rate-limited",
        ),
        (
            _error(
                "BadRequestError",
                "Error code: 400 - {'message': 'Output blocked by content filtering policy'}",
                status_code=400,
                body={"type": "error", "error": {"type": "invalid_request_error"}},
            ),
            "content-filter",
        ),
        (_error("BadRequestError", "Your credit balance is too low", status_code=400), "any-request"),
        # Azure: the filter that spoke is one level deeper.
        (
            _error(
                "BadRequestError",
                status_code=400,
                body={"error": {"code": "BadRequest", "innererror": {"code": "ResponsibleAIPolicyViolation"}}},
            ),
            "content-filter",
        ),
        (_error("BadRequestError", "prompt was flagged as potentially violating", status_code=400), "content-filter"),
        # Ollama: a full queue, a fault within a stream, a model that is not there.
        (
            _error(
                "ResponseError", "server busy, please try again. maximum pending requests exceeded", status_code=503
            ),
            "rate-limited",
        ),
        (_error("ResponseError", "model runner has unexpectedly stopped", status_code=-1), "transient"),
        (_error("ResponseError", "model 'x' not found", status_code=404), "any-request"),
        # Google, with words and no status; Amazon, with both.
        (_error("APIError", status="RESOURCE_EXHAUSTED"), "rate-limited"),
        (_error("APIError", status="UNAVAILABLE"), "transient"),
        (
            _error("ClientError", response={"Error": {"Code": "ThrottlingException"}, "ResponseMetadata": {}}),
            "rate-limited",
        ),
        # A used-up account is no rate limit.
        (_error("RateLimitError", status_code=429, code="insufficient_quota"), "any-request"),
        (_error("RateLimitError", status_code=429, body='{"error": {"type": "insufficient_quota"}}'), "any-request"),
        # What every request asks for, and what only this one does.
        (_error("BadRequestError", status_code=400, code="unsupported_parameter", param="seed"), "any-request"),
        (_error("BadRequestError", status_code=400, code="decimal_above_max_value", param="top_p"), "any-request"),
        (_error("BadRequestError", status_code=400, body={"param": "reasoning.effort"}), "any-request"),
        (_error("PermissionDeniedError", status_code=403, code="model_not_found"), "any-request"),
        (_error("PermissionDeniedError", status_code=403, body={"error": {"type": "permission_error"}}), "any-request"),
        (_error("ClientError", "API key not valid. Please pass another.", status_code=400), "any-request"),
        (_error("BadRequestError", status_code=400, code="context_length_exceeded", param="messages"), "this-request"),
        (_error("BadRequestError", status_code=400, code="context_length_exceeded", param="model"), "this-request"),
        (_error("BadRequestError", status_code=400, code="invalid_value", param="messages[0].content"), "this-request"),
        (_error("BadRequestError", status_code=400, code=None, param="input_tokens"), "this-request"),
        (_error("BadRequestError", status_code=400, code="400", param="None"), "this-request"),
        # Errors that came with a success.
        (ValueError({"message": "boom", "code": "server_error"}), "transient"),
        (ValueError({"message": "later", "code": "rate_limit_exceeded"}), "rate-limited"),
        (_error("APIResponseValidationError", status_code=200), "transient"),
        (_error("ContentTypeError", status=200), "transient"),
        # No answer at all.
        (TimeoutError(), "transient"),
        (ConnectionResetError(104, "reset"), "transient"),
        (OSError(101, "Network is unreachable"), "transient"),
        (_error("InferenceTimeoutError"), "transient"),
        (_error("ReadTimeout", "", type("TimeoutException", (Exception,), {})), "transient"),
        (_error("RateLimitError"), "rate-limited"),
        (_error("ContentFilterFinishReasonError"), "content-filter"),
        (json.JSONDecodeError("Expecting value", "", 0), "transient"),
        # Nothing another try could mend, and what nothing is known of.
        (ssl.SSLCertVerificationError("self-signed"), "any-request"),
        (_error("InvalidURL"), "any-request"),
        (_error("LocalProtocolError", "Illegal header value"), "any-request"),
        (FileNotFoundError(2, "no such file"), "this-request"),
        (PermissionError(13, "denied"), "this-request"),
        (MemoryError(), "this-request"),
        (RuntimeError("something"), "this-request"),
        (ValueError("something"), "this-request"),
        (_error("APIStatusError", status_code=True, code=7, status="odd", body=3, response="text"), "this-request"),
    ],
)
def test_words_and_classes_decide_where_statuses_do_not(error: Exception, kind: str) -> None:
    assert classify_failure(error).kind == kind


@pytest.mark.parametrize("error", [ValueError("a"), TypeError("a"), KeyError("a"), IndexError(), AttributeError("a")])
def test_behind_a_network_a_reply_that_cannot_be_read_may_be_whole_the_next_time(error: Exception) -> None:
    assert classify_failure(error, networked=True).kind == "transient"
    assert classify_failure(error).kind == "this-request"
    assert classify_failure(RuntimeError("a"), networked=True).kind == "this-request"


def _caused(*errors: Exception) -> Exception:
    for error, cause in itertools.pairwise(errors):
        error.__cause__ = cause
    return errors[0]


def test_causes_decide_where_the_error_itself_says_nothing() -> None:
    assert classify_failure(_caused(RuntimeError("wrapped"), TimeoutError())).kind == "transient"
    limited = _caused(RuntimeError("x"), _error(status_code=429, response=_response(retry_after="3")))
    assert classify_failure(limited).retry_after_s == 3.0
    # A lost connection that is none.
    certificate = _caused(_error("APIConnectionError"), _error("ConnectError"), ssl.SSLCertVerificationError("expired"))
    assert classify_failure(certificate).kind == "any-request"
    # What happened while an error was handled caused nothing.
    handling = RuntimeError("another")
    handling.__context__ = TimeoutError()
    assert classify_failure(handling).kind == "this-request"


def test_a_circle_of_causes_ends() -> None:
    one, other = RuntimeError("one"), RuntimeError("other")
    one.__cause__, other.__cause__ = other, one
    assert classify_failure(one).kind == "this-request"


# --- Retry-After ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": "7"}, 7.0),
        ({"Retry_After": " 0.5 "}, 0.5),
        ({"retry_after_ms": "1500", "retry_after": "9"}, 1.5),
        ({"x_ms_retry_after_ms": "20"}, 0.02),
        ({"retry_after_ms": "soon", "retry_after": "9"}, 9.0),
        ({"retry_after": "-3"}, 0.0),
        ({"retry_after": "86400"}, 600.0),
        ({"retry_after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry_after": "nan"}, None),
        ({"retry_after": "inf"}, None),
        ({"retry_after": "soon"}, None),
        ({"retry_after": ""}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read(headers: dict[str, str], seconds: float | None) -> None:
    for error in (
        _error(status_code=429, response=_response(**headers)),
        _error(status=429, **vars(_response(**headers))),
    ):
        assert classify_failure(error).retry_after_s == seconds


def test_retry_after_may_be_a_date() -> None:
    date = email.utils.formatdate(time.time() + 120, usegmt=True)
    seconds = classify_failure(_error(status_code=503, response=_response(retry_after=date))).retry_after_s
    assert 100 < seconds <= 120


@pytest.mark.parametrize("headers", [None, "text", 3, [("retry-after", "1")]])
def test_odd_headers_are_passed_over(headers: object) -> None:
    assert classify_failure(_error(status_code=429, response=SimpleNamespace(headers=headers))).retry_after_s is None


def test_a_lasting_failure_has_no_other_time() -> None:
    assert classify_failure(_error(status_code=401, response=_response(retry_after="5"))).retry_after_s is None


# --- reasons ----------------------------------------------------------------------------------------------------


def test_a_reason_is_one_short_line() -> None:
    page = _error("InternalServerError", "<html>\n<h1>Bad\tGateway</h1>\r\n" + "spam " * 20_000, status_code=502)
    reason = classify_failure(page).reason
    assert reason.startswith("InternalServerError: <html> <h1>Bad Gateway</h1> spam spam")
    assert len(reason) <= 400
    assert reason.isprintable()


def test_a_reason_says_what_was_behind_the_words_of_a_client() -> None:
    def lost(*texts: str) -> str:
        names = ("TimeoutError_", "ConnectTimeout", "ClientOSError")
        return classify_failure(_caused(*map(_error, names, texts))).reason

    assert (
        lost("timed out", "reset by peer", "reset by peer") == "TimeoutError_: timed out (ClientOSError: reset by peer)"
    )
    assert lost("timed out", "timed out", "") == "TimeoutError_: timed out (ClientOSError)"
    assert lost("", "", "") == "TimeoutError_ (ClientOSError)"
    # An answer speaks for itself.
    told = _caused(_error("BadRequestError", "no such option", status_code=400), _error("HTTPError", "see some page"))
    assert classify_failure(told).reason == "BadRequestError: no such option"


def test_a_wrong_address_is_hinted_at() -> None:
    reason = classify_failure(_error("NotFoundError", "no such page", status_code=404)).reason
    assert reason.startswith("NotFoundError: no such page (")
    assert "base_url" in reason


def test_an_error_that_cannot_be_shown_is_named() -> None:
    class Shy(Exception):
        def __str__(self) -> str:
            raise ValueError("not now")

    assert classify_failure(Shy()) == Failure("this-request", "Shy")


# --- back-off ---------------------------------------------------------------------------------------------------

PASSING = Failure("transient", "gone")


@given(
    st.integers(1, 2000),
    st.none() | st.floats(0, 600),
    st.floats(1e-3, 100),
    st.floats(1e-3, 1000),
    st.integers(0, 2**32),
)
def test_waits_are_bounded_and_never_shorter_than_asked(n, retry_after_s, first_s, longest_s, seed) -> None:
    failure = Failure("rate-limited", "slower", retry_after_s)
    waited = wait_s(n, failure, first_s=first_s, longest_s=longest_s, rng=np.random.default_rng(seed))
    floor = retry_after_s or 0.0
    assert floor <= waited <= (floor + min(longest_s, first_s * 2.0 ** min(n - 1, 60))) * (1 + 1e-12)


@pytest.mark.parametrize(("n", "longest"), [(1, 0.5), (2, 1.0), (5, 8.0), (8, 60.0), (20, 60.0)])
def test_jitter_is_full_and_doubles(n: int, longest: float) -> None:
    rng = np.random.default_rng(1)
    waits = np.array([wait_s(n, PASSING, first_s=0.5, longest_s=60.0, rng=rng) for _ in range(4000)])
    # Mean and standard deviation of a uniform on [0, longest], within five standard errors.
    assert abs(waits.mean() - longest / 2) < 5 * longest / np.sqrt(12 * 4000)
    assert waits.std() == pytest.approx(longest / np.sqrt(12), rel=0.05)


def test_calls_refused_together_do_not_come_back_together() -> None:
    rng = np.random.default_rng(1)
    failure = Failure("rate-limited", "slower", 2.0)
    waits = {wait_s(1, failure, first_s=0.5, longest_s=60.0, rng=rng) for _ in range(100)}
    assert len(waits) == 100
    assert 2.0 <= min(waits) <= max(waits) <= 2.5


# --- credentials ------------------------------------------------------------------------------------------------


_NAMES = "OPENAI_API_KEY HF_TOKEN MY_KEY AWS_SECRET_ACCESS_KEY PGPASSWORD SMTP_PASS GITHUB_PAT x_auth"
_PLAIN = "refused plain/looking value+1, at https://host/plain%2Flooking%20value%2B1/x"


@pytest.mark.parametrize(
    ("variables", "text", "shown"),
    [
        *(({name: "plain/looking value+1"}, _PLAIN, "refused ***, at https://host/***/x") for name in _NAMES.split()),
        # The longer of two nested ones goes first, and every line of one goes.
        ({"A_KEY": "abcdefgh", "B_KEY": "abcdefgh-ijkl"}, "got abcdefgh-ijkl and abcdefgh", "got *** and ***"),
        ({"SIGNING_KEY": "first line of it\nsecond line of it\n"}, "bad: second line of it", "bad: ***"),
        # Passwords of addresses.
        (
            {"DATABASE_URL": "postgresql+psycopg://ann:hunter%402hunter@host/db"},
            "password is hunter@2hunter or hunter%402hunter",
            "password is *** or ***",
        ),
        # Flags and folders are no credentials.
        ({"MAX_TOKENS": "100"}, "got 100", "got 100"),
        ({"USE_KEY": "true"}, "got true", "got true"),
        ({"PWD": "/home/somebody"}, "got /home/somebody", "got /home/somebody"),
    ],
)
def test_values_of_credential_variables_are_left_out(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], text: str, shown: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert redacted(text) == shown


SECRETS = [
    KEY,
    "sk-12***",
    "sk-abc***xyz",
    "sk-ant-api03-AbC_dEf-123",
    "hf_AbCdEfGhIjKlMnOp",
    "gsk_AbCdEf123456",
    "AIzaSyA-bCdEfGhIjKl",
    "AKIAIOSFODNN7EXAMPLE",
    "ghp_AbCdEf123456",
    "xai-AbCdEf123456",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln",
    "abcd****************wxyz",
    "key-0123456789abcdef",
]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize(
    "frame", ["{}", "key {}, sorry", "'{}'", "(was {}).", '{{"error": "{}"}}', "Incorrect API key provided: {}. See"]
)
def test_what_looks_like_a_key_is_left_out(secret: str, frame: str) -> None:
    shown = redacted(frame.format(secret))
    assert secret not in shown
    assert not re.search(r"AbC|abcd|wxyz|xyz|12\*|0123", shown)
    assert "***" in shown


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer {}",
        "{{'Authorization': 'Basic {}'}}",
        "bearer {}",
        "api_key={}",
        "OPENAI_API_KEY={} was refused",
        "x-api-key: {}",
        '{{"apiKey": "{}", "model": "m"}}',
        '{{\\"api_key\\": \\"{}\\"}}',
        "password = '{}'",
        "https://ann:{}@host/path",
        "postgresql+psycopg://{}@host/db",
        "http://host/v1/chat?key={}",
        "Get wss://host/x?a=1&token={} failed",
    ],
)
def test_what_is_introduced_as_a_credential_is_left_out(text: str) -> None:
    secret = base64.b64encode(b"no shape at all").decode()
    shown = redacted(text.format(secret))
    assert "***" in shown
    assert secret.rstrip("=") not in shown


def test_a_private_key_is_left_out_even_when_it_is_cut() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\ndef\n-----END RSA PRIVATE KEY-----"
    assert redacted(f"bad key {key} here") == "bad key *** here"
    assert redacted(f"bad key {key[:45]}") == "bad key ***"


@pytest.mark.parametrize(
    "text",
    [
        "Error code: 429 - Rate limit reached for gpt-4o-mini in organization on tokens per min (TPM): Limit 30000",
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (max_tokens 500)",
        "Cannot connect to host 127.0.0.1:11434 ssl:default [Connect call failed]",
        "The model 'my-model' does not exist, see https://host/docs/models",
        "token_limit and key-value-store; a task of mine; risk-averse; password authentication failed",
    ],
)
def test_ordinary_errors_are_left_as_they_are(text: str) -> None:
    assert redacted(text) == text


@given(st.text())
def test_redaction_is_stable(text: str) -> None:
    once = redacted(text)
    assert redacted(once) == once


def test_reasons_are_redacted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_TOKEN", "correct horse battery")
    lost = _caused(RuntimeError("no"), ConnectionError("with correct horse battery at http://u:p@h/?k=v"))
    assert classify_failure(lost).reason == "RuntimeError: no (ConnectionError: with *** at http://***@h/?***)"


def test_a_credential_is_not_shown_by_halves() -> None:
    for length in range(300, 420):
        reason = classify_failure(RuntimeError("x" * length + f" {KEY}")).reason
        assert "sk-" not in reason


def test_a_cause_that_the_error_tells_itself_is_told_once() -> None:
    error = SpecError("scripted answer own:letter failed with RuntimeError: too long (in own.py:3)")
    error.__cause__ = RuntimeError("too long")
    assert classify_failure(error).reason == f"SpecError: {error}"


def test_a_reply_beyond_its_bound_is_not_asked_for_again() -> None:
    error = ConnectionError("Connection error.")
    error.__cause__ = ReplyTooLong(8_000_000)
    failure = classify_failure(error, networked=True)
    assert failure.kind == "this-request"
    assert "longer than 8,000,000 bytes, unpacked" in failure.reason
