"""The page of all fields is made from the schema."""

from __future__ import annotations

import runpy
from pathlib import Path

from opinionsim.specification import json_schema


def test_the_page_is_what_the_schema_gives(checkout: Path) -> None:
    """Its examples are loaded by tests/test_docs.py, as those of all pages are."""
    script = runpy.run_path(str(checkout / "docs" / "specification.py"))
    page = script["page"]()
    assert (checkout / "docs" / "specification.md").read_text(encoding="utf-8") == page, (
        "run python docs/specification.py"
    )


def test_the_page_tells_every_field(checkout: Path) -> None:
    page = (checkout / "docs" / "specification.md").read_text(encoding="utf-8")
    schema = json_schema()
    inside = [field for each in schema["$defs"].values() for field in each.get("properties", {}) if field != "kind"]
    assert [
        field for field in [*schema["properties"], *inside] if f"`{field}`" not in page and f".{field}`" not in page
    ] == []
    assert page.count("```yaml") >= len(schema["properties"]) - 4
