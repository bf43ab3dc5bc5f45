"""What every test runs under: no network, no tracing, no display, a folder of its own."""

from __future__ import annotations

import gc
import ipaddress
import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from tests.support.postgres import Server


# Before any test module imports a library that reads them.
for _name in [name for name in os.environ if name.startswith(("LANGCHAIN_", "LANGSMITH_"))]:
    del os.environ[_name]
os.environ["MPLBACKEND"] = "Agg"

# The speed of the machine is never what a test is about.
settings.register_profile("local", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("local"), derandomize=True, database=None, max_examples=25)
settings.load_profile("ci" if os.environ.get("CI") else "local")
# What `make test` takes; `make verify` tries properties with all examples.
settings.register_profile("brief", settings(), max_examples=25)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two more than there are processors: half of the time a test waits, for a disk, a timer, a server or a browser."""
    return (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1) + 2


def pytest_collection_finish() -> None:
    """Have the collector of garbage leave alone what was imported, which outlives all tests, and come less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


class NetworkBlocked(RuntimeError):
    """A test tried to leave the machine. Not an OSError, which code under test might retry or swallow."""


def _is_loopback(host: str | bytes | None) -> bool:
    """Whether a host, as given to the socket module, is this machine."""
    name = host.decode() if isinstance(host, bytes) else host
    if name in (None, "", "localhost"):
        return True
    try:
        return ipaddress.ip_address(str(name).partition("%")[0]).is_loopback
    except ValueError:
        return False


def _guard(host: str | bytes | None) -> None:
    if not _is_loopback(host):
        raise NetworkBlocked(f"tests may talk to this machine only, not to {host!r}")


@pytest.fixture(autouse=True, scope="session")
def _loopback_only() -> Iterator[None]:
    """Refuse connections and name look-ups beyond loopback; Unix sockets pass."""
    connect, connect_ex, getaddrinfo = socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo

    def guarded_connect(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            _guard(address[0])
        connect(self, address)

    def guarded_connect_ex(self: socket.socket, address: Any) -> int:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            _guard(address[0])
        return connect_ex(self, address)

    def guarded_getaddrinfo(host: str | bytes | None, *args: Any, **kwargs: Any) -> Any:
        _guard(host)
        return getaddrinfo(host, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", guarded_connect)
        patch.setattr(socket.socket, "connect_ex", guarded_connect_ex)
        patch.setattr(socket, "getaddrinfo", guarded_getaddrinfo)
        yield


@pytest.fixture(autouse=True, scope="session")
def _interruptible() -> Iterator[None]:
    """Have interrupts do what they usually do, here and in processes that tests start: a shell's background job, for
    one, ignores them."""
    before = {
        signal.SIGINT: signal.signal(signal.SIGINT, signal.default_int_handler),
        signal.SIGTERM: signal.signal(signal.SIGTERM, signal.SIG_DFL),
    }
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each test in an empty folder, so that default output paths never reach the checkout."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def _closed_figures() -> Iterator[None]:
    """Leave no figure open for the next test."""
    yield
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")


@pytest.fixture
def without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have pages and archives written as of a study that no figure fits, which takes a third of the time or less."""
    monkeypatch.setattr("opinionsim.report._study.figures_of", lambda results: iter(()))


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Have PyTorch compute on one thread: tiny models lose time by more, and their sums are the same each time."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The top folder of the source tree."""
    return Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server of the tests' own, one a worker process."""
    from tests.support.postgres import server

    with server() as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Debian's Chromium; for one module, since Playwright keeps a loop running that other tests would find."""
    from tests.support.rooms import chromium

    with chromium() as found:
        yield found
