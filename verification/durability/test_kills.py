"""The durability bar: 200 deaths of a worker over each kind of store, at drawn writes or after drawn calls."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from opinionsim.store import Results
from tests.conftest import postgres as postgres
from tests.support.postgres import Server
from verification.durability._killing import Kind, Supervisor, describe, study, supervisor, undisturbed


@pytest.fixture(scope="module")
def killer() -> Iterator[Supervisor]:
    with supervisor() as running:
        yield running


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return undisturbed(tmp_path_factory.mktemp("whole"))


def _two_hundred(
    killer: Supervisor, kind: Kind, folder: Path, whole: Results, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = study(killer, kind, folder, 200, whole)
    with capsys.disabled():
        print(f"\n{describe(kind, figures)}")
    assert figures.kills == 200


def test_two_hundred_kills_over_sqlite(
    killer: Supervisor, tmp_path: Path, whole: Results, capsys: pytest.CaptureFixture[str]
) -> None:
    kind = Kind("sqlite", 1, lambda name: str(tmp_path / f"{name}.sqlite"))
    _two_hundred(killer, kind, tmp_path, whole, capsys)


@pytest.mark.parametrize("workers", [1, 2])
def test_two_hundred_kills_over_postgresql(
    killer: Supervisor,
    tmp_path: Path,
    whole: Results,
    postgres: Server,
    capsys: pytest.CaptureFixture[str],
    workers: int,
) -> None:
    kind = Kind(f"postgresql-{workers}", workers, lambda name: postgres.database(f"{tmp_path}/{name}"))
    _two_hundred(killer, kind, tmp_path, whole, capsys)
