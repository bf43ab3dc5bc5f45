"""A plugin of pytest that keeps the first case of each test among those that are selected."""

from __future__ import annotations

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out all cases but the first, once those of other marks are gone."""
    seen: set[str] = set()
    first: list[pytest.Item] = []
    others: list[pytest.Item] = []
    for item in items:
        test = item.nodeid.partition("[")[0]
        (others if test in seen else first).append(item)
        seen.add(test)
    items[:] = first
    config.hook.pytest_deselected(items=others)
