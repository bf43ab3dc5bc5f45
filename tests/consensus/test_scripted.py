"""The sentences of the scripted model in sessions: well-formed, and without a stance of their own."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from opinionsim import consensus
from opinionsim.llm import phrases

SAID = tomllib.loads((Path(consensus.__file__).parent / "scripted.toml").read_text(encoding="utf-8"))
CRITIQUES = {f"critiques {level}": said for level, said in SAID["critiques"].items()}


@pytest.mark.parametrize("kind", ["statements", *CRITIQUES])
def test_what_a_stance_follows_ends_in_no_sign_and_has_none(kind: str) -> None:
    said = {**SAID, **CRITIQUES}[kind]
    assert len(said) == len(set(said)) >= 3
    for sentence in said:
        assert re.fullmatch(r"[A-Z][^{}]*[^\s.?]", sentence)
        assert phrases.stated(sentence) is None


def test_a_critique_asks_for_nothing_or_for_a_move_to_either_side() -> None:
    assert SAID["critiques"].keys() == {"-1", "0", "1"}


def test_questions_differ_by_a_number_and_say_what_should_be_done() -> None:
    assert len(SAID["questions"]) == len(set(SAID["questions"])) >= 3
    assert all(re.fullmatch(r"Should .*\{n\} .*[^\s?]\?", question) for question in SAID["questions"])
