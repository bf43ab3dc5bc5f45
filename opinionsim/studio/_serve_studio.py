"""Serve a studio or a viewer on this machine."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from opinionsim.errors import SpecError, packages
from opinionsim.web import PACKAGES, Served

if TYPE_CHECKING:
    from opinionsim.studio._open_studio import Studio

#: Port of viewer and studio where none is given.
PORT = 8710


def studio(
    folder: str | Path = ".", *, port: int | None = None, browser: bool = True, told: Callable[[str], None] = print
) -> None:
    """Open a folder of studies in a browser, until you stop it. Commands that were started from there go on.

    Parameters
    ----------
    folder : str or Path
        The folder; default the current one.
    port : int, optional
        Port; default :data:`PORT`, or a free one if that is in use.
    browser : bool
        Whether a browser is opened.
    told : callable
        Function that receives the link and messages.

    Raises
    ------
    SpecError
        If the extra ``web`` is missing, there is no such folder, or the port is in use.
    """
    packages("opinionsim studio", "web", *PACKAGES, kind=SpecError)
    from opinionsim.studio._folder import Folder
    from opinionsim.studio._open_studio import Studio

    root = Path(folder)
    if not root.is_dir():
        raise SpecError(f"{folder} is no folder; give the folder of your studies")
    if not os.access(root, os.W_OK):
        told(f"Nothing can be written to {folder}, so studies can be read here, but neither changed nor started.")
    _serve(Studio(Folder(root), {}), f"The studio of {folder} is", "", port, browser=browser, told=told)


def view(
    store: str,
    experiment: str | None = None,
    *,
    port: int | None = None,
    browser: bool = True,
    told: Callable[[str], None] = print,
) -> None:
    """Show the experiments of a store in a browser, until you stop it.

    Parameters
    ----------
    store : str
        Address of a store, which is only read; other processes may write to it meanwhile.
    experiment : str, optional
        Name or identity of the experiment that is shown first; default all of them.
    port : int, optional
        Port; default :data:`PORT`, or a free one if that is in use.
    browser : bool
        Whether a browser is opened.
    told : callable
        Function that receives the link and messages.

    Raises
    ------
    SpecError
        If the extra ``web`` is missing, or the port is in use.
    StoreError
        If the store cannot be read, or has no such experiment.
    """
    packages("opinionsim view", "web", *PACKAGES, kind=SpecError)
    from opinionsim.store import find_design, open_store
    from opinionsim.studio._open_studio import Studio
    from opinionsim.studio._page_address import PageAddress

    with open_store(store, write=False) as opened:
        url, place = opened.url, ""
        # The address of a database may go on with options.
        name = Path(url.partition("?")[0]).name
        if experiment is not None:
            found, _ = find_design(opened, experiment)
            place = PageAddress(name, url, {"experiment": found.experiment_id}).address()
    _serve(Studio(None, {name: url}), "The store is", place, port, browser=browser, told=told)


def _serve(
    shown: Studio, what: str, place: str, port: int | None, *, browser: bool, told: Callable[[str], None]
) -> None:
    """Serve pages, and tell the link to them."""
    from opinionsim.studio._studio_routes import application

    shown.first = place or "/"
    with contextlib.ExitStack() as closing:
        closing.callback(shown.close)
        try:
            served = Served(port=PORT if port is None else port)
        except SpecError:
            if port is not None:
                raise
            served = Served()
            told(f"Port {PORT} is in use, so the page uses another port.")
        closing.enter_context(contextlib.closing(served))
        link = f"{served.address}/enter/{shown.keys.link()}"
        told(f"{what} shown at {served.address}; open it with this link, which works once:\n  {link}")
        if not shown.may_write:
            told("Ctrl-C closes it. The viewer never changes the store.")
        else:
            told("Ctrl-C closes it. Runs that were started go on; open the studio again to see them.")
        served.run(application(shown, served.hosts), link if browser else None)
