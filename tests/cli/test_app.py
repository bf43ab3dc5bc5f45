from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import opinionsim
from opinionsim.cli import _app
from opinionsim.cli._console import aligned, say_json
from opinionsim.errors import BudgetExceeded, ModelCallError
from opinionsim.messages import spelled_out
from opinionsim.registry import names, places
from tests.cli.conftest import Invoke


def _python(checkout: Path, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env=environment, cwd=cwd, check=False
    )


def test_every_command_has_help(invoke: Invoke) -> None:
    listed = invoke("--help").stdout
    for name, place in places("command").items():
        assert f" {name} " in listed
        assert invoke(name, "--help").exit_code == 0
        assert place.value["help"] == " ".join((_app._built(name).help or "").split())


def test_every_argument_and_option_says_what_it_is_for() -> None:
    for name in names("command"):
        built = _app._built(name)
        for command in getattr(built, "commands", {"": built}).values():
            assert [each.name for each in command.params if not each.help] == []


def test_a_switch_that_is_off_has_no_form_that_turns_it_off(invoke: Invoke) -> None:
    assert invoke("run", "quickstart", "--no-fresh").exit_code == 2


def test_a_quoted_home_folder_is_the_home_folder(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(Path("home").absolute()))
    coded = invoke("classify", "-", "--claim", "tea is bad", "--out", "~/coded.csv", text="Tea is bad.\n")
    assert coded.exit_code == 0, coded.stderr
    assert [*map(str, Path().rglob("*.csv"))] == ["home/coded.csv"]


def test_module_runs_as_the_command(checkout: Path) -> None:
    done = _python(checkout, "-m", "opinionsim", "--version")
    assert (done.returncode, done.stdout) == (0, f"opinionsim {opinionsim.__version__}\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "nowhere.yaml"),
        *(pytest.param(each, marks=pytest.mark.whole) for each in (("show", "no.sqlite"), ("list", "cows"), ("rnu",))),
    ],
)
def test_bad_input_exits_2_without_a_traceback(checkout: Path, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = _python(checkout, "-m", "opinionsim", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert arguments[-1] in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [("--debug", "plan", "nowhere.yaml"), ("plan", "nowhere.yaml", "--debug")])
def test_debug_shows_the_traceback_wherever_it_stands(invoke: Invoke, arguments: tuple[str, ...]) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert "Traceback (most recent call last)" in result.stderr
    assert "error: nowhere.yaml: no such file" in result.stderr


def _failing(error: BaseException) -> typer.Typer:
    """An application with one command, which raises."""
    failing = typer.Typer(cls=_app._Group, pretty_exceptions_enable=False)

    @failing.callback()
    def root(debug: bool = False) -> None:
        """Take the option all commands share."""

    @failing.command()
    def fail() -> None:
        raise error

    return failing


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (
            BudgetExceeded("the next call could cost more than 5 USD"),
            3,
            "error: the next call could cost more than 5 USD",
        ),
        (
            ModelCallError("run a, turn 0, agent 2: no reply"),
            1,
            "error: run a, turn 0, agent 2: no reply",
        ),
        (OSError(28, "No space left on device", "results/x.csv"), 2, "error: results/x.csv: No space left on device"),
        (MemoryError("Unable to allocate 9 TiB"), 2, "error: Unable to allocate 9 TiB"),
        (MemoryError(), 2, "error: not enough memory for this"),
        (KeyboardInterrupt(), 130, "error: interrupted"),
    ],
)
def test_errors_become_a_message_and_an_exit_code(error: BaseException, code: int, message: str) -> None:
    result = CliRunner().invoke(_failing(error), ["fail"])
    assert (result.exit_code, result.stderr, result.stdout) == (code, f"{message}\n", "")


def test_a_defect_is_not_dressed_up_as_bad_input() -> None:
    assert isinstance(CliRunner().invoke(_failing(ZeroDivisionError("defect")), ["fail"]).exception, ZeroDivisionError)


@pytest.mark.whole
def test_no_color_is_honoured(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[1;31m" in _python(checkout, "-m", "opinionsim", "status", "gone.sqlite").stderr
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[31m" not in _python(checkout, "-m", "opinionsim", "status", "gone.sqlite").stderr


def test_control_characters_are_spelled_out() -> None:
    assert spelled_out("a\x1b[2Jb\r\nc\td\x9b") == "a\\x1b[2Jb\nc\td\\x9b"
    assert spelled_out("a\u202eb\u200bc\u2066d\ufeff\U000e0041") == "a\\u202eb\\u200bc\\u2066d\\ufeff\\U000e0041"
    assert spelled_out("naïve 日本 ✓ 👍\n") == "naïve 日本 ✓ 👍\n"


def test_json_shows_what_cannot_be_seen_and_reads_back_as_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    value = {"said": "a\u202eb\u200b\x85\x7f\U000e0041 é"}
    say_json(value)
    written = capsys.readouterr().out
    assert json.loads(written) == value
    assert all(each.isprintable() for each in written if each != "\n")
    assert "é" in written


def test_columns_are_aligned() -> None:
    assert aligned([("a", "long", "x"), ("bbb", "c", "")]) == "a     long   x\nbbb   c"
    assert aligned([]) == ""
