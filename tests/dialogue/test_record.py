"""What a room is in addition to its turns, as the page of its run shows it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import opinionsim as osim
from opinionsim.dialogue import analyses
from tests.support.pages import accessible
from tests.support.running import beyond, finished
from tests.support.viewers import offline, viewing

ROOM: dict[str, Any] = {
    "name": "room",
    "seed": 4,
    "task": "Should the library open on Sundays?",
    "cast": [{"name": "Ada", "persona": "a nurse"}, {"name": "Ben", "persona": "a cook"}],
    "roles": {"moderator": {}, "analyzer": {}},
    "interaction": {"kind": "room", "steps": 6, "analyze_every": 2},
}


def test_a_room_is_told_by_its_analyses(checkout: Path, tmp_path: Path) -> None:
    results = osim.run(osim.load_experiment(checkout / "experiments" / "room_models.yaml"), str(tmp_path / "s.sqlite"))
    told = beyond(results)["beside"]["moments"]
    said = results.turns[results.turns["kind"] == "analysis"]
    expected = analyses([*said[["turn", "message"]].itertuples(index=False, name=None)])
    assert len(expected) > 0
    assert [each["title"] for each in told] == [f"As of turn {each.turn}" for each in expected]
    for moment, analysis in zip(told, expected, strict=True):
        summary, agreed, asked, claimed, weak = moment["parts"]
        assert summary["text"] == analysis.summary
        for part, items in ((agreed, analysis.agreements), (asked, analysis.questions), (claimed, analysis.claims)):
            found = [(each["note"], each["text"], each["change"]) for each in part["points"]]
            assert found == [(item.id, item.text, item.change) for item in items]
        for point, item in zip(claimed["points"], analysis.claims, strict=True):
            assert item.claim is not None
            assert point["turns"] == list(item.claim.turns)
            below = [each["text"] for each in point["points"]]
            assert below[: len(item.claim.premises)] == [f"because {each}" for each in item.claim.premises]
        assert [each["turns"] for each in weak["points"]] == [[each.turn] for each in analysis.fallacies]


def test_the_argument_stands_beside_the_dialogue(browser: Any, tmp_path: Path) -> None:
    store, path = tmp_path / "room.sqlite", tmp_path / "run.html"
    finished(ROOM, str(store))
    results = osim.load(str(store))
    run = results.run_ids[0]
    speech = results.turns[results.turns["kind"] == "speech"]["message"].iloc[0]
    dark: dict[str, Any] = {"viewport": {"width": 360, "height": 740}, "color_scheme": "dark"}
    with viewing(browser, store) as viewed:
        with viewed.page(browser, f"#/run/{run}/dialogue") as page:
            accessible(page)
            assert " ".join(speech.split()) in " ".join(page.locator("#view").inner_text().split())
            assert page.locator(".beside details[open] h3").first.inner_text() == "Summary"
            assert page.locator(".beside details[open]").count() == 1
            assert page.get_by_text("an analysis, which stands beside the dialogue").count() == 3
            text = page.locator(".beside").text_content()
        with offline(browser, store, run, path) as alone:
            alone.goto(f"{path.as_uri()}#/run/{run}/dialogue")
            alone.wait_for_selector(".beside")
            assert alone.locator(".beside").text_content() == text
        with viewed.page(browser, f"#/run/{run}/dialogue", **dark) as page:
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            accessible(page)
