"""The archive of a session, whose table of elections is made again from its frames."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from opinionsim.foundation.data import data_folder
from opinionsim.report import released
from tests.support.archives import carried_out, check_archived
from tests.support.people import Double


def test_a_session_is_archived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Figures take most of the time, and are what is tested elsewhere.
    monkeypatch.setattr("opinionsim.report._study.figures_of", lambda results: iter(()))
    spec = yaml.safe_load((data_folder("experiments") / "consensus_quickstart.yaml").read_text(encoding="utf-8"))
    check_archived(carried_out(spec, tmp_path), tmp_path / "archive")
    tables = (path.read_text(encoding="utf-8") for path in (tmp_path / "archive" / "tables").glob("*.txt"))
    assert any("Winners by rule" in table for table in tables)


def test_numbers_of_people_are_passed_on_and_nothing_of_what_others_say_is_withheld(tmp_path: Path) -> None:
    """Nothing is withheld that equals a rating or a few words of somebody who does not publish."""
    words = {"state": "It is so. And Zanzibar marmalade is all that I think of it.", "criticise": "with the claim"}
    person = Double(lambda question: words.get(question.act), evidence="human")
    spec = {
        "name": "shown", "seed": 3, "task": "Should the centre be closed?", "measurement": {},
        "cast": [{"name": "Ben", "seat": {}}, {"persona": "a nurse"}, {}],
        "roles": {"mediator": {}},
        "interaction": {"kind": "consensus", "candidates": 2, "rounds": 1, "ratings": {"passes": 1}},
        "topic": {"name": "flat-earth"},
    }  # fmt: skip
    results = carried_out(spec, tmp_path, people=person)
    shown, told = released(results).turns, results.turns
    kept = (told["agent"] != 0) | told["kind"].isin(["rating", "ballot"])
    assert kept.sum() > 10
    assert shown["message"][kept].tolist() == told["message"][kept].tolist()
    assert shown["message"][~kept].str.fullmatch(r"\[withheld sha256:[0-9a-f]{24}\]").all()
