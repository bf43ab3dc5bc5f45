"""A key in the environment is sent to its provider, and is otherwise nowhere: no file, output, log, error or repr.

Everything a sweep can do with a key is done below one folder, with providers that quote it in every way they can;
then every byte below that folder is searched.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import secrets
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
import yaml
from PIL import Image
from typer.testing import CliRunner

import opinionsim as osim
from opinionsim.cli import app
from opinionsim.errors import OpinionSimError
from opinionsim.foundation.background import run as run_in_background
from opinionsim.llm import MemoryJournal, ModelClient, RetryPolicy, RunCalls, SlotPool, load_chat_model
from opinionsim.messages import ChatMessage
from opinionsim.schedules import Turn
from opinionsim.specification import load_experiment
from tests.support.provider import StubProvider
from tests.support.provider_faults import Faults, evenly
from tests.support.provider_replies import scripted_reply
from tests.support.provider_runs import SPEC
from tests.support.running import changed

pytestmark = pytest.mark.whole

#: Of the shape of no provider's keys, and with what addresses and base 64 spell in another way.
KEY = f"q+{secrets.token_hex(12)}/{secrets.token_hex(6)}=="
#: No provider has more patience than the test.
EXECUTION = {**SPEC["execution"], "retry": {**SPEC["execution"]["retry"], "transient": 1, "rate_limited": 1}}


# --- where a key can be ------------------------------------------------------------------------------------------


def spellings(key: str) -> set[bytes]:
    """A key as it is, as addresses, base 64 and dumps spell it, and any long piece of it."""
    texts = {quote(key, safe=""), quote_plus(key), key.encode().hex(), *(key[i : i + 12] for i in range(len(key) - 11))}
    for before in range(3):
        # Inside a longer text, base 64 spells a key in one of three ways; what its neighbours decide is left out.
        spelled = base64.b64encode(b"\0" * before + key.encode()).decode()[4 if before else 0 : -4]
        texts |= {spelled, spelled.replace("+", "-").replace("/", "_")}
    return {text.encode(encoding) for text in texts for encoding in ("utf-8", "utf-16-le")}


def found_in(what: bytes | str) -> list[bytes]:
    """The spellings of the key in something, with a few bytes around the first of each."""
    raw = what if isinstance(what, bytes) else what.encode("utf-8", "surrogatepass")
    return [raw[max(0, at - 60) : at + 20] for spelled in spellings(KEY) if (at := raw.find(spelled)) >= 0]


def everything_below(folder: Path) -> dict[str, bytes]:
    """Names and bytes of all files, and the texts that images carry."""
    found: dict[str, bytes] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            found[str(path)] = path.read_bytes() + str(path).encode()
        if path.suffix == ".png":
            with Image.open(path) as image:
                found[f"{path} (texts)"] = repr(image.info).encode()
    return found


def test_the_search_finds_a_key_however_it_is_spelled() -> None:
    assert found_in(f"abc{KEY}xyz")
    assert found_in(f"https://somewhere/?key={quote(KEY, safe='')}")
    assert found_in(KEY[: len(KEY) // 2])
    for before in ("", "a", "ab", "user:"):
        assert found_in(base64.b64encode(f"{before}{KEY} and more".encode()))
        assert found_in(base64.urlsafe_b64encode(f"{before}{KEY} and more".encode()))
    assert not found_in("Nothing of the kind is here.")


# --- providers that quote what they are sent ---------------------------------------------------------------------


def _quoting(how: str, key: str) -> tuple[int, str, bytes]:
    """Status, type and body of an answer that quotes a key."""
    said = f"Incorrect API key provided: {key}. See http://localhost/keys?api_key={quote(key, safe='')} for {key!r}"
    encoded = base64.b64encode(key.encode()).decode()
    bodies: dict[str, tuple[int, str, Any]] = {
        "401": (401, "json", {"error": {"message": said, "code": "invalid_api_key", "type": key, "param": key}}),
        "401-text": (401, "plain", f"{key} is not known here"),
        "401-encoded": (401, "json", {"error": {"message": f"bad header {encoded}, {quote_plus(key)}"}}),
        "400": (400, "json", {"error": {"message": {"headers": {"X-Key": key, "Other": [key]}}}}),
        "400-headers": (400, "json", {"error": {"message": said}}),
        "429": (429, "json", {"error": {"message": said, "code": "insufficient_quota"}}),
        "429-headers": (429, "json", {"error": {"message": said, "code": "insufficient_quota"}}),
        "500": (500, "json", {"error": {"message": said}, "request": {"headers": {"Authorization": f"Bearer {key}"}}}),
        "500-long": (500, "json", {"error": {"message": " " * 3960 + key}}),
        "502": (502, "html", f"<html><body>{key}</body></html>"),
        "200-error": (200, "json", {"error": {"message": said, "code": key}}),
        "200-html": (200, "html", f"<html>{key}</html>"),
        "200-cut": (200, "json", None),
    }
    status, kind, body = bodies[how]
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    if how == "200-cut":
        raw = json.dumps({"id": key, "choices": [{"message": {"content": key}}]}).encode()[:-4]
    return status, {"json": "application/json", "plain": "text/plain", "html": "text/html"}[kind], raw


WAYS = ("401", "401-text", "401-encoded", "400", "429", "500", "500-long", "502", "200-error", "200-html", "200-cut")
#: The headers of answers are what the client library's own log tells at its finest level; nothing else may.
IN_HEADERS = ("400-headers", "429-headers")


class _Careless(BaseHTTPRequestHandler):
    """Quotes the key of a request in the way that the first part of its path names."""

    seen: set[str]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        key = self.headers.get("Authorization", "").removeprefix("Bearer ")
        self.seen.add(key)
        how = self.path.split("/")[1]
        status, kind, body = _quoting(how, key)
        self.send_response(status)
        headers = {"Content-Type": kind, "Content-Length": str(len(body))}
        if how in IN_HEADERS:
            headers |= {"Retry-After": key, "X-Request-Id": key, "X-Key": key}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def careless() -> Iterator[str]:
    """The address of a provider that quotes keys; it must have seen the right one by the end."""
    handler = type("Careless", (_Careless,), {"seen": set()})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
    assert handler.seen == {KEY}


#: The provider that quotes keys is none of OpenAI's hosts.
ALLOWED = {"OPINIONSIM_KEYS": "OPENAI_API_KEY=127.0.0.1,OPENAI_API_KEY=nobody.invalid"}


def spec_for(address: str, name: str, **values: Any) -> dict[str, Any]:
    """A small sweep at an address, to which the key is sent."""
    options = {"base_url": address, "api_key_env": "OPENAI_API_KEY"}
    small: dict[str, Any] = {"population": {"size": 2}, "interaction": {"kind": "dyadic", "steps": 2}}
    return changed(SPEC, **{"name": name, **small, "execution": EXECUTION, "model__options": options, **values})


# --- through the command line ------------------------------------------------------------------------------------

#: Runs commands one after the other in one process, with all that anybody logs in a file. A name that nobody has is
#: looked up without asking a server.
_COMMANDS = """
import json, logging, socket, sys
logging.basicConfig(level=logging.DEBUG, filename="all.log")
look_up = socket.getaddrinfo
def getaddrinfo(host, *args, **kwargs):
    if str(host).endswith(".invalid"):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    return look_up(host, *args, **kwargs)
socket.getaddrinfo = getaddrinfo
from opinionsim.cli import main
codes = []
for arguments in json.load(open("commands.json")):
    sys.argv = ["opinionsim", *arguments]
    try:
        main()
        codes.append(0)
    except SystemExit as end:
        codes.append(end.code)
json.dump(codes, open("codes.json", "w"))
"""


def commands(folder: Path, checkout: Path, *lines: list[str]) -> tuple[list[int], str, str]:
    """Exit codes, standard output and standard error of several commands with the key in their environment."""
    (folder / "commands.json").write_text(json.dumps(lines), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", _COMMANDS],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(checkout), "OPENAI_API_KEY": KEY, "OPENAI_LOG": "debug", **ALLOWED},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads((folder / "codes.json").read_text(encoding="utf-8")), done.stdout, done.stderr


def test_the_key_is_nowhere_after_runs_that_fail_and_runs_that_succeed(
    tmp_path: Path, checkout: Path, careless: str
) -> None:
    with (
        StubProvider(scripted_reply(), api_key=KEY) as good,
        StubProvider(scripted_reply(), api_key="another one") as strict,
    ):
        good.faults = Faults(requests=evenly(0.2, Faults.CONTENT), tries=evenly(0.2, ("http-500", "malformed")))
        addresses = {
            **{f"quoted-{way}": f"{careless}/{way}" for way in WAYS},
            "strict": strict.base_url,
            "refused": "http://127.0.0.1:1/v1",
            "unknown": "http://nobody.invalid/v1",
        }
        patient = {**EXECUTION, "retry": SPEC["execution"]["retry"]}
        sweep = {"cognition.confirmation_bias": ["none", "strong"]}
        specs = {
            **{name: spec_for(address, name) for name, address in addresses.items()},
            "good": spec_for(good.base_url, "good", execution=patient, sweep=sweep, replicates=2),
        }
        for name, spec in specs.items():
            (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(spec), encoding="utf-8")
        failing = [name for name in specs if name != "good"]
        store = "results/good.sqlite"
        succeeding = [
            ["plan", "good.yaml"],
            ["preview", "good.yaml"],
            ["doctor"],
            ["doctor", "--json"],
            ["--debug", "run", "good.yaml"],
            ["run", "good.yaml"],
            ["status", store],
            ["status", store, "--json"],
            ["show", store],
            ["table", store, "--csv", "table.csv"],
            ["plot", store, "--out", "figures"],
            ["export", store, "exported"],
            ["replay", store],
            ["run", "exported/manifest.json", "--store", "again.sqlite"],
        ]
        on_failures = [["status", "results/strict.sqlite"], ["export", "results/strict.sqlite", "failed"]]
        lines = [*(["run", name + ".yaml", "--debug"] for name in failing), *on_failures, *succeeding]
        codes, out, err = commands(tmp_path, checkout, *lines)
    expected = [1] * len(failing) + [0] * (len(on_failures) + len(succeeding))
    assert {" ".join(line): code for line, code in zip(lines, codes, strict=True)} == {
        " ".join(line): code for line, code in zip(lines, expected, strict=True)
    }, err[-3000:]
    # The key was sent, and failures were told.
    assert good.authorizations == strict.authorizations == {f"Bearer {KEY}"}
    assert "Incorrect API key provided: ***" in err
    assert found_in(out) == []
    assert found_in(err) == []
    below = everything_below(tmp_path)
    written = {Path(name.removesuffix(" (texts)")).suffix for name in below}
    assert written >= {".sqlite", ".csv", ".json", ".png", ".log", ".yaml"}
    assert {name: found for name, raw in below.items() if (found := found_in(raw))} == {}


# --- in the process ----------------------------------------------------------------------------------------------


def _told(error: BaseException | None) -> Iterator[str]:
    """All that an error says of itself and of what led to it."""
    while error is not None:
        yield from (str(error), repr(error), repr(error.args), repr(vars(error)))
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize("way", [*WAYS, *IN_HEADERS])
def test_no_error_of_a_run_holds_the_key(
    careless: str, way: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPINIONSIM_KEYS", ALLOWED["OPINIONSIM_KEYS"])
    results = osim.run(load_experiment(spec_for(f"{careless}/{way}", "told")), "s.sqlite")
    (error,) = results.runs["error"]
    assert error
    assert found_in(error) == []
    model = load_chat_model("openai:any", base_url=f"{careless}/{way}", api_key_env="OPENAI_API_KEY")
    client = ModelClient(model)
    brief = RetryPolicy(transient=1, rate_limited=1, first_wait_s=0.001)
    calls = RunCalls("told", MemoryJournal(), client, SlotPool(1), retry=brief)
    with pytest.raises(OpinionSimError) as caught:
        run_in_background(calls.ask(Turn(0, 1, 0, "write"), "reply", [ChatMessage("user", "Hello.")]))
    for text in (*_told(caught.value), "".join(traceback.format_exception(caught.value))):
        assert found_in(text) == [], text[:500]
    assert found_in(repr(model) + str(model) + repr(calls) + repr(client) + repr(vars(client)) + client.account) == []
    captured = capfd.readouterr()
    assert found_in(captured.out + captured.err) == []
    assert {name: found for name, raw in everything_below(tmp_path).items() if (found := found_in(raw))} == {}


# --- in a specification ------------------------------------------------------------------------------------------

MISPLACED: dict[str, dict[str, Any]] = {
    "key": {"api_key": KEY},
    "key of a kind": {"openai_api_key": KEY},
    "token": {"access_token": KEY},
    "header": {"default_headers": {"Authorization": f"Bearer {KEY}"}},
    "own header": {"default_headers": {"X-Api-Key": KEY}},
    "body": {"extra_body": {"auth": {"api_key": KEY}}},
    "list in a body": {"extra_body": {"backends": [{"api_key": KEY}]}},
    "query": {"default_query": {"api_key": KEY}},
    "password": {"base_url": f"http://user:{quote(KEY, safe='')}@127.0.0.1:1/v1"},
    "user": {"base_url": f"http://{quote(KEY, safe='')}@127.0.0.1:1/v1"},
    "address with a query": {"base_url": f"http://127.0.0.1:1/v1?api_key={quote(KEY, safe='')}"},
    "address with a fragment": {"base_url": f"http://127.0.0.1:1/v1#api_key={quote(KEY, safe='')}"},
    "variable's place": {"api_key_env": KEY},
    "proxy": {"openai_proxy": f"http://user:{quote(KEY, safe='')}@127.0.0.1:1"},
}


@pytest.mark.parametrize("where", MISPLACED)
def test_a_key_in_a_specification_is_refused_and_not_repeated(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It is no variable's value here, by which it could be recognised.
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    options = {"base_url": "http://127.0.0.1:1/v1", **MISPLACED[where]}
    text = yaml.safe_dump(changed(SPEC, model__options=options, execution=EXECUTION))
    (tmp_path / "bad.yaml").write_text(text, encoding="utf-8")
    for command in ("run", "plan", "preview"):
        result = CliRunner().invoke(app, [command, "bad.yaml", "--debug"])
        told = [result.stdout, result.stderr, *_told(result.exception)]
        if command == "run":
            assert (result.exit_code, "model.options" in result.stderr) == (2, True), result.stderr
        assert found_in("\n".join(told)) == [], command
    with contextlib.suppress(OpinionSimError), pytest.raises(OpinionSimError) as caught:
        osim.run(load_experiment("bad.yaml"))
    assert found_in("".join(traceback.format_exception(caught.value))) == []
    assert [path.name for path in tmp_path.iterdir()] == ["bad.yaml"]


def test_a_key_in_the_environment_s_address_is_not_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "something else")
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://user:{quote(KEY, safe='')}@127.0.0.1:1/v1?token={KEY}")
    spec = changed(SPEC, population__size=2, interaction__steps=1, execution=EXECUTION)
    Path("spec.yaml").write_text(yaml.safe_dump(spec), encoding="utf-8")
    result = CliRunner().invoke(app, ["run", "spec.yaml", "--debug"])
    assert result.exit_code in (1, 2)
    assert found_in("\n".join([result.stdout, result.stderr, *_told(result.exception)])) == []
    assert {name: found for name, raw in everything_below(tmp_path).items() if (found := found_in(raw))} == {}
