"""Classic sweeps that are killed, and those of a cluster: equal to the byte."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from sqlalchemy import create_engine, text

import opinionsim as osim
from opinionsim.classic.sweeps import load_sweep, run_sweep
from opinionsim.foundation.streams import stream
from opinionsim.store import UnitRow
from tests.support.postgres import Server
from tests.support.running import changed
from tests.support.sweeps import DIAGRAM, rows, workers

pytestmark = pytest.mark.long

SPEC = changed(
    DIAGRAM,
    replicates=48,
    interaction__steps=200,
    sweep={"model.parameters.epsilon": "0.1:0.4:0.1", "population.size": [3000, 4000]},
)
TOTAL = 384


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[UnitRow], str]:
    """The runs of the sweep, carried out on one thread, and their frame as CSV."""
    url = str(tmp_path_factory.mktemp("whole") / "sweep.sqlite")
    summary = run_sweep(load_sweep(SPEC), url, threads=1)
    assert summary.complete
    return rows(url), summary.frame.to_csv()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_sweep_that_is_killed_goes_on(
    tmp_path: Path, number: signal.Signals, whole: tuple[list[UnitRow], str]
) -> None:
    file, store = tmp_path / "diagram.yaml", tmp_path / "sweep.sqlite"
    file.write_text(yaml.safe_dump(SPEC), encoding="utf-8")
    command = [sys.executable, "-m", "opinionsim", "abm", str(file), "--store", str(store), "--threads", "2"]
    drawn, found = stream(int(number), "moments"), [0]
    for _ in range(2):
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        # At a drawn moment after it has kept something more.
        wanted, until = found[-1] + int(drawn.integers(1, TOTAL // 4)), time.monotonic() + 120
        while running.poll() is None and _number(store) < wanted and time.monotonic() < until:
            time.sleep(0.005)
        running.send_signal(number)
        output = running.communicate(timeout=60)[0]
        assert running.returncode == (130 if number == signal.SIGTERM else -number), output
        found.append(_number(store))
    assert found == sorted(set(found)), "each time something was added and nothing lost"
    assert found[-1] < TOTAL
    summary = run_sweep(load_sweep(file), str(store))
    assert summary.complete
    assert summary.progress.already == found[-1]
    assert (rows(str(store)), summary.frame.to_csv()) == whole


def _number(store: Path) -> int:
    """Runs in a store that may not be there yet."""
    if not store.exists():
        return 0
    engine = create_engine(f"sqlite:///file:{store}?mode=ro&uri=true")
    try:
        with engine.connect() as connection:
            return int(connection.scalar(text("SELECT COUNT(*) FROM units")) or 0)
    except Exception:  # its tables are being made
        return 0
    finally:
        engine.dispose()


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """Address of the scheduler of two worker processes."""
    with workers(2, processes=True) as running:
        yield running.scheduler_address


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_the_workers_of_a_cluster_find_the_same(
    tmp_path: Path, cluster: str, whole: tuple[list[UnitRow], str], kind: str, request: pytest.FixtureRequest
) -> None:
    server: Server | None = request.getfixturevalue("postgres") if kind == "postgresql" else None
    url = str(tmp_path / "sweep.sqlite") if server is None else server.database(str(tmp_path))
    summary = run_sweep(load_sweep(SPEC), url, cluster=cluster)
    assert summary.complete
    assert (rows(url), summary.frame.to_csv()) == whole


def test_networks_and_opinions_travel_to_workers(tmp_path: Path, cluster: str) -> None:
    (tmp_path / "ties.txt").write_text("0 1\n1 2\n2 3\n", encoding="utf-8")
    network = {"kind": "file", "path": str(tmp_path / "ties.txt")}
    spec = {
        **SPEC,
        "replicates": 3,
        "population": {"initial_opinions": [0, 0.2, 0.4, 1]},
        "interaction": {"network": network, "steps": 5},
        "sweep": {"model.parameters.epsilon": [0.25, 0.9]},
    }
    sweep = load_sweep(spec)
    (tmp_path / "ties.txt").unlink()
    assert run_sweep(sweep, cluster=cluster).frame.to_csv() == run_sweep(sweep, threads=1).frame.to_csv()


def test_an_address_without_a_scheduler_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(osim.SpecError, match="no Dask scheduler answers"):
        run_sweep(load_sweep(SPEC), str(tmp_path / "x.sqlite"), cluster="tcp://127.0.0.1:1")
    assert list(tmp_path.iterdir()) == []
