"""The page of a study in a browser: from a template to results, mistakes, and a file that changes elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import opinionsim as osim
from tests.support.pages import accessible, looking
from tests.support.rooms import room
from tests.support.viewers import settled


@contextmanager
def _opened(browser: Any, folder: Path) -> Iterator[Any]:
    """A page of a new browser that shows the studies of a folder."""
    with room(".", folder, "--port", "0", command="studio") as server, looking(browser, server) as page:
        page.goto(server.link)
        yield page


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a studio keeps for its user is kept for a test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def _made(page: Any, name: str) -> None:
    """Make a study from the first template, and wait until its page says what it means."""
    page.get_by_label("Name, which the folder of the study gets").fill(name)
    page.get_by_role("button", name="Make it").click()
    page.wait_for_url(re.compile(f"/study/{name}/"))
    page.wait_for_selector("#meaning h3")


def _said(page: Any, text: str) -> None:
    """Wait until the check of the text says something."""
    page.wait_for_selector(f"#verdict:has-text('{text}')")


@pytest.mark.long
def test_a_study_is_made_run_and_read_by_clicks(browser: Any, tmp_path: Path) -> None:
    folder = tmp_path / "studies"
    folder.mkdir()
    with _opened(browser, folder) as page:
        accessible(page)
        _made(page, "market")
        text = page.locator("#text")
        text.fill(text.input_value().replace("replicates: 5", "replicates: 1"))
        page.wait_for_selector("#meaning h3:text-is('Conditions: 3 runs')")
        accessible(page)
        text.press("Control+s")
        page.wait_for_load_state()
        assert "\nreplicates: 1\n" in (folder / "market" / "study.yaml").read_text("utf-8")
        page.get_by_role("button", name="Run everything").click()
        page.wait_for_selector("summary:has-text('Done')", timeout=60_000)
        page.wait_for_selector("[data-live] >> text=3 complete")
        accessible(page)
        page.get_by_role("link", name="Results of this study").click()
        settled(page)
        assert "3 complete" in page.locator("[data-live]").first.inner_text()
        page.get_by_role("link", name="the study: its text, its price, its runs").click()
        page.wait_for_url(re.compile("/study/market/"))
    assert len(osim.load(str(folder / "market" / "results" / "market.sqlite")).runs) == 3


def test_mistakes_are_said_with_their_line_in_the_file_that_is_edited(browser: Any, tmp_path: Path) -> None:
    with _opened(browser, tmp_path) as page:
        _made(page, "market")
        text, here = page.locator("#text"), "text => text.value.slice(text.selectionStart, text.selectionEnd)"
        right = text.input_value()
        wrong = right.replace("kind: dyadic", "kind: dyad")
        text.fill(wrong)
        _said(page, "dyad")
        page.get_by_role("button", name="Go to line").click()
        assert "kind: dyad," in text.evaluate(here)
        text.fill(right)
        _said(page, "can run as it is")
        page.get_by_role("link", name="topic.yaml").click()
        text.fill(f"{text.input_value()}\nclaims: [\n")
        _said(page, "not valid YAML")
        press = page.get_by_role("button", name="Go to line")
        assert abs(int(press.inner_text().split()[-1]) - text.input_value().count("\n")) <= 1
        text.fill(text.input_value().replace("\nclaims: [\n", ""))
        _said(page, "can run as it is")
        # A mistake in another file has no line in this one.
        (tmp_path / "market" / "study.yaml").write_text(wrong, encoding="utf-8")
        page.reload()
        _said(page, "dyad")
        assert press.count() == 0


def test_a_file_that_was_changed_elsewhere_is_not_overwritten_and_older_copies_come_back(
    browser: Any, tmp_path: Path
) -> None:
    with _opened(browser, tmp_path) as page:
        _made(page, "market")
        file, text = tmp_path / "market" / "study.yaml", page.locator("#text")
        first = file.read_text("utf-8")
        file.write_text(f"{first}# theirs\n", encoding="utf-8")
        page.wait_for_selector("#elsewhere:not([hidden])")
        text.fill(f"{first}# mine\n")
        page.get_by_role("button", name="Save").click()
        page.wait_for_selector("h2:text-is('The text of the file now')")
        accessible(page)
        assert file.read_text("utf-8").endswith("# theirs\n")
        page.get_by_role("button", name="Save it; the other becomes an older copy").click()
        page.wait_for_selector("summary:has-text('Older copies (1)')")
        assert file.read_text("utf-8").endswith("# mine\n")
        page.locator("summary:has-text('Older copies')").click()
        page.locator("a:text('until')").click()
        page.wait_for_selector(".notice:has-text('older copy')")
        page.get_by_role("button", name="Save").click()
        page.wait_for_selector("summary:has-text('Older copies (2)')")
        assert file.read_text("utf-8").endswith("# theirs\n")


def test_code_of_a_study_is_run_only_once_it_is_allowed(browser: Any, tmp_path: Path) -> None:
    with _opened(browser, tmp_path) as page:
        _made(page, "market")
        folder, text = tmp_path / "market", page.locator("#text")
        ran = tmp_path / "ran"
        (folder / "my_rules.py").write_text(f"open({str(ran)!r}, 'w').close()\n", encoding="utf-8")
        text.fill(text.input_value().replace("kind: dyadic", "kind: my_rules:Gossip"))
        page.wait_for_selector("#allow:not([hidden]) >> text=my_rules:Gossip")
        page.get_by_role("button", name="Save").click()
        page.wait_for_selector("#allow:not([hidden])")
        accessible(page)
        page.get_by_role("button", name="Run everything").click()
        page.wait_for_selector(".problem:has-text('allow them on its page first')")
        page.go_back()
        page.wait_for_selector("#allow:not([hidden])")
        assert not ran.exists()
        page.get_by_role("button", name="Allow it in this folder").click()
        _said(page, "Gossip")
        assert ran.exists()
