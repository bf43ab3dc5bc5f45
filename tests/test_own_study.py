"""The kind of study of one's own that docs/architecture.md shows: a poll, tried as it stands."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import opinionsim as osim
from tests.support.command import invoked, refused


@pytest.fixture
def poll(tmp_path: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the files that the page shows, which is the current one."""
    page = (checkout / "docs" / "architecture.md").read_text(encoding="utf-8").partition("### A kind of study")[2]
    for name, language in (("poll.py", "python"), ("poll.yaml", "yaml")):
        found = re.search(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
        assert found is not None
        (tmp_path / name).write_text(found[1], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("poll", None)


def _told(*arguments: str) -> str:
    """What a command prints."""
    found = invoked(*arguments)
    assert found.exit_code == 0, found.stderr
    return found.stdout


def test_a_poll_is_run_continued_shown_and_archived(poll: Path) -> None:
    _told("run", "poll.yaml", "--store", "p.sqlite")
    _told("run", "poll.yaml", "--store", "p.sqlite")
    (status,) = json.loads(_told("status", "p.sqlite", "--json"))
    assert (status["runs"], status["complete"], status["errors"]) == (3, 3, {})
    printed = _told("table", "p.sqlite", "--allow-parts")
    assert re.search(r"^no +1$", printed, re.MULTILINE)
    assert re.search(r"^yes +2$", printed, re.MULTILINE)
    rows = json.loads(_told("table", "p.sqlite", "--allow-parts", "--json"))
    assert [(row["person"], row["answer"]) for row in rows] == [
        ("a nurse of 52", "yes"), ("a pilot of 40", "no"), ("a pupil of 12", "yes"),
    ]  # fmt: skip
    _told("export", "p.sqlite", "archive", "--archive", "--allow-parts")
    assert "each one is unchanged" in _told("verify", "archive")
    assert "keeps no calls" in (poll / "archive" / "checklist.md").read_text()
    odd = (poll / "archive" / "odd.md").read_text()
    assert "streams" not in odd
    assert "counted in steps" not in odd
    assert "the frame `answers` has the values of every unit" in odd
    _told("run", "archive/specification.yaml", "--store", "again.sqlite")
    (again,) = json.loads(_told("status", "again.sqlite", "--json"))
    assert again["complete"] == 3


def test_a_poll_is_not_shown_without_its_code_and_has_what_it_brings_alone(poll: Path) -> None:
    _told("run", "poll.yaml", "--store", "p.sqlite")
    assert "--allow-parts" in refused("table", "p.sqlite")
    assert "which has no plan; valid: run" in refused("plan", "poll.yaml")
    assert "not 'agents'" in refused("freeze", "poll.yaml")
    _told("export", "p.sqlite", "plain", "--allow-parts")
    assert (poll / "plain" / "answers.csv").exists()
    assert "--set study: a specification states its kind" in refused("run", "poll.yaml", "--set", "study=agents")
    with pytest.raises(osim.SpecError, match="not 'agents'"):
        osim.load_experiment(poll / "poll.yaml")


def test_a_person_whose_answer_is_none_is_asked_again(poll: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    again = ("run", "poll.yaml", "--store", "p.sqlite", "--set", 'answers=["yes"]')
    _told(*again)
    (status,) = json.loads(_told("status", "p.sqlite", "--json"))
    assert (status["complete"], status["incomplete"]) == (2, 1)
    assert set(status["errors"].values()) == {"answered 'no'"}
    asked = list[str]()
    agreeing = osim.GivenReplies(lambda prompt: asked.append(prompt[-1].content) or "yes")
    monkeypatch.setattr(osim, "GivenReplies", lambda reply: agreeing)
    _told(*again)
    (status,) = json.loads(_told("status", "p.sqlite", "--json"))
    assert (status["complete"], status["incomplete"], len(asked)) == (3, 0, 1)
    assert "a pilot of 40" in asked[0]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("def commands(self): raise ValueError('no luck')", "failed with ValueError: no luck"),
        ("def commands(self): return ['run']", "must have commands by name; got ['run']"),
        (
            "def commands(self): return {'run': self.begun}\n    def begun(self, spec, changes): 1 / 0",
            "ZeroDivisionError",
        ),
        ("pass", "which has no run; valid: none"),
    ],
)
def test_a_kind_that_fails_is_named(
    body: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    module = f"kind_{abs(hash(body))}"
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    head = "import opinionsim as osim\nfrom opinionsim.study import StudyKind\n\n@osim.part('study')\n"
    code = f"{head}class Bad(StudyKind):\n    {body}\n"
    Path(f"{module}.py").write_text(code, encoding="utf-8")
    Path("bad.yaml").write_text(f"study: '{module}:Bad'\n", encoding="utf-8")
    request.addfinalizer(lambda: sys.modules.pop(module, None))
    assert problem in refused("run", "bad.yaml")


def test_a_study_without_a_unit_on_record_is_shown_as_such(poll: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(prompt: object) -> str:
        raise osim.ModelCallError("nobody is there")

    monkeypatch.setattr(osim, "GivenReplies", lambda reply, given=osim.GivenReplies: given(silent))
    assert "nobody is there" in invoked("run", "poll.yaml", "--store", "p.sqlite").stderr
    (status,) = json.loads(_told("status", "p.sqlite", "--json"))
    assert (status["complete"], status["pending"]) == (0, 3)
    assert json.loads(_told("table", "p.sqlite", "--allow-parts", "--json")) == []
    _told("report", "p.sqlite", "--allow-parts")


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('{"person": key["person"]}', '{"person": [key["person"], {"a": 1}]}', ""),
        ('{"answer": reply}', '{"answer": reply, "replicate": 7}', "a value of a unit cannot be named 'replicate'"),
    ],
)
def test_values_of_any_form_are_shown_and_columns_of_frames_are_kept(
    poll: Path, old: str, new: str, problem: str, request: pytest.FixtureRequest
) -> None:
    module = f"poll_{len(problem)}"
    code, spec = (poll / "poll.py").read_text(), (poll / "poll.yaml").read_text()
    assert old in code
    (poll / f"{module}.py").write_text(code.replace(old, new).replace("poll:", f"{module}:"))
    (poll / "poll.yaml").write_text(spec.replace("poll:", f"{module}:"))
    request.addfinalizer(lambda: sys.modules.pop(module, None))
    _told("run", "poll.yaml", "--store", "p.sqlite")
    if problem:
        assert problem in refused("report", "p.sqlite", "--allow-parts")
    else:
        _told("report", "p.sqlite", "--allow-parts")
