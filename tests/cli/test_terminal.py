"""What a terminal of 80 columns shows: progress, causes of errors, tables, and pipes that are closed."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.loopback import Loopback

pytestmark = pytest.mark.long

_CONTROLS = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def _at_a_terminal(checkout: Path, *arguments: str) -> list[str]:
    """Every line that a command writes to a terminal of 80 columns, those that are drawn over included."""
    ours, theirs = pty.openpty()
    environment = {
        **os.environ,
        "PYTHONPATH": str(checkout),
        "COLUMNS": "80",
        "TERM": "xterm",
        "OPENAI_API_KEY": "none",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "opinionsim", *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    written = b""
    while True:
        try:
            some = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not some:
            break
        written += some
    os.close(ours)
    process.wait()
    return [line for line in re.split(r"[\r\n]+", _CONTROLS.sub("", written.decode())) if line]


def test_progress_counts_calls_and_fits(checkout: Path, spec: Path) -> None:
    lines = _at_a_terminal(checkout, "run", str(spec), "--store", "fits.sqlite", "--set", "replicates=20")
    assert max(map(len, lines)) <= 80
    assert any(re.search(r"\d+/480 calls", line) for line in lines)
    assert any(re.fullmatch(r"\d+ of 40 runs complete, \d+ calls in flight", line) for line in lines)


def test_a_cause_of_errors_stands_once_with_its_runs(checkout: Path, spec: Path) -> None:
    with Loopback(status=400) as server:
        model = f"model={{name: 'openai:m', options: {{base_url: '{server.base_url}'}}}}"
        lines = _at_a_terminal(checkout, "run", str(spec), "--store", "errors.sqlite", "--set", model)
    assert max(map(len, lines)) <= 80
    assert any(
        re.fullmatch(r"  \d runs?: OpenAIInvalidRequestError: Error code: 400 - not now", line) for line in lines
    )
    ended = next(place for place, line in enumerate(lines) if "0 of 4 runs complete after" in line)
    assert sum("not now" in line for line in lines[ended:]) == 1


@pytest.mark.parametrize("command", ["table", "status", "show"])
def test_results_fit(checkout: Path, store: Path, command: str) -> None:
    lines = _at_a_terminal(checkout, command, str(store))
    assert max(map(len, lines)) <= 80
    assert len(lines) > 1


def test_an_error_is_broken_between_words(checkout: Path) -> None:
    lines = _at_a_terminal(checkout, "run", "nothing-of-this-name")
    assert max(map(len, lines)) <= 80
    assert "compare_quickstart," in " ".join(lines).split()


@pytest.mark.parametrize("command", [["run", "--help"], ["--help"], ["status", "STORE"]])
def test_a_reader_that_goes_away_ends_it_without_a_word(checkout: Path, store: Path, command: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = subprocess.Popen(
        [sys.executable, "-m", "opinionsim", *(str(store) if each == "STORE" else each for each in command)],
        stdout=writing,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(checkout)},
    )
    os.close(writing)
    _, errors = process.communicate()
    assert errors == b""
    assert process.returncode == 141 or command == ["--help"]
