"""Viewer and studio over HTTP: who may read, every address that makes no sense, and a store that goes away."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from starlette.applications import Starlette
from starlette.routing import Route

import opinionsim as osim
from opinionsim.errors import SpecError, StoreError
from opinionsim.store import TurnRow, open_store
from opinionsim.studio import studio, view
from tests.cli.conftest import backup
from tests.support.postgres import Server
from tests.support.rooms import Answer, RoomServer, room
from tests.support.running import SMALL, changed

SPEC = changed(SMALL, measurement={"classifier": "lexicon"}, sweep={"cognition.confirmation_bias": ["none", "strong"]})
#: Addresses that answer with JSON: {run} for a run, {store} for the name of its store.
ANSWERS = (
    "/data/runs/{run}?store={store}", "/data/runs/{run}?store={store}&since=0.3",
    "/data/runs/{run}/turns?store={store}&from=2&count=3", "/data/runs/{run}/turns?store={store}&agent=1&order=change",
    "/data/runs/{run}/turns/0?store={store}", "/data/runs/{run}/agents/0?store={store}",
    "/data/runs/{run}/metrics?store={store}&name=diversity", "/data/runs/{run}/beyond?store={store}",
    "/data/search?store={store}&experiment=small&q=claim",
)  # fmt: skip
#: Addresses of pages and of their parts.
PAGES = (
    "/results/{store}", "/results/{store}?experiment=small&design=1&by.cognition.confirmation_bias=strong&kind=post",
    "/runs/{store}", "/progress/{store}", "/part/tables/{store}", "/part/tables/{store}?table=conditions",
    "/part/runs/{store}", "/part/sections/{store}", "/part/figures/{store}", "/figure/outcome/{store}",
    "/numbers/outcome/{store}",
)  # fmt: skip
#: What stands for the parts of the routes' paths.
WORDS = {"store": "{store}", "run": "{run}", "turn": "0", "agent": "0", "what": "tables", "name": "outcome",
         "study": "small.yaml", "file": "results/small.sqlite", "act": "run"}  # fmt: skip


def _problem(answer: Answer) -> str:
    """The sentence of an answer that failed."""
    found = json.loads(answer.text)
    assert list(found) == ["problem"]
    return str(found["problem"])


class Shown:
    """A viewer or a studio that shows a store, and its owner's cookie."""

    def __init__(self, server: RoomServer, store: str) -> None:
        self.server, self.store, self.cookie = server, store, ""
        entered = self.ask(server.link.removeprefix(server.address))
        assert entered.status == 303
        self.first = entered.headers["location"]
        self.cookie = entered.headers["set-cookie"].partition(";")[0]

    def ask(self, path: str, *, method: str = "GET", run: str = "", **headers: str) -> Answer:
        """A request, literally as given apart from the names of store and run."""
        path = path.replace("{run}", run).replace("{store}", self.store)
        return self.server.ask(path, method=method, **{"cookie": self.cookie, **headers})

    def told(self, path: str, run: str = "") -> Any:
        """What an address answers."""
        answer = self.ask(path, run=run)
        assert answer.status == 200, answer
        return json.loads(answer.text)

    @contextmanager
    def live(self, run: str, since: str = "") -> Iterator[Iterator[tuple[str, Any]]]:
        """Events of a run, as they come."""
        with self.stream(f"/live/{run}?store={self.store}&since={since}") as events:
            yield ((name, json.loads(value)) for name, value in events)

    @contextmanager
    def stream(self, path: str) -> Iterator[Iterator[tuple[str, str]]]:
        """Events of an address, as they come."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)) as connection:
            connection.request("GET", path, None, {"cookie": self.cookie})
            lines = (line.decode().strip() for line in connection.getresponse())

            def events() -> Iterator[tuple[str, str]]:
                name = ""
                for line in lines:
                    field, _, value = line.partition(":")
                    if field == "event":
                        name = value.strip()
                    if field == "data":
                        yield name, value.strip()

            yield events()


@contextmanager
def viewer(store: str, folder: Path, *options: str) -> Iterator[Shown]:
    """A viewer of a store, while the block lasts."""
    with room(store, folder, "--port", "0", *options, command="view") as server:
        yield Shown(server, Path(store).name)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a study and its store, which a studio shows too."""
    folder = tmp_path_factory.mktemp("shown")
    (folder / "small.yaml").write_text(yaml.safe_dump(SPEC), encoding="utf-8")
    path = folder / "results" / "small.sqlite"
    osim.run(osim.load_experiment(SPEC), str(path))
    return path


@pytest.fixture(scope="module")
def shown(store: Path) -> Iterator[Shown]:
    with viewer(str(store), store.parent) as found:
        yield found


@pytest.fixture(scope="module")
def opened(store: Path) -> Iterator[Shown]:
    """A studio of the folder of the store."""
    with room(".", store.parents[1], "--port", "0", command="studio") as server:
        yield Shown(server, "results/small.sqlite")


@pytest.fixture(params=["shown", "opened"])
def either(request: pytest.FixtureRequest) -> Shown:
    """The viewer, and the studio."""
    found: Shown = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module")
def run(store: Path) -> str:
    return str(osim.load(str(store)).runs["run_id"].iloc[0])


# -- who may read --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ANSWERS)
def test_every_answer_is_an_object_that_carries_the_headers(either: Shown, run: str, path: str) -> None:
    answer = either.ask(path, run=run)
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json"), answer
    assert isinstance(json.loads(answer.text), dict)
    _has_headers(answer)


def _has_headers(answer: Answer) -> None:
    assert answer.headers["content-security-policy"].startswith("default-src 'self'")
    assert answer.headers["cache-control"] == "no-store"
    assert "server" not in answer.headers


@pytest.mark.parametrize("path", PAGES)
def test_every_page_needs_nothing_that_its_policy_forbids(either: Shown, path: str) -> None:
    answer = either.ask(path)
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8"), answer
    assert not re.search(r"<script(?![^>]* src=\"/)|<style|\sstyle=|\son\w+=", answer.text)
    _has_headers(answer)


def _routes(store: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Route]]:
    """The routes of a viewer of a store and of a studio of its folder."""
    found: list[Starlette] = []
    monkeypatch.setattr("opinionsim.web.Served.run", lambda served, application, link: found.append(application))
    view(str(store), port=0, browser=False, told=lambda said: None)
    studio(store.parents[1], port=0, browser=False, told=lambda said: None)
    every = ([each for each in application.routes if isinstance(each, Route)] for application in found)
    return dict(zip(("shown", "opened"), every, strict=True))


COOKIES = ["", "opinionsim-{port}=guessed", "opinionsim-{port}=", "opinionsim={key}"]


@pytest.mark.parametrize("which", ["shown", "opened"])
def test_without_the_cookie_no_route_tells_or_does_anything(
    store: Path, run: str, which: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: Shown = request.getfixturevalue(which)
    key, before = found.cookie.partition("=")[2], sorted(store.parents[1].rglob("*"))
    asked = set()
    for route in _routes(store, monkeypatch)[which]:
        if route.path.startswith("/enter/"):
            continue
        path = re.sub(r"{(\w+)(:path)?}", lambda part: WORDS[part[1]], route.path)
        for method in sorted({*(route.methods or ())} - {"HEAD"}):
            asked.add((method, route.path.split("/")[1]))
            for cookie in (each.format(port=found.server.port, key=key) for each in COOKIES):
                answer = found.ask(path, method=method, run=run, cookie=cookie, origin=found.server.address)
                assert answer.status == 401, (method, path, cookie)
                assert "small" not in answer.text
                assert run not in answer.text
    read = {"", "results", "progress", "part", "figure", "picture", "numbers", "csv", "runs", "changes", "data", "live"}
    assert asked >= {("GET", each) for each in read} | {("POST", "section")}
    written = {("POST", each) for each in ("new", "check", "save", "allow", "do")}
    assert asked & written == (written if which == "opened" else set())
    assert sorted(store.parents[1].rglob("*")) == before


def test_the_link_works_once_and_not_for_its_head(store: Path) -> None:
    with room(str(store), store.parent, "--port", "0", command="view") as server:
        link = server.link.removeprefix(server.address)
        assert "set-cookie" not in server.ask(link, method="HEAD").headers
        found = Shown(server, store.name)
        assert found.ask(link).status == 303  # a browser that already has the cookie is let in
        assert found.ask(link, cookie="").status == 404
        assert found.ask("/enter/guessed", cookie="").status == 404
        assert found.cookie.startswith(f"opinionsim-{server.port}=")


@pytest.mark.parametrize("headers", [{"host": "evil.example"}, {"host": "127.0.0.1"}, {"origin": "http://evil.example"},
                                     {"origin": "null"}, {"origin": "http://127.0.0.1:1"}])  # fmt: skip
@pytest.mark.parametrize("path", ["/", "/results/{store}", "/data/runs/{run}?store={store}", "/live/{run}", "/changes"])
def test_foreign_names_and_pages_are_refused(either: Shown, run: str, path: str, headers: dict[str, str]) -> None:
    answer = either.ask(path, run=run, **headers)
    assert answer.status == (421 if "host" in headers else 403)
    assert "small" not in answer.text


@pytest.mark.parametrize("path", ["/do/run/small.yaml", "/do/stop/small.yaml", "/save/small.yaml", "/new"])
def test_a_form_of_a_foreign_page_starts_nothing(opened: Shown, path: str) -> None:
    for headers in ({"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}, {}):
        assert opened.ask(path, method="POST", **headers).status == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
@pytest.mark.parametrize("path", ["/", "/results/{store}", "/data/runs/{run}?store={store}", "/part/runs/{store}"])
def test_pages_are_only_read(either: Shown, run: str, method: str, path: str) -> None:
    assert either.ask(path, method=method, run=run, origin=either.server.address).status == 405


@pytest.mark.parametrize("path", ["/do/run/small.yaml", "/do/stop/small.yaml", "/save/small.yaml", "/new",
                                  "/check/small.yaml", "/allow/small.yaml"])  # fmt: skip
def test_a_viewer_has_nothing_that_changes_anything(shown: Shown, path: str) -> None:
    assert shown.ask(path, method="POST", origin=shown.server.address).status == 404
    assert "<form method" not in shown.ask("/results/{store}").text


# -- where one arrives ---------------------------------------------------------------------------------------


def test_a_viewer_of_one_store_leads_to_its_results_and_a_studio_to_its_studies(shown: Shown, opened: Shown) -> None:
    assert (shown.first, opened.first) == ("/", "/")
    home = shown.ask("/")
    assert (home.status, home.headers["location"]) == (303, "/results/small.sqlite")
    text = opened.ask("/").text
    for address in ("/study/small.yaml", "/results/results/small.sqlite"):
        assert f'href="{address}"' in text
        assert opened.ask(address).status == 200


def test_names_of_files_that_addresses_spell_otherwise_lead_to_their_store(store: Path, tmp_path: Path) -> None:
    path = tmp_path / "50 % of a#b <i>&amp;.sqlite"
    shutil.copy(store, path)
    with viewer(str(path), tmp_path) as found:
        place = found.ask("/").headers["location"]
        answer = found.ask(place)
        assert answer.status == 200
        assert "2 complete" in answer.text
        assert "<i>" not in answer.text
        for address in re.findall(r'data-(?:src|live)="([^"]+)"', answer.text)[:3]:
            assert found.ask(address.replace("&amp;", "&")).status == 200


def test_only_files_of_the_folder_have_an_address(opened: Shown, store: Path) -> None:
    outside = store.parents[2] / "outside.sqlite"
    shutil.copy(store, outside)
    for name in (str(outside), "../outside.sqlite", "%2e%2e/outside.sqlite", "small.yaml", "none.sqlite", ""):
        for start in ("results", "runs", "progress", "part/runs"):
            answer = opened.ask(f"/{start}/{name}")
            assert answer.status == 404, (start, name, answer)
            assert "complete" not in answer.text


# -- what the pages say --------------------------------------------------------------------------------------------


def test_a_page_of_results_says_what_the_store_has(either: Shown) -> None:
    text = either.ask("/results/{store}").text
    assert "2 complete" in text
    assert "SCRIPTED STAND-IN" in text
    chosen = either.ask("/results/{store}?by.cognition.confirmation_bias=strong").text
    assert '<option value="strong" selected>' in chosen
    assert text.count(" selected") == 0


def test_figures_come_as_svg_with_caption_and_numbers(either: Shown, store: Path) -> None:
    part = either.ask("/figure/outcome/{store}").text
    (address,) = re.findall(r'<img src="([^"]+)"', part)
    assert "SCRIPTED STAND-IN" in part
    for path in (address.replace("&amp;", "&"), "/picture/outcome/{store}", "/picture/outcome/{store}?same=x"):
        answer = either.ask(path)
        assert (answer.status, answer.headers["content-type"]) == (200, "image/svg+xml")
        assert "SCRIPTED STAND-IN" in answer.text
    answer = either.ask("/csv/outcome/{store}")
    assert answer.headers["content-disposition"] == 'attachment; filename="outcome.csv"'
    assert answer.headers["content-type"].startswith("text/csv")
    table = either.ask("/csv/0/{store}").text.splitlines()
    assert len(table) == 3
    assert table[0].startswith("confirmation_bias,")
    assert either.ask("/csv/99/{store}").status == 404


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/data/nowhere?store={store}", 404, "There is nothing at this address."),
        ("/data/runs/{run}", 404, "There is no store ''"),
        ("/data/runs/{run}?store=other.sqlite", 404, "There is no store 'other.sqlite'"),
        ("/data/runs/{run}?store=/etc/passwd", 404, "There is no store"),
        ("/data/runs/nowhere?store={store}", 404, "no run 'nowhere'"),
        ("/data/runs/%00%ff%F0%9F%90%8C?store={store}", 404, "no run"),
        ("/data/runs/{run}?store={store}&since=x", 400, "must have the form GENERATION.NUMBER"),
        ("/data/runs/{run}?store={store}&since=0.999999", 400, "is not a row of the run yet"),
        ("/data/runs/{run}/turns?store={store}&instrument=none", 404, "no instrument 'none'"),
        ("/data/runs/{run}/turns?store={store}&from=-3", 400, "from must be a whole number"),
        ("/data/runs/{run}/turns?store={store}&count=1e3", 400, "count must be a whole number"),
        ("/data/runs/{run}/turns?store={store}&agent=%D9%A3", 400, "agent must be a whole number"),
        ("/data/runs/{run}/turns?store={store}&order=up", 400, "order must be change"),
        ("/data/runs/{run}/turns?store={store}&kind=song", 400, "no text of kind 'song'"),
        ("/data/runs/{run}/turns/999999999?store={store}", 404, "no stored turn 999999999"),
        ("/data/runs/{run}/turns/9999999999?store={store}", 400, "at most 9 digits"),
        ("/data/runs/{run}/turns/last?store={store}", 400, "turn must be a whole number"),
        ("/data/runs/{run}/agents/77?store={store}", 404, "no agent 77"),
        ("/data/runs/{run}/metrics?store={store}&name=beauty", 400, "beauty cannot be computed"),
        ("/data/search?store={store}&q=x", 404, "no experiment"),
        ("/data/search?store={store}&experiment=small&q=" + "x" * 1001, 400, "1,001 characters"),
    ],
)
def test_an_address_that_makes_no_sense_is_one_sentence(
    shown: Shown, run: str, path: str, status: int, said: str
) -> None:
    answer = shown.ask(path, run=run)
    assert answer.status == status
    assert said in _problem(answer)
    assert "Traceback" not in answer.text
    assert "\n" not in _problem(answer)


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/nowhere", 404, "There is nothing at this address."),
        ("/results/other.sqlite", 404, "There is no store &#39;other.sqlite&#39;"),
        ("/results/%ff%00", 404, "There is no store"),
        ("/results/{store}?experiment=large", 404, "no experiment &#39;large&#39;; it contains small"),
        ("/results/{store}?experiment=%ff%00", 404, "no experiment"),
        ("/results/{store}?design=2", 404, "no design 2"),
        ("/results/{store}?q=" + "x" * 4001, 400, "4,003 characters"),
        ("/part/song/{store}", 404, "There is nothing at this address."),
        ("/part/runs/{store}?by.cognition.confirmation_bias=weak", 400, "weak"),
        ("/part/tables/{store}?instrument=none", 400, "none"),
        ("/figure/beauty/{store}", 400, "beauty"),
        ("/figure/%3Cimg%20src=x%3E/{store}", 400, "&lt;img src=x&gt;"),
        ("/numbers/trajectories/{store}", 400, "outcome"),
        ("/section/nowhere/{store}", 404, "There is nothing at this address."),
    ],
)
def test_a_page_that_makes_no_sense_is_one_sentence(shown: Shown, path: str, status: int, said: str) -> None:
    answer = shown.ask(path)
    assert answer.status == status
    (problem,) = re.findall(r'<p class="problem"[^>]*>([^<]*)</p>', answer.text)
    assert said in problem
    assert "Traceback" not in answer.text


def test_names_of_parameters_that_are_none_are_passed_over(shown: Shown, run: str) -> None:
    assert shown.told("/data/runs/{run}?store={store}&reader=1&known=2", run)["state"] == "complete"
    assert "2 complete" in shown.ask("/results/{store}?reader=1&design=-1&known=").text


# -- a store that changes ------------------------------------------------------------------------------------


def test_live_tells_what_is_added_and_that_a_run_is_begun_anew(store: Path, run: str, tmp_path: Path) -> None:
    path = tmp_path / "copy.sqlite"
    backup(store, path)
    with viewer(str(path), tmp_path) as found, open_store(str(path)) as opened:
        before = found.told("/data/runs/{run}?store={store}", run)
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
        after = found.told(f"/data/runs/{{run}}?store={{store}}&since=0.{before['seq']}", run)
        assert (after["generation"], after["seq"], after["turns"]["turn"]) == (1, 1, [0])
        assert after["about"] is not None


def test_a_page_of_results_is_told_of_changes_and_its_parts_follow(store: Path, run: str, tmp_path: Path) -> None:
    path = tmp_path / "copy.sqlite"
    backup(store, path)
    with viewer(str(path), tmp_path) as found, open_store(str(path)) as opened:
        parts = {name: found.ask(f"/{name}/{{store}}").text for name in ("progress", "part/runs", "figure/outcome")}
        assert "2 complete" in parts["progress"]
        with found.stream(f"/changes?store={found.store}") as events:
            opened.forget([run])
            assert next(events) == ("change", "")
        after = {name: found.ask(f"/{name}/{{store}}").text for name in parts}
        assert "1 complete" in after["progress"]
        assert "1 pending" in after["progress"]
        assert all(after[name] != parts[name] for name in parts)


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
        answer = found.ask("/data/runs/{run}/beyond?store={store}", run=run)
        assert answer.status == 503
        assert "there is no store at" in _problem(answer)
        for path_of_page in ("/results/{store}", "/progress/{store}", "/part/runs/{store}", "/figure/outcome/{store}"):
            assert "there is no store at" in found.ask(path_of_page).text
        kept.rename(path)
        assert found.told("/data/runs/{run}?store={store}", run)["state"] == "complete"
        assert "2 complete" in found.ask("/results/{store}").text
        assert "<img" in found.ask("/figure/outcome/{store}").text


def test_a_store_in_which_nothing_has_begun_is_said(tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text(yaml.safe_dump(SPEC), encoding="utf-8")
    (tmp_path / "results").mkdir()
    with open_store(str(tmp_path / "results" / "small.sqlite")):
        pass
    with room(".", tmp_path, "--port", "0", command="studio") as server:
        found = Shown(server, "results/small.sqlite")
        for path in ("/", "/results/{store}", "/progress/{store}", "/study/small.yaml", "/state/small.yaml"):
            answer = found.ask(path)
            assert answer.status == 200, answer
            assert "Traceback" not in answer.text
        assert "holds no experiment yet" in found.ask("/state/small.yaml").text


def test_a_damaged_run_is_said_and_others_are_shown(store: Path, run: str, tmp_path: Path) -> None:
    path = tmp_path / "copy.sqlite"
    backup(store, path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("delete from turns where turn = 1 and run_id = ?", (run,))
        connection.commit()
    with viewer(str(path), tmp_path) as found:
        answer = found.ask("/data/runs/{run}?store={store}", run=run)
        assert answer.status == 503
        assert "missing" in _problem(answer)
        (sibling,) = (each for each in osim.load(str(store)).runs["run_id"] if each != run)
        assert found.told("/data/runs/{run}?store={store}", sibling)["state"] == "complete"


def test_a_database_is_shown(postgres: Server, tmp_path: Path) -> None:
    url = postgres.database("shown")
    osim.run(osim.load_experiment(SPEC), url)
    with viewer(url, tmp_path) as found:
        found.store = found.ask("/").headers["location"].removeprefix("/results/")
        assert "2 complete" in found.ask("/results/{store}").text
        for path in PAGES:
            assert found.ask(path).status == 200, path
        for run in osim.load(url).runs["run_id"]:
            for path in ANSWERS:
                assert isinstance(found.told(path, run), dict)
        assert found.ask("/data/runs/%00%ff?store={store}").status == 404
        assert found.told("/data/search?store={store}&experiment=small&q=%00")["total"] == 0


# -- how it is opened ----------------------------------------------------------------------------------------


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


def test_a_folder_that_is_none_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="is no folder; give the folder of your studies"):
        studio(tmp_path / "none", browser=False)


def test_a_port_that_is_taken_is_said_and_without_one_another_is_taken(
    shown: Shown, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SpecError, match=f"--port {shown.server.port} .* cannot be used"):
        view(str(store), port=shown.server.port, browser=False)
    with pytest.raises(SpecError, match=f"--port {shown.server.port} .* cannot be used"):
        studio(store.parent, port=shown.server.port, browser=False)
    monkeypatch.setattr("opinionsim.studio._serve_studio.PORT", shown.server.port)
    monkeypatch.setattr("uvicorn.Server.run", lambda server, sockets: None)
    told: list[str] = []
    view(str(store), browser=False, told=told.append)
    assert told[0] == f"Port {shown.server.port} is in use, so the page uses another port."
    assert f"127.0.0.1:{shown.server.port}/" not in told[1]


def test_the_experiment_that_is_named_is_shown_first(store: Path) -> None:
    with open_store(str(store), write=False) as opened:
        experiment = opened.designs()[0].experiment_id
    with viewer(str(store), store.parent, "--experiment", "small") as found:
        assert found.first == f"/results/{store.name}?experiment={experiment}"
        assert "2 complete" in found.ask(found.first).text


def test_an_experiment_that_is_not_there_is_said_before_anything_is_shown(store: Path) -> None:
    with pytest.raises(StoreError, match="has no experiment 'large'; it contains small"):
        view(str(store), "large", browser=False)
