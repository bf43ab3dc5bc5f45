"""Slices: nothing that is left names what they bring, and what is left works without them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from opinionsim.registry import places
from opinionsim.schedules import ActSpec
from tests.slices import ROOT, collected, done, quickstart, without

#: The slices that can be deleted, and an experiment of each.
SLICES = {"consensus": "consensus_quickstart", "deliberation": "structures"}

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
    "ratings": "the form in which people give each item a number; what people on record rated",
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
    """Names that a slice brings: of ways of interacting, commands, figures, tables, and of acts that it alone has."""
    package = ROOT / "opinionsim"
    kinds = ("interaction", "command", "figure", "table")
    parts = {part for kind in kinds for part, place in places(kind).items() if place.folder == name}
    return parts | (_acts(package / name) - _acts(package / "schedules"))


@pytest.mark.parametrize("name", SLICES)
def test_nothing_that_is_left_names_what_a_slice_brings(name: str) -> None:
    brought, package = _brought(name), ROOT / "opinionsim"
    assert len(brought) > 5
    left = [path for path in _files(package) if path.relative_to(package).parts[0] != name]
    found = {(str(path.relative_to(package)), each) for path in left for each in brought.intersection(_strings(path))}
    assert sorted(each for each in found if each[1] not in HOMONYMS) == []


def test_every_homonym_is_one() -> None:
    brought = {each for name in SLICES for each in _brought(name)}
    assert HOMONYMS.keys() <= brought


@pytest.mark.whole
@pytest.mark.parametrize("name", SLICES)
def test_the_package_works_without_a_slice(name: str, tmp_path: Path) -> None:
    left = without(name, tmp_path / "left")
    assert " tests collected in " in collected(left)
    assert quickstart(left, tmp_path / "left.sqlite") == quickstart(ROOT, tmp_path / "whole.sqlite")
    # What was run while it was there is shown, but for its own tables and figures.
    store = str(tmp_path / "before.sqlite")
    done(ROOT, "-m", "opinionsim", "run", SLICES[name], "--set", "replicates=1", "--store", store)
    whole, rest = (done(each, "-m", "opinionsim", "table", store, "--form", "csv") for each in (ROOT, left))
    assert rest
    assert set(rest.splitlines()) <= set(whole.splitlines())
    done(left, "-m", "opinionsim", "report", store, "--out", str(tmp_path / "report.html"))
    done(left, "-m", "opinionsim", "export", store, str(tmp_path / "archive"), "--archive")
    assert "It is not installed here." in (tmp_path / "archive" / "odd.md").read_text(encoding="utf-8")
