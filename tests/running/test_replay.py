from __future__ import annotations

from typing import Any

import pytest

import opinionsim as osim
from opinionsim.running import replay
from opinionsim.specification import load_experiment
from tests.support.editing import rewrite
from tests.support.examples import few

INTERACTIONS: list[dict[str, Any]] = [
    {"kind": "dyadic", "steps": 5},
    {"kind": "broadcast", "steps": 3, "network": "ring"},
    {"kind": "similarity", "steps": 5},
    {"kind": "bounded-confidence", "steps": 8, "confidence": 1.0},
    {"kind": "rewiring", "steps": 8, "tolerance": 1.0, "network": "ring"},
    {"kind": "feed", "steps": 4, "posts": 2},
    {"kind": "external", "steps": 4, "messages": ["It rained all day.", "Nobody knows."]},
    {"kind": "remembered", "steps": 4},
    {"kind": "no-role-play", "reports": 2},
]


def _run(interaction: dict[str, Any], memory: str = "cumulative") -> osim.Results:
    spec = {
        "name": "again",
        "population": {"size": 4},
        "topic": {"name": "t-rex"},
        "interaction": interaction,
        "cognition": {"memory": memory},
        "measurement": {"probe": {"before": 1, "after": 1}},
        "replicates": 2,
    }
    return osim.run(load_experiment(spec), "again.sqlite")


@pytest.mark.parametrize("interaction", few(INTERACTIONS, 5), ids=[each["kind"] for each in INTERACTIONS])
@pytest.mark.parametrize("memory", ["cumulative", "reflective"])
def test_the_journal_alone_gives_every_run_again(interaction: dict[str, Any], memory: str) -> None:
    results = _run(interaction, memory)
    found = replay(results)
    assert [each.run_id for each in found] == results.runs["run_id"].tolist()
    assert [each.difference for each in found] == ["", ""]
    assert sum(each.turns for each in found) == len(results.turns) > 0


@pytest.mark.parametrize(
    ("statement", "difference"),
    [
        ("update turns set text_id = (select text_id from turns where turn = 6) where turn = 4 and run_id = ?", "text"),
        ("update turns set kind = 'post' where act = 'review' and run_id = ?", "kind"),
        ("update journal set prompt_hash = 'other' where turn = 6 and run_id = ?", "prompt other is missing"),
        ("update agents set name = 'Nobody' where agent = 2 and run_id = ?", "agent 2 differs"),
        ("insert into edges values (?, 0, 1, 1.0, 0)", "table edges has 1 rows of run"),
        ("update opinions set value = -value where value != 0 and run_id = ?", "stance of turn"),
    ],
)
def test_a_difference_is_named(statement: str, difference: str) -> None:
    results = _run(INTERACTIONS[0])
    changed, untouched = results.runs["run_id"]
    rewrite("again.sqlite", statement, changed)
    found = {each.run_id: each.difference for each in replay(results)}
    assert difference in found[changed]
    assert found[untouched] == ""


def test_runs_that_are_not_complete_are_left_out() -> None:
    results = _run(INTERACTIONS[0])
    cut, whole = results.runs["run_id"]
    rewrite("again.sqlite", "update runs set status = 'incomplete' where run_id = ?", cut)
    assert [each.run_id for each in replay(results)] == [whole]
