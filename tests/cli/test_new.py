"""The folder of a study of one's own, and what is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from opinionsim.foundation.data import data_folder
from tests.cli.conftest import Invoke
from tests.support.command import refused


def test_it_prints_what_it_made_and_three_commands(invoke: Invoke) -> None:
    done = invoke("new", "town")
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        "Made:",
        *(f"  town/{name}" for name in ("README.md", "personas.yaml", "study.yaml", "topic.yaml")),
        "",
        "Next:",
        "  cd town",
        "  opinionsim plan study.yaml",
        "  opinionsim preview study.yaml",
        "  opinionsim run study.yaml",
    ]
    texts = [path.read_text(encoding="utf-8") for path in Path("town").iterdir()]
    assert all("my-study" not in text for text in texts)
    assert sum("results/town.sqlite" in text for text in texts) == 2


def test_what_comes_next_ends_with_the_run(invoke: Invoke) -> None:
    last = invoke("new", "street", "--from", "people").stdout.splitlines()[-1]
    assert last == "  opinionsim run street.yaml"


@pytest.mark.parametrize("standing", ["folder", "file", "link"])
def test_what_stands_there_is_left_alone(invoke: Invoke, standing: str) -> None:
    if standing == "folder":
        Path("town").mkdir()
    elif standing == "file":
        Path("town").write_text("mine", encoding="utf-8")
    else:
        Path("town").symlink_to("nowhere")
    done = invoke("new", "town")
    assert done.exit_code == 2
    assert done.stderr == "error: town already exists here; give another name or move it\n"
    assert [path.name for path in Path().iterdir()] == ["town"]
    assert standing != "folder" or not list(Path("town").iterdir())


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "../town", "/town", "a b", "a\nb", "1st", "-x", "über", "a\u202eb", "x" * 81]
)
def test_a_name_is_no_path_and_holds_no_space(name: str) -> None:
    assert "cannot name a study; a name is not a path, starts with a letter" in refused("new", "--", name)
    assert not list(Path().iterdir())


@pytest.mark.parametrize("name", ["null", "true", "CON", "nul.txt", "com1", "town."])
def test_a_name_means_nothing_else(name: str) -> None:
    assert "means something else in YAML or Windows" in refused("new", name)
    assert not list(Path().iterdir())


@pytest.mark.parametrize(("origin", "close"), [("dyad", "dyads"), ("quikstart", "quickstart"), ("packaged", None)])
def test_an_unknown_kind_is_answered_with_all_there_are(origin: str, close: str | None) -> None:
    said = refused("new", "town", "--from", origin)
    assert f"error: --from {origin}: no study or experiment" in said
    assert close is None or f"(did you mean {close}?)" in said
    assert "valid: classic, dyads, people, structure, bakker2022/" in said
    assert not list(Path().iterdir())


def test_a_failure_leaves_nothing_half_written(monkeypatch: pytest.MonkeyPatch) -> None:
    written = Path.write_text

    def full(self: Path, *arguments: str, **options: str) -> int:
        if self.name == "study.yaml":
            raise OSError(28, os.strerror(28), str(self))
        return written(self, *arguments, **options)

    monkeypatch.setattr(Path, "write_text", full)
    assert "No space left on device" in refused("new", "town")
    assert not list(Path().iterdir())


def test_studies_are_described_and_are_no_experiments(invoke: Invoke) -> None:
    folder = data_folder("studies")
    readme = (folder / "README.md").read_text(encoding="utf-8")
    kinds = {path.name for path in folder.iterdir() if path.is_dir()} - {"packaged", "published", "__pycache__"}
    assert kinds == {"dyads", "structure", "classic", "people"}
    assert all(f"`{kind}/`" in readme for kind in kinds)
    assert "my-study" not in invoke("list", "experiments").stdout
