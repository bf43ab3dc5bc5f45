"""The sizes of the package: code lines by room, files by folder, lines by module and by class.

Code lines are those that are not blank, comment or docstring; a sentence below a field is a docstring.
``pytest tests/test_sizes.py -s`` prints the figures.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.test_architecture import PACKAGE, SLICES

#: Most code lines of the package and of a room, lines of a module and a class, and files of a folder.
PACKAGE_LINES, ROOM_LINES, MODULE_LINES, CLASS_LINES, FOLDER_FILES = 61_350, 3_300, 600, 350, 24
#: Folders of one file a kind, which may hold any number.
ONE_FILE_A_KIND = frozenset({"classic/models", "metrics", "schedules"})

_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.ENCODING,
}


def code_lines(text: str) -> int:
    """The lines of a module that hold code."""
    lines: set[int] = set()
    for token in tokenize.tokenize(io.BytesIO(text.encode()).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            # A text that stands alone in a class is the docstring of the field above it.
            for each in node.body if isinstance(node, ast.ClassDef) else node.body[:1]:
                value = each.value if isinstance(each, ast.Expr) else None
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    lines.difference_update(range(each.lineno, (each.end_lineno or each.lineno) + 1))
    return len(lines)


def _modules(checkout: Path) -> Iterator[tuple[str, str]]:
    """Path below the package and text of each module."""
    for path in sorted((checkout / PACKAGE).rglob("*.py")):
        yield path.relative_to(checkout / PACKAGE).as_posix(), path.read_text(encoding="utf-8")


def _place(module: str) -> str:
    """What the size of a module counts towards: its room, or its folder inside a slice, which is a whole tradition."""
    folder = module.rpartition("/")[0]
    return folder if folder.partition("/")[0] in SLICES else module.split("/")[0].removesuffix(".py")


def test_rooms_and_the_package_are_no_larger_than_agreed(checkout: Path) -> None:
    sizes = Counter[str]()
    for module, text in _modules(checkout):
        sizes[_place(module)] += code_lines(text)
    for room, lines in sizes.most_common():
        print(f"{lines:6d}  {room}")
    print(f"{sizes.total():6d}  in all")
    assert {room: lines for room, lines in sizes.items() if lines > ROOM_LINES} == {}
    assert sizes.total() <= PACKAGE_LINES


def test_folders_hold_no_more_files_than_one_can_survey(checkout: Path) -> None:
    files = Counter(module.rpartition("/")[0] for module, _ in _modules(checkout))
    assert {folder: n for folder, n in files.items() if n > FOLDER_FILES and folder not in ONE_FILE_A_KIND} == {}


def test_modules_and_classes_are_short(checkout: Path) -> None:
    long = {module: n for module, text in _modules(checkout) if (n := text.count("\n")) > MODULE_LINES}
    for module, text in _modules(checkout):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef) and (n := (node.end_lineno or 0) - node.lineno + 1) > CLASS_LINES:
                long[f"{module}: {node.name}"] = n
    assert long == {}
