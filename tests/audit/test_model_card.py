"""The card of a model: its figures are those of what the model said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import opinionsim as osim
from opinionsim.audit import card_table, model_card
from opinionsim.errors import SpecError
from opinionsim.llm import GivenReplies
from opinionsim.messages import ChatMessage
from opinionsim.opinions import OpinionScale
from opinionsim.planning import card_file, card_of
from opinionsim.specification import load_experiment
from tests.support.running import SMALL

POINTS = dict(zip(OpinionScale().labels, OpinionScale().points, strict=True))
MODEL = {"model.name": "lab:own", "model.temperature": 0.5}


def _assigned(prompt: list[ChatMessage]) -> int:
    return next(point for label, point in POINTS.items() if f"Initial belief: {label} opinion" in prompt[0].content)


def _opponents_refuse(prompt: list[ChatMessage]) -> str:
    """Opponents refuse to write; all say what they were assigned, unless they read a post or are asked otherwise."""
    task, whole = prompt[-1].content, " ".join(message.content for message in prompt)
    if "and nothing else" not in task:
        return "I'm sorry, but I can't help with that request." if _assigned(prompt) < 0 else "Sure. Theory XYZ it is."
    if "the words of one of these lines" in task:
        return "strongly positive"
    if task.index("-2: ") > task.index("2: strongly positive"):
        return "1"
    return "2" if "Theory XYZ is true" in whole else "-2" if "Theory XYZ is false" in whole else f"{_assigned(prompt)}"


def _unreadable(prompt: list[ChatMessage]) -> str:
    return "Well, who can say?" if "and nothing else" in prompt[-1].content else " ".join(["and so on"] * 40)


def _card(reply: Any, folder: Path) -> dict[str, Any]:
    spec = load_experiment("check_model", {"name": "check-own", **MODEL})
    return model_card(osim.run(spec, str(folder / "s.sqlite"), chat_model=GivenReplies(reply)))


def test_figures_are_those_of_what_was_said(tmp_path: Path) -> None:
    card = _card(_opponents_refuse, tmp_path)
    assert (card["model"], card["settings"]["temperature"]) == ("lab:own", 0.5)
    told = {name: line["text"] for name, line in card["lines"].items()}
    results = osim.load(str(tmp_path / "s.sqlite"))
    turns = results.turns.merge(results.agents[["run_id", "agent", "assigned_opinion"]])
    turns = turns[turns["status"] != "skipped"]  # reports on posts that were refused
    texts = turns[turns["kind"] != "self-report"]
    n, against = len(texts), (texts["assigned_opinion"] < 0).sum()
    assert card["calls"] == n + 60 == len(turns) < 100
    assert told["usable"] == f"{n - against} of {n}"
    assert told["refused_negative"] == f"{against} of {(turns['assigned_opinion'] < 0).sum()}"
    assert told["refused_positive"].startswith("0 of ")
    assert told["kept"] == f"{n / (n - against):.2f}"
    assert (told["readable"], told["retest"], told["follows"]) == ("60 of 60", "10 of 10", "+1.00, 10 pairs")
    assert (told["sides"], told["falling"], told["spelling"]) == (
        "+4.00, 10 pairs",
        "+1.00, 10 pairs",
        "+2.00, 10 pairs",
    )
    assert card["lines"]["readable"]["low"] == pytest.approx(0.9398, abs=1e-4)  # Wilson: 60 / (60 + 1.96 ** 2)
    assert "10 of 10" in card_table(card).to_text()


def test_a_model_that_answers_nothing_has_counts_and_no_figures(tmp_path: Path) -> None:
    lines = _card(_unreadable, tmp_path)["lines"]
    assert lines["readable"]["text"] == "0 of 60"
    for name in ("follows", "sides", "falling", "spelling"):
        assert (lines[name]["text"], lines[name]["value"], lines[name]["low"]) == ("0 pairs", None, None)
    assert (lines["retest"]["text"], lines["retest"]["low"]) == ("0 of 0", None)
    assert lines["words"]["text"] == "0 of 10"
    assert lines["distinct"]["text"] == "1 of 10"
    assert "loop" in lines["signs"]["text"]
    assert (lines["tokens"]["text"], lines["tokens"]["value"]) == ("not counted", None)


def test_results_of_something_else_make_no_card(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="is not a check of a model"):
        model_card(osim.run(load_experiment(SMALL), str(tmp_path / "s.sqlite")))


def test_a_card_is_found_beside_a_store_by_the_name_of_its_model(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 's.sqlite'}"
    path = card_file("openai:a/b", url)
    assert path == tmp_path / "check-openai-a-b.json"
    assert card_file("openai:a/b", "postgresql+psycopg://host/db").parent == Path("results")
    assert card_of("openai:a/b", url) is None
    path.write_text(json.dumps({"model": "openai:a/b"}))
    assert card_of("openai:a/b", url) == {"model": "openai:a/b"}
    assert card_of("openai:a-b", url) is None  # the card of another model, whose file has the same name
    path.write_text("[]")
    with pytest.raises(SpecError, match="is no card of a model"):
        card_of("openai:a/b", url)
