"""The order of the architecture: what may import what, and what a room keeps to itself.

Rooms of the core stand in an order. Slices stand above all of them, each by itself: none is imported by the core, or by
another slice that does not say that it needs it. For the order, runtime imports count, wherever in a module they stand;
imports under ``if TYPE_CHECKING:`` do not, for they bind nothing when the package runs. For private names all imports
count. Modules loaded by name through importlib are not seen.
"""

from __future__ import annotations

import ast
import collections
import itertools
import tomllib
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = "opinionsim"


def _layers(*lines: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(line.split()) for line in lines)


#: Traditions and capabilities that are whole in their folders, so that a folder can be deleted.
SLICES = frozenset({"classic", "dialogue", "consensus", "deliberation", "comparison", "audit", "local"})

#: Rooms of the core from the bottom up; a folder in a room that has a place of its own is named with a dot. A room
#: imports from lower layers, and from its own without a cycle.
LAYERS = _layers(
    "errors",
    "foundation",
    "registry",
    "messages opinions personas topics",
    "metrics networks surveys",
    "prompts",
    "conduct",
    "llm",
    "memory",
    "classifiers measurement",
    "schedules",
    "engine model",
    "store",
    "lanes",
    "assembly planning running specification",
    "drawing",
    "analysis plots report watching",
    "web cli studio study",
    "testing",
    "__main__",
)
LEVEL = {room: level for level, layer in enumerate(LAYERS) for room in layer}
#: The module of a slice that has its contract suite.
CONTRACT = "_contract.py"

#: The same inside rooms whose modules have an order of their own.
INSIDE = {
    "foundation": _layers(
        "addresses background bibliography folding lazy outputs spreadsheets sqlite_logs streams templates",
        "compilation data documents forms progress provenance redaction tables",
        "frozen",
    ),
    # Its declaration, how models are stepped, the models, what runs them, the grid, the grid in a store, its figures,
    # and the command.
    "classic": _layers(
        "_transition",
        "_declaration",
        "kernels",
        "models",
        "_registry",
        "_initial _lorenz_agents _simulated _step",
        "_simulate",
        "_actors _mesa",
        "_equation_agents points",
        "sweeps",
        "figures",
        "command",
        "_map_section _scan",
    ),
}

#: Public modules inside rooms: what those who write models or tests need, apart from what everybody needs.
PUBLIC_MODULES = frozenset(
    {"llm/phrases.py", *(f"foundation/{each}.py" for layer in INSIDE["foundation"] for each in layer)}
)

#: Where code that uses the package stands, beside the package itself.
USERS = ("benchmarks", "docs", "notebooks", "tests", "verification")

#: Private modules that files outside their room import, and why no public name serves.
EXCUSED = {
    ("tests/report/test_archive.py", "report._describing"): "texts of authors in BibTeX, without an archive for each",
    ("tests/report/test_study.py", "report._study_words"): "the design of runs whose process is gone, without a store",
    ("tests/web/test_rights.py", "web._routes"): "its routes, against the table of rights",
    ("tests/web/test_rights.py", "web._rights"): "every cell of that table, and keys that no page shows",
    ("tests/web/test_http.py", "web._connection"): "a connection, without the ten seconds that it waits",
    ("benchmarks/replies.py", "conduct._refusals"): "fits the weights of the signs that it finds",
    ("tests/watching/test_transcript.py", "watching._transcript"): "transcripts of meetings that no run here holds",
    ("tests/cli/test_app.py", "cli._app"): "every command's help beside its line in the table of commands",
    ("tests/cli/test_app.py", "cli._console"): "any text that a terminal might take for a command",
    ("tests/cli/test_doctor.py", "cli._doctor"): "processors and packages that this machine has not",
    ("tests/cli/test_plan_output.py", "cli._plan_preview"): "forecasts and bills of models that nobody here pays",
    ("tests/cli/test_plan_output.py", "cli._run._compare"): "the same at the end of a pilot",
    ("tests/cli/test_run.py", "cli._run"): "many errors of one cause",
    ("tests/studio/test_kept_frames.py", "studio._kept_frames"): "what is kept in files, without a page",
    ("tests/studio/test_kept_frames.py", "studio._filtered"): "the runs of a page, without the page",
    ("tests/studio/test_side_by_side.py", "studio._side_by_side"): "what a page compares, without the page",
    ("tests/running/test_cluster.py", "running._cluster"): "chunks on their way, and its patience",
    ("tests/running/test_cluster.py", "running._worker"): "chunks on their way",
    ("tests/support/editing.py", "store._schema"): "writes rows as a package of another version would",
    (
        "verification/draws/test_closeness.py",
        "classic.kernels._closeness",
    ): "who is drawn, and nobody moves",
    ("tests/classic/models/test_coevolving.py", "classic.kernels._ties"): "ties that are moved, without a model",
    ("verification/draws/test_moved_ties.py", "classic.kernels._ties"): "ends of ties, without a model",
    ("verification/draws/test_tokens.py", "local._hugging_face"): "a model that lies in a folder of the test",
    ("verification/draws/test_tokens.py", "local._decoder"): "tokens and samples, which replies do not show",
    ("tests/classic/kernels/test_influences.py", "classic._actors"): "agents of a schedule, meeting by meeting",
    ("tests/classic/figures/test_phase.py", "classic.figures._levels"): "places of levels, before anything is drawn",
    ("tests/classifiers/test_flan_t5.py", "classifiers._flan_t5_prompt"): "a published prompt, to the letter",
    ("tests/classifiers/test_label_trie.py", "classifiers._label_trie"): "probabilities of labels under made-up tokens",
    ("tests/classifiers/test_lexicon.py", "classifiers._lexicon_text"): "words and stems, before any is coded",
    ("tests/llm/test_budget.py", "llm._budget"): "a bound that must hold for any text",
    ("tests/llm/test_failures.py", "llm._failures"): "hundreds of errors, each of which ends a run",
    ("tests/llm/test_failures.py", "llm._transport"): "errors of one client under two transports",
    ("tests/local/test_gguf.py", "local._gguf"): "calls that the model was given, which replies do not show",
    ("tests/local/test_hugging_face.py", "llm._failures"): "which errors of the arithmetic end a run",
    ("tests/local/test_hugging_face.py", "local._hugging_face"): "a model that lies in a folder of the test",
    ("tests/local/test_hugging_face.py", "local._batching"): "batches by time and by length, without arithmetic",
    ("tests/local/test_hugging_face.py", "local._decoder"): "tokens and samples, which replies do not show",
    ("tests/local/test_adapter.py", "local._hugging_face"): "a model that lies in a folder of the test",
    ("tests/local/test_adapter.py", "local._decoder"): "tokens, which replies do not show",
    ("tests/llm/test_providers.py", "llm._providers"): "what would be sent, without sending it",
    ("tests/llm/test_providers.py", "llm._transport"): "connections that are open",
    ("tests/networks/test_generators.py", "networks._pairs"): "pairs of networks too large to be built",
    ("tests/prompts/test_bounds.py", "prompts._templates"): "texts of any template, without a pack around it",
    ("benchmarks/classifier.py", "classifiers._flan_t5_weights"): "measures a classifier part by part",
    ("benchmarks/classifier.py", "classifiers._label_scorer"): "measures a classifier part by part",
    ("benchmarks/classifier.py", "classifiers._label_trie"): "measures a classifier part by part",
    ("tests/comparison/_studies.py", "comparison._candidates"): "candidates and their bounds, without a fit",
    ("tests/comparison/_studies.py", "comparison._comparison"): "the margin, for studies that are in no store",
    ("tests/comparison/_studies.py", "comparison._comparison._counted"): "which updates count, without a store",
    ("tests/comparison/_studies.py", "comparison._comparison._explained"): "findings of studies that are in no store",
    ("tests/comparison/_studies.py", "comparison._comparison._fits"): "all fits to such a study",
    ("tests/comparison/_studies.py", "comparison._comparison._lacking"): "what is not compared, without a store",
    ("tests/comparison/_studies.py", "comparison._comparison._noise"): "matrices as they are given",
    ("tests/comparison/_studies.py", "comparison._updates"): "studies of a store, before anything is fitted",
    ("tests/comparison/_studies.py", "comparison._kept_fits"): "what a file of kept fits holds after a stop",
    ("tests/comparison/_studies.py", "comparison._point_masses"): "likelihoods of numbers on record",
    ("tests/comparison/_studies.py", "comparison._filter"): "likelihoods and draws, against every path",
    ("tests/comparison/_studies.py", "comparison._fit"): "single fits",
    ("tests/comparison/_studies.py", "comparison._free_runs"): "free runs at the truth, without a fit",
    ("tests/comparison/_studies.py", "comparison._grid"): "steps on the grid, against those of models",
    ("tests/comparison/_studies.py", "comparison._scores"): "folds, shares and exchanged messages",
    ("tests/comparison/_studies.py", "comparison._update_arrays"): "studies without a store",
    ("tests/comparison/_studies.py", "comparison._trust"): "intervals and bounds of influence",
    ("tests/comparison/_studies.py", "comparison._findings"): "findings of studies that are in no store",
    ("benchmarks/compare.py", "comparison._candidates"): "measures one pass alone",
    ("benchmarks/compare.py", "comparison._filter"): "measures one pass alone",
    ("benchmarks/compare.py", "comparison._grid"): "measures one pass alone",
    ("benchmarks/compare.py", "comparison._update_arrays"): "measures one pass alone",
}


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


def _names(path: Path, root: Path) -> list[str]:
    """What a file imports from its own package, by dotted names inside it."""
    package = [PACKAGE, *path.relative_to(root).parent.parts]
    names = _imported(ast.parse(path.read_text(encoding="utf-8")), package)
    return [name.removeprefix(f"{PACKAGE}.") for name in names if name.startswith(f"{PACKAGE}.")]


def _room(name: str) -> str:
    """The room, or the folder with a place of its own, that a dotted name is in."""
    inner = ".".join(name.split(".")[:2])
    return inner if inner in LEVEL else name.partition(".")[0]


def _room_of(path: Path, root: Path) -> str:
    return _room(".".join(path.relative_to(root).with_suffix("").parts))


def _may_import(root: Path, room: str, target: str) -> bool:
    """Whether a room, or a slice, may import another as far as slices go; a slice says which others it needs."""
    if target == room or target not in SLICES:
        return True
    table = root / room / "parts.toml"
    return table.exists() and target in tomllib.loads(table.read_text(encoding="utf-8")).get("slice", {}).get(
        "needs", []
    )


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
        if len(relative.parts) > 1 and not path.name.startswith("_") and relative.as_posix() not in PUBLIC_MODULES:
            found.append(f"{relative}: a module inside a package is named with an underscore")
        room, names = _room_of(path, root), _names(path, root)
        if room == "__init__":
            found += [
                f"{relative}: the package root imports {name} at run time"
                for name in names
                if not name.startswith("foundation.lazy.")
            ]
            continue
        if room not in LEVEL and room not in SLICES:
            found.append(f"{relative}: {room} has no place in the order")
            continue
        for target in map(_room, names):
            if target == room or target.startswith("__"):
                continue
            if target not in LEVEL and target not in SLICES:
                found.append(f"{relative}: imports {target}, which is no room; name the module it lives in")
            elif not _may_import(root, room.partition(".")[0], target.partition(".")[0]):
                found.append(f"{relative}: {room} imports the slice {target}")
            elif target == "testing" and relative.name != CONTRACT:
                found.append(f"{relative}: {room} imports testing, which stands above it")
            elif room in LEVEL and LEVEL[target] > LEVEL[room]:
                found.append(f"{relative}: {room} imports {target}, which stands above it")
            else:
                edges.setdefault(room, set()).add(target)
    cycle = _cycle(edges)
    return [*found, f"cycle: {cycle}"] if cycle else found


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def _private(name: str, room: str) -> str:
    """What another room keeps to itself of a dotted name, without the package; empty if nothing."""
    package, *parts = name.split(".")
    if package != PACKAGE or parts[:1] == [room] or not any(map(_is_private, parts)):
        return ""
    while not _is_private(parts[-1]):
        parts.pop()
    return ".".join(parts)


def intrusions(checkout: Path) -> set[tuple[str, str]]:
    """Files of a checkout that import what another room keeps to itself, each with what it is."""
    found = set()
    for folder in (PACKAGE, *USERS):
        for path in (checkout / folder).rglob("*.py"):
            relative = path.relative_to(checkout)
            room = relative.parts[1].removesuffix(".py") if folder == PACKAGE else ""
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if not isinstance(node, (ast.Import, ast.ImportFrom)):
                    continue
                names = _imported(ast.Module([node], []), list(relative.parent.parts))
                found |= {(relative.as_posix(), private) for name in names if (private := _private(name, room))}
    return found


def test_what_a_room_keeps_to_itself_is_used_nowhere_else(checkout: Path) -> None:
    found = intrusions(checkout)
    assert found - set(EXCUSED) == set()
    # Tests of a slice are deleted with it.
    there = {each for each in EXCUSED if (checkout / each[0]).parent.is_dir()}
    assert there - found == set(), "excused for nothing"


def test_dependencies_point_one_way(checkout: Path) -> None:
    assert violations(checkout / PACKAGE) == []


@pytest.mark.parametrize("room", INSIDE)
def test_inside_a_room_dependencies_point_one_way(checkout: Path, room: str) -> None:
    root = checkout / PACKAGE
    level = {part: number for number, layer in enumerate(INSIDE[room]) for part in layer}
    edges: dict[str, set[str]] = {part: set() for part in level}
    for path in (root / room).rglob("*.py"):
        part = path.relative_to(root / room).parts[0].removesuffix(".py")
        if path.name not in ("__init__.py", CONTRACT):
            used = (name.split(".") for name in _names(path, root) if name.startswith(f"{room}."))
            edges[part] |= {names[1] for names in used} - {part}
    assert [(part, each) for part in level for each in edges[part] if level[each] > level[part]] == []
    assert _cycle(edges) is None


def test_package_is_there_to_be_checked(checkout: Path) -> None:
    rooms = {_room_of(path, checkout / PACKAGE) for path in (checkout / PACKAGE).rglob("*.py")}
    assert {"errors", "llm", "schedules", "store", "running", "cli"} <= rooms


def _tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in {"__init__.py": "", **files}.items():
        path = root / PACKAGE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root / PACKAGE


UPWARD = "llm imports running, which stands above it"


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        ({"llm/__init__.py": "from opinionsim.running import run"}, UPWARD),
        ({"llm/__init__.py": "from opinionsim import running"}, UPWARD),
        ({"llm/__init__.py": "import opinionsim.running._carry_out as p"}, UPWARD),
        ({"llm/_caller.py": "from ..running import run"}, UPWARD),
        ({"llm/_caller.py": "from .. import running"}, UPWARD),
        ({"llm/_caller.py": "def f():\n    from opinionsim.running import run"}, UPWARD),
        ({"cli/__init__.py": "from opinionsim.testing import suite"}, "cli imports testing, which stands above it"),
        ({"topics.py": "import opinionsim.personas", "personas.py": "import opinionsim.topics"}, "cycle: "),
        ({"llm/__init__.py": "from opinionsim import run"}, "imports run, which is no room"),
        ({"foundation/data.py": "import opinionsim.registry"}, "foundation imports registry, which stands above it"),
        ({"errors.py": "import opinionsim.foundation.streams"}, "errors imports foundation, which stands above it"),
        ({"networks/__init__.py": "from opinionsim import prompts"}, "networks imports prompts, which stands above it"),
        ({"llm/caller.py": ""}, "is named with an underscore"),
        ({"helpers.py": ""}, "helpers has no place in the order"),
        ({"__init__.py": "from opinionsim.errors import SpecError"}, "the package root imports errors"),
        ({"cli/_run.py": "from opinionsim.consensus import sessions"}, "cli imports the slice consensus"),
        ({"deliberation/_run.py": "import opinionsim.consensus"}, "deliberation imports the slice consensus"),
        ({"deliberation/_run.py": "from opinionsim.testing import suite"}, "deliberation imports testing"),
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
        {"running/__init__.py": "from opinionsim.llm import load_chat_model"},
        {"running/_carry_out.py": "from opinionsim import __version__\nfrom opinionsim.specification import Cell"},
        {"topics.py": "from opinionsim.errors import SpecError", "errors.py": "import os"},
        {"llm/__init__.py": "if TYPE_CHECKING:\n    from opinionsim.running import run"},
        {"llm/__init__.py": "if typing.TYPE_CHECKING:\n    import opinionsim.running"},
        {"llm/_caller.py": "from ._journal import Journal\nfrom . import _limits"},
        {"deliberation/_run.py": "from opinionsim.cli import app"},
        {"deliberation/_contract.py": "from opinionsim.testing import suite"},
        {
            "deliberation/_run.py": "from opinionsim.consensus import sessions",
            "deliberation/parts.toml": '[slice]\nneeds = ["consensus"]',
        },
    ],
)
def test_what_the_order_allows_passes(tmp_path: Path, files: dict[str, str]) -> None:
    assert violations(_tree(tmp_path, files)) == []


@pytest.mark.parametrize(
    ("file", "text", "private"),
    [
        ("tests/test_a.py", "from opinionsim.llm._caller import Endpoint", "llm._caller"),
        ("tests/llm/test_a.py", "from opinionsim.llm import _caller", "llm._caller"),
        ("docs/images/a.py", "import opinionsim.llm._caller as c", "llm._caller"),
        ("benchmarks/a.py", "def f():\n    from opinionsim.engine import _draw", "engine._draw"),
        ("verification/a.py", "from opinionsim.llm._caller import _Site", "llm._caller._Site"),
        ("opinionsim/cli/_run.py", "from opinionsim.llm._caller import Endpoint", "llm._caller"),
        ("opinionsim/cli/_run.py", "if TYPE_CHECKING:\n    from ..llm._caller import Endpoint", "llm._caller"),
        ("opinionsim/cli/_run.py", "from opinionsim.cli._app import app\nfrom ._app import main", None),
        ("tests/test_a.py", "from opinionsim import __version__\nfrom tests.support import reader", None),
        ("tests/test_a.py", "from opinionsim.llm import Endpoint\nfrom opinionsim.llm.phrases import stated", None),
    ],
)
def test_what_a_room_keeps_to_itself_is_seen(tmp_path: Path, file: str, text: str, private: str | None) -> None:
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text(text, encoding="utf-8")
    assert intrusions(tmp_path) == ({(file, private)} if private else set())


def test_every_room_has_one_place() -> None:
    for lower, upper in itertools.combinations(LAYERS, 2):
        assert not lower & upper


def test_a_name_of_a_file_occurs_once(checkout: Path) -> None:
    counts = collections.Counter(path.name for path in (checkout / "opinionsim").glob("**/*.py"))
    assert [name for name, count in counts.items() if count > 1 and name != CONTRACT] == ["__init__.py"]
