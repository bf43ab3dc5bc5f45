"""No command overwrites what it did not make: a contract for every output of every command."""

from __future__ import annotations

import inspect
import shutil
import typing
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer

from opinionsim.foundation.outputs import is_store
from opinionsim.registry import places
from opinionsim.store import copy_store
from tests.cli.conftest import Invoke
from tests.support.command import refused

#: How each output of a command is given; the path that it is given stands for ``{}``, an input of it for ``{in}``.
_OUTPUTS: dict[tuple[str, str], str] = {
    ("table", "csv"): "table s.sqlite --csv {}",
    ("plot", "out"): "plot s.sqlite --out {}",
    ("plot", "csv"): "plot density s.sqlite --out new.png --csv {}",
    ("report", "out"): "report s.sqlite --out {}",
    ("view", "export"): "view s.sqlite --run none/0 --export {}",
    ("compare", "plot"): "compare s.sqlite --plot {}",
    ("compare", "csv"): "compare s.sqlite --csv {}/fits.csv",
    ("surveys", "csv"): "surveys validate anes2012 --mapping anes2012 --csv {}",
    ("classify", "output"): "classify texts.txt --claim x --out {}",
    ("freeze", "out"): "freeze small.yaml --out {}",
    ("export", "folder"): "export s.sqlite {}",
    ("demo", "out"): "demo --out {}",
}
#: Those of the commands that are there: slices bring some.
OUTPUTS = {output: given for output, given in _OUTPUTS.items() if output[0].split()[0] in places("command")}
#: Parameters that are paths and no outputs, and an output whose folder is checked by its own contents.
OTHERS = {
    ("import", "table"), ("import", "twins"), ("verify", "archive"),
    ("consensus train-reward", "out"), ("consensus train-statements", "out"),
}  # fmt: skip
#: Outputs that are folders, each with the name of a file that the command would write into it.
FOLDERS = {("compare", "csv"): "fits.csv", ("export", "folder"): "runs.csv", ("demo", "out"): "panels.png"}


def _functions(folder: str) -> dict[str, Callable[..., Any]]:
    """The function of every command of a folder, by the words that call it."""
    found: dict[str, Callable[..., Any]] = {}
    for name, place in places("command").items():
        if place.folder != folder:
            continue
        module, attribute = place.module.split(":")
        given = getattr(import_module(module), attribute)
        if not isinstance(given, typer.Typer):
            found[name] = given
            continue
        for each in given.registered_commands:
            assert each.callback is not None
            found[f"{name} {each.name or each.callback.__name__}"] = each.callback
    return found


def paths_of(folder: str) -> set[tuple[str, str]]:
    """Parameters of the commands of a folder that are paths."""
    paths = set()
    for name, function in _functions(folder).items():
        types = typing.get_type_hints(function)
        paths |= {(name, each) for each in inspect.signature(function).parameters if "Path" in str(types[each])}
    return paths


def test_every_output_of_every_command_is_in_the_contract() -> None:
    own = {output for output in OUTPUTS if places("command")[output[0].split()[0]].folder == "cli"}
    assert paths_of("cli") - OTHERS == own


@pytest.fixture
def place(store: Path, spec: Path) -> Path:
    """The folder in which commands run, with a store, a specification and a file of texts."""
    copy_store(str(store), str(spec.parent / "s.sqlite"))
    (spec.parent / "texts.txt").write_text("Tea is bad.\n", encoding="utf-8")
    return spec.parent


#: What somebody else has at the path, by the name that its suffix gives it.
FOREIGN: dict[str, Callable[[Path], object]] = {
    "store": lambda path: copy_store("s.sqlite", "c.sqlite") or Path("c.sqlite").rename(path),
    "specification": lambda path: shutil.copy("small.yaml", path),
    "table": lambda path: path.write_text("id,text\n1,mine\n"),
    "page": lambda path: path.write_text("<!doctype html>\n<p>mine</p>\n"),
    "picture": lambda path: path.write_bytes(b"\x89PNG\r\n\x1a\nmine"),
}
#: Suffixes that figures need.
SUFFIX = {("plot", "out"): ".png", ("compare", "plot"): ".png"}


@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.parametrize("output", OUTPUTS, ids=" ".join)
def test_what_a_command_did_not_make_stays(place: Path, output: tuple[str, str], kind: str) -> None:
    target = place / (f"mine/{FOLDERS[output]}" if output in FOLDERS else f"mine{SUFFIX.get(output, '')}")
    target.parent.mkdir(exist_ok=True)
    FOREIGN[kind](target)
    kept, there = target.read_bytes(), sorted(place.rglob("*"))
    given = "mine" if output in FOLDERS else target.name
    message = refused(*OUTPUTS[output].replace("{}/fits.csv", "{}").format(given).split())
    assert target.name in message or given in message
    assert target.read_bytes() == kept
    assert sorted(place.rglob("*")) == there


@pytest.mark.parametrize("path", ["s.sqlite", "s.sqlite-wal", "s.sqlite.lock"])
@pytest.mark.parametrize("force", [(), ("--force",)])
def test_a_store_and_what_belongs_to_it_is_never_replaced(place: Path, path: str, force: tuple[str, ...]) -> None:
    kept = (place / "s.sqlite").read_bytes()
    for command in ("table s.sqlite --csv", "classify texts.txt --claim x -o", "report s.sqlite --out"):
        assert "is never overwritten" in refused(*command.split(), path, *force)
    assert (place / "s.sqlite").read_bytes() == kept


def test_what_a_command_made_is_replaced_without_a_word(invoke: Invoke, place: Path) -> None:
    commands = [
        "table s.sqlite --csv t.csv", "plot density s.sqlite --out f.png --csv f.csv",
        "plot density s.sqlite --out f.svg", "plot density s.sqlite --out f.pdf",
        "report s.sqlite --out r.html", "classify texts.txt --claim x --out c.csv",
        "classify texts.txt --claim x --json --out c.csv", "export s.sqlite e",
    ]  # fmt: skip
    for command in commands:
        assert [invoke(*command.split()).exit_code for _ in range(2)] == [0, 0], command
    assert "already exists" in refused(*["table", "s.sqlite", "--csv", "c.csv"])
    assert invoke(*["table", "s.sqlite", "--csv", "c.csv", "--force"]).exit_code == 0
    (place / "e" / "metrics.csv").write_text("run,mine\n1,2\n")
    assert "'metrics.csv', which no export wrote" in refused("export", "s.sqlite", "e")


def test_a_caption_follows_its_figure_until_somebody_edits_it(invoke: Invoke, place: Path) -> None:
    density = "plot density s.sqlite --out f.png"
    assert invoke(*density.split(), "--caption", "in").exit_code == 0
    assert not (place / "f.txt").exists()
    (place / "f.txt").write_text("mine\n")
    before = (place / "f.png").read_bytes()
    assert "f.txt already exists" in refused(*density.split())
    assert ((place / "f.txt").read_text(), (place / "f.png").read_bytes()) == ("mine\n", before)
    assert invoke(*density.split(), "--caption", "none").exit_code == 0
    assert (place / "f.txt").read_text() == "mine\n"
    assert invoke(*density.split(), "--force").exit_code == 0
    assert "SCRIPTED STAND-IN" in (place / "f.txt").read_text()
    assert invoke(*density.replace("f.png", "f.svg").split()).exit_code == 0
    assert "--csv f.txt is the file of the figure or of its caption" in refused(*density.split(), "--csv", "f.txt")


def test_what_a_command_reads_is_not_replaced_either(invoke: Invoke, place: Path) -> None:
    assert invoke(*["classify", "texts.txt", "--claim", "x", "--out", "c.csv"]).exit_code == 0
    kept = (place / "c.csv").read_bytes()
    for force in ((), ("--force",)):
        message = refused("classify", "c.csv", "--text", "text", "--out", "c.csv", *force)
        assert "is an input of this command" in message
    assert (place / "c.csv").read_bytes() == kept


def test_a_dash_and_devices_are_no_files(invoke: Invoke, place: Path) -> None:
    assert ",n_runs,n_withheld," in invoke("table", "s.sqlite", "--csv", "-").stdout
    assert invoke("table", "s.sqlite", "--csv", "/dev/null").exit_code == 0
    assert "/dev/null is not a file" in refused("report", "s.sqlite", "--out", "/dev/null")
    assert not (place / "-").exists()
    assert not is_store(Path("/dev/null"))


def test_a_file_is_replaced_whole_or_not_at_all(place: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    assert invoke("table", "s.sqlite", "--csv", "t.csv").exit_code == 0
    kept = (place / "t.csv").read_bytes()

    def full(path: Path, *_: object, **__: object) -> None:
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    assert "cannot write t.csv: No space left" in invoke("table", "s.sqlite", "--csv", "t.csv").stderr
    assert (place / "t.csv").read_bytes() == kept
    assert not [each for each in place.iterdir() if each.name.startswith(".t")]
