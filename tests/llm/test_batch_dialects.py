"""Each dialect of the server of batches by plain HTTP: submission, lists, results, cancelling, expiry, refusals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.batch_faults import Faults
from tests.support.batches import BatchProvider

#: What a result says of a request that has no answer.
NONE = {"error": "error", "expired": "expired", "cancelled": "cancelled"}


def chat(number: int, **others: Any) -> dict[str, Any]:
    """A small chat completion, different by number."""
    return {"model": "m", "seed": number, "messages": [{"role": "user", "content": f"Say {number}."}], **others}


class Client:
    """What tests do, in the words of a dialect.

    Results are texts by the id of the request, or a word for why there is none.
    """

    name: str
    headers: dict[str, str]

    def __init__(self, provider: BatchProvider, key: str = "key") -> None:
        headers = {name: value.format(key) for name, value in self.headers.items()}
        limits = httpx.Limits(max_keepalive_connections=0)
        self.http = httpx.Client(base_url=provider.url(self.name), headers=headers, limits=limits)

    def get(self, path: str, **query: Any) -> Any:
        return self.http.get(path, params=query).raise_for_status().json()

    def post(self, path: str, body: Any = None) -> Any:
        return self.http.post(path, json={} if body is None else body).raise_for_status().json()


class Mistral(Client):
    name, headers = "mistral", {"Authorization": "Bearer {}"}
    states = ("QUEUED", "RUNNING", "SUCCESS", "CANCELLED", "TIMEOUT_EXCEEDED", "FAILED")
    unnamed = True

    def body(self, number: int, **others: Any) -> dict[str, Any]:
        given = chat(number, **others)
        return {"random_seed": given.pop("seed"), **given}

    def submit(self, bodies: dict[str, Any]) -> tuple[str, str]:
        content = "\n".join(json.dumps({"custom_id": name, "body": each}) for name, each in bodies.items())
        files = {"file": ("token.jsonl", content.encode())}
        stored = self.http.post("/files", data={"purpose": "batch"}, files=files).raise_for_status().json()
        given = {"input_files": [stored["id"]], "endpoint": "/v1/chat/completions", "metadata": {"token": "t"}}
        made = self.post("/batch/jobs", given)
        assert made["metadata"] == {"token": "t"}
        return made["id"], made["status"]

    def state(self, batch_id: str) -> str:
        return str(self.get(f"/batch/jobs/{batch_id}")["status"])

    def results(self, batch_id: str) -> dict[str, str]:
        job = self.get(f"/batch/jobs/{batch_id}")
        found = {}
        for file_id in filter(None, (job["output_file"], job["error_file"])):
            for line in self.http.get(f"/files/{file_id}/content").raise_for_status().text.splitlines():
                each = json.loads(line)
                good = each["response"]["status_code"] == 200
                found[each["custom_id"]] = self.said(each["response"]["body"]) if good else "error"
        return found

    def said(self, reply: Any) -> str:
        return str(reply["choices"][0]["message"]["content"])

    def at_once(self, body: Any) -> str:
        return self.said(self.post("/chat/completions", body))

    def listed(self) -> list[str]:
        found: list[str] = []
        for number in range(100):
            page = self.get("/batch/jobs", page=number, page_size=2)
            found += [each["id"] for each in page["data"]]
            if len(found) >= page["total"]:
                break
        return found

    def cancel(self, batch_id: str) -> None:
        self.post(f"/batch/jobs/{batch_id}/cancel")


class Together(Mistral):
    name = "together"
    states = ("VALIDATING", "IN_PROGRESS", "COMPLETED", "CANCELLED", "EXPIRED", "FAILED")

    def body(self, number: int, **others: Any) -> dict[str, Any]:
        return chat(number, **others)

    def submit(self, bodies: dict[str, Any]) -> tuple[str, str]:
        content = "\n".join(json.dumps({"custom_id": name, "body": each}) for name, each in bodies.items()).encode()
        form = {"purpose": "batch-api", "file_name": "token.jsonl", "file_type": "jsonl"}
        there = self.http.post("/files", files={name: (None, value) for name, value in form.items()})
        assert there.status_code == 302
        httpx.put(there.headers["Location"], content=content).raise_for_status()
        stored = self.post(f"/files/{there.headers['X-Together-File-Id']}/preprocess")
        assert stored["filename"] == "token.jsonl"
        made = self.post("/batches", {"input_file_id": stored["id"], "endpoint": "/v1/chat/completions"})["job"]
        return made["id"], made["status"]

    def state(self, batch_id: str) -> str:
        return str(self.get(f"/batches/{batch_id}")["status"])

    def results(self, batch_id: str) -> dict[str, str]:
        job = self.get(f"/batches/{batch_id}")
        found = {}
        for file_id in filter(None, (job["output_file_id"], job["error_file_id"])):
            for line in self.http.get(f"/files/{file_id}/content").raise_for_status().text.splitlines():
                each = json.loads(line)
                found[each["custom_id"]] = "error" if "error" in each else self.said(each["response"]["body"])
        return found

    def listed(self) -> list[str]:
        return [each["id"] for each in self.get("/batches")]

    def cancel(self, batch_id: str) -> None:
        self.post(f"/batches/{batch_id}/cancel")


class Anthropic(Client):
    name, headers = "anthropic", {"x-api-key": "{}", "anthropic-version": "2023-06-01"}
    states = ("in_progress", "in_progress", "ended", "ended", "ended", "")
    unnamed = False

    def body(self, number: int, **others: Any) -> dict[str, Any]:
        given = chat(number, max_tokens=50, **others)
        del given["seed"]
        return given

    def submit(self, bodies: dict[str, Any]) -> tuple[str, str]:
        requests = [{"custom_id": name, "params": each} for name, each in bodies.items()]
        made = self.post("/v1/messages/batches", {"requests": requests})
        return made["id"], made["processing_status"]

    def state(self, batch_id: str) -> str:
        return str(self.get(f"/v1/messages/batches/{batch_id}")["processing_status"])

    def results(self, batch_id: str) -> dict[str, str]:
        where = self.get(f"/v1/messages/batches/{batch_id}")["results_url"]
        lines = map(json.loads, self.http.get(where).raise_for_status().text.splitlines())
        words = {"errored": "error", "canceled": "cancelled", "expired": "expired"}
        return {
            each["custom_id"]: words.get(each["result"]["type"]) or self.said(each["result"]["message"])
            for each in lines
        }

    def said(self, reply: Any) -> str:
        return str(reply["content"][0]["text"])

    def at_once(self, body: Any) -> str:
        return self.said(self.post("/v1/messages", body))

    def listed(self) -> list[str]:
        found: list[str] = []
        after: dict[str, str] = {}
        while True:
            page = self.get("/v1/messages/batches", limit=1000, **after)
            found += [each["id"] for each in page["data"]]
            if not page["has_more"]:
                return found
            after = {"after_id": page["last_id"]}

    def cancel(self, batch_id: str) -> None:
        self.post(f"/v1/messages/batches/{batch_id}/cancel")


class Gemini(Client):
    name, headers = "gemini", {"x-goog-api-key": "{}"}
    states = tuple(
        f"BATCH_STATE_{each}" for each in ("PENDING", "RUNNING", "SUCCEEDED", "CANCELLED", "EXPIRED", "FAILED")
    )
    unnamed = False

    def body(self, number: int, **others: Any) -> dict[str, Any]:
        contents = [{"role": "user", "parts": [{"text": f"Say {number}."}]}]
        return {"contents": contents, "generationConfig": {"seed": number}, **others}

    def submit(self, bodies: dict[str, Any]) -> tuple[str, str]:
        requests = [{"request": each, "metadata": {"key": name}} for name, each in bodies.items()]
        return self.begin({"requests": {"requests": requests}})

    def begin(self, source: Any) -> tuple[str, str]:
        batch = {"displayName": "token", "inputConfig": source}
        made = self.post("/v1beta/models/m:batchGenerateContent", {"batch": batch})
        assert made["metadata"]["displayName"] == "token"
        return made["name"], made["metadata"]["state"]

    def state(self, batch_id: str) -> str:
        return str(self.get(f"/v1beta/{batch_id}")["metadata"]["state"])

    def results(self, batch_id: str) -> dict[str, str]:
        output = self.get(f"/v1beta/{batch_id}")["metadata"].get("output", {})
        results = output.get("inlinedResponses", {}).get("inlinedResponses", [])
        return {each["metadata"]["key"]: self.read(each) for each in results}

    def read(self, result: Any) -> str:
        if "response" in result:
            return self.said(result["response"])
        return "cancelled" if result["error"]["code"] == 1 else "error"

    def said(self, reply: Any) -> str:
        return str(reply["candidates"][0]["content"]["parts"][0]["text"])

    def at_once(self, body: Any) -> str:
        return self.said(self.post("/v1beta/models/m:generateContent", body))

    def listed(self) -> list[str]:
        found: list[str] = []
        token = ""
        while True:
            page = self.get("/v1beta/batches", pageSize=100, pageToken=token)
            found += [each["name"] for each in page.get("operations", [])]
            token = page.get("nextPageToken", "")
            if not token:
                return found

    def cancel(self, batch_id: str) -> None:
        assert self.post(f"/v1beta/{batch_id}:cancel") == {}


class GeminiFile(Gemini):
    """The same with requests and results in files."""

    def submit(self, bodies: dict[str, Any]) -> tuple[str, str]:
        content = "\n".join(json.dumps({"key": name, "request": each}) for name, each in bodies.items()).encode()
        start = {"X-Goog-Upload-Protocol": "resumable", "X-Goog-Upload-Command": "start"}
        begun = self.http.post("/upload/v1beta/files", headers=start, json={"file": {"displayName": "token"}})
        where = begun.raise_for_status().headers["X-Goog-Upload-URL"]
        go_on = {"X-Goog-Upload-Command": "upload, finalize", "X-Goog-Upload-Offset": "0"}
        stored = httpx.post(where, headers=go_on, content=content).raise_for_status().json()["file"]
        assert stored["displayName"] == "token"
        return self.begin({"fileName": stored["name"]})

    def results(self, batch_id: str) -> dict[str, str]:
        output = self.get(f"/v1beta/{batch_id}")["metadata"].get("output")
        if output is None:
            return {}
        lines = self.http.get(f"/download/v1beta/{output['responsesFile']}:download", params={"alt": "media"})
        return {each["key"]: self.read(each) for each in map(json.loads, lines.raise_for_status().text.splitlines())}


class OpenRouter(Client):
    name, headers = "openrouter", {"Authorization": "Bearer {}"}
    states = ("validating", "in_progress", "completed", "", "expired", "failed")
    unnamed = False

    def body(self, number: int, **others: Any) -> dict[str, Any]:
        return chat(number, **others)

    def submit(self, bodies: dict[str, Any]) -> tuple[str, str]:
        requests = [{"custom_id": name, "body": each} for name, each in bodies.items()]
        made = self.post("/batches", {"endpoint": "/v1/chat/completions", "model": "m", "requests": requests})
        return made["id"], made["status"]

    def state(self, batch_id: str) -> str:
        return str(self.get(f"/batches/{batch_id}")["status"])

    def results(self, batch_id: str) -> dict[str, str]:
        found = {}
        for each in self.get(f"/batches/{batch_id}")["results"]:
            kind = each["error"] and NONE.get(each["error"]["type"].removeprefix("batch_"), "error")
            found[each["custom_id"]] = kind or self.said(each["response"]["body"])
        return found

    def said(self, reply: Any) -> str:
        return str(reply["choices"][0]["message"]["content"])

    def at_once(self, body: Any) -> str:
        return self.said(self.post("/chat/completions", body))

    def listed(self) -> list[str]:
        found: list[str] = []
        after: dict[str, str] = {}
        while True:
            page = self.get("/batches", limit=100, **after)
            assert all(each["results"] is None for each in page["data"])
            found += [each["id"] for each in page["data"]]
            if not page["has_more"]:
                return found
            after = {"after": page["last_id"]}


ALL: tuple[Any, ...] = (Mistral, Together, Anthropic, Gemini, GeminiFile, OpenRouter)
EVERY = pytest.mark.parametrize("client_of", ALL)


@pytest.fixture
def provider() -> Iterator[BatchProvider]:
    """A provider whose time stands still, and whose batches take 100 seconds."""
    with BatchProvider(scale=0, delay=100.0) as provider:
        yield provider


@EVERY
def test_a_batch_goes_through_its_states_and_answers_as_calls_at_once(provider: BatchProvider, client_of: Any) -> None:
    client = client_of(provider)
    bodies = {f"call-{number}": client.body(number) for number in range(10)}
    batch, first = client.submit(bodies)
    assert first == client.states[0]
    provider.advance(50)
    assert client.state(batch) == client.states[1]
    assert provider.bought.total() == 5
    provider.advance(50)
    assert client.state(batch) == client.states[2]
    found = client.results(batch)
    assert found == {name: client.at_once(body) for name, body in bodies.items()}
    assert len(set(found.values())) == 10
    assert list(provider.twice().values()) == [2] * 10
    assert provider.cost("now") == pytest.approx(2 * provider.cost("batch"), rel=1e-12)


@EVERY
def test_what_a_cancelled_batch_has_done_is_there(provider: BatchProvider, client_of: Any) -> None:
    client = client_of(provider)
    batch, _ = client.submit({f"call-{number}": client.body(number) for number in range(10)})
    provider.advance(30)
    if client_of is OpenRouter:
        assert client.http.post(f"/batches/{batch}/cancel").status_code in (404, 405)
        return
    client.cancel(batch)
    provider.advance(1000)
    assert client.state(batch) == client.states[3]
    found = client.results(batch)
    done = {name for name, said in found.items() if said not in NONE}
    assert (done, provider.bought.total()) == ({"call-0", "call-1", "call-2"}, 3)
    undone = {} if client.unnamed else {f"call-{number}": "cancelled" for number in range(3, 10)}
    assert {name: said for name, said in found.items() if name not in done} == undone


@EVERY
def test_items_expire_and_others_meet_errors(provider: BatchProvider, client_of: Any) -> None:
    client, provider.faults = client_of(provider), Faults(expire=0.4, item_errors={"500": 0.3})
    batch, _ = client.submit({f"call-{number}": client.body(number) for number in range(40)})
    provider.advance(1000)
    assert client.state(batch) == client.states[4]
    found = client.results(batch)
    if issubclass(client_of, Gemini):
        assert (found, provider.bought.total()) == ({}, 0)
        return
    texts = [said for said in found.values() if said not in NONE]
    assert 5 < len(texts) == provider.bought.total() < 30
    assert "error" in found.values()
    assert ("expired" in found.values()) == (not client.unnamed)


@EVERY
def test_lists_have_pages_lag_and_show_what_the_key_made(provider: BatchProvider, client_of: Any) -> None:
    client, other, provider.page = client_of(provider), client_of(provider, "other"), 2
    made = [client.submit({"call": client.body(number)})[0] for number in range(5)]
    theirs, _ = other.submit({"call": other.body(9)})
    assert (client.listed(), other.listed()) == (made[::-1], [theirs])
    with pytest.raises(httpx.HTTPStatusError, match="404"):
        client.state(theirs)
    provider.faults = Faults(list_lag_s=60)
    assert client.listed() == []
    provider.advance(60)
    assert client.listed() == made[::-1]


@EVERY
def test_a_late_creation_without_a_file_to_delete_comes_all_the_same(provider: BatchProvider, client_of: Any) -> None:
    client, provider.faults = client_of(provider), Faults(late_creation_s=90)
    with pytest.raises(httpx.RemoteProtocolError):
        client.submit({"call": client.body(0)})
    assert client.listed() == []
    for file_id in list(provider.files):
        client.http.delete(f"/v1beta/files/{file_id}" if client.name == "gemini" else f"/files/{file_id}")
    provider.advance(90)
    by_file = client_of in (Mistral, Together, GeminiFile)
    assert len(client.listed()) == (0 if by_file else 1)


@EVERY
def test_a_batch_fails_as_a_whole(provider: BatchProvider, client_of: Any) -> None:
    client, provider.faults = client_of(provider), Faults(fails_validation=[0], enqueued_tokens=5)
    ends = [_end(client, 1), _end(client, 1), _end(client, 9)]  # by the fault; not at all; above the limit of tokens
    assert ends[1] == client.states[1]
    assert {ends[0], ends[2]} == {"429" if client_of in (Anthropic, Gemini, GeminiFile) else client.states[5]}
    provider.advance(1000)
    assert provider.bought.total() == 1


def _end(client: Any, size: int) -> str:
    """The state of a new batch, or the status of its refusal."""
    try:
        batch, _ = client.submit({f"call-{number}": client.body(number) for number in range(size)})
    except httpx.HTTPStatusError as error:
        return str(error.response.status_code)
    return str(client.state(batch))


@EVERY
def test_wrong_keys_and_fields_are_refused(provider: BatchProvider, client_of: Any) -> None:
    client, provider.keys = client_of(provider), {"key"}
    with pytest.raises(httpx.HTTPStatusError, match="401"):
        client_of(provider, "other").at_once(client.body(0))
    with pytest.raises(httpx.HTTPStatusError, match="400"):
        client.at_once(client.body(0, colour="red"))
    assert provider.at_once.total() == 0


@EVERY
def test_results_fail_are_cut_off_and_vanish(provider: BatchProvider, client_of: Any) -> None:
    client, provider.faults = client_of(provider), Faults(fetch_fails=[0], cut_off=[1], vanish=[1], duplicate_ids=[0])
    first, _ = client.submit({"call": client.body(0)})
    second, _ = client.submit({"call": client.body(1)})
    provider.advance(100)
    with pytest.raises(httpx.HTTPStatusError, match="500"):
        client.results(first)
    with pytest.raises(json.JSONDecodeError):
        client.results(first)
    assert client.results(first).keys() == {"call"}
    assert (provider.counts()["fetches"], provider.bought.total()) == (3, 2)
    assert client.state(second) == client.states[2]
    if client_of is OpenRouter:
        assert client.get(f"/batches/{second}")["results"] is None
    elif client_of is Gemini:
        assert client.results(second) == {}
    else:
        with pytest.raises(httpx.HTTPStatusError, match="404"):
            client.results(second)


def test_anthropic_takes_ids_of_its_pattern_only_and_needs_a_version(provider: BatchProvider) -> None:
    client = Anthropic(provider)
    for wrong in ("a b", "", "x" * 65, "ä"):
        with pytest.raises(httpx.HTTPStatusError, match="400"):
            client.submit({wrong: client.body(0)})
    requests = [{"custom_id": "same", "params": client.body(number)} for number in range(2)]
    assert client.http.post("/v1/messages/batches", json={"requests": requests}).status_code == 400
    del client.http.headers["anthropic-version"]
    with pytest.raises(httpx.HTTPStatusError, match="400"):
        client.submit({"call": client.body(0)})
    assert provider.batches == {}


def test_openrouter_wants_the_requests_last_and_fails_for_one_that_is_wrong(provider: BatchProvider) -> None:
    client = OpenRouter(provider)
    requests = [{"custom_id": "call", "body": client.body(0)}]
    wrong = {"requests": requests, "endpoint": "/v1/chat/completions", "model": "m"}
    assert client.http.post("/batches", json=wrong).status_code == 400
    with pytest.raises(httpx.HTTPStatusError, match="400"):
        client.submit({"call": client.body(0, model="other")})
    batch, _ = client.submit({"call": client.body(0), "other": client.body(1, colour="red")})
    shown = client.get(f"/batches/{batch}")
    assert (shown["status"], shown["results"]) == ("failed", None)
    assert "colour" in shown["error"]["message"]


def test_together_knows_a_file_by_its_checksum(provider: BatchProvider) -> None:
    client = Together(provider)
    form = {"purpose": "batch-api", "file_name": "token.jsonl", "file_type": "jsonl", "checksum": "abc"}
    parts: Any = {name: (None, value) for name, value in form.items()}
    first = client.http.post("/files", files=parts)
    httpx.put(first.headers["Location"], content=b"{}")
    again = client.http.post("/files", files=parts)
    assert (again.status_code, again.json()["file_id"]) == (409, first.headers["X-Together-File-Id"])


def test_mistral_takes_requests_in_the_body_and_gives_results_there(provider: BatchProvider) -> None:
    client = Mistral(provider)
    requests = [{"custom_id": f"call-{number}", "body": client.body(number)} for number in range(3)]
    job = client.post("/batch/jobs", {"requests": requests, "endpoint": "/v1/chat/completions", "model": "m"})
    provider.advance(100)
    outputs = client.get(f"/batch/jobs/{job['id']}", inline="true")["outputs"]
    said = {each["custom_id"]: client.said(each["response"]["body"]) for each in outputs}
    assert said["call-1"] == client.at_once(client.body(1))
