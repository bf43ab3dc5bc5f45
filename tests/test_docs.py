"""What README and docs show is what happens: marked code is run as it stands, names and links exist."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import os
import pkgutil
import re
import shlex
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer
import yaml
from typer.core import TyperGroup
from typer.testing import CliRunner

from opinionsim.cli import app
from opinionsim.llm import ScriptedParameters
from opinionsim.registry import names, places
from opinionsim.specification import load_experiment
from opinionsim.topics import load_topics, parse_topics

_TOP = Path(__file__).resolve().parents[1]
_FOLDERS = ("benchmarks", "docs", "experiments", "notebooks", "opinionsim", "personas", "topics")
PAGES = sorted([*_TOP.glob("*.md"), *(page for folder in _FOLDERS for page in (_TOP / folder).rglob("*.md"))])
IDS = [str(page.relative_to(_TOP)) for page in PAGES]

_FENCE = re.compile(r"^(?P<mark><!-- run -->\n)?```(?P<language>\w+)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?P<target>[^)#\s]*)(?:#(?P<anchor>[^)\s]+))?\)")


class Block(NamedTuple):
    """A fenced block of a page."""

    page: str
    language: str
    code: str
    run: bool


def _blocks() -> Iterator[Block]:
    for page in PAGES:
        for found in _FENCE.finditer(page.read_text(encoding="utf-8")):
            code = textwrap.dedent(found["code"])
            yield Block(str(page.relative_to(_TOP)), found["language"], code, found["mark"] is not None)


BLOCKS = list(_blocks())


def _commands(block: Block) -> list[list[str]]:
    """Arguments of the `opinionsim` commands of a shell block."""
    lines = (shlex.split(line, comments=True) for line in block.code.splitlines())
    return [words[1:] for words in lines if words and words[0] == "opinionsim"]


def _run_shell(block: Block) -> None:
    for line in filter(str.strip, block.code.splitlines()):
        program, *arguments = shlex.split(line, comments=True)
        if program == "cd":
            os.chdir(arguments[0])
            continue
        assert program == "opinionsim", "a block that is run holds one opinionsim command a line"
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, f"{line}\n{done.output}"
        assert done.output.strip() or arguments[0] == "run"


#: Pages of classic models, each of which compiles kernels; tests/classic/test_pages.py runs them.
MODEL_PAGES = {f"docs/classic/{name}.md" for name in names("classic_model")}


#: Pages whose blocks take seconds; what those of reports and archives do, commands of a new study do too.
LONG_PAGES = {f"docs/{name}.md" for name in ("archive", "audit", "classic/index", "coming_from", "controls", "report")}

#: Pages that the build of the site runs, whose output it shows; see tests/test_site.py.
SITE_PAGES = {"docs/tutorial.md", "docs/gallery.md"}


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.whole) if page in LONG_PAGES else page
        for page in sorted({block.page for block in BLOCKS if block.run} - MODEL_PAGES - SITE_PAGES)
    ],
)
def test_marked_blocks_run(page: str) -> None:
    run_marked(page)


def run_marked(page: str) -> None:
    """Run all blocks of a page in order, in one empty folder, for later ones read what earlier ones wrote."""
    for block in BLOCKS:
        if block.page == page and block.run:
            if block.language == "bash":
                _run_shell(block)
            else:
                assert block.language == "python"
                exec(compile(block.code, block.page, "exec"), {"__name__": "__main__"})  # noqa: S102


def test_tutorial_and_python_are_among_what_runs() -> None:
    marked = [block for block in BLOCKS if block.page == "docs/tutorial.md" and block.run]
    ran = {command[0] for block in marked if block.language == "bash" for command in _commands(block)}
    assert {"demo", "plan", "preview", "run", "status", "show", "table", "plot", "replay", "export"} <= ran
    assert any(block.run and block.language == "python" for block in BLOCKS if block.page == "README.md")


def test_readme_is_short_and_says_how_to_test() -> None:
    text = (_TOP / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120
    assert "`make test`" in text


def test_targets_of_make_exist() -> None:
    known = set(re.findall(r"^([a-z]+):", (_TOP / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    lines = (line.split() for block in BLOCKS for line in block.code.splitlines())
    named = {words[1] for words in lines if words[:1] == ["make"]}
    assert {"demo", "test"} <= named <= known


def _resolved(command: list[str]) -> Any:
    """The command, or the one of a group, that words begin with."""
    known: Any = typer.main.get_command(app)
    for word in command[:2]:
        if isinstance(known, TyperGroup):
            _, known, _ = known.resolve_command(known.make_context("", [], resilient_parsing=True), [word])
    return known


@pytest.mark.parametrize(
    "command",
    [command for block in BLOCKS if block.language == "bash" for command in _commands(block)],
    ids=lambda command: shlex.join(command)[:60],
)
def test_commands_and_options_exist(command: list[str]) -> None:
    if command[0].startswith("-"):
        assert command == ["--help"]
        return
    given = {word for word in command[1:] if word.startswith("--")}
    assert given <= {name for parameter in _resolved(command).params for name in parameter.opts}


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language == "python"], ids=lambda b: b.page)
def test_python_blocks_are_python(block: Block) -> None:
    assert ast.parse(block.code).body


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language == "yaml"], ids=lambda b: b.page)
def test_yaml_blocks_are_parts_of_a_specification(
    block: Block, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every fragment fits into a specification that is otherwise the quickstart's; its own parts are the tests'."""
    monkeypatch.syspath_prepend(str(checkout / "tests" / "outside"))
    fragment = yaml.safe_load(block.code)
    whole: dict[str, Any] = {
        "name": "fragment",
        "topic": {"name": "global-warming"},
        "interaction": {"kind": "dyadic", "steps": 10},
    }
    if block.page == "docs/phase.md":
        assert importlib.import_module("opinionsim.classic.sweeps").load_sweep(fragment).points
        return
    if fragment.get("study", "agents") != "agents":
        # tests/test_own_study.py carries it out.
        assert block.page == "docs/architecture.md"
        return
    if block.page == "topics/README.md":
        assert parse_topics(fragment, block.page)
        return
    stated = load_experiment({**whole, **fragment}).spec.model_dump(mode="json", exclude_unset=True)
    assert fragment.keys() <= stated.keys()


def _anchors(page: Path) -> set[str]:
    """Anchors of a page's headings as hosts of Markdown make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for found in _LINK.finditer(text):
        target, anchor = found["target"], found["anchor"]
        if re.match(r"\w+:", target):
            continue
        linked = (page.parent / target).resolve() if target else page
        assert linked.exists(), target
        if anchor:
            assert anchor in _anchors(linked), f"{target}#{anchor}"


def test_index_names_every_page() -> None:
    index = (_TOP / "docs" / "index.md").read_text(encoding="utf-8")
    pages = [page.name for page in (_TOP / "docs").glob("*.md") if page.name != "index.md"]
    assert [name for name in pages if f"({name})" not in index] == []


def test_decisions_are_short_dated_and_listed() -> None:
    folder = _TOP / "docs" / "decisions"
    index = (folder / "README.md").read_text(encoding="utf-8")
    records = sorted(folder.glob("[0-9]*.md"))
    assert [record.name[:4] for record in records] == [f"{number:04d}" for number in range(1, len(records) + 1)]
    for record in records:
        lines = record.read_text(encoding="utf-8").splitlines()
        title = lines[0].removeprefix(f"# {record.name[:4]}: ")
        assert len(lines) <= 25, record.name
        assert re.fullmatch(r"\d{4}-\d\d-\d\d, (accepted|replaced by \d{4})", lines[2]), record.name
        assert f"| [{record.name[:4]}]({record.name}) | {title} |" in index, record.name


def _known(named: str) -> bool:
    """Whether there is such an experiment, command, part (``kind: NAME``) or public name."""
    if named.startswith("opinionsim "):
        return named.split()[1] in places("command")
    if ": " in named:
        kind, name = named.split(": ")
        return name in places(kind)
    if named.startswith("opinionsim."):
        return pkgutil.resolve_name(named) is not None
    return (_TOP / "experiments" / f"{named}.yaml").is_file()


def test_every_element_of_the_founding_systems_is_told_of_and_shown() -> None:
    table = (_TOP / "docs" / "deviations.md").read_text(encoding="utf-8").partition("| Id |")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    ids = [f"{system}{1 + number}" for system, n in (("A", 18), ("B", 11), ("C", 7), ("D", 8)) for number in range(n)]
    assert [row[0] for row in rows] == ids
    for name, _, state, where, why in rows:
        assert state in ("works", "differs", "missing"), name
        assert why or state == "works", name
        shown = re.findall("`([^`]+)`", where)
        assert shown or state == "missing", name
        assert [each for each in shown if not _known(each)] == [], name


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_sensitive_topics_stay_out(page: Path, checkout: Path) -> None:
    topics = [topic for file in (checkout / "topics").glob("*.yaml") for topic in load_topics(file).values()]
    sensitive = [topic for topic in topics if topic.sensitive]
    assert sensitive
    text = page.read_text(encoding="utf-8").lower()
    for topic in sensitive:
        named = [topic.name, *(claim.lower() for claim in topic.claims.values())]
        assert [words for words in named if words in text] == []


def test_figures_are_small() -> None:
    sizes = {path.name: path.stat().st_size for path in (_TOP / "docs" / "images").glob("*.png")}
    assert {name for name, size in sizes.items() if size >= 200_000} == set()


def test_parameters_of_the_scripted_model_are_as_documented() -> None:
    text = (_TOP / "docs" / "scripted.md").read_text(encoding="utf-8")
    table = text.partition("| Parameter |")[2].partition("\n\n")[0]
    stated = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", table, re.MULTILINE))
    defaults = {
        field.name: getattr(ScriptedParameters(), field.name) for field in dataclasses.fields(ScriptedParameters)
    }
    assert stated == {name: "none" if value is None else str(value) for name, value in defaults.items()}


#: An option with its default, as pages put it that have the name of the command.
_DEFAULTS = (
    re.compile(r"`(?P<option>--[a-z-]+)[^`]*`(?:(?! --)[^.])*?\bdefaults?:? `?(?P<value>[\w./-]*\w)"),
    re.compile(r"`(?P<value>[^`]+)` unless you pass `(?P<option>--[a-z-]+)`"),
)


def test_defaults_of_options_in_docs_are_those_in_the_help() -> None:
    stated = {
        (page.name, found["option"], found["value"])
        for page in (_TOP / "docs").glob("*.md")
        for part in re.split(r"\n\n|\n(?=[|-] )", page.read_text(encoding="utf-8"))
        for form in _DEFAULTS
        for found in form.finditer(" ".join(part.split()))
    }
    assert {page for page, _, _ in stated} >= {"audit.md", "compare.md", "room.md"}, stated
    for page, option, value in stated:
        command = _resolved([page.removesuffix(".md")])
        commands = command.commands.values() if isinstance(command, TyperGroup) else [command]
        (given,) = (each for known in commands for each in known.params if option in each.opts)
        said = f"{given.help} Default: {given.default}."
        assert re.search(rf"Default: [^,;]*(?<![\w./-]){re.escape(value)}(?![\w/-])", said), (page, said)


def test_python_names_what_parts_of_your_own_are_made_of() -> None:
    listed = set(re.findall(r"auto(?:class|function):: (opinionsim[\w.]+)", (_TOP / "docs/api.md").read_text("utf-8")))
    for path in listed:
        module, _, name = path.rpartition(".")
        assert getattr(importlib.import_module(module), name).__doc__, path
    blocks = [block.code for block in BLOCKS if (block.page, block.language) == ("docs/parts.md", "python")]
    needed = {
        f"{node.module}.{each.name}"
        for code in blocks
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("opinionsim.")
        for each in node.names
    }
    used = {"schedules.Setting", "schedules.Turn", "networks.Neighbours", "prompts.Past", "memory.KeptMessages"}
    assert needed - {"opinionsim.opinions.OpinionScale"} | {f"opinionsim.{each}" for each in used} <= listed


def test_files_of_the_study_hold_as_many_runs_as_stated() -> None:
    text = (_TOP / "docs" / "chuang2024.md").read_text(encoding="utf-8")
    stated = re.findall(r"\[(\w+)\.yaml\]\(\.\./experiments/chuang2024/\w+\.yaml\)[^|]*\| (\d+) \|", text)
    assert len(stated) == len(list((_TOP / "experiments" / "chuang2024").glob("*.yaml")))
    for name, runs in stated:
        assert len(load_experiment(f"chuang2024/{name}").runs) == int(runs), name
