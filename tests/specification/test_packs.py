"""What cells use of a prompt pack is checked, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from opinionsim.errors import SpecError
from opinionsim.specification import load_experiment
from tests.support.editing import own_pack, reword


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    return own_pack(tmp_path / "mine")


def _load(pack: Path, **fields: Any) -> None:
    load_experiment(
        {
            "name": "packs",
            "population": {"size": 4},
            "topic": {"name": "flat-earth"},
            "interaction": {"kind": "dyadic", "steps": 2},
            "model": {"name": "scripted"},
            "measurement": {"classifier": "lexicon"},
            "prompts": str(pack),
            **fields,
        }
    )


def _swept(*values: str) -> dict[str, Any]:
    return {"cognition.confirmation_bias": list(values)}


def test_every_cell_has_its_conditions_checked(pack: Path) -> None:
    reword(pack / "_situation.j2", '== "strong" %}', '== "strong" %}{{ 1 // 0 }}')
    _load(pack, sweep=_swept("none", "weak"))
    with pytest.raises(SpecError, match=r"prompts: prompt pack .*_situation\.j2:11: the template cannot be rendered"):
        _load(pack, sweep=_swept("none", "weak", "strong"))


def test_cells_that_differ_in_a_condition_differ_in_words(pack: Path) -> None:
    reword(pack / "_situation.j2", 'bias == "weak"', 'bias != "none"')
    _load(pack, sweep=_swept("none", "strong"))
    with pytest.raises(SpecError, match=r"prompts: .*system\.j2: confirmation_bias 'strong' and 'weak' give the same"):
        _load(pack, sweep=_swept("weak", "strong"))


def test_acts_and_memories_that_a_run_does_not_have_are_left_alone(pack: Path) -> None:
    reword(pack / "event.j2", "{{ text }}", "")
    reword(pack / "probe.j2", "{{ task }}", "")
    _load(pack, cognition={"memory": "none"})
    with pytest.raises(SpecError, match=r"prompts: .*event\.j2: the agent's text must be"):
        _load(pack)
    with pytest.raises(SpecError, match=r"prompts: .*probe\.j2: the variable task must appear"):
        _load(pack, cognition={"memory": "none"}, measurement={"classifier": "lexicon", "probe": {"before": 1}})
