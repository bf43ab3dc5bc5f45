"""A model behind the real ``transformers serve``, reached as any server that speaks OpenAI's dialect."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from opinionsim import load_chat_model
from tests.support.running import SMALL, assert_same, carry_out, changed
from tests.support.tiny import save_tiny

pytestmark = pytest.mark.long

#: Importing torch and transformers is most of it.
STARTS_WITHIN_S = 180


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _await_health(process: subprocess.Popen[bytes], address: str, log: Path) -> None:
    """Return when the server says that it is well."""
    deadline = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{address}/health", timeout=5):  # noqa: S310 - a loopback address
                return
        except OSError:
            pass
        try:
            process.wait(0.1)
        except subprocess.TimeoutExpired:
            continue
        break
    pytest.fail(f"transformers serve did not start; it said:\n{log.read_text(errors='replace')[-4000:]}")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Name and address of a model that is being served."""
    folder = save_tiny(tmp_path_factory.mktemp("served") / "tiny")
    port = _free_port()
    command = [sys.executable, "-m", "transformers.cli.transformers", "serve", str(folder)]
    command += ["--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    log = folder.parent / "log"
    # A model this small loses time by threads.
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
    try:
        _await_health(process, f"http://127.0.0.1:{port}", log)
        yield f"openai:{folder}", f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def spec(served: tuple[str, str], **values: Any) -> dict[str, Any]:
    name, address = served
    model = {"name": name, "temperature": 1.0, "max_tokens": 6, "options": {"base_url": address}}
    return changed(
        SMALL,
        **{
            "population": {"size": 10},
            "interaction__steps": 4,
            "model": model,
            "measurement": {"classifier": "lexicon"},
            **values,
        },
    )


def test_a_seed_gives_the_same_text_and_usage_is_counted(served: tuple[str, str]) -> None:
    name, address = served
    model = load_chat_model(name, temperature=1.0, max_tokens=12, base_url=address)
    first, again, other = (model.invoke("Is the earth flat?", seed=seed) for seed in (1, 1, 2))
    assert first.content == again.content != other.content
    usage = first.usage_metadata
    assert usage["input_tokens"] == len("Is the earth flat?") + 3
    assert 1 <= usage["output_tokens"] <= 12
    assert first.response_metadata["finish_reason"] in ("stop", "length")


def test_a_simulation_runs_end_to_end_and_again_alike(served: tuple[str, str]) -> None:
    summary, first = carry_out(spec(served), "sqlite:///first.sqlite", slots=1)
    assert summary.complete == 1
    # Replies end at 6 tokens; each is asked for again with 12.
    assert set(first.calls["call"].value_counts()) == {len(first.calls)}
    assert (first.calls["attempt"] == 0).sum() == 8
    # A model of random weights may also say what is no answer.
    cut = first.calls[first.calls["status"] == "truncated"]
    assert set(cut.loc[cut["attempt"] == 0, "turn"]) <= set(first.calls.loc[first.calls["attempt"] == 1, "turn"])
    assert first.calls.loc[first.calls["attempt"] == 0, "output_tokens"].max() <= 6
    assert 6 < first.calls["output_tokens"].max() <= 12
    assert (first.calls["output_tokens"] > 0).all()
    assert first.turns["message"].nunique() > 1
    _, again = carry_out(spec(served), "sqlite:///again.sqlite", slots=1)
    assert_same(again, first)


def test_calls_in_flight_together_change_nothing_without_temperature(served: tuple[str, str]) -> None:
    greedy = spec(served, model__temperature=0.0)
    _, one = carry_out(greedy, "sqlite:///one.sqlite", slots=1)
    summary, many = carry_out(greedy, "sqlite:///many.sqlite", slots=8)
    assert summary.complete == 1
    assert_same(many, one)
