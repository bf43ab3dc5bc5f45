"""Values of headers and queries of a provider: sent, told apart, and kept nowhere; redirects are not followed."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

import opinionsim as osim
from opinionsim.cli import app
from opinionsim.running import replay
from opinionsim.specification import load_experiment
from tests.support.loopback import Loopback
from tests.support.running import SMALL, changed

SAID, ASKED = "quiet-otter-7741", "brown-heron-5520"


def _spec(base_url: str, said: str = SAID) -> dict[str, Any]:
    options = {"base_url": base_url, "default_headers": {"X-Team": said}, "default_query": {"tenant": ASKED}}
    judge = {"name": "chat", "options": {"model": "openai:judge", "options": options}}
    return changed(
        SMALL,
        replicates=1,
        interaction={"kind": "dyadic", "steps": 1},
        model={"name": "openai:m", "options": options},
        measurement={"classifier": judge},
        execution={"retry": {"transient": 0}},
    )


def _kept(folder: Path) -> list[str]:
    """Files below a folder that hold one of the values."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path.name for path in files if any(each.encode() in path.read_bytes() for each in (SAID, ASKED))]


def test_values_of_headers_and_queries_are_sent_and_kept_nowhere(tmp_path: Path) -> None:
    with Loopback(say=lambda body: {"text": "I believe it. 2"}) as server:
        experiment = load_experiment(_spec(server.base_url))
        results = osim.run(experiment, "s.sqlite")
        assert results.runs["status"].item() == "complete"
        assert {headers["x-team"] for headers in server.headers} == {SAID}
        assert osim.run(experiment, "s.sqlite").runs["status"].item() == "complete", "a resume finds its run"
        others = load_experiment(_spec(server.base_url, "another-team"))
        assert others.runs[0].run_id != experiment.runs[0].run_id, "another value is another model"
        assert CliRunner().invoke(app, ["export", "s.sqlite", "out"]).exit_code == 0
        assert _kept(tmp_path) == []
        assert [each.difference for each in replay(results)] == [""]
        manifest = json.loads(Path("out/manifest.json").read_text(encoding="utf-8"))
        with pytest.raises(osim.SpecError, match="X-Team: the manifest has only its digest"):
            osim.run(load_experiment(manifest), "other.sqlite")
        stated = {
            f"{place}.{field}": value
            for place in ("model.options", "measurement.classifier.options.options")
            for field, value in (("default_headers", {"X-Team": SAID}), ("default_query", {"tenant": ASKED}))
        }
        again = load_experiment(manifest, stated)
        assert [run.run_id for run in again.runs] == [run.run_id for run in experiment.runs]
        assert osim.run(again, "other.sqlite").runs["status"].item() == "complete"
    assert _kept(tmp_path) == []


@pytest.fixture
def servers() -> Iterator[tuple[str, list[str], list[str]]]:
    """A server that quotes headers and redirects to another place; what came there; and what came to the first."""
    first: list[str] = []
    second: list[str] = []

    class Other(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            second.append(str(self.headers))
            self.send_error(500)

        do_GET = do_POST

        def log_message(self, *_: Any) -> None: ...

    class Redirecting(Other):
        def do_POST(self) -> None:
            first.append(str(self.headers))
            self.rfile.read(int(self.headers["content-length"]))
            body = json.dumps({"error": {"message": f"moved: {self.headers['x-team']} {self.path}"}}).encode()
            self.send_response(307)
            self.send_header("Location", f"http://127.0.0.1:{other.server_port}/v1/chat/completions")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with (
        ThreadingHTTPServer(("127.0.0.1", 0), Other) as other,
        ThreadingHTTPServer(("127.0.0.1", 0), Redirecting) as one,
    ):
        threads = [threading.Thread(target=each.serve_forever) for each in (other, one)]
        for thread in threads:
            thread.start()
        yield f"http://127.0.0.1:{one.server_port}/v1", first, second
        for each in (other, one):
            each.shutdown()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("own", [{}, {"http_socket_options": [[6, 1, 1]]}], ids=["our client", "langchain's client"])
def test_a_redirect_is_not_followed_and_ends_the_run(
    own: dict[str, Any], servers: tuple[str, list[str], list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, first, second = servers
    monkeypatch.setenv("TEAM_API_KEY", "violet-lynx-9013")
    spec = _spec(url)
    spec["model"]["options"] |= {"api_key_env": "TEAM_API_KEY", **own}
    Path("spec.yaml").write_text(yaml.safe_dump({**spec, "measurement": {"classifier": "lexicon"}}), encoding="utf-8")
    result = CliRunner().invoke(app, ["run", "spec.yaml", "--store", "s.sqlite", "--debug"])
    assert (len(first), second) == (1, [])
    assert "violet-lynx-9013" in first[0]
    assert result.exit_code == 1
    assert "moved: ***" in result.stderr
    assert SAID not in result.stderr
    assert ASKED not in result.stderr
    Path("spec.yaml").unlink()
    assert _kept(tmp_path) == []
