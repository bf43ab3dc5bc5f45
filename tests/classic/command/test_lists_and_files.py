"""The list of models, and the files that ``opinionsim abm`` writes, as those of all commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from opinionsim.classic import MODELS
from tests.cli import test_commands as commands, test_outputs as outputs
from tests.cli.conftest import Invoke
from tests.support.command import refused

OUTPUTS = {("abm", "csv"): "abm voter --steps 1 --csv {}", ("abm", "figure"): "abm voter --steps 1 --figure {}"}


@pytest.fixture(autouse=True)
def _of_this_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the suites of all commands take those of this folder."""
    monkeypatch.setitem(commands.EXPECTED, "abm", set(MODELS))
    monkeypatch.setitem(outputs.SUFFIX, ("abm", "figure"), ".svg")
    for output, command in OUTPUTS.items():
        monkeypatch.setitem(outputs.OUTPUTS, output, command)


def test_the_list_has_all_models_in_the_order_of_their_table(invoke: Invoke) -> None:
    commands.test_lists(invoke, "abm")
    first, *_ = invoke("list", "abm").stdout.splitlines()[1:]
    assert first.split() == ["voter", *(f"{name}," for name in [*MODELS["voter"].declared][:-1]),
                             [*MODELS["voter"].declared][-1], "Voter", "model"]  # fmt: skip


@pytest.mark.parametrize("width", [80, 100])
def test_the_list_is_no_wider_than_its_terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    commands.test_no_list_is_wider_than_its_terminal(monkeypatch, ("abm",), width)


def test_a_model_is_listed_by_name_and_an_unknown_one_answered_with_a_close_one(invoke: Invoke) -> None:
    printed = invoke("list", "abm", "q-voter").stdout
    assert printed.splitlines()[1].startswith("q-voter")
    assert "Castellano" in printed
    assert "unknown classic model 'voters' (did you mean voter?); valid: " in refused("list", "abm", "voters")


def test_every_output_is_in_the_contract() -> None:
    assert outputs.paths_of("classic") == OUTPUTS.keys()


@pytest.mark.parametrize("kind", outputs.FOREIGN)
@pytest.mark.parametrize("output", OUTPUTS, ids=" ".join)
def test_what_a_command_did_not_make_stays(place: Path, output: tuple[str, str], kind: str) -> None:
    outputs.test_what_a_command_did_not_make_stays(place, output, kind)


def test_what_it_made_is_replaced_without_a_word(invoke: Invoke) -> None:
    for command in (
        "abm voter --steps 1 --csv a.csv --figure a.png", "abm voter --steps 1 --over n=[4,6] --csv b.csv",
    ):  # fmt: skip
        assert [invoke(*command.split()).exit_code for _ in range(2)] == [0, 0], command
