"""Details that the page of a structure's run shows in addition to its turns."""

from __future__ import annotations

from typing import Any

from opinionsim.registry import part
from opinionsim.store import Results


@part("record", name="structure")
def structure(found: Results) -> dict[str, Any]:
    """Its name."""
    ((declared),) = found.declared.values()
    return {"name": declared["fields"]["kind"]}
