"""The pages that show stores: results, their parts, figures and numbers, and single runs."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from sse_starlette import EventSourceResponse
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from opinionsim.errors import OpinionSimError, SpecError
from opinionsim.foundation.templates import templates
from opinionsim.planning import spell_seconds
from opinionsim.registry import places
from opinionsim.studio._open_studio import Studio
from opinionsim.studio._page_address import FACTOR, PageAddress
from opinionsim.studio._viewing import path_of
from opinionsim.watching import spelled

#: Seconds between two looks at whether a store, a file or a command has changed.
_LOOK_S = 1.0
#: So many looks without a change, after which there are fewer, and seconds between these.
_QUIET, _SELDOM_S = 20, 5.0
#: Parameters of addresses that are no filter of results.
_OWN = frozenset(("experiment", "design"))
#: Parts of a page of results.
_PARTS = ("tables", "runs", "sections", "figures", "beside")
#: Most characters of an address.
_LONGEST = 4_000
_PAGES = templates("opinionsim.studio")
_PAGES.filters["duration"] = spell_seconds
_PAGES.filters["amount"] = lambda number: f"{number:,.0f}" if number == int(number) else f"{number:,.4g}"


def page(template: str, status: int = 200, **values: Any) -> Response:
    """A page, or a part of one, from a template."""
    content = _PAGES.get_template(template).render(**values)
    return Response(content, status, media_type="text/html; charset=utf-8")


def asked_of(studio: Studio, request: Request) -> PageAddress:
    """What the address of a page asks for.

    Raises
    ------
    SpecError
        If there is no such store, or the address is too long.
    """
    if len(request.url.query) > _LONGEST:
        raise SpecError(f"The address has {len(request.url.query):,} characters; at most {_LONGEST:,} are allowed.")
    store = request.path_params["store"]
    links = {address: f"{request.base_url}enter/{key}" for address, key in studio.links.items()}
    return PageAddress(store, studio.url(store), dict(request.query_params), studio.may_write, links)


async def results(studio: Studio, request: Request) -> Response:
    """The results of an experiment: progress and outcome first, and everything else below."""
    asked = asked_of(studio, request)
    found = await run_in_threadpool(_progress, studio, asked)
    if "problem" in found:
        status = 404 if {"experiment", "design"} & asked.query.keys() else 200
        return page("results.html", status, title=asked.store, asked=asked, found=found, study="")
    axes = {f"{FACTOR}{axis['name']}": axis["levels"] for axis in found["axes"]}
    models = list(dict.fromkeys(run["model"] for run in found["runs"] if run.get("model")))
    axes |= {f"{FACTOR}model": models} if len(models) > 1 and f"{FACTOR}model" not in axes else {}
    choices = {**axes, "kind": found["kinds"], "instrument": found["instruments"], "design": found["designs"]}
    studies = studio.folder.studies() if studio.may_write else {}
    own = {name: path for name, path in studies.items() if studio.store_of(path) == asked.store}
    own_first = sorted(own, key=lambda name: own[name].stem != path_of(asked.store).stem)
    told: dict[str, Any] = {
        "command": f"{spelled(asked.url)}{_options(asked, found)}",
        "study": own_first[0] if own else "",
    }
    told |= {"listed": await run_in_threadpool(_experiments, studio, asked), "evidence": found["stamp"]}
    return page("results.html", title=found["name"], asked=asked, found=found, choices=choices, **told)


def _options(asked: PageAddress, found: Mapping[str, Any]) -> str:
    """Options of commands that show what a page shows."""
    told = {"experiment": asked.query.get("experiment") and found["name"], "design": asked.design}
    return "".join(f" --{name} {value}" for name, value in told.items() if value)


def _experiments(studio: Studio, asked: PageAddress) -> list[Mapping[str, Any]]:
    """All experiments of a store."""
    from opinionsim import watching

    viewer = studio.viewer(asked.store)
    return list(viewer.asked("experiments", lambda reader: watching.experiments(reader)["experiments"]))


def _progress(studio: Studio, asked: PageAddress) -> dict[str, Any]:
    return studio.progress(asked.store, asked.query.get("experiment") or None, asked.design)


async def progress(studio: Studio, request: Request) -> Response:
    """How far an experiment has come."""
    asked = asked_of(studio, request)
    found = await run_in_threadpool(_progress, studio, asked)
    return page("progress.html", found=found, asked=asked, job=studio.job(asked.url))


async def part(studio: Studio, request: Request) -> Response:
    """A part of a page of results, which it loads by itself."""
    asked, what = asked_of(studio, request), request.path_params["what"]
    if what in places("section"):
        return Response((await studio.ask("section", asked, name=what))["html"], media_type="text/html; charset=utf-8")
    if what not in _PARTS:
        raise HTTPException(404)
    given = {"name": asked.query["table"]} if what == "tables" and "table" in asked.query else {}
    # Sections show more than the store.
    told = await (studio.ask if what == "sections" else studio.read)(what, asked, **given)
    return Response(told if isinstance(told, str) else told["html"], media_type="text/html; charset=utf-8")


async def figure(studio: Studio, request: Request) -> Response:
    """A figure with its caption; the picture has an address of its own."""
    asked, name = asked_of(studio, request), request.path_params["name"]
    drawn = await studio.read("picture", asked, name=name)
    # The store may have more by the time at which the browser asks for the picture.
    same = studio.keep_picture(drawn["svg"])
    return page("figure.html", asked=asked, name=name, caption=drawn["caption"], width=_width(drawn["svg"]), same=same)


def _width(svg: str) -> int:
    """Pixels of the width of a figure, at which letters have one size in all figures."""
    found = re.search(r'width="([\d.]+)pt"', svg[:2000])
    return round(float(found[1]) * 96 / 72) if found else 800


async def picture(studio: Studio, request: Request) -> Response:
    """A figure as SVG."""
    kept = studio.pictures.get(request.query_params.get("same", ""))
    if kept is None:
        asked = asked_of(studio, request)
        kept = (await studio.read("picture", asked, name=request.path_params["name"]))["svg"]
    return Response(kept, media_type="image/svg+xml")


async def numbers(studio: Studio, request: Request) -> Response:
    """The numbers of a figure as a table."""
    told = await studio.read("numbers", asked_of(studio, request), name=request.path_params["name"])
    return Response(told["html"], media_type="text/html; charset=utf-8")


async def csv(studio: Studio, request: Request) -> Response:
    """The numbers of a figure, or of a table by its place on the page, as CSV."""
    asked, name = asked_of(studio, request), request.path_params["name"]
    if name.isdecimal():
        every = (await studio.read("tables", asked, name=asked.query.get("table", "")))["csv"]
        if int(name) >= len(every):
            raise HTTPException(404)
        text = every[int(name)]
    else:
        text = (await studio.read("numbers", asked, name=name))["csv"]
    kept = re.sub(r"[^\w.-]+", "-", name)
    return Response(text, media_type="text/csv", headers={"content-disposition": f'attachment; filename="{kept}.csv"'})


async def runs(studio: Studio, request: Request) -> Response:
    """The page that draws single runs."""
    asked = asked_of(studio, request)
    return page("runs_page.html", title="opinionsim", store=asked.store, own=asked.address())


async def section(studio: Studio, request: Request) -> Response:
    """A section that a slice brings, as a page of its own; what is sent there is the section's business."""
    asked, name = asked_of(studio, request), request.path_params["name"]
    if name not in places("section"):
        raise HTTPException(404)
    if request.method == "GET":
        html = (await studio.ask("section", asked, name=name))["html"]
        title = places("section")[name].value["heading"]
        return page("section.html", title=title, html=html, asked=asked, owner=request.state.owner)
    if not asked.may_write:
        raise HTTPException(403, "A viewer changes nothing.")
    told = await studio.ask("section", asked, name=name, given=request.state.given)
    if "command" in told:
        studio.jobs.start(path_of(asked.url), *told["command"])
    if "guest" in told:
        studio.invite(PageAddress(asked.store, asked.url, told["guest"]).address(f"section/{name}"))
    back = "results" if request.state.owner and "back" in request.state.given else f"section/{name}"
    return RedirectResponse(asked.address(back, **told.get("query", {})), 303)


async def changes(studio: Studio, request: Request) -> Response:
    """Tell a page whenever its store, its study or a command has changed."""
    query = request.query_params
    study = studio.folder.study(query["study"]) if query.get("study") else None
    return EventSourceResponse(
        _events(studio, study, studio.url(query["store"]) if query.get("store") else ""), ping=60
    )


async def _events(studio: Studio, study: Path | None, url: str) -> AsyncIterator[dict[str, str]]:
    before, quiet = None, 0
    while True:
        try:
            now = studio.mark(study, url)
        except (OSError, OpinionSimError):
            return  # the study is gone
        quiet = 0 if now != before else quiet + 1
        if before is not None and now != before:
            yield {"event": "change", "data": "text" if now[0] != before[0] else ""}
        before = now
        await asyncio.sleep(_LOOK_S if quiet < _QUIET else _SELDOM_S)
