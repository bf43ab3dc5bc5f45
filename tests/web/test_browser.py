"""Sessions in a browser: whole ones, and everything that can go wrong in between."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.pages import HOSTILE, accessible, looking, my_turn, say, sit_down, sit_to_the_end, texts_of_person
from tests.support.rooms import RoomServer, room


def sent(page: Any, server: RoomServer, **form: Any) -> Any:
    """The answer to a form, as a page without scripts would send it."""
    headers = {"origin": server.address, "accept": "application/json"}
    return page.request.post(f"{page.url.partition('#')[0]}/answer", form=form, headers=headers)


def test_a_whole_session(browser: Any, served: RoomServer, tmp_path: Path) -> None:
    with looking(browser, served) as page:
        sit_to_the_end(page, served, tmp_path)
        assert page.locator("#lines .post .model").first.inner_text() == "scripted"
        page.goto(f"{served.address}/settings")
        accessible(page)


def test_what_is_half_written_survives_a_reload_and_a_second_tab_doubles_nothing(
    browser: Any, served: RoomServer, tmp_path: Path
) -> None:
    with looking(browser, served) as page:
        sit_down(page, served)
        my_turn(page)
        page.fill("#answer textarea", "Half a sent")
        page.reload()
        my_turn(page)
        assert page.input_value("#answer textarea") == "Half a sent"
        other = page.context.new_page()
        other.goto(page.url)
        my_turn(other)
        other.fill("#answer textarea", "From the other tab.")
        held = page.locator("#answer").evaluate("form => Object.fromEntries(new FormData(form))")
        say(other, "From the other tab.")
        # The first tab sends for the same question.
        answer = sent(page, served, **{**held, "text": "From the first tab."})
        assert answer.status == 409
        assert "The first answer counts" in answer.text()
        assert sent(page, served, **{**held, "text": "From the other tab."}).json() == {"sent": "already"}
        assert texts_of_person(tmp_path)[:1] == ["From the other tab."]
        assert "From the first tab." not in texts_of_person(tmp_path)


@pytest.mark.long
def test_a_server_that_is_killed_in_mid_turn_loses_nothing(
    browser: Any, spec: Callable[..., Path], tmp_path: Path
) -> None:
    path = spec()
    with room(path, tmp_path) as first, looking(browser, first) as page:
        sit_down(page, first)
        my_turn(page)
        say(page, "Before the end.")
        my_turn(page)
        page.fill("#answer textarea", "While it was away.")
        first.kill()
        page.get_by_role("button", name="Send").click()
        page.wait_for_selector("#seat .status:text('connection is lost')")
        with room(path, tmp_path, "--port", str(first.port)):
            # The seat is still had by the same cookie; the page finds the server again by itself.
            page.wait_for_function("() => !document.querySelector('#seat .status').textContent.includes('lost')")
            my_turn(page)
            assert page.input_value("#answer textarea") == "While it was away."
            say(page, "While it was away.")
            # The question may have been asked anew while the answer was on its way.
            page.wait_for_selector("#lines .own .text:text('While it was away.')")
            assert texts_of_person(tmp_path) == ["Before the end.", "While it was away."]


@pytest.mark.long
def test_a_lost_network_is_said_and_the_text_can_be_sent_again(
    browser: Any, served: RoomServer, tmp_path: Path
) -> None:
    with looking(browser, served) as page:
        sit_down(page, served)
        my_turn(page)
        page.context.set_offline(True)
        page.fill("#answer textarea", "Over the wire.")
        page.get_by_role("button", name="Send").click()
        page.wait_for_selector("#seat .status:text('nothing was sent')")
        page.context.set_offline(False)
        say(page, "Over the wire.")
        assert texts_of_person(tmp_path)[:1] == ["Over the wire."]


@pytest.mark.whole
def test_the_width_of_a_phone_and_the_dark(browser: Any, served: RoomServer) -> None:
    with looking(browser, served, viewport={"width": 360, "height": 740}, color_scheme="dark") as page:
        sit_down(page, served)
        my_turn(page)
        say(page, "x" * 10_000)
        page.wait_for_selector("#lines .own .text")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        accessible(page)


def test_the_keyboard_alone(browser: Any, spec: Callable[..., Path], tmp_path: Path) -> None:
    def tab_to(page: Any, what: str) -> None:
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.evaluate("what => document.activeElement.matches(what)", what):
                return
        raise AssertionError(f"no key leads to {what}")

    with room(spec(), tmp_path) as served, looking(browser, served) as page:
        page.goto(served.link)
        tab_to(page, "form[action$=sit] button")
        page.keyboard.press("Enter")
        my_turn(page)
        tab_to(page, "#text")
        page.keyboard.type("By keys.")
        tab_to(page, "#answer button")
        page.keyboard.press("Enter")
        page.wait_for_selector("#lines .own .text:text('By keys.')")


@pytest.mark.whole
def test_without_scripts(browser: Any, served: RoomServer, tmp_path: Path) -> None:
    with looking(browser, served, java_script_enabled=False) as page:
        sit_down(page, served)
        for _ in range(60):
            if page.locator("#answer").count():
                break
            page.wait_for_timeout(250)
            page.reload()
        page.fill("#answer textarea", " ")
        page.get_by_role("button", name="Send").click()
        assert page.locator(".problem").inner_text() == "There is no text to send."
        page.fill("#answer textarea", "Plain as it is.")
        page.get_by_role("button", name="Send").click()
        assert "Plain as it is." in page.locator("#lines").inner_text()
        assert texts_of_person(tmp_path)[:1] == ["Plain as it is."]


def test_hostile_texts_are_texts(browser: Any, spec: Callable[..., Path], tmp_path: Path) -> None:
    cast = [{"name": HOSTILE[1], "persona": HOSTILE[0]}, {"name": "Ben", "persona": HOSTILE[2]}, {"seat": {}}]
    path = spec(cast=cast, task=HOSTILE[0])
    with room(path, tmp_path) as server, looking(browser, server) as page:
        sit_down(page, server)
        my_turn(page)
        title = page.title()
        text = "\n".join(HOSTILE) + "\n" + "w" * 10_000
        say(page, text)
        page.wait_for_selector("#lines .own .text")
        assert page.locator("#lines .own .text").first.inner_text().split("\n")[0] == HOSTILE[0]
        page.reload()
        for shown in HOSTILE[:6]:
            assert shown in page.locator("#lines .own .text").first.inner_text()
        assert HOSTILE[0] in page.locator(".about").first.inner_text()
        assert HOSTILE[1] in page.locator("#lines").inner_text()
        assert page.title() == title
        assert page.evaluate("getComputedStyle(document.body).display") == "block"
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_somebody_who_looks_on_sees_it_live_and_can_do_nothing(browser: Any, served: RoomServer) -> None:
    with looking(browser, served) as page, looking(browser, served) as other:
        page.goto(served.link)
        page.get_by_role("button", name="Make a link to observe").first.click()
        link = page.locator(".link code").inner_text()
        other.goto(link)
        other.get_by_role("button", name="Join").click()
        page.get_by_role("button", name="Try it yourself").first.click()
        my_turn(page)
        say(page, "For all to hear.")
        other.wait_for_selector("#lines .text:text('For all to hear.')")
        assert other.locator("#answer").count() == 0
        run = page.url.partition("#")[0]
        for route in ("answer", "signal", "invite", "sit"):
            assert other.request.post(f"{run}/{route}", headers={"origin": served.address}).status == 403
        assert other.request.get(f"{served.address}/settings").status == 403
        assert other.request.get(f"{run}/download/json").status == 403


def test_a_session_is_downloaded(browser: Any, served: RoomServer) -> None:
    with looking(browser, served) as page:
        sit_down(page, served)
        my_turn(page)
        say(page, "=2+3 is a formula")
        for form in ("json", "csv", "html"):
            found = page.request.get(f"{page.url.partition('#')[0]}/download/{form}")
            assert found.status == 200, form
            assert "attachment" in found.headers["content-disposition"], form
            assert "=2+3 is a formula" in found.text(), form
            # A spreadsheet would run a cell that begins like this.
            assert ",=2+3" not in found.text(), form


@pytest.mark.long
def test_an_answer_that_comes_too_late_is_not_called_sent(
    browser: Any, spec: Callable[..., Path], tmp_path: Path
) -> None:
    cast = [{"name": "Ada"}, {"name": "Ben"}, {"name": "Guest", "seat": {"timeout_s": 2}}]
    path = spec(cast=cast, interaction={"kind": "dyadic", "steps": 24})
    with room(path, tmp_path) as server, looking(browser, server) as page:
        sit_down(page, server)
        my_turn(page)
        assert "seconds" in page.locator(".time").inner_text()
        held = page.locator("#answer").evaluate("form => Object.fromEntries(new FormData(form))")
        page.wait_for_selector("#seat .notice:text('counts as not answered')")
        page.wait_for_selector("#seat :text('ran out of time')")
        late = sent(page, server, **{**held, "text": "Late."})
        assert (late.status, "has run out" in late.text()) == (409, True)
        assert texts_of_person(tmp_path)[0] == ""
