"""The tables of columns in docs/frames.md: run ``python docs/frames.py`` to renew them."""

from __future__ import annotations

import re
from pathlib import Path

from opinionsim.store import documented_columns

PAGE = Path(__file__).with_name("frames.md")
_TABLE = re.compile(r"(^## `(?P<frame>\w+)`\n(?:(?!^## ).*\n)*?)\| Column \|.*\n(?:\|.*\n)*", re.MULTILINE)


def columns_table(frame: str) -> str:
    """The table of the columns of a frame in Markdown."""
    lines = ["| Column | Type | Unit | Meaning |", "|---|---|---|---|"]
    for name, told in documented_columns()[frame].items():
        lines.append(f"| `{name}` | {told['type']} | {told.get('unit', '')} | {told['meaning']} |")
    return "\n".join(lines) + "\n"


def renewed(page: str) -> str:
    """A page with its tables as the package has them."""
    known = documented_columns()
    return _TABLE.sub(
        lambda found: found[1] + columns_table(found["frame"]) if found["frame"] in known else found[0], page
    )


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
