"""What the installation check tells, and what it must not."""

from __future__ import annotations

import json
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from opinionsim.cli import _doctor
from tests.cli.conftest import Invoke


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        *_doctor._KNOWN["secret"],
        "OPINIONSIM_TRACING",
        "DO_NOT_TRACK",
        "HF_HUB_DISABLE_TELEMETRY",
        "HF_HUB_OFFLINE",
    ):
        monkeypatch.delenv(name, raising=False)


def lines(invoke: Invoke, *arguments: str) -> dict[str, str]:
    """The table, by its first column."""
    printed = invoke("doctor", *arguments).stdout.splitlines()
    return {line.split("  ")[0]: line.split("  ", 1)[1].strip() for line in printed if "  " in line}


def test_no_key_is_ever_shown(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _doctor._KNOWN["secret"]:
        monkeypatch.setenv(name, f"value-of-{name}")
    printed, data = invoke("doctor").stdout, invoke("doctor", "--json")
    assert "value-of" not in printed + data.stdout
    assert (data.exit_code, json.loads(data.stdout)["problems"]) == (0, [])
    assert set(json.loads(data.stdout)["set"].values()) == {True}
    assert lines(invoke)["keys"].count(" set") == len(_doctor._KNOWN["secret"])
    assert "not set" not in lines(invoke)["keys"]


def test_every_extra_is_looked_at(invoke: Invoke, checkout: Path) -> None:
    declared = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    found = json.loads(invoke("doctor", "--json").stdout)
    assert set(found["extras"]) == set(declared) - {"all"}
    assert set(found["extras"]["llm"]) == {"aiohttp", "langchain", "langchain-openai", "openai"}
    assert all(found["extras"]["llm"].values())
    assert found["packages"]["numpy"] == metadata.version("numpy")


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({}, "off"),
        (
            {"LANGSMITH_TRACING": "true", "LANGCHAIN_TRACING_V2": "false"},
            "off (LANGSMITH_TRACING ignored without OPINIONSIM_TRACING=1)",
        ),
        ({"LANGCHAIN_TRACING_V2": "true"}, "off (LANGCHAIN_TRACING_V2 ignored without OPINIONSIM_TRACING=1)"),
        ({"OPINIONSIM_TRACING": "1"}, "off (OPINIONSIM_TRACING would allow it)"),
        (
            {"OPINIONSIM_TRACING": "1", "LANGSMITH_TRACING": "true"},
            "ON: LANGSMITH_TRACING (prompts leave this machine)",
        ),
    ],
)
def test_tracing_is_off_unless_asked_for(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], said: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert lines(invoke)["tracing"] == said


def test_retired_variables_and_a_file_where_stores_go_are_problems(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANGCHAIN_TRACING", "true")
    Path("results").write_text("a file where stores should go")
    result = invoke("doctor")
    assert result.exit_code == 2
    assert "PROBLEM: LANGCHAIN_TRACING makes LangChain refuse every call; unset it" in result.stdout
    assert "results is not writable" in result.stdout


def test_versions_outside_the_bounds_are_problems(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    version = metadata.version

    def older(name: str) -> str:
        return {"typer": "0.18.0", "sacrebleu": "2.0.0", "numpy": "99.1rc1"}.get(name) or version(name)

    monkeypatch.setattr(metadata, "version", older)
    result = invoke("doctor")
    assert result.exit_code == 2
    assert [line for line in result.stdout.splitlines() if line.startswith("PROBLEM")] == [
        'PROBLEM: typer 0.18.0 is installed, but opinionsim needs >=0.19; pip install "typer>=0.19"',
        'PROBLEM: sacrebleu 2.0.0 is installed, but opinionsim needs >=2.4; pip install "sacrebleu>=2.4"',
    ]


def test_telemetry_of_others_is_told(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_DISABLE_TELEMETRY", raising=False)
    assert "nothing beyond downloads" in lines(invoke)["telemetry"]
    monkeypatch.setenv("HF_HUB_DISABLE_TELEMETRY", "0")
    assert "HF_HUB_DISABLE_TELEMETRY=1 to stop" in lines(invoke)["telemetry"]


@pytest.mark.parametrize(
    ("about", "bf16"), [("flags : fpu avx512_bf16 amx", True), ("flags : fpu avx2", False), (None, None)]
)
def test_bfloat16_is_read_from_the_processor(tmp_path: Path, about: str | None, bf16: bool | None) -> None:
    if about is not None:
        (tmp_path / "cpuinfo").write_text(about)
    assert _doctor._cpu_bf16(tmp_path / "cpuinfo") is bf16


def test_torch_is_loaded_only_when_asked(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[Any] = []
    cuda = SimpleNamespace(
        is_available=lambda: loaded.append("cuda") or True, device_count=lambda: 1, get_device_name=lambda _: "a device"
    )
    mps = SimpleNamespace(is_available=lambda: False)
    torch = SimpleNamespace(cuda=cuda, backends=SimpleNamespace(mps=mps), get_num_threads=lambda: 3)
    monkeypatch.setitem(sys.modules, "torch", torch)  # type: ignore[arg-type]
    assert "torch" not in lines(invoke)
    assert loaded == []
    assert lines(invoke, "--full")["torch"] == "CUDA devices a device, MPS no, 3 threads"
    monkeypatch.setitem(sys.modules, "torch", None)  # type: ignore[arg-type]
    assert "error" in _doctor._torch()
