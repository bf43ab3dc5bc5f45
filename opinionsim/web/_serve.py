"""Serve pages on this machine: a room, while its experiment runs."""

from __future__ import annotations

import contextlib
import socket
import webbrowser
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opinionsim.errors import SpecError, packages
from opinionsim.web._desk import Desk

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from opinionsim.running import Summary
    from opinionsim.specification import Experiment

#: Packages of the extra ``web``.
PACKAGES = ("uvicorn", "starlette", "sse_starlette")
#: Names of this machine that no other machine can use.
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


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


def _require_certificate(certificate: Path, key: Path | None) -> None:
    """Refuse files that are no certificate and its key, before anybody is told that pages are open.

    Raises
    ------
    SpecError
        If one of them cannot be read, or they do not belong together.
    """
    import ssl

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except OSError as error:
        files = f"{certificate}" if key is None else f"{certificate} with the key {key}"
        problem = f"the certificate {files} cannot be used: {error.strerror or error}"
        raise SpecError(f"{problem}; give files in PEM form that belong together") from None


class Served:
    """A socket that listens, and the addresses under which it is reached.

    Parameters
    ----------
    host : str
        Name or address of this machine.
    port : int
        Port; 0 chooses a free one.
    scheme : str
        ``http`` or ``https``.

    Attributes
    ----------
    hosts : frozenset of str
        Names, with ports, under which it is reached.
    address : str
        Scheme, host and port.
    """

    def __init__(self, host: str = LOOPBACK[0], port: int = 0, scheme: str = "http") -> None:
        self._socket = _bound(host.strip("[]"), port)
        number = self._socket.getsockname()[1]
        names = LOOPBACK if host in LOOPBACK else (host,)
        ports = (f":{number}", *([""] if number in (80, 443) else []))
        self.hosts = frozenset(name + port for name in names for port in ports)
        self.address = f"{scheme}://{host}:{number}"

    def close(self) -> None:
        """Stop listening."""
        self._socket.close()

    def run(self, app: Any, link: str | None, **options: Any) -> None:
        """Serve an application until Ctrl-C closes it; open `link` in a browser."""
        import uvicorn

        from opinionsim.web._connection import PromptConnection

        quiet: dict[str, Any] = {"log_config": None, "access_log": False, "server_header": False}
        config = uvicorn.Config(app, http=PromptConnection, timeout_graceful_shutdown=2, **quiet, **options)
        if link is not None:
            webbrowser.open(link)
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[self._socket])


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
    """Open the room of an experiment in a browser, and run it as people take its seats, until you stop it.

    Parameters
    ----------
    experiment : Experiment
        An experiment; its runs without seats start immediately.
    store : str
        Address of its store, which is kept open.
    port : int
        Port; 0 chooses a free one.
    host : str
        Name or address under which pages are served; any address except loopback needs a certificate.
    certificate, key : Path, optional
        Files of a certificate and its key, for TLS.
    browser : bool
        Whether a browser is opened.
    told : callable
        Function that receives the owner's link and messages.

    Raises
    ------
    SpecError
        If the extra ``web`` is missing, the port is in use, another host is named without a certificate, or the
        certificate cannot be used.
    StoreError
        If the store cannot be opened, or another process writes it.
    """
    packages("opinionsim room", "web", *PACKAGES, kind=SpecError)
    from opinionsim.foundation import background
    from opinionsim.running import Invocation, under_way
    from opinionsim.specification import consent_of, require_protocol
    from opinionsim.store import open_store
    from opinionsim.web._open_room import Room
    from opinionsim.web._routes import application

    if host not in LOOPBACK and (certificate is None or key is None):
        raise SpecError(f"--host {host} is open to other machines, so give a certificate and its key for TLS")
    if certificate is not None:
        _require_certificate(certificate, key)
    require_protocol(experiment)
    # Before there is a store: a consent that cannot be used leaves none behind.
    consent_of(experiment)
    scheme = "http" if certificate is None else "https"
    with ExitStack() as closing:
        served = closing.enter_context(contextlib.closing(Served(host, port, scheme)))
        desk = Desk()
        invocation = Invocation(experiment, store, people=desk, ready=desk.ready)
        runner, future = closing.enter_context(under_way(invocation))
        reader = closing.enter_context(open_store(store, write=False))
        room = Room(experiment, runner.store, reader, desk, runner.withdraw)

        def ended(future: Future[Summary]) -> None:
            if not future.cancelled() and (error := future.exception()) is not None:
                room.error = str(error)

        future.add_done_callback(ended)
        app = application(room, served.hosts, scheme)
        link = f"{served.address}/enter/{room.keys.link()}"
        told(f"The room is open at {served.address}; sign in with this link, which works once:\n  {link}")
        told("Ctrl-C closes the room. Repeat the command to open it again; every session continues where it was.")
        try:
            served.run(app, link if browser else None, ssl_certfile=certificate, ssl_keyfile=key)
        finally:
            background.call_soon(runner.stop)
