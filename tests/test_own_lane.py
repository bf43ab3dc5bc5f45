"""The batch queue of one's own that docs/parts.md shows: a folder whose files a job answers, tried as it stands."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

import opinionsim as osim
from opinionsim.lanes import Pace
from opinionsim.registry import find
from opinionsim.specification import Experiment, load_experiment

STUDY: dict[str, Any] = {
    "name": "night",
    "population": {"size": 4},
    "topic": {"name": "flat-earth"},
    "interaction": {"kind": "dyadic", "steps": 4},
    "model": {"name": "openai:qwen", "max_tokens": 100, "options": {"base_url": "http://127.0.0.1:1/v1"}},
    "measurement": {"classifier": "lexicon"},
    "execution": {"lane": "batch", "prices": "prices.yaml", "retry": {"first_wait_s": 0.01}},
}
PACE = Pace(settle_s=0.05, look_s=0.02, slowest_look_s=0.05, lost_s=0.1)


def _answered(line: str, fails: bool) -> dict[str, Any]:
    """What the job writes for a line."""
    asked = json.loads(line)
    assert (asked["method"], asked["url"], asked["body"]["model"]) == ("POST", "/v1/chat/completions", "qwen")
    answer: dict[str, Any] = {"id": "a", "custom_id": asked["custom_id"], "response": None, "error": "out of memory"}
    if not fails:
        message = {"role": "assistant", "content": f"I believe it, after {len(asked['body']['messages'])} messages."}
        body = {"id": "c", "object": "chat.completion", "created": 1, "model": "qwen"}
        body |= {"choices": [{"index": 0, "finish_reason": "stop", "message": message}]}
        body |= {"usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}}
        answer |= {"response": {"status_code": 200, "request_id": "r", "body": body}, "error": None}
    return answer


def _answer(queue: Path, failing: int = 0) -> int:
    """Answer the files of the folder as a job does, and return their number; the first `failing` lines fail."""
    files = [each for each in sorted(queue.glob("*.jsonl")) if not each.with_suffix(".out").exists()]
    for each in files:
        lines = [_answered(line, place < failing) for place, line in enumerate(each.read_text().splitlines())]
        part = each.with_suffix(".part")
        part.write_text("\n".join(map(json.dumps, lines)))
        part.rename(each.with_suffix(".out"))
    return len(files)


@pytest.fixture
def night(tmp_path: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Experiment]:
    """A study whose lane is that of the page, in a folder with the files that the page shows."""
    page = (checkout / "docs" / "parts.md").read_text(encoding="utf-8").partition("\n## A lane\n")[2]
    code, prices = re.findall(r"```(?:python|text)\n(.*?)```", page, re.DOTALL)[:2]
    (tmp_path / "night.py").write_text(code)
    (tmp_path / "prices.yaml").write_text(prices)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    yield load_experiment(STUDY)
    sys.modules.pop("night", None)


def test_a_job_answers_a_study_round_by_round(night: Experiment) -> None:
    rounds = 0
    while True:
        results = osim.run(night, "night.sqlite", leave=True, pace=PACE)
        if results.runs["status"].tolist() == ["complete"]:
            break
        assert _answer(Path("queue")) == 1
        rounds += 1
    assert rounds == osim.plan(night).longest_path
    assert set(results.calls["lane"]) == {"batch"}
    assert len(results.turns) == len(results.calls) == 8
    assert results.turns["message"].str.startswith("I believe it").all()


@contextmanager
def _at_work(failing: int = 0) -> Iterator[None]:
    """A job that answers each file soon; of the first, some lines fail."""
    over = Event()

    def work() -> None:
        left = failing
        while not over.wait(0.02):
            left = 0 if _answer(Path("queue"), left) else left

    job = Thread(target=work)
    job.start()
    try:
        yield
    finally:
        over.set()
        job.join()


def test_lines_that_failed_are_asked_again_in_the_next_file(night: Experiment) -> None:
    with _at_work(failing=1):
        results = osim.run(night, "night.sqlite", pace=PACE)
    assert results.runs["status"].tolist() == ["complete"]
    asked = [
        json.loads(line)["custom_id"]
        for each in Path("queue").glob("*.jsonl")
        for line in each.read_text().splitlines()
    ]
    assert len(asked) == len(set(asked)) + 1 == 9
    assert len(results.calls) == 8


def test_a_file_that_was_never_submitted_is_deleted_and_its_calls_go_out_again(
    night: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane = find("lane", "night:Folder").target

    async def lost(self: Any, token: str, file: str, requests: Any) -> str:
        raise ConnectionError("nobody knows")

    with monkeypatch.context() as patched:
        patched.setattr(lane, "submit", lost)
        osim.run(night, "night.sqlite", leave=True, pace=PACE._replace(lost_s=60))
    (unsent,) = (each.stem for each in Path("queue").iterdir() if each.suffix == ".new")
    with _at_work():
        results = osim.run(night, "night.sqlite", pace=PACE)
    assert results.runs["status"].tolist() == ["complete"]
    assert not list(Path("queue").glob(f"{unsent}*"))
    assert len(results.calls) == 8
