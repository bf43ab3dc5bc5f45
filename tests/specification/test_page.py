"""The page of all fields is made from the schema. Its examples are loaded by tests/test_docs.py."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

_MADE = """
import json, runpy
from opinionsim.specification import json_schema
print(json.dumps([runpy.run_path("docs/specification.py")["page"](), json_schema()]))
"""


def test_the_page_is_what_the_schema_gives_and_tells_every_field(checkout: Path) -> None:
    # A process of its own: parts that other tests define are fields of this one's schema.
    command = [sys.executable, "-c", _MADE]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True, cwd=checkout)
    made, schema = json.loads(done.stdout)
    page = (checkout / "docs" / "specification.md").read_text(encoding="utf-8")
    assert page == made, "run python docs/specification.py"
    inside = [field for each in schema["$defs"].values() for field in each.get("properties", {}) if field != "kind"]
    fields = [*schema["properties"], *inside]
    assert [field for field in fields if f"`{field}`" not in page and f".{field}`" not in page] == []
    assert page.count("```yaml") >= len(schema["properties"]) - 3
