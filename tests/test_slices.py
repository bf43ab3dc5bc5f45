"""Slices: nothing that is left names what they bring, and what is left works without them."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import opinionsim as osim
from opinionsim.schedules import ActSpec
from tests.slices import ALL, ROOT, collected, commanded, deleted, done, needs, quickstart, without
from tests.support.examples import few

#: The slices that can be deleted, and a command of each that fills a store.
SLICES = {
    "classic": "run classic_quickstart --set replicates=1 --set population.size=10 --set interaction.exposures=1",
    "dialogue": "run room_models --set replicates=1",
    "comparison": "import studies/people/people.csv studies/people/mapping.yaml",
    "consensus": "run consensus_quickstart --set replicates=1",
    "deliberation": "run structures --set replicates=1",
    "audit": "run quickstart --set replicates=1",  # tests/audit labels such texts
    "local": "run quickstart --set model.name=gguf:smollm2 --set model.max_tokens=24 --set execution.max_concurrency=1 "
    "--set sweep={} --set replicates=1 --set population.size=2 --set interaction.steps=1",
}

#: Words that the core and other slices use in another sense than a slice does, each with what they mean there.
HOMONYMS = {
    "consensus": "the end of a classic model's run in which all agree; the extra of scikit-learn and rouge-score",
    "question": "what a topic asks, and the field that holds it",
    "rate": "the method of classifiers that take several texts together",
    "state": "where a run stands",
    "instruct": "the act of a moderator that writes its own instructions, around any schedule",
    "questions": "what an interview asks",
    "rounds": "how often citizens criticise and rank anew",
    "submit": "the event of a form on a page",
    "choices": "what an analysis could have been instead; the items of a menu; alternatives in the reply of a provider",
    "choose": "a word that a closed answer may follow at once",
    "room": "the audience of an act whose texts everybody hears",
    "open": "what a file, a batch or a world is; a form of questions",
    "end": "the last step, and an end of an interval",
    "signal": "the form in which people say what they want out of turn, and the kind of such texts",
    "harm": "what people at any seat can report",
    "ratings": "the form in which people give each item a number; what people on record rated",
    "recorded": "the classifier of ratings that come with texts; what a cell declares whose texts people wrote before",
    "import": "the source of entries of a journal that nobody was asked for",
    "surveys": "the folder with surveys; the respondents among the contents of a study",
    "deliberation": "the prompt pack that templates of slices join",
    "analysis": "the contrasts that a specification declares",
    "points": "the points of a scale",
}


def _files(folder: Path) -> Iterator[Path]:
    for suffix in ("py", "toml", "js"):
        yield from sorted(folder.rglob(f"*.{suffix}"))


def _strings(path: Path) -> Iterator[str]:
    """The quoted strings of a file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        nodes = ast.walk(ast.parse(text))
        yield from (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
    else:
        yield from (found[1] for found in re.findall(r"([\"'`])(.*?)\1", text))


def _acts(folder: Path) -> set[str]:
    """Names of the acts, and of their templates, that the modules of a room or slice declare."""
    modules = (import_module(f"opinionsim.{folder.name}.{path.stem}") for path in folder.glob("_*.py"))
    acts = [each for module in modules for each in vars(module).values() if isinstance(each, ActSpec)]
    return {name for act in acts for name in (act.name, act.template) if name}


def _brought(name: str) -> set[str]:
    """Names that a slice brings: of its parts of every kind, and of acts that it alone has."""
    package = ROOT / "opinionsim"
    tables = tomllib.loads((package / name / "parts.toml").read_text(encoding="utf-8"))
    parts = {part for kind, listed in tables.items() if kind != "slice" for part in listed}
    return parts | (_acts(package / name) - _acts(package / "schedules"))


@pytest.mark.parametrize("name", SLICES)
def test_nothing_that_is_left_names_what_a_slice_brings(name: str) -> None:
    brought, package = _brought(name), ROOT / "opinionsim"
    assert len(brought) > 1
    left = [path for path in _files(package) if path.relative_to(package).parts[0] not in deleted([name], needs())]
    found = {(str(path.relative_to(package)), each) for path in left for each in brought.intersection(_strings(path))}
    assert sorted(each for each in found if each[1] not in HOMONYMS) == []


def test_every_homonym_is_one() -> None:
    brought = {each for name in SLICES for each in _brought(name)}
    assert HOMONYMS.keys() <= brought


def test_a_slice_is_deleted_with_those_that_need_it() -> None:
    assert set(needs()) >= SLICES.keys()
    assert deleted(["classic"], needs()) == ["classic", "comparison"]
    assert deleted(["a"], {"a": [], "b": ["c", "a"], "c": ["d"], "d": ["a"], "e": []}) == ["a", "b", "c", "d"]
    assert deleted([ALL], needs()) == list(needs())


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The table of the quickstart with the whole package."""
    return quickstart(ROOT, tmp_path_factory.mktemp("whole") / "whole.sqlite")


@pytest.mark.whole
@pytest.mark.parametrize("name", few([ALL, *SLICES], 2))
def test_the_package_works_without_a_slice(name: str, table: str, tmp_path: Path) -> None:
    left = tmp_path / "left"
    gone = without([name], left)
    # Those of the core are collected where all slices are deleted.
    assert " tests collected in " in collected(left, SLICES.keys() - gone)
    assert quickstart(left, tmp_path / "left.sqlite") == table
    homes = {each: getattr(value, "__module__", each) for each in osim.__all__ for value in [getattr(osim, each)]}
    lost = {each for each, home in homes.items() if {each, *home.split(".")[1:2]} & {*gone}}
    names = "{*dir(opinionsim), *opinionsim.__all__, *globals()}"
    found = done(left, "-c", f"import opinionsim; from opinionsim import *; print(*{names})").split()
    assert {*found} & {*osim.__all__} == {*osim.__all__} - lost
    for each in SLICES.keys() & gone:
        _what_was_run_is_shown(left, each, tmp_path / each)


def _what_was_run_is_shown(left: Path, name: str, folder: Path) -> None:
    """What was run while a slice was there is shown, but for its own tables and figures."""
    store = f"{folder}.sqlite"
    made = (f"report {store} --out {folder}.html", f"export {store} {folder} --archive")
    _, whole = commanded(ROOT, f"{SLICES[name]} --store {store}", f"table {store} --form csv")
    rest, *_ = commanded(left, f"table {store} --form csv", *made)
    assert rest
    assert set(rest.splitlines()) <= set(whole.splitlines())
    # A page of results loads these parts, and shows an error in place of one that fails.
    asked = {"store": name, "url": f"sqlite:///{store}"}
    parts = "r.tables(asked), r.runs(asked), r.sections(asked), r.figures(asked)"
    page = done(left, "-c", f"from opinionsim.studio import _reading as r; asked = {asked}; print({parts})")
    assert 'class="problem"' not in page
    odd = (folder / "odd.md").read_text(encoding="utf-8")
    said = re.search(r"It is not installed here\.|These are data of people, imported from a table", odd)
    # Not every slice brings the way of interacting of its study.
    assert bool(said) == (name not in ("audit", "classic", "local"))
