"""A study as a page: in a browser, on paper, and where it cannot be written."""

from __future__ import annotations

import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from opinionsim.cli import app
from opinionsim.errors import SpecError
from opinionsim.metrics import EVIDENCE
from opinionsim.report import write_page
from opinionsim.store import Results, copy_store
from tests.report.conftest import HEBREW, LONG
from tests.support.pages import accessible

#: The parts of a page that every study has.
SECTIONS = ["design", "findings", "figures", "tables", "shifts", "transcripts", "caveats", "history", "methods"]
SECTIONS += ["references", "cost", "versions", "specification"]


def _report(store: object, *options: object) -> Result:
    return CliRunner().invoke(app, ["report", *map(str, (store, *options))])


@pytest.fixture(scope="module")
def written(modelled: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a study of a model, which no test changes."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    assert write_page(modelled, path) == []
    return path


@pytest.fixture
def opened(browser: Any, written: Path, request: pytest.FixtureRequest) -> Any:
    """That page, open; no request may leave the file, and no script may run."""
    context = browser.new_context(color_scheme=getattr(request, "param", "light"))
    page = context.new_page()
    strange: list[str] = []
    page.on("request", lambda each: strange.append(each.url) if not each.url.startswith(("file:", "data:")) else None)
    page.on("console", lambda each: strange.append(each.text))
    page.on("dialog", lambda each: strange.append(each.message))
    page.goto(written.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    yield page
    assert not strange
    context.close()


@pytest.mark.parametrize("opened", ["light", "dark"], indirect=True)
def test_a_page_opens_without_a_host_and_bears_any_text(opened: Any) -> None:
    assert opened.title() == "model-study: Language-model agents"
    assert opened.locator("script, svg, body b, body style").count() == 0
    assert [each for each in SECTIONS if opened.locator(f"#{each}").count() != 1] == []
    texts = opened.locator(".text").all_inner_texts()
    assert any("<script>document.title" in each for each in texts)
    assert any(LONG in each.replace("\n", "") for each in texts)
    assert any(HEBREW in each for each in texts)
    assert any("\\u200f" in each for each in texts)
    assert not re.search("[\u200e\u200f\u202a-\u202e]", opened.content())
    width, room = opened.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert width <= room
    assert opened.evaluate("[...document.images].every(each => each.naturalWidth > 0 && each.alt)")


@pytest.mark.parametrize("opened", ["light", "dark"], indirect=True)
def test_a_page_is_accessible(opened: Any) -> None:
    # The policy of the page lets no script in, that of the check included.
    scheme = "dark" if opened.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") else "light"
    context = opened.context.browser.new_context(bypass_csp=True, color_scheme=scheme)
    page = context.new_page()
    page.goto(opened.url)
    accessible(page)
    context.close()


def test_a_page_is_printed_with_what_is_folded_away(opened: Any, tmp_path: Path) -> None:
    opened.emulate_media(media="print")
    opened.evaluate("document.querySelectorAll('details').forEach(each => each.open = false)")
    assert opened.locator("details .text").first.evaluate("each => each.getBoundingClientRect().height") > 0
    printed = opened.pdf(format="A4")
    assert printed.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) > 2


@pytest.mark.usefixtures("without_figures")
def test_a_scripted_stamp_stands_in_the_title(scripted: Results, page_of: Path) -> None:
    write_page(scripted, page_of)
    text = page_of.read_text("utf-8")
    assert f"<title>scripted-study: {EVIDENCE['scripted']}</title>" in text
    assert "the numbers come from a scripted stand-in, which follows a fixed rule" in text


def test_a_page_that_is_too_large_says_what_it_lacks(modelled: Results, written: Path, page_of: Path) -> None:
    whole = written.stat().st_size
    (said,) = write_page(modelled, page_of, most=whole - 1)
    assert said == "To keep this file small, there are no sample transcripts."
    assert page_of.stat().st_size < whole
    assert said in page_of.read_text("utf-8")
    assert 'id="transcripts"' not in page_of.read_text("utf-8")


def test_what_may_never_end_is_not_read(scripted: Results, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.html")
    with pytest.raises(SpecError, match=r"pipe\.html is not a file; give the name of a file"):
        write_page(scripted, tmp_path / "pipe.html")


@pytest.mark.usefixtures("without_figures")
def test_an_earlier_page_is_replaced_and_nothing_else_is(scripted: Results, tmp_path: Path) -> None:
    store = tmp_path / "new" / "a.sqlite"
    store.parent.mkdir()
    copy_store(scripted.url, f"sqlite:///{store}")
    for _ in range(2):
        done = _report(store)
        assert (done.exit_code, done.stdout.split(":")[0]) == (0, str(store.parent / "scripted-study-report.html"))
    kept = store.read_bytes()
    for target, said in ((store, "give another name"), (tmp_path, "is a folder"), (store / "a.html", "cannot write")):
        refused = _report(store, "--out", target)
        assert refused.exit_code == 2
        assert said in refused.stderr
        assert len(refused.stderr.strip().splitlines()) <= 3
    assert store.read_bytes() == kept
    assert {each.name for each in store.parent.iterdir()} <= {"a.sqlite", "scripted-study-report.html", "a.sqlite.lock"}


@pytest.mark.usefixtures("without_figures")
def test_there_is_no_page_of_an_empty_or_damaged_store(scripted: Results, tmp_path: Path, page_of: Path) -> None:
    missing = _report(tmp_path / "none.sqlite", "--out", page_of)
    store = tmp_path / "a.sqlite"
    copy_store(scripted.url, f"sqlite:///{store}")
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("UPDATE texts SET text = text || 'x'")
    damaged = _report(store, "--out", page_of)
    for each in (missing, damaged):
        assert each.exit_code == 2
        assert "Traceback" not in each.output
        assert each.stderr.count("error:") == 1
    assert not page_of.exists()
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".report")] == []
