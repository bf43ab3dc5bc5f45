"""Rooms in a browser: whole sessions, the analysis beside them, and what people want out of turn."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.pages import accessible, looking, my_turn, say, sit_down, sit_to_the_end
from tests.support.rooms import RoomServer, room


def test_a_whole_session(browser: Any, served: RoomServer, tmp_path: Path) -> None:
    with looking(browser, served) as page:
        sit_to_the_end(page, served, tmp_path, "speak")
        assert page.locator("#lines .speech .model").first.inner_text() == "scripted"
        page.wait_for_selector("#analysis h3:text('Claims')")
        page.goto(f"{served.address}/settings")
        accessible(page)


def test_the_keyboard_alone(browser: Any, spec: Callable[..., Path], tmp_path: Path) -> None:
    def tab_to(page: Any, what: str) -> None:
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.evaluate("what => document.activeElement.matches(what)", what):
                return
        raise AssertionError(f"no key leads to {what}")

    path = spec(interaction={"kind": "room", "steps": 24, "analyze_every": 2})
    with room(path, tmp_path) as served, looking(browser, served) as page:
        page.goto(served.link)
        tab_to(page, "form[action$=sit] button")
        page.keyboard.press("Enter")
        my_turn(page)
        tab_to(page, "#text")
        page.keyboard.type("By keys.")
        tab_to(page, "#answer button")
        page.keyboard.press("Enter")
        page.wait_for_selector("#lines .own .text:text('By keys.')")
        my_turn(page)
        # An open question is taken into the text without a mouse.
        while page.locator("#analysis .take:not([hidden])").count() == 0:
            say(page, "Another turn.")
            my_turn(page)
        tab_to(page, "#analysis .take")
        page.keyboard.press("Enter")
        assert re.match(r"\[q\d+\] ", page.input_value("#text"))


@pytest.mark.whole
def test_an_open_question_is_dragged_and_pasting_is_an_option(
    browser: Any, spec: Callable[..., Path], tmp_path: Path
) -> None:
    cast = [{"name": "Ada"}, {"name": "Ben"}, {"name": "Guest", "seat": {"paste": False, "words": 12}}]
    path = spec(cast=cast, interaction={"kind": "room", "steps": 24, "analyze_every": 2})
    with room(path, tmp_path) as server, looking(browser, server) as page:
        sit_down(page, server)
        my_turn(page)
        paste = "text => text.dispatchEvent(new ClipboardEvent('paste', { cancelable: true }))"
        assert page.locator("#text").evaluate(paste) is False
        drop = """text => {
            const dataTransfer = new DataTransfer();
            dataTransfer.setData("text/plain", "From elsewhere.");
            text.dispatchEvent(new DragEvent("drop", { dataTransfer, cancelable: true }));
            return text.value;
        }"""
        assert page.locator("#text").evaluate(drop) == ""
        assert "Please type" in page.locator("#seat .status").inner_text()
        while page.locator("#analysis .open").count() == 0:
            say(page, "What would it cost us?")
            my_turn(page)
        for _ in range(5):  # a new analysis may take the place of the one that is dragged from
            page.locator("#analysis .open").first.drag_to(page.locator("#text"))
            if page.input_value("#text"):
                break
        assert re.match(r"\[q\d+\] ", page.input_value("#text"))
        page.fill("#text", "one two three four five six seven eight nine ten eleven twelve thirteen")
        page.get_by_role("button", name="Send").click()
        page.wait_for_selector("#seat .status:text('at most 12')")


@pytest.mark.long
def test_what_was_wanted_out_of_turn_survives_the_server(
    browser: Any, spec: Callable[..., Path], tmp_path: Path
) -> None:
    path = spec()
    with room(path, tmp_path) as first, looking(browser, first) as page:
        sit_down(page, first)
        my_turn(page)
        page.locator(".wants summary").click()
        page.fill("#harm", "This was unkind.")
        page.get_by_role("button", name="Report it").click()
        page.wait_for_selector("#seat .status:text('report is on record')")
        page.get_by_role("button", name="Pause").click()
        page.wait_for_selector("#seat .status:text('taken up')")
        first.kill()
        with room(path, tmp_path, "--port", str(first.port)):
            page.reload()
            my_turn(page)
            say(page, "After it all.")
            page.wait_for_selector("#seat .question:text('The room waits for you')")
            page.check("#answer [value='end']")
            page.get_by_role("button", name="Send").click()
            page.wait_for_selector("#lines :text('a person ended it')")
            with sqlite3.connect(f"file:{next(tmp_path.glob('results/*.sqlite'))}?mode=ro", uri=True) as store:
                asked = (
                    "SELECT count(*) FROM turns JOIN texts USING (text_id) WHERE kind = 'harm' AND text LIKE '%unkind%'"
                )
                assert store.execute(asked).fetchone() == (1,)
