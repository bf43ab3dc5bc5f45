"""The site: built without a warning, every link leads somewhere, nothing comes from elsewhere, code has its output."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from filelock import FileLock

# The build runs notebooks and pages, for a minute where nothing else runs.
pytestmark = [pytest.mark.whole, pytest.mark.timeout(1200)]

_TOP = Path(__file__).resolve().parents[1]
#: Pages whose code makes figures.
_DRAWING = ("docs/gallery.md", *(f"notebooks/{path.name}" for path in sorted(_TOP.glob("notebooks/*.py"))))
#: Attributes by which a page has the browser fetch something, and the elements in which they only name a place to go.
_FETCHED = {"src", "href", "srcset", "data", "poster", "action"}
_GOES = {"a", *(f"link rel={kind}" for kind in ("next", "prev", "index", "search", "author", "copyright"))}


class Page(HTMLParser):
    """What a page refers to, and the places in it that can be referred to.

    Parameters
    ----------
    path : Path
        The file.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        self.places |= {given[name] for name in ("id", "name") if given.get(name)}
        element = f"link rel={given.get('rel')}" if tag == "link" else tag
        for name in _FETCHED & given.keys():
            (self.links if element in _GOES else self.fetched).append(given[name])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """The built site; workers that share the tests of this module share it."""
    base = tmp_path_factory.getbasetemp()
    shared = (base if worker_id == "master" else base.parent) / "site"
    with FileLock(f"{shared}.lock"):
        if not (shared / "built").exists():
            done = subprocess.run(
                [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-c", "docs",
                 "-d", shared / "doctrees", ".", shared / "html"],
                cwd=_TOP, capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr[-5000:]
            (shared / "built").touch()
    return shared / "html"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    """All pages by file."""
    return {path: Page(path) for path in site.rglob("*.html")}


def test_every_page_of_the_repository_is_in_it(pages: dict[Path, Page], site: Path) -> None:
    written = [*_TOP.glob("*.md"), *(_TOP / "docs").rglob("*.md"), *(_TOP / "notebooks").glob("*.py")]
    assert [str(path) for path in written if site / path.relative_to(_TOP).with_suffix(".html") not in pages] == []


def test_every_link_leads_to_a_file_and_a_place_in_it(pages: dict[Path, Page], site: Path) -> None:
    broken = []
    for path, page in pages.items():
        for link in (*page.links, *page.fetched):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            found = target.is_relative_to(site.resolve()) and target.is_file()
            if found and parts.fragment and target.suffix == ".html":
                known = pages[site / target.relative_to(site.resolve())].places
                found = unquote(parts.fragment) in known | {"", "top"}
            if not found:
                broken.append(f"{path.relative_to(site)}: {link}")
    assert broken == []


def test_nothing_is_fetched_from_another_host(pages: dict[Path, Page], site: Path) -> None:
    away = [(path.name, each) for path, page in pages.items() for each in page.fetched if urlsplit(each).netloc]
    assert away == []
    styles = [path for path in site.rglob("*.css") if re.search(r"url\(\s*[\"']?(https?:)?//", path.read_text())]
    assert styles == []


def test_the_tutorial_shows_what_its_commands_print(site: Path) -> None:
    tutorial = (site / "docs" / "tutorial.html").read_text(encoding="utf-8")
    assert "15 of 15 complete runs are equal after replay" in tutorial
    assert tutorial.count("<img") >= 3
    tables = re.findall(r"\| Opinions by condition\n---.*?Instrument:", tutorial, re.DOTALL)
    assert tables[-1] == tables[-2], "the manifest makes the table again"


@pytest.mark.parametrize("page", _DRAWING)
def test_figures_stand_below_their_code(page: str, site: Path) -> None:
    """As many as the gallery saves, or as a notebook announces."""
    text = (_TOP / page).read_text(encoding="utf-8")
    announced = re.findall(r"^show\(.*\)$" if page.endswith(".py") else r"\w+\.png\"", text, re.MULTILINE)
    built = (site / page).with_suffix(".html").read_text(encoding="utf-8")
    assert announced
    assert len(re.findall(r"<img[^>]*_images/", built)) == len(announced)
