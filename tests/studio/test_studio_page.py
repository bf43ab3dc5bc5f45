"""A studio in a browser: a study from its template to its report by clicks and typing alone."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import opinionsim as osim
from tests.studio.conftest import Studio, write
from tests.support.pages import accessible, looking
from tests.support.rooms import chromium
from tests.support.running import finished


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture
def page(browser: Any, studio: Studio) -> Iterator[Any]:
    """A page of a browser in which the owner has come in."""
    name, _, value = studio.cookie.partition("=")
    with looking(browser, studio.server) as found:
        found.context.add_cookies([{"name": name, "value": value, "url": studio.server.address}])
        yield found


def _calm(page: Any) -> None:
    """Wait until every part of a page has come."""
    page.wait_for_load_state()
    page.wait_for_selector("[aria-busy=true]", state="detached")


def _narrow(page: Any) -> None:
    """Require that a page fits a phone and scrolls in one direction alone."""
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    page.set_viewport_size({"width": 1280, "height": 800})


@pytest.mark.whole
@pytest.mark.timeout(300)
def test_a_study_from_its_template_to_its_report_by_clicks_and_typing(page: Any, studio: Studio) -> None:
    page.goto(studio.server.address)
    accessible(page)
    _narrow(page)
    page.get_by_label("Name, which the folder").fill("night-market")
    page.get_by_role("radio", name=re.compile("^dyads")).check()
    page.get_by_role("button", name="Make it").click()
    # Changed, checked as one types, and saved by a key.
    page.get_by_text("The text can run as it is.").wait_for()
    accessible(page)
    _narrow(page)
    text = page.locator("#text")
    first = text.input_value()
    text.fill(first.replace("replicates: 5", "replicates: five"))
    page.locator("#verdict.problem").wait_for()
    assert "replicates: must be a whole number" in page.locator("#verdict").inner_text()
    page.get_by_role("button", name="Go to line").click()
    assert page.evaluate("() => getSelection().toString()") == "replicates: five"
    text.fill(first.replace("replicates: 5", "replicates: 100").replace("calls: 10000", "calls: 100000"))
    page.get_by_text("300 runs").wait_for()
    assert "28,800 calls" in page.locator("#meaning").inner_text()
    text.press("Control+s")
    page.get_by_text("Older copies (1)").wait_for()
    # Piloted, started, watched, paused, gone on.
    page.get_by_role("button", name="Pilot").click()
    page.get_by_text(re.compile("^3 complete")).wait_for()
    page.get_by_role("button", name="Go on").click()
    page.get_by_text("Last texts").wait_for(timeout=60_000)
    page.get_by_role("button", name="Pause after").click()
    page.get_by_text("Paused:").wait_for(timeout=60_000)
    page.get_by_role("button", name=re.compile("go on", re.IGNORECASE)).click()
    page.get_by_text(re.compile("^300 complete")).wait_for(timeout=120_000)
    page.get_by_text("Done:").wait_for()
    accessible(page)
    # Read, filtered, compared.
    page.get_by_role("link", name="Results of this study").click()
    page.locator("img[alt^='Diversity of opinions at the end']").wait_for()
    _calm(page)
    accessible(page)
    _narrow(page)
    page.get_by_label("confirmation_bias").first.select_option("strong")
    page.wait_for_url(re.compile("by.cognition.confirmation_bias=strong"))
    _calm(page)
    page.get_by_text("All of them, with their numbers").click()
    page.locator("table.sortable").wait_for()
    assert page.get_by_role("group", name="Runs", exact=True).get_by_role("row").count() == 101
    page.get_by_role("link", name="Clear filters").click()
    page.get_by_text("Choose two conditions and a step").click()
    page.get_by_role("button", name="Compare").click()
    page.get_by_text("Agents that differ the most").wait_for()
    _calm(page)
    accessible(page)
    # Reported; the file from the command line has the same runs.
    page.get_by_role("link", name="the study: its text").click()
    page.get_by_role("button", name="Write the report").click()
    made = page.get_by_role("link", name="night-market-report.html")
    made.wait_for(timeout=120_000)
    with page.expect_download() as found:
        made.click()
    assert b"<!doctype html>" in Path(found.value.path()).read_bytes()[:100]
    folder = studio.folder / "night-market"
    command = [sys.executable, "-m", "opinionsim", "run", "study.yaml"]
    said = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stderr
    assert "all 300 runs were complete already" in said
    planned = {run.run_id for run in osim.load_experiment(folder / "study.yaml").runs}
    assert planned == set(osim.load(str(folder / "results" / "night-market.sqlite")).runs["run_id"])


def test_columns_are_sorted_by_their_headings(page: Any, studio: Studio) -> None:
    path = write(studio.folder, replicates=12)
    finished(osim.load_experiment(path), str(path.parent / "results" / "small.sqlite"))
    page.goto(f"{studio.server.address}/results/small/results/small.sqlite")
    page.get_by_text("All of them, with their numbers").click()
    heading = page.get_by_role("button", name="replicate")
    heading.click()
    cells = page.locator("table.sortable tbody tr td:first-child")
    assert cells.all_inner_texts() == [str(number) for number in range(12)]
    heading.press("Enter")
    assert cells.all_inner_texts() == [str(number) for number in reversed(range(12))]
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("replicate")


def test_a_file_that_changes_elsewhere_is_said_and_what_was_typed_stays(page: Any, studio: Studio) -> None:
    path = write(studio.folder)
    page.goto(f"{studio.server.address}/study/small/study.yaml")
    page.get_by_text("The text can run as it is.").wait_for()
    mine = page.locator("#text").input_value() + "# mine\n"
    page.locator("#text").fill(mine)
    path.write_text(path.read_text(encoding="utf-8") + "# theirs\n", encoding="utf-8")
    page.get_by_text("The file was changed elsewhere.").wait_for()
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_role("heading", name="The text of the file now").wait_for()
    accessible(page)
    ours, here = (each.input_value() for each in page.locator("textarea").all())
    assert (ours, here) == (mine, path.read_text(encoding="utf-8"))
    page.get_by_role("button", name="Save it").click()
    page.get_by_text("Older copies (1)").wait_for()
    assert path.read_text(encoding="utf-8") == mine


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.long)])
def test_a_page_left_open_asks_for_nothing(browser: Any, studio: Studio, scheme: str) -> None:
    path = write(studio.folder)
    finished(osim.load_experiment(path), str(path.parent / "results" / "small.sqlite"))
    name, _, value = studio.cookie.partition("=")
    with looking(browser, studio.server, color_scheme=scheme) as page:
        page.context.add_cookies([{"name": name, "value": value, "url": studio.server.address}])
        page.goto(f"{studio.server.address}/results/small/results/small.sqlite")
        page.locator("img[alt]").first.wait_for()
        _calm(page)
        accessible(page)
        asked: list[str] = []
        page.on("request", lambda each: asked.append(each.url))
        page.wait_for_timeout(3000)
        assert asked == []
        # What is added is shown without a click.
        write(studio.folder, replicates=2)
        finished(osim.load_experiment(path), str(path.parent / "results" / "small.sqlite"))
        page.get_by_text(re.compile("^2 complete")).wait_for()
