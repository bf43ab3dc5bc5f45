"""What a run of a structure is beyond its turns."""

from __future__ import annotations

from typing import Any

from opinionsim.registry import part
from opinionsim.store import Results


@part("record", name="structure")
def structure(found: Results) -> dict[str, Any]:
    """Its name."""
    ((declared),) = found.declared.values()
    return {"name": declared["fields"]["kind"]}
