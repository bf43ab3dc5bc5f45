"""Requests that a browser would not make: foreign hosts and origins, guessed links, damaged forms, other files."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import uvicorn

import opinionsim as osim
from opinionsim.errors import SpecError
from opinionsim.web import serve
from opinionsim.web._connection import PromptConnection
from tests.support.command import refused
from tests.support.rooms import Answer, Browser, RoomServer, room
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RoomServer]:
    folder = tmp_path_factory.mktemp("http")
    (folder / "small.yaml").write_text(
        "{name: small, seed: 3, task: Speak., cast: [{name: Ada}, {name: Guest, seat: {}}], "
        "interaction: {kind: dyadic, steps: 4}}",
        encoding="utf-8",
    )
    with room("small.yaml", folder) as found:
        yield found


@pytest.fixture(scope="module")
def owner(server: RoomServer) -> str:
    """The owner's cookie."""
    path = server.link.removeprefix(server.address)
    # Programs that look at a link ahead of a person do not use it up.
    assert (server.ask(path, method="HEAD").status, server.ask("/settings", method="HEAD").text) == (200, "")
    answer = server.ask(path)
    assert answer.status == 303
    return answer.headers["set-cookie"].partition(";")[0]


@pytest.fixture(scope="module")
def run(server: RoomServer, owner: str) -> str:
    """The path of the session, in which the owner sits."""
    found = re.search(r"/sessions/\w+", server.ask("/", cookie=owner).text)
    assert found is not None
    sat = server.ask(f"{found[0]}/sit", method="POST", body="seat=1", cookie=owner, origin=server.address,
              content_type="application/x-www-form-urlencoded")  # fmt: skip
    assert sat.status == 303
    return found[0]


def _post(server: RoomServer, path: str, owner: str, content: str | bytes, **headers: str) -> Answer:
    given = {"origin": server.address, "content_type": "application/x-www-form-urlencoded", **headers}
    return server.ask(path, method="POST", body=content, cookie=owner, **given)


def _question(server: RoomServer, run: str, owner: str) -> dict[str, str]:
    """The key of the question that is open."""
    for _ in range(200):
        page = server.ask(f"{run}/seat", cookie=owner).text
        if 'id="answer"' in page:
            return dict(re.findall(r'name="(turn|call|attempt)" value="([^"]*)"', page))
    raise AssertionError("nothing is asked")


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost", "127.0.0.1:1", ""])
def test_foreign_names_are_refused(server: RoomServer, owner: str, host: str) -> None:
    answer = server.ask("/", host=host, cookie=owner)
    assert answer.status == 421
    assert "small" not in answer.text


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1:1"])
def test_posts_from_other_pages_are_refused(server: RoomServer, owner: str, run: str, origin: str) -> None:
    held = {**_question(server, run, owner), "text": "Sent by another site."}
    assert _post(server, f"{run}/answer", owner, urlencode(held), origin=origin).status == 403
    none = server.ask(f"{run}/answer", method="POST", body=urlencode(held), cookie=owner,
               content_type="application/x-www-form-urlencoded", sec_fetch_site="cross-site")  # fmt: skip
    assert none.status == 403
    assert _question(server, run, owner) == {name: held[name] for name in ("turn", "call", "attempt")}


@pytest.mark.parametrize("path", ["/", "/settings", "/sessions/{run}", "/sessions/{run}/live", "/sessions/{run}/seat",
                                  "/sessions/{run}/download/json", "/sessions/{run}/debriefing"])  # fmt: skip
@pytest.mark.parametrize("cookie", ["", "opinionsim-{port}=guessed", "opinionsim-{port}=", "other=1"])
def test_without_a_key_nothing_is_told(server: RoomServer, run: str, path: str, cookie: str) -> None:
    answer = server.ask(path.replace("/sessions/{run}", run), cookie=cookie.format(port=server.port))
    assert "Ada" not in answer.text
    assert answer.status == (200 if path == "/" else 401)


@pytest.mark.parametrize("key", ["guessed", "..%2f..%2fetc%2fpasswd", "%00", "a" * 5000, "%ff%fe", "%F0%9F%90%8C"])
def test_guessed_links_open_nothing(server: RoomServer, key: str) -> None:
    for method in ("GET", "HEAD", "POST"):
        answer = server.ask(f"/enter/{key}", method=method, origin=server.address)
        assert answer.status in ((400, 404, 422) if method == "POST" else (200, 404))
    assert "sessions" not in answer.headers.get("location", "")
    assert "Traceback" not in answer.text


def test_the_owners_link_works_once(server: RoomServer, owner: str) -> None:
    answer = server.ask(server.link.removeprefix(server.address), method="POST", origin=server.address)
    assert answer.status == 400


def test_a_cookie_that_nobody_gave_is_not_taken_over(server: RoomServer, owner: str) -> None:
    page = server.ask("/", cookie=owner).text
    run = re.search(r"/sessions/\w+", page)
    assert run is not None
    assert _post(server, f"{run[0]}/invite", owner, "seat=none").status == 303
    link = re.search(r"http://\S+/enter/[\w-]+", server.ask("/", cookie=owner).text)
    assert link is not None
    chosen = f"opinionsim-{server.port}=chosen"
    entered = server.ask(link[0].removeprefix(server.address), method="POST", origin=server.address,
                  cookie=chosen)  # fmt: skip
    assert entered.status == 303
    assert chosen not in entered.headers["set-cookie"]
    assert server.ask(run[0], cookie=chosen).status == 401


@pytest.mark.parametrize("path", ["/static/../_rights.py", "/static/..%2f_rights.py", "/static/%2e%2e/__init__.py",
                                  "//etc/passwd", "/static//etc/passwd", "/results/small-room.sqlite", "/small.yaml",
                                  "/sessions/../../small.yaml", "/static/room.css%00.py"])  # fmt: skip
def test_other_files_are_not_served(server: RoomServer, owner: str, path: str) -> None:
    answer = server.ask(path, cookie=owner)
    assert answer.status in (400, 404)
    assert "import" not in answer.text


@pytest.mark.parametrize("path", ["/", "/static/room.js", "/nowhere", "/enter/x"])
def test_every_answer_carries_the_headers(server: RoomServer, path: str) -> None:
    headers = server.ask(path).headers
    assert headers["content-security-policy"].startswith("default-src 'self'")
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert "server" not in headers


def test_no_page_has_a_script_or_a_style_of_its_own(server: RoomServer, owner: str, run: str) -> None:
    for path in ("/", run, "/settings", "/withdrawal"):
        page = server.ask(path, cookie=owner).text
        assert not re.search(r"<script(?![^>]*\bsrc=)|\sstyle=|\son\w+=|javascript:", page)
        assert all(source.startswith("/static/") for source in re.findall(r'(?:src|href)="([^"]*\.(?:js|css))"', page))


DAMAGED = {
    "nothing": (b"", 400),
    "no form": (b"\x00\x01\x02", 400),
    "a number that is none": (b"turn=one&call=reply&attempt=0&text=x", 400),
    "a negative number": (b"turn=-1&call=reply&attempt=0&text=x", 400),
    "a huge number": (b"turn=99999999999999999999&call=reply&attempt=0&text=x", 400),
    "another question": (b"turn=100000&call=reply&attempt=0&text=x", 409),
}


@pytest.mark.parametrize("what", DAMAGED)
def test_damaged_forms_are_one_clear_sentence(server: RoomServer, owner: str, run: str, what: str) -> None:
    content, status = DAMAGED[what]
    _question(server, run, owner)
    answer = _post(server, f"{run}/answer", owner, content)
    assert answer.status == status
    assert 'class="notice"' in answer.text
    assert "Traceback" not in answer.text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("   \n\t ", "There is no text to send."),
        ("x" * 20_001, "20,001 characters"),
        ("\x00\x07PNG\x1a", "not text"),
        ("w " * 100_000, "characters"),
    ],
)
def test_texts_that_cannot_be_taken_are_kept_on_the_page(
    server: RoomServer, owner: str, run: str, text: str, told: str
) -> None:
    held = _question(server, run, owner)
    answer = _post(server, f"{run}/answer", owner, urlencode({**held, "text": text}))
    assert answer.status == 400
    assert told in answer.text
    assert text.strip()[:20] in answer.text or "\x00" in text
    assert _question(server, run, owner) == held


def test_a_request_that_is_too_large_is_refused(server: RoomServer, owner: str, run: str) -> None:
    answer = _post(server, f"{run}/answer", owner, b"text=" + b"x" * (2 << 20))
    assert answer.status in (400, 413)


def test_uploads_are_refused(server: RoomServer, owner: str, run: str) -> None:
    held = _question(server, run, owner)
    parts = "".join(
        f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in held.items()
    )
    file = '--b\r\nContent-Disposition: form-data; name="text"; filename="a.exe"\r\n\r\nMZ\r\n--b--\r\n'
    answer = _post(server, f"{run}/answer", owner, parts + file, content_type="multipart/form-data; boundary=b")
    assert answer.status == 400
    broken = _post(server, f"{run}/answer", owner, "--b\r\nbroken", content_type="multipart/form-data; boundary=b")
    assert broken.status == 400
    assert _question(server, run, owner) == held


def test_settings_take_no_import_path_and_write_no_other_place(server: RoomServer, owner: str, tmp_path: Path) -> None:
    for given in ({"model.name": "os:system"}, {"do": "save", "name": "../escaped"}, {"do": "save", "name": "/etc/x"},
                  {"interaction.steps": "many"}, {"interaction.steps": ""}):  # fmt: skip
        answer = _post(server, "/settings", owner, urlencode({"do": "forecast", **given}))
        assert answer.status == 400, given
        assert 'class="problem"' in answer.text
    found = _post(server, "/settings", owner, urlencode({"do": "save", "name": "longer", "interaction.steps": "9"}))
    assert found.status == 200
    assert re.search(r"At most \d+ calls", found.text)
    path = re.search(r"Saved as (\S+\.yaml)", found.text)
    assert path is not None
    assert osim.load_experiment(path[1]).spec.interaction.steps == 9  # type: ignore[attr-defined]
    again = _post(server, "/settings", owner, urlencode({"do": "save", "name": "longer"}))
    assert "already" in again.text


def test_settings_offer_models_and_texts_that_the_file_does_not_name(server: RoomServer, owner: str) -> None:
    page = server.ask("/settings", cookie=owner).text
    fields = dict(
        re.findall(r'<(?:select|textarea) id="s\d+" name="([^"]+)"(.*?)</(?:select|textarea)>', page, re.DOTALL)
    )
    named = {f"cast.0.{text}" for text in ("system", "persona", "instructions", "task")}
    assert {name for name in fields if not name.endswith("model.name")} == named
    for name in ("model.name", "cast.0.model.name"):
        assert {"scripted", "openai:gpt-4o", "anthropic:claude-sonnet-4"} <= set(
            re.findall("<option[^>]*>([^<]+)<", fields[name])
        )
    given = {"cast.0.model.name": "openai:gpt-4o", "cast.0.task": "Be brief."}
    found = _post(server, "/settings", owner, urlencode({"do": "save", "name": "worded", **given}))
    path = re.search(r"Saved as (\S+\.yaml)", found.text)
    assert path is not None, found.text
    spec = osim.load_experiment(path[1]).spec
    assert (spec.cast[0].model.name, spec.cast[0].task) == ("openai:gpt-4o", "Be brief.")  # type: ignore[union-attr]
    both = _post(
        server, "/settings", owner, urlencode({"do": "try", "cast.0.system": "You.", "cast.0.persona": "A cook."})
    )
    assert (both.status, "cannot be combined with system" in both.text) == (400, True)


def test_another_model_goes_without_the_options_of_the_former_one(tmp_path: Path) -> None:
    spec = {
        "name": "own", "task": "Speak.", "interaction": {"kind": "dyadic", "steps": 4},
        "cast": [{"persona": "a nurse"}, {"name": "B", "model": {"name": "openai:b", "options": {"base_url": "http://[::1]/v1"}}},
                 {"seat": {}}],
        "model": {"name": "openai:own", "options": {"base_url": "http://127.0.0.1:9/v1"}},
    }  # fmt: skip
    (tmp_path / "own.yaml").write_text(json.dumps(spec), encoding="utf-8")
    with room("own.yaml", tmp_path) as server:
        owner = Browser(server)
        owner.come_in(server.link)
        page = owner.ask("/settings").text
        assert "with its own base_url, which another model goes without" in page
        # The page calls a member without a name as the session's pages do.
        assert "Agent 0: model" in page
        given = {"do": "save", "name": "other", "model.name": "openai:gpt-4o", "cast.0.model.name": "openai:b"}
        found = re.search(r"Saved as (\S+\.yaml)", owner.ask("/settings", given).text)
    assert found is not None
    changed = osim.load_experiment(found[1]).spec
    assert (changed.model.name, changed.model.options) == ("openai:gpt-4o", {})  # type: ignore[union-attr]
    assert changed.cast[0].model.options == {"base_url": "http://[::1]/v1"}  # type: ignore[union-attr]


def test_settings_are_tried_before_people_come(server: RoomServer, owner: str) -> None:
    """In a store of its own, marked as a trial, once: asked for again, what is on record is shown."""
    told = [_post(server, "/settings", owner, urlencode({"do": "try", "interaction.steps": "5"})) for _ in range(2)]
    assert [each.status for each in told] == [200, 200]
    lines = [re.findall(r'<div class="text" dir="auto">(.*?)</div>', each.text) for each in told]
    assert lines[0] == lines[1]
    assert lines[0].count("A stand-in speaks here in the place of a person.") >= 2
    assert "no table includes this trial" in told[0].text
    store = f"sqlite:///{server.folder / 'results' / 'small-trial.sqlite'}"
    assert osim.load(store).runs["status"].tolist() == ["trial"]
    assert "(1 trial)" in refused("table", store)
    assert osim.load(f"sqlite:///{server.folder / 'results' / 'small-room.sqlite'}").runs["status"].tolist() != [
        "trial"
    ]


@pytest.mark.parametrize("certificate", ["absent.pem", "small.yaml"])
def test_a_certificate_that_cannot_be_used_is_said_before_the_room_opens(
    server: RoomServer, tmp_path: Path, certificate: str
) -> None:
    told: list[str] = []
    experiment = osim.load_experiment(server.folder / "small.yaml")
    with pytest.raises(SpecError, match=rf"the certificate \S*{certificate} with the key \S*key.pem cannot be used"):
        serve(experiment, str(tmp_path / "s.sqlite"), certificate=server.folder / certificate,
              key=tmp_path / "key.pem", told=told.append)  # fmt: skip
    assert (told, list(tmp_path.iterdir())) == ([], [])


def test_one_cookie_follows_a_bounded_number_of_pages(server: RoomServer, owner: str, run: str) -> None:
    with ExitStack() as closing:
        streams = []
        for _ in range(32):
            connection = closing.enter_context(
                contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=30))
            )
            connection.request("GET", f"{run}/live?since=0.0", headers={"cookie": owner})
            streams.append(connection.getresponse())
        assert {each.status for each in streams} == {200}
        # All of them are told what one look at the store has found.
        assert all(each.readline() for each in streams)
        assert server.ask(run, cookie=owner).status == 429
        assert server.ask("/").status == 200
    wait_until(lambda: server.ask(run, cookie=owner).status == 200)


async def _slow(scope: Any, receive: Any, send: Any) -> None:
    """An application that answers later than a request may take."""
    while (await receive()).get("more_body"):
        continue
    await asyncio.sleep(0.3)
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def test_a_request_that_is_sent_by_halves_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opinionsim.web._connection._WHOLE_S", 0.1)
    head, body = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\n", b"text"

    async def told(port: int, *parts: bytes) -> list[bytes]:
        """What comes back for parts of a request, each sent after the answer to the one before."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        found = []
        for part in parts:
            writer.write(part)
            found.append((await reader.read(1000))[:12])
        writer.close()
        return found

    async def all_told() -> list[list[bytes]]:
        server = uvicorn.Server(uvicorn.Config(_slow, http=PromptConnection, log_config=None, lifespan="off"))
        served = await asyncio.get_running_loop().create_server(
            lambda: PromptConnection(server.config, server.server_state, {}), "127.0.0.1", 0
        )
        server.config.load()
        port = served.sockets[0].getsockname()[1]
        async with served:
            halves = [[b""], [head[:20]], [head], [head + body[:2]], [head + body, head[:20]], [head + body, b""]]
            return await asyncio.gather(*(told(port, *each) for each in halves))

    answered = b"HTTP/1.1 204"
    assert asyncio.run(all_told()) == [[b""]] * 4 + [[answered, b""]] * 2


@pytest.mark.whole
def test_a_port_in_use_and_a_store_in_use_are_said(server: RoomServer, tmp_path: Path) -> None:
    for options, told in ((("--port", str(server.port)), "cannot be used"), (("--store", "held.sqlite"), "in use")):
        spec = tmp_path / "small.yaml"
        spec.write_text("{name: s, task: Speak., cast: [{name: A}, {seat: {}}], "
                        "interaction: {kind: dyadic, steps: 4}}", encoding="utf-8")  # fmt: skip
        with osim.store.open_store(str(tmp_path / "held.sqlite")), pytest.raises(RuntimeError, match=told):
            RoomServer(spec, tmp_path, *options)


def test_live_events_tell_a_viewer_where_the_session_stands(server: RoomServer, owner: str, run: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    connection.request("GET", f"{run}/live?since=0.0", headers={"cookie": owner})
    answer = connection.getresponse()
    told: list[str] = []
    while "event: seat" not in told or not any(text.startswith("data: {") for text in told):
        told.append(answer.readline().decode().strip())
    connection.close()
    line = next(json.loads(text.removeprefix("data: ")) for text in told if text.startswith("data: {"))
    assert line.keys() == {"turn", "html"}
    assert "event: state" in told
