"""The pages of a studio on studies: the folder, a study with its text and what it means, and what is started there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, RedirectResponse, Response

from opinionsim.errors import SpecError
from opinionsim.foundation.data import origins
from opinionsim.foundation.documents import read_text
from opinionsim.studio._child import SupersededError
from opinionsim.studio._folder import ChangedError, older_copies, save, version_of
from opinionsim.studio._jobs import room_of, writer
from opinionsim.studio._open_studio import Studio
from opinionsim.studio._results_pages import page
from opinionsim.studio._setting import with_budget

#: The description or question of a specification, on its line or folded below it.
_DESCRIBED = re.compile(r"^(?:description|question)\s*:(?:\s*[>|][+-]?\n((?:[ \t]+.+\n?)+)|(.+)$)", re.MULTILINE)
#: A command in a README.
_COMMAND = re.compile(r"^opinionsim (.+?)(?: +#.*)?$", re.MULTILINE)
_LINK = re.compile(r"https?://\S+/enter/\S+")
#: What a budget limits.
LIMITS = ("calls", "tokens", "money")


def _study(studio: Studio, request: Request) -> Path:
    return studio.folder.study(request.path_params["study"])


def _to(studio: Studio, study: Path, start: str = "study") -> str:
    return f"/{start}/{quote(studio.folder.name(study))}"


async def home(studio: Studio, request: Request) -> Response:
    """The studies and stores of the folder, and what a new study can begin from; of a viewer, its stores."""
    await studio.warm()
    return await run_in_threadpool(_home, studio)


def _home(studio: Studio) -> Response:
    stores, studies = studio.stores(), {}
    if not studio.may_write and len(stores) == 1:
        return RedirectResponse(f"/results/{quote(next(iter(stores)))}", 303)
    for name, path in studio.folder.studies().items() if studio.may_write else ():
        store = studio.store_of(path)
        studies[name] = {"about": _about(path), "store": store, "found": studio.progress(store) if store else None}
    own = {each["store"] for each in studies.values()}
    others = {name: studio.progress(name) for name in stores if name not in own}
    known = {name: _about(path) for name, path in origins().items()} if studio.may_write else {}
    place = str(studio.folder.root) if studio.may_write else ""
    return page("home.html", title="Studies", studies=studies, others=others, origins=known, place=place)


def _about(path: Path) -> str:
    """The description or the question of a study or of a folder with one, if it has one."""
    files = sorted(path.glob("*.yaml"), reverse=True) if path.is_dir() else [path]
    found = (_DESCRIBED.search(read_text(file)) for file in files)
    return next((" ".join(f"{each[1] or each[2]}".split()).strip("\"'") for each in found if each), "")


async def new(studio: Studio, request: Request) -> Response:
    """Make the folder of a new study, and do what its README says comes before the forecast."""
    given, folder = request.state.given, studio.folder
    name = given.get("name", "").strip()
    if said := await studio.jobs.finished(folder.root, "new", f"--from={given.get('origin', '')}", "--", name):
        raise SpecError(said.removeprefix("error: "))
    made = folder.root / name
    for command in _COMMAND.findall(read_text(made / "README.md")):
        words = shlex.split(command)
        if words[0] == "plan":
            return RedirectResponse(_to(studio, made / words[1]), 303)
        if said := await studio.jobs.finished(made, *words):
            raise SpecError(said.removeprefix("error: "))
    raise SpecError(f"The README of {name} names no specification.")


def _edited(studio: Studio, request: Request) -> tuple[Path, Path]:
    """The study of a request, and the file of it that is edited."""
    path = _study(studio, request)
    name = request.state.given.get("file") or request.query_params.get("file") or path.name
    files = studio.folder.beside(path)
    if name not in files:
        raise SpecError(f"This study has no text {name!r:.80}.")
    return path, files[name]


async def study(studio: Studio, request: Request) -> Response:
    """A study: its text, what it means, what it costs, and what is going on."""
    await studio.warm()
    path, file = _edited(studio, request)
    here, copies = read_text(file), older_copies(file)
    older = request.query_params.get("older", "")
    if older and older not in copies:
        raise HTTPException(404)
    name = studio.folder.name(path)
    return page(
        "study.html", title=name, study=name, file=file.name, files=studio.folder.beside(path),
        text=read_text(copies[older]) if older else here, copies=list(copies), older=older, version=version_of(here),
    )  # fmt: skip


async def check(studio: Studio, request: Request) -> Response:
    """What a study means, as it is edited."""
    path, file = _edited(studio, request)
    given = request.state.given
    changed = given.get("version", "") != version_of(read_text(file))
    try:
        found = await studio.check(path, file, given.get("text", "").replace("\r\n", "\n"), subject="typed")
    except SupersededError:
        return Response(status_code=204)
    return JSONResponse({**found, "changed": changed})


async def save_text(studio: Studio, request: Request) -> Response:
    """Save a text of a study; if the file has changed since, both versions are shown and nothing is written."""
    path, file = _edited(studio, request)
    given, name = request.state.given, studio.folder.name(path)
    # Forms send line ends of another system.
    text = given.get("text", "").replace("\r\n", "\n")
    if "\r\n" in read_text(file):
        text = text.replace("\n", "\r\n")
    try:
        await run_in_threadpool(save, file, text, given.get("version", ""))
    except ChangedError as error:
        here = read_text(file)
        told = {"file": file.name, "text": text, "here": here, "version": version_of(here), "problem": str(error)}
        return page("conflict.html", 409, title=name, study=name, **told)
    return RedirectResponse(f"{_to(studio, path)}?file={quote(file.name)}", 303)


async def allow(studio: Studio, request: Request) -> Response:
    """Allow parts of the user's own to be imported for this study."""
    path = _study(studio, request)
    studio.allow(path, [name for name in request.state.given if ":" in name])
    return RedirectResponse(_to(studio, path), 303)


async def do(studio: Studio, request: Request) -> Response:
    """Start or stop something: runs, a pilot, a room, a frozen design, a report, an archive; or raise a budget."""
    path, given, act = _study(studio, request), request.state.given, request.path_params["act"]
    store = studio.folder.store_of(path)
    if act == "stop":
        studio.jobs.stop(store)
    elif act == "budget":
        text = read_text(path)
        for name in LIMITS:
            if given.get(name, "").strip():
                text = with_budget(text, name, given[name].strip().replace(",", ""))
        found = await studio.check(path, path, text)
        if "problem" in found:
            raise SpecError(found["problem"])
        save(path, text, given.get("version", ""))
    else:
        if (await studio.check(path, path, read_text(path))).get("own"):
            raise SpecError("This study uses parts of your own; allow them on its page first.")
        if act in ("run", "pilot", "room") and (number := writer(store)):
            raise SpecError(f"Process {number} is writing the store of this study already; pause it, or wait for it.")
        # No name of a file is taken for an option.
        made, here = store.with_name(store.stem), f"./{path.name}"
        words = {
            "run": ("run", here),
            "pilot": ("run", here, "--pilot"),
            "room": ("room", here, "--no-browser"),
            "freeze": ("freeze", here),
            "report": ("report", f"results/{store.name}", "--out", f"results/{made.name}-report.html"),
            "archive": ("export", f"results/{store.name}", f"results/{made.name}-archive.zip", "--archive"),
        }.get(act)
        if words is None:
            raise HTTPException(404)
        studio.jobs.start(store, *words)
    return RedirectResponse(f"{_to(studio, path)}#going", 303)


async def state(studio: Studio, request: Request) -> Response:
    """What is going on in a study: its last command, its runs, what they have cost, errors and texts."""
    return await run_in_threadpool(_state, studio, _study(studio, request))


def _state(studio: Studio, path: Path) -> Response:
    folder = studio.folder
    store = folder.store_of(path)
    job = studio.jobs.last(store)
    name = studio.store_of(path)
    found = studio.progress(name) if name else None
    said = job.said() if job is not None else ""
    link = _LINK.search(said)
    made = [each for end in ("report.html", "archive.zip") if (each := store.with_name(f"{store.stem}-{end}")).exists()]
    told: dict[str, Any] = {
        "job": job,
        "going": job is not None and job.code is None,
        "writer": writer(store),
        "pausing": studio.jobs.stops(store),
        "link": link[0] if link else "",
        "made": [folder.name(each) for each in made],
    }
    room = room_of(store)
    told |= {"room": folder.name(room) if room.exists() else ""}
    return page(
        "state.html", study=folder.name(path), found=found, store=name, version=version_of(read_text(path)),
        limits=LIMITS, **told,
    )  # fmt: skip


async def made(studio: Studio, request: Request) -> Response:
    """A file that a command wrote, to keep: pages of its own would run under the rights of the studio."""
    path = studio.folder.made(request.path_params["file"])
    return FileResponse(path, filename=path.name, media_type="application/octet-stream")
