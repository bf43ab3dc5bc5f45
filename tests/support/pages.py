"""Pages of a browser that let nothing pass: no request to another host, no script that fails, no violation."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from axe_playwright_python.sync_playwright import Axe

from tests.support.rooms import RoomServer

#: Texts that do something where they are not shown as texts.
HOSTILE = [
    "<script>document.title = 'taken'</script>",
    "<img src=x onerror=\"document.title='taken'\">",
    '"><svg onload="document.title=\'taken\'">',
    "[click](javascript:document.title='taken')",
    "<style>body { display: none }</style>",
    "{{ 7 * 7 }} {% raw %} ${7 * 7} <%= 7 * 7 %>",
    "\N{RIGHT-TO-LEFT OVERRIDE}desrever\N{POP DIRECTIONAL FORMATTING} \N{RIGHT-TO-LEFT MARK}",
    "&lt;b&gt;&amp;#x3c;",
]


@contextmanager
def looking(browser: Any, server: RoomServer, **options: Any) -> Iterator[Any]:
    """A page of a new browser; no request may leave the server, and no script may fail."""
    context = browser.new_context(**options)
    page = context.new_page()
    strange: list[str] = []
    page.on("request", lambda each: strange.append(each.url) if not each.url.startswith(server.address) else None)
    page.on("pageerror", lambda error: strange.append(str(error)))
    page.on("dialog", lambda dialog: strange.append(dialog.message))
    page.set_default_timeout(20_000)
    try:
        yield page
        assert not strange
    finally:
        context.close()


def accessible(page: Any) -> None:
    """Require that axe finds nothing."""
    page.wait_for_load_state()
    found = Axe().run(page).response["violations"]
    assert not found, [(each["id"], [node["html"] for node in each["nodes"]][:3]) for each in found]


def sit_down(page: Any, server: RoomServer) -> None:
    """Sign the owner in, and have it try the first session."""
    page.goto(server.link)
    page.get_by_role("button", name="Try it yourself").first.click()
    page.wait_for_url(re.compile("/sessions/"))


def my_turn(page: Any) -> None:
    """Wait for the form of a text, or the end; where the moderator asks whether that is all, it is not."""
    wanted = "#answer textarea, #answer [type=radio], #seat h2:text('This session is over')"
    while page.wait_for_selector(wanted).get_attribute("type") == "radio":
        key = page.get_attribute("#seat", "data-key")
        page.check("#answer [value=no]")
        page.get_by_role("button", name="Send").click()
        page.wait_for_function("key => document.getElementById('seat').dataset.key !== key", arg=key)


def say(page: Any, text: str) -> None:
    """Answer with a text, and wait until the question is over."""
    key = page.get_attribute("#seat", "data-key")
    page.fill("#answer textarea", text)
    page.get_by_role("button", name="Send").click()
    page.wait_for_function("key => document.getElementById('seat').dataset.key !== key", arg=key)


def texts_of_person(folder: Path, act: str = "%") -> list[str]:
    """What the person has said in an act, or in all, by the journal."""
    with sqlite3.connect(f"file:{next(folder.glob('results/*.sqlite'))}?mode=ro", uri=True) as store:
        rows = store.execute(
            "SELECT texts.text FROM journal JOIN texts USING (text_id) WHERE source = 'person' AND act LIKE ? "
            "ORDER BY turn",
            (act,),
        )
        return [text for (text,) in rows]


def sit_to_the_end(page: Any, served: RoomServer, folder: Path, act: str = "%") -> None:
    """Try the first session, and say something in each turn until it is over."""
    page.goto(served.link)
    accessible(page)
    # The link has become a cookie that no script can read and no other site can send.
    (cookie,) = page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Lax")
    page.get_by_role("button", name="Try it yourself").first.click()
    said = []
    for number in range(10):
        page.wait_for_selector("#answer, #seat h2:text('This session is over')")
        if page.locator("#answer").count() == 0:
            break
        my_turn(page)
        if page.locator("#answer").count() == 0:
            break
        assert page.locator("#seat h2").inner_text() == "It is your turn"
        if number == 0:
            accessible(page)
        said.append(f"My point number {number}.")
        say(page, said[-1])
    page.wait_for_selector("#seat h2:text('This session is over')")
    accessible(page)
    shown = page.locator("#lines .own .text").all_inner_texts()
    assert [text for text in shown if text.startswith("My point")] == said == texts_of_person(folder, act)
    assert len(said) >= 2
    assert "SCRIPTED STAND-IN" in page.locator(".stamp").inner_text()
