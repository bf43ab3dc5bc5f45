"""The order of the architecture: what may import what.

Runtime imports count, wherever in a module they stand; imports under ``if TYPE_CHECKING:`` do not, for
they bind nothing when the package runs. Modules loaded by name through importlib are not seen.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = "opinionsim"

#: Rooms of the package from the bottom up. A room imports from lower layers, and from its own without a cycle.
LAYERS: tuple[frozenset[str], ...] = tuple(
    frozenset(layer.split())
    for layer in (
        "background compilation data documents errors memory messages metrics networks opinions personas prompts "
        "streams surveys topics",
        "llm",
        "classifiers schedules",
        "measurement",
        "actors engine simulation",
        "classic consensus deliberation model",
        "store",
        "experiments",
        "comparison plots",
        "__main__ cli web",
        "testing",
    )
)
LEVEL = {room: level for level, layer in enumerate(LAYERS) for room in layer}


def _is_type_checking(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else test.id if isinstance(test, ast.Name) else ""
    return name == "TYPE_CHECKING"


def _runtime_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes below `node` that exist at run time."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and _is_type_checking(child.test):
            for other in child.orelse:
                yield other
                yield from _runtime_nodes(other)
        else:
            yield child
            yield from _runtime_nodes(child)


def _imported(tree: ast.Module, package: list[str]) -> Iterator[str]:
    """Dotted names a module imports at run time; `package` is where its relative imports start."""
    for node in _runtime_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _rooms_of(path: Path, root: Path) -> tuple[str, list[str]]:
    """The room a file belongs to, and the rooms or root names it imports from its own package."""
    relative = path.relative_to(root)
    package = [PACKAGE, *relative.parent.parts]
    names = _imported(ast.parse(path.read_text(encoding="utf-8")), package)
    targets = [name.split(".")[1] for name in names if name.startswith(f"{PACKAGE}.")]
    return relative.parts[0].removesuffix(".py"), targets


def _cycle(edges: dict[str, set[str]]) -> str | None:
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        return " -> ".join(error.args[1])
    return None


def violations(root: Path) -> list[str]:
    """Everything in the package at `root` that breaks the order, in words."""
    found = []
    edges: dict[str, set[str]] = {}
    for path in sorted(root.rglob("*.py")):
        relative = path.relative_to(root)
        if len(relative.parts) > 1 and not path.name.startswith("_"):
            found.append(f"{relative}: a module inside a package is named with an underscore")
        room, targets = _rooms_of(path, root)
        if room == "__init__":
            found += [f"{relative}: the package root imports {target} at run time" for target in targets]
            continue
        if room not in LEVEL:
            found.append(f"{relative}: {room} has no place in the order")
            continue
        for target in targets:
            if target == room or target.startswith("__"):
                continue
            if target not in LEVEL:
                found.append(f"{relative}: imports {target}, which is no room; name the module it lives in")
            elif LEVEL[target] > LEVEL[room]:
                found.append(f"{relative}: {room} imports {target}, which stands above it")
            else:
                edges.setdefault(room, set()).add(target)
    cycle = _cycle(edges)
    return [*found, f"cycle: {cycle}"] if cycle else found


def test_dependencies_point_one_way(checkout: Path) -> None:
    assert violations(checkout / PACKAGE) == []


def test_package_is_there_to_be_checked(checkout: Path) -> None:
    rooms = {_rooms_of(path, checkout / PACKAGE)[0] for path in (checkout / PACKAGE).rglob("*.py")}
    assert {"errors", "llm", "schedules", "store", "experiments", "cli"} <= rooms


def _tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in {"__init__.py": "", **files}.items():
        path = root / PACKAGE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root / PACKAGE


UPWARD = "llm imports experiments, which stands above it"


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        ({"llm/__init__.py": "from opinionsim.experiments import plan"}, UPWARD),
        ({"llm/__init__.py": "from opinionsim import experiments"}, UPWARD),
        ({"llm/__init__.py": "import opinionsim.experiments._plan as p"}, UPWARD),
        ({"llm/_caller.py": "from ..experiments import plan"}, UPWARD),
        ({"llm/_caller.py": "from .. import experiments"}, UPWARD),
        ({"llm/_caller.py": "def f():\n    from opinionsim.experiments import plan"}, UPWARD),
        ({"cli/__init__.py": "from opinionsim.testing import suite"}, "cli imports testing, which stands above it"),
        ({"topics.py": "import opinionsim.data", "data.py": "import opinionsim.topics"}, "cycle: "),
        ({"llm/__init__.py": "from opinionsim import run"}, "imports run, which is no room"),
        ({"llm/caller.py": ""}, "is named with an underscore"),
        ({"helpers.py": ""}, "helpers has no place in the order"),
        ({"__init__.py": "from opinionsim.errors import SpecError"}, "the package root imports errors"),
        (
            {"errors.py": "if TYPE_CHECKING:\n    import os\nelse:\n    import opinionsim.llm"},
            "errors imports llm, which stands above it",
        ),
    ],
)
def test_a_breach_is_named(tmp_path: Path, files: dict[str, str], complaint: str) -> None:
    (found,) = violations(_tree(tmp_path, files))
    assert complaint in found


@pytest.mark.parametrize(
    "files",
    [
        {"experiments/__init__.py": "from opinionsim.llm import load_chat_model"},
        {"experiments/_plan.py": "from opinionsim import __version__\nfrom opinionsim.experiments._spec import Spec"},
        {"topics.py": "from opinionsim.errors import SpecError", "errors.py": "import os"},
        {"llm/__init__.py": "if TYPE_CHECKING:\n    from opinionsim.experiments import plan"},
        {"llm/__init__.py": "if typing.TYPE_CHECKING:\n    import opinionsim.experiments"},
        {"llm/_caller.py": "from ._journal import Journal\nfrom . import _limits"},
    ],
)
def test_what_the_order_allows_passes(tmp_path: Path, files: dict[str, str]) -> None:
    assert violations(_tree(tmp_path, files)) == []


def test_every_room_has_one_place() -> None:
    for lower, upper in itertools.combinations(LAYERS, 2):
        assert not lower & upper
