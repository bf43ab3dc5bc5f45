"""Pages of a browser that let nothing pass: no request to another host, no script that fails, no violation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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
