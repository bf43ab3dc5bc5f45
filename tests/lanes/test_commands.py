"""Batches from the command line: leaving, coming back, what status says, a command of one's own at the end."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import opinionsim as osim
from opinionsim.foundation import background
from opinionsim.lanes import Pace
from opinionsim.running import Invocation, under_way
from tests.support.batch_faults import Faults
from tests.support.batch_runs import QUICK, assert_settled, at_once, batches, model, prices, study
from tests.support.batches import BatchProvider
from tests.support.command import invoked, refused
from tests.support.running import ended, loaded
from tests.support.waiting import wait_until


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have commands take the times of tests, which no option of theirs sets."""
    monkeypatch.setattr(Pace.__new__, "__defaults__", tuple(QUICK))


@pytest.fixture
def provider() -> Iterator[BatchProvider]:
    """A server that takes a third of a second for a batch."""
    with BatchProvider(delay=0.3) as found:
        yield found


def written(spec: dict[str, Any], name: str = "half.yaml") -> str:
    """Path of a file with a specification."""
    Path(name).write_text(yaml.safe_dump(spec, sort_keys=False), encoding="utf-8")
    return name


# -- leaving and coming back ---------------------------------------------------------------------------------


def test_a_study_that_was_left_goes_on_in_a_copy_of_its_store(provider: BatchProvider) -> None:
    spec = written(study(provider))
    left = invoked("run", spec, "--store", "s.sqlite", "--leave")
    assert left.exit_code == 1
    (row,) = batches()
    assert f"batch {row.batch_id} of openai:m at openai@127.0.0.1" in left.stderr
    assert f"0 of {row.calls} calls done" in left.stderr
    Path("elsewhere").mkdir()
    invoked("store", "copy", "s.sqlite", "elsewhere/s.sqlite")
    done = invoked("run", spec, "--store", "elsewhere/s.sqlite")
    assert done.exit_code == 0, done.output
    assert "2 of 2 runs complete" in done.stderr
    assert_settled(provider, "elsewhere/s.sqlite")


def test_a_study_is_left_and_taken_up_until_it_is_complete(provider: BatchProvider) -> None:
    spec, times = written(study(provider)), 0
    while (code := invoked("run", spec, "--store", "s.sqlite", "--leave").exit_code) == 1:
        times += 1
        provider.advance(1.0)
    assert code == 0
    assert 4 <= times <= len(batches()) + 1
    assert_settled(provider)


def test_status_names_batches_with_their_age_and_what_is_done(provider: BatchProvider) -> None:
    spec = written(study(provider))
    invoked("run", spec, "--store", "s.sqlite", "--leave")
    said = invoked("status", "s.sqlite").stdout
    (row,) = batches()
    assert f"batch {row.batch_id} of openai:m at openai@127.0.0.1" in said
    assert "submitted" in said
    assert "expires in 24.0 h" in said
    found = json.loads(invoked("status", "s.sqlite", "--json").stdout)
    (shown,) = found["experiments"][0]["batches"] if "experiments" in found else found[0]["batches"]
    assert (shown["batch_id"], shown["calls"], shown["done"]) == (row.batch_id, row.calls, row.done)
    assert shown["expires_at"] - shown["submitted_at"] == pytest.approx(86_400, abs=5)
    invoked("run", spec, "--store", "s.sqlite")
    assert "batch" not in invoked("status", "s.sqlite").stdout


def test_a_lane_on_the_command_line_replaces_that_of_the_file(provider: BatchProvider) -> None:
    spec = written(at_once(study(provider)))
    assert invoked("run", spec, "--store", "s.sqlite", "--lane", "batch").exit_code == 0
    assert set(loaded("s.sqlite").calls["lane"]) == {"batch"}
    assert provider.at_once.total() == 0
    planned = invoked("plan", spec, "--lane", "batch")
    assert planned.exit_code == 0
    assert "batch" in planned.stdout


def test_results_that_are_gone_are_bought_again_with_an_option(provider: BatchProvider) -> None:
    provider.faults = Faults(vanish=(0,))
    spec = written(study(provider))
    lost = invoked("run", spec, "--store", "s.sqlite")
    assert lost.exit_code == 1
    assert "--resubmit" in lost.stderr
    assert invoked("run", spec, "--store", "s.sqlite", "--resubmit").exit_code == 0


# -- a command at the end ------------------------------------------------------------------------------------


@pytest.fixture
def noting() -> str:
    """A command that writes what it was told, and its words."""
    Path("note.py").write_text(
        "import json, os, sys\n"
        "told = [os.environ['OPINIONSIM_EXIT'], os.environ['OPINIONSIM_STORE'], *sys.argv[1:]]\n"
        "open('told.json', 'w').write(json.dumps(told))\n"
    )
    return shlex.join([sys.executable, "note.py", "$HOME; echo two", "*"])


def told() -> list[str]:
    """What the command was told."""
    found: list[str] = json.loads(Path("told.json").read_text())
    os.remove("told.json")
    return found


def test_a_command_is_started_at_the_end_without_a_shell(provider: BatchProvider, noting: str) -> None:
    spec = written(study(provider))
    words = ["$HOME; echo two", "*"]
    invoked("run", spec, "--store", "s.sqlite", "--leave", "--when-done", noting)
    assert told() == ["1", "s.sqlite", *words]
    invoked("run", spec, "--store", "s.sqlite", "--set", "execution.budget.calls=1", "--when-done", noting)
    assert told() == ["3", "s.sqlite", *words]
    invoked("run", spec, "--store", "s.sqlite", "--when-done", noting)
    assert told() == ["0", "s.sqlite", *words]
    # Also where nothing can be carried out.
    provider.keys = ["another"]
    Path("s.sqlite").unlink()
    invoked("run", spec, "--store", "s.sqlite", "--when-done", noting)
    assert told() == ["1", "s.sqlite", *words]


@pytest.mark.parametrize("command", ["no-such-command --now", "", "'unfinished"])
def test_a_command_that_is_not_there_is_refused_before_anything_is_done(provider: BatchProvider, command: str) -> None:
    said = refused("run", written(study(provider)), "--store", "s.sqlite", "--when-done", command)
    assert "--when-done" in said
    assert not Path("s.sqlite").exists()
    assert provider.batches == {}


# -- other commands ------------------------------------------------------------------------------------------


def test_prompts_of_batches_are_shown_and_replies_replayed(provider: BatchProvider) -> None:
    spec = written(study(provider))
    invoked("run", spec, "--store", "s.sqlite")
    shown = invoked("show", "s.sqlite", "--turn", "1", "--prompt")
    assert shown.exit_code == 0
    assert "You are going to play one particular person" in shown.stdout
    asked = {each.asked.messages for one in provider.batches.values() for each in one.items if each.asked}
    system = next(iter(asked))[0].content
    assert system.split("\n")[0][:60] in shown.stdout
    assert invoked("replay", "s.sqlite").exit_code == 0


@pytest.mark.long
def test_an_archive_says_how_replies_were_bought(provider: BatchProvider) -> None:
    invoked("run", written(study(provider)), "--store", "s.sqlite")
    assert invoked("export", "s.sqlite", "archive", "--archive").exit_code == 0
    assert invoked("verify", "archive").exit_code == 0
    frames = "".join(each.read_text("utf-8") for each in Path("archive").rglob("calls*.csv"))
    assert ",batch," in frames


@pytest.mark.long
def test_an_exported_manifest_repeats_the_study(provider: BatchProvider) -> None:
    invoked("run", written(study(provider)), "--store", "s.sqlite")
    invoked("export", "s.sqlite", "frames")
    (manifest,) = Path("frames").glob("manifest*")
    again = invoked("run", manifest, "--store", "again.sqlite")
    assert again.exit_code == 0, again.output
    assert loaded("again.sqlite").turns.equals(loaded("s.sqlite").turns)
    assert set(loaded("again.sqlite").calls["lane"]) == {"batch"}


def test_texts_of_a_finished_study_are_coded_through_batches() -> None:
    def answer(messages: Any, seed: int | None) -> str:
        return "1" if "<<<text" in messages[-1].content else "I doubt that it is true."

    with BatchProvider(answer) as provider:
        table = prices("openai:m", "openai:judge")
        spec = written(study(provider, prices=table))
        invoked("run", spec, "--store", "s.sqlite")
        before = provider.bought.total()
        judge = model(provider, called="judge")
        options = [f"model={judge['name']}", *(f"options.{name}={value}" for name, value in judge["options"].items())]
        settings = [each for option in options for each in ("--set", option)]
        coded = invoked(
            *("measure", "s.sqlite", "--classifier", "chat", "--variable", "tone", "--lane", "batch", *settings)
        )
        assert coded.exit_code == 0, coded.output
        assert provider.at_once.total() == 0
        assert provider.bought.total() > before
        assert [each.model for each in batches()][-1] == "openai:judge"
        found = loaded("s.sqlite")
        assert found.opinions.loc[found.opinions["variable"] == "tone", "value"].eq(1).all()


#: A contrast, and a variant in which it is looked at as well.
VARIANT = {
    "sweep": {"topic.framing": ["falsehood", "truth"]},
    "analysis": {"contrasts": {"c": {"of": "truth - falsehood"}}},
    "robustness": [{"label": "ring", "change": {"interaction.network": {"kind": "ring", "k": 2}}}],
}


@pytest.mark.long
def test_a_pilot_and_variants_go_through_batches_and_share_them(provider: BatchProvider) -> None:
    path = written(study(provider) | VARIANT)
    assert invoked("run", path, "--store", "s.sqlite", "--pilot").exit_code == 0
    assert_one_purchase(provider, 2 * 8)
    assert invoked("run", path, "--store", "s.sqlite", "--robustness").exit_code == 0
    assert_one_purchase(provider, 8 * 8)


def assert_one_purchase(provider: BatchProvider, calls: int) -> None:
    """Each call was bought once, in a batch."""
    assert (provider.bought.total(), provider.at_once.total()) == (calls, 0)
    assert set(provider.ids.values()) == {1}


@pytest.mark.long
def test_variants_are_left_and_taken_up(provider: BatchProvider) -> None:
    path, times = written(study(provider) | VARIANT), 0
    while (code := invoked("run", path, "--store", "s.sqlite", "--robustness", "--leave").exit_code) == 1:
        times += 1
        provider.advance(1.0)
        assert times < 30
    assert code == 0
    assert_one_purchase(provider, 8 * 8)


def test_a_study_that_waits_for_a_batch_shows_so_can_be_stopped_and_goes_on(provider: BatchProvider) -> None:
    provider.delay = 3600
    with under_way(Invocation(osim.load_experiment(study(provider)), "s.sqlite")) as (runner, future):
        wait_until(lambda: len(provider.batches) == 1)
        (batch,) = provider.batches.values()
        assert (runner.progress().in_flight, runner.progress().made) == (len(batch.items), 0)
        background.call_soon(runner.stop)
        assert future.result().stopped
    # Nothing was cancelled at the provider, and the batch is taken up.
    assert [each.state for each in batches()] == ["open"]
    provider.delay = 0.0
    provider.advance(3600)
    assert ended(study(provider), "s.sqlite").complete == 2
    assert_settled(provider)


def test_a_store_of_several_workers_is_refused_by_plan_and_run(
    provider: BatchProvider, postgres: Any, tmp_path: Path
) -> None:
    spec, url = written(study(provider)), postgres.database(str(tmp_path))
    written(at_once(study(provider)), "now.yaml")
    assert invoked("run", "now.yaml", "--store", url).exit_code == 0
    for command in ("plan", "run"):
        said = refused(command, spec, "--store", url)
        assert "execution.lane: batch needs a SQLite store" in said
    assert provider.batches == {}
    shutil.rmtree("results", ignore_errors=True)
