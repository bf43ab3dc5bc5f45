"""Survey in use: none, unless a test names one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import opinionsim.deliberation as deliberation


@pytest.fixture(autouse=True)
def _no_survey() -> Iterator[None]:
    """Forget the survey that another test names."""
    yield
    deliberation.use_survey(None)
