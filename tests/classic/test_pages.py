"""The pages of classic models: what they show runs as it stands."""

import pytest

from tests.test_docs import MODEL_PAGES, run_marked

pytestmark = pytest.mark.long


@pytest.mark.parametrize("page", sorted(MODEL_PAGES))
def test_marked_blocks_run(page: str) -> None:
    run_marked(page)
