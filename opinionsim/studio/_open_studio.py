"""A studio that is open: the folder or store that it shows, its children, its jobs, and who may see it."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from opinionsim.errors import OpinionSimError, SpecError
from opinionsim.foundation.streams import digest
from opinionsim.store import AbsentError, shown
from opinionsim.studio._child import Child
from opinionsim.studio._folder import Folder
from opinionsim.studio._jobs import Job, Jobs
from opinionsim.studio._page_address import PageAddress
from opinionsim.studio._shelf import keep, taken, usual_folder
from opinionsim.studio._viewing import Viewer, mark_of, path_of
from opinionsim.web import Keys

#: Processes that read stores, and stores that are kept open for the pages of runs.
_READERS, _VIEWERS = min(2, os.cpu_count() or 1), 4
#: Processes that check texts, of the studies that were looked at last.
_CHECKERS = 3
#: Answers of the processes that are kept.
_KEPT = 64
#: Seconds for which the text of a study may be checked.
_CHECK_S = 20.0


class Studio:
    """What a server shows.

    Parameters
    ----------
    folder : Folder or None
        The folder of a studio; None for a viewer, which changes nothing.
    stores : mapping of str to str
        Addresses of stores by name, for a viewer.

    Attributes
    ----------
        As given.
    keys : Keys
        Links and cookies: the owner's, and those of guests who may use one page.
    links : dict of str to str
        Keys of links that were made for guests, by the address of the page that they may use.
    pictures : dict of str to str
        Pictures that pages are about to ask for, by name.
    jobs : Jobs
        Commands that were started.
    """

    def __init__(self, folder: Folder | None, stores: Mapping[str, str]) -> None:
        self._folder, self._given = folder, dict(stores)
        self.keys, self.jobs = Keys(), Jobs(usual_folder() / "logs")
        self.links: dict[str, str] = {}
        #: Where the owner's link leads.
        self.first = "/"
        self._viewers: dict[str, Viewer] = {}
        self._checkers: dict[Path, Child] = {}
        place = Path() if folder is None else folder.root
        self._readers = [Child("opinionsim.studio._reading", place) for _ in range(_READERS)]
        # A page that is sent back and forth by hand does not wait for figures, and its acts come one after another.
        self._acting = Child("opinionsim.studio._reading", place)
        self._answers: dict[Any, Any] = {}
        self.pictures: dict[str, str] = {}

    @property
    def may_write(self) -> bool:
        """Whether it has a folder; a viewer has none, and changes nothing."""
        return self._folder is not None

    @property
    def folder(self) -> Folder:
        """The folder of a studio; raises a SpecError for a viewer."""
        if self._folder is None:
            raise SpecError("A viewer shows stores and no studies.")
        return self._folder

    def close(self) -> None:
        """End the children and close the stores; commands that were started go on."""
        for child in (*self._readers, self._acting, *self._checkers.values()):
            child.end()
        for viewer in self._viewers.values():
            viewer.close()

    # Stores

    def stores(self) -> dict[str, str]:
        """Addresses of all stores by name."""
        found = {} if self._folder is None else self._folder.stores()
        return {**self._given, **{name: f"sqlite:///{path}" for name, path in found.items()}}

    def url(self, name: str) -> str:
        """The address of a store.

        Raises
        ------
        AbsentError
            If there is no such store.
        """
        if (found := self.stores().get(name)) is None:
            raise AbsentError(f"There is no store {shown(name)!r:.80} here.")
        return found

    def viewer(self, name: str) -> Viewer:
        """A store that is open for the pages of its runs."""
        url = self.url(name)
        viewer = self._viewers.pop(url, None) or Viewer(url)
        self._viewers[url] = viewer
        for old in list(self._viewers)[:-_VIEWERS]:
            self._viewers.pop(old).close()
        return viewer

    def store_of(self, study: Path) -> str:
        """Name of the store of a study; empty if it does not exist, or lies outside the folder."""
        store = self.folder.store_of(study)
        return self.folder.name(store) if store.exists() and store.is_relative_to(self.folder.root) else ""

    # Children

    async def read(self, what: str, asked: PageAddress, **given: Any) -> Any:
        """What a process tells of a store; the same question to an unchanged store has the same answer."""
        key = json.dumps([what, asdict(asked), given]), str(mark_of(asked.url))
        if key not in self._answers:
            self._answers[key] = await self.ask(what, asked, **given)
            for old in list(self._answers)[:-_KEPT]:
                self._answers.pop(old, None)
        return self._answers[key]

    def keep_picture(self, svg: str) -> str:
        """Keep a picture for the page that is about to ask for it; return its name."""
        name = digest(svg)[:16]
        self.pictures[name] = svg
        for old in list(self.pictures)[:-_KEPT]:
            self.pictures.pop(old, None)
        return name

    async def ask(self, what: str, asked: PageAddress, **given: Any) -> Any:
        """What a process tells of a store now."""
        child = self._acting if what == "section" else min(self._readers, key=lambda each: each.waiting)
        return await child.ask(what, asked=asdict(asked), **given)

    async def warm(self) -> None:
        """Start the processes that read stores, before a page asks them."""
        await asyncio.gather(*(each.warm() for each in self._readers))

    async def check(self, study: Path, edit: Path, text: str, subject: str = "") -> dict[str, Any]:
        """What a study means as it is edited, as :func:`opinionsim.studio._study_check.check`."""
        child = self._checkers.pop(study, None) or Child("opinionsim.studio._study_check", study.parent, _CHECK_S)
        self._checkers[study] = child
        for old in list(self._checkers)[:-_CHECKERS]:
            self._checkers.pop(old).end()
        told = {"path": str(study), "edit": str(edit), "text": text, "allowed": self.allowed(study)}
        found: dict[str, Any] = await child.ask("check", subject, **told)
        return found

    # The user's own parts

    def allowed(self, study: Path) -> list[str]:
        """Parts of the user's own that a study may import in the studio."""
        return list(taken(usual_folder(), f"allowed-{digest(str(study.parent))}") or ())

    def allow(self, study: Path, names: Sequence[str]) -> None:
        """Allow parts for all studies of a folder, for good."""
        keep(usual_folder(), f"allowed-{digest(str(study.parent))}", sorted({*self.allowed(study), *names}))
        # What a process has imported stays imported.
        if study in self._checkers:
            self._checkers[study].end()

    # What is going on

    def invite(self, address: str) -> None:
        """Make a link that lets one browser use one page."""
        self.links[address] = self.keys.link(address)

    def job(self, url: str) -> Job | None:
        """The command on a store that was started last."""
        return self.jobs.last(path_of(url))

    def mark(self, study: Path | None, url: str) -> Any:
        """What differs once a study, its command or a store has changed."""
        texts = {} if study is None else self.folder.beside(study)
        if study is not None:
            url = f"sqlite:///{self.folder.store_of(study)}"
        job = self.job(url)
        said = None if job is None else (job.code, job.log.stat().st_size)
        return [each.stat().st_mtime_ns for each in texts.values()], said, mark_of(url)

    def progress(self, name: str, experiment: str | None = None, design: int | None = None) -> dict[str, Any]:
        """How far an experiment of a store has come, as :func:`opinionsim.watching.experiment`, or the `problem`."""
        from opinionsim import watching

        try:
            viewer = self.viewer(name)
            key = "experiment", experiment, design, str(mark_of(viewer.url))
            return dict(viewer.asked(key, lambda reader: watching.experiment(reader, experiment, design=design)))
        except OpinionSimError as error:
            return {"problem": str(error)}
