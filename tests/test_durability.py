from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from opinionsim.store import Results
from tests.support.durability import Kind, Supervisor, study, supervisor, undisturbed
from tests.support.postgres import Server

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def killer() -> Iterator[Supervisor]:
    with supervisor() as running:
        yield running


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return undisturbed(tmp_path_factory.mktemp("whole"))


def _is_kept_to(killer: Supervisor, kind: Kind, folder: Path, whole: Results) -> None:
    figures = study(killer, kind, folder, 10, whole)
    assert figures.kills == 10
    # The kills met the sweep at work.
    assert figures.in_flight > 0


def test_a_killed_sweep_pays_for_nothing_twice_and_ends_as_if_undisturbed(
    killer: Supervisor, tmp_path: Path, whole: Results
) -> None:
    _is_kept_to(killer, Kind("sqlite", 1, lambda name: str(tmp_path / f"{name}.sqlite")), tmp_path, whole)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_worker_of_a_shared_store_pays_for_nothing_twice_and_has_heirs(
    killer: Supervisor, tmp_path: Path, whole: Results, postgres: Server, workers: int
) -> None:
    kind = Kind(f"postgresql-{workers}", workers, lambda name: postgres.database(f"{tmp_path}/{name}"))
    _is_kept_to(killer, kind, tmp_path, whole)
