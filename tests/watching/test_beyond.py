"""Runs that are more than turns in a row, as their pages show them."""

from __future__ import annotations

from pathlib import Path

import opinionsim as osim
from opinionsim.dialogue import analyses
from tests.support.running import SMALL, beyond


def test_a_room_is_told_by_its_analyses(checkout: Path, tmp_path: Path) -> None:
    results = osim.run(osim.load_experiment(checkout / "experiments" / "room_models.yaml"), str(tmp_path / "s.sqlite"))
    told = beyond(results)
    said = results.turns[results.turns["kind"] == "analysis"]
    expected = analyses([*said[["turn", "message"]].itertuples(index=False, name=None)])
    assert [(each["turn"], each["summary"]) for each in told["analyses"]] == [
        (each.turn, each.summary) for each in expected
    ]
    claims = [claim for each in told["analyses"] for claim in each["claims"]]
    assert claims
    assert all({"id", "text", "change", "premises", "counterarguments", "turns"} <= set(claim) for claim in claims)
    assert [claim["id"] for claim in claims] == [claim.id for each in expected for claim in each.claims]


def test_a_run_that_is_its_turns_has_nothing_beyond_them(tmp_path: Path) -> None:
    assert beyond(osim.run(osim.load_experiment(SMALL), str(tmp_path / "s.sqlite"))) == {}
