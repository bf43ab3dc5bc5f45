"""One word has one meaning: retired words do not return, and classes of two rooms have names of their own."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from opinionsim.cli import app

_TOP = Path(__file__).parents[1]
_PACKAGE = _TOP / "opinionsim"
#: Retired names of columns and fields, and what they became.
_RETIRED = {"condition": "status", "first_condition": "first_status", "verdict": "acceptance"}
#: Retired phrases of pages and help; docs/style.md shows what to write.
_PHRASES = re.compile(
    r"\b(what of|is told|told of|nobody is asked|is asked nothing|no evidence of|save that|for it is|whoever|"
    r"none of which|likewise)\b",
    re.IGNORECASE,
)


def _classes() -> dict[str, set[str]]:
    rooms = defaultdict(set)
    for path in _PACKAGE.glob("**/*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                rooms[node.name].add(path.relative_to(_PACKAGE).parts[0])
    return rooms


def test_a_class_has_a_name_that_no_other_room_uses() -> None:
    assert {name: rooms for name, rooms in _classes().items() if len(rooms) > 1} == {}


def test_columns_have_no_retired_name() -> None:
    frames = tomllib.loads((_PACKAGE / "store" / "columns.toml").read_text(encoding="utf-8"))
    schema = (_PACKAGE / "store" / "_schema.py").read_text(encoding="utf-8")
    assert [(frame, name) for frame, columns in frames.items() for name in columns if name in _RETIRED] == []
    assert [name for name in _RETIRED if re.search(rf"\b{name}\b", schema)] == []


def test_fields_have_no_retired_name() -> None:
    found = [
        f"{path.name}: {node.name}.{each.target.id}"
        for room in ("llm", "store", "messages.py", "measurement", "engine", "watching", "memory")
        for path in ([_PACKAGE / room] if room.endswith(".py") else (_PACKAGE / room).glob("**/*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
        for each in node.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name) and each.target.id in _RETIRED
    ]
    assert found == []


def _helps(command: Any, path: str) -> Iterator[tuple[str, str]]:
    """The help of a command, of its options and of the commands in it."""
    for text in (command.help, *(getattr(parameter, "help", None) for parameter in command.params)):
        yield path, text or ""
    if isinstance(command, TyperGroup):
        context = command.make_context("opinionsim", [], resilient_parsing=True)
        for name in command.list_commands(context):
            yield from _helps(command.resolve_command(context, [name])[1], f"{path} {name}")


def test_pages_and_help_have_no_retired_phrase() -> None:
    pages = [
        page for page in (*_TOP.glob("*.md"), *_TOP.glob("docs/*.md")) if page.name not in ("style.md", "CHANGELOG.md")
    ]
    texts = [(page.name, re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)) for page in pages]
    texts += _helps(typer.main.get_command(app), "opinionsim")
    assert len(texts) > 100
    assert [(place, found[0]) for place, text in texts for found in _PHRASES.finditer(text)] == []


def test_runs_are_leased() -> None:
    from opinionsim.store import Store

    assert [name for name in vars(Store) if "claim" in name] == []


def _entries(page: str) -> list[str]:
    return re.findall(r"^\| ([a-z ]+) \|", (_TOP / "docs" / page).read_text(encoding="utf-8"), re.M)


def test_words_are_few_and_listed_once_in_order() -> None:
    words = _entries("words.md")
    assert len(words) <= 90
    assert words == sorted(set(words))


def test_the_glossary_explains_words_of_the_list() -> None:
    explained = _entries("glossary.md")
    assert 0 < len(explained) == len(set(explained)) <= 60
    assert set(explained) <= set(_entries("words.md"))
