"""What every test of batches has: a key that may be sent to the server on this machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.batch_runs import key


@pytest.fixture(autouse=True)
def _key() -> Iterator[None]:
    with key():
        yield
