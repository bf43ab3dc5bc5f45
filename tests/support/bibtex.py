"""A strict reader of BibTeX: what it refuses, some program that reads BibTeX stumbles over."""

from __future__ import annotations

import re

_KEY = re.compile(r"@(\w+)\{([A-Za-z0-9._:-]+),\n")
_FIELD = re.compile(r"  ([a-z]+) = \{")


def entries_of(text: str) -> list[tuple[str, str, dict[str, str]]]:
    """Kind, key and fields of all entries; raises ValueError for what is empty, open or there twice."""
    found: list[tuple[str, str, dict[str, str]]] = []
    end = 0
    while begun := re.compile(r"^@", re.MULTILINE).search(text, end):
        head = _KEY.match(text, begun.start())
        if "@" in text[end : begun.start()] or head is None:
            raise ValueError(f"no entry begins at {text[begun.start() : begun.start() + 60]!r}")
        fields, end = {}, head.end()
        while field := _FIELD.match(text, end):
            value, end = _braced(text, field.end())
            if field[1] in fields or not value.strip():
                raise ValueError(f"{head[2]}: {field[1]} is empty or there twice")
            fields[field[1]] = value
            end += len(re.compile(r",?\n").match(text, end)[0])  # type: ignore[index]
        if text[end : end + 1] != "}" or head[2] in {key for _, key, _ in found}:
            raise ValueError(f"{head[2]} does not end, or is there twice: {text[end : end + 40]!r}")
        found.append((head[1], head[2], fields))
        end += 1
    return found


def _braced(text: str, start: int) -> tuple[str, int]:
    """The value that begins behind a brace, and the place behind its end."""
    depth, place = 1, start
    while depth:
        # Those behind a backslash count, too.
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        place += 1
    return text[start : place - 1], place
