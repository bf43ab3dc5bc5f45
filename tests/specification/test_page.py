"""The page of all fields is made from the schema."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from opinionsim.specification import json_schema


def test_the_page_is_what_the_schema_gives(checkout: Path) -> None:
    """Its examples are loaded by tests/test_docs.py, as those of all pages are."""
    # A process of its own: parts that other tests define are fields of this one's schema.
    made = f"import runpy; print(runpy.run_path({str(checkout / 'docs' / 'specification.py')!r})['page'](), end='')"
    done = subprocess.run([sys.executable, "-c", made], capture_output=True, text=True, encoding="utf-8", check=True)
    page = (checkout / "docs" / "specification.md").read_text(encoding="utf-8")
    assert page == done.stdout, "run python docs/specification.py"


def test_the_page_tells_every_field(checkout: Path) -> None:
    page = (checkout / "docs" / "specification.md").read_text(encoding="utf-8")
    schema = json_schema()
    inside = [field for each in schema["$defs"].values() for field in each.get("properties", {}) if field != "kind"]
    assert [
        field for field in [*schema["properties"], *inside] if f"`{field}`" not in page and f".{field}`" not in page
    ] == []
    assert page.count("```yaml") >= len(schema["properties"]) - 4
