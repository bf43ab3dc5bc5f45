"""A session in the viewer: rounds with candidates, the selected ones and ballots, on the page and in the one file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import opinionsim as osim
from tests.consensus.test_record import SESSION
from tests.support.pages import accessible
from tests.support.running import finished
from tests.support.viewers import offline, viewing

pytestmark = pytest.mark.whole


def test_rounds_are_shown(browser: Any, tmp_path: Path) -> None:
    store = tmp_path / "session.sqlite"
    finished(SESSION, str(store))
    results = osim.load(str(store))
    run = results.runs["run_id"].iloc[0]
    statement = results.turns[results.turns["kind"] == "statement"]["message"].iloc[0]
    with viewing(browser, store) as viewed, viewed.page(browser, f"#/run/{run}/dialogue") as page:
        accessible(page)
        text = " ".join(page.locator("#view").inner_text().split())
        assert " ".join(statement.split()) in text
        assert "selected" in text
        assert page.locator(".line.own").count() == 2
        assert page.locator("caption", has_text="Ballots").count() == 2
        with offline(browser, store, run, tmp_path / "run.html") as alone:
            alone.goto(f"{(tmp_path / 'run.html').as_uri()}#/run/{run}/dialogue")
            alone.wait_for_selector(".line.own")
            assert " ".join(alone.locator("#view").inner_text().split()) == text
