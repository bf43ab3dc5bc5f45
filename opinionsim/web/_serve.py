"""Serving a room: the experiment on the package's loop, the pages on the server's."""

from __future__ import annotations

import socket
import webbrowser
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from opinionsim.errors import SpecError, packages
from opinionsim.web._desk import Desk

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from opinionsim.running import Summary
    from opinionsim.specification import Experiment

#: Names of this machine that no other machine can use.
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


def _bound(host: str, port: int) -> socket.socket:
    """A socket that listens.

    Raises
    ------
    SpecError
        If the port is in use, or the host is no name of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(128)  # a browser may come before the pages are ready
    except OSError as error:
        listening.close()
        raise SpecError(
            f"--port {port} of {host} cannot be used: {error.strerror or error}; give another port, or none to have "
            "a free one chosen"
        ) from None
    return listening


def serve(
    experiment: Experiment,
    store: str,
    *,
    port: int = 0,
    host: str = "127.0.0.1",
    certificate: Path | None = None,
    key: Path | None = None,
    browser: bool = True,
    told: Callable[[str], None] = print,
) -> None:
    """Open the room of an experiment in a browser, and carry it out as people take its seats, until it is stopped.

    Parameters
    ----------
    experiment : Experiment
        An experiment; those of its runs without a seat are carried out at once.
    store : str
        Address of its store, which is kept open.
    port : int
        Port; 0 takes a free one.
    host : str
        Name or address under which pages are served; any other than this machine's loopback needs a certificate.
    certificate, key : Path, optional
        Files of a certificate and its key, for TLS.
    browser : bool
        Whether a browser is opened.
    told : callable
        Is told the owner's link, and what happens.

    Raises
    ------
    SpecError
        If the extra ``web`` is missing, the port is in use, or another host is named without a certificate.
    StoreError
        If the store cannot be opened, or another process writes it.
    """
    uvicorn, *_ = packages("opinionsim room", "web", "uvicorn", "starlette", "sse_starlette", kind=SpecError)
    from opinionsim import background
    from opinionsim.running import under_way
    from opinionsim.specification import require_protocol
    from opinionsim.store import open_store
    from opinionsim.web._app import application
    from opinionsim.web._room import Room

    if host not in _LOOPBACK and (certificate is None or key is None):
        raise SpecError(f"--host {host} is open to other machines, which needs --certificate and --key for TLS")
    require_protocol(experiment)
    listening = _bound(host.strip("[]"), port)
    with ExitStack() as closing:
        closing.callback(listening.close)
        desk = Desk()
        runner, future = closing.enter_context(under_way(experiment, store, people=desk, ready=desk.ready))
        reader = closing.enter_context(open_store(store, write=False))
        room = Room(experiment, runner.store, reader, desk, runner.withdraw)
        number = listening.getsockname()[1]
        names = _LOOPBACK if host in _LOOPBACK else (host,)
        ports = (f":{number}", *([""] if number in (80, 443) else []))
        hosts = frozenset(name + port for name in names for port in ports)
        scheme = "http" if certificate is None else "https"
        address = f"{scheme}://{host}:{number}"

        def ended(future: Future[Summary]) -> None:
            if not future.cancelled() and (error := future.exception()) is not None:
                room.error = str(error)

        future.add_done_callback(ended)
        app = application(room, hosts, scheme)
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            ssl_certfile=certificate,
            ssl_keyfile=key,
            timeout_graceful_shutdown=2,
        )
        link = f"{address}/enter/{room.keys.link()}"
        told(f"The room is open at {address}; sign in with this link, which works once:\n  {link}")
        told("Ctrl-C closes it; the same command opens it again, and every session goes on from where it was.")
        if browser:
            webbrowser.open(link)
        try:
            uvicorn.Server(config).run(sockets=[listening])
        finally:
            background.call_soon(runner.stop)
