"""The server of batches that other tests rely on: each dialect by plain HTTP, and what it counts."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.batch_faults import Faults
from tests.support.batches import BatchProvider

KEY = {"Authorization": "Bearer key"}


def body(number: int, **others: Any) -> dict[str, Any]:
    """A small request, different by number."""
    return {"model": "m", "seed": number, "messages": [{"role": "user", "content": "Say something."}], **others}


def openai_lines(*bodies: dict[str, Any], ids: str = "call-{}") -> bytes:
    """An input file of OpenAI's kind."""
    return b"\n".join(
        json.dumps(
            {"custom_id": ids.format(number), "method": "POST", "url": "/v1/chat/completions", "body": each}
        ).encode()
        for number, each in enumerate(bodies)
    )


def client_of(address: str, headers: dict[str, str]) -> httpx.Client:
    """A client that leaves no connection open."""
    return httpx.Client(base_url=address, headers=headers, limits=httpx.Limits(max_keepalive_connections=0))


def results(text: str) -> dict[str, Any]:
    """The lines of a file of results by the id of the request."""
    return {each["custom_id"]: each for each in map(json.loads, text.splitlines())}


@pytest.fixture
def provider() -> Iterator[BatchProvider]:
    """A provider whose time stands still, and whose batches take 100 seconds."""
    with BatchProvider(scale=0, delay=100.0) as provider:
        yield provider


class OpenAIClient:
    """The calls of OpenAI's dialect."""

    def __init__(self, provider: BatchProvider, dialect: str = "openai", key: str = "key") -> None:
        self.http = client_of(provider.url(dialect), {"Authorization": f"Bearer {key}"})

    def upload(self, content: bytes, name: str = "token.jsonl") -> str:
        answer = self.http.post("/files", data={"purpose": "batch"}, files={"file": (name, content)})
        return str(answer.raise_for_status().json()["id"])

    def create(self, file_id: str, **others: Any) -> dict[str, Any]:
        given = {"input_file_id": file_id, "endpoint": "/v1/chat/completions", "completion_window": "24h", **others}
        return dict(self.http.post("/batches", json=given).raise_for_status().json())

    def look(self, batch: dict[str, Any]) -> dict[str, Any]:
        return dict(self.http.get(f"/batches/{batch['id']}").raise_for_status().json())

    def content(self, file_id: str) -> str:
        return self.http.get(f"/files/{file_id}/content").raise_for_status().text


@pytest.mark.parametrize("dialect", ["openai", "groq"])
def test_a_batch_of_openais_kind_goes_through_its_states_and_answers_as_a_call_at_once(
    provider: BatchProvider, dialect: str
) -> None:
    client = OpenAIClient(provider, dialect)
    batch = client.create(client.upload(openai_lines(*(body(number) for number in range(10)))), metadata={"token": "t"})
    assert (batch["status"], batch["metadata"], batch["output_file_id"]) == ("validating", {"token": "t"}, None)
    provider.advance(50)
    half = client.look(batch)
    assert (half["status"], half["request_counts"]) == ("in_progress", {"total": 10, "completed": 5, "failed": 0})
    provider.advance(46)
    assert client.look(batch)["status"] == "finalizing"
    provider.advance(4)
    done = client.look(batch)
    assert (done["status"], done["error_file_id"]) == ("completed", None)
    found = results(client.content(done["output_file_id"]))
    at_once = client.http.post("/chat/completions", json=body(7)).json()
    assert found["call-7"]["response"]["body"] == at_once
    said = {each["response"]["body"]["choices"][0]["message"]["content"] for each in found.values()}
    assert len(said) == 10
    assert all(8 <= len(each.split()) <= 20 for each in said)
    assert (provider.bought.total(), provider.at_once.total(), list(provider.twice().values())) == (10, 1, [2])


def test_what_is_done_counts_at_half_the_price_though_nobody_fetches_it(provider: BatchProvider) -> None:
    client = OpenAIClient(provider)
    batch = client.create(client.upload(openai_lines(*(body(number) for number in range(10)))))
    provider.advance(30)
    assert client.http.post(f"/batches/{batch['id']}/cancel").json()["status"] == "cancelled"
    provider.advance(1000)
    ended = client.look(batch)
    assert ended["request_counts"] == {"total": 10, "completed": 3, "failed": 0}
    undone = results(client.content(ended["error_file_id"]))
    assert {each["error"]["code"] for each in undone.values()} == {"batch_cancelled"}
    assert len(results(client.content(ended["output_file_id"]))) == 3
    said = [each["response"]["body"]["usage"] for each in results(client.content(ended["output_file_id"])).values()]
    full = sum(each["prompt_tokens"] * 1e-6 + each["completion_tokens"] * 4e-6 for each in said)
    assert provider.cost() == pytest.approx(full / 2, rel=1e-12)
    assert client.http.post(f"/batches/{batch['id']}/cancel").status_code == 409


def test_a_share_of_items_expires_and_the_others_are_there() -> None:
    with BatchProvider(scale=0, faults=Faults(expire=0.5)) as provider:
        client = OpenAIClient(provider)
        batch = client.look(client.create(client.upload(openai_lines(*(body(number) for number in range(40))))))
        done, undone = (results(client.content(batch[name])) for name in ("output_file_id", "error_file_id"))
    assert batch["status"] == "expired"
    assert 10 < len(done) < 30
    assert done.keys() | undone.keys() == {f"call-{number}" for number in range(40)}
    assert {each["error"]["code"] for each in undone.values()} == {"batch_expired"}
    assert provider.bought.total() == len(done)


def test_a_batch_that_takes_too_long_expires(provider: BatchProvider) -> None:
    client, provider.window_s = OpenAIClient(provider), 50
    batch = client.create(client.upload(openai_lines(*(body(number) for number in range(10)))))
    provider.advance(200)
    assert client.look(batch)["status"] == "expired"
    assert provider.bought.total() == 5


def test_items_meet_errors_that_cost_nothing() -> None:
    shares = {"500": 0.2, "429": 0.2, "400": 0.2}
    with BatchProvider(scale=0, faults=Faults(item_errors=shares)) as provider:
        client = OpenAIClient(provider)
        many = [body(number) for number in range(60)]
        batch = client.look(client.create(client.upload(openai_lines(*many, body(60, colour="red")))))
        again = client.look(client.create(client.upload(openai_lines(*many))))
        bad, later = (results(client.content(each["error_file_id"])) for each in (batch, again))
    statuses = {name: each["response"]["status_code"] for name, each in bad.items()}
    assert set(statuses.values()) == {400, 429, 500}
    assert statuses["call-60"] == 400
    assert "colour" in bad["call-60"]["response"]["body"]["error"]["message"]
    stopped = {name for name, status in statuses.items() if status == 400} - {"call-60"}
    assert stopped <= {name for name, each in later.items() if each["response"]["status_code"] == 400}
    assert bad.keys() - {"call-60"} != later.keys()
    assert provider.bought.total() == 60 - len(bad) + 1 + 60 - len(later)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (openai_lines(body(0), body(1), ids="same"), "duplicate_custom_id"),
        (b"", "empty_file"),
        (b"{", "invalid_json_line"),
        (openai_lines(body(0), body(1, model="other")), "model_mismatch"),
        (openai_lines(body(0)).replace(b"chat/completions", b"embeddings"), "url_mismatch"),
        (openai_lines(*(body(number) for number in range(4))), "too_many_tasks"),
    ],
)
def test_an_input_file_with_a_fault_makes_the_batch_fail(provider: BatchProvider, content: bytes, code: str) -> None:
    client, provider.most_requests = OpenAIClient(provider), 3
    batch = client.look(client.create(client.upload(content)))
    assert (batch["status"], batch["errors"]["data"][0]["code"]) == ("failed", code)
    provider.advance(1000)
    assert provider.bought.total() == 0


def test_requests_with_wrong_fields_or_without_a_key_are_refused(provider: BatchProvider) -> None:
    client = OpenAIClient(provider)
    file_id = client.upload(openai_lines(body(0)))
    given = {"input_file_id": file_id, "endpoint": "/v1/chat/completions", "completion_window": "24h"}
    wrong: list[dict[str, Any]] = [
        {**given, "name": "x"},
        {**given, "metadata": {"token": 1}},
        {**given, "completion_window": "48h"},
        {**given, "input_file_id": "file-none"},
        {"endpoint": given["endpoint"]},
    ]
    assert [client.http.post("/batches", json=each).status_code for each in wrong] == [400] * 5
    assert client.http.post("/files", data={"purpose": "vision"}, files={"file": b"{}"}).status_code == 400
    assert client.http.post("/chat/completions", json=body(0, colour="red")).status_code == 400
    assert httpx.get(f"{provider.url('openai')}/batches").status_code == 401
    assert provider.batches == {}


def test_an_account_sees_what_it_made_and_lists_have_pages(provider: BatchProvider) -> None:
    client, other = OpenAIClient(provider), OpenAIClient(provider, key="other")
    made = [client.create(client.upload(openai_lines(body(number)))) for number in range(5)]
    theirs = other.create(other.upload(openai_lines(body(9))))
    provider.page = 2
    pages = []
    after: dict[str, str] = {}
    while not pages or pages[-1]["has_more"]:
        pages.append(client.http.get("/batches", params={"limit": "100", **after}).json())
        after = {"after": pages[-1]["last_id"]}
    assert [len(each["data"]) for each in pages] == [2, 2, 1]
    assert [each["id"] for page in pages for each in page["data"]] == [each["id"] for each in made[::-1]]
    assert client.http.get(f"/batches/{theirs['id']}").status_code == 404
    assert client.http.get(f"/files/{theirs['input_file_id']}/content").status_code == 404


def test_a_new_batch_is_in_no_list_for_a_while(provider: BatchProvider) -> None:
    client, provider.faults = OpenAIClient(provider), Faults(list_lag_s=60)
    batch = client.create(client.upload(openai_lines(body(0))))
    assert client.http.get("/batches").json()["data"] == []
    assert client.look(batch)["id"] == batch["id"]
    provider.advance(60)
    assert [each["id"] for each in client.http.get("/batches").json()["data"]] == [batch["id"]]


def test_replies_and_requests_are_lost_and_late_ones_need_their_file(provider: BatchProvider) -> None:
    client, provider.faults = OpenAIClient(provider), Faults(drop_before_create=[0], drop_after_create=[1])
    file_id = client.upload(openai_lines(body(0)))
    for made in (0, 1):
        with pytest.raises(httpx.RemoteProtocolError):
            client.create(file_id)
        assert len(client.http.get("/batches").json()["data"]) == made
    provider.faults = Faults(late_creation_s=90)
    deleted = client.upload(openai_lines(body(1)))
    for each in (file_id, deleted):
        with pytest.raises(httpx.RemoteProtocolError):
            client.create(each)
    client.http.delete(f"/files/{deleted}").raise_for_status()
    assert len(client.http.get("/batches").json()["data"]) == 1
    provider.advance(90)
    assert {each["input_file_id"] for each in client.http.get("/batches").json()["data"]} == {file_id}
    provider.advance(100)
    assert list(provider.twice().values()) == [2]


def test_results_fail_vanish_are_cut_off_and_hold_what_nobody_asked() -> None:
    faults = Faults(fetch_fails=1, cut_off=[1], vanish=[1], duplicate_ids=[0], foreign_ids=[0])
    with BatchProvider(faults=faults) as provider:
        client = OpenAIClient(provider)
        first, second = (client.look(client.create(client.upload(openai_lines(body(0), body(1))))) for _ in range(2))
        path = f"/files/{first['output_file_id']}/content"
        assert client.http.get(path).status_code == 500
        with pytest.raises(ValueError, match=r"Unterminated|Expecting|delimiter"):
            results(client.http.get(path).text)
        whole = [json.loads(each)["custom_id"] for each in client.http.get(path).text.splitlines()]
        assert sorted(whole) != sorted(set(whole))
        assert len(set(whole) - {"call-0", "call-1"}) == 1
        assert second["status"] == "completed"
        assert client.http.get(f"/files/{second['output_file_id']}/content").status_code == 404
        provider.faults = Faults(fetch_fails=True, fetch_status=403)
        assert [client.http.get(path).status_code for _ in range(3)] == [403] * 3


def test_a_stuck_batch_ends_only_when_it_is_cancelled(provider: BatchProvider) -> None:
    client, provider.faults = OpenAIClient(provider), Faults(stuck=[0], stuck_done=0.5)
    batch = client.create(client.upload(openai_lines(*(body(number) for number in range(10)))))
    provider.advance(1e7)
    assert client.look(batch)["status"] == "in_progress"
    client.http.post(f"/batches/{batch['id']}/cancel").raise_for_status()
    assert client.look(batch)["status"] == "cancelled"
    assert provider.bought.total() == 5


def test_a_limit_of_tokens_makes_batches_fail_until_others_have_ended(provider: BatchProvider) -> None:
    client, provider.faults = OpenAIClient(provider), Faults(enqueued_tokens=5)
    file_id = client.upload(openai_lines(body(0)))
    states = [client.look(client.create(file_id)) for _ in range(2)]
    assert [each["status"] for each in states] == ["in_progress", "failed"]
    assert states[1]["errors"]["data"][0]["code"] == "token_limit_exceeded"
    provider.advance(100)
    assert client.look(client.create(file_id))["status"] == "in_progress"


def test_a_share_of_answers_refuses_and_not_again_in_the_same_conversation() -> None:
    with BatchProvider(refuse=0.3) as provider:
        client = OpenAIClient(provider)
        replies = [client.http.post("/chat/completions", json=body(number)).json() for number in range(100)]
        said = [each["choices"][0]["message"] for each in replies]
        refused = [number for number, each in enumerate(said) if each["refusal"]]
        assert 15 < len(refused) < 45
        turns = [("assistant", said[refused[0]]["refusal"]), ("user", "Please do.")]
        messages = [{"role": role, "content": content} for role, content in turns]
        asked = [body(number, messages=[*body(0)["messages"], *messages]) for number in range(30)]
        again = [client.http.post("/chat/completions", json=each).json() for each in asked]
    assert all(each["choices"][0]["message"]["content"] for each in again)


def test_as_a_process_it_is_controlled_over_http(tmp_path: Path) -> None:
    top = Path(__file__).parents[2]
    command = [sys.executable, "-m", "tests.support.batches", "--scale", "0", "--delay", "[10, 20]"]
    faults = json.dumps({"drop_after_create": [0]})
    with subprocess.Popen(
        [*command, "--faults", faults], cwd=top, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        with httpx.Client(base_url=process.stdout.readline().strip(), headers=KEY) as http:
            form = {"data": {"purpose": "batch"}, "files": {"file": ("t.jsonl", openai_lines(body(0), body(1)))}}
            file_id = http.post("/openai/v1/files", **form).json()["id"]
            given = {"input_file_id": file_id, "endpoint": "/v1/chat/completions", "completion_window": "24h"}
            with pytest.raises(httpx.RemoteProtocolError):
                http.post("/openai/v1/batches", json=given)
            http.post("/openai/v1/batches", json=given).raise_for_status()
            assert http.post("/control/faults", json={"stuck": [2]}).status_code == 200
            assert http.post("/control/faults", json={"stick": [2]}).status_code == 400
            http.post("/control/advance", json={"seconds": 10})
            counts = http.get("/control/counts").json()
            assert [each["phase"] for each in counts["batches"]] == ["completed", "in_progress"]
            assert (counts["bought"], counts["creates"]) == (3, 2)
            assert list(counts["ids_twice"].values()) == [2]
        process.communicate()
    assert process.returncode == 0
