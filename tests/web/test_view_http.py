"""The viewer over HTTP: who may read, every address that makes no sense, and a store that goes away."""

from __future__ import annotations

import http.client
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

import opinionsim as osim
from opinionsim.errors import SpecError, StoreError
from opinionsim.store import TurnRow, open_store
from opinionsim.web import view
from tests.cli.conftest import backup
from tests.support.postgres import Server
from tests.support.rooms import Answer, RoomServer, room
from tests.support.running import SMALL, changed

SPEC = changed(SMALL, measurement={"classifier": "lexicon"}, sweep={"cognition.confirmation_bias": ["none", "strong"]})
#: Addresses that answer, {run} for a run.
ANSWERS = (
    "/data/experiments", "/data/experiments/small", "/data/experiments/small?design=1",
    "/data/experiments/small/colours?metric=bias", "/data/runs/{run}", "/data/runs/{run}?since=0.3",
    "/data/runs/{run}/turns?from=2&count=3", "/data/runs/{run}/turns?agent=1&order=change",
    "/data/runs/{run}/turns/0", "/data/runs/{run}/agents/0", "/data/runs/{run}/metrics?name=diversity",
    "/data/runs/{run}/beyond", "/data/search?experiment=small&q=claim",
)  # fmt: skip


def _problem(answer: Answer) -> str:
    """The sentence of an answer that failed."""
    found = json.loads(answer.text)
    assert list(found) == ["problem"]
    return str(found["problem"])


class Shown:
    """A viewer, and its owner's cookie."""

    def __init__(self, server: RoomServer) -> None:
        self.server, self.cookie = server, ""
        entered = self.ask(server.link.removeprefix(server.address))
        assert (entered.status, entered.headers["location"]) == (303, "/")
        self.cookie = entered.headers["set-cookie"].partition(";")[0]

    def ask(self, path: str, *, method: str = "GET", **headers: str) -> Answer:
        """A request, literally as given."""
        return self.server.ask(path, method=method, **{"cookie": self.cookie, **headers})

    def told(self, path: str) -> Any:
        """What an address answers."""
        answer = self.ask(path)
        assert answer.status == 200, answer
        return json.loads(answer.text)

    @contextmanager
    def live(self, run: str, since: str = "") -> Iterator[Iterator[tuple[str, Any]]]:
        """Events of a run, as they come."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)) as connection:
            connection.request("GET", f"/live/{run}?since={since}", None, {"cookie": self.cookie})
            lines = (line.decode().strip() for line in connection.getresponse())

            def events() -> Iterator[tuple[str, Any]]:
                name = ""
                for line in lines:
                    field, _, value = line.partition(": ")
                    if field == "event":
                        name = value
                    if field == "data":
                        yield name, json.loads(value)

            yield events()


@contextmanager
def viewer(store: str, folder: Path, *options: str) -> Iterator[Shown]:
    """A viewer of a store, while the block lasts."""
    with room(store, folder, "--port", "0", *options, command="view") as server:
        yield Shown(server)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shown") / "s.sqlite"
    osim.run(osim.load_experiment(SPEC), str(path))
    return path


@pytest.fixture(scope="module")
def shown(store: Path) -> Iterator[Shown]:
    with viewer(str(store), store.parent) as found:
        yield found


@pytest.fixture(scope="module")
def run(store: Path) -> str:
    return str(osim.load(str(store)).runs["run_id"].iloc[0])


@pytest.mark.parametrize("path", ANSWERS)
def test_every_answer_is_an_object_that_carries_the_headers(shown: Shown, run: str, path: str) -> None:
    answer = shown.ask(path.format(run=run))
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert isinstance(json.loads(answer.text), dict)
    assert answer.headers["content-security-policy"].startswith("default-src 'self'")
    assert answer.headers["cache-control"] == "no-store"
    assert "server" not in answer.headers


@pytest.mark.parametrize("path", ["/", "/live/{run}", *ANSWERS])
@pytest.mark.parametrize("cookie", ["", "opinionsim-{port}=guessed", "opinionsim-{port}=", "opinionsim={key}"])
def test_without_the_cookie_nothing_is_told(shown: Shown, run: str, path: str, cookie: str) -> None:
    key = shown.cookie.partition("=")[2]
    answer = shown.ask(path.format(run=run), cookie=cookie.format(port=shown.server.port, key=key))
    assert answer.status == 401
    assert "small" not in answer.text
    assert run not in answer.text


def test_the_outcome_is_drawn_on_request(shown: Shown) -> None:
    answer = shown.ask("/outcome/small?design=1")
    assert (answer.status, answer.headers["content-type"]) == (200, "image/svg+xml")
    assert "SCRIPTED STAND-IN" in answer.text
    assert shown.ask("/outcome/other").status == 404
    assert shown.ask("/outcome/small", cookie="").status == 401


def test_the_link_works_once_and_not_for_its_head(store: Path) -> None:
    with room(str(store), store.parent, "--port", "0", command="view") as server:
        link = server.link.removeprefix(server.address)
        assert "set-cookie" not in server.ask(link, method="HEAD").headers
        found = Shown(server)
        assert found.ask(link).status == 303  # whoever has the cookie already is let through
        assert found.ask(link, cookie="").status == 404
        assert found.ask("/enter/guessed", cookie="").status == 404
        assert found.cookie.startswith(f"opinionsim-{server.port}=")


@pytest.mark.parametrize("headers", [{"host": "evil.example"}, {"host": "127.0.0.1"}, {"origin": "http://evil.example"},
                                     {"origin": "null"}, {"origin": "http://127.0.0.1:1"}])  # fmt: skip
@pytest.mark.parametrize("path", ["/", "/data/experiments", "/live/{run}"])
def test_foreign_names_and_pages_are_refused(shown: Shown, run: str, path: str, headers: dict[str, str]) -> None:
    answer = shown.ask(path.format(run=run), **headers)
    assert answer.status == (421 if "host" in headers else 403)
    assert "small" not in answer.text


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_it_only_reads(shown: Shown, method: str) -> None:
    assert shown.ask("/data/experiments", method=method, origin=shown.server.address).status == 405


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/data/nowhere", 404, "There is nothing at this address."),
        ("/data/experiments/large", 404, "no experiment 'large'; it contains small"),
        ("/data/experiments/%ff%00", 404, "no experiment"),
        ("/data/experiments/small?design=2", 404, "no design 2"),
        ("/data/experiments/small?design=-1", 400, "design must be a whole number"),
        ("/data/experiments/small?design=99999999999999999999", 400, "at most 9 digits"),
        ("/data/experiments/small/colours", 400, "no metric ''"),
        ("/data/experiments/small/colours?metric=%27%3B--", 400, "no metric"),
        ("/data/runs/nowhere", 404, "no run 'nowhere'"),
        ("/data/runs/%00%ff%F0%9F%90%8C", 404, "no run"),
        ("/data/runs/{run}?since=x", 400, "must have the form GENERATION.NUMBER"),
        ("/data/runs/{run}?since=0.999999", 400, "is not a row of the run yet"),
        ("/data/runs/{run}/turns?instrument=none", 404, "no instrument 'none'"),
        ("/data/runs/{run}/turns?from=-3", 400, "from must be a whole number"),
        ("/data/runs/{run}/turns?count=1e3", 400, "count must be a whole number"),
        ("/data/runs/{run}/turns?agent=%D9%A3", 400, "agent must be a whole number"),
        ("/data/runs/{run}/turns?order=up", 400, "order must be change"),
        ("/data/runs/{run}/turns?kind=song", 400, "no text of kind 'song'"),
        ("/data/runs/{run}/turns/999999999", 404, "no stored turn 999999999"),
        ("/data/runs/{run}/turns/last", 400, "turn must be a whole number"),
        ("/data/runs/{run}/agents/77", 404, "no agent 77"),
        ("/data/runs/{run}/metrics?name=beauty", 400, "beauty cannot be computed"),
        ("/data/search?q=x", 404, "no experiment"),
        ("/data/search?experiment=small&q=" + "x" * 1001, 400, "1,001 characters"),
    ],
)
def test_an_address_that_makes_no_sense_is_one_sentence(
    shown: Shown, run: str, path: str, status: int, said: str
) -> None:
    answer = shown.ask(path.format(run=run))
    assert answer.status == status
    assert said in _problem(answer)
    assert "Traceback" not in answer.text
    assert "\n" not in _problem(answer)


def test_names_of_parameters_that_are_none_are_passed_over(shown: Shown) -> None:
    assert shown.told("/data/experiments?reader=1&known=2")["experiments"][0]["name"] == "small"


def test_live_tells_what_is_added_and_that_a_run_is_begun_anew(store: Path, run: str, tmp_path: Path) -> None:
    path = tmp_path / "copy.sqlite"
    backup(store, path)
    with viewer(str(path), tmp_path) as found, open_store(str(path)) as opened:
        before = found.told(f"/data/runs/{run}")
        agents = opened.agents(run)
        with found.live(run, f"0.{before['seq']}") as events:
            assert next(events) == ("change", {"generation": 0, "seq": before["seq"], "state": "complete"})
            opened.forget([run])
            record = opened.record(run, opened.lease(run, "host 1") or 0)
            record.begin(agents, [])
            record.add_turn(TurnRow(0, 1, 0, "write", "post", (), "Anew."))
            record.flush()
            while (event := next(events))[1]["seq"] != 1:
                pass
            assert event == ("change", {"generation": 1, "seq": 1, "state": "under way"})
        after = found.told(f"/data/runs/{run}?since=0.{before['seq']}")
        assert (after["generation"], after["seq"], after["turns"]["turn"]) == (1, 1, [0])
        assert after["about"] is not None


def test_a_store_that_is_deleted_is_said_and_one_that_comes_back_is_shown(
    store: Path, run: str, tmp_path: Path
) -> None:
    path, kept = tmp_path / "copy.sqlite", tmp_path / "kept"
    backup(store, path)
    with viewer(str(path), tmp_path) as found:
        with found.live(run) as events:
            assert next(events)[0] == "change"
            path.rename(kept)
            name, told = next(events)
            assert name == "lost"
            assert "deleted or moved" in told["problem"] or "there is no store" in told["problem"]
            assert next(events, None) is None
        answer = found.ask(f"/data/runs/{run}/beyond")
        assert answer.status == 503
        assert "there is no store at" in _problem(answer)
        kept.rename(path)
        assert found.told(f"/data/runs/{run}")["state"] == "complete"


def test_a_damaged_run_is_said_and_others_are_shown(store: Path, run: str, tmp_path: Path) -> None:
    path = tmp_path / "copy.sqlite"
    backup(store, path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("delete from turns where turn = 1 and run_id = ?", (run,))
        connection.commit()
    with viewer(str(path), tmp_path) as found:
        answer = found.ask(f"/data/runs/{run}")
        assert answer.status == 503
        assert "missing" in _problem(answer)
        (sibling,) = (each["run_id"] for each in found.told("/data/experiments/small")["runs"] if each["run_id"] != run)
        assert found.told(f"/data/runs/{sibling}")["state"] == "complete"


def test_a_database_is_shown(postgres: Server, tmp_path: Path) -> None:
    url = postgres.database("shown")
    osim.run(osim.load_experiment(SPEC), url)
    with viewer(url, tmp_path) as found:
        (listed,) = found.told("/data/experiments")["experiments"]
        assert listed["counts"]["complete"] == 2
        for each in found.told("/data/experiments/small")["runs"]:
            for path in ANSWERS:
                assert isinstance(found.told(path.format(run=each["run_id"])), dict)
        assert found.ask("/data/runs/%00%ff").status == 404
        assert found.told("/data/search?experiment=small&q=%00")["total"] == 0


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "there is no store"), (b"", "is empty"), (b"SQLite format 3\x00" + b"x" * 4096, "cannot read the store")],
)
def test_a_store_that_cannot_be_shown_is_one_sentence(tmp_path: Path, content: bytes | None, said: str) -> None:
    path = tmp_path / "s.sqlite"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(StoreError, match=said):
        view(str(path), browser=False)


def test_a_port_that_is_taken_is_said_and_without_one_another_is_taken(
    shown: Shown, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SpecError, match=f"--port {shown.server.port} .* cannot be used"):
        view(str(store), port=shown.server.port, browser=False)
    monkeypatch.setattr("opinionsim.web._serve.VIEWER_PORT", shown.server.port)
    monkeypatch.setattr("uvicorn.Server.run", lambda server, sockets: None)
    told: list[str] = []
    view(str(store), "small", browser=False, told=told.append)
    assert told[0] == f"Port {shown.server.port} is in use, so the page uses another port."
    assert f"127.0.0.1:{shown.server.port}/" not in told[1]
    with open_store(str(store), write=False) as opened:
        assert told[1].endswith(f"#/experiment/{opened.designs()[0].experiment_id}")


def test_an_experiment_that_is_not_there_is_said_before_anything_is_shown(store: Path) -> None:
    with pytest.raises(StoreError, match="has no experiment 'large'; it contains small"):
        view(str(store), "large", browser=False)
