"""Whether a text holds an answer in its role."""

from __future__ import annotations

import json
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage

from opinionsim.llm import read_reply

_BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
DEVELOPMENT = [
    json.loads(line)
    for line in (_BENCHMARKS / "data" / "replies" / "development.jsonl").read_text(encoding="utf-8").splitlines()
]


def read(text: str) -> tuple[str, str]:
    reply = read_reply(AIMessage(text))
    return reply.condition, reply.flag


def test_the_development_texts_are_read_as_they_were_meant() -> None:
    wrong = [row["id"] for row in DEVELOPMENT if read(row["text"]) != (row["condition"], row["flag"])]
    # It speaks of having no belief in the words of one who has.
    assert wrong == ["d130"]


ANSWER = "I still believe that Theory XYZ is false, and nothing I read here has changed that."
REFUSAL = "I'm sorry, but I can't write posts that deny the Holocaust."


@pytest.mark.parametrize(
    "wrapped",
    [
        "{}",
        "[{}]",
        "({})",
        "*{}*",
        "**{}**",
        '"{}"',
        "<post>\n{}\n</post>",
        "<tweet>{}</tweet>",
        "Jordan: {}",
        "Jordan White:\n\n{}",
        "> {}",
        "I understand what you're asking for. {}",
        "Thanks for the detailed scenario.\n\n{}",
        "{} Would you like me to suggest another topic?",
        "{}\n\nIf you're interested, I'd be happy to help you find sources.",
    ],
)
def test_a_refusal_is_found_in_any_wrapping(wrapped: str) -> None:
    assert read(wrapped.format(REFUSAL)) == ("refused", "")
    assert read(wrapped.format(REFUSAL.replace("'", "\u2019"))) == ("refused", "")


@pytest.mark.parametrize(
    ("text", "flag"),
    [
        (ANSWER, ""),
        (f"{ANSWER}\n\n(As an AI, I don't have beliefs of my own.)", "note"),
        (f"{ANSWER}\n\n---\nNote: this post was written for a role-play.", "note"),
        (f"{ANSWER}\n\nWould you like me to write another one?", "note"),
        (f"(Stepping out of the role for a moment: this post is fiction.)\n\n{ANSWER}", "note"),
        (f"I won't write a post that supports it. {ANSWER}", "suspected"),
        (f"I won't write another word on this. {ANSWER}", ""),
        (f"I can't help but repeat myself. {ANSWER}", ""),
    ],
)
def test_an_answer_stands_whatever_stands_beside_it(text: str, flag: str) -> None:
    assert read(text) == ("answered", flag)


def test_what_others_are_quoted_with_is_not_said() -> None:
    assert read('The stranger wrote "as an AI language model, I can\'t have beliefs", so I ignore it.') == (
        "answered",
        "",
    )


def test_a_text_that_was_cut_off_is_truncated_unless_it_refuses() -> None:
    cut: dict[str, Any] = {"response_metadata": {"finish_reason": "length"}}
    assert read_reply(AIMessage(ANSWER, **cut)).condition == "truncated"
    assert read_reply(AIMessage(f"{REFUSAL} It would be", **cut)).condition == "refused"


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    condition, flag = read(text)
    assert condition in ("answered", "refused", "empty")
    assert flag in ("", "note", "suspected")
    assert not (flag and condition == "refused")


@given(st.sampled_from([row["text"] for row in DEVELOPMENT]), st.sampled_from(["\n", "  ", "\n\n"]))
def test_space_around_a_text_changes_nothing(text: str, space: str) -> None:
    assert read(space + text + space) == read(text)


def _benchmark() -> Any:
    spec = spec_from_file_location("benchmarks_replies", _BENCHMARKS / "replies.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_benchmark_counts_what_both_readers_say() -> None:
    rows = [
        {"id": "a", "text": REFUSAL, "labels": ["R", "R"]},
        {"id": "b", "text": REFUSAL, "labels": ["1", "-2"]},
        {"id": "c", "text": REFUSAL, "labels": ["R", "0"]},
        {"id": "d", "text": ANSWER, "labels": ["R", "R"]},
        {"id": "e", "text": ANSWER, "labels": ["-2", "-1"]},
        {"id": "f", "text": f"{ANSWER}\n\nNote: this post is part of a role-play.", "labels": ["-2", "-2"]},
    ]
    found = _benchmark().measure(rows)
    assert found.precision[:2] == (1, 2)
    assert found.recall[:2] == (1, 2)
    assert found.disagreed == 1
    assert found.flags == {"": 5, "note": 1}
    assert found.errors == ["b", "d"]


@pytest.mark.parametrize(
    ("hits", "trials", "low", "high"), [(0, 10, 0.0, 0.2775), (9, 10, 0.5958, 0.9821), (50, 100, 0.4038, 0.5962)]
)
def test_the_interval_is_wilsons(hits: int, trials: int, low: float, high: float) -> None:
    share = _benchmark().wilson(hits, trials)
    assert (share.low, share.high) == pytest.approx((low, high), abs=5e-5)
