"""A study as one page, a file that opens without a server."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import yaml
from markupsafe import Markup

from opinionsim.analysis import Table
from opinionsim.foundation.outputs import begins, put, require_free
from opinionsim.messages import spelled_out
from opinionsim.registry import places
from opinionsim.report._fitting_figures import Drawn
from opinionsim.report._page_templates import TEMPLATES, WORDS
from opinionsim.report._study import Study, study
from opinionsim.store import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Most bytes of a page before something is left out, and what is, in this order.
MOST_BYTES = 5_000_000
_LEFT_OUT = ("sample transcripts", "largest changes of opinion", "figures")
#: How every page begins.
_MADE = b"<!doctype html>\n<!-- Made by opinionsim -->\n"
#: Bytes of a drawing in lines beyond which one in points is tried, which may be smaller.
_MOST_LINES = 100_000


def write_page(results: Results | Study, path: str | Path, most: int = MOST_BYTES, *, force: bool = False) -> list[str]:
    """Write everything about an experiment into one HTML file that opens without a server.

    Parameters
    ----------
    results : Results or Study
        The results, as for :func:`opinionsim.report.study`, or the study that it returned.
    path : str or Path
        The file, which is written completely or not written. It replaces an earlier page of that name.
    most : int
        Maximum size of the page in bytes; parts that do not fit are left out.
    force : bool
        Whether to also replace any other file of that name, except a store, which is never replaced.

    Returns
    -------
    list of str
        A sentence for each part that was left out because of its size.

    Raises
    ------
    SpecError
        If the file cannot be written, or exists but is not such a page.
    StoreError
        If the store cannot be read or is damaged.
    """
    left_out = list[str]()

    def page() -> str:
        told = results if isinstance(results, Study) else study(results)
        given = {
            "study": told,
            "sections": by_section(told.tables),
            "figures": [(each, _address(each), _width(each.figure)) for each in told.figures],
            "spec": yaml.safe_dump(told.results.spec, sort_keys=False, allow_unicode=True, width=100),
            "at": datetime.now(UTC),
        }
        template = TEMPLATES.overlay(finalize=_seen).get_template("report.html")
        text = template.render(**given, left_out=[], without=())
        while len(text.encode()) > most and len(left_out) < len(_LEFT_OUT):
            left_out.append(f"To keep this file small, there are no {_LEFT_OUT[len(left_out)]}.")
            text = template.render(**given, left_out=left_out, without=_LEFT_OUT[: len(left_out)])
        return text

    put_page(Path(path), page, force=force)
    return left_out


def by_section(tables: Iterable[Table]) -> dict[str, list[Table]]:
    """Tables of a study by the headings under which pages show them, in this order; some are empty."""
    own = {name: place.value["heading"] for name, place in places("report").items()}
    names = {**WORDS["sections"], **own, **WORDS["last_sections"]}
    found: dict[str, list[Table]] = {title: [] for title in names.values()}
    for each in tables:
        found[names.get(each.name.split("-")[0], names["opinions"])].append(each)
    return found


def put_page(path: Path, content: Callable[[], str], *, force: bool = False) -> None:
    """Write a page completely or not; it replaces an earlier page of that name, but no other file.

    Parameters
    ----------
    path : Path
        The file; a missing folder is created.
    content : callable
        Makes the page, which begins with a mark of this package; not called if another file is in the way.
    force : bool
        Whether to also replace any other file of that name, except a store, which is never replaced.

    Raises
    ------
    SpecError
        If the file cannot be written, or exists but is not such a page.
    """
    require_free(path, is_page, force=force)
    text = content()
    put(path, lambda part: part.write_text(text, encoding="utf-8"))


def is_page(path: Path) -> bool:
    """Whether a file is a page that :func:`put_page` wrote."""
    return begins(path, _MADE)


def _seen(value: Any) -> Any:
    """A value of a template with characters spelled out that cannot be seen; what is markup already stays."""
    return spelled_out(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _address(drawn: Drawn) -> str:
    """A figure as an address that holds it: as SVG, or as PNG where that is smaller and the SVG is large."""
    with TemporaryDirectory() as folder:
        kind, found = "svg+xml", drawn.save(Path(folder, "figure.svg"))
        if len(found) > _MOST_LINES and len(points := drawn.save(Path(folder, "figure.png"))) < len(found):
            kind, found = "png", points
    return f"data:image/{kind};base64,{b64encode(found).decode()}"


def _width(figure: Figure) -> int:
    """Pixels of a figure on a page, at which letters have one size in all figures."""
    return round(float(figure.get_figwidth()) * 96)
